/* SPDX-License-Identifier: Apache-2.0
 *
 * A few rows times a large matrix that lies in rows, which is read in streams: by one thread, or by
 * several that share its columns, or its blocks of k. The order of each sum is the loop nest's. */
#ifndef TG_STREAMS_H
#define TG_STREAMS_H

#include "direct.h"

/* A few rows of A times a B that is larger than L2: memory is the limit, and likes few long
 * streams. So B is read a few rows at a time, from one end of a block to the other, and the sums
 * wait:
 *
 *     B  +-------------------+
 *        | -> -> -> -> -> -> |  reading.rows of them, panel by panel
 *        | -> -> -> -> -> -> |  the next ones: each panel's sums go on where they were left
 *
 * An element's sum is made in the same order as in a block. Of types that kernels do not know, B is
 * converted as it is loaded, if that is in whole panels and no sum ends; else piece by piece, which
 * stay in L1. A C of such a type is kept beside it meanwhile.
 *
 * A packed B comes block of k by block, whose panels are read from end to end: for few rows,
 * several of them side by side. */
typedef struct stream {
    const tg_job *j;
    const team *t;
    tg_item item;
    void (*run)(const tg_step *);
    int copies_a, is_packed;
    int is_apart;                      /* are the sums of these k left for others to add? */
    int64_t a_bytes, b_bytes, c_bytes; /* of elements */
    int64_t panel;
    range all, cols; /* columns, and those of the block */
    char *c;         /* the block's C as kernels have it, */
    place in_c;      /* and as it is */
} stream;

static stream stream_of(const tg_job *j, const team *t, tg_item item, range cols, range ks)
{
    const tg_problem *p = j->p;
    const int is_block = tg_takes_words_in_rows(j->tile) || j->tile.inst.m > 1;
    return (stream){.j = j,
                    .t = t,
                    .item = item,
                    .run = j->words ? j->words->stream : j->kernel.run,
                    .copies_a =
                        j->converts || (p->a.col_stride != 1 && !j->words) || j->reading.goes_down,
                    .is_packed = (p->flags & TG_B_PACKED) != 0,
                    .is_apart = j->splits > 1 && (ks.begin > 0 || j->is_c_beside),
                    .a_bytes = (int64_t)tg_type_size(p->a.type),
                    .b_bytes = (int64_t)tg_type_size(p->b.type),
                    .c_bytes = (int64_t)tg_type_size(p->c.type),
                    .panel = is_block   ? j->tile.block.n
                             : j->words ? TG_STREAM_PANEL
                                        : j->tile.thread.n,
                    .all = cols};
}

/* What all its steps have in common. */
static tg_step step_of(const stream *x)
{
    const tg_job *j = x->j;
    const int is_in_lots = j->reading.fetching == TG_FETCHES_LOTS;
    return (tg_step){.a_col = 1,
                     .c_row = j->is_c_beside ? j->sums_row : j->p->c.row_stride,
                     .sums_row = x->is_apart ? j->apart_row : j->sums_row,
                     .coming_row = is_in_lots ? LINE : j->p->b.row_stride * x->b_bytes,
                     .coming_next = x->panel * x->b_bytes,
                     .b_next = x->panel,
                     .c_next = x->panel,
                     .sums_next = x->panel,
                     .coming_lines = is_in_lots ? 1 : 2,
                     .is_c_short = !j->is_c_beside && x->c_bytes < j->sum_bytes,
                     .is_near = j->reading.is_near,
                     .alpha = j->add ? 1 : j->p->alpha};
}

/* The next piece of k, up to where sums end. If B is converted, they do so in a short piece; those
 * of a packed B wait for it even if nothing is left. Do they end? */
static int begin_piece(const stream *x, int64_t k, tg_step *s)
{
    const tg_job *j = x->j;
    const int64_t left = tg_min(j->p->k - k, j->slice - k % j->slice);
    s->k = tg_min(j->reading.rows, left);
    if (x->is_packed && s->k >= TG_STREAMED)
        s->k = tg_round_down(s->k, TG_STREAMED);
    else if (j->stream_type && s->k == left && s->k > TG_STREAMED)
        s->k = tg_round_down(s->k - 1, TG_STREAMED);
    s->begins_with_sums = k % j->slice > 0;
    s->leaves_sums = x->is_apart || s->k < left || (x->is_packed && s->k % TG_STREAMED == 0);
    s->beta = j->add ? 0 : k < j->slice ? j->p->beta : 1;
    return s->k == left;
}

