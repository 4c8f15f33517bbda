/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS as its manual has it: columns first, and a new stream takes the workspace away. WIDE: with
 * the names for 64-bit sizes. */
#include <stddef.h>
#include <stdint.h>

static struct {
    size_t bytes;
} state;
int cublasCreate_v2(void **handle)
{
    *handle = &state;
    return 0;
}
int cublasDestroy_v2(void *handle) { return handle != &state; }
int cublasSetStream_v2(void *handle, void *stream)
{
    state.bytes = 0;
    return stream != NULL;
}
int cublasSetWorkspace_v2(void *handle, void *memory, size_t bytes)
{
    state.bytes = memory ? bytes : 0;
    return 0;
}

#define AT(x, trans, i, j, ld) x[(trans) ? (j) + (i) * (int64_t)ld : (i) + (j) * (int64_t)ld]
#define GEMM(name, batched, type, size)                                                            \
    int name(void *h, int ta, int tb, size m, size n, size k, const type *alpha, const type *a,    \
             size lda, const type *b, size ldb, const type *beta, type *c, size ldc)               \
    {                                                                                              \
        if (h != &state || state.bytes < 64 << 20 || ta & ~1 || tb & ~1)                           \
            return 14;                                                                             \
        for (size i = 0; i < m; i++)                                                               \
            for (size j = 0; j < n; j++) {                                                         \
                double sum = 0;                                                                    \
                for (size p = 0; p < k; p++)                                                       \
                    sum += (double)AT(a, ta, i, p, lda) * AT(b, tb, p, j, ldb);                    \
                type *at = &AT(c, 0, i, j, ldc);                                                   \
                *at = *alpha * sum + (*beta == 0 ? 0 : *beta * *at);                               \
            }                                                                                      \
        return 0;                                                                                  \
    }                                                                                              \
    int batched(void *h, int ta, int tb, size m, size n, size k, const type *alpha, const type *a, \
                size lda, int64_t as, const type *b, size ldb, int64_t bs, const type *beta,       \
                type *c, size ldc, int64_t cs, size count)                                         \
    {                                                                                              \
        int status = 0;                                                                            \
        for (size x = 0; x < count; x++)                                                           \
            status |= name(h, ta, tb, m, n, k, alpha, a + x * as, lda, b + x * bs, ldb, beta,      \
                           c + x * cs, ldc);                                                       \
        return status;                                                                             \
    }
GEMM(cublasSgemm_v2, cublasSgemmStridedBatched, float, int)
GEMM(cublasDgemm_v2, cublasDgemmStridedBatched, double, int)
#ifdef WIDE
GEMM(cublasSgemm_v2_64, cublasSgemmStridedBatched_64, float, int64_t)
GEMM(cublasDgemm_v2_64, cublasDgemmStridedBatched_64, double, int64_t)
#endif
