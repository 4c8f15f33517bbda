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
 * Both operands lie k-major in shared memory, or A lies along k, or both do, and for each there is
 * a loop. Three properties of the hardware shape them:
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
    constexpr tg_mn lanes = mine::lanes, warps = mine::warps;
    constexpr int fewer = (int)tg_min(lanes.m, lanes.n), more = (int)tg_max(lanes.m, lanes.n);
    const int warp = thread / 32, in_warp = thread % 32, in_quad = in_warp % quad;
    const int straight = in_warp % fewer, skewed = (in_warp / fewer + in_warp) % more;
    const tg_mn two_by_two = {in_warp / 8 * 2 + in_warp / 2 % 2, in_warp / 4 % 2 * 2 + in_warp % 2};
    const tg_mn of_quad = {in_warp / quad % lanes.m,
                           (in_warp / quad / lanes.m + in_quad * mine::skew) % (int)lanes.n};
    const tg_mn place = lanes_are_slices<T, W> ? of_quad
                        : is_turned<T>         ? two_by_two
                        : lanes.m <= lanes.n   ? tg_mn{straight, skewed}
                                               : tg_mn{skewed, straight};
    const int slice = warp / (warps.m * warps.n);
    return {warp / warps.n % warps.m * mine::warp.m + place.m * mine::piece_m,
            warp % warps.n * mine::warp.n + place.n * mine::piece_n,
            lanes_are_slices<T, W> ? slice * quad + in_quad : slice};
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

/* Four matrices of eight rows of 16 bytes: lane l asks for row l % 8 of matrix l / 8, and gets word
 * l % 4 of row l / 4 of each. */
