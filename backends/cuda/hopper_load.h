/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: how operands get into shared memory.
 *
 *   memory            raw stage               stage
 *   x --->                                    x --->          straight, k-major: the copy engine
 * k a b c  ------------------------------>  k a b c           fetches the box as it is wanted
 * | a b c                                   | a b c
 *
 *   k --->                                    k --->          A along k: the engine fetches rows of
 * m a a a  ------------------------------>  m a a a           32 k, and the consumers read them so
 * | b b b                                   | b b b
 *
 *   k --->              k --->                n --->          B along k: four warps that are there
 * n a a a  ---------> n a a a  ---------->  k a b c           for it turn such rows over
 * | b b b             | b b b    4 warps    | a b c
 *
 * A stage is full when everything in it has arrived, and empty when all consumer warps have left
 * it. */
#ifndef TG_HOPPER_LOAD_H
#define TG_HOPPER_LOAD_H

#include "hopper_shape.h"

namespace tg_hopper
{

__device__ inline unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

__device__ inline void barrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals));
}

__device__ inline void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Waits until the barrier has left the phase of this parity. */
__device__ inline void barrier_wait(uint64_t *barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

__device__ inline void fetch_box(float *to, const CUtensorMap &map, int x, int k, int item,
                                 uint64_t *full)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(x), "r"(k), "r"(item), "r"(shared_address(full))
                 : "memory");
}

/* The first threads of a block are producers: as its oldest warps they get their turn when they ask
 * for one. The others are consumers. */
__device__ inline int consumer_thread() { return threadIdx.x - producers; }

/* A meeting of some of the block's threads, in one of its numbered rooms. */
template <int Room, int Threads> __device__ void meet()
{
    asm volatile("bar.sync %0, %1;" ::"n"(Room), "n"(Threads) : "memory");
}

