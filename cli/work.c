/* SPDX-License-Identifier: Apache-2.0
 *
 * A device to measure, and the matrices that it works on.
 */
#include "cli.h"
#include "tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        cli_close(machine);
        return rc;
    }
    machine->limits = tg_device_limits(machine->ctx);
    machine->is_host = strcmp(machine->backend, "cpu") == 0;
    int rc = CLI_OK;
    if (options->threads && tg_set_threads(machine->ctx, options->threads) != TG_OK)
        rc = cli_fail_call(machine, "--threads");
    machine->threads = thread_count(machine);
    if (rc == CLI_OK && options->tile)
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
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (count > 1 << 20)
#endif
    for (size_t i = 0; i < count; i++) {
        cli_put(type, data, (int64_t)i, fill_value(seed << 40, i, most));
    }
}

void *cli_host_memory(size_t bytes)
{
    size_t rounded = (bytes / 64 + 1) * 64;
    return bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(64, rounded);
}

/* The largest s such that 2 * (k + 1) * s * s stays within the digits of the sums, up to 16; of
 * integers, all there are. */
static int integer_range(int64_t k, tg_type type)
{
    double room = (type == TG_F64 ? 0x1p53 : 0x1p24) / 2;
    if (cli_is_whole(type))
        return 127;
    return (int)fmax(1, fmin(16, floor(sqrt(room / ((double)k + 1)))));
}

static tg_input operand(char trans, int64_t rows, int64_t cols, tg_type type)
{
    int64_t item = rows * cols;
    tg_input as_stored = {NULL, cols, 1, item, type}, transposed = {NULL, 1, rows, item, type};
    return trans == 'T' ? transposed : as_stored;
}

/* From one copy of a matrix to the next. */
static size_t copy_step(size_t bytes) { return (bytes + 255) / 256 * 256; }

static int to_device(cli_machine *machine, const void *host, size_t bytes, int64_t copies,
                     const void **device)
{
    void *memory = NULL;
    size_t step = copy_step(bytes);
    *device = host;
    if (machine->is_host)
        return CLI_OK;
    tg_status status =
        tg_alloc(machine->ctx, bytes ? (size_t)(copies - 1) * step + bytes : 0, &memory);
    *device = memory;
    for (int64_t i = 0; i < copies && bytes && status == TG_OK; i++)
        status = tg_upload(machine->ctx, (char *)memory + (size_t)i * step, host, bytes);
    return status == TG_OK ? CLI_OK : cli_fail_call(machine, "the matrices");
}

static int place(cli_machine *machine, const tg_problem *host, tg_problem *device, size_t a_bytes,
                 size_t b_bytes, size_t c_bytes, int64_t copies)
{
    const void *c = NULL;
    *device = *host;
    device->a.data = device->b.data = device->c.data = NULL;
    int rc = to_device(machine, host->a.data, a_bytes, copies, &device->a.data);
    if (rc == CLI_OK)
        rc = to_device(machine, host->b.data, b_bytes, copies, &device->b.data);
    if (rc == CLI_OK)
        rc = to_device(machine, host->c.data, c_bytes, copies, &c);
    device->c.data = (void *)c;
    return rc;
}

