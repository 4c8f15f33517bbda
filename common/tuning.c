/* SPDX-License-Identifier: Apache-2.0
 *
 * Tilings that were measured to be faster than the chooser's: lines of a text file (tilegemm.h),
 * read when a context is opened, and found again by one number.
 *
 *     key    type | transposes | m | n | k | batch | threads        m .. batch: of a power of two
 *
 * People edit lines and carry them between machines, so nothing is believed of one: it is printed
 * again from what was understood and must come out the same, and its tiling is checked like any. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gemm.h"

enum { FORMAT = 1, SIZES = 4, MOST_BYTES = 1 << 20, MOST_SIZE_BITS = 62, MOST_PERCENT = 999999999 };

typedef struct line {
    char backend[16], type_name[8], trans_name[4], device[128]; /* what it is for */
    long long sizes[SIZES];
    int threads;
    int format, percent; /* what it says */
    char library[32], tiling[96];
    tg_type type; /* both as numbers */
    tg_tuned tuned;
} line;

static const char *const trans_names[] = {"NN", "NT", "TN", "TT"};

/* Which of A and B are transposed, as a place in trans_names; -1 if one has no unit stride. */
static int trans_of(const tg_problem *p)
{
    const int a = p->a.col_stride == 1 ? 0 : p->a.row_stride == 1 ? 1 : -1;
    const int b = p->b.col_stride == 1 ? 0 : p->b.row_stride == 1 ? 1 : -1;
    return a < 0 || b < 0 ? -1 : 2 * a + b;
}

/* As its users have it, who store C in rows: the chooser may have taken its columns for them. */
static tg_problem of_rows(const tg_problem *p)
{
    tg_problem q = *p;
    if (q.c.col_stride != 1 && q.c.row_stride == 1)
        tg_problem_swap(&q);
    return q;
}

/* The exponent of the power of two that is nearest to the size on a logarithmic scale. */
static int bits_of(int64_t size)
{
    const int below = 63 - __builtin_clzll((unsigned long long)tg_max(size, 1));
    const int is_near_next = (double)size > 1.4142135623730951 * (double)(1LL << below);
    return (int)tg_min(below + is_near_next, MOST_SIZE_BITS);
}

static uint64_t key_of(tg_type type, int trans, const int64_t sizes[SIZES], int threads)
{
    uint64_t key = (uint64_t)type << 2 | (uint64_t)trans;
    for (int i = 0; i < SIZES; i++)
        key = key << 6 | (uint64_t)bits_of(sizes[i]);
    return key << 21 | (uint64_t)threads; /* TG_TILE_MAX at most */
}

/* A CPU's; a GPU has no say in them. */
static int threads_of(const tg_context *ctx) { return ctx->limits.l1 > 0 ? tg_units(ctx) : 0; }

/* A table of other rows has other choosers' choices, and the gain was over those. Its hash takes as
 * long as a dozen lines, so it is kept. */
static const char *library_of(tg_context *ctx)
{
    if (!*ctx->library)
        snprintf(ctx->library, sizeof ctx->library, "%s-%08x", TG_VERSION_TEXT,
                 (unsigned)(tg_tile_table() & 0xffffffffu));
    return ctx->library;
}

static void print_line(const line *x, char text[TG_TUNING_LINE])
{
    snprintf(text, TG_TUNING_LINE, "%s %s %s %lldx%lldx%lld *%lld threads %d %s = v%d %s %s +%d%%",
             x->backend, x->type_name, x->trans_name, x->sizes[0], x->sizes[1], x->sizes[2],
             x->sizes[3], x->threads, x->device, x->format, x->library, x->tiling, x->percent);
}

/* ------------------------------------------------------------------------------------- reading */

static int read_type(const char *name, tg_type *type)
{
#define TG_X(x, value, text, ctype) \
    if (strcmp(name, #text) == 0)   \
        return *type = x, 1;
    TG_TYPE_LIST(TG_X)
#undef TG_X
    return 0;
}

static int read_trans(const char *name, int *trans)
{
    for (*trans = 0; *trans < 4; ++*trans)
        if (strcmp(name, trans_names[*trans]) == 0)
            return 1;
    return 0;
}

/* The fields of a line, as they stand there. */
static tg_status scan(tg_context *ctx, const char *text, line *x)
{
    const char *equals = NULL;
    int device = 0;
    for (const char *at = strstr(text, " = "); at; at = strstr(at + 1, " = "))
        equals = at; /* the last: the name of a device may have one */
    if (equals && sscanf(equals, " = v%9d", &x->format) == 1 && x->format != FORMAT)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "it has format v%d, and this library reads v%d",
                       x->format, FORMAT);
    if (!equals ||
        sscanf(text, "%15s %7s %3s %18lldx%18lldx%18lld *%18lld threads %9d %n", x->backend,
               x->type_name, x->trans_name, &x->sizes[0], &x->sizes[1], &x->sizes[2], &x->sizes[3],
               &x->threads, &device) != 8 ||
        sscanf(equals, " = v%9d %31s %95s +%9d%%", &x->format, x->library, x->tiling,
               &x->percent) != 4 ||
        x->percent < 0 || text + device > equals)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "\"%.80s\" is no line of a tuning file", text);
    snprintf(x->device, sizeof x->device, "%.*s", (int)tg_min(equals - text - device, 127),
             text + device);
    return TG_OK;
}

