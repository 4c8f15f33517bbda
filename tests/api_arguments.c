/* SPDX-License-Identifier: Apache-2.0
 *
 * Every bad argument of every function: the status, a sentence with the argument's name and value,
 * and C as it was. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "test.h"

enum { M = 5, N = 6, K = 7, ROOM = 64 };

static double *a, *b, *c, c_before[ROOM]; /* the first three are the device's */

static void take(tg_context *ctx)
{
    double host[3][ROOM];
    for (int i = 0; i < ROOM; i++) {
        host[0][i] = i;
        host[1][i] = -i;
        host[2][i] = c_before[i] = 1000 + i;
    }
    a = api_upload(ctx, host[0], sizeof host[0]);
    b = api_upload(ctx, host[1], sizeof host[1]);
    c = api_upload(ctx, host[2], sizeof host[2]);
}

static void drop(tg_context *ctx)
{
    tg_free(ctx, a);
    tg_free(ctx, b);
    tg_free(ctx, c);
}

/* Is C as it was? It is then, for the next check. */
static int c_is_untouched(tg_context *ctx)
{
    double now[ROOM];
    return !tg_download(ctx, now, c, sizeof now) && memcmp(now, c_before, sizeof now) == 0;
}

static void restore(tg_context *ctx) { tg_upload(ctx, c, c_before, sizeof c_before); }

/* The value of (x) as if the line that states the bad argument were checking it. */
static void refused(tg_context *ctx, tg_status given, tg_status expected, const char *parts,
                    int line)
{
    check_refused(ctx, given, expected, parts, __FILE__, line);
    test_note(c_is_untouched(ctx), __FILE__, line, "C was touched");
    restore(ctx);
}

/* ---------------------------------------------------------------------------- the BLAS form */

typedef struct blas {
    int layout, transa, transb;
    int64_t m, n, k, lda, ldb, ldc;
    const void *a, *b;
    void *c;
} blas;

static blas good_blas(void)
{
    return (blas){TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, M, N, K, K, N, N, a, b, c};
}

static void refuse_blas(tg_context *ctx, blas g, const char *parts, int line)
{
    refused(ctx,
            tg_sgemm(ctx, (tg_layout)g.layout, (tg_trans)g.transa, (tg_trans)g.transb, g.m, g.n,
                     g.k, 1, g.a, g.lda, g.b, g.ldb, 0, g.c, g.ldc),
            TG_BAD_ARGUMENT, parts, line);
    refused(ctx,
            tg_dgemm(ctx, (tg_layout)g.layout, (tg_trans)g.transa, (tg_trans)g.transb, g.m, g.n,
                     g.k, 1, g.a, g.lda, g.b, g.ldb, 1, g.c, g.ldc),
            TG_BAD_ARGUMENT, parts, line);
}

#define BLAS(change, parts)                   \
    do {                                      \
        blas g = good_blas();                 \
        change;                               \
        refuse_blas(ctx, g, parts, __LINE__); \
    } while (0)

