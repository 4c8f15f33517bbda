/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the table as HIP kernels; compiled once for each element type and wave size. */
#include "gpu.h"
#include "simt_table.h"

extern "C" const tg_kernel_entry *TG_JOIN(TG_JOIN(tg_hip_simt_, TG_ELEM), TG_WAVE)(int row)
{
    return tg::simt_find<TG_ELEM>(row);
}
