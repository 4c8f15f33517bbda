/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser's model of a CPU core, in cycles, for a thread tile of mr x nr (nv = nr / vec
 * vectors):
 *   a step of k     (mr * nv + 1.5) / 2 for the multiply-adds, or the latency of one, and a fifth
 *                   of the mr + nv loads that go on beside them
 *   a tile of C     read and written once for each block of k
 *   narrow columns  that vectors leave over: a third of a cycle for a row and a step of k, as
 *                   100 cubed of f32 less 100 x 96 x 100 takes on a Zen 5
 *   words           of bytes, whose sums are as exact in f32: some cycles to begin, AMX's tiles
 *                   more, and some for each tile, so that products of up to 100 cubed take the
 *                   quicker way on a Zen 5 and a Xeon (docs/results/2026-12-01-cpu-bytes.txt)
 *   packing         an element of A once for each block of n, of B once, or not at all where the
 *                   kernel packs a far B behind its multiply-adds;
 *                   an operand that is read in place instead costs more in every step
 *   threads         each has a strip of C for itself: the largest counts, each packs what it needs,
 *                   and lines of C that two of them write go to and fro; or they share panels,
 *                   which then come from the caches of others, and meet for each block
 * A row whose instruction takes several of k makes one step for each word of them.
 * What a ragged edge wastes is in the counts of tiles. The constants are those of the cores with
 * two FMA units of today; only their ratios matter. */
#ifndef TG_PICK_CYCLES_H
#define TG_PICK_CYCLES_H

#include <math.h>

#include "reads.h"

static const double fmas_per_cycle = 2, fmas_not_overlapped = 1.5, fma_latency = 4;
static const double cycles_per_load = 0.2;
static const double cycles_per_vector_of_c = 2, cycles_per_tile = 30;
static const double share_of_flat_tile = 0.25; /* of both, where rows of C are written in one go */
static const double cycles_of_far_vector = 45; /* of C from beyond L2, if k is too short */
static const double cycles_to_begin[] = {330, 1300};        /* words of bytes, and tiles of them; */
static const double cycles_per_tile_of_words[] = {50, 300}; /* more than of f32, in each of C */
static const double cycles_to_transpose = 1, cycles_to_copy = 0.5;  /* one element, packing it */
static const double cycles_to_weave = 0.9, cycles_to_stream = 0.15; /* one element, to words */
static const double cycles_to_turn = 2.7;                           /* a vector, in registers */
static const double cycles_of_narrow = 0.3;     /* the columns that vectors leave over, for a row */
static const double cycles_of_split_load = 0.2; /* a vector of B across two lines of L1, */
static const double cycles_of_far_split = 0.8;  /* or beyond L1 */
static const double cycles_of_crowding = 2; /* rows half a page apart, or more, share cache sets */
static const double cycles_of_crowded_rows = 0.5;  /* of A that share sets of L1, with 32 bytes */
static const double cycles_of_cold_row = 3;        /* of a panel of B that is used once, from L2, */
static const double cycles_of_far_row = 16;        /* or beyond */
static const double cycles_of_streamed_sum = 0.06; /* a vector of them, in each step */
static const double bytes_per_cycle = 8;           /* that a core has from the caches of others */
static const double cycles_to_meet = 2000;       /* a barrier or two, for each thread that comes */
static const double cycles_of_shared_line = 100; /* of C, whose columns two threads write */
static const double threads_to_pack = 5;         /* at once, and packing takes twice as long */
static const double little_flops = 3.4e7;        /* for a thread, */
static const double little_words = 1.7e8;        /* that multiplies words */
static const double share_uneven = 1.1;          /* who has most of what threads share has more */

/* That use an element of B: the core is then at work for longer than the element is on its way. */
enum { ENOUGH_ROWS = 32 };

/* Elements are packed one by one if neither stride is 1, in runs or squares if one is. */
static double packing_cycles(tg_tile t, int64_t lines, int64_t k, int64_t to_run, int64_t across)
{
    const double copied = t.inst.k > 1 ? cycles_to_weave : cycles_to_copy;
    const double one = to_run == 1 ? copied : across == 1 ? cycles_to_transpose : 3;
    return one * (double)lines * (double)k;
}

/* Is there so little for each thread that how they share it decides? */
static int is_little(const tg_problem *p, const tg_plan *plan)
{
    const double little = plan->tile.inst.k > 1 ? little_words : little_flops;
    return plan->threads > 1 && p->batch == 1 && tg_min(p->m, p->n) > TG_TURNED_ROWS &&
           2.0 * (double)p->m * (double)p->n * (double)p->k <= little * plan->threads;
}

/* Is C written row by row? */
static int is_flat(const tg_problem *p, const tg_limits *l, const tg_plan *plan)
{
    return p->k <= TG_FLAT_K && tg_packs_nothing(p, plan, l);
}

/* Has each thread a strip or an item for itself? */
static int is_alone(const tg_problem *p, const tg_plan *plan)
{
    return plan->threads == 1 || tg_is_cut(plan) || p->batch >= plan->threads;
}

