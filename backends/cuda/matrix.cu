/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table that multiply with matrix instructions, as CUDA kernels for f64. */
#include "gpu.h"

#include "matrix.h"
#include "rows.h"

namespace tg::matrix
{

/* NVIDIA's instructions for f64 make 8 columns of several k; other rows' are AMD's, or FMA. */
template <int Row> constexpr tg_kernel_entry entry_of()
{
    if constexpr (rows[Row].inst.n == 8 && rows[Row].inst.k > 1)
        return entry<rows[Row]>();
    else
        return {};
}

template <int... Row> const tg_kernel_entry *find(int row, std::integer_sequence<int, Row...>)
{
    static constexpr tg_kernel_entry entries[] = {entry_of<Row>()...};
    return entries[row].launch ? &entries[row] : nullptr;
}

/* Compiled for every architecture: its version tells which code the driver took for a device. */
__global__ void any_kernel() {}

} // namespace tg::matrix

/* NULL if the row is none of matrix instructions, or they do not multiply this type. */
extern "C" const tg_kernel_entry *tg_cuda_matrix(int row, tg_type type)
{
    using namespace tg::matrix;
    return type == TG_F64 && row >= 0 && row < tg::row_count ? find(row, tg::all_rows()) : nullptr;
}

/* The architecture of the code that the driver took for the current device, 90 for 9.0. */
extern "C" int tg_cuda_code(int *code)
{
    cudaFuncAttributes attributes;
    const int error = int(cudaFuncGetAttributes(&attributes, tg::matrix::any_kernel));
    *code = error ? 0 : attributes.ptxVersion;
    return error;
}

/* The most fast memory of a block that such code may use. */
extern "C" int64_t tg_cuda_fast_bytes(int code) { return tg::fast_bytes_of(code); }

/* limits.matrix of such code. */
extern "C" int tg_cuda_matrix_rows(int code) { return tg::matrix::inst_rows(code * 10); }
