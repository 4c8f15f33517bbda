/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact f32 GEMM for Hopper (sm_90a): the loop that keeps the FFMA pipes busy, for any row of the
 * table whose block is staged three times or more.
 *
 *   producer, one thread      stages in shared memory        consumers, registers
 *   +-------------------+     +-----------------------+     +--------------------------+
 *   | copy engine:      |     | A [block.k][block.m]  |     | slice 0: k 0 ..  of each |
 *   | box of A, box of B| --> | B [block.k][block.n]  | --> | slice 1: k ..    stage   |
 *   | for a free stage  |     | x stages              |     | warp tile = one unit     |
 *   +-------------------+     +-----------------------+     +--------------------------+
 *             ^------------------ empty <- | -> full -------------^
 *
 * Both operands lie k-major in shared memory, so there is one loop for all transposes; an operand
 * that does not lie so in memory is rewritten first (prepass.h). Three properties of the hardware
 * shape the loop:
 *   - Registers have two banks, and an FFMA may fetch one operand from each: a is reused from the
 *     instruction before, so b and the accumulator must differ in parity (see park).
 *   - A wide load from shared memory disturbs the FFMAs least if four neighbouring lanes read four
 *     different places of both operands (see lane_of).
 *   - A long loop body loses its double buffer to the compiler's scheduler: it is four k long. */
#ifndef TG_HOPPER_H
#define TG_HOPPER_H

#include <cuda.h>
#include <cuda_runtime.h>

#include "call.h"
#include "prepass.h"

namespace tg_hopper
{

/* ------------------------------------------------------------------------------------ geometry */

constexpr tg_limits limits = {{4, 8}, 1024, 16, 255, 4, 227 << 10, 0, 0, 0, 0};
constexpr int producers = 128; /* registers are dealt out by groups of four warps */
constexpr int quad = 4;        /* k of one loop body, and floats of one load      */
constexpr int group = 8;       /* rows of tiles that are walked down together     */

template <tg_tile T> struct shape {
    static constexpr tg_mn warps = tg_tile_warps(T);
    static constexpr int consumers = (int)tg_tile_threads(T, limits.lanes);
    static constexpr int threads = consumers + producers;
    static constexpr int stage = (T.block.m + T.block.n) * T.block.k; /* floats */
    static constexpr int slice_k = T.block.k / T.slices;
    static constexpr int pitch = T.block.n + quad; /* of a tile of C in shared memory */
    static constexpr int parked = T.slices * T.block.m * pitch;
    static constexpr int stages = (int)tg_max(stage * T.stages, parked);
    static constexpr int barriers = 2 * T.stages + 1; /* and the word that says who is last */
    static constexpr int bytes = stages * 4 + barriers * 8;
    static constexpr int blocks = threads <= 256 && bytes <= 113 << 10 ? 2 : 1;
    static constexpr int consumer_registers = threads * blocks <= 384 ? 240 : 216;
    static constexpr int producer_registers = 24;
};

TG_FN bool fits(tg_tile t)
{
    if (!tg_tile_fits(t, limits, 4) || t.form != TG_OUTER_T || t.vec != quad || t.stages < 3)
        return false;
    const tg_mn rep = tg_tile_rep(t, limits.lanes);
    return rep.m == 1 && rep.n == 1 && t.thread.m % quad == 0 && t.block.m <= 256 &&
           t.block.n <= 256 && t.block.k <= 256 && t.block.k % (t.slices * quad) == 0 &&
           tg_tile_threads(t, limits.lanes) % 128 == 0;
}

/* ------------------------------------------------------------------------- a call, as seen here */

/* The first tiles run whole, one block each; of the others, every one is cut into parts. */
struct schedule {
    int m, n, steps; /* steps of block.k                          */
    int tiles_m, tiles_n;
    int64_t whole, split; /* tiles */
    int parts;

