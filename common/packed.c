/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed operands: what they say of themselves, and whether that is what a problem needs. */
#include <inttypes.h>
#include <string.h>

#include "reads.h"

_Static_assert(sizeof(tg_packed) % 64 == 0, "panels are aligned like the head");

static const char magic[8] = "tgpacked";

/* As many lines of the other operand are taken for the choice of the tiling. */
enum { OTHER_LINES = 8 };

const tg_packed *tg_packed_of(const tg_problem *p)
{
    return p->flags & TG_A_PACKED ? p->a.data : p->flags & TG_B_PACKED ? p->b.data : NULL;
}

/* Is it the B that kernels see? */
static int is_of_columns(const tg_packed *packed)
{
    return (packed->which == TG_B_PACKED) != packed->is_swapped;
}

static int line_of(const tg_packed *packed, const tg_plan *plan)
{
    return is_of_columns(packed) ? plan->tile.thread.n : plan->tile.thread.m;
}

/* -1: they are more than there can be. Of no lines, k may be anything. */
int64_t tg_packed_bytes(const tg_packed *packed)
{
    const int64_t lines = packed->lines, elem_bytes = (int64_t)tg_type_size(packed->type);
    const int64_t k = lines > 0 ? tg_round_up(packed->k, packed->tile.inst.k) : 0;
    int64_t bytes;
    if (lines > INT64_MAX - packed->line ||
        __builtin_mul_overflow(tg_round_up(lines, packed->line), k, &bytes) ||
        __builtin_mul_overflow(bytes, elem_bytes, &bytes) ||
        __builtin_add_overflow(bytes, (int64_t)sizeof(tg_packed), &bytes))
        return -1;
    return bytes;
}

/* -------------------------------------------------------------------------------------- packing */

static tg_status need_packing(tg_context *ctx)
{
    if (ctx->backend->pack)
        return TG_OK;
    return tg_fail(ctx, TG_NOT_SUPPORTED, "the %s backend reads A and B where they are, not packed",
                   ctx->backend->name);
}

/* The problem as it will often come: with rows of A that lie along k, or columns of B. */
static void set_the_rest(tg_problem *p, int is_b)
{
    const int is_by_columns = p->c.row_stride == 1 && p->c.col_stride != 1;
    p->batch = 1, p->alpha = 1, p->beta = 0;
    if (is_b)
        p->m = OTHER_LINES, p->a.row_stride = p->k, p->a.col_stride = 1;
    else
        p->n = OTHER_LINES, p->b.row_stride = 1, p->b.col_stride = p->k;
    p->c.row_stride = is_by_columns ? 1 : tg_max(p->n, 2);
    p->c.col_stride = is_by_columns ? tg_max(p->m, 2) : 1;
}

/* *p := the given problem, prepared; ctx->plan and *head := how it is to be packed. */
static tg_status plan_packing(tg_context *ctx, const tg_problem *given, tg_flag which,
                              tg_problem *p, tg_packed *head)
{
    tg_status status = tg_need_open(ctx);
    if (status || (status = tg_problem_check(ctx, given)) || (status = need_packing(ctx)))
        return status;
    *p = *given;
    if (which != TG_A_PACKED && which != TG_B_PACKED)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "which = %d is neither TG_A_PACKED nor TG_B_PACKED",
                       (int)which);
    if (p->flags & TG_PACKED)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "flags = 0x%" PRIx32 ", and nothing is packed yet",
                       p->flags);
    const int is_b = which == TG_B_PACKED;
    set_the_rest(p, is_b);
    *head = (tg_packed){.which = which,
                        .is_swapped = p->c.row_stride == 1,
                        .type = is_b ? p->b.type : p->a.type,
                        .other = is_b ? p->a.type : p->b.type,
                        .registers = ctx->limits.registers,
                        .vec_bytes = ctx->limits.vec_bytes,
                        .lines = is_b ? p->n : p->m,
                        .k = p->k};
    memcpy(head->magic, magic, sizeof magic);
    strncpy(head->version, tg_version(), sizeof head->version - 1);
    int swapped;
    if (tg_problem_prepare(ctx, p, 0, &swapped))
        return ctx->status;
    tg_problem q = *p; /* whose operand cannot be read in place */
    tg_input *operand = is_of_columns(head) ? &q.b : &q.a;
    operand->row_stride = operand->col_stride = 2;
    if (tg_problem_choose(ctx, &q))
        return ctx->status;
    head->tile = ctx->is_forced ? ctx->forced : tg_tile_at(ctx->plan.row);
    tg_limits limits = ctx->limits;
    limits.units = tg_units(ctx);
    tg_choose(&q, &limits, &head->tile, &ctx->plan);
    head->line = line_of(head, &ctx->plan);
    head->block_k = ctx->plan.tile.block.k;
    if (tg_packed_bytes(head) < 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT,
                       "%c has %" PRId64 " lines of %" PRId64 ", more than the address space",
                       is_b ? 'B' : 'A', head->lines, head->k);
    return TG_OK;
}

tg_status tg_pack_size(tg_context *ctx, const tg_problem *problem, tg_flag which, size_t *bytes)
{
    tg_problem p;
    tg_packed head;
    const tg_status status = plan_packing(ctx, problem, which, &p, &head);
    if (status)
        return status;
    if (!bytes)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "bytes is NULL");
    *bytes = (size_t)tg_packed_bytes(&head);
    return tg_succeed(ctx);
}

