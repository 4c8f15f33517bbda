/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX-512, its VNNI and BF16, and AMX in C, as far as the kernels use them: what is compiled with
 * this header in front of it (meson -Demulated=true) runs wherever there is AVX2, so that a machine
 * without those instructions tests the kernels made of them. Memory is touched where the
 * instruction touches it and nowhere else, aligned operands must be aligned, tiles are there
 * between start and stop alone, and what an instruction leaves undefined is no zero. */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1

/* A register, or the lower part of one. */
typedef union emulated {
    __m128i x;
    __m128 x_ps;
    __m128d x_pd;
    __m256 y_ps;
    __m256d y_pd;
    __m256i y;
    __m512 ps;
    __m512d pd;
    __m512i z;
    uint8_t u8[64];
    int8_t i8[64];
    uint16_t u16[32];
    uint32_t u32[16];
    int32_t i32[16];
    uint64_t u64[8];
    float f32[16];
    double f64[8];
    __m128i lane[4];
    __m256i half[2];
    __m256 half_ps[2];
} emulated;

/* Functions, so that kernels with many of them are compiled in time; each ends with r, a part of
 * which it returns. */
#define EMULATED static __attribute__((noinline, unused))
#define EACH_LANE(count) for (int i = 0; i < (count); i++)
#define OPERATION(name, type, part, parameters, ...) \
    EMULATED type emulated_##name parameters         \
    {                                                \
        emulated r;                                  \
        memset(&r, 0xff, sizeof r);                  \
        __VA_ARGS__;                                 \
        return r.part;                               \
    }

/* ---------------------------------------------------------------------------------- memory */

#define MASKED_LOAD(name, type, part, lanes, count)                                          \
    OPERATION(name, type, part, (uint64_t mask, const void *at),                             \
              EACH_LANE(count) if (mask >> i & 1) memcpy(                                    \
                  &r.lanes[i], (const char *)at + i * sizeof r.lanes[0], sizeof r.lanes[0]); \
              else r.lanes[i] = 0)
#define MASKED_STORE(name, type, part, lanes, count)                                    \
    EMULATED void emulated_##name(void *at, uint64_t mask, type x)                      \
    {                                                                                   \
        const emulated r = {.part = x};                                                 \
        EACH_LANE(count)                                                                \
        if (mask >> i & 1)                                                              \
            memcpy((char *)at + i * sizeof r.lanes[0], &r.lanes[i], sizeof r.lanes[0]); \
    }
