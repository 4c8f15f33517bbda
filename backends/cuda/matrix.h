/* SPDX-License-Identifier: Apache-2.0
 *
 * f64 products on matrix instructions (DMMA), for the rows of the table whose inst is not FMA.
 *
 *   A, B  --- carrier, 16 or 8 bytes --->  ring of stages  --- reader --->  fragments  --> sums
 *
 * Lane (g, t), g = lane / 4 and t = lane % 4, brings rows g, g + 8 of A and column g of B at
 * k = t, t + 4, ... to an instruction, and keeps columns 2t, 2t + 1 of those rows of C:
 *
 *            k: 0 1 2 3  4 5 6 7                n: 0 1  2 3  4 5  6 7
 *   A row g     0 1 2 3  0 1 2 3  (t)   C row g     t=0  t=1  t=2  t=3
 *
 * Tiles are staged as they lie in memory, in lines of what is contiguous there: nothing is
 * transposed. */
#ifndef TG_CUDA_MATRIX_H
#define TG_CUDA_MATRIX_H

#include <cuda_runtime.h>

#include "call.h"

#ifndef RING
#define RING 4
#define LATE 1
#endif
namespace tg::matrix
{

#ifdef __CUDA_ARCH__
constexpr int arch = __CUDA_ARCH__;
#else
constexpr int arch = 0;
#endif

constexpr int lanes = 32, elem_bytes = sizeof(double);
constexpr int producers = 128; /* threads that only copy: a warp for each scheduler */
constexpr int span = 16, span_bytes = span * elem_bytes; /* all banks of fast memory once */

/* Rows of the f64 matrix instructions that code for this architecture uses. */
TG_FN int inst_rows(int arch) { return arch < 800 ? 0 : arch / 100 == 9 ? 16 : 8; }

/* tg_call, as the device wants it. A line is what is contiguous: of k, or of m or n. */
struct operand {
    const double *data;
    int64_t line, item; /* distance of lines, of batch items */
    int wide;           /* may be copied 16 bytes at a time */
};

struct problem {
    int64_t m, n, k;
    operand a, b;
    double *c;
    int64_t c_row, c_item, c_split;
    double alpha, beta;
    int c_wide, tiles_m, tiles_n, splits;
    int64_t split_k;
};

/* --------------------------------------------------------------------------- the instruction */

/* What a lane brings to an instruction's rows (Parts: 1 or 2 of 8 rows) or columns at Depth of k. */
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

/* ------------------------------------------------------------------------------- fast memory */

/* Width rows of A or columns of B, Depth of k: how one operand of a block is staged. Along: its
 * lines run along k. Within a span, the quarters change places by line, so that the 16 lanes that
 * fast memory serves at once (four lines, four elements of each) find all banks. */
template <int Width, int Depth, bool Along> struct panel {
    static constexpr int lines = Along ? Width : Depth, length = Along ? Depth : Width;
    static constexpr int line_bytes = length * elem_bytes, bytes = lines * line_bytes;
    static constexpr bool along = Along;

    static __device__ int swizzle(int line) { return line % 4 * (span_bytes / 4); }
};

/* Reads a warp's fragments from a staged panel; eight: a group of 8 of its rows or columns. */
template <class Panel, int Depth> struct reader {
    int origin;

    __device__ reader(int first, int lane)
    {
        const int line = Panel::along ? lane / 4 : lane % 4;
        const int at = Panel::along ? lane % 4 : lane / 4;
        origin = line * Panel::line_bytes + (at * elem_bytes ^ Panel::swizzle(line)) +
                 first * (Panel::along ? Panel::line_bytes : elem_bytes);
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
                const unsigned from = staged + (origin ^ at % span_bytes) +
                                      line * Panel::line_bytes + at / span_bytes * span_bytes;
                asm volatile("ld.shared.f64 %0, [%1];" : "=d"(to.at[i][part]) : "r"(from));
            }
    }
};

/* 16 or 8 bytes on their way to fast memory, or zeros. */
template <int Elems> __device__ inline void copy_async(unsigned to, const double *from, bool inside)
{
    if constexpr (Elems == 2)
        asm volatile("{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
                     "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, outside; }" ::"r"(to),
                     "l"(from), "r"(int(inside)));
    else
        asm volatile("{ .reg .pred outside; setp.eq.s32 outside, %2, 0; "
                     "cp.async.ca.shared.global.L2::128B [%0], [%1], 8, outside; }" ::"r"(to),
                     "l"(from), "r"(int(inside)));
}

