/* SPDX-License-Identifier: Apache-2.0
 *
 * What the chooser's tests ask, and those of its parts: of the plans of CPUs. */
#ifndef TEST_CHOOSE_H
#define TEST_CHOOSE_H

#include "machines.h"
#include "reads.h"

typedef struct asked {
    int64_t m, n, k, batch;
} asked;

static inline tg_problem problem_of(asked s, tg_type type)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.m = s.m, p.n = s.n, p.k = s.k, p.batch = s.batch;
    p.a = (tg_input){NULL, s.k, 1, s.m * s.k, type};
    p.b = (tg_input){NULL, s.n, 1, s.k * s.n, type};
    p.c = (tg_output){NULL, s.n, 1, s.m * s.n, tg_type_size(type) == 1 ? TG_I32 : type};
    return p;
}

void choose_cpu(void);
void choose_reads(void);

/* CPUs: with vectors of 64 bytes, and an L2 that is small or large; and with less. */
static const tg_limits small_l2 = {{1, 1},  0,         64,         32, 64, 0,
                                   KIB(32), KIB(1024), KIB(32768), 1,  0,  0};
static const tg_limits large_l2 = {{1, 1},  0,         64,          32, 64, 0,
                                   KIB(48), KIB(2048), KIB(262144), 1,  0,  0};

static const tg_limits narrow = {{1, 1}, 0, 32, 16, 32, 0, KIB(32), KIB(512), KIB(32768), 1, 0, 0};

#endif
