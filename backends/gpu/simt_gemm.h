/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiled product on a GPU, for every row of the table whose inst is FMA: one text for CUDA, HIP
 * and, with a few macros, one host thread per lane (tests/test_simt.cpp).
 *
 *   slow memory          fast memory               registers of a lane           slow memory
 *   A, B  --- fetch -->  pieces  --- put --->  A tile, B tile  --- multiply -->  sum  --- store -->
 * C
 *
 *   A tile: [block.k][block.m] for TG_OUTER_T, else [block.m][block.k]     B tile:
 * [block.k][block.n]
 *
 * Tiles are always full: fetch puts zeros where the matrix ends, store leaves out what is beyond.
 * The text knows no hardware width: it synchronises with block barriers only. */
#ifndef TG_SIMT_GEMM_H
#define TG_SIMT_GEMM_H

#include "call.h"

namespace tg
{

template <class Elem, int N> struct alignas(N * sizeof(Elem)) pack {
    Elem at[N];
};

/* ------------------------------------------------------------------------------- who and where */

template <tg_tile T, tg_mn Lanes> struct geometry {
    static constexpr tg_mn unit = tg_tile_unit(T, Lanes), rep = tg_tile_rep(T, Lanes);
    static constexpr int lanes = Lanes.m * Lanes.n;
    static constexpr int threads = int(tg_tile_threads(T, Lanes));
    static constexpr int rows = rep.m * T.thread.m, cols = rep.n * T.thread.n; /* of a lane's sum */
    static constexpr int slice_k = T.block.k / T.slices;

    /* Blocks that a multiprocessor is to run at once: as many as its registers hold. */
    static constexpr int blocks(int elem_bytes)
    {
        const int fragments = (rows + cols) * (T.stages > 1 ? 2 : 1);
        const int registers = (rows * cols + fragments) * elem_bytes / 4 + 64;
        return int(tg_clamp(65536 / (registers * threads), 1, tg_min(2048 / threads, 16)));
    }

    int slice, warp_m, warp_n, lane_m, lane_n;

    /* Neighbouring lanes differ in row and column both: then no two neighbours read one address,
     * which would cost the fragment loads of current GPUs a cycle. */
    __device__ explicit geometry(int thread)
    {
        const int warp = thread / lanes, lane = thread % lanes;
        constexpr tg_mn warps = tg_tile_warps(T);
        slice = warp / (warps.m * warps.n);
        warp_m = warp % (warps.m * warps.n) / warps.n;
        warp_n = warp % warps.n;
        lane_m = lane % Lanes.m;
        lane_n = (lane / Lanes.m + lane) % Lanes.n;
    }

    /* Which row and column of the block element (i, j) of this lane's sum is: its first one's, and
     * a distance that is the same for all lanes. */
    __device__ static constexpr int row_past_first(int i)
    {
        return tg_tile_row(T, Lanes, 0, i / T.thread.m, 0, i % T.thread.m);
    }
    __device__ static constexpr int col_past_first(int j)
    {
        return tg_tile_col(T, Lanes, 0, j / T.thread.n, 0, j % T.thread.n);
    }
    __device__ int row(int i) const
    {
        return tg_tile_row(T, Lanes, warp_m, 0, lane_m, 0) + row_past_first(i);
    }
    __device__ int col(int j) const
    {
        return tg_tile_col(T, Lanes, warp_n, 0, lane_n, 0) + col_past_first(j);
    }
};

/* Block number -> which tile of C, which part of k, which item. Tiles go down columns of 8, so that
 * blocks that run at the same time share rows of A and columns of B in the cache. */
struct position {
    int64_t item, row, col, k_begin, k_end;
    int split;

