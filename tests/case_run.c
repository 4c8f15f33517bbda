/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one case: its matrices in guarded memory, the call, and the REPRO line where it goes wrong.
 */
#define _GNU_SOURCE
#include "case_oracle.h"

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

/* The run in progress, for handlers, and mappings that are kept from run to run. */
static char repro[400];
static run now;

/* ------------------------------------------------------------------------------ sudden ends */

static void report_signal(int number)
{
    static const char crash[] = "\na forbidden access\n", hang[] = "\nno end after 300 s\n";
    const char *what = number == SIGALRM ? hang : crash;
    if (write(STDOUT_FILENO, what, strlen(what)) < 0 ||
        write(STDOUT_FILENO, repro, strlen(repro)) < 0 || write(STDOUT_FILENO, "\n", 1) < 0)
        _exit(2);
    _exit(1);
}

/* Called by AddressSanitizer, if it is there, before it ends the program. */
void __asan_on_error(void);
void __asan_on_error(void)
{
    if (write(STDOUT_FILENO, repro, strlen(repro)) < 0 || write(STDOUT_FILENO, "\n", 1) < 0)
        _exit(2);
}

static void watch(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM};
    static int is_watching;
    struct sigaction action = {.sa_handler = report_signal};
    for (size_t i = 0; !is_watching && i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
    is_watching = 1;
    alarm(300);
}

int case_fail(run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    return 0;
}

/* ---------------------------------------------------------------------------------- storage */

char case_layout(const gemm_case *c, int which)
{
    if (c->kind[0] == 'g')
        return c->kind[1 + which];
    int is_col_major = c->kind[0] == 'c';
    int is_transposed = which < 2 && c->kind[is_col_major + which] != 'N';
    return is_col_major != is_transposed ? 'c' : 'r';
}

static void set_strides(matrix *x, char layout, int pad, int is_shared)
{
    const int64_t rows = x->count[0], cols = x->count[1], batch = x->count[2];
    const int64_t row = (cols > 0 ? cols : 1) + pad, col = (rows > 0 ? rows : 1) + pad;
    const struct {
        char layout;
        int64_t stride[3];
    } table[] = {
        {'r', {row, 1, rows * row + 3}},
        {'c', {1, col, cols * col + 3}},
        {'s', {2 * row + 1, 2, rows * (2 * row + 1) + 3}},
        {'t', {3, 3 * col + 1, cols * (3 * col + 1) + 3}},
        {'n', {-row, -1, -(rows * row + 3)}},
        {'w', {-1, -col, -(cols * col + 3)}},
        {'m', {-row, 1, rows * row + 3}},
        {'i', {batch * row + pad, batch, 1}},
        {'z', {0, 1, row}},
        {'y', {1, 0, col}},
        {'o', {0, 0, 1}},
        {'h', {1, 1, rows + cols + pad}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].layout == layout)
            memcpy(x->stride, table[i].stride, sizeof x->stride);
    if (is_shared)
        x->stride[2] = 0;
    x->low = 0;
    x->all = 1;
    for (int d = 0; d < 3; d++) {
        int64_t reach = x->stride[d] * (x->count[d] - 1);
        if (x->count[d] == 0) {
            x->low = x->all = 0;
            return;
        }
        x->low -= reach < 0 ? reach : 0;
        x->all += reach < 0 ? -reach : reach;
    }
}

/* The largest s with 2 * (k * s * s * |alpha| + s * |beta|) <= 2^digits, or a little less: digits
 * of the sums' type. With fewer, sums are within f16, and all of them are rounded; sums of integers
 * may have any value. */
static int64_t largest_integer(const run *r, int which)
{
    const gemm_case *c = r->c;
    const element_facts own = element_facts_of(r->x[which].type);
    const int is_f64 = c->type == TG_F64, is_f16 = r->x[2].type == TG_F16;
    const double limit = ldexp(1, is_f64 ? DBL_MANT_DIG : is_f16 ? 17 + c->seed % 3 : FLT_MANT_DIG);
    double s = is_f64 ? 1 << 20 : ldexp(1, own.digits < 11 ? own.digits : 11);
    if (own.digits == 0)
        return (int64_t)own.largest;
    while (s > 1 && 2 * ((double)c->k * s * s * abs(c->alpha) + s * abs(c->beta)) > limit)
        s = floor(s * 0.9);
    return (int64_t)s;
}

static double value_at(const run *r, int which, int64_t at, int64_t largest)
{
    const tg_type type = r->x[which].type;
    uint64_t h = test_hash((uint64_t)at * 4 + (uint64_t)which + ((uint64_t)r->c->seed << 40));
    if (element_facts_of(type).digits == 0) /* all values: what does not fit wraps around */
        return (double)(int32_t)h;
    if (r->c->fill == FILL_INTEGERS)
        return (double)((int64_t)(h % (uint64_t)(2 * largest + 1)) - largest);
    double unit = (double)(h >> 11) * 0x1p-52 - 1;
    if (r->c->fill == FILL_WIDE && type == TG_F16)
        return ldexp(unit, -(int)(test_hash(h) % 21));
    return r->c->fill == FILL_WIDE ? ldexp(unit, (int)(test_hash(h) % 61) - 30) : unit;
}

