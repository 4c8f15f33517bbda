/* SPDX-License-Identifier: Apache-2.0
 *
 * The two forms of a call, and how they reach a backend. Here layouts and transposes end: a matrix
 * is a pointer and strides, and for a GPU C is row-major or has no unit stride. */
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

/* alpha and beta have the type that products are summed in. (volatile, because gcc 12 takes two
 * such roundings side by side for nothing at all.) */
static void round_scalars(tg_type type, double *alpha, double *beta)
{
    if (tg_sum_type(type) == TG_F32) {
        volatile float f32_alpha = (float)*alpha, f32_beta = (float)*beta;
        *alpha = f32_alpha;
        *beta = f32_beta;
    }
}

/* Are A and B to change places, since C is stored by columns, or one of them was packed for that?
 */
static int is_swapped(const tg_problem *p)
{
    const tg_packed *packed = tg_packed_of(p);
    if (packed)
        return packed->is_swapped;
    return p->c.row_stride == 1 && (p->c.col_stride != 1 || p->n == 1);
}

void tg_problem_swap(tg_problem *p)
{
    const tg_problem q = *p;
    p->flags &= ~(uint32_t)TG_PACKED;
    p->flags |= q.flags & TG_A_PACKED ? TG_B_PACKED : 0;
    p->flags |= q.flags & TG_B_PACKED ? TG_A_PACKED : 0;
    p->m = q.n, p->n = q.m;
    p->a = q.b, p->a.row_stride = q.b.col_stride, p->a.col_stride = q.b.row_stride;
    p->b = q.a, p->b.row_stride = q.a.col_stride, p->b.col_stride = q.a.row_stride;
    p->c.row_stride = q.c.col_stride, p->c.col_stride = q.c.row_stride;
}

/* Do few columns of C make better rows? The many rows of A then lie side by side: those a CPU reads
 * as vectors, in long streams, which are to be long for each thread. */
static int has_few_columns(const tg_context *ctx, const tg_problem *p)
{
    const tg_limits *l = &ctx->limits;
    const int threads = tg_units(ctx), rows = l->registers >= 32 ? 8 : 6; /* of a tile */
    const int most = rows * tg_stream_tiles(l, (int64_t)tg_type_size(p->a.type), 1);
    return p->k >= 16 && p->k >= 4 * p->n && p->n > 1 && p->n <= most &&
           p->m >= (threads > 1 ? 256 * threads : 4 * p->n) && p->a.row_stride == 1;
}

/* Do few rows of C make better columns? The columns of B then lie along k, too many for caches:
 * kernels with vectors of 64 bytes read them where they are, as rows, and fetch those to come
 * (tg_fetches_rows). Two panels of columns are worth reading them twice, from L2. */
static int has_few_rows(const tg_context *ctx, const tg_problem *p)
{
    const tg_limits *l = &ctx->limits;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return l->vec_bytes >= 64 && p->m > TG_TURNED_ROWS && p->m <= 6 * l->vec_bytes / bytes &&
           p->b.row_stride == 1 && p->b.col_stride != 1 && tg_exceeds(l->l2, p->n, p->k, bytes);
}

/* Is it best read as its transpose? */
static int is_best_swapped(const tg_context *ctx, const tg_problem *p)
{
    const int is_known = p->a.type == p->c.type && (p->a.type == TG_F32 || p->a.type == TG_F64);
    return ctx->limits.l1 > 0 && is_known && !(p->flags & TG_PACKED) &&
           (has_few_columns(ctx, p) || has_few_rows(ctx, p));
}

/* The stride of a single row, column or item leads nowhere, as do all of an operand that is packed
 * or not read. They may be any numbers: those that are too large to compute with are let go. */
static void drop_strides(tg_problem *p)
{
    const int64_t most = (int64_t)1 << 48;
    const int reads_a = p->k > 0 && !(p->flags & TG_A_PACKED);
    const int reads_b = p->k > 0 && !(p->flags & TG_B_PACKED);
    struct {
        int64_t *stride, count;
    } all[] = {{&p->a.row_stride, reads_a ? p->m : 0},
               {&p->a.col_stride, reads_a ? p->k : 0},
               {&p->a.batch_stride, reads_a ? p->batch : 0},
               {&p->b.row_stride, reads_b ? p->k : 0},
               {&p->b.col_stride, reads_b ? p->n : 0},
               {&p->b.batch_stride, reads_b ? p->batch : 0},
               {&p->c.row_stride, p->m},
               {&p->c.col_stride, p->n},
               {&p->c.batch_stride, p->batch}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].count <= 1 && (*all[i].stride > most || *all[i].stride < -most))
            *all[i].stride = 0;
}

