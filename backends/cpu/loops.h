/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops around the micro-kernel: the loop nest of the tiling on a team of threads.
 *
 *   loop 5  blocks of n                           B's part of the block, staged in L3 by the team
 *   loop 4  blocks of k
 *   loop 3  blocks of m                           A's part of the block, staged by the team
 *           warp tiles, dealt to the threads      their slices of A and B stay in the thread's L2
 *   loop 2  rep m: panels of A                    a panel of A is in L1 or just outside
 *   loop 1  rep n: panels of B
 *           the micro-kernel: a thread tile in registers
 *
 * A panel is thread.m rows of A (thread.n columns of B) over block.k. It is packed with its ragged
 * edge filled with zeros, or, where the plan says so, read where it is if the micro-kernel can.
 *
 * Kernels know f32 and f64. Other types are converted while they are packed, and tiles of C on
 * their way out. If k comes in several passes, the tiles of a C of f16 or bf16 are kept beside it
 * in f32 until the last, so that they are rounded once; integers are exact in f32 for as long as a
 * pass, and C adds them up. */
#ifndef TG_LOOPS_H
#define TG_LOOPS_H

#include "stage.h"

/* One pass over a slice of k: where tiles of C are from, and where they go. */
typedef struct pass {
    place from, to;
    int is_direct; /* the kernel itself finds and leaves them there, */
    int is_short;  /* rounded, with those that waited */
    int is_beside; /* and there, beside C, rows have room for more */
    double beta;
    range ks; /* of the block */
} pass;

/* The kernel fetches what it writes itself; this is for what is written after it. */
static void fetch(const place *c, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows && c->col == 1; i++)
        for (int64_t byte = 0; byte < cols * c->bytes; byte += LINE)
            __builtin_prefetch(c->at + i * c->row * c->bytes + byte, 1);
}

enum { STRIP_TILES = 16, STRIP = TG_PIECE / TG_COMING_STEPS * LINE };

/* What a tile fetches of the B that comes: of a strip of it, as wide as the lines that a piece of k
 * has time for, so many rows, from one to the next. A core that sees a strip read goes on along the
 * rows by itself.
 *
 *   tile 0   | ---- |      |      |
 *   1 ..     | ---- |      |      |         strips, each fetched by STRIP_TILES; if tiles are more,
 *   16       |      | ---- |      |         others have nothing to fetch
 */
static void find_coming(const staged *b, int64_t tile, tg_step *s)
{
    s->coming = NULL;
    if (!b->coming)
        return;
    const int64_t row = b->k_stride * b->bytes, rows = tg_ceil_div(s->k, TG_PIECE);
    const int64_t strip = tile / b->coming_tiles * STRIP, first = tile % b->coming_tiles * rows;
    if (strip < b->coming_bytes && first < s->k)
        s->coming = b->coming + strip + first * row;
    s->coming_row = LINE;
    s->coming_steps = STRIP / LINE;
    s->coming_jump = row - STRIP;
}

/* A panel of B, or some if the kernel runs on. One that is late is read where it is, and packed on
 * its way through the kernel, if it is whole. */
static void find_b(const tg_job *j, const staged *b, int64_t panel, int64_t k, int64_t row_of_tiles,
                   tg_step *s)
{
    const int is_late = b->is_late && row_of_tiles == 0;
    const int keeps = is_late && b->lines.end - b->lines.begin >= (panel + 1) * b->line;
    int64_t unused;
    if (is_late && !keeps)
        pack(j, b, panel, 0, b->ks.end - b->ks.begin);
    if (keeps) {
        s->b = matrix_at(j, b, panel);
        s->b_row = b->k_stride;
    } else {
        s->b = read_panel(j, b, panel, k, &unused, &s->b_row);
    }
    s->b_next = b->line * (b->in_place || keeps ? 1 : b->k);
    s->kept = keeps ? panel_at(j, b, panel) : NULL;
}

/* A kernel that fetches has whole vectors of columns, for which panels have room, or half of the
 * last one is enough. */
static int rounds_columns(int64_t columns, int64_t vec) { return 2 * (columns % vec) > vec; }

