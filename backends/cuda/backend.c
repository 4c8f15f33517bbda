/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA as a backend: what is CUDA's alone of the host half. The rest is backends/gpu/host.h. */
#include "gpu.h"

#include "host.h"

const tg_kernel_entry *tg_cuda_simt_float(int row);
const tg_kernel_entry *tg_cuda_simt_double(int row);
const tg_kernel_entry *tg_cuda_thin(int row, tg_type type);
const tg_kernel_entry *tg_cuda_matrix(int row, tg_type type);
int tg_cuda_code(void);
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

static tg_status gpu_refuses(int device, char *reason, size_t size)
{
    (void)device, (void)reason, (void)size; /* the PTX of the newest runs on what comes later */
    return TG_OK;
}

static void gpu_describe(tg_gpu *gpu, const struct cudaDeviceProp *properties, tg_limits *limits)
{
    gpu->arch = properties->major * 10 + properties->minor;
    limits->lanes = (tg_mn){4, 8};
    limits->fast_bytes = (int64_t)properties->sharedMemPerBlockOptin;
    limits->matrix = tg_cuda_matrix_rows(tg_cuda_code());
    gpu->early = tg_cuda_code() >= 90;
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
