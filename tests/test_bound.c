/* SPDX-License-Identifier: Apache-2.0
 *
 * What exact integers cannot show: real data stays within the rounding bound of tilegemm.h for
 * every row and type, no bit of an input is dropped, and NaN and Inf go where they belong.
 *
 *     test_bound [BACKEND] [--thin]                            the whole suite
 *     test_bound BACKEND TYPE TILE KIND MxNxK fill=1 [words]   one case, as a REPRO line says */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "elements.h"
#include "test.h"

enum { M = 37, N = 51, K = 43 }; /* of the small matrices below */

typedef struct small {
    tg_context *ctx;
    element_line type; /* of A, B and C; what rounds to them is a double here */
    char name[32];     /* "f16 to f32" */
    const char *tile;
    double a[M * K], b[K * N], c[M * N];
} small;

/* ------------------------------------------------------------------------------- the bound */

static double bound_of_row(tg_context *ctx, const char *backend, const char *tile,
                           element_line type, int is_thin)
{
    static const int shapes[][3] = {{45, 67, 129}, {1, 50, 1000}, {33, 1, 700}, {100, 90, 515}};
    static const char *const kinds[] = {"NN", "cTN", "gsnt", "NT"};
    double worst = 0;
    for (int i = 0; i < (is_thin ? 2 : 8); i++) {
        gemm_case c = case_default(backend);
        c.type = type.a, c.b_type = type.b, c.c_type = type.c;
        snprintf(c.tile, sizeof c.tile, "%s", tile);
        snprintf(c.kind, sizeof c.kind, "%s", kinds[i / 2]);
        c.m = shapes[i / 2][0], c.n = shapes[i / 2][1], c.k = shapes[i / 2][2];
        c.alpha = i % 4 ? 3 : -1;
        c.beta = i % 3 ? 5 : 0;
        c.threads = 1 + i % 2;
        c.fill = i % 2 ? FILL_WIDE : FILL_UNIT;
        c.seed = i;
        if (case_run(ctx, "test_bound", &c, &worst) == CASE_REFUSED)
            return -1;
    }
    return worst;
}

/* --------------------------------------------------------------------- one small multiplication */

static int upload(tg_context *ctx, const double *from, int count, tg_type type, void **device)
{
    double host[M * N + K * N];
    for (int i = 0; i < count; i++)
        element_put(type, host, i, from[i]);
    size_t bytes = (size_t)count * tg_type_size(type);
    return !tg_alloc(ctx, bytes, device) && !tg_upload(ctx, *device, host, bytes);
}

/* c := alpha * a * b + beta * c, all row-major. */
static int multiply(small *s, double alpha, double beta)
{
    void *a = NULL, *b = NULL, *c = NULL;
    double host[M * N];
    size_t bytes = M * N * tg_type_size(s->type.c);
    int ok = upload(s->ctx, s->a, M * K, s->type.a, &a) &&
             upload(s->ctx, s->b, K * N, s->type.b, &b) &&
             upload(s->ctx, s->c, M * N, s->type.c, &c);
    tg_problem p = TG_PROBLEM_INIT;
    p.m = M, p.n = N, p.k = K, p.alpha = alpha, p.beta = beta;
    p.a = (tg_input){a, K, 1, 0, s->type.a};
    p.b = (tg_input){b, N, 1, 0, s->type.b};
    p.c = (tg_output){c, N, 1, 0, s->type.c};
    ok = ok && !tg_gemm(s->ctx, &p) && !tg_download(s->ctx, host, c, bytes);
    for (int i = 0; ok && i < M * N; i++)
        s->c[i] = element_get(s->type.c, host, i);
    CHECK_SAY(ok, "%s %s: %s", s->tile, s->name, tg_last_error(s->ctx));
    tg_free(s->ctx, a);
    tg_free(s->ctx, b);
    tg_free(s->ctx, c);
    return ok;
}

static void fill_all(small *s, double a, double b, double c)
{
    for (int i = 0; i < M * K; i++)
        s->a[i] = a;
    for (int i = 0; i < K * N; i++)
        s->b[i] = b;
    for (int i = 0; i < M * N; i++)
        s->c[i] = c;
}

/* Row `row` and column `col` of C (either may be -1 for none) are NaN, the rest is `rest`. */
static void check_cross(const small *s, const char *rule, int row, int col, double rest)
{
    int wrong = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double x = s->c[i * N + j];
            wrong += i == row || j == col ? !isnan(x) : x != rest;
        }
    CHECK_SAY(wrong == 0, "%s %s: %d elements break the rule: %s", s->tile, s->name, wrong, rule);
}

/* ------------------------------------------------------------------------------- the rules */

static void check_nan_rules(small *s)
{
    const int i = 17, j = 50, p = 42;
    fill_all(s, 1, 0, 7);
    s->a[i * K + p] = NAN;
    if (multiply(s, 1, 0))
        check_cross(s, "NaN in A against zeros in B", i, -1, 0);
    fill_all(s, 0, 1, 7);
    s->b[p * N + j] = NAN;
    if (multiply(s, 2, 1))
        check_cross(s, "NaN in B against zeros in A", -1, j, 7);
    fill_all(s, 1, 0, 7);
    s->a[i * K] = INFINITY;
    if (multiply(s, 1, 1))
        check_cross(s, "Inf * 0 is NaN", i, -1, 7);
    fill_all(s, 1, 1, 7);
    s->a[i * K] = INFINITY;
    s->a[i * K + p] = -INFINITY;
    if (multiply(s, 1, 0))
        check_cross(s, "Inf - Inf is NaN", i, -1, K);
    fill_all(s, 1, 1, NAN);
    if (multiply(s, 1, 0))
        check_cross(s, "beta == 0 does not read NaN in C", -1, -1, K);
    fill_all(s, NAN, INFINITY, 7);
    if (multiply(s, 0, 2))
        check_cross(s, "alpha == 0 does not read NaN in A and B", -1, -1, 14);
    fill_all(s, 1, 1, 0);
    s->c[i * N + j] = NAN;
    if (multiply(s, 1, 1))
        CHECK_SAY(isnan(s->c[i * N + j]) && s->c[i * N + j - 1] == K, "%s: NaN in C with beta 1",
                  s->tile);
}

