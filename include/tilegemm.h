/* SPDX-License-Identifier: Apache-2.0
 *
 * tilegemm: C := alpha * op(A) * op(B) + beta * C, from one tiling description, on CPUs and GPUs.
 *
 *     op(A) is m x k      op(B) is k x n      C is m x n      (any of m, n, k may be 0)
 *
 * The simple way in:
 *
 *     tg_context *ctx;
 *     if (tg_open(&ctx, "cpu", 0) == TG_OK)
 *         tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, m, n, k, 1, a, k, b, n, 0, c, n);
 *     if (tg_last_status(ctx) != TG_OK)
 *         puts(tg_last_error(ctx));
 *     tg_close(ctx);
 *
 * Four promises hold for every function here.
 *   - Bad input is answered with a status, and tg_last_error says in a sentence which argument was
 *     wrong and what it was. Nothing is written then. The library never aborts or exits, and prints
 *     only what TILEGEMM_TRACE=1 asks for, to stderr.
 *   - Sizes and strides are int64_t and count elements, never bytes. Bytes are size_t. A matrix may
 *     span 2^48 elements.
 *   - A context belongs to one host thread at a time. Any number of contexts may work at once, in
 *     any threads; they share nothing that is written to.
 *   - The same call gives the same bits on every run and with every number of threads.
 *
 * This header is C99 and C++11, and includes nothing but the two standard headers below.
 */
#ifndef TILEGEMM_H
#define TILEGEMM_H

#include <stddef.h>
#include <stdint.h>

#define TG_VERSION_MAJOR 0
#define TG_VERSION_MINOR 1
#define TG_VERSION_PATCH 0

#if defined(__GNUC__)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------ statuses
 * Every status, its value and its text. tg_status_text(TG_BAD_TILE) is the third column. */
#define TG_STATUS_LIST(X)                                                   \
    X(TG_OK, 0, "success")                                                  \
    X(TG_BAD_ARGUMENT, 1, "an argument is outside what the function takes") \
    X(TG_BAD_TILE, 2, "the tiling is not legal on this device")             \
    X(TG_NO_BACKEND, 3, "the backend is not in this build or did not load") \
    X(TG_NO_DEVICE, 4, "the backend found no such device")                  \
    X(TG_NOT_SUPPORTED, 5, "the backend does not offer this")               \
    X(TG_OUT_OF_MEMORY, 6, "memory could not be had")                       \
    X(TG_SMALL_WORKSPACE, 7, "the workspace given is too small")            \
    X(TG_DEVICE_ERROR, 8, "the device or its driver reported an error")

typedef enum tg_status {
#define TG_X(name, value, text) name = value,
    TG_STATUS_LIST(TG_X)
#undef TG_X
} tg_status;

/* The text of a status; "unknown status" for any other number. Never NULL, never freed. */
TG_API const char *tg_status_text(tg_status status);

/* "0.1.0": the version of the library that is running, as the macros above are of this header. */
TG_API const char *tg_version(void);

/* --------------------------------------------------------------------------------- element types
 * Name, value, the name that people type, the C type: of f16 and bf16, what holds their bits. */
#define TG_TYPE_LIST(X)           \
    X(TG_F32, 1, f32, float)      \
    X(TG_F64, 2, f64, double)     \
    X(TG_F16, 3, f16, uint16_t)   \
    X(TG_BF16, 4, bf16, uint16_t) \
    X(TG_I8, 5, i8, int8_t)       \
    X(TG_U8, 6, u8, uint8_t)      \
    X(TG_I32, 7, i32, int32_t)

