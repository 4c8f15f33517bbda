/* SPDX-License-Identifier: Apache-2.0
 *
 * Many small products: warps that share a tile of C form a team, and a block has as many teams as
 * it needs to be worth starting, each with a tile of its own, mostly a whole item of the batch.
 *
 *   block   team 0: item 0        team 1: item 1        ...       128 threads or more
 *           .----+---------.      .----+---------.
 *           | A  |  C      |      | A  |  C      |      tiles: items x tiles of m x tiles of n,
 *           '----+---------'      '----+---------'      numbered in that order
 *                |  B      |           |  B      |
 *
 * Both operands are staged k-major, [k][m] and [k][n], from whatever strides. The next tile of k is
 * on its way to registers while this one is multiplied. With little to multiply, what counts is
 * that few instructions carry it: a thread's pieces of an operand are a constant step apart. */
#ifndef TG_BATCH_H
#define TG_BATCH_H

#include "thin.h"

namespace tg
{

/* How an operand is carried: in vectors along its lines or along k, or element by element. */
enum class batch_way { vectors_of_line, vectors_of_k, elements };

/* One item's A or B^T is lines x k: rows of A, columns of B. */
template <typename T_elem> struct batch_operand {
    const T_elem *data;
    int64_t line, k, item; /* strides */
};

template <typename T_elem> struct batch_call {
    batch_operand<T_elem> a, b;
    T_elem *c;
    int64_t c_row, c_col, c_item;
    int64_t m, n, k;
    unsigned tiles_m, tiles_n, tiles; /* tiles: of all items together */
    bool c_is_wide;                   /* vectors of its rows can be stored */
    T_elem alpha, beta;
};

template <tg_tile T, typename T_elem> struct batch {
    static constexpr tg_mn lanes = widest.lanes;
    static constexpr tg_tile tile = filled<T_elem>(T);
    static constexpr tg_mn rep = tg_tile_rep(tile, lanes), warps = tg_tile_warps(tile);
    static constexpr int rows = rep.m * T.thread.m, cols = rep.n * T.thread.n; /* of a lane */
    static constexpr int warp_size = lanes.m * lanes.n;
    static constexpr int team = int(tg_tile_threads(tile, lanes));
    static constexpr int teams = team < 128 ? 128 / team : 1;
    static constexpr int threads = team * teams;
    /* Memory is hidden by many threads, so a small row gets few registers for each: they hold its
     * part of C and of the tiles on their way in. */
    static constexpr int held = (T.block.m + T.block.n) * T.block.k / team;
    static constexpr int words = (rows * cols + held) * int(sizeof(T_elem)) / 4;
    static constexpr int wanted_threads = words < 32    ? 1024
                                          : words <= 40 ? 640
                                          : words <= 64 ? 512
                                          : words <= 96 ? 384
                                                        : 256;
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ >= 1000)
    static constexpr int fewer = 2; /* their compilers want more registers for the same text */
#else
    static constexpr int fewer = 1;
#endif
    static constexpr int blocks_per_unit = int(tg_max(1, wanted_threads / fewer / threads));
    /* Lines are padded by a vector: elements that are staged across them then meet fewer others
     * in a bank of fast memory. */
    static constexpr int a_stride = T.block.m + T.vec, b_stride = T.block.n + T.vec;
    static constexpr int stage = T.block.k * (a_stride + b_stride);
    static constexpr int64_t fast_bytes = int64_t(sizeof(T_elem)) * stage * T.stages * teams;

    static constexpr bool is_dealt_evenly(int run, int lines)
    {
        return team % run == 0 && lines * T.block.k % (team * T.vec) == 0;
    }
    static constexpr bool is_possible =
        (T.stages == 1 || T.stages == 2) && T.form == TG_OUTER_T && T.slices == 1 &&
        T.thread.m % T.vec == 0 && T.block.k % T.vec == 0 && T.block.m % T.vec == 0 &&
        is_dealt_evenly(T.block.k, T.block.m) && is_dealt_evenly(T.block.m, T.block.m) &&
        is_dealt_evenly(T.block.n, T.block.n) && fast_bytes <= 48 << 10;
};

