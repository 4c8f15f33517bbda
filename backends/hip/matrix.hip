/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table that multiply with matrix instructions. */
#include "gpu.h"

#include "launch.h"
#include "matrix.h"

namespace tg::matrix
{

template <tg_tile T, class Elem> struct launcher {
    using Sum = sum_of<Elem>;
    static constexpr auto *kernel = matrix_gemm<T, Elem>;
    static constexpr int threads = shape<T, Elem>::threads;
    static constexpr int64_t fast_bytes = tg_tile_fast_bytes(T, sizeof(Elem));

    static int takes(const tg_call *p) { return p->a_type == p->b_type; }

    static int launch(const tg_call *p, void *stream)
    {
        using Short = std::conditional_t<std::is_integral_v<Sum>, Sum, Elem>;
        const int64_t blocks = block_count(*p, T);
        return p->c_type == p->a_type
                   ? start_all<Sum, Short>(kernel, blocks, threads, fast_bytes, *p, stream)
                   : start_all<Sum>(kernel, blocks, threads, fast_bytes, *p, stream);
    }
    static int usage(tg_usage *usage) { return usage_of(kernel, threads, fast_bytes, usage); }
};

template <int Row, class Elem> constexpr tg_kernel_entry entry_of()
{
    if constexpr (!tg_tile_is_fma(rows[Row]) && fits_any(rows[Row], sizeof(Elem))) {
        using row = launcher<rows[Row], Elem>;
        return {row::takes, splits_bytes<sum_of<Elem>>, row::launch, row::usage};
    } else
        return {};
}

template <class Elem, int... Row>
const tg_kernel_entry *find(int row, std::integer_sequence<int, Row...>)
{
    static constexpr tg_kernel_entry entries[] = {entry_of<Row, Elem>()...};
    return entries[row].launch ? &entries[row] : nullptr;
}

} // namespace tg::matrix

/* NULL if the row is none of matrix instructions, or they do not multiply this type. */
extern "C" const tg_kernel_entry *TG_JOIN(tg_hip_matrix, TG_WAVE)(int row, tg_type type)
{
    using namespace tg;
    switch (type) {
    case TG_F32:
        return matrix::find<float>(row, all_rows());
    case TG_F64:
        return matrix::find<double>(row, all_rows());
    case TG_F16:
        return matrix::find<_Float16>(row, all_rows());
    case TG_BF16:
        return matrix::find<matrix::bf16>(row, all_rows());
    case TG_I8:
        return matrix::find<int8_t>(row, all_rows());
    default:
        return nullptr;
    }
}
