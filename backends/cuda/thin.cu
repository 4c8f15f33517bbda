/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table for thin matrices and for batches of small ones. */
#include "gpu.h"
#include "batch.h"
#include "rows.h"
#include "skinny.h"

namespace
{

/* Whole vectors, or as wide as the thread tile allows. */
template <typename T_elem> constexpr bool is_wide_enough(tg_tile t, bool is_skinny)
{
    constexpr int widest = 16 / sizeof(T_elem);
    return t.vec == widest || (!is_skinny && t.thread.n % widest != 0);
}

template <int row, typename T_elem> constexpr tg_kernel_entry entry_of()
{
    constexpr tg_limits limits = TG_WIDEST_LIMITS;
    constexpr tg_tile T = tg::rows[row];
    constexpr bool is_skinny = tg::is_skinny_row[row];
    constexpr bool is_batch = tg::is_batch_row[row];
    if constexpr ((is_skinny || is_batch) && tg_tile_fits(T, limits, sizeof(T_elem)) &&
                  is_wide_enough<T_elem>(T, is_skinny)) {
        if constexpr (is_skinny) {
            static_assert(tg::skinny<T, T_elem>::is_possible);
            return {tg::skinny_takes<T, T_elem>, tg::splits_bytes<T_elem>,
                    tg::skinny_launch<T, T_elem>, tg::skinny_usage<T, T_elem>};
        } else {
            static_assert(tg::batch<T, T_elem>::is_possible);
            return {tg::batch_takes<T>, nullptr, tg::batch_launch<T, T_elem>,
                    tg::batch_usage<T, T_elem>};
        }
    }
    return {nullptr, nullptr, nullptr, nullptr};
}

template <typename T_elem, int... row>
const tg_kernel_entry *find(int wanted, std::integer_sequence<int, row...>)
{
    static const tg_kernel_entry entries[] = {entry_of<row, T_elem>()...};
    return entries[wanted].launch ? &entries[wanted] : nullptr;
}

} /* namespace */

/* The kernels of one row, or NULL if this file has none for it. */
extern "C" const tg_kernel_entry *tg_cuda_thin(int row, tg_type type)
{
    const tg::all_rows all;
    if (row < 0 || row >= tg::row_count)
        return nullptr;
    return type == TG_F32   ? find<float>(row, all)
           : type == TG_F64 ? find<double>(row, all)
                            : nullptr;
}
