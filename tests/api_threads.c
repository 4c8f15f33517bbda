/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads and processes: the same bits for every number of threads, many contexts at once, calls
 * inside a caller's parallel region, and, on the CPU, children made by fork(), where an OpenMP
 * runtime waits for threads that do not exist any more. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "api.h"
#include "test.h"

/* ------------------------------------------------------------------------------ determinism */

enum { RUNS = 20 };

typedef struct real {
    int m, n, k;
    double *a, *b, *c, *first;              /* of the host */
    double *device_a, *device_b, *device_c; /* of the device */
} real;

static double *new_array(int count, uint64_t seed)
{
    double *x = malloc((size_t)count * sizeof *x);
    for (int i = 0; x && i < count; i++)
        x[i] = (double)(test_hash((uint64_t)i + (seed << 32)) >> 11) * 0x1p-52 - 1;
    return x;
}

static void check_same_bits(tg_context *ctx, const real *r, const char *tile, tg_trans of_b)
{
    const int ldb = of_b == TG_TRANS ? r->k : r->n;
    const size_t bytes = (size_t)r->m * (size_t)r->n * sizeof *r->c;
    for (int run = 0; run < RUNS; run++) {
        int threads = run == 0 ? 1 : 1 + run % 4;
        tg_set_threads(ctx, threads);
        for (int i = 0; i < r->m * r->n; i++)
            r->c[i] = 0.1 * i;
        tg_upload(ctx, r->device_c, r->c, bytes);
        CHECK_OK(ctx, tg_dgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, of_b, r->m, r->n, r->k, 0.7,
                               r->device_a, r->k, r->device_b, ldb, 0.3, r->device_c, r->n));
        CHECK(!tg_download(ctx, r->c, r->device_c, bytes));
        if (run == 0)
            memcpy(r->first, r->c, bytes);
        else if (!CHECK_SAY(memcmp(r->first, r->c, bytes) == 0,
                            "%s, %dx%dx%d, ldb %d: other bits in run %d with %d threads", tile,
                            r->m, r->n, r->k, ldb, run, threads))
            break;
    }
}

static void test_shape(tg_context *ctx, real r)
{
    static const char *const tiles[] = {
        "free",
        "t64x64x16",
        "t64x64x32_k4",
        "v1_shared",
        "v0_global",
        "c6x8",
        "32x24x128/8x24/8x24/8/0/outer", /* streams of B for rows of several warps */
        "12x8x128/6x8/6x8/4/0/outer"};
    const size_t size = sizeof(double);
    r.a = new_array(r.m * r.k, 1), r.b = new_array(r.k * r.n, 2);
    r.c = new_array(r.m * r.n, 3), r.first = new_array(r.m * r.n, 4);
    if (CHECK(r.a && r.b && r.c && r.first)) {
        r.device_a = api_upload(ctx, r.a, (size_t)(r.m * r.k) * size);
        r.device_b = api_upload(ctx, r.b, (size_t)(r.k * r.n) * size);
        r.device_c = api_upload(ctx, r.c, (size_t)(r.m * r.n) * size);
    }
    for (size_t i = 0; r.device_c && i < sizeof tiles / sizeof tiles[0]; i++) {
        tg_tile tile;
        int is_named = tg_tile_parse(tiles[i], &tile, NULL, 0) == TG_OK;
        if (is_named && tg_tile_refusal(ctx, &tile, TG_F64))
            continue;
        CHECK_OK(ctx, tg_force(ctx, is_named ? &tile : NULL));
        check_same_bits(ctx, &r, tiles[i], TG_TRANS);
        check_same_bits(ctx, &r, tiles[i], TG_NO_TRANS);
    }
    CHECK(!tg_free(ctx, r.device_a) && !tg_free(ctx, r.device_b) && !tg_free(ctx, r.device_c));
    free(r.a);
    free(r.b);
    free(r.c);
    free(r.first);
}

static void test_determinism(tg_context *ctx)
{
    static const int shapes[][3] = {{130, 170, 190}, {3, 2000, 700}, {1500, 5, 600},
                                    {64, 48, 3000},  {32, 90, 700},  {12, 16, 6000}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        test_shape(ctx, (real){.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]});
    tg_force(ctx, NULL);
    tg_set_threads(ctx, 0);
}

/* ---------------------------------------------------------------------------- many contexts */

enum { WORKERS = 8 };

/* Opens a context of its own and multiplies with it; returns NULL if all was right. */
static void *work(void *seed)
{
    unsigned number = *(unsigned *)seed;
    tg_context *ctx;
    int ok = tg_open(&ctx, api_backend(), 0) == TG_OK &&
             tg_set_threads(ctx, 1 + (int)(number % 3)) == TG_OK;
    for (unsigned i = 0; ok && i < 6; i++) {
        tg_tile tile = tg_tile_at((int)((number + i) % 18));
        int is_legal = tg_tile_refusal(ctx, &tile, TG_F32) == NULL;
        ok = tg_force(ctx, i % 2 && is_legal ? &tile : NULL) == TG_OK &&
             multiplies(ctx, 60 + (int)(number * 10 + i), 150 - (int)i, 130, number * 100 + i) &&
             tg_set_threads(ctx, -1) == TG_BAD_ARGUMENT && tg_last_error(ctx)[0];
    }
    tg_close(ctx);
    return ok ? NULL : seed;
}

