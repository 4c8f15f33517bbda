/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.h's geometry and its way in: how a block is made of teams, how their tiles are staged. */
#ifndef TG_BATCH_LOAD_H
#define TG_BATCH_LOAD_H

#include <numeric>

#include "thin.h"

namespace tg
{

/* How an operand is carried: in vectors along its lines or along k, or element by element. */
enum class batch_way { vectors_of_line, vectors_of_k, elements };

/* One item's A or B^T is lines x k: rows of A, columns of B. */
template <typename T_elem> struct batch_operand {
    const T_elem *data;
    int64_t line, k, item; /* strides */
};

template <typename T_elem> struct batch_call {
    batch_operand<T_elem> a, b;
    T_elem *c;
    int64_t c_row, c_col, c_item;
    int64_t m, n, items;
    int k, k_missing;                 /* missing: in the last item */
    unsigned tiles_m, tiles_n, tiles; /* tiles: of all items together */
    bool c_is_wide;                   /* vectors of its rows can be stored */
    T_elem alpha, beta;
};

template <tg_tile T, typename T_elem> struct batch {
    static constexpr tg_mn lanes = widest.lanes;
    static constexpr tg_tile tile = filled<T_elem>(T);
    static constexpr tg_mn rep = tg_tile_rep(tile, lanes), warps = tg_tile_warps(tile);
    static constexpr int rows = rep.m * T.thread.m, cols = rep.n * T.thread.n; /* of a lane */
    static constexpr int warp_size = lanes.m * lanes.n;
    static constexpr int team = int(tg_tile_threads(tile, lanes));
    static constexpr int teams = team < 128 ? 128 / team : 1;
    static constexpr int threads = team * teams;
    /* Memory is hidden by many threads, so a small row gets few registers for each: they hold its
     * part of C and of the tiles on their way in. */
    static constexpr int held = (T.block.m + T.block.n) * T.block.k / team;
    static constexpr int words = (rows * cols + held) * int(sizeof(T_elem)) / 4;
    static constexpr int wanted_threads = words < 32     ? 1024
                                          : words <= 40  ? 640
                                          : words <= 64  ? 512
                                          : words <= 112 ? 384
                                                         : 256;
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ >= 1000)
    static constexpr int fewer = 2; /* their compilers want more registers for the same text */
#else
    static constexpr int fewer = 1;
#endif
    static constexpr int blocks_per_unit = int(tg_max(1, wanted_threads / fewer / threads));
    /* Lines are padded by a vector: elements that are staged across them then meet fewer others
     * in a bank of fast memory. */
    static constexpr int a_stride = T.block.m + T.vec, b_stride = T.block.n + T.vec;
    static constexpr int stage = T.block.k * (a_stride + b_stride);
    static constexpr int64_t fast_bytes = int64_t(sizeof(T_elem)) * stage * T.stages * teams;

    /* Along its lines, and along k. */
    static constexpr bool is_dealt_evenly(int lines, int width)
    {
        return T.block.k % (team / std::gcd(lines / width, team)) == 0 &&
               lines * T.block.k % (team * width) == 0;
    }
    static constexpr bool is_possible =
        T.stages == 2 && T.form == TG_OUTER_T && T.slices == 1 && T.thread.m % T.vec == 0 &&
        T.block.k % T.vec == 0 && T.block.m % T.vec == 0 && team % T.block.k == 0 &&
        is_dealt_evenly(T.block.m, 1) && is_dealt_evenly(T.block.m, T.vec) &&
        is_dealt_evenly(T.block.n, 1) && is_dealt_evenly(T.block.n, T.vec) &&
        fast_bytes <= 48 << 10;
};

/* -------------------------------------------------------------------------------- the way in */

/* A tile of lines x depth on its way from slow to fast memory, through the registers of a team.
 * Pieces are dealt out along the direction in which neighbours are contiguous; those of a thread
 * are a constant step apart in the other one. Only a line that the team does not cover at once is
 * swept in several pieces before that step. */
template <typename T_elem, batch_way way, int lines, int depth, int vec, int team>
struct batch_carrier {
    static constexpr int width = way == batch_way::elements ? 1 : vec;
    static constexpr int count = lines * depth / team / width, stride = lines + vec;
    static constexpr int side_by_side = std::gcd(lines / width, team);
    static constexpr int sweeps = lines / width / side_by_side;
    const T_elem *next; /* the thread's first piece of the tile that is fetched next */
    int64_t slow_sweep, slow_step, k_stride;
    int fast_first, fast_sweep, fast_step;
    int k, k_step, pieces, swept; /* pieces, and those of a line: that are there */
    T_elem held[count][width];

    __device__ batch_carrier(const batch_operand<T_elem> &from, int64_t item, int64_t first_line,
                             int left_lines, int thread)
    {
        const bool along_k = way == batch_way::vectors_of_k ||
                             (way == batch_way::elements && (from.k == 1 || from.line != 1));
        const int run = along_k ? depth / width : side_by_side, step = team / run;
        const int across = thread / run, along = thread % run * width;
        const int line = along_k ? across : along, sweep = along_k ? step : run * width;
        const int there = int(tg_ceil_div(tg_max(left_lines - line, 0), sweep));
        k = along_k ? along : across;
        k_step = along_k ? 0 : step;
        pieces = along_k ? there : there > 0 ? count : 0;
        swept = along_k ? sweeps : there;
        slow_sweep = sweep * from.line;
        slow_step = along_k ? slow_sweep : step * from.k - (sweeps - 1) * slow_sweep;
        k_stride = from.k;
        fast_first = k * stride + line;
        fast_sweep = sweep;
        fast_step = along_k ? sweep : step * stride - (sweeps - 1) * sweep;
        next = from.data + item * from.item + (first_line + line) * from.line + k * from.k;
    }

    /* The next tile, of which left of k exist; the rest is zeros. */
    template <bool is_whole> __device__ void fetch(int left)
    {
        const T_elem *at = next;
#pragma unroll
        for (int x = 0; x < count; x++) {
            const bool is_line = x < pieces && (sweeps == 1 || x % sweeps < swept);
            vector<T_elem, width> piece = {};
            if (is_line && (is_whole || k + x / sweeps * k_step < left))
                piece = load_vector<width>(at);
#pragma unroll
            for (int e = 0; e < width; e++)
                held[x][e] = piece.at[e];
            at += (x + 1) % sweeps ? slow_sweep : slow_step;
        }
        next += depth * k_stride;
    }

    __device__ void fetch(int left)
    {
        if (way == batch_way::elements && left >= depth)
            fetch<true>(depth);
        else
            fetch<false>(left);
    }

    __device__ void put(T_elem *tile) const
    {
        tile += fast_first;
#pragma unroll
        for (int x = 0; x < count; x++) {
            if constexpr (way == batch_way::vectors_of_line) {
                vector<T_elem, width> piece;
#pragma unroll
                for (int e = 0; e < width; e++)
                    piece.at[e] = held[x][e];
                store_vector(tile, piece);
            } else
#pragma unroll
                for (int e = 0; e < width; e++)
                    tile[e * stride] = held[x][e];
            tile += (x + 1) % sweeps ? fast_sweep : fast_step;
        }
    }
};

} // namespace tg

#endif
