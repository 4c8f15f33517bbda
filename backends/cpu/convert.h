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

/* Elements of a register of f32: one is converted at a time, or two, or a part of one if stores can
 * be masked. Compilers make them of many instructions, where one or two would do. */
#if defined(__AVX512BW__)
enum { AT_ONCE = 16, LEAST = 1 };
#else
enum { AT_ONCE = 8, LEAST = AT_ONCE };
#endif

#if defined(__AVX2__) && defined(__F16C__)
/* As tg_bf16_of_float, in the lower half of each word. */
typedef uint32_t some_words __attribute__((vector_size(4 * AT_ONCE)));
static inline __attribute__((always_inline)) some_words round_to_bf16(register_float x)
{
    const some_words bits = (some_words)x, is_nan = (some_words)(x != x);
    const some_words quiet = bits | (is_nan & 0x400000), up = 0x7fff + (bits >> 16 & 1);
    return (quiet + (up & ~is_nan)) >> 16;
}
#endif

#if defined(__AVX512BW__)
#define SOME(name, to_type, from_type, load, convert, store, store_all)                        \
    static inline __attribute__((always_inline)) void name(to_type *to, const from_type *from, \
                                                           int count)                          \
    {                                                                                          \
        const __mmask16 mask = (__mmask16)((1u << count % AT_ONCE) - 1);                       \
        EACH (i, count / AT_ONCE)                                                              \
            store_all(to + i * AT_ONCE, convert(load((__mmask16)-1, from + i * AT_ONCE)));     \
        if (count < AT_ONCE)                                                                   \
            store(to, mask, convert(load(mask, from)));                                        \
    }
#define F16_OF_F32(x) _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#define BF16_OF_F32(x) _mm512_cvtepi32_epi16((__m512i)round_to_bf16(x))
#define STORE_F32S(to, x) _mm512_storeu_ps(to, x)
#define STORE_HALVES(to, x) _mm256_storeu_si256((__m256i *)(to), x)
#define TO_F32(name, from_type, load, convert) \
    SOME(name, float, from_type, load, convert, _mm512_mask_storeu_ps, STORE_F32S)
#define OF_F32(name, convert)                                                             \
    SOME(name, uint16_t, float, _mm512_maskz_loadu_ps, convert, _mm256_mask_storeu_epi16, \
         STORE_HALVES)
TO_F32(some_of_i8, int8_t, _mm_maskz_loadu_epi8, F32_OF_I8)
TO_F32(some_of_u8, uint8_t, _mm_maskz_loadu_epi8, F32_OF_U8)
TO_F32(some_of_f16, uint16_t, _mm256_maskz_loadu_epi16, _mm512_cvtph_ps)
TO_F32(some_of_bf16, uint16_t, _mm256_maskz_loadu_epi16, F32_OF_BF16)
OF_F32(some_to_f16, F16_OF_F32)
OF_F32(some_to_bf16, BF16_OF_F32)
#elif defined(__AVX2__) && defined(__F16C__)
#define SOME(name, to_type, from_type, convert, store)                                         \
    static inline __attribute__((always_inline)) void name(to_type *to, const from_type *from, \
                                                           int count)                          \
    {                                                                                          \
        EACH (i, count / AT_ONCE)                                                              \
            store(to + i * AT_ONCE, convert(from + i * AT_ONCE));                              \
    }
#define F16_OF_F32(at) _mm256_cvtps_ph(_mm256_loadu_ps(at), _MM_FROUND_TO_NEAREST_INT)
#define STORE_HALVES(to, x) _mm_storeu_si128((__m128i *)(to), x)
SOME(some_of_i8, float, int8_t, WIDEN_I8, _mm256_storeu_ps)
SOME(some_of_u8, float, uint8_t, WIDEN_U8, _mm256_storeu_ps)
SOME(some_of_f16, float, uint16_t, WIDEN_F16, _mm256_storeu_ps)
SOME(some_of_bf16, float, uint16_t, WIDEN_BF16, _mm256_storeu_ps)
SOME(some_to_f16, uint16_t, float, F16_OF_F32, STORE_HALVES)

