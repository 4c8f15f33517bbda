/* SPDX-License-Identifier: Apache-2.0
 *
 * How a device goes through M x N x K, all of it in rows, by a plan: what `explain` and `ladder`
 * tell of that. */
#ifndef TG_CLI_ROAD_H
#define TG_CLI_ROAD_H

#include "cli.h"
#include "way.h"

typedef struct cli_road {
    tg_problem p;    /* as kernels see it: */
    int is_swapped;  /* with B' for A, and A' for B; */
    cli_shape shape; /* and its shape */
    tg_plan plan;    /* with strips as they are; without blocks, one is all of a strip */
    tg_way way;
    int has_blocks;         /* a GPU's, or those of the loop nest */
    int64_t narrow;         /* the last columns, if they have a way of their own; or 0 */
    const char *a, *b;      /* how they are read, */
    int stages_a, stages_b; /* in panels or tiles that are staged for a block */
} cli_road;

/* The problem, as `explain` asks for its plan. */
tg_problem cli_plain_problem(cli_shape shape, tg_type type);
cli_road cli_find_road(const cli_machine *machine, cli_shape shape, tg_type type,
                       const tg_plan *plan);
/* The bytes of A and B that a block stages, or of a B that is copied. */
int64_t cli_staged_bytes(const cli_road *x, const cli_machine *machine);

/* explain_picture.c: C in blocks, or strips; one of these in warps; and so on. */
void cli_draw_cuts(const cli_road *x, tg_mn lanes);

#endif
