/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that change the type, for packing A and B and for the tiles of C: to f32 and back. Rows
 * are converted by vectors; what does not lie in rows goes through a few rows on the stack. */
#include "half.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#endif

enum { PIECE = 64, LINES_AT_ONCE = 16 };

/* Converts adjacent elements. */
typedef void convert_row(void *to, const void *from, int64_t count);

/* --------------------------------------------------------------------------------------- rows */

/* Elements of a register of f32. Compilers make them of many instructions, where one or two would
 * do. */
#if defined(__AVX512BW__)
enum { AT_ONCE = 16 };
#define SOME_TO_F32(name, from_type, load, wide)                                             \
    static inline __attribute__((always_inline)) void name(float *to, const from_type *from, \
                                                           int count)                        \
    {                                                                                        \
        const __mmask16 mask = (__mmask16)((1u << count) - 1);                               \
        if (count == AT_ONCE)                                                                \
            _mm512_storeu_ps(to, wide(load((__mmask16)-1, from)));                           \
        else                                                                                 \
            _mm512_mask_storeu_ps(to, mask, wide(load(mask, from)));                         \
    }
#define F32_OF_I8(x) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x))
#define F32_OF_U8(x) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x))
SOME_TO_F32(some_of_i8, int8_t, _mm_maskz_loadu_epi8, F32_OF_I8)
SOME_TO_F32(some_of_u8, uint8_t, _mm_maskz_loadu_epi8, F32_OF_U8)
SOME_TO_F32(some_of_f16, uint16_t, _mm256_maskz_loadu_epi16, _mm512_cvtph_ps)
SOME_TO_F32(some_of_bf16, uint16_t, _mm256_maskz_loadu_epi16, F32_OF_BF16)

static inline __attribute__((always_inline)) void some_to_f16(uint16_t *to, const float *from,
                                                              int count)
{
    const __mmask16 mask = (__mmask16)((1u << count) - 1);
    if (count == AT_ONCE)
        _mm256_storeu_si256((__m256i *)to,
                            _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
    else
        _mm256_mask_storeu_epi16(
            to, mask,
            _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, from), _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX2__) && defined(__F16C__)
enum { AT_ONCE = 8 };

static inline void some_of_i8(float *to, const int8_t *from, int count)
{
    (void)count;
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
    _mm256_storeu_ps(to, _mm256_cvtepi32_ps(wide));
}

static inline void some_of_u8(float *to, const uint8_t *from, int count)
{
    (void)count;
    const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
    _mm256_storeu_ps(to, _mm256_cvtepi32_ps(wide));
}

static inline void some_of_f16(float *to, const uint16_t *from, int count)
{
    (void)count;
    _mm256_storeu_ps(to, WIDEN_F16(from));
}

static inline void some_to_f16(uint16_t *to, const float *from, int count)
{
    (void)count;
    const __m128i narrow = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)to, narrow);
}

static inline void some_of_bf16(float *to, const uint16_t *from, int count)
{
    (void)count;
    _mm256_storeu_ps(to, WIDEN_BF16(from));
}
#else
enum { AT_ONCE = 8 };
#define SOME(name, to_type, from_type, one)                                \
    static inline void name(to_type *to, const from_type *from, int count) \
    {                                                                      \
        for (int i = 0; i < count; i++)                                    \
            to[i] = one(from[i]);                                          \
    }
SOME(some_of_i8, float, int8_t, (float))
SOME(some_of_u8, float, uint8_t, (float))
SOME(some_of_f16, float, uint16_t, tg_float_of_f16)
SOME(some_to_f16, uint16_t, float, tg_f16_of_float)
SOME(some_of_bf16, float, uint16_t, tg_float_of_bf16)
#endif

/* As tg_bf16_of_float. */
static inline __attribute__((always_inline)) void some_to_bf16(uint16_t *to, const float *from,
                                                               int count)
{
    typedef uint32_t words __attribute__((vector_size(4 * AT_ONCE)));
    typedef uint16_t halves __attribute__((vector_size(2 * AT_ONCE)));
    words bits = {0};
    memcpy(&bits, from, (size_t)count * sizeof *from);
    const words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    const words is_nan = (words)((bits & 0x7fffffff) > 0x7f800000);
    const halves narrow = __builtin_convertvector((quiet & is_nan) | (rounded & ~is_nan), halves);
    memcpy(to, &narrow, (size_t)count * sizeof *to);
}

/* So many at a time; the last ones overlap those before them, and of a row that is shorter, a
 * masked register is all. */
#if defined(__AVX512BW__)
enum { LEAST = 1 };
#else
enum { LEAST = AT_ONCE };
#endif
#define ROW(name, to_type, from_type, some, one)                                                 \
    static inline __attribute__((always_inline)) void name(void *to_void, const void *from_void, \
                                                           int64_t count)                        \
    {                                                                                            \
        to_type *to = to_void;                                                                   \
        const from_type *from = from_void;                                                       \
        int64_t i = 0;                                                                           \
        for (; i + AT_ONCE <= count; i += AT_ONCE)                                               \
            some(to + i, from + i, AT_ONCE);                                                     \
        if (i < count && count >= AT_ONCE)                                                       \
            some(to + count - AT_ONCE, from + count - AT_ONCE, AT_ONCE);                         \
        else if (i < count && count >= LEAST)                                                    \
            some(to, from, (int)count);                                                          \
        for (; i < count && count < LEAST; i++)                                                  \
            to[i] = one(from[i]);                                                                \
    }