tg_status tg_pack(tg_context *ctx, const tg_problem *problem, tg_flag which, void *packed,
                  size_t bytes)
{
    tg_problem p;
    tg_packed head;
    const tg_status status = plan_packing(ctx, problem, which, &p, &head);
    if (status)
        return status;
    const int64_t needed = tg_packed_bytes(&head);
    const int is_empty = head.lines == 0 || head.k == 0;
    const tg_input *operand = is_of_columns(&head) ? &p.b : &p.a;
    if (!packed || (uintptr_t)packed % 64)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "packed = %p is %s", packed,
                       packed ? "not aligned to 64 bytes" : "NULL");
    if (bytes < (size_t)needed)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "bytes = %zu, and the packed %c takes %" PRId64, bytes,
                       which == TG_B_PACKED ? 'B' : 'A', needed);
    if (!is_empty && !operand->data)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%c is NULL and is to be packed",
                       which == TG_B_PACKED ? 'b' : 'a');
    if (!is_empty && tg_check_apart(ctx, &p, is_of_columns(&head), packed, needed))
        return ctx->status;
    p.flags |= is_of_columns(&head) ? TG_B_PACKED : TG_A_PACKED;
    if (!is_empty && ctx->backend->pack(ctx, &p, &ctx->plan, (char *)packed + sizeof head))
        return ctx->status;
    memcpy(packed, &head, sizeof head);
    return tg_succeed(ctx);
}

/* ------------------------------------------------------------------------------------- using */

tg_status tg_packed_gemm(tg_context *ctx, const tg_problem *problem, tg_flag which,
                         const void *packed)
{
    tg_status status = tg_need_open(ctx);
    if (status || (status = tg_problem_check(ctx, problem)))
        return status;
    tg_problem p = *problem;
    if (which != TG_A_PACKED && which != TG_B_PACKED)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "which = %d is neither TG_A_PACKED nor TG_B_PACKED",
                       (int)which);
    p.flags |= which;
    (which == TG_B_PACKED ? &p.b : &p.a)->data = packed;
    return tg_gemm(ctx, &p);
}

static tg_status refuse_tile(tg_context *ctx, char letter, const tg_packed *packed)
{
    char own[96], forced[96];
    tg_tile_print(&packed->tile, own, sizeof own);
    tg_tile_print(&ctx->forced, forced, sizeof forced);
    return tg_fail(ctx, TG_BAD_TILE, "%c was packed for the tiling %s, and %s is forced", letter,
                   own, forced);
}

tg_status tg_packed_check(tg_context *ctx, const tg_problem *p)
{
    const tg_packed *packed = tg_packed_of(p);
    const int is_b = (p->flags & TG_B_PACKED) != 0;
    const char letter = is_b ? 'b' : 'a';
    const int64_t lines = is_b ? p->n : p->m;
    const tg_type type = is_b ? p->b.type : p->a.type, other = is_b ? p->a.type : p->b.type;
    const tg_limits *l = &ctx->limits;
    if (need_packing(ctx))
        return ctx->status;
    if (!packed || (uintptr_t)packed % 64 || memcmp(packed->magic, magic, sizeof magic) != 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%c = %p is no packed operand", letter,
                       (const void *)packed);
    if (strncmp(packed->version, tg_version(), sizeof packed->version) != 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%c was packed by version %.15s, and this is %s",
                       letter, packed->version, tg_version());
    if (packed->which != (p->flags & TG_PACKED))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%c is a packed %c", letter, is_b ? 'A' : 'B');
    if (packed->type != type)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%c was packed as %s, and %c.type = %s", letter,
                       tg_type_name(packed->type), letter, tg_type_name(type));
    if (packed->tile.inst.k > 1 && !is_of_columns(packed) && packed->other != other)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%c was packed for %c.type = %s, and here it is %s",
                       letter, is_b ? 'a' : 'b', tg_type_name(packed->other), tg_type_name(other));
    if (packed->k != p->k || packed->lines != lines)
        return tg_fail(ctx, TG_BAD_ARGUMENT,
                       "%c was packed for k = %" PRId64 " and %c = %" PRId64
                       ", and here k = %" PRId64 " and %c = %" PRId64,
                       letter, packed->k, is_b ? 'n' : 'm', packed->lines, p->k, is_b ? 'n' : 'm',
                       lines);
    if (packed->registers != l->registers || packed->vec_bytes != l->vec_bytes)
        return tg_fail(ctx, TG_BAD_ARGUMENT,
                       "%c was packed for %d registers of %d bytes, and here are %d of %d", letter,
                       packed->registers, packed->vec_bytes, l->registers, l->vec_bytes);
    if (ctx->is_forced && !tg_tile_same(ctx->forced, packed->tile))
        return refuse_tile(ctx, letter, packed);
    if (!ctx->is_forced && !tg_tile_keeps_order(packed->tile, *l, type))
        return tg_fail(ctx, TG_BAD_ARGUMENT,
                       "%c was packed for other instructions, which sum %s in another order",
                       letter, tg_type_name(type));
    return TG_OK;
}

/* A is best read where it is, if it can be. */
tg_status tg_packed_fit(tg_context *ctx, const tg_problem *p)
{
    const tg_packed *packed = tg_packed_of(p);
    tg_plan *plan = &ctx->plan;
    const int bytes = tg_kernel_bytes(p->a.type, ctx->limits, plan->tile);
    if (is_of_columns(packed))
        plan->a_in_place = (plan->tile.form == TG_OUTER && plan->tile.inst.k == 1 &&
                            p->a.col_stride == 1 && tg_type_size(p->a.type) == (size_t)bytes) ||
                           tg_reads_lines(p, plan);
    if (line_of(packed, plan) == packed->line && plan->tile.block.k == packed->block_k)
        return TG_OK;
    return tg_fail(ctx, TG_BAD_TILE,
                   "%c was packed in panels of %d x %d, and the caches here make them %d x %d",
                   packed->which == TG_B_PACKED ? 'b' : 'a', packed->line, packed->block_k,
                   line_of(packed, plan), plan->tile.block.k);
}