static void test_blas(tg_context *ctx)
{
    BLAS(g.layout = 0, "layout = 0");
    BLAS(g.layout = 103, "layout = 103");
    BLAS(g.layout = -1, "layout = -1");
    BLAS(g.transa = 0, "transa = 0");
    BLAS(g.transa = 'N', "transa = 78");
    BLAS(g.transb = 114, "transb = 114");
    BLAS(g.m = -1, "m = -1");
    BLAS(g.n = -2, "n = -2");
    BLAS(g.k = -3, "k = -3");
    BLAS(g.m = INT64_MIN, "m = -9223372036854775808");
    BLAS(g.lda = K - 1, "lda = 6|7");
    BLAS(g.lda = 0, "lda = 0");
    BLAS(g.lda = -K, "lda = -7");
    BLAS(g.lda = INT64_MIN, "lda = -9223372036854775808");
    BLAS(g.ldb = N - 1, "ldb = 5|6");
    BLAS(g.ldc = N - 1, "ldc = 5|6");
    BLAS((g.transa = TG_TRANS, g.lda = M - 1), "lda = 4|5");
    BLAS((g.transa = TG_CONJ_TRANS, g.lda = M - 1), "lda = 4|5");
    BLAS((g.transb = TG_TRANS, g.ldb = K - 1), "ldb = 6|7");
    BLAS((g.layout = TG_COL_MAJOR, g.lda = M - 1, g.ldb = K, g.ldc = M), "lda = 4|5");
    BLAS((g.layout = TG_COL_MAJOR, g.lda = M, g.ldb = K - 1, g.ldc = M), "ldb = 6|7");
    BLAS((g.layout = TG_COL_MAJOR, g.lda = M, g.ldb = K, g.ldc = M - 1), "ldc = 4|5");
    BLAS((g.layout = TG_COL_MAJOR, g.transa = TG_TRANS, g.lda = K - 1, g.ldb = K, g.ldc = M),
         "lda = 6|7");
    BLAS((g.layout = TG_COL_MAJOR, g.transb = TG_TRANS, g.lda = M, g.ldb = N - 1, g.ldc = M),
         "ldb = 5|6");
    BLAS((g.k = 0, g.lda = 0), "lda = 0");
    BLAS((g.m = 0, g.ldc = N - 1), "ldc = 5");
    BLAS(g.a = NULL, "a is NULL");
    BLAS(g.b = NULL, "b is NULL");
    BLAS(g.c = NULL, "c is NULL");
    BLAS(g.a = (char *)a + 1, "a = |not aligned");
    BLAS(g.c = (char *)c + 2, "c = |not aligned");
    BLAS(g.a = c, "overlaps A");
    BLAS(g.b = c, "overlaps B");
    BLAS((g.m = INT64_MAX, g.lda = INT64_MAX), "address space|9223372036854775807");
    BLAS(g.ldb = INT64_MAX / 4, "B spans more than the address space|2305843009213693951");
}

/* -------------------------------------------------------------------------- the general form */

static tg_problem good_problem(void) { return api_product(M, N, K, TG_F64, a, b, c); }

/* The three functions that take a problem refuse it alike. */
static void refuse_problem(tg_context *ctx, const tg_problem *p, tg_status expected,
                           const char *parts, int line)
{
    tg_plan plan = TG_PLAN_INIT;
    size_t bytes = 12345;
    refused(ctx, tg_gemm(ctx, p), expected, parts, line);
    refused(ctx, tg_gemm_workspace(ctx, p, &bytes), expected, parts, line);
    refused(ctx, tg_pick(ctx, p, &plan), expected, parts, line);
    test_note(bytes == 12345 && plan.row == -1, __FILE__, line, "an answer was written");
}

#define PROBLEM(change, status, parts)                    \
    do {                                                  \
        tg_problem p = good_problem();                    \
        change;                                           \
        refuse_problem(ctx, &p, status, parts, __LINE__); \
    } while (0)
/* Refused by tg_gemm only: it is the data pointers that are wrong. */
#define DATA(change, parts)                                               \
    do {                                                                  \
        tg_problem p = good_problem();                                    \
        tg_plan plan = TG_PLAN_INIT;                                      \
        change;                                                           \
        refused(ctx, tg_gemm(ctx, &p), TG_BAD_ARGUMENT, parts, __LINE__); \
        CHECK_OK(ctx, tg_pick(ctx, &p, &plan));                           \
    } while (0)

