/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table as CUDA kernels; compiled once for each element type. */
#include "gpu.h"
#include "simt_table.h"

#define TG_JOIN_(x, y) x##y
#define TG_JOIN(x, y) TG_JOIN_(x, y)

extern "C" const tg_kernel_entry *TG_JOIN(tg_cuda_simt_, TG_ELEM)(int row)
{
    return tg::simt_find<TG_ELEM>(row);
}
