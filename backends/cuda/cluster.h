/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters: neighbouring blocks that run at once, and read each other's fast memory. */
#ifndef TG_CUDA_CLUSTER_H
#define TG_CUDA_CLUSTER_H

#include "call.h"

namespace tg
{

/* A meeting of so many of the block's threads. */
template <int Threads> __device__ void meet()
{
    asm volatile("bar.sync 1, %0;" ::"n"(Threads) : "memory");
}

/* A meeting of all threads of a cluster that have not returned. */
__device__ inline void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}

/* The same, for those that have read all they wanted. */
__device__ inline void leave_cluster()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}

/* What lies in another block's fast memory where `own` lies in this one's. */
template <class Elem> __device__ const Elem *in_block(const Elem *own, int block)
{
    const Elem *there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(block));
    return there;
}

/* How many clusters of so many blocks the device runs at once: it has groups of multiprocessors
 * that no cluster crosses. Asking takes time, and the answer is the same for all kernels that have
 * as many blocks on one of them: the context remembers it, plus one. */
inline int clusters_at_once(const void *kernel, int size, int threads, int64_t fast, int blocks,
                            const tg_call *call)
{
    int *const known = &call->clusters[(blocks - 1) * (TG_MOST_OF_CLUSTER + 1) + size];
    if (*known == 0) {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {unsigned(size), 1, 1};
        const cudaLaunchConfig_t config = {
            dim3(unsigned(size)), dim3(unsigned(threads)), size_t(fast), nullptr, &attribute, 1};
        int clusters = 0;
        if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config))
            (void)cudaGetLastError();
        *known = clusters + 1;
    }
    return *known - 1;
}

} // namespace tg

#endif
