/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiled product on a GPU, for the rows of the table that multiply-add lane by lane: one text
 * for CUDA, HIP and, with a few macros, one host thread per lane (tests/test_simt.cpp).
 *
 *   slow memory         fast memory            a lane's registers       slow memory
 *   A, B  -- fetch -->  pieces  -- put -->  A tile, B tile  -- multiply -->  sum  -- store -->  C
 *
 *   A tile: [block.k][block.m] for TG_OUTER_T, else [block.m][block.k]
 *   B tile: [block.k][block.n]
 *
 * Tiles are always full: fetch puts zeros where the matrix ends, store leaves out what is beyond.
 * The text knows no hardware width: it synchronises with block barriers only. */
#ifndef TG_SIMT_GEMM_H
#define TG_SIMT_GEMM_H

#include "carrier.h"
#include "launch.h"

namespace tg
{

/* ----------------------------------------------------------------------------------- multiply */

/* One lane's sum, and how the staged tiles are multiplied into it. */
template <tg_tile T, class Elem, tg_mn Lanes> struct lane_sum {
    using geo = geometry<T, Lanes>;
    static constexpr bool is_k_major = T.form == TG_OUTER_T;
    static constexpr int piece_m = is_k_major && T.thread.m % T.vec == 0 ? T.vec : 1;

    Elem at[geo::rows][geo::cols];

    __device__ static constexpr int a_index(int row, int k)
    {
        return is_k_major ? k * T.block.m + row : row * T.block.k + k;
    }

    __device__ void clear()
    {
#pragma unroll
        for (int i = 0; i < geo::rows; i++)
#pragma unroll
            for (int j = 0; j < geo::cols; j++)
                at[i][j] = Elem(0);
    }

    /* TG_DOT: each output walks its row of A and its column of B. */
    __device__ void multiply_dot(const geo &me, const Elem *a, const Elem *b)
    {
#pragma unroll
        for (int i = 0; i < geo::rows; i++)
#pragma unroll
            for (int j = 0; j < geo::cols; j += T.vec) {
                const int row = me.row(i), col = me.col(j);
#pragma unroll 8
                for (int k = me.slice * geo::slice_k; k < (me.slice + 1) * geo::slice_k; k++) {
                    const Elem left = a[a_index(row, k)];
                    const auto right =
                        *reinterpret_cast<const pack<Elem, T.vec> *>(b + k * T.block.n + col);
#pragma unroll
                    for (int e = 0; e < T.vec; e++)
                        at[i][j + e] += left * right.at[e];
                }
            }
    }

    /* What one k of the staged tiles gives a lane: its rows of A and its columns of B. a and b
     * point to the first of them at k = 0. */
    struct fragments {
        Elem left[geo::rows], right[geo::cols];

        __device__ void load(const Elem *a, const Elem *b, int k)
        {
#pragma unroll
            for (int i = 0; i < geo::rows; i += piece_m) {
                const Elem *from = a + a_index(geo::row_past_first(i), k);
                if constexpr (piece_m > 1)
                    *reinterpret_cast<pack<Elem, piece_m> *>(left + i) =
                        *reinterpret_cast<const pack<Elem, piece_m> *>(from);
                else
                    left[i] = *from;
            }
#pragma unroll
            for (int j = 0; j < geo::cols; j += T.vec)
                *reinterpret_cast<pack<Elem, T.vec> *>(right + j) =
                    *reinterpret_cast<const pack<Elem, T.vec> *>(b + k * T.block.n +
                                                                 geo::col_past_first(j));
        }
    };

    /* There and back along the rows, so that an operand in a register is used twice in a row. */
    __device__ void add(const fragments &f)
    {
#pragma unroll
        for (int i = 0; i < geo::rows; i++)
#pragma unroll
            for (int j = 0; j < geo::cols; j++) {
                const int turn = i % 2 ? geo::cols - 1 - j : j;
                at[i][turn] += f.left[i] * f.right[turn];
            }
    }

    /* TG_OUTER: every pair of two fragments' elements multiplied; in rows with more than one stage
     * the next k's fragments are read meanwhile, the others leave it to the next warp. */
    __device__ void multiply_outer(const geo &me, const Elem *a, const Elem *b)
    {
        constexpr int body = geo::slice_k % 4 == 0 ? 4 : geo::slice_k % 2 == 0 ? 2 : 1;
        constexpr bool is_ahead = body > 1 && T.stages > 1;
        a += a_index(me.row(0), me.slice * geo::slice_k);
        b += me.slice * geo::slice_k * T.block.n + me.col(0);
        fragments f[2];
        if (is_ahead)
            f[0].load(a, b, 0);
#pragma unroll 1
        for (int k = 0; k < geo::slice_k; k += body) {
#pragma unroll
            for (int u = 0; u < body; u++) {
                if (!is_ahead)
                    f[u % 2].load(a, b, u);
                else if (u + 1 < body || k + body < geo::slice_k)
                    f[(u + 1) % 2].load(a, b, u + 1);
                add(f[u % 2]);
            }
            a += a_index(0, body);
            b += body * T.block.n;
        }
    }

    __device__ void multiply(const geo &me, const Elem *a, const Elem *b)
    {
        if constexpr (T.form == TG_DOT)
            multiply_dot(me, a, b);
        else
            multiply_outer(me, a, b);
    }

    /* Stages 0: each lane reads its rows of A and columns of B where they are. */
    __device__ void multiply_in_place(const geo &me, const tg_call &p, const position &at_block,
                                      const Elem *a, const Elem *b)
    {
        for (int64_t k = at_block.k_begin + me.slice; k < at_block.k_end; k += T.slices)
#pragma unroll
            for (int i = 0; i < geo::rows; i++)
#pragma unroll
                for (int j = 0; j < geo::cols; j++) {
                    const int64_t row = at_block.row + me.row(i), col = at_block.col + me.col(j);
                    if (row < p.m && col < p.n)
                        at[i][j] += a[row * p.a_row + k * p.a_col] * b[k * p.b_row + col * p.b_col];
                }
    }

    /* The slices' sums, added in order to the first one's through fast memory. */
    __device__ void add_slices(const geo &me, Elem *fast)
    {
        for (int slice = 1; slice < T.slices; slice++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < geo::rows; i++)
#pragma unroll
                for (int j = 0; j < geo::cols; j++)
                    if (me.slice == slice)
                        fast[me.row(i) * T.block.n + me.col(j)] = at[i][j];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < geo::rows; i++)
#pragma unroll
                for (int j = 0; j < geo::cols; j++)
                    if (me.slice == 0)
                        at[i][j] += fast[me.row(i) * T.block.n + me.col(j)];
        }
    }
};