static int is_panel_whole(const tg_job *j, const tg_step *s)
{
    return s->columns == j->kernel.columns && s->b_row == s->columns;
}

/* Rows of A from memory, with few columns of B, or with the first of many: while some are
 * multiplied, the kernel fetches those of the next tile, one after the other; with whole panels,
 * which leave it half the time, a line of each and then the next: a core that sees rows read goes
 * on along them by itself. */
static void fetch_rows(const tg_job *j, const staged *a, int64_t panel, tg_step *s)
{
    enum { LINES = TG_PIECE / TG_COMING_STEPS };
    const int64_t vec = j->tile.vec, row = a->line_stride * a->bytes;
    const int is_last = a->lines.begin + (panel + 1) * a->line >= j->p->m;
    if (rounds_columns(s->columns, vec))
        s->columns = (int)tg_round_up(s->columns, vec);
    const int is_whole = is_panel_whole(j, s);
    s->coming = is_last ? NULL : (const char *)s->a + a->line * row;
    s->coming_row = is_whole ? row : a->line * a->bytes;
    s->coming_steps = tg_ceil_div(s->k, a->line);
    s->coming_jump = is_whole ? LINE - LINES * row : row - s->coming_steps * s->coming_row;
    s->coming_next = 0;
}

/* A row of tiles, one for each panel of B that these columns have. */
static void multiply_row(const tg_job *j, const staged *a, const staged *b, const pass *now,
                         const place *c, int64_t m, range cols, tg_step *s)
{
    const int64_t row_of_tiles = m / a->line;
    const int64_t rows_of_tiles = tg_ceil_div(a->lines.end - a->lines.begin, a->line);
    const float *const waited = s->waited;
    int64_t panel = cols.begin / b->line;
    s->c_row = c->row;
    s->c_next = b->line;
    for (int64_t n = cols.begin; n < cols.end; /* loop 1: B from L2 */
         n += b->line * (1 + s->more), panel += 1 + s->more) {
        const int runs_on = j->kernel.grain && !j->words && !b->is_late;
        const int64_t whole = runs_on ? (cols.end - n) / b->line : 0;
        s->more = tg_max(0, whole - 1);
        s->columns = (int)tg_min(b->line, cols.end - n);
        s->c = c->at + (n - cols.begin) * c->col * c->bytes;
        s->waited = waited ? waited + (n - cols.begin) : NULL;
        find_b(j, b, panel, now->ks.begin, row_of_tiles, s);
        find_coming(b, panel * rows_of_tiles + row_of_tiles, s);
        set_fetching(s);
        const int is_first =
            j->reading.fetches_first && n == 0 && is_panel_whole(j, s) && !b->is_late;
        if (is_first)
            s->more = 0;
        if (is_first || j->reading.fetches_rows)
            fetch_rows(j, a, row_of_tiles, s);
        j->kernel.run(s);
    }
}

/* The same, beside a C that the kernel cannot have where it is: one that is ragged, or whose
 * columns are not adjacent, or of another type. */
static void multiply_beside(const tg_job *j, const team *t, const staged *a, const staged *b,
                            const pass *now, int64_t m, range cols, tg_step *s)
{
    const int64_t count = cols.end - cols.begin;
    const place from = moved(now->from, m, cols.begin), to = moved(now->to, m, cols.begin);
    const place beside = {t->beside, tg_round_up(count, b->line), 1, j->sum_bytes, NULL, NULL};
    s->is_c_short = 0;
    s->waited = NULL;
    s->alpha = j->add ? 1 : j->p->alpha;
    s->beta = j->add ? 0 : now->beta;
    fetch(&to, s->rows, count);
    if (s->beta != 0)
        take_c(&from, beside.at, beside.row, s->rows, count);
    multiply_row(j, a, b, now, &beside, m, cols, s);
    give_c(j, &to, beside.at, beside.row, s->rows, count, now->beta);
}

/* Narrow columns, times rows of A that were just multiplied. Where kernels pack B on its way, its
 * last panel may be packed later, or not at all. */
