/* SPDX-License-Identifier: Apache-2.0
 *
 * One operand's part of a block, packed in panels or read where it is, and who packs it; and where
 * C is, or waits beside itself. */
#ifndef TG_STAGE_H
#define TG_STAGE_H

#include <string.h>

#include "cpu.h"
#include "way.h"

typedef struct range {
    int64_t begin, end;
} range;

enum { LINE = 64, PAGE = 4096 };

/* Who works on a cell. */
typedef struct team {
    int me, size;
    char *a, *b;  /* staged [panel][block.k][thread.m] and [panel][block.k][thread.n] */
    char *sums;   /* of the cell's rows and a block's columns */
    char *apart;  /* of all C, for each block of k but the first, if those are summed apart */
    char *beside; /* a row of thread tiles of C, for what is ragged or of another type */
    char *taken;  /* of each thread's share of a block, so many pieces */
} team;

/* One operand's part of a block. line is thread.m rows of A, or thread.n columns of B. The kernel
 * takes whole grains of it from a panel, and whole grain_there from the matrix. */
typedef struct staged {
    const char *data; /* the matrix: element (line 0, k 0) of the batch item */
    int64_t bytes;    /* of an element there */
    tg_copy *copy;    /* from there */
    int64_t line_stride, k_stride, line, grain, grain_there, k;
    range lines, ks;
    char *panels;
    int in_place, k_inner; /* k_inner: packed as [line][k], not [k][line] */
    tg_distance from;
    const char *packed;   /* all panels, block of k by block of k; NULL: they are to be staged */
    int64_t all_lines;    /* of the matrix, in whole panels */
    int is_late;          /* the kernel packs them, with the first row of tiles */
    int is_one;           /* and each has done when the next comes, which takes its place */
    const char *coming;   /* the block that is multiplied next; NULL: it is not fetched now */
    int64_t coming_bytes; /* of its rows */
    int64_t coming_tiles; /* that fetch a strip of it */
} staged;

/* One of so many strips of all rows, or columns, which are so many pieces. */
static range strip_at(int64_t strip, int strips, int64_t pieces, int grain, int64_t all)
{
    return (range){strip * pieces / strips * grain,
                   tg_min(all, (strip + 1) * pieces / strips * grain)};
}

static void wait_for(const team *t)
{
    (void)t;
#ifdef _OPENMP
    if (t->size > 1) {
#pragma omp barrier
    }
#endif
}

enum { TAKEN_BYTES = 64 }; /* for each thread: a line */

/* While a block is multiplied, the count of the next one's pieces is put back. */
static int64_t *taken_of(const team *t, int64_t block, int whose)
{
    return (int64_t *)(void *)(t->taken + whose * TAKEN_BYTES) + block % 2;
}

/* The next piece of a thread's share of a block. */
static int64_t take(const team *t, int64_t block, int whose)
{
    int64_t *count = taken_of(t, block, whose), piece;
#ifdef _OPENMP
#pragma omp atomic capture
#endif
    piece = (*count)++;
    return piece;
}

static void put_back(const team *t, int64_t block)
{
    int64_t *count = taken_of(t, block, t->me);
#ifdef _OPENMP
#pragma omp atomic write
#endif
    *count = 0;
}

/* Can the micro-kernel read this panel where it is? */
static int is_in_place(const staged *s, int64_t panel)
{
    const int64_t left = s->lines.end - s->lines.begin - panel * s->line;
    return s->in_place && (left >= s->line || left % s->grain_there == 0);
}

/* The k of a block's packed panels, and where those are. */
static int64_t packed_k(const tg_job *j, const staged *s)
{
    return tg_round_up(s->ks.end - s->ks.begin, j->tile.inst.k);
}

static char *panels_in(const tg_job *j, const staged *s, const char *packed)
{
    return (char *)packed +
           (s->ks.begin * s->all_lines + s->lines.begin * packed_k(j, s)) * s->bytes;
}

static const char *matrix_at(const tg_job *j, const staged *s, int64_t panel)
{
    if (s->packed)
        return panels_in(j, s, s->packed) + panel * s->line * packed_k(j, s) * s->bytes;
    return s->data +
           ((s->lines.begin + panel * s->line) * s->line_stride + s->ks.begin * s->k_stride) *
               s->bytes;
}

