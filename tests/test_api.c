/* SPDX-License-Identifier: Apache-2.0
 *
 * What the header promises about calls: arguments, contexts, threads. While the parts run, stdout
 * and stderr lead to a file that must stay empty: the library does not print.
 *
 *     test_api [PART ...]     arguments, types, bits, packed, lists, overlap, contexts, tuning,
 *                             threads, fork; all without it
 *
 * The backend is the CPU, or the one that TG_TEST_BACKEND names. */
#define _GNU_SOURCE
#include "api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

const char *api_backend(void)
{
    const char *name = getenv("TG_TEST_BACKEND");
    return name ? name : "cpu";
}

int api_is_cpu(void) { return strcmp(api_backend(), "cpu") == 0; }

void *api_upload(tg_context *ctx, const void *host, size_t bytes)
{
    void *memory = NULL;
    CHECK_SAY(!tg_alloc(ctx, bytes, &memory) && !tg_upload(ctx, memory, host, bytes),
              "%zu bytes of device memory: %s", bytes, tg_last_error(ctx));
    return memory;
}

tg_problem api_product(int64_t m, int64_t n, int64_t k, tg_type type, const void *a, const void *b,
                       void *c)
{
    tg_problem p = TG_PROBLEM_INIT;
    p.m = m, p.n = n, p.k = k;
    p.a = (tg_input){a, k, 1, 0, type};
    p.b = (tg_input){b, n, 1, 0, type};
    p.c = (tg_output){c, n, 1, 0, type};
    return p;
}

/* The same on the host's copies of matrices; C comes back. */
static int multiply_copies(tg_context *ctx, int m, int n, int k, const float *a, const float *b,
                           float *c)
{
    const size_t a_bytes = (size_t)m * (size_t)k * sizeof *a,
                 b_bytes = (size_t)k * (size_t)n * sizeof *b,
                 c_bytes = (size_t)m * (size_t)n * sizeof *c;
    void *x = NULL, *y = NULL, *z = NULL;
    int ok =
        !tg_alloc(ctx, a_bytes, &x) && !tg_alloc(ctx, b_bytes, &y) && !tg_alloc(ctx, c_bytes, &z) &&
        !tg_upload(ctx, x, a, a_bytes) && !tg_upload(ctx, y, b, b_bytes) &&
        !tg_upload(ctx, z, c, c_bytes) &&
        !tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, m, n, k, 1, x, k, y, n, 0, z, n) &&
        !tg_download(ctx, c, z, c_bytes);
    return !tg_free(ctx, x) && !tg_free(ctx, y) && !tg_free(ctx, z) && ok;
}

int multiplies(tg_context *ctx, int m, int n, int k, unsigned seed)
{
    float *a = malloc((size_t)m * (size_t)k * sizeof *a),
          *b = malloc((size_t)k * (size_t)n * sizeof *b);
    float *c = malloc((size_t)m * (size_t)n * sizeof *c);
    int ok = a && b && c;
    for (int i = 0; ok && i < m * k; i++)
        a[i] = (float)(test_hash((uint64_t)i + seed) % 15) - 7;
    for (int i = 0; ok && i < k * n; i++)
        b[i] = (float)(test_hash(~(uint64_t)i - seed) % 15) - 7;
    for (int i = 0; ok && i < m * n; i++)
        c[i] = NAN;
    ok = ok && multiply_copies(ctx, m, n, k, a, b, c);
    for (int i = 0; ok && i < m; i++)
        for (int j = 0; ok && j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[i * k + p] * b[p * n + j];
            ok = sum == c[i * n + j];
        }
    free(a);
    free(b);
    free(c);
    return ok;
}

void check_refused(tg_context *ctx, tg_status given, tg_status expected, const char *parts,
                   const char *file, int line)
{
    const char *sentence = tg_last_error(ctx);
    test_note(given == expected, file, line, "status %d, expected %d: %s", (int)given,
              (int)expected, sentence);
    test_note(tg_last_status(ctx) == given, file, line, "tg_last_status is %d after %d",
              (int)tg_last_status(ctx), (int)given);
    test_note(test_holds(sentence, parts), file, line, "\"%s\" does not hold \"%s\"", sentence,
              parts);
    test_note((given == TG_OK) == (sentence[0] == '\0'), file, line, "status %d with \"%s\"",
              (int)given, sentence);
}

/* There where a sanitizer is linked in: then stderr is left to its reports. */
extern void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

/* Asked by sanitizers: an allocation that is too large shall fail as it does without them. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* Sends stdout and stderr to a file without a name. */
static int redirect(void)
{
    char name[] = "/tmp/test_api_XXXXXX";
    int file = mkstemp(name);
    if (file < 0 || unlink(name) || dup2(file, STDOUT_FILENO) < 0)
        return -1;
    if (!__sanitizer_set_report_fd && dup2(file, STDERR_FILENO) < 0)
        return -1;
    return file;
}

static int is_wanted(const char *part, int argc, char **argv)
{
    int is_named = argc < 2;
    for (int word = 1; word < argc; word++)
        is_named |= strcmp(argv[word], part) == 0;
    return is_named;
}

int main(int argc, char **argv)
{
    int file = redirect();
    tg_context *ctx;
    if (is_wanted("fork", argc, argv))
        test_fork_first();
    if (!CHECK(file >= 0) || !CHECK(tg_open(&ctx, api_backend(), 0) == TG_OK))
        return test_close();
    if (is_wanted("arguments", argc, argv)) {
        test_arguments(ctx);
        test_other_arguments(ctx);
        test_sizes(ctx);
    }
    if (is_wanted("types", argc, argv))
        test_types(ctx);
    if (is_wanted("bits", argc, argv))
        test_bits(ctx);
    if (is_wanted("packed", argc, argv))
        test_packed(ctx);
    if (is_wanted("lists", argc, argv))
        test_grouped(ctx);
    if (is_wanted("overlap", argc, argv))
        test_overlap(ctx);
    if (is_wanted("contexts", argc, argv)) {
        test_open();
        test_settings(ctx);
    }
    if (is_wanted("tuning", argc, argv))
        test_tuning();
    if (is_wanted("threads", argc, argv))
        test_threads(ctx);
    if (is_wanted("fork", argc, argv))
        test_fork(ctx);
    tg_close(ctx);
    struct stat written;
    CHECK(fflush(NULL) == 0 && fstat(file, &written) == 0);
    CHECK_SAY(written.st_size == 0, "the library printed %lld bytes", (long long)written.st_size);
    return test_close();
}
