/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands before the library and spoils one element of every product. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <tilegemm.h>

tg_status tg_gemm(tg_context *ctx, const tg_problem *p)
{
    tg_status (*gemm)(tg_context *, const tg_problem *) = dlsym(RTLD_NEXT, "tg_gemm");
    tg_status status = gemm(ctx, p);
    int64_t last = (p->m - 1) * p->c.row_stride + (p->n - 1) * p->c.col_stride;
    if (p->m > 0 && p->n > 0 && p->c.type == TG_F32)
        ((float *)p->c.data)[last] += 1;
    else if (p->m > 0 && p->n > 0)
        ((double *)p->c.data)[last] += 1;
    fclose(fopen("spoiled", "w"));
    return status;
}