ROW(floats_of_i8, float, int8_t, some_of_i8, (float))
ROW(floats_of_u8, float, uint8_t, some_of_u8, (float))
ROW(floats_of_f16, float, uint16_t, some_of_f16, tg_float_of_f16)
ROW(floats_of_bf16, float, uint16_t, some_of_bf16, tg_float_of_bf16)
ROW(f16_of_floats, uint16_t, float, some_to_f16, tg_f16_of_float)
ROW(bf16_of_floats, uint16_t, float, some_to_bf16, tg_bf16_of_float)

/* ------------------------------------------------------------------------------------- strides */

/* Columns to rows, a few at a time, along all of them: each is a stream from memory. */
static inline __attribute__((always_inline)) void
widen_columns(convert_row *convert, int64_t bytes, float *to, int64_t to_outer, const char *from,
              int64_t from_inner, int64_t outer, int64_t inner)
{
    float rows[LINES_AT_ONCE * PIECE];
    for (int64_t i = 0; i < inner; i += LINES_AT_ONCE)
        for (int64_t o = 0; o < outer; o += PIECE) {
            const int64_t length = tg_min(PIECE, outer - o),
                          lines = tg_min(LINES_AT_ONCE, inner - i);
            for (int64_t line = i; line < i + lines; line++) {
                const char *const at = from + (o + line * from_inner) * bytes;
                const int is_last = o + PIECE >= outer;
                const int64_t next = is_last ? LINES_AT_ONCE * from_inner - o : PIECE;
                for (int64_t byte = 0; byte < PIECE * bytes; byte += 64)
                    if (!is_last || line + LINES_AT_ONCE < inner)
                        __builtin_prefetch(at + next * bytes + byte);
                convert(rows + (line - i) * PIECE, at, length);
            }
            copy_float(to + o * to_outer + i, to_outer, 1, rows, 1, PIECE, length, lines);
        }
}

static inline __attribute__((always_inline)) void
widen(convert_row *convert, int64_t bytes, float *to, int64_t to_outer, const char *from,
      int64_t from_outer, int64_t from_inner, int64_t outer, int64_t inner)
{
    char gathered[PIECE * sizeof(float)];
    if (from_outer == 1 && from_inner != 1) {
        widen_columns(convert, bytes, to, to_outer, from, from_inner, outer, inner);
        return;
    }
    if (from_inner == 1 && from_outer == inner && to_outer == inner) { /* one row */
        inner *= outer;
        outer = 1;
    }
    for (int64_t o = 0; o < outer; o++, to += to_outer, from += from_outer * bytes) {
        if (from_inner == 1)
            convert(to, from, inner);
        for (int64_t i = 0; from_inner != 1 && i < inner; i += PIECE) {
            const int64_t count = tg_min(PIECE, inner - i);
            for (int64_t e = 0; e < count; e++)
                memcpy(gathered + e * bytes, from + (i + e) * from_inner * bytes, (size_t)bytes);
            convert(to + i, gathered, count);
        }
    }
}

static inline __attribute__((always_inline)) void
narrow(convert_row *convert, int64_t bytes, char *to, int64_t to_outer, int64_t to_inner,
       const float *from, int64_t from_outer, int64_t outer, int64_t inner)
{
    char adjacent[PIECE * sizeof(float)];
    if (to_inner == 1 && from_outer == inner && to_outer == inner) { /* one row */
        inner *= outer;
        outer = 1;
    }
    for (int64_t o = 0; o < outer; o++, to += to_outer * bytes, from += from_outer) {
        if (to_inner == 1)
            convert(to, from, inner);
        for (int64_t i = 0; to_inner != 1 && i < inner; i += PIECE) {
            const int64_t count = tg_min(PIECE, inner - i);
            convert(adjacent, from + i, count);
            for (int64_t e = 0; e < count; e++)
                memcpy(to + (i + e) * to_inner * bytes, adjacent + e * bytes, (size_t)bytes);
        }
    }
}

#define WIDEN(type, ctype)                                                                         \
    static void widen_##type(void *to, int64_t to_outer, int64_t to_inner, const void *from,       \
                             int64_t from_outer, int64_t from_inner, int64_t outer, int64_t inner) \
    {                                                                                              \
        (void)to_inner;                                                                            \
        widen(floats_of_##type, sizeof(ctype), to, to_outer, from, from_outer, from_inner, outer,  \
              inner);                                                                              \
    }
#define NARROW(type, ctype)                                                                      \
    static void narrow_##type(void *to, int64_t to_outer, int64_t to_inner, const void *from,    \
                              int64_t from_outer, int64_t from_inner, int64_t outer,             \
                              int64_t inner)                                                     \
    {                                                                                            \
        (void)from_inner;                                                                        \
        narrow(type##_of_floats, sizeof(ctype), to, to_outer, to_inner, from, from_outer, outer, \
               inner);                                                                           \
    }
WIDEN(f16, uint16_t)
WIDEN(bf16, uint16_t)
WIDEN(i8, int8_t)
WIDEN(u8, uint8_t)
NARROW(f16, uint16_t)
NARROW(bf16, uint16_t)

static void add_i32(void *c_void, int64_t c_row, int64_t c_col, const float *tile, int64_t tile_row,
                    int64_t rows, int64_t cols, double alpha, double beta)
{
    const uint32_t by = (uint32_t)(int32_t)alpha, keep = (uint32_t)(int32_t)beta;
    uint32_t *c = c_void;
    for (int64_t i = 0; i < rows; i++, c += c_row, tile += tile_row) {
        if (keep == 0)
            for (int64_t j = 0; j < cols; j++)
                c[j * c_col] = by * (uint32_t)(int32_t)tile[j];
        else
            for (int64_t j = 0; j < cols; j++)
                c[j * c_col] = by * (uint32_t)(int32_t)tile[j] + keep * c[j * c_col];
    }
}