/* What is multiplied with what; all else is refused, with the argument and its value.
 *
 *     A, B               C              products are summed in     alpha and beta are
 *     f32, f32           f32            f32                        rounded to f32
 *     f64, f64           f64            f64                        as they are
 *     f16, f16           f16 or f32     f32                        rounded to f32
 *     bf16, bf16         bf16 or f32    f32                        rounded to f32
 *     each of i8, u8     i32            whole numbers              whole numbers of 32 bits
 *
 *   - f16 is IEEE binary16; bf16 is the upper half of an f32. Each of their values is one of f32,
 *     denormals too, and C is what f32 matrices of these values would give: f32 sums over all of
 *     k, and alpha * sum + beta * C in f32. That is rounded once to the type of C, to nearest,
 *     ties to even: to Inf if it is too large, through the denormals to 0 if it is small. NaN
 *     stays NaN, with any payload. |C - exact| is within the bound for f32 below, plus u |C| with
 *     the unit roundoff u of C's type: 2^-11 in f16, 2^-8 in bf16.
 *   - Sums of integers are exact. C := alpha * sum + beta * C is taken modulo 2^32: a result that
 *     i32 can hold is right, whatever overflowed on the way to it, and any other has its low 32
 *     bits. An alpha or beta that i32 cannot hold is refused: TG_NOT_SUPPORTED.
 *   - All of it is on the CPU. A GPU refuses the types that it has no kernels for: tg_tile_refusal.
 *     AMD's have some for f16, bf16 and i8.
 *   - A gfx90a, and a CPU whose device name ends with "bf16" or "amx", multiply bf16 by
 *     instructions that take denormals for zero; on a CPU, sums below 2^-126 are zero then, too.
 *     (Not so with TILEGEMM_ISA=vnni.) */

typedef enum tg_type {
#define TG_X(name, value, text, ctype) name = value,
    TG_TYPE_LIST(TG_X)
#undef TG_X
} tg_type;

/* "f32", or NULL if there is no such type. */
TG_API const char *tg_type_name(tg_type type);
/* Bytes of one element, or 0 if there is no such type. */
TG_API size_t tg_type_size(tg_type type);

/* -------------------------------------------------------------------------------------- backends
 * A backend is "cpu", "cuda" or "hip". All are listed, also those that cannot be used here. */
TG_API int tg_backend_count(void);
/* The name of backend 0 <= index < tg_backend_count(), best first; NULL outside. */
TG_API const char *tg_backend_name(int index);
/* TG_OK if the backend can be opened on this machine. Otherwise the status that tg_open would give,
 * and the reason as a sentence in reason[size] (cut to fit; reason may be NULL with size 0). */
TG_API tg_status tg_backend_reason(const char *backend, char *reason, size_t size);

/* -------------------------------------------------------------------------------------- contexts
 * A context is one device, one stream, and the memory that calls on it reuse. */
typedef struct tg_context tg_context;

/* Opens a device of a backend: "cpu", "cuda", "hip", or NULL for the best one present.
 * device counts from 0 (the CPU has only device 0).
 * As with sqlite3_open, *ctx is set on failure too, so that tg_last_error(*ctx) can say why. Such a
 * context is to be closed; all that returns a status, but for tg_last_status, refuses it. (*ctx is
 * NULL only if it could not be allocated: TG_OUT_OF_MEMORY.)
 * Environment read here: TILEGEMM_TILE (a tiling, see tg_force), TILEGEMM_THREADS (see
 * tg_set_threads), TILEGEMM_BATCH_INVARIANT (1: every call has that flag), TILEGEMM_ISA (CPU: the
 * instruction set to use at most; `tilegemm info` lists them), TILEGEMM_BACKEND_PATH (folders, with
 * colons between, that are searched for the GPUs' modules first: those that begin with a /),
 * TILEGEMM_TRACE (1: to say on stderr that the tuning file is not used, or which of its lines, and
 * why), and what tg_tuning_path says. Empty is as not set, but for the tuning file. A value that
 * cannot be used is an error of tg_open; a folder that is not there, a tuning file that cannot be
 * read, and a line of it that cannot be used are none (see tuning, below). */
TG_API tg_status tg_open(tg_context **ctx, const char *backend, int device);

/* Waits for the context's work and frees all it holds. NULL is fine. */
TG_API void tg_close(tg_context *ctx);

