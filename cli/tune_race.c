/* SPDX-License-Identifier: Apache-2.0
 *
 * The tilings that `tilegemm tune` tries, and their races:
 *
 *     heats    the chooser and every tiling that would run another way, a few rounds
 *     final    the chooser and the best of them, many rounds, of which alone the verdict is made:
 *              to be the best of many in the heats may have been luck
 *
 * A race gives each its turn in every round, and a round's gain is what counts: so both saw the
 * same clock and the same neighbours. Of the sorted gains of n rounds, those sqrt(n) from the
 * middle enclose the median with 95 % certainty.
 */
#define _POSIX_C_SOURCE 200809L
#include "tile.h"
#include "tune.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 25, RUNNERS = 96 };
static const cli_rounds heats = {1, 5, 0.25};
static const double seconds_of_final = 1.5;

/* The list starts with the chooser. */
static void start_list(tuner *x)
{
    x->runner_count = 1;
    x->runners[0].mode = CLI_CHOSEN;
    snprintf(x->runners[0].name, CLI_NAME, "the chooser");
}

static void add_tiling(tuner *x, tg_tile tile)
{
    if (x->runner_count == RUNNERS || !tune_takes(x, &tile))
        return;
    cli_runner *runner = &x->runners[x->runner_count++];
    runner->mode = CLI_FORCED;
    runner->tile = tile;
    tg_tile_print(&tile, runner->name, CLI_NAME);
}

/* Rows, without rungs of the ladder. */
static void list_rows(tuner *x)
{
    start_list(x);
    for (int row = 0; row < tg_tile_count(); row++) {
        const tg_tile tile = tg_tile_at(row);
        if (tile.form != TG_DOT && (x->machine.is_host || tile.stages != 1))
            add_tiling(x, tile);
    }
}

/* A CPU's row with all of it staged, and with half and twice of each warp size. k is not cut in
 * other ways: that would change the order of sums. */
static void list_variants(tuner *x, tg_tile tile)
{
    const tg_tile filled = tg_tile_resolve(x->machine.ctx, &tile, x->options->type);
    const int m = tile.thread.m, n = tile.thread.n;
    start_list(x);
    add_tiling(x, tile);
    tile.stages = 2;
    add_tiling(x, tile);
    tile.stages = 1;
    for (int twice = 0; twice < 2; twice++) {
        tg_tile other = tile;
        other.warp.m = (twice ? 2 * filled.warp.m : (int)tg_max(filled.warp.m / 2, m)) / m * m;
        add_tiling(x, other);
        other = tile;
        other.warp.n = (twice ? 2 * filled.warp.n : (int)tg_max(filled.warp.n / 2, n)) / n * n;
        add_tiling(x, other);
    }
}

int tune_make_runners(tuner *x)
{
    x->runners = calloc(RUNNERS, sizeof *x->runners);
    x->heat = calloc(RUNNERS, sizeof *x->heat);
    return x->runners && x->heat ? CLI_OK : cli_fail("there is no memory for the samples");
}

/* A number of how a tiling would run the bucket's problems; 0 if it cannot. */
static uint64_t way_of(tuner *x, const bucket *b, const cli_runner *runner)
{
    uint64_t way = 1;
    if (tg_force(x->machine.ctx, runner->mode == CLI_FORCED ? &runner->tile : NULL) != TG_OK)
        return 0;
    for (int i = b->first; i < x->cases.count; i++) {
        const cli_case *one = &x->cases.items[i];
        tg_plan plan = TG_PLAN_INIT;
        cli_work work;
        char text[96];
        if (!tune_is_in(x, b, i))
            continue;
        cli_work_describe(&work, one->shape, x->options->type, one->trans, 0);
        if (tg_pick(x->machine.ctx, &work.host, &plan) != TG_OK)
            return 0;
        tg_tile_print(&plan.tile, text, sizeof text);
        for (const char *at = text; *at; at++)
            way = cli_hash(way ^ (unsigned char)*at);
        way = cli_hash(way ^ (uint64_t)(plan.a_in_place + 2 * plan.b_in_place + 4 * plan.tail));
        way = cli_hash(way ^ (uint64_t)plan.splits ^ (uint64_t)plan.threads << 32);
    }
    return way | 1;
}

