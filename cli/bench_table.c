/* SPDX-License-Identifier: Apache-2.0
 *
 * What `tilegemm bench` prints for people: a line for each problem and tiling.
 */
#include "bench.h"

#include <math.h>
#include <string.h>

enum { BAR = 20 };

/* "t64x64x16 k/4 split": the row, and what the plan adds to it. */
static const char *tiling_name(const cli_runner *runner, char *text)
{
    const tg_plan *plan = &runner->plan;
    if (plan->row >= 0)
        snprintf(text, CLI_NAME, "%s", tg_tile_name(plan->row));
    else
        tg_tile_print(&plan->tile, text, CLI_NAME);
    size_t length = strlen(text);
    if (plan->splits > 1)
        snprintf(text + length, CLI_NAME - length, " k/%d", plan->splits);
    length = strlen(text);
    if (plan->tail != TG_TAIL_WHOLE)
        snprintf(text + length, CLI_NAME - length, " %s", cli_tail_name(plan->tail));
    return text;
}

/* Of the column of tilings: a GPU's plans say more. */
static int tiling_width(const bench *b) { return b->machine.is_host ? 16 : 25; }

void bench_print_heading(const bench *b)
{
    const cli_machine *machine = &b->machine;
    cli_print_heading(machine, b->options->type);
    if (b->options->trans)
        printf(" %s", b->options->trans);
    printf("\n");
    cli_print_clocks("clocks before", &b->before);
    printf("\n%-*s %-*s %10s %9s %9s %8s", b->name_width, "m x n x k", tiling_width(b), "tiling",
           "ms", b->rate.name, "best", "of peak");
    for (int i = 0; i < b->peer_count; i++)
        printf(" %10.10s %6s %6s", b->peers[i].name, "x", "x best");
    printf("\n");
    fflush(stdout);
}

static void print_row(const bench *b, const cli_runner *runner, const cli_case *one)
{
    char text[CLI_NAME], tiling[CLI_NAME];
    const double scale = b->rate.flops / 1e9;
    double share = cli_gflops(one->shape, runner->median) * 1e9 / b->peak;
    printf("%-*s %-*s %10.4f %9.2f %9.2f %6.1f %%", b->name_width, cli_case_text(one, text),
           tiling_width(b), tiling_name(runner, tiling), 1e3 * runner->median,
           cli_gflops(one->shape, runner->median) / scale,
           cli_gflops(one->shape, runner->best) / scale, 100 * share);
    for (int i = 0; i < b->peer_count; i++) {
        const cli_runner *peer = &b->runners[b->own_count + i];
        printf(" %10.2f %6.2f %6.2f", cli_gflops(one->shape, peer->median) / scale,
               peer->median / runner->median, peer->best / runner->best);
    }
    printf("  ");
    cli_print_bar(share, BAR);
    if (b->reading > 0)
        printf("  %.0f %% of reading", 100 * bench_reading_share(b, runner, one));
    if (*one->label)
        printf("  %s", one->label);
    printf("\n");
    fflush(stdout);
}

void bench_print_case(const bench *b, const cli_case *one)
{
    for (int i = 0; i < b->own_count; i++)
        print_row(b, &b->runners[i], one);
}

void bench_print_means(const bench *b)
{
    int count = b->cases.count;
    printf("%-*s %-*s %10s %9s %9s %6.1f %%", b->name_width, "geometric mean", tiling_width(b), "",
           "", "", "", 100 * exp(b->log_share / count));
    for (int i = 0; i < b->peer_count; i++)
        printf(" %10s %6.2f %6.2f", "", exp(b->log_median[i] / count), exp(b->log_best[i] / count));
    printf("\n\n");
    cli_print_clocks("clocks after", &b->after);
    printf("of peak: of the multiply-adds alone that as many threads did in the same rounds; times "
           "are "
           "medians\n");
    if (b->any_reading)
        printf(
            "of reading: what must be moved, beside reading memory as fast as these threads can\n");
    if (b->own_count > 1)
        printf("the chooser reaches %.1f %% of the best tiling, geometric mean\n",
               100 * exp(b->log_chooser / count));
    if (b->peer_count > 0)
        printf("x: times as fast as that library\n");
}
