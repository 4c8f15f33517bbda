/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser's plans for CPUs: what is read where it is, in streams or panels, or packed on its
 * way; which row takes it, and how C is cut for threads. */
#include <string.h>

#include "choose.h"
#include "test.h"

/* With vectors of 64 bytes, a large B is read in streams, or packed on its way by a thread that has
 * its columns for itself; which of them is in each case as the Zen 4 was measured. */
static void test_few_rows(void)
{
    enum { STREAM, LATE, PANELS };
    static const struct {
        asked s;
        int way;
    } cases[] = {
        {{24, 1024, 1024, 1}, STREAM},  {{32, 4096, 4096, 1}, STREAM},
        {{56, 4096, 4096, 1}, STREAM},  {{64, 4096, 4096, 1}, STREAM},
        {{72, 4096, 4096, 1}, PANELS},  {{40, 2560, 2560, 1}, LATE},
        {{64, 1760, 1760, 1}, LATE},    {{64, 3025, 576, 1}, LATE},
        {{100, 3072, 768, 1}, LATE},    {{500, 1500, 1500, 1}, PANELS},
        {{28, 256, 4096, 1}, STREAM},   {{512, 3136, 256, 1}, PANELS},
        {{700, 1500, 1500, 1}, PANELS}, {{512, 3136, 128, 1}, PANELS},
    };
    tg_limits l = small_l2;
    for (l.units = 1; l.units <= 2; l.units++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (tg_type type = TG_F32; type <= TG_F64; type++) {
                const tg_problem p = problem_of(cases[i].s, type);
                tg_plan plan = TG_PLAN_INIT;
                CHECK(tg_choose(&p, &l, NULL, &plan));
                const int is_late = plan.strips.n == l.units && tg_packs_late(&p, &plan, &l) &&
                                    plan.tile.warp.n == plan.tile.thread.n;
                const int way = plan.b_in_place ? STREAM : is_late ? LATE : PANELS;
                CHECK_SAY(way == cases[i].way, "%lldx%lldx%lld %s, %d threads: way %d",
                          (long long)p.m, (long long)p.n, (long long)p.k, tg_type_name(type),
                          l.units, way);
                CHECK_SAY(way != STREAM || plan.tile.warp.m == plan.tile.block.m,
                          "%lldx%lldx%lld: threads would share rows of a stream", (long long)p.m,
                          (long long)p.n, (long long)p.k);
            }
}

/* Where L2 has 2 MiB, four tiles of rows are a stream, or two if threads have too few columns and
 * blocks of k cannot be shared; of more, B is packed on its way, by a thread that has its columns
 * for itself. */
static void test_few_rows_far_off(void)
{
    tg_limits l = large_l2;
    for (l.units = 1; l.units <= 16; l.units += 15)
        for (int64_t m = 16; m <= 192; m += 16)
            for (tg_type type = TG_F32; type <= TG_F64; type++) {
                const tg_problem p = problem_of((asked){m, 2560, 2560, 1}, type);
                tg_plan plan = TG_PLAN_INIT;
                CHECK(tg_choose(&p, &l, NULL, &plan));
                const int is_split = type == TG_F32 && l.units > 1;
                CHECK_SAY(plan.b_in_place == (m == 16 || (m == 32 && (l.units == 1 || is_split))),
                          "%lldx2560x2560 %s, %d threads: B is read in streams, or not",
                          (long long)m, tg_type_name(type), l.units);
                CHECK_SAY(plan.b_in_place || l.units > 1 || plan.tile.block.n >= 1024,
                          "%lldx2560x2560 %s: blocks of B have %d columns", (long long)m,
                          tg_type_name(type), plan.tile.block.n);
            }
}

/* With vectors of 32 bytes, three tiles of rows are a stream if B is larger than L2, else two;
 * and if it is not, it is packed on its way for few rows. */
static void test_narrow_streams(void)
{
    enum { N = 512 };
    const tg_limits l = {{1, 1}, 0, 32, 16, 32, 0, KIB(32), KIB(1024), KIB(32768), 1, 0, 0};
    for (int is_far = 0; is_far < 2; is_far++)
        for (int64_t m = 6; m <= 60; m += 6)
            for (tg_type type = TG_F32; type <= TG_F64; type++) {
                const int64_t in_l2 = l.l2 / N / (int64_t)tg_type_size(type);
                const int64_t k = is_far ? 2 * in_l2 : in_l2 / 4 * 3, rows = is_far ? 18 : 12;
                const tg_problem p = problem_of((asked){m, N, k, 1}, type);
                tg_plan plan = TG_PLAN_INIT;
                CHECK(tg_choose(&p, &l, NULL, &plan));
                const int64_t most = tg_stream_rows(&p, &plan, &l);
                CHECK_SAY(most <= rows && (!is_far || plan.b_in_place == (m <= rows)),
                          "%lldx%lldx%lld %s: streams have up to %lld rows", (long long)m,
                          (long long)N, (long long)k, tg_type_name(type), (long long)most);
                CHECK_SAY(plan.b_in_place || tg_packs_late(&p, &plan, &l) == (!is_far && m <= 48),
                          "%lldx%lldx%lld %s: B is packed on its way, or not", (long long)m,
                          (long long)N, (long long)k, tg_type_name(type));
            }
}

/* A large C is cut for two threads, and shared by more; little of words, or few rows, is cut. */
static void test_strips(void)
{
    static const struct {
        tg_type type;
        int units;
        asked s;
        int is_cut;
    } cases[] = {{TG_F64, 2, {2048, 2048, 2048, 1}, 1},  {TG_F64, 16, {2048, 2048, 2048, 1}, 0},
                 {TG_BF16, 2, {2048, 2048, 2048, 1}, 1}, {TG_BF16, 16, {2048, 2048, 2048, 1}, 0},
                 {TG_BF16, 16, {512, 512, 512, 1}, 1},   {TG_I8, 2, {400, 400, 400, 1}, 1},
                 {TG_BF16, 16, {128, 4096, 4096, 1}, 1}};
    tg_limits l = large_l2;
    l.matrix = TG_CPU_VNNI | TG_CPU_AMX;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem p = problem_of(cases[i].s, cases[i].type);
        tg_plan plan = TG_PLAN_INIT;
        l.units = cases[i].units;
        CHECK(tg_choose(&p, &l, NULL, &plan));
        CHECK_SAY(tg_is_cut(&plan) == cases[i].is_cut,
                  "%lldx%lldx%lld %s, %d threads: %d x %d strips", (long long)p.m, (long long)p.n,
                  (long long)p.k, tg_type_name(p.a.type), l.units, plan.strips.m, plan.strips.n);
    }
}

