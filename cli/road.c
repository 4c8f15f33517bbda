/* SPDX-License-Identifier: Apache-2.0
 *
 * How a device goes through a problem, by the rules of the library itself (common/way.h). All that
 * is said here of a CPU's kernels: those of rows whose blocks come from the caches take ragged
 * tiles; where vectors have 32 bytes or more, of any width, and they convert what they read.
 */
#include "road.h"

tg_problem cli_plain_problem(cli_shape shape, tg_type type)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.m = shape.m, p.n = shape.n, p.k = shape.k;
    p.a.type = type, p.b.type = cli_b_type(type), p.c.type = cli_c_type(type);
    p.a.row_stride = p.k, p.b.row_stride = p.c.row_stride = p.n;
    p.a.col_stride = p.b.col_stride = p.c.col_stride = 1;
    return p;
}

/* As tg_gemm does it. */
static void find_problem(cli_road *x, const cli_machine *machine, cli_shape shape, tg_type type)
{
    x->p = cli_plain_problem(shape, type);
    x->is_swapped = tg_is_by_columns(&x->p.c, x->p.n);
    if (x->is_swapped)
        tg_problem_swap(&x->p);
    if (tg_is_best_swapped(&x->p, &machine->limits, machine->threads)) {
        tg_problem_swap(&x->p);
        x->is_swapped ^= 1;
    }
    x->shape = (cli_shape){x->p.m, x->p.n, x->p.k, 1};
}

static tg_able able_of(const cli_road *x, const tg_limits *l)
{
    const tg_problem *p = &x->p;
    const tg_tile t = x->plan.tile;
    const int has_masks = l->vec_bytes >= 32, is_words = t.inst.k > 1;
    tg_tile row = tg_tile_at(x->plan.row);
    if (x->plan.row < 0) { /* the kernel is that of a row which is as large */
        row = t;
        row.block.m = 0;
    }
    const int is_ragged = tg_tile_shrinks(row, *l, tg_kernel_bytes(p->a.type, *l, t));
    const int64_t slice = tg_ceil_div(t.block.k, t.slices);
    const int is_exact = p->c.type == TG_I32 && !is_words;
    return (tg_able){.grain = is_words || (is_ragged && has_masks) ? 1
                              : is_ragged                          ? t.vec
                                                                   : 0,
                     .reads_short = has_masks,
                     .turns_words = 1,
                     .vector = l->vec_bytes / (p->a.type == TG_F64 ? 8 : 4),
                     .slice = is_exact ? tg_min(slice, tg_exact_k(p->a.type, p->b.type)) : slice};
}

/* As the plan says; or, with nothing to stage, or too little to share it, as many as there are
 * threads, along the lines that are turned or read in streams, or along the side with more tiles or
 * blocks. */
static tg_mn strips_of(const cli_road *x, int is_ragged, int converts)
{
    const tg_plan *plan = &x->plan;
    const tg_tile t = plan->tile;
    const int is_own = x->way.turned || x->way.is_streamed;
    const int in_place =
        !x->has_blocks || (is_ragged && plan->a_in_place && plan->b_in_place && !converts);
    if (plan->splits > 1 || (tg_is_cut(plan) && !is_own) ||
        (!in_place && !tg_is_too_little_to_share(t, plan->threads)))
        return plan->strips;
    const int columns = is_own && !converts && t.inst.k == 1 ? t.vec : t.thread.n;
    const int64_t m = tg_ceil_div(x->p.m, in_place ? t.thread.m : t.block.m);
    const int64_t n = tg_ceil_div(x->p.n, in_place ? columns : t.block.n);
    const int64_t threads = tg_max(1, plan->threads);
    return (is_own ? x->way.turned == TG_TURNED_A : m >= n) ? (tg_mn){(int)tg_min(threads, m), 1}
                                                            : (tg_mn){1, (int)tg_min(threads, n)};
}

/* The lines of registers that are turned: a few, and as many as a vector has. */
static void cut_to_turned(cli_road *x, int vector)
{
    tg_tile *t = &x->plan.tile;
    if (!x->way.turned || t->inst.k > 1)
        return;
    const int is_a = x->way.turned == TG_TURNED_A;
    t->thread = is_a ? (tg_mn){vector, (int)x->p.n} : (tg_mn){(int)x->p.m, vector};
    t->vec = vector;
}

