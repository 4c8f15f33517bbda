/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of test_gpu, one file each, and what they share: products to be checked, and the little
 * that the tests need of a GPU's own driver. */
#ifndef GPU_H
#define GPU_H

#include <tilegemm.h>

/* Each opens contexts of its own. */
void test_streams(void);
void test_threads(void);
void test_copies(void);
void test_graphs(void);
void test_order(void);
void test_close_in_flight(void);
void test_devices(void);
void test_every_row(void);
void test_edges(void);
void test_waves(void);
void test_addresses(void);
void test_batch(void);
void test_large(void);
void test_host_time(void);
void test_memory(void);
void test_sticky_error(void);
int fault_child(void); /* what the program does that test_sticky_error starts */

/* ------------------------------------------------------------------------------------- products
 * An f32 product of small integers on a context: filled, started, and compared with ==. */
typedef struct product {
    tg_context *ctx;
    int64_t m, n, k;
    int64_t b_k, b_n;           /* strides of B */
    float *host[3], *device[3]; /* A, B, C */
} product;

/* 0: no memory. What was made is dropped in any case by product_drop. */
int product_make(product *p, tg_context *ctx, int64_t m, int64_t n, int64_t k);
/* The same with a B that is stored transposed, in lines of ldb elements. */
int product_make_nt(product *p, tg_context *ctx, int64_t m, int64_t n, int64_t k, int64_t ldb);
/* New numbers for A and B, NaN for C. */
int product_fill(product *p, uint64_t seed);
tg_status product_start(const product *p);
/* Waits for C; 0: wrong. */
int product_is_right(product *p);
void product_drop(product *p);

/* What tg_gemm_workspace says of it. */
size_t product_workspace(tg_context *ctx, int64_t m, int64_t n, int64_t k);
/* A size whose k is shared out between blocks, so that it takes a workspace of more than `least`
 * bytes. 0: the chooser does so for none. */
int product_make_shared(product *p, tg_context *ctx, size_t least);

/* A context on the backend under test; checked. */
tg_context *gpu_open(int device);
extern const char *gpu_backend;

/* --------------------------------------------------------------------------------------- driver
 * What a program that calls the library has of its own. All return 0 for success. */
typedef struct gpu_driver {
    int (*use)(int device); /* for the calling thread */
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_ask)(void *stream); /* 0: all that was queued on it is done */
    int (*stream_destroy)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_prepare)(void **ready, void *graph, unsigned long long flags);
    int (*graph_launch)(void *ready, void *stream);
    int (*ready_destroy)(void *ready);
    int (*graph_destroy)(void *graph);
    /* Starts a kernel that stores where there is no memory; NULL: the test has none for it. */
    int (*start_faulty_kernel)(void);
    int (*start_empty_kernel)(void); /* with arguments such as the library's kernels have */
} gpu_driver;

/* Looks the functions up; 0: the driver of this backend is not there, or not known here. */
int gpu_driver_find(const char *backend);
extern gpu_driver gpu;

#endif
