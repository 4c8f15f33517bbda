/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser: a pure function of the problem and the limits. It weighs the rows of the table by a
 * model of the time they would take (pick_cycles.h says what it counts, and where that was
 * measured; GPUs have one of their own in pick_gpu.c); the best one is cut to the problem
 * (pick_cut.c). */
#include "pick_cycles.h"

static const double work_to_share = 1e6, work_per_thread = 2.5e5; /* worth waking others for */

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

/* A stream, and a C that takes all the time, have strips of their own kind. */
static int has_own_strips(const tg_problem *p, const tg_limits *l, const tg_plan *plan, int bytes)
{
    return is_flat(p, l, plan) || tg_is_streamed(p, l, plan, bytes);
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
