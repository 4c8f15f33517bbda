/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for device compilers: its rows as template arguments, and which kernels run them. */
#ifndef TG_ROWS_H
#define TG_ROWS_H

#include <utility>

#include "call.h"

namespace tg
{

constexpr tg_tile rows[] = {
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    TG_ROW(block, warp, thread, vec, stages, slices, form, inst),
#include "tiles.def"
};
constexpr int row_count = sizeof rows / sizeof rows[0];
using all_rows = std::make_integer_sequence<int, row_count>;

/* What the largest device of this kind allows. A smaller one refuses rows by its own limits. */
constexpr tg_limits widest = TG_WIDEST_LIMITS;

constexpr bool begins(const char *name, const char *with)
{
    while (*with && *name == *with)
        name++, with++;
    return !*with;
}

/* Rows with a kernel of their own, as their names say: skinny.h and batch.h. */
constexpr bool is_skinny_row[] = {
#define TG_TILE(name, ...) begins(#name, "skinny"),
#include "tiles.def"
};
constexpr bool is_batch_row[] = {
#define TG_TILE(name, ...) begins(#name, "batch"),
#include "tiles.def"
};

} // namespace tg

#endif
