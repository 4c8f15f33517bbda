/* SPDX-License-Identifier: Apache-2.0
 *
 * Which way a problem takes: whether A and B change places first; and on a CPU, once there is a
 * plan, whether it needs the loop nest. Common and the backend go by these rules, and `tilegemm
 * explain` tells of them. */
#ifndef TG_WAY_H
#define TG_WAY_H

#include "reads.h"

/* ------------------------------------------------------------------- do A and B change places? */

/* Is C stored by columns, or is it one? Its transpose then lies in rows. */
static inline int tg_is_by_columns(const tg_output *c, int64_t n)
{
    return c->row_stride == 1 && (c->col_stride != 1 || n == 1);
}

/* Do few columns of C make better rows? The many rows of A then lie side by side: those a CPU reads
 * as vectors, in long streams, which are to be long for each thread. */
static inline int tg_has_few_columns(const tg_problem *p, const tg_limits *l, int threads)
{
    const int rows = l->registers >= 32 ? 8 : 6; /* of a tile */
    const int most = rows * tg_stream_tiles(l, (int64_t)tg_type_size(p->a.type), 1);
    return p->k >= 16 && p->k >= 4 * p->n && p->n > 1 && p->n <= most &&
           p->m >= (threads > 1 ? 256 * threads : 4 * p->n) && p->a.row_stride == 1;
}

/* Do few rows of C make better columns? The columns of B then lie along k, too many for caches:
 * kernels with vectors of 64 bytes read them where they are, as rows, and fetch those to come
 * (tg_fetches_rows). Two panels of columns are worth reading them twice, from L2. */
static inline int tg_has_few_rows(const tg_problem *p, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return l->vec_bytes >= 64 && p->m > TG_TURNED_ROWS && p->m <= 6 * l->vec_bytes / bytes &&
           p->b.row_stride == 1 && p->b.col_stride != 1 && tg_exceeds(l->l2, p->n, p->k, bytes);
}

/* Is it best read as its transpose? */
static inline int tg_is_best_swapped(const tg_problem *p, const tg_limits *l, int threads)
{
    const int is_known = p->a.type == p->c.type && (p->a.type == TG_F32 || p->a.type == TG_F64);
    return l->l1 > 0 && is_known && !(p->flags & TG_PACKED) &&
           (tg_has_few_columns(p, l, threads) || tg_has_few_rows(p, l));
}

/* ----------------------------------------------------------------------- which way takes a plan?
 */

/* What the kernels of a plan can do. */
typedef struct tg_able {
    int grain;       /* ragged tiles: of so many columns, or a multiple; 0: whole ones alone */
    int reads_short; /* convert a B of a short type as they read it */
    int turns_words; /* turn lines of words */
    int64_t vector;  /* turn so many lines at a time */
    int64_t slice;   /* of k, in one pass over C */
} tg_able;

/* The loop nest takes what none of these does. */
typedef struct tg_way {
    tg_turned turned; /* a few lines of one operand, and many of the other */
    int is_direct;    /* all columns are gone through once, with nothing staged, */
    int is_flat;      /* and C row by row; */
    int copies_b;     /* but a small B is copied to rows, */
    int widens;       /* or all operands are converted */
    int is_streamed;  /* few rows, and B is read once, along its rows */
} tg_way;

/* Does the nest read it where it is, as the plan wants? Kernels of words read A alone so. */
static inline int tg_is_read_there(const tg_problem *p, const tg_plan *plan, int is_b)
{
    const tg_tile t = plan->tile;
    if (is_b)
        return plan->b_in_place && t.inst.k == 1 && (p->b.col_stride == 1 || t.thread.n == 1);
    const int can = t.form == TG_OUTER_T ? p->a.row_stride == 1 || t.thread.m == 1
                                         : t.form == TG_DOT || p->a.col_stride == 1;
    return plan->a_in_place && (t.inst.k > 1 || can);
}

/* Can the kernel read and write all of it where it is, columns as ragged as they are, or B copied?
 */
static inline int tg_is_whole_there(const tg_problem *p, const tg_plan *plan, int copies_b)
{
    return plan->a_in_place && (plan->b_in_place || copies_b) && p->c.type == p->a.type &&
           (plan->tile.form == TG_OUTER ? p->a.col_stride == 1 : p->a.row_stride == 1);
}

/* Do few rows read a B panel by panel that is not near? Kernels fetch it then, and C. */
static inline int tg_is_b_for_few(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const int64_t bytes = tg_kernel_bytes(p->a.type, *l, plan->tile);
    return p->m <= tg_stream_rows(p, plan, l) && tg_reads_panels(p, plan, l) &&
           tg_exceeds(l->l2 / 4, p->n, p->k, bytes);
}