    __device__ position(const tg_call &p, const tg_tile &t)
    {
        const int64_t block = p.first_block + blockIdx.x;
        const int64_t tiles_m = tg_ceil_div(p.m, t.block.m), tiles_n = tg_ceil_div(p.n, t.block.n);
        const int64_t tile = block % (tiles_m * tiles_n), rest = block / (tiles_m * tiles_n);
        const int64_t group = tile / (8 * tiles_n), rows = tg_min(8, tiles_m - 8 * group);
        row = (8 * group + tile % (8 * tiles_n) % rows) * t.block.m;
        col = tile % (8 * tiles_n) / rows * t.block.n;
        split = int(rest % p.splits);
        item = rest / p.splits;
        const int64_t steps = tg_ceil_div(p.k, t.block.k);
        k_begin = steps * split / p.splits * t.block.k;
        k_end = tg_min(steps * (split + 1) / p.splits * t.block.k, p.k);
    }
};

inline int64_t block_count(const tg_call &p, const tg_tile &t)
{
    return tg_ceil_div(p.m, t.block.m) * tg_ceil_div(p.n, t.block.n) * p.splits * p.batch;
}

/* ------------------------------------------------------------------------------------- staging */

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
#else
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

/* ----------------------------------------------------------------------------------- multiply */

/* One lane's sum, and how the staged tiles are multiplied into it. */
template <tg_tile T, class Elem, tg_mn Lanes> struct lane_sum {
    using geo = geometry<T, Lanes>;
    static constexpr bool is_k_major = T.form == TG_OUTER_T;
    static constexpr int piece_m = is_k_major && T.thread.m % T.vec == 0 ? T.vec : 1;

    Elem at[geo::rows][geo::cols];

    __device__ static constexpr int a_index(int row, int k)
    {
        return is_k_major ? k * T.block.m + row : row * T.block.k + k;
    }

    __device__ void clear()
    {
#pragma unroll
        for (int i = 0; i < geo::rows; i++)
#pragma unroll
            for (int j = 0; j < geo::cols; j++)
                at[i][j] = Elem(0);
    }

    /* TG_DOT: each output walks its row of A and its column of B. */
    __device__ void multiply_dot(const geo &me, const Elem *a, const Elem *b)
    {
#pragma unroll
        for (int i = 0; i < geo::rows; i++)
#pragma unroll
            for (int j = 0; j < geo::cols; j += T.vec) {
                const int row = me.row(i), col = me.col(j);
#pragma unroll 8
                for (int k = me.slice * geo::slice_k; k < (me.slice + 1) * geo::slice_k; k++) {
                    const Elem left = a[a_index(row, k)];
                    const auto right =
                        *reinterpret_cast<const pack<Elem, T.vec> *>(b + k * T.block.n + col);
#pragma unroll
                    for (int e = 0; e < T.vec; e++)
                        at[i][j + e] += left * right.at[e];
                }
            }
    }

    /* What one k of the staged tiles gives a lane: its rows of A and its columns of B. a and b
     * point to the first of them at k = 0. */
    struct fragments {
        Elem left[geo::rows], right[geo::cols];

        __device__ void load(const Elem *a, const Elem *b, int k)
        {
#pragma unroll
            for (int i = 0; i < geo::rows; i += piece_m) {
                const Elem *from = a + a_index(geo::row_past_first(i), k);
                if constexpr (piece_m > 1)
                    *reinterpret_cast<pack<Elem, piece_m> *>(left + i) =
                        *reinterpret_cast<const pack<Elem, piece_m> *>(from);
                else
                    left[i] = *from;
            }
#pragma unroll
            for (int j = 0; j < geo::cols; j += T.vec)
                *reinterpret_cast<pack<Elem, T.vec> *>(right + j) =
                    *reinterpret_cast<const pack<Elem, T.vec> *>(b + k * T.block.n +
                                                                 geo::col_past_first(j));
        }
    };

    /* There and back along the rows, so that an operand in a register is used twice in a row. */
    __device__ void add(const fragments &f)
    {
#pragma unroll
        for (int i = 0; i < geo::rows; i++)
#pragma unroll
            for (int j = 0; j < geo::cols; j++) {
                const int turn = i % 2 ? geo::cols - 1 - j : j;
                at[i][turn] += f.left[i] * f.right[turn];
            }
    }

    /* TG_OUTER: every pair of two fragments' elements multiplied; in rows with more than one stage
     * the next k's fragments are read meanwhile, the others leave it to the next warp. */
    __device__ void multiply_outer(const geo &me, const Elem *a, const Elem *b)
    {
        constexpr int body = geo::slice_k % 4 == 0 ? 4 : geo::slice_k % 2 == 0 ? 2 : 1;
        constexpr bool is_ahead = body > 1 && T.stages > 1;
        a += a_index(me.row(0), me.slice * geo::slice_k);
        b += me.slice * geo::slice_k * T.block.n + me.col(0);
        fragments f[2];
        if (is_ahead)
            f[0].load(a, b, 0);
#pragma unroll 1
        for (int k = 0; k < geo::slice_k; k += body) {
#pragma unroll
            for (int u = 0; u < body; u++) {
                if (!is_ahead)
                    f[u % 2].load(a, b, u);
                else if (u + 1 < body || k + body < geo::slice_k)
                    f[(u + 1) % 2].load(a, b, u + 1);
                add(f[u % 2]);
            }
            a += a_index(0, body);
            b += body * T.block.n;
        }
    }

    __device__ void multiply(const geo &me, const Elem *a, const Elem *b)
    {
        if constexpr (T.form == TG_DOT)
            multiply_dot(me, a, b);
        else
            multiply_outer(me, a, b);
    }

    /* Stages 0: each lane reads its rows of A and columns of B where they are. */
    __device__ void multiply_in_place(const geo &me, const tg_call &p, const position &at_block,
                                      const Elem *a, const Elem *b)
    {
        for (int64_t k = at_block.k_begin + me.slice; k < at_block.k_end; k += T.slices)
#pragma unroll
            for (int i = 0; i < geo::rows; i++)
#pragma unroll
                for (int j = 0; j < geo::cols; j++) {
                    const int64_t row = at_block.row + me.row(i), col = at_block.col + me.col(j);
                    if (row < p.m && col < p.n)
                        at[i][j] += a[row * p.a_row + k * p.a_col] * b[k * p.b_row + col * p.b_col];
                }
    }

    /* The slices' sums, added in order to the first one's through fast memory. */
    __device__ void add_slices(const geo &me, Elem *fast)
    {
        for (int slice = 1; slice < T.slices; slice++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < geo::rows; i++)
#pragma unroll
                for (int j = 0; j < geo::cols; j++)
                    if (me.slice == slice)
                        fast[me.row(i) * T.block.n + me.col(j)] = at[i][j];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < geo::rows; i++)
#pragma unroll
                for (int j = 0; j < geo::cols; j++)
                    if (me.slice == 0)
                        at[i][j] += fast[me.row(i) * T.block.n + me.col(j)];
        }
    }
};

