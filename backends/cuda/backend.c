/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA as a backend: what is CUDA's alone of the host half. The rest is backends/gpu/host.h. */
#include <string.h>

#include "gpu.h"

#define GPU_DEVICE_NAME(of) "%.100s", (of).name
#include "host.h"

const tg_kernel_entry *tg_cuda_simt_float(int row);
const tg_kernel_entry *tg_cuda_simt_double(int row);
const tg_kernel_entry *tg_cuda_thin(int row, tg_type type);
const tg_kernel_entry *tg_cuda_matrix(int row, tg_type type);
int tg_cuda_code(int *code);
int64_t tg_cuda_fast_bytes(int code);
int tg_cuda_matrix_rows(int code);
#if TG_HAS_HOPPER
const tg_kernel_entry *tg_cuda_hopper(int row, tg_type type);
#else
static const tg_kernel_entry *tg_cuda_hopper(int row, tg_type type)
{
    (void)row, (void)type;
    return NULL;
}
#endif
int tg_cuda_spin(tg_type type, int units, double *flops, void *sink, void *stream);

/* Is there code for a device of this compute capability, 90 for 9.0? Of TG_CUDA_CODE, sm_86 runs on
 * 8.6 and later ones of the 8, sm_90a on 9.0 alone, and compute_120 is PTX, which runs on all that
 * comes later. */
static int is_compiled_for(int capability)
{
    for (const char *at = TG_CUDA_CODE; *at; at += strspn(at, " ")) {
        const int is_ptx = at[0] == 'c';
        char *end;
        const int code = (int)strtol(strchr(at, '_') + 1, &end, 10);
        at = end + strcspn(end, " ");
        if (is_ptx        ? capability >= code
            : *end == 'a' ? capability == code
                          : capability >= code && capability / 10 == code / 10)
            return 1;
    }
    return 0;
}

static tg_status gpu_refuses(int device, char *reason, size_t size)
{
    int major = 0, minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device)) {
        (void)cudaGetLastError();
        snprintf(reason, size, "CUDA device %d does not say what it is", device);
        return TG_NO_DEVICE;
    }
    if (is_compiled_for(10 * major + minor))
        return TG_OK;
    snprintf(reason, size,
             "CUDA device %d is of compute capability %d.%d, and the kernels are for " TG_CUDA_CODE,
             device, major, minor);
    return TG_NO_DEVICE;
}

/* Two transfers in a cycle of the memory, over all of its width; 0 if the driver does not say. */
static double memory_bytes_of(int device, int units)
{
    int memory_khz = 0, bits = 0, khz = 0;
    if (cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device) ||
        cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device) ||
        cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device))
        (void)cudaGetLastError();
    return khz > 0 ? 2.0 * memory_khz * bits / 8 / ((double)khz * units) : 0;
}

static int gpu_describe(tg_gpu *gpu, const struct cudaDeviceProp *properties, tg_limits *limits)
{
    gpu->arch = properties->major * 10 + properties->minor;
    limits->lanes = (tg_mn){4, 8};
    int code = 0;
    const int error = tg_cuda_code(&code);
    limits->fast_bytes =
        tg_min((int64_t)properties->sharedMemPerBlockOptin, tg_cuda_fast_bytes(code));
    limits->matrix = tg_cuda_matrix_rows(code);
    limits->memory_bytes = memory_bytes_of(gpu->index, limits->units);
    gpu->early = code >= 90;
    return error;
}

static void gpu_kernels(const tg_gpu *gpu, int row, tg_type type,
                        const tg_kernel_entry *kernels[GPU_WAYS])
{
    if (type != TG_F32 && type != TG_F64)
        return;
    kernels[0] = tg_cuda_thin(row, type);
    kernels[1] = tg_cuda_matrix(row, type);
    kernels[2] = gpu->arch == 90 ? tg_cuda_hopper(row, type) : NULL;
    kernels[3] = type == TG_F32 ? tg_cuda_simt_float(row) : tg_cuda_simt_double(row);
}

static int gpu_spin(const tg_gpu *gpu, tg_type type, int units, double *flops, void *sink)
{
    return tg_cuda_spin(type, units, flops, sink, gpu->stream);
}

const tg_module *tg_module_cuda(void)
{
    static const tg_module module = {TG_VERSION_TEXT, sizeof(tg_context), tg_tile_table,
                                     &gpu_backend};
    return &module;
}
