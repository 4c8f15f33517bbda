/* SPDX-License-Identifier: Apache-2.0
 *
 * The chooser as a pure function: made-up machines and problems in, a legal plan out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "choose.h"
#include "machines.h"
#include "test.h"

_Static_assert(sizeof(tg_plan) < PLAN_BYTES + sizeof(size_t), "PLAN_BYTES ends at its last member");

/* A block that goes on for a whole warp past the problem would be padded for nothing. */
static int is_cut(int block, int warp, int64_t size)
{
    return block < size + warp || block == warp;
}

/* Is t what became of the stated tiling? Its thread tile may have shrunk if it is one that can. */
static int runs_as(tg_tile stated, tg_tile t, const tg_limits *l, int bytes)
{
    int is_thread = stated.thread.m == t.thread.m && stated.thread.n == t.thread.n;
    if (tg_tile_shrinks(stated, *l, bytes))
        is_thread = t.thread.m <= stated.thread.m && t.thread.n <= stated.thread.n;
    return is_thread && stated.vec == t.vec && stated.form == t.form && stated.stages == t.stages &&
           stated.slices == t.slices;
}

static void check_plan(const char *machine, const tg_problem *p, const tg_limits *l,
                       const tg_tile *forced)
{
    const int bytes = (int)tg_type_size(p->c.type);
    tg_plan plan = TG_PLAN_INIT, again = TG_PLAN_INIT;
    char text[96], where[200], verdict[200] = "";
    CHECK(tg_choose(p, l, forced, &plan) && tg_choose(p, l, forced, &again));
    const tg_tile t = plan.tile;
    tg_tile_print(&t, text, sizeof text);
    snprintf(where, sizeof where, "%s, %s, %lldx%lldx%lld batch %lld: %s", machine,
             tg_type_name(p->c.type), (long long)p->m, (long long)p->n, (long long)p->k,
             (long long)p->batch, text);
    tg_verdict answer = tg_tile_check(t, *l, bytes);
    if (answer.rule)
        tg_verdict_print(answer, verdict, sizeof verdict);
    CHECK_SAY(!answer.rule, "%s is not legal: %s", where, verdict);
    CHECK_SAY(memcmp(&plan, &again, PLAN_BYTES) == 0, "%s: two answers to one question", where);
    CHECK_SAY(plan.threads >= 1 && plan.threads <= l->units, "%s: %d threads of %d", where,
              plan.threads, l->units);
    /* A GPU's blocks are compiled in, and stay whole. */
    const int is_gpu = l->l1 == 0;
    CHECK_SAY(is_gpu || (is_cut(t.block.m, t.warp.m, p->m) && is_cut(t.block.n, t.warp.n, p->n) &&
                         (t.block.k <= p->k + 8 || t.block.k <= 8 || t.block.k == t.slices)),
              "%s: not cut to the problem", where);
    if (!forced) {
        CHECK_SAY(plan.row >= 0 && plan.row < tg_tile_count(), "%s: row %d", where, plan.row);
        CHECK_SAY(runs_as(tg_tile_at(plan.row), t, l, bytes), "%s is not of row %s", where,
                  tg_tile_name(plan.row));
    } else {
        CHECK_SAY(runs_as(*forced, t, l, bytes), "%s is not what was forced", where);
        CHECK_SAY((!forced->block.m || t.block.m <= forced->block.m) &&
                      (!forced->block.n || t.block.n <= forced->block.n) &&
                      (!forced->block.k || t.block.k <= forced->block.k),
                  "%s is larger than what was forced", where);
    }
}

static const asked shapes[] = {
    {1, 1, 1, 1},
    {1, 1000, 1000, 1},
    {1000, 1, 1000, 1},
    {64, 64, 64, 1},
    {7, 9, 100000, 1},
    {512, 512, 512, 1},
    {4096, 4096, 4096, 1},
    {1000, 1000, 0, 1},
    {37, 4001, 129, 3},
    {5, 3, 2, 10000},
    {1 << 20, 1 << 20, 1 << 20, 1},
    {INT64_MAX / 64, 1, 1, 1},
    {1, 1, INT64_MAX / 64, 1},
    {3, 3, 3, INT64_MAX / 1024},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void test_machines(void)
{
    static const int64_t l2[] = {KIB(256), KIB(512), KIB(1024), KIB(2048)};
    static const int units[] = {1, 2, 3, 8, 64};
    for (int i = 0; machines[i].limits.l1; i++)
        for (size_t cache = 0; cache < sizeof l2 / sizeof l2[0]; cache++)
            for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++)
                for (int shape = 0; shape < SHAPES; shape++)
                    for (tg_type type = TG_F32; type <= TG_F64; type++) {
                        tg_limits l = machines[i].limits;
                        tg_problem p = problem_of(shapes[shape], type);
                        l.l2 = l2[cache];
                        l.units = units[unit];
                        check_plan(machines[i].name, &p, &l, NULL);
                    }
}

