/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table for thin matrices and for batches of small ones. */
#include "gpu.h"
#include "batch.h"
#include "skinny.h"

#include <utility>

namespace
{

struct named_tile {
    const char *name;
    tg_tile tile;
};

constexpr named_tile rows[] = {
#define M_N(m, n) \
    {             \
        m, n      \
    }
#define M_N_K(m, n, k) \
    {                  \
        m, n, k        \
    }
#define TG_FMA  \
    {           \
        1, 1, 1 \
    }
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    {#name, {M_N_K block, M_N warp, M_N thread, vec, stages, slices, form, inst}},
#include "tiles.def"
};
constexpr int row_count = sizeof rows / sizeof rows[0];

/* The rows of this file are those whose names begin with skinny or batch. */
constexpr bool begins(const char *name, const char *with)
{
    while (*with && *name == *with)
        name++, with++;
    return !*with;
}

/* Whole vectors, or as wide as the thread tile allows. */
template <typename T_elem> constexpr bool is_wide_enough(tg_tile t, bool is_skinny)
{
    constexpr int widest = 16 / sizeof(T_elem);
    return t.vec == widest || (!is_skinny && t.thread.n % widest != 0);
}

template <int row, typename T_elem> constexpr tg_kernel_entry entry_of()
{
    constexpr tg_limits limits = TG_WIDEST_LIMITS;
    constexpr tg_tile T = rows[row].tile;
    constexpr bool is_skinny = begins(rows[row].name, "skinny");
    constexpr bool is_batch = begins(rows[row].name, "batch");
    if constexpr ((is_skinny || is_batch) && tg_tile_fits(T, limits, sizeof(T_elem)) &&
                  is_wide_enough<T_elem>(T, is_skinny)) {
        if constexpr (is_skinny) {
            static_assert(tg::skinny<T, T_elem>::is_possible);
            return {tg::skinny_takes<T, T_elem>, tg::skinny_workspace<T_elem>,
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
    const std::make_integer_sequence<int, row_count> all;
    if (row < 0 || row >= row_count)
        return nullptr;
    return type == TG_F32   ? find<float>(row, all)
           : type == TG_F64 ? find<double>(row, all)
                            : nullptr;
}