static tg_status understand(tg_context *ctx, const char *text, line *x)
{
    char again[TG_TUNING_LINE], reason[200];
    int64_t sizes[SIZES];
    int trans;
    if (scan(ctx, text, x))
        return ctx->status;
    for (int i = 0; i < SIZES; i++) {
        sizes[i] = x->sizes[i];
        if (sizes[i] < 1 || sizes[i] != 1LL << bits_of(sizes[i]))
            return tg_fail(ctx, TG_BAD_ARGUMENT, "%lld is no power of two", x->sizes[i]);
    }
    print_line(x, again);
    if (strcmp(again, text) != 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "it is to be written \"%.300s\"", again);
    if (!read_type(x->type_name, &x->type) || !read_trans(x->trans_name, &trans) ||
        x->threads < 0 || x->threads > TG_TILE_MAX)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s %s, threads %d: there is no such problem",
                       x->type_name, x->trans_name, x->threads);
    if (tg_tile_parse(x->tiling, &x->tuned.tile, reason, sizeof reason))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s", reason);
    x->tuned.key = key_of(x->type, trans, sizes, x->threads);
    return TG_OK;
}

static tg_status check_origin(tg_context *ctx, const line *x)
{
    const char *library = library_of(ctx);
    if (strcmp(x->library, library) != 0)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "library %s wrote it, and this is %s", x->library,
                       library);
    if (strcmp(x->backend, ctx->backend->name) != 0)
        return tg_fail(ctx, TG_NO_DEVICE, "it is for %s, and this is %s", x->backend,
                       ctx->backend->name);
    if (strcmp(x->device, ctx->device_name) != 0)
        return tg_fail(ctx, TG_NO_DEVICE, "it is for \"%s\", and this is \"%s\"", x->device,
                       ctx->device_name);
    return TG_OK;
}

/* Beside what is legal: on a CPU, what sums in the order that all of the chooser's rows do. */
static tg_status check_tile(tg_context *ctx, tg_tile t, tg_type type)
{
    const char *refusal = tg_tile_refusal(ctx, &t, type);
    const int is_cpu = ctx->limits.l1 > 0, bytes = tg_kernel_bytes(type, ctx->limits, t);
    const int has_block = t.block.m != 0 || t.block.n != 0 || t.block.k != 0;
    if (refusal)
        return tg_fail(ctx, TG_BAD_TILE, "%s", refusal);
    if (is_cpu && !tg_tile_keeps_order(t, ctx->limits, type))
        return tg_fail(ctx, TG_BAD_TILE,
                       "it could change bits: here, other instructions sum all of %s",
                       tg_type_name(type));
    if (is_cpu && (has_block || !tg_tile_shrinks(t, ctx->limits, bytes) || t.stages < 1 ||
                   t.slices != 1 || t.form == TG_DOT))
        return tg_fail(ctx, TG_BAD_TILE,
                       "it could change bits: on a CPU it must have block 0x0x0, vec = %d, stages, "
                       "one slice, and not the form dot",
                       ctx->limits.register_bytes / (bytes * tg_tile_word(t, bytes)));
    return TG_OK;
}

/* --------------------------------------------------------------------------- a context's lines */

/* Where in a table of so many places the line of this key is, or would be: some place is empty. */
static tg_tuned *place_of(tg_tuned *table, int places, uint64_t key)
{
    const uint32_t mask = (uint32_t)places - 1;
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (table[at].key != 0 && table[at].key != key)
        at = (at + 1) & mask;
    return &table[at];
}

static int make_room(tg_context *ctx)
{
    enum { FIRST_PLACES = 16 };
    const int places = ctx->tuned_places ? 2 * ctx->tuned_places : FIRST_PLACES;
    tg_tuned *table = calloc((size_t)places, sizeof *table);
    if (!table)
        return 0;
    for (int i = 0; i < ctx->tuned_places; i++)
        if (ctx->tuned[i].key != 0)
            *place_of(table, places, ctx->tuned[i].key) = ctx->tuned[i];
    free(ctx->tuned);
    ctx->tuned = table;
    ctx->tuned_places = places;
    return 1;
}

static tg_status keep(tg_context *ctx, const tg_tuned *tuned)
{
    if (2 * ctx->tuned_count >= ctx->tuned_places && !make_room(ctx))
        return tg_fail(ctx, TG_OUT_OF_MEMORY, "there is no memory for the line");
    tg_tuned *place = place_of(ctx->tuned, ctx->tuned_places, tuned->key);
    ctx->tuned_count += place->key == 0;
    *place = *tuned;
    ctx->given.size = 0;
    return TG_OK;
}

