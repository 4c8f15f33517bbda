/* SPDX-License-Identifier: Apache-2.0
 *
 * Division on the device by what the host knows. */
#ifndef TG_DIVISOR_H
#define TG_DIVISOR_H

#include <stdint.h>

#include <cuda_runtime.h>

namespace tg_hopper
{

/* n / by == n * times >> shift for all n < 2^31 (Granlund and
 * Montgomery, Division by Invariant Integers using Multiplication). */
struct divisor {
    unsigned by, times, shift;

    divisor() = default;
    explicit divisor(int64_t by) : by((unsigned)by), times(0), shift(31)
    {
        while (by > (int64_t)1 << (shift - 31))
            shift++;
        times = (unsigned)(((uint64_t)1 << shift) / by + 1);
    }
    __device__ unsigned of(unsigned n) const { return (unsigned)((uint64_t)n * times >> shift); }
};

} /* namespace tg_hopper */

#endif
