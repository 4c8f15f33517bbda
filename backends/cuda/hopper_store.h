/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: from registers to C.
 *
 *   registers of all slices --> shared memory --> sum of slices --> C             (a whole tile)
 *                                                  |     |
 *                                                  |     +--> workspace --> sum of parts --> C
 *                                                  |
 *                                                  +--> sum of parts, by all blocks of a cluster,
 *                                                       from the shared memory of each --> C
 *
 * Sums run in the order of k, whoever does them: the same bits every time. */
#ifndef TG_HOPPER_STORE_H
#define TG_HOPPER_STORE_H

#include "hopper_load.h"

namespace tg_hopper
{

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
    /* Element i is that at i ^ by. */
    __device__ vector swapped(int by) const
    {
        const vector v = by & 1 ? vector{x[1], x[0], x[3], x[2]} : *this;
        return by & 2 ? vector{v.x[2], v.x[3], v.x[0], v.x[1]} : v;
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

/* The two places that a tile is summed from, both in a fixed order. The tile's elements are
 * numbered row by row; several pieces of it, `step` elements apart, are summed at once. */
template <tg_tile T, ways W> struct parked_slices {
    const float *memory;

    /* Column c of a quad is at c ^ this. */
    __device__ static int swapped(int col) { return 1 ^ col / (2 * quad) % share<T, W>::mixed; }

    __device__ int block() const { return 0; } /* of those that write the tile */
    __device__ int blocks() const { return 1; }

    template <int Wide> __device__ vector<Wide> sum(int at) const
    {
        const int row = at / T.block.n, col = at % T.block.n;
        const float *from = memory + row * pitch<T> + (Wide == 1 ? col ^ swapped(col) : col);
        vector<Wide> sum = vector<Wide>::read(from);
#pragma unroll
        for (int slice = 1; slice < slices<T>; slice++)
            sum = sum.plus(vector<Wide>::read(from + slice * slice_pitch<T, W>));
        if constexpr (Wide == quad)
            return sum.swapped(swapped(col));
        return sum;
    }

    template <int Wide, int Pieces>
    __device__ void sum(int first, int step, const bool (&)[Pieces],
                        vector<Wide> (&sums)[Pieces]) const
    {
#pragma unroll
        for (int i = 0; i < Pieces; i++)
            sums[i] = sum<Wide>(first + i * step);
    }
};

/* The parts of a split tile lie in slow memory, or, if its blocks are a cluster, in the fast memory
 * of each: then all of them write some of it. */
template <tg_tile T> struct stored_parts {
    const float *memory; /* of a cluster: the block's own */
    int parts, cluster, part;

    __device__ int block() const { return cluster > 1 ? part : 0; }
    __device__ int blocks() const { return cluster; }

    __device__ const float *part_at(int of) const
    {
        const float *at = memory + (int64_t)of * T.block.m * T.block.n;
        if (cluster > 1)
            at = tg::in_block(memory, of);
        return at;
    }

    /* Slow memory answers late: what is asked for at once is waited for once. */
    template <int Wide, int Pieces>
    __device__ void sum(int first, int step, const bool (&wanted)[Pieces],
                        vector<Wide> (&sums)[Pieces]) const
    {
        const int row = cluster > 1 ? pitch<T> : T.block.n;
        int at[Pieces];
#pragma unroll
        for (int i = 0; i < Pieces; i++) {
            const int e = first + i * step;
            at[i] = e / T.block.n * row + e % T.block.n;
            sums[i] = wanted[i] ? vector<Wide>::read(part_at(0) + at[i]) : vector<Wide>{};
        }
#pragma unroll 2
        for (int of = 1; of < parts; of++) {
            const float *from = part_at(of);
            vector<Wide> more[Pieces];
#pragma unroll
            for (int i = 0; i < Pieces; i++)
                more[i] = wanted[i] ? vector<Wide>::read(from + at[i]) : vector<Wide>{};
#pragma unroll
            for (int i = 0; i < Pieces; i++)
                sums[i] = sums[i].plus(more[i]);
        }
    }
};

/* Adds the other slices of a tile to the first, where it is. */
template <tg_tile T, ways W>
__device__ void add_slices(const parked_slices<T, W> &slices, float *memory)
{
    constexpr int size = T.block.m * T.block.n;
#pragma unroll 2
    for (int at = consumer_thread() * quad; at < size; at += consumers<T> * quad)
        slices.template sum<quad>(at).write(memory + at / T.block.n * pitch<T> + at % T.block.n);
}

/* C of one tile, row by row, by all consumers; several rows at once, because C may have to be read
 * and the parts of a split tile lie in slow memory. */
template <tg_tile T, int Wide, class Source>
__device__ void write_tile(const arguments &p, const work &w, const Source &source)
{
    constexpr int size = T.block.m * T.block.n, step = consumers<T> * Wide;
    constexpr int rounds = size / step;
    constexpr int at_once = rounds % 8 ? rounds & -rounds : 8;
    static_assert(size % (step * at_once) == 0);
    const vector<Wide> zero = {};
    int next = source.block(); /* piece that this block writes */
    for (int from = consumer_thread() * Wide; from < size; from += step * at_once) {
        float *to[at_once];
        bool wanted[at_once];
        vector<Wide> old[at_once], sums[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const int row = w.row + (from + i * step) / T.block.n;
            const int col = w.col + (from + i * step) % T.block.n;
            wanted[i] = row < p.s.m && col < p.s.n && next == 0;
            to[i] = p.c + w.item * p.c_item + row * p.c_row + col;
            old[i] = wanted[i] && p.beta != 0 ? vector<Wide>::read(to[i]) : zero;
            next = next == 0 ? source.blocks() - 1 : next - 1;
        }
        source.sum(from, step, wanted, sums);
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            vector<Wide> v = sums[i];
#pragma unroll
            for (int e = 0; e < Wide; e++)
                v.x[e] = tg::weighted(p.alpha, v.x[e], p.beta, old[i].x[e]);
            if (wanted[i])
                v.write(to[i]);
        }
    }
}

/* The same where columns of C lie together, and can be written four elements at once: a lane has
 * four rows of four columns. Eight neighbours read from different banks. */
template <tg_tile T, class Source>
__device__ void write_wide_columns(const arguments &p, const work &w, const Source &source)
{
    constexpr int rows = T.block.m / quad, cols = T.block.n / quad;
    for (int at = consumer_thread() + source.block() * consumers<T>; at < rows * cols;
         at += consumers<T> * source.blocks()) {
        const int in_row = at / 4 % rows * quad, in_col = (at / 4 / rows * 4 + at % 4) * quad;
        const int row = w.row + in_row, col = w.col + in_col;
        float *const c = p.c + w.item * p.c_item + row * p.c_row + col * p.c_col;
        vector<quad> old[quad], sums[quad];
        bool is_there[quad];
#pragma unroll
        for (int i = 0; i < quad; i++) {
            is_there[i] = row < p.s.m && col + i < p.s.n;
            old[i] =
                p.beta != 0 && is_there[i] ? vector<quad>::read(c + i * p.c_col) : vector<quad>{};
        }
        const bool any = is_there[0]; /* a column of its quad lies in C if the first does */
        source.sum(in_row * T.block.n + in_col, T.block.n, {any, any, any, any}, sums);
#pragma unroll
        for (int i = 0; i < quad; i++) {
            vector<quad> v = {sums[0].x[i], sums[1].x[i], sums[2].x[i], sums[3].x[i]};
#pragma unroll
            for (int e = 0; e < quad; e++)
                v.x[e] = tg::weighted(p.alpha, v.x[e], p.beta, old[i].x[e]);
            if (is_there[i])
                v.write(c + i * p.c_col);
        }
    }
}

/* The same where they cannot: four columns at once, a lane for each row. */
template <tg_tile T, class Source>
__device__ void write_columns(const arguments &p, const work &w, const Source &source)
{
    constexpr int step = consumers<T> / T.block.m * quad;
    constexpr int at_once = (int)tg_min(4, T.block.n / step);
    static_assert(T.block.n % (step * at_once) == 0);
    const int in_row = consumer_thread() % T.block.m, row = w.row + in_row;
    float *const c = p.c + w.item * p.c_item + row * p.c_row + w.col * p.c_col;
    const int cols = row < p.s.m ? p.s.n - w.col : 0;
    for (int from = consumer_thread() / T.block.m * quad + source.block() * step * at_once;
         from < T.block.n; from += step * at_once * source.blocks()) {
        vector<quad> old[at_once], sums[at_once];
#pragma unroll
        for (int i = 0; i < at_once * quad; i++) {
            const int col = from + i / quad * step + i % quad;
            old[i / quad].x[i % quad] = p.beta != 0 && col < cols ? c[col * p.c_col] : 0;
        }
        bool wanted[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++)
            wanted[i] = from + i * step < cols;
        source.sum(in_row * T.block.n + from, step, wanted, sums);
#pragma unroll
        for (int i = 0; i < at_once * quad; i++) {
            const int col = from + i / quad * step + i % quad;
            if (col < cols)
                c[col * p.c_col] = tg::weighted(p.alpha, sums[i / quad].x[i % quad], p.beta,
                                                old[i / quad].x[i % quad]);
        }
    }
}

template <tg_tile T, class Source>
__device__ void write_tile(const arguments &p, const work &w, const Source &source)
{
    if constexpr (writes_columns<T>)
        if (p.c_col != 1) {
            if (p.wide)
                write_wide_columns<T>(p, w, source);
            else
                write_columns<T>(p, w, source);
            return;
        }
    if (p.wide)
        write_tile<T, quad>(p, w, source);
    else
        write_tile<T, 1>(p, w, source);
}

/* Stores this block's part of a split tile. True in the block that is the last to do so. */
template <tg_tile T, ways W>
__device__ bool store_part(const arguments &p, const work &w, const parked_slices<T, W> &slices,
                           float *parts, unsigned *last)
{
    constexpr int size = T.block.m * T.block.n;
    for (int at = consumer_thread() * quad; at < size; at += consumers<T> * quad)
        slices.template sum<quad>(at).write(parts + w.part * size + at);
    __threadfence();
    tg::meet<consumers<T>>();
    if (consumer_thread() == 0)
        *last = atomicAdd(&p.tickets[w.split], 1) == w.parts - 1;
    tg::meet<consumers<T>>();
    __threadfence();
    return *last;
}

} /* namespace tg_hopper */

#endif
