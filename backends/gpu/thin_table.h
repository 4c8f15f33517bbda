/* SPDX-License-Identifier: Apache-2.0
 *
 * skinny.h and batch.h for the rows of the table that are theirs. gpu.h of CUDA or HIP comes first.
 * Host launchers only; nothing here runs on the device but the kernels. */
#ifndef TG_THIN_TABLE_H
#define TG_THIN_TABLE_H

#include "batch.h"
#include "skinny.h"

namespace tg
{

/* Others are not compiled: a row as wide does the same. */
template <typename T_elem> constexpr bool is_wide_enough(tg_tile t, bool is_skinny)
{
    return is_skinny ? t.vec * sizeof(T_elem) == widest.vec_bytes
                     : tg_tile_is_wide(t, sizeof(T_elem), widest.vec_bytes);
}

template <int row, typename T_elem> constexpr tg_kernel_entry thin_entry()
{
    constexpr tg_tile T = rows[row];
    constexpr bool is_skinny = is_skinny_row[row];
    if constexpr ((is_skinny || is_batch_row[row]) && tg_tile_fits(T, widest, sizeof(T_elem)) &&
                  tg_tile_accumulators(T, widest, sizeof(T_elem)) <= 128 &&
                  is_wide_enough<T_elem>(T, is_skinny)) {
        if constexpr (is_skinny) {
            static_assert(skinny<T, T_elem>::is_possible);
            return {skinny_takes<T, T_elem>, splits_bytes<T_elem>, skinny_launch<T, T_elem>,
                    skinny_usage<T, T_elem>};
        } else {
            static_assert(batch<T, T_elem>::is_possible);
            return {batch_takes<T, T_elem>, splits_bytes<T_elem>, batch_launch<T, T_elem>,
                    batch_usage<T, T_elem>};
        }
    }
    return {nullptr, nullptr, nullptr, nullptr};
}

template <typename T_elem, int... row>
const tg_kernel_entry *thin_find(int wanted, std::integer_sequence<int, row...>)
{
    static const tg_kernel_entry entries[] = {thin_entry<row, T_elem>()...};
    return entries[wanted].launch ? &entries[wanted] : nullptr;
}

/* The kernels of one row, or NULL if there are none for it here. */
inline const tg_kernel_entry *thin_find(int row, tg_type type)
{
    const all_rows all;
    if (row < 0 || row >= row_count)
        return nullptr;
    return type == TG_F32   ? thin_find<float>(row, all)
           : type == TG_F64 ? thin_find<double>(row, all)
                            : nullptr;
}

} // namespace tg

#endif
