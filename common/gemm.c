/* SPDX-License-Identifier: Apache-2.0
 *
 * The two forms of a call, and how they reach a backend. Here layouts and transposes end: a matrix
 * is a pointer and strides. */
#include <inttypes.h>
#include <string.h>

#include "reads.h"

tg_status tg_problem_check(tg_context *ctx, const tg_problem *given)
{
    if (!given)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "problem is NULL");
    enum { MOST = 1024 }; /* that a tg_problem will ever have */
    if (given->size < sizeof *given || given->size > MOST)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "problem.size = %zu is outside %zu .. %d", given->size,
                       sizeof *given, MOST);
    for (size_t byte = sizeof *given; byte < given->size; byte++)
        if (((const unsigned char *)given)[byte])
            return tg_fail(ctx, TG_NOT_SUPPORTED,
                           "problem.size = %zu: this library knows %zu bytes and the rest is not 0",
                           given->size, sizeof *given);
    return TG_OK;
}

/* ------------------------------------------------------------------------------------- the call */

int tg_problem_is_empty(const tg_problem *p)
{
    return p->m == 0 || p->n == 0 || p->batch == 0 || (p->k == 0 && p->beta == 1);
}

/* ---------------------------------------------------------------------------- what is known
 * People multiply the same shape again and again, and small ones too: of a problem like the last
 * that was planned, only data, alpha and beta are looked at. */

static int same_input(const tg_input *x, const tg_input *y)
{
    return x->row_stride == y->row_stride && x->col_stride == y->col_stride &&
           x->batch_stride == y->batch_stride && x->type == y->type;
}

static int same_packed(const tg_context *ctx, const tg_problem *p)
{
    const tg_packed *packed = tg_packed_of(p);
    return packed && (uintptr_t)packed % 64 == 0 &&
           memcmp(packed, &ctx->packed, sizeof *packed) == 0;
}

int tg_problem_is_known(const tg_context *ctx, const tg_problem *p)
{
    const tg_problem *q = &ctx->given;
    return q->size != 0 && q->m == p->m && q->n == p->n && q->k == p->k && q->batch == p->batch &&
           same_input(&p->a, &q->a) && same_input(&p->b, &q->b) &&
           p->c.row_stride == q->c.row_stride && p->c.col_stride == q->c.col_stride &&
           p->c.batch_stride == q->c.batch_stride && p->c.type == q->c.type &&
           p->compute == q->compute && p->flags == q->flags &&
           (!(p->flags & TG_PACKED) || (p->alpha != 0 && same_packed(ctx, p)));
}

static void remember(tg_context *ctx, const tg_problem *given, const tg_problem *p, int swapped)
{
    const tg_problem *g = &ctx->given;
    ctx->given = *given;
    ctx->planned = *p;
    ctx->is_swapped = swapped;
    const tg_packed *packed = tg_packed_of(g);
    const tg_reach all = {0, packed ? tg_packed_bytes(packed) : 0, tg_type_size(g->a.type) - 1};
    ctx->packed = packed ? *packed : ctx->packed;
    ctx->reach[0] = g->flags & TG_A_PACKED ? all : tg_reach_of(&g->a, g->m, g->k, g->batch);
    ctx->reach[1] = g->flags & TG_B_PACKED ? all : tg_reach_of(&g->b, g->k, g->n, g->batch);
    ctx->reach[2] = tg_reach_of(
        &(tg_input){g->c.data, g->c.row_stride, g->c.col_stride, g->c.batch_stride, g->c.type},
        g->m, g->n, g->batch);
}

int tg_item_is_plain(const tg_context *ctx, const tg_item *x)
{
    const tg_reach *reach = ctx->reach;
    const uintptr_t inputs = (uintptr_t)x->a | (uintptr_t)x->b; /* of types of one size */
    const uintptr_t odd = (inputs & reach[0].odd) | ((uintptr_t)x->c & reach[2].odd);
    return x->a && x->b && x->c && odd == 0 && tg_lie_apart(x->c, reach[2], x->a, reach[0]) &&
           tg_lie_apart(x->c, reach[2], x->b, reach[1]);
}

/* ctx->planned := the known problem with these data, and rounded alpha and beta. False where they
 * need a closer look. */
static int renew(tg_context *ctx, tg_item data, double alpha, double beta)
{
    tg_problem *p = &ctx->planned;
    if (p->c.type == TG_I32 && (alpha != p->alpha || beta != p->beta))
        return 0; /* are they whole? */
    if (!tg_item_is_plain(ctx, &data))
        return 0;
    p->a.data = ctx->is_swapped ? data.b : data.a;
    p->b.data = ctx->is_swapped ? data.a : data.b;
    p->c.data = data.c;
    p->alpha = alpha;
    p->beta = beta;
    return alpha != 0;
}

