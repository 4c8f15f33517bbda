/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm ladder`: the steps from one output per thread to warp tiles, timed in turn on one
 * problem of integers, so that each result is checked with ==. The last line is the chooser's own.
 */
#include "road.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, BAR = 16, SECONDS = 1 };

static const char chooser_name[] = "the chooser";

typedef struct ladder {
    const cli_options *options;
    cli_machine machine;
    cli_shape shape;
    cli_peer peer;
    cli_runner *runners; /* the rungs, the chooser, and the peer if there is one */
    int rungs, rounds;   /* the chooser is the last rung */
    double peak;
    cli_rate rate;
    double *counted; /* bytes of each rung; NULL if not asked for */
} ladder;

static int has_peer(const ladder *x) { return x->options->peer_count > 0; }

static int is_rung(int row) { return strncmp(tg_tile_note(row), "ladder:", 7) == 0; }

/* The rungs that the device can run, the chooser, and the peer. */
static int make_runners(ladder *x)
{
    tg_type type = x->options->type;
    for (int row = 0; row < tg_tile_count(); row++) {
        tg_tile tile = tg_tile_at(row);
        const char *why = is_rung(row) ? tg_tile_refusal(x->machine.ctx, &tile, type) : NULL;
        if (why && !x->options->json)
            printf("%s is left out: %s\n", tg_tile_name(row), why);
        if (why || !is_rung(row))
            continue;
        cli_runner *rung = &x->runners[x->rungs++];
        snprintf(rung->name, CLI_NAME, "%s", tg_tile_name(row));
        rung->mode = CLI_FORCED;
        rung->tile = tile;
    }
    cli_runner *chooser = &x->runners[x->rungs++], *peer = &x->runners[x->rungs];
    chooser->mode = CLI_CHOSEN;
    snprintf(chooser->name, CLI_NAME, "%s", chooser_name);
    if (!has_peer(x))
        return CLI_OK;
    peer->peer = &x->peer;
    int rc = cli_peer_open(&x->peer, x->options->peers[0], &x->machine);
    snprintf(peer->name, CLI_NAME, "%s", x->peer.name);
    return rc;
}

/* ------------------------------------------------------------------------------------ the table */
static double occupied(ladder *x, const cli_runner *rung)
{
    cli_occupancy occupancy = cli_read_occupancy(&x->machine, &rung->plan, x->options->type);
    return cli_occupied(&occupancy);
}

static int knows_occupancy(const ladder *x)
{
    return !x->machine.is_host && cli_read_unit(&x->machine).is_known;
}

static int64_t staged_bytes(const ladder *x, const cli_runner *rung)
{
    const cli_road road = cli_find_road(&x->machine, x->shape, x->options->type, &rung->plan);
    return cli_staged_bytes(&road, &x->machine);
}

/* Into fast memory. */
static double traffic(const ladder *x, const cli_runner *rung)
{
    const cli_road road = cli_find_road(&x->machine, x->shape, x->options->type, &rung->plan);
    return cli_traffic(&road.plan, road.shape, x->options->type);
}

/* How many times as fast as the peer. */
static double of_peer(const ladder *x, const cli_runner *rung)
{
    return x->runners[x->rungs].median / rung->median;
}

static void print_heading(const ladder *x)
{
    char of[CLI_NAME];
    snprintf(of, sizeof of, "of %.8s", x->peer.name);
    printf("\n%-17s %10s %9s %8s %8s", "rung", "ms", x->rate.name, "x first", "of peak");
    if (has_peer(x))
        printf(" %11s", of);
    printf(" %10s", "staged");
    if (knows_occupancy(x))
        printf(" %8s", "occupied");
    printf(" %10s", "traffic");
    if (x->counted)
        printf(" %10s", "counted");
    printf(" exact\n");
}

static void print_rung(ladder *x, int at)
{
    char text[CLI_NAME];
    const cli_runner *rung = &x->runners[at];
    double gflops = cli_gflops(x->shape, rung->median), share = gflops * 1e9 / x->peak;
    printf("%-17s %10.3f %9.2f %8.1f %6.1f %%", rung->name, 1e3 * rung->median,
           gflops * 1e9 / x->rate.flops, x->runners[0].median / rung->median, 100 * share);
    if (has_peer(x))
        printf(" %9.1f %%", 100 * of_peer(x, rung));
    printf(" %10s", cli_bytes_text((double)staged_bytes(x, rung), text));
    if (knows_occupancy(x))
        printf(" %6.0f %%", 100 * occupied(x, rung));
    printf(" %10s", cli_bytes_text(traffic(x, rung), text));
    if (x->counted)
        printf(" %10s", cli_bytes_text(x->counted[at], text));
    printf(" %s ", cli_mark_text(rung->verdict.is_exact ? CLI_GOOD : CLI_BAD));
    cli_print_bar(share, BAR);
    printf("\n");
}

static void print_table(ladder *x)
{
    const cli_runner *chosen = &x->runners[x->rungs - 1];
    char spelled[96];
    print_heading(x);
    for (int i = 0; i < x->rungs; i++)
        print_rung(x, i);
    tg_tile_print(&chosen->plan.tile, spelled, sizeof spelled);
    printf("\nthe chooser takes %s as %s\n",
           chosen->plan.row < 0 ? "a tiling" : tg_tile_name(chosen->plan.row), spelled);
    printf("peak: %.1f %s of multiply-adds alone", x->peak / x->rate.flops, x->rate.name);
    if (x->machine.is_host)
        printf(", %d thread%s", x->machine.threads, cli_s(x->machine.threads));
    printf("; times are medians\n");
    if (x->counted)
        printf("traffic: into fast memory, by formula; counted: of the device's memory, behind its "
               "caches\n");
}

static void print_json(ladder *x)
{
    cli_print_json_heading(&x->machine, x->options, x->rounds);
    printf(", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"peak_gflops\": %.6g", (long long)x->shape.m,
           (long long)x->shape.n, (long long)x->shape.k, x->peak / 1e9);
    if (has_peer(x)) {
        printf(", \"peer\": ");
        cli_print_json_text(x->peer.name);
    }
    printf(",\n \"ladder\": [");
    for (int i = 0; i < x->rungs; i++) {
        const cli_runner *rung = &x->runners[i];
        char tile[96];
        tg_tile_print(&rung->plan.tile, tile, sizeof tile);
        printf("%s\n  {\"rung\": \"%s\", \"tile\": \"%s\", \"median_ms\": %.6g, \"gflops\": %.6g, "
               "\"staged_bytes\": %lld, \"occupied\": %.4g, \"traffic_bytes\": %.0f",
               i ? "," : "", rung->name, tile, 1e3 * rung->median,
               cli_gflops(x->shape, rung->median), (long long)staged_bytes(x, rung),
               occupied(x, rung), traffic(x, rung));
        if (x->counted)
            printf(", \"counted_bytes\": %.0f", x->counted[i]);
        if (has_peer(x))
            printf(", \"of_peer\": %.6g", of_peer(x, rung));
        printf(", \"exact\": %s}", rung->verdict.is_exact ? "true" : "false");
    }
    printf("]}\n");
}

static int draw_plot(const ladder *x)
{
    char title[2 * CLI_NAME], of[2 * CLI_NAME];
    cli_bar *bars = calloc((size_t)x->rungs, sizeof *bars);
    cli_plot plot = {.path = x->options->plot,
                     .title = title,
                     .subtitle = tg_device_name(x->machine.ctx),
                     .unit = x->rate.name,
                     .peak = x->peak / x->rate.flops};
    if (!bars)
        return cli_fail("there is no memory for the plot");
    snprintf(title, sizeof title, "The ladder: %lld x %lld x %lld, %s", (long long)x->shape.m,
             (long long)x->shape.n, (long long)x->shape.k, tg_type_name(x->options->type));
    if (has_peer(x)) {
        plot.series[1] = x->peer.name;
        plot.peer = cli_gflops(x->shape, x->runners[x->rungs].median) * 1e9 / x->rate.flops;
    }
    for (int i = 0; i < x->rungs; i++) {
        const cli_runner *rung = &x->runners[i];
        bars[i].name = rung->name;
        bars[i].value = cli_gflops(x->shape, rung->median) * 1e9 / x->rate.flops;
        snprintf(of, sizeof of, ", %.0f %% of %.12s", 100 * (has_peer(x) ? of_peer(x, rung) : 0),
                 x->peer.name);
        snprintf(bars[i].note, sizeof bars[i].note, "%.3g, x %.1f%s", bars[i].value,
                 x->runners[0].median / rung->median, has_peer(x) ? of : "");
    }
    int rc = cli_plot_bars(&plot, bars, x->rungs);
    free(bars);
    return rc;
}

/* -------------------------------------------------------------------------------------- running */
static int judge(const ladder *x)
{
    int rc = CLI_OK;
    for (int i = 0; i < x->rungs + has_peer(x); i++) {
        const cli_verdict *v = &x->runners[i].verdict;
        if (!v->is_exact)
            rc = cli_fail("%s is wrong: C[%lld, %lld] is %.9g, not %.9g", x->runners[i].name,
                          (long long)v->row, (long long)v->col, v->got, v->wanted);
    }
    return rc;
}

static int count_traffic(ladder *x)
{
    int rc = CLI_OK;
    if (!x->options->counted)
        return CLI_OK;
    x->counted = calloc((size_t)x->rungs, sizeof *x->counted);
    if (!x->counted)
        return cli_fail("there is no memory for the counts");
    for (int i = 0; i < x->rungs && rc == CLI_OK; i++)
        rc = cli_count_traffic(x->options, x->shape, x->runners[i].name, &x->counted[i]);
    if (rc != CLI_OK) {
        free(x->counted); /* the times are still worth telling */
        x->counted = NULL;
    }
    return rc;
}

static int race(ladder *x)
{
    cli_work work;
    tg_type type = x->options->type;
    int rc = make_runners(x);
    if (rc == CLI_OK)
        rc = cli_work_make(&x->machine, &work, x->shape, type, "NN", CLI_INTEGERS, 0);
    if (rc != CLI_OK)
        return rc;
    rc = cli_race(&x->machine, &work, x->runners, x->rungs + has_peer(x),
                  (cli_rounds){1, x->rounds, SECONDS}, &x->peak);
    cli_work_free(&x->machine, &work);
    return rc;
}

static int climb(ladder *x)
{
    cli_shape s = x->shape;
    if (!x->options->json)
        printf("%lld x %lld x %lld, %s, %s\n", (long long)s.m, (long long)s.n, (long long)s.k,
               tg_type_name(x->options->type), tg_device_name(x->machine.ctx));
    fflush(stdout);
    int rc = x->options->plot ? cli_temporary_try(x->options->plot) : CLI_OK;
    if (rc == CLI_OK)
        rc = race(x);
    if (rc != CLI_OK)
        return rc;
    x->rate = cli_rate_for(x->peak);
    int counting = count_traffic(x);
    if (x->options->json)
        print_json(x);
    else
        print_table(x);
    rc = x->options->plot ? draw_plot(x) : CLI_OK;
    int verdict = judge(x);
    return verdict ? verdict : rc ? rc : counting;
}

/* --once: nothing but the one call. */
static int run_once(ladder *x)
{
    const char *rung = x->options->once;
    int row = tg_tile_find(rung);
    tg_tile tile = tg_tile_at(row);
    cli_work work;
    if (row < 0 && strcmp(rung, chooser_name) != 0)
        return cli_fail("--once takes a row of `tilegemm tiles`, not \"%s\"", rung);
    if (row >= 0 && tg_force(x->machine.ctx, &tile) != TG_OK)
        return cli_fail_call(&x->machine, rung);
    int rc = cli_work_make(&x->machine, &work, x->shape, x->options->type, "NN", CLI_INTEGERS, 0);
    if (rc != CLI_OK)
        return rc;
    if (tg_gemm(x->machine.ctx, &work.device) != TG_OK || tg_sync(x->machine.ctx) != TG_OK)
        rc = cli_fail_call(&x->machine, rung);
    cli_work_free(&x->machine, &work);
    return rc;
}

int cli_ladder(const cli_options *options)
{
    ladder x = {.options = options,
                .shape = {512, 512, 512, 1},
                .rounds = options->rounds ? options->rounds : ROUNDS};
    static const char *const once[] = {"--backend", "--threads", "--type", "--once", NULL};
    int rc = cli_words_shape(options, &x.shape);
    if (rc == CLI_OK && options->once)
        rc = cli_takes_only(options, "--once", once);
    if (rc == CLI_OK && options->peer_count > 1)
        rc = cli_misuse("ladder takes one --peer, and %d were given", options->peer_count);
    if (rc == CLI_OK)
        rc = cli_open(&x.machine, options);
    if (rc != CLI_OK)
        return rc;
    x.runners = calloc((size_t)tg_tile_count() + 2, sizeof *x.runners);
    if (!x.runners)
        rc = cli_fail("there is no memory for the samples");
    else if (options->counted && strcmp(x.machine.backend, "cuda") != 0)
        rc = cli_fail("--counted needs --backend cuda: ncu counts what NVIDIA's devices move");
    else
        rc = options->once ? run_once(&x) : climb(&x);
    cli_peer_close(&x.peer, &x.machine);
    free(x.counted);
    free(x.runners);
    cli_close(&x.machine);
    return rc;
}