/* Overflow, if C's type has any here, is a matter of one row: Inf arrives as Inf, not as NaN from
 * padding times Inf. */
static void check_inf(small *s)
{
    const double big = element_facts_of(s->type.a).largest;
    const double sum = element_rounded(s->type.c, K * big);
    int wrong = 0;
    fill_all(s, 1, 1, 0);
    for (int p = 0; p < K; p++)
        s->a[3 * K + p] = big;
    s->a[(M - 1) * K + K - 1] = INFINITY;
    if (!multiply(s, 1, 0))
        return;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            wrong += s->c[i * N + j] != (i == 3 ? sum : i == M - 1 ? INFINITY : K);
    CHECK_SAY(wrong == 0, "%s %s: %d elements wrong beside Inf", s->tile, s->name, wrong);
}

/* Single products that the sums' type holds to the last bit: a shorter format in between would
 * show.
 */
static void check_low_bits(small *s)
{
    const int digits = element_facts_of(s->type.a).digits;
    const int low_bit = digits > 12 ? digits / 2 : digits - 1;
    int wrong = 0;
    fill_all(s, 0, 0, 0);
    for (int i = 0; i < M; i++)
        s->a[i * K + i] = 1 + ldexp(1, -low_bit);
    for (int p = 0; p < K; p++)
        for (int j = 0; j < N; j++)
            s->b[p * N + j] = (p + j) % 2 ? 1 : -(1 + ldexp(1, -(low_bit - 1)));
    if (!multiply(s, 1, 0))
        return;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            wrong +=
                s->c[i * N + j] != element_rounded(s->type.c, s->a[i * K + i] * s->b[i * N + j]);
    CHECK_SAY(wrong == 0, "%s %s: %d products lost low bits", s->tile, s->name, wrong);
}

static double check_row(small *s, const char *backend, int is_thin)
{
    double worst = bound_of_row(s->ctx, backend, s->tile, s->type, is_thin);
    tg_tile tile;
    if (worst < 0 || !test_has_time())
        return worst;
    int is_named = tg_tile_parse(s->tile, &tile, NULL, 0) == TG_OK;
    CHECK_INT(tg_force(s->ctx, is_named ? &tile : NULL), TG_OK);
    check_nan_rules(s);
    check_inf(s);
    check_low_bits(s);
    return worst;
}

/* Does the device multiply them, and are they rounded at all? */
static int is_judged(tg_context *ctx, element_line type)
{
    return element_facts_of(type.a).digits != 0 && case_is_known(ctx, type.a);
}

static void run_all(tg_context *ctx, const char *backend, int is_thin)
{
    static small s;
    double worst[ELEMENT_LINES] = {0};
    const char *worst_tile[ELEMENT_LINES];
    s.ctx = ctx;
    const int tiles = tg_tile_count() + 1, pairs = ELEMENT_LINES * tiles;
    for (int i = 0; i < pairs; i++) {
        const int pair = i * TEST_LEAP % pairs, line = pair % ELEMENT_LINES;
        const int row = pair / ELEMENT_LINES - 1;
        s.type = element_lines[line];
        if (!is_judged(ctx, s.type))
            continue;
        snprintf(s.name, sizeof s.name, "%s to %s", tg_type_name(s.type.a), tg_type_name(s.type.c));
        s.tile = row < 0 ? "free" : tg_tile_name(row);
        const double now = check_row(&s, backend, is_thin);
        if (now > worst[line]) {
            worst[line] = now;
            worst_tile[line] = s.tile;
        }
    }
    for (int line = 0; line < ELEMENT_LINES; line++) {
        const element_line type = element_lines[line];
        if (!is_judged(ctx, type) || element_facts_of(type.c).digits < FLT_MANT_DIG)
            continue;
        if (worst[line] == 0 && !test_has_time())
            continue;
        const char *a = tg_type_name(type.a), *c = tg_type_name(type.c);
        test_print("%s to %s: the largest error is %.2f u |A||B|, in %s\n", a, c, worst[line],
                   worst[line] > 0 ? worst_tile[line] : "none");
        CHECK_SAY(worst[line] > 0, "no rounding seen in %s to %s", a, c);
    }
}

int main(int argc, char **argv)
{
    char backend[16], **words = argv + 1;
    int count = argc - 1;
    tg_context *ctx = case_open(&count, &words, backend);
    if (!ctx)
        return 1;
    gemm_case c = case_default(backend);
    if (count == 0 || words[0][0] == '-')
        run_all(ctx, backend, count > 0 && strcmp(words[0], "--thin") == 0);
    else if (case_parse(&c, count, words))
        case_run(ctx, "test_bound", &c, NULL);
    tg_close(ctx);
    return test_close();
}
