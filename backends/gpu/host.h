/* SPDX-License-Identifier: Apache-2.0
 *
 * The host half of a GPU backend, in C11: devices, streams, memory, and the launch of a call.
 * backend.c of CUDA or HIP includes gpu.h, which says what GPU(name) is, and then this file, and
 * defines the functions that are declared below. Nothing here allocates or waits on the way of a
 * call. */
#ifndef TG_HOST_H
#define TG_HOST_H

#include <stdio.h>
#include <stdlib.h>

#include "call.h"
#include "gemm.h"
#include "module.h"

enum { GPU_TRUSTED = 256 };

typedef struct tg_gpu {
    int index, arch; /* arch: 90 for compute capability 9.0; HIP: 0x90a for gfx90a */
    GPU(Stream_t) stream;
    GPU(Event_t) start, stop, handover;
    int early;                        /* call.h                                         */
    int has_queued;                   /* calls, on some stream                          */
    int is_behind;                    /* the stream has not yet waited for handover     */
    int reaches_host;                 /* its kernels may read any memory of the process */
    const void *trusted[GPU_TRUSTED]; /* addresses that were found to be reachable      */
    tg_met met[TG_MET];               /* kernels: call.h                                */
    int clusters[TG_CLUSTERS];        /* call.h                                         */
} tg_gpu;

/* All kernels of a row, the most special first; at most GPU_WAYS, NULL where there is none. */
enum { GPU_WAYS = 4 };
static void gpu_kernels(const tg_gpu *gpu, int row, tg_type type,
                        const tg_kernel_entry *kernels[GPU_WAYS]);
/* TG_OK unless nothing that was compiled runs on the device, and then why. */
static tg_status gpu_refuses(int device, char *reason, size_t size);
/* Fills lanes, and arch, from the device; or the runtime's error. */
static int gpu_describe(tg_gpu *gpu, const GPU_PROPERTIES *properties, tg_limits *limits);
/* Starts multiply-adds on all units, as many floating-point operations as *flops says. */
static int gpu_spin(const tg_gpu *gpu, tg_type type, int units, double *flops, void *sink);

static tg_gpu *gpu_of(const tg_context *ctx) { return ctx->device; }

/* ------------------------------------------------------------------------------------- failures */

static tg_status gpu_fail(tg_context *ctx, int error, const char *what)
{
    (void)GPU(GetLastError)(); /* or it would be the next call's */
    const tg_status status = error == GPU(ErrorMemoryAllocation) ? TG_OUT_OF_MEMORY
                             : error == GPU(ErrorNoDevice) || error == GPU(ErrorInsufficientDriver)
                                 ? TG_NO_DEVICE
                                 : TG_DEVICE_ERROR;
    return tg_fail(ctx, status, "%s: %s (" GPU_TEXT " error %d)", what,
                   GPU(GetErrorString)((GPU(Error_t))error), error);
}

#define TRY(ctx, what, call)                        \
    do {                                            \
        const int error_ = (int)(call);             \
        if (error_)                                 \
            return gpu_fail((ctx), error_, (what)); \
    } while (0)

/* The device that calls go to belongs to the thread, and the caller may use another one. */
static int enter(const tg_context *ctx)
{
    int before = gpu_of(ctx)->index;
    if (GPU(GetDevice)(&before) == GPU(Success) && before != gpu_of(ctx)->index)
        (void)GPU(SetDevice)(gpu_of(ctx)->index);
    return before;
}

static tg_status leave(const tg_context *ctx, int before, tg_status status)
{
    if (before != gpu_of(ctx)->index)
        (void)GPU(SetDevice)(before);
    return status;
}

