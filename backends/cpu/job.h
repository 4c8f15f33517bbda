/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be done for a problem and its plan: which way takes it (ways.h), into how many strips
 * C is cut, how memory is read (reading.h), and how much of it is needed. All that a call can know
 * before it starts is found here, once. */
#ifndef TG_CPU_JOB_H
#define TG_CPU_JOB_H

#include <math.h>

#include "reading.h"

/* Does the plan say how C is cut? */
static int is_cut(const tg_job *j)
{
    return tg_is_cut(j->plan) && !j->turned && !j->is_streamed && j->p->k > 0;
}

/* With nothing to stage together, or too little, each thread takes a strip of its own; but of many
 * items whole ones. Strips end where tiles do, or, if nothing keeps them from it, where finer
 * grains do. */
static void find_strips(tg_job *j)
{
    enum { MANY = 16 }; /* for a thread: one more or less is no matter */
    const tg_problem *p = j->p;
    const tg_plan *plan = j->plan;
    const tg_tile *t = &j->tile;
    const int a_packed = (p->flags & TG_A_PACKED) != 0, b_packed = (p->flags & TG_B_PACKED) != 0;
    const int streams = j->turned || j->is_streamed, is_turned_a = j->turned == TG_TURNED_A;
    const int in_place = streams || j->widens ||
                         ((plan->a_in_place || a_packed) &&
                          (plan->b_in_place || b_packed || j->copies_b) && j->kernel.grain);
    const int is_own = in_place || is_cut(j);
    const int is_fine = is_own && j->kernel.grain && !j->words && !j->stream_type && !j->converts;
    tg_mn grain = is_own ? t->thread : (tg_mn){t->block.m, t->block.n};
    if (is_turned_a && !j->words)
        grain.m = t->vec;
    const tg_mn fine = {is_fine && !a_packed && !is_turned_a ? 1 : grain.m,
                        is_fine && !b_packed ? t->vec : grain.n};
    const int64_t pieces_m = tg_ceil_div(p->m, grain.m);
    const int64_t pieces_n = tg_ceil_div(p->n, streams ? fine.n : grain.n);
    const int is_of_rows = streams ? is_turned_a : pieces_m >= pieces_n;
    if (is_cut(j))
        j->strips =
            (tg_mn){(int)tg_min(plan->strips.m, pieces_m), (int)tg_min(plan->strips.n, pieces_n)};
    else if (p->k > 0 && j->splits == 1 && p->batch < MANY * plan->threads &&
             (in_place || tg_is_too_little_to_share(*t, plan->threads)))
        *(is_of_rows ? &j->strips.m : &j->strips.n) =
            (int)tg_min(plan->threads, is_of_rows ? pieces_m : pieces_n);
    j->grain.m = tg_strip_grain(p->m, j->strips.m, grain.m, fine.m);
    j->grain.n = tg_strip_grain(p->n, j->strips.n, grain.n, fine.n);
    j->pieces_m = tg_ceil_div(p->m, j->grain.m);
    j->pieces_n = tg_ceil_div(p->n, j->grain.n);
    j->cells = p->batch * j->strips.m * j->strips.n;
    j->is_each_alone = j->cells >= plan->threads || is_cut(j) || j->is_direct || streams;
}

/* Of small items in a row that come from beyond L2, each is fetched while the one before it is
 * multiplied. */
static void fetch_items(tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const double bytes = (double)j->bytes, steps = k * (double)(j->rows.tall + j->rows.low);
    const int is_whole = (int64_t)j->strips.m * j->strips.n == 1;
    j->near_items =
        is_whole ? (int64_t)((double)l->l2 / bytes / (m * k + k * n + m * n)) : INT64_MAX;
    const double a = fmax(m * (double)p->a.row_stride, k * (double)p->a.col_stride);
    const double b = fmax(k * (double)p->b.row_stride, n * (double)p->b.col_stride);
    j->next_a = (int64_t)fmin(LINE, a * bytes / steps);
    j->next_b = (int64_t)fmin(LINE, b * bytes / steps);
}

/* Do the last columns have a way of their own? Not where a team shares panels, as if those were one
 * more. */
