/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table for thin matrices and for batches of small ones. */
#include "gpu.h"
#include "thin_table.h"

extern "C" const tg_kernel_entry *tg_cuda_thin(int row, tg_type type)
{
    return tg::thin_find(row, type);
}
