/* SPDX-License-Identifier: Apache-2.0
 *
 * A case as words: what REPRO lines print and the command line reads; see case.h. */
#define _GNU_SOURCE
#include "case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gemm_case case_default(const char *backend)
{
    gemm_case c = {.type = TG_F32, .tile = "free", .kind = "NN", .alpha = 1, .batch = 1};
    snprintf(c.backend, sizeof c.backend, "%s", backend);
    return c;
}

typedef struct option {
    const char *word;
    size_t offset;
    int value; /* the default */
} option;

static const option options[] = {
    {"lda+", offsetof(gemm_case, pad[0]), 0},      {"ldb+", offsetof(gemm_case, pad[1]), 0},
    {"ldc+", offsetof(gemm_case, pad[2]), 0},      {"alpha=", offsetof(gemm_case, alpha), 1},
    {"beta=", offsetof(gemm_case, beta), 0},       {"batch=", offsetof(gemm_case, batch), 1},
    {"share=", offsetof(gemm_case, share), 0},     {"threads=", offsetof(gemm_case, threads), 0},
    {"shift=", offsetof(gemm_case, shift), 0},     {"start=", offsetof(gemm_case, at_start), 0},
    {"exact=", offsetof(gemm_case, workspace), 0}, {"seed=", offsetof(gemm_case, seed), 0},
    {"fill=", offsetof(gemm_case, fill), 0},       {"b_type=", offsetof(gemm_case, b_type), 0},
    {"c_type=", offsetof(gemm_case, c_type), 0},   {"way=", offsetof(gemm_case, way), 0},
};
enum { OPTIONS = sizeof options / sizeof options[0] };

static int *option_in(gemm_case *c, const option *o) { return (int *)((char *)c + o->offset); }

static int parse_option(gemm_case *c, const char *word)
{
    for (int i = 0; i < OPTIONS; i++) {
        size_t length = strlen(options[i].word);
        if (strncmp(word, options[i].word, length) == 0)
            return sscanf(word + length, "%d", option_in(c, &options[i])) == 1;
    }
    return 0;
}

static int is_kind(const char *kind)
{
    if (kind[0] == 'g')
        return strlen(kind) == 4 && strspn(kind + 1, LAYOUTS) == 3 &&
               strchr(LAYOUTS, kind[3]) - LAYOUTS < OUTPUT_LAYOUTS;
    kind += kind[0] == 'c';
    return strlen(kind) == 2 && strspn(kind, "NTC") == 2;
}

int case_parse(gemm_case *c, int count, char **words)
{
    int type = 0;
    if (count < 4)
        return printf("a case is TYPE TILE KIND MxNxK and options; see case.h\n"), 0;
#define TG_X(name, value, text, ctype) type = strcmp(words[0], #text) ? type : value;
    TG_TYPE_LIST(TG_X)
#undef TG_X
    if (!type || strlen(words[1]) >= sizeof c->tile || !is_kind(words[2]) ||
        sscanf(words[3], "%" SCNd64 "x%" SCNd64 "x%" SCNd64, &c->m, &c->n, &c->k) != 3)
        return printf("%s %s %s %s: no such case\n", words[0], words[1], words[2], words[3]), 0;
    c->type = (tg_type)type;
    snprintf(c->tile, sizeof c->tile, "%s", words[1]);
    snprintf(c->kind, sizeof c->kind, "%s", words[2]);
    for (int i = 4; i < count; i++)
        if (!parse_option(c, words[i]))
            return printf("%s: no such word\n", words[i]), 0;
    if (c->batch != 1 && c->kind[0] != 'g')
        return printf("%s takes no batch\n", c->kind), 0;
    return 1;
}

void case_print(const gemm_case *c, char *text, size_t size)
{
    gemm_case copy = *c;
    size_t used =
        (size_t)snprintf(text, size, "%s %s %s %s %" PRId64 "x%" PRId64 "x%" PRId64, c->backend,
                         tg_type_name(c->type), c->tile, c->kind, c->m, c->n, c->k);
    for (int i = 0; i < OPTIONS && used < size; i++) {
        int value = *option_in(&copy, &options[i]);
        if (value != options[i].value)
            used += (size_t)snprintf(text + used, size - used, " %s%d", options[i].word, value);
    }
}

int case_is_known(tg_context *ctx, tg_type type)
{
    int rows = 0;
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile t = tg_tile_at(row);
        rows += tg_tile_refusal(ctx, &t, type) == NULL;
    }
    return rows > 0;
}

tg_context *case_open(int *count, char ***words, char backend[16])
{
    const char *name = getenv("TG_TEST_BACKEND");
    if (*count > 0 && (*words)[0][0] != '-') {
        name = (*words)[0];
        (*words)++;
        (*count)--;
    }
    snprintf(backend, 16, "%s", name ? name : "cpu");
    tg_context *ctx;
    if (tg_open(&ctx, backend, 0) == TG_OK)
        return ctx;
    printf("%s does not open: %s\n", backend, tg_last_error(ctx));
    tg_close(ctx);
    return NULL;
}
