/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing that can be trusted on a machine whose clock drifts: every contestant takes its turn in
 * every round, the peak probe too, and the medians of the rounds are compared.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static const double sample_seconds = 2e-3;
static const double verify_budget = 1 << 22;

static int compare(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return (x > y) - (x < y);
}

/* Sorts the samples. */
static double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, compare);
    return count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

static int prepare(cli_machine *machine, const cli_runner *runner)
{
    if (runner->peer || runner->mode == CLI_AS_IS)
        return CLI_OK;
    if (tg_force(machine->ctx, runner->mode == CLI_FORCED ? &runner->tile : NULL) != TG_OK)
        return cli_fail_call(machine, runner->name);
    return CLI_OK;
}

static int call(cli_machine *machine, cli_work *work, const cli_runner *runner, int64_t calls)
{
    tg_status status = TG_OK;
    for (int64_t i = 0; i < calls && status == TG_OK; i++) {
        if (runner->peer)
            cli_peer_gemm(runner->peer, work);
        else
            status = tg_gemm(machine->ctx, &work->device);
    }
    if (status == TG_OK && !runner->peer)
        status = tg_sync(machine->ctx);
    return status == TG_OK ? CLI_OK : cli_fail_call(machine, runner->name);
}

/* Finds how many calls make a sample; the first took `seconds`. */
static int calibrate(cli_machine *machine, cli_work *work, cli_runner *runner, double seconds)
{
    for (runner->calls = 1; seconds < sample_seconds;) {
        double more = fmax(1.2, fmin(10, 1.2 * sample_seconds / fmax(seconds, 1e-9)));
        runner->calls = (int64_t)ceil((double)runner->calls * more);
        double start = cli_now();
        int rc = call(machine, work, runner, runner->calls);
        seconds = cli_now() - start;
        if (rc != CLI_OK)
            return rc;
    }
    return CLI_OK;
}

/* Runs once, and checks the result. */
static int warm_up(cli_machine *machine, cli_work *work, cli_runner *runner)
{
    int rc = cli_work_reset(machine, work);
    if (rc == CLI_OK)
        rc = prepare(machine, runner);
    tg_plan plan = TG_PLAN_INIT;
    if (rc == CLI_OK && !runner->peer && tg_pick(machine->ctx, &work->device, &plan) != TG_OK)
        rc = cli_fail_call(machine, runner->name);
    runner->plan = plan;
    double start = cli_now();
    if (rc == CLI_OK)
        rc = call(machine, work, runner, 1);
    double seconds = cli_now() - start;
    if (rc == CLI_OK && !runner->peer)
        rc = cli_work_fetch(machine, work);
    if (rc != CLI_OK)
        return rc;
    tg_input c0 = cli_c_of(&work->host);
    c0.data = work->c0;
    runner->verdict = cli_verify(&work->host, c0, verify_budget);
    runner->sample_count = 0;
    runner->seconds = 0;
    return calibrate(machine, work, runner, seconds);
}

/* Other libraries' threads spin for a while after a call: wait until they sleep. */
static void settle(void)
{
    struct timespec pause = {0, 40 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

static int take_sample(cli_machine *machine, cli_work *work, cli_runner *runner, int is_crowded)
{
    int rc = prepare(machine, runner);
    if (rc == CLI_OK && is_crowded) {
        settle();
        rc = call(machine, work, runner, 1);
    }
    double start = cli_now();
    if (rc == CLI_OK)
        rc = call(machine, work, runner, runner->calls);
    double seconds = cli_now() - start;
    runner->seconds += seconds;
    runner->samples[runner->sample_count++] = seconds / (double)runner->calls;
    return rc;
}

int cli_race(cli_machine *machine, cli_work *work, cli_runner *runners, int count, int rounds,
             double enough, double *peak)
{
    double peaks[CLI_ROUNDS];
    int is_crowded = 0, rc = CLI_OK;
    for (int i = 0; i < count && rc == CLI_OK; i++) {
        is_crowded |= runners[i].peer && machine->threads > 1;
        rc = warm_up(machine, work, &runners[i]);
    }
    for (int round = 0; round < rounds && rc == CLI_OK; round++) {
        if (is_crowded)
            settle();
        if (tg_peak(machine->ctx, work->host.c.type, &peaks[round]) != TG_OK)
            return cli_fail_call(machine, "the peak probe");
        for (int i = 0; i < count && rc == CLI_OK; i++) {
            if (runners[i].seconds < enough)
                rc = take_sample(machine, work, &runners[i], is_crowded);
        }
    }
    if (rc != CLI_OK)
        return rc;
    for (int i = 0; i < count; i++) {
        runners[i].median = median(runners[i].samples, runners[i].sample_count);
        runners[i].best = runners[i].samples[0];
    }
    *peak = median(peaks, rounds);
    return CLI_OK;
}
