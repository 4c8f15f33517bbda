/* SPDX-License-Identifier: Apache-2.0
 *
 * What common knows of a context, and the contract between common and a backend.
 *
 * A call takes four hops:
 *   tg_sgemm     layout and transposes become strides                     (gemm.c)
 *   tg_gemm      checks, C column-major -> swap A and B, tg_choose        (gemm.c, pick.c)
 *   backend      one indirect call with the problem and its plan          (backends/...)
 *   kernel       full tiles; edges are masked on load and store only
 */
#ifndef TG_GEMM_H
#define TG_GEMM_H

#include "tile.h"

#define TG_TEXT_(x) #x
#define TG_TEXT(x) TG_TEXT_(x)
#define TG_VERSION_TEXT \
    TG_TEXT(TG_VERSION_MAJOR) "." TG_TEXT(TG_VERSION_MINOR) "." TG_TEXT(TG_VERSION_PATCH)

typedef struct tg_backend tg_backend;

/* The bytes of a matrix: from data + begin to before data + end. */
typedef struct tg_reach {
    int64_t begin, end;
} tg_reach;

/* A line of the tuning file, packed: what it is for, and the tiling. */
typedef struct tg_tuned {
    uint64_t key;
    tg_tile tile;
} tg_tuned;

struct tg_context {
    const tg_backend *backend;
    void *device; /* the backend's own */
    char device_name[128];
    tg_limits limits;
    int threads;    /* 0: as many as limits.units */
    uint32_t flags; /* of every problem */
    int is_forced;
    tg_tile forced;
    tg_tuned *tuned; /* in the order of their keys */
    int tuned_count;
    tg_problem given;   /* the last problem that was planned, as it came (size 0: none), */
    tg_problem planned; /* as the backend takes it,                                      */
    int is_swapped;     /* with B for A,                                                 */
    tg_reach reach[3];  /* the memory of A, B and C as they came,                        */
    tg_plan plan;       /* its plan,                                                     */
    uint64_t plans;     /* and how many there have been                                  */
    void *workspace;
    size_t workspace_bytes;
    int workspace_is_callers;
    tg_status status;
    char error[400]; /* the sentence of status */
    char text[200];  /* what tg_tile_refusal returns */
};

/* Functions return TG_OK, or tg_fail(...) after setting the sentence. */
struct tg_backend {
    const char *name;
    /* TG_OK if a device can be opened here, else the status and the reason. */
    tg_status (*reason)(char *reason, size_t size);
    /* Sets device, device_name and limits. */
    tg_status (*open)(tg_context *ctx, int device);
    void (*close)(tg_context *ctx);
    /* NULL if kernels for the legal tiling and A and B of this type exist, else a sentence. */
    const char *(*missing)(const tg_context *ctx, tg_tile tile, tg_type type);
    /* Bytes of device memory that gemm needs. */
    size_t (*workspace)(const tg_context *ctx, const tg_problem *p, const tg_plan *plan);
    /* The problem is checked, C has col_stride 1 unless neither of its strides is 1, and m, n and
     * batch are positive. With k == 0 or alpha == 0, A and B must not be read.
     * ctx->workspace holds at least workspace() bytes, aligned to 64. */
    tg_status (*gemm)(tg_context *ctx, const tg_problem *p, const tg_plan *plan);
    tg_status (*alloc)(tg_context *ctx, size_t bytes, void **memory);
    tg_status (*free)(tg_context *ctx, void *memory);
    tg_status (*upload)(tg_context *ctx, void *device, const void *host, size_t bytes);
    tg_status (*download)(tg_context *ctx, void *host, const void *device, size_t bytes);
    tg_status (*sync)(tg_context *ctx);
    tg_status (*set_stream)(tg_context *ctx, void *stream);
    tg_status (*peak)(tg_context *ctx, tg_type type, double *flops);
    tg_status (*time_start)(tg_context *ctx);
    tg_status (*time_stop)(tg_context *ctx, double *seconds);
    /* NULL: usage cannot be asked for. The tiling is legal and not missing. */
    tg_status (*usage)(tg_context *ctx, tg_tile tile, tg_type type, tg_usage *usage);
};

/* The backend of that name: NULL if it is absent, and then the reason (as tg_backend_reason). */
const tg_backend *tg_backend_find(const char *name, tg_status *status, char *reason, size_t size);

/* Records the status and its sentence in the context, and returns the status. */
tg_status tg_fail(tg_context *ctx, tg_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Forgets the last error and returns TG_OK. */
tg_status tg_succeed(tg_context *ctx);

/* The type that products of this type are summed in; 0 if A and B cannot have it. */
tg_type tg_sum_type(tg_type type);

/* Sizes, types and flags; then strides, null pointers, and elements that coincide or overlap. With
 * with_data 0, no pointer is looked at. m, n and batch are positive for the second. */
tg_status tg_check_scalars(tg_context *ctx, const tg_problem *p);
tg_status tg_check_matrices(tg_context *ctx, const tg_problem *p, int with_data);

/* The reach of a batch of matrices that passed those checks; and do two have no byte in common? */
tg_reach tg_reach_of(const tg_input *x, int64_t rows, int64_t cols, int64_t batch);
int tg_lie_apart(const void *x, tg_reach x_reach, const void *y, tg_reach y_reach);

/* "block.m = 12 is not a multiple ...": the verdict as a sentence in text[size]. */
void tg_verdict_print(tg_verdict verdict, char *text, size_t size);

/* TG_OK if the context was opened. */
tg_status tg_need_open(tg_context *ctx);
/* *p := the problem as backends are given it, checked but for its data pointers. */
tg_status tg_describe(tg_context *ctx, const tg_problem *problem, tg_problem *p);

/* Reads the tuning file; what cannot be used is skipped. */
void tg_tuning_load(tg_context *ctx);
/* The tiling that a line has for problems such as this one, as backends are given it; or NULL. */
const tg_tile *tg_tuning_find(const tg_context *ctx, const tg_problem *p);

/* Are all their numbers equal? */
int tg_tile_same(tg_tile x, tg_tile y);

/* The row that is this tiling, as stated or with its zeros filled in for the device; or -1. */
int tg_tile_row_like(const tg_tile *tile, const tg_limits *limits, tg_type type);

/* A number that differs if the table does. */
uint64_t tg_tile_table(void);

/* The chooser: a pure function of the problem, the limits and the forced tiling (NULL for none).
 * limits->units is the number of threads allowed. The problem is a checked one. The plan's tile is
 * filled in and cut to the problem. False if no row of the table fits the limits. */
int tg_choose(const tg_problem *p, const tg_limits *limits, const tg_tile *forced, tg_plan *plan);

/* Its part for devices without caches of their own making: sets row (-1: none fits), tile, splits
 * and tail; forced is a row of the table, or NULL. */
void tg_choose_gpu(const tg_problem *p, const tg_limits *limits, int bytes, const tg_tile *forced,
                   tg_plan *plan);

#endif
