/* SPDX-License-Identifier: Apache-2.0
 *
 * A call on the CPU: how it is shared out to threads, and what memory that takes.
 *
 * A problem is first cut into cells (a batch item, a strip of C). Either each thread takes whole
 * cells, or the team works on one after the other. Neither changes a bit of the result. The loops
 * are in loops.h; a product that needs none of them is in direct.h, or in streams.h if it is to be
 * read in long streams; stage.h brings operands to the order of kernels; job.h decides. */
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "half.h"
#include "job.h"

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

/* It takes many divisions, so one is kept for as long as the plan is. */
static tg_job *job_for(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    tg_cpu *cpu = ctx->device;
    if (cpu->planned != ctx->plans)
        cpu->job = job_of(cpu->isa, &ctx->limits, p, plan);
    cpu->planned = ctx->plans;
    cpu->job.p = p;
    return &cpu->job;
}

static int64_t beside_bytes(const tg_job *j)
{
    const int64_t vector = j->isa->kernels[tg_cpu_kind(j->p->a.type)]->turned_columns;
    const int64_t turned = TG_TURNED_ROWS * TG_TURNED_VECTORS * vector;
    const int64_t tiles = j->tile.thread.m * tg_round_up(j->tile.warp.n, j->tile.thread.n);
    return tg_round_up((j->turned && !j->words ? turned : tiles) * j->sum_bytes, 64);
}

/* A team multiplies one block while it stages the next. */
static int stages_of(const tg_job *j) { return j->is_each_alone ? 1 : 2; }

static int64_t team_bytes(const tg_job *j)
{
    return stages_of(j) * (j->a_bytes + j->b_bytes) + j->sums_bytes;
}

size_t tg_cpu_workspace(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    if (p->k == 0)
        return 0;
    const tg_job j = job_of(((const tg_cpu *)ctx->device)->isa, &ctx->limits, p, plan);
    const int64_t teams = j.is_each_alone ? plan->threads : 1;
    return (size_t)(teams * team_bytes(&j) + plan->threads * (beside_bytes(&j) + TAKEN_BYTES) +
                    (j.splits - !j.is_c_beside) * j.apart_bytes);
}

#define COPY(name, type)                                                                   \
    static void name(void *to, int64_t to_outer, int64_t to_inner, const void *from,       \
                     int64_t from_outer, int64_t from_inner, int64_t outer, int64_t inner) \
    {                                                                                      \
        for (int64_t o = 0; o < outer; o++)                                                \
            for (int64_t i = 0; i < inner; i++)                                            \
                ((type *)to)[o * to_outer + i * to_inner] =                                \
                    ((const type *)from)[o * from_outer + i * from_inner];                 \
    }
COPY(copy_bytes, uint8_t)
COPY(copy_halves, uint16_t)