/* What is converted of A, for all panels. */
static void read_a(const stream *x, int64_t k, tg_step *s)
{
    const tg_problem *p = x->j->p;
    s->a = (const char *)x->item.a + k * p->a.col_stride * x->a_bytes;
    s->a_row = p->a.row_stride;
    if (!x->copies_a)
        return;
    x->j->isa->widen[p->a.type - 1](x->t->a, s->k, 1, s->a, p->a.row_stride, p->a.col_stride, p->m,
                                    s->k);
    s->a = x->t->a;
    s->a_row = s->k;
}

/* Where B's columns from n on are at k, and its strides. */
static void find_columns(const stream *x, int64_t k, int64_t n, tg_step *s)
{
    const tg_problem *p = x->j->p;
    const tg_tile *tile = &x->j->tile;
    const char *const b = x->item.b;
    if (!x->is_packed) {
        s->b_row = p->b.row_stride;
        s->b = b + (k * s->b_row + n) * x->b_bytes;
        return;
    }
    const int64_t line = tile->thread.n, block = tg_round_down(k, tile->block.k);
    const int64_t block_k = tg_min(tile->block.k, p->k - block);
    s->b_row = line;
    s->b_next = line * block_k;
    s->b = b + sizeof(tg_packed) +
           (block * tg_round_up(p->n, line) + n * block_k + (k - block) * line) * x->b_bytes;
}

/* Is it read where it is? */
static int read_b(const stream *x, int64_t k, int64_t n, tg_step *s)
{
    const tg_job *j = x->j;
    const int64_t line = j->tile.thread.n;
    find_columns(x, k, n, s);
    s->b_type = tg_is_stream(s, j->kernel.columns) ? j->stream_type : (tg_type)0;
    if (!j->converts || s->b_type)
        return 1;
    j->isa->widen[j->p->b.type - 1](x->t->b, line, 1, s->b, s->b_row, 1, s->k, s->columns);
    s->b = x->t->b;
    s->b_row = line;
    return 0;
}

/* A C that kernels cannot have as it is waits beside it, */
static void begin_c(stream *x)
{
    const tg_job *j = x->j;
    const tg_problem *p = j->p;
    x->in_c = moved(c_at(j, x->item.c), 0, x->cols.begin);
    x->c = j->is_c_beside ? x->t->sums + j->plane : x->in_c.at;
    if (j->is_c_beside && !x->is_apart && !j->add && p->beta != 0)
        take_c(&x->in_c, x->c, j->sums_row, p->m, x->cols.end - x->cols.begin);
}

/* and has its sums then, of a slice of k or of all of it. */
static void finish_c(const stream *x, int is_first, int is_last)
{
    const tg_job *j = x->j;
    if (j->add || (is_last && j->is_c_beside))
        give_c(j, &x->in_c, x->c, j->sums_row, j->p->m, x->cols.end - x->cols.begin,
               is_first ? j->p->beta : 1);
}

/* The same columns for all rows, a tile of them at a time: what was read of B is in L1 or L2 then.
 * Each fetches some lines of what comes, for each of k. */
static void run_rows(const tg_job *j, void (*run)(const tg_step *), tg_step s, int64_t b_bytes)
{
    const char *const coming = s.coming;
    const int64_t lines = tg_ceil_div(j->tile.thread.n * b_bytes, LINE);
    const int64_t share = tg_ceil_div(lines, j->rows.tall + j->rows.low);
    int64_t fetched = 0;
    for (int64_t left = j->rows.tall + j->rows.low; left > 0; left--, fetched += share) {
        s.rows = j->rows.height - (left <= j->rows.low);
        s.coming = coming && fetched < lines ? coming + fetched * LINE : NULL;
        s.coming_lines = tg_min(share, lines - fetched);
        run(&s);
        s.a = (const char *)s.a + s.rows * s.a_row * j->bytes;
        s.c = (char *)s.c + s.rows * s.c_row * j->sum_bytes;
        s.sums = (char *)s.sums + s.rows * s.sums_row * j->sum_bytes;
    }
}

