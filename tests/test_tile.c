/* SPDX-License-Identifier: Apache-2.0
 *
 * The geometry of tilings without a device: who owns which element, which machine admits which row,
 * and the sizes that are filled in from a machine. */
#include "tile.h"

#include <stdlib.h>

#include "gemm.h"
#include "machines.h"
#include "test.h"

/* ---------------------------------------------------------------------------- exact cover */

typedef int owner_fn(tg_tile t, tg_mn lanes, int warp, int rep, int lane, int i);

/* Every index of one side of a block is owned once; pieces of vec elements are in one row. */
static void check_side(const char *name, tg_tile t, tg_mn lanes, int is_col)
{
    owner_fn *owner = is_col ? tg_tile_col : tg_tile_row;
    const tg_mn warps = tg_tile_warps(t), reps = tg_tile_rep(t, lanes);
    const int block = is_col ? t.block.n : t.block.m, thread = is_col ? t.thread.n : t.thread.m;
    const int piece = is_col ? t.vec : t.thread.m % t.vec ? 1 : t.vec;
    const int lane_count = is_col ? lanes.n : lanes.m;
    unsigned char *owned = calloc((size_t)block, 1);
    int broken = 0, outside = 0, twice = 0, never = 0;
    for (int warp = 0; warp < (is_col ? warps.n : warps.m); warp++)
        for (int rep = 0; rep < (is_col ? reps.n : reps.m); rep++)
            for (int lane = 0; lane < lane_count; lane++)
                for (int i = 0; i < thread; i++) {
                    int at = owner(t, lanes, warp, rep, lane, i);
                    int of_piece = owner(t, lanes, warp, rep, lane, i - i % piece);
                    broken += at != of_piece + i % piece;
                    if (i % piece == 0 && lane > 0)
                        broken += at != owner(t, lanes, warp, rep, lane - 1, i) + piece;
                    if (at < 0 || at >= block)
                        outside++;
                    else
                        twice += owned[at]++ != 0;
                }
    for (int i = 0; i < block; i++)
        never += !owned[i];
    CHECK_SAY(!broken && !outside && !twice && !never,
              "%s on lanes %dx%d, %s: %d not contiguous, %d outside, %d owned twice, %d never",
              name, lanes.m, lanes.n, is_col ? "columns" : "rows", broken, outside, twice, never);
    free(owned);
}

/* Of the elements that the row is for, if a word of 4 bytes holds several. */
static int bytes_for(int row, int bytes)
{
    const tg_tile t = tg_tile_at(row);
    return t.block.m || t.inst.k == 1 ? bytes : t.inst.m == 1 ? 4 / t.inst.k : 64 / t.inst.k;
}

static void test_cover(void)
{
    for (int row = 0; row < tg_tile_count(); row++)
        for (int i = 0; i < MACHINES; i++) {
            const tg_limits l = machines[i].limits;
            const int bytes = bytes_for(row, 4);
            tg_tile t = tg_tile_fill(tg_tile_at(row), l, bytes);
            if (!tg_tile_fits(t, l, bytes))
                continue;
            if (tg_tile_is_fma(t) || t.inst.k > 1) { /* else it is the kernel's own affair */
                check_side(tg_tile_name(row), t, l.lanes, 0);
                check_side(tg_tile_name(row), t, l.lanes, 1);
            }
            tg_mn warps = tg_tile_warps(t), reps = tg_tile_rep(t, l.lanes);
            int64_t owned = (int64_t)warps.m * warps.n * reps.m * reps.n * l.lanes.m * l.lanes.n *
                            t.thread.m * t.thread.n;
            CHECK_INT(owned, (int64_t)t.block.m * t.block.n);
            CHECK_INT(tg_tile_threads(t, l.lanes),
                      (int64_t)warps.m * warps.n * t.slices * l.lanes.m * l.lanes.n);
        }
}

/* ---------------------------------------------------------------------------- the matrix */

static int is_rung(int row)
{
    const char *name = tg_tile_name(row);
    return (name[0] == 'v' && name[1] >= '0' && name[1] <= '9') || name[0] == 'k';
}

