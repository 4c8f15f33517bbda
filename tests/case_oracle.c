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

static double before(const matrix *x, int64_t i, int64_t j, int64_t item)
{
    return element_get(x->type, x->before, case_position(x, i, j, item));
}

static int check_integers(run *r, int64_t item, int64_t i, const double *a, const double *b)
{
    const gemm_case *c = r->c;
    const matrix *x = r->x;
    double *sum = calloc((size_t)c->n, sizeof *sum);
    int ok = sum != NULL;
    for (int64_t p = 0; sum && r->reads_inputs && p < c->k; p++)
        for (int64_t j = 0; j < c->n; j++)
            sum[j] += a[p] * b[p * c->n + j];
    for (int64_t j = 0; ok && j < c->n; j++) {
        int64_t at = case_position(&x[2], i, j, item);
        double old = c->beta ? c->beta * before(&x[2], i, j, item) : 0;
        double expected = element_rounded(x[2].type, c->alpha * sum[j] + old);
        double actual = element_get(x[2].type, x[2].stored, at);
        if (actual != expected)
            ok = case_fail(
                r, "C(%" PRId64 ", %" PRId64 ") of item %" PRId64 " is %.17g, expected %.17g", i, j,
                item, actual, expected);
    }
    free(sum);
    return ok;
}

/* A C of f16 or bf16 is rounded once more, from the f32 that its sums are in. */
static int check_bound(run *r, int64_t item, int64_t i, const double *a, const double *b,
                       double *ratio)
{
    const gemm_case *c = r->c;
    const matrix *x = r->x;
    const element_facts sums = element_facts_of(c->type == TG_F64 ? TG_F64 : TG_F32);
    const element_facts out = element_facts_of(x[2].type);
    const long double u = ldexpl(1, -sums.digits);
    const int is_short = out.digits < sums.digits;
    const long double steps = (long double)(r->reads_inputs ? c->k + 2 : 2);
    const long double gamma = steps * u / (1 - steps * u) + steps * LDBL_EPSILON;
    const long double tiny = steps * (long double)sums.normal;
    for (int64_t j = 0; j < c->n; j++) {
        int64_t at = case_position(&x[2], i, j, item);
        long double old = c->beta ? (long double)before(&x[2], i, j, item) * c->beta : 0;
        long double exact = 0, size = 0, actual = element_get(x[2].type, x[2].stored, at);
        for (int64_t p = 0; r->reads_inputs && p < c->k; p++) {
            long double term = (long double)a[p] * (long double)b[p * c->n + j];
            exact += term;
            size += fabsl(term);
        }
        exact = c->alpha * exact + old;
        size = abs(c->alpha) * size + fabsl(old);
        long double error = fabsl(actual - exact), bound = gamma * size + tiny;
        if (is_short)
            bound += ldexpl(fabsl(exact) + bound, -out.digits) + out.least / 2;
        if (!(error <= bound))
            return case_fail(
                r, "C(%" PRId64 ", %" PRId64 ") is %.17Lg, exactly %.17Lg: %.3Lg u |A||B|", i, j,
                actual, exact, error / (u * size));
        if (ratio && !is_short && size > 0 && error > tiny && (double)(error / (u * size)) > *ratio)
            *ratio = (double)(error / (u * size));
    }
    return 1;
}

static int check_elements(run *r, double *ratio)
{
    const gemm_case *c = r->c;
    double *b = malloc((size_t)(c->k * (c->n + 1) + 1) * sizeof *b), *a = b + c->k * c->n;
    int ok = b != NULL || case_fail(r, "no memory for the oracle");
    for (int64_t item = 0; ok && item < c->batch; item++) {
        for (int64_t p = 0; r->reads_inputs && p < c->k; p++)
            for (int64_t j = 0; j < c->n; j++)
                b[p * c->n + j] = before(&r->x[1], p, j, item);
        for (int64_t i = 0; ok && i < c->m && c->n; i++) {
            for (int64_t p = 0; r->reads_inputs && p < c->k; p++)
                a[p] = before(&r->x[0], i, p, item);
            ok = c->fill == FILL_INTEGERS ? check_integers(r, item, i, a, b)
                                          : check_bound(r, item, i, a, b, ratio);
        }
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
                size_t at = (size_t)case_position(x, i, j, item) * x->bytes;
                memcpy(x->stored + at, x->before + at, x->bytes);
            }
    for (int i = 0; i < 3; i++) {
        if (memcmp(r->x[i].stored, r->x[i].before, (size_t)r->x[i].all * r->x[i].bytes))
            return case_fail(
                r, i < 2 ? "%c was changed" : "the space between the elements of %c changed",
                names[i]);
        if (!guard_holds(&r->x[i].memory))
            return case_fail(r, "the memory beside %c was changed", names[i]);
    }
    if (r->packed.window && !guard_holds(&r->packed))
        return case_fail(r, "the memory beside what is packed was changed");
    return !r->workspace.window || guard_holds(&r->workspace) ||
           case_fail(r, "the memory beside the workspace was changed");
}

int case_judge(run *r, double *ratio) { return check_elements(r, ratio) && check_untouched(r); }
