/* SPDX-License-Identifier: Apache-2.0
 *
 * Products that need no loop nest: small ones, whose operands the kernel reads where they are, and
 * a few rows times lines along k. The order of each sum is the nest's. */
#ifndef TG_DIRECT_H
#define TG_DIRECT_H

#include "stage.h"

/* As even as can be: no tile is left with few rows, which would wait for one another's sums. */
static tg_rows rows_of(int64_t count, int64_t most)
{
    const int64_t tiles = tg_ceil_div(count, most), height = tg_ceil_div(count, tiles);
    const int64_t low = tiles * height - count;
    return (tg_rows){.tall = tiles - low, .low = low, .height = (int)height};
}

/* So many tiles of so many rows, one below the other. */
static void go_down(tg_step *s, int64_t tiles, int height)
{
    s->rows = height;
    s->more = tiles - 1;
    s->a_next = height * s->a_row;
    s->c_next = height * s->c_row;
}

/* What the kernel fetches of another item on its way down: A first, and B with the next columns.
 * With a B that is one panel it fetches less often. */
static void fetch_item(const tg_job *j, tg_item item, int64_t panel, tg_step *s)
{
    s->coming = panel == 0 ? item.a : panel == 1 ? item.b : NULL;
    const int is_panel = s->b_row == j->p->n && j->p->n == j->kernel.columns;
    const int64_t each = panel == 0 ? j->next_a : j->next_b;
    s->coming_row = is_panel ? TG_COMING_STEPS * each : each;
    s->coming_next = s->k * each;
    s->coming_steps = s->k;
}

/* The last two panels are as even as whole vectors can be: of few columns alone, each sum would
 * wait for the one before it. */
static int64_t next_columns(const tg_job *j, int64_t left)
{
    const int64_t most = j->tile.thread.n;
    if (left > most && left < 2 * most)
        return tg_round_up(tg_ceil_div(left, 2), j->tile.vec);
    return tg_min(most, left);
}

/* The columns of B from the first one on, where they are or copied to rows. */
static const char *rows_of_b(const tg_job *j, tg_item item, range cols, char *room)
{
    const tg_input *b = &j->p->b;
    const char *const from = (const char *)item.b + cols.begin * b->col_stride * j->bytes;
    if (!j->copies_b)
        return from;
    j->isa->widen[b->type - 1](room, j->step.b_row, 1, from, b->row_stride, b->col_stride, j->p->k,
                               cols.end - cols.begin);
    return room;
}

/* A rectangle of an item that is read and written where it is. Of the loops, those over slices of k
 * and over columns are left: the kernel itself goes down the rows. next is the item after this one,
 * 0 if that is not to be fetched. s is the job's step, of which a small product can not afford a
 * copy of its own. */
static void multiply_directly(const tg_job *j, tg_step *s, tg_item item, range rows, range cols,
                              int64_t next, char *room)
{
    enum { MOST_ROWS = 1 << 30 }; /* of narrow columns at once: their number is an int */
    const tg_problem *p = j->p;
    const int64_t bytes = j->bytes, count = rows.end - rows.begin;
    const tg_rows r = count == p->m ? j->rows : rows_of(count, j->tile.thread.m);
    const double beta = s->beta;
    const char *a = (const char *)item.a + rows.begin * s->a_row * bytes;
    const char *b = rows_of_b(j, item, cols, room);
    char *c = (char *)item.c + rows.begin * s->c_row * bytes;
    const int64_t tall_rows = r.tall * r.height;
    const int64_t narrow = narrow_of(j, cols.end, rows.end), end = cols.end - narrow;
    for (int64_t k = 0; k < p->k; k += s->k) {
        int64_t panel = 0;
        s->k = tg_min(j->slice, p->k - k);
        if (j->step.steps_that_fetch)
            set_fetching(s);
        for (int64_t n = cols.begin; n < end; n += s->columns, panel++) {
            s->columns = (int)next_columns(j, end - n);
            s->a = a;
            s->b = b + (n - cols.begin) * bytes;
            s->c = c + n * bytes;
            if (next && k == 0)
                fetch_item(j, item_at(j, next), panel, s);
            go_down(s, r.tall, r.height);
            j->kernel.run(s);
            s->coming = NULL;
            if (r.low == 0)
                continue;
            s->a = a + tall_rows * s->a_row * bytes;
            s->c = c + (tall_rows * s->c_row + n) * bytes;
            go_down(s, r.low, r.height - 1);
            j->kernel.run(s);
        }
        for (int64_t m = 0; narrow > 0 && m < count; m += s->rows) {
            s->b = b + (end - cols.begin) * bytes;
            s->rows = (int)tg_min(MOST_ROWS, count - m);
            s->columns = (int)narrow;
            s->a = a + m * s->a_row * bytes;
            s->c = c + (m * s->c_row + end) * bytes;
            j->isa->kernels[tg_cpu_kind(p->a.type)]->narrow(s);
        }
        a += s->k * s->a_col * bytes;
        b += s->k * s->b_row * bytes;
        s->beta = 1;
    }
    s->beta = beta;
}

