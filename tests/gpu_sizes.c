/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row with what is easy to get wrong on a device, and sizes that a CPU would take too long
 * for: many batch items, and matrices of more than 2^31 elements. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "gpu.h"
#include "test.h"

/* ---------------------------------------------------------------------------------------- rows */

/* Bases off by one element, k = 0 with nothing to read, alpha = 0, NaN in C that beta = 0 drops. */
static int run_row(tg_context *ctx, const char *tile, tg_type type)
{
    static const struct {
        const char *kind;
        int m, n, k, alpha, beta, shift;
    } table[] = {
        {"NN", 130, 131, 67, 1, 0, 1},  {"TT", 65, 129, 40, -1, 2, 1}, {"cNT", 70, 66, 33, 2, 1, 1},
        {"NN", 133, 70, 0, 1, 0, 0},    {"TN", 70, 133, 0, 2, 3, 1},   {"NT", 40, 50, 60, 0, 0, 0},
        {"gsnt", 50, 40, 30, 0, -1, 1}, {"gmwn", 67, 71, 35, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        gemm_case c = case_default(gpu_backend);
        c.type = type;
        snprintf(c.tile, sizeof c.tile, "%s", tile);
        snprintf(c.kind, sizeof c.kind, "%s", table[i].kind);
        c.m = table[i].m, c.n = table[i].n, c.k = table[i].k;
        c.alpha = table[i].alpha, c.beta = table[i].beta;
        c.shift = table[i].shift;
        if (case_run(ctx, "test_gemm", &c, NULL) == CASE_REFUSED)
            return 0;
    }
    return 1;
}

void test_every_row(void)
{
    tg_context *ctx = gpu_open(0);
    int rows = 0;
    for (int row = -1; row < tg_tile_count(); row++) {
        const char *name = row < 0 ? "free" : tg_tile_name(row);
        rows += run_row(ctx, name, TG_F32) + run_row(ctx, name, TG_F64);
    }
    CHECK_SAY(rows > 30, "only %d rows ran", rows);
    tg_close(ctx);
}

/* --------------------------------------------------------------------------------------- edges */

/* One row or one column more than tiles, or both: a kernel may do them beside the tiles (tail.h).
 */
static void run_edges(tg_context *ctx, const char *row, tg_mnk block)
{
    static const struct {
        const char *kind;
        int m, n, k, alpha, beta, shift;
    } table[] = {{"NN", 1, 1, 37, 1, 0, 0},   {"NN", 1, 0, 200, -1, 2, 1},
                 {"NN", 0, 1, 33, 2, 1, 0},   {"TN", 1, 1, 130, 1, 1, 1},
                 {"TT", 1, 1, 1, 2, 0, 0},    {"NT", 1, 0, 65, 1, -1, 0},
                 {"cNN", 1, 1, 197, 1, 2, 0}, {"gsnt", 0, 1, 48, 1, 0, 1}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        gemm_case c = case_default(gpu_backend);
        snprintf(c.tile, sizeof c.tile, "%s", row);
        snprintf(c.kind, sizeof c.kind, "%s", table[i].kind);
        c.m = (255 / block.m + 1) * block.m + table[i].m;
        c.n = (255 / block.n + 1) * block.n + table[i].n;
        c.k = table[i].k;
        c.alpha = table[i].alpha, c.beta = table[i].beta;
        c.shift = table[i].shift;
        case_run(ctx, "test_gemm", &c, NULL);
    }
}

/* So few tiles that each is split, and a cluster of blocks sums its parts where they are, beside
 * edges whose blocks are no multiple of a cluster's. */
static void run_split_edges(tg_context *ctx, const char *row, const tg_tile *tile)
{
    static const struct {
        int m, n; /* tiles */
    } table[] = {{6, 3}, {5, 4}, {8, 5}};
    CHECK(!tg_force(ctx, tile));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const int64_t m = table[i].m * tile->block.m + 1, n = table[i].n * tile->block.n + 1;
        product p;
        if (CHECK(product_make(&p, ctx, m, n, 1023)) && CHECK(product_fill(&p, 1)) &&
            CHECK_SAY(!product_start(&p), "%s: %s", row, tg_last_error(ctx)))
            CHECK_SAY(product_is_right(&p), "%s, %lldx%lldx1023 is wrong", row, (long long)m,
                      (long long)n);
        product_drop(&p);
    }
    CHECK(!tg_force(ctx, NULL));
}

