/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `tilegemm tune` share: tune.c has the buckets and the verdicts, tune_race.c the
 * tilings and their races. */
#ifndef TG_TUNE_H
#define TG_TUNE_H

#include "cli.h"

#include <limits.h>

enum { TUNE_LEAST = 6 }; /* samples: fewer enclose nothing with 95 % certainty */

typedef char key_text[TG_TUNING_LINE];

typedef struct tuner {
    const cli_options *options;
    cli_machine machine;
    cli_cases cases;
    key_text *lines; /* that each case would have */
    char path[PATH_MAX];
    cli_runner *runners; /* the chooser, and tilings that may be faster */
    cli_runner *heat;    /* the chooser, and those that run another way */
    int runner_count, heat_count;
    double start, expected, peak; /* expected: seconds, of the buckets that were raced */
    int buckets, done, kept, left;
    double log_kept;
} tuner;

/* The cases whose lines have one key. */
typedef struct bucket {
    int first;
    char name[CLI_NAME];
    int problems, tilings;
    double hope;          /* the gain in the heats: a logarithm, a mean over the problems */
    double gain, certain; /* and in the final */
    int is_slower;        /* on one of the problems */
} bucket;

/* Can a line have this tiling? */
int tune_takes(const tuner *x, const tg_tile *tile);
int tune_is_in(const tuner *x, const bucket *b, int index);

/* Their memory, or CLI_FAILED after saying why. */
int tune_make_runners(tuner *x);
/* heat[1] := the best tiling, and the bucket's hope. */
int tune_run_heats(tuner *x, bucket *b);
/* heat[0] and heat[1] alone, for the bucket's figures. */
int tune_run_final(tuner *x, bucket *b);

#endif
