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

/* The bytes of a matrix: from data + begin to before data + end. */
typedef struct tg_reach {
    int64_t begin, end;
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
    uint64_t key;
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
    tg_tuned *tuned; /* in the order of their keys */
    int tuned_count;
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

/* Sizes, types and flags; then strides, null pointers, and elements that coincide or overlap. With
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

/* Does A or B overlap this memory? */
tg_status tg_check_apart(tg_context *ctx, const tg_problem *p, int is_b, const void *memory,
                         int64_t bytes);

/* The steps of a call, for the forms that it has. TG_OK if the context was opened: */
tg_status tg_need_open(tg_context *ctx);
/* Is it a struct that this library knows, or a longer one whose rest is 0? */
tg_status tg_problem_check(tg_context *ctx, const tg_problem *given);
/* C^T = B^T A^T */
void tg_problem_swap(tg_problem *p);
/* Checks, and brings the problem to the form that backends take; for that, were A and B swapped? */
tg_status tg_problem_prepare(tg_context *ctx, tg_problem *p, int with_data, int *swapped);
/* ctx->plan and ctx->plan_bytes := how to run the prepared problem, and the workspace it takes. */
tg_status tg_problem_choose(tg_context *ctx, const tg_problem *p);
/* Both, or what is known already. The prepared problem, in the context or in the room for it, or
 * NULL; ctx->plan is its own if it is not empty. */
const tg_problem *tg_problem_plan(tg_context *ctx, const tg_problem *given, tg_problem *room,
                                  int with_data);
int tg_problem_is_empty(const tg_problem *p);
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
int64_t tg_packed_bytes(const tg_context *ctx, const tg_packed *packed);

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

/* Do so many rows of A and columns of B lie in L1? */
static inline int tg_is_near(const tg_problem *p, int64_t lines, int64_t bytes, const tg_limits *l)
{
    return (double)lines * (double)p->k * (double)bytes <= 0.75 * (double)l->l1;
}

/* With no more of k than this, C is what takes the time: a CPU writes it row by row, if A and B are
 * read where they are, or B is copied. */
enum { TG_FLAT_K = 16 };

/* Is a small B that is not read where it is copied to rows, for kernels that read A where it is? */
static inline int tg_copies_b(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return plan->a_in_place && !plan->b_in_place && !(p->flags & TG_PACKED) &&
           p->c.col_stride == 1 && p->c.type == p->a.type &&
           tg_kernel_bytes(p->a.type, *l, plan->tile) == bytes && plan->tile.inst.k == 1 &&
           p->k <= l->l2 / 4 / bytes / tg_max(p->n, 1);
}

static inline int tg_packs_nothing(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return (plan->a_in_place && plan->b_in_place) || tg_copies_b(p, plan, l);
}

enum { TG_STREAM_ROWS = 32 };

/* Up to so many lines times columns that lie along k need nothing staged: squares of these are
 * turned in registers, B's for a few rows of A, or A's for a few columns of B. Those of A that
 * are little more than a vector are worth it if B had to be packed otherwise, or C to be added to.
 */
enum { TG_TURNED_ROWS = 4 };
typedef enum tg_turned { TG_NOT_TURNED, TG_TURNED_B, TG_TURNED_A } tg_turned;

static inline tg_turned tg_turned_of(const tg_problem *p, int64_t vector, int64_t block_k)
{
    const int is_worth =
        4 * p->m >= 5 * vector || (2 * p->m >= vector && (p->b.col_stride != 1 || p->k > block_k));
    if ((p->flags & TG_PACKED) || p->c.type != p->a.type)
        return TG_NOT_TURNED;
    if (p->m <= TG_TURNED_ROWS && p->b.row_stride == 1 && p->b.col_stride != 1)
        return TG_TURNED_B;
    return p->n <= TG_TURNED_ROWS && is_worth && p->k >= vector && p->a.col_stride == 1 &&
                   p->a.row_stride != 1
               ? TG_TURNED_A
               : TG_NOT_TURNED;
}

/* Has each thread a strip of C for itself? */
static inline int tg_is_cut(const tg_plan *plan) { return plan->strips.m * plan->strips.n > 1; }

/* The largest of so many strips of all rows, or columns, that end where grains of them do. */
static inline int64_t tg_largest_strip(int64_t all, int64_t strips, int64_t grain)
{
    return tg_min(all, tg_ceil_div(tg_ceil_div(all, grain), strips) * grain);
}

/* Strips end where tiles do; or, if the largest is so much smaller then, where finer grains do: a
 * ragged tile takes as long as a quarter more. */
static inline int tg_strip_grain(int64_t all, int64_t strips, int tile, int fine)
{
    const int64_t in_tiles = tg_largest_strip(all, strips, tile);
    return tg_largest_strip(all, strips, fine) + tile / 4 < in_tiles ? fine : tile;
}

/* Cores of Xeons have it, and caches beyond it and memory are further off there than elsewhere. */
static inline int tg_has_large_l2(const tg_limits *l) { return l->l2 >= 2 << 20; }

/* The largest power of two that divides it: lines so far apart share sets of a cache. */
static inline int64_t tg_even_part(int64_t stride)
{
    return tg_max(1, (int64_t)((uint64_t)stride & -(uint64_t)stride));
}

/* Does L2 take so many rows of B before they push one another out? */
static inline int tg_holds_rows(const tg_problem *p, const tg_limits *l, int64_t rows)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return l->l2 / bytes / tg_even_part(p->b.row_stride) >= rows;
}