#define ON_DEVICE(name, parameters, arguments)            \
    static tg_status name parameters                      \
    {                                                     \
        const int before = enter(ctx);                    \
        return leave(ctx, before, name##_here arguments); \
    }

/* ------------------------------------------------------------------------- devices, contexts */

static tg_status gpu_reason(char *reason, size_t size)
{
    int count = 0;
    tg_status status = TG_NO_DEVICE;
    const int error = (int)GPU(GetDeviceCount)(&count);
    for (int device = 0; !error && device < count && status; device++)
        status = gpu_refuses(device, reason, size);
    if (!error && count > 0)
        return status;
    (void)GPU(GetLastError)();
    snprintf(reason, size, "no " GPU_TEXT " device: %s",
             error ? GPU(GetErrorString)((GPU(Error_t))error) : "the driver counts none");
    return TG_NO_DEVICE;
}

static tg_status open_here(tg_context *ctx, tg_gpu *gpu)
{
    GPU_PROPERTIES properties;
    char reason[200];
    if (gpu_refuses(gpu->index, reason, sizeof reason))
        return tg_fail(ctx, TG_NO_DEVICE, "%s", reason);
    TRY(ctx, "choosing the device", GPU(SetDevice)(gpu->index));
    TRY(ctx, "asking the device", GPU(GetDeviceProperties)(&properties, gpu->index));
    snprintf(ctx->device_name, sizeof ctx->device_name, GPU_DEVICE_NAME(properties));
    ctx->limits = (tg_limits){.threads = properties.maxThreadsPerBlock,
                              .vec_bytes = 16,
                              .registers = 255,
                              .register_bytes = 4,
                              .fast_bytes = (int64_t)properties.sharedMemPerBlock,
                              .l3 = properties.l2CacheSize,
                              .units = properties.multiProcessorCount};
    gpu->reaches_host = properties.pageableMemoryAccess;
    TRY(ctx, "asking for the code of the device", gpu_describe(gpu, &properties, &ctx->limits));
    TRY(ctx, "making an event", GPU(EventCreate)(&gpu->start));
    TRY(ctx, "making an event", GPU(EventCreate)(&gpu->stop));
    TRY(ctx, "making an event", GPU(EventCreateWithFlags)(&gpu->handover, GPU(EventDisableTiming)));
    return TG_OK;
}

static void gpu_close(tg_context *ctx)
{
    tg_gpu *gpu = gpu_of(ctx);
    const int before = enter(ctx);
    if (gpu->start)
        (void)GPU(EventDestroy)(gpu->start);
    if (gpu->stop)
        (void)GPU(EventDestroy)(gpu->stop);
    if (gpu->handover)
        (void)GPU(EventDestroy)(gpu->handover);
    leave(ctx, before, TG_OK);
    free(gpu);
}

static tg_status gpu_open(tg_context *ctx, int device)
{
    int count = 0, before = 0;
    TRY(ctx, "counting devices", GPU(GetDeviceCount)(&count));
    if (device >= count)
        return tg_fail(ctx, TG_NO_DEVICE, "device = %d, and " GPU_TEXT " counts %d", device, count);
    tg_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return tg_fail(ctx, TG_OUT_OF_MEMORY, "%zu bytes could not be had", sizeof *gpu);
    gpu->index = device;
    ctx->device = gpu;
    (void)GPU(GetDevice)(&before);
    const tg_status status = open_here(ctx, gpu);
    (void)GPU(SetDevice)(before);
    if (status)
        gpu_close(ctx);
    return status;
}

static int is_capturing(void *stream)
{
    enum GPU(StreamCaptureStatus) status = GPU(StreamCaptureStatusNone);
    const int error = (int)GPU(StreamIsCapturing)((GPU(Stream_t))stream, &status);
    if (error)
        (void)GPU(GetLastError)();
    return error || status != GPU(StreamCaptureStatusNone);
}

/* The stream waits for what was queued on those before it, which may still use the workspace. One
 * that is captured cannot wait for what was not: it does so later. */
static tg_status keep_order(tg_context *ctx)
{
    tg_gpu *gpu = gpu_of(ctx);
    if (!gpu->is_behind || is_capturing(gpu->stream))
        return TG_OK;
    TRY(ctx, "the order of two streams", GPU(StreamWaitEvent)(gpu->stream, gpu->handover, 0));
    gpu->is_behind = 0;
    return TG_OK;
}

static tg_status gpu_set_stream_here(tg_context *ctx, void *stream)
{
    tg_gpu *gpu = gpu_of(ctx);
    if (stream != (void *)gpu->stream && gpu->has_queued && !is_capturing(gpu->stream)) {
        if (keep_order(ctx))
            return ctx->status;
        TRY(ctx, "an event in the stream", GPU(EventRecord)(gpu->handover, gpu->stream));
        gpu->is_behind = 1;
    }
    gpu->stream = (GPU(Stream_t))stream;
    return keep_order(ctx);
}
ON_DEVICE(gpu_set_stream, (tg_context * ctx, void *stream), (ctx, stream))

static tg_status gpu_sync_here(tg_context *ctx)
{
    if (keep_order(ctx))
        return ctx->status;
    TRY(ctx, "waiting for the stream", GPU(StreamSynchronize)(gpu_of(ctx)->stream));
    return TG_OK;
}
ON_DEVICE(gpu_sync, (tg_context * ctx), (ctx))

/* --------------------------------------------------------------------------------------- memory */

static tg_status gpu_alloc_here(tg_context *ctx, size_t bytes, void **memory)
{
    const int error = (int)GPU(Malloc)(memory, bytes);
    if (error == GPU(ErrorMemoryAllocation)) {
        (void)GPU(GetLastError)();
        return tg_fail(ctx, TG_OUT_OF_MEMORY, "%zu bytes could not be had on the device", bytes);
    }
    return error ? gpu_fail(ctx, error, "allocating on the device") : TG_OK;
}
ON_DEVICE(gpu_alloc, (tg_context * ctx, size_t bytes, void **memory), (ctx, bytes, memory))

static tg_status gpu_free_here(tg_context *ctx, void *memory)
{
    TRY(ctx, "freeing device memory", GPU(Free)(memory));
    return TG_OK;
}
ON_DEVICE(gpu_free, (tg_context * ctx, void *memory), (ctx, memory))

static tg_status gpu_copy_here(tg_context *ctx, void *to, const void *from, size_t bytes, int way)
{
    GPU(Stream_t) stream = gpu_of(ctx)->stream;
    if (keep_order(ctx))
        return ctx->status;
    TRY(ctx, "copying", GPU(MemcpyAsync)(to, from, bytes, way, stream));
    TRY(ctx, "waiting for the stream", GPU(StreamSynchronize)(stream));
    return TG_OK;
}
ON_DEVICE(gpu_copy, (tg_context * ctx, void *to, const void *from, size_t bytes, int way),
          (ctx, to, from, bytes, way))

static tg_status gpu_upload(tg_context *ctx, void *device, const void *host, size_t bytes)
{
    return gpu_copy(ctx, device, host, bytes, GPU(MemcpyHostToDevice));
}

static tg_status gpu_download(tg_context *ctx, void *host, const void *device, size_t bytes)
{
    return gpu_copy(ctx, host, device, bytes, GPU(MemcpyDeviceToHost));
}

/* ------------------------------------------------------------------------------------- calls */

static const tg_kernel_entry *first_kernel(const tg_context *ctx, int row, tg_type type)
{
    const tg_kernel_entry *kernels[GPU_WAYS] = {NULL};
    gpu_kernels(gpu_of(ctx), row, type, kernels);
    for (int way = 0; way < GPU_WAYS; way++)
        if (kernels[way])
            return kernels[way];
    return NULL;
}

static const char *gpu_missing(const tg_context *ctx, tg_tile tile, tg_type type)
{
    const int row = tg_tile_row_like(&tile, &ctx->limits, type);
    if (row < 0)
        return "GPUs run the rows of the table only: a kernel is compiled for each";
    return first_kernel(ctx, row, type) ? NULL : "no kernel is compiled for this row and type here";
}

/* What no kernel of the row can take, say a matrix with neither stride 1, the plain row of that
 * type does. */
static const tg_kernel_entry *kernel_for(const tg_context *ctx, const tg_call *call, int row,
                                         tg_type type)
{
    for (int way_in = 0; way_in < 2; way_in++) {
        const int is_plain = way_in != (call->k == 0);
        const tg_kernel_entry *kernels[GPU_WAYS] = {NULL};
        gpu_kernels(gpu_of(ctx), is_plain ? tg_tile_find("t64x64x16_v2") : row, type, kernels);
        for (int way = 0; way < GPU_WAYS; way++)
            if (kernels[way] && (!kernels[way]->takes || kernels[way]->takes(call)))
                return kernels[way];
    }
    return NULL;
}

static tg_call call_of(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    return (tg_call){.m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .batch = p->batch,
                     .a = p->a.data,
                     .b = p->b.data,
                     .c = p->c.data,
                     .a_row = p->a.row_stride,
                     .a_col = p->a.col_stride,
                     .a_item = p->a.batch_stride,
                     .b_row = p->b.row_stride,
                     .b_col = p->b.col_stride,
                     .b_item = p->b.batch_stride,
                     .c_row = p->c.row_stride,
                     .c_col = p->c.col_stride,
                     .c_item = p->c.batch_stride,
                     .a_type = p->a.type,
                     .b_type = p->b.type,
                     .c_type = p->c.type,
                     .alpha = p->k > 0 ? p->alpha : 0,
                     .beta = p->beta,
                     .splits = p->k > 0 ? plan->splits : 1,
                     .tail = plan->tail,
                     .has_edges = !(p->flags & TG_BATCH_INVARIANT),
                     .units = ctx->limits.units,
                     .workspace = ctx->workspace,
                     .met = gpu_of(ctx)->met,
                     .early = gpu_of(ctx)->early,
                     .clusters = gpu_of(ctx)->clusters};
}

/* For any alignment of the data, which may not be known yet: the way in of an odd address needs
 * most. */
static size_t gpu_workspace(const tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    tg_call call = call_of(ctx, p, plan);
    call.a = call.b = (const void *)tg_type_size(p->a.type);
    const tg_kernel_entry *kernel = kernel_for(ctx, &call, plan->row, p->a.type);
    return kernel && kernel->workspace ? kernel->workspace(&call) : 0;
}

/* A kernel that reads host memory out of its reach would end the whole process's use of the device.
 * Host memory that was registered may be so no longer: only the device's own is trusted from then
 * on. */
static tg_status gpu_check(tg_context *ctx, const tg_problem *p)
{
    tg_gpu *gpu = gpu_of(ctx);
    const char *names = p->k > 0 && ctx->is_swapped ? "bac" : "abc";
    const void *data[3] = {p->k > 0 ? p->a.data : NULL, p->k > 0 ? p->b.data : NULL, p->c.data};
    for (int i = 0; i < 3; i++) {
        GPU_ATTRIBUTES attributes;
        const void **trusted = &gpu->trusted[tg_slot(data[i], GPU_TRUSTED)];
        if (!data[i] || data[i] == *trusted || gpu->reaches_host)
            continue;
        const int before = enter(ctx);
        const int error = (int)GPU(PointerGetAttributes)(&attributes, data[i]);
        if (error)
            (void)GPU(GetLastError)();
        leave(ctx, before, TG_OK);
        if (error || GPU_IS_UNREGISTERED(attributes))
            return tg_fail(ctx, TG_BAD_ARGUMENT, "%c = %p is memory of the host, not of the device",
                           names[i], data[i]);
        *trusted = GPU_IS_DEVICE(attributes) ? data[i] : NULL;
    }
    return TG_OK;
}

static tg_status gpu_gemm_here(tg_context *ctx, const tg_problem *p, const tg_plan *plan)
{
    const tg_call call = call_of(ctx, p, plan);
    const tg_kernel_entry *kernel = kernel_for(ctx, &call, plan->row, p->a.type);
    if (!kernel)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "no kernel for this problem");
    if (keep_order(ctx))
        return ctx->status;
    gpu_of(ctx)->has_queued = 1;
    const int error = kernel->launch(&call, gpu_of(ctx)->stream);
    return error ? gpu_fail(ctx, error, "the launch") : TG_OK;
}
ON_DEVICE(gpu_gemm, (tg_context * ctx, const tg_problem *p, const tg_plan *plan), (ctx, p, plan))

