/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiled product on AMD's matrix instructions, and on FMAs taken as such: one text for all of
 * them, and all strides.
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

template <tg_tile T, class Elem_> struct shape {
    using Elem = Elem_;
    static constexpr tg_tile tile = T;
    using op = inst<T.inst, Elem>;
    using word = typename op::word;
    static constexpr int threads = int(tg_tile_threads(T, widest.lanes)), steps = T.block.k / op::k;
    static constexpr tg_mn warps = tg_tile_warps(T);
    static constexpr int rows = T.warp.m / op::m, cols = T.warp.n / op::n; /* of instructions */
    using a_panel = panel<op, T.block.k, T.block.m>;
    using b_panel = panel<op, T.block.k, T.block.n>;
    static constexpr int stage_words = a_panel::words + b_panel::words;
    static constexpr int fast_bytes = T.stages * stage_words * int(sizeof(word));
    using sums = typename op::sums[rows][cols];
};

/* Reads what a lane brings to Count instructions side by side, of Side rows or columns each. The
 * warp's tile starts at `first`; in it, the lane's are number `mine` of each instruction. */
template <class Panel, int Vec, int Count, int Side> struct reader {
    using op = typename Panel::op;
    using word = typename Panel::word;
    static constexpr int span = Vec * Side;
    struct fragments {
        word of[Count][op::words];
    };
    int origin;

    __device__ reader(int first, int mine, int lane)
        : origin(Panel::at(lane / op::m % op::groups, first + mine * Vec))
    {
    }

    /* A lane's group and the lines before the group's have no bit of u in common, nor their
     * swizzles. The part of a swizzle beyond the span is the same for all lanes. */
    __device__ void load(fragments &to, const word *staged, int step) const
    {
#pragma unroll
        for (int w = 0; w < op::words; w++) {
            const int u = (step * op::words + w) * op::groups;
#pragma unroll
            for (int i = 0; i < Count; i += Vec) {
                const int v = (i * Side) ^ Panel::swizzle(u);
                const word *from = staged + u * Panel::wide + v / span * span + (origin ^ v % span);
                const auto got = *reinterpret_cast<const vector<word, Vec> *>(from);
#pragma unroll
                for (int e = 0; e < Vec; e++)
                    to.of[i + e][w] = got[e];
            }
        }
    }
};

/* The next step's fragments are read before this one's are multiplied. */
template <class S, class ReadA, class ReadB>
__device__ void multiply_stage(typename S::sums &sum, const typename S::word *staged,
                               const ReadA &read_a, const ReadB &read_b)
{
    typename ReadA::fragments a[2];
    typename ReadB::fragments b[2];
    read_a.load(a[0], staged, 0);
    read_b.load(b[0], staged + S::a_panel::words, 0);
#pragma unroll
    for (int step = 0; step < S::steps; step++) {
        if (step + 1 < S::steps) {
            read_a.load(a[(step + 1) % 2], staged, step + 1);
            read_b.load(b[(step + 1) % 2], staged + S::a_panel::words, step + 1);
        }
        __builtin_amdgcn_sched_barrier(0);
#pragma unroll
        for (int i = 0; i < S::rows; i += S::op::rows_at_once)
            S::op::multiply(&sum[i], &a[step % 2].of[i], b[step % 2].of);
        __builtin_amdgcn_sched_barrier(0);
    }
}

