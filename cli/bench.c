/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm bench`: times multiplications of random matrices, checks each result, and compares with
 * the machine's peak and with other libraries that take turns with it. A ratio above 1 means that
 * tilegemm was faster.
 */
#include "bench.h"
#include "tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, SECONDS = 10 };

/* ------------------------------------------------------------------------------ the contestants */
/* Several tilings: "all", or rows with commas between. */
static int is_list(const char *tile)
{
    return tile && (strcmp(tile, "all") == 0 || strchr(tile, ','));
}

static int is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    const char *at = strstr(list, name);
    while (at && ((at > list && at[-1] != ',') || (at[length] && at[length] != ',')))
        at = strstr(at + 1, name);
    return at || strcmp(list, "all") == 0;
}

/* Each name of the list must be a row that the device can run. */
static int check_list(const bench *b, const char *list)
{
    const char *at = list;
    do {
        char name[CLI_NAME];
        const int length = (int)strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", length, at);
        const int row = tg_tile_find(name);
        const tg_tile tile = tg_tile_at(row);
        const char *refusal = tg_tile_refusal(b->machine.ctx, &tile, b->options->type);
        if (row < 0 || refusal)
            return cli_fail("--tile %s: \"%s\" %s", list, name,
                            row < 0 ? "is no row of `tilegemm tiles`" : refusal);
        at += length;
    } while (*at++);
    return CLI_OK;
}

static int make_own(bench *b)
{
    const cli_options *o = b->options;
    cli_runner *runner = b->runners;
    snprintf(runner->name, CLI_NAME, "tilegemm");
    runner->mode = is_list(o->tile) ? CLI_CHOSEN : CLI_AS_IS;
    runner++;
    for (int row = 0; row < tg_tile_count() && is_list(o->tile); row++) {
        runner->tile = tg_tile_at(row);
        if (!is_listed(o->tile, tg_tile_name(row)) ||
            tg_tile_refusal(b->machine.ctx, &runner->tile, o->type))
            continue;
        runner->mode = CLI_FORCED;
        snprintf(runner->name, CLI_NAME, "%s", tg_tile_name(row));
        runner++;
    }
    return (int)(runner - b->runners);
}

static int make_runners(bench *b)
{
    const cli_options *o = b->options;
    b->runners = calloc((size_t)tg_tile_count() + 1 + CLI_LIST, sizeof *b->runners);
    if (!b->runners)
        return cli_fail("there is no memory for the samples");
    if (is_list(o->tile) && strcmp(o->tile, "all") != 0 && check_list(b, o->tile) != CLI_OK)
        return CLI_FAILED;
    b->own_count = make_own(b);
    if (o->peer_count > 0 && o->type != TG_F32 && o->type != TG_F64)
        return cli_misuse("--peer is for f32 and f64, not for --type %s", tg_type_name(o->type));
    for (int i = 0; i < o->peer_count; i++) {
        cli_runner *runner = &b->runners[b->own_count + i];
        int rc = cli_peer_open(&b->peers[i], o->peers[i], &b->machine);
        b->peer_count++;
        if (rc != CLI_OK)
            return rc;
        runner->peer = &b->peers[i];
        snprintf(runner->name, CLI_NAME, "%s", b->peers[i].name);
    }
    return CLI_OK;
}

/* ------------------------------------------------------------------------------------ judging */
static void judge(bench *b, const cli_case *one)
{
    const cli_runner *own = &b->runners[0], *peers = &b->runners[b->own_count];
    b->log_share += log(cli_gflops(one->shape, own->median) * 1e9 / b->peak);
    for (int i = 0; i < b->peer_count; i++) {
        b->log_median[i] += log(peers[i].median / own->median);
        b->log_best[i] += log(peers[i].best / own->best);
    }
    double best = own->median;
    for (int i = 1; i < b->own_count; i++)
        best = fmin(best, own[i].median);
    b->log_chooser += log(best / own->median);
    for (int i = 0; i < b->own_count + b->peer_count; i++) {
        if (cli_judge(&b->runners[i], one) != CLI_OK)
            b->wrong = 1;
    }
}

/* ------------------------------------------------------------------------------- the roofline */
/* The first runner and the peers; not each of `--tile all`. */
static void add_points(bench *b, const cli_case *one)
{
    char text[CLI_NAME];
    double bytes = cli_least_traffic(one->shape, b->options->type);
    for (int i = 0; i <= b->peer_count && b->points; i++) {
        const cli_runner *runner = &b->runners[i == 0 ? 0 : b->own_count + i - 1];
        cli_point *point = &b->points[b->point_count++];
        snprintf(point->name, sizeof point->name, "%s",
                 *one->label ? one->label : cli_case_text(one, text));
        point->x = cli_gflops(one->shape, 1) * 1e9 / bytes;
        point->y = cli_gflops(one->shape, runner->median) * 1e9 / b->rate.flops;
        point->series = i;
    }
}

static int draw_roofline(const bench *b)
{
    cli_plot plot = {.path = b->options->roofline,
                     .subtitle = tg_device_name(b->machine.ctx),
                     .unit = b->rate.name,
                     .peak = b->roof / b->rate.flops,
                     .bandwidth = b->bandwidth / b->rate.flops};
    char title[CLI_NAME];
    snprintf(title, sizeof title, "tilegemm %s, %s", tg_version(), tg_type_name(b->options->type));
    plot.title = title;
    plot.series[0] = "tilegemm";
    for (int i = 0; i < b->peer_count && i + 1 < CLI_LIST; i++)
        plot.series[i + 1] = b->peers[i].name;
    return cli_plot_roofline(&plot, b->points, b->point_count);
}

static int measure_roof(bench *b)
{
    if (!b->options->roofline)
        return CLI_OK;
    size_t most = (size_t)b->cases.count * (size_t)(b->peer_count + 1);
    b->points = calloc(most, sizeof *b->points);
    b->bandwidth = cli_bandwidth(&b->machine);
    if (!b->points || b->bandwidth <= 0)
        return cli_fail("the bandwidth of the memory could not be measured");
    return CLI_OK;
}

/* -------------------------------------------------------------------------------------- running */
double bench_reading_share(const bench *b, const cli_runner *runner, const cli_case *one)
{
    return cli_least_traffic(one->shape, b->options->type) / runner->median / b->reading;
}

static int run_case(bench *b, int index)
{
    const cli_options *o = b->options;
    const cli_case *one = &b->cases.items[index];
    cli_work work;
    int rc = cli_work_make(&b->machine, &work, one->shape, o->type, one->trans, CLI_RANDOM, 0);
    if (rc != CLI_OK)
        return rc;
    rc = cli_race(&b->machine, &work, b->runners, b->own_count + b->peer_count,
                  (cli_rounds){1, b->rounds, SECONDS}, &b->peak);
    b->roof = fmax(b->roof, b->peak);
    b->after = cli_read_clocks(&b->machine);
    const double cold = (double)cli_cold_bytes(&b->machine) / 2;
    const int is_cold = b->machine.is_host && cli_least_traffic(one->shape, o->type) >= cold;
    b->reading = is_cold ? cli_bandwidth(&b->machine) : 0;
    b->any_reading |= is_cold;
    cli_work_free(&b->machine, &work);
    if (rc != CLI_OK)
        return rc;
    if (o->json)
        bench_json_case(b, one, index == 0);
    else
        bench_print_case(b, one);
    add_points(b, one);
    judge(b, one);
    return CLI_OK;
}

static int prepare(bench *b)
{
    char text[CLI_NAME];
    int rc = make_runners(b);
    if (rc == CLI_OK && b->options->roofline)
        rc = cli_temporary_try(b->options->roofline);
    if (rc == CLI_OK)
        rc = measure_roof(b);
    if (rc == CLI_OK && tg_peak(b->machine.ctx, b->options->type, &b->roof) != TG_OK)
        rc = cli_fail_call(&b->machine, "the peak probe");
    b->rate = cli_rate_for(b->roof);
    b->rounds = b->options->rounds ? b->options->rounds : ROUNDS;
    b->before = cli_read_clocks(&b->machine);
    b->name_width = 16;
    for (int i = 0; i < b->cases.count; i++)
        b->name_width =
            (int)tg_max(b->name_width, (int64_t)strlen(cli_case_text(&b->cases.items[i], text)));
    return rc;
}

static int run_all(bench *b)
{
    int rc = prepare(b);
    if (rc != CLI_OK)
        return rc;
    if (b->options->json)
        bench_json_heading(b);
    else
        bench_print_heading(b);
    for (int i = 0; i < b->cases.count && rc == CLI_OK; i++)
        rc = run_case(b, i);
    if (rc != CLI_OK)
        return rc;
    if (b->options->json)
        bench_json_means(b);
    else
        bench_print_means(b);
    if (b->options->roofline)
        rc = draw_roofline(b);
    return b->wrong ? CLI_FAILED : rc;
}

int cli_bench(const cli_options *options)
{
    bench b;
    cli_options opening = *options;
    memset(&b, 0, sizeof b);
    b.options = options;
    if (is_list(options->tile))
        opening.tile = NULL; /* the first runner is the chooser */
    int rc = cli_collect_cases(&b.cases, options);
    if (rc == CLI_OK)
        rc = cli_open(&b.machine, &opening);
    if (rc == CLI_OK) {
        rc = run_all(&b);
        for (int i = 0; i < b.peer_count; i++)
            cli_peer_close(&b.peers[i], &b.machine);
        cli_close(&b.machine);
    }
    free(b.points);
    free(b.runners);
    free(b.cases.items);
    return rc;
}
