/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that has no memory left, and one that another kernel has broken: a status and a
 * sentence, and no crash. */
#define _GNU_SOURCE
#include <string.h>
#include <spawn.h>
#include <sys/wait.h>

#include "gpu.h"
#include "test.h"

extern char **environ;

static void check_works(tg_context *ctx, const char *when)
{
    product p;
    CHECK_SAY(product_make(&p, ctx, 100, 110, 120) && product_fill(&p, 1) && !product_start(&p) &&
                  product_is_right(&p),
              "%s: %s", when, tg_last_error(ctx));
    product_drop(&p);
}

/* -------------------------------------------------------------------------------------- memory */

enum { HOARD = 4096 };

/* Takes what there is, in pieces that become smaller, down to 2 MiB. */
static int take_all(tg_context *ctx, void *pieces[HOARD])
{
    int count = 0;
    for (size_t bytes = (size_t)1 << 40; bytes >= (size_t)2 << 20; bytes /= 2)
        while (count < HOARD && tg_alloc(ctx, bytes, &pieces[count]) == TG_OK)
            count++;
    return count;
}

static void run_without_memory(tg_context *ctx, product *p)
{
    static void *pieces[HOARD];
    const int count = take_all(ctx, pieces);
    const tg_status status = product_start(p);
    CHECK_SAY(status == TG_OUT_OF_MEMORY && tg_last_error(ctx)[0],
              "a call with %d pieces of memory taken: status %d, %s", count, (int)status,
              tg_last_error(ctx));
    for (int i = 0; i < count; i++)
        CHECK(!tg_free(ctx, pieces[i]));
    CHECK_SAY(!product_start(p) && product_is_right(p), "with memory again: %s",
              tg_last_error(ctx));
}

/* Memory of the host is refused where kernels cannot reach it, and works where they can. */
static void check_host_memory(tg_context *ctx)
{
    float x[3] = {3, 5, 7};
    const tg_status status = tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 1, 1, 1, 1, x, 1,
                                      x + 1, 1, 0, x + 2, 1);
    if (status)
        CHECK_TEXT(tg_last_error(ctx), "memory of the host");
    CHECK_INT(status, tg_sync(ctx) || x[2] == 15 ? TG_OK : TG_BAD_ARGUMENT);
}

/* An element across its alignment would break the device for the whole process. */
static void check_odd_address(tg_context *ctx)
{
    product p;
    if (CHECK(product_make(&p, ctx, 5, 6, 7)) && CHECK(product_fill(&p, 2))) {
        product odd = p;
        odd.device[1] = (float *)(void *)((char *)p.device[1] + 2);
        CHECK_INT(product_start(&odd), TG_BAD_ARGUMENT);
        CHECK_TEXT(tg_last_error(ctx), "b = ");
        CHECK_TEXT(tg_last_error(ctx), "not aligned");
        CHECK(!product_start(&p) && product_is_right(&p));
    }
    product_drop(&p);
}

/* Of a list with one such item, none is queued. */
static void check_odd_item(tg_context *ctx)
{
    product p;
    if (CHECK(product_make(&p, ctx, 5, 6, 7)) && CHECK(product_fill(&p, 3))) {
        tg_problem one = TG_PROBLEM_INIT;
        float first, now;
        one.m = p.m, one.n = p.n, one.k = p.k;
        one.a.row_stride = p.k, one.b.row_stride = p.b_k, one.c.row_stride = p.n;
        one.a.col_stride = one.b.col_stride = one.c.col_stride = 1;
        const void *a[] = {p.device[0], p.device[0]};
        const void *b[] = {p.device[1], (char *)p.device[1] + 2};
        void *c[] = {p.device[2], p.device[2]};
        CHECK(!tg_download(ctx, &first, p.device[2], sizeof first));
        CHECK_INT(tg_gemm_pointers(ctx, &one, a, b, c, 2), TG_BAD_ARGUMENT);
        CHECK_TEXT(tg_last_error(ctx), "item 1: b = ");
        CHECK(!tg_download(ctx, &now, p.device[2], sizeof now) &&
              memcmp(&first, &now, sizeof now) == 0);
        CHECK_SAY(!tg_gemm_pointers(ctx, &one, a, b, c, 1) && product_is_right(&p), "%s",
                  tg_last_error(ctx));
    }
    product_drop(&p);
}

void test_memory(void)
{
    tg_context *ctx = gpu_open(0);
    check_host_memory(ctx);
    check_odd_address(ctx);
    check_odd_item(ctx);
    void *memory = ctx;
    const tg_status status = tg_alloc(ctx, (size_t)1 << 50, &memory);
    CHECK_INT(status, TG_OUT_OF_MEMORY);
    CHECK(memory == NULL);
    CHECK_TEXT(tg_last_error(ctx), "1125899906842624");
    check_works(ctx, "after a huge tg_alloc");
    product p = {0};
    if (product_make_shared(&p, ctx, (size_t)2 << 20) && product_fill(&p, 3))
        run_without_memory(ctx, &p);
    else
        test_print("no product of the chooser's takes a workspace of more than 2 MiB\n");
    product_drop(&p);
    tg_close(ctx);
}

/* -------------------------------------------------------------------------------- sticky errors */

/* In a process of its own: the device stays broken for it. */
int fault_child(void)
{
    static float host[16];
    tg_context *ctx = gpu_open(0);
    product p;
    int refused = 0;
    CHECK(product_make(&p, ctx, 60, 70, 80) && product_fill(&p, 1));
    CHECK_INT(gpu.use(0), 0);
    CHECK_INT(gpu.start_faulty_kernel(), 0);
    tg_status status[4];
    status[0] = tg_sync(ctx);
    CHECK_TEXT(tg_last_error(ctx), "error");
    status[1] = product_start(&p);
    status[2] = tg_download(ctx, host, p.device[2], sizeof host);
    status[3] = tg_sync(ctx);
    for (int i = 0; i < 4; i++)
        refused += status[i] == TG_DEVICE_ERROR;
    CHECK_SAY(refused == 4, "statuses %d %d %d %d, and %d is expected: %s", (int)status[0],
              (int)status[1], (int)status[2], (int)status[3], TG_DEVICE_ERROR, tg_last_error(ctx));
    CHECK(tg_last_error(ctx)[0] != '\0');
    test_print("a broken device says: %s\n", tg_last_error(ctx));
    product_drop(&p);
    tg_close(ctx);
    tg_context *next;
    CHECK_SAY(tg_open(&next, gpu_backend, 0) != TG_OK && tg_last_error(next)[0],
              "a broken device opens");
    tg_close(next);
    return test_close();
}

void test_sticky_error(void)
{
    static char name[] = "/proc/self/exe", word[] = "--child";
    char *arguments[] = {name, word, NULL};
    pid_t child;
    int status = 0;
    if (!gpu.start_faulty_kernel) {
        test_print("%s: no kernel for the test of broken devices\n", gpu_backend);
        return;
    }
    if (CHECK(posix_spawn(&child, name, NULL, NULL, arguments, environ) == 0) &&
        CHECK(waitpid(child, &status, 0) == child))
        CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x",
                  status);
    tg_context *ctx = gpu_open(0);
    check_works(ctx, "after another process broke its device");
    tg_close(ctx);
}
