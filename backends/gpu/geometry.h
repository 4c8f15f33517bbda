/* SPDX-License-Identifier: Apache-2.0
 *
 * Who works where: which part of C a block has, and which part of the block a lane.
 *
 *   grid     tiles of C, each with its part of k and its batch item          struct position
 *   block    slices (groups of warps that share k) > warps > lanes           struct geometry
 *   lane     rows x cols elements, in pieces of vec that lie a lane row apart (tile.h) */
#ifndef TG_GEOMETRY_H
#define TG_GEOMETRY_H

#include "call.h"

namespace tg
{

template <class Elem, int N> struct alignas(N * sizeof(Elem)) pack {
    Elem at[N];
};

template <tg_tile T, tg_mn Lanes> struct geometry {
    static constexpr tg_mn unit = tg_tile_unit(T, Lanes), rep = tg_tile_rep(T, Lanes);
    static constexpr int lanes = Lanes.m * Lanes.n;
    static constexpr int threads = int(tg_tile_threads(T, Lanes));
    static constexpr int rows = rep.m * T.thread.m, cols = rep.n * T.thread.n; /* of a lane's sum */
    static constexpr int slice_k = T.block.k / T.slices;

    /* Blocks that a multiprocessor is to run at once: as many as its registers hold. */
    static constexpr int blocks(int elem_bytes)
    {
        const int fragments = (rows + cols) * (T.stages > 1 ? 2 : 1);
        const int registers = (rows * cols + fragments) * elem_bytes / 4 + 64;
        return int(tg_clamp(65536 / (registers * threads), 1, tg_min(2048 / threads, 16)));
    }

    int slice, warp_m, warp_n, lane_m, lane_n;

    /* Neighbouring lanes differ in row and column both: then no two neighbours read one address,
     * which would cost the fragment loads of current GPUs a cycle. */
    __device__ explicit geometry(int thread)
    {
        const int warp = thread / lanes, lane = thread % lanes;
        constexpr tg_mn warps = tg_tile_warps(T);
        slice = warp / (warps.m * warps.n);
        warp_m = warp % (warps.m * warps.n) / warps.n;
        warp_n = warp % warps.n;
        lane_m = lane % Lanes.m;
        lane_n = (lane / Lanes.m + lane) % Lanes.n;
    }

    /* Which row and column of the block element (i, j) of this lane's sum is: its first one's, and
     * a distance that is the same for all lanes. */
    __device__ static constexpr int row_past_first(int i)
    {
        return tg_tile_row(T, Lanes, 0, i / T.thread.m, 0, i % T.thread.m);
    }
    __device__ static constexpr int col_past_first(int j)
    {
        return tg_tile_col(T, Lanes, 0, j / T.thread.n, 0, j % T.thread.n);
    }
    __device__ int row(int i) const
    {
        return tg_tile_row(T, Lanes, warp_m, 0, lane_m, 0) + row_past_first(i);
    }
    __device__ int col(int j) const
    {
        return tg_tile_col(T, Lanes, warp_n, 0, lane_n, 0) + col_past_first(j);
    }
};

/* Block number -> which tile of C, which part of k, which item. Tiles go down columns of 8, so that
 * blocks that run at the same time share rows of A and columns of B in the cache. An item has fewer
 * than 2^32 of them, and numbers of 64 bits are divided by hundreds of instructions. */
struct position {
    int64_t item, row, col, k_begin, k_end;
    int split;

    __device__ position(const tg_call &p, const tg_tile &t)
    {
        const int64_t block = p.first_block + blockIdx.x;
        const uint32_t tiles_m = uint32_t(tg_ceil_div(p.m, t.block.m));
        const uint32_t tiles_n = uint32_t(tg_ceil_div(p.n, t.block.n));
        const uint32_t tiles = tiles_m * tiles_n;
        item = block / (int64_t(tiles) * p.splits);
        const uint32_t rest = uint32_t(block - item * tiles * p.splits), tile = rest % tiles;
        const uint32_t column = tg_min(8, tiles_m) * tiles_n; /* no more than tiles */
        const uint32_t group = tile / column, place = tile % column;
        const uint32_t rows = tg_min(8, tiles_m - 8 * group);
        row = int64_t(8 * group + place % rows) * t.block.m;
        col = int64_t(place / rows) * t.block.n;
        split = int(rest / tiles);
        const int64_t steps = tg_ceil_div(p.k, t.block.k);
        const int64_t each = steps / p.splits, one_more = steps - each * p.splits;
        k_begin = tg_min((each * split + tg_min(split, one_more)) * t.block.k, p.k);
        k_end = tg_min(k_begin + (each + (split < one_more)) * t.block.k, p.k);
    }
};

inline int64_t block_count(const tg_call &p, const tg_tile &t)
{
    return tg_ceil_div(p.m, t.block.m) * tg_ceil_div(p.n, t.block.n) * p.splits * p.batch;
}

} // namespace tg

#endif
