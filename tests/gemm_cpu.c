/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of test_gemm for the CPU's ways of its own, listed by hand: few rows, few columns, small
 * items, packed operands, and what threads share of them. */
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "test.h"

/* Shared out to threads, a few rows and much of B have a way of their own. */
static void run_few_rows(tg_context *ctx)
{
    for (int i = 0; i < 2 * 2 * 16; i++) {
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i / 2 % 2 ? "NT" : "NN");
        c.m = 1 + i / 4, c.n = 20, c.k = 100000 / c.m; /* more threads than vectors */
        c.beta = 2;
        c.threads = 4;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2; i++) { /* more columns than sums of a stream may have at once */
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F16 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = 3, c.n = 40000, c.k = 41;
        c.beta = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2;
         i++) { /* more rows of bytes than a tile has, whose words are shared */
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_U8 : TG_I8;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = i < 2 ? 17 : 52, c.n = 131, c.k = 75;
        c.beta = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2; i++) { /* strips of rows, and panels of B packed on their way */
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = 200 + i / 2 * 100, c.n = i % 2 ? 100 : 300, c.k = 300;
        c.threads = 2;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2 * 4 * 3; i++) { /* lines a page apart, or nearly; shifted */
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NT");
        c.m = 1 + i / 4 % 4, c.n = 35, c.k = (i % 2 ? 512 : 1024) + i / 2 % 2;
        c.shift = 5 * (i / 16);
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2 * 4 * 4; i++) { /* of halves, in one block of k and in several */
        gemm_case c = case_default("cpu");
        const int is_b = i / 2 % 2, few = 1 + i / 4 % 4;
        c.type = i % 2 ? TG_F16 : TG_BF16;
        snprintf(c.kind, sizeof c.kind, "%s", is_b ? "NT" : "NN");
        c.m = is_b ? few : 35, c.n = is_b ? 35 : few, c.k = 64 + i / 16 % 2 * 900 + i / 32 * 11;
        c.beta = 2;
        c.shift = i / 4 % 4;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 3 * 2 * 4; i++) { /* rows of B that push one another out of a large L2 */
        static const tg_type types[] = {TG_F32, TG_F64, TG_F16};
        gemm_case c = case_default("cpu");
        c.type = types[i % 3];
        snprintf(c.kind, sizeof c.kind, "%s", i / 3 % 2 ? "TN" : "NN");
        c.n = i / 6 % 2 ? 640 : 2043;
        c.pad[1] = 2048 - (int)c.n;
        c.m = 17 + 5 * (i / 6), c.k = 600;
        c.beta = 2;
        c.threads = c.n > 1000 ? 2 : 1;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2 * 8; i++) { /* a B that L2 holds, with not much beside it */
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i / 2 % 2 ? "TN" : "NN");
        c.m = 13 + 5 * (i / 4), c.n = 437;
        c.k = tg_device_limits(ctx).l2 / 10 * 7 / (int64_t)tg_type_size(c.type) / c.n;
        c.beta = 2;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2; i++) { /* 16 MiB of B, and more */
        gemm_case c = case_default("cpu");
        c.type = i ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = 13, c.n = i ? 2050 : 4100, c.k = 1100;
        c.beta = 2;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * tg_tile_count(); i++) { /* more of them than a block has, converted */
        gemm_case c = case_default("cpu");
        const int is_byte = i % 2; /* as many of them, in many pieces of k */
        tg_tile t = tg_tile_at(i / 2);
        t.warp = t.thread;
        t.block = (tg_mnk){t.thread.m, 2 * t.thread.n, 8};
        t.stages = t.slices = 1;
        tg_tile_print(&t, c.tile, sizeof c.tile);
        c.type = is_byte ? TG_I8 : TG_F16;
        c.b_type = c.type, c.c_type = is_byte ? TG_I32 : c.type;
        c.m = (is_byte ? 1 : 2) * t.thread.m, c.n = 100, c.k = 300;
        c.beta = 2;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* More of B for each thread than is near, in narrow strips: blocks of k are shared, and summed
 * apart; so they are where columns are ragged, and threads have pieces of two blocks or three. */
static void run_splits(tg_context *ctx)
{
    const tg_limits limits = tg_device_limits(ctx);
    const int is_large = limits.l2 >= 2 << 20;
    const int64_t least = is_large ? limits.l2 / 2 : 8 * limits.l2;
    static const tg_type types[] = {TG_F32, TG_F64, TG_F32,  TG_F64,  TG_F32, TG_F64,
                                    TG_F16, TG_F16, TG_BF16, TG_BF16, TG_I8};
    for (int i = 0; i < (int)(sizeof types / sizeof types[0]); i++) {
        gemm_case c = case_default("cpu");
        c.type = types[i];
        c.b_type = c.type, c.c_type = c.type == TG_I8 ? TG_I32 : c.type;
        snprintf(c.kind, sizeof c.kind, "%s", i == 3 ? "TN" : "NN");
        c.threads = 3 + i % 6;
        c.m = is_large ? 3 + 2 * (i % 6) : 1 + i % 4;
        c.n = 8192 / (int64_t)tg_type_size(c.type) + 8 * i;
        c.k = least * c.threads / (c.n * (int64_t)tg_type_size(c.type)) + 1;
        c.k = c.k < 1600 ? 1600 + i : c.k; /* some blocks of k */
        c.alpha = -1, c.beta = i == 7 ? 0 : 2;
        c.workspace = 1;
        tg_problem p = TG_PROBLEM_INIT;
        tg_plan plan = TG_PLAN_INIT;
        p.m = c.m, p.n = c.n, p.k = c.k;
        p.a = (tg_input){NULL, c.k, 1, 0, c.type};
        p.b = (tg_input){NULL, c.n, 1, 0, c.b_type};
        p.c = (tg_output){NULL, c.n, 1, 0, c.c_type};
        tg_force(ctx, NULL);
        tg_set_threads(ctx, c.threads);
        const int is_split = tg_pick(ctx, &p, &plan) == TG_OK && plan.splits > 1;
        const int may_have_words = c.type == TG_BF16 || c.type == TG_I8;
        CHECK_SAY(is_split || limits.vec_bytes < 32 || may_have_words, "%lldx%lldx%lld: %d splits",
                  (long long)c.m, (long long)c.n, (long long)c.k, plan.splits);
        tg_set_threads(ctx, 0);
        if (i == 4)
            c.way = WAY_POINTERS, c.batch = 2, c.share = 2, c.workspace = 0;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Small enough to be a step or two of a kernel, alone and a few of them. */
static void run_small(tg_context *ctx)
{
    for (int i = 0; i < 2 * 3 * 2 * 20; i++) {
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        c.beta = i / 2 % 3;
        c.batch = 1 + 2 * (i / 6 % 2);
        snprintf(c.kind, sizeof c.kind, "%s", c.batch > 1 ? "grrr" : "NN");
        c.m = c.n = c.k = 1 + i / 12;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* A few items that threads share in strips, and many that they share whole. */
static void run_items(tg_context *ctx)
{
    for (int i = 0; i < 2 * 2 * 8; i++) {
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "grrr");
        c.batch = i / 2 % 2 ? 5 : 40;
        c.threads = 2;
        c.m = 60 + i, c.n = 5 + 3 * i, c.k = 200;
        c.beta = 2;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Few columns, or rows, and many lines of the other operand side by side: whichever way C is
 * stored, once more with other data, in one block of k and in several. */
static void run_thin(tg_context *ctx)
{
    static const char *const kinds[] = {"TN", "TT", "cNN", "cNT"};
    static const int few[] = {2, 3, 7, 8, 12, 13, 16, 17}, ks[] = {2, 128, 140, 530};
    for (int i = 0; i < 4 * 8 * 4 * 2; i++) {
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", kinds[i / 2 % 4]);
        c.threads = 1 + i / 5 % 2;
        const int line = few[i / 8 % 8], lines = (c.threads == 1 ? 4 * line : 512) + i % 37;
        c.m = c.kind[0] == 'c' ? line : lines;
        c.n = c.kind[0] == 'c' ? lines : line;
        c.k = ks[i / 64];
        c.alpha = i % 3 ? 1 : -1;
        c.beta = i / 3 % 3;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Halves that become f32 as a whole, or words that are woven from a near B, in one piece of k and
 * in several, by one thread and shared out. */
static void run_halves(tg_context *ctx)
{
    static const int rows[] = {9, 33, 48, 64}, ks[] = {63, 300, 400};
    for (int i = 0; i < 2 * 2 * 2 * 4 * 3; i++) {
        gemm_case c = case_default("cpu");
        c.type = c.b_type = i % 2 ? TG_F16 : TG_BF16;
        c.c_type = i / 2 % 2 ? TG_F32 : c.type;
        c.threads = 1 + i / 4 % 2;
        snprintf(c.kind, sizeof c.kind, "%s", i % 5 ? "NN" : "TT");
        c.m = rows[i / 8 % 4] * c.threads, c.n = 40, c.k = ks[i / 32];
        c.beta = i / 4 % 3;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* A few rows of short types times columns along k, in blocks of it that end within what is read at
 * once: what is behind them is not to be used. */
static void run_lines(tg_context *ctx)
{
    static const int rows[] = {1, 2, 5, 8}, ks[] = {37, 520, 1100, 1184, 2400};
    for (int i = 0; i < 2 * 2 * 4 * 5; i++) {
        gemm_case c = case_default("cpu");
        c.type = c.b_type = i % 2 ? TG_F16 : TG_BF16;
        c.c_type = i / 2 % 2 ? TG_F32 : c.type;
        snprintf(c.kind, sizeof c.kind, "%s", i % 3 ? "NT" : "cTN");
        c.m = c.n = rows[i / 4 % 4];
        *(c.kind[0] == 'c' ? &c.m : &c.n) = 40;
        c.k = ks[i / 16];
        c.beta = i / 4 % 3;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Bytes, which are summed in f32 for some of k: lines of either operand along it, and a B in rows
 * that is near, or not, of as many panels as are multiplied side by side or a few more. */
static void run_bytes(tg_context *ctx)
{
    static const char *const kinds[] = {"NT", "cTN", "NN", "TN"};
    static const int ks[] = {35, 300, 530, 1090};
    const int64_t near = tg_device_limits(ctx).l2 / 512;
    for (int i = 0; i < 4 * 4 * 4 * 4; i++) {
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_U8 : TG_I8;
        c.b_type = i / 2 % 2 ? TG_U8 : TG_I8;
        c.c_type = TG_I32;
        snprintf(c.kind, sizeof c.kind, "%s", kinds[i / 4 % 4]);
        c.m = c.n = 1 + i / 16 % 4;
        *(c.kind[0] == 'c' ? &c.m : &c.n) = i / 4 % 4 < 2 ? 45 : near + 16 * (i / 16 % 3) + 1;
        c.k = ks[i / 64];
        c.alpha = -1, c.beta = i % 3;
        c.shift = i / 4 % 4;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* The same in blocks of k that end within what is read at once. */
static void run_odd_blocks(tg_context *ctx)
{
    static const tg_type types[] = {TG_F16, TG_BF16, TG_I8, TG_U8};
    for (int i = 0; i < 4 * 2 * tg_tile_count(); i++) {
        gemm_case c = case_default("cpu");
        tg_tile t = tg_tile_at(i / 8);
        t.warp = t.thread;
        t.block = (tg_mnk){t.thread.m, t.thread.n, 33};
        t.stages = t.slices = 1;
        tg_tile_print(&t, c.tile, sizeof c.tile);
        c.type = c.b_type = types[i % 4];
        c.c_type = tg_type_size(c.type) == 1 ? TG_I32 : c.type;
        snprintf(c.kind, sizeof c.kind, "%s", i / 4 % 2 ? "NT" : "cTN");
        c.m = c.n = 1 + i % 4;
        *(c.kind[0] == 'c' ? &c.m : &c.n) = 40;
        c.k = 120;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Thread tiles of all rows, in blocks that are filled in, shrink to the problem or are refused; so
 * do low ones, of which some are below one another. */
static void run_shrunk(tg_context *ctx)
{
    for (int i = 0; i < 2 * 2 * tg_tile_count(); i++) {
        gemm_case c = case_default("cpu");
        tg_tile t = tg_tile_at(i / 4);
        const int is_low = i / 2 % 2;
        if (is_low)
            t.thread.m = 2;
        t.block = (tg_mnk){0, 0, 0};
        t.warp = (tg_mn){0, 0};
        t.stages = t.slices = 1;
        tg_tile_print(&t, c.tile, sizeof c.tile);
        c.type = c.b_type = c.c_type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = is_low ? 6 : t.thread.m > 1 ? t.thread.m - 1 : 1;
        c.n = is_low ? t.thread.n : t.thread.n > t.vec ? t.thread.n - t.vec : 1;
        c.k = 9;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Columns that whole vectors leave over: of few rows and many, of several blocks of them, with rows
 * of A a page apart, and alone. */
static void run_narrow(tg_context *ctx)
{
    static const struct {
        int64_t m, vectors;
    } sizes[] = {{9, 3}, {34, 0}, {77, 5}, {400, 3}, {601, 1}, {1030, 6}};
    gemm_case tall = case_default("cpu");
    snprintf(tall.kind, sizeof tall.kind, "NN");
    tall.m = 1100000, tall.n = 6, tall.k = 17;
    case_run(ctx, "test_gemm", &tall, NULL);
    for (int i = 0; i < 2 * 8 * 6; i++) {
        gemm_case c = case_default("cpu");
        const int vec = i % 2 ? 8 : 16, page = i % 2 ? 512 : 1024;
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = sizes[i / 16].m, c.n = sizes[i / 16].vectors * vec + 1 + i / 2 % 8;
        c.k = 300 + (i + i / 8) % 4;
        c.pad[0] = c.m == 77 ? page - (int)c.k : 0;
        c.alpha = i % 3 ? 1 : -1, c.beta = i % 5 % 3;
        c.threads = 1 + i / 4 % 3;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Threads and items of a list have their parts of a workspace side by side, each from a line on. */
static void run_workspaces(tg_context *ctx)
{
    const tg_type types[] = {TG_F16, TG_BF16, TG_I8, TG_F32};
    for (int i = 0; i < 4 * 60; i++) {
        tg_problem p = TG_PROBLEM_INIT;
        const tg_type type = types[i % 4];
        size_t bytes = 0;
        p.m = 5 + i, p.n = 7 + i / 5, p.k = 187 - i / 3;
        p.a = (tg_input){&p, p.k, 1, 0, type};
        p.b = (tg_input){&p, p.n, 1, 0, type};
        p.c = (tg_output){&p, p.n, 1, 0, type == TG_I8 ? TG_I32 : type};
        CHECK(tg_gemm_workspace(ctx, &p, &bytes) == TG_OK);
        CHECK_SAY(bytes % 64 == 0, "%lldx%lldx%lld %s: a workspace of %zu bytes", (long long)p.m,
                  (long long)p.n, (long long)p.k, tg_type_name(type), bytes);
    }
}

/* What a packed operand changes in the plan counts for the workspace too. */
static void run_packed(tg_context *ctx)
{
    for (int i = 0; i < 2 * 2 * 2; i++) {
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i / 2 % 2 ? "TN" : "NN");
        c.way = i / 4 ? WAY_PACKED_A : WAY_PACKED_B;
        c.m = 256, c.n = 512, c.k = 512;
        c.threads = 2;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 4 * 8; i++) { /* few rows, and some panels of B side by side */
        gemm_case c = case_default("cpu");
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.way = WAY_PACKED_B;
        c.m = 1 + i / 2 % 4, c.n = 16 * (1 + i / 8) + 5, c.k = 600;
        c.alpha = -1, c.beta = i % 3;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    const tg_type shorts[] = {TG_F16, TG_BF16, TG_I8, TG_U8};
    const int64_t rows[] = {1, 2, 6, 20, 70, 500}, k[] = {600, 5, 1003};
    for (int i = 0; i < 2 * 4 * 6 * 3; i++) { /* converted: as streams, or when they are staged */
        gemm_case c = case_default("cpu");
        c.type = shorts[i / 2 % 4];
        c.way = i % 2 ? WAY_PACKED_A : WAY_PACKED_B;
        snprintf(c.kind, sizeof c.kind, "%s", i / 8 % 2 ? "TT" : "NN");
        c.m = rows[i / 8 % 6], c.n = i % 5 ? 60 : 133, c.k = k[i / 48];
        c.alpha = -1, c.beta = i % 3;
        c.threads = 1 + i % 3;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

void gemm_cpu(tg_context *ctx)
{
    run_few_rows(ctx);
    run_splits(ctx);
    run_small(ctx);
    run_items(ctx);
    run_halves(ctx);
    run_lines(ctx);
    run_bytes(ctx);
    run_odd_blocks(ctx);
    run_shrunk(ctx);
    run_packed(ctx);
    run_narrow(ctx);
    run_workspaces(ctx);
    run_thin(ctx);
}
