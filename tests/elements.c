/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any type as doubles; see elements.h. */
#include "elements.h"

#include <float.h>
#include <math.h>
#include <string.h>

const element_line element_lines[ELEMENT_LINES] = {
    {TG_F32, TG_F32, TG_F32}, {TG_F64, TG_F64, TG_F64},    {TG_F16, TG_F16, TG_F16},
    {TG_F16, TG_F16, TG_F32}, {TG_BF16, TG_BF16, TG_BF16}, {TG_BF16, TG_BF16, TG_F32},
    {TG_I8, TG_I8, TG_I32},   {TG_U8, TG_I8, TG_I32},      {TG_I8, TG_U8, TG_I32},
    {TG_U8, TG_U8, TG_I32},
};

element_facts element_facts_of(tg_type type)
{
    switch (type) {
    case TG_F32:
        return (element_facts){FLT_MANT_DIG, FLT_MAX, FLT_MIN, 0x1p-149};
    case TG_F64:
        return (element_facts){DBL_MANT_DIG, DBL_MAX, DBL_MIN, 0x1p-1074};
    case TG_F16:
        return (element_facts){11, 65504, 0x1p-14, 0x1p-24};
    case TG_BF16:
        return (element_facts){8, 0x1.fep127, 0x1p-126, 0x1p-133};
    case TG_I8:
        return (element_facts){0, INT8_MAX, 1, 1};
    case TG_U8:
        return (element_facts){0, UINT8_MAX, 1, 1};
    case TG_I32:
        break;
    }
    return (element_facts){0, INT32_MAX, 1, 1};
}

/* digits: 11 of f16, 8 of bf16, the one before the point counted. */
static double compute_half(unsigned bits, int digits)
{
    const int exponents = 1 << (16 - digits), exponent = (int)(bits >> (digits - 1)) % exponents;
    const int mantissa = (int)(bits % (1u << (digits - 1)));
    const int least = 2 - exponents / 2 - (digits - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == exponents - 1)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, least);
    return sign * ldexp(mantissa + (1 << (digits - 1)), exponent + least - 1);
}

/* The same, computed once. */
static double half_value(unsigned bits, int digits)
{
    static double values[2][1 << 16];
    double *known = values[digits == 8];
    if (known[1] == 0)
        for (unsigned each = 0; each < 1 << 16; each++)
            known[each] = compute_half(each, digits);
    return known[bits];
}

/* How many of the last digit's units, to nearest even; counting goes on in the next exponent, and
 * ends at Inf. */
static unsigned half_nearest(double value, int digits)
{
    const int inf = (0xffff >> digits) << (digits - 1), smallest = digits == 8 ? -126 : -14;
    const unsigned sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    if (!isfinite(value))
        return sign | (unsigned)(inf + !!isnan(value));
    frexp(value == 0 ? 0x1p-1000 : value, &exponent);
    exponent = exponent - 1 < smallest ? smallest : exponent - 1;
    const double units = rint(ldexp(fabs(value), digits - 1 - exponent));
    const int bits = (exponent - smallest) * (1 << (digits - 1)) + (int)units;
    return sign | (unsigned)(bits < inf ? bits : inf);
}

double element_get(tg_type type, const void *elements, int64_t at)
{
    const char *from = (const char *)elements + at * (int64_t)tg_type_size(type);
    float f32 = 0;
    double f64 = 0;
    uint16_t half = 0;
    int32_t i32 = 0;
    switch (type) {
    case TG_F32:
        return memcpy(&f32, from, sizeof f32), f32;
    case TG_F64:
        return memcpy(&f64, from, sizeof f64), f64;
    case TG_F16:
    case TG_BF16:
        return memcpy(&half, from, sizeof half), half_value(half, type == TG_F16 ? 11 : 8);
    case TG_I8:
        return *(const signed char *)from;
    case TG_U8:
        return *(const unsigned char *)from;
    case TG_I32:
        return memcpy(&i32, from, sizeof i32), i32;
    }
    return NAN;
}

void element_put(tg_type type, void *elements, int64_t at, double value)
{
    char *to = (char *)elements + at * (int64_t)tg_type_size(type);
    const int is_whole = type == TG_I8 || type == TG_U8 || type == TG_I32;
    const uint32_t low = is_whole ? (uint32_t)(int64_t)value : 0;
    float f32 = (float)value;
    uint16_t half;
    switch (type) {
    case TG_F32:
        memcpy(to, &f32, sizeof f32);
        break;
    case TG_F64:
        memcpy(to, &value, sizeof value);
        break;
    case TG_F16:
    case TG_BF16:
        half = (uint16_t)half_nearest(value, type == TG_F16 ? 11 : 8);
        memcpy(to, &half, sizeof half);
        break;
    case TG_I8:
    case TG_U8:
        *to = (char)low;
        break;
    case TG_I32:
        memcpy(to, &low, sizeof low);
        break;
    }
}

double element_rounded(tg_type type, double value)
{
    double memory;
    element_put(type, &memory, 0, value);
    return element_get(type, &memory, 0);
}
