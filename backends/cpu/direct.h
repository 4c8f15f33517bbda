/* SPDX-License-Identifier: Apache-2.0
 *
 * Products whose operands the kernel reads where they are, without the loop nest: small ones, and a
 * few rows times a large matrix. The order of each sum is that of the nest. */
#ifndef TG_DIRECT_H
#define TG_DIRECT_H

#include "stage.h"

/* A rectangle of an item that is read and written where it is: of the loops, the two around the
 * kernel are left. */
static void multiply_directly(const tg_job *j, tg_item item, range rows, range cols)
{
    const tg_problem *p = j->p;
    const int64_t bytes = j->bytes, thread_m = j->tile.thread.m, thread_n = j->tile.thread.n;
    const char *a = item.a, *b = item.b;
    char *c = item.c;
    tg_step s = {.k = p->k,
                 .a_row = p->a.row_stride,
                 .a_col = p->a.col_stride,
                 .b_row = p->b.row_stride,
                 .c_row = p->c.row_stride,
                 .alpha = p->alpha,
                 .beta = p->beta};
    if (!j->is_near)
        set_fetching(&s);
    for (int64_t m = rows.begin; m < rows.end; m += thread_m) {
        s.rows = (int)tg_min(thread_m, rows.end - m);
        s.a = a + m * s.a_row * bytes;
        for (int64_t n = cols.begin; n < cols.end; n += thread_n) {
            s.columns = (int)tg_min(thread_n, cols.end - n);
            s.b = b + n * bytes;
            s.c = c + (m * s.c_row + n) * bytes;
            j->kernel.run(&s);
        }
    }
}

/* A few rows of A times a B that is larger than L2: memory is the limit, and likes few long
 * streams. So B is read a few rows at a time, from one end of a block to the other, and the sums
 * wait:
 *
 *     B  +-------------------+
 *        | -> -> -> -> -> -> |  STREAMED rows, panel by panel
 *        | -> -> -> -> -> -> |  the next ones: each panel's sums go on where they were left
 *
 * An element's sum is made in the same order as in a block. */
static void multiply_streaming(const tg_job *j, const team *t, tg_item item, range cols)
{
    enum { STREAMED = 16 };
    const tg_problem *p = j->p;
    const int64_t bytes = j->bytes, panel = j->tile.thread.n, block_k = j->slice;
    const char *a = item.a, *b = item.b;
    char *c = item.c;
    tg_step s = {.a_row = p->a.row_stride,
                 .a_col = p->a.col_stride,
                 .b_row = p->b.row_stride,
                 .c_row = p->c.row_stride,
                 .sums_row = j->sums_row,
                 .rows = (int)p->m,
                 .alpha = p->alpha};
    for (int64_t n = cols.begin; n < cols.end; n += j->tile.block.n) {
        const int64_t n_end = tg_min(cols.end, n + j->tile.block.n);
        for (int64_t k = 0; k < p->k; k += s.k) {
            const int64_t k_end = tg_min(p->k, tg_round_down(k, block_k) + block_k);
            s.k = tg_min(STREAMED, k_end - k);
            s.begins_with_sums = k % block_k > 0;
            s.leaves_sums = k + s.k < k_end;
            s.beta = k < block_k ? p->beta : 1;
            s.a = a + k * bytes;
            for (int64_t at = n; at < n_end; at += panel) {
                s.columns = (int)tg_min(panel, n_end - at);
                s.b = b + (k * s.b_row + at) * bytes;
                s.c = c + at * bytes;
                s.sums = t->sums + (at - n) * bytes;
                j->kernel.run(&s);
            }
        }
    }
}

#endif
