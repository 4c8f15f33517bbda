/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm check`: every tiling of the table and the chooser, on this machine, in all types that
 * its device multiplies and all transposes, on ragged shapes of small integers. Sums of those are
 * exact in any order, so every element must equal (==) what three loops give, rounded to the type
 * of C, and what lies beside C must stay.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { PADDING = 3, TYPES = 6 };

/* One multiplication, and what it should give, computed once for all tilings. */
typedef struct check_case {
    cli_work work;
    double *wanted; /* m x (n + PADDING), as C lies */
} check_case;

typedef struct checker {
    cli_machine machine;
    int is_known[TYPES]; /* to the device */
    check_case *cases;
    int count, failures, runs;
} checker;

static const tg_type types[TYPES] = {TG_F32, TG_F64, TG_F16, TG_BF16, TG_I8, TG_U8};
static const char *const trans_table[] = {"NN", "NT", "TN", "TT"};
static const cli_shape shape_table[] = {{1, 1, 1, 1},     {5, 7, 0, 1},     {37, 41, 29, 1},
                                        {131, 70, 67, 1}, {3, 200, 301, 1}, {150, 1, 33, 1},
                                        {64, 96, 128, 1}};
static const struct {
    double alpha, beta;
} factor_table[] = {{1, 0}, {-2, 1}, {0, 2}};

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static int fill_wanted(check_case *one)
{
    const tg_problem *p = &one->work.host;
    tg_input c0 = cli_c_of(p);
    c0.data = one->work.c0;
    int64_t stride = p->c.row_stride;
    one->wanted = malloc((size_t)(p->m * stride) * sizeof *one->wanted);
    if (!one->wanted)
        return cli_fail("there is no memory for the check");
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < stride; j++)
            one->wanted[i * stride + j] =
                j < p->n ? cli_rounded(p->c.type, (double)cli_expected(p, c0, i, j, NULL))
                         : cli_at(c0, i, j);
    }
    return CLI_OK;
}

static int make_case(checker *x, tg_type type, const char *trans, cli_shape shape, int factors)
{
    check_case *one = &x->cases[x->count++];
    int rc = cli_work_make(&x->machine, &one->work, shape, type, trans, CLI_INTEGERS, PADDING);
    if (rc != CLI_OK)
        return rc;
    one->work.host.alpha = one->work.device.alpha = factor_table[factors].alpha;
    one->work.host.beta = one->work.device.beta = factor_table[factors].beta;
    return fill_wanted(one);
}

static int make_cases(checker *x)
{
    int rc = CLI_OK, most = TYPES * COUNT(trans_table) * COUNT(shape_table) * COUNT(factor_table);
    x->cases = calloc((size_t)most, sizeof *x->cases);
    if (!x->cases)
        return cli_fail("there is no memory for the check");
    for (int at = 0; at < most && rc == CLI_OK; at++) {
        int rest = at, factors = rest % COUNT(factor_table);
        rest /= COUNT(factor_table);
        cli_shape shape = shape_table[rest % COUNT(shape_table)];
        rest /= COUNT(shape_table);
        const int type = rest / COUNT(trans_table), turn = at / COUNT(factor_table);
        const int is_plain = types[type] == TG_F32 || types[type] == TG_F64;
        if (x->is_known[type] && (is_plain || factors == turn % COUNT(factor_table)))
            rc = make_case(x, types[type], trans_table[rest % COUNT(trans_table)], shape, factors);
    }
    return rc;
}

/* True if C and its padding are as wanted; else prints the first difference. */
static int is_right(checker *x, const check_case *one, const char *row)
{
    const tg_problem *p = &one->work.host;
    tg_input c = cli_c_of(p);
    int64_t stride = p->c.row_stride;
    for (int64_t at = 0; at < p->m * stride; at++) {
        int64_t i = at / stride, j = at % stride;
        if (cli_at(c, i, j) == one->wanted[at])
            continue;
        x->failures++;
        char threads[CLI_NAME] = "";
        if (x->machine.is_host)
            snprintf(threads, sizeof threads, " --threads %d", x->machine.threads);
        printf("\nREPRO: tilegemm check --backend %s%s%s%s   # %s %s %lldx%lldx%lld "
               "alpha=%g beta=%g: C[%lld, %lld] is %.9g, not %.9g\n",
               x->machine.backend, threads, *row ? " --tile " : "", row, tg_type_name(p->a.type),
               one->work.trans, (long long)p->m, (long long)p->n, (long long)p->k, p->alpha,
               p->beta, (long long)i, (long long)j, cli_at(c, i, j), one->wanted[at]);
        return 0;
    }
    return 1;
}

static int run_case(checker *x, check_case *one, const char *row, int *is_good)
{
    int rc = cli_work_reset(&x->machine, &one->work);
    if (rc == CLI_OK && tg_gemm(x->machine.ctx, &one->work.device) != TG_OK)
        rc = cli_fail_call(&x->machine, row);
    if (rc == CLI_OK)
        rc = cli_work_fetch(&x->machine, &one->work);
    if (rc == CLI_OK)
        *is_good = is_right(x, one, row);
    x->runs++;
    return rc;
}

/* Runs the cases of one type; stops at the first wrong one. */
static int run_type(checker *x, tg_type type, const char *row, cli_mark *mark)
{
    int is_good = 1, rc = CLI_OK;
    for (int i = 0; i < x->count && rc == CLI_OK && is_good; i++) {
        if (x->cases[i].work.host.a.type == type)
            rc = run_case(x, &x->cases[i], row, &is_good);
    }
    *mark = is_good ? CLI_GOOD : CLI_BAD;
    return rc;
}

/* One line of the report. tile NULL: the chooser. */
static int check_tile(checker *x, const char *name, const tg_tile *tile, const char *row)
{
    char why[400] = "";
    int rc = CLI_OK;
    double start = cli_now();
    printf("%-18s", name);
    for (int i = 0; i < TYPES && rc == CLI_OK; i++) {
        cli_mark mark = CLI_NONE;
        if (!x->is_known[i])
            continue;
        const char *refusal = tile ? tg_tile_refusal(x->machine.ctx, tile, types[i]) : NULL;
        if (refusal)
            snprintf(why, sizeof why, "  %s: %s", tg_type_name(types[i]), refusal);
        else if (tg_force(x->machine.ctx, tile) != TG_OK)
            return cli_fail_call(&x->machine, name);
        else
            rc = run_type(x, types[i], row, &mark);
        printf(" %s %s ", tg_type_name(types[i]), cli_mark_text(mark));
    }
    printf("%7.0f ms%s\n", 1e3 * (cli_now() - start), why);
    fflush(stdout);
    return rc;
}

/* Which types the device multiplies, and, for a report, how fast at best. */
static void find_types(checker *x, int is_report)
{
    for (int i = 0; i < TYPES; i++) {
        double flops;
        x->is_known[i] = tg_peak(x->machine.ctx, types[i], &flops) == TG_OK;
        if (x->is_known[i] && is_report)
            printf("%s: %.1f GFLOP/s of multiply-adds alone\n", tg_type_name(types[i]),
                   flops / 1e9);
    }
    if (is_report)
        printf("\n");
}

static int check_all(checker *x, const char *only)
{
    double start = cli_now();
    int rc = make_cases(x);
    if (rc == CLI_OK && only)
        rc = check_tile(x, only, &x->machine.tile, only);
    if (rc == CLI_OK && !only)
        rc = check_tile(x, "the chooser", NULL, "");
    for (int row = 0; row < tg_tile_count() && rc == CLI_OK && !only; row++) {
        tg_tile tile = tg_tile_at(row);
        rc = check_tile(x, tg_tile_name(row), &tile, tg_tile_name(row));
    }
    if (rc == CLI_OK)
        printf("\n%d multiplication%s in %.1f s, %s\n", x->runs, cli_s(x->runs), cli_now() - start,
               x->failures ? "not all right" : "all exactly right");
    return rc == CLI_OK && x->failures ? CLI_FAILED : rc;
}

int cli_check(const cli_options *options)
{
    checker x;
    memset(&x, 0, sizeof x);
    if (options->report) {
        cli_options about = *options;
        about.tile = NULL;
        int rc = cli_info(&about);
        if (rc != CLI_OK)
            return rc;
        printf("\n");
    }
    int rc = cli_open(&x.machine, options);
    if (rc != CLI_OK)
        return rc;
    find_types(&x, options->report);
    rc = check_all(&x, options->tile);
    for (int i = 0; i < x.count; i++) {
        cli_work_free(&x.machine, &x.cases[i].work);
        free(x.cases[i].wanted);
    }
    free(x.cases);
    cli_close(&x.machine);
    return rc;
}