/* ------------------------------------------------------------------------------------ the way in
 */

/* A tile of lines x depth on its way from slow to fast memory, through the registers of a team.
 * Pieces are dealt out along the direction in which neighbours are contiguous, so that a thread's
 * pieces differ in the other one only. */
template <typename T_elem, batch_way way, int lines, int depth, int vec, int team>
struct batch_carrier {
    static constexpr int width = way == batch_way::elements ? 1 : vec;
    static constexpr int count = lines * depth / team / width, stride = lines + vec;
    const T_elem *next; /* the thread's first piece of the tile that is fetched next */
    int64_t slow_step, k_stride;
    int fast_first, fast_step;
    int k, k_step, pieces; /* pieces: that have lines; all of them, where they differ in k */
    T_elem held[count][width];

    __device__ batch_carrier(const batch_operand<T_elem> &from, int64_t item, int64_t first_line,
                             int left_lines, int thread)
    {
        const bool along_k = way == batch_way::vectors_of_k ||
                             (way == batch_way::elements && (from.k == 1 || from.line != 1));
        const int run = (along_k ? depth : lines) / width, step = team / run;
        const int across = thread / run, along = thread % run * width;
        const int line = along_k ? across : along;
        k = along_k ? along : across;
        k_step = along_k ? 0 : step;
        pieces = along_k ? int(tg_ceil_div(tg_max(left_lines - line, 0), step))
                         : (line < left_lines ? count : 0);
        k_stride = from.k;
        slow_step = step * (along_k ? from.line : from.k);
        fast_first = k * stride + line;
        fast_step = step * (along_k ? 1 : stride);
        next = from.data + item * from.item + (first_line + line) * from.line + k * from.k;
    }

    /* The next tile, of which left of k exist; the rest is zeros. */
    __device__ void fetch(int64_t left)
    {
        const T_elem *at = next;
#pragma unroll
        for (int x = 0; x < count; x++) {
            vector<T_elem, width> piece = {};
            if (x < pieces && k + x * k_step < left)
                piece = load_vector<width>(at);
#pragma unroll
            for (int e = 0; e < width; e++)
                held[x][e] = piece.at[e];
            at += slow_step;
        }
        next += depth * k_stride;
    }

    __device__ void put(T_elem *tile) const
    {
        tile += fast_first;
#pragma unroll
        for (int x = 0; x < count; x++) {
            if constexpr (way == batch_way::vectors_of_line) {
                vector<T_elem, width> piece;
#pragma unroll
                for (int e = 0; e < width; e++)
                    piece.at[e] = held[x][e];
                store_vector(tile, piece);
            } else
#pragma unroll
                for (int e = 0; e < width; e++)
                    tile[e * stride] = held[x][e];
            tile += fast_step;
        }
    }
};

/* ------------------------------------------------------------------------------------- the kernel
 */

/* Which tile a thread works on, and what of it is a lane's. */
template <tg_tile T, typename T_elem> struct batch_place {
    using shape = batch<T, T_elem>;
    int thread, warp_m, warp_n, lane_m, lane_n; /* thread: of the team */
    int64_t item, first_row, first_col;
    int rows, cols; /* of C from there on, at most a block's; 0: the team has no tile */

    __device__ explicit batch_place(const batch_call<T_elem> &p)
    {
        thread = threadIdx.x % shape::team;
        const int warp = thread / shape::warp_size, lane = thread % shape::warp_size;
        warp_m = warp / shape::warps.n, warp_n = warp % shape::warps.n;
        lane_m = lane / shape::lanes.n, lane_n = lane % shape::lanes.n;
        const unsigned tile = blockIdx.x * shape::teams + threadIdx.x / shape::team;
        item = tile / p.tiles_n / p.tiles_m;
        first_row = int64_t(tile / p.tiles_n % p.tiles_m) * T.block.m;
        first_col = int64_t(tile % p.tiles_n) * T.block.n;
        rows = tile < p.tiles ? int(tg_min(p.m - first_row, T.block.m)) : 0;
        cols = tile < p.tiles ? int(tg_min(p.n - first_col, T.block.n)) : 0;
    }

    __device__ int row(int i) const
    {
        return tg_tile_row(shape::tile, shape::lanes, warp_m, i / T.thread.m, lane_m,
                           i % T.thread.m);
    }
    __device__ int col(int j) const
    {
        return tg_tile_col(shape::tile, shape::lanes, warp_n, j / T.thread.n, lane_n,
                           j % T.thread.n);
    }
};

