/* SPDX-License-Identifier: Apache-2.0
 *
 * What is set on a context: workspaces, forced tilings and threads; its plans, memory and clock. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "test.h"

/* -------------------------------------------------------------------------------- workspace */

enum { SIDE = 200, ELEMENTS = SIDE * SIDE, THIN = 8 };

static float *a, *b, *c; /* of the device */

static void take(tg_context *ctx)
{
    static float host[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        host[i] = (float)(i % 7 - 3);
    a = api_upload(ctx, host, sizeof host);
    b = api_upload(ctx, host, sizeof host);
    c = api_upload(ctx, host, sizeof host);
}

static void drop(tg_context *ctx)
{
    CHECK(!tg_free(ctx, a) && !tg_free(ctx, b) && !tg_free(ctx, c));
}

static tg_problem product(int m, int n, int k) { return api_product(m, n, k, TG_F32, a, b, c); }

static tg_problem square(void) { return product(SIDE, SIDE, SIDE); }

static void poison_c(tg_context *ctx)
{
    static float host[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        host[i] = NAN;
    CHECK_OK(ctx, tg_upload(ctx, c, host, sizeof host));
}

static int count_nans(tg_context *ctx)
{
    static float host[ELEMENTS];
    int nans = 0;
    CHECK_OK(ctx, tg_download(ctx, host, c, sizeof host));
    for (int i = 0; i < ELEMENTS; i++)
        nans += isnan(host[i]) != 0;
    return nans;
}

/* A CPU stages in every call; a GPU needs a workspace where blocks share the k of few elements. */
static void test_workspace(tg_context *ctx, const char *tile_name, tg_problem p)
{
    tg_tile tile = tg_tile_at(tg_tile_find(tile_name));
    const int must_stage = api_is_cpu() || p.k > SIDE;
    size_t bytes = 0;
    char parts[80];
    poison_c(ctx);
    CHECK_OK(ctx, tg_force(ctx, tile.vec ? &tile : NULL));
    CHECK_OK(ctx, tg_set_threads(ctx, 2));
    CHECK_OK(ctx, tg_gemm_workspace(ctx, &p, &bytes));
    CHECK_SAY(bytes > 0 || !must_stage, "%s stages nothing", tile_name);
    void *memory = NULL;
    CHECK_OK(ctx, tg_alloc(ctx, bytes, &memory));
    if (memory) {
        CHECK_OK(ctx, tg_set_workspace(ctx, memory, bytes - 1));
        snprintf(parts, sizeof parts, "workspace|%zu|%zu", bytes - 1, bytes);
        CHECK_REFUSED(ctx, tg_gemm(ctx, &p), TG_SMALL_WORKSPACE, parts);
        CHECK_INT(count_nans(ctx), ELEMENTS);
        CHECK_OK(ctx, tg_set_workspace(ctx, memory, bytes));
        CHECK_OK(ctx, tg_gemm(ctx, &p));
        CHECK_INT(count_nans(ctx), ELEMENTS - p.m * p.n);
        CHECK_OK(ctx, tg_set_workspace(ctx, NULL, 0));
    }
    CHECK_OK(ctx, tg_free(ctx, memory));
    CHECK(multiplies(ctx, 250, 260, 270, 3));
    p.m = 0;
    CHECK_OK(ctx, tg_gemm_workspace(ctx, &p, &bytes));
    CHECK_INT(bytes, 0);
    CHECK_OK(ctx, tg_force(ctx, NULL));
    CHECK_OK(ctx, tg_set_threads(ctx, 0));
}

/* ----------------------------------------------------------------------------------- tiling */

static int is_for_no_type(tg_context *ctx, const tg_tile *tile)
{
#define TG_X(name, value, text, ctype) &&tg_tile_refusal(ctx, tile, name)
    return 1 TG_TYPE_LIST(TG_X);
#undef TG_X
}

/* Where a warp has 64 lanes, two rows may come to the same tiling: the plan names one of them. */
static int names_a_twin(tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    tg_plan of_named = TG_PLAN_INIT;
    const tg_tile named = tg_tile_at(plan->row);
    return plan->row >= 0 && !tg_force(ctx, &named) && !tg_pick(ctx, p, &of_named) &&
           memcmp(&of_named.tile, &plan->tile, sizeof named) == 0;
}

static void test_pick_and_force(tg_context *ctx)
{
    tg_problem p = square();
    tg_plan plan = TG_PLAN_INIT;
    for (int row = 0; row < tg_tile_count(); row++) {
        tg_tile tile = tg_tile_at(row);
        if (tg_tile_refusal(ctx, &tile, TG_F32)) {
            if (is_for_no_type(ctx, &tile)) /* AMD's have rows for f16 alone */
                CHECK_REFUSED(ctx, tg_force(ctx, &tile), TG_BAD_TILE, "");
            continue;
        }
        CHECK_OK(ctx, tg_force(ctx, &tile));
        CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
        CHECK_SAY(plan.row == row || names_a_twin(ctx, &p, &plan), "row %d, expected %d", plan.row,
                  row);
        CHECK(plan.tile.thread.m == tile.thread.m && plan.tile.vec == tile.vec);
        CHECK(multiplies(ctx, 33, 34, 35, (unsigned)row));
        if (tg_tile_refusal(ctx, &tile, TG_F64)) {
            double x[3] = {1, 2, 3};
            CHECK_REFUSED(ctx,
                          tg_dgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 1, 1, 1, 1, x, 1,
                                   x + 1, 1, 0, x + 2, 1),
                          TG_BAD_TILE, "f64");
            CHECK(x[2] == 3);
        }
        tg_tile filled = tg_tile_resolve(ctx, &tile, TG_F32);
        CHECK(filled.block.m && filled.block.n && filled.block.k && filled.warp.m && filled.warp.n);
    }
    tg_tile unknown = {{14, 26, 8}, {7, 13}, {7, 13}, 1, 1, 1, TG_OUTER_T, {1, 1, 1}};
    CHECK_TEXT(tg_tile_refusal(ctx, &unknown, TG_F32), "thread");
    const tg_tile rung = tg_tile_at(tg_tile_find("v4_reg"));
    CHECK_OK(ctx, tg_force(ctx, &rung));
    CHECK_REFUSED(ctx, tg_force(ctx, &unknown), TG_BAD_TILE, "thread");
    CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
    CHECK_INT(plan.row, tg_tile_find("v4_reg"));
    CHECK_OK(ctx, tg_force(ctx, NULL));
    p.a.data = p.b.data = p.c.data = NULL;
    CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
    CHECK(plan.row >= 0 && plan.threads >= 1);
    CHECK_OK(ctx, tg_set_threads(ctx, 1));
    CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
    CHECK_INT(plan.threads, 1);
    p.n = 0;
    CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
    CHECK_OK(ctx, tg_set_threads(ctx, 0));
}

static int picked(tg_context *ctx, const tg_problem *p, int *threads)
{
    tg_plan plan = TG_PLAN_INIT;
    CHECK_OK(ctx, tg_gemm(ctx, p));
    CHECK_OK(ctx, tg_pick(ctx, p, &plan));
    *threads = plan.threads;
    return plan.row;
}

/* A setting counts for the next call, also when its problem is the one before. */
static void test_settings_take_effect(tg_context *ctx)
{
    tg_problem p = square();
    tg_tile rung = tg_tile_at(tg_tile_find("v4_reg")), other = tg_tile_at(tg_tile_find("v2_work"));
    int threads, chosen = picked(ctx, &p, &threads);
    CHECK_OK(ctx, tg_force(ctx, &rung));
    CHECK_INT(picked(ctx, &p, &threads), tg_tile_find("v4_reg"));
    CHECK_OK(ctx, tg_force(ctx, &other));
    CHECK_INT(picked(ctx, &p, &threads), tg_tile_find("v2_work"));
    CHECK_OK(ctx, tg_force(ctx, NULL));
    CHECK_INT(picked(ctx, &p, &threads), chosen);
    for (int i = 1; i < 4; i++) {
        CHECK_OK(ctx, tg_set_threads(ctx, i));
        CHECK_INT(picked(ctx, &p, &threads), chosen);
        CHECK_INT(threads, api_is_cpu() ? i : 1);
    }
    CHECK_OK(ctx, tg_set_threads(ctx, 0));
}

/* The plan of one problem is not taken for another's, whatever the two differ in. */
static void test_plans_do_not_mix(tg_context *ctx)
{
    tg_problem before = square();
    before.a.batch_stride = before.b.batch_stride = before.c.batch_stride = 1 << 20;
    for (int i = 0; i < 6; i++) {
        tg_problem p = before;
        tg_plan plan = TG_PLAN_INIT, fresh = TG_PLAN_INIT;
        int64_t *field[6] = {&p.m, &p.n, &p.k, &p.batch, &p.a.col_stride, &p.b.row_stride};
        *field[i] = i < 3 ? 3 : 7 * *field[i] + 5;
        CHECK_OK(ctx, tg_pick(ctx, &before, &plan));
        CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
        tg_context *other;
        CHECK_INT(tg_open(&other, tg_device_backend(ctx), 0), TG_OK);
        CHECK_OK(other, tg_pick(other, &p, &fresh));
        CHECK_SAY(memcmp(&plan, &fresh, PLAN_BYTES) == 0, "field %d: the plan before", i);
        tg_close(other);
    }
}

/* tg_pick plans an empty problem too, which no call does. The problem before is planned anew. */
static void test_empty_plans(tg_context *ctx)
{
    tg_tile dots = tg_tile_at(tg_tile_find("v1_shared_8"));
    for (int i = 0; i < 24; i++) {
        tg_problem p = i < 12 ? square() : product(THIN, THIN, ELEMENTS / THIN), empty = p;
        int64_t *field[3] = {&empty.m, &empty.n, &empty.k};
        tg_plan plan = TG_PLAN_INIT, again = TG_PLAN_INIT;
        size_t before, after;
        *field[i % 3] = *field[i / 3 % 3] = 0;
        empty.beta = 1;
        if (i % 2)
            empty.a.type = empty.b.type = empty.c.type =
                i % 4 == 1 && api_is_cpu() ? TG_F16 : TG_F64;
        CHECK_OK(ctx, tg_force(ctx, i % 12 > 6 ? &dots : NULL));
        CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
        CHECK_OK(ctx, tg_gemm_workspace(ctx, &p, &before));
        CHECK_OK(ctx, tg_pick(ctx, &empty, &again));
        CHECK_OK(ctx, tg_gemm_workspace(ctx, &p, &after));
        CHECK_SAY(after == before, "after an empty problem %d: %zu bytes, and %zu before", i, after,
                  before);
        CHECK_OK(ctx, tg_pick(ctx, &empty, &again));
        CHECK_OK(ctx, tg_pick(ctx, &p, &again));
        CHECK_SAY(memcmp(&plan, &again, PLAN_BYTES) == 0, "the plan of an empty problem %d", i);
    }
    CHECK_OK(ctx, tg_force(ctx, NULL));
}

/* A stopwatch that nobody started has no time. */
static void test_stopwatch(const tg_context *ctx)
{
    double passed = 5;
    tg_context *other;
    CHECK_INT(tg_open(&other, tg_device_backend(ctx), 0), TG_OK);
    CHECK_REFUSED(other, tg_time_stop(other, &passed), TG_BAD_ARGUMENT, "tg_time_start");
    CHECK(passed == 5);
    tg_close(other);
}

/* ----------------------------------------------------------------------------------- memory */

static void test_memory(tg_context *ctx)
{
    static unsigned char sent[1000], received[1000];
    void *memory = NULL;
    for (int i = 0; i < 1000; i++)
        sent[i] = (unsigned char)(i * 37);
    for (size_t bytes = 1; bytes <= sizeof sent; bytes += 333) {
        CHECK_OK(ctx, tg_alloc(ctx, bytes, &memory));
        CHECK((uintptr_t)memory % 64 == 0 && memory);
        CHECK_OK(ctx, tg_upload(ctx, memory, sent, bytes));
        CHECK_OK(ctx, tg_download(ctx, received, memory, bytes));
        CHECK(memcmp(sent, received, bytes) == 0 && received[bytes % 1000] == 0);
        CHECK_OK(ctx, tg_free(ctx, memory));
    }
}

/* What this process has allocated so far, in calls; always 0 where it is not known. */
static _Atomic long allocations;

#if defined COUNTS_ALLOCATIONS && defined __GLIBC__
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
static void *counted(void *memory)
{
    allocations++;
    return memory;
}
void *malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void *realloc(void *old, size_t bytes) { return counted(__libc_realloc(old, bytes)); }
void *aligned_alloc(size_t to, size_t bytes) { return counted(__libc_memalign(to, bytes)); }
#endif

/* The first call on a context may allocate; the second, of the same kind, may not. */
static void test_calls_allocate_nothing(void)
{
    static const int sizes[][3] = {
        {4, 4, 4}, {60, 70, 80}, {200, 200, 200}, {1, 200, 200}, {6, 8, 5000}};
    static const tg_type types[] = {TG_F32, TG_F64, TG_F16};
    for (size_t i = 0; i < 5 * 3 * 2 * 2; i++) {
        const int *s = sizes[i % 5];
        const tg_type type = types[i / 5 % 3];
        tg_context *ctx;
        CHECK_INT(tg_open(&ctx, "cpu", 0), TG_OK);
        void *x = calloc(ELEMENTS, 2 * sizeof(double)), *z = calloc(ELEMENTS, sizeof(double));
        tg_problem p = api_product(s[0], s[1], s[2], type, x, x, z);
        if (i / 15 % 2)
            p.b.row_stride = 1, p.b.col_stride = s[2];
        CHECK_OK(ctx, tg_set_threads(ctx, 1 + (int)(i / 30)));
        CHECK_OK(ctx, tg_gemm(ctx, &p));
        const long before = allocations;
        CHECK_OK(ctx, tg_gemm(ctx, &p));
        CHECK_SAY(allocations == before, "%dx%dx%d of %s: %ld allocations in the second call", s[0],
                  s[1], s[2], tg_type_name(type), allocations - before);
        tg_close(ctx);
        free(x);
        free(z);
    }
#if defined COUNTS_ALLOCATIONS && defined __GLIBC__
    CHECK(allocations > 0);
#endif
}

void test_settings(tg_context *ctx)
{
    static const tg_type types[] = {TG_F32, TG_F64};
    take(ctx);
    test_workspace(ctx, "free", square());
    test_workspace(ctx, "free", product(THIN, THIN, ELEMENTS / THIN));
    test_workspace(ctx, "t64x64x16", square());
    test_workspace(ctx, "t24x40x3", square());
    test_workspace(ctx, "t64x64x32_k4", square());
    test_pick_and_force(ctx);
    test_settings_take_effect(ctx);
    test_plans_do_not_mix(ctx);
    test_empty_plans(ctx);
    test_memory(ctx);
    test_stopwatch(ctx);
    if (api_is_cpu())
        test_calls_allocate_nothing();
    for (size_t i = 0; i < 2; i++) {
        double flops = 0;
        CHECK_OK(ctx, tg_peak(ctx, types[i], &flops));
        CHECK_SAY(flops > 1e6 && flops < 1e16, "a peak of %g", flops);
        double first = -1, second = -1;
        CHECK_OK(ctx, tg_time_start(ctx));
        CHECK_OK(ctx, tg_time_stop(ctx, &first));
        CHECK_OK(ctx, tg_peak(ctx, types[i], &flops));
        CHECK_OK(ctx, tg_time_start(ctx));
        CHECK(multiplies(ctx, 150, 150, 150, 1));
        CHECK_OK(ctx, tg_time_stop(ctx, &second));
        CHECK_SAY(first >= 0 && second > first && second < 60, "%g and %g seconds", first, second);
    }
    drop(ctx);
}
