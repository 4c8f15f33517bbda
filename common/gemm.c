/* SPDX-License-Identifier: Apache-2.0
 *
 * The two forms of a call, and how they reach a backend. Here layouts and transposes end: a matrix
 * is a pointer and strides, and C is row-major or has no unit stride. */
#include <inttypes.h>

#include "gemm.h"

/* Reads the part of the struct that the caller's header knew. */
static tg_status read_problem(tg_context *ctx, const tg_problem *given, tg_problem *p)
{
    if (!given)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "problem is NULL");
    if (given->size < sizeof *p)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "problem.size = %zu is less than %zu", given->size,
                       sizeof *p);
    for (size_t byte = sizeof *p; byte < given->size; byte++)
        if (((const unsigned char *)given)[byte])
            return tg_fail(ctx, TG_NOT_SUPPORTED,
                           "problem.size = %zu: this library knows %zu bytes and the rest is not 0",
                           given->size, sizeof *p);
    *p = *given;
    return TG_OK;
}

/* ------------------------------------------------------------------------------------- the call */

static int has_nothing_to_do(const tg_problem *p)
{
    return p->m == 0 || p->n == 0 || p->batch == 0 || (p->k == 0 && p->beta == 1);
}

/* volatile, because gcc 12 takes two such roundings side by side for nothing at all. */
static double rounded_to_float(double x)
{
    volatile float rounded = (float)x;
    return rounded;
}

/* Checks, and brings the problem to the form that backends take. */
static tg_status prepare(tg_context *ctx, tg_problem *p, int with_data)
{
    if (tg_check_scalars(ctx, p))
        return ctx->status;
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return TG_OK;
    if (tg_sum_type(p->a.type) == TG_F32) {
        p->alpha = rounded_to_float(p->alpha);
        p->beta = rounded_to_float(p->beta);
    }
    if (tg_check_matrices(ctx, p, with_data))
        return ctx->status;
    if (p->alpha == 0)
        p->k = 0;
    if (p->c.row_stride == 1 && (p->c.col_stride != 1 || p->n == 1)) { /* C^T = B^T A^T */
        const tg_problem q = *p;
        p->m = q.n, p->n = q.m;
        p->a = q.b, p->a.row_stride = q.b.col_stride, p->a.col_stride = q.b.row_stride;
        p->b = q.a, p->b.row_stride = q.a.col_stride, p->b.col_stride = q.a.row_stride;
        p->c.row_stride = q.c.col_stride, p->c.col_stride = q.c.row_stride;
    }
    if (p->n == 1)
        p->c.col_stride = 1;
    return TG_OK;
}

/* Would the chooser, which looks at nothing else, say the same of both? */
static int same_shape(const tg_problem *p, const tg_problem *q)
{
    return p->m == q->m && p->n == q->n && p->k == q->k && p->batch == q->batch &&
           p->a.type == q->a.type && p->b.type == q->b.type && p->c.type == q->c.type &&
           p->size == q->size && p->a.row_stride == q->a.row_stride &&
           p->a.col_stride == q->a.col_stride && p->b.row_stride == q->b.row_stride &&
           p->b.col_stride == q->b.col_stride;
}

/* ctx->plan := how to run this problem. */
static tg_status choose(tg_context *ctx, const tg_problem *p)
{
    if (same_shape(p, &ctx->planned))
        return TG_OK;
    tg_limits limits = ctx->limits;
    const tg_tile *const given = ctx->is_forced ? &ctx->forced : tg_tuning_find(ctx, p);
    const char *refusal = ctx->is_forced ? tg_tile_refusal(ctx, &ctx->forced, p->a.type) : NULL;
    if (refusal)
        return tg_fail(ctx, TG_BAD_TILE, "the forced tiling on %s: %s", tg_type_name(p->a.type),
                       refusal);
    if (ctx->threads && limits.l1 > 0) /* a CPU's units are threads, a GPU's are not */
        limits.units = ctx->threads;
    ctx->planned.size = 0;
    if (!tg_choose(p, &limits, given, &ctx->plan))
        refusal = "no row of the table multiplies it there";
    else if (!given) /* what tg_force or tg_tuning_add took is there */
        refusal = ctx->backend->missing(ctx, tg_tile_at(ctx->plan.row), p->a.type);
    if (refusal)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "a.type = %s on %s: %s", tg_type_name(p->a.type),
                       ctx->device_name, refusal);
    ctx->plan.is_tuned = given && !ctx->is_forced;
    ctx->planned = *p;
    return TG_OK;
}

static tg_status have_workspace(tg_context *ctx, size_t bytes)
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

