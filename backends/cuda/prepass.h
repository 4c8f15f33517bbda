/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs before the Hopper kernel: operands that the copy engine cannot fetch as they lie are
 * rewritten k-major into the workspace, and the tickets of split tiles are set to zero.
 *
 *     k --->                     x --->          x is m for A, n for B; a row of the copy starts
 *   x  a a a a      one tile    k  a b c         at a multiple of 128 bytes, so that the engine
 *   |  b b b b   ------------>  |  a b c         takes it whatever the stride or the base of the
 *   v  c c c c   through shared v  a b c         original was
 *
 * A block moves one 64 x 64 tile of A or of B. Reads run along the shorter stride of the original,
 * writes along x: both are coalesced. */
#ifndef TG_PREPASS_H
#define TG_PREPASS_H

#include <cuda_runtime.h>

#include "gpu.h"
#include "launch.h"

namespace tg_prepass
{

constexpr int edge = 64;
constexpr int threads = 256;
constexpr int rows_at_once = threads / 32;

/* Element (x, k) of an item: from[x * x_stride + k * k_stride], to[k * pitch + x]. */
struct copy {
    const float *from;
    float *to;
    int64_t x_stride, k_stride, item_stride, pitch;
    int x, k, items; /* items == 0: nothing to copy */

    __host__ __device__ unsigned tiles_x() const { return ((unsigned)x + edge - 1) / edge; }
    __host__ __device__ unsigned tiles_k() const { return ((unsigned)k + edge - 1) / edge; }
    __host__ __device__ unsigned blocks() const { return tiles_x() * tiles_k() * items; }
    __host__ __device__ int64_t item_pitch() const { return pitch * k; }
};

struct job {
    copy a, b;
    unsigned *tickets;
    int64_t ticket_count;
};

/* A warp moves 2 x 32 elements of a line, and of every rows_at_once-th line; a thread asks
 * for all of its share before it needs any of it. */
constexpr int share = edge / rows_at_once * (edge / 32);

template <class Move> __device__ void for_each_element(int lines, int length, Move move)
{
#pragma unroll
    for (int i = 0; i < share; i++) {
        const int line = i / (edge / 32) * rows_at_once + threadIdx.x / 32;
        const int at = i % (edge / 32) * 32 + threadIdx.x % 32;
        if (line < lines && at < length)
            move(i, line, at);
    }
}

__device__ inline void copy_tile(const copy &job, unsigned block, float (&tile)[edge][edge + 1])
{
    const unsigned of_item = job.tiles_x() * job.tiles_k(), place = block % of_item;
    const int64_t item = block / of_item;
    const int64_t x0 = place % job.tiles_x() * edge, k0 = place / job.tiles_x() * edge;
    const int x = (int)tg_min(edge, job.x - x0), k = (int)tg_min(edge, job.k - k0);
    const float *from = job.from + item * job.item_stride + x0 * job.x_stride + k0 * job.k_stride;
    float *to = job.to + item * job.item_pitch() + k0 * job.pitch + x0;

    const bool along_x = (job.x_stride < 0 ? -job.x_stride : job.x_stride) <=
                         (job.k_stride < 0 ? -job.k_stride : job.k_stride);
    if (along_x) {
        float held[share];
        for_each_element(k, x, [&](int i, int row, int col) {
            held[i] = from[row * job.k_stride + col * job.x_stride];
        });
        for_each_element(k, x,
                         [&](int i, int row, int col) { to[row * job.pitch + col] = held[i]; });
        return;
    }
    for_each_element(x, k, [&](int, int row, int col) {
        tile[col][row] = from[row * job.x_stride + col * job.k_stride];
    });
    __syncthreads();
    for_each_element(k, x,
                     [&](int, int row, int col) { to[row * job.pitch + col] = tile[row][col]; });
}

/* The kernel that follows may start at once: it waits for what is written here. */
__global__ void __launch_bounds__(threads, 6) run(const __grid_constant__ job job)
{
    __shared__ float tile[edge][edge + 1];
    asm volatile("griddepcontrol.launch_dependents;");
    tg::wait_for_turn();
    for (int64_t at = (int64_t)blockIdx.x * threads + threadIdx.x; at < job.ticket_count;
         at += (int64_t)gridDim.x * threads)
        job.tickets[at] = 0;
    const unsigned a_blocks = job.a.blocks(), block = blockIdx.x;
    if (block < a_blocks)
        copy_tile(job.a, block, tile);
    else if (block < a_blocks + job.b.blocks())
        copy_tile(job.b, block - a_blocks, tile);
}

inline int launch(const job &job, const tg_call &call, void *stream)
{
    const int64_t blocks = (int64_t)job.a.blocks() + job.b.blocks();
    return tg::start(run, tg_max(1, blocks), threads, 0, job, call, stream);
}

} /* namespace tg_prepass */

#endif