void test_edges(void)
{
    tg_context *ctx = gpu_open(0);
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile tile = tg_tile_at(row);
        if (tile.stages < 3 || tg_tile_refusal(ctx, &tile, TG_F32))
            continue;
        run_edges(ctx, tg_tile_name(row), tile.block);
        run_split_edges(ctx, tg_tile_name(row), &tile);
    }
    tg_close(ctx);
}

/* --------------------------------------------------------------------------------------- waves */

/* Two tiles for each unit and some more: those of the last wave are split. */
void test_waves(void)
{
    enum { ACROSS = 16 };
    tg_context *ctx = gpu_open(0);
    const int64_t down = 2 * tg_device_limits(ctx).units / ACROSS + 1;
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile tile = tg_tile_at(row);
        if (tile.stages < 3 || tg_tile_refusal(ctx, &tile, TG_F32))
            continue;
        product p;
        CHECK(!tg_force(ctx, &tile));
        if (CHECK(product_make(&p, ctx, down * tile.block.m, (int64_t)ACROSS * tile.block.n,
                               10 * (int64_t)tile.block.k)) &&
            CHECK(product_fill(&p, 1)) && CHECK(!product_start(&p)))
            CHECK_SAY(product_is_right(&p), "%s is wrong", tg_tile_name(row));
        product_drop(&p);
    }
    tg_close(ctx);
}

/* ----------------------------------------------------------------------------------- addresses */

enum { HIGH = 68, BROAD = 132, DEEP = 100, PLACE = BROAD * DEEP + 64 }; /* lines are vectors' */

typedef struct placed {
    float *host, *device; /* from device[0] on, and once more from device[PLACE + 1] on */
} placed;

static int place(tg_context *ctx, placed *x, uint64_t seed)
{
    void *memory = NULL;
    x->host = malloc(PLACE * sizeof(float));
    if (!x->host || tg_alloc(ctx, (2 * PLACE + 1) * sizeof(float), &memory))
        return 0;
    x->device = memory;
    for (int i = 0; i < PLACE; i++)
        x->host[i] = (float)(test_hash((uint64_t)i + (seed << 32)) % 9) - 4;
    return !tg_upload(ctx, x->device, x->host, PLACE * sizeof(float)) &&
           !tg_upload(ctx, x->device + PLACE + 1, x->host, PLACE * sizeof(float));
}

static int wrong_elements(const tg_problem *p, const float *a, const float *b, const float *c)
{
    int wrong = 0;
    for (int i = 0; i < HIGH; i++)
        for (int j = 0; j < BROAD; j++) {
            float sum = 0;
            for (int k = 0; k < DEEP; k++)
                sum += a[i * p->a.row_stride + k * p->a.col_stride] *
                       b[k * p->b.row_stride + j * p->b.col_stride];
            wrong += sum != c[i * BROAD + j];
        }
    return wrong;
}

/* Operands whose bases are off by one element, each alone and all: each takes its own way in. */
static void run_addresses(tg_context *ctx, const char *row, const placed x[3])
{
    static float c[PLACE];
    for (int i = 0; i < 4 * 8; i++) {
        const int at = i % 4, bt = at / 2, odd = i / 4;
        const float *of[3];
        for (int j = 0; j < 3; j++)
            of[j] = x[j].device + (odd >> j & 1 ? PLACE + 1 : 0);
        tg_problem p = TG_PROBLEM_INIT;
        p.m = HIGH, p.n = BROAD, p.k = DEEP;
        p.a = (tg_input){of[0], at % 2 ? 1 : DEEP, at % 2 ? HIGH : 1, 0, TG_F32};
        p.b = (tg_input){of[1], bt ? 1 : BROAD, bt ? DEEP : 1, 0, TG_F32};
        p.c = (tg_output){(void *)(uintptr_t)of[2], BROAD, 1, 0, TG_F32};
        for (int e = 0; e < PLACE; e++)
            c[e] = NAN;
        CHECK(!tg_upload(ctx, p.c.data, c, sizeof c));
        CHECK_SAY(!tg_gemm(ctx, &p), "%s: %s", row, tg_last_error(ctx));
        CHECK(!tg_download(ctx, c, p.c.data, sizeof c));
        const int wrong = wrong_elements(&p, x[0].host, x[1].host, c);
        CHECK_SAY(wrong == 0, "%s %s%s, bases of%s%s%s off by one: %d elements are wrong", row,
                  at % 2 ? "T" : "N", bt ? "T" : "N", odd & 1 ? " A" : "", odd & 2 ? " B" : "",
                  odd & 4 ? " C" : "", wrong);
    }
}

