/* SPDX-License-Identifier: Apache-2.0
 *
 * The edges of what is accepted: empty matrices, NULL where nothing is read, scalars that round to
 * zero, strides that do not matter, and strides beyond 2^31 elements. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "api.h"
#include "test.h"

/* What the device's memory is filled from, and what comes back from it. */
static float a[16], b[16], c[16];
static float *device_a, *device_b, *device_c;

static void fill(void)
{
    for (int i = 0; i < 16; i++) {
        a[i] = (float)(i + 1);
        b[i] = (float)(i % 3 - 1);
        c[i] = (float)(100 + i);
    }
}

/* 4 x 4 by 4 x 4, all row-major. */
static tg_problem square(void)
{
    fill();
    return api_product(4, 4, 4, TG_F32, device_a, device_b, device_c);
}

static void send(tg_context *ctx)
{
    CHECK(!tg_upload(ctx, device_a, a, sizeof a) && !tg_upload(ctx, device_b, b, sizeof b) &&
          !tg_upload(ctx, device_c, c, sizeof c));
}

static void fetch(tg_context *ctx) { CHECK(!tg_download(ctx, c, device_c, sizeof c)); }

/* BLAS calls that differ from the one before in a single argument, each after one that was
 * repeated. */
static void one_argument_differs(tg_context *ctx)
{
    enum { M, N, K, LDA, LDB, LDC, LAYOUT, TRANSA, TRANSB, ARGUMENTS, MOST = 64 };
    float x[MOST], y[MOST], z[MOST];
    for (int i = 0; i < MOST; i++)
        x[i] = (float)(i % 7), y[i] = (float)(i % 5 - 2), z[i] = 0;
    float *on_a = api_upload(ctx, x, sizeof x), *on_b = api_upload(ctx, y, sizeof y);
    float *on_c = api_upload(ctx, z, sizeof z);
    for (int turn = 0; turn < 3 * ARGUMENTS; turn++) {
        int v[ARGUMENTS] = {3, 3, 3, 5, 5, 5, 0, 0, 0}; /* the last three: 0 or 1 */
        if (turn % 3 == 2)
            v[turn / 3] += 1;
        memset(z, 0, sizeof z);
        CHECK(!tg_upload(ctx, on_c, z, sizeof z));
        CHECK_OK(ctx, tg_sgemm(ctx, TG_ROW_MAJOR + v[LAYOUT], TG_NO_TRANS + v[TRANSA],
                               TG_NO_TRANS + v[TRANSB], v[M], v[N], v[K], 1, on_a, v[LDA], on_b,
                               v[LDB], 0, on_c, v[LDC]));
        CHECK(!tg_sync(ctx) && !tg_download(ctx, z, on_c, sizeof z));
        for (int i = 0; i < v[M]; i++)
            for (int j = 0; j < v[N]; j++) {
                float sum = 0;
                for (int p = 0; p < v[K]; p++)
                    sum += x[v[LAYOUT] != v[TRANSA] ? p * v[LDA] + i : i * v[LDA] + p] *
                           y[v[LAYOUT] != v[TRANSB] ? j * v[LDB] + p : p * v[LDB] + j];
                CHECK(z[v[LAYOUT] ? j * v[LDC] + i : i * v[LDC] + j] == sum);
            }
    }
    CHECK(!tg_free(ctx, on_a) && !tg_free(ctx, on_b) && !tg_free(ctx, on_c));
}

static void run(tg_context *ctx, const tg_problem *p)
{
    send(ctx);
    CHECK_OK(ctx, tg_gemm(ctx, p));
    fetch(ctx);
}

static int c_is_scaled(double by)
{
    for (int i = 0; i < 16; i++)
        if (c[i] != (float)(by * (100 + i)))
            return 0;
    return 1;
}

/* Runs a changed square(), which must leave C scaled by a number. */
#define SCALES(change, by)       \
    do {                         \
        tg_problem p = square(); \
        change;                  \
        run(ctx, &p);            \
        CHECK(c_is_scaled(by));  \
    } while (0)
#define NO_DATA(p) ((p).a.data = (p).b.data = NULL)

static void test_empty(tg_context *ctx)
{
    SCALES((p.m = 0, NO_DATA(p), p.c.data = NULL), 1);
    SCALES((p.n = 0, NO_DATA(p), p.c.data = NULL), 1);
    SCALES((p.batch = 0, NO_DATA(p), p.c.data = NULL), 1);
    SCALES((p.m = 0, p.n = INT64_MAX, p.k = INT64_MAX), 1);
    SCALES((p.n = 0, p.m = INT64_MAX, p.c.row_stride = INT64_MIN), 1);
    SCALES((p.batch = 0, p.m = INT64_MAX, p.n = INT64_MAX), 1);
    SCALES((p.k = 0, NO_DATA(p), p.beta = 3), 3);
    SCALES((p.k = 0, NO_DATA(p), p.beta = 1), 1);
    SCALES((p.k = 0, NO_DATA(p), p.beta = 0), 0);
    SCALES((p.k = 0, p.beta = -1, p.alpha = NAN), -1);
    SCALES((p.alpha = 0, NO_DATA(p), p.beta = 2), 2);
    SCALES((p.alpha = 0, NO_DATA(p), p.beta = 0), 0);
    SCALES((p.alpha = 0, p.k = INT64_MAX, p.beta = 2), 2);
    SCALES((p.alpha = 0, p.a.row_stride = INT64_MIN, p.beta = 2), 2);
    SCALES((p.alpha = -0.0, NO_DATA(p), p.beta = 2), 2);
    SCALES((p.alpha = 1e-60, NO_DATA(p), p.beta = 2), 2);
    SCALES((p.alpha = 0, NO_DATA(p), p.beta = 1e-60, c[5] = NAN), 0);
    SCALES((p.alpha = 0, NO_DATA(p), p.beta = -0.0, c[5] = NAN), 0);
    fill();
    CHECK_OK(ctx, tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 0, 0, 0, 1, NULL, 1, NULL,
                           1, 0, NULL, 1));
    send(ctx);
    CHECK_OK(ctx, tg_sgemm(ctx, TG_COL_MAJOR, TG_TRANS, TG_CONJ_TRANS, 4, 4, 0, 1, NULL, 1, NULL, 4,
                           2, device_c, 4));
    fetch(ctx);
    CHECK(c_is_scaled(2));
}