/* Is it so small, or flat, that all columns are gone through once, and all rows with each panel of
 * them? */
static inline int tg_is_direct(const tg_problem *p, const tg_plan *plan, const tg_limits *l,
                               const tg_way *way)
{
    const tg_tile t = plan->tile;
    const int64_t quarter = l->l2 / 4 / tg_kernel_bytes(p->a.type, *l, t);
    const int is_a_near = p->m <= t.block.m || p->n <= t.thread.n || p->k <= quarter / p->m;
    const int is_b_near = p->n <= t.warp.n || p->k <= quarter / p->n || tg_is_b_for_few(p, plan, l);
    return (p->b.col_stride == 1 || way->copies_b) && p->c.col_stride == 1 &&
           way->turned != TG_TURNED_A && tg_is_whole_there(p, plan, way->copies_b) &&
           (way->is_flat || (is_a_near && is_b_near));
}

/* Are there few rows, and columns that are read in streams, where they are or converted? Of A there
 * is room for what is copied. */
static inline int tg_goes_in_streams(const tg_problem *p, const tg_plan *plan, const tg_limits *l,
                                     const tg_way *way)
{
    const tg_tile t = plan->tile;
    if (way->is_direct || (p->flags & TG_PACKED) || p->b.col_stride != 1 ||
        way->turned == TG_TURNED_A)
        return 0;
    if (t.inst.k > 1)
        return tg_streams_words(p, t, l);
    const int converts = tg_type_size(p->a.type) != (size_t)tg_kernel_bytes(p->a.type, *l, t);
    const int is_read = !converts && plan->b_in_place && p->c.type == p->a.type;
    return t.form == TG_OUTER && p->m <= tg_stream_rows(p, plan, l) && p->m <= t.block.m &&
           (t.stages == 1 ? converts || is_read : tg_is_whole_there(p, plan, way->copies_b));
}

/* Are there a few lines, and can they be multiplied so? */
static inline tg_turned tg_turns(const tg_problem *p, const tg_plan *plan, const tg_limits *l,
                                 const tg_able *able)
{
    const tg_tile t = plan->tile;
    if (t.inst.k > 1)
        return able->turns_words && tg_turns_words(p, t) ? TG_TURNED_B : TG_NOT_TURNED;
    const int bytes = (int)tg_type_size(p->b.type);
    const int reads_short = able->reads_short && bytes <= 2;
    const int is_read = reads_short || bytes == tg_kernel_bytes(p->a.type, *l, t);
    const int in_word = reads_short ? 4 / bytes : 1;
    const int parts_words = able->slice % in_word && p->k > able->slice;
    const int takes = is_read && !parts_words && t.form == TG_OUTER && t.stages == 1 &&
                      t.slices == 1 && able->grain;
    return takes ? tg_turned_of(p, able->vector, able->slice) : TG_NOT_TURNED;
}

static inline tg_way tg_way_of(const tg_problem *p, const tg_plan *plan, const tg_limits *l,
                               const tg_able *able)
{
    const tg_tile t = plan->tile;
    const int is_one_pass = t.stages == 1 && t.slices == 1;
    const int takes_all = able->grain && p->n % able->grain == 0;
    const int is_ragged = takes_all && !(p->flags & TG_PACKED);
    tg_way way = {.is_flat = p->k <= TG_FLAT_K && p->n > t.thread.n};
    way.turned = tg_turns(p, plan, l, able);
    way.copies_b = is_one_pass && !way.turned && tg_copies_b(p, plan, l);
    way.widens = is_ragged && is_one_pass && tg_widens(p, l) && t.inst.k == 1 && !way.turned &&
                 t.form == TG_OUTER;
    way.is_direct = way.widens || (is_ragged && tg_is_direct(p, plan, l, &way));
    way.copies_b = way.copies_b && way.is_direct;
    way.is_streamed = takes_all && tg_goes_in_streams(p, plan, l, &way);
    return way;
}

/* Of a block of less than this for each thread, each takes a strip of C for itself. */
static inline int tg_is_too_little_to_share(tg_tile t, int threads)
{
    const double shared_flops = 2e6;
    return 2.0 * t.block.m * t.block.n * t.block.k < shared_flops * threads;
}

/* A stream with a large L2 can go panel by panel: its sums stay in L1, and A is copied. */
static inline int tg_may_go_down(const tg_problem *p, tg_tile t, const tg_limits *l)
{
    return t.inst.k == 1 && !(p->flags & TG_PACKED) && tg_has_large_l2(l) && l->vec_bytes >= 64 &&
           p->m > t.thread.m;
}

#endif
