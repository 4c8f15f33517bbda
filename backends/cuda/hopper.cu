/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table that Hopper's pipeline runs, compiled for f32. */
#include "hopper_call.h"

namespace
{

template <tg_tile T> constexpr tg_kernel_entry entry_of()
{
    if constexpr (tg_hopper::fits(T))
        return {tg_hopper::takes<T>, tg_hopper::workspace<T>, tg_hopper::launch<T>,
                tg_hopper::usage<T>};
    else
        return {nullptr, nullptr, nullptr, nullptr};
}

} /* namespace */

/* The kernels of one row, or NULL if this file has none for it. */
extern "C" const tg_kernel_entry *tg_cuda_hopper(int row, tg_type type)
{
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    entry_of<tg_tile TG_ROW(block, warp, thread, vec, stages, slices, form, inst)>(),
    static const tg_kernel_entry entries[] = {
#include "tiles.def"
    };
    const int rows = (int)(sizeof entries / sizeof entries[0]);
    if (row < 0 || row >= rows || type != TG_F32 || !entries[row].launch)
        return nullptr;
    return &entries[row];
}
