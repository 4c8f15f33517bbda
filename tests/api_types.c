/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of element types: which lines there are and what is refused; every value of f16 and
 * bf16 on its way in and out; integers that overflow. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <stdlib.h>

#include "api.h"
#include "elements.h"
#include "test.h"

static tg_problem problem_of(const element_line *types, int64_t m, int64_t n, int64_t k)
{
    tg_problem p = api_product(m, n, k, types->a, NULL, NULL, NULL);
    p.b.type = types->b, p.c.type = types->c;
    return p;
}

/* --------------------------------------------------------------------------------- the table */

static int is_line(const element_line *types)
{
    for (int line = 0; line < ELEMENT_LINES; line++)
        if (element_lines[line].a == types->a && element_lines[line].b == types->b &&
            element_lines[line].c == types->c)
            return 1;
    return 0;
}

/* Lines that a device lacks are refused like those that there are not, and A is named. GPUs have
 * those of f32 and f64, and may have more where A and B are of one type. */
static void test_lines(tg_context *ctx)
{
    int lines = 0;
    char name[20];
    for (int at = 0; at < 7 * 7 * 7; at++) {
        const element_line types = {(tg_type)(1 + at / 49), (tg_type)(1 + at / 7 % 7),
                                    (tg_type)(1 + at % 7)};
        const tg_problem p = problem_of(&types, 9, 9, 9);
        tg_plan plan = TG_PLAN_INIT;
        const tg_status status = tg_pick(ctx, &p, &plan);
        const int is_plain = at / 49 < PLAIN_LINES, may_be = types.a == types.b && status == TG_OK;
        const int is_here = is_line(&types) && (api_is_cpu() || is_plain || may_be);
        CHECK_SAY(status == (is_here ? TG_OK : TG_NOT_SUPPORTED), "%s x %s to %s: status %d: %s",
                  tg_type_name(types.a), tg_type_name(types.b), tg_type_name(types.c), (int)status,
                  tg_last_error(ctx));
        snprintf(name, sizeof name, ".type = %s", tg_type_name(types.a));
        if (status && is_line(&types))
            CHECK_TEXT(tg_last_error(ctx), name);
        else if (status)
            CHECK_TEXT(tg_last_error(ctx), ".type = ");
        lines += status == TG_OK;
    }
    CHECK(api_is_cpu() ? lines == ELEMENT_LINES : lines >= PLAIN_LINES);
}

static void test_refusals(tg_context *ctx)
{
    const element_line whole = {TG_I8, TG_I8, TG_I32}, mixed = {TG_F16, TG_BF16, TG_F32};
    const element_line to_f64 = {TG_BF16, TG_BF16, TG_F64}, of_i32 = {TG_I32, TG_I8, TG_I32};
    static const double fractions[] = {0.5, -1.25, 0x1p31, -0x1p31 - 1, INFINITY, NAN};
    const tg_tile tile = tg_tile_at(0);
    tg_problem p = problem_of(&mixed, 5, 5, 5);
    double flops = 5;
    CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_NOT_SUPPORTED, "a.type = f16|b.type = bf16");
    p = problem_of(&to_f64, 5, 5, 5);
    CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_NOT_SUPPORTED, "c.type = f64|a.type = bf16|f32");
    p = problem_of(&of_i32, 5, 5, 5);
    CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_NOT_SUPPORTED, "a.type = i32 is a type of C only");
    p.a.type = TG_U8, p.b.type = TG_I32;
    CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_NOT_SUPPORTED, "b.type = i32 is a type of C only");
    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
        char alpha[40], beta[40];
        snprintf(alpha, sizeof alpha, "alpha = %.17g ", fractions[i]);
        snprintf(beta, sizeof beta, "beta = %.17g ", fractions[i]);
        p = problem_of(&whole, 5, 5, 5);
        if (api_is_cpu()) { /* so that the next is like one before */
            static int8_t ones[25];
            static int32_t sums[25];
            p.a.data = p.b.data = ones, p.c.data = sums;
            CHECK_OK(ctx, tg_gemm(ctx, &p));
        }
        p.alpha = fractions[i];
        CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_NOT_SUPPORTED, alpha);
        p.alpha = 1, p.beta = fractions[i];
        CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_NOT_SUPPORTED, beta);
    }
    CHECK_TEXT(tg_tile_refusal(ctx, &tile, TG_I32), "type = i32 is a type of C only");
    CHECK_REFUSED(ctx, tg_peak(ctx, TG_I32, &flops), TG_BAD_ARGUMENT, "type = i32");
    CHECK(flops == 5);
}

