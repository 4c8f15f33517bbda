/* SPDX-License-Identifier: Apache-2.0
 *
 * What a race is measured against: the clock, the bandwidth of the device's memory, and the traffic
 * that a plan causes there.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "tile.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

double cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cli_gflops(cli_shape shape, double seconds)
{
    return 2e-9 * (double)shape.m * (double)shape.n * (double)shape.k * (double)shape.batch /
           seconds;
}

/* The best of a few passes of reading on the host with all the context's threads, in four streams
 * each: one does not get all that a core can have. */
static double host_bandwidth(int threads, size_t bytes)
{
    int64_t part = (int64_t)(bytes / sizeof(uint64_t) / 4);
    uint64_t *words = cli_host_memory(bytes), sum = 0;
    double best = 0;
    if (!words)
        return 0;
    (void)threads;
    for (int pass = 0; pass < 5; pass++) {
        double start = cli_now();
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(static)
#endif
        for (int64_t i = 0; i < part; i++) {
            uint64_t *at = words + i;
            if (pass == 0)
                at[0] = at[part] = at[2 * part] = at[3 * part] = (uint64_t)i;
            sum += at[0] + at[part] + at[2 * part] + at[3 * part];
        }
        double rate = (double)bytes / (cli_now() - start);
        if (pass > 0 && rate > best)
            best = rate;
    }
    volatile uint64_t used = sum;
    (void)used;
    free(words);
    return best;
}

int64_t cli_cache_bytes(const cli_machine *machine)
{
    return tg_max(machine->limits.l2 * machine->threads, machine->limits.l3);
}

size_t cli_cold_bytes(const cli_machine *machine)
{
    return (size_t)tg_clamp(4 * cli_cache_bytes(machine), 64 << 20, 512 << 20);
}

/* C := -C, by the library. */
tg_status cli_pass(cli_machine *machine, void *memory, size_t bytes, tg_type type)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.n = 4096;
    p.a.type = type, p.b.type = cli_b_type(type), p.c.type = cli_c_type(type);
    p.m = (int64_t)(bytes / tg_type_size(p.c.type)) / p.n;
    p.beta = -1;
    p.c.data = memory;
    p.c.row_stride = p.n, p.c.col_stride = 1;
    return tg_gemm(machine->ctx, &p);
}

enum { READ_COLUMNS = 8192 };

/* A row times all of memory: what is read is all that takes time. */
static tg_status read_all(cli_machine *machine, char *memory, size_t bytes)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.m = 1;
    p.n = READ_COLUMNS;
    p.k = (int64_t)(bytes / sizeof(float)) / p.n;
    p.a = (tg_input){memory, p.k, 1, 0, TG_F32};
    p.b = (tg_input){memory, p.n, 1, 0, TG_F32};
    p.c = (tg_output){memory + bytes, p.n, 1, 0, TG_F32};
    return tg_gemm(machine->ctx, &p);
}

static double device_bandwidth(cli_machine *machine, size_t bytes)
{
    void *memory;
    double best = 0, seconds;
    if (tg_alloc(machine->ctx, bytes + READ_COLUMNS * sizeof(float), &memory) != TG_OK)
        return 0;
    for (int pass = 0; pass < 8; pass++) {
        if (tg_time_start(machine->ctx) != TG_OK || read_all(machine, memory, bytes) != TG_OK ||
            tg_time_stop(machine->ctx, &seconds) != TG_OK)
            break;
        if (pass > 0)
            best = fmax(best, (double)bytes / seconds);
    }
    tg_free(machine->ctx, memory);
    return best;
}

double cli_bandwidth(cli_machine *machine)
{
    size_t bytes = cli_cold_bytes(machine);
    if (machine->is_host)
        return host_bandwidth(machine->threads, bytes);
    tg_force(machine->ctx, NULL);
    double best = device_bandwidth(machine, bytes);
    if (machine->is_forced)
        tg_force(machine->ctx, &machine->tile);
    return best;
}

/* Of elements of A and B, and of C. */
static double bytes_of(double inputs, double outputs, cli_shape shape, tg_type type)
{
    return (inputs * (double)tg_type_size(type) +
            outputs * (double)tg_type_size(cli_c_type(type))) *
           (double)shape.batch;
}

/* Each column of blocks reads A once, each row of blocks reads B once, C is written, and so is what
 * each range of k sums, to be read again. With no stage to share, every multiply-add reads its own
 * two elements. */
double cli_traffic(const tg_plan *plan, cli_shape shape, tg_type type)
{
    double m = (double)shape.m, n = (double)shape.n, k = (double)shape.k;
    const tg_tile *tile = &plan->tile;
    if (tile->stages == 0)
        return cli_naive_traffic(shape, type);
    double block_rows = (double)tg_ceil_div(shape.m, tile->block.m);
    double block_cols = (double)tg_ceil_div(shape.n, tile->block.n);
    double sums = plan->splits > 1 ? 2.0 * plan->splits * m * n : 0;
    return bytes_of(m * k * block_cols + k * n * block_rows, m * n + sums, shape, type);
}

double cli_naive_traffic(cli_shape shape, tg_type type)
{
    double m = (double)shape.m, n = (double)shape.n, k = (double)shape.k;
    return bytes_of(2 * m * n * k, m * n, shape, type);
}

double cli_least_traffic(cli_shape shape, tg_type type)
{
    double m = (double)shape.m, n = (double)shape.n, k = (double)shape.k;
    return bytes_of(m * k + k * n, m * n, shape, type);
}

const char *cli_tail_name(tg_tail tail) { return tail == TG_TAIL_SPLIT ? "split" : "whole"; }