/* --------------------------------------------------------------------------------------- store */

/* Where results go: C, or one plane of the workspace for each split. */
template <class Elem> struct target {
    Elem *c;
    int64_t row_stride, col_stride, rows, cols; /* rows and cols: left from the block's corner */
    Elem alpha, beta;

    __device__ target(const tg_call &p, const position &at) : rows(p.m - at.row), cols(p.n - at.col)
    {
        const bool is_partial = p.splits > 1;
        c = is_partial
                ? static_cast<Elem *>(p.workspace) + (at.item * p.splits + at.split) * p.m * p.n
                : static_cast<Elem *>(p.c) + at.item * p.c_item;
        row_stride = is_partial ? p.n : p.c_row;
        col_stride = is_partial ? 1 : p.c_col;
        c += at.row * row_stride + at.col * col_stride;
        alpha = is_partial ? Elem(1) : factor<Elem>(p.alpha);
        beta = is_partial ? Elem(0) : factor<Elem>(p.beta);
    }

    /* N neighbours of a row, in one piece where that is possible. */
    template <int N> __device__ void store(int row, int col, const Elem *sum) const
    {
        Elem *to = c + row * row_stride + col * col_stride;
        if (row >= rows)
            return;
        if (N > 1 && col_stride == 1 && col + N <= cols &&
            reinterpret_cast<uintptr_t>(to) % sizeof(pack<Elem, N>) == 0) {
            auto &whole = *reinterpret_cast<pack<Elem, N> *>(to);
            pack<Elem, N> result, old = {};
            if (beta != Elem(0))
                old = whole;
#pragma unroll
            for (int e = 0; e < N; e++)
                result.at[e] = weighted(alpha, sum[e], beta, old.at[e]);
            whole = result;
            return;
        }
#pragma unroll
        for (int e = 0; e < N; e++)
            if (col + e < cols) {
                Elem &at = to[e * col_stride];
                at = weighted(alpha, sum[e], beta, beta != Elem(0) ? at : Elem(0));
            }
    }
};

/* -------------------------------------------------------------------------------------- kernels */