/* The status of the last call on this context, and its sentence ("" after TG_OK). The sentence
 * lives until the next call on the context. For NULL: TG_OUT_OF_MEMORY and its text. */
TG_API tg_status tg_last_status(const tg_context *ctx);
TG_API const char *tg_last_error(const tg_context *ctx);

/* The number of CPU threads that a call may use; 0 (the default) means as many as OpenMP would.
 * A small problem uses fewer; no call uses more than 8, or four for each processor if that is more.
 * A call from inside an OpenMP parallel region, or in a child made by fork() without exec(), runs
 * on the calling thread alone. GPU backends accept and ignore it. */
TG_API tg_status tg_set_threads(tg_context *ctx, int threads);

/* The stream that later calls are queued on: a cudaStream_t or hipStream_t as a pointer; NULL is
 * the device's default stream. The CPU takes only NULL. The caller keeps the stream alive. What was
 * queued on the stream before is done first; calls that are captured into a graph do not wait for
 * that, and the first call after them that is not captured does. A captured call is replayed with
 * the workspace that it had: let it be one that was given by tg_set_workspace, and outlives the
 * graph. Graphs that run at once need one each. */
TG_API tg_status tg_set_stream(tg_context *ctx, void *stream);

/* Memory of the device that calls use for staging, instead of what the context allocates itself
 * and keeps, so that a later call that needs no more allocates nothing. At least
 * tg_gemm_workspace() bytes, aligned to 64. A call that needs more is refused with
 * TG_SMALL_WORKSPACE. NULL with 0 returns to the context's own memory. The caller keeps it alive
 * and gives it to no other context at the same time. */
TG_API tg_status tg_set_workspace(tg_context *ctx, void *memory, size_t bytes);

/* Waits until all calls made on the context are done. (CPU calls are done when they return.) */
TG_API tg_status tg_sync(tg_context *ctx);

/* ------------------------------------------------------------------------- the BLAS form of GEMM
 * Layout and transpose have the values of CBLAS, so that CBLAS_LAYOUT and CBLAS_TRANSPOSE values
 * can be passed on. TG_CONJ_TRANS equals TG_TRANS on real matrices. */
typedef enum tg_layout { TG_ROW_MAJOR = 101, TG_COL_MAJOR = 102 } tg_layout;
typedef enum tg_trans { TG_NO_TRANS = 111, TG_TRANS = 112, TG_CONJ_TRANS = 113 } tg_trans;

/* cblas_sgemm / cblas_dgemm with 64-bit sizes (BLAS Technical Forum Standard, 2001, and the
 * clarifications of Reference-LAPACK #1077):
 *     C := alpha * op(A) * op(B) + beta * C,      op(X) = X or its transpose.
 * lda is the distance between rows (row-major) or columns (column-major) of A as stored, and at
 * least max(1, the length of one); ldb and ldc alike. The space between belongs to the caller and
 * is neither read nor written.
 *   - beta == 0: C is only written; NaN in it does not survive.
 *   - alpha == 0 or k == 0: A and B are not read and may be NULL; C := beta * C.
 *   - m == 0 or n == 0: nothing is touched, all three may be NULL.
 *   - NaN and Inf in A or B reach every C element they belong to: no multiplication is skipped.
 *   - C must not overlap A or B; where that can be seen it is refused.
 * The pointers are of the context's device: tg_alloc, or any memory on the CPU. Host memory that a
 * GPU cannot reach is refused.
 * Sums are rounded in the type that they are summed in, in an order that the tiling fixes, each
 * within the bound |C - exact| <= gamma(k + 2) * (|alpha| |A| |B| + |beta| |C|)        (Higham,
 * ASNA, 3.5). A CPU adds up C block of k by block, and alpha times the sum of each: what overflows
 * on the way is Inf or NaN, even if all of it together would not be. */
