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

#include "launch.h"
#include "matrix_stage.h"

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

/* There are `turns`: each of the first `whole` makes a tile of C. Each tile that follows is made in
 * `splits` turns that take a range of k each and put their sums side by side in `parts`. A block
 * may take one turn after another: the first stages of the next are filled while it stores C. */
struct problem {
    int64_t m, n, k;
    operand a, b;
    double *c, *parts;
    int64_t c_row, c_item;
    double alpha, beta;
    int c_wide, tiles_m, tiles_n, whole, splits, turns;
    int64_t split_k;
};

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

/* Turn -> tile of C, part of k, batch item. Tiles go down columns of 8, so that blocks that run at
 * the same time share rows of A and columns of B in the cache. */
template <tg_tile T> struct position {
    int item, tile_m, tile_n, part; /* part: of all parts, or negative: a whole tile */
    int64_t k, k_left;

    __device__ int64_t m() const { return int64_t(T.block.m) * tile_m; }
    __device__ int64_t n() const { return int64_t(T.block.n) * tile_n; }

    position() = default;

    __device__ position(const problem &p, int turn)
    {
        const int tiles = p.tiles_m * p.tiles_n;
        part = turn - p.whole;
        const int tile = part < 0 ? turn : p.whole + part / p.splits;
        find_tile(p, tile % tiles, tile / tiles);
        k = part < 0 ? 0 : part % p.splits * p.split_k;
        k_left = part < 0 ? p.k : tg_clamp(p.k - k, 0, p.split_k);
    }

    __device__ void find_tile(const problem &p, int tile, int of_item)
    {
        const int group = tile / (8 * p.tiles_n), rows = min(8, p.tiles_m - 8 * group);
        const int in_group = tile % (8 * p.tiles_n);
        item = of_item;
        tile_m = 8 * group + in_group % rows;
        tile_n = in_group / rows;
    }
};

template <tg_tile T, bool AlongA, bool AlongB, int Elems> struct shape {
    static constexpr tg_tile tile = T;
    static constexpr tg_mn warps = tg_tile_warps(T);
    static constexpr int consumers = warps.m * warps.n * lanes, threads = consumers + producers;
    /* That a unit runs at once. Without setmaxnreg, all threads have as many registers. */
    static constexpr int blocks = T.inst.m == 16 && consumers < 256 ? 256 / consumers : 1;
    static constexpr int registers = 65536 / (threads * blocks) / 8 * 8;
    /* For more than one turn: if all registers are taken, it is known how many blocks run at once.
     */
    static constexpr bool may_stay = T.inst.m == 16;
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
};

/* ----------------------------------------------------------------------------- the way out */

/* Row by row, c := alpha * sum + beta * c, for the elements that a lane has of each instruction. */
template <int Rows, int Cols, int Parts>
__device__ void store(const double (&sum)[Rows][Cols][Parts][2], const problem &p, double *c,
                      int64_t row, int64_t col)
{
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++) {
        const int64_t at_row = row + i * 8;
        double *line = c + at_row * p.c_row;
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const int64_t at = col + j * 8;
            if (at_row >= p.m || at >= p.n)
                continue;
            const double old_x = p.beta != 0 ? line[at] : 0;
            const double old_y = p.beta != 0 && at + 1 < p.n ? line[at + 1] : 0;
            const double x = weighted(p.alpha, sum[i / Parts][j][i % Parts][0], p.beta, old_x);
            const double y = weighted(p.alpha, sum[i / Parts][j][i % Parts][1], p.beta, old_y);
            if (p.c_wide && at + 1 < p.n)
                *reinterpret_cast<double2 *>(line + at) = make_double2(x, y);
            else {
                line[at] = x;
                if (at + 1 < p.n)
                    line[at + 1] = y;
            }
        }
    }
}

template <int Rows, int Cols, int Parts>
__device__ void store_part(const double (&sum)[Rows][Cols][Parts][2], double *part, int line)
{
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const double(&two)[2] = sum[i / Parts][j][i % Parts];
            *reinterpret_cast<double2 *>(part + i * 8 * line + j * 8) =
                make_double2(two[0], two[1]);
        }
}

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
    } while (S::may_stay && (turn += gridDim.x) < p.turns);
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
    const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    const int warp_m = warp / S::warps.n * T.warp.m, warp_n = warp % S::warps.n * T.warp.n;
    const int row = warp_m + lane / 4, col = warp_n + lane % 4 * 2;
    const typename S::a_reader read_a(warp_m, lane);
    const typename S::b_reader read_b(warp_n, lane);
    cursor<T.stages> used;
    int turn = blockIdx.x;
    do {
        double sum[S::rows][S::cols][S::parts][2] = {};
        const int64_t k = position<T>(p, turn).k_left;
        sum_up<S>(sum, int(tg_ceil_div(k, T.block.k)), ring, used, read_a, read_b);
        if constexpr (S::is_full)
            asm volatile("" : "+r"(turn)); /* there are no registers to keep its place */
        const position<T> at(p, turn);
        if (at.part < 0)
            store(sum, p, p.c + at.item * p.c_item, at.m() + row, at.n() + col);
        else
            store_part(sum, p.parts + (int64_t(at.part) * T.block.m + row) * T.block.n + col,
                       T.block.n);
    } while (S::may_stay && (turn += gridDim.x) < p.turns);
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
        double &to = c[i * p.c_row];
        to = weighted(p.alpha, sum, p.beta, p.beta != 0 ? to : 0);
    }
}

} // namespace tg::matrix

#endif