/* ------------------------------------------------------------------------------ one product */

typedef struct product {
    element_line types;
    tg_problem p;
    unsigned char *a, *b, *c;
} product;

static void make(product *x, element_line types, int64_t m, int64_t n, int64_t k)
{
    x->types = types;
    x->p = problem_of(&types, m, n, k);
    x->p.a.data = x->a = calloc((size_t)(m * k) + 1, 8);
    x->p.b.data = x->b = calloc((size_t)(k * n) + 1, 8);
    x->p.c.data = x->c = calloc((size_t)(m * n) + 1, 8);
}

static void drop(product *x)
{
    free(x->a);
    free(x->b);
    free(x->c);
}

/* --------------------------------------------------------------------- every value, both ways */

/* From a value to the next. */
static double step_of(double value, element_facts facts)
{
    int exponent;
    if (!isfinite(value))
        return 1;
    frexp(fmax(fabs(value), facts.normal), &exponent);
    return ldexp(1, exponent - facts.digits);
}

/* Row i has the value with the bits i and its step, column j the 1 and parts[j]: values, ties and
 * what is just beside them, all of which f32 holds. */
static void test_all_values(tg_context *ctx, tg_type type, tg_type c_type)
{
    static const double parts[] = {0, 0.5, -0.5, 0.515625, -0.515625, 0.484375, -0.484375, 1, -1};
    enum { ALL = 1 << 16, PARTS = sizeof parts / sizeof parts[0] };
    /* Their instructions take what is less than 2^-126 for zero; steps are less than values. */
    const int matrix = tg_device_limits(ctx).matrix;
    const int has_no_denormals = type == TG_BF16 && (matrix & (TG_CPU_AMX | TG_CPU_BF16)) != 0;
    const double least = has_no_denormals ? 0x1p-116 : 0;
    int wrong = 0;
    product x;
    make(&x, (element_line){type, type, c_type}, ALL, PARTS, 2);
    for (int i = 0; i < ALL; i++) {
        ((uint16_t *)x.a)[2 * i] = (uint16_t)i;
        const double value = element_get(type, x.a, 2 * i);
        element_put(type, x.a, 2 * i + 1, step_of(value, element_facts_of(type)));
    }
    for (int j = 0; j < PARTS; j++) {
        element_put(type, x.b, j, 1);
        element_put(type, x.b, PARTS + j, parts[j]);
    }
    CHECK_OK(ctx, tg_gemm(ctx, &x.p));
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < PARTS; j++) {
            const double value = element_get(type, x.a, 2 * i);
            const double sum = value + element_get(type, x.a, 2 * i + 1) * parts[j];
            const double expected = element_rounded(c_type, sum);
            const double actual = element_get(c_type, x.c, i * PARTS + j);
            const int is_right = isnan(expected)       ? isnan(actual)
                                 : fabs(value) < least ? fabs(actual) < 2 * least
                                                       : actual == expected;
            if (!is_right && wrong++ < 5)
                CHECK_SAY(0, "%s 0x%04x and %g steps: %a in %s, expected %a", tg_type_name(type),
                          (unsigned)i, parts[j], actual, tg_type_name(c_type), expected);
        }
    CHECK_INT(wrong, 0);
    drop(&x);
}

/* A NaN whose bits are all 1 is not rounded up to something else. */
static void check_nans(tg_context *ctx, product *x, tg_type type)
{
    const uint64_t bits = UINT64_MAX >> 1;
    const int64_t all = x->p.m * x->p.n;
    int nans = 0;
    memcpy(&x->p.alpha, &bits, sizeof bits);
    CHECK_OK(ctx, tg_gemm(ctx, &x->p));
    for (int64_t i = 0; i < all; i++)
        nans += isnan(element_get(type, x->c, i)) != 0;
    CHECK_INT(nans, all);
}

/* Sums are no denormals, and what alpha makes of them is: rounded like all else, of few rows and of
 * many. */
