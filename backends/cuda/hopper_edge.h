/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: the edges, one row or column of C that no tile covers (tail.h).
 *
 *        x --->                     one line of one operand, and all of the other, which lies
 *   k    all all all all            k-major. A warp takes every so-manieth piece of k; their sums
 *   |    all all all all   one      are added in order.
 *   v    all all all all
 */
#ifndef TG_HOPPER_EDGE_H
#define TG_HOPPER_EDGE_H

#include "hopper_load.h"

namespace tg_hopper
{

/* Threads are warps of 32 neighbouring x, and a lane has some x that are 32 apart. */
template <tg_tile T, ways W>
__device__ void run_edge(const edge &e, int block, const arguments &p, float *memory)
{
    constexpr int warps = shape<T, W>::threads / 32, span = TG_EDGE_SPAN, pieces = span / 32;
    constexpr int at_once = 16; /* k of a warp: what is asked for at once is waited for once */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int end = (int)tg_min(e.length, (int64_t)(block + 1) * e.width);
    for (int from = block * e.width; from < end; from += span) {
        float sums[pieces] = {};
        for (int k = warp * at_once; k < p.k; k += warps * at_once) {
            if (shape<T, W>::copies_on && p.copied.go_on()) /* who waits helps */
                while (!__all_sync(~0u, is_copied(p.copied, k / piece)))
                    copy_some(p.copied);
            const float one = k + lane < p.k ? e.one[(k + lane) * e.one_k] : 0;
            float all[at_once][pieces];
#pragma unroll
            for (int i = 0; i < at_once; i++)
#pragma unroll
                for (int j = 0; j < pieces; j++) {
                    const int x = from + j * 32 + lane;
                    all[i][j] = k + i < p.k && x < e.length ? e.all[(k + i) * e.all_k + x] : 0;
                }
#pragma unroll
            for (int i = 0; i < at_once; i++)
#pragma unroll
                for (int j = 0; j < pieces; j++)
                    sums[j] = fmaf(__shfl_sync(~0u, one, i), all[i][j], sums[j]);
        }
#pragma unroll
        for (int j = 0; j < pieces; j++)
            memory[warp * span + j * 32 + lane] = sums[j];
        __syncthreads();
        const int x = from + threadIdx.x;
        if (threadIdx.x < span && x < e.length) {
            float sum = memory[threadIdx.x];
            for (int i = 1; i < warps; i++)
                sum += memory[i * span + threadIdx.x];
            float *c = e.c + x * e.c_step;
            *c = tg::weighted(p.alpha, sum, p.beta, p.beta != 0 ? *c : 0);
        }
        __syncthreads();
    }
}

template <tg_tile T, ways W> __device__ void run_edges(const arguments &p, float *memory)
{
    const int block = blockIdx.x, of_m = p.edge_of_m.blocks;
    if (block < of_m)
        run_edge<T, W>(p.edge_of_m, block, p, memory);
    else
        run_edge<T, W>(p.edge_of_n, block - of_m, p, memory);
}

} /* namespace tg_hopper */

#endif
