/* SPDX-License-Identifier: Apache-2.0
 *
 * f16 and bf16 to and from f32, one element at a time, in integer operations without branches, so
 * that compilers make vectors of loops over them.
 *
 *          sign  exponent  mantissa                 largest    smallest normal   smallest
 *   f32       1         8        23
 *   bf16      1         8         7   (upper half)  3.4e38     1.2e-38           9.2e-41
 *   f16       1         5        10                 65504      6.1e-5            6.0e-8
 *
 * To f32 is exact. From f32 rounds to nearest, ties to even. NaN stays NaN. */
#ifndef TG_HALF_H
#define TG_HALF_H

#include <stdint.h>
#include <string.h>

static inline float tg_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t tg_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tg_float_of_bf16(uint16_t bits)
{
    return tg_float_of_bits((uint32_t)bits << 16);
}

/* A carry out of the mantissa goes into the exponent, up to Inf. */
static inline uint16_t tg_bf16_of_float(float x)
{
    const uint32_t bits = tg_bits_of_float(x);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* With the bits in place, all that is wrong is the exponent, by 127 - 15: a multiplication mends it
 * and brings denormals to normal form. Inf and NaN get the largest exponent. */
static inline float tg_float_of_f16(uint16_t bits)
{
    const uint32_t size = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16;
    const uint32_t scaled = tg_bits_of_float(tg_float_of_bits(size) * 0x1p112f);
    return tg_float_of_bits((size >= 0x0f800000 ? size | 0x7f800000 : scaled) | sign);
}

/* What is denormal in f16 is rounded by an addition of 0.5, whose last bit is the least of f16. */
static inline uint16_t tg_f16_of_float(float x)
{
    const uint32_t bits = tg_bits_of_float(x), size = bits & 0x7fffffff;
    const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t denormal =
        tg_bits_of_float(tg_float_of_bits(size) + 0.5f) - tg_bits_of_float(0.5f);
    const uint32_t finite = size < 0x38800000 ? denormal : normal;
    const uint32_t beyond = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)((size >= 0x47800000 ? beyond : finite) | (bits >> 16 & 0x8000));
}

#endif