static void cut_to_strips(cli_road *x)
{
    tg_tile *t = &x->plan.tile;
    t->warp.m = t->block.m = (int)tg_min(INT32_MAX, tg_ceil_div(x->p.m, x->plan.strips.m));
    t->warp.n = t->block.n = (int)tg_min(INT32_MAX, tg_ceil_div(x->p.n, x->plan.strips.n));
}

static void name_direct(cli_road *x)
{
    x->a = x->way.widens ? "converted to f32 first" : "in place";
    x->b = x->way.widens     ? "converted to f32 first"
           : x->way.copies_b ? "copied to rows"
                             : "in place";
}

static void name_lines(cli_road *x)
{
    const int is_b = x->way.turned == TG_TURNED_B;
    const int is_copied = (is_b ? x->p.a.col_stride : x->p.b.row_stride) != 1 ||
                          tg_type_size(x->p.a.type) < sizeof(float);
    const char *few = is_copied ? "copied along k" : "in place";
    x->a = is_b ? few : "rows turned in registers";
    x->b = is_b ? "columns turned in registers" : few;
}

static void name_streams(cli_road *x, const tg_limits *l, int converts)
{
    const int is_copied = converts || (x->plan.tile.inst.k == 1 && x->p.a.col_stride != 1) ||
                          tg_may_go_down(&x->p, x->plan.tile, l);
    x->a = converts ? "converted piece by piece" : is_copied ? "copied piece by piece" : "in place";
    x->b = converts                  ? "in streams, converted on its way"
           : x->plan.tile.inst.k > 1 ? "in streams, woven to words on its way"
                                     : "in streams";
}

static void name_panels(cli_road *x, const tg_limits *l, int converts, int is_alone)
{
    static const char *const panels[] = {"packed in panels", "packed in panels of words",
                                         "converted, in panels"};
    const char *packed = panels[converts ? 2 : x->plan.tile.inst.k > 1];
    const int is_late = is_alone && tg_packs_late(&x->p, &x->plan, l);
    x->stages_a = !tg_is_read_there(&x->p, &x->plan, 0);
    x->stages_b = !tg_is_read_there(&x->p, &x->plan, 1);
    x->a = x->stages_a ? packed : "in place";
    x->b = !x->stages_b ? "in place" : is_late ? "packed in panels by the first tiles" : packed;
}

static void find_cpu_way(cli_road *x, const tg_limits *l)
{
    if (x->plan.tile.stages == 0) /* k is walked at once */
        x->plan.tile.block.k = (int)x->p.k;
    const tg_tile t = x->plan.tile;
    const tg_able able = able_of(x, l);
    const tg_way way = x->way = tg_way_of(&x->p, &x->plan, l, &able);
    const int converts = (int)tg_type_size(x->p.a.type) != tg_kernel_bytes(x->p.a.type, *l, t);
    x->has_blocks = !way.is_direct && !way.is_streamed && !way.turned;
    x->plan.splits = way.is_streamed ? x->plan.splits : 1;
    cut_to_turned(x, (int)able.vector);
    x->plan.strips = strips_of(x, able.grain, converts);
    const int is_alone = way.is_direct || tg_is_cut(&x->plan) || x->plan.threads == 1;
    if (way.is_streamed)
        name_streams(x, l, converts);
    else if (way.turned)
        name_lines(x);
    else if (way.is_direct)
        name_direct(x);
    else
        name_panels(x, l, converts, is_alone && able.grain);
    if (is_alone && (x->has_blocks || way.is_direct) && able.grain == 1 && x->plan.a_in_place)
        x->narrow = tg_narrow(&x->p, t, l);
    if (!x->has_blocks)
        cut_to_strips(x);
}

cli_road cli_find_road(const cli_machine *machine, cli_shape shape, tg_type type,
                       const tg_plan *plan)
{
    cli_road x = {.plan = *plan, .has_blocks = 1};
    find_problem(&x, machine, shape, type);
    if (machine->is_host)
        find_cpu_way(&x, &machine->limits);
    else
        x.stages_a = x.stages_b = plan->tile.stages > 0;
    return x;
}

/* A CPU stages a block once, whatever the number of stages. */
int64_t cli_staged_bytes(const cli_road *x, const cli_machine *machine)
{
    const tg_tile t = x->plan.tile;
    const int64_t bytes = tg_kernel_bytes(x->p.a.type, machine->limits, t);
    if (x->way.copies_b)
        return x->p.k * x->p.n * bytes;
    const int64_t lines =
        (x->stages_a ? (int64_t)t.block.m : 0) + (x->stages_b ? (int64_t)t.block.n : 0);
    return lines * t.block.k * bytes * (machine->is_host ? 1 : t.stages);
}
