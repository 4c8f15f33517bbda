/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of A and B to fast memory, for matrix instructions: producers copy, consumers read.
 *
 *   stages    | 0 full | 1 full | 2 being filled | 3 empty |      a ring: a block of threads that
 *               ^ consumers       ^ producers                     only copy runs ahead of the rest
 *
 * Tiles are staged as they lie in memory, in lines of what is contiguous there: nothing is
 * transposed, and 8 bytes are alignment enough. */
#ifndef TG_CUDA_MATRIX_STAGE_H
#define TG_CUDA_MATRIX_STAGE_H

#include "tile.h"

namespace tg::matrix
{

constexpr int elem_bytes = sizeof(double);
constexpr int span = TG_BANK_BYTES / elem_bytes; /* a row of all banks of fast memory */
constexpr int producers = 128;                   /* a warp for each scheduler */

/* A or B, as the device wants it. A line is what is contiguous: of k, or of m or n. */
struct operand {
    const double *data;
    int64_t line, item; /* distance of lines, of batch items */
    int is_even;        /* may be copied 16 bytes at a time */
};

/* ------------------------------------------------------------------------- what a stage holds */

/* Width rows of A or columns of B, Depth of k: how one operand of a block is staged. Along: its
 * lines run along k. Within a span, the quarters change places by line, so that the 16 lanes that
 * fast memory serves at once (four lines, four elements of each) find all banks. */
template <int Width, int Depth, bool Along> struct panel {
    static constexpr int lines = Along ? Width : Depth, length = Along ? Depth : Width;
    static constexpr int line_bytes = length * elem_bytes, bytes = lines * line_bytes;
    static constexpr bool along = Along;

    static __device__ int swizzle(int line) { return line % 4 * (TG_BANK_BYTES / 4); }
};

/* ------------------------------------------------------------------------------- the way in */

/* 16 or 8 bytes on their way to fast memory, or zeros. */
template <int Elems> __device__ inline void copy_async(unsigned to, const double *from, bool inside)
{
    if constexpr (Elems == 2)
        asm volatile("{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
                     "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, outside; }" ::"r"(to),
                     "l"(from), "r"(int(inside)));
    else
        asm volatile("{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
                     "cp.async.ca.shared.global.L2::128B [%0], [%1], 8, outside; }" ::"r"(to),
                     "l"(from), "r"(int(inside)));
}

__device__ inline void copy_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Brings one operand of a block to fast memory, stage after stage, in pieces of Elems elements that
 * all producers copy at once: 8 of them (or 16, where 16 bytes are not aligned) copy a span.
 * Outside the matrix they put zeros. */
template <class Panel, int Elems> struct carrier {
    static constexpr int per_span = span / Elems, groups = producers / per_span;
    static constexpr int pieces = Panel::lines * Panel::length / span / groups;
    static_assert(groups % 4 == 0 && pieces * groups * span == Panel::lines * Panel::length);
    static_assert(groups % Panel::lines == 0 || Panel::lines % groups == 0);

    const double *from;
    int line, to, outer_left, k_own;

    __device__ carrier(const operand &x, int64_t item, int64_t outer, int64_t outers, int64_t k,
                       int producer)
    {
        const int group = producer / per_span, in_span = producer % per_span * Elems;
        const int own_line = group % Panel::lines, own = group / Panel::lines * span + in_span;
        line = int(x.line);
        to = own_line * Panel::line_bytes + own / span * TG_BANK_BYTES +
             (in_span * elem_bytes ^ Panel::swizzle(own_line));
        from = x.data + item * x.item + own_line * x.line + own +
               (Panel::along ? outer * x.line + k : outer + k * x.line);
        outer_left = int(tg_min(outers - outer, TG_TILE_MAX)) - (Panel::along ? own_line : own);
        k_own = Panel::along ? own : own_line;
    }

    __device__ void copy(int piece, unsigned stage, int k_left) const
    {
        const int at_line = piece * groups % Panel::lines;
        const int at = piece * groups / Panel::lines * span;
        const int lines_left = Panel::along ? outer_left : k_left - k_own;
        const int length_left = Panel::along ? k_left - k_own : outer_left;
        copy_async<Elems>(stage + to + at_line * Panel::line_bytes + at * elem_bytes,
                          from + int64_t(at_line) * line + at,
                          at_line < lines_left && at < length_left);
    }

    /* All pieces of a stage. What follows from line and outer_left is computed when it is needed:
     * there are no registers to keep it. */
    __device__ void bring(unsigned stage, int64_t k_left)
    {
        asm volatile("" : "+r"(line), "+r"(outer_left));
#pragma unroll
        for (int piece = 0; piece < pieces; piece++)
            copy(piece, stage, int(tg_min(k_left, TG_TILE_MAX)));
        from += Panel::along ? Panel::length : Panel::lines * int64_t(line);
    }
};

/* --------------------------------------------------------------------------- full and empty */

__device__ inline void barrier_init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ inline void barrier_arrive(unsigned barrier)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier)
                 : "memory");
}

__device__ inline void barrier_arrive_when_copied(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ inline bool barrier_test(unsigned barrier, int parity)
{
    int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
                 "selp.s32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}

__device__ inline void barrier_wait(unsigned barrier, int parity)
{
    while (!barrier_test(barrier, parity))
        ;
}

/* A stage is full when all producers' copies to it have arrived, and empty when all consumers have
 * read it: warps wait for data, hardly ever for one another. Each lane answers for itself, though
 * one could for its warp: checkers of races then see what orders the lanes. */
template <int Stages, int StageBytes> struct ring {
    unsigned base;

    __device__ unsigned stage(int slot) const { return base + slot * StageBytes; }
    __device__ unsigned full(int slot) const { return base + Stages * StageBytes + 8 * slot; }
    __device__ unsigned empty(int slot) const { return full(slot + Stages); }

    /* Unrolled: checkers take the number of these instructions for that of barriers. */
    __device__ void init(int consumers) const
    {
#pragma unroll
        for (int slot = 0; slot < Stages; slot++) {
            barrier_init(full(slot), producers);
            barrier_init(empty(slot), consumers);
        }
    }
};

template <int Stages> struct cursor {
    int slot = 0, parity = 0;

    __device__ void step()
    {
        slot = slot + 1 == Stages ? 0 : slot + 1;
        parity ^= slot == 0;
    }
};

} // namespace tg::matrix

#endif
