/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser: a pure function of the problem and the limits. It weighs the rows of the table by a
 * model of the time they would take; the best one is cut to the problem (pick_cut.c).
 *
 * The model of a CPU core, in cycles, for a thread tile of mr x nr (nv = nr / vec vectors):
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
 * GPUs have a model of their own (pick_gpu.c). What a ragged edge wastes is in the counts of tiles.
 * The constants are those of the cores with two FMA units of today; only their ratios matter. */
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
static const double work_to_share = 1e6, work_per_thread = 2.5e5; /* worth waking others for */

/* That use an element of B: the core is then at work for longer than the element is on its way. */
enum { ENOUGH_ROWS = 32 };

/* A row with its thread tile shrunk to even pieces of the problem, where that is possible, and its
 * zeros filled in. */
static tg_tile fit_thread(const tg_problem *p, tg_tile t, const tg_limits *l, int bytes)
{
    if (tg_tile_shrinks(t, *l, bytes)) {
        t.thread.m = tg_even_piece(p->m, t.thread.m, t.inst.m);
        t.thread.n = tg_even_piece(tg_max(1, p->n - tg_narrow(p, t, l)), t.thread.n, t.vec);
    }
    return tg_tile_fill(t, *l, bytes);
}

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

/* A stream, and a C that takes all the time, have strips of their own kind. */
static int has_own_strips(const tg_problem *p, const tg_limits *l, const tg_plan *plan, int bytes)
{
    return (tg_packs_nothing(p, plan, l) && p->k <= TG_FLAT_K) || tg_is_streamed(p, l, plan, bytes);
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

static double cycles(const tg_problem *p, const tg_limits *l, const tg_plan *plan, int bytes)
{
    const tg_tile t = plan->tile;
    const tg_turned turned = tg_turned_of(p, l->vec_bytes / bytes, t.block.k);
    const int is_of_words = p->c.type == TG_I32 && (l->matrix & (TG_CPU_VNNI | TG_CPU_AMX));
    if (turned && t.form == TG_OUTER && !is_of_words)
        return cycles_of_turned(p, turned, l->vec_bytes / bytes);
    const double vectors = t.thread.n / t.vec, accumulators = t.thread.m * vectors;
    double step = (accumulators / t.inst.m + fmas_not_overlapped) / fmas_per_cycle;
    step = step > fma_latency ? step : fma_latency;
    step += cycles_per_load * (t.thread.m + vectors);
    /* If nothing is packed, a kernel goes down all rows before it takes the next columns. */
    const int packs_nothing = tg_packs_nothing(p, plan, l);
    const int64_t columns = packs_nothing ? t.thread.n : p->n;
    const int is_far = !tg_is_near(p, t.thread.m + columns, bytes, l);
    const int is_flat = packs_nothing && p->k <= TG_FLAT_K;
    if (plan->b_in_place && p->b.row_stride % t.vec && !is_flat)
        step += (is_far ? cycles_of_far_split : cycles_of_split_load) * vectors;
    /* A stream's operands are fetched, and its sums are near. */
    const int is_stream = plan->b_in_place && p->m <= tg_stream_rows(p, plan, l) &&
                          tg_exceeds(l->l2, p->n, p->k, bytes);
    if (is_stream && p->m > ENOUGH_ROWS)
        step += cycles_of_streamed_sum * accumulators;
    if (plan->b_in_place && !is_stream && !is_flat && !tg_is_near(p, p->n, bytes, l))
        step += (tg_exceeds(l->l2, p->n, p->k, bytes) ? cycles_of_far_row : cycles_of_cold_row) /
                (double)tg_ceil_div(p->m, t.thread.m);
    const int is_hidden = hides_packing(p, l, plan, bytes);
    const int is_a_across = plan->a_in_place && t.form != TG_OUTER; /* rows of k, like B's */
    if (!is_flat && !is_stream && !is_hidden &&
        ((is_a_across && p->a.col_stride % (2048 / bytes) == 0) ||
         (plan->b_in_place && p->b.row_stride % (2048 / bytes) == 0)))
        step += cycles_of_crowding;
    if (is_crowded_in_rows(p, l, plan, bytes))
        step += cycles_of_crowded_rows;
    const int64_t narrow = plan->a_in_place && is_alone(p, plan) ? tg_narrow(p, t, l) : 0;
    const double tiles =
        (double)tg_ceil_div(p->m, t.thread.m) * (double)tg_ceil_div(p->n - narrow, t.thread.n);
    const double steps = (double)tg_ceil_div(p->k, tg_tile_word(t, bytes));
    const double k_blocks = (double)tg_ceil_div(p->k, t.block.k);
    const int64_t m = tg_ceil_div(p->m, plan->strips.m), n = tg_ceil_div(p->n, plan->strips.n);
    const int is_c_far = tg_exceeds(l->l2 / 2, m, n, bytes);
    /* Else it is fetched while tiles are multiplied. */
    const int is_waited_for = is_c_far && t.form == TG_OUTER_T && p->k < 8 && !is_flat;
    const double vector_of_c = cycles_per_vector_of_c + (is_waited_for ? cycles_of_far_vector : 0);
    const double tile_of_c =
        (cycles_per_tile + accumulators * vector_of_c) * (is_flat ? share_of_flat_tile : 1);
    const double by_lanes = narrow > 0 ? cycles_of_narrow * (double)p->m * (double)p->k : 0;
    const double work =
        tiles * (steps * step + k_blocks * tile_of_c) + by_lanes + cycles_of_words(p, l, t, tiles);
    const double n_blocks = (double)tg_ceil_div(p->n, t.block.n);
    double a = 0, b = 0; /* to pack */
    if (!plan->a_in_place && t.form == TG_OUTER)
        a = packing_cycles(t, p->m, p->k, p->a.col_stride, p->a.row_stride) * n_blocks;
    if (!plan->a_in_place && t.form != TG_OUTER)
        a = packing_cycles(t, p->m, p->k, p->a.row_stride, p->a.col_stride) * n_blocks;
    if (tg_streams_words(p, t, l) || tg_turns_words(p, t))
        b = cycles_to_stream * (double)p->n * (double)p->k;
    else if (!plan->b_in_place)
        b = packing_cycles(t, is_hidden ? p->n % t.thread.n : p->n, p->k, p->b.col_stride,
                           p->b.row_stride);
    if (!is_little(p, plan))
        return work + a + b;
    const tg_mn strips = plan->strips;
    const double threads = plan->threads;
    const int is_own = t.inst.k > 1 && tg_is_cut(plan); /* what it packs: measured of words alone */
    const double packing = is_own ? 1 : 1 + threads / threads_to_pack;
    const double moved = threads * (double)p->k * bytes / bytes_per_cycle;
    const int is_shared = strips.n > 1 && p->c.row_stride * bytes % 64 != 0;
    const double shared = is_shared ? cycles_of_shared_line * (double)p->m / strips.m : 0;
    if (tg_is_cut(plan))
        return work * uneven(p, plan) + packing * (a * strips.n + b * strips.m) +
               moved * ((double)p->m / strips.m + (double)p->n / strips.n) + threads * shared;
    return share_uneven * work + packing * (a + b) + moved * (double)(p->m + p->n) / sqrt(threads) +
           (a + b > 0 ? threads * threads * cycles_to_meet * k_blocks * n_blocks : 0);
}

/* May the chooser take the row? One that fills a CPU's registers; and reads rows, if that is how
 * operands are made. */
static int may_choose(const tg_problem *p, tg_tile t, const tg_limits *l, int bytes)
{
    if (!tg_tile_keeps_order(t, *l, p->a.type) ||
        (tg_widens(p, l) && t.form != TG_OUTER && t.inst.k == 1))
        return 0;
    return t.form != TG_DOT && t.stages > 0 && tg_tile_shrinks(t, *l, bytes) &&
           tg_tile_fits(t, *l, bytes);
}

/* Are its elements as kernels take them, so that it can be read in place? */
static int is_read(const tg_input *x, tg_tile t, int bytes)
{
    return tg_type_size(x->type) == (size_t)bytes && t.inst.k == 1;
}

/* B on its way to the only block of m is needed once: in pieces that are still in L2 when they are
 * multiplied. Those that lie in rows are best read some way along them, a page if it comes from
 * memory. What the kernel packs is a panel at a time; where it fetches one block while it
 * multiplies another, both are to be there. */
static void cut_to_l2(const tg_problem *p, const tg_limits *l, tg_plan *plan, int bytes)
{
    enum { NEAR_RUN = 1024, FAR_RUN = 4096, MOST_RUN = 1536 }; /* bytes */
    tg_tile *t = &plan->tile;
    const int late = is_late(p, l, plan), fetches = late && tg_fetches_late(l);
    const int64_t k = late ? tg_min(t->block.k, p->k) : t->block.k;
    const int64_t most = l->l2 / bytes / tg_max(k, 1);
    const int64_t least = tg_is_beyond_caches(p->n, p->k, bytes, l) ? FAR_RUN : NEAR_RUN;
    const int64_t in_rows =
        late ? tg_min(most / 4, MOST_RUN / bytes) : tg_max(most / 2, least / bytes);
    const int64_t piece = p->b.col_stride != 1 ? most / 4 : in_rows;
    if (p->m > t->block.m)
        return;
    if (!late || fetches)
        t->block.n = (int)tg_clamp(tg_round_down(piece, t->thread.n), t->thread.n, t->block.n);
    if (late)
        t->warp.n = t->thread.n;
}

/* The ways in that the model likes best, and its cycles. A is read in place along its rows, or
 * along its columns by the rows of the table that take it so, if all that a thread has of it lies
 * in a quarter of L2; B too, if its rows are vectors, and all of it lies in half of L2 or no
 * element is needed twice. */
static double choose_way_in(const tg_problem *p, const tg_limits *l, int bytes, tg_plan *best)
{
    const int is_tall = p->m * best->tile.thread.n >= p->n * best->tile.thread.m && p->batch == 1;
    const int64_t m = tg_is_cut(best) ? best->strips.m : is_tall ? best->threads : 1;
    const int64_t n = tg_ceil_div(p->n, best->strips.n);
    const int is_a_small = !tg_exceeds(l->l2 / 4, tg_ceil_div(p->m, m), p->k, bytes);
    const int is_b_small = !tg_exceeds(l->l2 / 2, n, p->k, bytes);
    const int a_can =
        is_read(&p->a, best->tile, bytes) &&
        (best->tile.form == TG_OUTER ? p->a.col_stride == 1 : p->a.row_stride == 1 && is_a_small);
    const int64_t rows = /* that share it */
        best->tile.form == TG_OUTER ? tg_stream_rows(p, best, l) : best->tile.thread.m;
    const int b_can =
        p->b.col_stride == 1 && is_read(&p->b, best->tile, bytes) && (is_b_small || p->m <= rows);
    const tg_plan stated = *best;
    double best_cycles = 0;
    for (int way = 0; way < 4; way++) {
        tg_plan plan = stated;
        plan.a_in_place = way / 2;
        plan.b_in_place = way % 2;
        if ((plan.a_in_place && !a_can) || (plan.b_in_place && !b_can))
            continue;
        if (!plan.b_in_place)
            cut_to_l2(p, l, &plan, bytes);
        const double now = cycles(p, l, &plan, bytes);
        if (way == 0 || now < best_cycles) {
            *best = plan;
            best_cycles = now;
        }
    }
    return best_cycles;
}

/* Strips of a large C: of the operand that serves them all, each thread reads or stages the whole,
 * if it is read where it is, and is B or few rows, or if it is little beside the multiplication; or
 * if there are but two threads, which then have no panels from one another's caches. */
static tg_mn long_strips(const tg_problem *p, const tg_limits *l, const tg_plan *plan, int bytes)
{
    const tg_tile t = plan->tile;
    const int threads = plan->threads;
    const int64_t m = p->m / threads, n = p->n / threads, enough = 6 * t.vec;
    if (threads == 1 || p->batch > 1 || tg_is_streamed(p, l, plan, bytes))
        return (tg_mn){1, 1};
    const int reads_b = plan->b_in_place || tg_packs_nothing(p, plan, l);
    if ((reads_b && m >= t.thread.m) || (p->m >= 4 * p->n && m >= enough))
        return (tg_mn){threads, 1};
    const int reads_a = plan->a_in_place && (threads == 2 || p->m <= t.block.m);
    if ((reads_a && n >= t.thread.n) || (p->n >= 4 * p->m && n >= enough))
        return (tg_mn){1, threads};
    if (threads == 2 && tg_max(m, n) >= enough)
        return m > n ? (tg_mn){2, 1} : (tg_mn){1, 2};
    return (tg_mn){1, 1};
}

/* Those, or columns for each thread, if it packs late what it needs of B, and that is less work. */
static double choose_long_strips(const tg_problem *p, const tg_limits *l, int bytes,
                                 tg_plan columns, double cycles_together, tg_plan *best)
{
    best->strips = long_strips(p, l, best, bytes);
    if (columns.threads == 1 || p->batch > 1 || p->m > columns.tile.block.m)
        return cycles_together;
    columns.strips.n = columns.threads;
    double now = choose_way_in(p, l, bytes, &columns);
    if (!is_little(p, &columns))
        now *= uneven(p, &columns);
    if (now >= cycles_together || !hides_packing(p, l, &columns, bytes))
        return cycles_together;
    *best = columns;
    return now;
}

/* The ways in, and the strips of C that go with them: of a small C, those that the model likes
 * best, and of words the flattest of them: of B, they are packed sooner than of A. */
static double choose_ways(const tg_problem *p, const tg_limits *l, int bytes, tg_plan *best)
{
    best->strips = (tg_mn){1, 1};
    const tg_plan stated = *best;
    const tg_tile t = stated.tile;
    const int is_words = t.inst.k > 1;
    double best_cycles = choose_way_in(p, l, bytes, best);
    const int has_own = has_own_strips(p, l, best, bytes);
    if (is_little(p, best) && has_own) {
        tg_plan own = *best;
        own.strips = tg_is_streamed(p, l, best, bytes) ? (tg_mn){1, stated.threads}
                                                       : (tg_mn){stated.threads, 1};
        best_cycles = cycles(p, l, &own, bytes);
    }
    if (!is_little(p, best) || has_own)
        return choose_long_strips(p, l, bytes, stated, best_cycles, best);
    for (int m = 1; m <= stated.threads; m++) {
        tg_plan plan = stated;
        plan.strips = (tg_mn){m, stated.threads / m};
        if (4 * m * plan.strips.n < 3 * stated.threads || m > tg_ceil_div(p->m, t.thread.m) ||
            plan.strips.n > tg_ceil_div(p->n, t.thread.n))
            continue;
        const double now = choose_way_in(p, l, bytes, &plan);
        if (now < best_cycles || (is_words && (!tg_is_cut(best) || now == best_cycles))) {
            *best = plan;
            best_cycles = now;
        }
    }
    return best_cycles;
}

/* The row that the model likes best. */
static void choose_row(const tg_problem *p, const tg_limits *l, tg_plan *best)
{
    double best_cycles = 0;
    best->row = -1;
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile stated = tg_tile_at(row);
        const int bytes = tg_kernel_bytes(p->a.type, *l, stated);
        if (!may_choose(p, stated, l, bytes))
            continue;
        tg_plan plan = *best;
        plan.row = row;
        plan.tile = fit_thread(p, stated, l, bytes);
        const double now = choose_ways(p, l, bytes, &plan);
        if (best->row < 0 || now < best_cycles) {
            *best = plan;
            best_cycles = now;
        }
    }
}

