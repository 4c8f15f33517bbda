/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser's model of a GPU: how long would a row take, in cycles of one multiprocessor?
 *
 *   units   | block | block | ...          blocks are dealt out; a unit runs `resident` at once
 *           | block | block | ...          wave after wave, and the last wave is rarely full,
 *           | block |                      unless its tiles are split in k (the tail)
 *
 *   a stage     its multiply-adds, what loads them to registers and what brings it to fast memory;
 *               and never less than what is waited for, whoever is there to do something else
 *   a block     its stages, and C on its way out: slower where vectors of it cannot be stored
 *   k split     more blocks, and partial sums, which a second kernel adds up, or a cluster
 *   a way in    an operand that the row cannot take as it lies is rearranged first
 *
 * and never less than it takes to stream the matrices once. The constants were fitted to what the
 * rows took on an H200, 10,000 plans for some 300 shapes of each type, most of them random; other
 * GPUs need only that the ratios hold. */
#include <string.h>

#include "gemm.h"
#include "tail.h"

static const double unit_threads = 2048;
static const double bytes_stored = 12.3; /* C, in a cycle, by a unit */
static const double times_if_torn = 1.45;
static const double of_memory = 0.9;       /* of the bytes that its clock and width allow */
static const double memory_shown = 0.12;   /* of the shorter: the stream, or all else */
static const double cycles_of_turn = 861;  /* of a unit, from a wave to the next */
static const double cycles_of_tail = 5950; /* split, of matrix rows */
static const double cycles_of_split = 128; /* one of k, in the kernel that adds them up */

/* Multiply-adds that a unit does in a cycle; cycles of a warp's load to registers; bytes that are
 * staged in a cycle; cycles that a stage takes at least; the share of what goes on at the same time
 * that still shows; cycles before the first stage, and those of the kernel that adds up splits; of
 * the time of a block that is not there, what the others take longer without it to wait for. */
typedef struct family {
    double fmas, load, bytes, latency, shown, start, splits, alone;
} family;

/* Cycles to stream so many bytes: as an H200 would, if nothing is known. */
static double memory_cycles(double bytes, const tg_limits *l)
{
    const double in_cycle = l->memory_bytes > 0 ? l->memory_bytes : 18.8;
    return bytes / (of_memory * in_cycle * l->units);
}

static int begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static int is_skinny(tg_tile t) { return t.stages == 0 && t.form == TG_OUTER; }

/* Hopper is the device with f64 instructions of 16 rows; its copy engine fills the stages of a
 * pipeline, from operands that lie k-major or are copied there. */
static int is_fed_by_engine(tg_tile t, const tg_limits *l, int bytes)
{
    return l->matrix == 16 && bytes == 4 && t.stages >= 3 && tg_tile_is_fma(t);
}

static family family_of(int row, tg_tile t, int bytes)
{
    const double fmas = bytes == 8 ? 0.5 : 1; /* of f32's */
    const family batch = {128 * fmas, 0.0332, 25.1, 1900, 0.0779, 1700, 3750, 0};
    const family plain = {128 * fmas, 0.0665, 160, 2530, 1, 2910, 6930, 0};
    const family matrix = {150, 1.71, 53.5, 425, 0.373, 2100, 8430, 0.5};
    return !tg_tile_is_fma(t) ? matrix : begins(tg_tile_name(row), "batch") ? batch : plain;
}

/* Blocks that one unit runs at once. */
static double resident_blocks(tg_tile t, const tg_limits *l, int bytes)
{
    const double threads = (double)tg_tile_threads(t, l->lanes);
    if (l->matrix == 16 && !tg_tile_is_fma(t)) /* 256 threads that multiply have all registers */
        return threads < 256 ? 256 / threads : 1;
    const double outputs = (double)t.warp.m * t.warp.n / (l->lanes.m * l->lanes.n);
    const double registers = (double)tg_min(255, (int64_t)(1.4 * outputs * bytes / 4) + 48);
    const double producer = is_fed_by_engine(t, l, bytes) ? 24 * 128 : 0;
    const int is_cdna = tg_is_amd_matrix(*l); /* more registers, no fast memory kept back */
    const double unit_registers = is_cdna ? 131072 : 65536, kept_back = is_cdna ? 0 : 1024;
    const double by_registers = unit_registers / (registers * threads + producer);
    const double by_fast =
        ((double)l->fast_bytes + kept_back) / ((double)tg_tile_fast_bytes(t, bytes) + kept_back);
    const double by_threads = unit_threads / threads;
    double least = by_registers < by_fast ? by_registers : by_fast;
    least = least < by_threads ? least : by_threads;
    return least < 1 ? 1 : (double)(int64_t)least;
}

