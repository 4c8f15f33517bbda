/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine is: its instruction sets, caches, cores and name. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* As the system says of the first processor. Under many hypervisors all of a maker's are called
 * alike: family and model tell them apart. */
static void read_name(char *name, size_t size, const char *isa)
{
    char line[256], maker[96] = "CPU", kind[40] = "";
    int family = 0, model = 0;
    FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
    while (cpuinfo && fgets(line, sizeof line, cpuinfo)) {
        if (sscanf(line, "cpu family : %9d", &family) == 0 &&
            sscanf(line, "model : %9d", &model) == 0 &&
            sscanf(line, "model name : %90[^\n]", maker) == 1)
            break; /* the last of the three */
    }
    if (cpuinfo)
        fclose(cpuinfo);
    if (family > 0)
        snprintf(kind, sizeof kind, " (family %d model %d)", family, model);
    snprintf(name, size, "%s%s, %s", maker, kind, isa);
}

const tg_isa *tg_cpu_read_machine(tg_context *ctx)
{
    const level *found = find_level(ctx);
    if (!found)
        return NULL;
    ctx->most_threads = most_threads();
    read_name(ctx->device_name, sizeof ctx->device_name, found->name);
    ctx->limits = (tg_limits){.lanes = {1, 1},
                              .vec_bytes = found->isa->vec_bytes,
                              .registers = found->isa->registers,
                              .register_bytes = found->isa->vec_bytes,
                              .units = allowed_cores(),
                              .matrix = found->matrix};
    ctx->limits.l1 = cache_bytes(1, 32 << 10);
    ctx->limits.l2 = cache_bytes(2, 512 << 10);
    ctx->limits.l3 = cache_bytes(3, 8 * ctx->limits.l2);
    return found->isa;
}
