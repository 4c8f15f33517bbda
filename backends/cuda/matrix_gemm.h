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

#include "cluster.h"
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

    __device__ bool is_cluster() const { return whole == 0 && !parts; }
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

/* ----------------------------------------------------------------------------- the way out */

/* c := alpha * sum + beta * c, of one element. */
__device__ inline void store_element(const problem &p, double sum, double &c)
{
    c = weighted(p.alpha, sum, p.beta, p.beta != 0 ? c : 0);
}

/* The same of two that are neighbours in a row, or of one, if so many are left of it. */
__device__ inline void store_pair(const problem &p, double x, double y, int64_t left, double *c)
{
    if (p.c_wide && left > 1) {
        double2 &pair = *reinterpret_cast<double2 *>(c);
        const double2 old = p.beta != 0 ? pair : make_double2(0, 0);
        pair =
            make_double2(weighted(p.alpha, x, p.beta, old.x), weighted(p.alpha, y, p.beta, old.y));
        return;
    }
    store_element(p, x, c[0]);
    if (left > 1)
        store_element(p, y, c[1]);
}

/* The same, row by row, for what a lane has of each instruction. */
template <int Rows, int Cols, int Parts>
__device__ void store_pairs(const double (&sum)[Rows][Cols][Parts][2], const problem &p, double *c,
                            int64_t row, int64_t col)
{
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const double(&two)[2] = sum[i / Parts][j][i % Parts];
            const int64_t at_row = row + i * 8, at = col + j * 8;
            if (at_row < p.m && at < p.n)
                store_pair(p, two[0], two[1], p.n - at, c + at_row * p.c_row + at);
        }
}

/* Where pairs cannot be written at once, lanes trade: instead of two columns of row lane / 4, they
 * get column lane % 8 of two rows, lane / 8 and 4 below. Each then comes from lane lane / 2 or 16
 * above. */
__device__ inline void trade(double (&two)[2], int lane)
{
    const bool is_high = lane >= 16, odd = lane % 2;
    const double x = __shfl_sync(~0u, is_high ? two[1] : two[0], lane / 2 + 16 * odd);
    const double y = __shfl_sync(~0u, is_high ? two[0] : two[1], lane / 2 + 16 * !odd);
    two[0] = odd ? y : x;
    two[1] = odd ? x : y;
}

template <int Rows, int Cols, int Parts>
__device__ void store_elements(const double (&sum)[Rows][Cols][Parts][2], const problem &p,
                               double *c, int64_t row, int64_t col, int lane)
{
    row += lane / 8 - lane / 4;
    col += lane % 8 - lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Rows * Parts; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            const double(&pair)[2] = sum[i / Parts][j][i % Parts];
            double two[2] = {pair[0], pair[1]};
            trade(two, lane);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int64_t at_row = row + i * 8 + e * 4, at = col + j * 8;
                if (at_row < p.m && at < p.n)
                    store_element(p, two[e], c[at_row * p.c_row + at]);
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

/* All blocks of a cluster put their parts of a tile in their own fast memory, and each of them adds
 * up some of it: pairs of elements in C's order, dealt out to the threads of all. Lines are padded,
 * so that the two that lanes write at once are in different banks. */
template <class S, int Rows, int Cols, int Parts>
__device__ void store_cluster(const double (&sum)[Rows][Cols][Parts][2], const problem &p,
                              unsigned staged, int row, int col, int thread)
{
    constexpr int m = S::tile.block.m, n = S::tile.block.n, line = n + 8;
    constexpr int at_once = m * n / 2 / S::consumers >= 16 ? 8 : 4;
    static_assert(m * line * elem_bytes <= S::tile.stages * S::stage_bytes);
    const auto own = static_cast<double *>(__cvta_shared_to_generic(staged));
    meet<S::consumers>(); /* nobody reads the stages any more */
    store_part(sum, own + row * line + col, line);
    meet_cluster();
    const position<S::tile> at(p, blockIdx.x);
    const int pairs = int(tg_min(p.m - at.m(), m)) * (n / 2), cols = int(tg_min(p.n - at.n(), n));
    const int step = p.splits * S::consumers;
    double *const c = p.c + at.item * p.c_item + at.m() * p.c_row + at.n();
    for (int from = at.part % p.splits * S::consumers + thread; from < pairs;
         from += at_once * step) {
        double2 sums[at_once] = {};
        for (int part = 0; part < p.splits; part++) {
            const double *const there = in_block(own, part);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const int pair = min(from + i * step, pairs - 1);
                const double2 x = *reinterpret_cast<const double2 *>(there + pair / (n / 2) * line +
                                                                     pair % (n / 2) * 2);
                sums[i].x += x.x, sums[i].y += x.y;
            }
        }
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const int pair = from + i * step, left = cols - pair % (n / 2) * 2;
            if (pair < pairs && left > 0)
                store_pair(p, sums[i].x, sums[i].y, left,
                           c + pair / (n / 2) * p.c_row + pair % (n / 2) * 2);
        }
    }
    leave_cluster();
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
