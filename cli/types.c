/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any type as doubles, and which types B and C have beside an A.
 */
#include "cli.h"
#include "half.h"

#include <float.h>

static double get(tg_type type, const void *elements, int64_t at)
{
    switch (type) {
    case TG_F32:
        return ((const float *)elements)[at];
    case TG_F64:
        return ((const double *)elements)[at];
    case TG_F16:
        return tg_float_of_f16(((const uint16_t *)elements)[at]);
    case TG_BF16:
        return tg_float_of_bf16(((const uint16_t *)elements)[at]);
    case TG_I8:
        return ((const int8_t *)elements)[at];
    case TG_U8:
        return ((const uint8_t *)elements)[at];
    case TG_I32:
        break;
    }
    return ((const int32_t *)elements)[at];
}

void cli_put(tg_type type, void *elements, int64_t at, double value)
{
    switch (type) {
    case TG_F32:
        ((float *)elements)[at] = (float)value;
        break;
    case TG_F64:
        ((double *)elements)[at] = value;
        break;
    case TG_F16:
        ((uint16_t *)elements)[at] = tg_f16_of_float((float)value);
        break;
    case TG_BF16:
        ((uint16_t *)elements)[at] = tg_bf16_of_float((float)value);
        break;
    case TG_I8:
    case TG_U8:
        ((uint8_t *)elements)[at] = (uint8_t)(int64_t)value;
        break;
    case TG_I32:
        ((uint32_t *)elements)[at] = (uint32_t)(int64_t)value;
        break;
    }
}

double cli_rounded(tg_type type, double value)
{
    double memory;
    cli_put(type, &memory, 0, value);
    return get(type, &memory, 0);
}

double cli_at(tg_input matrix, int64_t row, int64_t col)
{
    return get(matrix.type, matrix.data, row * matrix.row_stride + col * matrix.col_stride);
}

int cli_is_whole(tg_type type) { return type == TG_I8 || type == TG_U8 || type == TG_I32; }

tg_type cli_b_type(tg_type type) { return type == TG_U8 ? TG_I8 : type; }

tg_type cli_c_type(tg_type type) { return cli_is_whole(type) ? TG_I32 : type; }

cli_precision cli_precision_of(tg_type type)
{
    switch (type) {
    case TG_F32:
        return (cli_precision){FLT_EPSILON / 2, FLT_MIN, 0x1p-149, FLT_MAX};
    case TG_F64:
        return (cli_precision){DBL_EPSILON / 2, DBL_MIN, 0x1p-1074, DBL_MAX};
    case TG_F16:
        return (cli_precision){0x1p-11, 0x1p-14, 0x1p-24, 65504};
    case TG_BF16:
        return (cli_precision){0x1p-8, 0x1p-126, 0x1p-133, 0x1.fep127};
    case TG_I8:
    case TG_U8:
    case TG_I32:
        break;
    }
    return (cli_precision){0, 0, 0, INT32_MAX};
}
