/* SPDX-License-Identifier: Apache-2.0
 *
 * Other people's libraries, loaded while the program runs: NAME=LIB[:PREFIX]. On the CPU that is
 * CBLAS: the functions are PREFIXcblas_sgemm and PREFIXcblas_dgemm, with 64_ or _64 behind where
 * sizes are 64-bit.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
typedef void dgemm_fn(int, int, int, int, int, int, double, const double *, int, const double *,
                      int, double, double *, int);
typedef void sgemm_wide_fn(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                           const float *, int64_t, float, float *, int64_t);
typedef void dgemm_wide_fn(int, int, int, int64_t, int64_t, int64_t, double, const double *,
                           int64_t, const double *, int64_t, double, double *, int64_t);

static void *find_symbol(void *library, const char *prefix, const char *name, const char *suffix)
{
    char symbol[2 * CLI_NAME + 32];
    int length = snprintf(symbol, sizeof symbol, "%s%s%s", prefix, name, suffix);
    return length < (int)sizeof symbol ? dlsym(library, symbol) : NULL;
}

/* Libraries read these when they are loaded. MKL is told to use the OpenMP that is here already. */
static void set_environment(const char *name, int threads)
{
    static const char *const variables[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                            "BLIS_NUM_THREADS", "OMP_NUM_THREADS"};
    char number[16];
    snprintf(number, sizeof number, "%d", threads);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        setenv(variables[i], number, 1);
    setenv("MKL_DYNAMIC", "FALSE", 0);
    if (strstr(name, "mkl") || strstr(name, "MKL")) {
        setenv("MKL_INTERFACE_LAYER", "LP64", 0);
        setenv("MKL_THREADING_LAYER", threads == 1 ? "SEQUENTIAL" : "GNU", 0);
    }
}

static void set_threads(void *library, const char *prefix, const char *suffix, int threads)
{
    static const char *const names[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void (*set)(int) = (void (*)(int))find_symbol(library, prefix, names[i], suffix);
        if (!set)
            set = (void (*)(int))find_symbol(library, "", names[i], "");
        if (set)
            set(threads);
    }
    void (*set_wide)(int64_t) = (void (*)(int64_t))dlsym(library, "bli_thread_set_num_threads");
    if (set_wide)
        set_wide(threads);
}

static int find_functions(cli_peer *peer, const char *given_prefix, int threads)
{
    const char *const prefixes[] = {given_prefix, "", "scipy_"};
    static const char *const suffixes[] = {"", "64_", "_64"};
    for (int at = 0; at < (*given_prefix ? 3 : 9); at++) {
        const char *prefix = prefixes[at / 3], *suffix = suffixes[at % 3];
        peer->gemm[0] = find_symbol(peer->library, prefix, "cblas_sgemm", suffix);
        peer->gemm[1] = find_symbol(peer->library, prefix, "cblas_dgemm", suffix);
        if (peer->gemm[0] && peer->gemm[1]) {
            peer->is_wide = *suffix != 0;
            set_threads(peer->library, prefix, suffix, threads);
            return 1;
        }
    }
    return 0;
}

int cli_peer_open(cli_peer *peer, const char *text, cli_machine *machine)
{
    char path[4096];
    const char *equals = strchr(text, '=');
    size_t name_length = equals ? (size_t)(equals - text) : 0;
    memset(peer, 0, sizeof *peer);
    if (!equals || name_length == 0 || name_length >= sizeof peer->name || !equals[1] ||
        strlen(equals + 1) >= sizeof path)
        return cli_misuse("--peer takes NAME=LIB[:PREFIX], not \"%s\"", text);
    memcpy(peer->name, text, name_length);
    strcpy(path, equals + 1);
    char *colon = strrchr(path, ':');
    const char *prefix = colon ? colon + 1 : "";
    if (colon)
        *colon = 0;
    if (machine->is_host)
        set_environment(text, machine->threads);
    peer->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!peer->library)
        return cli_fail("--peer %s: %s", peer->name, dlerror());
    if (!machine->is_host)
        return cli_peer_open_gpu(peer, path, machine);
    if (!find_functions(peer, prefix, machine->threads))
        return cli_fail("--peer %s: %s has no %scblas_sgemm and %scblas_dgemm", peer->name, path,
                        prefix, prefix);
    return CLI_OK;
}

void cli_peer_close(cli_peer *peer, cli_machine *machine)
{
    if (peer->dialect)
        cli_peer_close_gpu(peer, machine);
}

static void multiply_item(const cli_peer *peer, int ta, int tb, const tg_problem *p, const void *a,
                          const void *b, void *c)
{
    int64_t m = p->m, n = p->n, k = p->k, ldc = p->c.row_stride;
    int64_t lda = ta == TG_TRANS ? m : k, ldb = tb == TG_TRANS ? k : n;
    int is_f32 = p->c.type == TG_F32;
    void *gemm = peer->gemm[!is_f32];
    if (peer->is_wide && is_f32)
        ((sgemm_wide_fn *)gemm)(TG_ROW_MAJOR, ta, tb, m, n, k, (float)p->alpha, a, lda, b, ldb,
                                (float)p->beta, c, ldc);
    else if (peer->is_wide)
        ((dgemm_wide_fn *)gemm)(TG_ROW_MAJOR, ta, tb, m, n, k, p->alpha, a, lda, b, ldb, p->beta, c,
                                ldc);
    else if (is_f32)
        ((sgemm_fn *)gemm)(TG_ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, (float)p->alpha, a,
                           (int)lda, b, (int)ldb, (float)p->beta, c, (int)ldc);
    else
        ((dgemm_fn *)gemm)(TG_ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, p->alpha, a, (int)lda, b,
                           (int)ldb, p->beta, c, (int)ldc);
}

int cli_peer_gemm(const cli_peer *peer, const char *trans, const tg_problem *p)
{
    if (peer->dialect)
        return cli_peer_gemm_gpu(peer, trans, p);
    const int ta = trans[0] == 'T' ? TG_TRANS : TG_NO_TRANS;
    const int tb = trans[1] == 'T' ? TG_TRANS : TG_NO_TRANS;
    const int64_t bytes = (int64_t)tg_type_size(p->c.type);
    for (int64_t item = 0; item < p->batch; item++)
        multiply_item(peer, ta, tb, p, (const char *)p->a.data + item * p->a.batch_stride * bytes,
                      (const char *)p->b.data + item * p->b.batch_stride * bytes,
                      (char *)p->c.data + item * p->c.batch_stride * bytes);
    return CLI_OK;
}