/* Row x machine, f32 and f64: '.' refused. A row that no machine admits is a mistake. */
static void test_matrix(void)
{
    int rungs = 0, elsewhere = 0;
    test_print("%-18s", "legal for");
    for (int i = 0; i < MACHINES; i++)
        test_print("%10s", machines[i].name);
    for (int row = 0; row < tg_tile_count(); row++) {
        int admitted = 0, everywhere = 1;
        test_print("\n%-18s", tg_tile_name(row));
        for (int i = 0; i < MACHINES; i++) {
            int f32 = tg_tile_fits(tg_tile_at(row), machines[i].limits, 4);
            int f64 = tg_tile_fits(tg_tile_at(row), machines[i].limits, 8);
            int shorter = tg_tile_fits(tg_tile_at(row), machines[i].limits, 2) +
                          tg_tile_fits(tg_tile_at(row), machines[i].limits, 1);
            test_print("%10s", f32 && f64 ? "f32 f64" : f32 ? "f32 ." : f64 ? ". f64" : ".");
            admitted += f32 + f64 + shorter;
            everywhere = everywhere && f32;
        }
        CHECK_SAY(admitted > 0, "no machine admits %s", tg_tile_name(row));
        CHECK_SAY(everywhere || !is_rung(row), "rung %s is not legal everywhere",
                  tg_tile_name(row));
        rungs += is_rung(row);
        elsewhere += everywhere && !is_rung(row);
    }
    test_print("\n");
    CHECK_INT(rungs, 13);
    CHECK_SAY(elsewhere >= 4, "only %d rows besides the ladder are legal everywhere", elsewhere);
}

/* ---------------------------------------------------------------------- sizes filled in */

static void check_filled(int row, tg_limits l, int any_bytes)
{
    const int bytes = bytes_for(row, any_bytes);
    const tg_tile t = tg_tile_fill(tg_tile_at(row), l, bytes);
    const char *name = tg_tile_name(row);
    CHECK_SAY(tg_tile_same(tg_tile_fill(t, l, bytes), t), "filling %s twice changes it", name);
    if (tg_tile_at(row).block.m != 0) {
        CHECK(t.block.m == tg_tile_at(row).block.m && t.block.k == tg_tile_at(row).block.k);
        return;
    }
    const int words = t.block.k / tg_tile_word(t, bytes);
    CHECK_SAY(words >= 64 && words <= 512, "%s: block.k = %d", name, t.block.k);
    CHECK(t.block.m % t.warp.m == 0 && t.block.n % t.warp.n == 0);
    CHECK(t.warp.m % t.thread.m == 0 && t.warp.n % t.thread.n == 0);
    CHECK_SAY((t.thread.m + (int64_t)t.thread.n) * t.block.k * bytes <= l.l2 || words == 64,
              "%s: a panel of A and one of B do not fit in %lld bytes of L2", name,
              (long long)l.l2);
    CHECK_SAY((int64_t)t.warp.n * t.block.k * bytes <= l.l2 || t.warp.n == t.thread.n,
              "%s: a slice of B does not fit in %lld bytes of L2", name, (long long)l.l2);
    CHECK_SAY((int64_t)t.block.n * t.block.k * bytes <= l.l3 || t.block.n == t.warp.n,
              "%s: the block of B does not fit in %lld bytes of L3", name, (long long)l.l3);
    CHECK_SAY((int64_t)t.block.m * t.block.k * bytes <= l.l3 || t.warp.m == t.thread.m,
              "%s: the block of A does not fit in %lld bytes of L3", name, (long long)l.l3);
}

static void test_fill(void)
{
    static const int64_t l2[] = {KIB(16), KIB(128), KIB(256), KIB(512), KIB(1024), KIB(2048)};
    for (int row = 0; row < tg_tile_count(); row++)
        for (size_t i = 0; i < sizeof l2 / sizeof l2[0]; i++)
            for (int64_t l1 = KIB(8); l1 <= KIB(128); l1 *= 2)
                for (int64_t l3 = l2[i]; l3 <= KIB(65536); l3 *= 8)
                    for (int bytes = 4; bytes <= 8; bytes += 4) {
                        tg_limits l = machines[2].limits;
                        l.l1 = l1, l.l2 = l2[i], l.l3 = l3;
                        check_filled(row, l, bytes);
                    }
    for (int row = 0; row < tg_tile_count(); row++)
        for (int i = 0; i < MACHINES; i++) {
            const tg_limits l = machines[i].limits;
            const int bytes = bytes_for(row, 4);
            tg_tile t = tg_tile_fill(tg_tile_at(row), l, bytes);
            CHECK(tg_tile_same(tg_tile_fill(t, l, bytes), t));
            CHECK(t.warp.m > 0 && t.warp.n > 0);
            tg_mn unit = tg_tile_unit(t, l.lanes), rep = tg_tile_rep(t, l.lanes);
            if (tg_tile_fits(t, l, bytes))
                CHECK(rep.m * unit.m == t.warp.m && rep.n * unit.n == t.warp.n);
        }
}

int main(void)
{
    test_cover();
    test_matrix();
    test_fill();
    return test_close();
}
