/* SPDX-License-Identifier: Apache-2.0
 *
 * A device to measure, the matrices that it works on, and the measures themselves: the clock, the
 * bandwidth of its memory, and the traffic that a tiling causes there.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The backend that tg_open would choose for NULL. */
static const char *best_backend(void)
{
    for (int i = 0; i < tg_backend_count(); i++) {
        if (tg_backend_reason(tg_backend_name(i), NULL, 0) == TG_OK)
            return tg_backend_name(i);
    }
    return NULL;
}

static int force_tile(cli_machine *machine, const char *text)
{
    char reason[400];
    if (tg_tile_parse(text, &machine->tile, reason, sizeof reason) != TG_OK)
        return cli_fail("--tile %s: %s", text, reason);
    if (tg_force(machine->ctx, &machine->tile) != TG_OK)
        return cli_fail_call(machine, text);
    machine->is_forced = 1;
    return CLI_OK;
}

/* The threads that a large problem is given. */
static int thread_count(const cli_machine *machine)
{
    tg_problem p = TG_PROBLEM_INIT;
    tg_plan plan = TG_PLAN_INIT;
    p.m = p.n = p.k = 4096;
    p.a.row_stride = p.b.row_stride = p.c.row_stride = 4096;
    p.a.col_stride = p.b.col_stride = p.c.col_stride = 1;
    int is_known = tg_pick(machine->ctx, &p, &plan) == TG_OK && plan.threads > 0;
    return is_known ? plan.threads : machine->limits.units;
}

int cli_open(cli_machine *machine, const cli_options *options)
{
    memset(machine, 0, sizeof *machine);
    machine->backend = options->backend ? options->backend : best_backend();
    if (tg_open(&machine->ctx, machine->backend, 0) != TG_OK) {
        int rc = cli_fail("%s", tg_last_error(machine->ctx));
        tg_close(machine->ctx);
        return rc;
    }
    machine->limits = tg_device_limits(machine->ctx);
    machine->is_host = strcmp(machine->backend, "cpu") == 0;
    int rc = CLI_OK;
    if (options->threads && tg_set_threads(machine->ctx, options->threads) != TG_OK)
        rc = cli_fail_call(machine, "--threads");
    machine->threads = thread_count(machine);
    if (rc == CLI_OK && options->tile && strcmp(options->tile, "all") != 0)
        rc = force_tile(machine, options->tile);
    if (rc != CLI_OK)
        cli_close(machine);
    return rc;
}

void cli_close(cli_machine *machine)
{
    tg_close(machine->ctx);
    machine->ctx = NULL;
}

int cli_fail_call(const cli_machine *machine, const char *what)
{
    return cli_fail("%s%s%s", what, *what ? ": " : "", tg_last_error(machine->ctx));
}

/* ------------------------------------------------------------------------------------ matrices */
size_t cli_matrix_bytes(int64_t rows, int64_t cols, tg_type type)
{
    int64_t bytes;
    if (__builtin_mul_overflow(rows, cols, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)tg_type_size(type), &bytes) ||
        bytes > INT64_MAX / 4 || (uint64_t)bytes > SIZE_MAX / 4)
        return 0;
    return (size_t)bytes;
}

uint64_t cli_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Integers of -most .. most, or reals in [-1, 1) if most is 0. */
static double fill_value(uint64_t seed, uint64_t index, int most)
{
    uint64_t bits = cli_hash(seed + index);
    if (most > 0)
        return (double)(bits % (2 * (uint64_t)most + 1)) - most;
    return (double)(int64_t)(bits >> 11) * 0x1p-52 - 1;
}

static void fill(void *data, size_t bytes, tg_type type, uint64_t seed, int most)
{
    size_t count = bytes / tg_type_size(type);
    float *f32 = data;
    double *f64 = data;
    for (size_t i = 0; i < count; i++) {
        if (type == TG_F32)
            f32[i] = (float)fill_value(seed << 40, i, most);
        else
            f64[i] = fill_value(seed << 40, i, most);
    }
}

static void *host_memory(size_t bytes)
{
    size_t rounded = (bytes / 64 + 1) * 64;
    return bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(64, rounded);
}

