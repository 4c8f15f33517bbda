/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of f64 on matrix instructions (DMMA): the text of the kernels.
 *
 * Lane (g, t), g = lane / 4 and t = lane % 4, brings rows g, g + 8 of A and column g of B at
 * k = t, t + 4, ... to an instruction, and keeps columns 2t, 2t + 1 of those rows of C:
 *
 *            k: 0 1 2 3  4 5 6 7                n: 0 1  2 3  4 5  6 7
 *   A row g     0 1 2 3  0 1 2 3  (t)   C row g     t=0  t=1  t=2  t=3                           */
#ifndef TG_CUDA_MATRIX_GEMM_H
#define TG_CUDA_MATRIX_GEMM_H

#include "matrix_store.h"

namespace tg::matrix
{

#ifdef __CUDA_ARCH__
constexpr int arch = __CUDA_ARCH__;
#else
constexpr int arch = 0;
#endif

/* Rows of the f64 matrix instructions that code for an architecture uses. */
TG_FN int inst_rows(int arch) { return arch < 800 ? 0 : arch / 100 == 9 ? 16 : 8; }

constexpr int lanes = 32;
constexpr int rows_to_add = 4; /* of a tile in parts, by one block */

/* -------------------------------------------------------------------------- the instruction */

/* What a lane brings to an instruction's rows (Parts: 1 or 2 of 8 rows) or columns at Depth of k.
 */
template <int Depth, int Parts> struct fragment {
    double at[Depth / 4][Parts];
};

template <tg_mnk I, int Depth, int Rows>
__device__ inline void multiply(double (&c)[Rows][2], const fragment<Depth, Rows> &x,
                                const fragment<Depth, 1> &y)
{
    const auto &a = x.at;
    const auto &b = y.at;
    if constexpr (I.m == 8) {
#pragma unroll
        for (int q = 0; q < Depth / 4; q++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[0][0]), "+d"(c[0][1])
                : "d"(a[q][0]), "d"(b[q][0]));
    } else if constexpr (I.k == 4) {
#pragma unroll
        for (int q = 0; q < Depth / 4; q++)
            asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, "
                "{%6}, {%0, %1, %2, %3};"
                : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
                : "d"(a[q][0]), "d"(a[q][1]), "d"(b[q][0]));
    } else if constexpr (I.k == 8) {
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
            : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(b[0][0]), "d"(b[1][0]));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
            : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(a[2][0]), "d"(a[2][1]),
              "d"(a[3][0]), "d"(a[3][1]), "d"(b[0][0]), "d"(b[1][0]), "d"(b[2][0]), "d"(b[3][0]));
    }
}

/* Reads a warp's fragments from a staged panel; eight: a group of 8 of its rows or columns. */
template <class Panel, int Depth> struct reader {
    int origin;

    __device__ reader(int first, int lane)
    {
        const int line = Panel::along ? lane / 4 : lane % 4;
        const int at = Panel::along ? lane % 4 : lane / 4;
        origin = line * Panel::line_bytes + (at * elem_bytes ^ Panel::swizzle(line)) +
                 first * (Panel::along ? Panel::line_bytes : elem_bytes);
        asm volatile("" : "+r"(origin)); /* or it is computed again and again */
    }

    template <int Parts>
    __device__ void load(fragment<Depth, Parts> &to, unsigned staged, int eight, int step) const
    {
#pragma unroll
        for (int i = 0; i < Depth / 4; i++)
#pragma unroll
            for (int part = 0; part < Parts; part++) {
                const int k = 4 * (step * (Depth / 4) + i), outer = 8 * (eight + part);
                const int line = Panel::along ? outer : k;
                const int at = (Panel::along ? k : outer) * elem_bytes;
                const unsigned from = staged + (origin ^ at % TG_BANK_BYTES) +
                                      line * Panel::line_bytes + at / TG_BANK_BYTES * TG_BANK_BYTES;
                to.at[i][part] = *static_cast<const double *>(__cvta_shared_to_generic(from));
            }
    }
};

/* ------------------------------------------------------------------------- who and where */