/* All of k for one block. */
template <tg_tile T, class Elem, tg_mn Lanes>
__device__ void multiply_staged(const tg_call &p, const position &at, const Elem *a, const Elem *b,
                                Elem *fast, const geometry<T, Lanes> &me,
                                lane_sum<T, Elem, Lanes> &sum)
{
    using geo = geometry<T, Lanes>;
    constexpr bool is_k_major = T.form == TG_OUTER_T;
    constexpr int a_size = T.block.m * T.block.k, stage_size = a_size + T.block.k * T.block.n;
    const int64_t k = at.k_end - at.k_begin, steps = tg_ceil_div(k, T.block.k);
    const int thread = int(threadIdx.x);
    constexpr int a_u = is_k_major ? T.block.k : T.block.m,
                  a_v = is_k_major ? T.block.m : T.block.k;
    constexpr int a_n = a_v % T.vec == 0 ? T.vec : 1;
    a += at.row * p.a_row + at.k_begin * p.a_col;
    b += at.k_begin * p.b_row + at.col * p.b_col;
    carrier<Elem, a_u, a_v, is_k_major, a_n, geo::threads> of_a(
        a, is_k_major ? p.a_col : p.a_row, is_k_major ? p.a_row : p.a_col, p.m - at.row, thread);
    carrier<Elem, T.block.k, T.block.n, true, T.vec, geo::threads> of_b(b, p.b_row, p.b_col,
                                                                        p.n - at.col, thread);
    const auto stage_of = [&](int64_t step) { return fast + step % T.stages * stage_size; };
    const auto set_left = [&](int64_t step) {
        of_a.set_left(k - step * T.block.k);
        of_b.set_left(k - step * T.block.k);
    };
    const auto fetch = [&](int64_t step) {
        set_left(step);
        of_a.fetch();
        of_b.fetch();
        of_a.advance();
        of_b.advance();
    };
    const auto move = [&](int64_t step) {
        if (step < steps) {
            set_left(step);
            of_a.move(stage_of(step));
            of_b.move(stage_of(step) + a_size);
            of_a.advance();
            of_b.advance();
        }
        commit_copies();
    };
    if constexpr (T.stages == 2) { /* the next tile waits in registers */
        if (steps > 0)
            fetch(0);
        for (int64_t step = 0; step < steps; step++) {
            of_a.put(stage_of(step));
            of_b.put(stage_of(step) + a_size);
            __syncthreads();
            if (step + 1 < steps)
                fetch(step + 1);
            sum.multiply(me, stage_of(step), stage_of(step) + a_size);
        }
    } else { /* the next T.stages - 1 tiles are on their way */
        for (int64_t step = 0; step < T.stages - 1; step++)
            move(step);
        for (int64_t step = 0; step < steps; step++) {
            if constexpr (T.stages == 1) {
                __syncthreads();
                move(step);
            }
            wait_for_copies<T.stages == 1 ? 0 : T.stages - 2>();
            __syncthreads();
            if constexpr (T.stages > 1)
                move(step + T.stages - 1);
            sum.multiply(me, stage_of(step), stage_of(step) + a_size);
        }
    }
}

template <tg_tile T, class Elem, tg_mn Lanes>
__device__ void run_block(const tg_call &p, Elem *fast)
{
    using geo = geometry<T, Lanes>;
    const geo me(int(threadIdx.x));
    lane_sum<T, Elem, Lanes> sum;
    sum.clear();
    {
        const position at(p, T);
        const Elem *a = static_cast<const Elem *>(p.a) + at.item * p.a_item;
        const Elem *b = static_cast<const Elem *>(p.b) + at.item * p.b_item;
        if constexpr (T.stages == 0)
            sum.multiply_in_place(me, p, at, a, b);
        else
            multiply_staged<T, Elem, Lanes>(p, at, a, b, fast, me, sum);
    }
    sum.add_slices(me, fast);
    if (me.slice > 0)
        return;
    const target<Elem> to(p, position(p, T)); /* again: nobody had to remember it */
#pragma unroll
    for (int i = 0; i < geo::rows; i++)
#pragma unroll
        for (int j = 0; j < geo::cols; j += T.vec)
            to.template store<T.vec>(me.row(i), me.col(j), &sum.at[i][j]);
}

template <tg_tile T, class Elem, tg_mn Lanes>
__global__ void GPU_BOUNDS((geometry<T, Lanes>::threads),
                           (geometry<T, Lanes>::blocks(sizeof(Elem))))
    simt_gemm(const __grid_constant__ tg_call p)
{
    if constexpr (tg_tile_fast_bytes(T, sizeof(Elem)) <= fast_bytes_here) {
        extern __shared__ __align__(16) unsigned char tg_fast_memory[];
        wait_for_turn();
        run_block<T, Elem, Lanes>(p, reinterpret_cast<Elem *>(tg_fast_memory));
    }
}

} // namespace tg

#endif
