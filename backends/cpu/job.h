/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be done for a problem and its plan: which way takes it (ways.h), into how many strips
 * C is cut, how memory is read, and how much of it is needed. All that a call can know before it
 * starts is found here, once. */
#ifndef TG_CPU_JOB_H
#define TG_CPU_JOB_H

#include <math.h>

#include "ways.h"

/* A block of less than this is too little to share, unless it is all there is. */
static const double shared_flops = 2e6;

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
             (in_place ||
              2.0 * t->block.m * t->block.n * t->block.k < shared_flops * plan->threads))
        *(is_of_rows ? &j->strips.m : &j->strips.n) =
            (int)tg_min(plan->threads, is_of_rows ? pieces_m : pieces_n);
    j->grain.m = tg_strip_grain(p->m, j->strips.m, grain.m, fine.m);
    j->grain.n = tg_strip_grain(p->n, j->strips.n, grain.n, fine.n);
    j->pieces_m = tg_ceil_div(p->m, j->grain.m);
    j->pieces_n = tg_ceil_div(p->n, j->grain.n);
    j->cells = p->batch * j->strips.m * j->strips.n;
    j->is_each_alone = j->cells >= plan->threads || is_cut(j) || j->is_direct || streams;
}

/* That a thread has: of blocks of k, as many elements as if it had all of it. */
static int64_t columns_of_strip(const tg_job *j)
{
    return tg_ceil_div(tg_max(j->p->n, 1), j->splits > 1 ? j->plan->threads : j->strips.n);
}

/* One or two lines times many that lie along k: cores whose L1 has twelve ways, as its size says,
 * follow two vectors of those by themselves, from wherever. */
static int follows_all(const tg_job *j, const tg_limits *l)
{
    enum { TWELVE_WAYS = 48 << 10 };
    const int64_t few = j->turned == TG_TURNED_B ? j->p->m : j->p->n;
    return l->l1 >= TWELVE_WAYS && !tg_has_large_l2(l) && few <= 2 && !j->words;
}

/* So many of these at a time: of those that are near, two vectors; from memory, what is well
 * fetched side by side; fewer if they share sets of L1. */
static int64_t turned_lines_of(const tg_job *j, const tg_limits *l)
{
    enum { STREAMS = 16 };
    const tg_problem *p = j->p;
    const int is_b = j->turned == TG_TURNED_B;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), few = is_b ? p->m : p->n;
    const int64_t apart = (is_b ? p->b.col_stride : p->a.row_stride) * bytes;
    const int64_t vector = j->isa->kernels[tg_cpu_kind(p->a.type)]->turned_columns;
    const int is_far = (is_b ? j->b_from : j->a_from) == TG_IN_MEMORY && !follows_all(j, l);
    const int64_t streams = apart % PAGE == 0                   ? STREAMS / 2
                            : is_far || apart % (PAGE / 2) == 0 ? STREAMS
                                                                : 2 * STREAMS;
    const int is_enough = j->stream_type || (is_far && few > 2 && l->vec_bytes == 64);
    return vector * (is_enough ? 1 : tg_clamp(streams / vector, 1, TG_TURNED_VECTORS));
}

/* Of so many words of a line, if it is fetched at all. One core waits for memory, and not for the
 * instructions that fetch, if its vectors have 64 bytes; but most do well by themselves if all
 * lines begin where pages do. Those with a large L2 do not, nor do two of them, nor more of what no
 * cache holds, and like short runs better. */
static int turned_run(const tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const int is_b = j->turned == TG_TURNED_B, is_large = tg_has_large_l2(l);
    const int64_t lines = is_b ? p->n : p->m;
    const int64_t stride = is_b ? p->b.col_stride : p->a.row_stride;
    const int64_t page = PAGE / (int64_t)tg_type_size(p->a.type);
    const int is_for_few =
        j->plan->threads <= (is_large ? 2 : 1) && tg_exceeds(24 * l->l2, lines, p->k, j->bytes);
    const int is_for_all = is_large && l->l3 > 0 && tg_exceeds(l->l3, lines, p->k, j->bytes);
    const int fetches = l->vec_bytes >= 64 && (is_large || stride % page != 0) &&
                        (is_for_few || is_for_all) && !follows_all(j, l);
    const int word = j->words ? 4 : (int)j->bytes;
    return fetches ? (is_large ? 8 : 16) * LINE / word : 0;
}

