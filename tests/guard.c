/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded memory; see guard.h for the picture. */
#define _GNU_SOURCE
#include "guard.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOW = 4096 };

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Reserves as much forbidden space behind the pages as they have, so that guard_forbidden() is the
 * start of a whole matrix of the same size. */
static int grow(guard *g, size_t bytes)
{
    size_t usable = (bytes + WINDOW + page()) / page() * page();
    if (usable <= g->page_bytes)
        return 1;
    guard_drop(g);
    unsigned char *space = mmap(NULL, 2 * usable + 2 * page(), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED || mprotect(space + page(), usable, PROT_READ | PROT_WRITE))
        return 0;
    g->pages = space + page();
    g->page_bytes = usable;
    return 1;
}

void *guard_take(guard *g, size_t bytes, size_t shift, int at_end)
{
    if (!grow(g, bytes + shift))
        return NULL;
    g->bytes = bytes;
    g->head = at_end ? WINDOW : shift;
    g->tail = at_end ? shift : WINDOW;
    size_t all = g->head + bytes + g->tail;
    g->window = at_end ? g->pages + g->page_bytes - all : g->pages;
    memset(g->window, GUARD_BYTE, all);
    return g->window + g->head;
}

void *guard_forbidden(const guard *g) { return g->pages + g->page_bytes; }

static int all_canary(const unsigned char *bytes, size_t count)
{
    return count == 0 || (bytes[0] == GUARD_BYTE && memcmp(bytes, bytes + 1, count - 1) == 0);
}

int guard_holds(const guard *g)
{
    return all_canary(g->window, g->head) && all_canary(g->window + g->head + g->bytes, g->tail);
}

void guard_drop(guard *g)
{
    if (g->pages)
        munmap(g->pages - page(), 2 * g->page_bytes + 2 * page());
    *g = (guard){0};
}

void *guard_to_device(guard *g, tg_context *ctx, int is_host)
{
    size_t all = g->head + g->bytes + g->tail;
    g->device = NULL;
    if (is_host)
        return g->window + g->head;
    if (tg_alloc(ctx, all, &g->device) || tg_upload(ctx, g->device, g->window, all))
        return NULL;
    return (unsigned char *)g->device + g->head;
}

tg_status guard_from_device(guard *g, tg_context *ctx)
{
    if (!g->device)
        return TG_OK;
    tg_status status = tg_download(ctx, g->window, g->device, g->head + g->bytes + g->tail);
    tg_status freed = tg_free(ctx, g->device);
    g->device = NULL;
    return status ? status : freed;
}
