/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loops (loops.h) know of the kernels of one instruction set (kernels.c). */
#ifndef TG_CPU_H
#define TG_CPU_H

#include "reads.h"

#define TG_X(name, value, text, ctype) +1
enum { TG_TYPES = 0 TG_TYPE_LIST(TG_X) };
#undef TG_X
enum {
    TG_CPU_KINDS = 2, /* f32, f64 */
    TG_CPU_ROWS = 0
#define TG_TILE(...) +1
#include "tiles.def"
};

/* The kernels that multiply A and B of a type: those of f64, or of f32 for all others. */
static inline int tg_cpu_kind(tg_type type) { return type == TG_F64; }

/* Panels come from L2, and are fetched so many steps of k ahead. What comes after them is fetched a
 * line for each TG_COMING_STEPS of k, and in pieces. */
enum { TG_FETCH_STEPS = 12, TG_COMING_STEPS = 2, TG_PIECE = 16 };

/* One thread tile: c := alpha * a * b + beta * c over k, rows x columns. a is rows x k with the
 * strides given, b is k x columns with unit column stride. beta == 0: c is only written. Strides
 * count elements. */
typedef struct tg_step {
    int64_t k, slice; /* of turned columns, a sum ends after so many of k, and is added to c */
    const void *a, *b;
    void *c;
    int64_t a_row, a_col, b_row, c_row;
    int rows, columns;
    int64_t more; /* so many whole tiles follow; the distance from each to the next: */
    int64_t a_next, b_next, c_next, sums_next;
    /* In the first steps_that_fetch steps of k, b + ahead is fetched, and before them C. Of packed
     * panels the kernel knows the distance itself, and fetches none if is_near: they are in L2. (In
     * streams, is_near: all that a thread reads of B stays in caches.) */
    int64_t ahead, steps_that_fetch;
    int is_near;
    /* Kernels that read rows of A can begin with sums, and leave them there instead of in c: whole
     * vectors, sums_row elements from row to row. */
    void *sums;
    int64_t sums_row;
    int begins_with_sums, leaves_sums;
    /* A B that is read where it is, all columns of one tile, is left packed there as well. NULL: it
     * is not. */
    void *kept;
    /* What is read soon: a line of it is fetched for each of k (with whole panels, each
     * TG_COMING_STEPS of k), so many bytes from one to the next, and from tile to tile (streams: so
     * many lines, of a row of the tile); after so many steps (with whole panels, each TG_PIECE) it
     * goes on some bytes further. NULL: nothing is. */
    const char *coming;
    int64_t coming_row, coming_next, coming_lines;
    int64_t coming_steps, coming_jump;
    /* Words: C is of the type of A and B, not of sums, and beta is of sums that waited for it
     * elsewhere, if that is not NULL. */
    int is_c_short;
    const float *waited;
    int64_t waited_row;
    tg_type b_type; /* if a stream (tg_is_stream) is to convert B from it; else 0 */
    double alpha, beta;
} tg_step;

/* run also takes fewer rows than the thread tile has, and fewer columns if they are a multiple of
 * grain, which is 1 or vec. With grain 0 it always does all of the tile. */
typedef struct tg_kernel {
    void (*run)(const tg_step *step); /* NULL where the registers are too small or too few */
    int grain, columns;               /* of a whole tile */
} tg_kernel;

/* to[o * to_outer + i * to_inner] = from[o * from_outer + i * from_inner], outer x inner elements
 */
typedef void tg_copy(void *to, int64_t to_outer, int64_t to_inner, const void *from,
                     int64_t from_outer, int64_t from_inner, int64_t outer, int64_t inner);

/* c := alpha * tile + beta * c modulo 2^32, of i32. The tile has whole numbers of at most 2^24. */
typedef void tg_add(void *c, int64_t c_row, int64_t c_col, const float *tile, int64_t tile_row,
                    int64_t rows, int64_t cols, double alpha, double beta);

/* Runs rounds of independent multiply-adds; returns their number of operations. */
typedef double tg_spin(int64_t rounds, double *sink);

/* Rows of a B in streams that are made words of at a time, and their columns. */
enum { TG_STREAMED_WORDS = 16, TG_STREAM_PANEL = 64 };
/* Of a B along k, so many vectors of columns are turned side by side: for up to TG_TURNED_ROWS rows
 * of A; and for a single row, with vectors of 64 bytes. */