static void multiply_narrow(const tg_job *j, const team *t, const staged *a, const staged *b,
                            const pass *now, range rows, range cols)
{
    const int64_t panel = cols.begin / b->line, past = cols.begin % b->line, k = now->ks.begin;
    const place to = moved(now->to, rows.begin, cols.begin);
    tg_step s = {.k = now->ks.end - k,
                 .a_row = a->line_stride,
                 .c = to.at,
                 .c_row = to.row,
                 .rows = (int)(rows.end - rows.begin),
                 .columns = (int)(cols.end - cols.begin),
                 .alpha = j->p->alpha,
                 .beta = now->beta};
    int64_t unused;
    s.a = matrix_at(j, a, 0) + (rows.begin * a->line_stride + k) * a->bytes;
    s.b = read_panel(j, b, panel, k, &unused, &s.b_row);
    if (j->reading.packs_late && t->size == 1) { /* all of a block's k at once */
        s.b = matrix_at(j, b, panel);
        s.b_row = b->k_stride;
    }
    s.b = (const char *)s.b + past * j->bytes;
    j->isa->kernels[tg_cpu_kind(j->p->a.type)]->narrow(&s);
}

/* One warp tile of a block, over one slice of its k. */
static void multiply_warp(const tg_job *j, const team *t, const staged *a, const staged *b,
                          const pass *now, range rows, range all_cols)
{
    enum { TOGETHER = 32 }; /* rows of A, near for narrow columns */
    const int64_t narrow = narrow_of(j, b->lines.begin + all_cols.end, a->lines.begin + rows.end);
    const int64_t together = tg_round_up(TOGETHER, a->line);
    const range cols = {all_cols.begin, all_cols.end - narrow};
    const int waits = now->is_short && now->beta != 0 && now->from.at != now->to.at;
    const int is_c_in_rows = now->is_direct && (now->to.col == 1 || b->line == 1);
    const int word = tg_takes_words_in_rows(j->tile) ? 1 : tg_tile_word(j->tile, (int)j->bytes);
    const int64_t last = cols.begin + tg_round_down(cols.end - 1 - cols.begin, b->line);
    const int64_t left = cols.end - last;
    const int rounds = j->reading.fetches_rows && rounds_columns(left, j->tile.vec);
    const int is_whole = (left == b->line || left % b->grain == 0) && (!rounds || now->is_beside);
    tg_step s = {.k = tg_ceil_div(now->ks.end - now->ks.begin, word), .waited_row = now->from.row};
    for (int64_t m = rows.begin; m < rows.end; m += a->line) { /* loop 2: A from L1 */
        s.rows = (int)tg_min(a->line, a->lines.end - a->lines.begin - m);
        s.a = read_panel(j, a, m / a->line, now->ks.begin, &s.a_row, &s.a_col);
        s.is_near = t->size == 1 && m > rows.begin; /* B is read with the rows above */
        const int is_in_c = is_c_in_rows && (s.rows == a->line || s.rows % a->grain == 0);
        const int64_t end = !is_in_c ? cols.begin : is_whole ? cols.end : last;
        const place to = moved(now->to, m, cols.begin), from = moved(now->from, m, cols.begin);
        s.waited = waits ? (const float *)(const void *)from.at : NULL;
        s.is_c_short = now->is_short;
        s.alpha = j->p->alpha;
        s.beta = now->beta;
        if (end > cols.begin)
            multiply_row(j, a, b, now, &to, m, (range){cols.begin, end}, &s);
        if (end < cols.end)
            multiply_beside(j, t, a, b, now, m, (range){end, cols.end}, &s);
        const int64_t done = m + s.rows, first = tg_round_down(m - rows.begin, together);
        if (narrow > 0 && ((done - rows.begin) % together == 0 || done >= rows.end))
            multiply_narrow(j, t, a, b, now, (range){rows.begin + first, done},
                            (range){cols.end, all_cols.end});
    }
}

