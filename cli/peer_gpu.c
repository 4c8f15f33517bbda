/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries of the GPUs' makers, loaded while the program runs. They count columns first, so a
 * row-major C = A B is asked for as its transpose, with A and B exchanged:
 *
 *     C, m x n by rows  =  the same memory, n x m by columns  =  B^T A^T
 *
 * They work on the stream that a context uses when it is given none, so their calls and ours
 * follow one another.
 */
#include "cli.h"

#include <dlfcn.h>
#include <string.h>

static const size_t workspace_bytes = (size_t)64 << 20;

/* What a maker calls it. All functions return 0 when they went well. */
typedef struct cli_dialect {
    const char *backend, *create, *destroy, *set_stream, *set_workspace;
    const char *gemm[2], *batched[2]; /* f32, f64 */
    const char *wide;                 /* behind the name: sizes are 64-bit */
    int as_stored, transposed;
} cli_dialect;

static const cli_dialect dialect_table[] = {
    {"cuda",
     "cublasCreate_v2",
     "cublasDestroy_v2",
     "cublasSetStream_v2",
     "cublasSetWorkspace_v2",
     {"cublasSgemm_v2", "cublasDgemm_v2"},
     {"cublasSgemmStridedBatched", "cublasDgemmStridedBatched"},
     "_64",
     0,
     1},
    {"hip",
     "rocblas_create_handle",
     "rocblas_destroy_handle",
     "rocblas_set_stream",
     "rocblas_set_workspace",
     {"rocblas_sgemm", "rocblas_dgemm"},
     {"rocblas_sgemm_strided_batched", "rocblas_dgemm_strided_batched"},
     "_64",
     111,
     112},
};

typedef int create_fn(void **handle);
typedef int destroy_fn(void *handle);
typedef int set_stream_fn(void *handle, void *stream);
typedef int set_workspace_fn(void *handle, void *memory, size_t bytes);
typedef int gemm_fn(void *, int, int, int, int, int, const void *, const void *, int, const void *,
                    int, const void *, void *, int);
typedef int gemm_wide_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *,
                         int64_t, const void *, int64_t, const void *, void *, int64_t);
typedef int batched_fn(void *, int, int, int, int, int, const void *, const void *, int, int64_t,
                       const void *, int, int64_t, const void *, void *, int, int64_t, int);
typedef int batched_wide_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *,
                            int64_t, int64_t, const void *, int64_t, int64_t, const void *, void *,
                            int64_t, int64_t, int64_t);

/* The four functions with one suffix: NULL, or the name of one that is not there. */
static const char *find_functions(cli_peer *peer, const cli_dialect *d, const char *suffix)
{
    for (int i = 0; i < 4; i++) {
        const char *name = i < 2 ? d->gemm[i] : d->batched[i - 2];
        void **function = i < 2 ? &peer->gemm[i] : &peer->batched[i - 2];
        char symbol[CLI_NAME];
        snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
        *function = dlsym(peer->library, symbol);
        if (!*function)
            return name;
    }
    peer->is_wide = *suffix != 0;
    return NULL;
}

/* The stream first: to set it takes the workspace away again. */
static int prepare(cli_peer *peer, const cli_dialect *d, create_fn *create,
                   set_stream_fn *set_stream, set_workspace_fn *set_workspace, cli_machine *machine)
{
    if (tg_alloc(machine->ctx, workspace_bytes, &peer->workspace) != TG_OK)
        return cli_fail_call(machine, "the workspace of --peer");
    peer->dialect = d;
    int status = create(&peer->handle);
    if (status == 0)
        status = set_stream(peer->handle, NULL);
    if (status == 0)
        status = set_workspace(peer->handle, peer->workspace, workspace_bytes);
    return status == 0
               ? CLI_OK
               : cli_fail("--peer %s: it could not be set up, status %d", peer->name, status);
}