/* Panels are packed in their own type. */
tg_status tg_cpu_pack(tg_context *ctx, const tg_problem *p, const tg_plan *plan, void *panels)
{
    const tg_isa *isa = ((const tg_cpu *)ctx->device)->isa;
    tg_job j = job_of(isa, &ctx->limits, p, plan);
    const int is_a = (p->flags & TG_A_PACKED) != 0;
    staged s = operand(&j, is_a ? TG_A_PACKED : TG_B_PACKED, is_a ? p->a.data : p->b.data, NULL);
    if (s.bytes < j.bytes) {
        j.bytes = s.bytes;
        s.copy = s.bytes == 1 ? copy_bytes : copy_halves;
    }
    s.packed = NULL; /* yet */
    s.lines.end = is_a ? p->m : p->n;
    const int threads = tg_cpu_threads(plan->threads);
    for (int64_t k = 0; k < p->k; k += j.tile.block.k) {
        s.ks = (range){k, tg_min(p->k, k + j.tile.block.k)};
        s.k = packed_k(&j, &s);
        s.panels = panels_in(&j, &s, panels);
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

static tg_item cell_at(const tg_job *j, int64_t cell, range *rows, range *cols)
{
    const int64_t strips = (int64_t)j->strips.m * j->strips.n;
    *rows = (range){0, j->p->m};
    *cols = (range){0, j->p->n};
    if (strips == 1)
        return item_at(j, cell);
    const int64_t item = cell / strips, m = cell % strips / j->strips.n, n = cell % j->strips.n;
    *rows = strip_at(m, j->strips.m, j->pieces_m, j->grain.m, j->p->m);
    *cols = strip_at(n, j->strips.n, j->pieces_n, j->grain.n, j->p->n);
    return item_at(j, item);
}

static void run_step(const tg_job *j, tg_step *s, tg_item item, int64_t row)
{
    s->a = (const char *)item.a + row * s->a_row * j->bytes;
    s->b = item.b;
    s->c = (char *)item.c + row * s->c_row * j->bytes;
    s->alpha = j->p->alpha;
    s->beta = j->p->beta;
    j->kernel.run(s);
}

/* An item so small that what stands before its kernel is what it costs. */
static void run_steps(const tg_job *j, tg_step *tall, tg_step *low, tg_item item)
{
    run_step(j, tall, item, 0);
    if (j->rows.low > 0)
        run_step(j, low, item, j->rows.tall * j->rows.height);
}

static void run_items(const tg_job *j, int64_t begin, int64_t end, int fetches, tg_step *tall)
{
    tg_step low = j->low_step;
    for (int64_t item = begin; item < end; item++) {
        if (fetches && item + 1 < end)
            fetch_item(j, item_at(j, item + 1), 0, tall);
        run_steps(j, tall, &low, item_at(j, item));
    }
}

static void run_directly(const tg_job *j, int64_t begin, int64_t end, char *room)
{
    const int fetches = end - begin > j->near_items;
    tg_step s = j->step;
    s.alpha = j->p->alpha;
    s.beta = j->p->beta;
    if (j->is_step) {
        run_items(j, begin, end, fetches, &s);
        return;
    }
    for (int64_t cell = begin; cell < end; cell++) {
        range rows, cols;
        const tg_item item = cell_at(j, cell, &rows, &cols);
        const int64_t next = fetches && cell + 1 < end ? cell + 1 : 0;
        if (j->widens)
            multiply_widened(j, &s, item, rows, cols, room);
        else if (j->is_flat)
            multiply_flat(j, &s, item, rows, cols, room);
        else
            multiply_directly(j, &s, item, rows, cols, next, room);
    }
}

static void run_cells(const tg_job *j, const tg_plan *plan, char *workspace, int me, int threads)
{
    const int alone = j->is_each_alone;
    char *own = workspace + (alone ? me : 0) * team_bytes(j);
    char *beside = workspace + (alone ? plan->threads : 1) * team_bytes(j);
    char *taken = beside + plan->threads * beside_bytes(j);
    const team t = {.me = alone ? 0 : me,
                    .size = alone ? 1 : threads,
                    .a = own,
                    .b = own + stages_of(j) * j->a_bytes,
                    .sums = own + stages_of(j) * (j->a_bytes + j->b_bytes),
                    .beside = beside + me * beside_bytes(j),
                    .taken = taken + (alone ? me : 0) * TAKEN_BYTES,
                    .apart = taken + plan->threads * TAKEN_BYTES};
    if (j->splits > 1) {
        multiply_splits(j, &t, item_at(j, 0), me, threads);
        return;
    }
    for (int64_t cell = alone ? me : 0; cell < j->cells; cell += alone ? threads : 1) {
        range rows, cols;
        if (cell > 0)
            wait_for(&t); /* the cell before it is read */
        const tg_item item = cell_at(j, cell, &rows, &cols);
        if (j->is_streamed)
            multiply_streaming(j, &t, item, cols, (range){0, j->p->k});
        else if (j->turned && j->words)
            multiply_lines(j, &t, item, cols);
        else if (j->turned)
            multiply_turned(j, &t, item, j->turned == TG_TURNED_A ? rows : cols);
        else
            multiply_cell(j, &t, item, rows, cols);
    }
}

static void run_share(const tg_context *ctx, const tg_job *j, int me, int threads)
{
    if (j->words && j->words->start)
        j->words->start();
    if (j->is_direct && threads == 1)
        run_directly(j, 0, j->cells, ctx->workspace);
    else if (j->is_direct)
        run_directly(j, me * j->cells / threads, (me + 1) * j->cells / threads,
                     (char *)ctx->workspace + me * team_bytes(j));
    else
        run_cells(j, j->plan, ctx->workspace, me, threads);
    if (j->words && j->words->stop)
        j->words->stop();
}

static void run_job(const tg_context *ctx, const tg_job *j)
{
    const tg_plan *plan = j->plan;
    if (j->p->k == 0) {
        for (int64_t item = 0; item < j->cells; item++)
            scale(j->p, j->items ? j->items[item].c : (char *)j->p->c.data + item * j->c_item);
        return;
    }
    const int threads = plan->threads == 1 ? 1 : tg_cpu_threads(plan->threads);
    if (threads == 1) {
        run_share(ctx, j, 0, 1);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
    run_share(ctx, j, omp_get_thread_num(), omp_get_num_threads());
#endif
}

/* With the job's own step: a copy of it would cost as much as a tile. (Inlined, it would cost those
 * that are one step.) */
static __attribute__((noinline)) void run_alone(const tg_context *ctx, tg_job *j)
{
    const tg_problem *p = j->p;
    j->step.alpha = p->alpha;
    j->step.beta = p->beta;
    multiply_directly(j, &j->step, (tg_item){p->a.data, p->b.data, p->c.data}, (range){0, p->m},
                      (range){0, p->n}, 0, ctx->workspace);
}

tg_status tg_cpu_gemm(tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    tg_job *j = job_for(ctx, p, plan);
    if (j->is_step && j->cells == 1 && p->k > 0)
        run_steps(j, &j->step, &j->low_step, (tg_item){p->a.data, p->b.data, p->c.data});
    else if (j->is_alone && p->k > 0)
        run_alone(ctx, j);
    else
        run_job(ctx, j);
    return TG_OK;
}

/* Several threads may be here with the same device: the job that is kept there is left alone. */
tg_status tg_cpu_gemm_items(tg_context *ctx, const tg_problem *p, const tg_plan *plan,
                            const tg_item *items, int64_t count)
{
    tg_problem item = *p;
    tg_plan own = *plan;
    own.splits = 1; /* k of many items is not shared */
    tg_job j = job_of(((const tg_cpu *)ctx->device)->isa, &ctx->limits, &item, &own);
    if (p->batch == 1) {
        j.items = items;
        j.cells = count * j.strips.m * j.strips.n;
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
    const int most = tg_cpu_threads(threads);
    if (most == 1) {
        work(arg, 0);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(most)
    work(arg, omp_get_thread_num());
#endif
}