/* Does each thread pack B late, as it needs it? */
static int is_late(const tg_problem *p, const tg_limits *l, const tg_plan *plan)
{
    return is_alone(p, plan) && p->m <= plan->tile.block.m && tg_packs_late(p, plan, l);
}

/* And is B far, with enough multiply-adds in tiles that are wide to hide its way and C's? */
static int hides_packing(const tg_problem *p, const tg_limits *l, const tg_plan *plan, int bytes)
{
    enum { ENOUGH_K = 64 };
    return p->k >= ENOUGH_K && p->m > ENOUGH_ROWS * plan->strips.m &&
           plan->tile.thread.n >= 3 * plan->tile.vec && tg_exceeds(l->l2 / 2, p->n, p->k, bytes) &&
           is_late(p, l, plan);
}

static double tiles_of_largest_strip(int64_t all, int strips, int tile, int fine)
{
    const int grain = tg_strip_grain(all, strips, tile, fine);
    const int64_t largest = tg_largest_strip(all, strips, grain);
    return grain == tile ? (double)tg_ceil_div(largest, tile) : (double)largest / tile + 0.25;
}

/* What the thread with the largest strip does, beside what it would if all were equal. */
static double uneven(const tg_problem *p, const tg_plan *plan)
{
    const tg_tile t = plan->tile;
    const double tiles =
        (double)tg_ceil_div(p->m, t.thread.m) * (double)tg_ceil_div(p->n, t.thread.n);
    return tiles_of_largest_strip(p->m, plan->strips.m, t.thread.m, 1) *
           tiles_of_largest_strip(p->n, plan->strips.n, t.thread.n, t.vec) * plan->threads / tiles;
}

/* A few lines, times many that are turned on their way. */
static double cycles_of_turned(const tg_problem *p, tg_turned turned, int64_t vector)
{
    const int64_t few = turned == TG_TURNED_B ? p->m : p->n;
    const int64_t many = turned == TG_TURNED_B ? p->n : p->m;
    return (cycles_to_turn + (double)few / fmas_per_cycle) * (double)p->k *
           (double)tg_ceil_div(many, vector);
}

/* Are rows of A, as they lie, a page apart, so that panels of B push them out of L1? */
static int is_crowded_in_rows(const tg_problem *p, const tg_limits *l, const tg_plan *plan,
                              int bytes)
{
    enum { PAGE = 4096 };
    return l->vec_bytes == 32 && plan->tile.form == TG_OUTER && plan->a_in_place &&
           !plan->b_in_place && tg_even_part(p->a.row_stride) * bytes >= PAGE;
}

/* What words of bytes take more than f32, if that could have all of them at once. */
static double cycles_of_words(const tg_problem *p, const tg_limits *l, tg_tile t, double tiles)
{
    const int is_amx = t.inst.m > 1;
    if (p->c.type != TG_I32 || t.inst.k == 1 || !tg_widens(p, l))
        return 0;
    return cycles_to_begin[is_amx] + cycles_per_tile_of_words[is_amx] * tiles;
}

/* What a step of k costs beside multiply-adds and loads, as its operands lie far or badly. */
static double cycles_of_reading(const tg_problem *p, const tg_limits *l, const tg_plan *plan,
                                int bytes)
{
    const tg_tile t = plan->tile;
    const double vectors = t.thread.n / t.vec;
    /* A stream's operands are fetched, and its sums are near. */
    const int is_far_b = tg_exceeds(l->l2, p->n, p->k, bytes);
    const int is_stream = plan->b_in_place && p->m <= tg_stream_rows(p, plan, l) && is_far_b;
    /* If nothing is packed, a kernel goes down all rows before it takes the next columns. */
    const int64_t columns = tg_packs_nothing(p, plan, l) ? t.thread.n : p->n;
    const int is_split = plan->b_in_place && p->b.row_stride % t.vec;
    const int is_a_across = plan->a_in_place && t.form != TG_OUTER; /* rows of k, like B's */
    const int64_t half_page = 2048 / bytes;
    const int is_crowded = (is_a_across && p->a.col_stride % half_page == 0) ||
                           (plan->b_in_place && p->b.row_stride % half_page == 0);
    double step = is_crowded_in_rows(p, l, plan, bytes) ? cycles_of_crowded_rows : 0;
    if (is_stream && p->m > ENOUGH_ROWS)
        step += cycles_of_streamed_sum * t.thread.m * vectors;
    if (is_flat(p, l, plan))
        return step;
    if (is_split)
        step += vectors * (tg_is_near(p, t.thread.m + columns, bytes, l) ? cycles_of_split_load
                                                                         : cycles_of_far_split);
    if (plan->b_in_place && !is_stream && !tg_is_near(p, p->n, bytes, l))
        step += (is_far_b ? cycles_of_far_row : cycles_of_cold_row) /
                (double)tg_ceil_div(p->m, t.thread.m);
    if (is_crowded && !is_stream && !hides_packing(p, l, plan, bytes))
        step += cycles_of_crowding;
    return step;
}

