/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU as a device: its threads, its memory, its kernels; what it is, machine.c reads.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "cpu.h"
#include "module.h"

/* --------------------------------------------------------------------------- threads and fork */

/* An OpenMP runtime's threads do not exist in a child made by fork(), and libgomp waits for them
 * forever. The child is marked, and works alone. */
static atomic_int is_forked_child;

static void mark_child(void) { atomic_store(&is_forked_child, 1); }

/* From the start: the parent may have used OpenMP before its first context. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, mark_child);
}

int tg_cpu_threads(int wanted)
{
#ifdef _OPENMP
    if (!omp_in_parallel() && !atomic_load_explicit(&is_forked_child, memory_order_relaxed))
        return wanted;
#endif
    (void)wanted;
    return 1;
}

/* -------------------------------------------------------------------------------- the backend */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tg_status cpu_reason(char *reason, size_t size)
{
    (void)reason, (void)size;
    return TG_OK;
}

static tg_status cpu_open(tg_context *ctx, int device)
{
    if (device != 0)
        return tg_fail(ctx, TG_NO_DEVICE, "device = %d: the CPU is device 0 only", device);
    const tg_isa *isa = tg_cpu_read_machine(ctx);
    if (!isa)
        return ctx->status;
    tg_cpu *cpu = malloc(sizeof *cpu);
    if (!cpu)
        return tg_fail(ctx, TG_OUT_OF_MEMORY, "%zu bytes could not be had", sizeof *cpu);
    cpu->isa = isa;
    cpu->planned = 0;
    ctx->device = cpu;
    return TG_OK;
}

static void cpu_close(tg_context *ctx) { free(ctx->device); }

static int is_same_inst(tg_mnk x, tg_mnk y) { return x.m == y.m && x.n == y.n && x.k == y.k; }

const tg_words *tg_cpu_words(const tg_isa *isa, tg_tile tile, tg_type a, tg_type b)
{
    for (const tg_words *words = isa->words; words->a; words++)
        if (words->a == a && words->b == b && is_same_inst(words->inst, tile.inst))
            return words;
    return NULL;
}

tg_kernel tg_cpu_kernel(const tg_isa *isa, tg_tile tile, tg_type a, tg_type b)
{
    const tg_words *words = tile.inst.k > 1 ? tg_cpu_words(isa, tile, a, b) : NULL;
    const tg_kernel of_words = {.run = words ? words->run : NULL, .grain = 1};
    tg_kernel found = {.run = NULL};
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile t = tg_tile_at(row);
        const tg_kernel kernel =
            tile.inst.k > 1 ? of_words : isa->kernels[tg_cpu_kind(a)]->rows[row];
        if (!kernel.run || t.vec != tile.vec || t.form != tile.form ||
            (tile.inst.k > 1 && !is_same_inst(t.inst, tile.inst)))
            continue;
        if (t.thread.m == tile.thread.m && t.thread.n == tile.thread.n)
            return kernel;
        if (kernel.grain && t.thread.m >= tile.thread.m && t.thread.n >= tile.thread.n)
            found = kernel;
    }
    return found;
}

/* Has a tiling that shrinks to the problem kernels for its smaller thread tiles? */
static int can_shrink(const tg_isa *isa, tg_tile tile, int kind)
{
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile t = tg_tile_at(row);
        const tg_kernel kernel = isa->kernels[kind]->rows[row];
        if (kernel.run && kernel.grain && t.vec == tile.vec && t.form == tile.form &&
            t.thread.m >= tile.thread.m && t.thread.n >= tile.thread.n)
            return 1;
    }
    return 0;
}

static const char *cpu_missing(const tg_context *ctx, tg_tile tile, tg_type type)
{
    const tg_isa *isa = ((const tg_cpu *)ctx->device)->isa;
    const int shrinks =
        tile.inst.k == 1 &&
        tg_tile_shrinks(tile, ctx->limits, tg_kernel_bytes(type, ctx->limits, tile));
    if (!tg_cpu_kernel(isa, tile, type, type).run)
        return "no row of the table has this thread tile, vec and form, so no CPU kernel has";
    if (shrinks && !can_shrink(isa, tile, tg_cpu_kind(type)))
        return "with a block of 0x0x0 the thread tile shrinks to the problem, and no CPU kernel "
               "has "
               "smaller ones of this vec and form: state the block";
    return NULL;
}

/* Large memory is aligned to large pages, and asks for them: packed panels then need few of the
 * processor's address translations. */