    __host__ __device__ int64_t blocks() const { return whole + split * parts; }
};

struct arguments {
    CUtensorMap a, b; /* m or n fastest, then k, then the item */
    schedule s;
    float *c;
    int64_t c_row, c_item;
    float alpha, beta;
    int a_items, b_items; /* 0: one matrix for all */
    bool wide;            /* rows of C can be written four elements at a time */
    float *partials;      /* [split][parts][block.m][block.n] */
    unsigned *tickets;    /* [split] */
};

/* What one block does. */
struct work {
    int row, col, item; /* of C */
    int first, steps;   /* of k */
    int part, parts;
    int64_t split; /* which of the split tiles it is */
};

template <tg_tile T> __device__ work work_of(const schedule &s, int64_t block)
{
    work w = {0, 0, 0, 0, s.steps, 0, 1, 0};
    int64_t tile = block;
    if (block >= s.whole) {
        w.split = (block - s.whole) / s.parts;
        w.part = (int)((block - s.whole) % s.parts);
        w.parts = s.parts;
        w.first = (int)((int64_t)s.steps * w.part / w.parts);
        w.steps = (int)((int64_t)s.steps * (w.part + 1) / w.parts) - w.first;
        tile = s.whole + w.split;
    }
    const int64_t of_item = (int64_t)s.tiles_m * s.tiles_n;
    w.item = (int)(tile / of_item);
    const int64_t place = tile % of_item, strip = place / ((int64_t)group * s.tiles_n);
    const int in_strip = (int)(place - strip * group * s.tiles_n);
    const int rows = (int)tg_min(group, s.tiles_m - strip * group);
    w.row = (int)(strip * group + in_strip % rows) * T.block.m;
    w.col = in_strip / rows * T.block.n;
    return w;
}

/* ------------------------------------------------------------- what the language has no words for
 */

__device__ inline unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}

__device__ inline void barrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals));
}

__device__ inline void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Waits until the barrier has left the phase of this parity. */
__device__ inline void barrier_wait(uint64_t *barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

__device__ inline void fetch_box(float *to, const CUtensorMap &map, int x, int k, int item,
                                 uint64_t *full)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(x), "r"(k), "r"(item), "r"(shared_address(full))
                 : "memory");
}

template <tg_tile T> __device__ void consumers_meet()
{
    asm volatile("bar.sync 1, %0;" ::"n"(shape<T>::consumers) : "memory");
}

__device__ inline void wait_for_prepass() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/* ---------------------------------------------------------------------------------- the pipeline
 */

