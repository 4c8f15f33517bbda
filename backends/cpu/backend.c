/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU as a device: which instruction set it has, its limits read from the machine, its memory.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(TG_HAS_ISA_AVX512) || defined(TG_HAS_ISA_AVX2)
#define TG_IS_X86
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include "cpu.h"
#include "module.h"

_Static_assert(sizeof(int) >= 4, "tilings are ints");

/* The instruction sets, best first: their kernels, and the more that some machines with them have.
 */
typedef struct level {
    const char *name;
    const tg_isa *isa;
    int matrix; /* of the limits */
} level;

extern const tg_isa tg_isa_portable, tg_isa_avx2, tg_isa_avx512;

#if defined(TG_HAS_ISA_AVX512)
#define AVX512 &tg_isa_avx512
#else
#define AVX512 NULL /* was left out */
#endif
#if defined(TG_EMULATES_AVX512)
#define EMULATES_AVX512 1 /* tests/emulated.h */
#else
#define EMULATES_AVX512 0
#endif
#if defined(TG_HAS_ISA_AVX2)
#define AVX2 &tg_isa_avx2
#else
#define AVX2 NULL
#endif
static const level levels[] = {
#if defined(__x86_64__)
    {"amx", AVX512, TG_CPU_VNNI | TG_CPU_AMX},
    {"bf16", AVX512, TG_CPU_VNNI | TG_CPU_BF16},
    {"vnni", AVX512, TG_CPU_VNNI},
    {"avx512", AVX512, 0},
    {"avx2", AVX2, 0},
#endif
    {"portable", &tg_isa_portable, 0},
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

#if defined(TG_IS_X86)
/* Conversions of f16; clang 14 does not know how to ask for them by name. */
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

#if defined(TG_HAS_ISA_AVX512)
static int has_bf16(void)
{
#if defined(TG_HAS_BF16)
    enum { LEAF = 7, SUBLEAF = 1, BF16 = 1 << 5 };
    unsigned a, b, c, d;
    return __get_cpuid_count(LEAF, SUBLEAF, &a, &b, &c, &d) && (a & BF16);
#else
    return 0;
#endif
}

/* Tiles of bf16 and of bytes; the system must allow them to this process, since they make the state
 * of a thread larger. Their sums are rounded by what has_bf16. */
static int has_amx(void)
{
#if defined(__linux__) && defined(TG_HAS_AMX)
    enum { LEAF = 7, BF16_TILES_INT8 = 1 << 22 | 1 << 24 | 1 << 25, ASK_FOR = 0x1023, TILES = 18 };
    unsigned a, b, c, d;
    return has_bf16() && __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) &&
           (d & BF16_TILES_INT8) == BF16_TILES_INT8 && syscall(SYS_arch_prctl, ASK_FOR, TILES) == 0;
#else
    return 0;
#endif
}
#endif

/* Does this machine (and its operating system, which __builtin_cpu_supports asks too) have it? */
static int has_level(const level *x)
{
#if defined(TG_IS_X86)
    __builtin_cpu_init();
#endif
#if defined(TG_HAS_ISA_AVX512)
    if (x->isa == &tg_isa_avx512)
        return EMULATES_AVX512 ||
               (has_f16c() && __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") &&
                (!(x->matrix & TG_CPU_VNNI) || __builtin_cpu_supports("avx512vnni")) &&
                (!(x->matrix & TG_CPU_BF16) || has_bf16()) &&
                (!(x->matrix & TG_CPU_AMX) || has_amx()));
#endif
#if defined(TG_HAS_ISA_AVX2)
    if (x->isa == &tg_isa_avx2)
        return has_f16c() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return x->isa == &tg_isa_portable;
}

/* Is it faster than the next? Intel's cores take longer for pairs of bf16 than to make f32 of them.
 */
static int is_quick(const level *x)
{
#if defined(TG_IS_X86)
    return !(x->matrix & TG_CPU_BF16) || __builtin_cpu_is("amd");
#else
    (void)x;
    return 1;
#endif
}

