/* SPDX-License-Identifier: Apache-2.0
 *
 * What common knows of a context, and the contract between common and a backend. (ARCHITECTURE.md
 * has the way of a call through both.) */
#ifndef TG_GEMM_H
#define TG_GEMM_H

#include "tile.h"

#define TG_TEXT_(x) #x
#define TG_TEXT(x) TG_TEXT_(x)
#define TG_VERSION_TEXT \
    TG_TEXT(TG_VERSION_MAJOR) "." TG_TEXT(TG_VERSION_MINOR) "." TG_TEXT(TG_VERSION_PATCH)

typedef struct tg_backend tg_backend;

/* The bytes of a matrix: from data + begin to before data + end; and the bits of an address that no
 * element has. */
typedef struct tg_reach {
    int64_t begin, end;
    uintptr_t odd;
} tg_reach;

/* The data of a problem that differs from others in nothing else. */
typedef struct tg_item {
    const void *a, *b;
    void *c;
} tg_item;

#define TG_PACKED (TG_A_PACKED | TG_B_PACKED)

/* What a packed operand starts with; its panels follow. A line is a row of the A that kernels see,
 * or a column of their B: op(A) and op(B), exchanged if C is stored by columns. */
typedef struct tg_packed {
    char magic[8], version[16];
    uint32_t which; /* of the problem's operands: one flag */
    int is_swapped;
    tg_type type, other; /* its own, and that of the other operand, which may change its panels */
    int registers, vec_bytes; /* of the instruction set */
    tg_tile tile;             /* stated, as it is forced on the multiplication */
    int64_t lines, k;
    int line, block_k; /* what a panel has, by the plan */
} tg_packed;

/* A line of the tuning file, packed: what it is for, and the tiling. */
typedef struct tg_tuned {
    uint64_t key; /* 0: none */
    tg_tile tile;
} tg_tuned;

/* All that a BLAS call says but for data, alpha and beta. */
typedef struct tg_blas {
    int64_t m, n, k, lda, ldb, ldc;
    int64_t type, layout, transa, transb; /* as wide, or compilers compare two at once, in memory */
} tg_blas;