/* What tiles fetch one after the other, one for each that is left. Three or four of them fetch the
 * lot of rows that comes: each a row of it from one end of the block to the other, a line for each
 * of k; a core that sees one read goes on along it by itself. For that two are too few: they fetch
 * the panel below this one, each half of the lines that its rows have. */
typedef struct coming {
    const char *at;
    int64_t left, next;
} coming;

/* All tiles of rows with one panel of B, which stays in L1, as their sums do side by side. */
static void run_down(const tg_job *j, tg_step s, coming *x)
{
    const int64_t tiles[2] = {j->rows.tall, j->rows.low};
    s.b_next = 0;
    s.sums_row = j->tile.thread.n;
    s.coming_next = x->next;
    for (int low = 0; low < 2 && tiles[low] > 0; low++) {
        s.coming = x->left > 0 ? x->at : NULL;
        go_down(&s, tiles[low], j->rows.height - low);
        s.sums_next = s.rows * s.sums_row;
        j->kernel.run(&s);
        s.a = (const char *)s.a + tiles[low] * s.a_next * j->bytes;
        s.c = (char *)s.c + tiles[low] * s.c_next * j->sum_bytes;
        s.sums = (char *)s.sums + tiles[low] * s.sums_next * j->sum_bytes;
        if (s.coming)
            x->at += tiles[low] * x->next;
        x->left -= tiles[low];
    }
}

static coming find_lot(const stream *x, int64_t n, int64_t k)
{
    const tg_job *j = x->j;
    const int64_t row = j->p->b.row_stride * x->b_bytes;
    const int64_t left = n < x->all.end ? tg_min(j->reading.rows, j->p->k - k) : 0;
    return (coming){
        .at = (const char *)x->item.b + k * row + n * x->b_bytes, .left = left, .next = row};
}

/* All columns of the block with a piece of k, panel by panel, or as many as the kernel runs on to.
 */
static void run_piece(const stream *x, int64_t k, char *sums, tg_step *s)
{
    enum { ALONG = 512 }; /* bytes */
    const tg_job *j = x->j;
    const tg_problem *p = j->p;
    const int64_t c_bytes = s->is_c_short ? x->c_bytes : j->sum_bytes;
    const int is_one_tile = j->rows.tall + j->rows.low == 1;
    const int runs_on = !j->words && !j->reading.goes_down && (is_one_tile || !x->is_packed);
    const int is_in_lots = j->reading.fetching == TG_FETCHES_LOTS;
    coming lot = {0};
    if (is_in_lots)
        lot = k + s->k < p->k ? find_lot(x, x->cols.begin, k + s->k) : find_lot(x, x->cols.end, 0);
    for (int64_t n = x->cols.begin; n < x->cols.end; n += x->panel * (1 + s->more)) {
        const int64_t left = x->cols.end - n, done = n - x->cols.begin;
        s->columns = (int)(x->is_packed && s->leaves_sums ? x->panel : tg_min(x->panel, left));
        const int is_there = read_b(x, k, n, s);
        s->more = is_there && runs_on ? tg_max(0, left / x->panel - 1) : 0;
        s->c = x->c + done * c_bytes;
        s->sums = sums + done * (j->reading.goes_down ? p->m : 1) * j->sum_bytes;
        s->coming = NULL;
        if (j->reading.fetching == TG_FETCHES_ALONG && is_there)
            s->coming = (const char *)s->b + ALONG;
        if (j->reading.fetching == TG_FETCHES_BELOW && is_there && k + 2 * s->k <= p->k)
            s->coming = (const char *)s->b + s->k * s->coming_row;
        coming below = {.at = s->coming, .left = s->coming ? 2 : 0, .next = 2 * LINE};
        if (j->words) {
            s->rows = (int)p->m;
            x->run(s);
        } else if (j->reading.goes_down) {
            run_down(j, *s, is_in_lots ? &lot : &below);
        } else {
            run_rows(j, x->run, *s, x->b_bytes);
        }
    }
}

