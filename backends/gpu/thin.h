/* SPDX-License-Identifier: Apache-2.0
 *
 * What skinny.h and batch.h share: vectors, launching, and what the driver says of a kernel. The
 * file that includes this includes gpu.h of CUDA or HIP first: GPU(x) is cudax or hipx. */
#ifndef TG_THIN_H
#define TG_THIN_H

#include "call.h"

namespace tg
{

/* The lane grid of a warp: 4 x 8, or 8 x 8 where a warp has 64 lanes. */
#ifdef TG_THIN_LANES
constexpr tg_mn thin_lanes = TG_THIN_LANES;
#else
constexpr tg_mn thin_lanes = {4, 8};
#endif

/* What one instruction moves. */
template <typename T_elem, int count> struct alignas(count * sizeof(T_elem)) vector {
    T_elem at[count];
};

template <int count, typename T_elem>
__device__ inline vector<T_elem, count> load_vector(const T_elem *from)
{
    return *reinterpret_cast<const vector<T_elem, count> *>(from);
}

template <int count, typename T_elem>
__device__ inline void store_vector(T_elem *to, const vector<T_elem, count> &x)
{
    *reinterpret_cast<vector<T_elem, count> *>(to) = x;
}

/* The value of the lane whose number differs in the bits of mask. */
template <typename T_elem> __device__ inline T_elem other_lane(T_elem x, int mask)
{
    constexpr int width = thin_lanes.m * thin_lanes.n;
#if defined(__HIPCC__)
    return __shfl_xor(x, mask, width);
#else
    return __shfl_xor_sync(~0u, x, mask, width);
#endif
}

/* fast := slow or, where it is not there, zero; in the background where the device can. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <typename T_elem>
__device__ inline void copy_element(T_elem *fast, const T_elem *slow, bool is_there)
{
    const unsigned to = unsigned(__cvta_generic_to_shared(fast));
    if (is_there)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(slow),
                     "n"(sizeof(T_elem))
                     : "memory");
    else
        *fast = 0;
}
__device__ inline void wait_for_elements() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
template <typename T_elem>
__device__ inline void copy_element(T_elem *fast, const T_elem *slow, bool is_there)
{
    *fast = is_there ? *slow : T_elem(0);
}
__device__ inline void wait_for_elements() {}
#endif

/* Can it be read in vectors of that many bytes, along the one of its directions that is contiguous,
 * the other two strides being these? */
inline int is_aligned(const void *data, int64_t stride, int64_t item, int64_t bytes, int64_t elem)
{
    return ((int64_t)(intptr_t)data | stride * elem | item * elem) % bytes == 0;
}

/* A grid is one row of blocks, and has a largest size. */
inline int fits_a_grid(int64_t blocks) { return blocks <= INT32_MAX; }

/* kernel<<<blocks, threads>>>(call), but its error is this launch's own. */
template <typename T_call>
int thin_start(void (*kernel)(T_call), int64_t blocks, int threads, T_call call, void *stream)
{
    void *arguments[] = {&call};
    return GPU(LaunchKernel)(reinterpret_cast<const void *>(kernel), dim3(unsigned(blocks)),
                             dim3(unsigned(threads)), arguments, 0,
                             static_cast<GPU(Stream_t)>(stream));
}

template <typename T_call> int thin_usage(void (*kernel)(T_call), int threads, tg_usage *usage)
{
    GPU(FuncAttributes) attributes;
    const void *function = reinterpret_cast<const void *>(kernel);
    int error = GPU(FuncGetAttributes)(&attributes, function);
    if (!error)
        error = GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&usage->blocks_per_unit, function,
                                                               threads, 0);
    if (error)
        return error;
    usage->threads = threads;
    usage->registers = attributes.numRegs;
    usage->spilled_bytes = int(attributes.localSizeBytes);
    usage->fast_bytes = int(attributes.sharedSizeBytes);
    return 0;
}

} // namespace tg

#endif
