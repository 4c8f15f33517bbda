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
 * that few instructions carry it: a thread's pieces of an operand are a constant step apart.
 *
 * One product whose k is split is a batch too: its items lie one after the other along k. */
#ifndef TG_BATCH_H
#define TG_BATCH_H

#include "batch_load.h"

namespace tg
{

/* --------------------------------------------------------------------------------- the kernel */

/* The tile of C that a team makes. */
struct batch_part {
    int64_t item, first_row, first_col;
    int rows, cols; /* at most a block's; 0: there is none for this team */
};

template <tg_tile T, typename T_elem>
__device__ inline batch_part batch_part_of(const batch_call<T_elem> &p, unsigned team)
{
    const unsigned tile = blockIdx.x * batch<T, T_elem>::teams + team;
    const int64_t row = int64_t(tile / p.tiles_n % p.tiles_m) * T.block.m;
    const int64_t col = int64_t(tile % p.tiles_n) * T.block.n;
    const bool is_there = tile < p.tiles;
    return {tile / p.tiles_n / p.tiles_m, row, col,
            is_there ? int(tg_min(p.m - row, T.block.m)) : 0,
            is_there ? int(tg_min(p.n - col, T.block.n)) : 0};
}

/* What of its team's tile is a lane's. */
template <tg_tile T, typename T_elem> struct batch_place {
    using shape = batch<T, T_elem>;
    int thread, warp_m, warp_n, lane_m, lane_n; /* thread: of the team */

    __device__ batch_place()
    {
        thread = threadIdx.x % shape::team;
        const int warp = thread / shape::warp_size, lane = thread % shape::warp_size;
        warp_m = warp / shape::warps.n, warp_n = warp % shape::warps.n;
        lane_m = lane / shape::lanes.n, lane_n = lane % shape::lanes.n;
    }

    __device__ int row(int i, int of_lane) const
    {
        return tg_tile_row(shape::tile, shape::lanes, warp_m, i / T.thread.m, of_lane,
                           i % T.thread.m);
    }
    __device__ int col(int j, int of_lane) const
    {
        return tg_tile_col(shape::tile, shape::lanes, warp_n, j / T.thread.n, of_lane,
                           j % T.thread.n);
    }
    __device__ int row(int i) const { return row(i, lane_m); }
    __device__ int col(int j) const { return col(j, lane_n); }
};

template <tg_tile T, typename T_elem>
__device__ inline void batch_multiply(const T_elem *a_tile, const T_elem *b_tile,
                                      const batch_place<T, T_elem> &me,
                                      T_elem (&sum)[batch<T, T_elem>::rows][batch<T, T_elem>::cols])
{
    using shape = batch<T, T_elem>;
    constexpr int at_once = shape::rows * shape::cols >= 64   ? 2
                            : shape::rows * shape::cols >= 32 ? 4
                                                              : 8;
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
            for (int x = 0; x < shape::cols; x++) {
                const int j = i % 2 ? shape::cols - 1 - x : x; /* turns where it is: a bank saved */
                sum[i][j] = fused(a[i], b[j], sum[i][j]);
            }
    }
}

template <tg_tile T, typename T_elem>
__device__ inline void batch_store(const batch_call<T_elem> &p, const batch_part part,
                                   const batch_place<T, T_elem> &me,
                                   T_elem (&sum)[batch<T, T_elem>::rows][batch<T, T_elem>::cols])
{
    using shape = batch<T, T_elem>;
    T_elem *c = p.c + part.item * p.c_item + part.first_row * p.c_row + part.first_col * p.c_col;
#pragma unroll
    for (int i = 0; i < shape::rows; i++) {
        if (me.row(i) >= part.rows)
            continue;
        T_elem *row = c + me.row(i) * p.c_row;
#pragma unroll
        for (int j = 0; j < shape::cols; j += T.vec) {
            const int col = me.col(j);
            vector<T_elem, T.vec> x = {};
            const bool is_wide = p.c_is_wide && col + T.vec <= part.cols;
            if (p.beta != 0 && is_wide)
                x = load_vector<T.vec>(row + col);
#pragma unroll
            for (int e = 0; e < T.vec; e++) {
                if (p.beta != 0 && !is_wide && col + e < part.cols)
                    x.at[e] = row[(col + e) * p.c_col];
                x.at[e] = weighted(p.alpha, sum[i][j + e], p.beta, x.at[e]);
                if (!is_wide && col + e < part.cols)
                    row[(col + e) * p.c_col] = x.at[e];
            }
            if (is_wide)
                store_vector(row + col, x);
        }
    }
}

