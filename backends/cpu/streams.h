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
 *        | -> -> -> -> -> -> |  stream_rows of them, panel by panel
 *        | -> -> -> -> -> -> |  the next ones: each panel's sums go on where they were left
 *
 * An element's sum is made in the same order as in a block. Of types that kernels do not know, B is
 * converted as it is loaded, if that is in whole panels and no sum ends; else piece by piece, which
 * stay in L1. A C of such a type is kept beside it meanwhile.
 *
 * A packed B comes block of k by block, whose panels are read from end to end: for few rows,
 * several of them side by side. */
typedef struct stream {
    int copies_a;
    int64_t a_bytes, b_bytes, c_bytes; /* of elements */
    char *c, *beside;                  /* C of the block, and where its sums of f32 wait */
    int64_t columns;
} stream;

/* What is converted of A, for all panels. */
static void read_a(const tg_job *j, const team *t, const stream *x, const char *a, int64_t k,
                   tg_step *s)
{
    const tg_problem *p = j->p;
    s->a = a + k * p->a.col_stride * x->a_bytes;
    s->a_row = p->a.row_stride;
    if (!x->copies_a)
        return;
    j->isa->widen[p->a.type - 1](t->a, s->k, 1, s->a, p->a.row_stride, p->a.col_stride, p->m, s->k);
    s->a = t->a;
    s->a_row = s->k;
}

/* Where B's columns from n on are at k, and its strides. */
static void find_columns(const tg_job *j, const stream *x, const char *b, int64_t k, int64_t n,
                         tg_step *s)
{
    const tg_problem *p = j->p;
    const int64_t line = j->tile.thread.n, block = tg_round_down(k, j->tile.block.k);
    const int64_t block_k = tg_min(j->tile.block.k, p->k - block);
    s->b_row = p->b.row_stride;
    s->b = b + (k * s->b_row + n) * x->b_bytes;
    if (!(p->flags & TG_B_PACKED))
        return;
    s->b_row = line;
    s->b_next = line * block_k;
    s->b = b + sizeof(tg_packed) +
           (block * tg_round_up(p->n, line) + n * block_k + (k - block) * line) * x->b_bytes;
}

/* Is it read where it is? */
static int read_b(const tg_job *j, const team *t, const stream *x, const char *b, int64_t k,
                  int64_t n, tg_step *s)
{
    const int64_t line = j->tile.thread.n;
    find_columns(j, x, b, k, n, s);
    s->b_type = tg_is_stream(s, j->kernel.columns) ? j->stream_type : (tg_type)0;
    if (!j->converts || s->b_type)
        return 1;
    j->isa->widen[j->p->b.type - 1](t->b, line, 1, s->b, s->b_row, 1, s->k, s->columns);
    s->b = t->b;
    s->b_row = line;
    return 0;
}

