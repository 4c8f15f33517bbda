/* SPDX-License-Identifier: Apache-2.0
 *
 * The peak probe: all units do independent multiply-adds on registers and nothing else. */
#include "gpu.h"

#include "gpu_spin.h"

extern "C" int TG_JOIN(tg_hip_spin, TG_WAVE)(tg_type type, int units, double *flops, void *sink,
                                             void *stream)
{
    return type == TG_F32 ? tg::spin<float>(units, flops, sink, stream)
                          : tg::spin<double>(units, flops, sink, stream);
}
