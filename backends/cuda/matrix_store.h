/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of f64 on matrix instructions: what is multiplied, in which order, and how the sums get
 * out. A lane has two neighbours of a row of C for each 8 x 8 of its warp's tile; they are written
 *
 *   as pairs      where two of C can be written at once
 *   as elements   after lanes have traded, so that eight neighbours are written together
 *   as a part     of a tile whose k is split, for the kernel that adds them up
 *   by a cluster  whose blocks have all parts of a tile, and add them up */
#ifndef TG_CUDA_MATRIX_STORE_H
#define TG_CUDA_MATRIX_STORE_H

#include "cluster.h"
#include "launch.h"
#include "matrix_stage.h"

namespace tg::matrix
{

/* There are `turns`: each of the first `whole` makes a tile of C. Each tile that follows is made in
 * `splits` turns that take a range of k each and put their sums side by side in `parts`. A block
 * may take one turn after another: the first stages of the next are filled while it stores C. */
struct problem {
    int64_t m, n, k;
    operand a, b;
    double *c, *parts;
    int64_t c_row, c_item;
    double alpha, beta;
    int c_wide, tiles_m, tiles_n, whole, splits, turns;
    int64_t split_k;

    __device__ bool is_cluster() const { return whole == 0 && !parts; }
};

/* Turn -> tile of C, part of k, batch item. Tiles go down columns of 8, so that blocks that run at
 * the same time share rows of A and columns of B in the cache. */
template <tg_tile T> struct position {
    int item, tile_m, tile_n, part; /* part: of all parts, or negative: a whole tile */
    int64_t k, k_left;

    __device__ int64_t m() const { return int64_t(T.block.m) * tile_m; }
    __device__ int64_t n() const { return int64_t(T.block.n) * tile_n; }

    position() = default;

    __device__ position(const problem &p, int turn)
    {
        const int tiles = p.tiles_m * p.tiles_n;
        part = turn - p.whole;
        const int tile = part < 0 ? turn : p.whole + part / p.splits;
        find_tile(p, tile % tiles, tile / tiles);
        k = part < 0 ? 0 : part % p.splits * p.split_k;
        k_left = part < 0 ? p.k : tg_clamp(p.k - k, 0, p.split_k);
    }

    __device__ void find_tile(const problem &p, int tile, int of_item)
    {
        const int group = tile / (8 * p.tiles_n), rows = min(8, p.tiles_m - 8 * group);
        const int in_group = tile % (8 * p.tiles_n);
        item = of_item;
        tile_m = 8 * group + in_group % rows;
        tile_n = in_group / rows;
    }
};

/* ----------------------------------------------------------------------------- the way out */

/* c := alpha * sum + beta * c, of one element. */
__device__ inline void store_element(const problem &p, double sum, double &c)
{
    c = weighted(p.alpha, sum, p.beta, p.beta != 0 ? c : 0);
}

/* The same of two that are neighbours in a row, or of one, if so many are left of it. */
__device__ inline void store_pair(const problem &p, double x, double y, int64_t left, double *c)
{
    if (p.c_wide && left > 1) {
        double2 &pair = *reinterpret_cast<double2 *>(c);
        const double2 old = p.beta != 0 ? pair : make_double2(0, 0);
        pair =
            make_double2(weighted(p.alpha, x, p.beta, old.x), weighted(p.alpha, y, p.beta, old.y));
        return;
    }
    store_element(p, x, c[0]);
    if (left > 1)
        store_element(p, y, c[1]);
}

/* The same, row by row, for what a lane has of each instruction. */
template <int Rows, int Cols, int Parts>
__device__ void store_pairs(const double (&sum)[Rows][Cols][Parts][2], const problem &p, double *c,
                            int64_t row, int64_t col)
{
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const double(&two)[2] = sum[i / Parts][j][i % Parts];
            const int64_t at_row = row + i * 8, at = col + j * 8;
            if (at_row < p.m && at < p.n)
                store_pair(p, two[0], two[1], p.n - at, c + at_row * p.c_row + at);
        }
}