/* C element by element, where vectors of it cannot be stored: so that neighbours write neighbours,
 * a warp puts its vectors into a patch of fast memory, and reads it back along their rows. Padded,
 * neither way meets itself in a bank. (As vectors they would tie the registers of the sums.) */
template <tg_tile T, typename T_elem>
__device__ inline void
batch_store_elements(const batch_call<T_elem> &p, const batch_part part,
                     const batch_place<T, T_elem> &me,
                     T_elem (&sum)[batch<T, T_elem>::rows][batch<T, T_elem>::cols], T_elem *patches)
{
    using shape = batch<T, T_elem>;
    constexpr int cols = shape::lanes.n * T.vec, rows = shape::warp_size / cols; /* of a patch */
    constexpr int stride = shape::warp_size + 32 / T.vec;
    static_assert(shape::team / shape::warp_size * stride * shape::cols <= shape::stage * T.stages);
    const int lane = me.thread % shape::warp_size, first = me.col(0, 0) + lane % cols;
    T_elem *const patch = patches + me.thread / shape::warp_size * stride * shape::cols;
    const T_elem *const mine = patch + lane % T.vec * stride + lane / T.vec;
    T_elem *c = p.c + part.item * p.c_item + part.first_row * p.c_row;
    c += (part.first_col + first) * p.c_col;
#pragma unroll
    for (int i = 0; i < shape::rows; i++) {
        GPU_MEET_WARP();
#pragma unroll
        for (int j = 0; j < shape::cols; j++)
            patch[j * stride + lane] = sum[i][j];
        GPU_MEET_WARP();
#pragma unroll
        for (int e = 0; e < T.vec; e++) {
            const int row = me.row(i, e * rows + lane / cols);
            T_elem *to = c + row * p.c_row;
#pragma unroll
            for (int j = 0; j < shape::cols; j += T.vec) {
                const T_elem one = mine[j * stride + e * shape::warp_size / T.vec];
                if (row < part.rows && first + j / T.vec * cols < part.cols)
                    *to = weighted(p.alpha, one, p.beta, p.beta != 0 ? *to : T_elem(0));
                to += cols * p.c_col;
            }
        }
    }
}

template <tg_tile T, typename T_elem, batch_way a_way, batch_way b_way>
__global__ void GPU_BOUNDS((batch<T, T_elem>::threads), (batch<T, T_elem>::blocks_per_unit))
    batch_gemm(batch_call<T_elem> p)
{
    using shape = batch<T, T_elem>;
    alignas(16) __shared__ T_elem fast[shape::teams][T.stages][shape::stage];
    __shared__ batch_part later[shape::teams]; /* registers are short in between */
    const unsigned team = threadIdx.x / shape::team;
    auto &stages = fast[team];
    wait_for_turn();
    const batch_place<T, T_elem> me;
    const batch_part part = batch_part_of<T, T_elem>(p, team);
    if (me.thread == 0)
        later[team] = part;
    batch_carrier<T_elem, a_way, T.block.m, T.block.k, T.vec, shape::team> a(
        p.a, part.item, part.first_row, part.rows, me.thread);
    batch_carrier<T_elem, b_way, T.block.n, T.block.k, T.vec, shape::team> b(
        p.b, part.item, part.first_col, part.cols, me.thread);

    T_elem sum[shape::rows][shape::cols] = {};
    const int there = p.k - (part.item == p.items - 1 ? p.k_missing : 0);
    a.fetch(there);
    b.fetch(there);
    int stage = 0;
    for (int k = 0; k < p.k; k += T.block.k) {
        T_elem *a_tile = stages[stage], *b_tile = a_tile + T.block.k * shape::a_stride;
        a.put(a_tile);
        b.put(b_tile);
        __syncthreads();
        if (k + T.block.k < p.k) {
            a.fetch(there - k - T.block.k);
            b.fetch(there - k - T.block.k);
        }
        batch_multiply<T>(a_tile, b_tile, me, sum);
        stage = (stage + 1) % T.stages;
    }
    __syncthreads();
    if (T.vec == 4 && !p.c_is_wide)
        batch_store_elements<T>(p, later[team], me, sum, stages[0]);
    else
        batch_store<T>(p, later[team], me, sum);
}