const tg_problem *tg_problem_plan(tg_context *ctx, const tg_problem *given, tg_problem *room,
                                  int with_data)
{
    const int known = tg_problem_is_known(ctx, given);
    if (known) {
        double alpha = given->alpha, beta = given->beta;
        tg_round_scalars(given->a.type, &alpha, &beta);
        if (renew(ctx, (tg_item){given->a.data, given->b.data, given->c.data}, alpha, beta))
            return &ctx->planned;
    }
    int swapped;
    *room = *given;
    if (tg_problem_prepare_to_run(ctx, room, with_data, &swapped))
        return NULL;
    if (tg_problem_is_empty(room) || (known && room->k > 0))
        return room;
    if (tg_problem_choose(ctx, room))
        return NULL;
    if (room->k > 0)
        remember(ctx, given, room, swapped);
    return room;
}

tg_status tg_have_workspace(tg_context *ctx, size_t bytes)
{
    if (bytes <= ctx->workspace_bytes)
        return TG_OK;
    if (ctx->workspace_is_callers)
        return tg_fail(ctx, TG_SMALL_WORKSPACE, "the workspace has %zu bytes and %zu are needed",
                       ctx->workspace_bytes, bytes);
    if (ctx->workspace && ctx->backend->free(ctx, ctx->workspace))
        return ctx->status;
    ctx->workspace = NULL;
    ctx->workspace_bytes = 0;
    if (ctx->backend->alloc(ctx, bytes, &ctx->workspace))
        return ctx->status;
    ctx->workspace_bytes = bytes;
    return TG_OK;
}

static tg_status run(tg_context *ctx, const tg_problem *p)
{
    const tg_backend *backend = ctx->backend;
    if ((backend->check && backend->check(ctx, p)) || tg_have_workspace(ctx, ctx->plan_bytes) ||
        backend->gemm(ctx, p, &ctx->plan))
        return ctx->status;
    return tg_succeed(ctx);
}

static tg_status multiply(tg_context *ctx, const tg_problem *given)
{
    tg_problem room;
    const tg_problem *p = tg_problem_plan(ctx, given, &room, 1);
    if (!p)
        return ctx->status;
    return tg_problem_is_empty(p) ? tg_succeed(ctx) : run(ctx, p);
}

tg_status tg_need_open(tg_context *ctx)
{
    if (!ctx)
        return TG_BAD_ARGUMENT;
    return ctx->backend ? TG_OK : tg_fail(ctx, TG_BAD_ARGUMENT, "ctx was not opened successfully");
}

tg_status tg_gemm(tg_context *ctx, const tg_problem *problem)
{
    tg_status status = tg_need_open(ctx);
    if (status || (status = tg_problem_check(ctx, problem)))
        return status;
    return multiply(ctx, problem);
}

tg_status tg_gemm_workspace(tg_context *ctx, const tg_problem *problem, size_t *bytes)
{
    tg_problem room;
    tg_status status = tg_need_open(ctx);
    if (status || (status = tg_problem_check(ctx, problem)))
        return status;
    if (!bytes)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "bytes is NULL");
    const tg_problem *p = tg_problem_plan(ctx, problem, &room, 0);
    if (!p)
        return ctx->status;
    *bytes = tg_problem_is_empty(p) ? 0 : ctx->plan_bytes;
    return tg_succeed(ctx);
}

tg_status tg_describe(tg_context *ctx, const tg_problem *problem, tg_problem *p)
{
    tg_status status = tg_need_open(ctx);
    if (status || (status = tg_problem_check(ctx, problem)))
        return status;
    int swapped;
    *p = *problem;
    return tg_problem_prepare_to_run(ctx, p, 0, &swapped);
}

tg_status tg_pick(tg_context *ctx, const tg_problem *problem, tg_plan *picked)
{
    tg_problem room;
    tg_status status = tg_need_open(ctx);
    if (status || (status = tg_problem_check(ctx, problem)))
        return status;
    if (!picked)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "plan is NULL");
    if (picked->size != sizeof *picked)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "plan.size = %zu is not %zu", picked->size,
                       sizeof *picked);
    const tg_problem *p = tg_problem_plan(ctx, problem, &room, 0);
    if (!p || (tg_problem_is_empty(p) && tg_problem_choose(ctx, p)))
        return ctx->status;
    *picked = ctx->plan;
    picked->size = sizeof *picked;
    return tg_succeed(ctx);
}

