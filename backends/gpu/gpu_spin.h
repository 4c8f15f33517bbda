/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiply-adds on registers, all of them independent, in every lane of the device. */
#ifndef TG_GPU_SPIN_H
#define TG_GPU_SPIN_H

#include "call.h"

namespace tg
{

constexpr int spin_rows = 8, spin_threads = 256, spin_steps = 64;

template <class Elem> constexpr int spin_cols = 32 / sizeof(Elem); /* f64 takes two registers */

template <class Elem>
__global__ void __launch_bounds__(spin_threads) spinning(int rounds, Elem start, Elem *sink)
{
    Elem sum[spin_rows][spin_cols<Elem>], left[spin_rows], right[8];
#pragma unroll
    for (int i = 0; i < spin_rows; i++) {
        left[i] = start + Elem(i);
        right[i] = start - Elem(i) - Elem(threadIdx.x);
#pragma unroll
        for (int j = 0; j < spin_cols<Elem>; j++)
            sum[i][j] = Elem(0);
    }
    for (int round = 0; round < rounds; round++)
#pragma unroll 1
        for (int step = 0; step < spin_steps / 4; step++)
#pragma unroll
            for (int again = 0; again < 4; again++)
#pragma unroll
                for (int i = 0; i < spin_rows; i++)
#pragma unroll
                    for (int j = 0; j < spin_cols<Elem>; j++) {
                        const int turn = i % 2 ? spin_cols<Elem> - 1 - j : j;
                        sum[i][turn] += left[i] * right[turn];
                    }
    Elem all = Elem(0);
#pragma unroll
    for (int i = 0; i < spin_rows; i++)
#pragma unroll
        for (int j = 0; j < spin_cols<Elem>; j++)
            all += sum[i][j];
    if (all == Elem(-1)) /* never, but the compiler does not know */
        *sink = all;
}

template <class Elem> int spin(int units, double *flops, void *sink, void *stream)
{
    int rounds = sizeof(Elem) == 4 ? 128 : 64;
    const int blocks = units * 2;
    Elem start = Elem(0);
    Elem *to = static_cast<Elem *>(sink);
    void *arguments[] = {&rounds, &start, &to};
    *flops = 2.0 * blocks * spin_threads * rounds * spin_steps * spin_rows * spin_cols<Elem>;
    return GPU(LaunchKernel)(reinterpret_cast<const void *>(spinning<Elem>), dim3(blocks),
                             dim3(spin_threads), arguments, 0, static_cast<GPU(Stream_t)>(stream));
}

} // namespace tg

#endif