template <tg_tile T> struct pipeline {
    float *stages;
    uint64_t *full, *empty;
    unsigned *last;

    __device__ explicit pipeline(float *memory)
        : stages(memory), full(reinterpret_cast<uint64_t *>(memory + shape<T>::stages)),
          empty(full + T.stages), last(reinterpret_cast<unsigned *>(empty + T.stages))
    {
    }
    __device__ void init() const
    {
        for (int stage = 0; stage < T.stages; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], shape<T>::consumers / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
};

/* A place in the ring of stages; parity flips each time round. */
template <tg_tile T> struct turn {
    int stage = 0, parity = 0;

    __device__ void next()
    {
        if (++stage == T.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <tg_tile T>
__device__ void produce(const arguments &p, const work &w, const pipeline<T> &pipe)
{
    wait_for_prepass();
    turn<T> at;
    for (int step = w.first; step < w.first + w.steps; step++, at.next()) {
        float *stage = pipe.stages + at.stage * shape<T>::stage;
        barrier_wait(&pipe.empty[at.stage], at.parity ^ 1);
        barrier_expect(&pipe.full[at.stage], shape<T>::stage * 4);
        fetch_box(stage, p.a, w.row, step * T.block.k, w.item * p.a_items, &pipe.full[at.stage]);
        fetch_box(stage + T.block.m * T.block.k, p.b, w.col, step * T.block.k, w.item * p.b_items,
                  &pipe.full[at.stage]);
    }
}

/* ------------------------------------------------------------------------------ the multiplication
 */

/* Where a consumer's part of C begins in the tile, and which k of a stage it takes. The lanes are
 * skewed: any four neighbours differ in both coordinates. */
struct lane {
    int row, col, slice;
};

template <tg_tile T> __device__ lane lane_of(int thread)
{
    constexpr tg_mn lanes = limits.lanes, warps = shape<T>::warps;
    const int warp = thread / 32, in_warp = thread % 32;
    const int lane_m = in_warp % lanes.m, lane_n = (in_warp / lanes.m + in_warp) % lanes.n;
    return {tg_tile_row(T, lanes, warp / warps.n % warps.m, 0, lane_m, 0),
            tg_tile_col(T, lanes, warp % warps.n, 0, lane_n, 0), warp / (warps.m * warps.n)};
}

template <tg_tile T> struct fragments {
    float a[T.thread.m], b[T.thread.n];

    /* One k, from a lane's place in a row of the stage. */
    __device__ void load(const float *from_a, const float *from_b)
    {
        load_pieces(a, from_a, limits.lanes.m);
        load_pieces(b, from_b, limits.lanes.n);
    }
    template <int Count>
    __device__ static void load_pieces(float (&to)[Count], const float *from, int lanes)
    {
#pragma unroll
        for (int i = 0; i < Count; i += quad) {
            const float4 piece = *reinterpret_cast<const float4 *>(from + i * lanes);
            to[i] = piece.x;
            to[i + 1] = piece.y;
            to[i + 2] = piece.z;
            to[i + 3] = piece.w;
        }
    }
};

template <tg_tile T> struct accumulators {
    float c[T.thread.m][T.thread.n] = {};

    /* There and back along n, so that b is reused where the row turns. */
    __device__ void add(const fragments<T> &f)
    {
#pragma unroll
        for (int i = 0; i < T.thread.m; i++)
#pragma unroll
            for (int step = 0; step < T.thread.n; step++) {
                const int j = i % 2 ? T.thread.n - 1 - step : step;
                c[i][j] = fmaf(f.a[i], f.b[j], c[i][j]);
            }
    }
};

/* A stage is bodies of four k: in a loop all but the last, which is a copy of its own, because it
 * takes its last fragments from the next stage. */
template <tg_tile T>
__device__ void multiply(accumulators<T> &acc, const work &w, const pipeline<T> &pipe,
                         const lane &me)
{
    constexpr int m = T.block.m, n = T.block.n;
    const float *const a_0 = pipe.stages + me.slice * shape<T>::slice_k * m + me.row;
    const float *const b_0 =
        pipe.stages + m * T.block.k + me.slice * shape<T>::slice_k * n + me.col;
    fragments<T> f[2];
    turn<T> at;
    barrier_wait(&pipe.full[0], 0);
    f[0].load(a_0, b_0);
    for (int step = w.steps; step > 0; step--) {
        const float *a = a_0 + at.stage * shape<T>::stage, *b = b_0 + at.stage * shape<T>::stage;
#pragma unroll 1
        for (int k = 0; k < shape<T>::slice_k - quad; k += quad, a += quad * m, b += quad * n)
#pragma unroll
            for (int i = 0; i < quad; i++) {
                f[(i + 1) % 2].load(a + (i + 1) * m, b + (i + 1) * n);
                acc.add(f[i % 2]);
            }
        turn<T> next = at;
        if (step > 1) {
            next.next();
            barrier_wait(&pipe.full[next.stage], next.parity);
        }
        const float *next_a = a_0 + next.stage * shape<T>::stage;
        const float *next_b = b_0 + next.stage * shape<T>::stage;
#pragma unroll
        for (int i = 0; i < quad; i++) {
            if (i < quad - 1)
                f[(i + 1) % 2].load(a + (i + 1) * m, b + (i + 1) * n);
            else
                f[(i + 1) % 2].load(next_a, next_b);
            acc.add(f[i % 2]);
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&pipe.empty[at.stage]);
        at = next;
    }
}

/* ------------------------------------------------------------------------- from registers to C */

/* The slices of a tile lie side by side in the memory of the stages. Neighbouring columns change
 * places there: four elements that are stored together are four neighbouring registers, the first
 * an even one, and so c[j] gets the bank that b[j], loaded in order, is not in. */
template <tg_tile T> __device__ void park(float *memory, const accumulators<T> &acc, const lane &me)
{
    float *to = memory + (me.slice * T.block.m + me.row) * shape<T>::pitch + me.col;
#pragma unroll
    for (int i = 0; i < T.thread.m; i++)
#pragma unroll
        for (int j = 0; j < T.thread.n; j += quad) {
            const int row = tg_piece_of(i, quad, 0, limits.lanes.m), col = j * limits.lanes.n;
            *reinterpret_cast<float4 *>(to + row * shape<T>::pitch + col) =
                make_float4(acc.c[i][j + 1], acc.c[i][j], acc.c[i][j + 3], acc.c[i][j + 2]);
        }
}

/* One element or four, as a vector type that adds. */
template <int Wide> struct vector {
    float x[Wide];

    __device__ static vector read(const float *from)
    {
        if constexpr (Wide == quad) {
            const float4 all = *reinterpret_cast<const float4 *>(from);
            return {all.x, all.y, all.z, all.w};
        } else
            return {*from};
    }
    __device__ void write(float *to) const
    {
        if constexpr (Wide == quad)
            *reinterpret_cast<float4 *>(to) = make_float4(x[0], x[1], x[2], x[3]);
        else
            *to = x[0];
    }
    __device__ vector plus(const vector &other) const
    {
        vector sum;
#pragma unroll
        for (int i = 0; i < Wide; i++)
            sum.x[i] = x[i] + other.x[i];
        return sum;
    }
};

/* The two places that a finished tile is summed from, both in a fixed order. */
template <tg_tile T> struct parked_slices {
    const float *memory;

    template <int Wide> __device__ vector<Wide> sum(int row, int col) const
    {
        const float *from = memory + row * shape<T>::pitch + (Wide == 1 ? col ^ 1 : col);
        vector<Wide> sum = vector<Wide>::read(from);
#pragma unroll
        for (int slice = 1; slice < T.slices; slice++)
            sum = sum.plus(vector<Wide>::read(from + slice * T.block.m * shape<T>::pitch));
        if constexpr (Wide == quad)
            sum = {sum.x[1], sum.x[0], sum.x[3], sum.x[2]};
        return sum;
    }
};

template <tg_tile T> struct stored_parts {
    const float *memory;
    int parts;

    template <int Wide> __device__ vector<Wide> sum(int row, int col) const
    {
        const float *from = memory + row * T.block.n + col;
        vector<Wide> sum = vector<Wide>::read(from);
        for (int part = 1; part < parts; part++)
            sum = sum.plus(vector<Wide>::read(from + (int64_t)part * T.block.m * T.block.n));
        return sum;
    }
};

/* C of one tile, row by row, by all consumers; several rows at once where C is to be read. */
template <tg_tile T, int Wide, class Source>
__device__ void write_tile(const arguments &p, const work &w, const Source &source)
{
    constexpr int size = T.block.m * T.block.n, step = shape<T>::consumers * Wide;
    constexpr int at_once = (int)tg_min(4, size / step);
    static_assert(size % (step * at_once) == 0);
    const vector<Wide> zero = {};
    for (int from = threadIdx.x * Wide; from < size; from += step * at_once) {
        float *to[at_once];
        vector<Wide> old[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const int row = w.row + (from + i * step) / T.block.n;
            const int col = w.col + (from + i * step) % T.block.n;
            to[i] = row < p.s.m && col < p.s.n ? p.c + w.item * p.c_item + row * p.c_row + col
                                               : nullptr;
            old[i] = to[i] && p.beta != 0 ? vector<Wide>::read(to[i]) : zero;
        }
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            vector<Wide> v = source.template sum<Wide>((from + i * step) / T.block.n,
                                                       (from + i * step) % T.block.n);
#pragma unroll
            for (int e = 0; e < Wide; e++)
                v.x[e] =
                    p.beta != 0 ? fmaf(p.beta, old[i].x[e], p.alpha * v.x[e]) : p.alpha * v.x[e];
            if (to[i])
                v.write(to[i]);
        }
    }
}

template <tg_tile T, class Source>
__device__ void write_tile(const arguments &p, const work &w, const Source &source)
{
    if (p.wide)
        write_tile<T, quad>(p, w, source);
    else
        write_tile<T, 1>(p, w, source);
}

/* Stores this block's part of a split tile. True in the block that is the last to do so. */
template <tg_tile T>
__device__ bool store_part(const arguments &p, const work &w, const parked_slices<T> &slices,
                           float *parts, unsigned *last)
{
    constexpr int size = T.block.m * T.block.n;
    for (int at = threadIdx.x * quad; at < size; at += shape<T>::consumers * quad)
        slices.template sum<quad>(at / T.block.n, at % T.block.n).write(parts + w.part * size + at);
    __threadfence();
    consumers_meet<T>();
    if (threadIdx.x == 0) {
        wait_for_prepass(); /* it zeroed the tickets */
        *last = atomicAdd(&p.tickets[w.split], 1) == w.parts - 1;
    }
    consumers_meet<T>();
    __threadfence();
    return *last;
}

template <tg_tile T>
__device__ void consume(const arguments &p, const work &w, const pipeline<T> &pipe)
{
    const lane me = lane_of<T>(threadIdx.x);
    accumulators<T> acc;
    multiply(acc, w, pipe, me);
    consumers_meet<T>(); /* nobody reads the stages any more */
    park(pipe.stages, acc, me);
    consumers_meet<T>();
    const parked_slices<T> slices = {pipe.stages};
    if (w.parts == 1) {
        write_tile<T>(p, w, slices);
        return;
    }
    float *parts = p.partials + w.split * w.parts * (T.block.m * T.block.n);
    if (store_part(p, w, slices, parts, pipe.last))
        write_tile<T>(p, w, stored_parts<T>{parts, w.parts});
}

template <tg_tile T>
__global__ void __launch_bounds__(shape<T>::threads, shape<T>::blocks)
    gemm(const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) float memory[];
    const pipeline<T> pipe(memory);
    if (threadIdx.x == 0)
        pipe.init();
    __syncthreads();
    const work w = work_of<T>(p.s, blockIdx.x);
    if (threadIdx.x >= shape<T>::consumers) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(shape<T>::producer_registers));
        if (threadIdx.x == shape<T>::consumers)
            produce(p, w, pipe);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(shape<T>::consumer_registers));
        consume(p, w, pipe);
    }
}

