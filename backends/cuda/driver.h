/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver is asked for by itself, past the runtime. It is loaded anyway: nothing links
 * against it. C++ of the host. */
#ifndef TG_CUDA_DRIVER_H
#define TG_CUDA_DRIVER_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "call.h"

namespace tg
{

/* NULL: the driver has no such function. */
template <class Function> Function driver_function(const char *name)
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result))
        return nullptr;
#else
    if (cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result))
        return nullptr;
#endif
    return reinterpret_cast<Function>(found);
}

/* A launch by the runtime takes the host longer, by 6 to 11 % of it on two hosts. But it gives a
 * thread its context, and knows the kernel in every other one. */
inline int start_by_driver(const void *kernel, int64_t blocks, int threads, int64_t fast,
                           void **arguments, const tg_call &call, void *stream, int cluster)
{
    static const auto launch = driver_function<decltype(&cuLaunchKernelEx)>("cuLaunchKernelEx");
    static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
    CUlaunchAttribute attributes[2];
    unsigned count = 0;
    if (call.early) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[count++].value.clusterDim = {unsigned(cluster), 1, 1};
    }
    void *&function = tg_met_kernel(call.met, kernel)->function;
    if (!function && cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(&function), kernel))
        (void)cudaGetLastError();
    if (function && launch) {
        const CUlaunchConfig config = {
            unsigned(blocks), 1,          1,    unsigned(threads), 1, 1, unsigned(fast),
            CUstream(stream), attributes, count};
        const CUresult error = launch(&config, CUfunction(function), arguments, nullptr);
        if (error != CUDA_ERROR_INVALID_CONTEXT && error != CUDA_ERROR_INVALID_HANDLE)
            return error;
    }
    const cudaLaunchConfig_t config = {dim3(unsigned(blocks)),
                                       dim3(unsigned(threads)),
                                       size_t(fast),
                                       cudaStream_t(stream),
                                       reinterpret_cast<cudaLaunchAttribute *>(attributes),
                                       count};
    return cudaLaunchKernelExC(&config, kernel, arguments);
}

} // namespace tg

#endif
