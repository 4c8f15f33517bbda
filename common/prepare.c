/* SPDX-License-Identifier: Apache-2.0
 *
 * What is found out of a problem that is new, before it is run: its matrices as a backend takes
 * them (for a GPU C is row-major or has no unit stride), and the plan. */
#include "way.h"

/* Are A and B to change places, since C is stored by columns, or one of them was packed for that?
 */
static int is_swapped(const tg_problem *p)
{
    const tg_packed *packed = tg_packed_of(p);
    if (packed)
        return packed->is_swapped;
    return tg_is_by_columns(&p->c, p->n);
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
    tg_round_scalars(p->a.type, &p->alpha, &p->beta);
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

tg_status tg_problem_prepare_to_run(tg_context *ctx, tg_problem *p, int with_data, int *swapped)
{
    if (tg_problem_prepare(ctx, p, with_data, swapped))
        return ctx->status;
    if (tg_is_best_swapped(p, &ctx->limits, tg_units(ctx))) {
        tg_problem_swap(p);
        *swapped ^= 1;
    }
    return TG_OK;
}
