/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact f32 GEMM for Hopper (sm_90a): the loop that keeps the FFMA pipes busy, for any row of the
 * table whose block is staged three times or more.
 *
 *   producer, one thread      stages in shared memory        consumers, registers
 *   +-------------------+     +-----------------------+     +--------------------------+
 *   | copy engine:      |     | A [block.k][block.m]  |     | slice 0: k 0 ..  of each |
 *   | box of A, box of B| --> | B [block.k][block.n]  | --> | slice 1: k ..    stage   |
 *   | for a free stage  |     | x stages              |     | warp tile = one unit     |
 *   +-------------------+     +-----------------------+     +--------------------------+
 *             ^------------------ empty <- | -> full -------------^
 *
 * B lies k-major in shared memory, if need be turned on its way in (hopper_load.h); A lies k-major
 * or along k, and for each there is a loop. Three properties of the hardware shape them:
 *   - Registers have two banks, and an FFMA may fetch one operand from each: a is reused from the
 *     instruction before, so b and the accumulator must differ in parity (see park).
 *   - A wide load from shared memory disturbs the FFMAs least if four neighbouring lanes read four
 *     different places of both operands (see lane_of).
 *   - A long loop body loses its double buffer to the compiler's scheduler: it is four k long, or
 *     eight, with marks that nothing is moved across. */
#ifndef TG_HOPPER_H
#define TG_HOPPER_H

#include "hopper_edge.h"
#include "hopper_load.h"
#include "hopper_store.h"

namespace tg_hopper
{

/* Where a consumer's part of C begins in the tile, and which k of a stage it takes. The lanes are
 * skewed: any four neighbours differ in both coordinates. But a turned tile waits for shared memory
 * more than for FMAs: its neighbours lie two by two, which halves the time of a load. */
struct lane {
    int row, col, slice;
};

template <tg_tile T, ways W> __device__ lane lane_of(int thread)
{
    using mine = share<T, W>;
    constexpr tg_mn lanes = mine::lanes, warps = tg_tile_warps(T);
    constexpr int fewer = (int)tg_min(lanes.m, lanes.n), more = (int)tg_max(lanes.m, lanes.n);
    const int warp = thread / 32, in_warp = thread % 32;
    const int straight = in_warp % fewer, skewed = (in_warp / fewer + in_warp) % more;
    const tg_mn two_by_two = {in_warp / 8 * 2 + in_warp / 2 % 2, in_warp / 4 % 2 * 2 + in_warp % 2};
    const int lane_m = is_turned<T> ? two_by_two.m : lanes.m <= lanes.n ? straight : skewed;
    const int lane_n = is_turned<T> ? two_by_two.n : lanes.m <= lanes.n ? skewed : straight;
    return {warp / warps.n % warps.m * T.warp.m + lane_m * mine::piece_m,
            warp % warps.n * T.warp.n + lane_n * mine::piece_n, warp / (warps.m * warps.n)};
}

__device__ inline void load_quad(float *to, unsigned from)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from)
                 : "memory");
}

template <int Count> __device__ void load_pieces(float (&to)[Count], const float *from, int lanes)
{
#pragma unroll
    for (int i = 0; i < Count; i += quad) {
        const float4 piece = *reinterpret_cast<const float4 *>(from + i * lanes);
        to[i] = piece.x;
        to[i + 1] = piece.y;
        to[i + 2] = piece.z;
        to[i + 3] = piece.w;
    }
}

template <tg_tile T> struct fragments {
    float a[T.thread.m], b[T.thread.n];

    /* One k, from a lane's place in a row of the stage. */
    __device__ void load(const float *from_a, const float *from_b)
    {
        load_pieces(a, from_a, limits.lanes.m);
        load_pieces(b, from_b, limits.lanes.n);
    }
};