/* Lines of f64 then begin between the 16 bytes that are copied at once. */
static int has_odd_lines(const tg_problem *p)
{
    return ((p->a.row_stride & p->a.col_stride) | (p->b.row_stride & p->b.col_stride)) & 1;
}

/* Does a row of C begin between vectors of so many elements? */
static int is_torn(const tg_problem *p, int vec)
{
    return p->c.row_stride % vec != 0 && p->c.col_stride % vec != 0;
}

/* Such rows take longer to store, unless lanes trade elements for those that lie side by side. */
static double times_stored(const tg_problem *p, int row, tg_tile t, int bytes)
{
    const int vec = (int)tg_min(t.vec, 16 / bytes);
    const int trades = !tg_tile_is_fma(t) || (begins(tg_tile_name(row), "batch") && vec == 4);
    return is_torn(p, vec) && !trades ? times_if_torn : 1;
}

/* Can the engine fetch it, along the axis of the first stride? */
static int is_fetched(int64_t stride, int64_t other) { return stride == 1 && other % 4 == 0; }

static int a_is_along_k(const tg_problem *p)
{
    return is_fetched(p->a.col_stride, p->a.row_stride);
}
static int b_is_along_k(const tg_problem *p)
{
    return is_fetched(p->b.row_stride, p->b.col_stride);
}

/* What it costs to bring an operand, x by k, to the engine's order: nothing if it is k-major, or
 * lies along k and may; else it is copied first. */
typedef struct way_in {
    double cycles;
    int is_k_major;
} way_in;

static way_in way_in_of(const tg_problem *p, int64_t x_stride, int64_t k_stride, int64_t x,
                        int may_along_k)
{
    if (is_fetched(x_stride, k_stride))
        return (way_in){0, 1};
    if (may_along_k && is_fetched(k_stride, x_stride))
        return (way_in){0, 0};
    return (way_in){0.00308 * (double)x * (double)p->k * (double)p->batch, 1};
}

/* If both lie along k, four lanes share it, if the tile has as many slices. */
static int takes_both_along_k(const tg_problem *p, tg_tile t)
{
    return t.slices % 4 == 0 && a_is_along_k(p) && b_is_along_k(p);
}

/* Rows take an A along k as it lies, so A and B change places if that helps, and with them the
 * sides of a thin tile. */
static tg_problem oriented(const tg_problem *p, tg_tile *t, const tg_limits *l)
{
    const int writes_columns = tg_tile_threads(*t, l->lanes) % t->block.m == 0;
    tg_problem q = *p;
    if (!writes_columns || is_fetched(p->b.col_stride, p->b.row_stride) || !b_is_along_k(p) ||
        takes_both_along_k(p, *t) || (a_is_along_k(p) && p->m >= p->n))
        return q;
    q.m = p->n;
    q.n = p->m;
    q.a.row_stride = p->b.col_stride;
    q.a.col_stride = p->b.row_stride;
    q.b.row_stride = p->a.col_stride;
    q.b.col_stride = p->a.row_stride;
    if (tg_is_thin(t->block))
        *t = tg_tile_turned(*t);
    return q;
}

/* A stream's tile: moving its long side is what takes time, and one unit can do so much of it. What
 * is waited for besides: the first of it, the sum of slices, the sum of parts. */
