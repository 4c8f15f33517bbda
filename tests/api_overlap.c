/* SPDX-License-Identifier: Apache-2.0
 *
 * Which placements are refused. The oracle marks every element of A, B and C in a small array.
 * A refusal must be true, and is there if elements of C coincide; an overlap that needs more than
 * looking at the strides may be missed. */
#define _GNU_SOURCE
#include <string.h>

#include "api.h"
#include "test.h"

enum { CELLS = 1200, MIDDLE = CELLS / 2 };

static double *cells; /* of the device */

static int between(uint64_t *h, int low, int high)
{
    *h = test_hash(*h);
    return low + (int)(*h % (uint64_t)(high - low + 1));
}

/* Marks the cells of a matrix with a bit; returns whether one was marked twice. */
static int mark(unsigned char *marks, int bit, const double *data, const int64_t count[3],
                const int64_t stride[3])
{
    int twice = 0;
    for (int64_t x = 0; x < count[2]; x++)
        for (int64_t i = 0; i < count[0]; i++)
            for (int64_t j = 0; j < count[1]; j++) {
                int64_t at = data - cells + i * stride[0] + j * stride[1] + x * stride[2];
                twice |= marks[at] & bit;
                marks[at] |= (unsigned char)bit;
            }
    return twice != 0;
}

typedef struct truth {
    int coincides, a_overlaps, b_overlaps;
} truth;

static truth look(const tg_problem *p)
{
    static unsigned char marks[CELLS];
    const int64_t a_count[3] = {p->m, p->k, p->batch}, b_count[3] = {p->k, p->n, p->batch};
    const int64_t c_count[3] = {p->m, p->n, p->batch};
    const int64_t a_stride[3] = {p->a.row_stride, p->a.col_stride, p->a.batch_stride};
    const int64_t b_stride[3] = {p->b.row_stride, p->b.col_stride, p->b.batch_stride};
    const int64_t c_stride[3] = {p->c.row_stride, p->c.col_stride, p->c.batch_stride};
    truth t = {0, 0, 0};
    memset(marks, 0, sizeof marks);
    t.coincides = mark(marks, 1, p->c.data, c_count, c_stride);
    mark(marks, 2, p->a.data, a_count, a_stride);
    mark(marks, 4, p->b.data, b_count, b_stride);
    for (int i = 0; i < CELLS; i++) {
        t.a_overlaps |= (marks[i] & 3) == 3;
        t.b_overlaps |= (marks[i] & 5) == 5;
    }
    return t;
}

/* Calls, and returns 1 if something that is wrong was let pass: never elements that coincide. */
static int judge(tg_context *ctx, const tg_problem *p, int must_see)
{
    const truth t = look(p);
    const int is_wrong = t.coincides || t.a_overlaps || t.b_overlaps;
    tg_status status = tg_gemm(ctx, p);
    const char *said = tg_last_error(ctx);
    int is_true = status == TG_OK ||
                  (status == TG_BAD_ARGUMENT && ((strstr(said, "coincide") && t.coincides) ||
                                                 (strstr(said, "overlaps A") && t.a_overlaps) ||
                                                 (strstr(said, "overlaps B") && t.b_overlaps)));
    CHECK_SAY(is_true && !((must_see ? is_wrong : t.coincides) && status == TG_OK),
              "%dx%dx%d batch %d, a %d: %d %d %d, b %d: %d %d %d, c %d: %d %d %d: status %d %s",
              (int)p->m, (int)p->n, (int)p->k, (int)p->batch,
              (int)((const double *)p->a.data - cells), (int)p->a.row_stride, (int)p->a.col_stride,
              (int)p->a.batch_stride, (int)((const double *)p->b.data - cells),
              (int)p->b.row_stride, (int)p->b.col_stride, (int)p->b.batch_stride,
              (int)((const double *)p->c.data - cells), (int)p->c.row_stride, (int)p->c.col_stride,
              (int)p->c.batch_stride, (int)status, said);
    return is_wrong && status == TG_OK;
}

