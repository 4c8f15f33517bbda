/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands before the library, where the peak is then a GFLOP/s for each thread that was set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <tilegemm.h>

static int set;

tg_status tg_set_threads(tg_context *ctx, int threads)
{
    tg_status (*set_threads)(tg_context *, int) = dlsym(RTLD_NEXT, "tg_set_threads");
    set = threads;
    return set_threads(ctx, threads);
}

tg_status tg_peak(tg_context *ctx, tg_type type, double *flops)
{
    (void)ctx, (void)type;
    *flops = 1e9 * set;
    fclose(fopen("peaked", "w"));
    return TG_OK;
}