enum { TG_TURNED_NEAR = 2, TG_TURNED_VECTORS = 3 };

/* Some of k in the middle of a sum, and all columns of a kernel: it has a body for that. */
static inline int tg_is_stream(const tg_step *s, int columns)
{
    return s->leaves_sums && s->k % TG_STREAMED == 0 && s->columns == columns;
}

/* So many panels, of so many accumulators each, are multiplied side by side: those of AVX2, which
 * are a line wide. */
#define TG_HAS_ROOM(accumulators, registers) ((accumulators) <= (registers)-4)
#define TG_SIDE_BY_SIDE(accumulators, vec_bytes, registers) \
    ((vec_bytes) != 32                            ? 1       \
     : TG_HAS_ROOM(4 * (accumulators), registers) ? 4       \
     : TG_HAS_ROOM(3 * (accumulators), registers)           \
         ? 3                                                \
         : 1 + TG_HAS_ROOM(2 * (accumulators), registers))

/* Products of words (words.h, words_bf16.h, amx.h), for two types and an instruction. */
typedef struct tg_words {
    tg_type a, b;
    tg_mnk inst;
    void (*run)(const tg_step *step);
    /* As many rows of A as tg_streams_words says, times B where it is: TG_STREAM_PANEL of its
     * columns (VNNI), or all of them. */
    void (*stream)(const tg_step *step);
    /* A few rows of A times columns of B along k. A comes as panels of 16 rows, a_row bytes from
     * one to the next (AMX), or as rows a_row bytes apart (BF16). NULL: there is none. */
    void (*lines)(const tg_step *step);
    tg_copy *copy[2]; /* to panels of A and of B */
    tg_spin *spin;
    void (*start)(void), (*stop)(void); /* of each thread's work; or NULL */
} tg_words;

/* For elements of one type. */
typedef struct tg_kernels {
    tg_kernel rows[TG_CPU_ROWS]; /* of the table */
    tg_spin *spin;
    /* Up to TG_TURNED_ROWS rows times columns that lie along k, b_row from one to the next: up to
     * TG_TURNED_NEAR vectors of so many, which are fetched so many words ahead, if that is not 0;
     * or one row times TG_TURNED_VECTORS. */
    void (*turned)(const tg_step *step);
    int turned_columns;
    /* Any number of rows of A along k, times columns in up to two lanes of 16 bytes; if less than
     * four rows, those above them are there. NULL: with vectors of less than 64 bytes. */
    void (*narrow)(const tg_step *step);
} tg_kernels;

typedef struct tg_isa {
    int vec_bytes, registers;
    const tg_kernels *kernels[TG_CPU_KINDS];
    /* By type - 1: from its elements to those of kernels, with to_inner 1 if they differ; and back,
     * rounded, with from_inner 1. NULL where nobody goes that way. i32 is moved as it is. */
    tg_copy *widen[TG_TYPES], *narrow[TG_TYPES];
    tg_add *add;
    int streams_short;     /* can streams convert f16, bf16, i8 and u8? */
    const tg_words *words; /* up to one without types */
} tg_isa;

/* Rows in tiles below one another: tall ones, then low ones, which have one row less. */
typedef struct tg_rows {
    int64_t tall, low;
    int height; /* of a tall one */
} tg_rows;

/* What kernels fetch of a B that is read in streams: of each panel the rows that come next, all
 * tiles together as many rows as they read, or the same rows some way along them. */
typedef enum tg_fetching {
    TG_FETCHES_NOTHING,
    TG_FETCHES_BELOW,
    TG_FETCHES_LOTS,
    TG_FETCHES_ALONG
} tg_fetching;

/* Where a matrix comes from. */
typedef enum tg_distance { TG_IN_L2, TG_IN_CACHES, TG_IN_MEMORY } tg_distance;

/* How memory is read (reading.h). */
typedef struct tg_reading {
    tg_distance a_from, b_from;
    /* In the nest: */
    int packs_late;    /* B, while its first row of tiles is multiplied, */
    int fetches_late;  /* and the next block of it meanwhile */
    int fetches_rows;  /* of A, those of the next tile, */
    int fetches_first; /* or with the first panel of B alone: they are near for others */
    /* In streams: */
    int64_t rows;         /* of B at a time, */
    int is_near;          /* if all that a thread reads of it stays in caches; */
    int goes_down;        /* panel by panel, not tile by tile of rows, */
    tg_fetching fetching; /* while others come */
    /* Of lines that are turned: */
    int64_t lines; /* so many at a time, */
    int ahead;     /* fetched so many words ahead, if that is not 0 */
} tg_reading;

