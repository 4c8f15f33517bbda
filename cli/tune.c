/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm tune`: is a tiling faster than the chooser's own? Problems that have one key in the
 * tuning file are a bucket, and are judged together. The best tiling of many in the heats races the
 * chooser again, for a gain and the lower end of what is certain of it (tune_race.c). A line is
 * written if the gain, a geometric mean over the bucket, is 2 % or more, if what is certain of it
 * is a gain too, and if on none of the problems the chooser is certain to be faster. Else an older
 * line for the bucket goes.
 */
#define _POSIX_C_SOURCE 200809L
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double most_seconds = 285, least_hope = 1.005, least_gain = 1.02;

static int is_usual(const cli_options *o) { return !o->shapes && o->word_count == 0; }

static double flops(const cli_case *one) { return 1e9 * cli_gflops(one->shape, 1); }

static int compare(const void *left, const void *right)
{
    double x = flops(left), y = flops(right);
    return (x > y) - (x < y);
}

/* The line that a case would have with this tiling. */
static int print_line(tuner *x, int index, const tg_tile *tile, int percent, char *line)
{
    const cli_case *one = &x->cases.items[index];
    cli_work work;
    if (!cli_work_describe(&work, one->shape, x->options->type, one->trans, 0))
        return cli_fail("there is no memory for %lld x %lld x %lld", (long long)one->shape.m,
                        (long long)one->shape.n, (long long)one->shape.k);
    if (tg_tuning_print(x->machine.ctx, &work.host, tile, percent, line) != TG_OK)
        return cli_fail_call(&x->machine, "");
    return CLI_OK;
}

int tune_takes(const tuner *x, const tg_tile *tile)
{
    const cli_case *one = &x->cases.items[0];
    char line[TG_TUNING_LINE];
    cli_work work;
    cli_work_describe(&work, one->shape, x->options->type, one->trans, 0);
    return tg_tuning_print(x->machine.ctx, &work.host, tile, 0, line) == TG_OK;
}

/* Of its bucket. */
static int is_first(const tuner *x, int index)
{
    int same = 0;
    while (strcmp(x->lines[same], x->lines[index]) != 0)
        same++;
    return same == index;
}

static int find_buckets(tuner *x)
{
    tg_tile tile = tg_tile_at(0); /* any, for the keys that its lines have */
    int rc = CLI_OK;
    for (int row = 1; row < tg_tile_count() && !tune_takes(x, &tile); row++)
        tile = tg_tile_at(row);
    qsort(x->cases.items, (size_t)x->cases.count, sizeof *x->cases.items, compare);
    x->lines = calloc((size_t)x->cases.count, sizeof *x->lines);
    if (!x->lines)
        return cli_fail("there is no memory for the shapes");
    for (int i = 0; i < x->cases.count && rc == CLI_OK; i++) {
        rc = print_line(x, i, &tile, 0, x->lines[i]);
        x->buckets += is_first(x, i);
    }
    return rc;
}

int tune_is_in(const tuner *x, const bucket *b, int index)
{
    return strcmp(x->lines[index], x->lines[b->first]) == 0;
}

/* ------------------------------------------------------------------------------------ verdicts */
static int store(tuner *x, const bucket *b, int is_kept, double gain)
{
    char line[TG_TUNING_LINE];
    cli_lines lines;
    int rc = CLI_OK;
    if (!is_kept && access(x->path, F_OK) != 0)
        return CLI_OK;
    if (is_kept)
        rc = print_line(x, b->first, &x->heat[1].tile, (int)lrint(100 * (gain - 1)), line);
    if (rc != CLI_OK)
        return rc;
    const int lock = cli_tuning_lock(x->path);
    rc = cli_lines_read(&lines, x->path);
    const int before = lines.count;
    if (rc == CLI_OK && is_kept)
        rc = cli_lines_put(&lines, line);
    else
        cli_lines_drop(&lines, x->lines[b->first]);
    if (rc == CLI_OK && (is_kept || lines.count != before))
        rc = cli_lines_write(&lines, x->path);
    close(lock);
    cli_lines_free(&lines);
    return rc;
}

/* Was there a final? */
static int is_raced(const bucket *b) { return b->hope > log(least_hope); }

static int conclude(tuner *x, const bucket *b)
{
    const double gain = exp(b->gain), certain = exp(b->certain);
    const int is_kept = gain >= least_gain && certain > 1 && !b->is_slower;
    cli_show_progress(1, 1);
    printf("%-26s %6d %7d ", b->name, b->problems, b->tilings);
    if (is_raced(b))
        printf("%+7.1f %% %+7.1f %%  %s %s\n", 100 * (gain - 1), 100 * (certain - 1),
               cli_mark_text(is_kept ? CLI_GOOD : CLI_NONE), x->heat[1].name);
    else
        printf("%9s %9s  %s the chooser's\n", "", "", cli_mark_text(CLI_NONE));
    fflush(stdout);
    x->kept += is_kept;
    x->log_kept += is_kept ? log(gain) : 0;
    return store(x, b, is_kept, gain);
}

static bucket bucket_at(const tuner *x, int first)
{
    bucket b = {.first = first};
    char trans[CLI_NAME / 4], sizes[CLI_NAME / 2], batch[CLI_NAME / 4];
    if (sscanf(x->lines[first], "%*s %*s %15s %31s %15s", trans, sizes, batch) == 3)
        snprintf(b.name, CLI_NAME, "%s %s%s%s", sizes, trans, strcmp(batch, "*1") ? " " : "",
                 strcmp(batch, "*1") ? batch : "");
    for (int i = first; i < x->cases.count; i++)
        b.problems += tune_is_in(x, &b, i);
    return b;
}

/* Seconds that a bucket will take, about: a dozen tilings in heats, a final, and each problem's
 * matrices twice. */
static double time_for(const tuner *x, const bucket *b)
{
    double sum = 0.7 * b->problems;
    for (int i = b->first; i < x->cases.count; i++)
        if (tune_is_in(x, b, i))
            sum += (12 * 6 + 10) * flops(&x->cases.items[i]) / (0.7 * x->peak);
    return sum;
}

static int run_bucket(tuner *x, int first)
{
    bucket b = bucket_at(x, first);
    cli_show_progress(x->done++, x->buckets);
    const double passed = cli_now() - x->start, expected = time_for(x, &b);
    const double slowness = fmax(1, passed / fmax(x->expected, 1)); /* so far */
    if (is_usual(x->options) && passed + slowness * expected > most_seconds)
        return x->left++, CLI_OK;
    x->expected += expected;
    int rc = tune_run_heats(x, &b);
    if (rc == CLI_OK && is_raced(&b))
        rc = tune_run_final(x, &b);
    return rc == CLI_OK ? conclude(x, &b) : rc;
}

static int tune(tuner *x)
{
    int rc = find_buckets(x);
    if (rc == CLI_OK)
        rc = tune_make_runners(x);
    if (rc == CLI_OK && tg_peak(x->machine.ctx, x->options->type, &x->peak) != TG_OK)
        rc = cli_fail_call(&x->machine, "the peak probe");
    if (rc != CLI_OK)
        return rc;
    cli_print_heading(&x->machine, x->options->type);
    printf("\n\n%-26s %6s %7s %9s %9s\n", "bucket", "shapes", "tilings", "gain", "certain");
    x->start = cli_now();
    for (int i = 0; i < x->cases.count && rc == CLI_OK; i++)
        if (is_first(x, i))
            rc = run_bucket(x, i);
    cli_show_progress(1, 1);
    if (rc != CLI_OK)
        return rc;
    const int raced = x->buckets - x->left;
    printf("\n%d of %d bucket%s %s a tiling that is faster than the chooser's", x->kept, raced,
           cli_s(raced), raced == 1 ? "has" : "have");
    if (x->kept > 0)
        printf(", by %.1f %% (geometric mean)", 100 * (exp(x->log_kept / x->kept) - 1));
    printf(": %s%s\n", x->path, access(x->path, F_OK) == 0 ? "" : " is not made");
    if (x->left > 0)
        printf("%d %s left out: five minutes are not enough. SHAPE or --shapes has no limit.\n",
               x->left, x->left == 1 ? "was" : "were");
    return CLI_OK;
}

/* That the file can be written is known before minutes are spent; and the chooser is to choose. */
static int check_file(const tuner *x)
{
    cli_lines lines;
    int rc = cli_lines_read(&lines, x->path);
    if (rc == CLI_OK)
        rc = cli_tuning_try(x->path);
    cli_lines_free(&lines);
    setenv("TILEGEMM_TUNING", "", 1);
    return rc;
}

static int run(tuner *x)
{
    const cli_options *o = x->options;
    if (o->rounds && o->rounds < TUNE_LEAST)
        return cli_misuse("--rounds %d is too few: it takes %d samples for an interval that is 95 "
                          "%% certain",
                          o->rounds, TUNE_LEAST);
    int rc = is_usual(o) ? cli_collect_kinds(&x->cases, o) : cli_collect_cases(&x->cases, o);
    if (rc == CLI_OK)
        rc = cli_tuning_path(x->path, sizeof x->path);
    if (rc == CLI_OK)
        rc = check_file(x);
    if (rc == CLI_OK)
        rc = cli_open(&x->machine, o);
    if (rc != CLI_OK)
        return rc;
    rc = tune(x);
    cli_close(&x->machine);
    return rc;
}

/* --import, --export and --show, in an order that shows what has become of the file. */
static int manage(tuner *x)
{
    static const char *const names[] = {"--show", "--export", "--import", NULL};
    const cli_options *o = x->options;
    const char *mode = o->import_from ? "--import" : o->export_to ? "--export" : "--show";
    int rc = cli_takes_only(o, mode, names);
    if (rc == CLI_OK && o->word_count > 0)
        rc = cli_misuse("%s takes no shape such as \"%s\"", mode, o->words[0]);
    if (rc == CLI_OK)
        rc = cli_tuning_path(x->path, sizeof x->path);
    if (rc == CLI_OK && o->import_from)
        rc = cli_tuning_import(x->path, o->import_from);
    if (rc == CLI_OK && o->export_to)
        rc = cli_tuning_export(x->path, o->export_to);
    if (rc == CLI_OK && o->show)
        rc = cli_tuning_show(x->path);
    return rc;
}

int cli_tune(const cli_options *o)
{
    tuner x;
    memset(&x, 0, sizeof x);
    x.options = o;
    int rc = o->show || o->import_from || o->export_to ? manage(&x) : run(&x);
    free(x.cases.items);
    free(x.lines);
    free(x.runners);
    free(x.heat);
    return rc;
}