MASKED_LOAD(load_ps, __m512, ps, u32, 16)
MASKED_LOAD(load_pd, __m512d, pd, u64, 8)
MASKED_LOAD(load_epi32, __m512i, z, u32, 16)
MASKED_LOAD(load_epi16, __m512i, z, u16, 32)
MASKED_LOAD(load_epi8, __m512i, z, u8, 64)
MASKED_LOAD(load_y_ps, __m256, y_ps, u32, 8)
MASKED_LOAD(load_y_pd, __m256d, y_pd, u64, 4)
MASKED_LOAD(load_y_epi16, __m256i, y, u16, 16)
MASKED_LOAD(load_x_epi8, __m128i, x, u8, 16)
MASKED_LOAD(load_x_ps, __m128, x_ps, u32, 4)
MASKED_LOAD(load_x_pd, __m128d, x_pd, u64, 2)
MASKED_STORE(store_x_ps, __m128, x_ps, u32, 4)
MASKED_STORE(store_x_pd, __m128d, x_pd, u64, 2)
MASKED_STORE(store_ps, __m512, ps, u32, 16)
MASKED_STORE(store_pd, __m512d, pd, u64, 8)
MASKED_STORE(store_epi32, __m512i, z, u32, 16)
MASKED_STORE(store_epi16, __m512i, z, u16, 32)
MASKED_STORE(store_y_epi16, __m256i, y, u16, 16)
static inline void *emulated_aligned(const void *at)
{
    if ((uintptr_t)at % 64)
        __builtin_trap();
    return (void *)(uintptr_t)at;
}
#define ALL_LANES UINT64_MAX
#define _mm512_maskz_loadu_ps emulated_load_ps
#define _mm512_maskz_load_ps(mask, at) emulated_load_ps(mask, emulated_aligned(at))
#define _mm512_maskz_loadu_pd emulated_load_pd
#define _mm512_maskz_loadu_epi32 emulated_load_epi32
#define _mm512_maskz_loadu_epi16 emulated_load_epi16
#define _mm512_maskz_loadu_epi8 emulated_load_epi8
#define _mm256_maskz_loadu_ps emulated_load_y_ps
#define _mm256_maskz_loadu_pd emulated_load_y_pd
#define _mm256_maskz_loadu_epi16 emulated_load_y_epi16
#define _mm_maskz_loadu_epi8 emulated_load_x_epi8
#define _mm_maskz_loadu_ps emulated_load_x_ps
#define _mm_maskz_loadu_pd emulated_load_x_pd
#define _mm_mask_storeu_ps emulated_store_x_ps
#define _mm_mask_storeu_pd emulated_store_x_pd
#define _mm512_mask_storeu_ps emulated_store_ps
#define _mm512_mask_storeu_pd emulated_store_pd
#define _mm512_mask_storeu_epi32 emulated_store_epi32
#define _mm512_mask_storeu_epi16 emulated_store_epi16
#define _mm256_mask_storeu_epi16 emulated_store_y_epi16
#define _mm512_loadu_si512(at) emulated_load_epi32(ALL_LANES, at)
#define _mm512_load_si512(at) emulated_load_epi32(ALL_LANES, emulated_aligned(at))
#define _mm512_storeu_si512(at, x) emulated_store_epi32(at, ALL_LANES, x)
#define _mm512_store_si512(at, x) emulated_store_epi32(emulated_aligned(at), ALL_LANES, x)
#define _mm512_loadu_ps(at) emulated_load_ps(ALL_LANES, at)
#define _mm512_load_ps(at) emulated_load_ps(ALL_LANES, emulated_aligned(at))
#define _mm512_storeu_ps(at, x) emulated_store_ps(at, ALL_LANES, x)
#define _mm512_store_ps(at, x) emulated_store_ps(emulated_aligned(at), ALL_LANES, x)

/* ------------------------------------------------------------------------------- arithmetic */

typedef int32_t emulated_i32 __attribute__((vector_size(64)));
typedef uint32_t emulated_u32 __attribute__((vector_size(64)));
typedef uint16_t emulated_u16 __attribute__((vector_size(64)));
typedef uint8_t emulated_u8 __attribute__((vector_size(64)));
#define LANES(type, x, op, y) ((__m512i)((emulated_##type)(x)op(emulated_##type)(y)))
#define _mm512_add_epi32(x, y) LANES(u32, x, +, y)
#define _mm512_sub_epi32(x, y) LANES(u32, x, -, y)
#define _mm512_mullo_epi32(x, y) LANES(u32, x, *, y)
#define _mm512_add_epi16(x, y) LANES(u16, x, +, y)
#define _mm512_xor_si512(x, y) LANES(u32, x, ^, y)
#define _mm512_and_si512(x, y) LANES(u32, x, &, y)
#undef _mm512_slli_epi32
#undef _mm512_srli_epi32
#define _mm512_slli_epi32(x, count) ((__m512i)((emulated_u32)(x) << (count)))
#define _mm512_srli_epi32(x, count) ((__m512i)((emulated_u32)(x) >> (count)))
#undef _mm512_srai_epi32
#define _mm512_srai_epi32(x, count) ((__m512i)((emulated_i32)(x) >> (count)))
#define _mm512_mul_ps(x, y) ((x) * (y))
OPERATION(multiply_add, __m512, ps, (__m512 x, __m512 y, __m512 sum), r.ps = sum;
          const emulated a = {.ps = x}; const emulated b = {.ps = y};
          EACH_LANE(2) r.half_ps[i] = _mm256_fmadd_ps(a.half_ps[i], b.half_ps[i], r.half_ps[i]))
