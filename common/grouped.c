/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of problems. They are gone through twice: all are checked and planned, then all are run.
 * Planning knows again what differs from the item before in its data alone, and such items share
 * one call of the backend.
 *
 *   large items   one after the other, each by all threads
 *   the others    taken from the list by the threads, a chunk at a time; each item by one */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "gemm.h"

/* An item that has more of all work than this part of a thread's share is a large one. */
enum { PARTS_OF_A_SHARE = 4, ITEMS_AT_ONCE = 64, CHUNKS_OF_A_THREAD = 16 };

/* Problems, or one problem and the data of all. */
typedef struct list {
    const tg_problem *problems;
    int64_t count;
    const void *const *a, *const *b;
    void *const *c;
} list;

/* All work, the largest item's, and the most workspace of an item that a thread does alone. */
typedef struct need {
    double flops, largest;
    size_t slice;
} need;

/* A call, as its threads see it. Each starts from a copy of solo. */
typedef struct call {
    tg_context *ctx;
    const tg_context *solo;
    const list *list;
    int64_t chunk;
    size_t slice;
    double large;
    atomic_llong next;
} call;

static const tg_problem *problem_at(const list *l, int64_t x)
{
    const char *first = (const char *)l->problems;
    return (const tg_problem *)(l->a ? first : first + (size_t)x * l->problems->size);
}

static tg_item data_at(const list *l, int64_t x)
{
    const tg_problem *at = problem_at(l, x);
    return l->a ? (tg_item){l->a[x], l->b[x], l->c[x]}
                : (tg_item){at->a.data, at->b.data, at->c.data};
}

/* Does it differ from the last one in its data alone? (NULL: that is not worth asking.) */
static int is_alike(const tg_context *ctx, const tg_problem *x, const tg_problem *last)
{
    return last && (x == last || (x->size == sizeof *x && x->alpha == last->alpha &&
                                  x->beta == last->beta && tg_problem_is_known(ctx, x)));
}

/* Reads and plans item x. *last := the problem, if there may be others like it. */
static tg_status plan_item(tg_context *ctx, const list *l, int64_t x, tg_problem *p, int with_data,
                           const tg_problem **last)
{
    const tg_problem *at = problem_at(l, x);
    const tg_item data = data_at(l, x);
    *last = NULL;
    if (at->size != l->problems->size)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "problem.size = %zu, and the first has %zu", at->size,
                       l->problems->size);
    if (tg_problem_check(ctx, at))
        return ctx->status;
    tg_problem given = *at;
    given.a.data = data.a, given.b.data = data.b, given.c.data = data.c;
    const tg_problem *planned = tg_problem_plan(ctx, &given, p, with_data);
    if (!planned)
        return ctx->status;
    if (planned != p)
        *p = *planned;
    if (!tg_problem_is_empty(p) && p->k > 0 && !(p->flags & TG_PACKED))
        *last = at;
    return TG_OK;
}

/* A problem's data, where planning exchanges A and B. */
static tg_item as_planned(const tg_context *ctx, tg_item data)
{
    return ctx->is_swapped ? (tg_item){data.b, data.a, data.c} : data;
}

static void set_data(tg_problem *p, tg_item data)
{
    p->a.data = data.a, p->b.data = data.b, p->c.data = data.c;
}

/* Can the device take it where it lies? */
static tg_status check_place(tg_context *ctx, const tg_problem *p)
{
    return ctx->backend->check && !tg_problem_is_empty(p) ? ctx->backend->check(ctx, p) : TG_OK;
}

static tg_status check_all(tg_context *solo, const list *l, need *all)
{
    const tg_problem *last = NULL;
    double flops = 0;
    tg_problem p;
    for (int64_t x = 0; x < l->count; x++, all->flops += flops) {
        const tg_item data = data_at(l, x);
        const int alike = is_alike(solo, problem_at(l, x), last) && tg_item_is_plain(solo, &data);
        if (alike)
            set_data(&p, as_planned(solo, data));
        if ((!alike && plan_item(solo, l, x, &p, 1, &last)) || check_place(solo, &p)) {
            char sentence[300];
            snprintf(sentence, sizeof sentence, "%.290s", solo->error);
            return tg_fail(solo, solo->status, "item %" PRId64 ": %s", x, sentence);
        }
        if (alike)
            continue;
        flops = tg_flops_of(&p);
        const size_t bytes = tg_problem_is_empty(&p) ? 0 : solo->plan_bytes;
        all->slice = bytes > all->slice ? bytes : all->slice;
        all->largest = flops > all->largest ? flops : all->largest;
    }
    return TG_OK;
}

static void run_items(tg_context *ctx, tg_problem *p, const tg_item *items, int64_t count)
{
    if (ctx->backend->gemm_items) {
        ctx->backend->gemm_items(ctx, p, &ctx->plan, items, count);
        return;
    }
    for (int64_t x = 0; x < count && !ctx->status; x++) {
        set_data(p, items[x]);
        ctx->backend->gemm(ctx, p, &ctx->plan);
    }
}