static char *panel_at(const tg_job *j, const staged *s, int64_t panel)
{
    return s->panels + (s->is_one ? 0 : panel * s->line * s->k * j->bytes);
}

/* Packs k_count of a panel's k, from k_begin on. Lines that it lacks are zeros, which those who
 * make words write themselves. */
static void pack(const tg_job *j, const staged *s, int64_t panel, int64_t k_begin, int64_t k_count)
{
    const int64_t lines = tg_min(s->line, s->lines.end - s->lines.begin - panel * s->line);
    const int64_t line_to = s->k_inner ? s->k : 1, k_to = s->k_inner ? 1 : s->line;
    char *to = panel_at(j, s, panel) + k_begin * k_to * j->bytes;
    const char *from = matrix_at(j, s, panel) + k_begin * s->k_stride * s->bytes;
    if (is_in_place(s, panel))
        return;
    if (lines < s->line && k_begin == 0 && (!j->words || s->k_inner))
        memset(to, 0, (size_t)(s->line * s->k * j->bytes));
    if (s->k_inner)
        s->copy(to, line_to, k_to, from, s->line_stride, s->k_stride, lines, k_count);
    else
        s->copy(to, k_to, line_to, from, s->k_stride, s->line_stride, k_count, lines);
}

/* Each thread packs its share of the panels. Where a row of the matrix runs through all of them, a
 * few rows at a time, so that memory is read along its rows: no more of them than a core follows by
 * itself. It does not follow so many runs of one line each: the lines of panels some way ahead are
 * fetched, to L2: of rows that share a set of L1, it would not have room for all. */
static void stage(const tg_job *j, const team *t, const staged *s)
{
    enum { LINES_AHEAD = 64 };
    const int64_t panels = tg_ceil_div(s->lines.end - s->lines.begin, s->line);
    const int64_t begin = t->me * panels / t->size, own = (t->me + 1) * panels / t->size - begin;
    const int64_t k = s->ks.end - s->ks.begin, k_bytes = s->k_stride * s->bytes;
    const int in_runs = s->line_stride == 1 && !s->packed;
    const int fetches =
        in_runs && s->line * s->bytes == LINE && !s->in_place && s->from != TG_IN_L2;
    const int64_t few = in_runs ? tg_max(s->from == TG_IN_MEMORY ? 4 : 16, j->tile.inst.k) : k;
    const int64_t ahead = LINES_AHEAD / few;
    for (int64_t k_begin = 0; k_begin < k; k_begin += few)
        for (int64_t panel = 0; panel < own; panel++) {
            const int64_t soon = panel + ahead, k_soon = k_begin + soon / own * few;
            const char *const at = matrix_at(j, s, begin + soon % own);
            for (int64_t x = k_soon; fetches && x < tg_min(k, k_soon + few); x++)
                __builtin_prefetch(at + x * k_bytes, 0, 2);
            pack(j, s, begin + panel, k_begin, tg_min(few, k - k_begin));
        }
}

/* Are packed panels what kernels take? Those of other types are staged like a matrix. */
static int is_staged(const tg_job *j, const staged *s) { return s->packed && s->bytes == j->bytes; }

static void have_panels(const tg_job *j, const team *t, staged *s)
{
    if (is_staged(j, s)) {
        s->k = packed_k(j, s);
        s->panels = panels_in(j, s, s->packed);
        return;
    }
    if (s->packed) {
        s->line_stride = s->k_inner ? packed_k(j, s) : 1;
        s->k_stride = s->k_inner ? 1 : s->line;
    }
    stage(j, t, s);
}

/* The part of a step that comes from an operand: a pointer and two strides. */
static const void *read_panel(const tg_job *j, const staged *s, int64_t panel, int64_t k_offset,
                              int64_t *line_stride, int64_t *k_stride)
{
    if (is_in_place(s, panel)) {
        *line_stride = s->line_stride;
        *k_stride = s->k_stride;
        return matrix_at(j, s, panel) + k_offset * s->k_stride * s->bytes;
    }
    *line_stride = s->k_inner ? s->k : 1;
    *k_stride = s->k_inner ? 1 : s->line;
    return panel_at(j, s, panel) + k_offset * *k_stride * j->bytes;
}