/* The same of short types that become f32 first. */
static void multiply_widened(const tg_job *j, tg_step *s, tg_item item, range rows, range cols,
                             char *room)
{
    const tg_problem *p = j->p;
    tg_copy *const *const widen = j->isa->widen;
    const int64_t m = rows.end - rows.begin, n = cols.end - cols.begin, b_row = j->step.b_row;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), c_row = j->step.c_row;
    const char *const a = (const char *)item.a + rows.begin * p->a.row_stride * bytes;
    const char *const b = (const char *)item.b + cols.begin * p->b.col_stride * bytes;
    const place c = moved(c_at(j, item.c), rows.begin, cols.begin);
    const int is_beside = c.bytes == bytes || j->add;
    char *const wide_b = room + j->a_bytes, *const wide_c = wide_b + j->b_bytes;
    widen[p->a.type - 1](room, p->k, 1, a, p->a.row_stride, p->a.col_stride, m, p->k);
    widen[p->b.type - 1](wide_b, b_row, 1, b, p->b.row_stride, p->b.col_stride, p->k, n);
    s->alpha = j->add ? 1 : p->alpha;
    s->beta = j->add ? 0 : p->beta;
    if (is_beside && s->beta != 0)
        take_c(&c, wide_c, c_row, m, n);
    multiply_directly(j, s, (tg_item){room, wide_b, is_beside ? wide_c : c.at}, (range){0, m},
                      (range){0, n}, 0, NULL);
    if (is_beside)
        give_c(j, &c, wide_c, c_row, m, n, p->beta);
}

/* So little k that C is most of it: its rows are written from end to end, a tile of them at a time.
 */
static void multiply_flat(const tg_job *j, tg_step *s, tg_item item, range rows, range cols,
                          char *room)
{
    const tg_problem *p = j->p;
    const int64_t bytes = j->bytes, thread_n = j->tile.thread.n, count = rows.end - rows.begin;
    const tg_rows r = count == p->m ? j->rows : rows_of(count, j->tile.thread.m);
    const int64_t panels = (cols.end - cols.begin) / thread_n;
    const char *const b = rows_of_b(j, item, cols, room);
    s->b_next = s->c_next = thread_n;
    int64_t row = rows.begin;
    for (int64_t left = r.tall + r.low; left > 0; left--, row += s->rows) {
        s->rows = r.height - (left <= r.low);
        for (int64_t n = cols.begin; n < cols.end; n += thread_n * (1 + s->more)) {
            s->columns = (int)tg_min(thread_n, cols.end - n);
            s->more = n == cols.begin ? tg_max(0, panels - 1) : 0;
            s->a = (const char *)item.a + row * s->a_row * bytes;
            s->b = b + (n - cols.begin) * bytes;
            s->c = (char *)item.c + (row * s->c_row + n) * bytes;
            j->kernel.run(s);
        }
    }
}

/* Of integers, whose sums are exact for a slice of k. */
static void add_turned(const tg_job *j, tg_step s, const place *c)
{
    const int64_t bytes = (int64_t)tg_type_size(s.b_type);
    const char *const a = s.a, *const b = s.b;
    s.alpha = 1;
    s.beta = 0;
    for (int64_t k = 0; k < j->p->k; k += s.k) {
        s.k = tg_min(j->slice, j->p->k - k);
        s.a = a + k * j->bytes;
        s.b = b + k * bytes;
        j->isa->kernels[0]->turned(&s);
        give_c(j, c, s.c, s.c_row, s.rows, s.columns, k == 0 ? j->p->beta : 1);
    }
}

/* A few rows of A times a B whose columns lie along k (turned.h): each is read from end to end. Or,
 * as C' = B'A', a few columns of B times an A whose rows do; then C is turned on its way. */