static int64_t find_narrow(const tg_job *j, const tg_limits *l)
{
    const int is_nest_or_direct = !j->turned && !j->is_streamed && j->is_each_alone;
    return is_nest_or_direct && j->kernel.grain == 1 && j->plan->a_in_place
               ? tg_narrow(j->p, j->tile, l)
               : 0;
}

/* What all steps without a loop nest have in common; and those that are all of an item. */
static void find_steps(tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const tg_tile *t = &j->tile;
    const int is_c_copied = (int64_t)tg_type_size(p->c.type) < j->sum_bytes || j->add;
    const int64_t copied_row =
        !j->widens || p->n > 2 * TG_STREAM_PANEL    ? tg_round_up(p->n, TG_STREAM_PANEL) + 16
        : p->n < 2 * t->vec && j->kernel.grain == 1 ? p->n /* so that all is one row */
                                                    : tg_round_up(p->n, t->vec);
    j->step = (tg_step){.k = p->k,
                        .a_row = j->widens ? p->k : p->a.row_stride,
                        .a_col = j->widens ? 1 : p->a.col_stride,
                        .b_row = j->copies_b || j->widens ? copied_row : p->b.row_stride,
                        .c_row = j->widens && is_c_copied ? copied_row : p->c.row_stride};
    if (!tg_is_near(p, t->thread.m + t->thread.n, j->bytes, l) ||
        (!j->is_flat && tg_is_b_for_few(p, j->plan, l)))
        set_fetching(&j->step);
    j->rows = rows_of(p->m, t->thread.m);
    if (j->is_direct)
        fetch_items(j, l);
    j->is_step = j->is_direct && !j->copies_b && !j->widens && p->k <= j->slice &&
                 j->cells == p->batch && p->n <= t->thread.n && j->narrow == 0;
    j->is_alone = j->is_direct && !j->widens && !j->is_flat && p->k <= j->slice && j->cells == 1 &&
                  j->plan->threads == 1;
    if (!j->is_step)
        return;
    j->step.columns = (int)p->n;
    j->low_step = j->step;
    go_down(&j->step, j->rows.tall, j->rows.height);
    go_down(&j->low_step, j->rows.low, j->rows.height - 1);
}

/* If the few lines do not lie along k, or are of another type, they are copied; or words are made
 * of them. */
static int64_t turned_bytes(const tg_job *j)
{
    const tg_problem *p = j->p;
    if (j->words)
        return tg_round_up(p->m, j->tile.inst.m) * tg_round_up(p->k, LINE / j->bytes) * j->bytes;
    const int is_b = j->turned == TG_TURNED_B;
    return (is_b ? p->a.col_stride : p->b.row_stride) == 1 && !j->stream_type
               ? 0
               : tg_round_up((is_b ? p->m : p->n) * p->k * j->bytes, 64);
}

/* Room for what is staged, copied or converted of A and B. */
static void find_room(tg_job *j)
{
    const tg_problem *p = j->p;
    const tg_tile *t = &j->tile;
    const int64_t k_bytes = t->block.k * j->bytes;
    j->a_bytes = tg_round_up(tg_round_up(t->block.m, t->thread.m) * k_bytes, 64);
    j->b_bytes = tg_round_up(tg_round_up(t->block.n, t->thread.n) * k_bytes, 64);
    if (j->turned || j->is_direct) {
        j->a_bytes = j->turned   ? turned_bytes(j)
                     : j->widens ? tg_round_up(p->m * p->k * j->bytes, 64)
                                 : 0;
        j->b_bytes =
            j->copies_b || j->widens ? tg_round_up(p->k * j->step.b_row * j->bytes, 64) : 0;
    } else if (p->flags & TG_PACKED && !j->converts) { /* taken as it is */
        *(p->flags & TG_A_PACKED ? &j->a_bytes : &j->b_bytes) = 0;
    }
    if (p->flags & TG_B_PACKED && j->is_streamed)
        j->b_bytes = TG_STREAMED * t->thread.n * j->bytes; /* what k ends with */
}

