/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of the table on matrix instructions, as the host half of the backend knows it: which
 * calls it takes, what memory they need, and how they are launched. */
#ifndef TG_CUDA_MATRIX_H
#define TG_CUDA_MATRIX_H

#include <cuda_runtime.h>

#include "gpu.h"
#include "launch.h"
#include "matrix_gemm.h"

namespace tg::matrix
{

inline bool is_even(const void *data, int64_t line, int64_t item, const tg_call &call)
{
    return uintptr_t(data) % 16 == 0 && line % 2 == 0 && (call.batch == 1 || item % 2 == 0);
}

inline operand operand_of(const void *data, int64_t outer, int64_t k, int64_t item, int64_t outers,
                          const tg_call &call)
{
    const int64_t line = k == 1 ? outer : k, length = k == 1 ? call.k : outers;
    return {static_cast<const double *>(data), line, item,
            is_even(data, line, item, call) && length % 2 == 0};
}

/* Parts of a tile that a cluster sums: large clusters wait for room. */
constexpr int most_of_cluster = 4;

template <tg_tile T> struct launcher {
    using unit_strides = shape<T, true, false, 2>;

    static int64_t tiles(const tg_call &c)
    {
        const int64_t m = tg_ceil_div(c.m, T.block.m), n = tg_ceil_div(c.n, T.block.n);
        const int64_t most = INT32_MAX / 8;
        return m > most || n > most || m * n > most || c.batch > most ? INT64_MAX : m * n * c.batch;
    }

    static int64_t at_once(const tg_call &c) { return tg_max(c.units, 1) * unit_strides::blocks; }

    /* Tiles that go undivided. The last ones are split if they would leave half of all idle. */
    static int64_t whole(const tg_call &c)
    {
        const int64_t full = tg_round_down(tiles(c), at_once(c));
        const bool split_tail = c.tail != TG_TAIL_WHOLE && full > 0 &&
                                (tiles(c) - full) * 2 <= at_once(c) && c.k >= 8 * T.block.k;
        return c.splits > 1 ? 0 : split_tail ? full : tiles(c);
    }

    static int splits(const tg_call &c)
    {
        const int64_t split_tiles = tiles(c) - whole(c);
        if (c.splits > 1 || split_tiles == 0)
            return c.splits;
        return int(tg_min(at_once(c) / split_tiles, c.k / (4 * T.block.k)));
    }

    static int64_t parts(const tg_call &c) { return (tiles(c) - whole(c)) * splits(c); }
    static int64_t turns(const tg_call &c) { return whole(c) + parts(c); }

    /* Where a unit runs several blocks, the device deals out few turns: it sees who has room. */
    static int64_t blocks(const tg_call &c)
    {
        const bool stay = unit_strides::blocks == 1 || turns(c) >= 3 * at_once(c);
        return unit_strides::is_hopper && stay ? tg_min(turns(c), at_once(c)) : turns(c);
    }

    static size_t workspace(const tg_call *c)
    {
        return tiles(*c) > INT32_MAX ? 0 : size_t(parts(*c)) * T.block.m * T.block.n * elem_bytes;
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
               tiles(*c) <= INT32_MAX / 64 / tg_max(c->splits, 1);
    }

    static problem describe(const tg_call &c)
    {
        return {c.m,
                c.n,
                c.k,
                operand_of(c.a, c.a_row, c.a_col, c.a_item, c.m, c),
                operand_of(c.b, c.b_col, c.b_row, c.b_item, c.n, c),
                static_cast<double *>(c.c),
                static_cast<double *>(c.workspace),
                c.c_row,
                c.c_item,
                c.alpha,
                c.beta,
                is_even(c.c, c.c_row, c.c_item, c),
                int(tg_ceil_div(c.m, T.block.m)),
                int(tg_ceil_div(c.n, T.block.n)),
                int(whole(c)),
                splits(c),
                int(turns(c)),
                tg_ceil_div(tg_ceil_div(c.k, T.block.k), splits(c)) * T.block.k};
    }

    /* Blocks that can have a multiprocessor each shall not share one. */
    template <class S> static int fast_bytes(const tg_call &c)
    {
        return S::is_hopper && blocks(c) <= c.units ? S::alone : S::fast_bytes;
    }

    /* If all parts of all tiles run at once, those of a tile are a cluster. */
    template <class S> static bool gathers(const void *kernel, const tg_call &c)
    {
        const int at_once = fast_bytes<S>(c) == S::alone ? 1 : S::blocks;
        return S::is_hopper && c.early && c.splits > 1 && c.splits <= most_of_cluster &&
               tiles(c) <=
                   clusters_at_once(kernel, c.splits, S::threads, fast_bytes<S>(c), at_once, &c);
    }

    template <bool AlongA, bool AlongB, int Elems>
    static int start(problem &p, const tg_call &c, void *stream)
    {
        using S = shape<T, AlongA, AlongB, Elems>;
        constexpr auto *kernel = gemm<T, AlongA, AlongB, Elems>;
        const auto address = reinterpret_cast<const void *>(kernel);
        const int most = S::is_hopper ? S::alone : S::fast_bytes;
        if (const int error = ask_for_fast_once(&c, address, most))
            return error;
        const bool is_cluster = gathers<S>(address, c);
        if (is_cluster)
            p.parts = nullptr;
        return tg::start(kernel, blocks(c), S::threads, fast_bytes<S>(c), p, c, stream,
                         is_cluster ? c.splits : 1);
    }

    template <int Elems> static int start_as(problem &p, const tg_call &c, void *stream)
    {
        const bool along_a = c.a_col == 1, along_b = c.b_row == 1;
        return along_a   ? along_b ? start<true, true, Elems>(p, c, stream)
                                   : start<true, false, Elems>(p, c, stream)
                 : along_b ? start<false, true, Elems>(p, c, stream)
                         : start<false, false, Elems>(p, c, stream);
    }

    static int launch(const tg_call *call, void *stream)
    {
        const tg_call &c = *call;
        problem p = describe(c);
        const int error =
            p.a.is_even && p.b.is_even ? start_as<2>(p, c, stream) : start_as<1>(p, c, stream);
        if (error || parts(c) == 0 || !p.parts)
            return error;
        const int64_t rows = (tiles(c) - whole(c)) * (T.block.m / rows_to_add);
        return tg::start(add_parts<T>, rows, T.block.n, 0, p, c, stream);
    }

    static int usage(tg_usage *usage)
    {
        using S = shape<T, true, false, 2>;
        return usage_of(gemm<T, true, false, 2>, S::threads, S::fast_bytes, usage);
    }
};

template <tg_tile T> constexpr tg_kernel_entry entry()
{
    using row = launcher<T>;
    return {row::takes, row::workspace, row::launch, row::usage};
}

} // namespace tg::matrix

#endif