template <tg_tile T, typename T_elem>
__device__ inline void batch_multiply(const T_elem *a_tile, const T_elem *b_tile,
                                      const batch_place<T, T_elem> &me,
                                      T_elem (&sum)[batch<T, T_elem>::rows][batch<T, T_elem>::cols])
{
    using shape = batch<T, T_elem>;
    constexpr int at_once = shape::rows * shape::cols >= 32 ? 4 : 8;
#pragma unroll at_once
    for (int k = 0; k < T.block.k; k++) {
        T_elem a[shape::rows], b[shape::cols];
#pragma unroll
        for (int i = 0; i < shape::rows; i += T.vec) {
            const auto x = load_vector<T.vec>(a_tile + k * shape::a_stride + me.row(i));
#pragma unroll
            for (int e = 0; e < T.vec; e++)
                a[i + e] = x.at[e];
        }
#pragma unroll
        for (int j = 0; j < shape::cols; j += T.vec) {
            const auto x = load_vector<T.vec>(b_tile + k * shape::b_stride + me.col(j));
#pragma unroll
            for (int e = 0; e < T.vec; e++)
                b[j + e] = x.at[e];
        }
#pragma unroll
        for (int i = 0; i < shape::rows; i++)
#pragma unroll
            for (int j = 0; j < shape::cols; j++)
                sum[i][j] += a[i] * b[j];
    }
}

template <tg_tile T, typename T_elem>
__device__ inline void batch_store(const batch_call<T_elem> &p, const batch_place<T, T_elem> &me,
                                   T_elem (&sum)[batch<T, T_elem>::rows][batch<T, T_elem>::cols])
{
    using shape = batch<T, T_elem>;
    T_elem *c = p.c + me.item * p.c_item + me.first_row * p.c_row + me.first_col * p.c_col;
#pragma unroll
    for (int i = 0; i < shape::rows; i++) {
        if (me.row(i) >= me.rows)
            continue;
        T_elem *row = c + me.row(i) * p.c_row;
#pragma unroll
        for (int j = 0; j < shape::cols; j += T.vec) {
            const int col = me.col(j);
            vector<T_elem, T.vec> x = {};
            const bool is_wide = p.c_is_wide && col + T.vec <= me.cols;
            if (p.beta != 0 && is_wide)
                x = load_vector<T.vec>(row + col);
#pragma unroll
            for (int e = 0; e < T.vec; e++) {
                if (p.beta != 0 && !is_wide && col + e < me.cols)
                    x.at[e] = row[(col + e) * p.c_col];
                x.at[e] = p.beta == 0 ? p.alpha * sum[i][j + e]
                                      : p.alpha * sum[i][j + e] + p.beta * x.at[e];
                if (!is_wide && col + e < me.cols)
                    row[(col + e) * p.c_col] = x.at[e];
            }
            if (is_wide)
                store_vector(row + col, x);
        }
    }
}

template <tg_tile T, typename T_elem, batch_way a_way, batch_way b_way>
__global__ void GPU_BOUNDS((batch<T, T_elem>::threads), (batch<T, T_elem>::blocks_per_unit))
    batch_gemm(batch_call<T_elem> p)
{
    using shape = batch<T, T_elem>;
    alignas(16) __shared__ T_elem fast[shape::teams][T.stages][shape::stage];
    auto &stages = fast[threadIdx.x / shape::team];
    const batch_place<T, T_elem> me(p);
    batch_carrier<T_elem, a_way, T.block.m, T.block.k, T.vec, shape::team> a(
        p.a, me.item, me.first_row, me.rows, me.thread);
    batch_carrier<T_elem, b_way, T.block.n, T.block.k, T.vec, shape::team> b(
        p.b, me.item, me.first_col, me.cols, me.thread);

    T_elem sum[shape::rows][shape::cols] = {};
    a.fetch(p.k);
    b.fetch(p.k);
    int stage = 0;
    for (int64_t left = p.k; left > 0; left -= T.block.k) {
        T_elem *a_tile = stages[stage], *b_tile = a_tile + T.block.k * shape::a_stride;
        if (T.stages == 1)
            __syncthreads();
        a.put(a_tile);
        b.put(b_tile);
        __syncthreads();
        if (left > T.block.k) {
            a.fetch(left - T.block.k);
            b.fetch(left - T.block.k);
        }
        batch_multiply<T>(a_tile, b_tile, me, sum);
        stage = (stage + 1) % T.stages;
    }
    batch_store<T>(p, me, sum);
}