static void test_random_shapes(void)
{
    for (uint64_t i = 0; i < 5000; i++) {
        const uint64_t h = test_hash(i);
        const machine *on = &machines[h % 4];
        const asked s = {1 + (int64_t)(h >> 8) % 3000, 1 + (int64_t)(h >> 20) % 3000,
                         (int64_t)(h >> 32) % 3000, 1 + (int64_t)(h >> 50) % 5};
        tg_problem p = problem_of(s, h >> 60 & 1 ? TG_F32 : TG_F64);
        tg_limits l = on->limits;
        tg_plan chosen = TG_PLAN_INIT, forced = TG_PLAN_INIT;
        l.units = 1 + (int)(h >> 55) % 20;
        check_plan(on->name, &p, &l, NULL);
        CHECK(tg_choose(&p, &l, NULL, &chosen));
        const tg_tile row = tg_tile_at(chosen.row);
        CHECK(tg_choose(&p, &l, &row, &forced));
        CHECK_SAY(memcmp(&chosen, &forced, PLAN_BYTES) == 0, "%s runs in another way if forced",
                  tg_tile_name(chosen.row));
    }
}

/* tg_pick asks for empty problems too. */
static void test_empty(void)
{
    static const int64_t sizes[] = {0, 1, 3, 300};
    for (int machine = 0; machine < MACHINES; machine++)
        for (int i = 0; i < 4 * 4 * 4 * 2; i++) {
            const asked s = {sizes[i % 4], sizes[i / 4 % 4], sizes[i / 16 % 4], i / 64};
            const tg_problem f32 = problem_of(s, TG_F32), f64 = problem_of(s, TG_F64);
            check_plan(machines[machine].name, &f32, &machines[machine].limits, NULL);
            check_plan(machines[machine].name, &f64, &machines[machine].limits, NULL);
        }
}

static void test_forced(void)
{
    for (int row = 0; row < tg_tile_count(); row++)
        for (int i = 0; i < MACHINES; i++)
            for (int shape = 0; shape < SHAPES; shape++)
                for (tg_type type = TG_F32; type <= TG_F64; type++) {
                    const tg_tile forced = tg_tile_at(row);
                    tg_problem p = problem_of(shapes[shape], type);
                    if (tg_tile_fits(forced, machines[i].limits, (int)tg_type_size(type)))
                        check_plan(machines[i].name, &p, &machines[i].limits, &forced);
                }
    const tg_tile own = {{56, 96, 24}, {28, 48}, {14, 48}, 16, 1, 1, TG_OUTER_T, {1, 1, 1}};
    const tg_tile named = tg_tile_at(tg_tile_find("t128x64x16"));
    tg_problem p = problem_of(shapes[6], TG_F32);
    tg_plan plan = TG_PLAN_INIT;
    CHECK(tg_choose(&p, &machines[2].limits, &own, &plan));
    CHECK_INT(plan.row, -1);
    CHECK(plan.tile.block.m == 56 && plan.tile.block.n == 96 && plan.tile.block.k == 24 &&
          plan.tile.warp.m == 28 && plan.tile.warp.n == 48);
    CHECK(tg_choose(&p, &machines[2].limits, &named, &plan));
    CHECK_INT(plan.row, tg_tile_find("t128x64x16"));
}

static void test_threads(void)
{
    tg_limits l = machines[1].limits;
    tg_problem tiny = problem_of((asked){16, 16, 16, 1}, TG_F32);
    tg_problem large = problem_of((asked){2000, 2000, 2000, 1}, TG_F32);
    tg_plan plan = TG_PLAN_INIT;
    CHECK(tg_choose(&tiny, &l, NULL, &plan));
    CHECK_INT(plan.threads, 1);
    CHECK(tg_choose(&large, &l, NULL, &plan));
    CHECK_INT(plan.threads, l.units);
    const int64_t tiles =
        (int64_t)(plan.tile.block.m / plan.tile.warp.m) * (plan.tile.block.n / plan.tile.warp.n) *
        tg_ceil_div(2000, plan.tile.block.m) * tg_ceil_div(2000, plan.tile.block.n);
    CHECK_SAY(tiles >= l.units, "%lld warp tiles for %d threads", (long long)tiles, l.units);
    l.registers = 0; /* then no row can be legal */
    CHECK(!tg_choose(&large, &l, NULL, &plan));
}