static double stream_cycles(const tg_problem *p, tg_tile t, const tg_limits *l, tg_tail tail)
{
    const int is_along_k = t.block.m < t.block.n && a_is_along_k(p); /* its short side: best so */
    const double in_unit = is_along_k ? 22.1 : 19.3, first = 7970;   /* bytes a cycle, cycles */
    const int64_t steps = tg_max(1, tg_ceil_div(p->k, t.block.k)), units = l->units;
    const int64_t tiles = tg_ceil_div(p->m, t.block.m) * tg_ceil_div(p->n, t.block.n);
    const int64_t waves = tiles / units, left = tiles % units;
    const int64_t part = tail == TG_TAIL_SPLIT && left > 0 && waves < 2
                             ? tg_tail_steps(left, units, steps, t)
                             : steps;
    const int64_t parts = left > 0 ? tg_ceil_div(steps, part) : 1;
    const double of_unit = (double)(waves * steps + part * tg_ceil_div(left * parts, units));
    const double line = 4.0 * (double)tg_max(t.block.m, t.block.n) * t.block.k;
    const double all = memory_cycles(4.0 * (double)tg_max(p->m, p->n) * (double)p->k, l);
    const double sum = parts == 1  ? 0
                       : waves > 0 ? 1550
                       : parts > 6 ? 7750 /* not as clusters: few of that size run at once */
                                   : 2980;
    double moved = of_unit * line / in_unit;
    moved = moved > all ? moved : all;
    return first + sum + (moved > first * (double)waves ? moved : first * (double)waves);
}

/* A row of Hopper's pipeline. */
static double engine_cycles(const tg_problem *given, tg_tile t, const tg_limits *l, tg_tail tail)
{
    const tg_problem turned = oriented(given, &t, l), *const p = &turned;
    const double outputs = t.thread.m * t.thread.n, loads = t.thread.m + t.thread.n;
    const double thin = tg_is_thin(t.block);
    const double share =
        takes_both_along_k(p, t)
            ? 1.03 - 0.784 * loads / outputs - 0.051 * (t.slices - 4) - 0.131 * thin
            : 1.49 - 2.5 * loads / outputs - 0.0297 * (t.slices - 1) + 0.124 * thin;
    const double start = 42.9 + 13.5 * t.slices + (is_torn(p, 4) ? 28.8 : 0); /* of a block, in k */
    const int64_t resident = (int64_t)resident_blocks(t, l, 4), slots = resident * l->units;
    const int64_t steps = tg_max(1, tg_ceil_div(p->k, t.block.k));
    const double k_done = (double)(steps * t.block.k);
    const way_in a = way_in_of(p, p->a.row_stride, p->a.col_stride, p->m, 1);
    const way_in b = way_in_of(p, p->b.col_stride, p->b.row_stride, p->n, takes_both_along_k(p, t));
    const double copies = a.cycles + b.cycles, launches = copies > 0 ? 5550 : 1910;
    const int64_t copied = (a.cycles > 0 ? p->m : 0) + (b.cycles > 0 ? p->n : 0);
    if (tg_tile_streams(t))
        return launches + copies + stream_cycles(p, t, l, tail);
    const int may_split = !(p->flags & TG_BATCH_INVARIANT);
    const tg_edges core = p->batch == 1 && may_split && a.is_k_major && b.is_k_major
                              ? tg_edges_of(p->m, p->n, t.block, l->units, resident)
                              : (tg_edges){p->m, p->n, 0, 0};
    const double all = (double)tg_ceil_div(core.m, t.block.m) *
                       (double)tg_ceil_div(core.n, t.block.n) * (double)p->batch;
    const double waves = (double)(int64_t)(all / (double)slots);
    const int64_t left = (int64_t)(all - waves * (double)slots);
    const int64_t part =
        tail == TG_TAIL_SPLIT && left > 0 ? tg_tail_steps(left, slots, steps, t) : steps;
    const double parts = (double)tg_ceil_div(steps, part);
    const double alone =
        resident > 1 && waves == 0 && left <= l->units ? 0.396 + 1.2 * loads / outputs : 1;
    double k = waves * (k_done + start), split = 0;
    if (left > 0 && parts == 1)
        k += (k_done + start) * alone;
    else if (left > 0) {
        k += tg_tail_time(left, slots, steps, part, t.block);
        const double first = thin ? 949 : 14800;
        split = (waves == 0 ? first : 0) + 0.394 * t.block.m * t.block.n * parts;
    }
    const double tiles = split + k * t.block.m * t.block.n * (double)resident / (128 * share);
    const double warps = 4 + (double)tg_tile_threads(t, l->lanes) / 32;
    const double edge = core.blocks ? 2890 + 1.08 * (double)p->k * (double)core.width / warps : 0;
    const int is_hidden = copied > 0 && p->batch == 1 && (parts == 1 || waves > 0) &&
                          tg_copies_go_on(p->m, p->n, p->k, copied, t.block, l->units, resident);
    const double shown = is_hidden ? 0.634 : 1; /* of the time that copies take */
    return launches + copies * shown + (tiles > edge ? tiles : edge);
}