void test_addresses(void)
{
    tg_context *ctx = gpu_open(0);
    placed x[3] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    int rows = 0;
    if (CHECK(place(ctx, &x[0], 1) && place(ctx, &x[1], 2) && place(ctx, &x[2], 3)))
        for (int row = 0; row < tg_tile_count(); row++) {
            const tg_tile tile = tg_tile_at(row);
            if (tg_tile_refusal(ctx, &tile, TG_F32))
                continue;
            CHECK(!tg_force(ctx, &tile));
            run_addresses(ctx, tg_tile_name(row), x);
            rows++;
        }
    CHECK_SAY(rows > 20, "only %d rows ran", rows);
    for (int i = 0; i < 3; i++) {
        free(x[i].host);
        CHECK(!tg_free(ctx, x[i].device));
    }
    tg_close(ctx);
}

/* --------------------------------------------------------------------------------------- batch */

enum { ITEMS = 70000, M = 3, N = 2, K = 5 };

typedef struct items {
    float a[ITEMS][M][K], b[ITEMS][K][N], c[ITEMS][M][N];
} items;

static int count_wrong_items(const items *x)
{
    int wrong = 0;
    for (int item = 0; item < ITEMS; item++)
        for (int e = 0; e < M * N; e++) {
            float sum = 0;
            for (int p = 0; p < K; p++)
                sum += x->a[item][e / N][p] * x->b[item][p][e % N];
            wrong += sum != x->c[item][e / N][e % N];
        }
    return wrong;
}

/* Grids of blocks have 65,535 at most in two of their directions. */
static void run_batch(tg_context *ctx, items *host, items *device, const char *tile_name)
{
    tg_tile tile = tg_tile_at(tg_tile_find(tile_name));
    if (tile.vec && tg_tile_refusal(ctx, &tile, TG_F32))
        return;
    tg_problem p = TG_PROBLEM_INIT;
    p.m = M, p.n = N, p.k = K, p.batch = ITEMS;
    p.a = (tg_input){device->a, K, 1, M * K, TG_F32};
    p.b = (tg_input){device->b, N, 1, K * N, TG_F32};
    p.c = (tg_output){device->c, N, 1, M * N, TG_F32};
    for (int i = 0; i < ITEMS * M * N; i++)
        ((float *)host->c)[i] = NAN;
    CHECK(!tg_force(ctx, tile.vec ? &tile : NULL) && !tg_upload(ctx, device, host, sizeof *host));
    CHECK_SAY(!tg_gemm(ctx, &p), "%s: %s", tile_name, tg_last_error(ctx));
    CHECK(!tg_download(ctx, host, device, sizeof *host));
    CHECK_SAY(count_wrong_items(host) == 0, "%s: %d elements of a batch are wrong", tile_name,
              count_wrong_items(host));
}

void test_batch(void)
{
    tg_context *ctx = gpu_open(0);
    items *host = malloc(sizeof *host);
    void *device = NULL;
    if (CHECK(host && !tg_alloc(ctx, sizeof *host, &device))) {
        for (int i = 0; i < ITEMS * M * K; i++)
            ((float *)host->a)[i] = (float)(test_hash((uint64_t)i) % 9) - 4;
        for (int i = 0; i < ITEMS * K * N; i++)
            ((float *)host->b)[i] = (float)(test_hash(~(uint64_t)i) % 9) - 4;
        run_batch(ctx, host, device, "free");
        run_batch(ctx, host, device, "v0_global");
        run_batch(ctx, host, device, "t64x64x16_v2");
        run_batch(ctx, host, device, "t32x64x64_k8");
    }
    free(host);
    CHECK(!tg_free(ctx, device));
    tg_close(ctx);
}

/* --------------------------------------------------------------------------------------- large */

enum { TALL = 9000000, WIDE = 256, NARROW = 8 }; /* TALL * WIDE is more than 2^31 */

static float left(int64_t i) { return (float)(test_hash((uint64_t)i) % 7) - 3; }
static float right(int64_t j) { return (float)(j % 5) - 2; }

