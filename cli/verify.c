/* SPDX-License-Identifier: Apache-2.0
 *
 * What C should be, recomputed on the host in the widest type there is, and how far rounding may
 * take it: |C - exact| <= gamma(k + 2) * (|alpha| |A| |B| + |beta| |C0|), element by element
 * (Higham, Accuracy and Stability of Numerical Algorithms, 3.5). The bound holds for any order of
 * summation, so one check serves every tiling, backend and peer. A C of f16 or bf16 is rounded once
 * more, and a C of integers is exact modulo 2^32.
 */
#include "cli.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

tg_input cli_c_of(const tg_problem *p)
{
    tg_input c = {p->c.data, p->c.row_stride, p->c.col_stride, 0, p->c.type};
    return c;
}

/* What products are summed in. */
static tg_type sum_type(const tg_problem *p)
{
    return p->a.type == TG_F64 ? TG_F64 : cli_is_whole(p->a.type) ? TG_I32 : TG_F32;
}

/* gamma(k + 2), and the smallest numbers, which may be lost in every product; then what is lost of
 * C, as large as it is, where its type is shorter. */
static long double bound_of(const tg_problem *p, long double magnitude, long double c)
{
    const cli_precision sum = cli_precision_of(sum_type(p)), out = cli_precision_of(p->c.type);
    long double terms = (long double)p->k + 2;
    long double bound = terms * sum.unit / (1 - terms * sum.unit) * magnitude + terms * sum.normal;
    return out.unit > sum.unit ? bound + out.unit * (c + bound) + out.least : bound;
}

static long double low_bits(long double sum) { return (int32_t)(uint32_t)(int64_t)sum; }

long double cli_expected(const tg_problem *p, tg_input c0, int64_t row, int64_t col,
                         long double *bound)
{
    long double alpha = cli_rounded(sum_type(p), p->alpha);
    long double beta = cli_rounded(sum_type(p), p->beta);
    long double sum = 0, magnitude = 0;
    for (int64_t k = 0; alpha != 0 && k < p->k; k++) {
        long double product = (long double)cli_at(p->a, row, k) * cli_at(p->b, k, col);
        sum += product;
        magnitude += fabsl(product);
    }
    sum *= alpha;
    magnitude *= fabsl(alpha);
    if (beta != 0) {
        long double added = beta * cli_at(c0, row, col);
        sum += added;
        magnitude += fabsl(added);
    }
    if (bound)
        *bound = bound_of(p, magnitude, fabsl(sum));
    return p->c.type == TG_I32 ? low_bits(sum) : sum;
}

/* |error| / bound. What is not finite, or too large for the type, has to be so in both. */
static double ratio_of(long double got, long double wanted, long double bound, tg_type type)
{
    long double most = cli_precision_of(type).most;
    if (isnan(wanted))
        return isnan(got) ? 0 : INFINITY;
    if (!(fabsl(wanted) + bound <= most))
        return isfinite(got) && fabsl(wanted) - bound > most ? INFINITY : 0;
    if (!isfinite(got))
        return INFINITY;
    return got == wanted ? 0 : (double)(fabsl(got - wanted) / bound);
}

static const void *moved(const void *data, int64_t elements, tg_type type)
{
    return data ? (const char *)data + elements * (int64_t)tg_type_size(type) : NULL;
}

static cli_verdict verify_item(const tg_problem *p, tg_input c0, double budget)
{
    cli_verdict verdict = {0};
    int is_exact = 1;
    tg_input c = cli_c_of(p);
    double elements = (double)p->m * (double)p->n;
    int is_whole = elements * (double)(p->k + 1) <= budget;
    int64_t count = is_whole ? p->m * p->n : (int64_t)fmax(64, budget / (double)(p->k + 1));
    for (int64_t at = 0; at < count && elements > 0; at++) {
        uint64_t row = is_whole ? (uint64_t)(at / p->n) : cli_hash(2 * (uint64_t)at);
        uint64_t col = is_whole ? (uint64_t)(at % p->n) : cli_hash(2 * (uint64_t)at + 1);
        int64_t i = (int64_t)(row % (uint64_t)p->m), j = (int64_t)(col % (uint64_t)p->n);
        long double bound, wanted = cli_expected(p, c0, i, j, &bound);
        double got = cli_at(c, i, j);
        double ratio = ratio_of(got, wanted, bound, p->c.type);
        is_exact &= got == cli_rounded(p->c.type, (double)wanted);
        if (ratio > verdict.worst || at == 0) {
            cli_verdict worst = {0, 0, ratio, i, j, got, (double)wanted};
            verdict = worst;
        }
    }
    verdict.is_exact = is_exact;
    verdict.checked = elements > 0 ? count : 0;
    return verdict;
}

