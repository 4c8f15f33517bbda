/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing that can be trusted on a machine whose clock drifts: every contestant takes its turn in
 * every round, the peak probe too, and the medians of the rounds are compared.
 *
 * On a GPU a sample is a queue of calls between two events. Each call takes the next of many copies
 * of the matrices, so that none is in the caches still; and the queue fills behind passes over
 * memory, a curtain, so that it is the device that is timed and not how fast the host can ask:
 *
 *     host     ask ask ask ask ask ask
 *     device   [ curtain       ]|call|call|call|call|call|call|
 *                               ^ start                       ^ stop
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double sample_seconds = 2e-3;
static const double enough_to_repeat = 0.1;
static const double verify_budget = 1 << 22;
enum { MOST_QUEUED = 400, CALLS_A_PASS = 8 };

typedef struct race {
    cli_machine *machine;
    cli_work *work;
    int is_crowded;
    void *curtain; /* device memory; NULL on the host */
} race;

static int compare(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return (x > y) - (x < y);
}

double cli_median(double *samples, int count)
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

static int call(race *x, const cli_runner *runner, int64_t calls)
{
    int rc = CLI_OK;
    for (int64_t i = 0; i < calls && rc == CLI_OK; i++) {
        const tg_problem *p = cli_work_next(x->work);
        if (runner->peer)
            rc = cli_peer_gemm(runner->peer, x->work->trans, p);
        else if (tg_gemm(x->machine->ctx, p) != TG_OK)
            rc = cli_fail_call(x->machine, runner->name);
    }
    return rc;
}

static int time_calls(race *x, const cli_runner *runner, int64_t calls, double *seconds)
{
    tg_context *ctx = x->machine->ctx;
    tg_status status = TG_OK;
    for (int64_t at = 0; x->curtain && at < calls && status == TG_OK; at += CALLS_A_PASS)
        status = cli_pass(x->machine, x->curtain, cli_cold_bytes(x->machine), x->work->host.a.type);
    if (status == TG_OK)
        status = tg_time_start(ctx);
    int rc = status == TG_OK ? call(x, runner, calls) : CLI_OK;
    if (status == TG_OK && rc == CLI_OK)
        status = tg_time_stop(ctx, seconds);
    return status == TG_OK ? rc : cli_fail_call(x->machine, runner->name);
}

/* Finds how many calls make a sample; the first took `seconds`. */
static int calibrate(race *x, cli_runner *runner, double seconds)
{
    for (runner->calls = 1; seconds < sample_seconds;) {
        double more = fmax(1.2, fmin(10, 1.2 * sample_seconds / fmax(seconds, 1e-9)));
        if (x->curtain && runner->calls == MOST_QUEUED)
            break;
        runner->calls = (int64_t)ceil((double)runner->calls * more);
        if (x->curtain && runner->calls > MOST_QUEUED)
            runner->calls = MOST_QUEUED;
        int rc = time_calls(x, runner, runner->calls, &seconds);
        if (rc != CLI_OK)
            return rc;
    }
    return CLI_OK;
}

/* Runs once, and checks the result. */
static int warm_up(race *x, cli_runner *runner)
{
    tg_plan plan = TG_PLAN_INIT;
    double seconds = 0;
    int rc = cli_work_reset(x->machine, x->work);
    if (rc == CLI_OK)
        rc = prepare(x->machine, runner);
    if (rc == CLI_OK && !runner->peer && tg_pick(x->machine->ctx, &x->work->device, &plan) != TG_OK)
        rc = cli_fail_call(x->machine, runner->name);
    runner->plan = plan;
    if (rc == CLI_OK)
        rc = time_calls(x, runner, 1, &seconds);
    if (rc == CLI_OK)
        rc = cli_work_fetch(x->machine, x->work);
    if (rc != CLI_OK)
        return rc;
    tg_input c0 = cli_c_of(&x->work->host);
    c0.data = x->work->c0;
    runner->verdict = cli_verify(&x->work->host, c0, verify_budget);
    runner->sample_count = 0;
    runner->seconds = 0;
    if (seconds < enough_to_repeat || x->curtain) /* a first call loads kernels, touches pages */
        rc = time_calls(x, runner, 1, &seconds);
    return rc == CLI_OK ? calibrate(x, runner, seconds) : rc;
}