/* One warp tile of a block, or some of its rows, over all of its k. */
static void multiply_slices(const tg_job *j, const team *t, const staged *a, const staged *b,
                            const place *c, const place *sums, range rows, range cols)
{
    const int64_t k = a->ks.end - a->ks.begin;
    for (int64_t k0 = 0; k0 < k; k0 += j->slice) {
        const range ks = {k0, tg_min(k, k0 + j->slice)};
        const int is_first = a->ks.begin + k0 == 0, is_last = a->ks.begin + ks.end == j->p->k;
        pass now = {.from = is_first ? *c : *sums,
                    .to = is_last ? *c : *sums,
                    .beta = is_first ? j->p->beta : 1,
                    .ks = ks};
        now.is_short = is_last && j->words && c->bytes < j->sum_bytes;
        now.is_direct = !j->add && (now.is_short || now.to.store == j->copy_sums) &&
                        (now.beta == 0 || now.is_short || now.from.at == now.to.at);
        now.is_beside = j->sums_bytes > 0 && !is_last;
        multiply_warp(j, t, a, b, &now, rows, cols);
    }
}

/* A block that loops 5 to 3 come to, and its parts of A and B. */
typedef struct block {
    int64_t index;
    staged a, b;
} block;

/* All warp tiles of a block, this thread's share of them: columns change before rows do. Tiles are
 * cut into pieces, and who has no more of them takes what others have left: cores are not all as
 * fast, least of all those that are shared with other programs. */
static void multiply_block(const tg_job *j, const team *t, const block *x, const place *c,
                           const place *sums)
{
    enum { PIECES = 16 }; /* that a thread has at least, if there are so many panels */
    const staged *const a = &x->a, *const b = &x->b;
    const int64_t m = a->lines.end - a->lines.begin, n = b->lines.end - b->lines.begin;
    const int64_t warp_m = j->tile.warp.m, warp_n = j->tile.warp.n;
    const int64_t warps_n = tg_ceil_div(n, warp_n);
    const int64_t warps = tg_ceil_div(m, warp_m) * warps_n;
    const int64_t panels = warp_m / a->line;
    const int64_t wanted = t->size > 1 ? tg_ceil_div(PIECES * t->size, warps) : 1;
    const int64_t parts = tg_clamp(wanted, 1, tg_max(1, panels));
    for (int turn = 0; turn < t->size; turn++) {
        const int whose = (t->me + turn) % t->size;
        const int64_t begin = whose * warps / t->size * parts;
        const int64_t end = (whose + 1) * warps / t->size * parts;
        for (int64_t piece; (piece = begin + take(t, x->index, whose)) < end;) {
            const int64_t warp = piece / parts, part = piece % parts;
            const int64_t row = warp / warps_n * warp_m, col = warp % warps_n * warp_n;
            const range rows = {tg_min(m, row + part * panels / parts * a->line),
                                tg_min(m, row + (part + 1) * panels / parts * a->line)};
            const range cols = {col, tg_min(n, col + warp_n)};
            multiply_slices(j, t, a, b, c, sums, rows, cols);
        }
    }
}

/* Where B's part of the block after this one is, if there is one. */
static void find_next_block(const tg_job *j, staged *b, int64_t n_end)
{
    const int is_below = b->ks.end < j->p->k;
    const int64_t n = is_below ? b->lines.begin : b->lines.end, k = is_below ? b->ks.end : 0;
    b->coming = n < n_end ? b->data + (n * b->line_stride + k * b->k_stride) * b->bytes : NULL;
    b->coming_bytes = tg_min(j->tile.block.n, n_end - n) * b->bytes;
    b->coming_tiles = STRIP_TILES;
}

/* Or what is further along in this one, strips as fast as panels are multiplied: a large L2 has
 * room for that, and what is beyond it is far. */
static void find_along(staged *b, int64_t rows_of_tiles)
{
    enum { ALONG = 1024 }; /* bytes */
    const int64_t begin = b->lines.begin * b->bytes + ALONG;
    b->coming = b->data + begin + b->ks.begin * b->k_stride * b->bytes;
    b->coming_bytes = b->lines.end * b->bytes - begin;
    b->coming_tiles = tg_max(STRIP_TILES, STRIP * rows_of_tiles / (b->line * b->bytes));
}

