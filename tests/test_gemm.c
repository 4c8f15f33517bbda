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
    if (strcmp(backend, "cpu") == 0)
        gemm_cpu(ctx);
    tg_close(ctx);
    return test_close();
}