/* A stream's columns, in whole panels of B. */
static int stream_panel(const tg_job *j)
{
    return j->p->flags & TG_B_PACKED ? j->tile.thread.n : TG_STREAM_PANEL;
}

/* So many rows of a stream's B, as a thread has them, are so many times as large as L2. */
static int64_t rows_of_l2(const tg_job *j, const tg_limits *l, int times)
{
    return times * l->l2 / j->bytes / columns_of_strip(j);
}

/* Does what a thread has of it stay in caches; or, of blocks of k, in L2? */
static int is_stream_near(const tg_job *j, const tg_limits *l)
{
    return j->splits > 1 ? j->p->k < rows_of_l2(j, l, 1) : j->p->k <= rows_of_l2(j, l, 8);
}

/* With a large L2, panel by panel: its sums stay in L1. */
static int may_go_down(const tg_job *j, const tg_limits *l)
{
    return j->is_streamed && !j->words && !(j->p->flags & TG_PACKED) && tg_has_large_l2(l) &&
           l->vec_bytes >= 64 && j->p->m > j->tile.thread.m;
}

/* Few cores follow as many rows of B as make sums worth their way to L2 and back: if it comes from
 * memory, and not for one or two rows alone, the kernel fetches it. With vectors of 32 bytes, rows
 * of a B that is more than four times as large as L2 are fetched some way along them; but for up to
 * four rows of A the core does that by itself. All do so with the rows of blocks of k, which are
 * read from end to end. Kernels of tiles fetch some way along rows, unless strips are so narrow
 * that this is another's. */
static tg_fetching fetching_of(const tg_job *j, const tg_limits *l)
{
    enum { NARROW = 4096 }; /* bytes */
    const int64_t m = j->p->m;
    if (j->p->flags & TG_PACKED) /* cores go on along panels by themselves */
        return TG_FETCHES_NOTHING;
    if (j->is_streamed && j->tile.inst.m > 1)
        return j->splits == 1 && columns_of_strip(j) * j->bytes < NARROW ? TG_FETCHES_BELOW
                                                                         : TG_FETCHES_NOTHING;
    if (tg_takes_words_in_rows(j->tile))
        return j->is_streamed && !is_stream_near(j, l) ? TG_FETCHES_BELOW : TG_FETCHES_NOTHING;
    if (!j->is_streamed || j->words || j->splits > 1)
        return TG_FETCHES_NOTHING;
    if (may_go_down(j, l) && m > TG_STREAM_TILES * j->tile.thread.m)
        return TG_FETCHES_LOTS;
    if (l->vec_bytes >= 64)
        return m > 2 && !is_stream_near(j, l) ? TG_FETCHES_BELOW : TG_FETCHES_NOTHING;
    return l->vec_bytes == 32 && m > TG_TURNED_ROWS && j->p->k > rows_of_l2(j, l, 4)
               ? TG_FETCHES_ALONG
               : TG_FETCHES_NOTHING;
}

/* A lot has as many rows as a row of a block has lines, so that each tile fetches one. Blocks are
 * even. */
static int64_t columns_of_lot(const tg_job *j)
{
    const int64_t panel = j->tile.thread.n, columns = columns_of_strip(j);
    const int64_t bytes = (int64_t)tg_type_size(j->p->b.type);
    const int64_t most = tg_max(panel, tg_round_down(TG_LOT * LINE / bytes, panel));
    return tg_round_up(tg_ceil_div(columns, tg_ceil_div(columns, most)), panel);
}

/* How many rows of B a stream has at a time: sums come and go with each such lot. Narrow panels of
 * them stay in L1 for the next tile of rows; so do few rows of B, if they are a page apart and
 * share sets of it; and where caches beyond L2 are far, they may lie in few pages. */