/* The largest s such that 2 * (k + 1) * s * s stays within the digits of the type, up to 16. */
static int integer_range(int64_t k, tg_type type)
{
    double room = (type == TG_F32 ? 0x1p24 : 0x1p53) / 2;
    return (int)fmax(1, fmin(16, floor(sqrt(room / ((double)k + 1)))));
}

static tg_input operand(char trans, int64_t rows, int64_t cols, tg_type type)
{
    tg_input as_stored = {NULL, cols, 1, 0, type}, transposed = {NULL, 1, rows, 0, type};
    return trans == 'T' ? transposed : as_stored;
}

static int to_device(cli_machine *machine, const void *host, size_t bytes, const void **device)
{
    void *memory = NULL;
    *device = host;
    if (machine->is_host)
        return CLI_OK;
    tg_status status = tg_alloc(machine->ctx, bytes, &memory);
    *device = memory;
    if (status == TG_OK)
        status = tg_upload(machine->ctx, memory, host, bytes);
    return status == TG_OK ? CLI_OK : cli_fail_call(machine, "the matrices");
}

int cli_place(cli_machine *machine, const tg_problem *host, tg_problem *device, size_t a_bytes,
              size_t b_bytes, size_t c_bytes)
{
    const void *c = NULL;
    *device = *host;
    device->a.data = device->b.data = device->c.data = NULL;
    int rc = to_device(machine, host->a.data, a_bytes, &device->a.data);
    if (rc == CLI_OK)
        rc = to_device(machine, host->b.data, b_bytes, &device->b.data);
    if (rc == CLI_OK)
        rc = to_device(machine, host->c.data, c_bytes, &c);
    device->c.data = (void *)c;
    return rc;
}

void cli_unplace(cli_machine *machine, tg_problem *device)
{
    if (!machine->is_host) {
        tg_free(machine->ctx, (void *)device->a.data);
        tg_free(machine->ctx, (void *)device->b.data);
        tg_free(machine->ctx, device->c.data);
    }
    device->a.data = device->b.data = device->c.data = NULL;
}

int cli_work_make(cli_machine *machine, cli_work *work, cli_shape shape, tg_type type,
                  const char *trans, cli_fill kind, int c_padding)
{
    tg_problem init = TG_PROBLEM_INIT;
    tg_problem *p = &work->host;
    memset(work, 0, sizeof *work);
    memcpy(work->trans, trans, 2);
    *p = work->device = init;
    p->m = shape.m, p->n = shape.n, p->k = shape.k;
    p->a = operand(trans[0], p->m, p->k, type);
    p->b = operand(trans[1], p->k, p->n, type);
    p->c.row_stride = p->n + c_padding, p->c.col_stride = 1, p->c.type = type;
    work->a_bytes = cli_matrix_bytes(p->m, p->k, type);
    work->b_bytes = cli_matrix_bytes(p->k, p->n, type);
    work->c_bytes = cli_matrix_bytes(p->m, p->c.row_stride, type);
    void *a = host_memory(work->a_bytes), *b = host_memory(work->b_bytes);
    p->a.data = a, p->b.data = b, p->c.data = host_memory(work->c_bytes);
    work->c0 = host_memory(work->c_bytes);
    int is_real = p->k == 0 || (work->a_bytes && work->b_bytes);
    if (!is_real || !work->c_bytes || !a || !b || !p->c.data || !work->c0) {
        cli_work_free(machine, work);
        return cli_fail("there is no memory for %lld x %lld x %lld", (long long)shape.m,
                        (long long)shape.n, (long long)shape.k);
    }
    int most = kind == CLI_INTEGERS ? integer_range(p->k, type) : 0;
    fill(a, work->a_bytes, type, 1, most);
    fill(b, work->b_bytes, type, 2, most);
    fill(work->c0, work->c_bytes, type, 3, most);
    memcpy(p->c.data, work->c0, work->c_bytes);
    int rc = cli_place(machine, p, &work->device, work->a_bytes, work->b_bytes, work->c_bytes);
    if (rc != CLI_OK)
        cli_work_free(machine, work);
    return rc;
}

