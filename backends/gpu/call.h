/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host half of a GPU backend gives to a kernel, and what it knows of one. Plain C11, read
 * by the C compiler and by the device's; it must not know CUDA from HIP. */
#ifndef TG_CALL_H
#define TG_CALL_H

#include "tile.h"

/* A checked problem: c[x] := alpha * a[x] * b[x] + beta * c[x]. Element (i, j) of item x of a lies
 * at a[i * a_row + j * a_col + x * a_item]; m, n and batch are positive; with k == 0 nothing of a
 * and b may be read, with beta == 0 nothing of c. */
typedef struct tg_call {
    int64_t m, n, k, batch;
    const void *a, *b;
    void *c;
    int64_t a_row, a_col, a_item;
    int64_t b_row, b_col, b_item;
    int64_t c_row, c_col, c_item; /* c_col is 1 unless neither is */
    tg_type a_type, b_type, c_type;
    double alpha, beta;
    int splits;          /* ranges of k that blocks of their own take, summed in order; 1: none */
    tg_tail tail;        /* what happens to the tiles that do not fill the device once more     */
    int has_edges;       /* a last row or column may be summed by threads that share k          */
    int units;           /* multiprocessors                                                     */
    int64_t first_block; /* of this launch: a grid has fewer than 2^31 blocks             */
    void *workspace;     /* as many bytes as the kernel asked for, aligned to 64                */
    struct tg_met *met;  /* TG_MET kernels that this context has started                        */
    int early;           /* kernels start while the one before them ends, and wait for that     */
    int *clusters;       /* TG_CLUSTERS times what this context knows (hopper_call.h)         */
} tg_call;

enum { TG_MET = 64, TG_MOST_OF_CLUSTER = 8, TG_CLUSTERS = 2 * (TG_MOST_OF_CLUSTER + 1) };

/* A slot of a table for an address. Addresses of large buffers differ in their high bits only. */
static inline unsigned tg_slot(const void *address, unsigned slots)
{
    return (unsigned)((uint64_t)(uintptr_t)address * 0x9E3779B97F4A7C15u >> 40) % slots;
}

/* A kernel that a context has started, the fast memory that it asked for, and CUDA's handle of it.
 */
typedef struct tg_met {
    const void *kernel;
    int64_t fast;
    void *function;
} tg_met;

static inline tg_met *tg_met_kernel(tg_met *all, const void *kernel)
{
    tg_met *met = &all[tg_slot(kernel, TG_MET)];
    const tg_met now = {kernel, 0, NULL};
    if (met->kernel != kernel)
        *met = now;
    return met;
}

/* The same product as C' = B'A'. */
static inline tg_call tg_transposed(const tg_call *c)
{
    tg_call t = *c;
    t.m = c->n, t.n = c->m;
    t.a = c->b, t.a_row = c->b_col, t.a_col = c->b_row, t.a_item = c->b_item;
    t.a_type = c->b_type, t.b_type = c->a_type;
    t.b = c->a, t.b_row = c->a_col, t.b_col = c->a_row, t.b_item = c->a_item;
    t.c_row = c->c_col, t.c_col = c->c_row;
    return t;
}

/* One row of the table compiled for one type. Errors are the runtime's own codes; 0: no error. */
typedef struct tg_kernel_entry {
    int (*takes)(const tg_call *call);        /* can it run this call? NULL: any           */
    size_t (*workspace)(const tg_call *call); /* bytes it needs for it; NULL: none          */
    int (*launch)(const tg_call *call, void *stream);
    int (*usage)(tg_usage *usage);
} tg_kernel_entry;

#endif
