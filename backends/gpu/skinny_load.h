/* SPDX-License-Identifier: Apache-2.0
 *
 * skinny.h's geometry and its way in: who a thread is, how it reads B, how A is staged. */
#ifndef TG_SKINNY_LOAD_H
#define TG_SKINNY_LOAD_H

#include "thin.h"

namespace tg
{

/* How B lies in memory. Only the first two can be loaded as vectors. */
enum class skinny_b { along_n, along_k, scattered };

template <tg_tile T, typename T_elem> struct skinny {
    static constexpr tg_mn lanes = widest.lanes;
    static constexpr tg_tile tile = filled<T_elem>(T);
    static constexpr int rows = T.thread.m, cols = T.thread.n, vec = T.vec;
    static constexpr int threads = int(tg_tile_threads(tile, lanes));
    static constexpr int warp_size = lanes.m * lanes.n;
    static constexpr int column_groups = T.block.n / cols, k_groups = threads / column_groups;
    /* Neighbouring lanes that share a column group where columns are contiguous. */
    static constexpr int lanes_along_k = int(tg_min(warp_size, k_groups));
    static constexpr int held = rows * cols; /* sums of a lane */
    /* A round has as many steps as let a lane ask for this many bytes of B at once. */
    static constexpr int sum_bytes = held * sizeof(T_elem);
    static constexpr int lane_bytes = sum_bytes <= 96 && rows <= 8 ? 128 : 64;
    static constexpr int steps = int(tg_max(1, lane_bytes / int(cols * vec * sizeof(T_elem))));
    static constexpr int round_k = steps * k_groups * vec;
    static constexpr int panel_rounds = int(tg_max(1, T.block.k / round_k));
    static constexpr int panel_k = panel_rounds * round_k;
    /* Lines of a panel begin in different banks: staging goes across them. */
    static constexpr int panel_stride = panel_k + vec;
    static constexpr int panel = rows * panel_stride;
    static constexpr int sums = k_groups / lanes.m * rows * T.block.n;
    static constexpr int fast_elements = int(tg_max(2 * panel, sums));
    /* Of the 64 Ki registers of a unit, a thread gets 128, or all if its part of C is large. */
    static constexpr int words = (held + 2 * steps * vec * cols) * int(sizeof(T_elem)) / 4;
    /* But for Hopper's, compilers want more registers for the same text. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
    static constexpr int words_that_fit = sizeof(T_elem) == 8 ? 79 : 90;
#else
    static constexpr int words_that_fit = 100;
#endif
    static constexpr int blocks_per_unit =
        words <= words_that_fit && threads < 512 ? 512 / threads : 1;

    static constexpr bool is_possible =
        T.stages == 0 && T.form == TG_OUTER && T.block.m == 8 * T.thread.m &&
        column_groups % lanes.n == 0 && k_groups % lanes_along_k == 0 &&
        fast_elements * sizeof(T_elem) <= 48 << 10;
};

/* Who a thread is. A warp's k groups take neighbouring steps, steps times over. */
template <tg_tile T, typename T_elem, skinny_b way> struct skinny_place {
    using shape = skinny<T, T_elem>;
    static constexpr bool is_along_k = way == skinny_b::along_k;
    static constexpr int lanes_k = is_along_k ? shape::lanes_along_k : shape::lanes.m;
    static constexpr int lane_step = is_along_k ? 1 : shape::lanes.n; /* to the next of them */
    static constexpr int warps_k = shape::k_groups / lanes_k;
    static constexpr int step_k = lanes_k * T.vec; /* from a step of a lane to its next */

    int lane, column_group, warp_k, first_k; /* first_k: within a round */

    __device__ skinny_place()
    {
        const int warp = threadIdx.x / shape::warp_size;
        lane = threadIdx.x % shape::warp_size;
        constexpr int warps_n = shape::column_groups / shape::lanes.n;
        int lane_k = lane / shape::lanes.n;
        column_group = warp % warps_n * shape::lanes.n + lane % shape::lanes.n;
        warp_k = warp / warps_n;
        if (is_along_k) {
            const int run = threadIdx.x / lanes_k;
            lane_k = threadIdx.x % lanes_k;
            column_group = run % shape::column_groups, warp_k = run / shape::column_groups;
        }
        first_k = warp_k * shape::steps * step_k + lane_k * T.vec;
    }

    /* Column j of a column group, within the block. */
    __device__ static int column(int column_group, int j)
    {
        return tg_piece_of(j, T.vec, column_group, shape::column_groups);
    }
};

/* tg_call as the kernel wants it: m is the thin side. */
template <typename T_elem> struct skinny_call {
    const T_elem *a, *b;
    T_elem *c, *parts; /* parts[item][split][m][n], if there are splits */
    int64_t a_row, a_col, a_item, b_row, b_col, b_item, c_row, c_col, c_item;
    int64_t n, k, split_k;
    unsigned blocks_n, splits;
    int m;
    bool a_has_runs; /* vec elements along k lie together, and aligned */
    T_elem alpha, beta;
};

/* A lane's part of B in a round: element (k, j) of each step. */
template <tg_tile T, typename T_elem> struct skinny_piece {
    T_elem at[skinny<T, T_elem>::steps][T.vec][T.thread.n];
};

template <tg_tile T, typename T_elem, skinny_b way> struct skinny_reader {
    using place = skinny_place<T, T_elem, way>;
    static constexpr int run = way == skinny_b::along_n ? T.vec : 1; /* columns read at once */
    const T_elem *next; /* the lane's first column, at its first k of the round read next */
    int64_t row, offset[T.thread.n / run];

    /* Columns beyond the last are read as the first, and not stored. */
    __device__ skinny_reader(const T_elem *b, int64_t row, int64_t col, int64_t columns)
        : next(b), row(way == skinny_b::along_k ? 1 : row)
    {
#pragma unroll
        for (int j = 0; j < T.thread.n; j += run) {
            const int at = place::column(0, j);
            offset[j / run] = at < columns ? at * col : 0;
        }
    }

    __device__ void step(const T_elem *b, T_elem (&to)[T.vec][T.thread.n]) const
    {
        if constexpr (way == skinny_b::along_n)
#pragma unroll
            for (int i = 0; i < T.vec; i++)
#pragma unroll
                for (int j = 0; j < T.thread.n; j += T.vec) {
                    const auto x = load_vector<T.vec>(b + i * row + offset[j / run]);
#pragma unroll
                    for (int e = 0; e < T.vec; e++)
                        to[i][j + e] = x.at[e];
                }
        else if constexpr (way == skinny_b::along_k) {
            vector<T_elem, T.vec> x[T.thread.n];
#pragma unroll
            for (int j = 0; j < T.thread.n; j++)
                x[j] = load_vector<T.vec>(b + offset[j]);
#pragma unroll
            for (int i = 0; i < T.vec; i++) /* as part_of_step: clang merges stores of like order */
#pragma unroll
                for (int j = 0; j < T.thread.n; j++)
                    to[i][j] = x[j].at[i];
        } else
            part_of_step(b, T.vec, to);
    }

    /* The same with only `left` of k: zeros beyond. */
    __device__ void part_of_step(const T_elem *b, int64_t left,
                                 T_elem (&to)[T.vec][T.thread.n]) const
    {
#pragma unroll
        for (int i = 0; i < T.vec; i++)
#pragma unroll
            for (int j = 0; j < T.thread.n; j++)
                to[i][j] = i < left ? b[i * row + offset[j / run] + j % run] : T_elem(0);
    }

    __device__ void round(skinny_piece<T, T_elem> &to)
    {
#pragma unroll
        for (int s = 0; s < skinny<T, T_elem>::steps; s++)
            step(next + s * place::step_k * row, to.at[s]);
        next += skinny<T, T_elem>::round_k * row;
    }

    /* The last round, with `left` of k from the lane's first on. */
    __device__ void part_of_round(int64_t left, skinny_piece<T, T_elem> &to) const
    {
#pragma unroll
        for (int s = 0; s < skinny<T, T_elem>::steps; s++) {
            const int at = s * place::step_k;
            if (left - at >= T.vec)
                step(next + at * row, to.at[s]);
            else
                part_of_step(next + at * row, left - at, to.at[s]);
        }
    }
};

/* panel[i][k] := a[i][first + k], zeros where k ends; it lands later, where copies can. Rows that A
 * does not have stay as they are: nothing is made of their sums. */
template <tg_tile T, typename T_elem, skinny_b way>
__device__ inline void skinny_stage(const skinny_call<T_elem> &p, const T_elem *a, int64_t first,
                                    int64_t end, T_elem *panel)
{
    using shape = skinny<T, T_elem>;
    const int left = int(tg_clamp(end - first, 0, shape::panel_k));
    const int wanted = int(tg_round_up(left, shape::round_k));
    const unsigned thread = threadIdx.x;
    a += first * p.a_col;
    /* scattered reads leave too few registers */
    if (way != skinny_b::scattered && p.a_has_runs && left % T.vec == 0) {
        constexpr int across = shape::panel_k / T.vec, along = int(tg_min(across, shape::threads));
        constexpr int lines = shape::threads / along;
        static_assert(across % along == 0 && shape::threads % along == 0 &&
                      shape::rows % lines == 0);
        const int first_k = thread % along * T.vec, first_i = thread / along;
        a += first_i * p.a_row + first_k;
        panel += first_i * shape::panel_stride + first_k;
#pragma unroll
        for (int i = 0; i < shape::rows; i += lines)
#pragma unroll
            for (int k = 0; k < shape::panel_k; k += along * T.vec)
                if (first_i + i < p.m && first_k + k < left)
                    copy_run<T.vec>(panel + i * shape::panel_stride + k, a + i * p.a_row + k);
                else if (first_k + k < wanted)
                    store_vector<T.vec>(panel + i * shape::panel_stride + k, {});
        return;
    }
    if constexpr (way == skinny_b::scattered) {
        if (p.a_row == 1 && p.a_col != 1) {
#pragma unroll 4
            for (int x = threadIdx.x; x < shape::rows * wanted; x += shape::threads) {
                const int i = x % shape::rows, k = x / shape::rows;
                copy(panel + i * shape::panel_stride + k, a + i + k * p.a_col, i < p.m && k < left);
            }
            return;
        }
        for (int k = threadIdx.x; k < wanted; k += shape::threads) {
            const T_elem *at = a + k * p.a_col;
#pragma unroll 4
            for (int i = 0; i < shape::rows; i++, at += p.a_row)
                copy(panel + i * shape::panel_stride + k, at, i < p.m && k < left);
        }
        return;
    }
    const unsigned rows = p.a_row == 1 ? shape::rows : 1; /* that neighbouring threads copy */
#pragma unroll 1
    for (int i = thread % rows; i < p.m; i += rows)
#pragma unroll copies_at_once
        for (int k = thread / rows; k < wanted; k += shape::threads / rows)
            copy(panel + i * shape::panel_stride + k, a + i * p.a_row + k * p.a_col, k < left);
}

} // namespace tg

#endif