template <class S> struct pipeline {
    float *stages, *raw;
    uint64_t *full, *empty, *raw_full;
    unsigned *last;

    __device__ explicit pipeline(float *memory)
        : stages(memory), raw(memory + S::stages * S::stage),
          full(reinterpret_cast<uint64_t *>(memory + S::floats)), empty(full + S::stages),
          raw_full(empty + S::stages), last(reinterpret_cast<unsigned *>(full + S::barriers))
    {
    }
    /* One lane may answer for its warp, but where threads write what others read, each answers for
     * itself: checkers of races then see what orders them. */
    __device__ static bool answers() { return S::raw || threadIdx.x % 32 == 0; }

    __device__ void init(int consumer_threads) const
    {
        const int turners = S::raw ? producers : 0;
        for (int stage = 0; stage < S::stages; stage++) {
            barrier_init(&full[stage], turners + 1);
            barrier_init(&empty[stage], S::raw ? consumer_threads : consumer_threads / 32);
        }
        for (int stage = 0; stage < S::raw_stages; stage++)
            barrier_init(&raw_full[stage], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
};

/* A place in a ring; parity flips each time round. */
template <int Stages> struct turn {
    int stage = 0, parity = 0;

    __device__ void next()
    {
        if (++stage == Stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <tg_tile T, ways W> struct producer {
    using S = shape<T, W>;
    const arguments &p;
    const work &w;
    const pipeline<S> &pipe;
    int thread;

    __device__ void fetch_ready(int step, int stage) const
    {
        float *to = pipe.stages + stage * S::stage;
        uint64_t *full = &pipe.full[stage];
        const int k = (w.first + step) * T.block.k;
        barrier_expect(full, S::ready * 4);
        if constexpr (W.a_along_k)
            fetch_rows<T.block.m>(to, p.a, k, w.row, w.item * p.a_items, full);
        else
            fetch_box(to, p.a, w.row, k, w.item * p.a_items, full);
        if constexpr (!W.b_along_k)
            fetch_box(to + S::a, p.b, w.col, k, w.item * p.b_items, full);
    }

    __device__ void fetch_raw(int step, int stage) const
    {
        uint64_t *full = &pipe.raw_full[stage];
        barrier_expect(full, S::raw * 4);
        fetch_rows<T.block.n>(pipe.raw + stage * S::raw, p.b, (w.first + step) * T.block.k, w.col,
                              w.item * p.b_items, full);
    }

    /* In such rows pieces of four k change places: piece p of row x is at p ^ x % 8. */
    template <int Extent>
    __device__ static void fetch_rows(float *to, const CUtensorMap &map, int first_k, int x,
                                      int item, uint64_t *full)
    {
#pragma unroll
        for (int k = 0; k < T.block.k; k += raw_k)
            fetch_box(to + k * Extent, map, first_k + k, x, item, full);
    }

    /* A lane reads four k of its row, and writes one to each of four rows of the stage. Its
     * neighbours do so for neighbouring x: no two of them meet in a bank. */
    template <int Extent> __device__ void turn_over(float *to, const float *from) const
    {
        constexpr int pieces = Extent * T.block.k / quad / producers, pieces_of_row = raw_k / quad;
#pragma unroll 4
        for (int i = 0; i < pieces; i++) {
            const int x = (thread + i * producers) % Extent;
            const int piece = (thread + i * producers) / Extent;
            const float *row = from + (piece / pieces_of_row * Extent + x) * raw_k;
            const float4 four = *reinterpret_cast<const float4 *>(
                row + (piece % pieces_of_row ^ x % pieces_of_row) * quad);
            float *column = to + piece * quad * Extent + x;
            column[0] = four.x;
            column[Extent] = four.y;
            column[2 * Extent] = four.z;
            column[3 * Extent] = four.w;
        }
    }

    __device__ void run_turning() const
    {
        turn<S::stages> at;
        turn<S::raw_stages> raw_at;
        if (thread == 0)
            for (int step = 0; step < S::raw_stages && step < w.steps; step++)
                fetch_raw(step, step);
        for (int step = 0; step < w.steps; step++, at.next(), raw_at.next()) {
            float *to = pipe.stages + at.stage * S::stage;
            const float *from = pipe.raw + raw_at.stage * S::raw;
            barrier_wait(&pipe.empty[at.stage], at.parity ^ 1);
            if (thread == 0)
                fetch_ready(step, at.stage);
            barrier_wait(&pipe.raw_full[raw_at.stage], raw_at.parity);
            turn_over<T.block.n>(to + S::a, from);
            meet<2, producers>();
            barrier_arrive(&pipe.full[at.stage]);
            if (thread == 0 && step + S::raw_stages < w.steps)
                fetch_raw(step + S::raw_stages, raw_at.stage);
        }
    }

    __device__ void run_straight() const
    {
        turn<S::stages> at;
        for (int step = 0; step < w.steps; step++, at.next()) {
            barrier_wait(&pipe.empty[at.stage], at.parity ^ 1);
            if (thread == 0)
                fetch_ready(step, at.stage);
            __syncwarp();
        }
    }

    /* The last thing that the block does is to read and write C: it had better be near. */
    __device__ void prefetch_c(int workers) const
    {
        constexpr int line = (int)tg_min(32, T.block.n);
        if (p.beta == 0 || w.parts > 1)
            return;
        const bool across = p.c_col != 1;
        const int lines = (across ? T.block.m : T.block.n) / line;
        for (int at = thread; at < T.block.m * T.block.n / line; at += workers) {
            const int along = at % lines * line, other = at / lines;
            const int row = w.row + (across ? along : other);
            const int col = w.col + (across ? other : along);
            const float *c = p.c + w.item * p.c_item + row * p.c_row + col * p.c_col;
            if (row < p.s.m && col < p.s.n)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(c));
        }
    }

    __device__ void run() const
    {
        if constexpr (S::raw > 0) {
            run_turning();
            prefetch_c(producers);
        } else if (thread < 32) {
            run_straight();
            prefetch_c(32);
        }
    }
};

} /* namespace tg_hopper */

#endif
