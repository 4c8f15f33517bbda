/* SPDX-License-Identifier: Apache-2.0
 *
 * AMD's matrix instructions, and which lane holds what of one.
 *
 * A word of 4 or 8 bytes holds one element of A or B, or several short ones with neighbouring k. Of
 * A a lane brings row l % m, of B column l % n, in `words` words whose k no other group l / m has;
 * it keeps column l % n of C, of rows that the groups take in turn, `run` at a time:
 *
 *   16x16x4 of 64 lanes, f32    A      k: 0     1     2     3        C   rows 0..3   lanes  0..15
 *                               row r  l: r  r+16  r+32  r+48             4..7        16..31 ...
 *
 * Which k a word has is left to the caller, as long as A and B agree. On RDNA 3 all groups bring
 * the same. Sources: AMD's matrix instruction calculator, the ISA manuals. */
#ifndef TG_HIP_MATRIX_INST_H
#define TG_HIP_MATRIX_INST_H

#include <type_traits>

#include "tile.h"

namespace tg::matrix
{

/* 0x90a for "gfx90a". */
constexpr int target_number(const char *name)
{
    int number = 0;
    for (const char *at = name + 3; *at; at++)
        number = number * 16 + (*at >= 'a' ? *at - 'a' + 10 : *at - '0');
    return number;
}
#ifdef __amdgcn_processor__
constexpr int target_compiled_for = target_number(__amdgcn_processor__);
#else
constexpr int target_compiled_for = 0; /* the host */
#endif
constexpr bool is_rdna3 = target_compiled_for >> 8 == 0x11;

constexpr int lanes = TG_WAVE;

/* The compiler's own type for it is too new for ROCm 5. Rounded to the nearest, ties to even. */
struct bf16 {
    uint16_t bits;

    bf16() = default;
    __device__ __forceinline__ explicit bf16(float x)
    {
        const uint32_t word = __builtin_bit_cast(uint32_t, x);
        const uint32_t is_odd = word >> 16 & 1, quiet = word >> 16 | 0x40;
        bits = uint16_t(x != x ? quiet : (word + 0x7fff + is_odd) >> 16);
    }
    __device__ __forceinline__ explicit operator float() const
    {
        return __builtin_bit_cast(float, uint32_t(bits) << 16);
    }
};

/* In what its products are summed. */
template <class Elem>
using sum_of = std::conditional_t<std::is_same_v<Elem, double>, double,
                                  std::conditional_t<std::is_integral_v<Elem>, uint32_t, float>>;

template <class X, int Count> using vector = X __attribute__((ext_vector_type(Count)));

template <tg_mnk I, class Elem_> struct inst {
    using Elem = Elem_;
    static constexpr int m = I.m, n = I.n, k = I.k;
    static constexpr bool is_long = sizeof(Elem) == 8 || sizeof(Elem) == 2 || m * k == 32 * 16;
    using word = std::conditional_t<is_long, uint64_t, uint32_t>;
    static constexpr int word_k = sizeof(word) / sizeof(Elem), outputs = m * n / lanes;
    static constexpr int groups = is_rdna3 ? 1 : lanes / m, words = k / (groups * word_k);
    static constexpr int run = lanes == 64 ? (sizeof(Elem) == 8 ? 1 : 4) : is_rdna3 ? 1 : 8;

    using sums =
        vector<std::conditional_t<std::is_integral_v<Elem>, int32_t, sum_of<Elem>>, outputs>;

    /* Which row of A a lane brings, which column of B. */
    static __device__ int a_row(int lane) { return lane % m; }
    static __device__ int b_col(int lane) { return lane % n; }
    /* The row of C of a lane's output: its first one's, and a distance that all lanes share. */
    static __device__ int first_row(int lane) { return lane / n * run; }
    static __device__ constexpr int row_past_first(int output)
    {
        return output / run * run * (lanes / n) + output % run;
    }

    /* What a lane brings, as the instruction's argument. */
    template <class X> static __device__ X as(const word (&x)[words])
    {
        return __builtin_bit_cast(X, x);
    }

    static constexpr int rows_at_once = 1;
    template <int Cols>
    static __device__ void multiply(sums (*c)[Cols], const word (*a)[words],
                                    const word (&b)[Cols][words])
    {
#pragma unroll
        for (int j = 0; j < Cols; j++)
            multiply(c[0][j], a[0], b[j]);
    }

    static __device__ void multiply(sums &c, const word (&a)[words], const word (&b)[words])
    {
        if constexpr (lanes == 32)
            multiply_rdna(c, a, b);
        else if constexpr (std::is_same_v<Elem, double>)
            c = __builtin_amdgcn_mfma_f64_16x16x4f64(as<double>(a), as<double>(b), c, 0, 0, 0);
        else if constexpr (std::is_same_v<Elem, float> && m == 32)
            c = __builtin_amdgcn_mfma_f32_32x32x2f32(as<float>(a), as<float>(b), c, 0, 0, 0);
        else if constexpr (std::is_same_v<Elem, float>)
            c = __builtin_amdgcn_mfma_f32_16x16x4f32(as<float>(a), as<float>(b), c, 0, 0, 0);
        else if constexpr (std::is_same_v<Elem, int8_t>)
            multiply_i8(c, a, b);
        else
            multiply_half(c, a, b);
    }

    static __device__ void multiply_half(sums &c, const word (&a)[words], const word (&b)[words])
    {
        using half4 = vector<_Float16, 4>;
        using bits4 = vector<short, 4>;
        if constexpr (std::is_same_v<Elem, _Float16> && m == 32)
            c = __builtin_amdgcn_mfma_f32_32x32x8f16(as<half4>(a), as<half4>(b), c, 0, 0, 0);
        else if constexpr (std::is_same_v<Elem, _Float16>)
            c = __builtin_amdgcn_mfma_f32_16x16x16f16(as<half4>(a), as<half4>(b), c, 0, 0, 0);
        else if constexpr (m == 32)
            c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(as<bits4>(a), as<bits4>(b), c, 0, 0, 0);
        else
            c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as<bits4>(a), as<bits4>(b), c, 0, 0, 0);
    }