static inline __attribute__((always_inline)) void some_to_bf16(uint16_t *to, const float *from,
                                                               int count)
{
    const __m256i first = (__m256i)round_to_bf16(_mm256_loadu_ps(from));
    const __m256i last = (__m256i)round_to_bf16(_mm256_loadu_ps(from + count - AT_ONCE));
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(first, last), 0xd8);
    if (count == 2 * AT_ONCE)
        _mm256_storeu_si256((__m256i *)to, both);
    else
        STORE_HALVES(to, _mm256_castsi256_si128(both));
}
#else
#define SOME(name, to_type, from_type, one)                                \
    static inline void name(to_type *to, const from_type *from, int count) \
    {                                                                      \
        EACH (i, count)                                                    \
            to[i] = one(from[i]);                                          \
    }
SOME(some_of_i8, float, int8_t, (float))
SOME(some_of_u8, float, uint8_t, (float))
SOME(some_of_f16, float, uint16_t, tg_float_of_f16)
SOME(some_to_f16, uint16_t, float, tg_f16_of_float)
SOME(some_of_bf16, float, uint16_t, tg_float_of_bf16)
SOME(some_to_bf16, uint16_t, float, tg_bf16_of_float)
#endif

/* The last ones overlap those before them, and of a row that is shorter, a masked register is all.
 */
#define ROW(name, to_type, from_type, some, one)                                                 \
    static inline __attribute__((always_inline)) void name(void *to_void, const void *from_void, \
                                                           int64_t count)                        \
    {                                                                                            \
        to_type *to = to_void;                                                                   \
        const from_type *from = from_void;                                                       \
        int64_t i = 0;                                                                           \
        for (; i + 2 * AT_ONCE <= count; i += 2 * AT_ONCE)                                       \
            some(to + i, from + i, 2 * AT_ONCE);                                                 \
        if (i + AT_ONCE <= count)                                                                \
            some(to + i, from + i, AT_ONCE);                                                     \
        if (count % AT_ONCE && count >= AT_ONCE)                                                 \
            some(to + count - AT_ONCE, from + count - AT_ONCE, AT_ONCE);                         \
        else if (count < AT_ONCE && count >= LEAST)                                              \
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

/* Adjacent elements of each row. Those of panels are so few that their number is best known. */
static inline __attribute__((always_inline)) void convert_rows(convert_row *convert, char *to,
                                                               int64_t to_row, const char *from,
                                                               int64_t from_row, int64_t rows,
                                                               int64_t length)
{
    if (length == 16 || length == 32 || length == 48)
        EACH (x, 3)
            for (int64_t row = 0; row < rows && length == 16 * (x + 1); row++)
                convert(to + row * to_row, from + row * from_row, 16 * (x + 1));
    else
        for (int64_t row = 0; row < rows; row++)
            convert(to + row * to_row, from + row * from_row, length);
}

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
    if (from_inner == 1) {
        convert_rows(convert, (char *)to, to_outer * (int64_t)sizeof *to, from, from_outer * bytes,
                     outer, inner);
        return;
    }
    for (int64_t o = 0; o < outer; o++, to += to_outer, from += from_outer * bytes)
        for (int64_t i = 0; i < inner; i += PIECE) {
            const int64_t count = tg_min(PIECE, inner - i);
            for (int64_t e = 0; e < count; e++)
                memcpy(gathered + e * bytes, from + (i + e) * from_inner * bytes, (size_t)bytes);
            convert(to + i, gathered, count);
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
    if (to_inner == 1) {
        convert_rows(convert, to, to_outer * bytes, (const char *)from,
                     from_outer * (int64_t)sizeof *from, outer, inner);
        return;
    }
    for (int64_t o = 0; o < outer; o++, to += to_outer * bytes, from += from_outer)
        for (int64_t i = 0; i < inner; i += PIECE) {
            const int64_t count = tg_min(PIECE, inner - i);
            convert(adjacent, from + i, count);
            for (int64_t e = 0; e < count; e++)
                memcpy(to + (i + e) * to_inner * bytes, adjacent + e * bytes, (size_t)bytes);
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
