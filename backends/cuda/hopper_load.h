/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: how operands get into shared memory.
 *
 *   memory                    stage
 *   x --->                    x --->          straight, k-major: the copy engine fetches the box as
 * k a b c  --------------->  k a b c          it is wanted
 * | a b c                   | a b c
 *
 *   k --->                    k --->          along k, A or both: the engine fetches rows of 32 k,
 * m a a a  --------------->  m a a a          and the consumers read them so
 * | b b b                   | b b b
 *
 * A stage is full when everything in it has arrived, and empty when all consumer warps have left
 * it. */
#ifndef TG_HOPPER_LOAD_H
#define TG_HOPPER_LOAD_H

#include <climits>

#include "cluster.h"
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

__device__ inline void prefetch_map(const CUtensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/* The first threads of a block are producers: as its oldest warps they get their turn when they ask
 * for one. The others are consumers. */
__device__ inline int consumer_thread() { return threadIdx.x - producers; }

template <class S> struct pipeline {
    float *stages;
    uint64_t *full, *empty;
    unsigned *last, *fetched; /* slice of copies */

    __device__ explicit pipeline(float *memory)
        : stages(memory), full(reinterpret_cast<uint64_t *>(memory + S::floats)),
          empty(full + S::stages), last(reinterpret_cast<unsigned *>(full + S::barriers)),
          fetched(last + 1)
    {
    }
    __device__ void init(int consumer_threads) const
    {
        for (int stage = 0; stage < S::stages; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], consumer_threads / 32);
        }
        if constexpr (S::copies_on)
            *fetched = 0;
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }

    /* A lane answers for its warp. */
    __device__ void leave(int stage) const
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&empty[stage]);
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

    __device__ void fetch(int step, int stage) const
    {
        float *to = pipe.stages + stage * S::stage;
        uint64_t *full = &pipe.full[stage];
        const int k = (w.first + step) * T.block.k;
        barrier_expect(full, S::stage * 4);
        if constexpr (W.a_along_k)
            fetch_rows<T.block.m>(to, p.a, k, w.row, w.item * p.a_items, full);
        else
            fetch_box(to, p.a, w.row, k, w.item * p.a_items, full);
        if constexpr (W.b_along_k)
            fetch_rows<T.block.n>(to + S::a, p.b, k, w.col, w.item * p.b_items, full);
        else
            fetch_box(to + S::a, p.b, w.col, k, w.item * p.b_items, full);
    }

    /* In such rows pieces of four k change places: piece p of row x is at p ^ x % 8. */
    template <int Extent>
    __device__ static void fetch_rows(float *to, const CUtensorMap &map, int first_k, int x,
                                      int item, uint64_t *full)
    {
#pragma unroll
        for (int k = 0; k < T.block.k; k += row_k)
            fetch_box(to + k * Extent, map, first_k + k, x, item, full);
    }

    /* The last thing that the block does is to read and write C: it had better be near. */
    __device__ void prefetch_c() const
    {
        constexpr int line = (int)tg_min(32, T.block.n);
        if (p.beta == 0 || w.parts > 1)
            return;
        const bool across = p.c_col != 1;
        const int lines = (across ? T.block.m : T.block.n) / line;
        for (int at = thread; at < T.block.m * T.block.n / line; at += 32) {
            const int along = at % lines * line, other = at / lines;
            const int row = w.row + (across ? along : other);
            const int col = w.col + (across ? other : along);
            const float *c = p.c + w.item * p.c_item + row * p.c_row + col * p.c_col;
            if (row < p.s.m && col < p.s.n)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(c));
        }
    }

    /* Slices of copies, from the first that the work is about: how many are known to be there. Each
     * lane asks for one. */
    __device__ int await_copies(int there, int wanted) const
    {
        const int first = w.first * (T.block.k / piece);
        while (there < wanted) {
            const int slice = there + thread;
            const bool is_missing =
                slice < w.steps * (T.block.k / piece) && !is_copied(p.copied, first + slice);
            const unsigned missing = __ballot_sync(~0u, is_missing);
            there += missing ? __ffs(missing) - 1 : 32;
        }
        __syncwarp(); /* what one lane has seen, the one that fetches sees */
        asm volatile("fence.proxy.async.global;" ::: "memory");
        return there;
    }

    __device__ void run() const
    {
        if (thread >= 32) {
            if constexpr (S::copies_on)
                if (p.copied.go_on())
                    copy_others(p.copied, thread < 64, pipe.fetched);
            return;
        }
        turn<S::stages> at;
        [[maybe_unused]] int there = 0;
        for (int step = 0; step < w.steps; step++, at.next()) {
            if constexpr (S::copies_on)
                if (const int wanted = (step + 1) * (T.block.k / piece);
                    p.copied.go_on() && there < wanted)
                    there = await_copies(there, wanted);
            barrier_wait(&pipe.empty[at.stage], at.parity ^ 1);
            if (thread == 0) {
                fetch(step, at.stage);
                if constexpr (S::copies_on)
                    atomicExch(pipe.fetched, (w.first + step) * (T.block.k / piece));
            }
            __syncwarp();
        }
        if (S::copies_on && thread == 0)
            atomicExch(pipe.fetched, INT_MAX); /* nobody who copies holds back any more */
        prefetch_c();
    }
};

} /* namespace tg_hopper */

#endif
