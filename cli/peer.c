/* SPDX-License-Identifier: Apache-2.0
 *
 * Other people's libraries, loaded while the program runs: NAME=LIB[:PREFIX]. On the CPU that is
 * CBLAS: the functions are PREFIXcblas_sgemm and PREFIXcblas_dgemm, with 64_ or _64 behind where
 * sizes are 64-bit; and, for batches, where a library has them, PREFIXcblas_sgemm_batch_strided and
 * its like.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* How CBLAS is called for a type of elements and one of sizes. A batch is one call, if there is one
 * for it. */
#define CBLAS(name, real, size)                                                                  \
    typedef void name##_fn(int, int, int, size, size, size, real, const real *, size,            \
                           const real *, size, real, real *, size);                              \
    typedef void name##_batched_fn(int, int, int, size, size, size, real, const real *, size,    \
                                   size, const real *, size, size, real, real *, size, size,     \
                                   size);                                                        \
    static void name(void *gemm, void *batched, int ta, int tb, const tg_problem *p)             \
    {                                                                                            \
        const size m = (size)p->m, n = (size)p->n, k = (size)p->k, ldc = (size)p->c.row_stride;  \
        const size lda = ta == TG_TRANS ? m : k, ldb = tb == TG_TRANS ? k : n;                   \
        const size next_a = (size)p->a.batch_stride, next_b = (size)p->b.batch_stride;           \
        const size next_c = (size)p->c.batch_stride, items = (size)p->batch;                     \
        const real *a = p->a.data, *b = p->b.data, alpha = (real)p->alpha, beta = (real)p->beta; \
        real *c = p->c.data;                                                                     \
        if (items > 1 && batched) {                                                              \
            ((name##_batched_fn *)batched)(TG_ROW_MAJOR, ta, tb, m, n, k, alpha, a, lda, next_a, \
                                           b, ldb, next_b, beta, c, ldc, next_c, items);         \
            return;                                                                              \
        }                                                                                        \
        for (size item = 0; item < items; item++, a += next_a, b += next_b, c += next_c)         \
            ((name##_fn *)gemm)(TG_ROW_MAJOR, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c,   \
                                ldc);                                                            \
    }
CBLAS(call_f32, float, int)
CBLAS(call_f64, double, int)
CBLAS(call_f32_wide, float, int64_t)
CBLAS(call_f64_wide, double, int64_t)

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
        peer->batched[0] = find_symbol(peer->library, prefix, "cblas_sgemm_batch_strided", suffix);
        peer->batched[1] = find_symbol(peer->library, prefix, "cblas_dgemm_batch_strided", suffix);
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

int cli_peer_gemm(const cli_peer *peer, const char *trans, const tg_problem *p)
{
    if (peer->dialect)
        return cli_peer_gemm_gpu(peer, trans, p);
    const int ta = trans[0] == 'T' ? TG_TRANS : TG_NO_TRANS;
    const int tb = trans[1] == 'T' ? TG_TRANS : TG_NO_TRANS;
    const int is_f64 = p->c.type != TG_F32;
    void (*const calls[])(void *, void *, int, int,
                          const tg_problem *) = {call_f32, call_f64, call_f32_wide, call_f64_wide};
    calls[2 * peer->is_wide + is_f64](peer->gemm[is_f64], peer->batched[is_f64], ta, tb, p);
    return CLI_OK;
}
