/* SPDX-License-Identifier: Apache-2.0
 *
 * simt_gemm.h for every row of the table, for one element type: TG_ELEM, and for the lane grid
 * TG_LANES of the file that includes this. gpu.h of CUDA or HIP comes first: GPU(x) is cudax or
 * hipx. Host launchers only; nothing here runs on the device but the kernels. */
#ifndef TG_SIMT_TABLE_H
#define TG_SIMT_TABLE_H

#include "launch.h"
#include "rows.h"
#include "simt_gemm.h"

namespace tg
{

template <tg_tile T, class Elem> struct simt {
    static constexpr tg_tile tile = tg_tile_fill(T, widest, sizeof(Elem));
    static constexpr auto *kernel = simt_gemm<tile, Elem, widest.lanes>;
    static constexpr int threads = geometry<tile, widest.lanes>::threads;
    static constexpr int64_t fast_bytes = tg_tile_fast_bytes(tile, sizeof(Elem));

    static int launch(const tg_call *p, void *stream)
    {
        return start_all<Elem>(kernel, block_count(*p, tile), threads, fast_bytes, *p, stream);
    }

    static int usage(tg_usage *usage) { return usage_of(kernel, threads, fast_bytes, usage); }
};

template <int Row, class Elem> constexpr tg_kernel_entry simt_entry()
{
    if constexpr (!is_skinny_row[Row] && !is_batch_row[Row] && tg_tile_is_fma(rows[Row]) &&
                  tg_tile_fits(rows[Row], widest, sizeof(Elem))) {
        using kernel = simt<rows[Row], Elem>;
        return {nullptr, splits_bytes<Elem>, kernel::launch, kernel::usage};
    } else
        return {};
}

/* NULL if the row is none for a GPU. */
template <class Elem> const tg_kernel_entry *simt_find(int row)
{
    static const auto table = []<int... Row>(std::integer_sequence<int, Row...>)
    {
        struct {
            tg_kernel_entry of[row_count];
        } all = {{simt_entry<Row, Elem>()...}};
        return all;
    }
    (std::make_integer_sequence<int, row_count>());
    return table.of[row].launch ? &table.of[row] : nullptr;
}

} // namespace tg

#endif
