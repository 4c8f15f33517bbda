/* SPDX-License-Identifier: Apache-2.0
 *
 * A CBLAS in rows. WIDE: with 64-bit sizes; BATCHED: with a call for many products, which leaves a
 * file that says so. */
#include <stdint.h>
#include <stdio.h>

#ifdef WIDE
typedef int64_t size;
#define NAME(x) x##64_
#else
typedef int size;
#define NAME(x) x
#endif

enum { ROWS = 101, TRANSPOSED = 112 };
#define AT(x, trans, i, j, ld) \
    x[(trans) == TRANSPOSED ? (i) + (j) * (int64_t)ld : (i) * (int64_t)ld + (j)]
#define GEMM(name, real)                                                                           \
    void NAME(name)(int layout, int ta, int tb, size m, size n, size k, real alpha, const real *a, \
                    size lda, const real *b, size ldb, real beta, real *c, size ldc)               \
    {                                                                                              \
        for (size i = 0; i < m && layout == ROWS; i++)                                             \
            for (size j = 0; j < n; j++) {                                                         \
                double sum = 0;                                                                    \
                for (size p = 0; p < k; p++)                                                       \
                    sum += (double)AT(a, ta, i, p, lda) * AT(b, tb, p, j, ldb);                    \
                real *at = &c[i * (int64_t)ldc + j];                                               \
                *at = alpha * sum + (beta == 0 ? 0 : beta * *at);                                  \
            }                                                                                      \
    }
GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)

#ifdef BATCHED
#define BATCH(name, one, real)                                                                     \
    void NAME(name)(int layout, int ta, int tb, size m, size n, size k, real alpha, const real *a, \
                    size lda, size next_a, const real *b, size ldb, size next_b, real beta,        \
                    real *c, size ldc, size next_c, size count)                                    \
    {                                                                                              \
        for (size x = 0; x < count; x++, a += next_a, b += next_b, c += next_c)                    \
            NAME(one)(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);               \
        fclose(fopen("batched", "w"));                                                             \
    }
BATCH(cblas_sgemm_batch_strided, cblas_sgemm, float)
BATCH(cblas_dgemm_batch_strided, cblas_dgemm, double)
#endif
