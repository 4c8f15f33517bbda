/* SPDX-License-Identifier: Apache-2.0
 *
 * AMD's matrix instructions, and which lane holds what of one.
 *
 * The lanes are `groups` times as many as an instruction has rows: lane l brings row l % m of A and
 * column l % n of B, at the k of its group l / m, and keeps column l % n of C:
 *
 *   16x16x4 of 64 lanes     A  k: 0  1  2  3        C  rows  0..3   lanes 0..15
 *                       row r  l: r  r+16 ...             4..7         16..31 ...
 *
 * The rows of C that a lane has are runs, which the groups take in turn. */
#ifndef TG_HIP_MATRIX_INST_H
#define TG_HIP_MATRIX_INST_H

#include "tile.h"

namespace tg::matrix
{

/* 0x90a for "gfx90a"; of the host: 0. */
constexpr int target_number(const char *name)
{
    int number = 0;
    for (const char *at = name; *at && at < name + 3; at++)
        if (*at != "gfx"[at - name])
            return 0;
    for (const char *at = *name ? name + 3 : name; *at; at++)
        number = number * 16 + (*at >= 'a' ? *at - 'a' + 10 : *at - '0');
    return number;
}
#ifdef __amdgcn_processor__
constexpr int target_compiled_for = target_number(__amdgcn_processor__);
#else
constexpr int target_compiled_for = 0;
#endif

constexpr int lanes = TG_WAVE;

template <tg_mnk I, class Elem> struct inst {
    static constexpr int m = I.m, n = I.n, k = I.k;
    static constexpr int groups = lanes / m, outputs = m * n / lanes;
    static constexpr int run = sizeof(Elem) == 8 ? 1 : 4; /* rows of C */

    using sums = Elem __attribute__((ext_vector_type(outputs)));

    /* The row of C of a lane's output: its first one's, and a distance that all lanes share. */
    static __device__ int first_row(int lane) { return lane / n * run; }
    static __device__ constexpr int row_past_first(int output)
    {
        return output / run * run * groups + output % run;
    }

    static __device__ void multiply(sums &c, Elem a, Elem b)
    {
        if constexpr (sizeof(Elem) == 8)
            c = __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, c, 0, 0, 0);
        else if constexpr (m == 32)
            c = __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, c, 0, 0, 0);
        else
            c = __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, 0, 0, 0);
    }
};

} // namespace tg::matrix

#endif
