/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact multiplication: integers, compared with ==, for every tiling x type x way of storing.
 *
 *     test_gemm [BACKEND] [--thin | --thorough] [--seed N]     the whole suite
 *     test_gemm BACKEND TYPE TILE KIND MxNxK [words]           one case, as a REPRO line says
 *
 * The types other than f32 and f64 have fewer cases each, which their lines share out.
 * For each tiling and type, every dimension of a case (m, n, k, storage, scalars, batch ...) runs
 * through all its values; how the values meet is hashed, so that the pairs are covered over the
 * tilings. Shapes follow the tiling: one less, as much, and one more than each of its levels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "elements.h"
#include "test.h"

enum { MAX_SIZES = 24 };

typedef struct sizes {
    int count;
    int64_t value[MAX_SIZES];
} sizes;

typedef struct effort {
    int cases;    /* for each tiling and type */
    int random;   /* cases on top */
    int64_t work; /* multiplications in one case, at most */
    uint64_t seed;
} effort;

static int compare(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static void add(sizes *s, int64_t value, int64_t limit)
{
    for (int i = 0; i < s->count; i++)
        if (s->value[i] == value)
            return;
    if (value >= 0 && value <= limit && s->count < MAX_SIZES)
        s->value[s->count++] = value;
}

static sizes sizes_around(int thread, int unit, int warp, int block, int64_t limit)
{
    const int level[] = {thread, unit, warp, block};
    sizes s = {0, {0}};
    add(&s, 0, limit);
    add(&s, 1, limit);
    for (int i = 0; i < 4; i++) {
        add(&s, level[i] - 1, limit);
        add(&s, level[i], limit);
        add(&s, level[i] + 1, limit);
        add(&s, 2 * (int64_t)level[i] + 3, limit);
    }
    qsort(s.value, (size_t)s.count, sizeof s.value[0], compare);
    return s;
}

static sizes sizes_of_k(int block_k, int64_t limit)
{
    const int64_t values[] = {0, 1, block_k - 1, block_k, block_k + 1, 3 * (int64_t)block_k + 2};
    sizes s = {0, {0}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        add(&s, values[i], limit);
    qsort(s.value, (size_t)s.count, sizeof s.value[0], compare);
    return s;
}

/* The value with this index of a dimension of `count` values in case `i`: within each run of
 * `count` cases every value comes once, in an order that is rotated by a hash. */
static int turn(int i, int dimension, int count, uint64_t seed)
{
    uint64_t h = test_hash(seed ^ ((uint64_t)dimension << 32) ^ (uint64_t)(i / count));
    return (int)(((uint64_t)(i % count) * (h & 1 ? 1 : (uint64_t)count - 1) + (h >> 8)) %
                 (uint64_t)count);
}

static void next_smaller(int64_t *value, const sizes *s)
{
    int64_t smaller = *value;
    for (int i = 0; i < s->count && s->value[i] < *value; i++)
        smaller = s->value[i];
    *value = smaller;
}

/* Makes the case smaller until it is done quickly, one of its sizes (the hero) last. */
static void cap_work(gemm_case *c, const sizes size[3], int hero, int64_t work)
{
    int64_t *value[3] = {&c->m, &c->n, &c->k};
    for (;;) {
        int64_t m = c->m + 1, n = c->n + 1, k = c->k + 1;
        if (m * n * k * (c->batch + 1) <= 2 * work)
            return;
        if (c->batch > 1) {
            c->batch = 1;
            continue;
        }
        int largest = hero;
        for (int d = 0; d < 3; d++)
            if (d != hero && *value[d] > 1 && (largest == hero || *value[d] > *value[largest]))
                largest = d;
        int64_t before = *value[largest];
        next_smaller(value[largest], &size[largest]);
        if (*value[largest] == before)
            return;
    }
}

static void set_kind(gemm_case *c, int i, uint64_t seed)
{
    static const char *const blas[] = {"NN",  "NT",  "TN", "TT", "cNN", "cNT",
                                       "cTN", "cTT", "CN", "NC", "cCC"};
    enum { BLAS = sizeof blas / sizeof blas[0], GENERAL = 16 };
    int way = turn(i, 4, BLAS + GENERAL, seed);
    if (way < BLAS) {
        snprintf(c->kind, sizeof c->kind, "%s", blas[way]);
        return;
    }
    static const char layouts[] = LAYOUTS;
    const int inputs = (int)strlen(layouts);
    c->kind[0] = 'g';
    c->kind[1] = layouts[turn(i, 5, inputs, seed)];
    c->kind[2] = layouts[turn(i, 6, inputs, seed)];
    c->kind[3] = layouts[turn(i, 7, OUTPUT_LAYOUTS, seed)];
    c->kind[4] = '\0';
    const int batches[] = {1, 3, 1, 2, 3, 1, 0};
    c->batch = batches[turn(i, 8, 7, seed)];
    c->share = turn(i, 9, 4, seed);
}

static void set_rest(gemm_case *c, int i, uint64_t seed)
{
    static const int alphas[] = {1, -1, 2, 0, 1}, betas[] = {0, 1, -1, 2}, pads[] = {0, 3, 1, 8, 0};
    c->alpha = alphas[turn(i, 10, 5, seed)];
    c->beta = betas[turn(i, 11, 4, seed)];
    for (int x = 0; x < 3; x++)
        c->pad[x] = pads[turn(i, 12 + x, 5, seed)];
    c->threads = 1 + turn(i, 15, 3, seed);
    c->at_start = turn(i, 16, 2, seed);
    c->shift = turn(i, 17, 4, seed) == 3;
    c->workspace = turn(i, 18, 3, seed) == 2;
    c->seed = 1 + turn(i, 19, 9, seed);
    const int way = turn(i, 20, 2 * WAYS, seed); /* every other case is plain */
    c->way = way < WAYS ? (case_way)way : WAY_PLAIN;
}

/* Enough work for several threads, whatever the tiling. */
static void make_heavy(gemm_case *c, uint64_t h)
{
    c->m = 90 + (int64_t)(h >> 8) % 90;
    c->n = 90 + (int64_t)(h >> 16) % 90;
    c->k = 60 + (int64_t)(h >> 24) % 100;
    c->batch = c->batch ? c->batch : 1;
    c->threads = 2 + (int)(h >> 32) % 3;
}

/* The same in a shape of any sort, from a long dot product to a large C of k = 1. */
static void make_lopsided(gemm_case *c, uint64_t h)
{
    int64_t *const size[3] = {&c->m, &c->n, &c->k};
    const int all = 20, of_m = (int)(h >> 8 & 255) % (all + 1);
    const int of_n = (int)(h >> 16 & 255) % (all + 1 - of_m);
    const int bits[3] = {of_m, of_n, all - of_m - of_n};
    for (int d = 0; d < 3; d++)
        *size[d] = ((int64_t)1 << bits[d]) +
                   (int64_t)(test_hash(h + (uint64_t)d) % ((uint64_t)1 << bits[d]));
    c->batch = c->batch ? c->batch : 1;
    c->threads = 1 + (int)(h >> 32 & 7);
}

/* All cases of one tiling and type; 0 if the device refuses it. */
static int run_tile(tg_context *ctx, const char *backend, const char *name, const tg_tile *tile,
                    int line, const effort *e)
{
    const element_line types = element_lines[line];
    const int is_plain = line < PLAIN_LINES;
    gemm_case c = case_default(backend);
    tg_limits limits = tg_device_limits(ctx);
    tg_tile t = tg_tile_resolve(ctx, tile, types.a);
    int unit_m = t.thread.m * limits.lanes.m, unit_n = t.thread.n * limits.lanes.n;
    const sizes size[3] = {sizes_around(t.thread.m, unit_m, t.warp.m, t.block.m, e->work / 4),
                           sizes_around(t.thread.n, unit_n, t.warp.n, t.block.n, e->work / 4),
                           sizes_of_k(t.block.k, e->work / 4)};
    uint64_t seed = test_hash(e->seed ^ ((uint64_t)(line + 1) << 56));
    for (const char *letter = name; *letter; letter++)
        seed = test_hash(seed ^ (uint64_t)(unsigned char)*letter);
    const int first = is_plain ? 0 : (int)(seed % 12);
    const int cases = is_plain ? e->cases : (e->cases + 23) / 24;
    for (int i = first; i < first + cases; i++) {
        c = case_default(backend);
        c.type = types.a, c.b_type = types.b, c.c_type = types.c;
        snprintf(c.tile, sizeof c.tile, "%s", name);
        c.m = size[0].value[turn(i, 1, size[0].count, seed)];
        c.n = size[1].value[turn(i, 2, size[1].count, seed)];
        c.k = size[2].value[turn(i, 3, size[2].count, seed)];
        set_kind(&c, i, seed);
        set_rest(&c, i, seed);
        cap_work(&c, size, i % 3, e->work);
        if (i % 6 == 2) { /* every remainder of the thread tile */
            c.m = 1 + (int64_t)(test_hash(seed + (uint64_t)i) % (uint64_t)(3 * unit_m));
            c.n = 1 + (int64_t)(test_hash(seed - (uint64_t)i) % (uint64_t)(3 * unit_n));
        }
        if (i % 12 == 5)
            make_heavy(&c, test_hash(seed + (uint64_t)i));
        if (case_run(ctx, "test_gemm", &c, NULL) == CASE_REFUSED)
            return 0;
    }
    return 1;
}

/* The row's thread tile, vec and form in a block of a few units, so that all loops over blocks,
 * warps and repeats are ragged in small shapes. */
static tg_tile small_block(int row, int variant, tg_mn lanes)
{
    static const int slices[] = {1, 2, 1, 4, 3, 1};
    tg_tile t = tg_tile_at(row);
    int unit_m = t.thread.m * lanes.m, unit_n = t.thread.n * lanes.n;
    t.warp.m = unit_m * (1 + variant / 2 % 2);
    t.warp.n = unit_n * (1 + variant % 3);
    t.block.m = t.warp.m * (1 + (variant + row) % 3);
    t.block.n = t.warp.n * (1 + variant % 2);
    t.slices = slices[(row + variant) % 6];
    t.block.k = t.slices * (2 + 7 * variant % 5);
    t.stages = (row + variant) % 4;
    return t;
}

static void run_all(tg_context *ctx, const char *backend, const effort *e)
{
    const tg_mn lanes = tg_device_limits(ctx).lanes;
    const tg_tile free_guess = {{64, 256, 256}, {64, 64}, {8, 32}, 1, 1, 1, TG_OUTER_T, {1, 1, 1}};
    char text[96];
    int rows = 0, tiles = 0;
    for (int line = 0; line < ELEMENT_LINES; line++)
        if (case_is_known(ctx, element_lines[line].a) && case_is_known(ctx, element_lines[line].b))
            run_tile(ctx, backend, "free", &free_guess, line, e);
    const int pairs = ELEMENT_LINES * tg_tile_count();
    for (int i = 0; i < pairs; i++) {
        const int pair = i * TEST_LEAP % pairs, line = pair % ELEMENT_LINES,
                  row = pair / ELEMENT_LINES;
        if (!case_is_known(ctx, element_lines[line].b)) /* a GPU may multiply i8, and no u8 */
            continue;
        tg_tile t = tg_tile_at(row);
        rows += run_tile(ctx, backend, tg_tile_name(row), &t, line, e);
        for (int variant = 0; variant < 2; variant++) {
            t = small_block(row, variant, lanes);
            tg_tile_print(&t, text, sizeof text);
            tiles += run_tile(ctx, backend, text, &t, line, e);
        }
    }
    test_print("%d rows and %d other tilings on %s, all types counted\n", rows, tiles,
               tg_device_name(ctx));
    int legal = 0;
    for (int line = 0; line < ELEMENT_LINES; line++)
        for (int row = 0; row < tg_tile_count(); row++) {
            tg_tile t = tg_tile_at(row);
            legal += case_is_known(ctx, element_lines[line].b) &&
                     tg_tile_refusal(ctx, &t, element_lines[line].a) == NULL;
        }
    CHECK_SAY(rows == legal && rows >= 20, "%d of %d rows ran", rows, legal);
}

static void run_random(tg_context *ctx, const char *backend, const effort *e)
{
    const tg_mn lanes = tg_device_limits(ctx).lanes;
    const int is_host = strcmp(backend, "cpu") == 0;
    for (int i = 0; i < e->random; i++) {
        uint64_t h = test_hash(e->seed + 77 + (uint64_t)i);
        gemm_case c = case_default(backend);
        tg_tile t = small_block((int)(h % (uint64_t)tg_tile_count()), (int)((h >> 20) % 12), lanes);
        const char *name = tg_tile_name((int)(h % (uint64_t)tg_tile_count()));
        const int is_any = is_host && (h >> 44 & 7) == 0; /* an emulated GPU has its time */
        const int line = (int)(is_any ? (h >> 48) % ELEMENT_LINES : h >> 40 & 1);
        const element_line types = element_lines[line];
        if (!case_is_known(ctx, types.a) || !case_is_known(ctx, types.b))
            continue;
        c.type = types.a, c.b_type = types.b, c.c_type = types.c;
        if (h >> 41 & 1)
            tg_tile_print(&t, c.tile, sizeof c.tile);
        else if (h >> 42 & 1)
            snprintf(c.tile, sizeof c.tile, "%s", name);
        int64_t *size[3] = {&c.m, &c.n, &c.k};
        for (int d = 0; d < 3; d++) {
            uint64_t g = test_hash(h + (uint64_t)d);
            *size[d] = (int64_t)((g >> 8) % (g & 3 ? 40 : g & 4 ? 130 : 6));
        }
        set_kind(&c, (int)(h >> 34), h);
        set_rest(&c, (int)(h >> 34), h);
        if (h % 32 == 0)
            make_heavy(&c, h);
        if (h % (line < PLAIN_LINES ? 16 : 4) == 1 && is_host && c.tile[0] != 'v' &&
            !strchr(c.tile, '/'))
            make_lopsided(&c, h);
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Shared out to threads, a few rows and much of B have a way of their own. */
static void run_few_rows(tg_context *ctx, const char *backend)
{
    for (int i = 0; i < 2 * 2 * 16; i++) {
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i / 2 % 2 ? "NT" : "NN");
        c.m = 1 + i / 4, c.n = 20, c.k = 100000 / c.m; /* more threads than vectors */
        c.beta = 2;
        c.threads = 4;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2; i++) { /* strips of rows, and panels of B packed on their way */
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = 200 + i / 2 * 100, c.n = i % 2 ? 100 : 300, c.k = 300;
        c.threads = 2;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2 * 4 * 3; i++) { /* lines a page apart, or nearly; shifted */
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NT");
        c.m = 1 + i / 4 % 4, c.n = 35, c.k = (i % 2 ? 512 : 1024) + i / 2 % 2;
        c.shift = 5 * (i / 16);
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * 2 * 4 * 4; i++) { /* of halves, in one block of k and in several */
        gemm_case c = case_default(backend);
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
        gemm_case c = case_default(backend);
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
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i / 2 % 2 ? "TN" : "NN");
        c.m = 13 + 5 * (i / 4), c.n = 437;
        c.k = tg_device_limits(ctx).l2 / 10 * 7 / (int64_t)tg_type_size(c.type) / c.n;
        c.beta = 2;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2; i++) { /* 16 MiB of B, and more */
        gemm_case c = case_default(backend);
        c.type = i ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "NN");
        c.m = 13, c.n = i ? 2050 : 4100, c.k = 1100;
        c.beta = 2;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
    for (int i = 0; i < 2 * tg_tile_count(); i++) { /* more of them than a block has, converted */
        gemm_case c = case_default(backend);
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
static void run_splits(tg_context *ctx, const char *backend)
{
    const tg_limits limits = tg_device_limits(ctx);
    const int is_large = limits.l2 >= 2 << 20;
    const int64_t least = is_large ? limits.l2 / 2 : 8 * limits.l2;
    for (int i = 0; i < 2 * 3; i++) {
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i == 3 ? "TN" : "NN");
        c.threads = 3 + i;
        c.m = is_large ? 3 + 2 * i : 1 + i % 4, c.n = (i % 2 ? 1024 : 2048) + 8 * i;
        c.k = least * c.threads / (c.n * (int64_t)tg_type_size(c.type)) + 1;
        c.k = c.k < 1600 ? 1600 + i : c.k; /* some blocks of k */
        c.alpha = -1, c.beta = 2;
        c.workspace = 1;
        tg_problem p = TG_PROBLEM_INIT;
        tg_plan plan = TG_PLAN_INIT;
        p.m = c.m, p.n = c.n, p.k = c.k;
        p.a = (tg_input){NULL, c.k, 1, 0, c.type};
        p.b = (tg_input){NULL, c.n, 1, 0, c.type};
        p.c = (tg_output){NULL, c.n, 1, 0, c.type};
        tg_force(ctx, NULL);
        tg_set_threads(ctx, c.threads);
        const int is_split = tg_pick(ctx, &p, &plan) == TG_OK && plan.splits > 1;
        CHECK_SAY(is_split || limits.vec_bytes < 32, "%lldx%lldx%lld: %d splits", (long long)c.m,
                  (long long)c.n, (long long)c.k, plan.splits);
        tg_set_threads(ctx, 0);
        if (i == 4)
            c.way = WAY_POINTERS, c.batch = 2, c.share = 2, c.workspace = 0;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* Small enough to be a step or two of a kernel, alone and a few of them. */
static void run_small(tg_context *ctx, const char *backend)
{
    for (int i = 0; i < 2 * 3 * 2 * 20; i++) {
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        c.beta = i / 2 % 3;
        c.batch = 1 + 2 * (i / 6 % 2);
        snprintf(c.kind, sizeof c.kind, "%s", c.batch > 1 ? "grrr" : "NN");
        c.m = c.n = c.k = 1 + i / 12;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* A few items that threads share in strips, and many that they share whole. */
static void run_items(tg_context *ctx, const char *backend)
{
    for (int i = 0; i < 2 * 2 * 8; i++) {
        gemm_case c = case_default(backend);
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
static void run_thin(tg_context *ctx, const char *backend)
{
    static const char *const kinds[] = {"TN", "TT", "cNN", "cNT"};
    static const int few[] = {2, 3, 7, 8, 12, 13, 16, 17}, ks[] = {2, 128, 140, 530};
    for (int i = 0; i < 4 * 8 * 4 * 2; i++) {
        gemm_case c = case_default(backend);
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

/* What a packed operand changes in the plan counts for the workspace too. */
static void run_packed(tg_context *ctx, const char *backend)
{
    for (int i = 0; i < 2 * 2 * 2; i++) {
        gemm_case c = case_default(backend);
        c.type = i % 2 ? TG_F64 : TG_F32;
        snprintf(c.kind, sizeof c.kind, "%s", i / 2 % 2 ? "TN" : "NN");
        c.way = i / 4 ? WAY_PACKED_A : WAY_PACKED_B;
        c.m = 256, c.n = 512, c.k = 512;
        c.threads = 2;
        c.workspace = 1;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

static int run_one(tg_context *ctx, const char *backend, int count, char **words)
{
    gemm_case c = case_default(backend);
    if (!case_parse(&c, count, words))
        return 2;
    if (case_run(ctx, "test_gemm", &c, NULL) == CASE_REFUSED)
        test_print("%s is no tiling for %s here\n", c.tile, tg_type_name(c.type));
    return test_close();
}

int main(int argc, char **argv)
{
    effort e = {160, 6000, 400000, 1};
    char backend[16], **words = argv + 1;
    int count = argc - 1, status = 2;
    tg_context *ctx = case_open(&count, &words, backend);
    if (!ctx)
        return 1;
    if (count > 0 && words[0][0] != '-') {
        status = run_one(ctx, backend, count, words);
        tg_close(ctx);
        return status;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "--thin") == 0)
            e.cases = 6, e.random = 300, e.work = 30000;
        else if (strcmp(words[i], "--thorough") == 0)
            e.cases = 2400, e.random = 80000, e.work = 2000000;
        else if (strcmp(words[i], "--seed") == 0 && i + 1 < count)
            e.seed = strtoull(words[++i], NULL, 10);
    }
    run_all(ctx, backend, &e);
    run_random(ctx, backend, &e);
    if (strcmp(backend, "cpu") == 0) {
        run_few_rows(ctx, backend);
        run_splits(ctx, backend);
        run_small(ctx, backend);
        run_items(ctx, backend);
        run_packed(ctx, backend);
        run_thin(ctx, backend);
    }
    tg_close(ctx);
    return test_close();
}
