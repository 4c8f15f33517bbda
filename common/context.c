/* SPDX-License-Identifier: Apache-2.0
 *
 * A context's life and settings, and what passes straight on to its backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"

/* A variable that is 0, which "" stands for too, or 1. */
static tg_status read_switch(tg_context *ctx, const char *name, int *is_on)
{
    const char *text = getenv(name);
    *is_on = text && strcmp(text, "1") == 0;
    if (!text || !*text || *is_on || strcmp(text, "0") == 0)
        return TG_OK;
    return tg_fail(ctx, TG_BAD_ARGUMENT, "%s = \"%s\" is not 0 or 1", name, text);
}

static tg_status use_environment(tg_context *ctx)
{
    const char *tile_text = getenv("TILEGEMM_TILE"), *threads = getenv("TILEGEMM_THREADS");
    int is_invariant;
    if (read_switch(ctx, "TILEGEMM_TRACE", &ctx->is_traced) ||
        read_switch(ctx, "TILEGEMM_BATCH_INVARIANT", &is_invariant))
        return ctx->status;
    ctx->flags = is_invariant ? TG_BATCH_INVARIANT : 0;
    if (threads && *threads) {
        char *end;
        long count = strtol(threads, &end, 10);
        if (*end || count < 0 || count > TG_TILE_MAX)
            return tg_fail(ctx, TG_BAD_ARGUMENT, "TILEGEMM_THREADS = \"%s\" is not 0 .. %d",
                           threads, TG_TILE_MAX);
        tg_set_threads(ctx, (int)count);
    }
    if (tile_text && *tile_text) {
        tg_tile tile;
        char reason[200];
        if (tg_tile_parse(tile_text, &tile, reason, sizeof reason))
            return tg_fail(ctx, TG_BAD_ARGUMENT, "TILEGEMM_TILE: %s", reason);
        if (tg_force(ctx, &tile)) {
            snprintf(reason, sizeof reason, "%.190s", ctx->error);
            return tg_fail(ctx, ctx->status, "TILEGEMM_TILE = \"%s\": %s", tile_text, reason);
        }
    }
    return TG_OK;
}

tg_status tg_open(tg_context **result, const char *backend, int device)
{
    if (!result)
        return TG_BAD_ARGUMENT;
    tg_context *ctx = *result = calloc(1, sizeof *ctx);
    if (!ctx)
        return TG_OUT_OF_MEMORY;
    char reason[200];
    tg_status status;
    const tg_backend *found = tg_backend_find(backend, &status, reason, sizeof reason);
    if (!found)
        return tg_fail(ctx, status, "%s", reason);
    if (device < 0)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "device = %d is negative", device);
    if (found->open(ctx, device))
        return ctx->status;
    ctx->backend = found;
    if (use_environment(ctx)) { /* a context that failed to open has no backend */
        found->close(ctx);
        ctx->backend = NULL;
        return ctx->status;
    }
    tg_tuning_load(ctx);
    return tg_succeed(ctx);
}

static void drop_workspace(tg_context *ctx)
{
    if (!ctx->workspace_is_callers && ctx->workspace)
        ctx->backend->free(ctx, ctx->workspace);
    ctx->workspace = NULL;
    ctx->workspace_bytes = 0;
    ctx->workspace_is_callers = 0;
}

void tg_close(tg_context *ctx)
{
    if (ctx && ctx->backend) {
        ctx->backend->sync(ctx);
        drop_workspace(ctx);
        ctx->backend->close(ctx);
        free(ctx->tuned);
    }
    free(ctx);
}

#define NEED_OPEN(ctx)                               \
    do {                                             \
        const tg_status status_ = tg_need_open(ctx); \
        if (status_)                                 \
            return status_;                          \
    } while (0)

tg_status tg_set_threads(tg_context *ctx, int threads)
{
    NEED_OPEN(ctx);
    if (threads < 0 || threads > TG_TILE_MAX)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "threads = %d is not 0 .. %d", threads, TG_TILE_MAX);
    ctx->threads = (int)tg_min(threads, ctx->most_threads);
    ctx->given.size = 0;
    return tg_succeed(ctx);
}

tg_status tg_set_stream(tg_context *ctx, void *stream)
{
    NEED_OPEN(ctx);
    tg_status status = ctx->backend->set_stream(ctx, stream);
    return status ? status : tg_succeed(ctx);
}

tg_status tg_set_workspace(tg_context *ctx, void *memory, size_t bytes)
{
    NEED_OPEN(ctx);
    if (!memory && bytes)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "memory is NULL and bytes = %zu", bytes);
    if ((uintptr_t)memory % 64)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "memory = %p is not aligned to 64 bytes", memory);
    if (ctx->backend->sync(ctx))
        return ctx->status;
    drop_workspace(ctx);
    ctx->workspace = memory;
    ctx->workspace_bytes = bytes;
    ctx->workspace_is_callers = memory != NULL;
    return tg_succeed(ctx);
}

tg_status tg_sync(tg_context *ctx)
{
    NEED_OPEN(ctx);
    tg_status status = ctx->backend->sync(ctx);
    return status ? status : tg_succeed(ctx);
}

const char *tg_device_backend(const tg_context *ctx)
{
    return ctx && ctx->backend ? ctx->backend->name : "";
}

const char *tg_device_name(const tg_context *ctx)
{
    return ctx && ctx->backend ? ctx->device_name : "";
}

