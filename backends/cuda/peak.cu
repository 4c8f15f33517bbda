/* SPDX-License-Identifier: Apache-2.0
 *
 * The peak probe: all units do independent multiply-adds on registers and nothing else, of f64 with
 * matrix instructions, where the rows of the table have them. The banks of the registers matter: an
 * operand that stays the same for several instructions in a row is read once, and then no two reads
 * collide. */
#include "gpu.h"

#include "gpu_spin.h"
#include "matrix_gemm.h"

extern "C" int tg_cuda_code(int *code);

namespace tg::matrix
{

constexpr int spin_warps = 8, spin_sums = 8;

/* Nothing in code for architectures whose instructions have other rows. */
template <tg_mnk I>
__global__ void __launch_bounds__(lanes *spin_warps)
    spinning(int rounds, double start, double *sink)
{
    if constexpr (I.m == inst_rows(arch)) {
        fragment<I.k, I.m / 8> x;
        fragment<I.k, 1> y;
        double sum[spin_sums][I.m / 8][2] = {};
#pragma unroll
        for (int q = 0; q < I.k / 4; q++) {
            y.at[q][0] = start + q + threadIdx.x;
#pragma unroll
            for (int part = 0; part < I.m / 8; part++)
                x.at[q][part] = start - 2 * q - part;
        }
        for (int round = 0; round < rounds; round++)
#pragma unroll
            for (int i = 0; i < spin_sums; i++)
                multiply<I, I.k>(sum[i], x, y);
        double all = 0;
#pragma unroll
        for (int i = 0; i < spin_sums; i++)
#pragma unroll
            for (int part = 0; part < I.m / 8; part++)
                all += sum[i][part][0] + sum[i][part][1];
        if (all == -1) /* never, but the compiler does not know */
            *sink = all;
    }
}

template <tg_mnk I> int spin(int units, double *flops, void *sink, void *stream)
{
    int rounds = (1 << 20) / (I.m * I.n * I.k);
    const int blocks = 2 * units;
    double start = 0, *to = static_cast<double *>(sink);
    void *arguments[] = {&rounds, &start, &to};
    *flops = 2.0 * blocks * spin_warps * rounds * spin_sums * I.m * I.n * I.k;
    return cudaLaunchKernel(spinning<I>, dim3(blocks), dim3(lanes * spin_warps), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}

} // namespace tg::matrix

extern "C" int tg_cuda_spin(tg_type type, int units, double *flops, void *sink, void *stream)
{
    int code = 0;
    if (const int error = tg_cuda_code(&code))
        return error;
    const int rows = type == TG_F64 ? tg::matrix::inst_rows(10 * code) : 0;
    return rows == 16       ? tg::matrix::spin<tg_mnk{16, 8, 16}>(units, flops, sink, stream)
           : rows == 8      ? tg::matrix::spin<tg_mnk{8, 8, 4}>(units, flops, sink, stream)
           : type == TG_F64 ? tg::spin<double>(units, flops, sink, stream)
                            : tg::spin<float>(units, flops, sink, stream);
}