template <tg_tile T, bool AlongA, bool AlongB, int Elems> struct shape {
    static constexpr tg_tile tile = T;
    static constexpr tg_mn warps = tg_tile_warps(T);
    static constexpr int consumers = warps.m * warps.n * lanes, threads = consumers + producers;
    /* That a unit runs at once. Without setmaxnreg, all threads have as many registers. */
    static constexpr int blocks = T.inst.m == 16 && consumers < 256 ? 256 / consumers : 1;
    static constexpr int registers = 65536 / (threads * blocks) / 8 * 8;
    /* There blocks take turns: if all registers are taken, it is known how many run at once. */
    static constexpr bool is_hopper = T.inst.m == 16;
    static constexpr int rows = T.warp.m / T.inst.m, cols = T.warp.n / T.inst.n;
    static constexpr bool is_full = rows * cols > 16; /* of sums */
    static constexpr int producer_registers = is_full ? 32 : 40;
    static constexpr int consumer_registers =
        (registers * threads - producer_registers * producers) / consumers / 8 * 8;
    static constexpr int parts = T.inst.m / 8; /* rows of C that a lane has of an instruction */
    static constexpr int depth = T.inst.k < 8 ? 8 : T.inst.k, steps = T.block.k / depth;
    static constexpr int goes = steps * rows; /* a go is a fragment of A times all of B */
    using a_panel = panel<T.block.m, T.block.k, AlongA>;
    using b_panel = panel<T.block.n, T.block.k, AlongB>;
    using a_reader = reader<a_panel, depth>;
    using b_reader = reader<b_panel, depth>;
    using a_carrier = carrier<a_panel, Elems>;
    using b_carrier = carrier<b_panel, Elems>;
    static constexpr int stage_bytes = a_panel::bytes + b_panel::bytes;
    using stages = ring<T.stages, stage_bytes>;
    static constexpr int fast_bytes = int(tg_tile_fast_bytes(T, elem_bytes));
    static constexpr int alone = int(tg_max(fast_bytes, 114 << 10)); /* no two of them fit */

    /* Where a thread's warp begins in the tile. */
    static __device__ int warp_m(int thread) { return thread / lanes / warps.n * T.warp.m; }
    static __device__ int warp_n(int thread) { return thread / lanes % warps.n * T.warp.n; }
};

/* ---------------------------------------------------------------------------- the kernels */

/* Moves registers between the producers and the consumers of a block. */
template <int Count, bool More> __device__ inline void set_registers()
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    if constexpr (More)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
    else
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}

template <class S> __device__ void produce(const problem &p, const typename S::stages &ring)
{
    const int producer = threadIdx.x - S::consumers;
    cursor<S::tile.stages> now;
    int turn = blockIdx.x;
    do {
        const position<S::tile> at(p, turn);
        typename S::a_carrier a(p.a, at.item, at.m(), p.m, at.k, producer);
        typename S::b_carrier b(p.b, at.item, at.n(), p.n, at.k, producer);
        for (int64_t k_left = at.k_left; k_left > 0; k_left -= S::tile.block.k, now.step()) {
            barrier_wait(ring.empty(now.slot), now.parity ^ 1);
            a.bring(ring.stage(now.slot), k_left);
            b.bring(ring.stage(now.slot) + S::a_panel::bytes, k_left);
            barrier_arrive_when_copied(ring.full(now.slot));
        }
    } while (S::is_hopper && (turn += gridDim.x) < p.turns);
    copy_wait(); /* no thread leaves with copies on their way */
}

/* The sum of a warp's tile. Fragments are read one go, and those of B one step, before they are
 * multiplied. The next stage is asked for early in a stage and awaited in its last step, when the
 * answer has long been there; in the last stage, what is read last is not used. */
template <class S, int Rows, int Cols, int Parts>
__device__ void sum_up(double (&sum)[Rows][Cols][Parts][2], int stages,
                       const typename S::stages &ring, cursor<S::tile.stages> &used,
                       const typename S::a_reader &read_a, const typename S::b_reader &read_b)
{
    fragment<S::depth, S::parts> a[2];
    fragment<S::depth, 1> b[2][S::cols];
    if (stages > 0) {
        barrier_wait(ring.full(used.slot), used.parity);
        read_a.load(a[0], ring.stage(used.slot), 0, 0);
#pragma unroll
        for (int j = 0; j < S::cols; j++)
            read_b.load(b[0][j], ring.stage(used.slot) + S::a_panel::bytes, j, 0);
    }
    for (; stages > 0; stages--) {
        cursor<S::tile.stages> coming = used;
        coming.step();
        const unsigned now = ring.stage(used.slot);
        const unsigned next = stages == 1 ? now : ring.stage(coming.slot);
        const bool ready = stages == 1 || barrier_test(ring.full(coming.slot), coming.parity);
#pragma unroll
        for (int go = 0; go < S::goes; go++) {
            const int step = go / S::rows, i = go % S::rows;
            const bool last_step = step + 1 == S::steps, last_row = i + 1 == S::rows;
            if (last_step && i == 0 && !ready)
                barrier_wait(ring.full(coming.slot), coming.parity);
            const unsigned after = last_step ? next : now; /* where the next step's k is */
            read_a.load(a[(go + 1) % 2], last_row ? after : now, last_row ? 0 : (i + 1) * S::parts,
                        (step + last_row) % S::steps);
#pragma unroll
            for (int j = i * S::cols / S::rows; j < (i + 1) * S::cols / S::rows; j++)
                read_b.load(b[(step + 1) % 2][j], after + S::a_panel::bytes, j,
                            (step + 1) % S::steps);
#pragma unroll
            for (int j = 0; j < S::cols; j++)
                multiply<S::tile.inst>(sum[i][j], a[go % 2], b[step % 2][j]);
        }
        if constexpr (S::steps % 2)
            for (int j = 0; j < S::cols; j++)
                b[0][j] = b[1][j];
        if constexpr (S::goes % 2)
            a[0] = a[1];
        barrier_arrive(ring.empty(used.slot));
        used = coming;
    }
}