#define _mm512_fmadd_ps emulated_multiply_add
#define _mm512_setzero_si512() ((__m512i){0})
#define _mm512_setzero_ps() ((__m512){0})
OPERATION(set_ps, __m512, ps, (float x), EACH_LANE(16) r.f32[i] = x)
OPERATION(set_pd, __m512d, pd, (double x), EACH_LANE(8) r.f64[i] = x)
#define _mm512_set1_ps emulated_set_ps
#define _mm512_set1_pd emulated_set_pd
#define _mm512_set1_epi32(x) ((__m512i)((emulated_u32){0} + (uint32_t)(x)))
#define _mm512_set1_epi16(x) ((__m512i)((emulated_u16){0} + (uint16_t)(x)))
#define _mm512_set1_epi8(x) ((__m512i)((emulated_u8){0} + (uint8_t)(x)))

static inline double emulated_sum(__m512 x)
{
    const emulated a = {.ps = x};
    double sum = 0;
    EACH_LANE(16) sum += a.f32[i];
    return sum;
}
static inline int32_t emulated_sum_epi32(__m512i x)
{
    const emulated a = {.z = x};
    uint32_t sum = 0;
    EACH_LANE(16) sum += a.u32[i];
    return (int32_t)sum;
}
#define _mm512_reduce_add_ps emulated_sum
#define _mm512_reduce_add_epi32 emulated_sum_epi32

/* ------------------------------------------------------------------- places and conversions */

OPERATION(shuffle, __m512i, z, (__m512i x, __m512i y, int which), const emulated a = {.z = x};
          const emulated b = {.z = y};
          EACH_LANE(4) r.lane[i] = (i < 2 ? a : b).lane[which >> 2 * i & 3])
OPERATION(permute, __m512i, z, (__m512i x, __m512i from, __m512i y), const emulated a = {.z = x};
          const emulated b = {.z = y}; const emulated f = {.z = from};
          EACH_LANE(32) r.u16[i] = (f.u16[i] & 32 ? b : a).u16[f.u16[i] & 31])
OPERATION(unpack_epi8, __m512i, z, (__m512i x, __m512i y, int high), const emulated a = {.z = x};
          const emulated b = {.z = y};
          EACH_LANE(64) r.u8[i] = (i & 1 ? b : a).u8[i / 16 * 16 + i % 16 / 2 + 8 * high])
OPERATION(unpack_epi16, __m512i, z, (__m512i x, __m512i y, int high), const emulated a = {.z = x};
          const emulated b = {.z = y};
          EACH_LANE(32) r.u16[i] = (i & 1 ? b : a).u16[i / 8 * 8 + i % 8 / 2 + 4 * high])
#undef _mm512_shuffle_i32x4
#define _mm512_shuffle_i32x4 emulated_shuffle
#define _mm512_permutex2var_epi16 emulated_permute
#define _mm512_unpacklo_epi8(x, y) emulated_unpack_epi8(x, y, 0)
#define _mm512_unpackhi_epi8(x, y) emulated_unpack_epi8(x, y, 1)
#define _mm512_unpacklo_epi16(x, y) emulated_unpack_epi16(x, y, 0)
#define _mm512_unpackhi_epi16(x, y) emulated_unpack_epi16(x, y, 1)

OPERATION(widen_y, __m512i, z, (__m256i x), r.y = x)
OPERATION(widen_ps, __m512, ps, (__m256 x), r.y_ps = x)
OPERATION(widen_pd, __m512d, pd, (__m256d x), r.y_pd = x)
OPERATION(insert, __m512, ps, (__m512 x, __m256 y, int at), r.ps = x; r.half_ps[at] = y)
OPERATION(spread_ps, __m512, ps, (__m128 x), EACH_LANE(4) r.lane[i] = (__m128i)x)
OPERATION(spread_pd, __m512d, pd, (__m128d x), EACH_LANE(4) r.lane[i] = (__m128i)x)
#define _mm512_broadcast_f32x4 emulated_spread_ps
#define _mm512_broadcast_f64x2 emulated_spread_pd
#define _mm512_castps256_ps512 emulated_widen_ps
#define _mm512_castpd256_pd512 emulated_widen_pd
#undef _mm512_insertf32x8
#define _mm512_insertf32x8 emulated_insert
#define _mm512_castps512_ps256(x) (((emulated){.ps = (x)}).y_ps)
#define _mm512_castpd512_pd256(x) (((emulated){.pd = (x)}).y_pd)
#define _mm512_castsi512_ps(x) ((__m512)(x))
#define _mm512_castps_si512(x) ((__m512i)(x))