/* A rectangle of a batch item, and how many blocks that is along each axis. */
typedef struct cell {
    tg_item item;
    range rows, cols;
    int64_t blocks_m, blocks_n, blocks_k;
} cell;

/* The block of that index: n changes last (loop 5), then k (loop 4), and m with each (loop 3). A
 * team has places for two of A and of B, which it takes by turns. */
static block block_at(const tg_job *j, const team *t, const cell *x, int64_t index)
{
    const tg_mnk size = j->tile.block;
    const int64_t n = index / x->blocks_m / x->blocks_k, both = index / x->blocks_m;
    const int64_t k0 = both % x->blocks_k * size.k;
    const int64_t m0 = x->rows.begin + index % x->blocks_m * size.m;
    const int64_t n0 = x->cols.begin + n * size.n, lines = x->rows.end - x->rows.begin;
    const int turn_a = t->size > 1 && index % 2, turn_b = t->size > 1 && both % 2;
    block now = {.index = index,
                 .a = operand(j, TG_A_PACKED, x->item.a, t->a + turn_a * j->a_bytes),
                 .b = operand(j, TG_B_PACKED, x->item.b, t->b + turn_b * j->b_bytes)};
    now.a.lines = (range){m0, tg_min(x->rows.end, m0 + size.m)};
    now.b.lines = (range){n0, tg_min(x->cols.end, n0 + size.n)};
    now.a.ks = now.b.ks = (range){k0, tg_min(j->p->k, k0 + size.k)};
    now.b.is_late =
        j->reading.packs_late && t->size == 1 && lines >= now.a.line && index % x->blocks_m == 0;
    now.b.is_one = now.b.is_late && lines <= j->tile.warp.m && j->tile.warp.n == now.b.line;
    if (now.b.is_late && j->reading.fetches_late)
        find_next_block(j, &now.b, x->cols.end);
    else if (now.b.is_late && j->reading.b_from != TG_IN_L2)
        find_along(&now.b, tg_ceil_div(lines, now.a.line));
    return now;
}

/* This thread's share of a block's panels; B's are there already with another block of m. */
static void stage_block(const tg_job *j, const team *t, const cell *x, block *now)
{
    if (is_staged(j, &now->b) || (!now->b.is_late && now->index % x->blocks_m == 0))
        have_panels(j, t, &now->b);
    if (now->a.packed || !now->a.in_place || now->a.grain_there > 1)
        have_panels(j, t, &now->a);
}

/* The loop nest over a cell. Who finds nothing left of a block to multiply stages its share of the
 * next one, so that a team meets once for each. */
static void multiply_cell(const tg_job *j, const team *t, tg_item item, range rows, range cols)
{
    const tg_problem *p = j->p;
    const place c = c_at(j, item.c);
    const place sums = {t->sums, j->sums_row, 1, j->sum_bytes, j->copy_sums, j->copy_sums};
    const tg_mnk size = j->tile.block;
    const cell x = {item,
                    rows,
                    cols,
                    tg_ceil_div(rows.end - rows.begin, size.m),
                    tg_ceil_div(cols.end - cols.begin, size.n),
                    tg_ceil_div(p->k, size.k)};
    const int64_t blocks = x.blocks_m * x.blocks_n * x.blocks_k;
    block now = block_at(j, t, &x, 0);
    stage_block(j, t, &x, &now);
    put_back(t, 0);
    for (int64_t index = 0; index < blocks; index++) {
        const int64_t m = now.a.lines.begin, n = now.b.lines.begin;
        const place c_block = moved(c, m, n), sums_block = moved(sums, m - rows.begin, 0);
        wait_for(t); /* this block is staged, and the place of the next one was read */
        put_back(t, index + 1);
        multiply_block(j, t, &now, &c_block, j->sums_bytes ? &sums_block : &c_block);
        if (index + 1 == blocks)
            continue;
        now = block_at(j, t, &x, index + 1);
        stage_block(j, t, &x, &now);
    }
}

#endif