/* The columns of B that a thread has, and how many rows of them are as large as L2. */
static inline int64_t tg_columns_of_thread(const tg_problem *p, const tg_plan *plan)
{
    return tg_max(1, p->batch > 1 ? p->n : tg_ceil_div(p->n, plan->threads));
}

static inline int64_t tg_rows_in_l2(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return l->l2 / (int64_t)tg_type_size(p->a.type) / tg_columns_of_thread(p, plan);
}

/* Few rows times a B that is read where it is, with a large L2: so many tiles of them if each
 * fetches for itself what it reads next; and so many rows of B in a lot. */
enum { TG_STREAM_TILES = 2, TG_LOT = 64 };

/* Threads read strips of a B in rows badly if these are narrow: memory comes page by page. If they
 * were, and are far, threads share blocks of k as well, whose sums are made apart, and added in
 * order then. Those are to be little beside B. More than a few rows are better off without where
 * L2 is small, as are two threads where it is large, or many rows that can fetch lots. So many
 * blocks; or 1: k is not split. */
static inline int tg_stream_splits(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    enum { PAGE = 4096, LITTLE = 16 };
    const tg_tile t = plan->tile;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), threads = plan->threads;
    const int64_t row = p->n * bytes; /* of B */
    const int is_large = tg_has_large_l2(l);
    const int64_t most = is_large ? 2 * TG_STREAM_TILES * t.thread.m : TG_TURNED_ROWS;
    const int64_t widest = !is_large                             ? 2 * PAGE
                           : p->m > TG_STREAM_TILES * t.thread.m ? PAGE / 2
                                                                 : PAGE;
    const int64_t least = is_large ? l->l2 / 2 : 8 * l->l2; /* of B, for a thread */
    const int is_plain = p->batch == 1 && !(p->flags & TG_PACKED) && p->b.col_stride == 1 &&
                         p->c.col_stride == 1 && p->c.type == p->a.type &&
                         tg_kernel_bytes(p->a.type, *l, t) == bytes;
    if (!is_plain || t.form != TG_OUTER || t.stages != 1 || threads <= (is_large ? 2 : 1) ||
        row < PAGE || row > widest * threads || p->k < least * threads / row || p->m > most ||
        p->m > t.block.k / LITTLE)
        return 1;
    return (int)tg_ceil_div(p->k, tg_ceil_div(t.block.k, t.slices));
}

/* Is what a thread has of B so near that they read it best panel by panel? The first tile of them
 * then brings it closer for others, and no sums wait as in streams. So it is if L2 holds its rows,
 * or has room to spare: of a B that is some times as large, or of a little more if its rows, more
 * than two pages apart, are far for whatever fetches ahead. */
static inline int tg_reads_panels(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    enum { TWO_PAGES = 8192 };
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), rows = tg_rows_in_l2(p, plan, l);
    const int64_t least = p->b.row_stride <= TWO_PAGES / bytes ? p->k / 4 : p->k - p->k / 3;
    return tg_has_large_l2(l) && tg_stream_splits(p, plan, l) == 1 && least <= rows &&
           (tg_holds_rows(p, l, p->k) || p->k <= rows / 4) &&
           (plan->threads <= 2 || p->m <= TG_STREAM_TILES * plan->tile.thread.m);
}

/* Or is it worth it that all tiles together fetch its rows, a lot of them ahead? Not if they are
 * short, if L2 does not hold two lots, or if it holds all that some threads have of B. */
static inline int tg_fetches_lots(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    enum { SHORT = 2048 };
    const int is_near = p->k <= tg_rows_in_l2(p, plan, l) && tg_holds_rows(p, l, p->k);
    return tg_has_large_l2(l) && !tg_reads_panels(p, plan, l) && tg_holds_rows(p, l, 2 * TG_LOT) &&
           tg_columns_of_thread(p, plan) >= SHORT / (int64_t)tg_type_size(p->a.type) &&
           (plan->threads <= 2 || !is_near);
}

/* So many tiles of rows of A are served by a B that is read where it is: more if it is far, and
 * with vectors of 64 bytes. */
static inline int tg_stream_tiles(const tg_limits *l, int64_t bytes, int is_far)
{
    const int most = is_far && !tg_has_large_l2(l) ? 8 : 4;
    if (l->vec_bytes < 64 || bytes == 1)
        return l->vec_bytes == 32 && bytes > 1 && is_far ? 3 : 2;
    return most;
}