static int64_t stream_rows_of(const tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const int64_t in_pages = 32 * PAGE / j->bytes / tg_max(1, p->b.row_stride);
    const int is_beyond = tg_has_large_l2(l) && tg_exceeds(l->l2, p->n, p->k, j->bytes);
    const int is_narrow = l->vec_bytes < 64 && p->m > j->tile.thread.m;
    if (tg_takes_words_in_rows(j->tile))
        return is_stream_near(j, l)     ? TG_STREAMED_NEAR
               : p->m <= TG_TURNED_ROWS ? TG_STREAMED
               : p->m <= 8              ? 32
                                        : 64;
    const int is_crowded =
        l->vec_bytes == 32 && !j->stream_type && tg_even_part(p->b.row_stride) * j->bytes >= PAGE;
    const int64_t near = is_crowded  ? 2 * TG_STREAMED
                         : is_narrow ? TG_STREAMED_NEAR / 4
                                     : TG_STREAMED_NEAR;
    if (j->fetching == TG_FETCHES_LOTS)
        return tg_round_up(tg_ceil_div(j->tile.block.n * (int64_t)tg_type_size(p->b.type), LINE),
                           TG_STREAMED);
    if (is_stream_near(j, l))
        return is_beyond ? tg_clamp(tg_round_down(in_pages, TG_STREAMED), 32, near) : near;
    if (p->m <= TG_TURNED_ROWS)
        return TG_STREAMED;
    return j->fetching == TG_FETCHES_BELOW ? 4 * TG_STREAMED : 2 * TG_STREAMED;
}

/* A matrix of so many lines. */
static tg_distance distance_of(int64_t lines, int64_t k, const tg_input *x, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(x->type);
    if (tg_is_beyond_caches(lines, k, bytes, l))
        return TG_IN_MEMORY;
    return tg_exceeds(l->l2 / 2, lines, k, bytes) ? TG_IN_CACHES : TG_IN_L2;
}

/* How memory is read: what is fetched, and how much of B a stream has at a time. */
static void find_reading(tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const tg_tile *t = &j->tile;
    j->fetching = fetching_of(j, l);
    j->goes_down = may_go_down(j, l) && j->fetching;
    if (j->fetching == TG_FETCHES_LOTS)
        j->tile.block.n = (int)columns_of_lot(j);
    else if (j->fetching == TG_FETCHES_BELOW) /* a page at a time: sums of more are not near */
        j->tile.block.n = (int)tg_round_down(PAGE / j->bytes, t->thread.n);
    else if (j->is_streamed) /* along its rows as far as the sums of all columns stay near */
        j->tile.block.n = (int)tg_max(
            t->block.n, tg_round_down(l->l2 / 4 / j->sum_bytes / tg_max(p->m, 1), stream_panel(j)));
    j->stream_rows = stream_rows_of(j, l);
    j->is_near = is_stream_near(j, l);
    j->packs_late = j->kernel.grain && tg_packs_late(p, j->plan, l);
    j->fetches_late = tg_fetches_late(l);
    j->fetches_rows = j->kernel.grain && tg_fetches_rows(p, j->plan, l);
    j->a_from = distance_of(p->m, p->k, &p->a, l);
    j->b_from = distance_of(p->n, p->k, &p->b, l);
    j->fetches_first = j->kernel.grain && j->a_from != TG_IN_L2 && !j->fetches_rows &&
                       tg_can_fetch_rows(p, j->plan, l);
    j->ahead = j->turned ? turned_run(j, l) : 0;
    j->turned_lines = j->turned ? turned_lines_of(j, l) : 0;
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
        (!j->is_flat && is_b_for_few(j, l)))
        set_fetching(&j->step);
    const int takes_all = j->is_streamed && j->words; /* rows */
    j->rows = rows_of(p->m, takes_all ? tg_max(p->m, 1) : t->thread.m);
    if (j->is_direct)
        fetch_items(j, l);
    j->is_step = j->is_direct && !j->copies_b && !j->widens && p->k <= j->slice &&
                 j->cells == p->batch && p->n <= t->thread.n;
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
        j->b_bytes = j->copies_b || j->widens ? p->k * j->step.b_row * j->bytes : 0;
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
    const int is_turned = j->fetches_rows && p->c.col_stride != 1;
    if (j->widens)
        j->sums_bytes = tg_round_up(p->m * j->step.b_row * j->bytes, 64);
    if (j->is_streamed || ((is_short || is_turned) && p->k > j->slice && !j->is_direct)) {
        const int64_t rows = tg_ceil_div(j->pieces_m, j->strips.m) * j->grain.m;
        const int64_t columns = j->goes_down ? t->block.n : tg_min(t->block.n, p->n);
        /* A line more than panels, so that rows do not share a cache set. */
        j->sums_row = tg_round_up(columns, stream_panel(j)) + 16;
        const int rounds = is_short && j->words && j->words->writes_short && p->k <= j->slice;
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
    j.kernel_runs_on = j.kernel.grain && !j.words;
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
    find_steps(&j, l);
    find_room(&j);
    find_reading(&j, l);
    find_sums(&j);
    return j;
}

#endif
