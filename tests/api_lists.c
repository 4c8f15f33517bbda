/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of problems: what is refused, with the item's number and with all of C as it was; that a
 * list of many kinds is right; that small ones and large ones share the threads. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "test.h"

enum { ITEMS = 9, SIDE = 6, ROOM = SIDE * SIDE };

static float *a, *b, *c; /* of the device: ITEMS x SIDE x SIDE */
static float before[ITEMS * ROOM];

static void take(tg_context *ctx)
{
    float host[2][ITEMS * ROOM];
    for (int i = 0; i < ITEMS * ROOM; i++) {
        host[0][i] = (float)(i % 7 - 3);
        host[1][i] = (float)(i % 5 - 2);
        before[i] = (float)(1000 + i);
    }
    a = api_upload(ctx, host[0], sizeof host[0]);
    b = api_upload(ctx, host[1], sizeof host[1]);
    c = api_upload(ctx, before, sizeof before);
}

static void fill_list(tg_problem list[ITEMS])
{
    for (int x = 0; x < ITEMS; x++)
        list[x] = api_product(SIDE, SIDE, SIDE, TG_F32, a + x * ROOM, b + x * ROOM, c + x * ROOM);
}

static void refused(tg_context *ctx, tg_status given, tg_status expected, const char *parts,
                    int line)
{
    float now[ITEMS * ROOM];
    check_refused(ctx, given, expected, parts, __FILE__, line);
    test_note(!tg_download(ctx, now, c, sizeof now) && memcmp(now, before, sizeof now) == 0,
              __FILE__, line, "C was touched");
    tg_upload(ctx, c, before, sizeof before);
}
#define REFUSED(call, expected, parts) refused(ctx, call, expected, parts, __LINE__)
/* The last of a list is wrong. */
#define LAST(change, status, parts)                                \
    do {                                                           \
        tg_problem list[ITEMS];                                    \
        fill_list(list);                                           \
        tg_problem *p = &list[ITEMS - 1];                          \
        change;                                                    \
        REFUSED(tg_gemm_grouped(ctx, list, ITEMS), status, parts); \
    } while (0)

static void test_refusals(tg_context *ctx)
{
    tg_problem list[ITEMS];
    const void *inputs[ITEMS];
    void *outputs[ITEMS];
    fill_list(list);
    for (int x = 0; x < ITEMS; x++) {
        inputs[x] = a;
        outputs[x] = c + x * ROOM;
    }
    LAST(p->m = -1, TG_BAD_ARGUMENT, "item 8: m = -1");
    LAST(p->size = 0, TG_BAD_ARGUMENT, "item 8: problem.size = 0");
    LAST(p->a.data = NULL, TG_BAD_ARGUMENT, "item 8: a is NULL");
    LAST(p->c.data = NULL, TG_BAD_ARGUMENT, "item 8: c is NULL");
    LAST(p->c.data = b + 8 * ROOM + 3, TG_BAD_ARGUMENT, "item 8: |C overlaps B");
    LAST(p->b.data = (char *)b + 2, TG_BAD_ARGUMENT, "item 8: b = |not aligned|4 bytes");
    LAST(p->c.row_stride = 1, TG_BAD_ARGUMENT, "item 8: elements of C coincide");
    LAST(p->b.type = TG_F64, TG_NOT_SUPPORTED, "item 8: a.type = f32 and b.type = f64");
    LAST(p->flags = 0x100, TG_NOT_SUPPORTED, "item 8: flags = 0x100");
    LAST((p[-4].k = -3, p->m = -1), TG_BAD_ARGUMENT, "item 4: k = -3");
    CHECK_INT(tg_gemm_grouped(NULL, list, 1), TG_BAD_ARGUMENT);
    CHECK_INT(tg_gemm_pointers(NULL, list, inputs, inputs, outputs, 1), TG_BAD_ARGUMENT);
    REFUSED(tg_gemm_grouped(ctx, NULL, 2), TG_BAD_ARGUMENT, "problems is NULL|2");
    REFUSED(tg_gemm_grouped(ctx, list, -2), TG_BAD_ARGUMENT, "count = -2");
    REFUSED(tg_gemm_grouped(ctx, NULL, 0), TG_OK, "");
    REFUSED(tg_gemm_pointers(ctx, NULL, inputs, inputs, outputs, 2), TG_BAD_ARGUMENT,
            "problem is NULL");
    REFUSED(tg_gemm_pointers(ctx, list, NULL, inputs, outputs, 2), TG_BAD_ARGUMENT, "a is NULL|2");
    REFUSED(tg_gemm_pointers(ctx, list, inputs, NULL, outputs, 2), TG_BAD_ARGUMENT, "b is NULL|2");
    REFUSED(tg_gemm_pointers(ctx, list, inputs, inputs, NULL, 2), TG_BAD_ARGUMENT, "c is NULL|2");
    inputs[5] = NULL;
    REFUSED(tg_gemm_pointers(ctx, list, inputs, inputs, outputs, ITEMS), TG_BAD_ARGUMENT,
            "item 5: a is NULL");
    inputs[5] = (char *)a + 1;
    REFUSED(tg_gemm_pointers(ctx, list, inputs, inputs, outputs, ITEMS), TG_BAD_ARGUMENT,
            "item 5: a = |not aligned");
    inputs[5] = outputs[5];
    REFUSED(tg_gemm_pointers(ctx, list, inputs, inputs, outputs, ITEMS), TG_BAD_ARGUMENT,
            "item 5: |C overlaps A");
    REFUSED(tg_gemm_pointers(ctx, list, NULL, NULL, NULL, 0), TG_OK, "");
}

