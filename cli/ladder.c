/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm ladder`: the steps from one output per thread to warp tiles, timed in turn on one
 * problem of integers, so that each result is checked with ==. The last line is the chooser's own.
 */
#include "cli.h"
#include "tile.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, BAR = 20, SECONDS = 1 };

static int is_rung(int row) { return strncmp(tg_tile_note(row), "ladder:", 7) == 0; }

/* The rungs that the device can run, and the chooser. */
static int make_runners(cli_machine *machine, tg_type type, cli_runner *runners)
{
    int count = 0;
    for (int row = 0; row < tg_tile_count(); row++) {
        tg_tile tile = tg_tile_at(row);
        const char *why = is_rung(row) ? tg_tile_refusal(machine->ctx, &tile, type) : NULL;
        if (why)
            printf("%s is left out: %s\n", tg_tile_name(row), why);
        if (why || !is_rung(row))
            continue;
        snprintf(runners[count].name, CLI_NAME, "%s", tg_tile_name(row));
        runners[count].mode = CLI_FORCED;
        runners[count++].tile = tile;
    }
    runners[count].mode = CLI_CHOSEN;
    snprintf(runners[count++].name, CLI_NAME, "the chooser");
    return count;
}

static void print_rung(const cli_runner *rung, cli_shape shape, tg_type type, double first,
                       double peak)
{
    char traffic[CLI_NAME], staged[CLI_NAME];
    tg_tile tile = rung->plan.tile;
    double gflops = cli_gflops(shape, rung->median), share = gflops * 1e9 / peak;
    int64_t bytes = tg_tile_staged_bytes(tile, (int)tg_type_size(type));
    printf("%-17s %10.3f %9.2f %8.1f %6.1f %% %10s %10s %s ", rung->name, 1e3 * rung->median,
           gflops, first / rung->median, 100 * share, cli_bytes_text((double)bytes, staged),
           cli_bytes_text(cli_traffic(tile, shape, type), traffic),
           cli_mark_text(rung->verdict.is_exact ? CLI_GOOD : CLI_BAD));
    cli_print_bar(share, BAR);
    printf("\n");
}

static int print_table(const cli_machine *machine, const cli_runner *runners, int count,
                       cli_shape shape, tg_type type, double peak)
{
    int wrong = 0;
    printf("\n%-17s %10s %9s %8s %8s %10s %10s exact\n", "rung", "ms", "GFLOP/s", "x first",
           "of peak", "staged", "traffic");
    for (int i = 0; i < count; i++)
        print_rung(&runners[i], shape, type, runners[0].median, peak);
    const cli_runner *chosen = &runners[count - 1];
    char spelled[96];
    tg_tile_print(&chosen->plan.tile, spelled, sizeof spelled);
    printf("\nthe chooser takes %s as %s\n",
           chosen->plan.row < 0 ? "a tiling" : tg_tile_name(chosen->plan.row), spelled);
    printf("peak: %.1f GFLOP/s of multiply-adds alone, %d thread%s; times are medians\n",
           peak / 1e9, machine->threads, machine->threads == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        const cli_verdict *v = &runners[i].verdict;
        if (!v->is_exact)
            cli_fail("%s is wrong: C[%lld, %lld] is %.9g, not %.9g", runners[i].name,
                     (long long)v->row, (long long)v->col, v->got, v->wanted);
        wrong += !v->is_exact;
    }
    return wrong ? CLI_FAILED : CLI_OK;
}

static int race(cli_machine *machine, const cli_options *options, cli_shape shape,
                cli_runner *runners)
{
    cli_work work;
    double peak;
    int rounds = options->rounds ? options->rounds : ROUNDS;
    printf("%lld x %lld x %lld, %s, %s\n", (long long)shape.m, (long long)shape.n,
           (long long)shape.k, tg_type_name(options->type), tg_device_name(machine->ctx));
    fflush(stdout);
    int count = make_runners(machine, options->type, runners);
    int rc = cli_work_make(machine, &work, shape, options->type, "NN", CLI_INTEGERS, 0);
    if (rc != CLI_OK)
        return rc;
    rc = cli_race(machine, &work, runners, count, rounds, SECONDS, &peak);
    if (rc == CLI_OK)
        rc = print_table(machine, runners, count, shape, options->type, peak);
    cli_work_free(machine, &work);
    return rc;
}

int cli_ladder(const cli_options *options)
{
    cli_shape shape = {512, 512, 512};
    cli_machine machine;
    int rc = cli_words_shape(options, &shape);
    if (rc == CLI_OK)
        rc = cli_open(&machine, options);
    if (rc != CLI_OK)
        return rc;
    cli_runner *runners = calloc((size_t)tg_tile_count() + 1, sizeof *runners);
    rc = runners ? race(&machine, options, shape, runners) : cli_fail("memory could not be had");
    free(runners);
    cli_close(&machine);
    return rc;
}