static inline int64_t tg_stream_rows(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    const int is_far = p->k > l->l2 / bytes / tg_max(p->n, 1);
    const int is_alone = tg_has_large_l2(l) && !tg_fetches_lots(p, plan, l) &&
                         tg_stream_splits(p, plan, l) == 1 &&
                         (plan->threads > 2 || !tg_reads_panels(p, plan, l));
    const int most = tg_stream_tiles(l, bytes, is_far);
    const int64_t tiles = is_alone ? tg_min(TG_STREAM_TILES, most) : most;
    return plan->tile.form == TG_OUTER && p->b.col_stride == 1 ? tiles * plan->tile.thread.m : 0;
}

/* Is B read in streams, where it is or converted? */
static inline int tg_is_streamed(const tg_problem *p, const tg_limits *l, const tg_plan *plan,
                                 int bytes)
{
    return p->m <= tg_stream_rows(p, plan, l) &&
           (plan->b_in_place || tg_type_size(p->a.type) != (size_t)bytes);
}

/* Is it a few rows, of which so many words of B are used at once that it is best read where it is?
 */
static inline int tg_streams_words(const tg_problem *p, tg_tile t)
{
    return t.inst.k > 1 && p->m <= tg_min(t.thread.m, TG_STREAM_ROWS) && p->a.col_stride == 1 &&
           p->b.col_stride == 1;
}

/* Or of tiles, with columns that lie along k, of which 16 are a tile as they lie? */
static inline int tg_turns_words(const tg_problem *p, tg_tile t)
{
    return t.inst.m > 1 && p->m <= t.thread.m && p->b.row_stride == 1 && p->b.col_stride != 1 &&
           !(p->flags & TG_PACKED);
}

/* Lines of A along k are rows of tiles as they lie, if k ends with a tile. They are worth packing
 * if they are needed often, sooner if L1 has fewer ways than there are lines so far apart that they
 * push one another out. */
static inline int tg_reads_lines(const tg_problem *p, const tg_plan *plan)
{
    enum { WAY = 4096, WAYS = 8, SELDOM = 8, OFTEN = 2048 };
    const tg_tile t = plan->tile;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    const int64_t apart = tg_min(tg_even_part(p->a.row_stride), WAY / bytes) * bytes;
    const int is_crowded = t.thread.m * apart > WAYS * WAY;
    return t.inst.m > 1 && p->a.col_stride == 1 && p->k % t.inst.k == 0 &&
           (is_crowded ? p->n <= SELDOM * t.thread.n * plan->strips.n
                       : tg_min(p->m, p->n) <= OFTEN);
}

/* A B that lies in rows can be packed by the kernel that reads it first: with vectors of 64 bytes
 * it has stores to spare, and time to fetch what comes next; with half of that it pays for few
 * rows, of a B that is in L2. B then comes panel by panel, so A must be read where it is. Not if so
 * many rows of B share sets of L2 that they push one another out; and the table's own kernels do
 * it, on whole columns and more than half of their rows. */
static inline int tg_packs_late(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const tg_tile t = plan->tile, row = tg_tile_at(plan->row);
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    enum { FEW = 48 };
    const int is_near = p->m <= FEW && p->k <= l->l2 / bytes / tg_max(p->n, 1);
    return l->vec_bytes >= (is_near ? 32 : 64) && t.form != TG_DOT && t.inst.k == 1 &&
           t.slices == 1 && row.thread.n == t.thread.n && 2 * t.thread.m > row.thread.m &&
           p->m >= t.thread.m && plan->a_in_place && !plan->b_in_place && !(p->flags & TG_PACKED) &&
           p->b.col_stride == 1 && p->c.col_stride == 1 && p->c.type == p->a.type &&
           tg_kernel_bytes(p->a.type, *l, t) == bytes && tg_holds_rows(p, l, t.block.k / 2);
}

/* Does it fetch the block that comes next, too? One with a large L2 is faster without: so many
 * lines from caches further off were in the way of others, or gone again. */
static inline int tg_fetches_late(const tg_limits *l) { return !tg_has_large_l2(l); }

/* Does a large A come from memory for a few columns of B? Kernels with vectors of 64 bytes fetch
 * its rows, those of the next tile while this one is multiplied. */
static inline int tg_fetches_rows(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const tg_tile t = plan->tile;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return l->vec_bytes >= 64 && t.form == TG_OUTER && t.inst.k == 1 && t.slices == 1 &&
           plan->a_in_place && !plan->b_in_place && !(p->flags & TG_A_PACKED) &&
           tg_tile_at(plan->row).thread.n >= 3 * t.vec && p->n <= 2 * t.thread.n &&
           p->k > l->l2 / bytes / tg_max(p->m, 1);
}

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
