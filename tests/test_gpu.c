/* SPDX-License-Identifier: Apache-2.0
 *
 * What only a GPU has: streams, graphs, several devices, errors that come late. Everything else is
 * tested on all backends alike, by the other programs.
 *
 *     test_gpu [PART ...]     streams, graphs, order, close, devices, rows, edges, addresses,
 *                             batch, memory, fault: without a name, all of these. Only if named:
 *                             large, 20 GB of device memory; host, the time of a call
 *
 * The backend is the first GPU one that opens, or the one that TG_TEST_BACKEND names. Exit status
 * 77: there is none here. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "test.h"

const char *gpu_backend;

/* ------------------------------------------------------------------------------------- products */

static size_t bytes_of(const product *p, int which)
{
    const int64_t of_b = p->b_n == 1 ? p->k * p->b_k : p->n * p->b_n;
    const int64_t elements[3] = {p->m * p->k, of_b, p->m * p->n};
    return (size_t)elements[which] * sizeof(float);
}

static int make(product *p)
{
    for (int i = 0; i < 3; i++) {
        void *memory = NULL;
        p->host[i] = malloc(bytes_of(p, i));
        if (!p->host[i] || tg_alloc(p->ctx, bytes_of(p, i), &memory))
            return 0;
        p->device[i] = memory;
    }
    return 1;
}

int product_make(product *p, tg_context *ctx, int64_t m, int64_t n, int64_t k)
{
    *p = (product){.ctx = ctx, .m = m, .n = n, .k = k, .b_k = n, .b_n = 1};
    return make(p);
}

int product_make_nt(product *p, tg_context *ctx, int64_t m, int64_t n, int64_t k, int64_t ldb)
{
    *p = (product){.ctx = ctx, .m = m, .n = n, .k = k, .b_k = 1, .b_n = ldb};
    return make(p);
}

int product_fill(product *p, uint64_t seed)
{
    if (!p->device[2])
        return 0;
    for (int i = 0; i < 3; i++) {
        const size_t count = bytes_of(p, i) / sizeof(float);
        for (size_t e = 0; e < count; e++)
            p->host[i][e] =
                i == 2 ? NAN : (float)(test_hash(e + ((seed * 2 + (uint64_t)i) << 40)) % 9) - 4;
        if (tg_upload(p->ctx, p->device[i], p->host[i], bytes_of(p, i)))
            return 0;
    }
    return 1;
}

tg_status product_start(const product *p)
{
    const int is_nt = p->b_n != 1;
    return tg_sgemm(p->ctx, TG_ROW_MAJOR, TG_NO_TRANS, is_nt ? TG_TRANS : TG_NO_TRANS, p->m, p->n,
                    p->k, 1, p->device[0], p->k, p->device[1], is_nt ? p->b_n : p->b_k, 0,
                    p->device[2], p->n);
}

/* Of row i of C. */
static void add_row(const product *p, int64_t i, float *row)
{
    const float *a = p->host[0] + i * p->k, *b = p->host[1];
    for (int64_t j = 0; p->b_n != 1 && j < p->n; j++)
        for (int64_t x = 0; x < p->k; x++)
            row[j] += a[x] * b[j * p->b_n + x];
    for (int64_t x = 0; p->b_n == 1 && x < p->k; x++)
        for (int64_t j = 0; j < p->n; j++)
            row[j] += a[x] * b[x * p->b_k + j];
}

int product_is_right(product *p)
{
    const float *c = p->host[2];
    float *row = malloc((size_t)p->n * sizeof *row);
    int ok = row && p->device[2] && !tg_download(p->ctx, p->host[2], p->device[2], bytes_of(p, 2));
    for (int64_t i = 0; ok && i < p->m; i++) {
        memset(row, 0, (size_t)p->n * sizeof *row);
        add_row(p, i, row);
        for (int64_t j = 0; j < p->n; j++)
            ok = ok && row[j] == c[i * p->n + j];
    }
    free(row);
    return ok;
}

void product_drop(product *p)
{
    for (int i = 0; i < 3; i++) {
        free(p->host[i]);
        if (p->ctx)
            tg_free(p->ctx, p->device[i]);
    }
    *p = (product){0};
}

size_t product_workspace(tg_context *ctx, int64_t m, int64_t n, int64_t k)
{
    size_t bytes = 0;
    tg_problem p = TG_PROBLEM_INIT;
    p.m = m, p.n = n, p.k = k;
    p.a.row_stride = k, p.b.row_stride = p.c.row_stride = n;
    p.a.col_stride = p.b.col_stride = p.c.col_stride = 1;
    CHECK_SAY(!tg_gemm_workspace(ctx, &p, &bytes), "%s", tg_last_error(ctx));
    return bytes;
}

int product_make_shared(product *p, tg_context *ctx, size_t least)
{
    static const int sizes[][3] = {
        {64, 64, 4096}, {96, 80, 4000}, {400, 410, 8000}, {600, 600, 4000}};
    *p = (product){0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (product_workspace(ctx, sizes[i][0], sizes[i][1], sizes[i][2]) > least)
            return product_make(p, ctx, sizes[i][0], sizes[i][1], sizes[i][2]);
    return 0;
}

/* ----------------------------------------------------------------------------------------- main */

tg_context *gpu_open(int device)
{
    tg_context *ctx;
    CHECK_SAY(tg_open(&ctx, gpu_backend, device) == TG_OK, "%s, device %d: %s", gpu_backend, device,
              tg_last_error(ctx));
    return ctx;
}

static const char *first_gpu(void)
{
    const char *name = getenv("TG_TEST_BACKEND");
    char reason[300];
    for (int i = 0; i < tg_backend_count() && !name; i++)
        if (strcmp(tg_backend_name(i), "cpu") != 0 &&
            !tg_backend_reason(tg_backend_name(i), NULL, 0))
            name = tg_backend_name(i);
    if (!name) {
        test_print("no backend for a GPU opens here\n");
    } else if (tg_backend_reason(name, reason, sizeof reason)) {
        test_print("%s: %s\n", name, reason);
        name = NULL;
    } else if (!gpu_driver_find(name)) {
        test_print("%s: no driver that this test knows\n", name);
        name = NULL;
    }
    return name;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int only_if_named;
    } parts[] = {{"streams", test_streams, 0}, {"threads", test_threads, 0},
                 {"copies", test_copies, 0},   {"graphs", test_graphs, 0},
                 {"order", test_order, 0},     {"close", test_close_in_flight, 0},
                 {"devices", test_devices, 0}, {"rows", test_every_row, 0},
                 {"edges", test_edges, 0},     {"addresses", test_addresses, 0},
                 {"waves", test_waves, 0},     {"batch", test_batch, 0},
                 {"memory", test_memory, 0},   {"fault", test_sticky_error, 0},
                 {"large", test_large, 1},     {"host", test_host_time, 1}};
    gpu_backend = first_gpu();
    if (!gpu_backend)
        return 77;
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return fault_child();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int is_wanted = argc < 2 && !parts[i].only_if_named;
        for (int word = 1; word < argc; word++)
            is_wanted |= strcmp(argv[word], parts[i].name) == 0;
        if (is_wanted)
            parts[i].run();
    }
    return test_close();
}
