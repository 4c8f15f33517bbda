/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiled product on AMD's matrix instructions: one text for all of them, and all strides.
 *
 *   fetch to registers -> put in a stage -> read fragments -> multiply -> store
 *
 * A warp tile is rep.m x rep.n instructions. Those next to each other have neighbouring rows and
 * columns, vec of them, so that a lane reads its fragments, and writes C, in pieces of vec:
 *
 *   rows of C, vec = 2:   0 1 | 2 3 | 4 5 | ...      row r of instruction i is row 2 r + i */
#ifndef TG_HIP_MATRIX_H
#define TG_HIP_MATRIX_H

#include "matrix_inst.h"
#include "matrix_stage.h"
#include "rows.h"
#include "simt_gemm.h"

namespace tg::matrix
{

template <tg_tile T, class Elem> struct shape {
    static constexpr tg_tile tile = T;
    using op = inst<T.inst, Elem>;
    static constexpr int threads = int(tg_tile_threads(T, widest.lanes)), steps = T.block.k / op::k;
    static constexpr tg_mn warps = tg_tile_warps(T);
    static constexpr int rows = T.warp.m / op::m, cols = T.warp.n / op::n; /* of instructions */
    using a_panel = panel<Elem, T.block.k, T.block.m>;
    using b_panel = panel<Elem, T.block.k, T.block.n>;
    static constexpr int stage_elems = a_panel::elems + b_panel::elems;
};

/* What is the same in all lanes, in registers of which a wave has one. */
template <class X> __device__ X same_in_all(X x)
{
    int words[sizeof(X) / sizeof(int)];
    __builtin_memcpy(words, &x, sizeof x);
    for (int &word : words)
        word = __builtin_amdgcn_readfirstlane(word);
    __builtin_memcpy(&x, words, sizeof x);
    return x;
}

/* Reads what a lane brings to Count instructions side by side. The warp's tile starts at `first`.
 */
template <class Panel, class Op, int Vec, int Count> struct reader {
    using Elem = typename Panel::Elem;
    static_assert(Vec * Op::m % Panel::banks == 0);
    int origin;

    __device__ reader(int first, int lane)
        : origin(Panel::at(lane / Op::m, first + lane % Op::m * Vec))
    {
    }

    /* Lines of one step and those of all before it have no bit of k in common, nor their swizzles.
     */
    __device__ void load(Elem (&to)[Count], const Elem *staged, int step) const
    {
        const int k = step * Op::groups;
        const Elem *from = staged + (origin ^ Panel::swizzle(k)) + k * Panel::wide;
#pragma unroll
        for (int i = 0; i < Count; i += Vec)
            *reinterpret_cast<pack<Elem, Vec> *>(to + i) =
                *reinterpret_cast<const pack<Elem, Vec> *>(from + i * Op::m);
    }
};

template <class S, class Elem, class Sums>
__device__ void multiply_stage(Sums (&sum)[S::rows][S::cols], const Elem *staged,
                               const auto &read_a, const auto &read_b)
{
    Elem a[2][S::rows], b[2][S::cols];
    read_a.load(a[0], staged, 0);
    read_b.load(b[0], staged + S::a_panel::elems, 0);
#pragma unroll
    for (int step = 0; step < S::steps; step++) {
        if (step + 1 < S::steps) {
            read_a.load(a[(step + 1) % 2], staged, step + 1);
            read_b.load(b[(step + 1) % 2], staged + S::a_panel::elems, step + 1);
        }
        __builtin_amdgcn_sched_barrier(0); /* read ahead, and do not wait at once */
#pragma unroll
        for (int i = 0; i < S::rows; i++)
#pragma unroll
            for (int j = 0; j < S::cols; j++)
                S::op::multiply(sum[i][j], a[step % 2][i], b[step % 2][j]);
        __builtin_amdgcn_sched_barrier(0);
    }
}

template <class S, class Elem> __device__ void run(const tg_call &p, Elem *fast)
{
    constexpr tg_tile T = S::tile;
    using op = typename S::op;
    const int thread = int(threadIdx.x), lane = thread % lanes;
    const int warp = same_in_all(thread / lanes);
    const int first_row = warp / S::warps.n * T.warp.m, first_col = warp % S::warps.n * T.warp.n;
    const position at = same_in_all(position(p, T));
    const Elem *a = static_cast<const Elem *>(p.a) + at.item * p.a_item,
               *b = static_cast<const Elem *>(p.b) + at.item * p.b_item;
    carrier<typename S::a_panel, S::threads> of_a(a + at.row * p.a_row + at.k_begin * p.a_col,
                                                  p.a_col, p.a_row, p.m - at.row, thread);
    carrier<typename S::b_panel, S::threads> of_b(b + at.k_begin * p.b_row + at.col * p.b_col,
                                                  p.b_row, p.b_col, p.n - at.col, thread);
    const reader<typename S::a_panel, op, T.vec, S::rows> read_a(first_row, lane);
    const reader<typename S::b_panel, op, T.vec, S::cols> read_b(first_col, lane);
    typename op::sums sum[S::rows][S::cols] = {};
    const auto fetch = [&](int64_t k) {
        const int left = int(tg_min(at.k_end - k, T.block.k));
        of_a.fetch(left);
        of_b.fetch(left);
    };
    if (at.k_begin < at.k_end)
        fetch(at.k_begin);
    int stage = 0;
    for (int64_t k = at.k_begin; k < at.k_end; k += T.block.k, stage ^= S::stage_elems) {
        of_a.put(fast + stage);
        of_b.put(fast + stage + S::a_panel::elems);
        __syncthreads();
        if (k + T.block.k < at.k_end)
            fetch(k + T.block.k);
        multiply_stage<S>(sum, fast + stage, read_a, read_b);
    }
    const target<Elem> to(p, position(p, T)); /* again: nobody had to remember it */
    const int row = first_row + op::first_row(lane) * T.vec, col = first_col + lane % op::n * T.vec;
#pragma unroll
    for (int i = 0; i < S::rows; i++)
#pragma unroll
        for (int o = 0; o < op::outputs; o++)
#pragma unroll
            for (int j = 0; j < S::cols; j += T.vec) {
                Elem side_by_side[T.vec];
#pragma unroll
                for (int e = 0; e < T.vec; e++)
                    side_by_side[e] = sum[i][j + e][o];
                to.template store<T.vec>(row + (i / T.vec * op::m + op::row_past_first(o)) * T.vec +
                                             i % T.vec,
                                         col + j * op::n, side_by_side);
            }
}

constexpr bool fits(int target, tg_tile t, int elem_bytes)
{
    tg_limits l = widest;
    l.matrix = target;
    return tg_tile_fits(t, l, elem_bytes);
}

/* On any target with waves of this size. */
constexpr bool fits_any(tg_tile t, int elem_bytes)
{
    return lanes == 64 && (fits(0x90a, t, elem_bytes) || fits(0x942, t, elem_bytes));
}

template <tg_tile T, class Elem>
__global__ void GPU_BOUNDS((shape<T, Elem>::threads), 2) __attribute__((amdgpu_waves_per_eu(2)))
matrix_gemm(const __grid_constant__ tg_call p)
{
    if constexpr (fits(target_compiled_for, T, sizeof(Elem))) {
        extern __shared__ __align__(16) unsigned char tg_fast_memory[];
        run<shape<T, Elem>>(p, reinterpret_cast<Elem *>(tg_fast_memory));
    }
}

} // namespace tg::matrix

#endif
