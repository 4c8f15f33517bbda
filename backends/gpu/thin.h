/* SPDX-License-Identifier: Apache-2.0
 *
 * What skinny.h and batch.h share: the tile, vectors, copies of single elements. The file that
 * includes this includes gpu.h of CUDA or HIP first: GPU(x) is cudax or hipx. */
#ifndef TG_THIN_H
#define TG_THIN_H

#include "launch.h"
#include "rows.h"

namespace tg
{

/* A tiling with its zeros filled in for the lane grid of this file. */
template <typename T_elem> constexpr tg_tile filled(tg_tile t)
{
    return tg_tile_fill(t, widest, sizeof(T_elem));
}

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
    constexpr int width = widest.lanes.m * widest.lanes.n;
#if defined(__HIPCC__)
    return __shfl_xor(x, mask, width);
#else
    return __shfl_xor_sync(~0u, x, mask, width);
#endif
}

/* *fast := *slow, or zero if that is not there; and many at once, aligned to all of them. In the
 * background where the device can. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <typename T_elem>
__device__ inline void copy(T_elem *fast, const T_elem *slow, bool is_there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                     unsigned(__cvta_generic_to_shared(fast))),
                 "l"(slow), "n"(sizeof(T_elem)), "r"(is_there ? int(sizeof(T_elem)) : 0)
                 : "memory");
}
template <int count, typename T_elem>
__device__ inline void copy_run(T_elem *fast, const T_elem *slow)
{
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(unsigned(__cvta_generic_to_shared(fast))),
        "l"(slow), "n"(count * sizeof(T_elem))
        : "memory");
}
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
constexpr int copies_at_once = 1;
#else
template <typename T_elem>
__device__ inline void copy(T_elem *fast, const T_elem *slow, bool is_there)
{
    *fast = is_there ? *slow : T_elem(0);
}
template <int count, typename T_elem>
__device__ inline void copy_run(T_elem *fast, const T_elem *slow)
{
    store_vector(fast, load_vector<count>(slow));
}
__device__ inline void wait_for_copies() {}
constexpr int copies_at_once = 4; /* a thread waits for each */
#endif

/* Can it be read in vectors of that many bytes, along the one of its directions that is contiguous,
 * the other two strides being these? */
inline int is_aligned(const void *data, int64_t stride, int64_t item, int64_t bytes, int64_t elem)
{
    return ((int64_t)(intptr_t)data | stride * elem | item * elem) % bytes == 0;
}

/* A grid is one row of blocks, and has a largest size. */
inline int fits_a_grid(int64_t blocks, int threads) { return blocks <= GPU_MOST_BLOCKS(threads); }

} // namespace tg

#endif
