/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle: three loops over the elements as they are stored. What is not an element of C must
 * come back bit by bit: canaries, padding, A and B. */
#include "case_oracle.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double get(const run *r, const unsigned char *elements, int64_t at)
{
    float f32;
    double f64;
    if (r->c->type == TG_F64)
        return memcpy(&f64, elements + at * 8, 8), f64;
    return memcpy(&f32, elements + at * 4, 4), f32;
}

static int check_integers(run *r, int64_t item, int64_t i, const double *b)
{
    const gemm_case *c = r->c;
    const matrix *x = r->x;
    double *sum = calloc((size_t)c->n, sizeof *sum);
    int ok = sum != NULL;
    for (int64_t p = 0; sum && r->reads_inputs && p < c->k; p++) {
        double a = get(r, x[0].before, case_position(&x[0], i, p, item));
        for (int64_t j = 0; j < c->n; j++)
            sum[j] += a * b[p * c->n + j];
    }
    for (int64_t j = 0; ok && j < c->n; j++) {
        int64_t at = case_position(&x[2], i, j, item);
        double old = c->beta ? c->beta * get(r, x[2].before, at) : 0;
        double expected = c->alpha * sum[j] + old, actual = get(r, x[2].stored, at);
        if (actual != expected)
            ok = case_fail(
                r, "C(%" PRId64 ", %" PRId64 ") of item %" PRId64 " is %.17g, expected %.17g", i, j,
                item, actual, expected);
    }
    free(sum);
    return ok;
}

static int check_bound(run *r, int64_t item, int64_t i, const double *b, double *ratio)
{
    const gemm_case *c = r->c;
    const matrix *x = r->x;
    const long double u = ldexpl(1, c->type == TG_F64 ? -DBL_MANT_DIG : -FLT_MANT_DIG);
    const long double steps = (long double)(r->reads_inputs ? c->k + 2 : 2);
    const long double gamma = steps * u / (1 - steps * u) + steps * LDBL_EPSILON;
    const long double tiny = steps * (long double)(c->type == TG_F64 ? DBL_MIN : FLT_MIN);
    for (int64_t j = 0; j < c->n; j++) {
        int64_t at = case_position(&x[2], i, j, item);
        long double old = c->beta ? (long double)get(r, x[2].before, at) * c->beta : 0;
        long double exact = 0, size = 0, actual = get(r, x[2].stored, at);
        for (int64_t p = 0; r->reads_inputs && p < c->k; p++) {
            long double term = get(r, x[0].before, case_position(&x[0], i, p, item));
            term *= (long double)b[p * c->n + j];
            exact += term;
            size += fabsl(term);
        }
        exact = c->alpha * exact + old;
        size = abs(c->alpha) * size + fabsl(old);
        long double error = fabsl(actual - exact);
        if (!(error <= gamma * size + tiny))
            return case_fail(
                r, "C(%" PRId64 ", %" PRId64 ") is %.17Lg, exactly %.17Lg: %.3Lg u |A||B|", i, j,
                actual, exact, error / (u * size));
        if (ratio && size > 0 && error > tiny && (double)(error / (u * size)) > *ratio)
            *ratio = (double)(error / (u * size));
    }
    return 1;
}

static int check_elements(run *r, double *ratio)
{
    const gemm_case *c = r->c;
    double *b = malloc((size_t)(c->k * c->n + 1) * sizeof *b);
    int ok = b != NULL || case_fail(r, "no memory for the oracle");
    for (int64_t item = 0; ok && item < c->batch; item++) {
        for (int64_t p = 0; r->reads_inputs && p < c->k; p++)
            for (int64_t j = 0; j < c->n; j++)
                b[p * c->n + j] = get(r, r->x[1].before, case_position(&r->x[1], p, j, item));
        for (int64_t i = 0; ok && i < c->m && c->n; i++)
            ok = c->fill == FILL_INTEGERS ? check_integers(r, item, i, b)
                                          : check_bound(r, item, i, b, ratio);
    }
    free(b);
    return ok;
}

/* With its elements back at what they were, C must be what it was. */
static int check_untouched(run *r)
{
    static const char names[] = "ABC";
    const matrix *x = &r->x[2];
    for (int64_t item = 0; item < x->count[2]; item++)
        for (int64_t i = 0; i < x->count[0]; i++)
            for (int64_t j = 0; j < x->count[1]; j++) {
                size_t at = (size_t)case_position(x, i, j, item) * r->bytes;
                memcpy(x->stored + at, x->before + at, r->bytes);
            }
    for (int i = 0; i < 3; i++) {
        if (memcmp(r->x[i].stored, r->x[i].before, (size_t)r->x[i].all * r->bytes))
            return case_fail(
                r, i < 2 ? "%c was changed" : "the space between the elements of %c changed",
                names[i]);
        if (!guard_holds(&r->x[i].memory))
            return case_fail(r, "the memory beside %c was changed", names[i]);
    }
    return !r->workspace.window || guard_holds(&r->workspace) ||
           case_fail(r, "the memory beside the workspace was changed");
}

int case_judge(run *r, double *ratio) { return check_elements(r, ratio) && check_untouched(r); }