template <class S> __device__ void consume(const problem &p, const typename S::stages &ring)
{
    constexpr tg_tile T = S::tile;
    const typename S::a_reader read_a(S::warp_m(threadIdx.x), threadIdx.x % lanes);
    const typename S::b_reader read_b(S::warp_n(threadIdx.x), threadIdx.x % lanes);
    cursor<T.stages> used;
    int turn = blockIdx.x;
    do {
        double sum[S::rows][S::cols][S::parts][2] = {};
        const int64_t k = position<T>(p, turn).k_left;
        sum_up<S>(sum, int(tg_ceil_div(k, T.block.k)), ring, used, read_a, read_b);
        int thread = threadIdx.x;
        if constexpr (S::rows * S::cols >= 12) /* there are no registers to keep its place */
            asm volatile("" : "+r"(turn), "+r"(thread));
        const int lane = thread % lanes;
        const int row = S::warp_m(thread) + lane / 4, col = S::warp_n(thread) + lane % 4 * 2;
        if constexpr (S::is_hopper)
            if (p.is_cluster())
                return store_cluster<S>(sum, p, ring.base, row, col, thread);
        const position<T> at(p, turn);
        double *const c = p.c + at.item * p.c_item;
        if (at.part >= 0)
            store_part(sum, p.parts + (int64_t(at.part) * T.block.m + row) * T.block.n + col,
                       T.block.n);
        else if (p.c_wide)
            store_pairs(sum, p, c, at.m() + row, at.n() + col);
        else
            store_elements(sum, p, c, at.m() + row, at.n() + col, lane);
    } while (S::is_hopper && (turn += gridDim.x) < p.turns);
}

template <class S> __device__ void run(const problem &p)
{
    extern __shared__ __align__(128) char staged[];
    typename S::stages ring{unsigned(__cvta_generic_to_shared(staged))};
    asm volatile("" : "+r"(ring.base));
    if (threadIdx.x == 0)
        ring.init(S::consumers);
    __syncthreads();
    wait_for_turn();
    if (threadIdx.x >= S::consumers) {
        set_registers<S::producer_registers, false>();
        produce<S>(p, ring);
    } else {
        set_registers<S::consumer_registers, true>();
        consume<S>(p, ring);
    }
}

template <tg_tile T, bool AlongA, bool AlongB, int Elems>
__global__ void __launch_bounds__(shape<T, AlongA, AlongB, Elems>::threads,
                                  shape<T, AlongA, AlongB, Elems>::blocks)
    gemm(const __grid_constant__ problem p)
{
    if constexpr (T.inst.m == inst_rows(arch))
        run<shape<T, AlongA, AlongB, Elems>>(p);
}

/* c := alpha * (parts in order) + beta * c for the tiles that were split; a block for a few rows of
 * one tile. */
template <tg_tile T>
__global__ void __launch_bounds__(T.block.n) add_parts(const __grid_constant__ problem p)
{
    wait_for_turn();
    constexpr int64_t tile_elems = int64_t(T.block.m) * T.block.n;
    const int tile = p.whole + blockIdx.x / (T.block.m / rows_to_add);
    const int row = blockIdx.x % (T.block.m / rows_to_add) * rows_to_add, col = threadIdx.x;
    position<T> at;
    at.find_tile(p, tile % (p.tiles_m * p.tiles_n), tile / (p.tiles_m * p.tiles_n));
    const double *part =
        p.parts + (tile - p.whole) * (p.splits * tile_elems) + row * T.block.n + col;
    double *c = p.c + at.item * p.c_item + (at.m() + row) * p.c_row + at.n() + col;
    for (int i = 0; i < rows_to_add && at.m() + row + i < p.m && at.n() + col < p.n; i++) {
        double sum = 0;
#pragma unroll 8
        for (int split = 0; split < p.splits; split++)
            sum += part[split * tile_elems + i * T.block.n];
        store_element(p, sum, c[i * p.c_row]);
    }
}

} // namespace tg::matrix

#endif