/* The longer of both, and what it does not hide of the shorter. */
static double overlapped(double x, double y, double shown)
{
    return x < y ? y + shown * x : x + shown * y;
}

/* One block's stage, without what is waited for. Matrix rows have warps that do nothing but bring
 * it; where lines are odd, piece by smaller piece. */
static double stage_cycles(const tg_problem *p, family f, tg_tile t, const tg_limits *l, int bytes)
{
    const double m = t.block.m, n = t.block.n, k = t.block.k;
    const double lanes = l->lanes.m * l->lanes.n;
    const double warps = (double)tg_tile_threads(t, l->lanes) / lanes;
    const double multiplied = m * n * k / f.fmas, staged = (m + n) * k * bytes / f.bytes;
    if (!tg_tile_is_fma(t)) {
        const double loaded = f.load * warps * (t.warp.m + t.warp.n) / lanes * k;
        const double slow = bytes == 8 && has_odd_lines(p) ? 1.35 : 1;
        return overlapped(multiplied > loaded ? multiplied : loaded, slow * staged, f.shown);
    }
    const double words = (double)t.warp.m / l->lanes.m + (double)t.warp.n / l->lanes.n;
    const double loads = words / (double)tg_min(t.vec, 16 / bytes) * bytes / 4;
    return multiplied + f.load * warps * loads * k + staged;
}

/* Hopper's matrix rows add a few parts where they are, if all clusters find room at once. Its
 * multiprocessors come in groups that no cluster crosses: those of three blocks find room for 117
 * of 132, those of four for 120. */
static int sums_in_clusters(const tg_plan *plan, const tg_limits *l, double blocks, double slots)
{
    const double room = blocks <= l->units ? l->units : slots;
    return l->matrix == 16 && !tg_tile_is_fma(plan->tile) && plan->splits <= 4 &&
           blocks <= (plan->splits > 2 ? 0.89 * room : room);
}

/* Of all items, or of one if they share it. */
static double input_bytes(const tg_problem *p, int bytes)
{
    const double a = (double)p->m * (double)(p->a.batch_stride ? p->batch : 1);
    const double b = (double)p->n * (double)(p->b.batch_stride ? p->batch : 1);
    return (a + b) * (double)p->k * bytes;
}