struct tg_context {
    const tg_backend *backend;
    void *device; /* the backend's own */
    char device_name[128];
    tg_limits limits;
    int threads;      /* 0: as many as limits.units */
    int most_threads; /* that a CPU's call may use; 0: a GPU's has no threads */
    uint32_t flags;   /* of every problem */
    int is_forced;
    tg_tile forced;
    tg_tuned *tuned; /* by their keys, in a table of so many places, a power of two */
    int tuned_places, tuned_count;
    char library[32];   /* that wrote lines which can be used; "": no line has asked yet */
    tg_problem given;   /* the last problem that was planned, as it came (size 0: none), */
    tg_problem planned; /* as the backend takes it,                                      */
    int is_swapped;     /* with B for A,                                                 */
    tg_reach reach[3];  /* the memory of A, B and C as they came,                        */
    tg_plan plan;       /* its plan,                                                     */
    size_t plan_bytes;  /* the workspace that it takes,                                  */
    tg_packed packed;   /* what its packed operand said of itself,                       */
    uint64_t plans;     /* and how many plans there have been                            */
    tg_blas blas;       /* the last BLAS call, if this is the number of its plan:        */
    uint64_t blas_plan;
    void *workspace;
    size_t workspace_bytes;
    int workspace_is_callers;
    int is_traced; /* by TILEGEMM_TRACE */
    int is_timing; /* the stopwatch was started */
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
    /* NULL: all memory will do. Can the device take the data where they lie? */
    tg_status (*check)(tg_context *ctx, const tg_problem *p);
    /* The problem is checked, also by check, a GPU's C has col_stride 1 unless neither of its
     * strides is 1, and m, n and batch are positive. With k == 0 or alpha == 0, A and B must not be
     * read. ctx->workspace holds at least workspace() bytes, aligned to 64. */
    tg_status (*gemm)(tg_context *ctx, const tg_problem *p, const tg_plan *plan);
    /* NULL: gemm for one after the other. The problem, of batch 1, for each item: with its data. */
    tg_status (*gemm_items)(tg_context *ctx, const tg_problem *p, const tg_plan *plan,
                            const tg_item *items, int64_t count);
    /* NULL: work(arg, 0) is all. Calls work(arg, me) for 0 <= me < threads, side by side; contexts
     * that are copies of one may then call gemm_items. */
    void (*spread)(int threads, void (*work)(void *arg, int me), void *arg);
    /* NULL: operands cannot be packed. Packs all lines and k of the operand that flags names, which
     * is not packed yet: for each block of k, each panel of the plan's thread tile. */
    tg_status (*pack)(tg_context *ctx, const tg_problem *p, const tg_plan *plan, void *panels);
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
static inline tg_type tg_sum_type(tg_type type)
{
    switch (type) {
    case TG_F32:
    case TG_F16:
    case TG_BF16:
        return TG_F32;
    case TG_F64:
        return TG_F64;
    case TG_I8:
    case TG_U8:
        return TG_I32;
    case TG_I32:
        break;
    }
    return (tg_type)0;
}

/* Sizes, types and flags; then strides, pointers, and elements that coincide or overlap. With
 * with_data 0, no pointer is looked at. m, n and batch are positive for the second. */
tg_status tg_check_scalars(tg_context *ctx, const tg_problem *p);
tg_status tg_check_matrices(tg_context *ctx, const tg_problem *p, int with_data);

/* The reach of a batch of matrices that passed those checks; and do two have no byte in common? */
tg_reach tg_reach_of(const tg_input *x, int64_t rows, int64_t cols, int64_t batch);
static inline int tg_lie_apart(const void *x, tg_reach x_reach, const void *y, tg_reach y_reach)
{
    const uintptr_t x_at = (uintptr_t)x, y_at = (uintptr_t)y;
    return x_at + (uintptr_t)x_reach.end <= y_at + (uintptr_t)y_reach.begin ||
           y_at + (uintptr_t)y_reach.end <= x_at + (uintptr_t)x_reach.begin;
}

/* Is A or B as it should be, and apart from this memory? */
tg_status tg_check_apart(tg_context *ctx, const tg_problem *p, int is_b, const void *memory,
                         int64_t bytes);

/* The steps of a call, for the forms that it has. TG_OK if the context was opened: */
tg_status tg_need_open(tg_context *ctx);
/* Is it a struct that this library knows, or a longer one whose rest is 0? */
tg_status tg_problem_check(tg_context *ctx, const tg_problem *given);
/* C^T = B^T A^T */
static inline void tg_problem_swap(tg_problem *p)
{
    const tg_problem q = *p;
    p->flags &= ~(uint32_t)TG_PACKED;
    p->flags |= q.flags & TG_A_PACKED ? TG_B_PACKED : 0;
    p->flags |= q.flags & TG_B_PACKED ? TG_A_PACKED : 0;
    p->m = q.n, p->n = q.m;
    p->a = q.b, p->a.row_stride = q.b.col_stride, p->a.col_stride = q.b.row_stride;
    p->b = q.a, p->b.row_stride = q.a.col_stride, p->b.col_stride = q.a.row_stride;
    p->c.row_stride = q.c.col_stride, p->c.col_stride = q.c.row_stride;
}
/* Checks, and brings the problem to the form that backends take; for that, were A and B swapped? */
tg_status tg_problem_prepare(tg_context *ctx, tg_problem *p, int with_data, int *swapped);

/* The same, and read as its transpose if that is best. */
tg_status tg_problem_prepare_to_run(tg_context *ctx, tg_problem *p, int with_data, int *swapped);
/* ctx->plan and ctx->plan_bytes := how to run the prepared problem, and the workspace it takes. */
tg_status tg_problem_choose(tg_context *ctx, const tg_problem *p);
/* Both, or what is known already. The prepared problem, in the context or in the room for it, or
 * NULL; ctx->plan is its own if it is not empty. */
const tg_problem *tg_problem_plan(tg_context *ctx, const tg_problem *given, tg_problem *room,
                                  int with_data);
int tg_problem_is_empty(const tg_problem *p);

/* alpha and beta have the type that products are summed in. (volatile, because gcc 12 takes two
 * such roundings side by side for nothing at all.) */
static inline void tg_round_scalars(tg_type type, double *alpha, double *beta)
{
    if (tg_sum_type(type) == TG_F32) {
        volatile float f32_alpha = (float)*alpha, f32_beta = (float)*beta;
        *alpha = f32_alpha;
        *beta = f32_beta;
    }
}
/* Is the given problem like the one that ctx->plan is for, but for data, alpha and beta? */
int tg_problem_is_known(const tg_context *ctx, const tg_problem *given);
/* Are its data, for such a problem, surely there and apart? */
int tg_item_is_plain(const tg_context *ctx, const tg_item *x);
/* ctx->workspace has at least so many bytes. */
tg_status tg_have_workspace(tg_context *ctx, size_t bytes);

/* The packed operand of a problem, or NULL. */
const tg_packed *tg_packed_of(const tg_problem *p);
/* Is it one, made for such a problem on such a device? */
tg_status tg_packed_check(tg_context *ctx, const tg_problem *p);
/* Fits ctx->plan, which was made for its tile, to it; refused if the plan cuts otherwise. */
tg_status tg_packed_fit(tg_context *ctx, const tg_problem *p);
/* Bytes of the head and its panels. */
int64_t tg_packed_bytes(const tg_packed *packed);

/* "block.m = 12 is not a multiple ...": the verdict as a sentence in text[size]. */
void tg_verdict_print(tg_verdict verdict, char *text, size_t size);

/* *p := the problem as backends are given it, checked but for its data pointers. */
tg_status tg_describe(tg_context *ctx, const tg_problem *problem, tg_problem *p);

/* Reads the tuning file; what cannot be used is skipped. */
void tg_tuning_load(tg_context *ctx);
/* The tiling that a line has for problems such as this one, as backends are given it; or NULL. */
const tg_tile *tg_tuning_find(const tg_context *ctx, const tg_problem *p);

/* The threads that a CPU's call may use, or a GPU's multiprocessors. */
static inline int tg_units(const tg_context *ctx)
{
    return ctx->threads ? ctx->threads : ctx->limits.units;
}

static inline double tg_flops_of(const tg_problem *p)
{
    return 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

/* In operations of f32: those of f64 are half as fast, a byte takes as long as two, and where
 * there is AMX, packing is much of it. */
static inline double tg_work_of(const tg_problem *p, const tg_limits *l)
{
    const int in_tiles = p->a.type != TG_F16 && tg_type_size(p->a.type) < 4;
    const double at_once = in_tiles && (l->matrix & TG_CPU_AMX) ? 10 : 1;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const double elements = (m * k + k * n + m * n) * (double)p->batch;
    return (double)tg_type_size(p->a.type) * (tg_flops_of(p) / (4 * at_once) + 2 * elements);
}

/* As many of the units as so much work is worth waking. */
int tg_useful_threads(double work, int units);

/* As many pieces as before, all nearly equal: 1000 in pieces of 384 becomes pieces of 336. */
static inline int tg_even_piece(int64_t whole, int64_t piece, int64_t multiple)
{
    const int64_t pieces = tg_ceil_div(tg_max(whole, 1), piece);
    return (int)tg_round_up(tg_ceil_div(tg_max(whole, 1), pieces), multiple);
}

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

/* Its last step: cuts the plan's tile, which came from the stated one, to what the threads have of
 * the problem. A core multiplies so many vectors while a byte comes from the caches of others. */
void tg_cut_tile(const tg_problem *p, const tg_limits *limits, tg_tile stated, int bytes,
                 double fmas_per_byte, tg_plan *plan);

/* Its part for devices without caches of their own making: sets row (-1: none fits), tile, splits
 * and tail; forced is a row of the table, or NULL. */
void tg_choose_gpu(const tg_problem *p, const tg_limits *limits, int bytes, const tg_tile *forced,
                   tg_plan *plan);

#endif