OPERATION(u32_of_u8, __m512i, z, (__m128i x), const emulated a = {.x = x};
          EACH_LANE(16) r.u32[i] = a.u8[i])
OPERATION(i32_of_i8, __m512i, z, (__m128i x), const emulated a = {.x = x};
          EACH_LANE(16) r.i32[i] = a.i8[i])
OPERATION(u32_of_u16, __m512i, z, (__m256i x), const emulated a = {.y = x};
          EACH_LANE(16) r.u32[i] = a.u16[i])
OPERATION(u16_of_u32, __m256i, y, (__m512i x), const emulated a = {.z = x};
          EACH_LANE(16) r.u16[i] = (uint16_t)a.u32[i])
OPERATION(f32_of_i32, __m512, ps, (__m512i x), const emulated a = {.z = x};
          EACH_LANE(16) r.f32[i] = (float)a.i32[i])
OPERATION(f32_of_f16, __m512, ps, (__m256i x), const emulated a = {.y = x};
          EACH_LANE(2) r.half_ps[i] = _mm256_cvtph_ps(a.lane[i]))
OPERATION(f16_of_f32, __m256i, y, (__m512 x), const emulated a = {.ps = x};
          EACH_LANE(2) r.lane[i] = _mm256_cvtps_ph(a.half_ps[i], _MM_FROUND_TO_NEAREST_INT))
#define _mm512_cvtepu8_epi32 emulated_u32_of_u8
#define _mm512_cvtepi8_epi32 emulated_i32_of_i8
#define _mm512_cvtepu16_epi32 emulated_u32_of_u16
#define _mm512_cvtepi32_epi16 emulated_u16_of_u32
#define _mm512_cvtepi32_ps emulated_f32_of_i32
#define _mm512_cvtph_ps emulated_f32_of_f16
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(x, rounding) emulated_f16_of_f32(x)

/* ---------------------------------------------------------------------------- words of bytes */

OPERATION(dots_of_bytes, __m512i, z, (__m512i sum, __m512i u8s, __m512i i8s), r.z = sum;
          const emulated a = {.z = u8s}; const emulated b = {.z = i8s};
          EACH_LANE(64) r.u32[i / 4] += (uint32_t)(a.u8[i] * b.i8[i]))
#define ADD_DOTS(sum, u8s, i8s) (sum) = emulated_dots_of_bytes(sum, u8s, i8s)

/* ------------------------------------------------------------------------------------- bf16 */

#define WITH_BF16

/* No denormal goes in or comes out. */
static inline float emulated_normal(float x) { return fabsf(x) < 0x1p-126f ? x * 0 : x; }
static inline float emulated_product(uint16_t a, uint16_t b, float sum)
{
    const emulated x = {.u32 = {(uint32_t)a << 16, (uint32_t)b << 16}};
    return emulated_normal(fmaf(emulated_normal(x.f32[0]), emulated_normal(x.f32[1]), sum));
}
static inline uint16_t emulated_bf16(float x)
{
    const emulated a = {.f32 = {emulated_normal(x)}};
    return (uint16_t)((isnan(x) ? a.u32[0] | 0x400000 : a.u32[0] + 0x7fff + (a.u32[0] >> 16 & 1)) >>
                      16);
}
OPERATION(bf16_of_f32, __m256i, y, (__m512 x), const emulated a = {.ps = x};
          EACH_LANE(16) r.u16[i] = emulated_bf16(a.f32[i]))
OPERATION(bf16_of_both, __m512i, z, (__m512 upper, __m512 lower),
          r.half[0] = emulated_bf16_of_f32(lower);
          r.half[1] = emulated_bf16_of_f32(upper))
OPERATION(
    dots_of_pairs, __m512, ps, (__m512 sum, __m512i x, __m512i y), r.ps = sum;
    const emulated a = {.z = x}; const emulated b = {.z = y}; EACH_LANE(16) {
        r.f32[i] = emulated_product(a.u16[2 * i + 1], b.u16[2 * i + 1], r.f32[i]);
        r.f32[i] = emulated_product(a.u16[2 * i], b.u16[2 * i], r.f32[i]);
    })
