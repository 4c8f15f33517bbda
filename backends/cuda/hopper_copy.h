/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: operands that the copy engine cannot fetch as they lie are rewritten k-major
 * into the workspace.
 *
 *     k --->                     x --->          x is m for A, n for B; a row of the copy starts
 *   x  a a a a                 k  a b c          at a multiple of 128 bytes, so that the engine
 *   |  b b b b   ------------> |  a b c          takes it whatever the stride or the base of the
 *   v  c c c c                 v  a b c          original was
 *
 * A warp copies a piece of 32 x and 32 k; the pieces of both operands that have the same 32 k are a
 * slice. A kernel before the multiplication copies the first slices, or all; the others are copied
 * in the multiplication, by warps that have nothing else to do:
 *
 *   first kernel     | 0 1 2 |
 *   multiplication           | 3 4 5   6   7  ...   copied, not much faster than is needed
 *                            | 0 1   2   3   4  ...  multiplied
 *
 * No warp that has begun a piece waits, so those that wait for a slice get it, however few blocks
 * of the grid the device may run at once. */
#ifndef TG_HOPPER_COPY_H
#define TG_HOPPER_COPY_H

#include <cuda_runtime.h>

#include "divisor.h"
#include "gpu.h"
#include "launch.h"
#include "tail.h"

namespace tg_hopper
{

constexpr int piece = TG_COPY_PIECE;
constexpr int drawn_at_once = 2; /* pieces */

/* From one element to the next, in bytes. */
struct copy {
    const char *from;
    char *to;
    int64_t x_step, x_jump, k_step, item_step; /* jump: five x */
    int64_t pitch, item_pitch;                 /* of k and of items, in the copy */
    int x, k, items;                           /* items == 0: nothing to copy */
    bool along_x;                              /* the shorter of both steps */

    __host__ __device__ int pieces() const { return items ? (x + piece - 1) / piece : 0; }
};

struct copies {
    copy a, b;
    divisor of_slice, of_draw, of_item; /* pieces of a slice, draws of one, slices of an item */
    unsigned first, all;                /* slices: the first kernel's, and those of all items    */
    unsigned *next;                     /* draw of the multiplication's                          */
    unsigned *copied;                   /* pieces of each slice                                  */
    unsigned *tickets, ticket_count;    /* what else is to be set to zero                        */