int cli_peer_open_gpu(cli_peer *peer, const char *path, cli_machine *machine)
{
    const cli_dialect *d = NULL;
    for (size_t i = 0; i < sizeof dialect_table / sizeof dialect_table[0]; i++) {
        if (strcmp(dialect_table[i].backend, machine->backend) == 0)
            d = &dialect_table[i];
    }
    if (!d)
        return cli_fail("--peer %s: no library to compare with is known for %s", peer->name,
                        machine->backend);
    const char *const names[] = {d->create, d->destroy, d->set_stream, d->set_workspace};
    void *found[4];
    const char *lacking = NULL;
    for (int i = 0; i < 4 && !lacking; i++) {
        found[i] = dlsym(peer->library, names[i]);
        lacking = found[i] ? NULL : names[i];
    }
    if (!lacking && find_functions(peer, d, d->wide))
        lacking = find_functions(peer, d, "");
    if (lacking)
        return cli_fail("--peer %s: %s has no %s", peer->name, path, lacking);
    return prepare(peer, d, (create_fn *)found[0], (set_stream_fn *)found[2],
                   (set_workspace_fn *)found[3], machine);
}

void cli_peer_close_gpu(cli_peer *peer, cli_machine *machine)
{
    destroy_fn *destroy = (destroy_fn *)dlsym(peer->library, peer->dialect->destroy);
    if (peer->handle)
        destroy(peer->handle);
    tg_free(machine->ctx, peer->workspace);
    peer->handle = peer->workspace = NULL;
    peer->dialect = NULL;
}

/* The call with A and B exchanged already: the first operand is `p->b`. */
static int call(const cli_peer *peer, int ta, int tb, const tg_problem *p, const void *alpha,
                const void *beta)
{
    const int type = p->c.type != TG_F32;
    const int64_t lda = p->a.row_stride == 1 ? p->a.col_stride : p->a.row_stride;
    const int64_t ldb = p->b.row_stride == 1 ? p->b.col_stride : p->b.row_stride;
    const int64_t n = p->n, m = p->m, k = p->k, ldc = p->c.row_stride;
    const void *a = p->a.data, *b = p->b.data;
    void *c = p->c.data, *handle = peer->handle;
    if (p->batch > 1 && peer->is_wide)
        return ((batched_wide_fn *)peer->batched[type])(
            handle, tb, ta, n, m, k, alpha, b, ldb, p->b.batch_stride, a, lda, p->a.batch_stride,
            beta, c, ldc, p->c.batch_stride, p->batch);
    if (p->batch > 1)
        return ((batched_fn *)peer->batched[type])(
            handle, tb, ta, (int)n, (int)m, (int)k, alpha, b, (int)ldb, p->b.batch_stride, a,
            (int)lda, p->a.batch_stride, beta, c, (int)ldc, p->c.batch_stride, (int)p->batch);
    if (peer->is_wide)
        return ((gemm_wide_fn *)peer->gemm[type])(handle, tb, ta, n, m, k, alpha, b, ldb, a, lda,
                                                  beta, c, ldc);
    return ((gemm_fn *)peer->gemm[type])(handle, tb, ta, (int)n, (int)m, (int)k, alpha, b, (int)ldb,
                                         a, (int)lda, beta, c, (int)ldc);
}

int cli_peer_gemm_gpu(const cli_peer *peer, const char *trans, const tg_problem *p)
{
    const cli_dialect *d = peer->dialect;
    const int ta = trans[0] == 'T' ? d->transposed : d->as_stored;
    const int tb = trans[1] == 'T' ? d->transposed : d->as_stored;
    const float alpha = (float)p->alpha, beta = (float)p->beta;
    const int is_f32 = p->c.type == TG_F32;
    int status = call(peer, ta, tb, p, is_f32 ? (const void *)&alpha : &p->alpha,
                      is_f32 ? (const void *)&beta : &p->beta);
    return status == 0 ? CLI_OK : cli_fail("%s answered with status %d", peer->name, status);
}
