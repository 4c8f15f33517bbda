/* SPDX-License-Identifier: Apache-2.0
 *
 * What the instruction set has, of which C does not speak: registers and their masks, halves of
 * them, numbers of 16 bits, and loads of a lane at a time; how far ahead it is best to fetch. */
#ifndef TG_CPU_ISA_H
#define TG_CPU_ISA_H

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu.h"

#if defined(__AVX512F__)
enum { VEC_BYTES = 64, REGISTERS = 32 };
#define IN_REGISTER_float 16
#define IN_REGISTER_double 8
#elif defined(__AVX2__)
enum { VEC_BYTES = 32, REGISTERS = 16 };
#define IN_REGISTER_float 8
#define IN_REGISTER_double 4
#elif defined(__aarch64__)
enum { VEC_BYTES = 16, REGISTERS = 32 };
#else
enum { VEC_BYTES = 16, REGISTERS = 16 };
#endif
#if !defined(IN_REGISTER_float)
#define IN_REGISTER_float 4
#define IN_REGISTER_double 2
#endif

/* Of a type that becomes f32. */
static inline int bytes_of_short(tg_type type) { return type == TG_F16 || type == TG_BF16 ? 2 : 1; }

/* The first elements of a vector that fills a register, where memory may end behind them. */
#if defined(__AVX512F__)
enum { HAS_MASKS = 1 };
typedef __m512 register_float;
typedef __m512d register_double;
typedef __mmask16 register_mask;
#define MASK_float(count) ((register_mask)((1u << (count)) - 1))
#define MASK_double(count) MASK_float(count)
#define LOAD_float(at, mask) _mm512_maskz_loadu_ps(mask, at)
#define LOAD_double(at, mask) _mm512_maskz_loadu_pd((__mmask8)(mask), at)
#define STORE_float(at, mask, x) _mm512_mask_storeu_ps(at, mask, x)
#define STORE_double(at, mask, x) _mm512_mask_storeu_pd(at, (__mmask8)(mask), x)

/* sum += a * b in the lower halves. What is spread over all of a register for others is used too;
 * for one or two, loads that are part of a multiply-add are best. In C, so that the compiler rounds
 * it as often as all other sums, whatever its flags. */
static inline __attribute__((always_inline)) __m512 add_lower_f32(__m512 sum, float a,
                                                                  int is_spread, __m512 b)
{
    const __m256 lanes = is_spread ? _mm512_castps512_ps256(_mm512_set1_ps(a)) : _mm256_set1_ps(a);
    const __m256 x = _mm512_castps512_ps256(b), half = _mm512_castps512_ps256(sum);
    return _mm512_castps256_ps512(lanes * x + half);
}

static inline __attribute__((always_inline)) __m512d add_lower_f64(__m512d sum, double a,
                                                                   int is_spread, __m512d b)
{
    const __m256d lanes = is_spread ? _mm512_castpd512_pd256(_mm512_set1_pd(a)) : _mm256_set1_pd(a);
    const __m256d x = _mm512_castpd512_pd256(b), half = _mm512_castpd512_pd256(sum);
    return _mm512_castpd256_pd512(lanes * x + half);
}
#define LOAD_LOWER_float(at, mask) \
    _mm512_castps256_ps512(_mm256_maskz_loadu_ps((__mmask8)(mask), at))
#define LOAD_LOWER_double(at, mask) \
    _mm512_castpd256_pd512(_mm256_maskz_loadu_pd((__mmask8)(mask), at))
#define ADD_LOWER_float(sum, a, is_spread, b) add_lower_f32(sum, a, is_spread, b)
#define ADD_LOWER_double(sum, a, is_spread, b) add_lower_f64(sum, a, is_spread, b)

/* The first elements of a lane, likewise; and a register of such lanes. */
typedef __m128 lane_float;
typedef __m128d lane_double;
#define LOAD_LANE_float(at, mask) _mm_maskz_loadu_ps((__mmask8)(mask), at)
#define LOAD_LANE_double(at, mask) _mm_maskz_loadu_pd((__mmask8)(mask), at)
#define SPREAD_LANE_float(x) _mm512_broadcast_f32x4(x)
#define SPREAD_LANE_double(x) _mm512_broadcast_f64x2(x)
#define STORE_LANE_float(at, mask, x) _mm_mask_storeu_ps(at, (__mmask8)(mask), x)
#define STORE_LANE_double(at, mask, x) _mm_mask_storeu_pd(at, (__mmask8)(mask), x)
enum { CAN_CONVERT = 1 };
#define F32_OF_I8(x) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x))
#define F32_OF_U8(x) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x))
#define F32_OF_BF16(x) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16))
#define WIDEN_I8(at) F32_OF_I8(_mm_loadu_si128((const __m128i *)(at)))
#define WIDEN_U8(at) F32_OF_U8(_mm_loadu_si128((const __m128i *)(at)))
#define WIDEN_F16(at) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(at)))
#define WIDEN_BF16(at) F32_OF_BF16(_mm256_loadu_si256((const __m256i *)(at)))