/* How many of the columns before `end` are narrow: none if fewer than LEAST rows lie above
 * rows_end, since the kernel reads so many. */
static int64_t narrow_of(const tg_job *j, int64_t end, int64_t rows_end)
{
    enum { LEAST = 4 };
    return end == j->p->n && rows_end >= LEAST ? j->narrow : 0;
}

static tg_item item_at(const tg_job *j, int64_t x)
{
    const tg_problem *p = j->p;
    if (j->items)
        return j->items[x];
    return (tg_item){(const char *)p->a.data + x * j->a_item,
                     (const char *)p->b.data + x * j->b_item, (char *)p->c.data + x * j->c_item};
}

/* A or B of an item, staged at panels if it is not packed. Kernels take B across k, in vectors, and
 * A too in TG_OUTER_T; else A along k, TG_OUTER with stride 1. */
static staged operand(const tg_job *j, tg_flag which, const void *data, char *panels)
{
    const tg_problem *p = j->p;
    const tg_tile *tile = &j->tile;
    const int is_b = which == TG_B_PACKED, is_packed = (p->flags & which) != 0;
    const tg_input *x = is_b ? &p->b : &p->a;
    const int64_t line_stride = is_b ? x->col_stride : x->row_stride;
    const int64_t k_stride = is_b ? x->row_stride : x->col_stride;
    const int64_t line = is_b ? tile->thread.n : tile->thread.m;
    const int k_inner = !is_b && tile->form != TG_OUTER_T;
    tg_copy *const copy = j->words ? j->words->copy[is_b] : j->isa->widen[x->type - 1];
    const int64_t grain = j->kernel.grain ? (is_b ? j->kernel.grain : 1) : line;
    return (staged){.data = data,
                    .bytes = (int64_t)tg_type_size(x->type),
                    .copy = copy,
                    .line_stride = line_stride,
                    .k_stride = k_stride,
                    .line = line,
                    .grain = grain,
                    .grain_there = j->words && tile->inst.m > 1 ? line : grain,
                    .k = tile->block.k,
                    .panels = panels,
                    .k_inner = k_inner,
                    .from = is_b ? j->reading.b_from : j->reading.a_from,
                    .in_place = !is_packed && tg_is_read_there(p, j->plan, is_b),
                    .packed = is_packed ? (const char *)data + sizeof(tg_packed) : NULL,
                    .all_lines = tg_round_up(is_b ? p->n : p->m, line)};
}

/* C, or the sums beside it: element (0, 0) of what is looked at, and the ways to a tile of the
 * kernel's elements and from it. */
typedef struct place {
    char *at;
    int64_t row, col, bytes;
    tg_copy *load, *store;
} place;

static place c_at(const tg_job *j, char *at)
{
    const tg_output *c = &j->p->c;
    return (place){.at = at,
                   .row = c->row_stride,
                   .col = c->col_stride,
                   .bytes = (int64_t)tg_type_size(c->type),
                   .load = j->isa->widen[c->type - 1],
                   .store = j->isa->narrow[c->type - 1]};
}

static place moved(place p, int64_t row, int64_t col)
{
    p.at += (row * p.row + col * p.col) * p.bytes;
    return p;
}

/* A C that kernels cannot have as it is (ragged, of another type, in columns) is taken to a tile
 * beside it, if it counts, and given what has become of that. Integers are added there: kernels
 * make their sums alone. */
static void take_c(const place *c, void *to, int64_t to_row, int64_t rows, int64_t cols)
{
    c->load(to, to_row, 1, c->at, c->row, c->col, rows, cols);
}

static void give_c(const tg_job *j, const place *c, const void *from, int64_t from_row,
                   int64_t rows, int64_t cols, double beta)
{
    if (j->add)
        j->add(c->at, c->row, c->col, from, from_row, rows, cols, j->p->alpha, beta);
    else
        c->store(c->at, c->row, c->col, from, from_row, 1, rows, cols);
}

/* Sets how far ahead B is fetched. Nothing from behind the panel: that may be no memory at all,
 * which takes long to see. */
static void set_fetching(tg_step *s)
{
    s->steps_that_fetch = tg_max(0, s->k - TG_FETCH_STEPS);
    s->ahead = s->steps_that_fetch ? TG_FETCH_STEPS * s->b_row : 0;
}

#endif