tg_limits tg_device_limits(const tg_context *ctx)
{
    static const tg_limits none;
    return ctx && ctx->backend ? ctx->limits : none;
}

tg_tile tg_tile_resolve(const tg_context *ctx, const tg_tile *tile, tg_type type)
{
    static const tg_tile none;
    if (!tile)
        return none;
    return ctx && tg_sum_type(type)
               ? tg_tile_fill(*tile, ctx->limits, tg_kernel_bytes(type, ctx->limits, *tile))
               : *tile;
}

/* Why A and B cannot have this type. */
static void print_type_refusal(tg_type type, char *text, size_t size)
{
    if (tg_type_name(type))
        snprintf(text, size, "type = %s is a type of C only", tg_type_name(type));
    else
        snprintf(text, size, "type = %d is no element type", (int)type);
}

const char *tg_tile_refusal(tg_context *ctx, const tg_tile *tile, tg_type type)
{
    if (!ctx || !ctx->backend)
        return "ctx is NULL or was not opened successfully";
    if (!tile)
        return "tile is NULL";
    if (!tg_sum_type(type)) {
        print_type_refusal(type, ctx->text, sizeof ctx->text);
        return ctx->text;
    }
    tg_verdict verdict =
        tg_tile_check(*tile, ctx->limits, tg_kernel_bytes(type, ctx->limits, *tile));
    if (!verdict.rule)
        return ctx->backend->missing(ctx, *tile, type);
    tg_verdict_print(verdict, ctx->text, sizeof ctx->text);
    return ctx->text;
}

tg_status tg_force(tg_context *ctx, const tg_tile *tile)
{
    NEED_OPEN(ctx);
#define TG_X(name, value, text, ctype) &&tg_tile_refusal(ctx, tile, name)
    if (tile TG_TYPE_LIST(TG_X))
        return tg_fail(ctx, TG_BAD_TILE, "%s", tg_tile_refusal(ctx, tile, TG_F32));
#undef TG_X
    ctx->is_forced = tile != NULL;
    if (tile)
        ctx->forced = *tile;
    ctx->given.size = 0;
    return tg_succeed(ctx);
}

tg_status tg_alloc(tg_context *ctx, size_t bytes, void **memory)
{
    if (memory)
        *memory = NULL;
    NEED_OPEN(ctx);
    if (!memory)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "memory is NULL");
    if (bytes && ctx->backend->alloc(ctx, bytes, memory))
        return ctx->status;
    return tg_succeed(ctx);
}

tg_status tg_free(tg_context *ctx, void *memory)
{
    NEED_OPEN(ctx);
    if (memory && ctx->backend->free(ctx, memory))
        return ctx->status;
    return tg_succeed(ctx);
}

static tg_status check_copy(tg_context *ctx, const void *device, const void *host, size_t bytes)
{
    if (bytes && (!device || !host))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s is NULL and bytes = %zu",
                       device ? "host" : "device", bytes);
    return TG_OK;
}

tg_status tg_upload(tg_context *ctx, void *device, const void *host, size_t bytes)
{
    NEED_OPEN(ctx);
    if (check_copy(ctx, device, host, bytes) ||
        (bytes && ctx->backend->upload(ctx, device, host, bytes)))
        return ctx->status;
    return tg_succeed(ctx);
}

tg_status tg_download(tg_context *ctx, void *host, const void *device, size_t bytes)
{
    NEED_OPEN(ctx);
    if (check_copy(ctx, device, host, bytes) ||
        (bytes && ctx->backend->download(ctx, host, device, bytes)))
        return ctx->status;
    return tg_succeed(ctx);
}

tg_status tg_peak(tg_context *ctx, tg_type type, double *flops)
{
    NEED_OPEN(ctx);
    if (!flops)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "flops is NULL");
    if (!tg_sum_type(type)) {
        print_type_refusal(type, ctx->text, sizeof ctx->text);
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s", ctx->text);
    }
    return ctx->backend->peak(ctx, type, flops) ? ctx->status : tg_succeed(ctx);
}

tg_status tg_time_start(tg_context *ctx)
{
    NEED_OPEN(ctx);
    if (ctx->backend->time_start(ctx))
        return ctx->status;
    ctx->is_timing = 1;
    return tg_succeed(ctx);
}

tg_status tg_time_stop(tg_context *ctx, double *seconds)
{
    NEED_OPEN(ctx);
    if (!seconds)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "seconds is NULL");
    if (!ctx->is_timing)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "tg_time_stop before any tg_time_start");
    return ctx->backend->time_stop(ctx, seconds) ? ctx->status : tg_succeed(ctx);
}

tg_status tg_tile_usage(tg_context *ctx, const tg_tile *tile, tg_type type, tg_usage *usage)
{
    NEED_OPEN(ctx);
    if (!tile || !usage)
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s is NULL", tile ? "usage" : "tile");
    const char *refusal = tg_tile_refusal(ctx, tile, type);
    if (refusal)
        return tg_fail(ctx, TG_BAD_TILE, "%s", refusal);
    if (!ctx->backend->usage)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "the %s backend cannot ask its compiler",
                       ctx->backend->name);
    tg_tile resolved = tg_tile_resolve(ctx, tile, type);
    return ctx->backend->usage(ctx, resolved, type, usage) ? ctx->status : tg_succeed(ctx);
}