/* One of the elements of each word, as f32; from the lowest one. */
static inline __attribute__((always_inline)) __m512 part_of(tg_type type, __m512 words, int which)
{
    const unsigned bits = 8 * (unsigned)bytes_of_short(type), below = bits * (unsigned)which;
    const __m512i all = _mm512_castps_si512(words), down = _mm512_srli_epi32(all, below);
    const __m512i up = _mm512_slli_epi32(all, 32 - bits - below);
    if (type == TG_F16)
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(down));
    if (type == TG_BF16)
        return _mm512_castsi512_ps(which ? _mm512_slli_epi32(down, 16) : up);
    return _mm512_cvtepi32_ps(type == TG_I8 ? _mm512_srai_epi32(up, 24)
                                            : _mm512_and_si512(down, _mm512_set1_epi32(255)));
}

static inline __attribute__((always_inline)) __m512 load_lanes(const void *const *lane)
{
    const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lane[0])),
                                            _mm_loadu_ps(lane[1]), 1);
    const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lane[2])),
                                             _mm_loadu_ps(lane[3]), 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

static inline __attribute__((always_inline)) __m512 load_two_of_two(const void *const *at)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(at[0])),
                              _mm256_loadu_ps(at[1]), 1);
}
#elif defined(__AVX2__)
enum { HAS_MASKS = 1 };
typedef __m256 register_float;
typedef __m256d register_double;
typedef __m256i register_mask;
#define MASK_float(count) \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define MASK_double(count) \
    _mm256_cmpgt_epi64(_mm256_set1_epi64x((count)), _mm256_setr_epi64x(0, 1, 2, 3))
#define LOAD_float(at, mask) _mm256_maskload_ps(at, mask)
#define LOAD_double(at, mask) _mm256_maskload_pd(at, mask)
#define STORE_float(at, mask, x) \
    store_first_f32(at, __builtin_popcount((unsigned)_mm256_movemask_ps((__m256)(mask))), x)
#define STORE_double(at, mask, x) \
    store_first_f64(at, __builtin_popcount((unsigned)_mm256_movemask_pd((__m256d)(mask))), x)
enum { CAN_CONVERT = 1 };
#define BYTES(at) _mm_loadl_epi64((const __m128i *)(at))
#define WIDEN_I8(at) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(BYTES(at)))
#define WIDEN_U8(at) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(BYTES(at)))
#define WIDEN_F16(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define WIDEN_BF16(at)   \
    _mm256_castsi256_ps( \
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(at))), 16))

static inline __attribute__((always_inline)) __m256 part_of(tg_type type, __m256 words, int which)
{
    const int bits = 8 * bytes_of_short(type), below = bits * which;
    const __m256i all = _mm256_castps_si256(words), down = _mm256_srli_epi32(all, below);
    const __m256i up = _mm256_slli_epi32(all, 32 - bits - below);
    if (type == TG_BF16)
        return _mm256_castsi256_ps(which ? _mm256_slli_epi32(down, 16) : up);
    if (type == TG_I8)
        return _mm256_cvtepi32_ps(_mm256_srai_epi32(up, 24));
    if (type == TG_U8)
        return _mm256_cvtepi32_ps(_mm256_and_si256(down, _mm256_set1_epi32(255)));
    const __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(up, 16), down);
    const __m256i lower = _mm256_permute4x64_epi64(both, 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(lower));
}

static inline __attribute__((always_inline)) __m256 load_lanes(const void *const *lane)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lane[0])),
                                _mm_loadu_ps(lane[1]), 1);
}

/* In pieces: AMD's cores take 12 cycles for a masked store. */
static inline __attribute__((always_inline)) void store_first_f32(float *at, int count, __m256 x)
{
    __m128 part = _mm256_castps256_ps128(x);
    if (count == 8)
        _mm256_storeu_ps(at, x);
    if (count & 4) {
        memcpy(at, &part, 16);
        at += 4;
        part = _mm256_extractf128_ps(x, 1);
    }
    if (count & 2) {
        memcpy(at, &part, 8);
        at += 2;
        part = _mm_movehl_ps(part, part);
    }
    if (count & 1)
        memcpy(at, &part, 4);
}
static inline __attribute__((always_inline)) void store_first_f64(double *at, int count, __m256d x)
{
    __m128d part = _mm256_castpd256_pd128(x);
    if (count == 4)
        _mm256_storeu_pd(at, x);
    if (count & 2) {
        memcpy(at, &part, 16);
        at += 2;
        part = _mm256_extractf128_pd(x, 1);
    }
    if (count & 1)
        memcpy(at, &part, 8);
}
#else
enum { HAS_MASKS = 0 };
typedef float register_float;
typedef double register_double;
typedef int register_mask;
#define MASK_float(count) (count)
#define MASK_double(count) (count)
#define LOAD_float(at, mask) ((void)(mask), *(at))
#define LOAD_double(at, mask) ((void)(mask), *(at))
#define STORE_float(at, mask, x) ((void)(mask), *(at) = (x))
#define STORE_double(at, mask, x) ((void)(mask), *(at) = (x))
enum { CAN_CONVERT = 0 };
#define WIDEN_I8(at) *(const float *)(at)
#define WIDEN_U8(at) *(const float *)(at)
#define WIDEN_F16(at) *(const float *)(at)
#define WIDEN_BF16(at) *(const float *)(at)
#define part_of(type, words, which) ((void)(which), (words))

