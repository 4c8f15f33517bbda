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
 * A problem is first cut into cells (a batch item, a strip of C). Either each thread takes whole
 * cells, or the team works on one after the other. Neither changes a bit of the result.
 *
 * Kernels know f32 and f64. Other types are converted while they are packed, and tiles of C on
 * their way out. If k comes in several passes, the tiles of a C of f16 or bf16 are kept beside it
 * in f32 until the last, so that they are rounded once; integers are exact in f32 for as long as a
 * pass, and C adds them up. */
#include "cpu.h"

#include "half.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct range {
    int64_t begin, end;
} range;

enum { ROWS_AT_ONCE = 16 };

/* Who works on a cell. */
typedef struct team {
    int me, size;
    char *a, *b;  /* staged [panel][block.k][thread.m] and [panel][block.k][thread.n] */
    char *sums;   /* of the cell's rows and a block's columns */
    char *corner; /* one thread tile of C, for the ragged edge */
} team;

/* One operand's part of a block. line is thread.m rows of A, or thread.n columns of B. */
typedef struct staged {
    const char *data; /* the matrix: element (line 0, k 0) of the batch item */
    int64_t bytes;    /* of an element there */
    tg_copy *copy;    /* from there */
    int64_t line_stride, k_stride, line, grain, k;
    range lines, ks;
    char *panels;
    int in_place, k_inner; /* k_inner: packed as [line][k], not [k][line] */
    const char *packed;    /* all panels, block of k by block of k; NULL: they are to be staged */
    int64_t all_lines;     /* of the matrix, in whole panels */
} staged;

/* C, or the sums beside it: element (0, 0) of what is looked at, and the ways to a tile of the
 * kernel's elements and from it. */
typedef struct place {
    char *at;
    int64_t row, col, bytes;
    tg_copy *load, *store;
} place;

/* One pass over a slice of k: where tiles of C are from, and where they go. */
typedef struct pass {
    place from, to;
    int is_direct; /* the kernel itself finds and leaves them there */
    double beta;
    range ks; /* of the block */
} pass;

