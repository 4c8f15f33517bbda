/* SPDX-License-Identifier: Apache-2.0
 *
 * simt_gemm.h for every row of the table, for one element type: TG_ELEM, and for the lane grid
 * TG_LANES of the file that includes this. gpu.h of CUDA or HIP comes first: GPU(x) is cudax or
 * hipx. Host launchers only; nothing here runs on the device but the kernels. */
#ifndef TG_SIMT_TABLE_H
#define TG_SIMT_TABLE_H

#include "rows.h"
#include "simt_gemm.h"

namespace tg
{

/* What the largest device of this kind allows. A smaller one refuses rows by its own limits. */
constexpr tg_limits widest = TG_WIDEST_LIMITS;

template <tg_tile T, class Elem> struct simt {
    static constexpr tg_tile tile = tg_tile_fill(T, widest, sizeof(Elem));
    static constexpr auto kernel = simt_gemm<tile, Elem, widest.lanes>;
    static constexpr int threads = geometry<tile, widest.lanes>::threads;
    static constexpr size_t fast_bytes = size_t(tg_tile_fast_bytes(tile, sizeof(Elem)));

    /* More than 48 KiB of fast memory must be asked for. */
    static int prepare()
    {
        return fast_bytes <= 48 << 10
                   ? 0
                   : GPU(FuncSetAttribute)(reinterpret_cast<const void *>(kernel),
                                           GPU(FuncAttributeMaxDynamicSharedMemorySize),
                                           int(fast_bytes));
    }

    static size_t workspace(const tg_call *p)
    {
        return p->splits > 1 ? size_t(p->m) * p->n * p->splits * p->batch * sizeof(Elem) : 0;
    }

    static int start(const void *function, int64_t blocks, int block_threads, size_t fast,
                     const tg_call *p, void *stream)
    {
        tg_call call = *p;
        void *arguments[] = {&call};
        int error = 0;
        for (call.first_block = 0; call.first_block < blocks && !error;) {
            const int64_t now = tg_min(blocks - call.first_block, INT32_MAX);
            error = GPU(LaunchKernel)(function, dim3(unsigned(now)), dim3(block_threads), arguments,
                                      fast, static_cast<GPU(Stream_t)>(stream));
            call.first_block += now;
        }
        return error;
    }

    static int launch(const tg_call *p, void *stream)
    {
        int error = prepare();
        if (!error)
            error = start(reinterpret_cast<const void *>(kernel), block_count(*p, tile), threads,
                          fast_bytes, p, stream);
        if (error || p->splits == 1)
            return error;
        const int64_t blocks = tg_min(tg_ceil_div(p->m * p->n * p->batch, 256), 1 << 20);
        return start(reinterpret_cast<const void *>(add_splits<Elem>), blocks, 256, 0, p, stream);
    }

    static int usage(tg_usage *usage)
    {
        GPU(FuncAttributes) attributes;
        int error = prepare();
        if (!error)
            error = GPU(FuncGetAttributes)(&attributes, reinterpret_cast<const void *>(kernel));
        if (!error)
            error = GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(
                &usage->blocks_per_unit, reinterpret_cast<const void *>(kernel), threads,
                fast_bytes);
        usage->threads = threads;
        usage->registers = attributes.numRegs;
        usage->spilled_bytes = int(attributes.localSizeBytes);
        usage->fast_bytes = int(fast_bytes + attributes.sharedSizeBytes);
        return error;
    }
};

template <int Row, class Elem> constexpr tg_kernel_entry simt_entry()
{
    if constexpr (!is_skinny_row[Row] && !is_batch_row[Row] && tg_tile_is_fma(rows[Row]) &&
                  tg_tile_fits(rows[Row], widest, sizeof(Elem))) {
        using kernel = simt<rows[Row], Elem>;
        return {nullptr, kernel::workspace, kernel::launch, kernel::usage};
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
