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
 * cells, or the team works on one after the other. Neither changes a bit of the result. */
#include "cpu.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct range {
    int64_t begin, end;
} range;

enum { ROWS_AT_ONCE = 16 };

/* What all threads know of a call. */
typedef struct job {
    const tg_problem *p;
    const tg_plan *plan;
    tg_tile tile; /* filled in; block.k is that of the problem where nothing is staged */
    tg_kernel kernel;
    tg_copy *copy;
    int64_t bytes;            /* of an element */
    int64_t a_bytes, b_bytes; /* of staging for one team */
    int64_t strips, cells;    /* cells = batch x strips */
    int64_t grain;            /* what the edges of strips are multiples of */
    int strips_cut_m;         /* strips are rows of C, else columns */
} job;

/* Who works on a cell. */
typedef struct team {
    int me, size;
    char *a, *b;  /* staged [panel][block.k][thread.m] and [panel][block.k][thread.n] */
    char *corner; /* one thread tile of C, for the ragged edge */
} team;

/* One operand's part of a block. line is thread.m rows of A, or thread.n columns of B. */
typedef struct staged {
    const char *data; /* the matrix: element (line 0, k 0) of the batch item */
    int64_t line_stride, k_stride, line, grain, k;
    range lines, ks;
    char *panels;
    int in_place, k_inner; /* k_inner: packed as [line][k], not [k][line] */
} staged;

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

static const char *matrix_at(const job *j, const staged *s, int64_t panel)
{
    return s->data +
           ((s->lines.begin + panel * s->line) * s->line_stride + s->ks.begin * s->k_stride) *
               j->bytes;
}

static char *panel_at(const job *j, const staged *s, int64_t panel)
{
    return s->panels + panel * s->line * s->k * j->bytes;
}

/* Packs k_count of a panel's k, from k_begin on. */
static void pack(const job *j, const staged *s, int64_t panel, int64_t k_begin, int64_t k_count)
{
    const int64_t lines = tg_min(s->line, s->lines.end - s->lines.begin - panel * s->line);
    const int64_t line_to = s->k_inner ? s->k : 1, k_to = s->k_inner ? 1 : s->line;
    char *to = panel_at(j, s, panel) + k_begin * k_to * j->bytes;
    const char *from = matrix_at(j, s, panel) + k_begin * s->k_stride * j->bytes;
    if (is_in_place(s, panel))
        return;
    if (lines < s->line && k_begin == 0)
        memset(to, 0, (size_t)(s->line * s->k * j->bytes));
    if (s->k_inner)
        j->copy(to, line_to, k_to, from, s->line_stride, s->k_stride, lines, k_count);
    else
        j->copy(to, k_to, line_to, from, s->k_stride, s->line_stride, k_count, lines);
}

/* Each thread packs its share of the panels. Where a row of the matrix runs through all of them,
 * a few rows at a time, so that memory is read along its rows. */
static void stage(const job *j, const team *t, const staged *s)
{
    const int64_t panels = tg_ceil_div(s->lines.end - s->lines.begin, s->line);
    const int64_t begin = t->me * panels / t->size, end = (t->me + 1) * panels / t->size;
    const int64_t k = s->ks.end - s->ks.begin, few = s->line_stride == 1 ? ROWS_AT_ONCE : k;
    for (int64_t k_begin = 0; k_begin < k; k_begin += few)
        for (int64_t panel = begin; panel < end; panel++)
            pack(j, s, panel, k_begin, tg_min(few, k - k_begin));
}

/* Runs the kernel on a tile of C that is ragged, or whose columns are not adjacent. */
static void run_on_corner(const job *j, const team *t, tg_step *s, int64_t rows, int64_t cols)
{
    const int64_t c_row = s->c_row, c_col = j->p->c.col_stride, corner_row = j->tile.thread.n;
    void *c = s->c;
    s->c = t->corner;
    s->c_row = corner_row;
    if (s->beta != 0)
        j->copy(t->corner, corner_row, 1, c, c_row, c_col, rows, cols);
    j->kernel.run(s);
    j->copy(c, c_row, c_col, t->corner, corner_row, 1, rows, cols);
    s->c_row = c_row;
}