static void fill(run *r, int which, int64_t largest)
{
    const matrix *x = &r->x[which];
    for (int64_t item = 0; item < x->count[2]; item++)
        for (int64_t i = 0; i < x->count[0]; i++)
            for (int64_t j = 0; j < x->count[1]; j++) {
                int64_t at = case_position(x, i, j, item);
                element_put(x->type, x->stored, at, value_at(r, which, at, largest));
            }
}

/* Takes memory for a matrix and fills it. What the call must not read stays NaN; if nothing of a
 * matrix may be read, the library gets an address that cannot be read at all. */
static int place(run *r, int which, const int64_t count[3])
{
    const gemm_case *c = r->c;
    matrix *x = &r->x[which];
    memcpy(x->count, count, sizeof x->count);
    set_strides(x, case_layout(c, which), c->pad[which], which < 2 && (c->share >> which & 1));
    size_t size = (size_t)x->all * x->bytes;
    x->stored = guard_take(&x->memory, size, (size_t)c->shift * x->bytes, !c->at_start);
    x->before = malloc(size + 1);
    if (!x->stored || !x->before)
        return case_fail(r, "no memory for %zu bytes", size);
    if (which < 2 ? r->reads_inputs : c->beta != 0)
        fill(r, which, largest_integer(r, which));
    memcpy(x->before, x->stored, size);
    x->data = guard_to_device(&x->memory, r->ctx, r->is_host);
    if (!x->data)
        return case_fail(r, "no device memory: %s", tg_last_error(r->ctx));
    x->data = (unsigned char *)x->data + (size_t)x->low * x->bytes;
    if (which < 2 && !r->reads_inputs && !(r->is_host && c->at_start))
        x->data = r->is_host ? guard_forbidden(&x->memory) : NULL;
    return 1;
}

static int run_case(run *r, double *ratio)
{
    const gemm_case *c = r->c;
    const int64_t counts[3][3] = {
        {c->m, c->k, c->batch}, {c->k, c->n, c->batch}, {c->m, c->n, c->batch}};
    int ok = 1;
    for (int i = 0; i < 3; i++)
        ok = ok && place(r, i, counts[i]);
    ok = ok && case_call(r);
    for (int i = 0; i < 3; i++)
        if (guard_from_device(&r->x[i].memory, r->ctx))
            ok = case_fail(r, "copying back: %s", tg_last_error(r->ctx));
    guard_from_device(&r->workspace, r->ctx);
    guard_from_device(&r->packed, r->ctx);
    return ok && case_judge(r, ratio);
}

static void set_types(run *r)
{
    const gemm_case *c = r->c;
    const int is_whole = element_facts_of(c->type).digits == 0;
    r->x[0].type = c->type;
    r->x[1].type = c->b_type ? c->b_type : c->type;
    r->x[2].type = c->c_type ? c->c_type : is_whole ? TG_I32 : c->type;
    for (int i = 0; i < 3; i++)
        r->x[i].bytes = tg_type_size(r->x[i].type);
}

case_result case_run(tg_context *ctx, const char *program, const gemm_case *c, double *ratio)
{
    tg_tile tile;
    int is_free = strcmp(c->tile, "free") == 0;
    if (!is_free && tg_tile_parse(c->tile, &tile, now.message, sizeof now.message))
        return CASE_REFUSED;
    if (!is_free && tg_tile_refusal(ctx, &tile, c->type))
        return CASE_REFUSED;
    if (!test_has_time())
        return CASE_LEFT_OUT;
    int used = snprintf(repro, sizeof repro, "REPRO: %s ", program);
    case_print(c, repro + used, sizeof repro - (size_t)used);
    watch();
    now.c = c;
    now.ctx = ctx;
    set_types(&now);
    now.reads_inputs = c->k > 0 && c->alpha != 0;
    now.is_host = strcmp(c->backend, "cpu") == 0;
    now.workspace.window = now.packed.window = NULL;
    int ok = tg_force(ctx, is_free ? NULL : &tile) == TG_OK
                 ? run_case(&now, ratio)
                 : case_fail(&now, "%s", tg_last_error(ctx));
    for (int i = 0; i < 3; i++) {
        free(now.x[i].before);
        now.x[i].before = NULL;
    }
    alarm(0);
    test_note(ok, __FILE__, __LINE__, "%s\n%s", now.message, repro);
    return ok ? CASE_PASSED : CASE_FAILED;
}