static place moved(place p, int64_t row, int64_t col)
{
    p.at += (row * p.row + col * p.col) * p.bytes;
    return p;
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

/* Can the micro-kernel read this panel where it is? It reads whole grains of lines. */
static int is_in_place(const staged *s, int64_t panel)
{
    const int64_t left = s->lines.end - s->lines.begin - panel * s->line;
    return s->in_place && (left >= s->line || left % s->grain == 0);
}

static const char *matrix_at(const staged *s, int64_t panel)
{
    return s->data +
           ((s->lines.begin + panel * s->line) * s->line_stride + s->ks.begin * s->k_stride) *
               s->bytes;
}

static char *panel_at(const tg_job *j, const staged *s, int64_t panel)
{
    return s->panels + panel * s->line * s->k * j->bytes;
}

/* Packs k_count of a panel's k, from k_begin on. */
static void pack(const tg_job *j, const staged *s, int64_t panel, int64_t k_begin, int64_t k_count)
{
    const int64_t lines = tg_min(s->line, s->lines.end - s->lines.begin - panel * s->line);
    const int64_t line_to = s->k_inner ? s->k : 1, k_to = s->k_inner ? 1 : s->line;
    char *to = panel_at(j, s, panel) + k_begin * k_to * j->bytes;
    const char *from = matrix_at(s, panel) + k_begin * s->k_stride * s->bytes;
    if (is_in_place(s, panel))
        return;
    if (lines < s->line && k_begin == 0)
        memset(to, 0, (size_t)(s->line * s->k * j->bytes));
    if (s->k_inner)
        s->copy(to, line_to, k_to, from, s->line_stride, s->k_stride, lines, k_count);
    else
        s->copy(to, k_to, line_to, from, s->k_stride, s->line_stride, k_count, lines);
}

/* Each thread packs its share of the panels. Where a row of the matrix runs through all of them,
 * a few rows at a time, so that memory is read along its rows. */
static void stage(const tg_job *j, const team *t, const staged *s)
{
    const int64_t panels = tg_ceil_div(s->lines.end - s->lines.begin, s->line);
    const int64_t begin = t->me * panels / t->size, end = (t->me + 1) * panels / t->size;
    const int64_t k = s->ks.end - s->ks.begin, few = s->line_stride == 1 ? ROWS_AT_ONCE : k;
    for (int64_t k_begin = 0; k_begin < k; k_begin += few)
        for (int64_t panel = begin; panel < end; panel++)
            pack(j, s, panel, k_begin, tg_min(few, k - k_begin));
}

/* The panels of a packed operand, for the lines and k of the block. */
static char *packed_panels(const tg_job *j, const staged *s)
{
    const int64_t k = s->ks.end - s->ks.begin;
    return (char *)s->packed + (s->ks.begin * s->all_lines + s->lines.begin * k) * j->bytes;
}

static void have_panels(const tg_job *j, const team *t, staged *s)
{
    if (!s->packed) {
        stage(j, t, s);
        return;
    }
    s->k = s->ks.end - s->ks.begin;
    s->panels = packed_panels(j, s);
}

/* The kernel fetches what it writes itself; this is for what is written after it. */
static void fetch(const place *c, int64_t rows, int64_t cols)
{
    enum { LINE = 64 };
    for (int64_t i = 0; i < rows && c->col == 1; i++)
        for (int64_t byte = 0; byte < cols * c->bytes; byte += LINE)
            __builtin_prefetch(c->at + i * c->row * c->bytes + byte, 1);
}

/* Runs the kernel on a tile of C that it cannot have where it is: one that is ragged, or whose
 * columns are not adjacent, or of another type. */
static void run_on_corner(const tg_job *j, const team *t, tg_step *s, const pass *now, int64_t m,
                          int64_t n, int64_t rows, int64_t cols)
{
    const place from = moved(now->from, m, n), to = moved(now->to, m, n);
    const int64_t corner_row = j->tile.thread.n;
    fetch(&to, rows, cols);
    s->c = t->corner;
    s->c_row = corner_row;
    s->alpha = j->add ? 1 : j->p->alpha;
    s->beta = j->add ? 0 : now->beta;
    if (s->beta != 0)
        from.load(t->corner, corner_row, 1, from.at, from.row, from.col, rows, cols);
    j->kernel.run(s);
    if (j->add)
        j->add(to.at, to.row, to.col, s->c, corner_row, rows, cols, j->p->alpha, now->beta);
    else
        to.store(to.at, to.row, to.col, t->corner, corner_row, 1, rows, cols);
    s->c_row = now->to.row;
}

/* The part of a step that comes from an operand: a pointer and two strides. */
static const void *read_panel(const tg_job *j, const staged *s, int64_t panel, int64_t k_offset,
                              int64_t *line_stride, int64_t *k_stride)
{
    if (is_in_place(s, panel)) {
        *line_stride = s->line_stride;
        *k_stride = s->k_stride;
        return matrix_at(s, panel) + k_offset * s->k_stride * s->bytes;
    }
    *line_stride = s->k_inner ? s->k : 1;
    *k_stride = s->k_inner ? 1 : s->line;
    return panel_at(j, s, panel) + k_offset * *k_stride * j->bytes;
}

/* Nothing is fetched from behind a panel: that may be no memory at all, which takes long to see. */
static int64_t steps_that_fetch(int64_t k) { return tg_max(0, k - TG_FETCH_STEPS); }

/* One warp tile of a block, over one slice of its k. Meanwhile the columns of B that this thread
 * takes next come to L2. */
static void multiply_warp(const tg_job *j, const team *t, const staged *a, const staged *b,
                          const pass *now, range rows, range cols, range next)
{
    const int is_c_in_rows = now->is_direct && (now->to.col == 1 || b->line == 1);
    const range ks = now->ks;
    tg_step s = {.k = ks.end - ks.begin,
                 .c_row = now->to.row,
                 .steps_that_fetch = steps_that_fetch(ks.end - ks.begin),
                 .next = panel_at(j, b, next.begin / b->line),
                 .next_end = panel_at(j, b, tg_ceil_div(next.end, b->line)),
                 .alpha = j->p->alpha,
                 .beta = now->beta};
    int64_t panel_a = rows.begin / a->line;
    for (int64_t m = rows.begin; m < rows.end; m += a->line, panel_a++) { /* loop 2: A from L1 */
        const int64_t m_left = tg_min(a->line, a->lines.end - a->lines.begin - m);
        const int is_row_whole = is_c_in_rows && (m_left == a->line || m_left % a->grain == 0);
        int64_t panel_b = cols.begin / b->line, unused;
        s.a = read_panel(j, a, panel_a, ks.begin, &s.a_row, &s.a_col);
        s.rows = (int)m_left;
        char *const c = now->to.at + m * now->to.row * now->to.bytes;
        for (int64_t n = cols.begin; n < cols.end;
             n += b->line, panel_b++) { /* loop 1: B from L2 */
            const int64_t n_left = tg_min(b->line, b->lines.end - b->lines.begin - n);
            s.b = read_panel(j, b, panel_b, ks.begin, &unused, &s.b_row);
            s.ahead = TG_FETCH_STEPS * s.b_row;
            s.c = c + n * now->to.col * now->to.bytes;
            s.columns = (int)n_left;
            if (is_row_whole && (n_left == b->line || n_left % b->grain == 0))
                j->kernel.run(&s);
            else
                run_on_corner(j, t, &s, now, m, n, m_left, n_left);
        }
    }
}

/* The columns of a warp tile; they and those of the next change before the rows do. */
static range columns_of(const tg_job *j, int64_t n, int64_t warps_n, int64_t warp)
{
    const int64_t begin = warp % warps_n * j->tile.warp.n;
    return (range){begin, tg_min(n, begin + j->tile.warp.n)};
}

/* All warp tiles of a block, this thread's share of them. */
static void multiply_block(const tg_job *j, const team *t, const staged *a, const staged *b,
                           const place *c, const place *sums)
{
    const int64_t m = a->lines.end - a->lines.begin, n = b->lines.end - b->lines.begin;
    const int64_t k = a->ks.end - a->ks.begin;
    const int64_t warp_m = j->tile.warp.m, warps_n = tg_ceil_div(n, j->tile.warp.n);
    const int64_t warps = tg_ceil_div(m, warp_m) * warps_n;
    const int64_t end = (t->me + 1) * warps / t->size;
    for (int64_t warp = t->me * warps / t->size; warp < end; warp++) {
        const range rows = {warp / warps_n * warp_m, tg_min(m, (warp / warps_n + 1) * warp_m)};
        const range cols = columns_of(j, n, warps_n, warp);
        const int is_next_far = warp + 1 < end && warps_n > 1 && !b->in_place;
        const range next = is_next_far ? columns_of(j, n, warps_n, warp + 1) : (range){0, 0};
        for (int64_t k0 = 0; k0 < k; k0 += j->slice) {
            const range ks = {k0, tg_min(k, k0 + j->slice)};
            const int is_first = a->ks.begin + k0 == 0, is_last = a->ks.begin + ks.end == j->p->k;
            pass now = {.from = is_first ? *c : *sums,
                        .to = is_last ? *c : *sums,
                        .beta = is_first ? j->p->beta : 1,
                        .ks = ks};
            now.is_direct = now.to.store == j->copy && (now.beta == 0 || now.from.at == now.to.at);
            multiply_warp(j, t, a, b, &now, rows, cols, next);
        }
    }
}

static tg_item item_at(const tg_job *j, int64_t x)
{
    const tg_problem *p = j->p;
    if (j->items)
        return j->items[x];
    return (tg_item){(const char *)p->a.data + x * j->a_item,
                     (const char *)p->b.data + x * j->b_item, (char *)p->c.data + x * j->c_item};
}

/* A and B of an item, staged at panels if they are not packed. */
static staged operand_a(const tg_job *j, const void *data, char *panels)
{
    const tg_problem *p = j->p;
    const tg_tile *tile = &j->tile;
    const int is_packed = (p->flags & TG_A_PACKED) != 0;
    const int can = tile->form == TG_OUTER     ? p->a.col_stride == 1
                    : tile->form == TG_OUTER_T ? p->a.row_stride == 1 || tile->thread.m == 1
                                               : 1;
    return (staged){.data = data,
                    .bytes = (int64_t)tg_type_size(p->a.type),
                    .copy = j->isa->widen[p->a.type - 1],
                    .line_stride = p->a.row_stride,
                    .k_stride = p->a.col_stride,
                    .line = tile->thread.m,
                    .grain = j->kernel.grain ? 1 : tile->thread.m,
                    .k = tile->block.k,
                    .panels = panels,
                    .k_inner = tile->form != TG_OUTER_T,
                    .in_place = j->plan->a_in_place && can && !is_packed,
                    .packed = is_packed ? (const char *)data + sizeof(tg_packed) : NULL,
                    .all_lines = tg_round_up(p->m, tile->thread.m)};
}

static staged operand_b(const tg_job *j, const void *data, char *panels)
{
    const tg_problem *p = j->p;
    const tg_tile *tile = &j->tile;
    const int is_packed = (p->flags & TG_B_PACKED) != 0;
    const int can = p->b.col_stride == 1 || tile->thread.n == 1;
    return (staged){.data = data,
                    .bytes = (int64_t)tg_type_size(p->b.type),
                    .copy = j->isa->widen[p->b.type - 1],
                    .line_stride = p->b.col_stride,
                    .k_stride = p->b.row_stride,
                    .line = tile->thread.n,
                    .grain = j->kernel.grain ? j->kernel.grain : tile->thread.n,
                    .k = tile->block.k,
                    .panels = panels,
                    .in_place = j->plan->b_in_place && can && !is_packed,
                    .packed = is_packed ? (const char *)data + sizeof(tg_packed) : NULL,
                    .all_lines = tg_round_up(p->n, tile->thread.n)};
}

/* The loop nest over a rectangle of one batch item. */
static void multiply_cell(const tg_job *j, const team *t, tg_item item, range rows, range cols)
{
    const tg_problem *p = j->p;
    const tg_tile *tile = &j->tile;
    const tg_isa *isa = j->isa;
    const int64_t c_elem = (int64_t)tg_type_size(p->c.type);
    staged a = operand_a(j, item.a, t->a), b = operand_b(j, item.b, t->b);
    const int stages_a = !a.packed && (!a.in_place || a.grain > 1);
    const place c = {.at = item.c,
                     .row = p->c.row_stride,
                     .col = p->c.col_stride,
                     .bytes = c_elem,
                     .load = isa->widen[p->c.type - 1],
                     .store = isa->narrow[p->c.type - 1]};
    const place sums = {t->sums, j->sums_row, 1, j->bytes, j->copy, j->copy};
    for (int64_t n = cols.begin; n < cols.end; n += tile->block.n) { /* loop 5: blocks of n */
        b.lines = (range){n, tg_min(cols.end, n + tile->block.n)};
        for (int64_t k = 0; k < p->k; k += tile->block.k) { /* loop 4: blocks of k */
            a.ks = b.ks = (range){k, tg_min(p->k, k + tile->block.k)};
            have_panels(j, t, &b);
            if (!stages_a)
                wait_for(t);
            /* loop 3: blocks of m */
            for (int64_t m = rows.begin; m < rows.end; m += tile->block.m) {
                a.lines = (range){m, tg_min(rows.end, m + tile->block.m)};
                if (stages_a || a.packed)
                    have_panels(j, t, &a);
                if (stages_a)
                    wait_for(t); /* A and B are staged, before they are read */
                const place c_block = moved(c, m, n), sums_block = moved(sums, m - rows.begin, 0);
                multiply_block(j, t, &a, &b, &c_block, j->sums_bytes ? &sums_block : &c_block);
                if (stages_a)
                    wait_for(t); /* read, before it is staged anew */
            }
            if (!stages_a)
                wait_for(t);
        }
    }
}

/* A rectangle of an item that is read and written where it is: of the loops, the two around the
 * kernel are left. */
static void multiply_directly(const tg_job *j, tg_item item, range rows, range cols)
{
    const tg_problem *p = j->p;
    const int64_t bytes = j->bytes, thread_m = j->tile.thread.m, thread_n = j->tile.thread.n;
    const char *a = item.a, *b = item.b;
    char *c = item.c;
    tg_step s = {.k = p->k,
                 .a_row = p->a.row_stride,
                 .a_col = p->a.col_stride,
                 .b_row = p->b.row_stride,
                 .c_row = p->c.row_stride,
                 .ahead = TG_FETCH_STEPS * p->b.row_stride,
                 .steps_that_fetch = j->is_near ? 0 : steps_that_fetch(p->k),
                 .alpha = p->alpha,
                 .beta = p->beta};
    for (int64_t m = rows.begin; m < rows.end; m += thread_m) {
        s.rows = (int)tg_min(thread_m, rows.end - m);
        s.a = a + m * s.a_row * bytes;
        for (int64_t n = cols.begin; n < cols.end; n += thread_n) {
            s.columns = (int)tg_min(thread_n, cols.end - n);
            s.b = b + n * bytes;
            s.c = c + (m * s.c_row + n) * bytes;
            j->kernel.run(&s);
        }
    }
}

/* A few rows of A times a B that is larger than L2: memory is the limit, and likes few long
 * streams. So B is read a few rows at a time, from one end of a block to the other, and the sums
 * wait:
 *
 *     B  +-------------------+
 *        | -> -> -> -> -> -> |  STREAMED rows, panel by panel
 *        | -> -> -> -> -> -> |  the next ones: each panel's sums go on where they were left
 *
 * An element's sum is made in the same order as in a block. */
static void multiply_streaming(const tg_job *j, const team *t, tg_item item, range cols)
{
    enum { STREAMED = 16 };
    const tg_problem *p = j->p;
    const int64_t bytes = j->bytes, panel = j->tile.thread.n, block_k = j->slice;
    const char *a = item.a, *b = item.b;
    char *c = item.c;
    tg_step s = {.a_row = p->a.row_stride,
                 .a_col = p->a.col_stride,
                 .b_row = p->b.row_stride,
                 .c_row = p->c.row_stride,
                 .sums_row = j->sums_row,
                 .rows = (int)p->m,
                 .alpha = p->alpha};
    for (int64_t n = cols.begin; n < cols.end; n += j->tile.block.n) {
        const int64_t n_end = tg_min(cols.end, n + j->tile.block.n);
        for (int64_t k = 0; k < p->k; k += s.k) {
            const int64_t k_end = tg_min(p->k, tg_round_down(k, block_k) + block_k);
            s.k = tg_min(STREAMED, k_end - k);
            s.begins_with_sums = k % block_k > 0;
            s.leaves_sums = k + s.k < k_end;
            s.beta = k < block_k ? p->beta : 1;
            s.a = a + k * bytes;
            for (int64_t at = n; at < n_end; at += panel) {
                s.columns = (int)tg_min(panel, n_end - at);
                s.b = b + (k * s.b_row + at) * bytes;
                s.c = c + at * bytes;
                s.sums = t->sums + (at - n) * bytes;
                j->kernel.run(&s);
            }
        }
    }
}

static void scale_element(char *at, tg_type type, double beta)
{
    uint16_t *half = (uint16_t *)at;
    if (beta == 0)
        memset(at, 0, tg_type_size(type));
    else if (type == TG_F32)
        *(float *)at *= (float)beta;
    else if (type == TG_F64)
        *(double *)at *= beta;
    else if (type == TG_F16)
        *half = tg_f16_of_float((float)beta * tg_float_of_f16(*half));
    else if (type == TG_BF16)
        *half = tg_bf16_of_float((float)beta * tg_float_of_bf16(*half));
    else if (type == TG_I32)
        *(uint32_t *)at *= (uint32_t)(int32_t)beta;
}

/* k == 0 or alpha == 0: C := beta * C, and neither A nor B is read. */
static void scale(const tg_problem *p, char *c)
{
    const int64_t bytes = (int64_t)tg_type_size(p->c.type);
    for (int64_t i = 0; i < p->m; i++) {
        char *at = c + i * p->c.row_stride * bytes;
        for (int64_t x = 0; x < p->n; x++, at += p->c.col_stride * bytes)
            scale_element(at, p->c.type, p->beta);
    }
}

/* So many products of integers are exact in f32, whatever their order. */
static int64_t exact_k(tg_type a, tg_type b)
{
    return (1 << 24) / ((a == TG_I8 ? 128 : 255) * (b == TG_I8 ? 128 : 255));
}

/* A block of less than this is too little to share, unless it is all there is. */
static const double shared_flops = 2e6;

/* Can the kernel read and write all of it where it is? */
static int is_in_place_whole(const tg_job *j)
{
    const tg_problem *p = j->p;
    return j->plan->a_in_place && j->plan->b_in_place && !(p->flags & TG_PACKED) &&
           p->c.type == p->a.type && p->c.col_stride == 1 && p->b.col_stride == 1 &&
           j->kernel.grain && (j->kernel.grain == 1 || p->n % j->kernel.grain == 0) &&
           (j->tile.form == TG_OUTER ? p->a.col_stride == 1 : p->a.row_stride == 1);
}

static tg_job job_of(const tg_isa *isa, const tg_limits *l, const tg_problem *p,
                     const tg_plan *plan)
{
    const int is_f64 = tg_cpu_kind(p->a.type);
    tg_job j = {.p = p,
                .plan = plan,
                .isa = isa,
                .tile = plan->tile,
                .copy = isa->widen[(is_f64 ? TG_F64 : TG_F32) - 1],
                .add = p->c.type == TG_I32 ? isa->add : NULL,
                .bytes = is_f64 ? sizeof(double) : sizeof(float),
                .strips = 1};
    const int a_packed = (p->flags & TG_A_PACKED) != 0, b_packed = (p->flags & TG_B_PACKED) != 0;
    if (p->batch > 1) {
        j.a_item = a_packed ? 0 : p->a.batch_stride * (int64_t)tg_type_size(p->a.type);
        j.b_item = b_packed ? 0 : p->b.batch_stride * (int64_t)tg_type_size(p->b.type);
        j.c_item = p->c.batch_stride * (int64_t)tg_type_size(p->c.type);
    }
    const tg_tile *t = &j.tile;
    if (t->stages == 0)
        j.tile.block.k = (int)tg_clamp(p->k, 1, INT32_MAX);
    j.kernel = plan->row >= 0 ? isa->kernels[is_f64][plan->row] : tg_cpu_kernel(isa, *t, p->a.type);
    j.slice = tg_ceil_div(t->block.k, t->slices);
    if (j.add)
        j.slice = tg_min(j.slice, exact_k(p->a.type, p->b.type));
    j.a_bytes =
        tg_round_up((int64_t)tg_round_up(t->block.m, t->thread.m) * t->block.k * j.bytes, 64);
    j.b_bytes =
        tg_round_up((int64_t)tg_round_up(t->block.n, t->thread.n) * t->block.k * j.bytes, 64);
    /* With nothing to stage together, or too little, each thread takes a strip of its own. */
    const int in_place =
        (plan->a_in_place || a_packed) && (plan->b_in_place || b_packed) && j.kernel.grain;
    j.a_bytes = a_packed ? 0 : j.a_bytes;
    j.b_bytes = b_packed ? 0 : j.b_bytes;
    const int64_t grain_m = in_place ? t->warp.m : t->block.m;
    const int64_t grain_n = in_place ? t->warp.n : t->block.n;
    const int64_t pieces_m = tg_ceil_div(p->m, grain_m), pieces_n = tg_ceil_div(p->n, grain_n);
    if (p->k > 0 &&
        (in_place || 2.0 * t->block.m * t->block.n * t->block.k < shared_flops * plan->threads))
        j.strips = tg_min(plan->threads, tg_max(pieces_m, pieces_n));
    j.strips_cut_m = pieces_m >= pieces_n;
    j.grain = j.strips_cut_m ? grain_m : grain_n;
    j.pieces = j.strips_cut_m ? pieces_m : pieces_n;
    j.cells = p->batch * j.strips;
    j.is_each_alone = j.cells >= plan->threads;
    const int is_whole = is_in_place_whole(&j);
    j.is_direct = is_whole && p->k <= j.slice && p->m <= t->block.m && p->n <= t->warp.n;
    j.is_streamed = is_whole && !j.is_direct && t->form == TG_OUTER && p->m <= t->thread.m;
    j.is_near = p->k * (p->n + t->thread.m) * j.bytes <= l->l1 * 3 / 4;
    if (j.is_streamed || ((int64_t)tg_type_size(p->c.type) < j.bytes && p->k > j.slice)) {
        const int64_t rows = j.strips_cut_m ? tg_ceil_div(pieces_m, j.strips) * grain_m : p->m;
        j.sums_row = tg_round_up(tg_min(t->block.n, p->n), 16);
        j.sums_bytes = tg_round_up(rows * j.sums_row * j.bytes, 64);
    }
    return j;
}

/* It takes many divisions, so one is kept for as long as the plan is. */
static const tg_job *job_for(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    tg_cpu *cpu = ctx->device;
    if (cpu->planned != ctx->plans)
        cpu->job = job_of(cpu->isa, &ctx->limits, p, plan);
    cpu->planned = ctx->plans;
    cpu->job.p = p;
    return &cpu->job;
}

static int64_t corner_bytes(const tg_job *j)
{
    return tg_round_up((int64_t)j->tile.thread.m * j->tile.thread.n * j->bytes, 64);
}

static int64_t team_bytes(const tg_job *j) { return j->a_bytes + j->b_bytes + j->sums_bytes; }

size_t tg_cpu_workspace(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    if (p->k == 0)
        return 0;
    const tg_job j = job_of(((const tg_cpu *)ctx->device)->isa, &ctx->limits, p, plan);
    const int64_t teams = j.is_each_alone ? plan->threads : 1;
    return (size_t)(teams * team_bytes(&j) + plan->threads * corner_bytes(&j));
}

tg_status tg_cpu_pack(tg_context *ctx, const tg_problem *p, const tg_plan *plan, void *panels)
{
    const tg_isa *isa = ((const tg_cpu *)ctx->device)->isa;
    const tg_job j = job_of(isa, &ctx->limits, p, plan);
    const int is_a = (p->flags & TG_A_PACKED) != 0;
    staged s = is_a ? operand_a(&j, p->a.data, NULL) : operand_b(&j, p->b.data, NULL);
    s.in_place = 0;
    s.packed = panels;
    s.lines.end = is_a ? p->m : p->n;
    const int threads = tg_cpu_may_thread() ? plan->threads : 1;
    for (int64_t k = 0; k < p->k; k += j.tile.block.k) {
        s.ks = (range){k, tg_min(p->k, k + j.tile.block.k)};
        s.k = s.ks.end - s.ks.begin;
        s.panels = packed_panels(&j, &s);
        if (threads == 1) {
            stage(&j, &(team){.size = 1}, &s);
            continue;
        }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
        stage(&j, &(team){.me = omp_get_thread_num(), .size = omp_get_num_threads()}, &s);
#endif
    }
    return TG_OK;
}

static void run_cells(const tg_job *j, const tg_plan *plan, char *workspace, int me, int threads)
{
    const int alone = j->is_each_alone;
    char *own = workspace + (alone ? me : 0) * team_bytes(j);
    char *corners = workspace + (alone ? plan->threads : 1) * team_bytes(j);
    const team t = {.me = alone ? 0 : me,
                    .size = alone ? 1 : threads,
                    .a = own,
                    .b = own + j->a_bytes,
                    .sums = own + j->a_bytes + j->b_bytes,
                    .corner = corners + me * corner_bytes(j)};
    const int64_t along = j->strips_cut_m ? j->p->m : j->p->n;
    for (int64_t cell = alone ? me : 0; cell < j->cells; cell += alone ? threads : 1) {
        const int64_t strip = j->strips > 1 ? cell % j->strips : 0;
        const int64_t item = j->strips > 1 ? cell / j->strips : cell;
        range rows = {0, j->p->m}, cols = {0, j->p->n};
        if (j->strips > 1)
            *(j->strips_cut_m ? &rows : &cols) =
                (range){strip * j->pieces / j->strips * j->grain,
                        tg_min(along, (strip + 1) * j->pieces / j->strips * j->grain)};
        if (j->is_direct)
            multiply_directly(j, item_at(j, item), rows, cols);
        else if (j->is_streamed)
            multiply_streaming(j, &t, item_at(j, item), cols);
        else
            multiply_cell(j, &t, item_at(j, item), rows, cols);
    }
}

static void run_job(const tg_context *ctx, const tg_job *j)
{
    const tg_plan *plan = j->plan;
    char *workspace = ctx->workspace;
    if (j->p->k == 0) {
        for (int64_t item = 0; item < j->cells; item++)
            scale(j->p, item_at(j, item).c);
        return;
    }
    if (plan->threads == 1 || !tg_cpu_may_thread()) {
        run_cells(j, plan, workspace, 0, 1);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(plan->threads)
    run_cells(j, plan, workspace, omp_get_thread_num(), omp_get_num_threads());
#endif
}

tg_status tg_cpu_gemm(tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    run_job(ctx, job_for(ctx, p, plan));
    return TG_OK;
}

/* Several threads may be here with the same device: the job that is kept there is left alone. */
tg_status tg_cpu_gemm_items(tg_context *ctx, const tg_problem *p, const tg_plan *plan,
                            const tg_item *items, int64_t count)
{
    tg_problem item = *p;
    tg_job j = job_of(((const tg_cpu *)ctx->device)->isa, &ctx->limits, &item, plan);
    if (p->batch == 1) {
        j.items = items;
        j.cells = count * j.strips;
        run_job(ctx, &j);
        return TG_OK;
    }
    for (int64_t x = 0; x < count; x++) {
        item.a.data = items[x].a, item.b.data = items[x].b, item.c.data = items[x].c;
        run_job(ctx, &j);
    }
    return TG_OK;
}

void tg_cpu_spread(int threads, void (*work)(void *arg, int me), void *arg)
{
#ifdef _OPENMP
    if (tg_cpu_may_thread()) {
#pragma omp parallel num_threads(threads)
        work(arg, omp_get_thread_num());
        return;
    }
#endif
    (void)threads;
    work(arg, 0);
}
