/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up machines for the tests of what needs no device: the lane grids and instruction sets that
 * the library is meant for, and their limits. */
#ifndef MACHINES_H
#define MACHINES_H

#include <tilegemm.h>

typedef struct machine {
    const char *name;
    tg_limits limits;
} machine;

#define KIB(x) ((int64_t)(x) << 10)
#define CPU_CACHES KIB(32), KIB(1024), KIB(32768)

static const machine machines[] = {
    {"sse2", {{1, 1}, 0, 16, 16, 16, 0, CPU_CACHES, 8, 0, 0}},
    {"avx2", {{1, 1}, 0, 32, 16, 32, 0, CPU_CACHES, 8, 0, 0}},
    {"avx512", {{1, 1}, 0, 64, 32, 64, 0, CPU_CACHES, 8, 0, 0}},
    {"vnni", {{1, 1}, 0, 64, 32, 64, 0, CPU_CACHES, 8, TG_CPU_VNNI, 0}},
    {"bf16", {{1, 1}, 0, 64, 32, 64, 0, CPU_CACHES, 8, TG_CPU_VNNI | TG_CPU_BF16, 0}},
    {"amx", {{1, 1}, 0, 64, 32, 64, 0, CPU_CACHES, 8, TG_CPU_VNNI | TG_CPU_AMX, 0}},
    {"neon", {{1, 1}, 0, 16, 32, 16, 0, CPU_CACHES, 8, 0, 0}},
    {"cuda 4x8", {{4, 8}, 1024, 16, 255, 4, KIB(48), 0, 0, 0, 132, 0, 0}},
    {"sm_80 4x8", {{4, 8}, 1024, 16, 255, 4, KIB(163), 0, 0, 0, 108, 8, 0}},
    {"sm_90 4x8", {{4, 8}, 1024, 16, 255, 4, KIB(227), 0, 0, 0, 132, 16, 18.8}},
    {"gcn 8x8", {{8, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 0, 60, 0x906, 0}},
    {"cdna 8x8", {{8, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 0, 304, 0x942, 0}},
    {"cdna2 8x8", {{8, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 0, 104, 0x90a, 0}},
    {"rdna 4x8", {{4, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 0, 96, 0x1100, 0}},
};
enum { MACHINES = sizeof machines / sizeof machines[0] };

#endif