static void test_small_results(tg_context *ctx, tg_type type)
{
    static const int64_t rows[] = {3, 9, 70};
    enum { N = 40 };
    for (size_t x = 0; x < sizeof rows / sizeof rows[0]; x++) {
        product y;
        make(&y, (element_line){type, type, type}, rows[x], N, 1);
        y.p.alpha = type == TG_F16 ? 0x1p-21 : 0x1p-131;
        for (int i = 0; i < rows[x]; i++)
            element_put(type, y.a, i, i + 1);
        for (int j = 0; j < N; j++)
            element_put(type, y.b, j, 1 + j % 3);
        CHECK_OK(ctx, tg_gemm(ctx, &y.p));
        for (int i = 0; i < rows[x]; i++)
            for (int j = 0; j < N; j++) {
                const double expected = element_rounded(type, y.p.alpha * (i + 1) * (1 + j % 3));
                const double actual = element_get(type, y.c, i * N + j);
                CHECK_SAY(actual == expected, "%s, %lld rows, (%d, %d): %a, expected %a",
                          tg_type_name(type), (long long)rows[x], i, j, actual, expected);
            }
        check_nans(ctx, &y, type);
        drop(&y);
    }
}

/* Sums that are denormals may be made zeros, but then with the same sign for a few rows and for
 * many: of the first product the second leaves next to nothing, below zero, and those at the end
 * of k are less. */
static void test_signs_of_zero(tg_context *ctx)
{
    enum { M = 40, N = 20, K = 66, FEW = 3, PRODUCTS = 4 };
    static const int at[PRODUCTS] = {0, 32, 64, 65};
    static const double a[PRODUCTS] = {-0x1.8p-63, 0x1p-63, -0x1p-70, -0x1p-70};
    static const double b[PRODUCTS] = {0x1p-63, 0x1p-63, 0x1p-70, 0x1p-70};
    product x;
    make(&x, (element_line){TG_BF16, TG_BF16, TG_F32}, M, N, K);
    for (int i = 0; i < M; i++)
        for (int p = 0; p < PRODUCTS; p++)
            element_put(TG_BF16, x.a, i * K + at[p], a[p]);
    for (int p = 0; p < PRODUCTS; p++)
        for (int j = 0; j < N; j++)
            element_put(TG_BF16, x.b, at[p] * N + j, b[p]);
    CHECK_OK(ctx, tg_gemm(ctx, &x.p));
    const unsigned char *const row = x.c + (M - 1) * N * sizeof(float);
    for (x.p.m = 1; x.p.m <= FEW; x.p.m++) {
        CHECK_OK(ctx, tg_gemm(ctx, &x.p));
        for (int i = 0; i < x.p.m; i++)
            CHECK(memcmp(x.c + i * N * (int)sizeof(float), row, N * sizeof(float)) == 0);
    }
    drop(&x);
}

/* ---------------------------------------------------------------------------------- integers */

static int32_t low_bits(int64_t sum, int64_t c, double alpha, double beta)
{
    return (int32_t)((uint32_t)(int32_t)alpha * (uint32_t)sum +
                     (uint32_t)(int32_t)beta * (uint32_t)c);
}

/* One row times a few columns of the extremes, so long that sums do not fit. */
static void test_overflow(tg_context *ctx)
{
    static const double factors[][2] = {
        {1, 0}, {1, 1}, {-1, 2}, {3, -7}, {-2147483648.0, 2147483647}};
    const int64_t k = (1 << 17) + 77, n = 3, old = 1999999999;
    for (int line = 0; line < ELEMENT_LINES; line++)
        for (size_t f = 0; f < 5; f++) {
            product x;
            if (element_lines[line].c != TG_I32)
                continue;
            make(&x, element_lines[line], 1, n, k);
            const double a = x.types.a == TG_I8 ? -128 : 255, b = x.types.b == TG_I8 ? -128 : 255;
            for (int64_t i = 0; i < k * n; i++) {
                element_put(x.types.a, x.a, i / n, a);
                element_put(x.types.b, x.b, i, b);
            }
            for (int64_t j = 0; j < n; j++)
                element_put(TG_I32, x.c, j, (double)(old + j));
            x.p.alpha = factors[f][0], x.p.beta = factors[f][1];
            CHECK_OK(ctx, tg_gemm(ctx, &x.p));
            for (int64_t j = 0; j < n; j++)
                CHECK_INT(element_get(TG_I32, x.c, j),
                          low_bits(k * (int64_t)(a * b), old + j, x.p.alpha, x.p.beta));
            drop(&x);
        }
}

/* ------------------------------------------------------------------------------------- plans */

/* Plans are kept for the next call: one of the same shape must not be taken for one of other types.
 */