/* -------------------------------------------------------------------------------- the host's half
 */

using encode_function = decltype(&cuTensorMapEncodeTiled);

/* From the driver that is loaded anyway, so that nothing links against it. */
inline encode_function find_encode()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                         &result))
        return nullptr;
#else
    if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result))
        return nullptr;
#endif
    return reinterpret_cast<encode_function>(found);
}

/* An operand with x (m or n) and k as its axes. */
struct operand {
    const float *data;
    int64_t x_stride, k_stride, item_stride;
    int x, k, items; /* items: 1 if all of the batch share one */
};

inline operand operand_a(const tg_call *c)
{
    return {(const float *)c->a,
            c->a_row,
            c->a_col,
            c->a_item,
            (int)c->m,
            (int)c->k,
            c->a_item == 0 ? 1 : (int)c->batch};
}

inline operand operand_b(const tg_call *c)
{
    return {(const float *)c->b,
            c->b_col,
            c->b_row,
            c->b_item,
            (int)c->n,
            (int)c->k,
            c->b_item == 0 ? 1 : (int)c->batch};
}

/* Can the copy engine fetch it as it lies? */
inline bool in_place(const operand &o)
{
    const int64_t most = (int64_t)1 << 37;
    return o.x_stride == 1 && o.k_stride >= o.x && o.k_stride < most && o.k_stride % quad == 0 &&
           (uintptr_t)o.data % 16 == 0 &&
           (o.items == 1 ||
            (o.item_stride > 0 && o.item_stride < most && o.item_stride % quad == 0));
}