/* Little of bytes is multiplied in f32, which is as exact: words and tiles take long to begin. */
static void test_little_bytes(void)
{
    static const struct {
        int matrix;
        asked s;
        int inst_k;
    } cases[] = {{TG_CPU_VNNI, {16, 16, 16, 1}, 1},
                 {TG_CPU_VNNI, {24, 24, 24, 1}, 4},
                 {TG_CPU_VNNI, {300, 300, 4, 1}, 1},
                 {TG_CPU_VNNI, {300, 300, 16, 1}, 4},
                 {TG_CPU_VNNI, {450, 450, 4, 1}, 4},
                 {TG_CPU_VNNI | TG_CPU_AMX, {16, 16, 16, 1}, 1},
                 {TG_CPU_VNNI | TG_CPU_AMX, {32, 32, 32, 1}, 4},
                 {TG_CPU_VNNI | TG_CPU_AMX, {16, 200, 16, 1}, 4},
                 {TG_CPU_VNNI | TG_CPU_AMX, {64, 64, 64, 1}, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_limits l = cases[i].matrix & TG_CPU_AMX ? large_l2 : small_l2;
        l.matrix = cases[i].matrix;
        const tg_problem p = problem_of(cases[i].s, TG_I8);
        tg_plan plan = TG_PLAN_INIT;
        CHECK(tg_choose(&p, &l, NULL, &plan));
        CHECK_SAY(plan.tile.inst.k == cases[i].inst_k,
                  "%lldx%lldx%lld i8, instructions %d: %d of k in one", (long long)p.m,
                  (long long)p.n, (long long)p.k, l.matrix, plan.tile.inst.k);
    }
}

/* Strips end within tiles where these would leave them uneven, and where no other thread writes the
 * lines of C that they end in. */
static void test_even_strips(void)
{
    CHECK(tg_strip_grain(100, 2, 8, 1) == 1 && tg_strip_grain(1000, 16, 48, 16) == 16);
    CHECK(tg_strip_grain(4128, 2, 48, 16) == 48 && tg_strip_grain(1000, 1, 48, 16) == 48);
    CHECK(tg_largest_strip(1000, 16, 16) == 64 && tg_largest_strip(20, 3, 48) == 20);
    tg_limits l = small_l2;
    l.units = 2;
    for (int64_t size = 99; size <= 101; size++) {
        const tg_problem p = problem_of((asked){size, size, size, 1}, TG_F64);
        tg_plan plan = TG_PLAN_INIT;
        CHECK(tg_choose(&p, &l, NULL, &plan));
        CHECK_SAY(plan.strips.m == 2 && plan.strips.n == 1, "%lld cubed: %d x %d strips",
                  (long long)size, plan.strips.m, plan.strips.n);
    }
}

/* Threads share blocks of k where strips of a far B would be narrow, if few rows are worth it. */
static void test_splits(void)
{
    static const struct {
        asked s;
        int units, splits[2]; /* with a large L2, and a small one */
    } cases[] = {{{4, 4096, 4096, 1}, 16, {8, 1}},   {{4, 4096, 16384, 1}, 16, {29, 29}},
                 {{16, 4096, 4096, 1}, 16, {8, 1}},  {{17, 4096, 4096, 1}, 16, {8, 1}},
                 {{4, 4096, 4096, 1}, 2, {1, 8}},    {{5, 4096, 4096, 1}, 2, {1, 1}},
                 {{4, 4096, 4096, 1}, 1, {1, 1}},    {{4, 4096, 512, 1}, 4, {1, 1}},
                 {{4, 1000, 16384, 1}, 4, {1, 1}},   {{4, 8192, 16384, 1}, 4, {1, 29}},
                 {{4, 16384, 16384, 1}, 4, {1, 1}},  {{4, 4096, 4096, 2}, 16, {1, 1}},
                 {{16, 2048, 1024, 1}, 16, {1, 1}},  {{33, 4096, 4096, 1}, 16, {1, 1}},
                 {{16, 11008, 4096, 1}, 16, {8, 1}}, {{24, 11008, 4096, 1}, 16, {1, 1}},
                 {{4, 2048, 16384, 1}, 2, {1, 29}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int small = 0; small < 2; small++) {
            const tg_problem p = problem_of(cases[i].s, TG_F32);
            tg_limits l = small ? small_l2 : large_l2;
            tg_plan plan = TG_PLAN_INIT;
            l.units = cases[i].units;
            CHECK(tg_choose(&p, &l, NULL, &plan));
            CHECK_SAY(plan.splits == cases[i].splits[small] &&
                          plan.splits == tg_stream_splits(&p, &plan, &l),
                      "%lldx%lldx%lld, %d threads, L2 is %s: %d splits", (long long)p.m,
                      (long long)p.n, (long long)p.k, l.units, small ? "small" : "large",
                      plan.splits);
        }
    for (int rows = 16; rows <= 32; rows += 16) { /* that are converted */
        const tg_problem p = problem_of((asked){rows, 4096, 4096, 1}, TG_F16);
        tg_limits l = large_l2;
        tg_plan plan = TG_PLAN_INIT;
        l.units = 16;
        CHECK(tg_choose(&p, &l, NULL, &plan));
        CHECK_SAY(plan.splits == (rows == 16 ? 8 : 1), "%d rows of f16: %d splits", rows,
                  plan.splits);
    }
}

/* Tiles read lines of A where they are, if they are needed seldom, or have room in L1. */
static void test_lines(void)
{
    static const struct {
        asked s;
        int64_t a_row;
        int is_read;
    } cases[] = {{{512, 512, 512, 1}, 512, 1},     {{512, 512, 500, 1}, 512, 0},
                 {{512, 512, 512, 1}, 4096, 0},    {{512, 200, 512, 1}, 4096, 1},
                 {{4096, 4096, 1056, 1}, 1056, 0}, {{1000, 1000, 1056, 1}, 1056, 1},
                 {{512, 512, 512, 1}, -4096, 0}};
    tg_limits l = large_l2;
    l.matrix = TG_CPU_VNNI | TG_CPU_AMX;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_problem p = problem_of(cases[i].s, TG_BF16);
        tg_plan plan = TG_PLAN_INIT;
        p.a.row_stride = cases[i].a_row;
        CHECK(tg_choose(&p, &l, NULL, &plan));
        CHECK_SAY(plan.a_in_place == cases[i].is_read, "%lldx%lldx%lld, rows of A %lld apart: %d",
                  (long long)p.m, (long long)p.n, (long long)p.k, (long long)p.a.row_stride,
                  plan.a_in_place);
        p.a.col_stride = p.m, p.a.row_stride = 1;
        CHECK(tg_choose(&p, &l, NULL, &plan) && !plan.a_in_place);
    }
}

/* Pairs of bf16 are read where they are in A along k, however k ends; small halves without such
 * instructions take rows that read A so, as it is made. */
static void test_halves(void)
{
    tg_limits l = small_l2;
    tg_plan plan = TG_PLAN_INIT;
    tg_problem p = problem_of((asked){100, 100, 101, 1}, TG_BF16);
    p.a.row_stride = 1, p.a.col_stride = p.m;
    CHECK(tg_choose(&p, &l, NULL, &plan) && plan.tile.form == TG_OUTER && !plan.a_in_place);
    CHECK(tg_widens(&p, &l));
    p.flags = TG_B_PACKED;
    CHECK(!tg_widens(&p, &l));
    p = problem_of((asked){4, 100, 101, 1}, TG_F16);
    CHECK(!tg_widens(&p, &l));
    p = problem_of((asked){4, 64, 64, 1}, TG_F16);
    CHECK(tg_widens(&p, &l));
    p.c.type = TG_F32, p.c.col_stride = 2;
    CHECK(!tg_widens(&p, &l));
    p = problem_of((asked){257, 256, 256, 1}, TG_F16); /* 769 KiB as f32 */
    CHECK(!tg_widens(&p, &l));
    p.m = 256;
    CHECK(tg_widens(&p, &l));
    l.matrix = TG_CPU_VNNI | TG_CPU_BF16;
    for (int64_t k = 100; k <= 101; k++) {
        p = problem_of((asked){100, 100, k, 1}, TG_BF16);
        CHECK(tg_choose(&p, &l, NULL, &plan) && plan.tile.inst.k == 2 && plan.a_in_place);
        p = problem_of((asked){100, 100, k, 1}, TG_F16);
        CHECK(tg_choose(&p, &l, NULL, &plan) && plan.tile.inst.k == 1 && !plan.a_in_place);
    }
}

/* Rows that read A along k, where others pack what need not be: for little k, which is written row
 * by row however B lies, and for a few lines that are turned. */
static void test_flat_and_turned(void)
{
    static const asked shapes[] = {{350, 350, 4, 1}, {300, 300, 2, 1}, {2, 11, 4096, 1}};
    const tg_limits l = small_l2;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (tg_type type = TG_F32; type <= TG_F64; type++)
            for (int along_k = i == 2; along_k <= 1; along_k++) {
                tg_problem p = problem_of(shapes[i], type);
                tg_plan plan = TG_PLAN_INIT;
                if (along_k)
                    p.b.row_stride = 1, p.b.col_stride = p.k;
                if (i == 2)
                    p.a.row_stride = 1, p.a.col_stride = p.m;
                CHECK(tg_choose(&p, &l, NULL, &plan));
                CHECK_SAY(plan.tile.form == TG_OUTER, "%lldx%lldx%lld %s: %s is chosen",
                          (long long)p.m, (long long)p.n, (long long)p.k, tg_type_name(type),
                          tg_tile_name(plan.row));
            }
}

/* Rows of A that begin half a page apart share no more of L1 than a tile of them needs. */
static void test_even_rows(void)
{
    static const asked shapes[] = {{1000, 64, 1024, 1}, {512, 49, 4608, 1}, {100, 100, 512, 1}};
    const tg_limits l = small_l2;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (tg_type type = TG_F32; type <= TG_F64; type++) {
            const tg_problem p = problem_of(shapes[i], type);
            tg_plan plan = TG_PLAN_INIT;
            CHECK(tg_choose(&p, &l, NULL, &plan));
            CHECK_SAY(plan.a_in_place, "%lldx%lldx%lld %s: A is packed", (long long)p.m,
                      (long long)p.n, (long long)p.k, tg_type_name(type));
        }
}

/* With a large L2, a near B is read panel by panel: near is what one or two threads have of it, in
 * an L2 that holds its rows. Of one that is far, four tiles of rows fetch lots of it, if threads
 * have long rows of which L2 holds two lots, and not all. */
static void test_near_panels(void)
{
    static const struct {
        asked s;
        int units, is_near, is_in_lots;
        int64_t rows; /* that it serves, of c8x48 */
    } cases[] = {{{16, 1000, 1000, 1}, 1, 1, 0, 32},  {{16, 2000, 1200, 1}, 1, 0, 1, 32},
                 {{16, 2000, 1200, 1}, 2, 1, 0, 32},  {{16, 2000, 1200, 1}, 16, 1, 0, 16},
                 {{16, 3000, 500, 1}, 1, 0, 1, 32},   {{16, 3000, 200, 1}, 1, 1, 0, 32},
                 {{16, 1024, 512, 1}, 1, 1, 0, 32},   {{16, 1024, 1024, 1}, 1, 0, 1, 32},
                 {{16, 1024, 1024, 1}, 16, 1, 0, 16}, {{32, 11008, 4096, 1}, 16, 0, 1, 32},
                 {{32, 11008, 700, 1}, 16, 0, 0, 16}, {{32, 11008, 900, 1}, 16, 0, 1, 32},
                 {{32, 4112, 4096, 1}, 16, 0, 0, 16}, {{16, 500, 20000, 1}, 1, 0, 0, 16},
                 {{32, 4096, 4096, 1}, 1, 0, 1, 32},  {{32, 8192, 4096, 1}, 1, 0, 0, 16}};
    tg_limits small = large_l2;
    small.l2 = KIB(1024);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem p = problem_of(cases[i].s, TG_F32);
        tg_plan plan = TG_PLAN_INIT;
        plan.tile = tg_tile_at(tg_tile_find("c8x48"));
        plan.threads = cases[i].units;
        CHECK_SAY(tg_reads_panels(&p, &plan, &large_l2) == cases[i].is_near &&
                      tg_fetches_lots(&p, &plan, &large_l2) == cases[i].is_in_lots &&
                      tg_stream_rows(&p, &plan, &large_l2) == cases[i].rows,
                  "%lldx%lldx%lld, %d threads: panels %d, lots %d, of %lld rows", (long long)p.m,
                  (long long)p.n, (long long)p.k, cases[i].units,
                  tg_reads_panels(&p, &plan, &large_l2), tg_fetches_lots(&p, &plan, &large_l2),
                  (long long)tg_stream_rows(&p, &plan, &large_l2));
        CHECK_SAY(!tg_reads_panels(&p, &plan, &small), "%lldx%lldx%lld, 1 MiB of L2: panels",
                  (long long)p.m, (long long)p.n, (long long)p.k);
    }
}