/* Brings one operand of a block to fast memory, stage after stage, in pieces of Elems elements that
 * all producers copy at once: 8 of them (or 16, where 16 bytes are not aligned) copy a span.
 * Outside the matrix they put zeros. */
template <class Panel, int Elems> struct carrier {
    static constexpr int per_span = span / Elems, groups = producers / per_span;
    static constexpr int pieces = Panel::lines * Panel::length / span / groups;
    static_assert(groups % 4 == 0 && pieces * groups * span == Panel::lines * Panel::length);
    static_assert(groups % Panel::lines == 0 || Panel::lines % groups == 0);

    const double *from;
    int line, to, outer_left, k_own;

    __device__ carrier(const operand &x, int64_t item, int64_t outer, int64_t outers, int64_t k,
                       int producer)
    {
        const int group = producer / per_span, in_span = producer % per_span * Elems;
        const int own_line = group % Panel::lines, own = group / Panel::lines * span + in_span;
        line = int(x.line);
        to = own_line * Panel::line_bytes + own / span * span_bytes +
             (in_span * elem_bytes ^ Panel::swizzle(own_line));
        from = x.data + item * x.item + own_line * x.line + own +
               (Panel::along ? outer * x.line + k : outer + k * x.line);
        outer_left = int(tg_min(outers - outer, TG_TILE_MAX)) - (Panel::along ? own_line : own);
        k_own = Panel::along ? own : own_line;
    }

    __device__ void copy(int piece, unsigned stage, int k_left) const
    {
        const int at_line = piece * groups % Panel::lines;
        const int at = piece * groups / Panel::lines * span;
        const int lines_left = Panel::along ? outer_left : k_left - k_own;
        const int length_left = Panel::along ? k_left - k_own : outer_left;
        copy_async<Elems>(stage + to + at_line * Panel::line_bytes + at * elem_bytes,
                          from + int64_t(at_line) * line + at,
                          at_line < lines_left && at < length_left);
    }

    /* All pieces of a stage. What follows from line and outer_left is computed when it is needed:
     * there are no registers to keep it. */
    __device__ void bring(unsigned stage, int64_t k_left)
    {
        asm volatile("" : "+r"(line), "+r"(outer_left));
#pragma unroll
        for (int piece = 0; piece < pieces; piece++)
            copy(piece, stage, int(tg_min(k_left, TG_TILE_MAX)));
        from += Panel::along ? Panel::length : Panel::lines * int64_t(line);
    }
};

/* ------------------------------------------------------------------------------- the pipeline */

/* Stages are a ring. A stage is full when all threads' copies to it have arrived, and empty when
 * all warps have read it: warps wait for data, hardly ever for one another. */
template <int Stages, int StageBytes> struct ring {
    static constexpr int barrier_bytes = 2 * Stages * sizeof(uint64_t);
    static constexpr int fast_bytes = Stages * StageBytes + barrier_bytes;
    unsigned base;

    __device__ unsigned stage(int slot) const { return base + slot * StageBytes; }
    __device__ unsigned full(int slot) const { return base + Stages * StageBytes + 8 * slot; }
    __device__ unsigned empty(int slot) const { return full(slot + Stages); }
};

__device__ inline void barrier_init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ inline void barrier_arrive(unsigned barrier)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier)
                 : "memory");
}

