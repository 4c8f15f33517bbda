/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser's model of a GPU: how long would a row take, in cycles of one multiprocessor?
 *
 *   units   | block | block | ...          blocks are dealt out; a unit runs `resident` at once
 *           | block | block | ...          wave after wave, and the last wave is rarely full
 *
 *   a wave      the multiply-adds of its blocks, at the rate that their warps can issue: less if a
 *               thread tile is small (it loads more for each multiply-add), or if few warps are
 * there to hide each other's latency a block     what does not overlap: its first loads and its
 * last stores k split     more blocks, and every partial sum is written and read once more a way in
 * an operand that the row cannot take as it lies is rearranged first and never less than it takes
 * to stream the matrices once. The constants are a Hopper GPU's; the choice needs only that their
 * ratios hold. */
#include "gemm.h"

static const double unit_registers = 65536, unit_threads = 2048;
static const double fmas_per_cycle_f32 = 128, fmas_per_cycle_f64 = 64, fmas_per_cycle_matrix = 128;
static const double bytes_per_cycle = 18; /* of slow memory, for each unit */
static const double cycles_of_launch = 3500, cycles_of_block = 1500;
static const double warps_to_hide = 1.2; /* latency: so many warps on a scheduler reach a half */

/* Blocks that one unit runs at once. */
static double resident_blocks(tg_tile t, const tg_limits *l, int bytes)
{
    const double threads = (double)tg_tile_threads(t, l->lanes);
    const double accumulators = (double)t.warp.m * t.warp.n / (l->lanes.m * l->lanes.n);
    const double registers = tg_min(255, (int64_t)(1.3 * accumulators * bytes / 4) + 40);
    const double fast = (double)tg_tile_fast_bytes(t, bytes) + 1024;
    const double by_registers = unit_registers / (registers * threads);
    const double by_fast = (double)(l->fast_bytes + 1024) / fast,
                 by_threads = unit_threads / threads;
    double least = by_registers < by_fast ? by_registers : by_fast;
    least = least < by_threads ? least : by_threads;
    return least < 1 ? 1 : (double)(int64_t)least;
}

/* Multiply-adds a cycle of a unit with so many blocks of the tile. */
static double rate(tg_tile t, const tg_limits *l, int bytes, double blocks)
{
    const int is_fma = tg_tile_is_fma(t);
    const double m = t.thread.m, n = t.thread.n;
    const double share = is_fma ? m * n / (m * n + (m + n) / t.vec + 0.5) : 0.94;
    const double peak = !is_fma      ? fmas_per_cycle_matrix
                        : bytes == 4 ? fmas_per_cycle_f32
                                     : fmas_per_cycle_f64;
    const double warps = blocks * (double)tg_tile_threads(t, l->lanes) /
                         (4 * l->lanes.m * l->lanes.n);     /* on each of 4 schedulers */
    const double independent = m * n < 64 ? m * n / 64 : 1; /* a large tile hides more by itself */
    return peak * share * warps / (warps + warps_to_hide * (1.5 - independent));
}

static double cycles(const tg_problem *p, const tg_plan *plan, const tg_limits *l, int bytes)
{
    const tg_tile t = plan->tile;
    const double tiles =
        (double)tg_ceil_div(p->m, t.block.m) * (double)tg_ceil_div(p->n, t.block.n);
    const double blocks = tiles * (double)p->batch * plan->splits;
    const double resident = resident_blocks(t, l, bytes), units = l->units;
    const double k = (double)tg_round_up(tg_ceil_div(p->k, plan->splits), t.block.k);
    const double work = (double)t.block.m * t.block.n * k; /* of a block */
    const double waves = (double)(int64_t)(blocks / (units * resident));
    const double left = blocks - waves * units * resident;
    const double last =
        (double)tg_ceil_div((int64_t)left, l->units); /* blocks on the fullest unit */
    double sum = waves * (resident * work / rate(t, l, bytes, resident) + cycles_of_block);
    if (last > 0)
        sum += last * work / rate(t, l, bytes, last) + cycles_of_block;
    const double a = (double)p->m * p->k, b = (double)p->k * p->n, c = (double)p->m * p->n;
    const double streamed = (a + b + c) * (double)p->batch * bytes / (bytes_per_cycle * units);
    if (sum < streamed)
        sum = streamed;
    if (plan->splits > 1)
        sum += cycles_of_launch / 2 +
               c * (double)p->batch * bytes * (plan->splits + 1) / (bytes_per_cycle * units);
    if (t.stages >= 3 && tg_tile_is_fma(t)) { /* these take k-major operands only */
        const int a_moves = p->a.row_stride != 1 || p->a.col_stride % 4;
        const int b_moves = p->b.col_stride != 1 || p->b.row_stride % 4;
        sum += (a_moves || b_moves) * cycles_of_launch / 2 +
               2 * (a_moves * a + b_moves * b) * bytes / (bytes_per_cycle * units);
    }
    return sum + cycles_of_launch;
}

void tg_choose_gpu(const tg_problem *p, const tg_limits *l, int bytes, tg_plan *best)
{
    double best_cycles = 0;
    best->row = -1;
    for (int row = 0; row < tg_tile_count(); row++) {
        tg_plan plan = *best;
        plan.row = row;
        plan.tile = tg_tile_fill(tg_tile_at(row), *l, bytes);
        if (plan.tile.form == TG_DOT || plan.tile.stages < 2 ||
            !tg_tile_fits(tg_tile_at(row), *l, bytes))
            continue;
        for (plan.splits = 1; plan.splits <= 32; plan.splits *= 2) {
            if (plan.splits > 1 && p->k < 2 * (int64_t)plan.splits * plan.tile.block.k)
                break;
            const double now = cycles(p, &plan, l, bytes);
            if (best->row < 0 || now < best_cycles) {
                *best = plan;
                best_cycles = now;
            }
        }
    }
}
