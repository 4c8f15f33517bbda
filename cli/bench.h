/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `tilegemm bench` share: bench.c races, bench_table.c and bench_json.c tell. */
#ifndef TG_BENCH_H
#define TG_BENCH_H

#include "cli.h"

typedef struct bench {
    const cli_options *options;
    cli_machine machine;
    cli_cases cases;
    int rounds;
    cli_peer peers[CLI_LIST];
    int peer_count;
    cli_runner *runners; /* tilegemm's, then the peers' */
    int own_count;
    double peak, roof;        /* of the last case's threads; the highest of all cases */
    double bandwidth;         /* 0 if it was not asked for */
    double reading;           /* of the host's memory, beside a case that no cache holds, or 0 */
    cli_clocks before, after; /* all of the races; `after` is read after each */
    cli_rate rate;
    int name_width;
    double log_chooser; /* how near the chooser comes to the best row, a sum */
    double log_share, log_median[CLI_LIST], log_best[CLI_LIST]; /* sums, of the first runner */
    cli_point *points; /* of the roofline, if it is asked for */
    int point_count, wrong, any_reading;
} bench;

/* The share of that rate at which the least that must be read and written has moved. */
double bench_reading_share(const bench *b, const cli_runner *runner, const cli_case *one);

/* bench_table.c: one line for each of tilegemm's runners */
void bench_print_heading(const bench *b);
void bench_print_case(const bench *b, const cli_case *one);
void bench_print_means(const bench *b);

/* bench_json.c: one object */
void bench_json_heading(const bench *b);
void bench_json_case(const bench *b, const cli_case *one, int is_first);
void bench_json_means(const bench *b);

#endif