/* What all threads know of a call. */
typedef struct tg_job {
    const tg_problem *p;
    const tg_plan *plan;
    const tg_isa *isa;
    tg_tile tile; /* filled in; block.k is that of the problem where nothing is staged */
    tg_kernel kernel;
    tg_reading reading;
    const tg_words *words;        /* NULL: none */
    tg_copy *copy_sums;           /* as kernels make them */
    tg_add *add;                  /* to a C of integers; else NULL */
    int64_t bytes, sum_bytes;     /* of an element of panels, and of sums */
    int converts;                 /* are A and B of a type that is not that of panels? */
    int64_t slice;                /* of k, in one pass over C */
    int64_t a_bytes, b_bytes;     /* of staging for one team */
    int64_t sums_row, sums_bytes; /* of sums beside C; 0 if C takes them itself */
    int64_t plane;                /* bytes of sums, of which there may be two */
    int splits;                   /* blocks of k that threads share, and sum apart; or 1: */
    int64_t apart_row;            /* elements of a row of such sums, */
    int64_t apart_bytes;          /* and bytes of a block's */
    int64_t cells;                /* of C: batch x strips */
    tg_mn strips, grain;          /* along m and n; what their edges are multiples of, */
    int64_t pieces_m, pieces_n;   /* and how many */
    int is_each_alone;            /* each thread takes whole cells, else all work on one */
    int is_direct;                /* one block, and nothing to stage, */
    int copies_b;                 /* but a small B that is copied to rows, */
    int widens;                   /* or all operands, from short types to f32 and back */
    int is_step;                  /* and an item is a step of a kernel, and one for its low rows */
    int is_alone;                 /* or it is all that there is, for one thread and slice */
    int is_flat;                  /* or so little k that C is written row by row */
    tg_step step, low_step;       /* then: what all steps have in common, */
    tg_rows rows;                 /* and how those of C are shared out to tiles */
    int64_t near_items;           /* so many stay in L2; of more, the next one is fetched, */
    int64_t next_a, next_b;       /* so many bytes of it for each step */
    int is_streamed;              /* few rows, and B is read once, along its rows, */
    tg_type stream_type;          /* which kernels convert, or 0, */
    int is_c_beside;              /* into a copy of a C that kernels cannot have as it is, */
    tg_turned turned;             /* or there are few lines of one, and many of the other */
    int64_t narrow;               /* the last columns, if they have a way of their own; or 0 */
    const tg_item *items;         /* their data; NULL: batch items, so many bytes apart: */
    int64_t a_item, b_item, c_item;
} tg_job;

/* A backend's own part of a context. */
typedef struct tg_cpu {
    const tg_isa *isa;
    uint64_t planned; /* the context's plans when the job was made */
    tg_job job;
    double started; /* the stopwatch, in seconds */
} tg_cpu;

/* The kernel for a tiling and types: that of a row with its thread, vec and form, or a ragged one
 * that is larger. run is NULL if there is none. */
tg_kernel tg_cpu_kernel(const tg_isa *isa, tg_tile tile, tg_type a, tg_type b);

/* How it multiplies words of such types: NULL if it does not. */
const tg_words *tg_cpu_words(const tg_isa *isa, tg_tile tile, tg_type a, tg_type b);

size_t tg_cpu_workspace(const tg_context *ctx, const tg_problem *p, const tg_plan *plan);
tg_status tg_cpu_gemm(tg_context *ctx, const tg_problem *p, const tg_plan *plan);
tg_status tg_cpu_gemm_items(tg_context *ctx, const tg_problem *p, const tg_plan *plan,
                            const tg_item *items, int64_t count);
void tg_cpu_spread(int threads, void (*work)(void *arg, int me), void *arg);
tg_status tg_cpu_pack(tg_context *ctx, const tg_problem *p, const tg_plan *plan, void *panels);

/* Finds the instruction set that is to be used, and says what there is of caches and cores: the
 * limits and the name of the context. NULL if TILEGEMM_ISA names none, as the context then says. */
const tg_isa *tg_cpu_read_machine(tg_context *ctx);

/* How many of the wanted threads this call may have: one inside a parallel region, or in a child
 * made by fork(). */
int tg_cpu_threads(int wanted);

#endif