__device__ inline void load_matrices(float *to, unsigned from)
{
    unsigned word[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(from)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = __uint_as_float(word[i]);
}

/* Of four k the lane's own: from rows along k, or of the lane's k, straight. */
template <bool Along_k, int Count>
__device__ void load_own(float (&to)[Count], unsigned from, int lanes)
{
#pragma unroll
    for (int i = 0; i < Count; i += quad)
        if constexpr (Along_k)
            load_matrices(to + i, (from ^ i * lanes % 8 * quad * 4) + i * lanes * row_k * 4);
        else
            load_quad(to + i, from + i * lanes * 4);
}

template <tg_tile T, ways W> struct fragments {
    using mine = share<T, W>;
    float a[mine::m], b[mine::n];

    /* One k, from a lane's place in a row of the stage. */
    __device__ void load(const float *from_a, const float *from_b)
    {
        load_pieces(a, from_a, limits.lanes.m);
        load_pieces(b, from_b, limits.lanes.n);
    }
    __device__ void load_own(unsigned from_a, unsigned from_b)
    {
        tg_hopper::load_own<W.a_along_k>(a, from_a, mine::lanes.m);
        tg_hopper::load_own<W.b_along_k>(b, from_b, mine::lanes.n);
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
    __device__ void add(const fragments<T, W> &f)
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
    fragments<T, W> f[2];
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
        pipe.leave(at.stage);
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
    constexpr int piece = quad * 4, row = row_k * 4, last = quad - 1; /* bytes */
    const int first_k = me.slice * S::slice_k;
    const unsigned stages = shared_address(pipe.stages), first = first_k % row_k * 4;
    const unsigned a_0 = stages + (first_k / row_k * T.block.m + me.row) * row + me.row % 8 * piece;
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
        pipe.leave(at.stage);
    }
#pragma unroll
    for (int i = 0; i < mine::m; i++)
        acc.add_row(i, a[i][last], b[1]);
}

/* Where a lane finds, of each four k, what it is to load: of rows along k, the piece of that row
 * which it asks for; else its own k of them. In the first stage. */
template <tg_tile T, ways W> struct own_k {
    using mine = share<T, W>;
    static constexpr int body_k = (int)tg_min(row_k, shape<T, W>::slice_k), fours = body_k / quad;
    unsigned a[fours], b[fours];

    __device__ own_k(const float *stage_a, const float *stage_b, const lane &me)
    {
        const int in_warp = consumer_thread() % 32, matrix = in_warp / 8, asked = in_warp % 8;
        const int first_k = me.slice / quad * shape<T, W>::slice_k;
        const tg_mn own = {in_warp / quad % mine::lanes.m, in_warp / quad / mine::lanes.m};
        const int m = me.row - own.m + asked % mine::lanes.m + matrix * mine::lanes.m;
        const int quad_n = asked / mine::lanes.m;
        const int n = me.col + (quad_n - own.n) * quad + (matrix ^ quad_n / 2 % mine::mixed);
        find<W.a_along_k>(a, stage_a, T.block.m, first_k, W.a_along_k ? m : me.row);
        find<W.b_along_k>(b, stage_b, T.block.n, first_k, W.b_along_k ? n : me.col);
    }

    template <bool Along_k>
    __device__ static void find(unsigned (&at)[fours], const float *stage, int extent, int first_k,
                                int x)
    {
        const int in_row = body_k < row_k ? first_k % row_k / quad : 0;
        const unsigned row = shared_address(stage + (first_k - in_row * quad) * extent + x * row_k);
        const unsigned own = shared_address(stage + (first_k + threadIdx.x % quad) * extent + x);
#pragma unroll
        for (int i = 0; i < fours; i++)
            at[i] = Along_k ? row + (x % 8 ^ (in_row + i)) * quad * 4 : own + i * quad * extent * 4;
    }
};

/* The lanes of a quad are slices. As matrices are loaded, each of them gets another of four k: for
 * that it adds to the same elements of C as the others. The body is as many k as a fetched row has,
 * for then its places are the same in all. */
template <tg_tile T, ways W, class S>
__device__ void multiply_own_k(accumulators<T, W> &acc, const work &w, const pipeline<S> &pipe,
                               const lane &me)
{
    using own = own_k<T, W>;
    struct place {
        unsigned a, b; /* from the first stage's */
    };
    constexpr unsigned next_a = T.block.m * row_k * 4, next_b = T.block.n * row_k * 4;
    const own from(pipe.stages, pipe.stages + S::a, me);
    fragments<T, W> f[2];
    const auto multiply_body = [&](place at, place next) {
#pragma unroll
        for (int i = 0; i < own::fours; i++) {
            if (i < own::fours - 1)
                f[(i + 1) % 2].load_own(from.a[i + 1] + at.a, from.b[i + 1] + at.b);
            else
                f[(i + 1) % 2].load_own(from.a[0] + next.a, from.b[0] + next.b);
            acc.add(f[i % 2]);
        }
    };
    turn<S::stages> at;
    barrier_wait(&pipe.full[0], 0);
    f[0].load_own(from.a[0], from.b[0]);
    for (int step = w.steps; step > 0; step--) {
        unsigned a = at.stage * S::stage * 4, b = a;
#pragma unroll 1
        for (int k = 0; k < S::slice_k - row_k; k += row_k, a += next_a, b += next_b)
            multiply_body({a, b}, {a + next_a, b + next_b});
        turn<S::stages> next = at;
        if (step > 1) {
            next.next();
            barrier_wait(&pipe.full[next.stage], next.parity);
        }
        const unsigned to_next = next.stage * S::stage * 4;
        multiply_body({a, b}, {to_next, to_next});
        pipe.leave(at.stage);
        at = next;
    }
}

/* The slices of a tile lie side by side in the memory of the stages. Neighbouring columns change
 * places there: four elements that are stored together are four neighbouring registers, the first
 * an even one, and so c[j] gets the bank that b[j], loaded in order, is not in. */
template <tg_tile T, ways W>
__device__ void park(float *memory, const accumulators<T, W> &acc, const lane &me)
{
    using mine = share<T, W>;
    float *to = memory + me.slice * slice_pitch<T, W> + me.row * pitch<T> + me.col;
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

/* What a block does, once its tile is multiplied. Where registers are short, that is found again:
 * what the compiler takes for another block is not kept in those that the loop wants. */
template <tg_tile T, ways W> __device__ work found_again(const arguments &p, const work &w)
{
    if constexpr (share<T, W>::m * share<T, W>::n < 128 || (T.slices == 1 && W.a_along_k))
        return w;
    unsigned block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return work_of<T>(p.s, block);
}

template <tg_tile T, ways W, class S>
__device__ void consume(const arguments &p, const work &todo, const pipeline<S> &pipe)
{
    const lane me = lane_of<T, W>(consumer_thread());
    accumulators<T, W> acc;
    if constexpr (lanes_are_slices<T, W>)
        multiply_own_k(acc, todo, pipe, me);
    else if constexpr (W.a_along_k)
        multiply_along_k(acc, todo, pipe, me);
    else
        multiply(acc, todo, pipe, me);
    const work w = found_again<T, W>(p, todo);
    tg::meet<consumers<T>>(); /* nobody reads the stages any more */
    park(pipe.stages, acc, me);
    tg::meet<consumers<T>>();
    const parked_slices<T, W> slices = {pipe.stages};
    if (w.parts == 1) {
        write_tile<T>(p, w, slices);
        return;
    }
    float *parts = p.partials + w.split * w.parts * (T.block.m * T.block.n);
    if (p.s.cluster > 1) {
        parts = pipe.stages;
        add_slices(slices, parts);
        tg::meet_cluster();
    } else if (!store_part(p, w, slices, parts, pipe.last))
        return;
    write_tile<T>(p, w, stored_parts<T>{parts, w.parts, p.s.cluster, w.part});
    if (p.s.cluster > 1)
        tg::leave_cluster();
}

template <tg_tile T, ways W>
__global__ void __launch_bounds__(shape<T, W>::threads, shape<T, W>::blocks)
    gemm(const __grid_constant__ arguments p)
{
    using S = shape<T, W>;
    extern __shared__ __align__(1024) float memory[];
    const pipeline<S> pipe(memory);
    if (threadIdx.x == 0) {
        prefetch_map(p.a);
        prefetch_map(p.b);
        pipe.init(consumers<T>);
    }
    const work w = work_of<T>(p.s, blockIdx.x);
    __syncthreads();
    tg::wait_for_turn();
    if constexpr (has_edges<W>)
        if (blockIdx.x < p.s.edge_blocks) {
            run_edges<T, W>(p, memory);
            return;
        }
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