inline int64_t copy_pitch(const operand &o) { return tg_round_up(o.x, 32); }

inline size_t copy_bytes(const operand &o)
{
    return in_place(o) ? 0 : tg_round_up(copy_pitch(o) * o.k * o.items * 4, 256);
}

/* In how many parts the tiles of the last, unfilled wave are cut, in units of a step of k with all
 * blocks at work: the rounds that the parts take, and what each part costs besides (a pipeline to
 * fill, a tile to store and to add). */
inline int tail_parts(int64_t tiles, int64_t slots, int steps, int block_k)
{
    const double start = 24.0 / block_k, add = 4.0 / block_k;
    int best = 1;
    double least = (double)tg_ceil_div(tiles, slots) * steps;
    for (int parts = 2; parts <= 16 && parts <= steps; parts++) {
        const double rounds = (double)tg_ceil_div(tiles * parts, slots);
        const double now = rounds * ((double)steps / parts + start) + add * parts;
        if (now < least) {
            least = now;
            best = parts;
        }
    }
    return best;
}

template <tg_tile T> schedule schedule_of(const tg_call *call)
{
    schedule s = {(int)call->m, (int)call->n, (int)tg_ceil_div(call->k, T.block.k), 0, 0, 0, 0, 1};
    s.tiles_m = (int)tg_ceil_div(call->m, T.block.m);
    s.tiles_n = (int)tg_ceil_div(call->n, T.block.n);
    s.whole = (int64_t)s.tiles_m * s.tiles_n * call->batch;
    const int64_t slots = (int64_t)tg_max(1, call->units) * shape<T>::blocks;
    if (call->splits > 1) {
        s.parts = (int)tg_min(call->splits, s.steps);
        s.split = s.parts > 1 ? s.whole : 0;
    } else if (call->tail != TG_TAIL_WHOLE) {
        const int64_t rest = s.whole % slots;
        s.parts = tail_parts(rest, slots, s.steps, T.block.k);
        s.split = s.parts > 1 ? rest : 0;
    }
    s.whole -= s.split;
    return s;
}