__device__ inline void barrier_arrive_when_copied(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ inline bool barrier_test(unsigned barrier, int parity)
{
    int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
                 "selp.s32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}

__device__ inline void barrier_wait(unsigned barrier, int parity)
{
    while (!barrier_test(barrier, parity))
        ;
}

template <int Stages> struct cursor {
    int slot = 0, parity = 0;

    __device__ void step()
    {
        slot = slot + 1 == Stages ? 0 : slot + 1;
        parity ^= slot == 0;
    }
};

/* ------------------------------------------------------------------------------- the block */

/* Block number -> tile of C, part of k, batch item. Tiles go down columns of 8, so that blocks that
 * run at the same time share rows of A and columns of B in the cache. */
struct position {
    int64_t item, m, n, k, k_left;
    int split;

    __device__ position(const problem &p, tg_mnk block)
    {
        const int tiles = p.tiles_m * p.tiles_n, tile = blockIdx.x % tiles;
        const int group = tile / (8 * p.tiles_n), rows = min(8, p.tiles_m - 8 * group);
        const int in_group = tile % (8 * p.tiles_n);
        split = blockIdx.x / tiles % p.splits;
        item = blockIdx.x / tiles / p.splits;
        m = int64_t(8 * group + in_group % rows) * block.m;
        n = int64_t(in_group / rows) * block.n;
        k = split * p.split_k;
        k_left = tg_clamp(p.k - k, 0, p.split_k);
    }
};

template <tg_tile T, bool AlongA, bool AlongB, int Elems> struct shape {
    static constexpr tg_tile tile = T;
    static constexpr tg_mn warps = tg_tile_warps(T);
    static constexpr int consumers = warps.m * warps.n * lanes, threads = consumers + producers;
    static constexpr int blocks = T.inst.m == 16 && consumers < 256 ? 256 / consumers : 1;
    static constexpr int registers = 65536 / (threads * blocks) / 8 * 8;
    static constexpr int producer_registers = 40;
    static constexpr int consumer_registers =
        (registers * threads - producer_registers * producers) / consumers / 8 * 8;
    static constexpr int rows = T.warp.m / T.inst.m, cols = T.warp.n / T.inst.n;
    static constexpr int parts = T.inst.m / 8; /* rows of C that a lane has of an instruction */
    static constexpr int depth = T.inst.k < 8 ? 8 : T.inst.k, steps = T.block.k / depth;
    static constexpr int turns = steps * rows; /* a turn is a fragment of A times all of B */
    static constexpr int held = RING == 4 && turns % 4 == 0 && rows != 3 ? 4 : 2; /* fragments of A */
    using a_panel = panel<T.block.m, T.block.k, AlongA>;
    using b_panel = panel<T.block.n, T.block.k, AlongB>;
    using a_carrier = carrier<a_panel, Elems>;
    using b_carrier = carrier<b_panel, Elems>;
    static constexpr int stage_bytes = a_panel::bytes + b_panel::bytes;
    using stages = ring<T.stages, stage_bytes>;
    static constexpr int fast_bytes = stages::fast_bytes;
};

/* c := alpha * sum + beta * c, for the 2 x 2 elements that a lane has of each instruction. */
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
            double x = p.alpha * sum[i / Parts][j][i % Parts][0];
            double y = p.alpha * sum[i / Parts][j][i % Parts][1];
            if (at_row >= p.m || at >= p.n)
                continue;
            if (p.beta != 0) {
                x += p.beta * line[at];
                y += at + 1 < p.n ? p.beta * line[at + 1] : 0;
            }
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
    const position at(p, S::tile.block);
    const int producer = threadIdx.x - S::consumers;
    typename S::a_carrier a(p.a, at.item, at.m, p.m, at.k, producer);
    typename S::b_carrier b(p.b, at.item, at.n, p.n, at.k, producer);
    cursor<S::tile.stages> now;
    for (int64_t k_left = at.k_left; k_left > 0; k_left -= S::tile.block.k, now.step()) {
        barrier_wait(ring.empty(now.slot), now.parity ^ 1);
        a.bring(ring.stage(now.slot), k_left);
        b.bring(ring.stage(now.slot) + S::a_panel::bytes, k_left);
        barrier_arrive_when_copied(ring.full(now.slot));
    }
}

/* Fragments are read one turn, and those of B one step, before they are multiplied. The next stage
 * is asked for early in a stage and awaited in its last step, when the answer has long been there;
 * after the last stage, what is read is not used. */
template <class S> __device__ void consume(const problem &p, const typename S::stages &ring)
{
    constexpr tg_tile T = S::tile;
    const position at(p, T.block);
    const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    const int warp_m = warp / S::warps.n * T.warp.m, warp_n = warp % S::warps.n * T.warp.n;
    const reader<typename S::a_panel, S::depth> read_a(warp_m, lane);
    const reader<typename S::b_panel, S::depth> read_b(warp_n, lane);
    double sum[S::rows][S::cols][S::parts][2] = {};
    fragment<S::depth, S::parts> a[S::held];
    fragment<S::depth, 1> b[2][S::cols];
    cursor<T.stages> used;
    unsigned now = ring.stage(0);
    int stages = int(tg_ceil_div(at.k_left, T.block.k));
    if (stages > 0) {
        barrier_wait(ring.full(0), 0);
        read_a.load(a[0], now, 0, 0);
#pragma unroll
        for (int j = 0; j < S::cols; j++)
            read_b.load(b[0][j], now + S::a_panel::bytes, j, 0);
    }
    for (; stages > 0; stages--) {
        cursor<T.stages> coming = used;
        coming.step();
        const unsigned next = ring.stage(coming.slot);
        const bool ready = stages == 1 || barrier_test(ring.full(coming.slot), coming.parity);
#pragma unroll
        for (int turn = 0; turn < S::turns; turn++) {
            const int step = turn / S::rows, i = turn % S::rows;
            const bool last_step = step + 1 == S::steps, last_row = i + 1 == S::rows;
            if (last_step && i == 0 && !ready)
                barrier_wait(ring.full(coming.slot), coming.parity);
            const unsigned after = last_step ? next : now; /* where the next step's k is */
            auto load = [&] {
                read_a.load(a[(turn + 1) % S::held], last_row ? after : now,
                            last_row ? 0 : (i + 1) * S::parts, (step + last_row) % S::steps);
#pragma unroll
                for (int j = i * S::cols / S::rows; j < (i + 1) * S::cols / S::rows; j++)
                    read_b.load(b[(step + 1) % 2][j], after + S::a_panel::bytes, j,
                                (step + 1) % S::steps);
            };
            if (!LATE)
                load();
#pragma unroll
            for (int j = 0; j < S::cols; j++) {
                multiply<T.inst>(sum[i][j], a[turn % S::held], b[step % 2][j]);
                if (LATE && j == 0)
                    load();
            }
        }
        if constexpr (S::steps % 2)
            for (int j = 0; j < S::cols; j++)
                b[0][j] = b[1][j];
        if constexpr (S::turns % S::held)
            a[0] = a[S::turns % S::held];
        __syncwarp();
        if (lane == 0)
            barrier_arrive(ring.empty(used.slot));
        used = coming;
        now = next;
    }
    store(sum, p, p.c + at.item * p.c_item + at.split * p.c_split, at.m + warp_m + lane / 4,
          at.n + warp_n + lane % 4 * 2);
}

template <class S> __device__ void run(const problem &p)
{
    extern __shared__ __align__(128) char staged[];
    typename S::stages ring{unsigned(__cvta_generic_to_shared(staged))};
    asm volatile("" : "+r"(ring.base)); /* or it is computed again and again */
    if (threadIdx.x < S::tile.stages) {
        barrier_init(ring.full(threadIdx.x), producers);
        barrier_init(ring.empty(threadIdx.x), S::consumers / lanes);
    }
    __syncthreads();
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

/* c := alpha * (parts in order) + beta * c; a thread for each element. */
__global__ void __launch_bounds__(256) add_splits(const __grid_constant__ problem p, int64_t items,
                                                  const double *part, int64_t part_row)
{
    const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t row = number / p.n, col = number % p.n;
    if (row >= p.m * items)
        return;
    double sum = 0;
#pragma unroll 4
    for (int split = 0; split < p.splits; split++)
        sum += part[split * p.c_split + row * part_row + col];
    double *c = p.c + row / p.m * p.c_item + row % p.m * p.c_row + col;
    *c = p.alpha * sum + (p.beta != 0 ? p.beta * *c : 0);
}

/* ------------------------------------------------------------------------------- the host half */

inline bool is_even(const void *data, int64_t line, int64_t item, const tg_call &call)
{
    return uintptr_t(data) % 16 == 0 && line % 2 == 0 && (call.batch == 1 || item % 2 == 0);
}

inline operand operand_of(const void *data, int64_t outer, int64_t k, int64_t item,
                          int64_t outers, const tg_call &call)
{
    const int64_t line = k == 1 ? outer : k, length = k == 1 ? call.k : outers;
    return {static_cast<const double *>(data), line, item,
            is_even(data, line, item, call) && length % 2 == 0};
}

inline int64_t part_row(const tg_call &call) { return tg_round_up(call.n, 2); }

inline size_t workspace(const tg_call *call)
{
    return call->splits > 1
               ? size_t(call->splits) * call->batch * call->m * part_row(*call) * elem_bytes
               : 0;
}

template <tg_tile T> struct launcher {
    static int64_t blocks(const tg_call &c)
    {
        const int64_t tiles_m = tg_ceil_div(c.m, T.block.m), tiles_n = tg_ceil_div(c.n, T.block.n);
        if (tiles_m > INT32_MAX / 16 || tiles_n > INT32_MAX / 16 || tiles_m * tiles_n > INT32_MAX)
            return INT64_MAX;
        const int64_t tiles = tiles_m * tiles_n * c.splits;
        return tiles > INT32_MAX || c.batch > INT32_MAX ? INT64_MAX : tiles * c.batch;
    }

    /* One of the strides is 1, and the other, in bytes, an int. */
    static bool line_fits(int64_t outer, int64_t k)
    {
        const int64_t line = k == 1 ? outer : k;
        return (outer == 1 || k == 1) && line <= INT32_MAX / elem_bytes &&
               line >= -INT32_MAX / elem_bytes;
    }

    static int takes(const tg_call *c)
    {
        return c->c_col == 1 && line_fits(c->a_row, c->a_col) && line_fits(c->b_col, c->b_row) &&
               blocks(*c) <= INT32_MAX &&
               (c->splits == 1 || c->m * c->n * c->batch / 256 < INT32_MAX);
    }

    static problem describe(const tg_call &c)
    {
        problem p = {c.m,
                     c.n,
                     c.k,
                     operand_of(c.a, c.a_row, c.a_col, c.a_item, c.m, c),
                     operand_of(c.b, c.b_col, c.b_row, c.b_item, c.n, c),
                     static_cast<double *>(c.c),
                     c.c_row,
                     c.c_item,
                     0,
                     c.alpha,
                     c.beta,
                     is_even(c.c, c.c_row, c.c_item, c),
                     int(tg_ceil_div(c.m, T.block.m)),
                     int(tg_ceil_div(c.n, T.block.n)),
                     c.splits,
                     tg_ceil_div(tg_ceil_div(c.k, T.block.k), c.splits) * T.block.k};
        return p;
    }

    /* The same problem with the parts of each sum for a result. */
    static problem in_parts(problem p, const tg_call &c)
    {
        p.c = static_cast<double *>(c.workspace);
        p.c_row = part_row(c);
        p.c_item = c.m * p.c_row;
        p.c_split = c.batch * p.c_item;
        p.c_wide = 1;
        p.alpha = 1;
        p.beta = 0;
        return p;
    }

    template <bool AlongA, bool AlongB, int Elems>
    static cudaError_t start(const problem &p, const tg_call &c, cudaStream_t stream)
    {
        constexpr auto kernel = gemm<T, AlongA, AlongB, Elems>;
        using S = shape<T, AlongA, AlongB, Elems>;
        cudaError_t error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::fast_bytes);
        if (!error) {
            kernel<<<unsigned(blocks(c)), S::threads, S::fast_bytes, stream>>>(p);
            error = cudaGetLastError();
        }
        return error;
    }

    template <int Elems>
    static cudaError_t start_as(const problem &p, const tg_call &c, cudaStream_t stream)
    {
        const bool along_a = c.a_col == 1, along_b = c.b_row == 1;
        return along_a ? along_b ? start<true, true, Elems>(p, c, stream)
                                 : start<true, false, Elems>(p, c, stream)
               : along_b ? start<false, true, Elems>(p, c, stream)
                         : start<false, false, Elems>(p, c, stream);
    }

    static int launch(const tg_call *call, void *queue)
    {
        const tg_call &c = *call;
        const auto stream = static_cast<cudaStream_t>(queue);
        const problem whole = describe(c), p = c.splits > 1 ? in_parts(whole, c) : whole;
        cudaError_t error =
            p.a.wide && p.b.wide ? start_as<2>(p, c, stream) : start_as<1>(p, c, stream);
        if (error || c.splits == 1)
            return error;
        problem sum = whole;
        sum.c_split = p.c_split;
        add_splits<<<unsigned(tg_ceil_div(c.m * c.n * c.batch, 256)), 256, 0, stream>>>(
            sum, c.batch, p.c, p.c_row);
        return cudaGetLastError();
    }

    static int usage(tg_usage *usage)
    {
        using S = shape<T, true, false, 2>;
        constexpr auto kernel = gemm<T, true, false, 2>;
        cudaFuncAttributes attributes;
        cudaError_t error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::fast_bytes);
        if (!error)
            error = cudaFuncGetAttributes(&attributes, kernel);
        if (!error)
            error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&usage->blocks_per_unit, kernel,
                                                                  S::threads, S::fast_bytes);
        if (error)
            return error;
        usage->threads = S::threads;
        usage->registers = attributes.numRegs;
        usage->spilled_bytes = int(attributes.localSizeBytes);
        usage->fast_bytes = int(attributes.sharedSizeBytes) + S::fast_bytes;
        return 0;
    }
};

template <tg_tile T> constexpr tg_kernel_entry entry()
{
    using row = launcher<T>;
    return {row::takes, workspace, row::launch, row::usage};
}

} // namespace tg::matrix

#endif