/* ------------------------------------------------------------------------------- many kinds */

enum { KINDS = 120, LARGEST = 150, PIECE = LARGEST * LARGEST };

/* Sizes, orders and scalars change from item to item, some items come in runs, some of these with
 * an alpha of their own, some are empty, and a few are so large that all threads work on them. A
 * third are by rows that fill vectors. */
static tg_problem kind_at(int x, float *from[2], float *to)
{
    const uint64_t h = test_hash((uint64_t)(x / (x % 40 < 20 ? 5 : 1)));
    const int fills = x / 5 % 3 == 0, is_b_turned = h >> 51 & !fills;
    const int most = x % 29 == 28 ? LARGEST : 20, is_by_columns = h >> 50 & !fills;
    tg_problem p = TG_PROBLEM_INIT;
    p.m = (int64_t)(h % (uint64_t)most) + (x % 29 == 28 ? 1 : 0);
    p.n = fills ? 16 + (int64_t)(h >> 53 & 16) : 1 + (int64_t)(h >> 10) % most;
    p.k = (int64_t)(h >> 20) % most;
    p.alpha = x % 40 < 10 ? x % 3 - 1 : (double)(h >> 30 & 3) - 1;
    p.beta = (double)(h >> 32 & 1);
    p.a = (tg_input){from[0] + x, p.k, 1, 0, TG_F32};
    p.b = (tg_input){from[1] + x, is_b_turned ? 1 : p.n, is_b_turned ? p.k : 1, 0, TG_F32};
    p.c = (tg_output){to + (size_t)x * PIECE, is_by_columns ? 1 : p.n, is_by_columns ? p.m : 1, 0,
                      TG_F32};
    return p;
}

static int wrong_elements(const tg_problem *p, const float *x, const float *y, const float *z,
                          const float *old)
{
    int wrong = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * p->c.row_stride + j * p->c.col_stride;
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += (double)x[i * p->a.row_stride + k] *
                       y[k * p->b.row_stride + j * p->b.col_stride];
            wrong += z[at] != (float)(p->alpha * sum + p->beta * old[at]);
        }
    return wrong;
}

static void test_kinds(tg_context *ctx)
{
    const size_t inputs = PIECE + KINDS, outputs = (size_t)KINDS * PIECE;
    float *host[3] = {malloc(inputs * sizeof(float)), malloc(inputs * sizeof(float)),
                      malloc(2 * outputs * sizeof(float))};
    tg_problem list[KINDS];
    for (size_t i = 0; i < inputs; i++) {
        host[0][i] = (float)(i % 7) - 3;
        host[1][i] = (float)(i % 5) - 2;
    }
    for (size_t i = 0; i < outputs; i++)
        host[2][i] = host[2][i + outputs] = (float)(i % 3);
    float *from[2] = {api_upload(ctx, host[0], inputs * sizeof(float)),
                      api_upload(ctx, host[1], inputs * sizeof(float))};
    float *to = api_upload(ctx, host[2], outputs * sizeof(float));
    for (int threads = 1; threads <= 4; threads++) {
        int wrong = 0;
        for (int x = 0; x < KINDS; x++)
            list[x] = kind_at(x, from, to);
        CHECK_OK(ctx, tg_set_threads(ctx, threads));
        CHECK_OK(ctx, tg_upload(ctx, to, host[2] + outputs, outputs * sizeof(float)));
        CHECK_OK(ctx, tg_gemm_grouped(ctx, list, KINDS));
        CHECK_OK(ctx, tg_download(ctx, host[2], to, outputs * sizeof(float)));
        for (int x = 0; x < KINDS; x++) {
            const size_t at = (size_t)x * PIECE;
            wrong += wrong_elements(&list[x], host[0] + x, host[1] + x, host[2] + at,
                                    host[2] + outputs + at);
        }
        CHECK_SAY(wrong == 0, "%d threads: %d elements are wrong", threads, wrong);
    }
    tg_set_threads(ctx, 0);
    CHECK(!tg_free(ctx, from[0]) && !tg_free(ctx, from[1]) && !tg_free(ctx, to));
    for (int i = 0; i < 3; i++)
        free(host[i]);
}

void test_grouped(tg_context *ctx)
{
    take(ctx);
    test_refusals(ctx);
    CHECK(!tg_free(ctx, a) && !tg_free(ctx, b) && !tg_free(ctx, c));
    test_kinds(ctx);
}
