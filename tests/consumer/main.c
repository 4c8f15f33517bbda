/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user's first program looks like, built against an installed copy. */
#include <stdio.h>
#include <tilegemm.h>

int main(void)
{
    const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 0, 0, 1, 1, 1};
    float c[2 * 2];
    tg_context *ctx;
    if (tg_open(&ctx, NULL, 0) == TG_OK)
        tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2);
    tg_status status = tg_last_status(ctx);
    if (status == TG_OK)
        printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
    else
        fprintf(stderr, "%s\n", tg_last_error(ctx));
    tg_close(ctx);
    return status;
}