/* --------------------------------------------------------------------------------------- store */

/* Where results go: C, or one plane of the workspace for each split. */
template <class Elem> struct target {
    Elem *c;
    int64_t row_stride, col_stride, rows, cols; /* rows and cols: left from the block's corner */
    Elem alpha, beta;

    __device__ target(const tg_call &p, const position &at) : rows(p.m - at.row), cols(p.n - at.col)
    {
        const bool is_partial = p.splits > 1;
        c = is_partial
                ? static_cast<Elem *>(p.workspace) + (at.item * p.splits + at.split) * p.m * p.n
                : static_cast<Elem *>(p.c) + at.item * p.c_item;
        row_stride = is_partial ? p.n : p.c_row;
        col_stride = is_partial ? 1 : p.c_col;
        c += at.row * row_stride + at.col * col_stride;
        alpha = is_partial ? Elem(1) : Elem(p.alpha);
        beta = is_partial ? Elem(0) : Elem(p.beta);
    }

    /* N neighbours of a row, in one piece where that is possible. */
    template <int N> __device__ void store(int row, int col, const Elem *sum) const
    {
        Elem *to = c + row * row_stride + col * col_stride;
        if (row >= rows)
            return;
        if (N > 1 && col_stride == 1 && col + N <= cols &&
            reinterpret_cast<uintptr_t>(to) % sizeof(pack<Elem, N>) == 0) {
            auto &whole = *reinterpret_cast<pack<Elem, N> *>(to);
            pack<Elem, N> result, old;
            if (beta != Elem(0))
                old = whole;
#pragma unroll
            for (int e = 0; e < N; e++)
                result.at[e] = alpha * sum[e] + (beta != Elem(0) ? beta * old.at[e] : Elem(0));
            whole = result;
            return;
        }
#pragma unroll
        for (int e = 0; e < N; e++)
            if (col + e < cols)
                to[e * col_stride] =
                    alpha * sum[e] + (beta != Elem(0) ? beta * to[e * col_stride] : Elem(0));
    }
};

/* -------------------------------------------------------------------------------------- kernels */

/* All of k for one block. */
template <tg_tile T, class Elem, tg_mn Lanes>
__device__ void multiply_staged(const tg_call &p, const position &at, const Elem *a, const Elem *b,
                                Elem *fast, const geometry<T, Lanes> &me,
                                lane_sum<T, Elem, Lanes> &sum)
{
    using geo = geometry<T, Lanes>;
    constexpr bool is_k_major = T.form == TG_OUTER_T;
    constexpr int a_size = T.block.m * T.block.k, stage_size = a_size + T.block.k * T.block.n;
    const int64_t k = at.k_end - at.k_begin, steps = tg_ceil_div(k, T.block.k);
    const int thread = int(threadIdx.x);
    constexpr int a_u = is_k_major ? T.block.k : T.block.m,
                  a_v = is_k_major ? T.block.m : T.block.k;
    constexpr int a_n = a_v % T.vec == 0 ? T.vec : 1;
    a += at.row * p.a_row + at.k_begin * p.a_col;
    b += at.k_begin * p.b_row + at.col * p.b_col;
    carrier<Elem, a_u, a_v, is_k_major, a_n, geo::threads> of_a(
        a, is_k_major ? p.a_col : p.a_row, is_k_major ? p.a_row : p.a_col, p.m - at.row, thread);
    carrier<Elem, T.block.k, T.block.n, true, T.vec, geo::threads> of_b(b, p.b_row, p.b_col,
                                                                        p.n - at.col, thread);
    const auto stage_of = [&](int64_t step) { return fast + step % T.stages * stage_size; };
    const auto set_left = [&](int64_t step) {
        of_a.set_left(k - step * T.block.k);
        of_b.set_left(k - step * T.block.k);
    };
    const auto fetch = [&](int64_t step) {
        set_left(step);
        of_a.fetch();
        of_b.fetch();
        of_a.advance();
        of_b.advance();
    };
    const auto move = [&](int64_t step) {
        if (step < steps) {
            set_left(step);
            of_a.move(stage_of(step));
            of_b.move(stage_of(step) + a_size);
            of_a.advance();
            of_b.advance();
        }
        commit_copies();
    };
    if constexpr (T.stages == 2) { /* the next tile waits in registers */
        if (steps > 0)
            fetch(0);
        for (int64_t step = 0; step < steps; step++) {
            of_a.put(stage_of(step));
            of_b.put(stage_of(step) + a_size);
            __syncthreads();
            if (step + 1 < steps)
                fetch(step + 1);
            sum.multiply(me, stage_of(step), stage_of(step) + a_size);
        }
    } else { /* the next T.stages - 1 tiles are on their way */
        for (int64_t step = 0; step < T.stages - 1; step++)
            move(step);
        for (int64_t step = 0; step < steps; step++) {
            if constexpr (T.stages == 1) {
                __syncthreads();
                move(step);
            }
            wait_for_copies<T.stages == 1 ? 0 : T.stages - 2>();
            __syncthreads();
            if constexpr (T.stages > 1)
                move(step + T.stages - 1);
            sum.multiply(me, stage_of(step), stage_of(step) + a_size);
        }
    }
}

