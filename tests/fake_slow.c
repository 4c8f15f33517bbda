/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands before the library and makes calls take milliseconds: one the chooser's, two those of
 * forced tilings, but for those with two stages; or where SLOW says tilings   those of forced
 * tilings some      the chooser's, and four times as many in two of five races of a forced tiling
 *     m33       the chooser's, and where m is 33 eight times as many those of forced tilings */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilegemm.h>
#include <time.h>

static int is_forced, stages, turn;

/* How many times it was forced before. */
static int turn_of(const tg_tile *tile)
{
    enum { MOST = 256 };
    static struct {
        tg_tile tile;
        int turns;
    } all[MOST];
    int i = 0;
    while (i < MOST - 1 && all[i].turns && memcmp(&all[i].tile, tile, sizeof *tile) != 0)
        i++;
    all[i].tile = *tile;
    return all[i].turns++;
}

tg_status tg_force(tg_context *ctx, const tg_tile *tile)
{
    tg_status (*force)(tg_context *, const tg_tile *) = dlsym(RTLD_NEXT, "tg_force");
    is_forced = tile != NULL;
    stages = tile ? tile->stages : 0;
    turn = tile ? turn_of(tile) : 0;
    return force(ctx, tile);
}

static int milliseconds(int64_t m)
{
    const char *slow = getenv("SLOW");
    if (!slow)
        return !is_forced ? 1 : stages == 2 ? 0 : 2;
    if (strcmp(slow, "some") == 0 && is_forced)
        return turn % 5 < 2 ? 4 : 0;
    if (strcmp(slow, "m33") == 0 && m == 33)
        return is_forced ? 8 : 1;
    return strcmp(slow, "tilings") == 0 ? is_forced : !is_forced;
}

tg_status tg_gemm(tg_context *ctx, const tg_problem *p)
{
    tg_status (*gemm)(tg_context *, const tg_problem *) = dlsym(RTLD_NEXT, "tg_gemm");
    struct timespec pause = {0, milliseconds(p->m) * 1000 * 1000};
    if (pause.tv_nsec > 0)
        nanosleep(&pause, NULL);
    fclose(fopen("slowed", "w"));
    return gemm(ctx, p);
}
