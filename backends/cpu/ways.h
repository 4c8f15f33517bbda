/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the ways of direct.h, streams.h and loops.h takes a problem: the rules are in
 * common/way.h, but for packed panels. */
#ifndef TG_WAYS_H
#define TG_WAYS_H

#include "loops.h"
#include "streams.h"

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

/* The loop nest takes what none of the others does. */
static void find_way(tg_job *j, const tg_limits *l)
{
    const tg_problem *p = j->p;
    const tg_able able = {.grain = j->kernel.grain,
                          .reads_short = j->isa->streams_short,
                          .turns_words = j->words && j->words->lines,
                          .vector = j->isa->kernels[tg_cpu_kind(p->a.type)]->turned_columns,
                          .slice = j->slice};
    const tg_way way = tg_way_of(p, j->plan, l, &able);
    j->turned = way.turned;
    j->is_direct = way.is_direct;
    j->is_flat = way.is_flat;
    j->copies_b = way.copies_b;
    j->widens = way.widens;
    j->is_streamed = way.is_streamed;
    if (p->flags & TG_B_PACKED)
        j->is_streamed = j->kernel.grain && p->n % j->kernel.grain == 0 && streams_panels(j, l);
    j->splits = j->is_streamed ? j->plan->splits : 1;
}

#endif