/* Are `count` rows of the tall matrix from `row` on what the product of a column and a row is? */
static int tall_is_right(tg_context *ctx, const float *tall, int64_t row, int by_cols)
{
    enum { COUNT = 64 };
    float part[COUNT];
    int ok = 1;
    for (int64_t j = 0; ok && j < WIDE; j++) {
        for (int64_t i = 0; !by_cols && ok && i < COUNT && j % 16 == 0; i++)
            ok = !tg_download(ctx, part + i, tall + (row + i) * WIDE + j, sizeof *part) &&
                 part[i] == left(row + i) * right(j);
        ok = ok && (!by_cols || !tg_download(ctx, part, tall + j * TALL + row, sizeof part));
        for (int64_t i = 0; by_cols && ok && i < COUNT; i++)
            ok = part[i] == left(row + i) * right(j);
    }
    return ok;
}

/* tall := column * row, then narrow := tall * thin, with all of narrow known in advance. */
static void run_large(tg_context *ctx, float *device[4], float *host, int by_cols)
{
    float *column = device[0], *row = device[1], *tall = device[2], *narrow = device[3];
    const tg_layout layout = by_cols ? TG_COL_MAJOR : TG_ROW_MAJOR;
    const int64_t column_ld = by_cols ? TALL : 1, row_ld = by_cols ? 1 : WIDE,
                  tall_ld = by_cols ? TALL : WIDE, narrow_ld = by_cols ? TALL : NARROW;
    CHECK_SAY(!tg_sgemm(ctx, layout, TG_NO_TRANS, TG_NO_TRANS, TALL, WIDE, 1, 1, column, column_ld,
                        row, row_ld, 0, tall, tall_ld),
              "%s", tg_last_error(ctx));
    const int64_t rows[] = {0, ((int64_t)1 << 31) / WIDE - 32, TALL / 2, TALL - 64};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_SAY(tall_is_right(ctx, tall, rows[i], by_cols), "by %s, from row %lld on",
                  by_cols ? "columns" : "rows", (long long)rows[i]);
    /* the first WIDE rows of column, taken as a matrix of WIDE x NARROW with a stride of 1 */
    CHECK_SAY(!tg_sgemm(ctx, layout, TG_NO_TRANS, TG_NO_TRANS, TALL, NARROW, WIDE, 1, tall, tall_ld,
                        column, by_cols ? WIDE : NARROW, 0, narrow, narrow_ld),
              "%s", tg_last_error(ctx));
    CHECK(!tg_download(ctx, host, narrow, (size_t)TALL * NARROW * sizeof *host));
    int64_t wrong = 0;
    float sums[NARROW] = {0};
    for (int64_t j = 0; j < NARROW; j++)
        for (int64_t p = 0; p < WIDE; p++)
            sums[j] += right(p) * left(by_cols ? j * WIDE + p : p * NARROW + j);
    for (int64_t i = 0; i < TALL; i++)
        for (int64_t j = 0; j < NARROW; j++)
            wrong += host[by_cols ? j * TALL + i : i * NARROW + j] != left(i) * sums[j];
    CHECK_SAY(wrong == 0, "by %s: %lld elements are wrong", by_cols ? "columns" : "rows",
              (long long)wrong);
}

void test_large(void)
{
    static const size_t counts[4] = {TALL, WIDE, (size_t)TALL * WIDE, (size_t)TALL * NARROW};
    tg_context *ctx = gpu_open(0);
    float *device[4] = {NULL}, *host = malloc(counts[3] * sizeof *host), row[WIDE];
    int ok = host != NULL;
    for (int i = 0; ok && i < 4; i++) {
        void *memory = NULL;
        ok = !tg_alloc(ctx, counts[i] * sizeof *host, &memory);
        device[i] = memory;
    }
    for (int64_t i = 0; ok && i < TALL; i++)
        host[i] = left(i);
    for (int64_t j = 0; j < WIDE; j++)
        row[j] = right(j);
    if (ok) {
        CHECK(!tg_upload(ctx, device[0], host, counts[0] * sizeof *host) &&
              !tg_upload(ctx, device[1], row, sizeof row));
        run_large(ctx, device, host, 0);
        run_large(ctx, device, host, 1);
    } else {
        test_print("no room for more than 2^31 elements: %s\n", tg_last_error(ctx));
    }
    for (int i = 0; i < 4; i++)
        CHECK(!tg_free(ctx, device[i]));
    free(host);
    tg_close(ctx);
}
