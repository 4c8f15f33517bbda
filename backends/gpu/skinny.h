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
 *   rows of B contiguous:  the column groups are the lanes of a lane row, and warps if there are
 *                          more of them; the k groups are all else
 *   columns contiguous:    the lanes of a warp, or of a part of it, are k groups, and the column
 *                          groups are warps or parts
 *
 * A call whose n is the thin side is turned first: C^T = B^T A^T. */
#ifndef TG_SKINNY_H
#define TG_SKINNY_H

#include "skinny_load.h"

namespace tg
{

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
    const int first = add_lanes<shape::held, place::lane_step, place::lane_step * place::lanes_k>(
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
            p.parts[((part.item * p.splits + part.split) * p.m + i) * p.n + col] = total;
        } else {
            T_elem *c = p.c + part.item * p.c_item + i * p.c_row + col * p.c_col;
            *c = weighted(p.alpha, total, p.beta, p.beta == 0 ? T_elem(0) : *c);
        }
    }
}

/* Two pieces of B may take turns: that saves copies of registers, but takes more of them, which
 * AMD's older targets lack. */
#if defined(__HIPCC__)
constexpr bool in_turns = false;
#else
constexpr bool in_turns = true;
#endif

/* But for Hopper's, compilers have no registers left where B is read by elements. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
constexpr bool has_room = false;
#else
constexpr bool has_room = true;
#endif

/* B is loaded a round ahead of its use, if there is room, A a panel ahead. */
template <tg_tile T, typename T_elem, skinny_b way>
__global__ void GPU_BOUNDS((skinny<T, T_elem>::threads), (skinny<T, T_elem>::blocks_per_unit))
    skinny_gemm(skinny_call<T_elem> p)
{
    using shape = skinny<T, T_elem>;
    using place = skinny_place<T, T_elem, way>;
    alignas(16) __shared__ T_elem fast[shape::fast_elements];
    __shared__ skinny_part part; /* for later: registers are short in between */
    wait_for_turn();
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
            wait_for_copies();
            __syncthreads();
            skinny_stage<T, T_elem, way>(p, a, k + shape::panel_k, end,
                                         fast + (shape::panel - panel));
        }
        skinny_multiply<T, T_elem, place::step_k>(own + panel + round * shape::round_k, piece, sum);
        if (++round == shape::panel_rounds)
            round = 0, panel = shape::panel - panel;
    };

    constexpr bool is_ahead = has_room || way != skinny_b::scattered;
    int64_t k = begin;
    if (is_ahead && k + shape::round_k <= end)
        reader.round(now);
    skinny_stage<T, T_elem, way>(p, a, begin, end, fast);
    if constexpr (in_turns && way != skinny_b::scattered) {
#pragma unroll 1
        for (; k + 2 * shape::round_k <= end; k += 2 * shape::round_k) {
            reader.round(next);
            multiply(k, now);
            if (k + 3 * shape::round_k <= end)
                reader.round(now);
            multiply(k + shape::round_k, next);
        }
        if (k + shape::round_k <= end) {
            multiply(k, now);
            k += shape::round_k;
        }
    } else if constexpr (!is_ahead) {
#pragma unroll 1
        for (; k + shape::round_k <= end; k += shape::round_k) {
            reader.round(now);
            multiply(k, now);
        }
    } else {
#pragma unroll 2
        for (; k + shape::round_k <= end; k += shape::round_k) {
            if (k + 2 * shape::round_k <= end)
                reader.round(next);
            multiply(k, now);
            now = next;
        }
    }
    if (k < end) {
        reader.part_of_round(end - k - me.first_k, now);
        multiply(k, now);
    }
    skinny_finish<T, T_elem, way>(p, me, part, sum, fast);
}

/* ----------------------------------------------------------------------------------- launching */

template <tg_tile T, typename T_elem> int skinny_takes(const tg_call *p)
{
    const int64_t blocks_n = tg_ceil_div(tg_max(p->m, p->n), T.block.n);
    return tg_min(p->m, p->n) <= T.thread.m &&
           fits_a_grid(blocks_n * p->splits * p->batch, skinny<T, T_elem>::threads);
}

template <tg_tile T, typename T_elem> int skinny_launch(const tg_call *p, void *stream)
{
    using shape = skinny<T, T_elem>;
    constexpr int64_t bytes = T.vec * sizeof(T_elem);
    const tg_call q = p->m <= p->n ? *p : tg_transposed(p); /* m is the thin side */
    const skinny_call<T_elem> call = {static_cast<const T_elem *>(q.a),
                                      static_cast<const T_elem *>(q.b),
                                      static_cast<T_elem *>(q.c),
                                      static_cast<T_elem *>(q.workspace),
                                      q.a_row,
                                      q.a_col,
                                      q.a_item,
                                      q.b_row,
                                      q.b_col,
                                      q.b_item,
                                      q.c_row,
                                      q.c_col,
                                      q.c_item,
                                      q.n,
                                      q.k,
                                      tg_round_up(tg_ceil_div(q.k, q.splits), shape::round_k),
                                      unsigned(tg_ceil_div(q.n, T.block.n)),
                                      unsigned(q.splits),
                                      int(q.m),
                                      q.a_col == 1 &&
                                          is_aligned(q.a, q.a_row, q.a_item, bytes, sizeof(T_elem)),
                                      T_elem(q.k ? q.alpha : 0),
                                      T_elem(q.beta)};
    auto kernel = skinny_gemm<T, T_elem, skinny_b::scattered>;
    if (q.b_row == 1 && is_aligned(q.b, q.b_col, q.b_item, bytes, sizeof(T_elem)))
        kernel = skinny_gemm<T, T_elem, skinny_b::along_k>;
    else if (q.b_col == 1 && q.n % T.vec == 0 &&
             is_aligned(q.b, q.b_row, q.b_item, bytes, sizeof(T_elem)))
        kernel = skinny_gemm<T, T_elem, skinny_b::along_n>;
    const int error =
        start(kernel, q.batch * q.splits * call.blocks_n, shape::threads, 0, call, q, stream);
    return error || q.splits == 1 ? error : start_add_splits<T_elem>(q, stream);
}

template <tg_tile T, typename T_elem> int skinny_usage(tg_usage *usage)
{
    return usage_of(skinny_gemm<T, T_elem, skinny_b::along_n>, skinny<T, T_elem>::threads, 0,
                    usage);
}

} // namespace tg

#endif
