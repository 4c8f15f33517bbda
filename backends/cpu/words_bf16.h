/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16 by words: two of them that follow one another along k. One instruction
 * multiplies a word of A by 16 words of B, and adds to 16 sums of f32 first the products of the
 * upper halves, then those of the lower ones. Denormals count as zero, as do sums that would be
 * denormal.
 *
 *               b:   | 16 words | 16 words | 16 words |       acc[i][j] += a[i] . b[j]
 *      a: word       |   acc    |          |          |
 *         word       |          |          |          |
 *
 * Rows of A along k are words as they lie. B is packed in panels of words, or woven to them in registers: of a few rows of A, where it lies
 * in rows; or turned, where it lies along k. */

#if !defined(WITH_BF16)
#define WITH_BF16 __attribute__((target("avx512bf16")))
#endif
#define BF16_INLINE static inline __attribute__((always_inline)) WITH_BF16

enum { PAIR_ROWS = 8, PAIR_VECTORS = 3, WOVEN_VECTORS = 4, ROW_HALVES = 2 * WORDS };

/* sum += a . b */
BF16_INLINE __m512 add_pairs(__m512 sum, word_vector a, word_vector b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/* The word at so many elements of A, or the last element alone, in all lanes. */
BF16_INLINE word_vector spread_pair(const uint16_t *at, int is_one)
{
    int32_t word = *at;
    if (!is_one)
        memcpy(&word, at, sizeof word);
    return _mm512_set1_epi32(word);
}

/* ------------------------------------------------------------------------------------------ C */

/* The instruction for it takes denormals for zero. */
static inline WITH_BF16 __m256i sixteen_to_bf16(__m512 x)
{
    enum { DENORMAL = 0x20 };
    float wide[WORDS];
    uint16_t narrow[WORDS];
    if (!_mm512_fpclass_ps_mask(x, DENORMAL))
        return (__m256i)_mm512_cvtneps_pbh(x);
    _mm512_storeu_ps(wide, x);
    bf16_of_floats(narrow, wide, WORDS);
    return _mm256_loadu_si256((const __m256i *)narrow);
}

/* Two vectors of sums that are no denormals, or as many as there are, as bf16. */
BF16_INLINE void put_halves(uint16_t *c, const float *sums, int count)
{
    const __mmask32 mask = mask_of_halves(count);
    const __m512 first = _mm512_maskz_load_ps((__mmask16)mask, sums);
    const __m512 second = _mm512_maskz_load_ps((__mmask16)(mask >> WORDS), sums + WORDS);
    _mm512_mask_storeu_epi16(c, mask, (word_vector)_mm512_cvtne2ps_pbh(second, first));
}

/* c := alpha * sum + beta * c, as f32 or bf16, of so many rows and columns, from element `at` of C
 * on. Sums lie in whole lines; those of the instruction are no denormals. */
static __attribute__((noinline)) WITH_BF16 void scale_floats(const float *sums, int64_t sums_row,
                                                             int rows, int columns, int64_t at,
                                                             const tg_step *s)
{
    const float_scale by = float_scale_of(s);
    const int is_short = s->is_c_short;
    const int64_t c_row = s->c_row;
    void *const c = s->c;
    if (is_short && s->alpha == 1 && s->beta == 0) {
        for (int i = 0; i < rows; i++, at += c_row)
            for (int j = 0; j < columns; j += ROW_HALVES)
                put_halves((uint16_t *)c + at + j, sums + i * sums_row + j, columns - j);
        return;
    }
    for (int i = 0; i < rows; i++, at += c_row)
        for (int j = 0; j < columns; j += WORDS) {
            const __mmask16 mask = mask_of_words(columns - j);
            uint16_t *const half = (uint16_t *)c + at + j;
            __m512 sum = _mm512_load_ps(sums + i * sums_row + j);
            if (!is_short) {
                put_floats((float *)c + at + j, sum, mask, &by);
                continue;
            }
            sum = _mm512_mul_ps(sum, by.alpha);
            if (by.adds) {
                const __m512 was =
                    s->waited ? _mm512_maskz_loadu_ps(mask, s->waited + i * s->waited_row + j)
                              : F32_OF_BF16(_mm256_maskz_loadu_epi16(mask, half));
                sum = _mm512_fmadd_ps(was, by.beta, sum);
            }
            _mm256_mask_storeu_epi16(half, mask, sixteen_to_bf16(sum));
        }
}

/* The same of a tile, from element `at` of C on, whose rows end with masked vectors. Sums of the
 * instruction are no denormals. */
BF16_INLINE void put_pairs(const __m512 *acc, int mr, int nv, __mmask16 last, int64_t at,
                           const tg_step *s)
{
    const int64_t c_row = s->c_row;
    if (s->alpha != 1 || s->beta != 0) {
        __m512 sums[MOST_ACCUMULATORS]; /* acc stays in registers */
        EACH (i, mr * nv)
            sums[i] = acc[i];
        scale_floats((const float *)sums, nv * WORDS, mr,
                     (nv - 1) * WORDS + __builtin_popcount(last), at, s);
    } else if (s->is_c_short) {
        uint16_t *const c = (uint16_t *)s->c + at;
        EACH (i, mr)
            EACH (j, nv)
                _mm256_mask_storeu_epi16(c + i * c_row + j * WORDS,
                                         j == nv - 1 ? last : (__mmask16)0xffff,
                                         (__m256i)_mm512_cvtneps_pbh(acc[i * nv + j]));
    } else {
        float *const c = (float *)s->c + at;
        EACH (i, mr)
            EACH (j, nv)
                _mm512_mask_storeu_ps(c + i * c_row + j * WORDS,
                                      j == nv - 1 ? last : (__mmask16)0xffff, acc[i * nv + j]);
    }
}

/* ---------------------------------------------------------------------------- panels of words */

/* acc += a * b at a word of B, whose last one may be half zeros. */
BF16_INLINE void add_packed(__m512 *acc, int mr, int nv, int is_one, const uint16_t *a,
                            int64_t a_row, const int32_t *b)
{
    word_vector b_now[PAIR_VECTORS];
    EACH (j, nv)
        b_now[j] = _mm512_loadu_si512(b + j * WORDS);
    EACH (i, mr) {
        const word_vector a_now = spread_pair(a + i * a_row, is_one);
        EACH (j, nv)
            acc[i * nv + j] = add_pairs(acc[i * nv + j], a_now, b_now[j]);
    }
}

BF16_INLINE void multiply_packed(int mr, int nv, const tg_step *s)
{
    const int64_t a_row = s->a_row, b_row = s->b_row;
    const uint16_t *a = s->a;
    const int32_t *b = s->b;
    int64_t k = s->k;
    __m512 acc[PAIR_ROWS * PAIR_VECTORS];
    EACH (i, mr * nv)
        acc[i] = _mm512_setzero_ps();
    fetch_words(s);
    for (; k >= 2; k -= 2, a += 2, b += b_row) {
        add_packed(acc, mr, nv, 0, a, a_row, b);
        EACH (j, nv)
            __builtin_prefetch(b + FETCH_STEPS * b_row + j * WORDS);
    }
    if (k)
        add_packed(acc, mr, nv, 1, a, a_row, b);
    put_pairs(acc, mr, nv, mask_of_words(s->columns - (nv - 1) * WORDS), 0, s);
}

#define EACH_PAIR_ROW(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#define IF_PACKED(count)                  \
    case count:                           \
        if (s->columns <= WORDS)          \
            multiply_packed(count, 1, s); \
        else if (s->columns <= 2 * WORDS) \
            multiply_packed(count, 2, s); \
        else                              \
            multiply_packed(count, 3, s); \
        return;
static WITH_BF16 void pairs_of_bf16(const tg_step *s)
{
    switch (s->rows) {
        EACH_PAIR_ROW(IF_PACKED)
    }
}

/* -------------------------------------------------------------------------------- B in rows */

BF16_INLINE word_vector load_halves(const uint16_t *at, int is_masked, __mmask32 mask)
{
    return is_masked ? _mm512_maskz_loadu_epi16(mask, at) : _mm512_loadu_si512(at);
}

/* acc += a * b at two of k, or at the last one alone. */
BF16_INLINE void add_woven(__m512 *acc, int mr, int nv, int is_masked, __mmask32 mask, int is_one,
                           const uint16_t *a, int64_t a_row, const uint16_t *b, int64_t b_row)
{
    word_vector words[WOVEN_VECTORS];
    EACH (j, nv) {
        const int is_last = is_masked && j / 2 == (nv - 1) / 2;
        const uint16_t *const at = b + j / 2 * ROW_HALVES;
        const word_vector low = load_halves(at, is_last, mask);
        const word_vector high =
            is_one ? _mm512_setzero_si512() : load_halves(at + b_row, is_last, mask);
        words[j] = _mm512_permutex2var_epi16(low, by_turns(j % 2), high);
    }
    EACH (i, mr) {
        const word_vector a_now = spread_pair(a + i * a_row, is_one);
        EACH (j, nv)
            acc[i * nv + j] = add_pairs(acc[i * nv + j], a_now, words[j]);
    }
}

/* Some rows of A times nv vectors of columns, over the k of a step. What comes is fetched with the
 * first of them. */
BF16_INLINE void multiply_woven(int mr, int nv, int is_masked, int64_t row, int col,
                                const tg_step *s)
{
    const int64_t a_row = s->a_row, b_row = s->b_row, sums_row = s->sums_row;
    const uint16_t *a = (const uint16_t *)s->a + row * a_row, *b = (const uint16_t *)s->b + col;
    const char *coming = s->coming && row == 0 ? s->coming + col * sizeof *b : NULL;
    const int left = s->columns - col;
    const __mmask32 mask = mask_of_halves(left - (nv - 1) / 2 * ROW_HALVES);
    float *const sums = (float *)s->sums + row * sums_row + col;
    int64_t k = s->k;
    __m512 acc[PAIR_ROWS * WOVEN_VECTORS / 2];
    EACH (i, mr * nv)
        acc[i] = _mm512_setzero_ps();
    if (s->begins_with_sums)
        EACH (i, mr)
            EACH (j, nv)
                acc[i * nv + j] = _mm512_loadu_ps(sums + i * sums_row + j * WORDS);
    for (; coming && k >= 2; k -= 2, a += 2, b += 2 * b_row, coming += 4 * b_row) {
        add_woven(acc, mr, nv, is_masked, mask, 0, a, a_row, b, b_row);
        EACH (j, (nv + 1) / 2) {
            __builtin_prefetch(coming + 2 * j * ROW_HALVES, 0, 2);
            __builtin_prefetch(coming + 2 * (b_row + j * ROW_HALVES), 0, 2);
        }
    }
    for (; k >= 2; k -= 2, a += 2, b += 2 * b_row)
        add_woven(acc, mr, nv, is_masked, mask, 0, a, a_row, b, b_row);
    if (k)
        add_woven(acc, mr, nv, is_masked, mask, 1, a, a_row, b, b_row);
    if (s->leaves_sums)
        EACH (i, mr)
            EACH (j, nv)
                _mm512_storeu_ps(sums + i * sums_row + j * WORDS, acc[i * nv + j]);
    else
        put_pairs(acc, mr, nv, mask_of_words(left - (nv - 1) * WORDS), row * s->c_row + col, s);
}

/* Half the rows have twice the columns. */
#define IF_WOVEN(count)                                                               \
    case count:                                                                       \
        if (left <= WORDS)                                                            \
            multiply_woven(count, 1, 1, row, col, s);                                 \
        else if (left < ROW_HALVES)                                                   \
            multiply_woven(count, 2, 1, row, col, s);                                 \
        else if ((count) > PAIR_ROWS / 2 || step == ROW_HALVES || left == ROW_HALVES) \
            multiply_woven(count, 2, 0, row, col, s);                                 \
        else if (left <= 3 * WORDS)                                                   \
            multiply_woven(count, 3, 1, row, col, s);                                 \
        else if (left < 2 * ROW_HALVES)                                               \
            multiply_woven(count, 4, 1, row, col, s);                                 \
        else                                                                          \
            multiply_woven(count, 4, 0, row, col, s);                                 \
        break;

/* All columns of B where it is, for a few rows of A. */
static WITH_BF16 void stream_pairs_of_bf16(const tg_step *s)
{
    const int64_t tiles = tg_ceil_div(s->rows, PAIR_ROWS), height = tg_ceil_div(s->rows, tiles);
    const int step = height <= PAIR_ROWS / 2 ? 2 * ROW_HALVES : ROW_HALVES;
    for (int col = 0; col < s->columns; col += step)
        for (int64_t row = 0; row < s->rows; row += height) {
            const int left = s->columns - col;
            switch (tg_min(height, s->rows - row)) {
                EACH_PAIR_ROW(IF_WOVEN)
            }
        }
}

/* ------------------------------------------------------------------------------- B along k */

/* acc += a * square, 16 words of columns, of which so many elements of k are there: what A has
 * behind them is another slice's, or another row's. */
BF16_INLINE void add_turned(__m512 *acc, int mr, const uint16_t *a, int64_t a_row,
                            const word_vector *square, int64_t left)
{
    EACH (word, WORDS)
        EACH (i, mr)
            if (2 * word < left)
                acc[i] = add_pairs(acc[i], spread_pair(a + i * a_row + 2 * word, 0), square[word]);
}

/* Rows of A times 16 columns, which are turned in registers. A has zeros up to the end of a line.
 */
BF16_INLINE void multiply_lines_of_pairs(int mr, const char *const *of, int64_t p, int64_t end,
                                         __mmask16 columns, int64_t at, const tg_step *s)
{
    const uint16_t *const a = s->a;
    const int64_t a_row = s->a_row / (int64_t)sizeof *a;
    __m512 acc[PAIR_ROWS];
    EACH (i, mr)
        acc[i] = _mm512_setzero_ps();
    for (; p < end; p += ROW_HALVES) {
        const __mmask64 mask = mask_of_bytes(2 * (end - p));
        word_vector square[WORDS];
        EACH (column, WORDS)
            square[column] = _mm512_maskz_loadu_epi8(mask, of[column] + 2 * p);
        if (s->ahead)
            fetch_lines_float(WORDS, of, (uint64_t)p / 2, (uint64_t)s->k / 2, (uint64_t)s->ahead);
        turn(square);
        if (p + ROW_HALVES <= end)
            add_turned(acc, mr, a + p, a_row, square, ROW_HALVES);
        else
            add_turned(acc, mr, a + p, a_row, square, end - p);
    }
    put_pairs(acc, mr, 1, columns, at, s);
}

#define IF_LINES(count)                                                 \
    case count:                                                         \
        multiply_lines_of_pairs(count, of, p, end, columns, col, &now); \
        break;
static WITH_BF16 void lines_of_pairs_of_bf16(const tg_step *s)
{
    for (int col = 0; col < s->columns; col += WORDS) {
        const __mmask16 columns = mask_of_words(s->columns - col);
        const char *of[WORDS];
        tg_step now = *s;
        EACH (i, WORDS)
            of[i] = (const char *)s->b + 2 * s->b_row * tg_min(col + i, s->columns - 1);
        for (int64_t p = 0; p < s->k; p += s->slice, now.beta = 1) {
            const int64_t end = tg_min(s->k, p + s->slice);
            switch (s->rows) {
                EACH_PAIR_ROW(IF_LINES)
            }
        }
    }
}

static WITH_BF16 double spin_pairs_of_bf16(int64_t rounds, double *sink)
{
    enum { CHAINS = 12 };
    const word_vector factor = _mm512_set1_epi16((int16_t)(0x3f80 + (int)*sink)); /* 1, or so */
    __m512 chain[CHAINS];
    EACH (i, CHAINS)
        chain[i] = _mm512_set1_ps((float)i); /* equal ones would be computed once */
    for (int64_t round = 0; round < rounds; round++)
        EACH (i, CHAINS)
            chain[i] = add_pairs(chain[i], factor, factor);
    EACH (i, CHAINS)
        *sink += _mm512_reduce_add_ps(chain[i]) * 1e-300;
    return 4.0 * CHAINS * WORDS * (double)rounds;
}
