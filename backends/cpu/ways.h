/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the ways of direct.h, streams.h and loops.h takes a problem. */
#ifndef TG_WAYS_H
#define TG_WAYS_H

#include "loops.h"
#include "streams.h"

/* Can the kernel read and write all of it where it is, columns as ragged as they are, or B copied?
 */
static int is_in_place_whole(const tg_job *j)
{
    const tg_problem *p = j->p;
    return j->plan->a_in_place && (j->plan->b_in_place || j->copies_b) && p->c.type == p->a.type &&
           (j->tile.form == TG_OUTER ? p->a.col_stride == 1 : p->a.row_stride == 1);
}

/* Do few rows read a B panel by panel that is not near? Kernels fetch it then, and C. */
static int is_b_for_few(const tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    return p->m <= tg_stream_rows(p, j->plan, l) && tg_reads_panels(p, j->plan, l) &&
           tg_exceeds(l->l2 / 4, p->n, p->k, j->bytes);
}

/* Is it so small, or flat, that all columns are gone through once, and all rows with each panel of
 * them? */
static int is_direct(const tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const tg_tile *t = &j->tile;
    const int64_t quarter = l->l2 / 4 / j->bytes;
    const int is_a_near = p->m <= t->block.m || p->n <= t->thread.n || p->k <= quarter / p->m;
    const int is_b_near = p->n <= t->warp.n || p->k <= quarter / p->n || is_b_for_few(j, l);
    return (p->b.col_stride == 1 || j->copies_b) && p->c.col_stride == 1 &&
           j->turned != TG_TURNED_A && is_in_place_whole(j) &&
           (j->is_flat || (is_a_near && is_b_near));
}

/* Few rows and a packed B: are its panels read as streams? They are if they are converted on their
 * way, which is done for each tile of rows; or if they are so narrow that several are read side by
 * side. */
static int streams_panels(const tg_job *j, const tg_limits *l)
{
    const tg_tile *t = &j->tile;
    const int64_t sums = j->p->m * t->thread.n / t->vec;
    const int is_woven = !j->converts && TG_SIDE_BY_SIDE(sums, l->vec_bytes, l->registers) > 1;
    const int64_t tiles = j->stream_type ? (l->vec_bytes == 32 ? 6 : 2) : is_woven;
    return !j->words && t->form == TG_OUTER && t->stages == 1 && j->slice == t->block.k &&
           j->kernel.columns == t->thread.n && j->p->m <= tg_min(tiles * t->thread.m, t->block.m);
}

/* Are there few rows, and columns that are read in streams, where they are or converted? Of A there
 * is room for what is copied. */
static int is_streamed(const tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    if (p->flags & TG_B_PACKED)
        return streams_panels(j, l);
    if (j->is_direct || (p->flags & TG_PACKED) || p->b.col_stride != 1 || j->turned == TG_TURNED_A)
        return 0;
    if (j->words)
        return tg_streams_words(p, j->tile, l);
    const int is_read = !j->converts && j->plan->b_in_place && p->c.type == p->a.type;
    return j->tile.form == TG_OUTER && p->m <= tg_stream_rows(p, j->plan, l) &&
           p->m <= j->tile.block.m &&
           (j->tile.stages == 1 ? j->converts || is_read : is_in_place_whole(j));
}

/* Are there a few lines, and can they be multiplied so? */
static tg_turned turned_of(const tg_job *j)
{
    const tg_problem *p = j->p;
    if (j->words)
        return j->words->lines && tg_turns_words(p, j->tile) ? TG_TURNED_B : TG_NOT_TURNED;
    const int is_read = j->stream_type || !j->converts;
    const int in_word = j->stream_type ? 4 / (int)tg_type_size(j->stream_type) : 1;
    const int parts_words = j->slice % in_word && p->k > j->slice;
    const int takes = is_read && !parts_words && j->tile.form == TG_OUTER && j->tile.stages == 1 &&
                      j->tile.slices == 1 && j->kernel.grain;
    return takes
               ? tg_turned_of(p, j->isa->kernels[tg_cpu_kind(p->a.type)]->turned_columns, j->slice)
               : TG_NOT_TURNED;
}

/* The loop nest takes what none of the others does. */
static void find_way(tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const tg_tile *t = &j->tile;
    const int is_one_pass = t->stages == 1 && t->slices == 1;
    const int takes_all = j->kernel.grain && p->n % j->kernel.grain == 0;
    const int is_ragged = takes_all && !(p->flags & TG_PACKED);
    j->is_flat = p->k <= TG_FLAT_K && p->n > t->thread.n;
    j->turned = turned_of(j);
    j->copies_b = is_one_pass && !j->turned && tg_copies_b(p, j->plan, l);
    j->widens = is_ragged && is_one_pass && tg_widens(p, l) && !j->words && !j->turned &&
                t->form == TG_OUTER;
    j->is_direct = j->widens || (is_ragged && is_direct(j, l));
    j->copies_b = j->copies_b && j->is_direct;
    j->is_streamed = takes_all && is_streamed(j, l);
    j->splits = j->is_streamed ? j->plan->splits : 1;
}

#endif