/* Those of the list that would run the bucket's problems in another way than all before. */
static void choose_heat(tuner *x, const bucket *b)
{
    uint64_t ways[RUNNERS];
    x->heat_count = 0;
    for (int i = 0; i < x->runner_count; i++) {
        const uint64_t way = way_of(x, b, &x->runners[i]);
        int is_new = way != 0;
        for (int other = 0; other < x->heat_count; other++)
            is_new &= ways[other] != way;
        if (is_new) {
            ways[x->heat_count] = way;
            x->heat[x->heat_count++] = x->runners[i];
        }
    }
}

/* -------------------------------------------------------------------------------------- racing */
static int race(tuner *x, int index, cli_runner *runners, int count, cli_rounds rounds)
{
    const cli_case *one = &x->cases.items[index];
    double peak; /* of the threads that this case has */
    cli_work work;
    int rc =
        cli_work_make(&x->machine, &work, one->shape, x->options->type, one->trans, CLI_RANDOM, 0);
    if (rc != CLI_OK)
        return rc;
    rc = cli_race(&x->machine, &work, runners, count, rounds, &peak);
    cli_work_free(&x->machine, &work);
    for (int i = 0; i < count && rc == CLI_OK; i++)
        rc = cli_judge(&runners[i], one);
    return rc;
}

/* Races the list; the best tiling comes behind the chooser. */
static int run_heat(tuner *x, bucket *b)
{
    double gains[RUNNERS] = {0};
    int best = 1, rc = CLI_OK;
    choose_heat(x, b);
    b->tilings += x->heat_count - 1;
    b->hope = 0;
    for (int i = b->first; i < x->cases.count && rc == CLI_OK && x->heat_count > 1; i++) {
        if (!tune_is_in(x, b, i))
            continue;
        rc = race(x, i, x->heat, x->heat_count, heats);
        for (int other = 1; other < x->heat_count; other++)
            gains[other] += log(x->heat[0].median / x->heat[other].median) / b->problems;
    }
    for (int other = 2; other < x->heat_count; other++)
        best = gains[other] > gains[best] ? other : best;
    b->hope = gains[best];
    x->heat[1] = x->heat[best];
    return rc;
}

int tune_run_heats(tuner *x, bucket *b)
{
    const cli_case *one = &x->cases.items[b->first];
    tg_plan plan = TG_PLAN_INIT;
    cli_work work;
    list_rows(x);
    int rc = run_heat(x, b);
    if (rc != CLI_OK || !x->machine.is_host)
        return rc;
    cli_work_describe(&work, one->shape, x->options->type, one->trans, 0);
    if (tg_force(x->machine.ctx, NULL) != TG_OK ||
        tg_pick(x->machine.ctx, &work.host, &plan) != TG_OK)
        return cli_fail_call(&x->machine, "");
    list_variants(x, b->hope > 0 ? x->heat[1].tile : tg_tile_at(plan.row));
    return run_heat(x, b);
}

/* The median of how many times as fast the tiling was, round by round, and what encloses it with
 * 95 % certainty: all of them, if they are few. */
static double gain_of(const tuner *x, double *low, double *high)
{
    const cli_runner *chooser = &x->heat[0], *tiling = &x->heat[1];
    const int count = (int)tg_min(chooser->sample_count, tiling->sample_count);
    const int left_out = (int)tg_max((count - 1) / 2 - (int)ceil(0.98 * sqrt(count)), 0);
    double gains[CLI_ROUNDS];
    for (int i = 0; i < count; i++)
        gains[i] = chooser->samples[i] / tiling->samples[i];
    const double median = cli_median(gains, count);
    *low = gains[left_out];
    *high = gains[count - 1 - left_out];
    return median;
}

int tune_run_final(tuner *x, bucket *b)
{
    const int asked = x->options->rounds ? x->options->rounds : ROUNDS;
    const cli_rounds rounds = {TUNE_LEAST, asked, seconds_of_final};
    for (int i = b->first; i < x->cases.count; i++) {
        double low, high;
        if (!tune_is_in(x, b, i))
            continue;
        int rc = race(x, i, x->heat, 2, rounds);
        if (rc != CLI_OK)
            return rc;
        b->gain += log(gain_of(x, &low, &high)) / b->problems;
        b->certain += log(low) / b->problems;
        b->is_slower |= high < 1;
    }
    return CLI_OK;
}
