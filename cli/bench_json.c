/* SPDX-License-Identifier: Apache-2.0
 *
 * What `tilegemm bench --json` prints for programs: one object, with all that was measured and
 * under which conditions.
 */
#include "bench.h"

#include <math.h>

static void print_clocks(const char *name, const cli_clocks *clocks)
{
    if (!clocks->is_known)
        return;
    printf(",\n %s: {\"sm_mhz\": %d, \"memory_mhz\": %d, \"watts\": %.1f, \"celsius\": %d, "
           "\"held_back_by\": ",
           name, clocks->sm_mhz, clocks->memory_mhz, clocks->watts, clocks->celsius);
    cli_print_json_text(clocks->limited_by);
    printf("}");
}

void bench_json_heading(const bench *b)
{
    cli_print_json_heading(&b->machine, b->options, b->rounds);
    printf(", \"trans\": \"%s\"", b->options->trans ? b->options->trans : "NN");
    if (b->bandwidth > 0)
        printf(", \"bandwidth_gbytes\": %.6g", b->bandwidth / 1e9);
    print_clocks("\"clocks_before\"", &b->before);
    printf(",\n \"results\": [");
}

static void print_plan(const tg_plan *plan)
{
    char tile[96];
    tg_tile_print(&plan->tile, tile, sizeof tile);
    printf(", \"tile\": \"%s\", \"row\": ", tile);
    cli_print_json_text(plan->row < 0 ? "" : tg_tile_name(plan->row));
    printf(", \"splits\": %d, \"tail\": \"%s\", \"plan_threads\": %d, \"strips\": [%d, %d]",
           plan->splits, cli_tail_name(plan->tail), plan->threads, plan->strips.m, plan->strips.n);
    printf(", \"tuned\": %s", plan->is_tuned ? "true" : "false");
}

/* How many times as fast as each peer. */
static void print_ratios(const bench *b, const cli_runner *runner)
{
    printf(", \"ratios\": [");
    for (int i = 0; i < b->peer_count; i++) {
        const cli_runner *peer = &b->runners[b->own_count + i];
        printf("%s{\"peer\": ", i ? ", " : "");
        cli_print_json_text(peer->name);
        printf(", \"median\": %.6g, \"best\": %.6g}", peer->median / runner->median,
               peer->best / runner->best);
    }
    printf("]");
}

static void print_runner(const bench *b, const cli_runner *runner, const cli_case *one,
                         int is_first)
{
    const cli_shape shape = one->shape;
    printf("%s\n   {\"name\": ", is_first ? "" : ",");
    cli_print_json_text(runner->name);
    if (!runner->peer)
        print_plan(&runner->plan);
    printf(", \"samples\": %d, \"calls\": %lld, \"median_ms\": %.6g, \"best_ms\": %.6g, "
           "\"gflops\": %.6g, \"best_gflops\": %.6g, \"checked\": %lld, \"worst\": %.3g, "
           "\"correct\": %s",
           runner->sample_count, (long long)runner->calls, 1e3 * runner->median, 1e3 * runner->best,
           cli_gflops(shape, runner->median), cli_gflops(shape, runner->best),
           (long long)runner->verdict.checked, fmin(runner->verdict.worst, 1e300),
           runner->verdict.worst > 1 ? "false" : "true");
    if (b->reading > 0)
        printf(", \"share_of_reading\": %.4g", bench_reading_share(b, runner, one));
    for (int i = 0; i < runner->sample_count; i++)
        printf("%s%.6g", i ? ", " : ", \"samples_ms\": [", 1e3 * runner->samples[i]);
    printf("]");
    if (!runner->peer && b->peer_count > 0)
        print_ratios(b, runner);
    printf("}");
}

void bench_json_case(const bench *b, const cli_case *one, int is_first)
{
    const cli_shape *s = &one->shape;
    printf("%s\n {\"label\": ", is_first ? "" : ",");
    cli_print_json_text(one->label);
    printf(", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"batch\": %lld, \"trans\": \"%s\", "
           "\"peak_gflops\": %.6g",
           (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->batch, one->trans,
           b->peak / 1e9);
    if (b->reading > 0)
        printf(", \"reading_gbytes\": %.6g", b->reading / 1e9);
    print_clocks("\"clocks\"", &b->after);
    printf(", \"runs\": [");
    for (int i = 0; i < b->own_count + b->peer_count; i++)
        print_runner(b, &b->runners[i], one, i == 0);
    printf("]}");
    fflush(stdout);
}

void bench_json_means(const bench *b)
{
    int count = b->cases.count;
    printf("],\n \"geometric_means\": {\"share_of_peak\": %.6g, \"peers\": [",
           exp(b->log_share / count));
    for (int i = 0; i < b->peer_count; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        cli_print_json_text(b->peers[i].name);
        printf(", \"median_ratio\": %.6g, \"best_ratio\": %.6g}", exp(b->log_median[i] / count),
               exp(b->log_best[i] / count));
    }
    printf("]");
    if (b->own_count > 1)
        printf(", \"chooser_of_best\": %.6g", exp(b->log_chooser / count));
    printf("}");
    print_clocks("\"clocks_after\"", &b->after);
    printf(", \"correct\": %s}\n", b->wrong ? "false" : "true");
}