template <tg_tile T, ways W> struct accumulators {
    static constexpr int m = share<T, W>::m, n = share<T, W>::n;
    float c[m][n] = {};

    /* There and back along n, so that b is reused where the row turns. */
    __device__ void add_row(int i, float a, const float (&b)[n])
    {
#pragma unroll
        for (int step = 0; step < n; step++) {
            const int j = i % 2 ? n - 1 - step : step;
            c[i][j] = fmaf(a, b[j], c[i][j]);
        }
    }
    __device__ void add(const fragments<T> &f)
    {
#pragma unroll
        for (int i = 0; i < m; i++)
            add_row(i, f.a[i], f.b);
    }
};

/* A stage is bodies of four k: in a loop all but the last, which is a copy of its own, because it
 * takes its last fragments from the next stage. */
template <tg_tile T, ways W, class S>
__device__ void multiply(accumulators<T, W> &acc, const work &w, const pipeline<S> &pipe,
                         const lane &me)
{
    constexpr int m = T.block.m, n = T.block.n;
    const float *const a_0 = pipe.stages + me.slice * S::slice_k * m + me.row;
    const float *const b_0 = pipe.stages + S::a + me.slice * S::slice_k * n + me.col;
    fragments<T> f[2];
    turn<S::stages> at;
    barrier_wait(&pipe.full[0], 0);
    f[0].load(a_0, b_0);
    for (int step = w.steps; step > 0; step--) {
        const float *a = a_0 + at.stage * S::stage, *b = b_0 + at.stage * S::stage;
#pragma unroll 1
        for (int k = 0; k < S::slice_k - quad; k += quad, a += quad * m, b += quad * n)
#pragma unroll
            for (int i = 0; i < quad; i++) {
                f[(i + 1) % 2].load(a + (i + 1) * m, b + (i + 1) * n);
                acc.add(f[i % 2]);
            }
        turn<S::stages> next = at;
        if (step > 1) {
            next.next();
            barrier_wait(&pipe.full[next.stage], next.parity);
        }
        const float *next_a = a_0 + next.stage * S::stage;
        const float *next_b = b_0 + next.stage * S::stage;
#pragma unroll
        for (int i = 0; i < quad; i++) {
            if (i < quad - 1)
                f[(i + 1) % 2].load(a + (i + 1) * m, b + (i + 1) * n);
            else
                f[(i + 1) % 2].load(next_a, next_b);
            acc.add(f[i % 2]);
        }
        __syncwarp();
        if (pipe.answers())
            barrier_arrive(&pipe.empty[at.stage]);
        at = next;
    }
}

/* The compiler's scheduler moves nothing past it: let loose on several k whose A is there already,
 * it would mix them up, and the accumulators lose their banks. The event means nothing. */
__device__ inline void keep_order() { asm volatile("pmevent 1;"); }

/* Rows of A along k: a lane holds four k of each of its rows, so the last k of four is multiplied
 * while, row by row, the next four arrive. The loop turns at that point. */
template <tg_tile T, ways W, class S>
__device__ void multiply_along_k(accumulators<T, W> &acc, const work &w, const pipeline<S> &pipe,
                                 const lane &me)
{
    using mine = share<T, W>;
    constexpr int piece = quad * 4, row = raw_k * 4, last = quad - 1; /* bytes */
    const int first_k = me.slice * S::slice_k;
    const unsigned stages = shared_address(pipe.stages), first = first_k % raw_k * 4;
    const unsigned a_0 = stages + (first_k / raw_k * T.block.m + me.row) * row + me.row % 8 * piece;
    const unsigned b_0 = stages + (S::a + first_k * T.block.n + me.col) * 4;
    float a[mine::m][quad] = {}, b[2][mine::n] = {};
    turn<S::stages> at;
    for (int step = w.steps; step > 0; step--, at.next()) {
        const unsigned from_a = a_0 + at.stage * S::stage * 4;
        unsigned from_b = b_0 + at.stage * S::stage * 4;
        barrier_wait(&pipe.full[at.stage], at.parity);
#pragma unroll 2
        for (unsigned k4 = first; k4 != first + S::slice_k * 4; k4 += piece) {
            const unsigned pieces = from_a ^ k4;
#pragma unroll
            for (int k = 0; k < quad; k++, from_b += T.block.n * 4) {
                if (k != 1)
                    keep_order();
#pragma unroll
                for (int j = 0; j < mine::n; j += quad)
                    load_quad(&b[k % 2][j], from_b + j * mine::lanes.n * 4);
#pragma unroll
                for (int i = 0; i < mine::m; i++) {
                    acc.add_row(i, a[i][(k + last) % quad], b[(k + 1) % 2]);
                    const int x = i * mine::lanes.m;
                    if (k == 0)
                        load_quad(a[i], (pieces ^ x % 8 * piece) + x * row);
                }
            }
        }
        __syncwarp();
        if (pipe.answers())
            barrier_arrive(&pipe.empty[at.stage]);
    }
#pragma unroll
    for (int i = 0; i < mine::m; i++)
        acc.add_row(i, a[i][last], b[1]);
}

