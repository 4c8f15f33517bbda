/* SPDX-License-Identifier: Apache-2.0
 *
 * What tiles leave (tail.h): edges, parts of the last ones; and copies that are made beside them.
 * For 132 units. */
#include "tail.h"

#include "test.h"

enum { UNITS = 132 };

/* With edges, tiles are all full and leave at most a row and a column, each of which is covered by
 * blocks that are as many as they say; a C of few tiles has none. */
static int check_edges(int64_t m, int64_t n, tg_mnk block, int64_t resident)
{
    const tg_edges e = tg_edges_of(m, n, block, UNITS, resident);
    const int64_t row = m - e.m, column = n - e.n;
    if (e.blocks == 0) {
        CHECK(row == 0 && column == 0);
        return 0;
    }
    CHECK_SAY((row | column) == 1 && (!row || e.m % block.m == 0) &&
                  (!column || e.n % block.n == 0),
              "%lld x %lld: tiles of %lld x %lld", (long long)m, (long long)n, (long long)e.m,
              (long long)e.n);
    CHECK_INT(e.width % TG_EDGE_SPAN, 0);
    CHECK_INT(e.blocks, row * tg_ceil_div(n, e.width) + column * tg_ceil_div(e.m, e.width));
    return 1;
}

static void test_edges(void)
{
    static const tg_mnk blocks[] = {{128, 128, 32}, {64, 128, 64}, {48, 128, 64}, {32, 64, 64}};
    int with = 0;
    for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
        for (int64_t i = 0; i < 36; i++)
            for (int64_t j = 0; j < 36; j++)
                for (int64_t resident = 1; resident <= 2; resident++)
                    with += check_edges((i / 3 + 1) * blocks[b].m + i % 3,
                                        (j / 3 + 1) * blocks[b].n + j % 3, blocks[b], resident);
    CHECK_SAY(with > 1000, "only %d of them have edges", with);
    CHECK_INT(tg_edges_of(65, 65, blocks[3], UNITS, 1).blocks, 0);
}

/* Tiles of a stream that leave units without work are split into parts that run at once, as
 * clusters: 66 of 2, 39 of 3, 30 of 4 or 15 of 8 on 132 units. */
static void test_stream_parts(void)
{
    static const struct {
        int64_t tiles, parts;
    } cases[] = {{132, 1}, {96, 1}, {67, 1}, {66, 2}, {64, 2}, {45, 2},
                 {39, 3},  {32, 3}, {30, 4}, {28, 4}, {15, 8}};
    tg_tile t = {{16, 64, 64}, {16, 64}, {4, 8}, 4, 5, 4, TG_OUTER_T, {1, 1, 1}};
    const int64_t slots = tg_tail_slots(UNITS, 2, t),
                  steps = 840; /* divided by all parts up to 8 */
    CHECK_INT(slots, 132);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(tg_tail_steps(cases[i].tiles, slots, steps, t), steps / cases[i].parts);
    t.slices = 8; /* of no stream */
    CHECK_INT(tg_tail_slots(UNITS, 2, t), 264);
}

/* Copies go on beside a multiplication that was measured to hide them, and no other. */
static void test_copies(void)
{
    static const struct {
        int m, n, k, block, goes_on;
    } cases[] = {{2047, 2047, 2047, 128, 1}, {4097, 4097, 4097, 128, 1}, {8191, 8191, 8191, 128, 0},
                 {1023, 1023, 1023, 128, 0}, {1101, 1101, 8001, 64, 0},  {129, 4095, 4097, 128, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_mnk block = {cases[i].block, cases[i].block, 32};
        CHECK_INT(tg_copies_go_on(cases[i].m, cases[i].n, cases[i].k, cases[i].m + cases[i].n,
                                  block, UNITS, 2),
                  cases[i].goes_on);
    }
}

int main(void)
{
    test_edges();
    test_stream_parts();
    test_copies();
    return test_close();
}