/* All steps of all tiles, and what C takes. */
static double cycles_to_multiply(const tg_problem *p, const tg_limits *l, const tg_plan *plan,
                                 int bytes)
{
    const tg_tile t = plan->tile;
    const double vectors = t.thread.n / t.vec, accumulators = t.thread.m * vectors;
    const double fmas = (accumulators / t.inst.m + fmas_not_overlapped) / fmas_per_cycle;
    const double step = (fmas > fma_latency ? fmas : fma_latency) +
                        cycles_per_load * (t.thread.m + vectors) +
                        cycles_of_reading(p, l, plan, bytes);
    const int64_t narrow = plan->a_in_place && is_alone(p, plan) ? tg_narrow(p, t, l) : 0;
    const double tiles =
        (double)tg_ceil_div(p->m, t.thread.m) * (double)tg_ceil_div(p->n - narrow, t.thread.n);
    const double steps = (double)tg_ceil_div(p->k, tg_tile_word(t, bytes));
    const double k_blocks = (double)tg_ceil_div(p->k, t.block.k);
    const int64_t m = tg_ceil_div(p->m, plan->strips.m), n = tg_ceil_div(p->n, plan->strips.n);
    /* Else a far C is fetched while tiles are multiplied. */
    const int is_waited_for = t.form == TG_OUTER_T && p->k < 8 && !is_flat(p, l, plan) &&
                              tg_exceeds(l->l2 / 2, m, n, bytes);
    const double vector_of_c = cycles_per_vector_of_c + (is_waited_for ? cycles_of_far_vector : 0);
    const double tile_of_c = (cycles_per_tile + accumulators * vector_of_c) *
                             (is_flat(p, l, plan) ? share_of_flat_tile : 1);
    const double by_lanes = narrow > 0 ? cycles_of_narrow * (double)p->m * (double)p->k : 0;
    return tiles * (steps * step + k_blocks * tile_of_c) + by_lanes +
           cycles_of_words(p, l, t, tiles);
}

static double cycles_to_pack_a(const tg_problem *p, const tg_plan *plan)
{
    const tg_tile t = plan->tile;
    const int is_in_rows = t.form == TG_OUTER;
    const int64_t to_run = is_in_rows ? p->a.col_stride : p->a.row_stride;
    const int64_t across = is_in_rows ? p->a.row_stride : p->a.col_stride;
    return plan->a_in_place ? 0
                            : packing_cycles(t, p->m, p->k, to_run, across) *
                                  (double)tg_ceil_div(p->n, t.block.n);
}

static double cycles_to_pack_b(const tg_problem *p, const tg_limits *l, const tg_plan *plan,
                               int bytes)
{
    const tg_tile t = plan->tile;
    const int64_t n = hides_packing(p, l, plan, bytes) ? p->n % t.thread.n : p->n;
    if (tg_streams_words(p, t, l) || tg_turns_words(p, t))
        return cycles_to_stream * (double)p->n * (double)p->k;
    return plan->b_in_place ? 0 : packing_cycles(t, n, p->k, p->b.col_stride, p->b.row_stride);
}

/* The same work, and packing of A and of B, as threads share it. */
static double cycles_of_threads(const tg_problem *p, const tg_plan *plan, int bytes, double work,
                                double a, double b)
{
    const tg_tile t = plan->tile;
    const tg_mn strips = plan->strips;
    const double threads = plan->threads;
    const int is_own = t.inst.k > 1 && tg_is_cut(plan); /* what it packs: measured of words alone */
    const double packing = is_own ? 1 : 1 + threads / threads_to_pack;
    const double moved = threads * (double)p->k * bytes / bytes_per_cycle;
    const double meetings =
        (double)tg_ceil_div(p->k, t.block.k) * (double)tg_ceil_div(p->n, t.block.n);
    const int is_shared = strips.n > 1 && p->c.row_stride * bytes % 64 != 0;
    const double shared = is_shared ? cycles_of_shared_line * (double)p->m / strips.m : 0;
    if (tg_is_cut(plan))
        return work * uneven(p, plan) + packing * (a * strips.n + b * strips.m) +
               moved * ((double)p->m / strips.m + (double)p->n / strips.n) + threads * shared;
    return share_uneven * work + packing * (a + b) + moved * (double)(p->m + p->n) / sqrt(threads) +
           (a + b > 0 ? threads * threads * cycles_to_meet * meetings : 0);
}

static double cycles(const tg_problem *p, const tg_limits *l, const tg_plan *plan, int bytes)
{
    const tg_tile t = plan->tile;
    const tg_turned turned = tg_turned_of(p, l->vec_bytes / bytes, t.block.k);
    const int is_of_words = p->c.type == TG_I32 && (l->matrix & (TG_CPU_VNNI | TG_CPU_AMX));
    if (turned && t.form == TG_OUTER && !is_of_words)
        return cycles_of_turned(p, turned, l->vec_bytes / bytes);
    const double work = cycles_to_multiply(p, l, plan, bytes);
    const double a = cycles_to_pack_a(p, plan), b = cycles_to_pack_b(p, l, plan, bytes);
    return is_little(p, plan) ? cycles_of_threads(p, plan, bytes, work, a, b) : work + a + b;
}

#endif
