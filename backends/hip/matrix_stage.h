/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of A and B to fast memory, for matrix instructions.
 *
 *   panel    lines of words: word (u, v) of one operand of a block has k = u * word_k and on, v is
 * its row or column. In line u, v changes places with v ^ swizzle(u): then neither lanes that put
 * what lies along k, each some lines below the other, nor lanes that read along v share a bank.
 *   carrier  16 bytes at a time, along k or along v, as the operand lies: neighbouring lanes read
 *            neighbouring addresses. At edges, element by element, and zeros beyond. */
#ifndef TG_HIP_MATRIX_STAGE_H
#define TG_HIP_MATRIX_STAGE_H

#include "matrix_inst.h"

namespace tg::matrix
{

template <class Op, int K, int V> struct panel {
    using op = Op;
    using word = typename Op::word;
    static constexpr int deep = K / Op::word_k, wide = V, words = deep * V;
    static constexpr int piece = 16 / sizeof(word); /* words that a lane moves at once */
    static constexpr int banks = TG_BANK_BYTES / sizeof(word);
    static constexpr int across =
        int(tg_min(deep / piece, banks / piece)); /* pieces of a line of k */
    static_assert(deep % piece == 0 && V % banks == 0);

    static __device__ constexpr int swizzle(int u) { return u / piece % across * (banks / across); }
    static __device__ constexpr int at(int u, int v) { return u * V + (v ^ swizzle(u)); }
};

template <class Panel, int Threads> struct carrier {
    using op = typename Panel::op;
    using word = typename Panel::word;
    /* elements are moved as bits */
    using Elem =
        std::conditional_t<sizeof(typename op::Elem) == 1, uint8_t,
                           std::conditional_t<sizeof(typename op::Elem) == 2, uint16_t, word>>;
    static constexpr int N = Panel::piece, word_k = op::word_k, K = Panel::deep * word_k;
    static constexpr int V = Panel::wide, mine = Panel::words / (N * Threads);
    static_assert(mine * N * Threads == Panel::words);
    static_assert(Threads % (V / N) == 0 && Threads % (Panel::deep / N) == 0);

    const Elem *slow; /* element (0, 0) of the tile, the same in all lanes */
    int64_t k_stride, v_stride;
    int v_left; /* of the matrix, from the tile's corner on; more than the tile: any */
    int thread;
    bool along_k, is_plain;     /* plain: while k lasts, whole pieces, near enough for 32 bits */
    vector<word, N> held[mine]; /* words along k; or, along v, word_k times N elements */

    __device__ carrier(const void *data, int64_t first, int64_t k_stride, int64_t v_stride,
                       int64_t left, int thread)
        : slow(static_cast<const Elem *>(data) + first), k_stride(k_stride), v_stride(v_stride),
          v_left(int(tg_min(left, V))), thread(thread), along_k(k_stride == 1)
    {
        const int64_t line = along_k ? v_stride : k_stride;
        const int64_t far = INT32_MAX / (int64_t(sizeof(Elem)) * (along_k ? V : K));
        is_plain = (along_k || v_stride == 1) && v_left == V && line >= 0 && line <= far;
    }

    /* The first word of a lane's i-th piece. */
    template <bool AlongK> static __device__ int first_u(int thread, int i)
    {
        const int piece = i * Threads + thread;
        return AlongK ? piece % (Panel::deep / N) * N : piece / (V / N);
    }
    template <bool AlongK> static __device__ int first_v(int thread, int i)
    {
        const int piece = i * Threads + thread;
        return AlongK ? piece / (Panel::deep / N) : piece % (V / N) * N;
    }

    __device__ __forceinline__ void fetch(int k_left)
    {
        if (is_plain && k_left >= K)
            along_k ? fetch_pieces<true>() : fetch_pieces<false>();
        else
            along_k ? fetch_elements<true>(k_left) : fetch_elements<false>(k_left);
        slow += K * k_stride;
    }

    template <bool AlongK> __device__ __forceinline__ void fetch_pieces()
    {
        constexpr int runs = AlongK ? 1 : word_k, length = N * word_k / runs;
        const unsigned line = unsigned(AlongK ? v_stride : k_stride);
        const auto place = [&](int thread, int i) {
            const unsigned k = unsigned(first_u<AlongK>(thread, i) * word_k),
                           v = unsigned(first_v<AlongK>(thread, i));
            return AlongK ? v * line + k : k * line + v;
        };
        const unsigned bytes_to_first = place(thread, 0) * unsigned(sizeof(Elem));
#pragma unroll
        for (int i = 0; i < mine; i++) { /* what differs between i is the same in all lanes */
            const char *from = reinterpret_cast<const char *>(slow + place(0, i)) + bytes_to_first;
            vector<Elem, N * word_k> got;
#pragma unroll
            for (int r = 0; r < runs; r++) {
                vector<Elem, length> run;
                __builtin_memcpy(&run, from + r * k_stride * int64_t(sizeof(Elem)), sizeof run);
#pragma unroll
                for (int e = 0; e < length; e++)
                    got[r * length + e] = run[e];
            }
            held[i] = __builtin_bit_cast(vector<word, N>, got);
        }
    }

    template <bool AlongK> __device__ __forceinline__ void fetch_elements(int k_left)
    {
        int thread = this->thread;
        asm volatile("" : "+v"(thread)); /* or all addresses are kept in registers, for the edges */
#pragma unroll
        for (int i = 0; i < mine; i++) {
            vector<Elem, N * word_k> got;
#pragma unroll
            for (int e = 0; e < N * word_k; e++) {
                const int k = first_u<AlongK>(thread, i) * word_k + (AlongK ? e : e / N);
                const int v = first_v<AlongK>(thread, i) + (AlongK ? 0 : e % N);
                const Elem value =
                    slow[tg_min(k, k_left - 1) * k_stride + tg_min(v, v_left - 1) * v_stride];
                got[e] = k < k_left && v < v_left ? value : Elem(0);
            }
            held[i] = __builtin_bit_cast(vector<word, N>, got);
        }
    }

    __device__ void put(word *fast) const
    {
        along_k ? put_along<true>(fast) : put_along<false>(fast);
    }

    template <bool AlongK> __device__ void put_along(word *fast) const
    {
#pragma unroll
        for (int i = 0; i < mine; i++) {
            word *to = fast + Panel::at(first_u<AlongK>(thread, i), first_v<AlongK>(thread, i));
            if constexpr (!AlongK)
                *reinterpret_cast<vector<word, N> *>(to) = woven(held[i]);
            else
#pragma unroll
                for (int e = 0; e < N; e++)
                    to[e * V] = held[i][e];
        }
    }

    /* Words of what was fetched along v: of each of the runs one element. */
    static __device__ vector<word, N> woven(vector<word, N> x)
    {
        if constexpr (word_k == 1)
            return x;
        const auto elems = __builtin_bit_cast(vector<Elem, N * word_k>, x);
        vector<Elem, N * word_k> words;
#pragma unroll
        for (int e = 0; e < N * word_k; e++)
            words[e] = elems[e % word_k * N + e / word_k];
        return __builtin_bit_cast(vector<word, N>, words);
    }
};

} // namespace tg::matrix

#endif