TG_API tg_status tg_sgemm(tg_context *ctx, tg_layout layout, tg_trans transa, tg_trans transb,
                          int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                          const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
TG_API tg_status tg_dgemm(tg_context *ctx, tg_layout layout, tg_trans transa, tg_trans transb,
                          int64_t m, int64_t n, int64_t k, double alpha, const double *a,
                          int64_t lda, const double *b, int64_t ldb, double beta, double *c,
                          int64_t ldc);

/* --------------------------------------------------------------------- the general form of GEMM
 * Element (i, j) of batch item x lies at data[i * row_stride + j * col_stride + x * batch_stride].
 * A transposed matrix is one with its two strides swapped; a column-major one has row_stride 1.
 * Strides may be negative. Data are aligned as their type. Inputs may have zero strides:
 * batch_stride 0 uses one matrix for the whole batch, row_stride 0 repeats one row. The elements of
 * C must be distinct: if its strides make some coincide, it is refused. */
typedef struct tg_input {
    const void *data;
    int64_t row_stride, col_stride, batch_stride;
    tg_type type;
} tg_input;

typedef struct tg_output {
    void *data;
    int64_t row_stride, col_stride, batch_stride;
    tg_type type;
} tg_output;

/* How products are formed and summed. TG_STRICT: as the table of element types says, in correctly
 * rounded operations. */
typedef enum tg_compute { TG_STRICT = 0 } tg_compute;

/* Flags of a problem, to be added up.
 * TG_BATCH_INVARIANT  An element of C gets bits that follow from its row of A, its column of B, k,
 *                     alpha and beta alone: not from m, n, the batch, its place in them, strides,
 *                     alignment, or the kernel that is chosen, for a device and a type. On the CPU
 *                     that is always so, with a forced tiling for it alone, and the flag is free. A
 *                     GPU then chooses only among rows that sum along k in one order, and splits no
 *                     k; a forced tiling may sum otherwise, and leaves some shapes to another.
 *                     Without it too, one problem gives the same bits each time, on each stream,
 *                     with any number of threads.
 * TG_A_PACKED, TG_B_PACKED    A or B is a packed operand: see tg_pack. */
typedef enum tg_flag { TG_BATCH_INVARIANT = 1, TG_A_PACKED = 2, TG_B_PACKED = 4 } tg_flag;

/* c[x] := alpha * a[x] * b[x] + beta * c[x] for 0 <= x < batch, where a[x] is m x k (as it is to
 * be multiplied, so transposes end here), b[x] is k x n, c[x] is m x n. Their types are a line of
 * the table of element types: products of f16 that are kept in f32, say, are
 *
 *     tg_problem p = TG_PROBLEM_INIT;
 *     p.m = m, p.n = n, p.k = k;
 *     p.a = (tg_input){a, k, 1, 0, TG_F16};
 *     p.b = (tg_input){b, n, 1, 0, TG_F16};
 *     p.c = (tg_output){c, n, 1, 0, TG_F32};
 *     tg_gemm(ctx, &p);
 *
 * Start from TG_PROBLEM_INIT: batch and alpha are then 1, everything else 0, and a program compiled
 * against an older header goes on working, because size says how much of the struct it knows. */
typedef struct tg_problem {
    size_t size;
    int64_t m, n, k, batch;
    tg_input a, b;
    tg_output c;
    double alpha, beta;
    tg_compute compute;
    uint32_t flags; /* of tg_flag; 0: none */
} tg_problem;

#define TG_PROBLEM_INIT                                                                   \
    {                                                                                     \
        sizeof(tg_problem), 0, 0, 0, 1, {NULL, 0, 0, 0, TG_F32}, {NULL, 0, 0, 0, TG_F32}, \
            {NULL, 0, 0, 0, TG_F32}, 1.0, 0.0, TG_STRICT, 0                               \
    }

/* Multiplies. The rules of tg_sgemm hold for each batch item; batch 0 touches nothing. */
TG_API tg_status tg_gemm(tg_context *ctx, const tg_problem *problem);

/* Many problems in one call: their shapes, types and scalars may differ, and each may be a strided
 * batch. Small ones are shared out to the threads, the large ones are worked on by all. They are
 * done in no particular order, and maybe at once: what one of them writes, no other may read or
 * write, which is not checked. All else is checked before anything is written; a refusal names the
 * problem, as in "item 7: m = -1 is negative". Problems that differ from the one before them in
 * their data alone cost least: they are neither checked nor planned anew. A workspace that is
 * enough for each of them is enough; more of it occupies more threads. On a GPU they are queued one
 * by one. */
TG_API tg_status tg_gemm_grouped(tg_context *ctx, const tg_problem *problems, int64_t count);

/* The same for one problem with arrays of pointers instead of its data: a list of problems says all
 * that they can, but has to be made of them. Item x multiplies a[x] and b[x] into c[x]. */
TG_API tg_status tg_gemm_pointers(tg_context *ctx, const tg_problem *problem, const void *const *a,
                                  const void *const *b, void *const *c, int64_t count);

/* *bytes := the workspace that tg_gemm needs for this problem with the context as it stands
 * (threads, forced tiling). The data pointers are not looked at. */
TG_API tg_status tg_gemm_workspace(tg_context *ctx, const tg_problem *problem, size_t *bytes);

/* -------------------------------------------------------------------------------- packed operands
 * An operand that is used many times, such as the weights of a network, can be brought once to the
 * form in which kernels take it. With B as weights, which every call multiplies with rows of its
 * own:
 *
 *     size_t bytes;
 *     void *packed;
 *     tg_pack_size(ctx, &p, TG_B_PACKED, &bytes);
 *     tg_alloc(ctx, bytes, &packed);
 *     tg_pack(ctx, &p, TG_B_PACKED, packed, bytes);
 *     p.b.data = NULL;                              B itself is not needed any more
 *     p.m = rows, p.a.data = a, p.c.data = c;
 *     tg_packed_gemm(ctx, &p, TG_B_PACKED, packed);
 *
 * What is packed belongs to k, to n (of A: to m), to the types, to the tiling and to the device's
 * instruction set and caches; a problem that differs in one of them is refused, in a sentence that
 * says which. The other size, the batch, alpha and beta, and where and how the other operand and C
 * are stored may be anything, but C is best stored by rows or by columns as it was in tg_pack's
 * problem. The result is that of tg_gemm, bit for bit; with the same tiling, if one is forced.
 * It takes as much memory as the operand does, in whole panels: types that no instruction there
 * multiplies (f16; bf16, i8 and u8 on many) become f32 on their way to the kernel.
 * Only the CPU packs; on others it is TG_NOT_SUPPORTED, as are A and B both packed. */

/* *bytes := the size of the packed operand of the problem that which names, TG_A_PACKED or
 * TG_B_PACKED. No pointer is looked at. */
TG_API tg_status tg_pack_size(tg_context *ctx, const tg_problem *problem, tg_flag which,
                              size_t *bytes);

/* Packs it into memory of the caller, aligned to 64: of a batch, its item 0, which is then that of
 * the whole batch (batch itself is not looked at). Only the operand and its sizes, the types of A,
 * B and C, and the strides of C are looked at. */
TG_API tg_status tg_pack(tg_context *ctx, const tg_problem *problem, tg_flag which, void *packed,
                         size_t bytes);

/* tg_gemm, with the packed operand in place of the problem's own, of which the type is looked at
 * and nothing else. It is short for a problem whose flags are `which` and whose operand has packed
 * as its data: such a problem can be given to each function that takes one. */
TG_API tg_status tg_packed_gemm(tg_context *ctx, const tg_problem *problem, tg_flag which,
                                const void *packed);

/* --------------------------------------------------------------------------------------- tilings
 *
 *   C  +-------------------+   block    m x n of C, k of A and B: staged in fast memory
 *      | block |           |   warp     m x n: owned by one scheduler (a warp; a CPU thread)
 *      |-------+           |   thread   m x n: held in registers for the whole k loop
 *      |                   |   vec      elements moved by one instruction
 *      +-------------------+
 *
 * stages 0: operands are read in place; 1: staged; 2: the next tile is fetched during the multiply;
 *           3 and more: a pipeline. On a CPU whose caches fill in the block, 1: staged where that
 *           pays; 2 and more: always.
 * slices    groups of warps that take different k of a stage and are summed in order at the end.
 * form      how a thread multiplies what is staged.
 * inst      the multiply-add instruction: 1x1x1 is FMA, else the shape of a matrix instruction. On
 *           AMD, 8x8x1 and 4x8x1 are the FMAs of a wave's lanes taken as one.
 * A zero in block or warp is filled in from the device: tg_tile_resolve.
 *
 * As text: block/warp/thread/vec/stages, then what differs from one slice, outer_t and FMA:
 *     128x128x8/64x64/8x8/4/2      32x32x32/0x0/1x1/1/1/dot      64x64x64/64x64/16x8/4/3/slices4
 */
typedef struct tg_mn {
    int m, n;
} tg_mn;
typedef struct tg_mnk {
    int m, n, k;
} tg_mnk;

typedef enum tg_form {
    TG_DOT,    /* each output its own dot product over the staged k                       */
    TG_OUTER,  /* fragments of A and B in registers, their outer product accumulated       */
    TG_OUTER_T /* the same, with A staged k-major so that its fragments are wide loads too */
} tg_form;

typedef struct tg_tile {
    tg_mnk block;
    tg_mn warp, thread;
    int vec, stages, slices;
    tg_form form;
    tg_mnk inst;
} tg_tile;

/* What a device gives to one block, and how many it has of it. 0 means: there is none, or none
 * that the program controls. */
typedef struct tg_limits {
    tg_mn lanes;         /* the lane grid of a warp: CUDA 4x8, CDNA 8x8, CPU 1x1                */
    int threads;         /* lanes in one block                                                  */
    int vec_bytes;       /* moved by one instruction                                            */
    int registers;       /* of one lane                                                         */
    int register_bytes;  /* of one register: 4 on a GPU, a whole vector on a CPU                */
    int64_t fast_bytes;  /* addressable fast memory of one block; a CPU's caches hold any block */
    int64_t l1, l2, l3;  /* bytes of cache: of a core, of a core, shared                        */
    int units;           /* cores, SMs or CUs                                                   */
    int matrix;          /* its matrix instructions: NVIDIA's, the rows of those for f64;       */
                         /* AMD's, the target: 0x90a for gfx90a; a CPU's, a sum of TG_CPU_...   */
    double memory_bytes; /* from its memory at most, for a unit, in a cycle of it; 0: unknown  */
} tg_limits;

/* What a CPU multiplies besides f32 and f64, several of k in one instruction. */
enum {
    TG_CPU_VNNI = 1, /* i8 and u8, four of k: AVX-512 VNNI                */
    TG_CPU_AMX = 2,  /* bf16, i8 and u8, tiles of 16 x 16 x 64 bytes: AMX */
    TG_CPU_BF16 = 4  /* bf16, two of k: AVX-512 BF16                      */
};

/* The backend of a context ("cpu"), what its device is called ("AMD Ryzen ... (family 26 model 68),
 * avx512"), and its limits. For a context that did not open: "", "" and zeros. */
TG_API const char *tg_device_backend(const tg_context *ctx);
TG_API const char *tg_device_name(const tg_context *ctx);
TG_API tg_limits tg_device_limits(const tg_context *ctx);

/* The table of the library: rows 0 <= row < tg_tile_count(). Outside: NULL, and a tile of zeros. */
TG_API int tg_tile_count(void);
TG_API const char *tg_tile_name(int row);
TG_API const char *tg_tile_note(int row); /* one line: what the row is good at */
TG_API tg_tile tg_tile_at(int row);
/* The row of that name, or -1. */
TG_API int tg_tile_find(const char *name);

/* *tile := what the text says: a row's name, or a tiling as text. TG_BAD_ARGUMENT otherwise, with
 * the reason in reason[size] (may be NULL with 0). */
TG_API tg_status tg_tile_parse(const char *text, tg_tile *tile, char *reason, size_t size);

/* Writes the tiling as text that tg_tile_parse reads back to the same tile, cut to size with a
 * final NUL as snprintf does, and returns the length of the whole text. 128 bytes always suffice.
 */
TG_API int tg_tile_print(const tg_tile *tile, char *text, size_t size);

/* In what follows, a type is that of A and B; i32 is none.
 *
 * The tile with its zeros filled in for this device and type: warp from the lane grid, block from
 * the sizes of the caches. A tile without zeros comes back as it is, and so does one for
 * a type that A cannot have. */
TG_API tg_tile tg_tile_resolve(const tg_context *ctx, const tg_tile *tile, tg_type type);

/* NULL if the device can run the tiling on this type; else why not, as a sentence that names the
 * rule and its two numbers. It lives until the next call on the context. */
TG_API const char *tg_tile_refusal(tg_context *ctx, const tg_tile *tile, tg_type type);

/* What the device's compiler and driver make of a tiling. */
typedef struct tg_usage {
    int threads;         /* of one block                                                    */
    int registers;       /* of one thread                                                   */
    int spilled_bytes;   /* of one thread's registers, that went to slow memory: 0 is healthy */
    int fast_bytes;      /* of fast memory, of one block                                    */
    int blocks_per_unit; /* that the driver runs at once on one multiprocessor              */
} tg_usage;

/* *usage := that, for the kernel that a problem with unit strides would run. TG_NOT_SUPPORTED on
 * the CPU, where the compiler's choice of registers cannot be asked for. */
TG_API tg_status tg_tile_usage(tg_context *ctx, const tg_tile *tile, tg_type type, tg_usage *usage);

/* Tiles that all units work on at once are a wave. The tiles that are left for the last wave leave
 * units idle, unless their k is shared out. */
typedef enum tg_tail {
    TG_TAIL_WHOLE, /* they run like the others                                 */
    TG_TAIL_SPLIT  /* each is cut into as many ranges of k as idle units allow */
} tg_tail;

/* What the chooser decides for one problem. Start from TG_PLAN_INIT. */
typedef struct tg_plan {
    size_t size;
    int row;                    /* of the table, or -1 for a tiling that is not in it        */
    tg_tile tile;               /* resolved, and its block cut to the problem                */
    int threads;                /* CPU threads that will be asked for                        */
    tg_mn strips;               /* of C, one for each; 1 x 1: they share what they stage     */
    int a_in_place, b_in_place; /* read where they are, not staged                           */
    int splits;                 /* ranges of k that run side by side, summed in order        */
    tg_tail tail;
    int is_tuned; /* the tiling is that of a line of the tuning file                           */
} tg_plan;

#define TG_PLAN_INIT                                                                             \
    {                                                                                            \
        sizeof(tg_plan), -1, {{0, 0, 0}, {0, 0}, {0, 0}, 0, 0, 0, TG_DOT, {0, 0, 0}}, 0, {1, 1}, \
            0, 0, 1, TG_TAIL_WHOLE, 0                                                            \
    }

/* *plan := how tg_gemm would run this problem on this context. Nothing is computed and the data
 * pointers are not looked at. */
TG_API tg_status tg_pick(tg_context *ctx, const tg_problem *problem, tg_plan *plan);

/* Later calls use this tiling; NULL returns to the chooser. One that no type can use on this
 * device is refused here with TG_BAD_TILE; one that is not legal for the type of a later problem
 * is refused there. */
TG_API tg_status tg_force(tg_context *ctx, const tg_tile *tile);

/* ---------------------------------------------------------------------------------------- tuning
 * `tilegemm tune` times tilings beside the chooser's own, and writes those that were faster to the
 * tuning file, a line each:
 *
 *     cpu f32 NT 1024x64x4096 *1 threads 2 AMD EPYC 9B14 (family 25 model 17), avx512 = v1
 *         0.1.0-5f3a9c21 0x0x0/0x0/14x32/16/1 +8%                       (it is one line there)
 *
 * Before the = stand the problems and the device that it is for: the type of A; which of A and B
 * lie transposed, C in rows; m x n x k and the batch, as the powers of two that stand for all sizes
 * nearest to them on a logarithmic scale; the threads that a CPU's context may use; and the device
 * by its name. Behind it stand the format, the library, the tiling and by how much it was faster.
 *
 * tg_open reads the file; tg_force wins over its lines, and they win over the chooser. A line that
 * is of another device, of another library or table of tilings, not legal, or no such line at all
 * is skipped, and TILEGEMM_TRACE=1 says which and why. A CPU's tiling leaves its block to the
 * caches, has stages, one slice and a form other than dot, so that it changes no bit of a result. A
 * GPU's may, and is not used with TG_BATCH_INVARIANT. */
#define TG_TUNING_LINE 512

/* The path of the tuning file in path[size], cut as snprintf does, and the length of all of it:
 * what TILEGEMM_TUNING says (empty: none), or tilegemm/tuning.txt in the folder XDG_CONFIG_HOME, or
 * in .config in HOME. "" if there is none of them. */
TG_API int tg_tuning_path(char *path, size_t size);

/* Uses a line in this context from now on, instead of one for the same problems. Refused, with the
 * reason: TG_BAD_ARGUMENT, it is no line; TG_NOT_SUPPORTED, another library wrote it; TG_NO_DEVICE,
 * it is for another device; TG_BAD_TILE, its tiling is not for this one. */
TG_API tg_status tg_tuning_add(tg_context *ctx, const char *line);

/* Writes the line that runs problems such as this one with this tiling on this context's device,
 * found to be so many percent faster, into line[TG_TUNING_LINE]. The data pointers are not looked
 * at. TG_NOT_SUPPORTED if neither stride of A or of B is 1: such problems have no lines.
 * TG_BAD_TILE for a tiling that tg_tuning_add refuses. */
TG_API tg_status tg_tuning_print(tg_context *ctx, const tg_problem *problem, const tg_tile *tile,
                                 int percent, char *line);

/* ---------------------------------------------------------------------------- memory and measure
 * For programs that run on every backend: memory of the context's device, aligned to at least 64
 * bytes, and copies between it and the host. *memory is NULL when bytes is 0 or the call failed.
 * Copies are ordered with the context's calls, and the host memory may be reused on return. */
TG_API tg_status tg_alloc(tg_context *ctx, size_t bytes, void **memory);
/* Of tg_alloc, with a context of the same device; NULL is fine. */
TG_API tg_status tg_free(tg_context *ctx, void *memory);
TG_API tg_status tg_upload(tg_context *ctx, void *device, const void *host, size_t bytes);
TG_API tg_status tg_download(tg_context *ctx, void *host, const void *device, size_t bytes);

/* *flops := operations a second that the device reaches right now in a loop of nothing but
 * independent multiply-adds on registers, by the instruction with which it multiplies A and B of
 * this type, with all of the context's threads at once. A CPU takes some twenty milliseconds for
 * it. Measure it beside every timing: clocks drift, ratios hold. */
TG_API tg_status tg_peak(tg_context *ctx, tg_type type, double *flops);

/* A stopwatch on the context's stream: it starts when the work queued before tg_time_start is done,
 * and *seconds := what passed until the work queued before tg_time_stop was done, which it waits
 * for; TG_BAD_ARGUMENT if it was never started. GPUs measure with their own events (about half a
 * microsecond fine). */
TG_API tg_status tg_time_start(tg_context *ctx);
TG_API tg_status tg_time_stop(tg_context *ctx, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
