/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of a tile from slow to fast memory, whatever its strides: in wide pieces where a unit
 * stride and the alignment let it, along either side, with zeros where the matrix has ended. */
#ifndef TG_CARRIER_H
#define TG_CARRIER_H

#include "geometry.h"

namespace tg
{

/* Copies that pass by the registers: Bytes (4, 8 or 16) from slow to fast memory, those from
 * `valid` on filled with zeros, in the background. Where nothing is valid, `anywhere` stands in. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
constexpr bool has_async_copy = true;
template <int Bytes>
__device__ void copy_async(void *fast, const void *slow, int valid, const void *anywhere)
{
    const unsigned to = unsigned(__cvta_generic_to_shared(fast));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
                 "l"(valid ? slow : anywhere), "n"(Bytes), "r"(valid)
                 : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending> __device__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
#elif !defined(TG_OWN_COPIES) /* tests/fibers.h has its own, which are late */
constexpr bool has_async_copy = false;
template <int Bytes> __device__ void copy_async(void *, const void *, int, const void *) {}
__device__ inline void commit_copies() {}
template <int Pending> __device__ void wait_for_copies() {}
#endif

/* A tile of U x V elements on its way from slow memory, element (u, v) at slow[u * su + v * sv], to
 * fast[u * V + v]. Each thread carries pieces of N elements, along v or along u, whichever lets the
 * block read slow memory in the longest runs. */
template <class Elem, int U, int V, bool KAlongU, int N, int Threads> struct carrier {
    static constexpr int pieces_v = U * (V / N), pieces_u = (U + N - 1) / N * V;
    static constexpr int most = pieces_v > pieces_u ? pieces_v : pieces_u;
    static constexpr int mine = (most + Threads - 1) / Threads;
    static_assert(V % N == 0);

    enum way { VECTORS_V, VECTORS_U, LANES_U, LANES_V };

    const Elem *slow;
    int64_t su, sv;
    int left_u, left_v; /* of the matrix, from the tile's corner on; more than the tile: any */
    way how;
    int thread;
    pack<Elem, N> held[mine];

    __device__ carrier(const Elem *slow, int64_t su, int64_t sv, int64_t left, int thread)
        : slow(slow), su(su), sv(sv), left_u(int(tg_min(left, U))), left_v(int(tg_min(left, V))),
          thread(thread)
    {
        const bool is_aligned = reinterpret_cast<uintptr_t>(slow) % sizeof held[0] == 0;
        how = sv == 1 && is_aligned && su % N == 0                 ? VECTORS_V
              : su == 1 && is_aligned && sv % N == 0 && U % N == 0 ? VECTORS_U
              : sv == 1                                            ? LANES_V
                                                                   : LANES_U;
    }

    /* The first element of a piece; pieces beyond the tile have u >= U. */
    __device__ void corner(int piece, int &u, int &v) const
    {
        if (how == VECTORS_V) {
            u = piece / (V / N);
            v = piece % (V / N) * N;
        } else if (how == LANES_U) {
            u = piece % U;
            v = piece / U * N;
            u = v < V ? u : U;
        } else { /* the threads run along v, the piece along u */
            v = piece % V;
            u = piece / V * N;
        }
    }
    __device__ bool along_v() const { return how == VECTORS_V || how == LANES_U; }

    __device__ pack<Elem, N> load(int u, int v) const
    {
        const int du = !along_v(), dv = along_v();
        const Elem *from = slow + u * su + v * sv;
        if (how <= VECTORS_U && u < U && u + du * (N - 1) < left_u && v + dv * (N - 1) < left_v)
            return *reinterpret_cast<const pack<Elem, N> *>(from);
        pack<Elem, N> piece;
#pragma unroll
        for (int e = 0; e < N; e++)
            piece.at[e] = u < U && u + e * du < left_u && v + e * dv < left_v
                              ? from[e * (du * su + dv * sv)]
                              : Elem(0);
        return piece;
    }

    __device__ void place(Elem *fast, int u, int v, const pack<Elem, N> &piece) const
    {
        if (u >= U)
            return;
        if (along_v()) {
            *reinterpret_cast<pack<Elem, N> *>(fast + u * V + v) = piece;
            return;
        }
#pragma unroll
        for (int e = 0; e < N; e++)
            if (u + e < U)
                fast[(u + e) * V + v] = piece.at[e];
    }

    __device__ void fetch()
    {
#pragma unroll
        for (int i = 0; i < mine; i++) {
            int u, v;
            corner(thread + i * Threads, u, v);
            held[i] = load(u, v);
        }
    }

    __device__ void put(Elem *fast) const
    {
#pragma unroll
        for (int i = 0; i < mine; i++) {
            int u, v;
            corner(thread + i * Threads, u, v);
            place(fast, u, v, held[i]);
        }
    }

    /* From slow to fast memory without a stay in registers, where the device can copy so. */
    __device__ void move(Elem *fast) const
    {
        if constexpr (has_async_copy)
            return how == VECTORS_V ? copy_vectors(fast) : copy_elements(fast);
#pragma unroll 1
        for (int i = 0; i < mine; i++) {
            int u, v;
            corner(thread + i * Threads, u, v);
            place(fast, u, v, load(u, v));
        }
    }

    __device__ void copy_vectors(Elem *fast) const
    {
#pragma unroll 1
        for (int i = 0; i < mine; i++) {
            int u, v;
            corner(thread + i * Threads, u, v);
            const bool is_whole = u < left_u && v + N <= left_v,
                       is_past = u >= left_u || v >= left_v;
            if (u >= U)
                break;
            if (is_whole || is_past)
                copy_async<N * sizeof(Elem)>(fast + u * V + v, slow + u * su + v * sv,
                                             is_whole ? int(N * sizeof(Elem)) : 0, slow);
            else
                for (int e = 0; e < N; e++)
                    copy_async<sizeof(Elem)>(fast + u * V + v + e, slow + u * su + (v + e) * sv,
                                             v + e < left_v ? int(sizeof(Elem)) : 0, slow);
        }
    }

    __device__ void copy_elements(Elem *fast) const
    {
        const int du = !along_v(), dv = along_v();
#pragma unroll 1
        for (int i = 0; i < mine * N; i++) {
            int u, v;
            corner(thread + i / N * Threads, u, v);
            u += i % N * du;
            v += i % N * dv;
            const bool is_valid = u < left_u && v < left_v;
            if (u < U)
                copy_async<sizeof(Elem)>(fast + u * V + v, slow + u * su + v * sv,
                                         is_valid ? int(sizeof(Elem)) : 0, slow);
        }
    }

    /* Before a tile is taken: how much of k is left. */
    __device__ void set_left(int64_t k)
    {
        if (KAlongU)
            left_u = int(tg_min(k, U));
        else
            left_v = int(tg_min(k, V));
    }
    __device__ void advance() { slow += KAlongU ? U * su : V * sv; }
};

} // namespace tg

#endif