static void test_problem(tg_context *ctx)
{
    refuse_problem(ctx, NULL, TG_BAD_ARGUMENT, "problem is NULL", __LINE__);
    PROBLEM(p.size = 0, TG_BAD_ARGUMENT, "size = 0");
    PROBLEM(p.size = 4096, TG_BAD_ARGUMENT, "size = 4096");
    PROBLEM(p.size -= 1, TG_BAD_ARGUMENT, "size = ");
    PROBLEM(p.m = -1, TG_BAD_ARGUMENT, "m = -1");
    PROBLEM(p.n = INT64_MIN, TG_BAD_ARGUMENT, "n = -9223372036854775808");
    PROBLEM(p.k = -5, TG_BAD_ARGUMENT, "k = -5");
    PROBLEM(p.batch = -1, TG_BAD_ARGUMENT, "batch = -1");
    PROBLEM(p.a.type = (tg_type)0, TG_BAD_ARGUMENT, "a.type = 0");
    PROBLEM(p.b.type = (tg_type)99, TG_BAD_ARGUMENT, "b.type = 99");
    PROBLEM(p.c.type = (tg_type)-1, TG_BAD_ARGUMENT, "c.type = -1");
    PROBLEM(p.a.type = TG_F32, TG_NOT_SUPPORTED, "a.type = f32|f64");
    PROBLEM(p.b.type = TG_F32, TG_NOT_SUPPORTED, "b.type = f32|f64");
    PROBLEM(p.c.type = TG_F32, TG_NOT_SUPPORTED, "c.type = f32|f64");
    PROBLEM(p.compute = (tg_compute)7, TG_NOT_SUPPORTED, "compute = 7");
    PROBLEM(p.flags = 0x10, TG_NOT_SUPPORTED, "flags = 0x10");
    PROBLEM(p.flags = UINT32_MAX, TG_NOT_SUPPORTED, "flags = 0xffffffff");
    PROBLEM(p.a.row_stride = INT64_MAX, TG_BAD_ARGUMENT, "A spans|9223372036854775807");
    PROBLEM(p.a.row_stride = INT64_MIN, TG_BAD_ARGUMENT, "A spans|-9223372036854775808");
    PROBLEM(p.b.col_stride = INT64_MIN / 4, TG_BAD_ARGUMENT, "B spans");
    PROBLEM(p.c.row_stride = INT64_MAX / 8, TG_BAD_ARGUMENT, "C spans");
    PROBLEM((p.batch = INT64_MAX, p.c.batch_stride = N * M), TG_BAD_ARGUMENT, "C spans");
    PROBLEM((p.batch = 2, p.b.batch_stride = INT64_MAX, p.c.batch_stride = 40), TG_BAD_ARGUMENT,
            "B spans");
    PROBLEM((p.m = (int64_t)1 << 57, p.a.row_stride = 0, p.c.data = NULL), TG_BAD_ARGUMENT,
            "C spans");
    PROBLEM((p.k = INT64_MAX, p.a.col_stride = p.b.row_stride = 0, p.a.data = NULL),
            TG_BAD_ARGUMENT, "A spans");
    PROBLEM(p.c.row_stride = 0, TG_BAD_ARGUMENT, "elements of C coincide|strides 0, 1");
    PROBLEM(p.c.col_stride = 0, TG_BAD_ARGUMENT, "coincide");
    PROBLEM(p.c.row_stride = N - 1, TG_BAD_ARGUMENT, "coincide|5, 1");
    PROBLEM(p.c.row_stride = 1, TG_BAD_ARGUMENT, "coincide|1, 1");
    PROBLEM(p.c.row_stride = -1, TG_BAD_ARGUMENT, "coincide|-1, 1");
    PROBLEM((p.c.row_stride = 4, p.c.col_stride = 6), TG_BAD_ARGUMENT, "coincide|4, 6");
    PROBLEM(p.batch = 2, TG_BAD_ARGUMENT, "coincide|batch 2");
    PROBLEM((p.batch = 2, p.c.batch_stride = N), TG_BAD_ARGUMENT, "coincide");
    PROBLEM((p.batch = 2, p.c.batch_stride = 2 * N + 1), TG_BAD_ARGUMENT, "coincide|6, 1, 13");
    PROBLEM((p.batch = 2, p.c.row_stride = 7, p.c.col_stride = -11, p.c.batch_stride = 18),
            TG_BAD_ARGUMENT, "coincide|7, -11, 18");
    DATA(p.a.data = NULL, "a is NULL");
    DATA(p.b.data = NULL, "b is NULL");
    DATA(p.c.data = NULL, "c is NULL");
    DATA(p.a.data = (char *)a + 4, "a = |not aligned|8 bytes");
    DATA(p.b.data = (char *)b + 1, "b = |not aligned|8 bytes");
    DATA(p.c.data = (char *)c + 2, "c = |not aligned|8 bytes");
    DATA(p.a.data = c, "overlaps A");
    DATA(p.b.data = c, "overlaps B");
    union {
        tg_problem p;
        unsigned char bytes[sizeof(tg_problem) + 32];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.p = good_problem();
    newer.p.size = sizeof newer;
    CHECK_OK(ctx, tg_gemm(ctx, &newer.p));
    restore(ctx);
    if (api_is_cpu()) { /* what leads nowhere may be any number */
        tg_problem one = good_problem();
        one.m = 1, one.a.row_stride = INT64_MIN, one.c.row_stride = INT64_MAX;
        one.a.batch_stride = one.c.batch_stride = INT64_MAX;
        CHECK_OK(ctx, tg_gemm(ctx, &one));
        restore(ctx);
    }
    newer.bytes[sizeof newer - 1] = 1;
    refuse_problem(ctx, &newer.p, TG_NOT_SUPPORTED, "size = ", __LINE__);
}

void test_arguments(tg_context *ctx)
{
    take(ctx);
    test_blas(ctx);
    test_problem(ctx);
    drop(ctx);
}

/* ------------------------------------------------------------------------ all the others */

static void test_no_context(tg_context *ctx)
{
    tg_problem p = good_problem();
    tg_plan plan = TG_PLAN_INIT;
    tg_tile tile = tg_tile_at(0);
    void *memory = &p;
    size_t bytes;
    double flops;
    float f[4] = {1, 2, 3, 4};
    CHECK_INT(tg_open(NULL, api_backend(), 0), TG_BAD_ARGUMENT);
    tg_close(NULL);
    CHECK_INT(tg_last_status(NULL), TG_OUT_OF_MEMORY);
    CHECK_TEXT(tg_last_error(NULL), tg_status_text(TG_OUT_OF_MEMORY));
    CHECK_INT(tg_set_threads(NULL, 1), TG_BAD_ARGUMENT);
    CHECK_INT(tg_set_stream(NULL, NULL), TG_BAD_ARGUMENT);
    CHECK_INT(tg_set_workspace(NULL, NULL, 0), TG_BAD_ARGUMENT);
    CHECK_INT(tg_sync(NULL), TG_BAD_ARGUMENT);
    CHECK_INT(tg_sgemm(NULL, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 1, 1, 1, 1, f, 1, f + 1, 1, 0,
                       f + 2, 1),
              TG_BAD_ARGUMENT);
    CHECK(f[2] == 3);
    CHECK_INT(
        tg_dgemm(NULL, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1),
        TG_BAD_ARGUMENT);
    CHECK_INT(tg_gemm(NULL, &p), TG_BAD_ARGUMENT);
    CHECK_INT(tg_gemm_workspace(NULL, &p, &bytes), TG_BAD_ARGUMENT);
    CHECK_INT(tg_pick(NULL, &p, &plan), TG_BAD_ARGUMENT);
    CHECK_INT(tg_force(NULL, &tile), TG_BAD_ARGUMENT);
    CHECK_INT(tg_alloc(NULL, 8, &memory), TG_BAD_ARGUMENT);
    CHECK_INT(tg_free(NULL, NULL), TG_BAD_ARGUMENT);
    CHECK_INT(tg_upload(NULL, f, f + 2, 4), TG_BAD_ARGUMENT);
    CHECK_INT(tg_download(NULL, f, f + 2, 4), TG_BAD_ARGUMENT);
    CHECK_INT(tg_peak(NULL, TG_F32, &flops), TG_BAD_ARGUMENT);
    CHECK(c_is_untouched(ctx) && f[0] == 1);
    CHECK(tg_device_name(NULL) != NULL);
    CHECK_INT(tg_device_limits(NULL).units, 0);
    CHECK(tg_tile_refusal(NULL, &tile, TG_F32) != NULL);
    tg_tile_resolve(NULL, &tile, TG_F32);
    tg_tile_resolve(NULL, NULL, TG_F32);
    const tg_tile of_caches = tg_tile_at(tg_tile_find("c8x48"));
    for (int type = 0; type < 10; type++)
        CHECK_INT(tg_tile_resolve(ctx, &of_caches, (tg_type)type).thread.n, 48);
}

void test_other_arguments(tg_context *ctx)
{
    take(ctx);
    tg_problem p = good_problem();
    tg_plan plan = TG_PLAN_INIT;
    tg_tile tile = tg_tile_at(0), odd = {{8, 8, 8}, {8, 8}, {8, 8}, 3, 1, 1, TG_OUTER_T, {1, 1, 1}};
    void *memory = &p;
    double flops = 5;
    float f[2] = {1, 2};
    test_no_context(ctx);
    CHECK_REFUSED(ctx, tg_set_threads(ctx, -1), TG_BAD_ARGUMENT, "threads = -1");
    if (api_is_cpu())
        CHECK_REFUSED(ctx, tg_set_stream(ctx, f), TG_NOT_SUPPORTED, "stream = 0x");
    else
        test_print("%s takes streams: test_gpu\n", api_backend());
    CHECK_REFUSED(ctx, tg_set_workspace(ctx, NULL, 77), TG_BAD_ARGUMENT, "memory|NULL|77");
    CHECK_REFUSED(ctx, tg_set_workspace(ctx, (char *)(uintptr_t)4100, 64), TG_BAD_ARGUMENT,
                  "memory|0x1004|64");
    CHECK_REFUSED(ctx, tg_gemm_workspace(ctx, &p, NULL), TG_BAD_ARGUMENT, "bytes|NULL");
    CHECK_REFUSED(ctx, tg_pick(ctx, &p, NULL), TG_BAD_ARGUMENT, "plan|NULL");
    plan.size = 3;
    CHECK_REFUSED(ctx, tg_pick(ctx, &p, &plan), TG_BAD_ARGUMENT, "plan.size = 3");
    CHECK_REFUSED(ctx, tg_force(ctx, &odd), TG_BAD_TILE, "vec = 3");
    CHECK_REFUSED(ctx, tg_alloc(ctx, 8, NULL), TG_BAD_ARGUMENT, "memory|NULL");
    CHECK_REFUSED(ctx, tg_alloc(ctx, SIZE_MAX, &memory), TG_OUT_OF_MEMORY, "18446744073709551615");
    CHECK(memory == NULL);
    memory = &p;
    CHECK_REFUSED(ctx, tg_alloc(ctx, SIZE_MAX / 4, &memory), TG_OUT_OF_MEMORY,
                  "4611686018427387903");
    CHECK(memory == NULL);
    memory = &p;
    CHECK_OK(ctx, tg_alloc(ctx, 0, &memory));
    CHECK(memory == NULL);
    CHECK_OK(ctx, tg_free(ctx, NULL));
    CHECK_REFUSED(ctx, tg_upload(ctx, NULL, f, 8), TG_BAD_ARGUMENT, "device|NULL|8");
    CHECK_REFUSED(ctx, tg_upload(ctx, f, NULL, 8), TG_BAD_ARGUMENT, "host|NULL|8");
    CHECK_REFUSED(ctx, tg_download(ctx, NULL, f, 8), TG_BAD_ARGUMENT, "host|NULL|8");
    CHECK_REFUSED(ctx, tg_download(ctx, f, NULL, 8), TG_BAD_ARGUMENT, "device|NULL|8");
    CHECK_OK(ctx, tg_upload(ctx, NULL, NULL, 0));
    CHECK_OK(ctx, tg_download(ctx, NULL, NULL, 0));
    CHECK_REFUSED(ctx, tg_peak(ctx, TG_F32, NULL), TG_BAD_ARGUMENT, "flops|NULL");
    CHECK_REFUSED(ctx, tg_peak(ctx, (tg_type)9, &flops), TG_BAD_ARGUMENT, "type = 9");
    CHECK(flops == 5);
    CHECK_TEXT(tg_tile_refusal(ctx, NULL, TG_F32), "tile|NULL");
    CHECK_TEXT(tg_tile_refusal(ctx, &tile, (tg_type)9), "type = 9");
    CHECK_TEXT(tg_tile_refusal(ctx, &odd, TG_F32), "vec = 3");
    CHECK(tg_tile_refusal(ctx, &tile, TG_F32) == NULL);
    CHECK_OK(ctx, tg_sync(ctx));
    drop(ctx);
}