/* The part of a step that comes from an operand: a pointer and two strides. */
static const void *read_panel(const job *j, const staged *s, int64_t panel, int64_t k_offset,
                              int64_t *line_stride, int64_t *k_stride)
{
    if (is_in_place(s, panel)) {
        *line_stride = s->line_stride;
        *k_stride = s->k_stride;
        return matrix_at(j, s, panel) + k_offset * s->k_stride * j->bytes;
    }
    *line_stride = s->k_inner ? s->k : 1;
    *k_stride = s->k_inner ? 1 : s->line;
    return panel_at(j, s, panel) + k_offset * *k_stride * j->bytes;
}

/* One warp tile of a block, over one slice of its k. Meanwhile the columns of B that this thread
 * takes next come to L2. */
static void multiply_warp(const job *j, const team *t, const staged *a, const staged *b, char *c,
                          range rows, range cols, range next, range ks, double beta)
{
    const int64_t c_row = j->p->c.row_stride, c_col = j->p->c.col_stride;
    const int all_vectors = (int)(b->line / j->tile.vec), is_c_in_rows = c_col == 1 || b->line == 1;
    tg_step s = {.k = ks.end - ks.begin,
                 .c_row = c_row,
                 .next = panel_at(j, b, next.begin / b->line),
                 .next_end = panel_at(j, b, tg_ceil_div(next.end, b->line)),
                 .alpha = j->p->alpha,
                 .beta = beta};
    int64_t panel_a = rows.begin / a->line;
    for (int64_t m = rows.begin; m < rows.end; m += a->line, panel_a++) { /* loop 2: A from L1 */
        const int64_t m_left = tg_min(a->line, a->lines.end - a->lines.begin - m);
        const int is_row_whole = is_c_in_rows && (m_left == a->line || m_left % a->grain == 0);
        int64_t panel_b = cols.begin / b->line, unused;
        s.a = read_panel(j, a, panel_a, ks.begin, &s.a_row, &s.a_col);
        s.rows = (int)m_left;
        for (int64_t n = cols.begin; n < cols.end;
             n += b->line, panel_b++) { /* loop 1: B from L2 */
            const int64_t n_left = tg_min(b->line, b->lines.end - b->lines.begin - n);
            s.b = read_panel(j, b, panel_b, ks.begin, &unused, &s.b_row);
            s.c = c + ((a->lines.begin + m) * c_row + (b->lines.begin + n) * c_col) * j->bytes;
            s.vectors = n_left == b->line ? all_vectors : (int)tg_ceil_div(n_left, j->tile.vec);
            if (is_row_whole && (n_left == b->line || n_left % b->grain == 0))
                j->kernel.run(&s);
            else
                run_on_corner(j, t, &s, m_left, n_left);
        }
    }
}

/* The columns of a warp tile; they and those of the next change before the rows do. */
static range columns_of(const job *j, int64_t n, int64_t warps_n, int64_t warp)
{
    const int64_t begin = warp % warps_n * j->tile.warp.n;
    return (range){begin, tg_min(n, begin + j->tile.warp.n)};
}

/* All warp tiles of a block, this thread's share of them. */
static void multiply_block(const job *j, const team *t, const staged *a, const staged *b, char *c,
                           double beta)
{
    const int64_t m = a->lines.end - a->lines.begin, n = b->lines.end - b->lines.begin;
    const int64_t k = a->ks.end - a->ks.begin;
    const int64_t warp_m = j->tile.warp.m, warps_n = tg_ceil_div(n, j->tile.warp.n);
    const int64_t warps = tg_ceil_div(m, warp_m) * warps_n;
    const int64_t slice = tg_ceil_div(j->tile.block.k, j->tile.slices);
    const int64_t end = (t->me + 1) * warps / t->size;
    for (int64_t warp = t->me * warps / t->size; warp < end; warp++) {
        const range rows = {warp / warps_n * warp_m, tg_min(m, (warp / warps_n + 1) * warp_m)};
        const range cols = columns_of(j, n, warps_n, warp);
        const int is_next_far = warp + 1 < end && warps_n > 1 && !b->in_place;
        const range next = is_next_far ? columns_of(j, n, warps_n, warp + 1) : (range){0, 0};
        for (int64_t k0 = 0; k0 < k; k0 += slice) {
            const range ks = {k0, tg_min(k, k0 + slice)};
            multiply_warp(j, t, a, b, c, rows, cols, next, ks, k0 ? 1 : beta);
        }
    }
}