static void test_nan_scalars(tg_context *ctx)
{
    int nans = 0;
    tg_problem p = square();
    p.alpha = NAN;
    run(ctx, &p);
    for (int i = 0; i < 16; i++)
        nans += isnan(c[i]) != 0;
    CHECK_INT(nans, 16);
    p = square();
    p.beta = NAN;
    p.k = 0;
    run(ctx, &p);
    for (int i = 0; i < 16; i++)
        nans += isnan(c[i]) != 0;
    CHECK_INT(nans, 32);
}

/* A stride counts only where a dimension has a second element. */
static void test_idle_strides(tg_context *ctx)
{
    fill();
    send(ctx);
    CHECK_OK(ctx, tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 1, 4, 1, 1, device_a,
                           INT64_MAX, device_b, INT64_MAX, 0, device_c, INT64_MAX));
    fetch(ctx);
    CHECK(c[0] == -1 && c[1] == 0 && c[2] == 1 && c[3] == -1 && c[4] == 104);
    fill();
    send(ctx);
    CHECK_OK(ctx, tg_sgemm(ctx, TG_COL_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 4, 1, 1, 1, device_a,
                           INT64_MAX, device_b, INT64_MAX, 0, device_c, INT64_MAX));
    fetch(ctx);
    CHECK(c[0] == -1 && c[3] == -4 && c[4] == 104);
    tg_problem p = square();
    p.a.batch_stride = p.b.batch_stride = p.c.batch_stride = INT64_MIN;
    run(ctx, &p);
    CHECK(c[0] == a[0] * b[0] + a[1] * b[4] + a[2] * b[8] + a[3] * b[12]);
    p = square();
    p.n = 1;
    p.b.col_stride = INT64_MIN, p.c.col_stride = INT64_MAX;
    run(ctx, &p);
    CHECK(c[1] == 101 && c[4] != 104);
    p = square();
    p.m = p.n = 1;
    p.a.row_stride = p.b.col_stride = p.c.row_stride = p.c.col_stride = INT64_MIN;
    run(ctx, &p);
    CHECK(c[0] == a[0] * b[0] + a[1] * b[4] + a[2] * b[8] + a[3] * b[12] && c[1] == 101);
}

/* Device memory; on the CPU, only address space until it is written. */
static void *reserve(tg_context *ctx, size_t bytes)
{
    void *memory = NULL;
    if (!api_is_cpu())
        return tg_alloc(ctx, bytes, &memory) ? NULL : memory;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void release(tg_context *ctx, void *memory, size_t bytes)
{
    if (!api_is_cpu())
        tg_free(ctx, memory);
    else if (memory)
        munmap(memory, bytes);
}

enum { SIDE = 3 };

static void check_far(tg_context *ctx, float *x[3], int64_t ld)
{
    float host[3][SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        for (int matrix = 0; matrix < 3; matrix++) {
            host[matrix][i] = (float)(i * (matrix + 1) % 5 - matrix);
            CHECK_OK(ctx, tg_upload(ctx, x[matrix] + i / SIDE * ld + i % SIDE, &host[matrix][i],
                                    sizeof(float)));
        }
    CHECK_OK(ctx, tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_TRANS, SIDE, SIDE, SIDE, 1, x[0], ld,
                           x[1], ld, 0, x[2], ld));
    for (int i = 0; i < SIDE * SIDE; i++) {
        float sum = 0, got = NAN;
        for (int p = 0; p < SIDE; p++)
            sum += host[0][i / SIDE * SIDE + p] * host[1][i % SIDE * SIDE + p];
        CHECK_OK(ctx, tg_download(ctx, &got, x[2] + i / SIDE * ld + i % SIDE, sizeof got));
        CHECK(got == sum);
    }
}

/* Products of index and stride beyond 32 bits; only the pages with elements become real. */
static void test_far_strides(tg_context *ctx)
{
    const int64_t ld = ((int64_t)1 << 31) + 7;
    const size_t bytes = (size_t)(SIDE - 1) * (size_t)ld * sizeof(float) + 4096;
    float *x[3];
    for (int matrix = 0; matrix < 3; matrix++)
        x[matrix] = reserve(ctx, bytes);
    if (x[0] && x[1] && x[2])
        check_far(ctx, x, ld);
    else
        test_print("no room for strides beyond 2^31\n");
    for (int matrix = 0; matrix < 3; matrix++)
        release(ctx, x[matrix], bytes);
}

void test_sizes(tg_context *ctx)
{
    one_argument_differs(ctx);
    fill();
    device_a = api_upload(ctx, a, sizeof a);
    device_b = api_upload(ctx, b, sizeof b);
    device_c = api_upload(ctx, c, sizeof c);
    test_empty(ctx);
    test_nan_scalars(ctx);
    test_idle_strides(ctx);
    test_far_strides(ctx);
    CHECK(!tg_free(ctx, device_a) && !tg_free(ctx, device_b) && !tg_free(ctx, device_c));
}
