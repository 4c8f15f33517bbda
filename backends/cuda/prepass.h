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
constexpr int warps = threads / 32;
constexpr int share = edge * edge / threads; /* elements of a tile for a thread */

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

using tile = float[edge][edge + 4]; /* [k][x]: no conflicts, whichever way it is written or read */

/* Lines of unit or short stride; a warp reads 32 neighbours at once, and a thread asks for all of
 * its share before it needs any of it. Element i of half j of a thread is from its i-th line. */
constexpr int in_line = edge / 32, lines = share / in_line;

template <class Line>
__device__ void fetch(float (&held)[in_line][lines], const float *from, int64_t along,
                      int64_t across, int length, int count, Line line)
{
    const int at = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < lines; i++)
#pragma unroll
        for (int j = 0; j < in_line; j++)
            held[j][i] = line(i) < count && at + j * 32 < length
                             ? from[line(i) * across + (at + j * 32) * along]
                             : 0;
}

__device__ inline void copy_tile(const copy &job, unsigned block, tile &tile)
{
    const unsigned of_item = job.tiles_x() * job.tiles_k(), place = block % of_item;
    const int64_t item = block / of_item;
    const int64_t x0 = place % job.tiles_x() * edge, k0 = place / job.tiles_x() * edge;
    const int x = (int)tg_min(edge, job.x - x0), k = (int)tg_min(edge, job.k - k0);
    const float *from = job.from + item * job.item_stride + x0 * job.x_stride + k0 * job.k_stride;
    float *to = job.to + item * job.item_pitch() + k0 * job.pitch + x0;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float held[in_line][lines];

    const bool along_x = (job.x_stride < 0 ? -job.x_stride : job.x_stride) <=
                         (job.k_stride < 0 ? -job.k_stride : job.k_stride);
    if (along_x) {
        const auto line = [=](int i) { return warp + i * warps; };
        fetch(held, from, job.x_stride, job.k_stride, x, k, line);
#pragma unroll
        for (int i = 0; i < lines; i++)
#pragma unroll
            for (int j = 0; j < in_line; j++)
                tile[line(i)][j * 32 + lane] = held[j][i];
    } else { /* four neighbouring x are stored at once */
        const auto line = [=](int i) { return warp * 4 + i / 4 * 4 * warps + i % 4; };
        fetch(held, from, job.k_stride, job.x_stride, k, x, line);
#pragma unroll
        for (int i = 0; i < lines; i += 4)
#pragma unroll
            for (int j = 0; j < in_line; j++)
                *reinterpret_cast<float4 *>(&tile[j * 32 + lane][line(i)]) =
                    make_float4(held[j][i], held[j][i + 1], held[j][i + 2], held[j][i + 3]);
    }
    __syncthreads();
    /* up to a multiple of four x, for which the pitch has room */
    const int row = threadIdx.x * 4 / edge, col = threadIdx.x * 4 % edge;
#pragma unroll
    for (int i = 0; i < edge; i += threads * 4 / edge)
        if (row + i < k && col < x)
            *reinterpret_cast<float4 *>(to + (row + i) * job.pitch + col) =
                *reinterpret_cast<const float4 *>(&tile[row + i][col]);
}

/* The kernel that follows may start at once: it waits for what is written here. */
__global__ void __launch_bounds__(threads, 6) run(const __grid_constant__ job job)
{
    __shared__ __align__(16) tile tile;
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
