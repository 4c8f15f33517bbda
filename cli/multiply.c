/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm multiply`: C := alpha * op(A) * op(B) + beta * C0 from NumPy files to a NumPy file.
 * The files are mapped; on the CPU the library works in them directly. Long work is cut into
 * slices of rows of C by its shape alone, so that the bits do not depend on who is watching.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <math.h>
#include <string.h>

typedef struct product {
    const cli_options *options;
    cli_machine machine;
    cli_npy a, b, c0;
    cli_npy_out out;
    tg_problem host, device;
    double seconds;
} product;

static tg_input transposed(tg_input matrix, int is_wanted)
{
    tg_input other = matrix;
    other.row_stride = matrix.col_stride;
    other.col_stride = matrix.row_stride;
    return is_wanted ? other : matrix;
}

static int check_types(const product *x)
{
    const cli_npy *files[] = {&x->a, &x->b};
    const tg_type a = x->a.view.type, b = x->b.view.type, c = cli_c_type(a);
    for (int i = 0; i < 2; i++)
        if (files[i]->view.type == TG_I32)
            return cli_fail("%s holds int32, which products of int8 and uint8 are in: convert it "
                            "with astype('int8') or astype('float64')",
                            files[i]->path);
    if (a != b && !(cli_is_whole(a) && cli_is_whole(b)))
        return cli_fail("%s holds %s and %s holds %s: convert one of them", x->a.path,
                        tg_type_name(a), x->b.path, tg_type_name(b));
    if (x->options->c0 && x->c0.view.type != c)
        return cli_fail("%s holds %s and the product is in %s: convert it", x->c0.path,
                        tg_type_name(x->c0.view.type), tg_type_name(c));
    return CLI_OK;
}

static int check_shapes(const product *x)
{
    const cli_options *o = x->options;
    long long m = o->trans_a ? x->a.cols : x->a.rows, a_k = o->trans_a ? x->a.rows : x->a.cols;
    long long n = o->trans_b ? x->b.rows : x->b.cols, b_k = o->trans_b ? x->b.cols : x->b.rows;
    if (a_k != b_k)
        return cli_fail("%s%s is %lld x %lld and %s%s is %lld x %lld: the columns of the first "
                        "must be as many as the rows of the second",
                        o->trans_a ? "the transpose of " : "", x->a.path, m, a_k,
                        o->trans_b ? "the transpose of " : "", x->b.path, b_k, n);
    if (o->c0 && (x->c0.rows != m || x->c0.cols != n))
        return cli_fail("%s is %lld x %lld and the product is %lld x %lld", x->c0.path,
                        (long long)x->c0.rows, (long long)x->c0.cols, m, n);
    return CLI_OK;
}

static void describe(product *x)
{
    const cli_options *o = x->options;
    tg_problem init = TG_PROBLEM_INIT;
    tg_problem *p = &x->host;
    *p = init;
    p->a = transposed(x->a.view, o->trans_a);
    p->b = transposed(x->b.view, o->trans_b);
    p->m = o->trans_a ? x->a.cols : x->a.rows;
    p->k = o->trans_a ? x->a.rows : x->a.cols;
    p->n = o->trans_b ? x->b.rows : x->b.cols;
    p->alpha = o->alpha;
    p->beta = o->c0 ? (isnan(o->beta) ? 1 : o->beta) : 0;
    p->c.type = cli_c_type(x->a.view.type);
    p->c.row_stride = p->n, p->c.col_stride = 1;
}

static int open_inputs(product *x)
{
    const cli_options *o = x->options;
    int rc = cli_npy_open(&x->a, o->words[0]);
    if (rc == CLI_OK)
        rc = cli_npy_open(&x->b, o->words[1]);
    if (rc == CLI_OK && o->c0)
        rc = cli_npy_open(&x->c0, o->c0);
    if (rc == CLI_OK)
        rc = check_types(x);
    if (rc == CLI_OK)
        rc = check_shapes(x);
    if (rc == CLI_OK)
        describe(x);
    return rc;
}

/* The output file is given what C0 holds, since C is updated in place. */
static void copy_c0(product *x)
{
    for (int64_t i = 0; i < x->host.m && x->host.beta != 0; i++) {
        for (int64_t j = 0; j < x->host.n; j++) {
            cli_put(x->host.c.type, x->out.data, i * x->host.n + j, cli_at(x->c0.view, i, j));
        }
    }
    x->host.c.data = x->out.data;
}

static int place(product *x)
{
    const tg_problem *p = &x->host;
    return cli_place(&x->machine, p, &x->device, cli_matrix_bytes(p->m, p->k, p->a.type),
                     cli_matrix_bytes(p->k, p->n, p->b.type),
                     cli_matrix_bytes(p->m, p->n, p->c.type));
}

static int fetch(product *x)
{
    const tg_problem *p = &x->host;
    size_t bytes = cli_matrix_bytes(p->m, p->n, p->c.type);
    if (!x->machine.is_host &&
        tg_download(x->machine.ctx, p->c.data, x->device.c.data, bytes) != TG_OK)
        return cli_fail_call(&x->machine, "C");
    return CLI_OK;
}

/* A slice lasts a fraction of a second, and has enough rows to be multiplied at full speed. */
static int64_t slice_rows(const tg_problem *p)
{
    double row_flops = 2 * (double)p->n * (double)p->k + 1;
    double rows = ceil(2e10 / row_flops / 1024) * 1024;
    return rows < (double)p->m ? (int64_t)rows : p->m;
}

static int run(product *x)
{
    tg_problem slice = x->device;
    int64_t rows = slice_rows(&slice), m = x->device.m;
    int64_t a_elem = (int64_t)tg_type_size(slice.a.type);
    int64_t c_elem = (int64_t)tg_type_size(slice.c.type);
    int is_shown = rows < m && !x->options->quiet;
    double start = cli_now();
    int64_t row = 0;
    do {
        slice.m = rows < m - row ? rows : m - row;
        slice.a.data = (const char *)x->device.a.data + row * slice.a.row_stride * a_elem;
        slice.c.data = (char *)x->device.c.data + row * slice.c.row_stride * c_elem;
        tg_status status = tg_gemm(x->machine.ctx, &slice);
        if (status == TG_OK)
            status = tg_sync(x->machine.ctx);
        if (status != TG_OK)
            return cli_fail_call(&x->machine, "the product");
        row += slice.m;
        if (is_shown)
            cli_show_progress(row, m);
    } while (row < m);
    x->seconds = cli_now() - start;
    return fetch(x);
}

static int verify(const product *x)
{
    cli_verdict verdict = cli_verify(&x->host, x->c0.view, 1 << 27);
    double rows = cli_verify_rows(&x->host, x->c0.view);
    if (rows < 0)
        return cli_fail("there is no memory to verify the result");
    if (verdict.worst > 1)
        return cli_fail("the result is wrong: C[%lld, %lld] is %.9g and should be %.9g",
                        (long long)verdict.row, (long long)verdict.col, verdict.got,
                        verdict.wanted);
    if (rows > 1)
        return cli_fail("the result is wrong: the sum of a row is %.3g times as far off as "
                        "rounding explains",
                        rows);
    if (x->options->quiet)
        return CLI_OK;
    printf("verified: %lld element%s %s, and all rows of C x = A (B x)\n",
           (long long)verdict.checked, cli_s(verdict.checked),
           verdict.is_exact ? "exactly equal to the product" : "within the rounding bound");
    if (!verdict.is_exact)
        printf("largest error: %.3f of the bound\n", verdict.worst);
    return CLI_OK;
}

static void report(const product *x)
{
    const tg_problem *p = &x->host;
    cli_shape shape = {p->m, p->n, p->k, 1};
    double seconds = x->seconds > 1e-9 ? x->seconds : 1e-9;
    if (!x->options->quiet)
        printf("%s: %lld x %lld = %lld x %lld times %lld x %lld, %s, %.3f ms, %.1f GFLOP/s\n",
               x->out.path, (long long)p->m, (long long)p->n, (long long)p->m, (long long)p->k,
               (long long)p->k, (long long)p->n, tg_type_name(p->a.type), 1e3 * seconds,
               cli_gflops(shape, seconds));
}

static int make_output(product *x)
{
    const tg_problem *p = &x->host;
    int rc = cli_npy_create(&x->out, x->options->output, p->m, p->n, p->c.type);
    if (rc != CLI_OK)
        return rc;
    copy_c0(x);
    rc = place(x);
    if (rc == CLI_OK)
        rc = run(x);
    cli_unplace(&x->machine, &x->device);
    if (rc == CLI_OK && x->options->verify)
        rc = verify(x);
    if (rc == CLI_OK)
        rc = cli_npy_keep(&x->out);
    else
        cli_npy_discard(&x->out);
    if (rc == CLI_OK)
        report(x);
    return rc;
}

int cli_multiply(const cli_options *options)
{
    product x;
    memset(&x, 0, sizeof x);
    x.options = options;
    if (options->word_count != 2)
        return cli_misuse("multiply takes two files, A.npy and B.npy, and %d were given",
                          options->word_count);
    if (!options->output)
        return cli_misuse("multiply needs -o C.npy, the file to write");
    if (!options->c0 && !isnan(options->beta))
        return cli_misuse("--beta needs --c, the matrix that it multiplies");
    int rc = open_inputs(&x);
    if (rc == CLI_OK)
        rc = cli_open(&x.machine, options);
    if (rc == CLI_OK) {
        rc = make_output(&x);
        cli_close(&x.machine);
    }
    cli_npy_close(&x.a);
    cli_npy_close(&x.b);
    cli_npy_close(&x.c0);
    return rc;
}