int cli_place(cli_machine *machine, const tg_problem *host, tg_problem *device, size_t a_bytes,
              size_t b_bytes, size_t c_bytes)
{
    return place(machine, host, device, a_bytes, b_bytes, c_bytes, 1);
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

/* Sizes and strides; false if memory cannot have that many bytes. */
static int lay_out(cli_work *work, cli_shape shape, tg_type type, int c_padding)
{
    tg_problem *p = &work->host;
    int64_t rows, b_rows;
    p->m = shape.m, p->n = shape.n, p->k = shape.k, p->batch = shape.batch;
    if (__builtin_mul_overflow(p->m, p->batch, &rows) ||
        __builtin_mul_overflow(p->k, p->batch, &b_rows))
        return 0;
    p->c.row_stride = p->n + c_padding, p->c.col_stride = 1, p->c.type = cli_c_type(type);
    work->a_bytes = cli_matrix_bytes(rows, p->k, type);
    work->b_bytes = cli_matrix_bytes(b_rows, p->n, cli_b_type(type));
    work->c_bytes = cli_matrix_bytes(rows, p->c.row_stride, p->c.type);
    if (!work->c_bytes || (p->k > 0 && !(work->a_bytes && work->b_bytes)))
        return 0;
    p->a = operand(work->trans[0], p->m, p->k, type);
    p->b = operand(work->trans[1], p->k, p->n, cli_b_type(type));
    p->c.batch_stride = p->m * p->c.row_stride;
    return 1;
}

int cli_work_describe(cli_work *work, cli_shape shape, tg_type type, const char *trans,
                      int c_padding)
{
    tg_problem init = TG_PROBLEM_INIT;
    memset(work, 0, sizeof *work);
    memcpy(work->trans, trans, 2);
    work->host = work->device = init;
    work->copies = 1;
    return lay_out(work, shape, type, c_padding);
}

int cli_work_make(cli_machine *machine, cli_work *work, cli_shape shape, tg_type type,
                  const char *trans, cli_fill kind, int c_padding)
{
    tg_problem *p = &work->host;
    int is_possible = cli_work_describe(work, shape, type, trans, c_padding);
    void *a = is_possible ? cli_host_memory(work->a_bytes) : NULL;
    void *b = is_possible ? cli_host_memory(work->b_bytes) : NULL;
    p->a.data = a, p->b.data = b;
    p->c.data = is_possible ? cli_host_memory(work->c_bytes) : NULL;
    work->c0 = is_possible ? cli_host_memory(work->c_bytes) : NULL;
    if (!a || !b || !p->c.data || !work->c0) {
        cli_work_free(machine, work);
        return cli_fail("there is no memory for %lld x %lld x %lld", (long long)shape.m,
                        (long long)shape.n, (long long)shape.k);
    }
    int most = kind == CLI_INTEGERS || cli_is_whole(type) ? integer_range(p->k, type) : 0;
    fill(a, work->a_bytes, p->a.type, 1, most);
    fill(b, work->b_bytes, p->b.type, 2, most);
    fill(work->c0, work->c_bytes, p->c.type, 3, most);
    memcpy(p->c.data, work->c0, work->c_bytes);
    int rc = cli_place(machine, p, &work->device, work->a_bytes, work->b_bytes, work->c_bytes);
    if (rc != CLI_OK)
        cli_work_free(machine, work);
    return rc;
}

int cli_work_reset(cli_machine *machine, cli_work *work)
{
    memcpy(work->host.c.data, work->c0, work->c_bytes);
    work->turn = 0;
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

int cli_work_spread(cli_machine *machine, cli_work *work)
{
    size_t bytes = work->a_bytes + work->b_bytes + work->c_bytes;
    if (machine->is_host || bytes == 0)
        return CLI_OK;
    work->copies = (int64_t)(cli_cold_bytes(machine) / bytes) + 1;
    cli_unplace(machine, &work->device);
    return place(machine, &work->host, &work->device, work->a_bytes, work->b_bytes, work->c_bytes,
                 work->copies);
}

static void *copy_of(const void *data, size_t bytes, int64_t turn)
{
    return data ? (char *)data + (size_t)turn * copy_step(bytes) : NULL;
}

const tg_problem *cli_work_next(cli_work *work)
{
    const tg_problem *first = &work->device;
    if (work->copies == 1)
        return first;
    work->now = *first;
    work->now.a.data = copy_of(first->a.data, work->a_bytes, work->turn);
    work->now.b.data = copy_of(first->b.data, work->b_bytes, work->turn);
    work->now.c.data = copy_of(first->c.data, work->c_bytes, work->turn);
    work->turn = (work->turn + 1) % work->copies;
    return &work->now;
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
