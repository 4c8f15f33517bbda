/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser's last step: the blocks and warps of the tile that it took, cut to what the threads
 * have of the problem, each alone or all together. */
#include "reads.h"

/* What the slowest thread takes, in multiplications of a tile, if warp tiles are dealt out row by
 * row: its own tiles, and the panels that others staged, which come at some bytes a cycle: moved
 * multiply-adds of a vector for each vector. */
static double slowest_share(tg_tile t, int64_t warps_m, int64_t warps_n, int threads, double moved)
{
    const int64_t warps = tg_ceil_div(warps_m * warps_n, threads);
    const int64_t rows = tg_ceil_div(warps, warps_n) + (warps < warps_n && warps_n % warps);
    const int64_t tiles_m = t.warp.m / t.thread.m, tiles_n = t.warp.n / t.thread.n;
    const double b = moved / t.thread.m * (double)(tg_min(warps, warps_n) * tiles_n);
    const double a = moved / t.thread.n * (double)(rows * tiles_m);
    return (double)(warps * tiles_m * tiles_n) + (threads > 1 ? a + b : 0);
}

/* Cuts block and warp of a tile that came from the caches, so that the threads share its warps
 * evenly: of all grids of warps no finer than needed, with so many of them along m at most, the one
 * whose slowest thread has least. */
static tg_tile cut_evenly(const tg_problem *p, tg_tile t, int threads, int64_t most_m, double moved)
{
    /* Where 1024 is one block, 1025 is not two: an eighth more is still near enough. */
    t.block.k = tg_even_piece(p->k, t.block.k + t.block.k / 8, 8 * t.inst.k);
    t.block.m = tg_even_piece(p->m, t.block.m, t.thread.m);
    t.block.n = tg_even_piece(p->n, t.block.n + t.block.n / 8, t.thread.n);
    const int64_t tiles_m = t.block.m / t.thread.m, tiles_n = t.block.n / t.thread.n;
    const int64_t least_n = tg_ceil_div(t.block.n, t.warp.n);
    const tg_tile whole = t;
    double best = 0;
    for (int64_t split_m = 1; split_m <= tg_min(most_m, tiles_m); split_m++)
        for (int64_t split_n = least_n; split_n <= tg_min(least_n + threads, tiles_n); split_n++) {
            tg_tile cut = whole;
            cut.warp.m = (int)tg_ceil_div(tiles_m, split_m) * t.thread.m;
            cut.warp.n = (int)tg_ceil_div(tiles_n, split_n) * t.thread.n;
            const double slowest = slowest_share(cut, split_m, split_n, threads, moved);
            if (best == 0 || slowest < best) {
                best = slowest;
                t = cut;
            }
        }
    t.block.m = (int)tg_round_up(t.block.m, t.warp.m);
    t.block.n = (int)tg_round_up(t.block.n, t.warp.n);
    return t;
}

/* If k comes in several blocks, a C of less than a kernel's bytes has its sums kept beside it, m x
 * block.n of them. block.n is cut until they take no more than this, or a warp is left. */
static const int64_t most_bytes_of_sums = 64 << 20;

static void cut_to_sums(const tg_problem *p, tg_tile *t, int bytes)
{
    const int64_t sum = tg_max(bytes, 4);
    const int64_t most = tg_round_down(most_bytes_of_sums / sum / tg_max(p->m, 1), t->warp.n);
    if ((int64_t)tg_type_size(p->c.type) < sum && p->k > t->block.k)
        t->block.n = (int)tg_clamp(most, t->warp.n, t->block.n);
}

/* A tiling with sizes of its own keeps them, but for what is beyond the problem. */
static tg_tile cut_to_problem(const tg_problem *p, tg_tile t)
{
    t.block.m = (int)tg_min(t.block.m, tg_round_up(tg_max(p->m, 1), t.warp.m));
    t.block.n = (int)tg_min(t.block.n, tg_round_up(tg_max(p->n, 1), t.warp.n));
    t.block.k = (int)tg_min(t.block.k, tg_round_up(tg_max(p->k, 1), t.slices * t.inst.k));
    return t;
}

void tg_cut_tile(const tg_problem *p, const tg_limits *l, tg_tile stated, int bytes,
                 double fmas_per_byte, tg_plan *plan)
{
    const int is_from_caches = stated.block.m == 0 || stated.block.n == 0 || stated.block.k == 0;
    const int sharing = p->batch >= plan->threads || tg_is_cut(plan) ? 1 : plan->threads;
    tg_problem share = *p;
    share.m = tg_ceil_div(p->m, plan->strips.m);
    share.n = tg_ceil_div(p->n, plan->strips.n);
    if (!is_from_caches) {
        plan->tile = cut_to_problem(p, plan->tile);
        return;
    }
    int rows = 1; /* of threads: each has its part of the rows of a block in L2 */
    while ((rows + 1) * (rows + 1) <= sharing)
        rows++;
    plan->tile.block.m *= rows;
    cut_to_sums(p, &plan->tile, bytes);
    const int most_m = tg_is_streamed(p, l, plan, bytes) ? 1 : sharing;
    const double moved = fmas_per_byte * plan->tile.vec * bytes;
    plan->tile = cut_evenly(&share, plan->tile, sharing, most_m, moved);
}