/* The loop nest over a rectangle of one batch item. */
static void multiply_cell(const job *j, const team *t, int64_t item, range rows, range cols)
{
    const tg_problem *p = j->p;
    const tg_tile *tile = &j->tile;
    const int a_in_rows = tile->form != TG_OUTER_T;
    const int a_can = tile->form == TG_OUTER     ? p->a.col_stride == 1
                      : tile->form == TG_OUTER_T ? p->a.row_stride == 1 || tile->thread.m == 1
                                                 : 1;
    staged a = {.data = (const char *)p->a.data + item * p->a.batch_stride * j->bytes,
                .line_stride = p->a.row_stride,
                .k_stride = p->a.col_stride,
                .line = tile->thread.m,
                .grain = j->kernel.is_ragged ? 1 : tile->thread.m,
                .k = tile->block.k,
                .panels = t->a,
                .k_inner = a_in_rows,
                .in_place = j->plan->a_in_place && a_can};
    staged b = {.data = (const char *)p->b.data + item * p->b.batch_stride * j->bytes,
                .line_stride = p->b.col_stride,
                .k_stride = p->b.row_stride,
                .line = tile->thread.n,
                .grain = j->kernel.is_ragged ? tile->vec : tile->thread.n,
                .k = tile->block.k,
                .panels = t->b,
                .in_place = j->plan->b_in_place && (p->b.col_stride == 1 || tile->thread.n == 1)};
    const int stages_a = !a.in_place || a.grain > 1;
    char *c = (char *)p->c.data + item * p->c.batch_stride * j->bytes;
    for (int64_t n = cols.begin; n < cols.end; n += tile->block.n) { /* loop 5: blocks of n */
        b.lines = (range){n, tg_min(cols.end, n + tile->block.n)};
        for (int64_t k = 0; k < p->k; k += tile->block.k) { /* loop 4: blocks of k */
            a.ks = b.ks = (range){k, tg_min(p->k, k + tile->block.k)};
            stage(j, t, &b);
            if (!stages_a)
                wait_for(t);
            /* loop 3: blocks of m */
            for (int64_t m = rows.begin; m < rows.end; m += tile->block.m) {
                a.lines = (range){m, tg_min(rows.end, m + tile->block.m)};
                if (stages_a) {
                    stage(j, t, &a);
                    wait_for(t); /* A and B are staged, before they are read */
                }
                multiply_block(j, t, &a, &b, c, k ? 1 : p->beta);
                if (stages_a)
                    wait_for(t); /* read, before it is staged anew */
            }
            if (!stages_a)
                wait_for(t);
        }
    }
}

/* k == 0 or alpha == 0: C := beta * C, and neither A nor B is read. */
static void scale(const job *j)
{
    const tg_problem *p = j->p;
    for (int64_t item = 0; item < p->batch; item++)
        for (int64_t i = 0; i < p->m; i++) {
            char *at =
                (char *)p->c.data + (item * p->c.batch_stride + i * p->c.row_stride) * j->bytes;
            for (int64_t x = 0; x < p->n; x++, at += p->c.col_stride * j->bytes) {
                if (p->c.type == TG_F32)
                    *(float *)at = p->beta == 0 ? 0 : (float)p->beta * *(float *)at;
                else
                    *(double *)at = p->beta == 0 ? 0 : p->beta * *(double *)at;
            }
        }
}

/* A block of less than this is too little to share, unless it is all there is. */
static const double shared_flops = 2e6;

