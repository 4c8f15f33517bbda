/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: what follows from a row of the table, and what a block is to do.
 *
 *   shared memory of a block     stages x ( A [block.k][block.m] | B [block.k][block.n] )
 *                                barriers */
#ifndef TG_HOPPER_SHAPE_H
#define TG_HOPPER_SHAPE_H

#include <cuda.h>
#include <cuda_runtime.h>

#include "gpu.h"
#include "hopper_copy.h"
#include "launch.h"
#include "tail.h"

/* The operands that are fetched along k, because that is where their unit stride is: none, A, or
 * both. */
struct tg_hopper_ways {
    bool a_along_k, b_along_k;
};

namespace tg_hopper
{

using ways = tg_hopper_ways;

constexpr tg_limits limits = TG_WIDEST_LIMITS;
constexpr int producers = 128; /* registers are dealt out by groups of four warps */
constexpr int quad = 4;        /* k of one loop body, and floats of one load      */
constexpr int row_k = 32;      /* of a row that is fetched along k                 */
constexpr int group = 8;       /* rows of tiles that are walked down together     */

TG_FN bool fits(tg_tile t)
{
    if (!tg_tile_fits(t, limits, 4) || t.form != TG_OUTER_T || t.vec != quad || t.stages < 3)
        return false;
    const tg_mn rep = tg_tile_rep(t, limits.lanes);
    return rep.m == 1 && rep.n == 1 && t.thread.m % quad == 0 && t.block.m <= 256 &&
           t.block.n <= 256 && t.block.k % row_k == 0 && t.block.k % (t.slices * quad) == 0 &&
           row_k % (t.block.k / t.slices) == 0 && tg_tile_threads(t, limits.lanes) % 128 == 0;
}

/* The tile for C' = B'A': a thin one turns with C, and with it the lanes. */
template <tg_tile T> constexpr tg_tile across = tg_is_thin(T.block) ? tg_tile_turned(T) : T;
template <tg_tile T> constexpr bool is_turned = T.thread.m *limits.lanes.m != T.warp.m;

template <tg_tile T> constexpr int consumers = (int)tg_tile_threads(T, limits.lanes);

/* Both operands must lie k-major. */
template <ways W> constexpr bool has_edges = !W.a_along_k && !W.b_along_k;

template <tg_tile T> constexpr bool writes_columns = consumers<T> % T.block.m == 0;

/* If both operands lie along k, or the tile is a stream's, the lanes of a quad are four slices:
 * each takes every fourth k. Those of a stream come on top of its own, and a lane has all of the
 * tile's short side: four times as much of C, for half as many loads. */
template <tg_tile T> constexpr bool is_stream = tg_tile_streams(T);
template <tg_tile T> constexpr bool lanes_can_be_slices = T.slices % quad == 0 && !is_turned<T>;
template <tg_tile T, ways W> constexpr bool lanes_are_slices = W.b_along_k || is_stream<T>;
template <tg_tile T> constexpr int slices = (int)T.slices *(is_stream<T> ? quad : 1);

/* What a lane has of its warp's part of C. Of an A along k alone it holds four k at once: there it
 * has fewer rows and more columns, if the warp's part allows. Rows along k are dealt out one by
 * one: eight neighbours lie in different banks. */
template <tg_tile T, ways W> struct share {
    static constexpr bool flat = W.a_along_k && !W.b_along_k && T.thread.n < T.thread.m &&
                                 T.thread.n * limits.lanes.n == T.warp.m &&
                                 T.thread.m * limits.lanes.m == T.warp.n;
    static constexpr tg_mn lanes = is_stream<T>           ? is_turned<T> ? tg_mn{8, 1} : tg_mn{1, 8}
                                             : W.b_along_k ? tg_mn{4, 2}
                                   : flat || is_turned<T> ? tg_mn{limits.lanes.n, limits.lanes.m}
                                                          : limits.lanes;
    static constexpr int m = is_stream<T> ? T.warp.m / lanes.m : flat ? T.thread.n : T.thread.m;
    static constexpr int n = is_stream<T> ? T.warp.n / lanes.n : flat ? T.thread.m : T.thread.n;
    static constexpr int piece_m = W.a_along_k ? 1 : quad, piece_n = quad;
    static constexpr tg_mn warp = {lanes.m * m, lanes.n *n};
    static constexpr tg_mn warps = {T.block.m / warp.m, T.block.n / warp.n};
    static constexpr int slices = /* of warps */
        tg_hopper::slices<T> / (lanes_are_slices<T, W> ? quad : 1);

    /* Rows of B that eight lanes ask for at once, each the first of its four, would lie in two
     * places of eight: so of their four columns they take others first. */
    static constexpr int mixed = W.b_along_k ? lanes.n / 2 : 1;
    /* Straight ones of four k would all lie in the same: so lanes of a quad have other columns. */
    static constexpr int skew = is_stream<T> && !W.b_along_k ? 2 : 0;
};

/* Of a slice's tile of C in shared memory: four slices that lanes of a quad store, eight banks
 * apart. */
template <tg_tile T> constexpr int pitch = T.block.n + quad;
template <tg_tile T, ways W>
constexpr int slice_pitch = T.block.m *pitch<T> + (2 + share<T, W>::skew) * quad;

/* Sizes in shared memory count floats. */
template <tg_tile T, ways W> struct shape {
    static constexpr int threads = consumers<T> + producers;
    static constexpr int slice_k = T.block.k / share<T, W>::slices;

    static constexpr int a = T.block.m * T.block.k, b = T.block.n * T.block.k, stage = a + b;
    static constexpr int blocks = threads <= 256 && T.stages * stage < 113 << 8 ? 2 : 1;
    static constexpr int memory = (blocks == 2 ? 112 : 226) << 8;
    static constexpr int stages = T.stages;
    static constexpr int floats = (int)tg_max(stages * stage, slices<T> *slice_pitch<T, W>);
    static constexpr int barriers = 2 * stages;
    static constexpr int bytes = floats * 4 + barriers * 8 + 8; /* and two words */
    static constexpr int alone = (int)tg_max(bytes, 116 << 10); /* too much for two blocks */
    static_assert(floats <= memory);

    static constexpr int consumer_registers =
        blocks == 2 && (!W.a_along_k || T.slices == 1) ? 216 : 232;
    static constexpr int producer_registers = blocks == 2 ? 256 - consumer_registers : 40;

    /* Can it copy while it multiplies? (tail.h) */
    static constexpr bool copies_on = !W.a_along_k && !W.b_along_k && tg_can_copy(T.block, blocks);
};

/* How the tiles of C become blocks. The first tiles run whole, one block each; the others are cut
 * into parts of so many steps of block.k, the last part being what is left. All first parts run
 * before all second ones, so that the short last parts fill up where the others leave room.
 *
 *   a unit:  | whole  | whole  | part |
 *            | part | whole  | whole  |
 *
 * Where two blocks share a unit, each unit's second one begins with a part, if there are so many
 * (`early`): from then on they end at different times, and one computes while the other stores. */
struct schedule {
    int m, n, steps; /* what tiles cover */
    int tiles_m, tiles_n;
    int64_t whole, split; /* tiles */
    int parts, part_steps;
    int units, early;
    int cluster; /* blocks that sum a tile's parts where they are: all of them, or 1 */

