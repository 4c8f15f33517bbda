/* SPDX-License-Identifier: Apache-2.0
 *
 * HIP as a backend: what is HIP's alone of the host half. The rest is backends/gpu/host.h. */
#include <string.h>

#include "gpu.h"

#define GPU_DEVICE_NAME(of) "%.80s, %.40s", (of).name, (of).gcnArchName
#include "host.h"

/* The kernels for one wave size; absent if no target that was compiled for has it. */
#define KERNELS_OF(wave)                                                                          \
    __attribute__((weak)) const tg_kernel_entry *tg_hip_simt_float##wave(int row);                \
    __attribute__((weak)) const tg_kernel_entry *tg_hip_simt_double##wave(int row);               \
    __attribute__((weak)) const tg_kernel_entry *tg_hip_thin##wave(int row, tg_type type);        \
    __attribute__((weak)) const tg_kernel_entry *tg_hip_matrix##wave(int row, tg_type type);      \
    __attribute__((weak)) int tg_hip_spin##wave(tg_type type, int units, double *flops, void *to, \
                                                void *stream);
KERNELS_OF(32)
KERNELS_OF(64)

/* "gfx90a" of "gfx90a:sramecc+:xnack-" */
static int target_length(const hipDeviceProp_t *properties)
{
    return (int)strcspn(properties->gcnArchName, ":");
}

static int is_compiled_for(const hipDeviceProp_t *properties)
{
    const size_t length = (size_t)target_length(properties);
    for (const char *at = TG_HIP_TARGETS; *at; at += strspn(at, " ")) {
        const size_t next = strcspn(at, " ");
        if (next == length && memcmp(at, properties->gcnArchName, next) == 0)
            return 1;
        at += next;
    }
    return 0;
}

static tg_status gpu_refuses(int device, char *reason, size_t size)
{
    hipDeviceProp_t properties;
    const int error = (int)hipGetDeviceProperties(&properties, device);
    if (error)
        snprintf(reason, size, "HIP device %d: %s", device, hipGetErrorString((hipError_t)error));
    else if (!is_compiled_for(&properties))
        snprintf(reason, size, "HIP device %d is a %.*s, and the kernels are for " TG_HIP_TARGETS,
                 device, target_length(&properties), properties.gcnArchName);
    else
        return TG_OK;
    (void)hipGetLastError();
    return TG_NO_DEVICE;
}

static int gpu_describe(tg_gpu *gpu, const hipDeviceProp_t *properties, tg_limits *limits)
{
    gpu->arch = (int)strtol(properties->gcnArchName + strlen("gfx"), NULL, 16);
    limits->lanes = (tg_mn){properties->warpSize / 8, 8};
    limits->matrix = gpu->arch;
    return 0;
}

static int has_wave64(const tg_gpu *gpu) { return gpu->arch < 0x1000; }

static void gpu_kernels(const tg_gpu *gpu, int row, tg_type type,
                        const tg_kernel_entry *kernels[GPU_WAYS])
{
    const int wave64 = has_wave64(gpu);
    if (gpu->arch == 0x90a && type == TG_F16)
        return; /* its instructions take denormals for zero: in f16, they are far from it */
    kernels[0] = wave64 ? tg_hip_matrix64(row, type) : tg_hip_matrix32(row, type);
    if (type == TG_F32 || type == TG_F64)
        kernels[1] = wave64 ? tg_hip_thin64(row, type) : tg_hip_thin32(row, type);
    if (type == TG_F32)
        kernels[2] = wave64 ? tg_hip_simt_float64(row) : tg_hip_simt_float32(row);
    if (type == TG_F64)
        kernels[2] = wave64 ? tg_hip_simt_double64(row) : tg_hip_simt_double32(row);
}

static int gpu_spin(const tg_gpu *gpu, tg_type type, int units, double *flops, void *sink)
{
    return (has_wave64(gpu) ? tg_hip_spin64 : tg_hip_spin32)(type, units, flops, sink, gpu->stream);
}

const tg_module *tg_module_hip(void)
{
    static const tg_module module = {TG_VERSION_TEXT, sizeof(tg_context), tg_tile_table,
                                     &gpu_backend};
    return &module;
}
