/* SPDX-License-Identifier: Apache-2.0
 *
 * How memory is read, each in its own way: what is fetched, and how much of a matrix is read side
 * by side. All of this was measured, and none of it changes a bit of C. */
#ifndef TG_READING_H
#define TG_READING_H

#include "ways.h"

/* That a thread has: of blocks of k, as many elements as if it had all of it. */
static int64_t columns_of_strip(const tg_job *j)
{
    return tg_ceil_div(tg_max(j->p->n, 1), j->splits > 1 ? j->plan->threads : j->strips.n);
}

/* The few lines that many, which lie along k, are multiplied with. */
static int64_t few_of(const tg_job *j) { return j->turned == TG_TURNED_B ? j->p->m : j->p->n; }

/* Of one or two, cores whose L1 has twelve ways, as its size says, follow two vectors of the many
 * by themselves, from wherever. */
static int follows_all(const tg_job *j, const tg_limits *l)
{
    enum { TWELVE_WAYS = 48 << 10 };
    return l->l1 >= TWELVE_WAYS && !tg_has_large_l2(l) && few_of(j) <= 2 && !j->words;
}

/* So many of these at a time: of those that are near, two vectors, and of one line alone those
 * cores have loads to spare for three; from memory, what is well fetched side by side; fewer if
 * they share sets of L1. */
static int64_t turned_lines_of(const tg_job *j, const tg_limits *l)
{
    enum { STREAMS = 16 };
    const tg_problem *p = j->p;
    const int is_b = j->turned == TG_TURNED_B;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    const int64_t apart = (is_b ? p->b.col_stride : p->a.row_stride) * bytes;
    const int64_t vector = j->isa->kernels[tg_cpu_kind(p->a.type)]->turned_columns;
    const int is_far =
        (is_b ? j->reading.b_from : j->reading.a_from) == TG_IN_MEMORY && !follows_all(j, l);
    const int64_t streams = apart % PAGE == 0                   ? STREAMS / 2
                            : is_far || apart % (PAGE / 2) == 0 ? STREAMS
                                                                : 2 * STREAMS;
    if (j->stream_type || (is_far && few_of(j) > 2 && l->vec_bytes == 64))
        return vector;
    if (follows_all(j, l) && few_of(j) == 1 && apart % (PAGE / 2) && p->k >= vector &&
        l->vec_bytes == 64)
        return TG_TURNED_VECTORS * vector;
    return vector * tg_clamp(streams / vector, 1, TG_TURNED_NEAR);
}

/* If lines are fetched at all, so many words of one at a time. One thread with vectors of 64 bytes
 * waits for memory, unless all lines begin where pages do. With a large L2 it waits then too, as do
 * two threads, or any number if no cache holds the matrix; and short runs are best there. */
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
    const tg_fetching if_far = j->reading.is_near ? TG_FETCHES_NOTHING : TG_FETCHES_BELOW;
    if (j->p->flags & TG_PACKED) /* cores go on along panels by themselves */
        return TG_FETCHES_NOTHING;
    if (j->tile.inst.m > 1)
        return j->splits == 1 && columns_of_strip(j) * j->bytes < NARROW ? TG_FETCHES_BELOW
                                                                         : TG_FETCHES_NOTHING;
    if (tg_takes_words_in_rows(j->tile))
        return if_far;
    if (j->words || j->splits > 1)
        return TG_FETCHES_NOTHING;
    if (tg_may_go_down(j->p, j->tile, l) && m > TG_STREAM_TILES * j->tile.thread.m)
        return TG_FETCHES_LOTS;
    if (l->vec_bytes >= 64)
        return m > 2 ? if_far : TG_FETCHES_NOTHING;
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

/* How many rows of B a stream has at a time: sums come and go with each such lot. */
static int64_t stream_rows_of(const tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    if (tg_takes_words_in_rows(j->tile))
        return j->reading.is_near       ? TG_STREAMED_NEAR
               : p->m <= TG_TURNED_ROWS ? TG_STREAMED
               : p->m <= 8              ? 32
                                        : 64;
    if (j->words)
        return tg_max(TG_STREAMED_WORDS, j->tile.inst.k);
    if (p->flags & TG_B_PACKED)
        return j->slice;
    if (j->reading.fetching == TG_FETCHES_LOTS)
        return tg_round_up(tg_ceil_div(j->tile.block.n * (int64_t)tg_type_size(p->b.type), LINE),
                           TG_STREAMED);
    if (j->reading.is_near)
        return tg_near_rows(p, j->tile, l, j->bytes, j->stream_type != 0);
    if (p->m <= TG_TURNED_ROWS)
        return TG_STREAMED;
    return j->reading.fetching == TG_FETCHES_BELOW ? 4 * TG_STREAMED : 2 * TG_STREAMED;
}

/* A matrix of so many lines. */
static tg_distance distance_of(int64_t lines, int64_t k, const tg_input *x, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(x->type);
    if (tg_is_beyond_caches(lines, k, bytes, l))
        return TG_IN_MEMORY;
    return tg_exceeds(l->l2 / 2, lines, k, bytes) ? TG_IN_CACHES : TG_IN_L2;
}

/* Of B's columns, so many at a time: the sums of those stay near. */
static int64_t columns_at_once(const tg_job *j, const tg_limits *l)
{
    const tg_tile *t = &j->tile;
    if (j->reading.fetching == TG_FETCHES_LOTS)
        return columns_of_lot(j);
    if (j->reading.fetching == TG_FETCHES_BELOW) /* a page */
        return tg_round_down(PAGE / j->bytes, t->thread.n);
    const int64_t near = l->l2 / 4 / j->sum_bytes / tg_max(j->p->m, 1);
    return tg_max(t->block.n, tg_round_down(near, stream_panel(j)));
}

static void find_reading(tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    tg_reading *r = &j->reading;
    r->a_from = distance_of(p->m, p->k, &p->a, l);
    r->b_from = distance_of(p->n, p->k, &p->b, l);
    r->packs_late = j->kernel.grain && tg_packs_late(p, j->plan, l);
    r->fetches_late = tg_fetches_late(l);
    r->fetches_rows = j->kernel.grain && tg_fetches_rows(p, j->plan, l);
    r->fetches_first = j->kernel.grain && r->a_from != TG_IN_L2 && !r->fetches_rows &&
                       tg_can_fetch_rows(p, j->plan, l);
    if (j->is_streamed) {
        r->is_near = is_stream_near(j, l);
        r->fetching = fetching_of(j, l);
        r->goes_down = tg_may_go_down(p, j->tile, l) && r->fetching;
        j->tile.block.n = (int)columns_at_once(j, l);
        r->rows = stream_rows_of(j, l);
    }
    if (j->turned) {
        r->ahead = turned_run(j, l);
        r->lines = turned_lines_of(j, l);
    }
}

#endif