template <tg_tile T, class Elem, tg_mn Lanes>
__device__ void run_block(const tg_call &p, Elem *fast)
{
    using geo = geometry<T, Lanes>;
    const geo me(int(threadIdx.x));
    lane_sum<T, Elem, Lanes> sum;
    sum.clear();
    {
        const position at(p, T);
        const Elem *a = static_cast<const Elem *>(p.a) + at.item * p.a_item;
        const Elem *b = static_cast<const Elem *>(p.b) + at.item * p.b_item;
        if constexpr (T.stages == 0)
            sum.multiply_in_place(me, p, at, a, b);
        else
            multiply_staged<T, Elem, Lanes>(p, at, a, b, fast, me, sum);
    }
    sum.add_slices(me, fast);
    if (me.slice > 0)
        return;
    const target<Elem> to(p, position(p, T)); /* again: nobody had to remember it */
#pragma unroll
    for (int i = 0; i < geo::rows; i++)
#pragma unroll
        for (int j = 0; j < geo::cols; j += T.vec)
            to.template store<T.vec>(me.row(i), me.col(j), &sum.at[i][j]);
}

/* Fast memory of a block on the architecture that is being compiled for: there is no use in code
 * for rows that cannot run there. */
#if !defined(__CUDA_ARCH__)
constexpr int64_t arch_fast_bytes = INT64_MAX;
#elif __CUDA_ARCH__ < 800
constexpr int64_t arch_fast_bytes = 64 << 10;
#elif __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 870
constexpr int64_t arch_fast_bytes = 163 << 10;
#elif __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
constexpr int64_t arch_fast_bytes = 227 << 10;
#else
constexpr int64_t arch_fast_bytes = 99 << 10;
#endif

template <tg_tile T, class Elem, tg_mn Lanes>
__global__ void __launch_bounds__(geometry<T, Lanes>::threads,
                                  geometry<T, Lanes>::blocks(sizeof(Elem)))
    simt_gemm(const __grid_constant__ tg_call p)
{
    if constexpr (tg_tile_fast_bytes(T, sizeof(Elem)) <= arch_fast_bytes) {
        extern __shared__ __align__(16) unsigned char tg_fast_memory[];
        run_block<T, Elem, Lanes>(p, reinterpret_cast<Elem *>(tg_fast_memory));
    }
}

/* C := alpha * (the splits' sums, in order) + beta * C, one element a thread. */
template <class Elem>
__global__ void __launch_bounds__(256) add_splits(const __grid_constant__ tg_call p)
{
    const int64_t plane = p.m * p.n, all = plane * p.batch, stride = int64_t(gridDim.x) * 256;
    for (int64_t e = int64_t(blockIdx.x) * 256 + threadIdx.x; e < all; e += stride) {
        const Elem *part = static_cast<const Elem *>(p.workspace) + e / plane * p.splits * plane;
        Elem sum = part[e % plane];
        for (int split = 1; split < p.splits; split++)
            sum += part[split * plane + e % plane];
        Elem *c = static_cast<Elem *>(p.c) + e / plane * p.c_item + e % plane / p.n * p.c_row +
                  e % p.n * p.c_col;
        *c = Elem(p.alpha) * sum + (p.beta != 0 ? Elem(p.beta) * *c : Elem(0));
    }
}

} // namespace tg

#endif