static void multiply_turned(const tg_job *j, const team *t, tg_item item, range lines)
{
    const tg_problem *p = j->p;
    const tg_isa *isa = j->isa;
    const int is_b = j->turned == TG_TURNED_B, kind = tg_cpu_kind(p->a.type);
    const tg_type type = is_b ? p->b.type : p->a.type, few_type = is_b ? p->a.type : p->b.type;
    const int64_t bytes = (int64_t)tg_type_size(type);
    const int64_t few = is_b ? p->m : p->n, few_k = is_b ? p->a.col_stride : p->b.row_stride;
    place all = c_at(j, item.c);
    if (!is_b) {
        all.row = p->c.col_stride;
        all.col = p->c.row_stride;
    }
    const int is_beside = all.col != 1 || j->stream_type;
    const int64_t most = j->reading.lines, vector = isa->kernels[kind]->turned_columns;
    const char *a = is_b ? item.a : item.b, *const b = is_b ? item.b : item.a;
    tg_step s = {.a_row = is_b ? p->a.row_stride : p->b.col_stride,
                 .b_row = is_b ? p->b.col_stride : p->a.row_stride,
                 .b_type = j->stream_type ? type : (tg_type)0,
                 .c_row = all.row,
                 .rows = (int)few,
                 .k = p->k,
                 .slice = j->slice,
                 .ahead = j->reading.ahead,
                 .alpha = p->alpha,
                 .beta = p->beta};
    if (few_k != 1 || s.b_type) {
        isa->widen[few_type - 1](t->a, p->k, 1, a, s.a_row, few_k, few, p->k);
        a = t->a;
        s.a_row = p->k;
    }
    s.a = a;
    if (is_beside) {
        s.c = t->beside;
        s.c_row = most;
    }
    for (int64_t n = lines.begin; n < lines.end; n += s.columns) {
        const place c = moved(all, 0, n);
        const int64_t left = lines.end - n;
        const int leaves_little = left > most && left < most + vector; /* less than a vector */
        s.columns = (int)tg_min(left, tg_max(most - leaves_little * vector, vector));
        s.b = b + n * s.b_row * bytes;
        if (j->add) {
            add_turned(j, s, &c);
            continue;
        }
        if (!is_beside)
            s.c = c.at;
        else if (p->beta != 0)
            take_c(&c, s.c, most, few, s.columns);
        isa->kernels[kind]->turned(&s);
        if (is_beside)
            give_c(j, &c, s.c, most, few, s.columns, p->beta);
    }
}

/* The same with words, of which 16 columns are a tile as they lie. A is made words of first, or
 * lines that end with zeros, and C is finished beside itself. */
static void multiply_lines(const tg_job *j, const team *t, tg_item item, range lines)
{
    const tg_problem *p = j->p;
    const int64_t most = j->tile.thread.n, panel = j->tile.inst.m,
                  k = tg_round_up(p->k, LINE / j->bytes);
    tg_step s = {.a = t->a,
                 .a_row = panel * k * j->bytes,
                 .b_row = p->b.col_stride,
                 .c = t->beside,
                 .c_row = most,
                 .rows = (int)p->m,
                 .k = p->k,
                 .slice = j->slice,
                 .ahead = j->reading.ahead,
                 .alpha = p->alpha,
                 .beta = p->beta};
    if (panel == 1) {
        memset(t->a, 0, (size_t)(p->m * k * j->bytes));
        j->words->copy[0](t->a, k, 1, item.a, p->a.row_stride, p->a.col_stride, p->m, p->k);
    }
    for (int64_t m = 0; m < p->m && panel > 1; m += panel)
        j->words->copy[1](t->a + m * k * j->bytes, panel, 1,
                          (const char *)item.a + m * p->a.row_stride * j->bytes, p->a.col_stride,
                          p->a.row_stride, p->k, tg_min(panel, p->m - m));
    for (int64_t n = lines.begin; n < lines.end; n += most) {
        const place c = moved(c_at(j, item.c), 0, n);
        s.columns = (int)tg_min(most, lines.end - n);
        s.b = (const char *)item.b + n * s.b_row * j->bytes;
        if (p->beta != 0)
            take_c(&c, s.c, most, p->m, s.columns);
        j->words->lines(&s);
        give_c(j, &c, s.c, most, p->m, s.columns, p->beta);
    }
}

#endif