/* Sums that were left are all that C waits for. */
static void take_sums(const stream *x, char *sums, tg_step s)
{
    s.k = 0;
    s.begins_with_sums = 1;
    s.leaves_sums = 0;
    s.coming = NULL;
    for (int64_t n = x->cols.begin; n < x->cols.end; n += x->panel * (1 + s.more)) {
        const int64_t left = x->cols.end - n, done = n - x->cols.begin;
        s.columns = (int)tg_min(x->panel, left);
        s.more = tg_max(0, left / x->panel - 1);
        s.c = x->c + done * x->j->sum_bytes;
        s.sums = sums + done * x->j->sum_bytes;
        run_rows(x->j, x->run, s, x->b_bytes);
    }
}

/* Where the sums of a block of k are: not of the first, unless C waits beside. */
static char *sums_apart(const tg_job *j, const team *t, int64_t block)
{
    return t->apart + (block - !j->is_c_beside) * j->apart_bytes;
}

/* Over all of k, or over a block of it whose sums are made apart. */
static void multiply_streaming(const tg_job *j, const team *t, tg_item item, range cols, range ks)
{
    stream x = stream_of(j, t, item, cols, ks);
    tg_step s = step_of(&x);
    for (int64_t n = cols.begin; n < cols.end; n += j->tile.block.n) {
        x.cols = (range){n, tg_min(cols.end, n + j->tile.block.n)};
        begin_c(&x);
        for (int64_t k = ks.begin; k < ks.end; k += s.k) {
            char *const sums =
                x.is_apart ? sums_apart(j, t, k / j->slice) + n * j->sum_bytes : t->sums;
            const int ends = begin_piece(&x, k, &s);
            read_a(&x, k, &s);
            run_piece(&x, k, sums, &s);
            if (!ends || x.is_apart)
                continue;
            if (s.leaves_sums)
                take_sums(&x, sums, s);
            finish_c(&x, k < j->slice, k + s.k == j->p->k);
        }
    }
}

/* C takes the sums of blocks of k that were made apart, in their order. */
static void add_sums(const tg_job *j, const team *t, tg_item item, range cols)
{
    stream x = stream_of(j, t, item, cols, (range){0, j->p->k});
    tg_step s = step_of(&x);
    x.panel = j->tile.thread.n;
    x.is_apart = 0;
    s.sums_row = j->apart_row;
    for (int64_t n = cols.begin; n < cols.end; n += x.panel) {
        x.cols = (range){n, tg_min(cols.end, n + x.panel)};
        begin_c(&x);
        s.a = s.b = x.c; /* no k of them */
        for (int64_t block = !j->is_c_beside; block < j->splits; block++) {
            s.beta = block == 0 ? j->p->beta : 1;
            take_sums(&x, sums_apart(j, t, block) + n * j->sum_bytes, s);
        }
        finish_c(&x, 0, 1);
    }
}

/* Blocks of k, one after the other, are a long row of panels, of which each thread has its share:
 *
 *     block 0  | 0         | 1         | 2 |
 *     block 1  | 2     | 3         | 4     |     three blocks, seven threads
 *     block 2  | 4 | 5         | 6         |
 */
static void multiply_splits(const tg_job *j, const team *t, tg_item item, int me, int threads)
{
    const tg_problem *p = j->p;
    const int64_t line = j->tile.thread.n, panels = tg_ceil_div(p->n, line);
    const int64_t all = j->splits * panels, end = (me + 1) * all / threads;
    for (int64_t at = me * all / threads, next; at < end; at = next) {
        const int64_t block = at / panels, before = block * panels;
        next = tg_min(end, before + panels);
        const range cols = {(at - before) * line, tg_min(p->n, (next - before) * line)};
        const range ks = {block * j->slice, tg_min(p->k, (block + 1) * j->slice)};
        multiply_streaming(j, t, item, cols, ks);
    }
    wait_for(&(team){.size = threads});
    add_sums(j, t, item, strip_at(me, threads, panels, (int)line, p->n));
}

#endif