/* -------------------------------------------------------------------------------- the BLAS form */

/* The strides of op(X), rows x cols, from how X is stored; refused if ld is too short. */
static tg_status read_operand(tg_context *ctx, const char *name, tg_layout layout, tg_trans trans,
                              int64_t rows, int64_t cols, int64_t ld, int64_t *row_stride,
                              int64_t *col_stride)
{
    int is_transposed = trans != TG_NO_TRANS;
    int by_rows = (layout == TG_ROW_MAJOR) != is_transposed;
    int64_t length = tg_max(1, by_rows ? cols : rows);
    if (ld < length)
        return tg_fail(ctx, TG_BAD_ARGUMENT,
                       "ld%s = %" PRId64 " is less than %" PRId64
                       ": the matrix is stored as %" PRId64 " x %" PRId64 ", %s-major",
                       name, ld, length, is_transposed ? cols : rows, is_transposed ? rows : cols,
                       layout == TG_ROW_MAJOR ? "row" : "column");
    *row_stride = by_rows ? ld : 1;
    *col_stride = by_rows ? 1 : ld;
    return TG_OK;
}

static int is_trans(tg_trans trans)
{
    return trans == TG_NO_TRANS || trans == TG_TRANS || trans == TG_CONJ_TRANS;
}

static int is_repeated(const tg_context *ctx, const tg_blas *x)
{
    const tg_blas *y = &ctx->blas;
    return ctx->given.size != 0 && ctx->blas_plan == ctx->plans && x->m == y->m && x->n == y->n &&
           x->k == y->k && x->lda == y->lda && x->ldb == y->ldb && x->ldc == y->ldc &&
           x->type == y->type && x->layout == y->layout && x->transa == y->transa &&
           x->transb == y->transb;
}

static tg_status blas_gemm(tg_context *ctx, const tg_blas *form, tg_item data, double alpha,
                           double beta)
{
    tg_status status = tg_need_open(ctx);
    if (status)
        return status;
    if (is_repeated(ctx, form) && renew(ctx, data, alpha, beta))
        return run(ctx, &ctx->planned);
    const int64_t m = form->m, n = form->n, k = form->k;
    const tg_layout layout = form->layout;
    const tg_trans transa = form->transa, transb = form->transb;
    if (layout != TG_ROW_MAJOR && layout != TG_COL_MAJOR)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "layout = %d is neither 101 (row) nor 102 (column)",
                       (int)layout);
    if (!is_trans(transa) || !is_trans(transb))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "trans%s = %d is none of 111, 112, 113",
                       is_trans(transa) ? "b" : "a", (int)(is_trans(transa) ? transb : transa));
    tg_problem p = TG_PROBLEM_INIT;
    p.m = m, p.n = n, p.k = k;
    p.alpha = alpha, p.beta = beta;
    p.a.data = data.a, p.b.data = data.b, p.c.data = data.c;
    p.a.type = p.b.type = p.c.type = form->type;
    if (m < 0 || n < 0 || k < 0)
        return tg_check_scalars(ctx, &p);
    tg_input *a = &p.a, *b = &p.b;
    tg_output *c = &p.c;
    if (read_operand(ctx, "a", layout, transa, m, k, form->lda, &a->row_stride, &a->col_stride) ||
        read_operand(ctx, "b", layout, transb, k, n, form->ldb, &b->row_stride, &b->col_stride) ||
        read_operand(ctx, "c", layout, TG_NO_TRANS, m, n, form->ldc, &c->row_stride,
                     &c->col_stride))
        return ctx->status;
    status = multiply(ctx, &p);
    if (!status && tg_problem_is_known(ctx, &p)) {
        ctx->blas = *form;
        ctx->blas_plan = ctx->plans;
    }
    return status;
}

tg_status tg_sgemm(tg_context *ctx, tg_layout layout, tg_trans transa, tg_trans transb, int64_t m,
                   int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float beta, float *c, int64_t ldc)
{
    const tg_blas form = {m, n, k, lda, ldb, ldc, TG_F32, layout, transa, transb};
    return blas_gemm(ctx, &form, (tg_item){a, b, c}, alpha, beta);
}

tg_status tg_dgemm(tg_context *ctx, tg_layout layout, tg_trans transa, tg_trans transb, int64_t m,
                   int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                   const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
    const tg_blas form = {m, n, k, lda, ldb, ldc, TG_F64, layout, transa, transb};
    return blas_gemm(ctx, &form, (tg_item){a, b, c}, alpha, beta);
}
