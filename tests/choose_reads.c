/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of reads.h that are of speed alone, on both sides of where they turn. */
#include "choose.h"
#include "reads.h"
#include "test.h"

static int reads_b(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    tg_plan chosen = *plan;
    return tg_choose(p, l, NULL, &chosen) && chosen.b_in_place;
}

static int turns_a(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return tg_turned_of(p, l->vec_bytes / 4, 512) == TG_TURNED_A && plan->a_in_place;
}

static int streams_words(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return tg_streams_words(p, plan->tile, l);
}

static int near_rows(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return (int)tg_near_rows(p, plan->tile, l, 4, p->a.type != TG_F32);
}

static int narrow_columns(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return (int)tg_narrow(p, plan->tile, l);
}

static int narrow_columns_of_amd(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    tg_limits amd = *l;
    amd.matrix = TG_CPU_BF16;
    return (int)tg_narrow(p, plan->tile, &amd);
}

#define RULE(name) #name, name
void choose_reads(void)
{
    static const struct {
        const char *name;
        int (*answer)(const tg_problem *p, const tg_plan *plan, const tg_limits *l);
        const char *row;
        tg_type type;
        const tg_limits *l;
        asked s;
        int wanted;
    } cases[] = {
        {RULE(reads_b), "c8x48", TG_F32, &small_l2, {100, 4096, 16, 1}, 1},
        {RULE(reads_b), "c8x48", TG_F32, &small_l2, {100, 4096, 17, 1}, 0},
        {RULE(reads_b), "c8x48", TG_F32, &small_l2, {40, 64, 4096, 1}, 0},
        {RULE(reads_b), "c8x48", TG_F32, &small_l2, {2, 4, 1024, 1}, 1},
        {RULE(turns_a), "c8x48", TG_F32, &small_l2, {20, 2, 100, 1}, 1},
        {RULE(turns_a), "c8x48", TG_F32, &small_l2, {19, 2, 100, 1}, 0},
        {RULE(turns_a), "c8x48", TG_F32, &small_l2, {8, 2, 513, 1}, 1},
        {RULE(turns_a), "c8x48", TG_F32, &small_l2, {8, 2, 512, 1}, 0},
        {RULE(turns_a), "c8x48", TG_F32, &small_l2, {7, 2, 513, 1}, 0},
        {RULE(turns_a), "c8x48", TG_F32, &small_l2, {20, 2, 15, 1}, 0},
        {RULE(streams_words), "c8x48_bf16", TG_BF16, &small_l2, {64, 256, 64, 1}, 1},
        {RULE(streams_words), "c8x48_bf16", TG_BF16, &small_l2, {33, 256, 65, 1}, 0},
        {RULE(streams_words), "c8x48_bf16", TG_BF16, &small_l2, {32, 256, 65, 1}, 1},
        {RULE(streams_words), "c13x32_i8", TG_I8, &small_l2, {52, 4096, 4096, 1}, 1},
        {RULE(streams_words), "c13x32_i8", TG_I8, &small_l2, {53, 4096, 4096, 1}, 0},
        {RULE(near_rows), "c6x16", TG_F32, &narrow, {7, 1024, 1024, 1}, 16}, /* a page apart */
        {RULE(near_rows), "c6x16", TG_F16, &narrow, {7, 1024, 1024, 1}, 64},
        {RULE(near_rows), "c6x16", TG_F32, &narrow, {7, 1536, 1024, 1}, 64},
        {RULE(near_rows), "c6x16", TG_F32, &narrow, {6, 1536, 1024, 1}, 256},
        {RULE(near_rows), "c8x48", TG_F32, &large_l2, {6, 512, 1024, 1}, 256},
        {RULE(near_rows), "c8x48", TG_F32, &large_l2, {6, 512, 4096, 1}, 64}, /* in 32 pages */
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {100, 100, 100, 1}, 4},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {100, 101, 100, 1}, 0},
        {RULE(narrow_columns), "c8x24", TG_F64, &small_l2, {100, 98, 100, 1}, 2},
        {RULE(narrow_columns), "c14x32", TG_F32, &small_l2, {100, 100, 100, 1}, 0},
        {RULE(narrow_columns), "c6x16", TG_F32, &narrow, {100, 100, 100, 1}, 0},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {1000, 47, 1000, 1}, 0}, /* A is far */
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {1000, 49, 1000, 1}, 1},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {1000, 33, 1000, 1}, 0},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {500, 33, 500, 1}, 1},
        {RULE(narrow_columns_of_amd), "c8x48", TG_F32, &small_l2, {1000, 33, 1000, 1}, 1},
        {RULE(narrow_columns_of_amd), "c8x48", TG_F32, &small_l2, {100, 104, 100, 1}, 8},
        {RULE(narrow_columns_of_amd), "c8x48", TG_F32, &small_l2, {100, 105, 100, 1}, 0},
        {RULE(narrow_columns_of_amd), "c8x24", TG_F64, &small_l2, {100, 100, 100, 1}, 4},
        {RULE(narrow_columns_of_amd), "c8x24", TG_F64, &small_l2, {100, 101, 100, 1}, 0},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {9, 100, 1000, 1}, 4},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {8, 100, 1000, 1}, 0},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {1000, 100, 17, 1}, 4},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {1000, 100, 16, 1}, 0},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {33, 100, 64, 1}, 4},
        {RULE(narrow_columns), "c8x48", TG_F32, &small_l2, {32, 100, 64, 1}, 0}, /* A is little */
        {RULE(tg_fetches_rows), "c8x48", TG_F32, &small_l2, {513, 96, 512, 1}, 1},
        {RULE(tg_fetches_rows), "c8x48", TG_F32, &small_l2, {513, 97, 512, 1}, 0},
        {RULE(tg_fetches_rows), "c8x48", TG_F32, &small_l2, {512, 96, 512, 1}, 0},
        {RULE(tg_fetches_rows), "c6x16", TG_F64, &small_l2, {513, 16, 512, 1}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem p = problem_of(cases[i].s, cases[i].type);
        tg_plan plan = TG_PLAN_INIT;
        plan.row = tg_tile_find(cases[i].row), plan.tile = tg_tile_at(plan.row);
        plan.a_in_place = 1;
        const int given = cases[i].answer(&p, &plan, cases[i].l);
        CHECK_SAY(given == cases[i].wanted, "%s, %s %lldx%lldx%lld: %d", cases[i].name,
                  cases[i].row, (long long)p.m, (long long)p.n, (long long)p.k, given);
    }
}