int cli_work_reset(cli_machine *machine, cli_work *work)
{
    memcpy(work->host.c.data, work->c0, work->c_bytes);
    if (!machine->is_host &&
        tg_upload(machine->ctx, work->device.c.data, work->c0, work->c_bytes) != TG_OK)
        return cli_fail_call(machine, "C");
    return CLI_OK;
}

int cli_work_fetch(cli_machine *machine, cli_work *work)
{
    tg_status status = tg_sync(machine->ctx);
    if (status == TG_OK && !machine->is_host)
        status = tg_download(machine->ctx, work->host.c.data, work->device.c.data, work->c_bytes);
    return status == TG_OK ? CLI_OK : cli_fail_call(machine, "C");
}

void cli_work_free(cli_machine *machine, cli_work *work)
{
    cli_unplace(machine, &work->device);
    free((void *)work->host.a.data);
    free((void *)work->host.b.data);
    free(work->host.c.data);
    free(work->c0);
    memset(work, 0, sizeof *work);
}

/* ------------------------------------------------------------------------------------ measures */
double cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cli_gflops(cli_shape shape, double seconds)
{
    return 2e-9 * (double)shape.m * (double)shape.n * (double)shape.k / seconds;
}

/* The best of a few passes of reading on the host with all the context's threads. */
static double host_bandwidth(int threads, size_t bytes)
{
    int64_t count = (int64_t)(bytes / sizeof(uint64_t));
    uint64_t *words = host_memory(bytes), sum = 0;
    double best = 0;
    if (!words)
        return 0;
    (void)threads;
    for (int pass = 0; pass < 5; pass++) {
        double start = cli_now();
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(static)
#endif
        for (int64_t i = 0; i < count; i++)
            sum += pass == 0 ? (words[i] = (uint64_t)i) : words[i];
        double rate = (double)bytes / (cli_now() - start);
        if (pass > 0 && rate > best)
            best = rate;
    }
    volatile uint64_t used = sum;
    (void)used;
    free(words);
    return best;
}

/* On a device: C := -C through the library reads and writes every element once. */
static double device_bandwidth(cli_machine *machine, size_t bytes)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.n = 4096;
    p.m = (int64_t)(bytes / sizeof(float)) / p.n;
    p.beta = -1;
    p.c.row_stride = p.n, p.c.col_stride = 1;
    double best = 0;
    if (tg_alloc(machine->ctx, bytes, &p.c.data) != TG_OK)
        return 0;
    for (int pass = 0; pass < 5; pass++) {
        double start = cli_now();
        if (tg_gemm(machine->ctx, &p) != TG_OK || tg_sync(machine->ctx) != TG_OK)
            break;
        best = pass > 0 ? fmax(best, 2 * (double)bytes / (cli_now() - start)) : 0;
    }
    tg_free(machine->ctx, p.c.data);
    return best;
}

double cli_bandwidth(cli_machine *machine)
{
    int64_t caches = tg_max(machine->limits.l2 * machine->threads, machine->limits.l3);
    size_t bytes = (size_t)tg_clamp(4 * caches, 64 << 20, 512 << 20);
    return machine->is_host ? host_bandwidth(machine->threads, bytes)
                            : device_bandwidth(machine, bytes);
}

/* Each column of blocks reads A once, each row of blocks reads B once, C is written. With no stage
 * to share, every multiply-add reads its own two elements. */
double cli_traffic(tg_tile tile, cli_shape shape, tg_type type)
{
    double m = (double)shape.m, n = (double)shape.n, k = (double)shape.k;
    if (tile.stages == 0)
        return cli_naive_traffic(shape, type);
    double block_rows = (double)tg_ceil_div(shape.m, tile.block.m);
    double block_cols = (double)tg_ceil_div(shape.n, tile.block.n);
    return (m * k * block_cols + k * n * block_rows + m * n) * (double)tg_type_size(type);
}

double cli_naive_traffic(cli_shape shape, tg_type type)
{
    double m = (double)shape.m, n = (double)shape.n, k = (double)shape.k;
    return (2 * m * n * k + m * n) * (double)tg_type_size(type);
}
