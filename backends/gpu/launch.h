/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching a kernel, what the driver says of one, and the sum over splits of k, which is the same
 * for every kernel that has them. C++ of the host; gpu.h of CUDA or HIP comes first. */
#ifndef TG_LAUNCH_H
#define TG_LAUNCH_H

#include <type_traits>

#include "call.h"
#ifdef __CUDACC__
#include "driver.h"
#endif

namespace tg
{

/* More than this much fast memory must be asked for. */
constexpr int64_t fast_bytes_of_all = 48 << 10;

inline int ask_for_fast(const void *kernel, int64_t bytes)
{
    return bytes <= fast_bytes_of_all
               ? 0
               : GPU(FuncSetAttribute)(kernel, GPU(FuncAttributeMaxDynamicSharedMemorySize),
                                       int(bytes));
}

/* Fast memory of a block on NVIDIA's architectures, 90 for 9.0. There is no use in code for rows
 * that cannot run there, and code for another one does not have them. */
constexpr int64_t fast_bytes_of(int arch)
{
    return (arch < 80                  ? 64
            : arch == 80 || arch == 87 ? 163
            : arch >= 90 && arch < 120 ? 227
                                       : 99)
           << 10;
}

#ifdef __CUDA_ARCH__
constexpr int64_t fast_bytes_here = fast_bytes_of(__CUDA_ARCH__ / 10);
#else
constexpr int64_t fast_bytes_here = INT64_MAX;
#endif

/* Asking takes time that every call would pay: the context remembers for how much it asked. */
inline int ask_for_fast_once(const tg_call *call, const void *kernel, int64_t bytes)
{
    tg_met *met = tg_met_kernel(call->met, kernel);
    if (bytes <= fast_bytes_of_all || bytes <= met->fast)
        return 0;
    const int error = ask_for_fast(kernel, bytes);
    if (!error)
        met->fast = bytes;
    return error;
}

/* What every kernel does before it touches slow memory: it may have been started while the one
 * before it ended. */
__device__ inline void wait_for_turn()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* kernel<<<blocks, threads, fast, stream>>>(argument), but its error is this launch's own. So many
 * neighbouring blocks run at once that make a cluster. */
template <typename T_argument>
int start(void (*kernel)(T_argument), int64_t blocks, int threads, int64_t fast,
          const T_argument &argument, [[maybe_unused]] const tg_call &call, void *stream,
          [[maybe_unused]] int cluster = 1)
{
    void *arguments[] = {const_cast<T_argument *>(&argument)};
    const void *function = reinterpret_cast<const void *>(kernel);
#ifdef __CUDACC__
    return start_by_driver(function, blocks, threads, fast, arguments, call, stream, cluster);
#else
    return GPU(LaunchKernel)(function, dim3(unsigned(blocks)), dim3(unsigned(threads)), arguments,
                             size_t(fast), static_cast<GPU(Stream_t)>(stream));
#endif
}

/* fast: what it is launched with, mostly; what it has by itself comes on top. */
template <typename T_argument>
int usage_of(void (*kernel)(T_argument), int threads, int64_t fast, tg_usage *usage,
             int64_t most_fast = 0)
{
    GPU(FuncAttributes) attributes;
    const void *function = reinterpret_cast<const void *>(kernel);
    int error = ask_for_fast(function, tg_max(fast, most_fast));
    if (!error)
        error = GPU(FuncGetAttributes)(&attributes, function);
    if (!error)
        error = GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&usage->blocks_per_unit, function,
                                                               threads, size_t(fast));
    if (error)
        return error;
    usage->threads = threads;
    usage->registers = attributes.numRegs;
    usage->spilled_bytes = int(attributes.localSizeBytes);
    usage->fast_bytes = int(fast + int64_t(attributes.sharedSizeBytes));
    return 0;
}

/* Sums of integers are taken modulo 2^32: of unsigned ones, that is no overflow. */
template <class Sum> TG_FN Sum factor(double x)
{
    return std::is_integral_v<Sum> ? Sum(int64_t(x)) : Sum(x);
}

/* a * b + c, rounded once: said so where a compiler may turn the elements of vectors about and then
 * not see that it is one. */
template <class Sum> __device__ inline Sum fused(Sum a, Sum b, Sum c)
{
    if constexpr (std::is_same_v<Sum, float>)
        return fmaf(a, b, c);
    else if constexpr (std::is_same_v<Sum, double>)
        return fma(a, b, c);
    else
        return a * b + c;
}

/* alpha * sum + beta * old, where old is 0 if beta is. Every kernel rounds it like this: beta *
 * old, then all. */
template <class Sum> __device__ inline Sum weighted(Sum alpha, Sum sum, Sum beta, Sum old)
{
    return fused(alpha, sum, beta * old);
}

/* C := alpha * (the splits' sums, in order) + beta * C; the workspace is [item][split][m][n]. */
template <class Sum, class Elem>
__global__ void __launch_bounds__(256) add_splits(const __grid_constant__ tg_call p)
{
    wait_for_turn();
    const int64_t plane = p.m * p.n, all = plane * p.batch, stride = int64_t(gridDim.x) * 256;
    for (int64_t e = int64_t(blockIdx.x) * 256 + threadIdx.x; e < all; e += stride) {
        const int64_t item = p.batch == 1 ? 0 : e / plane, place = e - item * plane;
        const Sum *part = static_cast<const Sum *>(p.workspace) + item * p.splits * plane + place;
        Sum sum = 0;
#pragma unroll 8
        for (int split = 0; split < p.splits; split++)
            sum += part[split * plane];
        Elem *c = static_cast<Elem *>(p.c) + item * p.c_item + place / p.n * p.c_row +
                  place % p.n * p.c_col;
        const Sum old = p.beta != 0 ? Sum(*c) : Sum(0);
        *c = Elem(weighted(factor<Sum>(p.alpha), sum, factor<Sum>(p.beta), old));
    }
}

template <class Elem> size_t splits_bytes(const tg_call *p)
{
    return p->splits > 1 ? size_t(p->m) * p->n * p->splits * p->batch * sizeof(Elem) : 0;
}

template <class Sum, class Elem = Sum> int start_add_splits(const tg_call &p, void *stream)
{
    const int64_t blocks = tg_min(tg_ceil_div(p.m * p.n * p.batch, 256), 1 << 20);
    return start(add_splits<Sum, Elem>, blocks, 256, 0, p, p, stream);
}

/* As many launches as so many blocks need, and the sum over splits. */
template <class Sum, class Elem = Sum>
int start_all(void (*kernel)(tg_call), int64_t blocks, int threads, int64_t fast, tg_call call,
              void *stream)
{
    int error = ask_for_fast_once(&call, reinterpret_cast<const void *>(kernel), fast);
    for (call.first_block = 0; call.first_block < blocks && !error;) {
        const int64_t now = tg_min(blocks - call.first_block, GPU_MOST_BLOCKS(threads));
        error = start(kernel, now, threads, fast, call, call, stream);
        call.first_block += now;
    }
    return error || call.splits == 1 ? error : start_add_splits<Sum, Elem>(call, stream);
}

} // namespace tg

#endif