/* C has its sums, of a slice of k or of all of it, if they waited beside it. */
static void finish_slice(const tg_job *j, const stream *x, int is_first, int is_last)
{
    const tg_problem *p = j->p;
    if (j->add)
        j->add(x->c, p->c.row_stride, p->c.col_stride, (const float *)(const void *)x->beside,
               j->sums_row, p->m, x->columns, p->alpha, is_first ? p->beta : 1);
    else if (is_last && j->is_c_beside)
        j->isa->narrow[p->c.type - 1](x->c, p->c.row_stride, p->c.col_stride, x->beside,
                                      j->sums_row, 1, p->m, x->columns);
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

static coming find_lot(const tg_job *j, tg_item item, range cols, int64_t n, int64_t k)
{
    const tg_input *b = &j->p->b;
    const int64_t bytes = (int64_t)tg_type_size(b->type), row = b->row_stride * bytes;
    const int64_t left = n < cols.end ? tg_min(j->stream_rows, j->p->k - k) : 0;
    return (coming){.at = (const char *)item.b + k * row + n * bytes, .left = left, .next = row};
}

/* Sums that were left are all that C waits for. */
static void take_sums(const tg_job *j, void (*run)(const tg_step *), tg_step s, char *c, char *sums,
                      int64_t columns)
{
    const int64_t panel = j->tile.thread.n;
    s.k = 0;
    s.begins_with_sums = 1;
    s.leaves_sums = 0;
    s.coming = NULL;
    for (int64_t at = 0; at < columns; at += panel * (1 + s.more)) {
        s.columns = (int)tg_min(panel, columns - at);
        s.more = tg_max(0, (columns - at) / panel - 1);
        s.c = c + at * j->sum_bytes;
        s.sums = sums + at * j->sum_bytes;
        run_rows(j, run, s, 1);
    }
}

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

/* Where the sums of a block of k are: not of the first, unless C waits beside. */
static char *sums_apart(const tg_job *j, const team *t, int64_t block)
{
    return t->apart + (block - !j->is_c_beside) * j->apart_bytes;
}

/* Over all of k, or over a block of it whose sums are made apart. */
static void multiply_streaming(const tg_job *j, const team *t, tg_item item, range cols, range ks)
{
    enum { ALONG = 512 }; /* bytes */
    const int is_apart = j->splits > 1 && (ks.begin > 0 || j->is_c_beside);
    const int is_in_lots = j->fetching == TG_FETCHES_LOTS;
    const tg_problem *p = j->p;
    const int is_packed = (p->flags & TG_B_PACKED) != 0;
    const int64_t bytes = j->sum_bytes, block_k = j->slice;
    const int in_rows = tg_takes_words_in_rows(j->tile), takes_all = in_rows || j->tile.inst.m > 1;
    const int64_t rows_at_once = is_packed              ? block_k
                                 : j->words && !in_rows ? tg_max(TG_STREAMED_WORDS, j->tile.inst.k)
                                                        : j->stream_rows;
    const int64_t panel = takes_all  ? j->tile.block.n
                          : j->words ? TG_STREAM_PANEL
                                     : j->tile.thread.n;
    void (*const run)(const tg_step *) = j->words ? j->words->stream : j->kernel.run;
    stream x = {.a_bytes = (int64_t)tg_type_size(p->a.type),
                .b_bytes = (int64_t)tg_type_size(p->b.type),
                .c_bytes = (int64_t)tg_type_size(p->c.type),
                .beside = t->sums + j->plane};
    x.copies_a = j->converts || (p->a.col_stride != 1 && !j->words) || j->goes_down;
    tg_step s = {.a_col = 1,
                 .c_row = j->is_c_beside ? j->sums_row : p->c.row_stride,
                 .sums_row = is_apart ? j->apart_row : j->sums_row,
                 .coming_row = is_in_lots ? LINE : p->b.row_stride * x.b_bytes,
                 .coming_next = panel * x.b_bytes,
                 .b_next = panel,
                 .c_next = panel,
                 .sums_next = panel,
                 .coming_lines = is_in_lots ? 1 : 2,
                 .is_c_short = !j->is_c_beside && x.c_bytes < bytes,
                 .is_near = j->is_near,
                 .alpha = j->add ? 1 : p->alpha};
    for (int64_t n = cols.begin; n < cols.end; n += j->tile.block.n) {
        const int64_t n_end = tg_min(cols.end, n + j->tile.block.n);
        x.columns = n_end - n;
        x.c = (char *)item.c + n * p->c.col_stride * x.c_bytes;
        if (j->is_c_beside && !is_apart && !j->add && p->beta != 0)
            j->isa->widen[p->c.type - 1](x.beside, j->sums_row, 1, x.c, p->c.row_stride,
                                         p->c.col_stride, p->m, x.columns);
        char *const c = j->is_c_beside ? x.beside : x.c;
        for (int64_t k = ks.begin; k < ks.end; k += s.k) {
            const int64_t k_end = tg_min(p->k, tg_round_down(k, block_k) + block_k);
            char *const sums = is_apart ? sums_apart(j, t, k / block_k) + n * bytes : t->sums;
            s.k = tg_min(rows_at_once, k_end - k);
            if (is_packed && s.k >= TG_STREAMED)
                s.k = tg_round_down(s.k, TG_STREAMED);
            else if (j->stream_type && k + s.k == k_end && s.k > TG_STREAMED)
                s.k = tg_round_down(s.k - 1, TG_STREAMED); /* a sum ends in a short piece */
            s.begins_with_sums = k % block_k > 0;
            const int ends = k + s.k == k_end;
            s.leaves_sums = is_apart || !ends || (is_packed && s.k % TG_STREAMED == 0);
            s.beta = j->add ? 0 : k < block_k ? p->beta : 1;
            read_a(j, t, &x, item.a, k, &s);
            coming lot = k + s.k < p->k ? find_lot(j, item, cols, n, k + s.k)
                                        : find_lot(j, item, cols, n_end, 0);
            for (int64_t at = n; at < n_end; at += panel * (1 + s.more)) {
                s.columns = (int)(is_packed && s.leaves_sums ? panel : tg_min(panel, n_end - at));
                const int is_there = read_b(j, t, &x, item.b, k, at, &s);
                const int runs_on = is_there && !j->words && !j->goes_down &&
                                    (!is_packed || j->rows.tall + j->rows.low == 1);
                s.more = runs_on ? tg_max(0, (n_end - at) / panel - 1) : 0;
                s.c = c + (at - n) * (s.is_c_short ? x.c_bytes : bytes);
                s.sums = sums + (at - n) * (j->goes_down ? p->m : 1) * bytes;
                s.coming = NULL;
                if (j->fetching == TG_FETCHES_ALONG && is_there)
                    s.coming = (const char *)s.b + ALONG;
                if (j->fetching == TG_FETCHES_BELOW && is_there && k + 2 * s.k <= p->k)
                    s.coming = (const char *)s.b + s.k * s.coming_row;
                if (takes_all) {
                    s.rows = (int)p->m;
                    run(&s);
                    continue;
                }
                coming below = {.at = s.coming, .left = s.coming ? 2 : 0, .next = 2 * LINE};
                if (j->goes_down) {
                    run_down(j, s, is_in_lots ? &lot : &below);
                    continue;
                }
                run_rows(j, run, s, x.b_bytes);
            }
            if (ends && s.leaves_sums && !is_apart)
                take_sums(j, run, s, c, sums, x.columns);
            if (ends && !is_apart)
                finish_slice(j, &x, k < block_k, k_end == p->k);
        }
    }
}

/* C takes the sums of blocks of k that were made apart, in their order. */
static void add_sums(const tg_job *j, const team *t, tg_item item, range cols)
{
    const tg_problem *p = j->p;
    const int64_t panel = j->tile.thread.n, c_bytes = (int64_t)tg_type_size(p->c.type);
    void (*const run)(const tg_step *) = j->words ? j->words->stream : j->kernel.run;
    for (int64_t n = cols.begin; n < cols.end; n += panel) {
        char *const c = (char *)item.c + n * c_bytes, *const beside = t->sums + j->plane;
        const int64_t columns = tg_min(panel, cols.end - n);
        if (j->is_c_beside && p->beta != 0)
            j->isa->widen[p->c.type - 1](beside, j->sums_row, 1, c, p->c.row_stride, 1, p->m,
                                         columns);
        for (int64_t block = !j->is_c_beside; block < j->splits; block++) {
            const tg_step s = {.a = c, /* no k of it */
                               .b = c,
                               .c = j->is_c_beside ? beside : c,
                               .c_row = j->is_c_beside ? j->sums_row : p->c.row_stride,
                               .sums = sums_apart(j, t, block) + n * j->sum_bytes,
                               .sums_row = j->apart_row,
                               .begins_with_sums = 1,
                               .columns = (int)columns,
                               .alpha = p->alpha,
                               .beta = block == 0 ? p->beta : 1};
            run_rows(j, run, s, j->bytes);
        }
        if (j->is_c_beside)
            j->isa->narrow[p->c.type - 1](c, p->c.row_stride, 1, beside, j->sums_row, 1, p->m,
                                          columns);
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