/* Where AMD's matrix instructions multiply as fast as FMAs, or twice as fast, and free the rest of
 * the machine, large products take them; a gfx906 and RDNA have none, and take FMAs with the same
 * kernels. Few rows are no work for them. No tail is split: their kernels have none. */
static void test_amd(void)
{
    const tg_limits cdna = {{8, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 8 << 20, 104, 0x90a, 0};
    const tg_limits rdna = {{4, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 6 << 20, 96, 0x1100, 0};
    tg_limits gcn = cdna;
    gcn.matrix = 0x906;
    for (tg_type type = TG_F32; type <= TG_F64; type++)
        for (int64_t size = 200; size <= 8192; size += size / 2) {
            tg_problem p = problem_of((asked){size, size, size, 1}, type);
            tg_plan plan = TG_PLAN_INIT;
            CHECK(tg_choose(&p, &cdna, NULL, &plan));
            CHECK_SAY(plan.tile.inst.k > 1, "%s takes %s", "CDNA", tg_tile_name(plan.row));
            CHECK_INT(plan.tail, TG_TAIL_WHOLE);
            CHECK(tg_choose(&p, &gcn, NULL, &plan));
            CHECK_SAY(plan.tile.inst.k == 1, "%s takes %s", "GCN", tg_tile_name(plan.row));
            CHECK_SAY(size < 4096 || plan.tile.inst.m == 8, "%s takes %s", "GCN",
                      tg_tile_name(plan.row));
            CHECK(tg_choose(&p, &rdna, NULL, &plan));
            CHECK_SAY(size < 4096 ? plan.tile.inst.k == 1 : plan.tile.inst.m == 4, "%s takes %s",
                      "RDNA", tg_tile_name(plan.row));
            p = problem_of((asked){3, size, size, 1}, type);
            CHECK(tg_choose(&p, &cdna, NULL, &plan));
            CHECK_INT(plan.tile.stages, 0);
        }
}

/* A line of a log in docs/results: what one row took on one shape. */
typedef struct timing {
    asked s;
    char trans[4], type[4], row[32];
    int splits, tail;
    double microseconds;
} timing;

static int read_timing(FILE *file, timing *t)
{
    char line[200];
    long long m, n, k, batch;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%lld %lld %lld %lld %3s %3s %31s %d %d %lf", &m, &n, &k, &batch, t->trans,
                   t->type, t->row, &t->splits, &t->tail, &t->microseconds) == 10) {
            t->s = (asked){m, n, k, batch};
            return 1;
        }
    return 0;
}

static int same_shape(const timing *x, const timing *y)
{
    return memcmp(&x->s, &y->s, sizeof x->s) == 0 && strcmp(x->trans, y->trans) == 0 &&
           strcmp(x->type, y->type) == 0;
}

/* Best time of all rows over the time of the chosen row, at the splits that are next to those
 * chosen; 0 if the log does not know the row. */
static double share_of_best(const timing *t, int count, const tg_limits *l)
{
    tg_problem p = problem_of(t->s, strcmp(t->type, "f64") ? TG_F32 : TG_F64);
    tg_plan plan = TG_PLAN_INIT;
    if (t->trans[0] == 'T')
        p.a.row_stride = 1, p.a.col_stride = p.m;
    if (t->trans[1] == 'T')
        p.b.row_stride = 1, p.b.col_stride = p.k;
    CHECK(tg_choose(&p, l, NULL, &plan));
    double best = t->microseconds, chosen = 0;
    int distance = 1000;
    for (int i = 0; i < count; i++) {
        int splits = t[i].splits - plan.splits, tail = t[i].tail != (int)plan.tail;
        int now = 2 * (splits < 0 ? -splits : splits) + tail;
        best = t[i].microseconds < best ? t[i].microseconds : best;
        if (strcmp(t[i].row, tg_tile_name(plan.row)) == 0 && now < distance) {
            distance = now;
            chosen = t[i].microseconds;
        }
    }
    return chosen > 0 ? best / chosen : 0;
}

/* On a device whose rows were all timed, the chooser comes close to the best of them: to `mean` of
 * its speed in the geometric mean, and to `least` on every shape. */