/* Other libraries' threads spin for a while after a call: wait until they sleep. */
static void settle(void)
{
    struct timespec pause = {0, 40 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

/* The runner's own threads slept too, and may wake on one processor: calls until they are awake,
 * and as fast as they were before, or are not going to be. */
static int wake(race *x, const cli_runner *runner)
{
    double seconds = 0, all = 0, least = INFINITY;
    int rc = CLI_OK;
    for (int i = 0; i < runner->sample_count; i++)
        least = fmin(least, runner->samples[i] * (double)runner->calls);
    do {
        rc = time_calls(x, runner, runner->calls, &seconds);
        all += seconds;
        least = fmin(least, seconds);
    } while (rc == CLI_OK &&
             (all < 5 * sample_seconds || (seconds > 1.2 * least && all < 50 * sample_seconds)));
    return rc;
}

static int take_sample(race *x, cli_runner *runner)
{
    double seconds = 0;
    int rc = prepare(x->machine, runner);
    if (rc == CLI_OK && x->is_crowded) {
        settle();
        rc = wake(x, runner);
    }
    if (rc == CLI_OK)
        rc = time_calls(x, runner, runner->calls, &seconds);
    runner->seconds += seconds;
    runner->samples[runner->sample_count++] = seconds / (double)runner->calls;
    return rc;
}

static int draw_curtain(race *x)
{
    size_t bytes = x->machine->is_host ? 0 : cli_cold_bytes(x->machine);
    if (tg_alloc(x->machine->ctx, bytes, &x->curtain) != TG_OK)
        return cli_fail_call(x->machine, "memory to pass over");
    return cli_work_spread(x->machine, x->work);
}

/* The peak of as many threads as tilegemm has here, which may be fewer than it may have. */
static int probe(race *x, const cli_runner *runners, int count, double *peak)
{
    tg_context *ctx = x->machine->ctx;
    int threads = 0;
    for (int i = 0; i < count; i++)
        if (runners[i].plan.threads > threads) /* a peer has none */
            threads = runners[i].plan.threads;
    if (tg_set_threads(ctx, threads) != TG_OK ||
        tg_peak(ctx, x->work->host.a.type, peak) != TG_OK ||
        tg_set_threads(ctx, x->machine->threads) != TG_OK)
        return cli_fail_call(x->machine, "the peak probe");
    return CLI_OK;
}

static int run_rounds(race *x, cli_runner *runners, int count, cli_rounds rounds, double *peaks)
{
    int rc = CLI_OK;
    for (int i = 0; i < count && rc == CLI_OK; i++) {
        x->is_crowded |= runners[i].peer && x->machine->is_host && x->machine->threads > 1;
        rc = warm_up(x, &runners[i]);
    }
    for (int round = 0; round < rounds.most && rc == CLI_OK; round++) {
        if (x->is_crowded)
            settle();
        rc = probe(x, runners, count, &peaks[round]);
        for (int i = 0; i < count && rc == CLI_OK; i++) {
            cli_runner *runner = &runners[(i + round) % count]; /* nobody is always first */
            if (round < rounds.least || runner->seconds < rounds.enough)
                rc = take_sample(x, runner);
        }
    }
    return rc;
}

int cli_judge(const cli_runner *runner, const cli_case *one)
{
    const cli_verdict *v = &runner->verdict;
    char text[CLI_NAME];
    if (v->worst <= 1)
        return CLI_OK;
    return cli_fail("%s is wrong for %s: C[%lld, %lld] is %.9g and should be %.9g", runner->name,
                    cli_case_text(one, text), (long long)v->row, (long long)v->col, v->got,
                    v->wanted);
}

int cli_race(cli_machine *machine, cli_work *work, cli_runner *runners, int count,
             cli_rounds rounds, double *peak)
{
    race x = {machine, work, 0, NULL};
    double peaks[CLI_ROUNDS];
    int rc = draw_curtain(&x);
    if (rc == CLI_OK)
        rc = run_rounds(&x, runners, count, rounds, peaks);
    tg_free(machine->ctx, x.curtain);
    if (rc != CLI_OK)
        return rc;
    for (int i = 0; i < count; i++) {
        double sorted[CLI_ROUNDS];
        memcpy(sorted, runners[i].samples, sizeof sorted);
        runners[i].median = cli_median(sorted, runners[i].sample_count);
        runners[i].best = sorted[0];
    }
    *peak = cli_median(peaks, rounds.most);
    return CLI_OK;
}
