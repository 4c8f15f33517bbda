/* SPDX-License-Identifier: Apache-2.0
 *
 * A few rows of bytes times 64 columns of B where it is, up to 16 rows of it (streams.h has the
 * loops). Rows of B are woven to words in registers. This leaves the columns in another order, and
 * so do sums wait, until they are written to C:
 *
 *     register 0:  columns 0 1 2 3 | 16 .. 19 | 32 .. 35 | 48 .. 51
 *     register 1:  columns 4 5 6 7 | 20 .. 23 | ... */

enum { STREAM_WORDS = 4, STREAM_PARTS = 4 };

/* Four rows, as four words of each 16 columns. */
static inline __attribute__((always_inline)) void weave_four(word_vector *words,
                                                             const word_vector *row)
{
    const word_vector low = _mm512_unpacklo_epi8(row[0], row[1]);
    const word_vector high = _mm512_unpackhi_epi8(row[0], row[1]);
    const word_vector next_low = _mm512_unpacklo_epi8(row[2], row[3]);
    const word_vector next_high = _mm512_unpackhi_epi8(row[2], row[3]);
    words[0] = _mm512_unpacklo_epi16(low, next_low);
    words[1] = _mm512_unpackhi_epi16(low, next_low);
    words[2] = _mm512_unpacklo_epi16(high, next_high);
    words[3] = _mm512_unpackhi_epi16(high, next_high);
}

/* The columns back in order, 16 in each register. */
static inline __attribute__((always_inline)) void put_in_order(word_vector *x)
{
    const word_vector a = _mm512_shuffle_i32x4(x[0], x[1], 0x44);
    const word_vector b = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    const word_vector c = _mm512_shuffle_i32x4(x[0], x[1], 0xee);
    const word_vector d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
    x[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    x[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    x[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    x[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* sums += a row of A, as words, times the woven rows of B. */
static inline __attribute__((always_inline)) void stream_row(int32_t *sums, const int32_t *a,
                                                             word_vector (*woven)[STREAM_PARTS],
                                                             int is_b_signed, const tg_step *s)
{
    word_vector acc[STREAM_PARTS];
    EACH (part, STREAM_PARTS)
        acc[part] =
            s->begins_with_sums ? _mm512_loadu_si512(sums + part * WORDS) : _mm512_setzero_si512();
    EACH (word, STREAM_WORDS) {
        const word_vector a_now = _mm512_set1_epi32(a[word]);
        EACH (part, STREAM_PARTS)
            acc[part] = is_b_signed ? add_dots(acc[part], a_now, woven[word][part])
                                    : add_dots(acc[part], woven[word][part], a_now);
    }
    EACH (part, STREAM_PARTS)
        _mm512_storeu_si512(sums + part * WORDS, acc[part]);
}

static inline __attribute__((always_inline)) void stream_words(int is_b_signed, int is_flipped,
                                                               const tg_step *s)
{
    const int top_bits = is_flipped ? TOP_BIT : 0;
    const __m128i flip = _mm_set1_epi8((char)top_bits);
    const __mmask64 columns = mask_of_bytes(s->columns);
    const char *a = s->a, *b = s->b;
    int32_t *sums = s->sums, words[STREAM_WORDS], *c = s->c;
    word_vector woven[STREAM_WORDS][STREAM_PARTS];
    EACH (word, STREAM_WORDS) {
        word_vector row[WORD_BYTES];
        EACH (byte, WORD_BYTES) {
            const int64_t k = word * WORD_BYTES + byte;
            row[byte] = k < s->k ? _mm512_maskz_loadu_epi8(columns, b + k * s->b_row)
                                 : _mm512_setzero_si512();
        }
        weave_four(woven[word], row);
    }
    const __mmask16 along = (__mmask16)((1u << s->k) - 1);
    for (int i = 0; i < s->rows; i++, sums += s->sums_row) {
        const __m128i bytes = _mm_maskz_loadu_epi8(along, a + i * s->a_row);
        _mm_storeu_si128((__m128i *)words, _mm_xor_si128(bytes, flip));
        stream_row(sums, words, woven, is_b_signed, s);
    }
    if (is_flipped) {
        _mm_storeu_si128((__m128i *)words, flip);
        stream_row(sums, words, woven, is_b_signed, s);
    }
    if (s->leaves_sums)
        return;
    const int32_t *extra = sums;
    sums = s->sums;
    for (int i = 0; i < s->rows; i++, sums += s->sums_row, c += s->c_row) {
        word_vector sum[STREAM_PARTS];
        EACH (part, STREAM_PARTS) {
            sum[part] = _mm512_loadu_si512(sums + part * WORDS);
            if (is_flipped)
                sum[part] = _mm512_sub_epi32(sum[part], _mm512_loadu_si512(extra + part * WORDS));
        }
        put_in_order(sum);
        EACH (part, STREAM_PARTS)
            if (part * WORDS < s->columns)
                put_words(c + part * WORDS, sum[part], mask_of_words(s->columns - part * WORDS), s);
    }
}

static void stream_u8_by_i8(const tg_step *s) { stream_words(1, 0, s); }
static void stream_i8_by_i8(const tg_step *s) { stream_words(1, 1, s); }
static void stream_i8_by_u8(const tg_step *s) { stream_words(0, 0, s); }
static void stream_u8_by_u8(const tg_step *s) { stream_words(0, 1, s); }