static void test_types_do_not_mix(tg_context *ctx)
{
    enum { M = 40, N = 50, K = 60 };
    for (int at = 0; at < ELEMENT_LINES * ELEMENT_LINES; at++) {
        const int lines[2] = {at / ELEMENT_LINES, at % ELEMENT_LINES};
        for (int which = 0; which < 2; which++) {
            product x;
            int wrong = 0;
            make(&x, element_lines[lines[which]], M, N, K);
            for (int i = 0; i < M * K; i++)
                element_put(x.types.a, x.a, i, i % 7);
            for (int i = 0; i < K * N; i++)
                element_put(x.types.b, x.b, i, i % 5);
            CHECK_OK(ctx, tg_gemm(ctx, &x.p));
            for (int i = 0; i < M * N; i++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += (double)((i / N * K + k) % 7) * ((k * N + i % N) % 5);
                wrong += element_get(x.types.c, x.c, i) != element_rounded(x.types.c, sum);
            }
            CHECK_SAY(wrong == 0, "lines %d and %d: %d are wrong", lines[0], lines[1], wrong);
            drop(&x);
        }
    }
}

/* Of 1 to 2^14, small ones as often as large. */
static int64_t size_of(uint64_t hash)
{
    const int bits = (int)(hash % 14);
    return (int64_t)1 << bits | (int64_t)(hash >> 50) >> (14 - bits);
}

/* Whatever the shape, something that the device has is chosen. */
static void test_picks(tg_context *ctx, tg_type type)
{
    for (uint64_t at = 0; at < 3000; at++) {
        const uint64_t hash = test_hash(at * 8 + (uint64_t)type);
        const int64_t m = size_of(hash), n = size_of(test_hash(hash)),
                      k = size_of(test_hash(~hash));
        tg_problem p = api_product(m, n, k, type, NULL, NULL, NULL);
        tg_plan plan = TG_PLAN_INIT;
        if (hash >> 40 & 1)
            p.a.row_stride = 1, p.a.col_stride = m + (int64_t)(hash >> 44 & 3);
        if (hash >> 41 & 1)
            p.b.row_stride = 1, p.b.col_stride = k + (int64_t)(hash >> 46 & 3);
        p.batch = hash >> 42 & 3 ? 1 : 1 + (int64_t)(hash >> 50 & 255);
        p.a.batch_stride = p.b.batch_stride = (int64_t)1 << 30, p.c.batch_stride = m * n;
        p.flags = hash >> 60 ? 0 : TG_BATCH_INVARIANT;
        const tg_status status = tg_pick(ctx, &p, &plan);
        CHECK_SAY(status == TG_OK, "%s, %" PRId64 "x%" PRId64 "x%" PRId64 " *%" PRId64 ": %s",
                  tg_type_name(type), m, n, k, p.batch, tg_last_error(ctx));
    }
}

/* What is kept beside a C of f16 is bounded, however large C is. */
static void test_sums(tg_context *ctx)
{
    const element_line halves = {TG_F16, TG_F16, TG_F16}, floats = {TG_F16, TG_F16, TG_F32};
    const tg_problem small = problem_of(&halves, 1 << 20, 1 << 15, 1 << 12);
    const tg_problem large = problem_of(&floats, 1 << 20, 1 << 15, 1 << 12);
    size_t with = 0, without = 0;
    CHECK_OK(ctx, tg_gemm_workspace(ctx, &small, &with));
    CHECK_OK(ctx, tg_gemm_workspace(ctx, &large, &without));
    CHECK_SAY(with < without + ((size_t)4 << 20) * 512, "%zu bytes, and %zu without sums", with,
              without);
}

void test_types(tg_context *ctx)
{
    test_lines(ctx);
    test_refusals(ctx);
    test_picks(ctx, TG_F32);
    test_picks(ctx, TG_F64);
    if (!api_is_cpu()) {
        test_print("test_gemm multiplies what %s has of them\n", api_backend());
        return;
    }
    test_all_values(ctx, TG_F16, TG_F16);
    test_all_values(ctx, TG_F16, TG_F32);
    test_all_values(ctx, TG_BF16, TG_BF16);
    test_all_values(ctx, TG_BF16, TG_F32);
    test_small_results(ctx, TG_F16);
    test_small_results(ctx, TG_BF16);
    test_signs_of_zero(ctx);
    test_overflow(ctx);
    test_types_do_not_mix(ctx);
    test_sums(ctx);
}