static job job_of(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    const tg_isa *isa = ((const tg_cpu *)ctx->device)->isa;
    job j = {.p = p,
             .plan = plan,
             .tile = plan->tile,
             .bytes = (int64_t)tg_type_size(p->c.type),
             .strips = 1};
    const tg_tile *t = &j.tile;
    if (t->stages == 0)
        j.tile.block.k = (int)tg_clamp(p->k, 1, INT32_MAX);
    j.kernel =
        plan->row >= 0 ? isa->kernels[p->c.type - 1][plan->row] : tg_cpu_kernel(isa, *t, p->c.type);
    j.copy = isa->copy[p->c.type - 1];
    j.a_bytes =
        tg_round_up((int64_t)tg_round_up(t->block.m, t->thread.m) * t->block.k * j.bytes, 64);
    j.b_bytes =
        tg_round_up((int64_t)tg_round_up(t->block.n, t->thread.n) * t->block.k * j.bytes, 64);
    /* With nothing to stage together, or too little, each thread takes a strip of its own. */
    const int in_place = plan->a_in_place && plan->b_in_place && j.kernel.is_ragged;
    const int64_t grain_m = in_place ? t->warp.m : t->block.m;
    const int64_t grain_n = in_place ? t->warp.n : t->block.n;
    const int64_t pieces_m = tg_ceil_div(p->m, grain_m), pieces_n = tg_ceil_div(p->n, grain_n);
    if (in_place || 2.0 * t->block.m * t->block.n * t->block.k < shared_flops * plan->threads)
        j.strips = tg_min(plan->threads, tg_max(pieces_m, pieces_n));
    j.strips_cut_m = pieces_m >= pieces_n;
    j.grain = j.strips_cut_m ? grain_m : grain_n;
    j.cells = p->batch * j.strips;
    return j;
}

static int64_t corner_bytes(const job *j)
{
    return tg_round_up((int64_t)j->tile.thread.m * j->tile.thread.n * j->bytes, 64);
}

size_t tg_cpu_workspace(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    if (p->k == 0)
        return 0;
    const job j = job_of(ctx, p, plan);
    const int64_t teams = j.cells >= plan->threads ? plan->threads : 1;
    return (size_t)(teams * (j.a_bytes + j.b_bytes) + plan->threads * corner_bytes(&j));
}

static void run_cells(const job *j, const tg_plan *plan, char *workspace, int me, int threads)
{
    const int alone = j->cells >= plan->threads;
    const int64_t team_bytes = j->a_bytes + j->b_bytes;
    char *corners = workspace + (alone ? plan->threads : 1) * team_bytes;
    const team t = {.me = alone ? 0 : me,
                    .size = alone ? 1 : threads,
                    .a = workspace + (alone ? me : 0) * team_bytes,
                    .b = workspace + (alone ? me : 0) * team_bytes + j->a_bytes,
                    .corner = corners + me * corner_bytes(j)};
    const int64_t along = j->strips_cut_m ? j->p->m : j->p->n;
    const int64_t pieces = tg_ceil_div(along, j->grain);
    for (int64_t cell = alone ? me : 0; cell < j->cells; cell += alone ? threads : 1) {
        const int64_t strip = cell % j->strips;
        const range cut = {strip * pieces / j->strips * j->grain,
                           tg_min(along, (strip + 1) * pieces / j->strips * j->grain)};
        const range all_m = {0, j->p->m}, all_n = {0, j->p->n};
        multiply_cell(j, &t, cell / j->strips, j->strips_cut_m ? cut : all_m,
                      j->strips_cut_m ? all_n : cut);
    }
}

tg_status tg_cpu_gemm(tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    const job j = job_of(ctx, p, plan);
    if (p->k == 0) {
        scale(&j);
        return TG_OK;
    }
    char *workspace = ctx->workspace;
    if (plan->threads == 1 || !tg_cpu_may_thread()) {
        run_cells(&j, plan, workspace, 0, 1);
        return TG_OK;
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(plan->threads)
    run_cells(&j, plan, workspace, omp_get_thread_num(), omp_get_num_threads());
#endif
    return TG_OK;
}