/* ------------------------------------------------------------------------------------- measures */

static tg_status gpu_time_start_here(tg_context *ctx)
{
    TRY(ctx, "an event in the stream", GPU(EventRecord)(gpu_of(ctx)->start, gpu_of(ctx)->stream));
    return TG_OK;
}
ON_DEVICE(gpu_time_start, (tg_context * ctx), (ctx))

static tg_status gpu_time_stop_here(tg_context *ctx, double *seconds)
{
    float milliseconds;
    TRY(ctx, "an event in the stream", GPU(EventRecord)(gpu_of(ctx)->stop, gpu_of(ctx)->stream));
    TRY(ctx, "waiting for the stream", GPU(EventSynchronize)(gpu_of(ctx)->stop));
    TRY(ctx, "reading the time",
        GPU(EventElapsedTime)(&milliseconds, gpu_of(ctx)->start, gpu_of(ctx)->stop));
    *seconds = milliseconds * 1e-3;
    return TG_OK;
}
ON_DEVICE(gpu_time_stop, (tg_context * ctx, double *seconds), (ctx, seconds))

static tg_status gpu_peak(tg_context *ctx, tg_type type, double *flops)
{
    double work = 0, seconds = 0, best = 0;
    void *sink = NULL;
    if (type != TG_F32 && type != TG_F64)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "type = %s: the probe multiplies f32 and f64 only",
                       tg_type_name(type));
    tg_status status = gpu_alloc(ctx, sizeof(double), &sink);
    for (int pass = 0; pass < 3 && !status; pass++) {
        const int before = enter(ctx);
        status = gpu_time_start(ctx);
        const int error = status ? 0 : gpu_spin(gpu_of(ctx), type, ctx->limits.units, &work, sink);
        leave(ctx, before, TG_OK);
        if (error)
            status = gpu_fail(ctx, error, "the launch of the peak probe");
        if (!status)
            status = gpu_time_stop(ctx, &seconds);
        if (!status && seconds > 0 && work / seconds > best)
            best = work / seconds;
    }
    if (sink && gpu_free(ctx, sink) && !status)
        status = ctx->status;
    *flops = best;
    return status;
}