tg_status tg_tuning_add(tg_context *ctx, const char *text)
{
    line x = {.format = 0};
    tg_status status = tg_need_open(ctx);
    if (status)
        return status;
    if (!text)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "line is NULL");
    if (understand(ctx, text, &x) || check_origin(ctx, &x) ||
        check_tile(ctx, x.tuned.tile, x.type) || keep(ctx, &x.tuned))
        return ctx->status;
    return tg_succeed(ctx);
}

const tg_tile *tg_tuning_find(const tg_context *ctx, const tg_problem *p)
{
    const int keeps_bits = ctx->limits.l1 > 0 || !(p->flags & TG_BATCH_INVARIANT);
    if (ctx->tuned_count == 0 || !keeps_bits)
        return NULL;
    const tg_problem q = of_rows(p);
    const int trans = trans_of(&q);
    const int64_t sizes[SIZES] = {q.m, q.n, q.k, q.batch};
    if (trans < 0)
        return NULL;
    const uint64_t key = key_of(p->a.type, trans, sizes, threads_of(ctx));
    const tg_tuned *place = place_of(ctx->tuned, ctx->tuned_places, key);
    return place->key == key ? &place->tile : NULL;
}

tg_status tg_tuning_print(tg_context *ctx, const tg_problem *problem, const tg_tile *tile,
                          int percent, char *text)
{
    tg_problem p;
    line x = {.threads = 0, .format = FORMAT, .percent = percent};
    tg_status status = tg_describe(ctx, problem, &p);
    if (status)
        return status;
    p = of_rows(&p);
    if (!tile || !text)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s is NULL", tile ? "line" : "tile");
    if (percent < 0 || percent > MOST_PERCENT)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "percent = %d is not 0 .. %d", percent, MOST_PERCENT);
    if (trans_of(&p) < 0)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "a matrix without a unit stride has no tuning lines");
    if (check_tile(ctx, *tile, p.a.type))
        return ctx->status;
    snprintf(x.backend, sizeof x.backend, "%s", ctx->backend->name);
    snprintf(x.type_name, sizeof x.type_name, "%s", tg_type_name(p.a.type));
    snprintf(x.trans_name, sizeof x.trans_name, "%s", trans_names[trans_of(&p)]);
    snprintf(x.device, sizeof x.device, "%s", ctx->device_name);
    const int64_t sizes[SIZES] = {p.m, p.n, p.k, p.batch};
    for (int i = 0; i < SIZES; i++)
        x.sizes[i] = 1LL << bits_of(sizes[i]);
    x.threads = threads_of(ctx);
    snprintf(x.library, sizeof x.library, "%s", library_of(ctx));
    tg_tile_print(tile, x.tiling, sizeof x.tiling);
    print_line(&x, text);
    return tg_succeed(ctx);
}

/* ------------------------------------------------------------------------------------ the file */

int tg_tuning_path(char *path, size_t size)
{
    const char *given = getenv("TILEGEMM_TUNING"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (given)
        return snprintf(path, size, "%s", given);
    if (config && config[0] == '/')
        return snprintf(path, size, "%s/tilegemm/tuning.txt", config);
    if (home && home[0] == '/')
        return snprintf(path, size, "%s/.config/tilegemm/tuning.txt", home);
    return snprintf(path, size, "%s", "");
}

/* A pipe would wait, and a device never end. NULL, and *reason why: "" if nobody named the file. */
static FILE *open_file(const char *path, const char **reason)
{
    struct stat about;
    const int is_there = stat(path, &about) == 0;
    *reason = "it is no file of at most 1 MiB";
    if (is_there && (!S_ISREG(about.st_mode) || about.st_size > MOST_BYTES))
        return NULL;
    FILE *file = is_there ? fopen(path, "r") : NULL;
    *reason = errno == ENOENT && !getenv("TILEGEMM_TUNING") ? "" : strerror(errno);
    return file;
}

/* The next line, cut to size; 0 at the end of the file. A NUL would hide what follows. */
static int read_line(FILE *file, char text[TG_TUNING_LINE])
{
    int length = 0, c = getc(file);
    if (c == EOF)
        return 0;
    for (; c != EOF && c != '\n'; c = getc(file))
        if (length < TG_TUNING_LINE - 1)
            text[length++] = (char)(c ? c : '?');
    length -= length > 0 && text[length - 1] == '\r';
    text[length] = '\0';
    return 1;
}

void tg_tuning_load(tg_context *ctx)
{
    char path[4096], text[TG_TUNING_LINE];
    const char *reason;
    if (tg_tuning_path(path, sizeof path) >= (int)sizeof path || !*path)
        return;
    FILE *file = open_file(path, &reason);
    if (!file && *reason && ctx->is_traced)
        fprintf(stderr, "tilegemm: %s is not used: %s\n", path, reason);
    for (int at = 1; file && read_line(file, text); at++) {
        if (*text && *text != '#' && tg_tuning_add(ctx, text) && ctx->is_traced)
            fprintf(stderr, "tilegemm: %s, line %d is skipped: %s\n", path, at, ctx->error);
    }
    if (file)
        fclose(file);
}
