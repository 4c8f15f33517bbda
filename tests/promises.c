/* SPDX-License-Identifier: Apache-2.0
 *
 * What is promised of time on a CPU beside speed, measured: no size is a cliff, no leading
 * dimension is, a first call is like later ones, packing once pays, and nothing spins after a call.
 * Figures, not verdicts: a machine with other guests has its own mind. Run by `meson test
 * --benchmark`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tilegemm.h"

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void) { return seconds_of(CLOCK_MONOTONIC); }

enum { MOST = 4400 }; /* rows, columns, leading dimension */

static tg_context *ctx;
static float *a, *b, *c;
static void *packed;

static tg_problem cube(int64_t n, int64_t ld)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.m = p.n = p.k = n;
    p.a = (tg_input){a, ld, 1, 0, TG_F32};
    p.b = (tg_input){b, ld, 1, 0, TG_F32};
    p.c = (tg_output){c, ld, 1, 0, TG_F32};
    return p;
}

static double time_of(const tg_problem *p, int calls)
{
    const double start = now();
    for (int call = 0; call < calls; call++)
        if (packed ? tg_packed_gemm(ctx, p, TG_B_PACKED, packed) : tg_gemm(ctx, p)) {
            fprintf(stderr, "%s\n", tg_last_error(ctx));
            exit(1);
        }
    return (now() - start) / calls;
}

/* The best of some samples of a fiftieth of a second. */
static double best_of(const tg_problem *p, int samples)
{
    double best = time_of(p, 1);
    const int calls = best > 0.02 ? 1 : (int)(0.02 / best) + 1;
    for (int i = 0; i < samples; i++) {
        const double sample = time_of(p, calls);
        best = sample < best ? sample : best;
    }
    return best;
}

static double rate_of(int64_t n, int samples)
{
    const tg_problem p = cube(n, n);
    return (double)(n * n * n) / best_of(&p, samples);
}

/* Each size beside the mean of the sizes before and after it. */
static void find_cliffs(void)
{
    enum { LAST = 301 };
    double rate[LAST + 1], worst = 9;
    int at = 0;
    for (int n = 1; n <= LAST; n++)
        rate[n] = rate_of(n, 2);
    for (int n = 2; n < LAST; n++) {
        double share = 2 * rate[n] / (rate[n - 1] + rate[n + 1]);
        if (share < 0.8) { /* another guest, or a cliff? */
            rate[n] = rate_of(n, 10);
            share = 2 * rate[n] / (rate[n - 1] + rate[n + 1]);
        }
        if (share < 0.8)
            printf("  %d cubed: %.2f of its neighbours' mean\n", n, share);
        at = share < worst ? n : at;
        worst = share < worst ? share : worst;
    }
    printf("cubes 2 to 300, beside the mean of their neighbours: worst %.2f, %d (asked: .8)\n",
           worst, at);
    for (int64_t n = 512; n <= 4096; n *= 2) {
        const double below = rate_of(n - 1, 3), here = rate_of(n, 3), above = rate_of(n + 1, 3);
        printf("%lld, beside the mean of one less and one more: %.2f; they, beside it: %.2f, %.2f "
               "(asked: .8)\n",
               (long long)n, 2 * here / (below + above), below / here, above / here);
    }
}

static void compare_leading_dimensions(void)
{
    for (int64_t n = 256; n <= 4096; n *= 2) {
        const tg_problem crowded = cube(n - 24, n), apart = cube(n - 24, n + 8);
        double best[2] = {9e9, 9e9};
        for (int round = 0; round < 3; round++) {
            const double x = best_of(&crowded, 2), y = best_of(&apart, 2);
            best[0] = x < best[0] ? x : best[0];
            best[1] = y < best[1] ? y : best[1];
        }
        printf("%lld cubed, leading dimensions %lld beside %lld: %.2f times as long (asked: 1.1)\n",
               (long long)n - 24, (long long)n, (long long)n + 8, best[0] / best[1]);
    }
}

static void compare_first_call(void)
{
    for (int64_t n = 16; n <= 1024; n *= 8) {
        const tg_problem p = cube(n, n);
        tg_close(ctx);
        if (tg_open(&ctx, "cpu", 0))
            exit(1);
        const double first = time_of(&p, 1), later = best_of(&p, 3);
        printf(
            "%lld cubed, the first call of a context: %.3f ms more than a later one (asked: 1)\n",
            (long long)n, (first - later) * 1e3);
    }
}

/* Weights of 4096 x 4096, and some rows. */
static void compare_packed(tg_type type)
{
    static const int rows[] = {1, 4, 8, 16, 32, 256};
    for (int i = 0; i < 6; i++) {
        tg_problem p = cube(4096, 4096);
        size_t bytes = 0;
        void *once = NULL;
        p.m = rows[i];
        p.a.type = p.b.type = type;
        p.c.type = type == TG_I8 ? TG_I32 : type;
        if (tg_pack_size(ctx, &p, TG_B_PACKED, &bytes) || tg_alloc(ctx, bytes, &once) ||
            tg_pack(ctx, &p, TG_B_PACKED, once, bytes))
            exit(1);
        double best[2] = {9e9, 9e9};
        for (int round = 0; round < 6; round++) {
            packed = round % 2 ? once : NULL;
            const double x = best_of(&p, 2);
            best[round % 2] = x < best[round % 2] ? x : best[round % 2];
        }
        packed = NULL;
        tg_free(ctx, once);
        printf(
            "%s %d x 4096 x 4096, B packed once: %.2f times as fast (asked: 1.2 up to 32 rows)\n",
            tg_type_name(type), rows[i], best[0] / best[1]);
    }
}

static void watch_idle_threads(void)
{
    const tg_problem p = cube(1024, 1024);
    time_of(&p, 2);
    const double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    printf("half a second after a call, its threads have used %.1f ms of processors\n",
           (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e3);
}

int main(void)
{
    const size_t elements = (size_t)MOST * MOST;
    a = malloc(elements * sizeof *a), b = malloc(elements * sizeof *b);
    c = malloc(elements * sizeof *c);
    if (!a || !b || !c || tg_open(&ctx, "cpu", 0))
        return 1;
    for (size_t i = 0; i < elements; i++)
        a[i] = b[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
    watch_idle_threads();
    tg_set_threads(ctx, 1);
    printf("\nWith one thread:\n");
    compare_packed(TG_F32);
    compare_packed(TG_F16);
    compare_packed(TG_I8);
    compare_leading_dimensions();
    find_cliffs();
    printf("\nWith all threads:\n");
    tg_set_threads(ctx, 0);
    compare_packed(TG_F32);
    compare_packed(TG_F16);
    compare_packed(TG_I8);
    compare_first_call();
    tg_close(ctx);
    free(a);
    free(b);
    free(c);
    return 0;
}