static void test_measured(const char *path, const tg_limits *l, double mean_asked, double least)
{
    static timing t[8000];
    int count = 0, shapes = 0;
    double product = 1;
    FILE *file = fopen(path, "r");
    if (!CHECK_SAY(file != NULL, "%s does not open", path))
        return;
    while (count < 8000 && read_timing(file, &t[count]))
        count++;
    fclose(file);
    for (int first = 0, end = 0; first < count; first = end) {
        while (end < count && same_shape(&t[first], &t[end]))
            end++;
        const double share = share_of_best(&t[first], end - first, l);
        if (share > 0) {
            product *= share;
            shapes++;
            CHECK_SAY(share >= least, "%lldx%lldx%lld %s %s: %.3f of the best row",
                      (long long)t[first].s.m, (long long)t[first].s.n, (long long)t[first].s.k,
                      t[first].trans, t[first].type, share);
        }
    }
    const double mean = shapes ? pow(product, 1.0 / shapes) : 0;
    test_print("%d shapes measured, the chooser's rows reach %.3f of the best\n", shapes, mean);
    CHECK_SAY(shapes >= 40 && mean >= mean_asked, "%.3f of the best on %d shapes", mean, shapes);
}

static const tg_limits h200 = {{4, 8}, 1024, 16, 255, 4, 227 << 10, 0, 0, 50 << 20, 132, 16, 18.8};

/* Up to 16 rows stream a large B, along n or along k, through Hopper's copy engine if that can
 * fetch it, and there is enough of it for all units, or for parts that are worth adding; other
 * products leave the row for that alone. */
static void test_thin_on_hopper(void)
{
    static const struct {
        asked s;
        int along_n, along_k;
    } cases[] = {
        {{16, 4096, 14336, 1}, 1, 1}, {{9, 32000, 4096, 1}, 1, 1},  {{12, 2560, 2560, 1}, 1, 1},
        {{16, 8192, 512, 1}, 1, 1},   {{8, 4096, 14336, 1}, 0, 0},  {{17, 4096, 14336, 1}, 0, 0},
        {{16, 4096, 14336, 2}, 0, 0}, {{16, 4095, 14336, 1}, 0, 1}, {{16, 4096, 14334, 1}, 0, 0},
        {{16, 4096, 1024, 1}, 1, 1},  {{16, 28672, 512, 1}, 1, 1},  {{16, 8192, 256, 1}, 0, 0},
        {{16, 1024, 1024, 1}, 1, 1},  {{16, 2048, 1000, 1}, 0, 0},  {{16, 512, 2048, 1}, 0, 0},
        {{16, 512, 8192, 1}, 0, 0},   {{16, 64, 500000, 1}, 0, 0},  {{16, 512, 500000, 1}, 1, 1},
        {{5, 512, 500000, 1}, 1, 0},  {{4, 512, 500000, 1}, 0, 0},  {{16, 512, 512, 1}, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int along_k = 0; along_k < 2; along_k++) {
            tg_problem p = problem_of(cases[i].s, TG_F32);
            tg_plan plan = TG_PLAN_INIT;
            if (along_k)
                p.b.row_stride = 1, p.b.col_stride = p.k;
            CHECK(tg_choose(&p, &h200, NULL, &plan));
            CHECK_SAY((tg_tile_streams(plan.tile) && plan.tile.stages > 2) ==
                          (along_k ? cases[i].along_k : cases[i].along_n),
                      "%lldx%lldx%lld %s takes %s", (long long)p.m, (long long)p.n, (long long)p.k,
                      along_k ? "NT" : "NN", tg_tile_name(plan.row));
        }
    const tg_problem split = problem_of((asked){16, 512, 2048, 1}, TG_F32);
    tg_plan plan = TG_PLAN_INIT;
    CHECK(tg_choose(&split, &h200, NULL, &plan) && plan.splits == 4);
}

int main(int argc, char **argv)
{
    const tg_limits xeon = {{1, 1}, 0, 64, 32, 64, 0, KIB(32), KIB(1024), 37486592, 1, 0, 0};
    tg_limits h100 = h200;
    h100.memory_bytes = 12.8;
    if (argc > 3) {
        test_measured(argv[1], &h200, 0.97, 0.5);
        test_measured(argv[2], &h100, 0.975, 0.81);
        test_measured(argv[3], &xeon, 0.95, 0.87);
    }
    test_machines();
    test_random_shapes();
    test_empty();
    test_forced();
    test_threads();
    test_amd();
    test_thin_on_hopper();
    choose_cpu();
    choose_reads();
    return test_close();
}