/* Items begin <= x < end whose work is more than `over`, and not more than `most`. */
static void run_some(tg_context *ctx, const list *l, int64_t begin, int64_t end, double over,
                     double most)
{
    const tg_problem *last = NULL;
    tg_item items[ITEMS_AT_ONCE];
    tg_problem p;
    int64_t count = 0;
    for (int64_t x = begin; x < end; x++) {
        const tg_item data = data_at(l, x);
        const int alike = is_alike(ctx, problem_at(l, x), last);
        if (count > 0 && (!alike || count == ITEMS_AT_ONCE)) {
            run_items(ctx, &p, items, count);
            count = 0;
        }
        if (!alike && plan_item(ctx, l, x, &p, 0, &last))
            return;
        if (tg_problem_is_empty(&p) || tg_flops_of(&p) <= over || tg_flops_of(&p) > most)
            continue;
        items[count++] = alike ? as_planned(ctx, data) : (tg_item){p.a.data, p.b.data, p.c.data};
    }
    if (count > 0)
        run_items(ctx, &p, items, count);
}

static void run_chunks(void *arg, int me)
{
    call *all = arg;
    tg_context ctx = *all->solo;
    if (ctx.workspace)
        ctx.workspace = (char *)ctx.workspace + (size_t)me * all->slice;
    while (!ctx.status) {
        const int64_t begin = atomic_fetch_add(&all->next, all->chunk);
        if (begin >= all->list->count)
            break;
        run_some(&ctx, all->list, begin, tg_min(begin + all->chunk, all->list->count), -1,
                 all->large);
    }
    if (ctx.status && me == 0)
        tg_fail(all->ctx, ctx.status, "%s", ctx.error);
}

/* *bytes := what the large items need at least. */
static tg_status plan_large(tg_context *ctx, const list *l, double large, size_t *bytes)
{
    for (int64_t x = 0; x < l->count; x++) {
        const tg_problem *unused;
        tg_problem p;
        if (plan_item(ctx, l, x, &p, 0, &unused))
            return ctx->status;
        if (tg_problem_is_empty(&p) || tg_flops_of(&p) <= large)
            continue;
        *bytes = ctx->plan_bytes > *bytes ? ctx->plan_bytes : *bytes;
    }
    return TG_OK;
}

/* Takes the memory, and runs. A caller's workspace may be too small for all threads to have a slice
 * of it, or for one that is alone: then all items are large ones. */
static tg_status run_all(tg_context *ctx, tg_context *solo, const list *l, const need *all)
{
    int64_t threads = ctx->backend->spread ? tg_useful_threads(all->flops, tg_units(ctx)) : 1;
    double large = threads > 1 ? all->flops / (double)(PARTS_OF_A_SHARE * threads) : all->flops;
    if (ctx->workspace_is_callers && all->slice) {
        threads = tg_min(threads, (int64_t)(ctx->workspace_bytes / all->slice));
        large = threads ? large : -1;
    }
    const int has_large = all->largest > large;
    size_t bytes = (size_t)threads * all->slice;
    if ((has_large && plan_large(ctx, l, large, &bytes)) || tg_have_workspace(ctx, bytes))
        return ctx->status;
    tg_succeed(ctx);
    if (has_large)
        run_some(ctx, l, 0, l->count, large, all->largest);
    solo->workspace = ctx->workspace;
    solo->workspace_bytes = all->slice;
    call now = {.ctx = ctx, .solo = solo, .list = l, .slice = all->slice, .large = large};
    now.chunk = threads > 1 ? tg_max(1, l->count / (threads * CHUNKS_OF_A_THREAD)) : l->count;
    atomic_init(&now.next, 0);
    if (threads > 1)
        ctx->backend->spread((int)threads, run_chunks, &now);
    else if (threads == 1)
        run_chunks(&now, 0);
    return ctx->status;
}

static tg_status multiply_list(tg_context *ctx, const list *l)
{
    need all = {0, 0, 0};
    if (l->count < 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "count = %" PRId64 " is negative", l->count);
    if (l->count == 0)
        return tg_succeed(ctx);
    tg_context solo = *ctx; /* with one thread, where there may be several */
    tg_succeed(&solo);
    if (ctx->backend->spread && ctx->threads != 1) {
        solo.threads = 1;
        solo.given.size = 0;
    }
    const tg_status status = check_all(&solo, l, &all);
    ctx->plans = solo.plans + 1; /* what a backend keeps for the plan of that number is not ctx's */
    if (status)
        return tg_fail(ctx, status, "%s", solo.error);
    return run_all(ctx, &solo, l, &all);
}

tg_status tg_gemm_grouped(tg_context *ctx, const tg_problem *problems, int64_t count)
{
    const tg_status status = tg_need_open(ctx);
    if (status)
        return status;
    if (!problems && count > 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "problems is NULL and count = %" PRId64, count);
    return multiply_list(ctx, &(list){.problems = problems, .count = count});
}

tg_status tg_gemm_pointers(tg_context *ctx, const tg_problem *problem, const void *const *a,
                           const void *const *b, void *const *c, int64_t count)
{
    const tg_status status = tg_need_open(ctx);
    if (status)
        return status;
    if (!problem || ((!a || !b || !c) && count > 0))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s is NULL and count = %" PRId64,
                       !problem ? "problem"
                       : !a     ? "a"
                       : !b     ? "b"
                                : "c",
                       count);
    return multiply_list(ctx, &(list){problem, count, a, b, c});
}