/* And for sums that are not in C. */
static void find_sums(tg_job *j)
{
    const tg_problem *p = j->p;
    const tg_tile *t = &j->tile;
    const int is_short = (int64_t)tg_type_size(p->c.type) < j->sum_bytes;
    const int is_turned = j->reading.fetches_rows && p->c.col_stride != 1;
    if (j->widens)
        j->sums_bytes = tg_round_up(p->m * j->step.b_row * j->bytes, 64);
    if (j->is_streamed || ((is_short || is_turned) && p->k > j->slice && !j->is_direct)) {
        const int64_t rows = tg_ceil_div(j->pieces_m, j->strips.m) * j->grain.m;
        const int64_t columns = j->reading.goes_down ? t->block.n : tg_min(t->block.n, p->n);
        /* A line more than panels, so that rows do not share a cache set. */
        j->sums_row = tg_round_up(columns, stream_panel(j)) + 16;
        const int rounds = is_short && j->words && p->k <= j->slice;
        j->is_c_beside =
            j->is_streamed && (j->add || p->c.col_stride != 1 || (is_short && !rounds));
        const int64_t planes = j->is_c_beside ? 2 : 1;
        j->plane = (j->is_streamed && j->words ? tg_max(rows + 1, TG_STREAM_ROWS) : rows) *
                   j->sums_row * j->sum_bytes;
        j->sums_bytes = tg_round_up(planes * j->plane, 64);
    }
    if (j->splits > 1) {
        j->apart_row = tg_round_up(p->n, TG_STREAM_PANEL) + 16;
        j->apart_bytes =
            tg_round_up(tg_round_up(p->m, t->inst.m) * j->apart_row * j->sum_bytes, 64);
    }
}

/* What a problem and its plan say themselves. */
static tg_job begin_job(const tg_isa *isa, const tg_limits *l, const tg_problem *p,
                        const tg_plan *plan)
{
    const int is_f64 = tg_cpu_kind(p->a.type);
    tg_job j = {.p = p,
                .plan = plan,
                .isa = isa,
                .tile = plan->tile,
                .copy_sums = isa->widen[(is_f64 ? TG_F64 : TG_F32) - 1],
                .add = p->c.type == TG_I32 && plan->tile.inst.k == 1 ? isa->add : NULL,
                .bytes = tg_kernel_bytes(p->a.type, *l, plan->tile),
                .sum_bytes = is_f64 ? sizeof(double) : sizeof(float),
                .strips = {1, 1}};
    if (p->batch > 1) {
        const int is_a = !(p->flags & TG_A_PACKED), is_b = !(p->flags & TG_B_PACKED);
        j.a_item = is_a * p->a.batch_stride * (int64_t)tg_type_size(p->a.type);
        j.b_item = is_b * p->b.batch_stride * (int64_t)tg_type_size(p->b.type);
        j.c_item = p->c.batch_stride * (int64_t)tg_type_size(p->c.type);
    }
    const tg_tile *t = &j.tile;
    if (t->stages == 0)
        j.tile.block.k = (int)tg_clamp(p->k, 1, INT32_MAX);
    j.words = t->inst.k > 1 ? tg_cpu_words(isa, *t, p->a.type, p->b.type) : NULL;
    j.kernel = plan->row >= 0 && !j.words ? isa->kernels[is_f64]->rows[plan->row]
                                          : tg_cpu_kernel(isa, *t, p->a.type, p->b.type);
    j.stream_type =
        tg_type_size(p->b.type) <= 2 && isa->streams_short && !j.words ? p->b.type : (tg_type)0;
    j.converts = (int64_t)tg_type_size(p->a.type) != j.bytes;
    j.slice = tg_ceil_div(t->block.k, t->slices);
    if (j.add)
        j.slice = tg_min(j.slice, tg_exact_k(p->a.type, p->b.type));
    return j;
}

static tg_job job_of(const tg_isa *isa, const tg_limits *l, const tg_problem *p,
                     const tg_plan *plan)
{
    tg_job j = begin_job(isa, l, p, plan);
    find_way(&j, l);
    find_strips(&j);
    j.narrow = find_narrow(&j, l);
    find_steps(&j, l);
    find_room(&j);
    find_reading(&j, l);
    find_sums(&j);
    return j;
}

#endif
