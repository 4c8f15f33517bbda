/* SPDX-License-Identifier: Apache-2.0
 *
 * The tail: the tiles that are left when all slots of the device (units x blocks of a unit) have
 * had their whole waves. Each is cut in k into parts, which are summed in order.
 *
 *   slots  | tile | tile | part of k | part |        parts are equally long, or the last ones are
 *          | tile | tile | part of k | part |        shorter and run where the others leave room
 *
 * And the edges: a row or column beyond the last full tile, which would cost a row of tiles. Blocks
 * of their own do them, in slots that the tiles leave free.
 *
 *   | tile | tile | edge        the edge below the tiles goes on to the end of the row
 *   | tile | tile | of n
 *   | edge of m  ------
 *
 * And copies of operands that no copy engine takes as they lie: made before the multiplication, or,
 * but for the first k, by its own idle warps.
 *
 * Read by the chooser and by the kernels' host half, in C11 and C++. */
#ifndef TG_TAIL_H
#define TG_TAIL_H

#include "tile.h"

/* k that could be done while a block starts. A thin tile does k so much faster. */
TG_FN int tg_tail_start(tg_mnk block) { return tg_is_thin(block) ? 256 : 32; }

/* Blocks among which tiles are dealt out. Those of a stream wait for memory, and one of a unit asks
 * for enough. */
TG_FN int64_t tg_tail_slots(int64_t units, int64_t resident, tg_tile t)
{
    return tg_tile_streams(t) ? units : units * resident;
}

/* So many parts of a stream's tiles run at once, as clusters, of which a device has the fewer the
 * larger they are: groups of units that no cluster crosses are not multiples of them. */
TG_FN int64_t tg_tail_stream_parts(int64_t tiles, int64_t slots)
{
    const int64_t parts = slots / tiles;
    return parts < 3 ? tg_max(1, parts) : slots * 10 / 11 / tiles;
}

/* How long split tiles take, in k: parts of part_steps run on all slots, then the shorter last ones
 * wherever there is room. Each part costs a little besides: a pipeline to fill, a tile to store and
 * to add. */
TG_FN double tg_tail_time(int64_t tiles, int64_t slots, int64_t steps, int64_t part_steps,
                          tg_mnk block)
{
    const int start = tg_tail_start(block), add = 6;
    const int64_t parts = tg_ceil_div(steps, part_steps), longer = tiles * (parts - 1);
    const double slow = (double)part_steps * block.k + start;
    const double quick = (double)(steps - (parts - 1) * part_steps) * block.k + start;
    const int64_t room = (tg_round_up(longer, slots) - longer) * (int64_t)(slow / quick);
    const int64_t left = tg_max(0, tiles - room);
    return (double)tg_ceil_div(longer, slots) * slow + (double)tg_ceil_div(left, slots) * quick +
           (double)add * (double)parts;
}

/* The best length of a part, in steps of block.k, for tiles that do not fill all slots: equal
 * parts, or parts that leave just enough slots to the last ones, which start as often as they go
 * into the time of a longer one. */
TG_FN int64_t tg_tail_steps(int64_t tiles, int64_t slots, int64_t steps, tg_tile t)
{
    const tg_mnk block = t.block;
    const int64_t k = steps * block.k, stream_parts = tg_tail_stream_parts(tiles, slots);
    int64_t best = steps;
    if (tg_tile_streams(t) && stream_parts <= 8)
        return tg_ceil_div(steps, stream_parts);
    double least = (double)k;
    for (int parts = 2; parts <= 16 && parts <= steps; parts++) {
        const int64_t longer = tiles * (parts - 1), unused = tg_round_up(longer, slots) - longer;
        const int64_t rounds = unused ? tg_ceil_div(tiles, unused) : 1;
        const int64_t tries[2] = {tg_ceil_div(steps, parts),
                                  tg_ceil_div(rounds * k + (rounds - 1) * tg_tail_start(block),
                                              (rounds * (parts - 1) + 1) * block.k)};
        for (int i = 0; i < 2; i++) {
            const double now = tg_tail_time(tiles, slots, steps, tries[i], block);
            if (now < least) {
                least = now;
                best = tries[i];
            }
        }
    }
    return best;
}

enum { TG_EDGE_SPAN = 128 }; /* what a block does of an edge at once */

/* Tiles cover m x n of C, what is left of it are edges, in so many blocks that each does `width`
 * along them. */
typedef struct tg_edges {
    int64_t m, n, blocks, width;
} tg_edges;

TG_FN int64_t tg_without_edge(int64_t size, int64_t block)
{
    return size > block && size % block == 1 ? size - 1 : size;
}

/* A block reads width x k elements of an operand, at the pace of one unit: there are edges if the
 * tiles take longer than that. Tiles that could have a unit each shall not have to share it. */
TG_FN tg_edges tg_edges_of(int64_t m, int64_t n, tg_mnk block, int64_t units, int64_t resident)
{
    const tg_edges none = {m, n, 0, 0};
    tg_edges e = {tg_without_edge(m, block.m), tg_without_edge(n, block.n), 0, 0};
    const int64_t spans = (e.m < m ? tg_ceil_div(n, TG_EDGE_SPAN) : 0) +
                          (e.n < n ? tg_ceil_div(e.m, TG_EDGE_SPAN) : 0);
    const int64_t tiles = tg_ceil_div(e.m, block.m) * tg_ceil_div(e.n, block.n);
    const int64_t slots = tiles < units ? units : units * resident;
    const int64_t each = tg_ceil_div(spans, tg_clamp(slots - tiles % slots, 4, 32));
    if (spans == 0 || each > tg_max(block.m * block.n >> 14, e.m * e.n >> 16))
        return none;
    e.width = each * TG_EDGE_SPAN;
    e.blocks = (e.m < m ? tg_ceil_div(n, e.width) : 0) + (e.n < n ? tg_ceil_div(e.m, e.width) : 0);
    return e;
}

/* Copies are made in pieces of so many elements squared; those that go on in the multiplication
 * begin with so many for each unit. */
enum { TG_COPY_PIECE = 32, TG_COPIED_FIRST = 6 };

/* Elements of C that a unit multiplies at once: with so many it has time to copy. */
TG_FN int tg_can_copy(tg_mnk block, int64_t resident)
{
    return resident * block.m * block.n >= 2 * 128 * 128;
}

/* Do they go on, if no tile is split? x: how many of m and n are copied. Not few, which are over
 * before the rest begins; nor those that are used too seldom, or take longer than the first blocks,
 * which wait for them. */
TG_FN int tg_copies_go_on(int64_t m, int64_t n, int64_t k, int64_t x, tg_mnk block, int64_t units,
                          int64_t resident)
{
    const double pieces =
        (double)tg_ceil_div(x, TG_COPY_PIECE) * (double)tg_ceil_div(k, TG_COPY_PIECE);
    return tg_can_copy(block, resident) && pieces > (double)(8 * TG_COPIED_FIRST * units) &&
           (double)m * (double)n >= 256.0 * (double)x &&
           7.0 * (double)x < 2.0 * (double)(resident * block.m * block.n);
}

#endif