static void test_many_contexts(void)
{
    pthread_t threads[WORKERS];
    unsigned seeds[WORKERS];
    int started = 0;
    for (; started < WORKERS; started++) {
        seeds[started] = (unsigned)started;
        if (pthread_create(&threads[started], NULL, work, &seeds[started]))
            break;
    }
    CHECK_INT(started, WORKERS);
    for (int i = 0; i < started; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        CHECK_SAY(result == NULL, "the context of thread %d gave a wrong product or status", i);
    }
}

/* A context may move from thread to thread, one at a time. */
static void *borrow(void *ctx) { return multiplies(ctx, 200, 210, 190, 5) ? NULL : ctx; }

static void test_moving_context(tg_context *ctx)
{
    CHECK(multiplies(ctx, 210, 200, 190, 6));
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result = ctx;
        if (pthread_create(&thread, NULL, borrow, ctx) == 0)
            pthread_join(thread, &result);
        CHECK(result == NULL);
    }
}

static void test_inside_parallel_region(tg_context *ctx)
{
#ifdef _OPENMP
    unsigned seeds[4] = {0, 1, 2, 3};
    int wrong = 0;
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 4; i++)
        wrong += work(&seeds[i]) != NULL;
    CHECK_INT(wrong, 0);
#pragma omp parallel num_threads(2)
#pragma omp single
    CHECK(multiplies(ctx, 220, 230, 240, 9));
#else
    test_print("built without OpenMP: no parallel region to call from\n");
#endif
    CHECK(multiplies(ctx, 240, 230, 220, 10));
}

/* The threads of this process, if the system tells. */
static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

/* Many are allowed, and no more are made, or have memory, than the processors are worth. */
static void test_too_many_threads(tg_context *ctx)
{
    const int before = count_threads(), most = 8 + 4 * (int)sysconf(_SC_NPROCESSORS_ONLN);
    const tg_problem large = api_product(9999, 9999, 9999, TG_F32, NULL, NULL, NULL);
    tg_plan plan = TG_PLAN_INIT;
    CHECK_OK(ctx, tg_set_threads(ctx, 100000));
    CHECK(multiplies(ctx, 400, 400, 400, 3));
    CHECK_SAY(count_threads() <= before + most, "%d threads, and %d before", count_threads(),
              before);
    CHECK_OK(ctx, tg_pick(ctx, &large, &plan));
    CHECK_SAY(plan.threads <= most, "a plan for %d threads", plan.threads);
    CHECK_OK(ctx, tg_set_threads(ctx, 0));
}

void test_threads(tg_context *ctx)
{
    test_determinism(ctx);
    test_many_contexts();
    test_moving_context(ctx);
    test_inside_parallel_region(ctx);
    test_too_many_threads(ctx);
}

/* ------------------------------------------------------------------------------------- fork */

/* Runs check(ctx) in a child that has 20 seconds. */
static void check_in_child(const char *what, int (*check)(tg_context *ctx), tg_context *ctx)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(check(ctx) ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child %s", what,
              WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "fails");
}

static int use_inherited(tg_context *ctx)
{
    return tg_set_threads(ctx, 2) == TG_OK && multiplies(ctx, 250, 260, 270, 11);
}

static int use_new(tg_context *inherited)
{
    tg_context *ctx;
    (void)inherited;
    int ok = tg_open(&ctx, api_backend(), 0) == TG_OK && use_inherited(ctx);
    tg_close(ctx);
    return ok;
}

static int use_in_grandchild(tg_context *ctx)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(use_inherited(ctx) && use_new(ctx) ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 && use_inherited(ctx);
}

/* The program has used OpenMP before, but not this library. */
void test_fork_first(void)
{
    if (!api_is_cpu()) {
        test_print("the device of %s is lost in a child of fork: not tested\n", api_backend());
        return;
    }
#ifdef _OPENMP
    int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
    threads += omp_get_num_threads() > 0;
    CHECK(threads > 0);
    check_in_child("fork before the first context", use_new, NULL);
#endif
}

void test_fork(tg_context *ctx)
{
    if (!api_is_cpu())
        return;
    CHECK(use_inherited(ctx));
    check_in_child("the inherited context", use_inherited, ctx);
    check_in_child("a new context", use_new, ctx);
    check_in_child("a child of the child", use_in_grandchild, ctx);
    CHECK_SAY(use_inherited(ctx), "the parent multiplies wrongly after fork");
    tg_set_threads(ctx, 0);
}