/* Where pairs cannot be written at once, lanes trade: instead of two columns of row lane / 4, they
 * get column lane % 8 of two rows, lane / 8 and 4 below. Each then comes from lane lane / 2 or 16
 * above. */
__device__ inline void trade(double (&two)[2], int lane)
{
    const bool is_high = lane >= 16, odd = lane % 2;
    const double x = __shfl_sync(~0u, is_high ? two[1] : two[0], lane / 2 + 16 * odd);
    const double y = __shfl_sync(~0u, is_high ? two[0] : two[1], lane / 2 + 16 * !odd);
    two[0] = odd ? y : x;
    two[1] = odd ? x : y;
}

template <int Rows, int Cols, int Parts>
__device__ void store_elements(const double (&sum)[Rows][Cols][Parts][2], const problem &p,
                               double *c, int64_t row, int64_t col, int lane)
{
    row += lane / 8 - lane / 4;
    col += lane % 8 - lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const double(&pair)[2] = sum[i / Parts][j][i % Parts];
            double two[2] = {pair[0], pair[1]};
            trade(two, lane);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int64_t at_row = row + i * 8 + e * 4, at = col + j * 8;
                if (at_row < p.m && at < p.n)
                    store_element(p, two[e], c[at_row * p.c_row + at]);
            }
        }
}

template <int Rows, int Cols, int Parts>
__device__ void store_part(const double (&sum)[Rows][Cols][Parts][2], double *part, int line)
{
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const double(&two)[2] = sum[i / Parts][j][i % Parts];
            *reinterpret_cast<double2 *>(part + i * 8 * line + j * 8) =
                make_double2(two[0], two[1]);
        }
}

/* All blocks of a cluster put their parts of a tile in their own fast memory, and each of them adds
 * up some of it: pairs of elements in C's order, dealt out to the threads of all. Lines are padded,
 * so that the two that lanes write at once are in different banks. */
template <class S, int Rows, int Cols, int Parts>
__device__ void store_cluster(const double (&sum)[Rows][Cols][Parts][2], const problem &p,
                              unsigned staged, int row, int col, int thread)
{
    constexpr int m = S::tile.block.m, n = S::tile.block.n, line = n + 8;
    constexpr int at_once = m * n / 2 / S::consumers >= 16 ? 8 : 4;
    static_assert(m * line * elem_bytes <= S::tile.stages * S::stage_bytes);
    const auto own = static_cast<double *>(__cvta_shared_to_generic(staged));
    meet<S::consumers>(); /* nobody reads the stages any more */
    store_part(sum, own + row * line + col, line);
    meet_cluster();
    const position<S::tile> at(p, blockIdx.x);
    const int pairs = int(tg_min(p.m - at.m(), m)) * (n / 2), cols = int(tg_min(p.n - at.n(), n));
    const int step = p.splits * S::consumers;
    double *const c = p.c + at.item * p.c_item + at.m() * p.c_row + at.n();
    for (int from = at.part % p.splits * S::consumers + thread; from < pairs;
         from += at_once * step) {
        double2 sums[at_once] = {};
        for (int part = 0; part < p.splits; part++) {
            const double *const there = in_block(own, part);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const int pair = min(from + i * step, pairs - 1);
                const double2 x = *reinterpret_cast<const double2 *>(there + pair / (n / 2) * line +
                                                                     pair % (n / 2) * 2);
                sums[i].x += x.x, sums[i].y += x.y;
            }
        }
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const int pair = from + i * step, left = cols - pair % (n / 2) * 2;
            if (pair < pairs && left > 0)
                store_pair(p, sums[i].x, sums[i].y, left,
                           c + pair / (n / 2) * p.c_row + pair % (n / 2) * 2);
        }
    }
    leave_cluster();
}

} // namespace tg::matrix

#endif