/* Kernels fetch a far C while they multiply panels: the widest one is best then, and rows of A that
 * lie along k need no packing. */
static void test_far_c(void)
{
    static const struct {
        asked s;
        tg_type type;
        const char *row;
    } cases[] = {{{2048, 128, 256, 1}, TG_F64, "c6x32"},
                 {{2048, 2048, 2048, 1}, TG_F64, "c6x32"},
                 {{1000, 1000, 1000, 1}, TG_F64, "c8x24"},
                 {{1024, 1024, 1024, 1}, TG_F32, "c8x48"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem p = problem_of(cases[i].s, cases[i].type);
        tg_plan plan = TG_PLAN_INIT;
        CHECK(tg_choose(&p, &large_l2, NULL, &plan));
        CHECK_SAY(strcmp(tg_tile_name(plan.row), cases[i].row) == 0, "%lldx%lldx%lld %s: %s",
                  (long long)p.m, (long long)p.n, (long long)p.k, tg_type_name(p.a.type),
                  tg_tile_name(plan.row));
    }
}

/* With vectors of 32 bytes, as the Zen 3 was measured: rows of A a page apart are packed, if there
 * are columns enough; and a B from memory is packed along a page, others along less. */
static void test_narrow_vectors(void)
{
    static const struct {
        asked s;
        int reads_a, least_run, most_run; /* bytes */
    } cases[] = {
        {{1024, 1024, 1024, 1}, 0, 0, INT32_MAX},  {{1000, 1000, 1000, 1}, 1, 0, INT32_MAX},
        {{1024, 1024, 1000, 1}, 1, 0, INT32_MAX},  {{1024, 32, 2048, 1}, 1, 0, INT32_MAX},
        {{30, 4096, 1100, 1}, 1, 4000, INT32_MAX}, {{56, 1000, 1000, 1}, 1, 0, 2048}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (tg_type type = TG_F32; type <= TG_F64; type++) {
            const tg_problem p = problem_of(cases[i].s, type);
            tg_plan plan = TG_PLAN_INIT;
            CHECK(tg_choose(&p, &narrow, NULL, &plan));
            const int64_t run = plan.tile.block.n * (int64_t)tg_type_size(type);
            CHECK_SAY(plan.a_in_place == cases[i].reads_a && run >= cases[i].least_run &&
                          run <= cases[i].most_run,
                      "%lldx%lldx%lld %s: A in place %d, a run of %lld", (long long)p.m,
                      (long long)p.n, (long long)p.k, tg_type_name(type), plan.a_in_place,
                      (long long)run);
        }
}

void choose_cpu(void)
{
    test_few_rows();
    test_few_rows_far_off();
    test_narrow_streams();
    test_narrow_vectors();
    test_near_panels();
    test_far_c();
    test_strips();
    test_little_bytes();
    test_even_strips();
    test_splits();
    test_lines();
    test_halves();
    test_flat_and_turned();
    test_even_rows();
}
