/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shared GPU text must know of HIP: the prefix of its names, and the largest limits that
 * any of its devices has. C11 and HIP C++; a file of kernels is compiled for devices of one wave
 * size, TG_WAVE lanes, and once for each of them. */
#ifndef TG_HIP_GPU_H
#define TG_HIP_GPU_H

#ifdef __cplusplus
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#endif

#define GPU(name) hip##name
#define GPU_NAME "hip"
#define GPU_TEXT "HIP"
#define GPU_PROPERTIES hipDeviceProp_t
#define GPU_ATTRIBUTES hipPointerAttribute_t
#if HIP_VERSION_MAJOR >= 6
#define GPU_IS_UNREGISTERED(attributes) ((attributes).type == hipMemoryTypeUnregistered)
#define GPU_IS_DEVICE(attributes) ((attributes).type == hipMemoryTypeDevice)
#else
#define GPU_IS_UNREGISTERED(attributes) ((void)(attributes), 0) /* then it fails to ask */
#define GPU_IS_DEVICE(attributes) ((attributes).memoryType == hipMemoryTypeDevice)
#endif

/* Of a kernel: the threads of a block. How many blocks a compute unit runs at once is left to the
 * compiler: its targets have from 256 to 512 KiB of registers, and what is asked for beyond that is
 * paid in private memory. */
#define GPU_BOUNDS(threads, blocks) __attribute__((amdgpu_flat_work_group_size(threads, threads)))

/* The lanes of a wave wait for each other, and see what they wrote to fast memory. */
#define GPU_MEET_WARP()                                                                      \
    (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront"), __builtin_amdgcn_wave_barrier(), \
     __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront"))

/* Blocks of so many threads in a grid: the threads of all are counted in 32 bits. */
#define GPU_MOST_BLOCKS(threads) (int64_t(UINT32_MAX) / (threads))

#ifndef __grid_constant__
#define __grid_constant__ /* all that a kernel is given stays where it is */
#endif

/* The kernels for either wave size are linked together: what they define has it in its name. */
#define TG_JOIN_(x, y) x##y
#define TG_JOIN(x, y) TG_JOIN_(x, y)
#define tg TG_JOIN(tg_wave, TG_WAVE)

/* lanes, threads, vec bytes, registers, register bytes, fast bytes */
#define TG_WIDEST_LIMITS                                               \
    {                                                                  \
        {TG_WAVE / 8, 8}, 1024, 16, 255, 4, 64 << 10, 0, 0, 0, 0, 0, 0 \
    }

#endif