/* Where results go: to the workspace or to C, in the type of sums or in that of A and B. */
template <class S> struct output : target<sum_of<typename S::Elem>> {
    using Sum = sum_of<typename S::Elem>;
    static constexpr int piece = 16 / sizeof(Sum); /* neighbours of a row */
    const bool is_short;

    __device__ output(const tg_call &p, const position &at)
        : target<Sum>(p, at), is_short(p.splits == 1 && p.c_type == p.a_type)
    {
        if (is_short) /* it was taken for a matrix of sums */
            this->c = static_cast<Sum *>(p.c);
        if (is_short)
            first = at.item * p.c_item + at.row * p.c_row + at.col * p.c_col;
    }

    __device__ __forceinline__ void store(int row, int col, const Sum *sum) const
    {
        const int64_t at = first + row * this->row_stride + col * this->col_stride;
        if (row >= this->rows || col >= this->cols)
            return;
        if constexpr (sizeof(Sum) != sizeof(typename S::Elem) && !std::is_integral_v<Sum>)
            if (is_short)
                return put(reinterpret_cast<typename S::Elem *>(this->c) + at, this->cols - col,
                           sum);
        put(this->c + at, this->cols - col, sum);
    }

    template <class To>
    __device__ __forceinline__ void put(To *to, int64_t left, const Sum *sum) const
    {
        if (this->col_stride == 1 && left >= piece) {
            To whole[piece] = {};
            if (this->beta != Sum(0))
                __builtin_memcpy(whole, to, sizeof whole);
#pragma unroll
            for (int e = 0; e < piece; e++)
                whole[e] = To(weighted(this->alpha, sum[e], this->beta, Sum(whole[e])));
            __builtin_memcpy(to, whole, sizeof whole);
            return;
        }
#pragma unroll 1
        for (int e = 0; e < tg_min(left, piece); e++, to += this->col_stride)
            *to = To(weighted(this->alpha, sum[e], this->beta,
                              this->beta != Sum(0) ? Sum(*to) : Sum(0)));
    }

  private:
    int64_t first = 0;
};

/* A warp tile on its way to C, some rows of instructions at a time: from where the instructions
 * left it to rows in fast memory, of which each warp has its part, and on in whole pieces. */
template <class S>
__device__ __forceinline__ void store(const typename S::sums &sum, const output<S> &to, void *fast,
                                      int warp, int lane)
{
    using op = typename S::op;
    using Sum = typename output<S>::Sum;
    constexpr tg_tile T = S::tile;
    constexpr int vec = T.vec, piece = output<S>::piece, across = T.warp.n / piece;
    constexpr int part = S::fast_bytes / (S::threads / lanes) / sizeof(Sum);
    constexpr int halves = part < op::m * T.warp.n ? 2 : 1; /* of an instruction's rows */
    constexpr int height = op::m / halves, outputs = op::outputs / halves;
    constexpr int room = part / (height * T.warp.n), at_once = tg_min(S::rows, room & -room);
    static_assert(at_once > 0 && S::rows % at_once == 0);
    static_assert(halves == 1 || op::row_past_first(outputs) == height);
    const int first_row = warp / S::warps.n * T.warp.m, first_col = warp % S::warps.n * T.warp.n;
    Sum *const mine = static_cast<Sum *>(fast) + warp * part;
    Sum *const of_lane = mine + op::first_row(lane) * T.warp.n + lane % op::n * vec;
#pragma unroll
    for (int part_of = 0; part_of < S::rows / at_once * halves; part_of++) {
        const int first = part_of / halves * at_once, half = part_of % halves;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < at_once; i++)
#pragma unroll
            for (int o = 0; o < outputs; o++)
#pragma unroll
                for (int j = 0; j < S::cols; j += vec) {
                    vector<Sum, vec> side_by_side;
#pragma unroll
                    for (int e = 0; e < vec; e++)
                        side_by_side[e] = Sum(sum[first + i][j + e][half * outputs + o]);
                    const int row = i * height + op::row_past_first(o);
                    *reinterpret_cast<vector<Sum, vec> *>(of_lane + row * T.warp.n + j * op::n) =
                        side_by_side;
                }
        __syncthreads();
#pragma unroll 1
        for (int at = lane; at < at_once * height * across; at += lanes) {
            const int line = at / across, i = first + line / height;
            const int row_of_op = half * height + line % height;
            const int row = (i / vec * op::m + row_of_op) * vec + i % vec;
            to.store(first_row + row, first_col + at % across * piece, mine + at * piece);
        }
    }
}