static tg_status multiply(tg_context *ctx, tg_problem *p)
{
    if (prepare(ctx, p, 1))
        return ctx->status;
    if (has_nothing_to_do(p))
        return tg_succeed(ctx);
    if (choose(ctx, p) || have_workspace(ctx, ctx->backend->workspace(ctx, p, &ctx->plan)) ||
        ctx->backend->gemm(ctx, p, &ctx->plan))
        return ctx->status;
    return tg_succeed(ctx);
}

tg_status tg_need_open(tg_context *ctx)
{
    if (!ctx)
        return TG_BAD_ARGUMENT;
    return ctx->backend ? TG_OK : tg_fail(ctx, TG_BAD_ARGUMENT, "ctx was not opened successfully");
}

tg_status tg_gemm(tg_context *ctx, const tg_problem *problem)
{
    tg_problem p;
    tg_status status = tg_need_open(ctx);
    if (status || (status = read_problem(ctx, problem, &p)))
        return status;
    return multiply(ctx, &p);
}

tg_status tg_gemm_workspace(tg_context *ctx, const tg_problem *problem, size_t *bytes)
{
    tg_problem p;
    tg_status status = tg_need_open(ctx);
    if (status || (status = read_problem(ctx, problem, &p)))
        return status;
    if (!bytes)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "bytes is NULL");
    if (prepare(ctx, &p, 0))
        return ctx->status;
    *bytes = 0;
    if (has_nothing_to_do(&p))
        return tg_succeed(ctx);
    if (choose(ctx, &p))
        return ctx->status;
    *bytes = ctx->backend->workspace(ctx, &p, &ctx->plan);
    return tg_succeed(ctx);
}

tg_status tg_describe(tg_context *ctx, const tg_problem *problem, tg_problem *p)
{
    tg_status status = tg_need_open(ctx);
    if (status || (status = read_problem(ctx, problem, p)))
        return status;
    return prepare(ctx, p, 0);
}

tg_status tg_pick(tg_context *ctx, const tg_problem *problem, tg_plan *plan)
{
    tg_problem p;
    tg_status status = tg_need_open(ctx);
    if (status || (status = read_problem(ctx, problem, &p)))
        return status;
    if (!plan)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "plan is NULL");
    if (plan->size != sizeof *plan)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "plan.size = %zu is not %zu", plan->size,
                       sizeof *plan);
    if (prepare(ctx, &p, 0) || choose(ctx, &p))
        return ctx->status;
    *plan = ctx->plan;
    plan->size = sizeof *plan;
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

static tg_status blas_gemm(tg_context *ctx, tg_type type, tg_layout layout, tg_trans transa,
                           tg_trans transb, int64_t m, int64_t n, int64_t k, double alpha,
                           const void *a, int64_t lda, const void *b, int64_t ldb, double beta,
                           void *c, int64_t ldc)
{
    tg_status status = tg_need_open(ctx);
    if (status)
        return status;
    if (layout != TG_ROW_MAJOR && layout != TG_COL_MAJOR)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "layout = %d is neither 101 (row) nor 102 (column)",
                       (int)layout);
    if (!is_trans(transa) || !is_trans(transb))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "trans%s = %d is none of 111, 112, 113",
                       is_trans(transa) ? "b" : "a", (int)(is_trans(transa) ? transb : transa));
    tg_problem p = TG_PROBLEM_INIT;
    p.m = m, p.n = n, p.k = k;
    p.alpha = alpha, p.beta = beta;
    p.a.data = a, p.b.data = b, p.c.data = c;
    p.a.type = p.b.type = p.c.type = type;
    if (m < 0 || n < 0 || k < 0)
        return tg_check_scalars(ctx, &p);
    if (read_operand(ctx, "a", layout, transa, m, k, lda, &p.a.row_stride, &p.a.col_stride) ||
        read_operand(ctx, "b", layout, transb, k, n, ldb, &p.b.row_stride, &p.b.col_stride) ||
        read_operand(ctx, "c", layout, TG_NO_TRANS, m, n, ldc, &p.c.row_stride, &p.c.col_stride))
        return ctx->status;
    return multiply(ctx, &p);
}

tg_status tg_sgemm(tg_context *ctx, tg_layout layout, tg_trans transa, tg_trans transb, int64_t m,
                   int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                   int64_t ldb, float beta, float *c, int64_t ldc)
{
    return blas_gemm(ctx, TG_F32, layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c,
                     ldc);
}

tg_status tg_dgemm(tg_context *ctx, tg_layout layout, tg_trans transa, tg_trans transb, int64_t m,
                   int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                   const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
    return blas_gemm(ctx, TG_F64, layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c,
                     ldc);
}