/* TILEGEMM_ISA names the best instruction set that may be used; an absent one means the next. */
static const level *find_level(tg_context *ctx)
{
    const char *at_most = getenv("TILEGEMM_ISA");
    int first = 0;
    if (at_most && *at_most)
        while (first < LEVELS && strcmp(levels[first].name, at_most) != 0)
            first++;
    for (int i = first; i < LEVELS; i++)
        if (has_level(&levels[i]) && (is_quick(&levels[i]) || (at_most && *at_most && i == first)))
            return &levels[i];
    char names[64] = "";
    for (int i = 0; i < LEVELS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", levels[i].name);
    tg_fail(ctx, TG_BAD_ARGUMENT, "TILEGEMM_ISA = \"%s\" is none of%s", at_most, names);
    return NULL;
}

/* ------------------------------------------------------------------------------- the machine */

/* The first word of a file about a cache of the first core, or "". */
static const char *cache_fact(int index, const char *fact, char word[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, fact);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%31s", word) != 1)
        word[0] = '\0';
    if (file)
        fclose(file);
    return word;
}

/* What a core can use of a level; sysconf() would add up all that the processor has, on AMD's, and
 * knows nothing of ARM's. */
static int64_t cache_bytes(int level, int64_t otherwise)
{
    char word[32];
    for (int index = 0; *cache_fact(index, "level", word); index++) {
        const int is_level = atoi(word) == level;
        if (!is_level || strcmp(cache_fact(index, "type", word), "Instruction") == 0)
            continue;
        char *unit;
        const int64_t count = strtoll(cache_fact(index, "size", word), &unit, 10);
        const int64_t bytes = *unit == 'K' ? count << 10 : *unit == 'M' ? count << 20 : count;
        return bytes > 0 ? bytes : otherwise;
    }
    return otherwise;
}

/* More than a few for each processor gain nothing, and the OpenMP runtime ends the process if it
 * cannot have what it is asked for. */
static int most_threads(void)
{
    enum { NEVER_TOO_MANY = 8, FOR_A_PROCESSOR = 4 };
#ifdef _OPENMP
    return (int)tg_max(NEVER_TOO_MANY, FOR_A_PROCESSOR * omp_get_num_procs());
#else
    return NEVER_TOO_MANY;
#endif
}

static int allowed_cores(void)
{
#ifdef _OPENMP
    return (int)tg_clamp(omp_get_max_threads(), 1, most_threads());
#else
    return 1;
#endif
}

static void read_name(char *name, size_t size, const char *isa)
{
    char line[256] = "", model[96] = "CPU";
    FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
    while (cpuinfo && fgets(line, sizeof line, cpuinfo)) {
        if (strncmp(line, "model name", 10) != 0 || !strchr(line, ':'))
            continue;
        snprintf(model, sizeof model, "%.90s", strchr(line, ':') + 2);
        model[strcspn(model, "\n")] = '\0';
        break;
    }
    if (cpuinfo)
        fclose(cpuinfo);
    snprintf(name, size, "%s, %s", model, isa);
}

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
    const level *found = find_level(ctx);
    if (!found)
        return ctx->status;
    const tg_isa *isa = found->isa;
    tg_cpu *cpu = malloc(sizeof *cpu);
    if (!cpu)
        return tg_fail(ctx, TG_OUT_OF_MEMORY, "%zu bytes could not be had", sizeof *cpu);
    cpu->isa = isa;
    cpu->planned = 0;
    cpu->started = seconds();
    ctx->device = cpu;
    ctx->most_threads = most_threads();
    read_name(ctx->device_name, sizeof ctx->device_name, found->name);
    ctx->limits = (tg_limits){.lanes = {1, 1},
                              .vec_bytes = isa->vec_bytes,
                              .registers = isa->registers,
                              .register_bytes = isa->vec_bytes,
                              .units = allowed_cores(),
                              .matrix = found->matrix};
    ctx->limits.l1 = cache_bytes(1, 32 << 10);
    ctx->limits.l2 = cache_bytes(2, 512 << 10);
    ctx->limits.l3 = cache_bytes(3, 8 * ctx->limits.l2);
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

static const char *cpu_missing(const tg_context *ctx, tg_tile tile, tg_type type)
{
    return tg_cpu_kernel(((const tg_cpu *)ctx->device)->isa, tile, type, type).run
               ? NULL
               : "no row of the table has this thread tile, vec and form, so no CPU kernel has";
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
    enum { PASSES = 4, PIECE = 1000 }; /* rounds: some millionths of a second */
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
