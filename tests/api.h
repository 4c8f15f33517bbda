/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of test_api, one file each, and what they share. */
#ifndef API_H
#define API_H

#include <tilegemm.h>

void test_arguments(tg_context *ctx); /* bad arguments of the functions that multiply */
void test_other_arguments(tg_context *ctx);
void test_packed(tg_context *ctx);
void test_grouped(tg_context *ctx); /* grouped problems and arrays of pointers */
void test_overlap(tg_context *ctx);
void test_sizes(tg_context *ctx); /* empty, NULL, huge: what is accepted and what is not */
void test_types(tg_context *ctx);
void test_bits(tg_context *ctx); /* those of an element, wherever it is computed */
void test_open(void);
void test_settings(tg_context *ctx);
void test_tuning(void);
void test_fork_first(void); /* before anything else has used the library */
void test_threads(tg_context *ctx);
void test_fork(tg_context *ctx);

/* The backend that is tested: TG_TEST_BACKEND, or the CPU. */
const char *api_backend(void);
int api_is_cpu(void);

/* Memory of the context's device that holds a copy of the bytes at host. */
void *api_upload(tg_context *ctx, const void *host, size_t bytes);

/* m x k by k x n, all row-major and of one type. */
tg_problem api_product(int64_t m, int64_t n, int64_t k, tg_type type, const void *a, const void *b,
                       void *c);

/* Multiplies m x k by k x n integers and compares with ==. 0: wrong, or an error. */
int multiplies(tg_context *ctx, int m, int n, int k, unsigned seed);

/* The call gave this status, the context says so too, with a sentence that has all the parts. */
void check_refused(tg_context *ctx, tg_status given, tg_status expected, const char *parts,
                   const char *file, int line);
#define CHECK_REFUSED(ctx, call, expected, parts) \
    check_refused(ctx, call, expected, parts, __FILE__, __LINE__)
#define CHECK_OK(ctx, call) check_refused(ctx, call, TG_OK, "", __FILE__, __LINE__)

#endif