/* The workspace: copy of A, copy of B, partial tiles, tickets. */
template <tg_tile T> struct layout {
    size_t a, b, partials, tickets, bytes;

    explicit layout(const tg_call *call)
    {
        const schedule s = schedule_of<T>(call);
        a = 0;
        b = a + copy_bytes(operand_a(call));
        partials = b + copy_bytes(operand_b(call));
        tickets = partials + s.split * s.parts * T.block.m * T.block.n * sizeof(float);
        bytes = tickets + tg_round_up(s.split * sizeof(unsigned), 256);
    }
};

template <tg_tile T> size_t workspace(const tg_call *call) { return layout<T>(call).bytes; }

template <tg_tile T> int takes(const tg_call *call)
{
    const int64_t most = INT32_MAX - 256;
    if (call->c_col != 1 || call->k < 1 || call->m > most || call->n > most || call->k > most ||
        call->batch > most)
        return 0;
    const double tiles = (double)tg_ceil_div(call->m, T.block.m) * tg_ceil_div(call->n, T.block.n);
    const double elements = (double)tg_max(call->m, call->n) * call->k * call->batch;
    return tiles * call->batch * tg_max(1, call->splits) < 1e9 && elements < 1e12;
}

inline bool encode(encode_function encode, CUtensorMap *map, const operand &o, int box_x, int box_k)
{
    const cuuint64_t size[3] = {(cuuint64_t)o.x, (cuuint64_t)o.k, (cuuint64_t)o.items};
    const cuuint64_t item = o.items == 1 ? o.k_stride : o.item_stride;
    const cuuint64_t stride[2] = {(cuuint64_t)o.k_stride * 4, item * 4};
    const cuuint32_t box[3] = {(cuuint32_t)box_x, (cuuint32_t)box_k, 1}, every[3] = {1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, const_cast<float *>(o.data), size,
                  stride, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* The operand as the kernel fetches it; the way there is noted in copy. */
inline operand fetched(const operand &o, void *memory, tg_prepass::copy *copy)
{
    if (in_place(o))
        return o;
    *copy = {o.data, (float *)memory, o.x_stride, o.k_stride, o.item_stride, copy_pitch(o), o.x,
             o.k,    o.items};
    return {copy->to, 1, copy->pitch, copy->item_pitch(), o.x, o.k, o.items};
}

/* With early, the kernel starts while the one before it ends, and waits for it where it must. */
template <tg_tile T> cudaError_t start(const arguments &args, bool early, cudaStream_t stream)
{
    cudaError_t error =
        cudaFuncSetAttribute(gemm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shape<T>::bytes);
    if (error)
        return error;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)args.s.blocks());
    config.blockDim = dim3(shape<T>::threads);
    config.dynamicSmemBytes = shape<T>::bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early ? 1 : 0;
    return cudaLaunchKernelEx(&config, gemm<T>, args);
}