/* --------------------------------------------------------------------------------------- launching
 */

/* Vectors are whole or absent if their direction has a multiple of vec. */
template <typename T_elem>
batch_way batch_way_of(const batch_operand<T_elem> &x, int64_t lines, int64_t k, int vec)
{
    const int64_t bytes = vec * sizeof(T_elem);
    if (x.k == 1 && k % vec == 0 && is_aligned(x.data, x.line, x.item, bytes, sizeof(T_elem)))
        return batch_way::vectors_of_k;
    if (x.line == 1 && lines % vec == 0 && is_aligned(x.data, x.k, x.item, bytes, sizeof(T_elem)))
        return batch_way::vectors_of_line;
    return batch_way::elements;
}

/* Vectors for both operands or for neither. */
template <tg_tile T, typename T_elem> auto batch_kernel(const batch_call<T_elem> &q)
{
    constexpr auto of_line = batch_way::vectors_of_line, of_k = batch_way::vectors_of_k;
    const batch_way a = batch_way_of(q.a, q.m, q.k, T.vec), b = batch_way_of(q.b, q.n, q.k, T.vec);
    if (a == batch_way::elements || b == batch_way::elements)
        return batch_gemm<T, T_elem, batch_way::elements, batch_way::elements>;
    if (a == of_line)
        return b == of_line ? batch_gemm<T, T_elem, of_line, of_line>
                            : batch_gemm<T, T_elem, of_line, of_k>;
    return b == of_line ? batch_gemm<T, T_elem, of_k, of_line> : batch_gemm<T, T_elem, of_k, of_k>;
}

template <tg_tile T> int64_t batch_tiles(const tg_call *p)
{
    return tg_ceil_div(p->m, T.block.m) * tg_ceil_div(p->n, T.block.n) * p->batch;
}

template <tg_tile T, typename T_elem> int batch_takes(const tg_call *p)
{
    return p->splits == 1 && fits_a_grid(batch_tiles<T>(p), batch<T, T_elem>::threads);
}

template <tg_tile T, typename T_elem> int batch_launch(const tg_call *p, void *stream)
{
    using shape = batch<T, T_elem>;
    const bool c_is_wide = p->c_col == 1 && is_aligned(p->c, p->c_row, p->c_item,
                                                       T.vec * sizeof(T_elem), sizeof(T_elem));
    const batch_call<T_elem> q = {
        {static_cast<const T_elem *>(p->a), p->a_row, p->a_col, p->a_item},
        {static_cast<const T_elem *>(p->b), p->b_col, p->b_row, p->b_item},
        static_cast<T_elem *>(p->c),
        p->c_row,
        p->c_col,
        p->c_item,
        p->m,
        p->n,
        p->k,
        unsigned(tg_ceil_div(p->m, T.block.m)),
        unsigned(tg_ceil_div(p->n, T.block.n)),
        unsigned(batch_tiles<T>(p)),
        c_is_wide,
        T_elem(p->k ? p->alpha : 0),
        T_elem(p->beta)};
    return start(batch_kernel<T>(q), tg_ceil_div(q.tiles, shape::teams), shape::threads, 0, q,
                 stream);
}

template <tg_tile T, typename T_elem> int batch_usage(tg_usage *usage)
{
    return usage_of(batch_gemm<T, T_elem, batch_way::vectors_of_k, batch_way::vectors_of_line>,
                    batch<T, T_elem>::threads, 0, usage);
}

} // namespace tg

#endif