static void test_any_strides(tg_context *ctx)
{
    int missed = 0, all = 40000;
    for (int i = 0; i < all; i++) {
        uint64_t h = (uint64_t)i;
        tg_problem p = TG_PROBLEM_INIT;
        p.m = between(&h, 1, 4), p.n = between(&h, 1, 4), p.k = between(&h, 1, 4);
        p.batch = between(&h, 1, 2);
        int64_t *strides[] = {&p.a.row_stride, &p.a.col_stride, &p.a.batch_stride,
                              &p.b.row_stride, &p.b.col_stride, &p.b.batch_stride,
                              &p.c.row_stride, &p.c.col_stride, &p.c.batch_stride};
        for (int s = 0; s < 9; s++)
            *strides[s] = between(&h, -8, 8);
        p.c.batch_stride = between(&h, -40, 40);
        p.a.data = cells + MIDDLE + between(&h, -60, 60);
        p.b.data = cells + MIDDLE + between(&h, -60, 60);
        p.c.data = cells + MIDDLE;
        p.a.type = p.b.type = p.c.type = TG_F64;
        missed += judge(ctx, &p, 0);
    }
    test_print("of %d placements with any strides, %d bad ones were not seen\n", all, missed);
}

/* Three rectangles of one matrix of doubles with rows of 20, as most programs have them. */
static void test_rectangles(tg_context *ctx)
{
    enum { LD = 20 };
    for (int i = 0; i < 20000; i++) {
        uint64_t h = (uint64_t)i + 99999;
        tg_problem p = TG_PROBLEM_INIT;
        p.m = between(&h, 2, 9), p.n = between(&h, 2, 9), p.k = between(&h, 2, 9);
        p.a.row_stride = p.b.row_stride = p.c.row_stride = LD;
        p.a.col_stride = p.b.col_stride = p.c.col_stride = 1;
        p.a.data = cells + LD * between(&h, 10, 30) + between(&h, 0, LD - (int)p.k);
        p.b.data = cells + LD * between(&h, 10, 30) + between(&h, 0, LD - (int)p.n);
        p.c.data = cells + LD * between(&h, 10, 30) + between(&h, 0, LD - (int)p.n);
        p.a.type = p.b.type = p.c.type = TG_F64;
        judge(ctx, &p, 1);
    }
}

static tg_problem three(double *a, double *b, double *c)
{
    return api_product(4, 4, 4, TG_F64, a, b, c);
}

static void test_named(tg_context *ctx)
{
    double *x = cells + MIDDLE, *far = cells;
    tg_problem p = three(x, far, x);
    judge(ctx, &p, 1);
    p = three(x, far, x + 15); /* the last element of A is the first of C */
    judge(ctx, &p, 1);
    p = three(x, far, x + 16);
    judge(ctx, &p, 1);
    p = three(far, x + 16, x + 1);
    judge(ctx, &p, 1);
    p = three(x, x, far); /* inputs may be one */
    CHECK_OK(ctx, tg_gemm(ctx, &p));
    p = three(x, far, x); /* the transpose of C */
    p.a.row_stride = 1, p.a.col_stride = 4;
    judge(ctx, &p, 1);
    p = three(x + 15, far, x); /* the same elements from the last to the first */
    p.a.row_stride = -4, p.a.col_stride = -1;
    judge(ctx, &p, 1);
    p = three(x + 32, far, x); /* A is the third item of C */
    p.batch = 3, p.c.batch_stride = 16;
    judge(ctx, &p, 1);
    p = three(x, far, x + 4); /* columns of one matrix, side by side */
    p.a.row_stride = p.c.row_stride = 8;
    judge(ctx, &p, 1);
    p = three(x, far, x + 1); /* even and odd columns */
    p.a.row_stride = p.c.row_stride = 8, p.a.col_stride = p.c.col_stride = 2;
    judge(ctx, &p, 1);
    p = three(x, far, x + 4); /* even and odd rows */
    p.a.row_stride = p.c.row_stride = 8;
    judge(ctx, &p, 1);
}

void test_overlap(tg_context *ctx)
{
    static double host[CELLS];
    for (int i = 0; i < CELLS; i++)
        host[i] = i;
    cells = api_upload(ctx, host, sizeof host);
    test_named(ctx);
    test_rectangles(ctx);
    test_any_strides(ctx);
    CHECK_OK(ctx, tg_free(ctx, cells));
}