static inline int emulated_denormals(__m512 x)
{
    const emulated a = {.ps = x};
    int mask = 0;
    EACH_LANE(16) mask |= (a.f32[i] != 0 && fabsf(a.f32[i]) < 0x1p-126f) << i;
    return mask;
}
#define _mm512_cvtneps_pbh emulated_bf16_of_f32
#define _mm512_cvtne2ps_pbh emulated_bf16_of_both
#define _mm512_dpbf16_ps(sum, x, y) emulated_dots_of_pairs(sum, (__m512i)(x), (__m512i)(y))
#undef _mm512_fpclass_ps_mask
#define _mm512_fpclass_ps_mask(x, classes) emulated_denormals(x)

/* ------------------------------------------------------------------------------------ tiles */

static __thread struct {
    int are_there;
    emulated row[8][16];
} emulated_tiles __attribute__((unused));

static inline emulated *emulated_tile(int x)
{
    if (!emulated_tiles.are_there)
        __builtin_trap();
    return emulated_tiles.row[x];
}
EMULATED void emulated_start(void) { memset(&emulated_tiles, 0xff, sizeof emulated_tiles); }
EMULATED void emulated_stop(void) { emulated_tiles.are_there = 0; }
EMULATED void emulated_zero(int x) { memset(emulated_tile(x), 0, 16 * sizeof(emulated)); }
EMULATED void emulated_tile_load(int x, const void *at, int64_t row)
{
    EACH_LANE(16) memcpy(&emulated_tile(x)[i], (const char *)at + i * row, 64);
}
EMULATED void emulated_tile_store(int x, void *at, int64_t row)
{
    EACH_LANE(16) memcpy((char *)at + i * row, &emulated_tile(x)[i], 64);
}
/* Those of even and of odd k make a sum each, which begins with 0. */
EMULATED void emulated_tile_pairs(emulated *sum, const emulated *a, const emulated *b)
{
    for (int m = 0; m < 16; m++)
        EACH_LANE(16)
        {
            float even = 0, odd = 0;
            for (int k = 0; k < 16; k++) {
                even = emulated_product(a[m].u16[2 * k], b[k].u16[2 * i], even);
                odd = emulated_product(a[m].u16[2 * k + 1], b[k].u16[2 * i + 1], odd);
            }
            sum[m].f32[i] = emulated_normal(sum[m].f32[i] + emulated_normal(even + odd));
        }
}
EMULATED void emulated_tile_bytes(emulated *sum, const emulated *a, const emulated *b,
                                  int is_a_signed, int is_b_signed)
{
    for (int m = 0; m < 16; m++)
        EACH_LANE(16)
    for (int k = 0; k < 64; k++) {
        const emulated *const y = &b[k / 4];
        const int x = is_a_signed ? a[m].i8[k] : a[m].u8[k], at = 4 * i + k % 4;
        sum[m].u32[i] += (uint32_t)(x * (is_b_signed ? y->i8[at] : y->u8[at]));
    }
}
/* tdpbf16ps, or tdpb, two letters for signed or unsigned, and d. */
EMULATED void emulated_tile_dots(const char *name, int sum, int a, int b)
{
    if (strcmp(name, "tdpbf16ps") == 0)
        emulated_tile_pairs(emulated_tile(sum), emulated_tile(a), emulated_tile(b));
    else
        emulated_tile_bytes(emulated_tile(sum), emulated_tile(a), emulated_tile(b), name[4] == 's',
                            name[5] == 's');
}
#define START_TILES(config) ((void)(config), emulated_start())
#define STOP_TILES emulated_stop()
#define TILE_ZERO(x) emulated_zero(x)
#define TILE_LOAD(x, at, row) emulated_tile_load(x, at, row)
#define TILE_PASS(x, at, row) emulated_tile_load(x, at, row)
#define TILE_STORE(x, at, row) emulated_tile_store(x, at, row)
#define TILE_DOTS(name, sum, a, b) emulated_tile_dots(name, sum, a, b)
#define TILE_REST (void)0