/* The slices of a tile lie side by side in the memory of the stages. Neighbouring columns change
 * places there: four elements that are stored together are four neighbouring registers, the first
 * an even one, and so c[j] gets the bank that b[j], loaded in order, is not in. */
template <tg_tile T, ways W>
__device__ void park(float *memory, const accumulators<T, W> &acc, const lane &me)
{
    using mine = share<T, W>;
    float *to = memory + (me.slice * T.block.m + me.row) * pitch<T> + me.col;
#pragma unroll
    for (int i = 0; i < mine::m; i++)
#pragma unroll
        for (int j = 0; j < mine::n; j += quad) {
            const int row = tg_piece_of(i, mine::piece_m, 0, mine::lanes.m);
            const int col = j * mine::lanes.n;
            *reinterpret_cast<float4 *>(to + row * pitch<T> + col) =
                make_float4(acc.c[i][j + 1], acc.c[i][j], acc.c[i][j + 3], acc.c[i][j + 2]);
        }
}

template <tg_tile T, ways W, class S>
__device__ void consume(const arguments &p, const work &w, const pipeline<S> &pipe)
{
    const lane me = lane_of<T, W>(consumer_thread());
    accumulators<T, W> acc;
    if constexpr (W.a_along_k)
        multiply_along_k(acc, w, pipe, me);
    else
        multiply(acc, w, pipe, me);
    meet<1, consumers<T>>(); /* nobody reads the stages any more */
    park(pipe.stages, acc, me);
    meet<1, consumers<T>>();
    const parked_slices<T> slices = {pipe.stages};
    if (w.parts == 1) {
        write_tile<T>(p, w, slices);
        return;
    }
    float *parts = p.partials + w.split * w.parts * (T.block.m * T.block.n);
    if (store_part(p, w, slices, parts, pipe.last))
        write_tile<T>(p, w, stored_parts<T>{parts, w.parts});
}

template <tg_tile T, ways W>
__global__ void __launch_bounds__(shape<T, W>::threads, shape<T, W>::blocks)
    gemm(const __grid_constant__ arguments p)
{
    using S = shape<T, W>;
    extern __shared__ __align__(1024) float memory[];
    const pipeline<S> pipe(memory);
    if (threadIdx.x == 0)
        pipe.init(consumers<T>);
    __syncthreads();
    tg::wait_for_turn();
    if constexpr (has_edges<W>)
        if (blockIdx.x < p.s.edge_blocks) {
            run_edges<S::threads>(p, memory);
            return;
        }
    const work w = work_of<T>(p.s, blockIdx.x - (has_edges<W> ? p.s.edge_blocks : 0));
    if (threadIdx.x < producers) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(S::producer_registers));
        producer<T, W>{p, w, pipe, (int)threadIdx.x}.run();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(S::consumer_registers));
        consume<T, W>(p, w, pipe);
    }
}

} /* namespace tg_hopper */

#endif
