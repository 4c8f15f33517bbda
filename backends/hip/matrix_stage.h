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

/* What is the same in all lanes, in registers of which a wave has one. */
template <class X> __device__ X same_in_all(X x)
{
    int words[sizeof(X) / sizeof(int)];
    __builtin_memcpy(words, &x, sizeof x);
    for (int &word : words)
        word = __builtin_amdgcn_readfirstlane(word);
    __builtin_memcpy(&x, words, sizeof x);
    return x;
}

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
    static constexpr int deep = Panel::deep / N, wide = V / N; /* pieces in a line */
    /* from a lane's piece to its next one, the former along v, the latter along k */
    static constexpr int next_k = Threads / wide * word_k, next_v = Threads / deep;
    static_assert(mine * N * Threads == Panel::words);
    static_assert(Threads % wide == 0 && Threads % deep == 0);

    /* What is on its way: words along k; or, along v, word_k times N elements. Runs of two bytes
     * have a register each until they are woven: to join them earlier is to wait for them. */
    static constexpr bool is_narrow = sizeof(Elem) == 1 && N == 2;
    using cargo = std::conditional_t<is_narrow, vector<uint32_t, word_k>, vector<word, N>>;
    using four = vector<uint32_t, 4>;

    const Elem *slow; /* element (0, 0) of the tile, the same in all lanes */
    int64_t k_stride, v_stride;
    int v_left;             /* of the matrix, from the tile's corner on; more than it: any */
    bool along_k, is_plain; /* plain: while k lasts, whole pieces, near enough for 32 bits */
    int k, v, thread;       /* where a lane's first piece begins, and the lane */
    int to[mine];           /* words of the stage */
    cargo held[mine];

    __device__ carrier(const void *data, int64_t first, int64_t k_stride, int64_t v_stride,
                       int64_t left, int thread)
        : slow(static_cast<const Elem *>(data) + first), k_stride(k_stride), v_stride(v_stride),
          v_left(int(tg_min(left, V))), along_k(k_stride == 1), thread(thread)
    {
        const int64_t line = along_k ? v_stride : k_stride;
        const int64_t far = INT32_MAX / (int64_t(sizeof(Elem)) * (along_k ? V : K));
        is_plain = (along_k || v_stride == 1) && v_left == V && line >= 0 && line <= far;
        const int u = along_k ? thread % deep * N : thread / wide;
        v = along_k ? thread / deep : thread % wide * N;
        k = u * word_k;
#pragma unroll
        for (int i = 0; i < mine; i++)
            to[i] =
                along_k ? Panel::at(u, v + i * next_v) : Panel::at(u + i * (next_k / word_k), v);
    }

    /* Where registers are full, a lane finds its place anew: A and B have the lane in common. */
    __device__ __forceinline__ void find_place()
    {
        if constexpr (target_compiled_for == 0x906 && sizeof(Elem) == 8) {
            int lane = thread;
            asm volatile("" : "+v"(lane));
            v = along_k ? lane / deep : lane % wide * N;
            k = (along_k ? lane % deep * N : lane / wide) * word_k;
        }
    }

    __device__ __forceinline__ void fetch(int k_left)
    {
        find_place();
        if (is_plain && k_left >= K)
            along_k ? fetch_pieces<true>() : fetch_pieces<false>();
        else
            fetch_elements(k_left);
        slow += K * k_stride;
    }

    template <bool AlongK> __device__ __forceinline__ void fetch_pieces()
    {
        constexpr int runs = AlongK ? 1 : word_k, length = N * word_k / runs;
        constexpr unsigned size = sizeof(Elem), next = AlongK ? next_v : next_k;
        const unsigned line = unsigned(AlongK ? v_stride : k_stride) * size;
        unsigned to_first = AlongK ? unsigned(v) * line + unsigned(k) * size
                                   : unsigned(k) * line + unsigned(v) * size;
        asm volatile("" : "+v"(to_first)); /* or it is widened to 64 bits outside of the loop */
        const char *piece = reinterpret_cast<const char *>(slow);
#pragma unroll
        for (int i = 0; i < mine; i++, piece += next * line) {
            vector<Elem, N * word_k> got;
            const char *at = piece;
#pragma unroll
            for (int r = 0; r < runs; r++, at += k_stride * int64_t(size)) {
                const vector<Elem, length> run = load<length>(same_in_all(at), to_first);
                if constexpr (is_narrow && AlongK)
                    held[i] = with_words(__builtin_bit_cast(four, run));
                else if constexpr (is_narrow)
                    held[i][r] = __builtin_bit_cast(uint16_t, run);
#pragma unroll
                for (int e = 0; e < length; e++)
                    got[r * length + e] = run[e];
            }
            if constexpr (!is_narrow)
                held[i] = __builtin_bit_cast(cargo, got);
        }
    }

    /* The rest is whatever it is: zeros would take an instruction each. */
    static __device__ __forceinline__ cargo with_words(four words)
    {
        cargo all;
#pragma unroll
        for (int e = 0; e < word_k; e++) {
            uint32_t any;
            asm volatile("" : "=v"(any));
            all[e] = e < 4 ? words[e % 4] : any;
        }
        return all;
    }

    /* The wave, not each lane, adds up the address that the lanes' distance is from. */
    template <int Count>
    static __device__ __forceinline__ vector<Elem, Count> load(const char *from, unsigned distance)
    {
        using run = vector<Elem, Count> __attribute__((aligned(sizeof(Elem))));
        using slow_memory = const __attribute__((address_space(1))) char *;
        return *reinterpret_cast<const __attribute__((address_space(1))) run *>(
            reinterpret_cast<slow_memory>(reinterpret_cast<uintptr_t>(from)) + distance);
    }

    __device__ __forceinline__ void fetch_elements(int k_left)
    {
        /* as if new, or all addresses are kept in registers, for the edges */
        const int64_t k_stride = same_in_all(this->k_stride),
                      v_stride = same_in_all(this->v_stride);
        int first_k = k, first_v = v;
        asm volatile("" : "+v"(first_k), "+v"(first_v));
#pragma unroll
        for (int i = 0; i < mine; i++) {
            int k = first_k + (along_k ? 0 : i * next_k), v = first_v + (along_k ? i * next_v : 0);
            const Elem *from = slow + k * k_stride + v * v_stride;
            vector<Elem, N * word_k> got;
#pragma unroll
            for (int e = 0; e < N * word_k; e++) {
                const int back = e % N == N - 1 ? N - 1 : -1; /* to the run's begin, or on */
                got[e] = *(k < k_left && v < v_left ? from : slow);
                from += along_k ? k_stride : back < 0 ? v_stride : k_stride - back * v_stride;
                k += along_k || back > 0;
                v -= along_k ? 0 : back;
                if (back > 0)
                    asm volatile("" : "+v"(k)); /* or every comparison is kept in registers */
            }
            k -= along_k ? N * word_k : word_k;
#pragma unroll
            for (int e = 0; e < N * word_k; e++) {
                got[e] = k < k_left ? got[e] : Elem(0);
                k += along_k || e % N == N - 1;
                if (e % N == N - 1)
                    asm volatile("" : "+v"(k));
            }
            if constexpr (!is_narrow)
                held[i] = __builtin_bit_cast(cargo, got);
            else if (along_k)
                held[i] = with_words(__builtin_bit_cast(four, got));
            else
                held[i] = __builtin_convertvector(__builtin_bit_cast(vector<uint16_t, word_k>, got),
                                                  cargo);
        }
    }

    __device__ void put(word *fast) const { along_k ? put_along_k(fast) : put_along_v(fast); }

    __device__ void put_along_k(word *fast) const
    {
#pragma unroll
        for (int i = 0; i < mine; i++) {
            vector<word, N> of_k;
            if constexpr (is_narrow)
                of_k = __builtin_bit_cast(decltype(of_k),
                                          four{held[i][0], held[i][1], held[i][2], held[i][3]});
            else
                of_k = held[i];
#pragma unroll
            for (int e = 0; e < N; e++)
                fast[to[i] + e * V] = of_k[e];
        }
    }

    __device__ void put_along_v(word *fast) const
    {
#pragma unroll
        for (int i = 0; i < mine; i++)
            *reinterpret_cast<vector<word, N> *>(fast + to[i]) = woven(held[i]);
    }

    /* Words of what was fetched along v: of each of the runs one element. */
    static __device__ vector<word, N> woven(cargo x)
    {
        if constexpr (word_k == 1) {
            return x;
        } else if constexpr (sizeof(Elem) == 1) {
            return __builtin_bit_cast(vector<word, N>, woven_bytes(x));
        } else {
            const auto elems = __builtin_bit_cast(vector<Elem, N * word_k>, x);
            vector<Elem, N * word_k> words;
#pragma unroll
            for (int e = 0; e < N * word_k; e++)
                words[e] = elems[e % word_k * N + e / word_k];
            return __builtin_bit_cast(vector<word, N>, words);
        }
    }

    /* Runs of 2 or 4 of them: the compiler takes nearly three times as many instructions. */
    static __device__ vector<uint32_t, 4> woven_bytes(cargo runs)
    {
        const auto bytes = [](uint32_t low, uint32_t high, uint32_t which) {
            return __builtin_amdgcn_perm(high, low, which);
        };
        const auto pairs = [&](four x, uint32_t which, uint32_t other) {
            return four{bytes(x[0], x[1], which), bytes(x[2], x[3], which),
                        bytes(x[0], x[1], other), bytes(x[2], x[3], other)};
        };
        constexpr uint32_t low_bytes = 0x05010400, high_bytes = 0x07030602; /* in turn */
        constexpr uint32_t low_halves = 0x05040100, high_halves = 0x07060302;
        if constexpr (is_narrow) {
            const four two = {
                bytes(runs[0], runs[1], low_bytes), bytes(runs[2], runs[3], low_bytes),
                bytes(runs[4], runs[5], low_bytes), bytes(runs[6], runs[7], low_bytes)};
            return pairs(two, low_halves, high_halves);
        } else {
            const four halves = pairs(__builtin_bit_cast(four, runs), low_bytes, high_bytes);
            const four words = pairs(halves, low_halves, high_halves);
            return four{words[0], words[2], words[1], words[3]};
        }
    }
};

} // namespace tg::matrix

#endif