template <tg_tile T> int launch(const tg_call *call, void *stream)
{
    static const encode_function encoder = find_encode();
    if (!encoder)
        return cudaErrorNotSupported;
    const layout<T> at(call);
    char *memory = (char *)call->workspace;
    tg_prepass::job before = {};
    arguments args = {};
    args.s = schedule_of<T>(call);
    const operand a = fetched(operand_a(call), memory + at.a, &before.a);
    const operand b = fetched(operand_b(call), memory + at.b, &before.b);
    if (!encode(encoder, &args.a, a, T.block.m, T.block.k) ||
        !encode(encoder, &args.b, b, T.block.n, T.block.k))
        return cudaErrorInvalidValue;
    args.c = (float *)call->c;
    args.c_row = call->c_row;
    args.c_item = call->c_item;
    args.alpha = (float)call->alpha;
    args.beta = (float)call->beta;
    args.a_items = a.items > 1;
    args.b_items = b.items > 1;
    args.wide =
        ((uintptr_t)call->c % 16 | call->n % quad | call->c_row % quad | call->c_item % quad) == 0;
    args.partials = (float *)(memory + at.partials);
    args.tickets = (unsigned *)(memory + at.tickets);
    before.tickets = args.tickets;
    before.ticket_count = args.s.split;
    const bool prepare = before.a.items || before.b.items || before.ticket_count;
    if (prepare)
        if (const cudaError_t error = tg_prepass::launch(before, (cudaStream_t)stream))
            return error;
    return start<T>(args, prepare, (cudaStream_t)stream);
}

template <tg_tile T> int usage(tg_usage *usage)
{
    cudaFuncAttributes kernel;
    cudaError_t error = cudaFuncGetAttributes(&kernel, gemm<T>);
    if (!error)
        error = cudaFuncSetAttribute(gemm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     shape<T>::bytes);
    int blocks = 0;
    if (!error)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gemm<T>, shape<T>::threads,
                                                              shape<T>::bytes);
    *usage = {shape<T>::threads, shape<T>::consumer_registers, (int)kernel.localSizeBytes,
              shape<T>::bytes, blocks};
    return error;
}

} /* namespace tg_hopper */

#endif