/* ----------------------------------------------------------------------------------- launching */

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
    const int last_k = q.k - q.k_missing;
    const batch_way a = batch_way_of(q.a, q.m, last_k, T.vec),
                    b = batch_way_of(q.b, q.n, last_k, T.vec);
    if (a == batch_way::elements || b == batch_way::elements)
        return batch_gemm<T, T_elem, batch_way::elements, batch_way::elements>;
    if (a == of_line)
        return b == of_line ? batch_gemm<T, T_elem, of_line, of_line>
                            : batch_gemm<T, T_elem, of_line, of_k>;
    return b == of_line ? batch_gemm<T, T_elem, of_k, of_line> : batch_gemm<T, T_elem, of_k, of_k>;
}

/* If k is split: its parts as items, and their planes of the workspace as C. */
template <tg_tile T> tg_call batch_of_parts(tg_call p)
{
    const int64_t k = tg_round_up(tg_ceil_div(p.k, p.splits), T.block.k);
    if (p.splits == 1)
        return p;
    p.splits = int(tg_ceil_div(p.k, k));
    p.k = k;
    p.batch = p.splits;
    p.a_item = k * p.a_col;
    p.b_item = k * p.b_row;
    p.c = p.workspace;
    p.c_row = p.n;
    p.c_col = 1;
    p.c_item = p.m * p.n;
    p.alpha = 1;
    p.beta = 0;
    return p;
}

template <tg_tile T> int64_t batch_tiles(const tg_call &p)
{
    return tg_ceil_div(p.m, T.block.m) * tg_ceil_div(p.n, T.block.n) * p.batch;
}

template <tg_tile T, typename T_elem> int batch_takes(const tg_call *p)
{
    return (p->splits == 1 || p->batch == 1) && p->k <= INT32_MAX - T.block.k &&
           fits_a_grid(batch_tiles<T>(batch_of_parts<T>(*p)), batch<T, T_elem>::threads);
}

template <tg_tile T, typename T_elem> int batch_launch(const tg_call *call, void *stream)
{
    using shape = batch<T, T_elem>;
    const tg_call p = batch_of_parts<T>(*call);
    const bool c_is_wide =
        p.c_col == 1 && p.n % T.vec == 0 &&
        is_aligned(p.c, p.c_row, p.c_item, T.vec * sizeof(T_elem), sizeof(T_elem));
    const batch_call<T_elem> q = {{static_cast<const T_elem *>(p.a), p.a_row, p.a_col, p.a_item},
                                  {static_cast<const T_elem *>(p.b), p.b_col, p.b_row, p.b_item},
                                  static_cast<T_elem *>(p.c),
                                  p.c_row,
                                  p.c_col,
                                  p.c_item,
                                  p.m,
                                  p.n,
                                  p.batch,
                                  int(p.k),
                                  p.splits > 1 ? int(p.k * p.splits - call->k) : 0,
                                  unsigned(tg_ceil_div(p.m, T.block.m)),
                                  unsigned(tg_ceil_div(p.n, T.block.n)),
                                  unsigned(batch_tiles<T>(p)),
                                  c_is_wide,
                                  T_elem(p.k ? p.alpha : 0),
                                  T_elem(p.beta)};
    const int error = start(batch_kernel<T>(q), tg_ceil_div(q.tiles, shape::teams), shape::threads,
                            0, q, p, stream);
    if (error || p.splits == 1)
        return error;
    tg_call sum = *call;
    sum.splits = p.splits;
    return start_add_splits<T_elem>(sum, stream);
}

template <tg_tile T, typename T_elem> int batch_usage(tg_usage *usage)
{
    return usage_of(batch_gemm<T, T_elem, batch_way::vectors_of_k, batch_way::vectors_of_line>,
                    batch<T, T_elem>::threads, 0, usage);
}

} // namespace tg

#endif
