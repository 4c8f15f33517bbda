/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of a thin matrix, of at most thread.m rows, and a large one that is read once: the
 * limit is slow memory, so what counts is how many bytes of B are on their way at any time.
 *
 *            B, k x n, in place                 A block owns block.n columns of C and a range of k,
 *        .---------+--------+--.                as block.n / thread.n column groups. What would be
 *      k | group 0 |        |  |                different rows of C in an ordinary tiling (lane
 *        | group 1 | block  |  |                rows, warps along m, slices) holds the same rows
 *        |   ...   |        |  |                here, and takes different k:
 *        | group 0 |        |  |                    k groups = block.m / thread.m * slices
 *        '---------+--------+--'                In a step a group takes vec of k. A is staged in
 *   A    .---------+--------+--.                panels, rows x block.k; the groups' sums are added
 *  m x k '--- C ---+--------+--'                in order at the end, and so are the splits of k.
 *
 *   rows of B contiguous:  the column groups are the lanes of a lane row, the k groups all else
 *   columns contiguous:    the lanes of a warp are k groups, the column groups are warps
 *
 * A call whose n is the thin side is turned first: C^T = B^T A^T. */
#ifndef TG_SKINNY_H
#define TG_SKINNY_H

#include "thin.h"

namespace tg
{

/* How B lies in memory. Only the first two can be loaded as vectors. */
enum class skinny_b { along_n, along_k, scattered };

template <tg_tile T, typename T_elem> struct skinny {
    static constexpr tg_mn lanes = thin_lanes;
    static constexpr tg_tile tile = [] {
        tg_limits only_lanes = {};
        only_lanes.lanes = thin_lanes;
        return tg_tile_fill(T, only_lanes, sizeof(T_elem));
    }();
    static constexpr int rows = T.thread.m, cols = T.thread.n, vec = T.vec;
    static constexpr int threads = int(tg_tile_threads(tile, lanes));
    static constexpr int warp_size = lanes.m * lanes.n, warps = threads / warp_size;
    static constexpr int column_groups = T.block.n / cols, k_groups = threads / column_groups;
    static constexpr int held = rows * cols; /* sums of a lane */
    /* A round has as many steps as let a lane ask for this many bytes of B at once. */
    static constexpr int sum_bytes = held * sizeof(T_elem);
    static constexpr int lane_bytes = sum_bytes <= 96 && rows <= 8 ? 128 : 64;
    static constexpr int steps = int(tg_max(1, lane_bytes / int(cols * vec * sizeof(T_elem))));
    static constexpr int round_k = steps * k_groups * vec;
    static constexpr int panel_rounds = int(tg_max(1, T.block.k / round_k));
    static constexpr int panel_k = panel_rounds * round_k;
    /* Lines of a panel begin in different banks: staging goes across them. */
    static constexpr int panel_stride = panel_k + vec;
    static constexpr int panel = rows * panel_stride;
    static constexpr int sums = k_groups / lanes.m * rows * T.block.n;
    static constexpr int fast_elements = int(tg_max(2 * panel, sums));
    /* Of the 64 Ki registers of a unit, a thread gets 128, or all if its part of C is large. */
    static constexpr int words = (held + 2 * steps * vec * cols) * int(sizeof(T_elem)) / 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    static constexpr int words_that_fit = 90; /* no copies in the background: more in registers */
#else
    static constexpr int words_that_fit = 100;
#endif
    static constexpr int blocks_per_unit =
        words <= words_that_fit && threads < 512 ? 512 / threads : 1;

    static constexpr bool is_possible = T.stages == 0 && T.form == TG_OUTER &&
                                        T.block.m == 8 * T.thread.m && column_groups == lanes.n &&
                                        warps % column_groups == 0 &&
                                        fast_elements * sizeof(T_elem) <= 48 << 10;
};

/* Who a thread is. A warp's k groups take neighbouring steps, steps times over. */
template <tg_tile T, typename T_elem, skinny_b way> struct skinny_place {
    using shape = skinny<T, T_elem>;
    static constexpr bool warp_along_k = way == skinny_b::along_k;
    static constexpr int lanes_k = warp_along_k ? shape::warp_size : shape::lanes.m;
    static constexpr int warps_k =
        warp_along_k ? shape::warps / shape::column_groups : shape::warps;
    static constexpr int step_k = lanes_k * T.vec; /* from a step of a lane to its next */

    int lane, column_group, warp_k, first_k; /* first_k: within a round */

    __device__ skinny_place()
    {
        const int warp = threadIdx.x / shape::warp_size;
        lane = threadIdx.x % shape::warp_size;
        int lane_k = lane / shape::lanes.n;
        column_group = lane % shape::lanes.n, warp_k = warp;
        if (warp_along_k)
            column_group = warp % shape::column_groups, warp_k = warp / shape::column_groups,
            lane_k = lane;
        first_k = warp_k * shape::steps * step_k + lane_k * T.vec;
    }

    /* Column j of a column group, within the block. */
    __device__ static int column(int column_group, int j)
    {
        return tg_piece_of(j, T.vec, column_group, shape::column_groups);
    }
};

/* tg_call as the kernel wants it: m is the thin side. */
template <typename T_elem> struct skinny_call {
    const T_elem *a, *b;
    T_elem *c, *parts; /* parts[split][item][m][n], if there are splits */
    int64_t a_row, a_col, a_item, b_row, b_col, b_item, c_row, c_col, c_item;
    int64_t n, k, batch, split_k;
    unsigned blocks_n, splits;
    int m;
    T_elem alpha, beta;
};

/* ------------------------------------------------------------------------------------- the kernel
 */

/* A lane's part of B in a round: element (k, j) of each step. */
template <tg_tile T, typename T_elem> struct skinny_piece {
    T_elem at[skinny<T, T_elem>::steps][T.vec][T.thread.n];
};

template <tg_tile T, typename T_elem, skinny_b way> struct skinny_reader {
    using place = skinny_place<T, T_elem, way>;
    static constexpr int run = way == skinny_b::along_n ? T.vec : 1; /* columns read at once */
    const T_elem *next; /* the lane's first column, at its first k of the round read next */
    int64_t row, offset[T.thread.n / run];

    /* Columns beyond the last are read as the first, and not stored. */
    __device__ skinny_reader(const T_elem *b, int64_t row, int64_t col, int64_t columns)
        : next(b), row(row)
    {
#pragma unroll
        for (int j = 0; j < T.thread.n; j += run) {
            const int at = place::column(0, j);
            offset[j / run] = at < columns ? at * col : 0;
        }
    }

    __device__ void step(const T_elem *b, T_elem (&to)[T.vec][T.thread.n]) const
    {
        if constexpr (way == skinny_b::along_n)
#pragma unroll
            for (int i = 0; i < T.vec; i++)
#pragma unroll
                for (int j = 0; j < T.thread.n; j += T.vec) {
                    const auto x = load_vector<T.vec>(b + i * row + offset[j / run]);
#pragma unroll
                    for (int e = 0; e < T.vec; e++)
                        to[i][j + e] = x.at[e];
                }
        else if constexpr (way == skinny_b::along_k)
#pragma unroll
            for (int j = 0; j < T.thread.n; j++) {
                const auto x = load_vector<T.vec>(b + offset[j]);
#pragma unroll
                for (int i = 0; i < T.vec; i++)
                    to[i][j] = x.at[i];
            }
        else
            part_of_step(b, T.vec, to);
    }

    /* The same with only `left` of k: zeros beyond. */
    __device__ void part_of_step(const T_elem *b, int64_t left,
                                 T_elem (&to)[T.vec][T.thread.n]) const
    {
#pragma unroll
        for (int i = 0; i < T.vec; i++)
#pragma unroll
            for (int j = 0; j < T.thread.n; j++)
                to[i][j] = i < left ? b[i * row + offset[j / run] + j % run] : T_elem(0);
    }

    __device__ void round(skinny_piece<T, T_elem> &to)
    {
#pragma unroll
        for (int s = 0; s < skinny<T, T_elem>::steps; s++)
            step(next + s * place::step_k * row, to.at[s]);
        next += skinny<T, T_elem>::round_k * row;
    }

    /* The last round, with `left` of k from the lane's first on. */
    __device__ void part_of_round(int64_t left, skinny_piece<T, T_elem> &to) const
    {
#pragma unroll
        for (int s = 0; s < skinny<T, T_elem>::steps; s++) {
            const int at = s * place::step_k;
            if (left - at >= T.vec)
                step(next + at * row, to.at[s]);
            else
                part_of_step(next + at * row, left - at, to.at[s]);
        }
    }
};

/* panel[i][k] := a[i][first + k], zeros where a ends. It lands later, where copies can. */
template <tg_tile T, typename T_elem>
__device__ inline void skinny_stage(const skinny_call<T_elem> &p, const T_elem *a, int64_t first,
                                    int64_t end, T_elem *panel)
{
    using shape = skinny<T, T_elem>;
    const int left = int(tg_clamp(end - first, 0, shape::panel_k));
    const int wanted = int(tg_round_up(left, shape::round_k));
    a += first * p.a_col;
    if (p.a_row == 1 && p.a_col != 1) {
#pragma unroll 4
        for (int x = threadIdx.x; x < shape::rows * wanted; x += shape::threads) {
            const int i = x % shape::rows, k = x / shape::rows;
            copy_element(panel + i * shape::panel_stride + k, a + i + k * p.a_col,
                         i < p.m && k < left);
        }
        return;
    }
    for (int k = threadIdx.x; k < wanted; k += shape::threads) {
        const T_elem *at = a + k * p.a_col;
#pragma unroll 4
        for (int i = 0; i < shape::rows; i++, at += p.a_row)
            copy_element(panel + i * shape::panel_stride + k, at, i < p.m && k < left);
    }
}

/* panel: at the lane's first k. */
template <tg_tile T, typename T_elem, int step_k>
__device__ inline void skinny_multiply(const T_elem *panel, const skinny_piece<T, T_elem> &b,
                                       T_elem (&sum)[skinny<T, T_elem>::held])
{
    using shape = skinny<T, T_elem>;
#pragma unroll
    for (int s = 0; s < shape::steps; s++)
#pragma unroll
        for (int i = 0; i < T.thread.m; i++) {
            const auto a = load_vector<T.vec>(panel + i * shape::panel_stride + s * step_k);
#pragma unroll
            for (int k = 0; k < T.vec; k++)
#pragma unroll
                for (int j = 0; j < T.thread.n; j++)
                    sum[i * T.thread.n + j] += a.at[k] * b.at[s][k][j];
        }
}

/* Adds the sums of the lanes that differ in the bits of masks lowest, 2 * lowest ... of their
 * number. Each time, a lane keeps one half and hands over the other, so at the end it has `kept`
 * sums, in sum[0 .. kept - 1]; the number of the first is returned. */
template <int count, int lowest, int width, typename T_elem>
__device__ inline int add_lanes(T_elem (&sum)[count], int lane, int &kept)
{
    int first = 0;
    kept = count;
#pragma unroll
    for (int mask = width / 2; mask >= lowest; mask /= 2)
        if (kept % 2 == 0) {
            kept /= 2;
            const bool is_high = lane & mask;
#pragma unroll
            for (int x = 0; x < count / 2; x++)
                if (x < kept) {
                    const T_elem low = sum[x], high = sum[x + kept];
                    sum[x] = (is_high ? high : low) + other_lane(is_high ? low : high, mask);
                }
            first += is_high ? kept : 0;
        } else {
#pragma unroll
            for (int x = 0; x < count; x++)
                if (x < kept)
                    sum[x] += other_lane(sum[x], mask);
        }
    return first;
}

/* fast[i][j] := the sums of a warp's k groups. */
template <tg_tile T, typename T_elem, skinny_b way>
__device__ inline void skinny_put(const skinny_place<T, T_elem, way> &me,
                                  T_elem (&sum)[skinny<T, T_elem>::held], T_elem *fast)
{
    using shape = skinny<T, T_elem>;
    using place = skinny_place<T, T_elem, way>;
    int kept;
    const int first = add_lanes<shape::held, shape::warp_size / place::lanes_k, shape::warp_size>(
        sum, me.lane, kept);
#pragma unroll
    for (int x = 0; x < shape::held; x++)
        if (x < kept)
            fast[(first + x) / T.thread.n * T.block.n +
                 place::column(me.column_group, (first + x) % T.thread.n)] = sum[x];
}

/* Which part of the product a block makes. */
struct skinny_part {
    int64_t item, split, first_col;
};

/* Adds the sums of the k groups, in order, and stores the block's part of C, or of parts. */
template <tg_tile T, typename T_elem, skinny_b way>
__device__ inline void
skinny_finish(const skinny_call<T_elem> &p, const skinny_place<T, T_elem, way> &me,
              const skinny_part &part, T_elem (&sum)[skinny<T, T_elem>::held], T_elem *fast)
{
    using shape = skinny<T, T_elem>;
    using place = skinny_place<T, T_elem, way>;
    constexpr int warp_sums = T.thread.m * T.block.n;
    __syncthreads(); /* the panels have been read */
    skinny_put<T, T_elem, way>(me, sum, fast + me.warp_k * warp_sums);
    __syncthreads();
    const bool along_n = p.c_row != 1 || p.splits > 1;
    for (int x = threadIdx.x; x < p.m * T.block.n; x += shape::threads) {
        const int i = along_n ? x / T.block.n : x % p.m, j = along_n ? x % T.block.n : x / p.m;
        const int64_t col = part.first_col + j;
        if (col >= p.n)
            continue;
        T_elem total = 0;
#pragma unroll
        for (int w = 0; w < place::warps_k; w++)
            total += fast[w * warp_sums + i * T.block.n + j];
        if (p.splits > 1) {
            p.parts[((part.split * p.batch + part.item) * p.m + i) * p.n + col] = total;
        } else {
            T_elem *c = p.c + part.item * p.c_item + i * p.c_row + col * p.c_col;
            *c = p.beta == 0 ? p.alpha * total : p.alpha * total + p.beta * *c;
        }
    }
}

/* B is loaded a round ahead of its use, A a panel ahead. */
template <tg_tile T, typename T_elem, skinny_b way>
__global__ void __launch_bounds__(skinny<T, T_elem>::threads, skinny<T, T_elem>::blocks_per_unit)
    skinny_gemm(skinny_call<T_elem> p)
{
    using shape = skinny<T, T_elem>;
    using place = skinny_place<T, T_elem, way>;
    __shared__ alignas(16) T_elem fast[shape::fast_elements];
    __shared__ skinny_part part; /* for later: registers are short in between */
    const place me;
    const unsigned rest = blockIdx.x / p.blocks_n;
    const int64_t item = rest / p.splits, split = rest % p.splits;
    const int64_t begin = split * p.split_k, end = tg_min(begin + p.split_k, p.k);
    const int64_t first_col = int64_t(blockIdx.x % p.blocks_n) * T.block.n;
    const int64_t col = first_col + place::column(me.column_group, 0);
    if (threadIdx.x == 0)
        part = {item, split, first_col};
    const T_elem *a = p.a + item * p.a_item;
    const T_elem *b = p.b + item * p.b_item + (begin + me.first_k) * p.b_row;
    skinny_reader<T, T_elem, way> reader(b + (col < p.n ? col * p.b_col : 0), p.b_row, p.b_col,
                                         p.n - col);
    const T_elem *own = fast + me.first_k;

    T_elem sum[shape::held] = {};
    skinny_piece<T, T_elem> now, next;
    int round = 0, panel = 0; /* the round in its panel; where the panel is */
    const auto multiply = [&](int64_t k, const skinny_piece<T, T_elem> &piece) {
        if (round == 0) {
            wait_for_elements();
            __syncthreads();
            skinny_stage<T>(p, a, k + shape::panel_k, end, fast + (shape::panel - panel));
        }
        skinny_multiply<T, T_elem, place::step_k>(own + panel + round * shape::round_k, piece, sum);
        if (++round == shape::panel_rounds)
            round = 0, panel = shape::panel - panel;
    };

    int64_t k = begin;
    if (k + shape::round_k <= end)
        reader.round(now);
    skinny_stage<T>(p, a, begin, end, fast);
#pragma unroll 2
    for (; k + shape::round_k <= end; k += shape::round_k) {
        if (k + 2 * shape::round_k <= end)
            reader.round(next);
        multiply(k, now);
        now = next;
    }
    if (k < end) {
        reader.part_of_round(end - k - me.first_k, now);
        multiply(k, now);
    }
    skinny_finish<T, T_elem, way>(p, me, part, sum, fast);
}

/* C := alpha * (the splits' parts, added in order) + beta * C, an element per thread. */
template <typename T_elem> __global__ void skinny_add_splits(skinny_call<T_elem> p)
{
    const int64_t count = p.batch * p.m * p.n;
    const int64_t x = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (x >= count)
        return;
    T_elem total = 0;
#pragma unroll 8
    for (int64_t split = 0; split < p.splits; split++)
        total += p.parts[split * count + x];
    T_elem *c = p.c + x / p.n / p.m * p.c_item + x / p.n % p.m * p.c_row + x % p.n * p.c_col;
    *c = p.beta == 0 ? p.alpha * total : p.alpha * total + p.beta * *c;
}

/* --------------------------------------------------------------------------------------- launching
 */

template <typename T_elem> skinny_call<T_elem> skinny_turned(const tg_call *p)
{
    const auto *a = static_cast<const T_elem *>(p->a), *b = static_cast<const T_elem *>(p->b);
    skinny_call<T_elem> q = {};
    q.c = static_cast<T_elem *>(p->c);
    q.parts = static_cast<T_elem *>(p->workspace);
    q.a_item = p->a_item, q.b_item = p->b_item, q.c_item = p->c_item;
    q.k = p->k, q.batch = p->batch, q.splits = unsigned(p->splits);
    q.alpha = T_elem(p->k ? p->alpha : 0), q.beta = T_elem(p->beta);
    if (p->m <= p->n) {
        q.m = int(p->m), q.n = p->n;
        q.a = a, q.a_row = p->a_row, q.a_col = p->a_col;
        q.b = b, q.b_row = p->b_row, q.b_col = p->b_col;
        q.c_row = p->c_row, q.c_col = p->c_col;
    } else {
        q.m = int(p->n), q.n = p->m;
        q.a = b, q.a_row = p->b_col, q.a_col = p->b_row, q.a_item = p->b_item;
        q.b = a, q.b_row = p->a_col, q.b_col = p->a_row, q.b_item = p->a_item;
        q.c_row = p->c_col, q.c_col = p->c_row;
    }
    return q;
}

template <tg_tile T, typename T_elem> int skinny_takes(const tg_call *p)
{
    const int64_t blocks_n = tg_ceil_div(tg_max(p->m, p->n), T.block.n);
    return tg_min(p->m, p->n) <= T.thread.m && fits_a_grid(blocks_n * p->splits * p->batch) &&
           fits_a_grid(tg_ceil_div(p->m * p->n * p->batch, 256));
}

template <typename T_elem> size_t skinny_workspace(const tg_call *p)
{
    return p->splits > 1 ? size_t(p->m * p->n * p->batch * p->splits) * sizeof(T_elem) : 0;
}

template <tg_tile T, typename T_elem> int skinny_launch(const tg_call *p, void *stream)
{
    using shape = skinny<T, T_elem>;
    constexpr int64_t bytes = T.vec * sizeof(T_elem);
    skinny_call<T_elem> q = skinny_turned<T_elem>(p);
    q.blocks_n = unsigned(tg_ceil_div(q.n, T.block.n));
    q.split_k = tg_round_up(tg_ceil_div(q.k, q.splits), shape::round_k);
    auto kernel = skinny_gemm<T, T_elem, skinny_b::scattered>;
    if (q.b_row == 1 && is_aligned(q.b, q.b_col, q.b_item, bytes, sizeof(T_elem)))
        kernel = skinny_gemm<T, T_elem, skinny_b::along_k>;
    else if (q.b_col == 1 && q.n % T.vec == 0 &&
             is_aligned(q.b, q.b_row, q.b_item, bytes, sizeof(T_elem)))
        kernel = skinny_gemm<T, T_elem, skinny_b::along_n>;
    int error = thin_start(kernel, q.batch * q.splits * q.blocks_n, shape::threads, q, stream);
    if (!error && q.splits > 1)
        error = thin_start(skinny_add_splits<T_elem>, tg_ceil_div(q.batch * q.m * q.n, 256), 256, q,
                           stream);
    return error;
}

template <tg_tile T, typename T_elem> int skinny_usage(tg_usage *usage)
{
    return thin_usage(skinny_gemm<T, T_elem, skinny_b::along_n>, skinny<T, T_elem>::threads, usage);
}

} // namespace tg

#endif