tg_status tg_problem_prepare(tg_context *ctx, tg_problem *p, int with_data, int *swapped)
{
    if (tg_check_scalars(ctx, p))
        return ctx->status;
    p->flags |= ctx->flags;
    round_scalars(p->a.type, &p->alpha, &p->beta);
    if (p->m == 0 || p->n == 0 || p->batch == 0) /* nothing else is looked at */
        p->m = p->n = p->k = p->batch = 0;
    else if (tg_check_matrices(ctx, p, with_data))
        return ctx->status;
    if (p->alpha == 0)
        p->k = 0;
    if (p->k == 0)
        p->flags &= ~(uint32_t)TG_PACKED;
    drop_strides(p);
    *swapped = is_swapped(p);
    if (*swapped)
        tg_problem_swap(p);
    if (p->n == 1)
        p->c.col_stride = 1;
    return TG_OK;
}

tg_status tg_problem_choose(tg_context *ctx, const tg_problem *p)
{
    tg_limits limits = ctx->limits;
    const tg_packed *packed = tg_packed_of(p);
    const tg_tile *forced = packed ? &packed->tile : ctx->is_forced ? &ctx->forced : NULL;
    const tg_tile *const stated = forced ? forced : tg_tuning_find(ctx, p);
    const char *refusal = forced ? tg_tile_refusal(ctx, forced, p->a.type) : NULL;
    if (refusal)
        return tg_fail(ctx, TG_BAD_TILE, "the %s tiling on %s: %s", packed ? "packed" : "forced",
                       tg_type_name(p->a.type), refusal);
    limits.units = tg_units(ctx);
    ctx->given.size = 0; /* the plan is no longer its */
    ctx->plans++;
    if (!tg_choose(p, &limits, stated, &ctx->plan))
        refusal = "no row of the table multiplies it there";
    else if (!stated) /* what tg_force or tg_tuning_add took is there */
        refusal = ctx->backend->missing(ctx, tg_tile_at(ctx->plan.row), p->a.type);
    if (refusal)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "a.type = %s on %s: %s", tg_type_name(p->a.type),
                       ctx->device_name, refusal);
    ctx->plan.is_tuned = stated && !forced;
    if (packed && tg_packed_fit(ctx, p))
        return ctx->status;
    ctx->plan_bytes = tg_problem_is_empty(p) ? 0 : ctx->backend->workspace(ctx, p, &ctx->plan);
    return TG_OK;
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

static tg_status prepare_to_run(tg_context *ctx, tg_problem *p, int with_data, int *swapped)
{
    if (tg_problem_prepare(ctx, p, with_data, swapped))
        return ctx->status;
    if (is_best_swapped(ctx, p)) {
        tg_problem_swap(p);
        *swapped ^= 1;
    }
    return TG_OK;
}

static void remember(tg_context *ctx, const tg_problem *given, const tg_problem *p, int swapped)
{
    const tg_problem *g = &ctx->given;
    ctx->given = *given;
    ctx->planned = *p;
    ctx->is_swapped = swapped;
    const tg_packed *packed = tg_packed_of(g);
    const tg_reach all = {0, packed ? tg_packed_bytes(ctx, packed) : 0};
    ctx->packed = packed ? *packed : ctx->packed;
    ctx->reach[0] = g->flags & TG_A_PACKED ? all : tg_reach_of(&g->a, g->m, g->k, g->batch);
    ctx->reach[1] = g->flags & TG_B_PACKED ? all : tg_reach_of(&g->b, g->k, g->n, g->batch);
    ctx->reach[2] = tg_reach_of(
        &(tg_input){g->c.data, g->c.row_stride, g->c.col_stride, g->c.batch_stride, g->c.type},
        g->m, g->n, g->batch);
}

int tg_item_is_plain(const tg_context *ctx, const tg_item *x)
{
    return x->a && x->b && x->c && tg_lie_apart(x->c, ctx->reach[2], x->a, ctx->reach[0]) &&
           tg_lie_apart(x->c, ctx->reach[2], x->b, ctx->reach[1]);
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
        round_scalars(given->a.type, &alpha, &beta);
        if (renew(ctx, (tg_item){given->a.data, given->b.data, given->c.data}, alpha, beta))
            return &ctx->planned;
    }
    int swapped;
    *room = *given;
    if (prepare_to_run(ctx, room, with_data, &swapped))
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
    return prepare_to_run(ctx, p, 0, &swapped);
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
