/* SPDX-License-Identifier: Apache-2.0
 *
 * One multiplication to be tested, as the words of a REPRO line, and its run against the oracle.
 *
 *     cpu f32 t128x64x16 NT 129x65x9 lda+3 alpha=2 beta=0 batch=3 share=b threads=2 ...
 *
 * b_type= and c_type= are numbers of tilegemm.h; without them B and C have the type that is named,
 * but sums of integers are in i32.
 *
 * How the matrices are stored is one word:
 *     NN NT TN TT NC ...   row-major; with a c in front, column-major: by tg_sgemm or tg_dgemm,
 *                          or tg_gemm if the types are others
 *     gABC                 tg_gemm with one letter of LAYOUTS for each of A, B and C */
#ifndef CASE_H
#define CASE_H

#include <stddef.h>
#include <tilegemm.h>

/* The first OUTPUT_LAYOUTS of them can also store C, because no two of their elements coincide.
 *   r c   row-major, column-major                  s t   the same with neither stride 1
 *   n w   the same with all strides negative       m     row-major, rows from last to first
 *   i     batch items interleaved                  z y   one row, one column repeated
 *   o     one element repeated                     h     row stride 1 and column stride 1 */
#define LAYOUTS "rcstnwmizyoh"
enum { OUTPUT_LAYOUTS = 8 };

typedef enum gemm_fill {
    FILL_INTEGERS, /* so small that every sum is exact: the result must be equal, once rounded */
    FILL_UNIT,     /* uniform in [-1, 1): the result must be within the rounding bound */
    FILL_WIDE      /* exponents over a range of 2^60: likewise */
} gemm_fill;

/* Other ways to the same elements. An operand of which each batch item has its own is not packed.
 */
typedef enum case_way {
    WAY_PLAIN,
    WAY_PACKED_A,
    WAY_PACKED_B,
    WAY_GROUPED,
    WAY_POINTERS,
    WAYS
} case_way;

typedef struct gemm_case {
    char backend[16];
    tg_type type;           /* of A */
    tg_type b_type, c_type; /* 0: as A, and what sums of A are in if that is i32 */
    char tile[96];          /* a row, a tiling as text, or "free" for the chooser */
    char kind[8];
    int64_t m, n, k;
    int pad[3]; /* added to the smallest leading dimension of A, B, C */
    int alpha, beta;
    int batch;
    int share;     /* bit 0, 1: A, B has batch stride 0 */
    int threads;   /* 0: as the context has it */
    int shift;     /* elements between each matrix and its guard page */
    int at_start;  /* guard pages lie before the matrices instead of behind */
    int workspace; /* give the library exactly the workspace it asks for */
    int seed;
    gemm_fill fill;
    case_way way;
} gemm_case;

typedef enum case_result { CASE_PASSED, CASE_FAILED, CASE_REFUSED, CASE_LEFT_OUT } case_result;

/* The case with every word at its default. */
gemm_case case_default(const char *backend);
/* Reads the words of a REPRO line; prints what is wrong and returns 0 otherwise. */
int case_parse(gemm_case *c, int count, char **words);
/* Writes the words that case_parse reads, without those at their default. */
void case_print(const gemm_case *c, char *text, size_t size);

/* Runs the case. CASE_REFUSED: its tiling is not legal on this device and type. A failure, a
 * forbidden access and a hang print "REPRO: program words". ratio: NULL, or raised to the largest
 * error seen, in units of the rounding bound with k + 2 = 1. */
case_result case_run(tg_context *ctx, const char *program, const gemm_case *c, double *ratio);

/* Does the device multiply the type with any row of the table? */
int case_is_known(tg_context *ctx, tg_type type);

/* A context on the backend that is named first or by TG_TEST_BACKEND (else cpu); *count and
 * *words move past the name. Prints why and returns NULL if it does not open. */
tg_context *case_open(int *count, char ***words, char backend[16]);

/* The cases of test_gemm that are listed by hand (gemm_cpu.c). */
void gemm_cpu(tg_context *ctx);

#endif
