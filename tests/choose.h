/* SPDX-License-Identifier: Apache-2.0
 *
 * What the chooser's tests ask, and those of its parts: of the plans of CPUs. */
#ifndef TEST_CHOOSE_H
#define TEST_CHOOSE_H

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
    p.c = (tg_output){NULL, s.n, 1, s.m * s.n, type};
    return p;
}

void choose_cpu(void);

#endif