cli_verdict cli_verify(const tg_problem *p, tg_input c0, double budget)
{
    const int64_t most = 16, items = p->batch < most ? p->batch : most;
    cli_verdict all = {.is_exact = 1};
    for (int64_t i = 0; i < items; i++) {
        int64_t item = items > 1 ? i * (p->batch - 1) / (items - 1) : 0;
        tg_problem one = *p;
        tg_input c0_of_one = c0;
        one.a.data = moved(p->a.data, item * p->a.batch_stride, p->a.type);
        one.b.data = moved(p->b.data, item * p->b.batch_stride, p->b.type);
        one.c.data = (void *)moved(p->c.data, item * p->c.batch_stride, p->c.type);
        c0_of_one.data = moved(c0.data, item * p->c.batch_stride, p->c.type);
        cli_verdict verdict = verify_item(&one, c0_of_one, budget / (double)items);
        verdict.is_exact &= all.is_exact;
        verdict.checked += all.checked;
        if (i > 0 && verdict.worst <= all.worst) {
            all.is_exact = verdict.is_exact;
            all.checked = verdict.checked;
        } else {
            all = verdict;
        }
    }
    return all;
}

/* y := X x and magnitude := |X| |x|, row by row; x NULL: signs of -1 and 1. */
static void multiply_vector(tg_input matrix, int64_t rows, int64_t cols, const long double *x,
                            const long double *x_magnitude, long double *y, long double *magnitude)
{
    for (int64_t i = 0; i < rows; i++) {
        y[i] = magnitude[i] = 0;
        for (int64_t j = 0; j < cols; j++) {
            long double sign = cli_hash((uint64_t)j) & 1 ? 1 : -1;
            long double element = cli_at(matrix, i, j);
            y[i] += element * (x ? x[j] : sign);
            magnitude[i] += fabsl(element) * (x ? x_magnitude[j] : 1);
        }
    }
}

double cli_verify_rows(const tg_problem *p, tg_input c0)
{
    size_t most = (size_t)(p->m > p->k ? p->m : p->k) + 1;
    long double *memory = calloc(8 * most, sizeof *memory);
    double worst = 0;
    if (!memory)
        return -1;
    long double *cx = memory, *c_size = cx + most, *bx = c_size + most, *b_size = bx + most;
    long double *abx = b_size + most, *ab_size = abx + most, *c0x = ab_size + most;
    long double *c0_size = c0x + most;
    multiply_vector(cli_c_of(p), p->m, p->n, NULL, NULL, cx, c_size);
    if (p->alpha != 0) {
        multiply_vector(p->b, p->k, p->n, NULL, NULL, bx, b_size);
        multiply_vector(p->a, p->m, p->k, bx, b_size, abx, ab_size);
    }
    if (p->beta != 0)
        multiply_vector(c0, p->m, p->n, NULL, NULL, c0x, c0_size);
    long double alpha = cli_rounded(sum_type(p), p->alpha);
    long double beta = cli_rounded(sum_type(p), p->beta);
    for (int64_t i = 0; i < p->m; i++) {
        long double wanted = alpha * abx[i] + beta * c0x[i];
        long double size = fabsl(alpha) * ab_size[i] + fabsl(beta) * c0_size[i];
        /* the sums of this check round too, and the small numbers are lost once an element */
        long double bound = bound_of(p, size, c_size[i]) + (long double)p->n * bound_of(p, 0, 0) +
                            (long double)(p->n + p->k) * LDBL_EPSILON * (size + c_size[i]);
        if (p->c.type == TG_I32)
            worst = fmax(worst, low_bits(cx[i] - wanted) == 0 ? 0 : INFINITY);
        else if (isfinite(size) && size < cli_precision_of(p->c.type).most)
            worst = fmax(worst, ratio_of(cx[i], wanted, bound, p->c.type));
    }
    free(memory);
    return worst;
}