typedef float loose_lane __attribute__((vector_size(16), aligned(1), may_alias));
#define load_lanes(lane) (*(const loose_lane *)(lane)[0])
#endif

#ifndef __AVX512F__
#define load_two_of_two(at) load_lanes(at) /* nobody does */
#endif

/* Loops over the thread tile must unroll fully, or the accumulators end up in memory. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
/* A step of AVX-512 has 24 multiply-adds or more to hide a fetch behind. One of 12 has not: its
 * loop is best short, but for panels that come from beyond L2. Packed ones are fetched so many
 * steps ahead with either, except one of B that was packed on its way. */
enum { FETCHES_COMING = VEC_BYTES == 64, FETCH_PACKED_STEPS = VEC_BYTES == 64 ? 32 : 64 };
/* A core follows a dozen lines at once, more or less, and those of a panel are among them: what
 * else it fetches comes one by one, and the rows of C in two pieces of k, so many before the end.
 */
enum { COMES_WHOLE = FETCHES_COMING ? TG_COMING_STEPS : 0, C_PIECES = 2, C_AHEAD = 2 };
/* Memory moves by the LINE; lines so many bytes apart have but one set of L1 between them. */
enum { LINE = 64, CROWDING = 4096, FETCH_STEPS = TG_FETCH_STEPS };
#if defined(__AVX512F__)
#define UNROLL_STEPS _Pragma("GCC unroll 4")
#else
#define UNROLL_STEPS _Pragma("GCC unroll 2")
#endif
enum { MOST_ACCUMULATORS = 40, MOST_VECTORS = 16 };
/* The last vector of a row. Some cores with registers of 64 bytes have units of 32, and multiply
 * the lower halves alone in half the time. */
enum { WHOLE, MASKED, MASKED_LOWER, HAS_LOWER = VEC_BYTES == 64 };
#if !defined(ADD_LOWER_float)
#define ADD_LOWER_float(sum, a, is_spread, b) ((void)(a), (void)(is_spread), (void)(b), (sum))
#define ADD_LOWER_double ADD_LOWER_float
#define LOAD_LOWER_float LOAD_float
#define LOAD_LOWER_double LOAD_double
#endif
#define LINES(bytes) ((int)((bytes) + LINE - 1) / LINE)

#define IN_LANE (16 / (int)sizeof(TG_T)) /* elements of a lane, which is loaded by itself */
#define CONVERTS (CAN_CONVERT && sizeof(TG_T) == sizeof(float))
#define EACH(i, count) UNROLL for (int i = 0; i < (count); i++)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)

/* DO(rows, ...), to which rows are a constant, 1 to `most`; then the function returns. */
#define IF_ROWS(count, most, DO, ...) \
    case count:                       \
        if ((count) <= (most)) {      \
            DO(count, __VA_ARGS__);   \
        }                             \
        return;
#define FOR_ROWS(rows, ...)      \
    switch (rows) {              \
        IF_ROWS(1, __VA_ARGS__)  \
        IF_ROWS(2, __VA_ARGS__)  \
        IF_ROWS(3, __VA_ARGS__)  \
        IF_ROWS(4, __VA_ARGS__)  \
        IF_ROWS(5, __VA_ARGS__)  \
        IF_ROWS(6, __VA_ARGS__)  \
        IF_ROWS(7, __VA_ARGS__)  \
        IF_ROWS(8, __VA_ARGS__)  \
        IF_ROWS(9, __VA_ARGS__)  \
        IF_ROWS(10, __VA_ARGS__) \
        IF_ROWS(11, __VA_ARGS__) \
        IF_ROWS(12, __VA_ARGS__) \
        IF_ROWS(13, __VA_ARGS__) \
        IF_ROWS(14, __VA_ARGS__) \
    }
/* The same in a function of its own: one that is too large gets its registers from a simpler
 * algorithm. */
#define ROWS_FUNCTION(name, ...)                                         \
    static __attribute__((noinline, unused)) void name(const tg_step *s) \
    {                                                                    \
        FOR_ROWS(s->rows, __VA_ARGS__)                                   \
    }

#endif
