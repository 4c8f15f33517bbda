/* SPDX-License-Identifier: Apache-2.0
 *
 * One case while it runs: what case_run.c sets up and case_oracle.c judges. */
#ifndef CASE_ORACLE_H
#define CASE_ORACLE_H

#include "case.h"
#include "elements.h"
#include "guard.h"

typedef struct matrix {
    tg_type type;
    size_t bytes;                /* of one element */
    int64_t count[3], stride[3]; /* rows, columns, batch items */
    int64_t low, all;            /* stored elements before (0, 0, 0), and in total */
    guard memory;
    unsigned char *stored, *before; /* the elements, and a copy made before the call */
    void *data;                     /* what the library is given */
} matrix;

typedef struct run {
    const gemm_case *c;
    tg_context *ctx;
    int reads_inputs, is_host;
    matrix x[3]; /* A, B, C */
    guard workspace, packed;
    char message[300];
} run;

/* Keeps the message, and returns 0. */
int case_fail(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where element (i, j) of a batch item is stored. */
static inline int64_t case_position(const matrix *x, int64_t i, int64_t j, int64_t item)
{
    return x->low + i * x->stride[0] + j * x->stride[1] + item * x->stride[2];
}

/* One letter of LAYOUTS for A, B or C. */
char case_layout(const gemm_case *c, int which);

/* Calls the library. 0: it failed. */
int case_call(run *r);

/* Is C right, and all else as it was? Puts the elements of C back. ratio: as of case_run. */
int case_judge(run *r, double *ratio);

#endif