static tg_status gpu_usage_here(tg_context *ctx, tg_tile tile, tg_type type, tg_usage *usage)
{
    const int row = tg_tile_row_like(&tile, &ctx->limits, type);
    const tg_kernel_entry *kernel = row < 0 ? NULL : first_kernel(ctx, row, type);
    if (!kernel)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "no kernel is compiled for this tiling");
    const int error = kernel->usage(usage);
    return error ? gpu_fail(ctx, error, "asking the driver") : TG_OK;
}
ON_DEVICE(gpu_usage, (tg_context * ctx, tg_tile tile, tg_type type, tg_usage *usage),
          (ctx, tile, type, usage))

static const tg_backend gpu_backend = {.name = GPU_NAME,
                                       .reason = gpu_reason,
                                       .open = gpu_open,
                                       .close = gpu_close,
                                       .missing = gpu_missing,
                                       .workspace = gpu_workspace,
                                       .check = gpu_check,
                                       .gemm = gpu_gemm,
                                       .alloc = gpu_alloc,
                                       .free = gpu_free,
                                       .upload = gpu_upload,
                                       .download = gpu_download,
                                       .sync = gpu_sync,
                                       .set_stream = gpu_set_stream,
                                       .peak = gpu_peak,
                                       .time_start = gpu_time_start,
                                       .time_stop = gpu_time_stop,
                                       .usage = gpu_usage};

#endif