    __host__ int pieces() const { return a.pieces() + b.pieces(); }
    /* In the multiplication: then there is one item. */
    __host__ __device__ bool go_on() const { return first < all; }
};

/* Half a piece: 16 of its k. Reads run along the shorter stride, writes along x, 32 bytes or more:
 * a lane has one x and all k, or one k and four x of every eight. What is asked for at once is
 * waited for once. Beyond x, but within the pitch, nobody minds what is written. The multiplication
 * leaves few registers: hence bytes, which need no shift. */
constexpr int half_k = piece / 2;

__device__ inline void copy_half(const copy &c, int item, int x0, int k0)
{
    const int lane = threadIdx.x % 32;
    const int x = x0 + (c.along_x ? lane : lane / half_k * 4), xs = c.x - x;
    const int k = k0 + (c.along_x ? 0 : lane % half_k), ks = c.k - k;
    const char *from = c.from + item * c.item_step + x * c.x_step + k * c.k_step;
    char *to = c.to + item * c.item_pitch + k * c.pitch + x * 4;
    float held[half_k];
    if (item >= c.items || xs <= 0 || ks <= 0)
        return;
    if (c.along_x) {
#pragma unroll
        for (int i = 0; i < half_k; i++, from += c.k_step)
            if (i < ks)
                held[i] = *(const float *)from;
#pragma unroll
        for (int i = 0; i < half_k; i++, to += c.pitch)
            if (i < ks)
                *(float *)to = held[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < half_k; i++) {
        if (i / 4 * 8 + i % 4 < xs)
            held[i] = *(const float *)from;
        from += i % 4 < 3 ? c.x_step : c.x_jump;
    }
#pragma unroll
    for (int i = 0; i < half_k; i += 4)
        *(float4 *)(to + i * 8) = make_float4(held[i], held[i + 1], held[i + 2], held[i + 3]);
}

/* For each operand there is code of its own: then what describes it is not held in registers. */
__device__ inline void copy_half_of(const copies &c, int item, unsigned half, int k)
{
    const unsigned of_a = c.a.pieces(), in_slice = half / 2;
    k += half % 2 * half_k;
    if (in_slice < of_a)
        copy_half(c.a, item, in_slice * piece, k);
    else
        copy_half(c.b, item, (in_slice - of_a) * piece, k);
}

__device__ inline bool is_copied(const copies &c, int slice)
{
    unsigned pieces;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(pieces)
                 : "l"(c.copied + slice)
                 : "memory");
    return pieces >= c.of_slice.by;
}

/* The multiplication's warps draw some pieces of a slice at a time, and copy them. Their lane 0
 * draws. Returns the slice, or -1 if there was nothing left. */
__device__ inline int copy_some(const copies &c)
{
    const unsigned drawn = threadIdx.x % 32 == 0 ? atomicAdd(c.next, 1) : 0;
    const unsigned number = __shfl_sync(~0u, drawn, 0) + c.first * c.of_draw.by;
    if (number >= c.all * c.of_draw.by)
        return -1;
    const unsigned slice = c.of_draw.of(number);
    const int first = (int)(number - slice * c.of_draw.by) * drawn_at_once;
    const int end = (int)tg_min(first + drawn_at_once, c.of_slice.by);
#pragma unroll 1
    for (int half = first * 2; half < end * 2; half++)
        copy_half_of(c, 0, half, slice * piece);
    asm volatile("fence.proxy.async.global;" ::: "memory");
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(c.copied + slice),
                     "r"(end - first)
                     : "memory");
    return (int)slice;
}

/* Copies until nothing is left that nobody has begun. In haste it would disturb the loop: one warp
 * goes so many slices ahead of what its block fetches, the others help where it falls behind. */
__device__ inline void copy_others(const copies &c, bool is_first, unsigned *fetched)
{
    const unsigned ahead = is_first ? 32 : 8;
    for (int slice; (slice = copy_some(c)) >= 0;)
        if (threadIdx.x % 32 == 0)
            while (slice > atomicOr(fetched, 0) + ahead)
                __nanosleep(2000);
}

constexpr int copiers = 256; /* threads */

/* The kernel that follows may start at once: it waits for what is written here. */
__global__ void __launch_bounds__(copiers, 6) copy_first(const __grid_constant__ copies c)
{
    constexpr int warps = copiers / 32;
    asm volatile("griddepcontrol.launch_dependents;");
    tg::wait_for_turn();
    const unsigned thread = blockIdx.x * copiers + threadIdx.x, threads = gridDim.x * copiers;
    for (unsigned at = thread; at < c.ticket_count; at += threads)
        c.tickets[at] = 0;
    if (c.go_on())
        for (unsigned at = thread; at <= c.all; at += threads)
            if (at == c.all)
                *c.next = 0;
            else
                c.copied[at] = at < c.first ? c.of_slice.by : 0;
    const unsigned number = blockIdx.x * warps + threadIdx.x / 32;
    const unsigned slice = c.of_slice.of(number / 2), item = c.of_item.of(slice);
    if (slice < c.first)
        copy_half_of(c, item, number - slice * c.of_slice.by * 2,
                     (slice - item * c.of_item.by) * piece);
}

inline int start_first(const copies &c, const tg_call &call, void *stream)
{
    const int64_t blocks = tg_ceil_div((int64_t)c.first * c.pieces() * 2, copiers / 32);
    return tg::start(copy_first, tg_max(1, blocks), copiers, 0, c, call, stream);
}

} /* namespace tg_hopper */

#endif