    int edge_blocks, edge_width; /* the first blocks */

    divisor of_item, of_strip, of_last_strip; /* tiles, tiles, rows of tiles */
    divisor of_split; /* neighbouring blocks: split tiles, or parts of one */

    __host__ __device__ int64_t blocks() const { return edge_blocks + whole + split * parts; }
};

/* The row or column of C that lies beyond the tiles: one line of an operand times all of the other,
 * whose lines are so long. */
struct edge {
    int blocks, width; /* of one block, along the edge */
    int length;
    const float *one, *all;
    int64_t one_k, all_k, c_step;
    float *c;
};

struct arguments {
    CUtensorMap a, b; /* as it lies: two axes, and the item */
    copies copied;    /* while the others multiply          */
    schedule s;
    edge edge_of_m, edge_of_n;
    int k;
    float *c;
    int64_t c_row, c_col, c_item; /* one of row and column is 1                    */
    float alpha, beta;
    int a_items, b_items; /* 0: one matrix for all                          */
    bool wide;            /* rows of C can be written four elements at once */
    float *partials;      /* [split][parts][block.m][block.n] */
    unsigned *tickets;    /* [split] */
};

/* What one block does. */
struct work {
    int row, col, item; /* of C */
    int first, steps;   /* of k */
    int part, parts;
    int64_t split; /* which of the split tiles it is */
};

/* There are fewer than 2^31 blocks. Those of the edges get the first one's work, unused. */
template <tg_tile T> __device__ work work_of(const schedule &s, unsigned block)
{
    work w = {0, 0, 0, 0, s.steps, 0, 1, 0};
    const unsigned whole = (unsigned)s.whole, units = s.units, early = s.early;
    const unsigned edges = s.edge_blocks;
    unsigned at = block < edges ? 0 : block - edges;
    if (at >= units && at < whole + early)
        at += at < units + early ? whole - units : 0 - early;
    unsigned tile = at;
    if (at >= whole && s.split) {
        const unsigned quotient = s.of_split.of(at - whole);
        const unsigned rest = at - whole - quotient * s.of_split.by;
        w.split = s.cluster > 1 ? quotient : rest;
        w.part = (int)(s.cluster > 1 ? rest : quotient);
        w.parts = s.parts;
        w.first = w.part * s.part_steps;
        w.steps = (int)tg_min(s.part_steps, s.steps - w.first);
        tile = whole + (unsigned)w.split;
    }
    const unsigned item = s.of_item.of(tile), place = tile - item * s.of_item.by;
    const unsigned strip = s.of_strip.of(place), in_strip = place - strip * s.of_strip.by;
    const bool is_last = (strip + 1) * group > (unsigned)s.tiles_m;
    const unsigned rows = is_last ? s.of_last_strip.by : group;
    const unsigned col = is_last ? s.of_last_strip.of(in_strip) : in_strip / group;
    w.item = (int)item;
    w.row = (int)(strip * group + in_strip - col * rows) * T.block.m;
    w.col = (int)col * T.block.n;
    return w;
}

} /* namespace tg_hopper */

#endif