static double cycles(const tg_problem *p, const tg_plan *plan, const tg_limits *l, int bytes)
{
    const tg_tile t = plan->tile;
    const family f = family_of(plan->row, t, bytes);
    const double m = t.block.m, n = t.block.n;
    const double tiles =
        (double)tg_ceil_div(p->m, t.block.m) * (double)tg_ceil_div(p->n, t.block.n);
    const double resident = resident_blocks(t, l, bytes), slots = resident * l->units;
    const double blocks = tiles * (double)p->batch * plan->splits;
    const double steps = (double)tg_ceil_div(tg_ceil_div(p->k, t.block.k), plan->splits);
    const double waves = (double)(int64_t)(blocks / slots), left = blocks - waves * slots;
    const double stage = stage_cycles(p, f, t, l, bytes);
    const int in_clusters = sums_in_clusters(plan, l, blocks, slots);
    const double times =
        plan->splits == 1 || in_clusters ? times_stored(p, plan->row, t, bytes) : 1;
    const double store = m * n * bytes / bytes_stored * times;
    double sum = waves * (cycles_of_turn + resident * store +
                          steps * overlapped(resident * stage, f.latency, f.shown));
    if (left > 0) {
        const int is_split = plan->tail != TG_TAIL_WHOLE && waves > 0;
        const double parts = is_split ? (double)(int64_t)(slots / left) : 1;
        const double fullest = (double)tg_ceil_div((int64_t)(left * parts), l->units);
        const double busy = fullest + (l->matrix == 16 ? f.alone : 0) * (resident - fullest);
        sum += steps / parts * overlapped(busy * stage, f.latency, f.shown) + fullest * store;
        sum += (waves > 0 ? cycles_of_turn : 0) + (parts > 1 ? cycles_of_tail : 0);
    }
    sum = overlapped(sum, memory_cycles(input_bytes(p, bytes), l), memory_shown);
    const double c = (double)p->m * (double)p->n * (double)p->batch;
    if (plan->splits > 1)
        sum += in_clusters ? cycles_of_tail + 0.0978 * m * n
                           : f.splits + plan->splits * cycles_of_split +
                                 c * (plan->splits + 1) * bytes / (6.74 * l->units);
    return f.start + sum;
}

static int is_fetched_as_it_lies(tg_input x)
{
    return is_fetched(x.col_stride, x.row_stride) || is_fetched(x.row_stride, x.col_stride);
}

/* Nine rows or more times a large B that the engine fetches as it lies: its pipeline has more bytes
 * on their way than registers can hold, and the block of 16 rows is made for it. But its tiles, if
 * they do not fill the device whole, are split, at most in 16, and that takes its time. With much k
 * it does not matter, and five rows of a B in rows are enough. */
static int is_for_engine(const tg_problem *p, const tg_limits *l, int bytes)
{
    const int is_whole = p->n >= 44 * l->units, is_long = p->k >= 1 << 15;
    const int64_t least = p->n >= 7 * l->units ? 1 << 20 : 1 << 21; /* elements of B */
    const int least_m = is_long && p->b.col_stride == 1 ? 5 : 9;
    return l->matrix == 16 && bytes == 4 && p->m >= least_m && p->m <= 16 && p->batch == 1 &&
           p->c.col_stride == 1 && p->n >= 3 * l->units && p->k >= least / p->n &&
           p->k >= (is_whole ? 400 : 1024) && (p->k / 16 < p->n || is_long) &&
           is_fetched_as_it_lies(p->a) && is_fetched_as_it_lies(p->b) &&
           !(p->flags & TG_BATCH_INVARIANT);
}

/* A row or column, or up to 16 of them, times a large matrix: memory is the limit, the row with
 * enough of them in a thread tile the best, of two the one with wide blocks if others would be more
 * than units, since they stage the thin matrix less often, and k is split until all units read. */
static int choose_skinny(const tg_problem *p, const tg_limits *l, int bytes, tg_plan *plan)
{
    const int64_t thin = tg_min(p->m, p->n), large = tg_max(p->m, p->n);
    const int is_tiny =
        p->batch > 1 && large * thin <= 16 && p->k >= 32; /* each item a few dot products */
    if (thin == 0 || p->batch == 0 || thin > (bytes == 4 || !l->matrix ? 16 : 4) ||
        (p->batch > 1 && !is_tiny) || p->k < 2 || is_for_engine(p, l, bytes))
        return 0;
    plan->row = -1;
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile t = tg_tile_at(row);
        if (!is_skinny(t) || t.thread.m < (is_tiny ? large : thin) || !tg_tile_fits(t, *l, bytes) ||
            t.vec * bytes < 16)
            continue;
        if (plan->row < 0 || t.thread.m < plan->tile.thread.m ||
            (t.thread.m == plan->tile.thread.m &&
             tg_ceil_div(large, plan->tile.block.n) * p->batch > l->units)) {
            plan->row = row;
            plan->tile = tg_tile_fill(t, *l, bytes);
        }
    }
    if (plan->row < 0)
        return 0;
    const int64_t blocks = tg_ceil_div(large, plan->tile.block.n) * p->batch;
    const int64_t threads = tg_tile_threads(plan->tile, l->lanes);
    const int64_t slots = l->units * (plan->tile.thread.m > 1 && threads < 512 ? 2 : 1);
    const int64_t least_k = plan->tile.thread.m < 16 ? 880 : 512; /* of a split */
    if (2 * blocks <= slots || (blocks < slots && p->k >= 8192))
        plan->splits = (int)tg_clamp(slots / blocks, 1, tg_max(1, p->k / least_k));
    return 1;
}