template <class S> __device__ __forceinline__ void run(const tg_call &p, typename S::word *fast)
{
    constexpr tg_tile T = S::tile;
    using op = typename S::op;
    const int thread = int(threadIdx.x), lane = thread % lanes, warp = same_in_all(thread / lanes);
    const int first_row = warp / S::warps.n * T.warp.m, first_col = warp % S::warps.n * T.warp.n;
    const position at = same_in_all(position(p, T));
    carrier<typename S::a_panel, S::threads> of_a(
        p.a, at.item * p.a_item + at.row * p.a_row + at.k_begin * p.a_col, p.a_col, p.a_row,
        p.m - at.row, thread);
    carrier<typename S::b_panel, S::threads> of_b(
        p.b, at.item * p.b_item + at.k_begin * p.b_row + at.col * p.b_col, p.b_row, p.b_col,
        p.n - at.col, thread);
    const reader<typename S::a_panel, T.vec, S::rows, op::m> read_a(first_row, op::a_row(lane),
                                                                    lane);
    const reader<typename S::b_panel, T.vec, S::cols, op::n> read_b(first_col, op::b_col(lane),
                                                                    lane);
    typename S::sums sum = {};
    const int64_t steps = tg_ceil_div(at.k_end - at.k_begin, T.block.k);
    const int of_last = int(at.k_end - at.k_begin - (steps - 1) * T.block.k);
    constexpr int in_turn = T.inst.k > 1 ? T.stages : 1; /* FMAs are too many to be there twice */
    int stage = 0;
#pragma unroll 1
    for (int64_t left = steps; left >= 0;) /* of them, the first is fetched */
#pragma unroll
        for (int i = 0; i < in_turn; i++, left--, stage ^= S::stage_words) {
            if (left < 0)
                continue;
            if (left != steps) {
                of_a.put(fast + stage);
                of_b.put(fast + stage + S::a_panel::words);
                __syncthreads();
            }
            if (left != 0) {
                of_a.fetch(left == 1 ? of_last : T.block.k);
                of_b.fetch(left == 1 ? of_last : T.block.k);
            }
            if (left != steps)
                multiply_stage<S>(sum, fast + stage, read_a, read_b);
        }
    store<S>(sum, output<S>(p, at), fast, warp, lane);
}

constexpr bool fits(int target, tg_tile t, int elem_bytes)
{
    tg_limits l = widest;
    l.matrix = target;
    return tg_tile_fits(t, l, elem_bytes);
}

/* How many waves a SIMD runs at least. In one lane, a gfx906 has 256 registers for all of them, and
 * a gfx908 as many more for the sums of matrix instructions only. */
constexpr int waves_of(tg_tile t)
{
    return t.inst.k == 1 && target_compiled_for > 0 && target_compiled_for < 0x90a ? 1 : 2;
}

/* On any target with waves of this size. */
constexpr bool fits_any(tg_tile t, int elem_bytes)
{
    return lanes == 32 ? fits(0x1100, t, elem_bytes)
                       : fits(0x908, t, elem_bytes) || fits(0x90a, t, elem_bytes) ||
                             fits(0x942, t, elem_bytes);
}

template <tg_tile T, class Elem>
__global__ void GPU_BOUNDS((shape<T, Elem>::threads), 2)
    __attribute__((amdgpu_waves_per_eu(waves_of(T)))) matrix_gemm(const __grid_constant__ tg_call p)
{
    if constexpr (fits(target_compiled_for, T, sizeof(Elem))) {
        using S = shape<T, Elem>;
        extern __shared__ __align__(16) unsigned char tg_fast_memory[];
        run<S>(p, reinterpret_cast<typename S::word *>(tg_fast_memory));
    }
}

} // namespace tg::matrix

#endif
