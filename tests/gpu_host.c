/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call costs the host, beside the bare launch of an empty kernel, in turns. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "gpu.h"
#include "test.h"

enum { ROUNDS = 41, CALLS = 300 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* The median of what one of so many queued in a row takes; p is NULL: a bare launch. */
static double queue(tg_context *ctx, const product *p)
{
    const double start = now();
    for (int call = 0; call < CALLS; call++)
        CHECK(p ? product_start(p) == TG_OK : gpu.start_empty_kernel() == 0);
    const double seconds = (now() - start) / CALLS;
    CHECK(tg_sync(ctx) == TG_OK);
    return seconds;
}

void test_host_time(void)
{
    static const int sizes[][3] = {
        {64, 64, 64}, {128, 128, 128}, {512, 512, 512}, {1000, 1000, 1000}, {1, 1024, 1024}};
    if (!gpu.start_empty_kernel) {
        test_print("no bare launch is known here\n");
        return;
    }
    tg_context *ctx = gpu_open(0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        product p;
        double call[ROUNDS], bare[ROUNDS];
        CHECK(product_make(&p, ctx, sizes[i][0], sizes[i][1], sizes[i][2]) && product_fill(&p, i));
        for (int round = 0; round < ROUNDS; round++) {
            call[round] = queue(ctx, &p);
            bare[round] = queue(ctx, NULL);
        }
        qsort(call, ROUNDS, sizeof *call, compare);
        qsort(bare, ROUNDS, sizeof *bare, compare);
        const double ratio = call[ROUNDS / 2] / bare[ROUNDS / 2];
        test_print("%dx%dx%d: a call %.2f us of the host, a bare launch %.2f us: %.2f\n",
                   sizes[i][0], sizes[i][1], sizes[i][2], call[ROUNDS / 2] * 1e6,
                   bare[ROUNDS / 2] * 1e6, ratio);
        CHECK_SAY(ratio < 1.5, "%.2f bare launches: has a second one come in?", ratio);
        product_drop(&p);
    }
    tg_close(ctx);
}
