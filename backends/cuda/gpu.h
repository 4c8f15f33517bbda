/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shared GPU text must know of CUDA: the prefix of its names, and the largest limits that
 * any of its devices has. C11 and CUDA C++. */
#ifndef TG_CUDA_GPU_H
#define TG_CUDA_GPU_H

#include <cuda_runtime_api.h>

#define GPU(name) cuda##name
#define GPU_NAME "cuda"
#define GPU_TEXT "CUDA"
#define GPU_PROPERTIES struct cudaDeviceProp
#define GPU_ATTRIBUTES struct cudaPointerAttributes
#define GPU_IS_UNREGISTERED(attributes) ((attributes).type == cudaMemoryTypeUnregistered)
#define GPU_IS_DEVICE(attributes) ((attributes).type == cudaMemoryTypeDevice)

/* Of a kernel: the threads of a block, and the blocks that a multiprocessor is to run at once. */
#define GPU_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)

/* The lanes of a warp wait for each other, and see what they wrote to fast memory. */
#define GPU_MEET_WARP() __syncwarp()

/* Blocks of so many threads in a grid. */
#define GPU_MOST_BLOCKS(threads) INT32_MAX

/* lanes, threads, vec bytes, registers, register bytes, fast bytes */
#define TG_WIDEST_LIMITS                                \
    {                                                   \
        {4, 8}, 1024, 16, 255, 4, 227 << 10, 0, 0, 0, 0 \
    }

#endif