static tg_status cpu_alloc(tg_context *ctx, size_t bytes, void **memory)
{
    const size_t large_page = 2 << 20, alignment = bytes < large_page ? 64 : large_page;
    const size_t whole = (bytes + alignment - 1) / alignment * alignment;
    *memory = bytes <= PTRDIFF_MAX - large_page ? aligned_alloc(alignment, whole) : NULL;
    if (!*memory)
        return tg_fail(ctx, TG_OUT_OF_MEMORY, "%zu bytes could not be had", bytes);
#ifdef MADV_HUGEPAGE
    if (alignment == large_page)
        madvise(*memory, whole, MADV_HUGEPAGE);
#endif
    return TG_OK;
}

static tg_status cpu_free(tg_context *ctx, void *memory)
{
    (void)ctx;
    free(memory);
    return TG_OK;
}

static tg_status cpu_upload(tg_context *ctx, void *device, const void *host, size_t bytes)
{
    (void)ctx;
    memmove(device, host, bytes);
    return TG_OK;
}

static tg_status cpu_download(tg_context *ctx, void *host, const void *device, size_t bytes)
{
    return cpu_upload(ctx, host, device, bytes);
}

static tg_status cpu_sync(tg_context *ctx)
{
    (void)ctx;
    return TG_OK;
}

static tg_status cpu_set_stream(tg_context *ctx, void *stream)
{
    if (stream)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "stream = %p: the CPU has no streams, only NULL",
                       stream);
    return TG_OK;
}

static tg_status cpu_time_start(tg_context *ctx)
{
    ((tg_cpu *)ctx->device)->started = seconds();
    return TG_OK;
}

static tg_status cpu_time_stop(tg_context *ctx, double *passed)
{
    *passed = seconds() - ((tg_cpu *)ctx->device)->started;
    return TG_OK;
}

static tg_status cpu_peak(tg_context *ctx, tg_type type, double *flops)
{
    const tg_isa *isa = ((const tg_cpu *)ctx->device)->isa;
    const int threads = tg_cpu_threads(tg_units(ctx));
    tg_spin *spin = isa->kernels[tg_cpu_kind(type)]->spin;
    for (const tg_words *words = isa->words; words->a; words++)
        if (words->a == type && tg_cpu_has(ctx->limits.matrix, words->inst, tg_type_size(type)))
            spin = words->spin;
    /* Pieces take some millionths of a second; threads that slept may wake on one processor, and
     * take some thousandths to part. */
    enum { PASSES = 80, PIECE = 1000 };
    const double window = 0.25e-3;
    double begin[PASSES] = {0}, done[PASSES] = {0};
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
#endif
    for (int pass = 0; pass < PASSES; pass++) {
        double sink = 0, work = 0, end;
#ifdef _OPENMP
#pragma omp barrier
#pragma omp critical
#endif
        {
            begin[pass] = begin[pass] > 0 ? begin[pass] : seconds();
            end = begin[pass] + window;
        }
        for (;;) { /* what all threads finish in one window of time */
            const double piece = spin(PIECE, &sink);
            if (seconds() > end)
                break;
            work += piece;
        }
#ifdef _OPENMP
#pragma omp atomic
#endif
        done[pass] += sink < 1 ? work : 0;
    }
    (void)threads;
    *flops = 0;
    for (int pass = 0; pass < PASSES; pass++)
        *flops = fmax(*flops, done[pass] / window);
    return TG_OK;
}

static const tg_backend cpu_backend = {.name = "cpu",
                                       .reason = cpu_reason,
                                       .open = cpu_open,
                                       .close = cpu_close,
                                       .missing = cpu_missing,
                                       .workspace = tg_cpu_workspace,
                                       .gemm = tg_cpu_gemm,
                                       .gemm_items = tg_cpu_gemm_items,
                                       .spread = tg_cpu_spread,
                                       .pack = tg_cpu_pack,
                                       .alloc = cpu_alloc,
                                       .free = cpu_free,
                                       .upload = cpu_upload,
                                       .download = cpu_download,
                                       .sync = cpu_sync,
                                       .set_stream = cpu_set_stream,
                                       .peak = cpu_peak,
                                       .time_start = cpu_time_start,
                                       .time_stop = cpu_time_stop};

const tg_module *tg_module_cpu(void)
{
    static const tg_module module = {TG_VERSION_TEXT, sizeof(tg_context), tg_tile_table,
                                     &cpu_backend};
    return &module;
}