/* Are its sums made in the order of all rows of this type for which this is true? Multiply-adds go
 * along k one by one. f16 and bf16 have instructions only, which must be one, and integers are
 * exact. */
static int sums_in_order(tg_tile t, int bytes)
{
    return t.slices == 1 && (bytes >= 4 ? tg_tile_is_fma(t) : bytes == 1 || t.inst.m <= 16);
}

/* May the chooser weigh the row by its model? */
static int is_candidate(const tg_problem *p, int row, const tg_limits *l, int bytes)
{
    const tg_tile t = tg_tile_at(row);
    const char *name = tg_tile_name(row);
    if ((p->flags & TG_BATCH_INVARIANT) && !sums_in_order(t, bytes))
        return 0;
    const int is_thin = is_fed_by_engine(t, l, bytes) && tg_is_thin(t.block);
    if ((is_thin && p->batch > 1) ||
        (is_for_engine(p, l, bytes) && !(is_thin && tg_tile_streams(t))))
        return 0;
    if (tg_tile_is_fma(t) && (bytes < 4 || tg_tile_accumulators(t, *l, bytes) > 128))
        return 0; /* FMA kernels are of f32 and f64 */
    if (begins(name, "batch") && !tg_tile_is_wide(t, bytes, l->vec_bytes))
        return 0;
    return t.form != TG_DOT && t.stages >= 2 && tg_tile_fits(t, *l, bytes) && !begins(name, "v");
}

void tg_choose_gpu(const tg_problem *p, const tg_limits *l, int bytes, const tg_tile *forced,
                   tg_plan *best)
{
    static const int splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
    double best_cycles = 0;
    best->row = -1;
    const int only = forced ? tg_tile_row_like(forced, l, p->a.type) : -1;
    const int may_split = !(p->flags & TG_BATCH_INVARIANT);
    if (!forced && may_split && choose_skinny(p, l, bytes, best))
        return;
    best->row = -1;
    for (int row = 0; row < tg_tile_count(); row++) {
        tg_plan plan = *best;
        plan.row = row;
        plan.tile = tg_tile_fill(tg_tile_at(row), *l, bytes);
        if (forced ? row != only || !tg_tile_fits(plan.tile, *l, bytes)
                   : !is_candidate(p, row, l, bytes))
            continue;
        const int is_engine = is_fed_by_engine(plan.tile, l, bytes);
        const int is_pipeline = !tg_tile_is_fma(plan.tile) && plan.tile.stages > 2;
        const int can_split_tail = may_split && (is_engine || is_pipeline);
        const int64_t tiles =
            tg_ceil_div(p->m, plan.tile.block.m) * tg_ceil_div(p->n, plan.tile.block.n) * p->batch;
        const int is_batch = p->batch > 1 && begins(tg_tile_name(row), "batch");
        const int is_whole = !may_split || is_engine || is_batch ||
                             (is_pipeline && tiles >= l->units); /* there is work for all */
        for (int tail = TG_TAIL_WHOLE; tail <= (can_split_tail ? TG_TAIL_SPLIT : TG_TAIL_WHOLE);
             tail++)
            for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
                plan.splits = splits[i];
                plan.tail = (tg_tail)tail;
                if (i > 0 && (is_whole || tail != TG_TAIL_WHOLE ||
                              p->k < 2 * (int64_t)splits[i] * plan.tile.block.k))
                    break;
                const double now = is_engine ? engine_cycles(p, plan.tile, l, plan.tail)
                                             : cycles(p, &plan, l, bytes);
                if (best->row < 0 || now < best_cycles) {
                    *best = plan;
                    best_cycles = now;
                }
            }
    }
}