int tg_useful_threads(double work, int units)
{
    const double useful = work < work_to_share ? 1 : work / work_per_thread;
    return (int)tg_max(1, useful < units ? (int64_t)useful : units);
}

int tg_choose(const tg_problem *p, const tg_limits *l, const tg_tile *forced, tg_plan *plan)
{
    const tg_tile fma = {.inst = TG_FMA};
    int bytes = tg_kernel_bytes(p->a.type, *l, forced ? *forced : fma);
    tg_tile stated;
    plan->splits = plan->threads = 1;
    plan->strips = (tg_mn){1, 1};
    plan->a_in_place = plan->b_in_place = 0;
    plan->tail = TG_TAIL_WHOLE;
    const int is_gpu = l->l1 == 0;
    if (is_gpu && (!forced || tg_tile_row_like(forced, l, p->a.type) >= 0)) {
        tg_choose_gpu(p, l, bytes, forced, plan);
        return plan->row >= 0;
    }
    if (!is_gpu)
        plan->threads = tg_useful_threads(tg_work_of(p, l), l->units);
    if (forced) {
        stated = *forced;
        plan->row = tg_tile_row_like(&stated, l, p->a.type);
        plan->tile = fit_thread(p, stated, l, bytes);
        plan->a_in_place = stated.stages == 0 && is_read(&p->a, stated, bytes);
        plan->b_in_place = stated.stages == 0 && is_read(&p->b, stated, bytes);
        if (is_gpu)
            return 1;
        if (stated.stages == 1 && may_choose(p, stated, l, bytes))
            choose_ways(p, l, bytes, plan);
    } else {
        choose_row(p, l, plan);
        if (plan->row < 0)
            return 0;
        stated = tg_tile_at(plan->row);
        bytes = tg_kernel_bytes(p->a.type, *l, stated);
    }
    if (!is_gpu && stated.stages == 1 && tg_reads_lines(p, plan))
        plan->a_in_place = 1; /* after the strips: with columns of C each, threads were slower */
    tg_cut_tile(p, l, stated, bytes, fmas_per_cycle / bytes_per_cycle, plan);
    if (!is_gpu && (tg_is_streamed(p, l, plan, bytes) || tg_streams_words(p, plan->tile, l)))
        plan->splits = tg_stream_splits(p, plan, l);
    return 1;
}
