/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of A and B to fast memory, for matrix instructions.
 *
 *   panel    [k][v]: one operand of a block, v its rows or columns. In line k, v changes places
 * with v ^ swizzle(k): then neither lanes that put what lies along k, each four lines below the
 *            other, nor lanes that read along v share a bank.
 *   carrier  16 bytes at a time, along k or along v, as the operand lies: neighbouring lanes read
 *            neighbouring addresses. At edges, element by element, and zeros beyond. */
#ifndef TG_HIP_MATRIX_STAGE_H
#define TG_HIP_MATRIX_STAGE_H

#include "geometry.h"

namespace tg::matrix
{

template <class Elem_, int K, int V> struct panel {
    using Elem = Elem_;
    static constexpr int deep = K, wide = V, elems = K * V;
    static constexpr int piece = 16 / sizeof(Elem); /* what a lane moves at once */
    static constexpr int banks = TG_BANK_BYTES / sizeof(Elem);
    static constexpr int across = int(tg_min(K / piece, banks / piece)); /* pieces side by side */
    static_assert(K % piece == 0 && V % banks == 0);

    static __device__ constexpr int swizzle(int k) { return k / piece % across * (banks / across); }
    static __device__ constexpr int at(int k, int v) { return k * V + (v ^ swizzle(k)); }
};

template <class Panel, int Threads> struct carrier {
    using Elem = typename Panel::Elem;
    static constexpr int N = Panel::piece, K = Panel::deep, V = Panel::wide;
    static constexpr int mine = Panel::elems / (N * Threads);
    static_assert(mine * N * Threads == Panel::elems);

    const Elem *slow; /* element (0, 0) of the tile, the same in all lanes */
    int64_t k_stride, v_stride;
    int v_left; /* of the matrix, from the tile's corner on; more than the tile: any */
    int thread;
    bool along_k, is_plain; /* plain: while k lasts, whole pieces, near enough for 32 bits */
    using vector = Elem __attribute__((ext_vector_type(N)));
    vector held[mine];

    __device__ carrier(const Elem *slow, int64_t k_stride, int64_t v_stride, int64_t left,
                       int thread)
        : slow(slow), k_stride(k_stride), v_stride(v_stride), v_left(int(tg_min(left, V))),
          thread(thread), along_k(k_stride == 1)
    {
        const int64_t line = along_k ? v_stride : k_stride;
        const int64_t far = INT32_MAX / (int64_t(sizeof(Elem)) * (along_k ? V : K));
        is_plain = (along_k || v_stride == 1) && v_left == V && line >= 0 && line <= far;
    }

    /* The first element of a lane's i-th piece. */
    template <bool AlongK> __device__ int first_k(int i) const
    {
        const int piece = i * Threads + thread;
        return AlongK ? piece % (K / N) * N : piece / (V / N);
    }
    template <bool AlongK> __device__ int first_v(int i) const
    {
        const int piece = i * Threads + thread;
        return AlongK ? piece / (K / N) : piece % (V / N) * N;
    }

    __device__ void fetch(int k_left)
    {
        if (is_plain && k_left >= K)
            along_k ? fetch_pieces<true>() : fetch_pieces<false>();
        else
            along_k ? fetch_elements<true>(k_left) : fetch_elements<false>(k_left);
        slow += K * k_stride;
    }

    template <bool AlongK> __device__ void fetch_pieces()
    {
        const unsigned line = unsigned(AlongK ? v_stride : k_stride);
#pragma unroll
        for (int i = 0; i < mine; i++) {
            const unsigned k = unsigned(first_k<AlongK>(i)), v = unsigned(first_v<AlongK>(i));
            __builtin_memcpy(&held[i], slow + (AlongK ? v * line + k : k * line + v),
                             sizeof held[i]);
        }
    }

    template <bool AlongK> __device__ void fetch_elements(int k_left)
    {
#pragma unroll
        for (int i = 0; i < mine; i++)
#pragma unroll
            for (int e = 0; e < N; e++) {
                const int k = first_k<AlongK>(i) + AlongK * e, v = first_v<AlongK>(i) + !AlongK * e;
                const Elem value =
                    slow[tg_min(k, k_left - 1) * k_stride + tg_min(v, v_left - 1) * v_stride];
                held[i][e] = k < k_left && v < v_left ? value : Elem(0);
            }
    }

    __device__ void put(Elem *fast) const
    {
        along_k ? put_along<true>(fast) : put_along<false>(fast);
    }

    template <bool AlongK> __device__ void put_along(Elem *fast) const
    {
#pragma unroll
        for (int i = 0; i < mine; i++) {
            Elem *to = fast + Panel::at(first_k<AlongK>(i), first_v<AlongK>(i));
            if constexpr (!AlongK)
                *reinterpret_cast<vector *>(to) = held[i];
            else
#pragma unroll
                for (int e = 0; e < N; e++)
                    to[e * V] = held[i][e];
        }
    }
};

} // namespace tg::matrix

#endif
