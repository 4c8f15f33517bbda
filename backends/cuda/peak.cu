/* SPDX-License-Identifier: Apache-2.0
 *
 * The peak probe: all units do independent multiply-adds on registers and nothing else. The banks
 * of the registers matter: an operand that stays the same for several instructions in a row is read
 * once, and then no two reads collide. */
#include "gpu.h"

#include "gpu_spin.h"

extern "C" int tg_cuda_spin(tg_type type, int units, double *flops, void *sink, void *stream)
{
    return type == TG_F32 ? tg::spin<float>(units, flops, sink, stream)
                          : tg::spin<double>(units, flops, sink, stream);
}