    static __device__ void multiply_i8(sums &c, const word (&a)[words], const word (&b)[words])
    {
        if constexpr (k == 8)
            c = __builtin_amdgcn_mfma_i32_32x32x8i8(as<int>(a), as<int>(b), c, 0, 0, 0);
        else
            c = __builtin_amdgcn_mfma_i32_32x32x16_i8(as<long>(a), as<long>(b), c, 0, 0, 0);
    }

    static __device__ void multiply_rdna(sums &c, const word (&a)[words], const word (&b)[words])
    {
        using half = vector<_Float16, words * word_k>;
        using bits = vector<short, words * word_k>;
        using four = vector<int, words>; /* i8 each */
        if constexpr (is_rdna3 && std::is_same_v<Elem, _Float16>)
            c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as<half>(a), as<half>(b), c);
        else if constexpr (is_rdna3 && std::is_same_v<Elem, bf16>)
            c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as<bits>(a), as<bits>(b), c);
        else if constexpr (is_rdna3)
            c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, as<four>(a), true, as<four>(b), c,
                                                           false);
        else if constexpr (std::is_same_v<Elem, _Float16>)
            c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(as<half>(a), as<half>(b), c);
        else if constexpr (std::is_same_v<Elem, bf16>)
            c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as<bits>(a), as<bits>(b), c);
        else
            c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, as<four>(a), true,
                                                                 as<four>(b), c, false);
    }
};

/* The FMAs of a wave's lanes as one instruction: lane (r, c) of their grid brings row r of A and
 * column c of B, and keeps what they make. */
template <tg_mnk I, class Elem_>
requires(I.k == 1) struct inst<I, Elem_> {
    using Elem = Elem_;
    using word = Elem;
    static constexpr int m = I.m, n = I.n, k = 1, word_k = 1, outputs = 1, groups = 1, words = 1;

    struct sums {
        Elem of;
        __device__ Elem operator[](int) const { return of; }
    };

    static __device__ int a_row(int lane) { return lane / n; }
    static __device__ int b_col(int lane) { return lane % n; }
    static __device__ int first_row(int lane) { return lane / n; }
    static __device__ constexpr int row_past_first(int) { return 0; }

    /* Two columns at once, for which some targets have an instruction. It can take either register
     * of a pair for both, which the compiler finds if it does not know of what the pair is part. */
    static constexpr int rows_at_once = 2;
    template <int Cols>
    static __device__ void multiply(sums (*c)[Cols], const word (*a)[1], const word (&b)[Cols][1])
    {
        using pair = vector<Elem, 2>;
        pair left = {a[0][0], a[1][0]};
        asm("" : "+v"(left));
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < Cols; j += 2) {
                pair sum, right;
                __builtin_memcpy(&sum, &c[i][j], sizeof sum);
                __builtin_memcpy(&right, &b[j], sizeof right);
                sum += left[i] * right;
                __builtin_memcpy(&c[i][j], &sum, sizeof sum);
            }
    }
};

} // namespace tg::matrix

#endif
