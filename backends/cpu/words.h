/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of i8 and u8 by words: four bytes that follow one another along k. One instruction
 * multiplies the bytes of a word of A by those of 16 words of B, and adds them to 16 sums of i32.
 *
 *               b:   | 16 words | 16 words |       acc[i][j] += a[i] . b[j]
 *      a: word       |   acc    |          |
 *         word       |          |          |
 *         128s       |  extra   |          |       only if A is flipped
 *
 * The instruction takes one operand as unsigned and the other as signed. B has the side of its
 * type. An A that is on the wrong side is flipped where it is packed: the top bit of each byte,
 * which adds 128 or takes it away. What this has added to a column's sums is found by one more row
 * of bytes that are nothing but that bit. All is modulo 2^32, so no sum is too large. */

typedef __m512i word_vector;

enum { WORD_ROWS = 13, WORD_VECTORS = 2, WORDS = 16, WORD_BYTES = 4, TOP_BIT = 0x80 };

/* By its name: compilers that plan with it as an intrinsic keep sums in memory. (What goes by its
 * name is a macro, so that tests can have it in C.) */
#if !defined(ADD_DOTS)
#define ADD_DOTS(sum, u8s, i8s) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8s), "v"(i8s))
#endif
static inline __attribute__((always_inline)) word_vector add_dots(word_vector sum, word_vector u8s,
                                                                  word_vector i8s)
{
    ADD_DOTS(sum, u8s, i8s);
    return sum;
}

static inline __attribute__((always_inline)) __mmask16 mask_of_words(int64_t count)
{
    return (__mmask16)(count <= 0 ? 0 : count < WORDS ? (1u << count) - 1 : 0xffff);
}

static inline __attribute__((always_inline)) __mmask32 mask_of_halves(int64_t count)
{
    return count <= 0 ? 0 : count < 2 * WORDS ? (1u << count) - 1 : ~0u;
}

static inline __attribute__((always_inline)) __mmask64 mask_of_bytes(int64_t count)
{
    return count < 64 ? ((__mmask64)1 << count) - 1 : ~(__mmask64)0;
}

/* c := alpha * sum + beta * c, as whole numbers. */
static inline __attribute__((always_inline)) void put_words(int32_t *c, word_vector sum,
                                                            __mmask16 mask, const tg_step *s)
{
    if (s->alpha != 1)
        sum = _mm512_mullo_epi32(sum, _mm512_set1_epi32((int32_t)s->alpha));
    if (s->beta != 0)
        sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_maskz_loadu_epi32(mask, c),
                                                       _mm512_set1_epi32((int32_t)s->beta)));
    _mm512_mask_storeu_epi32(c, mask, sum);
}

/* What takes part in the same of f32, read once for many vectors. */
typedef struct float_scale {
    __m512 alpha, beta;
    int adds;
} float_scale;

static inline __attribute__((always_inline)) float_scale float_scale_of(const tg_step *s)
{
    return (float_scale){_mm512_set1_ps((float)s->alpha), _mm512_set1_ps((float)s->beta),
                         s->beta != 0};
}

static inline __attribute__((always_inline)) void put_floats(float *c, __m512 sum, __mmask16 mask,
                                                             const float_scale *by)
{
    sum = _mm512_mul_ps(sum, by->alpha);
    if (by->adds)
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, c), by->beta, sum);
    _mm512_mask_storeu_ps(c, mask, sum);
}

/* C is written after the product, and comes to L1 during it. */
static inline void fetch_words(const tg_step *s)
{
    const int bytes = s->is_c_short ? WORD_BYTES / 2 : WORD_BYTES;
    const char *c = s->c;
    for (int i = 0; i < s->rows; i++, c += s->c_row * bytes)
        for (int j = 0; j < s->columns * bytes; j += LINE)
            __builtin_prefetch(c + j, 1);
}

static inline __attribute__((always_inline)) void multiply_words(int mr, int nv, int is_b_signed,
                                                                 int is_flipped, const tg_step *s)
{
    const word_vector none = _mm512_setzero_si512(), all = _mm512_set1_epi8((char)TOP_BIT);
    const __mmask16 last = mask_of_words(s->columns - (nv - 1) * WORDS);
    const int32_t *a = s->a, *b = s->b;
    int32_t *c = s->c;
    word_vector acc[WORD_ROWS * WORD_VECTORS], extra_0 = none, extra_1 = none;
    EACH (i, mr * nv)
        acc[i] = none;
    fetch_words(s);
    for (int64_t k = 0; k < s->k; k++) {
        word_vector b_now[WORD_VECTORS];
        EACH (j, nv)
            b_now[j] = _mm512_loadu_si512(b + j * WORDS);
        if (is_flipped)
            extra_0 =
                is_b_signed ? add_dots(extra_0, all, b_now[0]) : add_dots(extra_0, b_now[0], all);
        if (is_flipped && nv > 1)
            extra_1 = is_b_signed ? add_dots(extra_1, all, b_now[nv - 1])
                                  : add_dots(extra_1, b_now[nv - 1], all);
        EACH (i, mr) {
            const word_vector a_now = _mm512_set1_epi32(a[i]);
            EACH (j, nv)
                acc[i * nv + j] = is_b_signed ? add_dots(acc[i * nv + j], a_now, b_now[j])
                                              : add_dots(acc[i * nv + j], b_now[j], a_now);
        }
        EACH (j, nv)
            __builtin_prefetch(b + FETCH_STEPS * s->b_row + j * WORDS);
        __builtin_prefetch(a + FETCH_STEPS * s->a_col);
        a += s->a_col;
        b += s->b_row;
    }
    EACH (i, mr) {
        EACH (j, nv) {
            word_vector sum = acc[i * nv + j];
            if (is_flipped)
                sum = _mm512_sub_epi32(sum, j > 0 ? extra_1 : extra_0);
            put_words(c + j * WORDS, sum, j == nv - 1 ? last : (__mmask16)0xffff, s);
        }
        c += s->c_row;
    }
}

#define MULTIPLY_WORDS(rows, is_b_signed, is_flipped)        \
    if (s->columns <= WORDS)                                 \
        multiply_words(rows, 1, is_b_signed, is_flipped, s); \
    else                                                     \
        multiply_words(rows, 2, is_b_signed, is_flipped, s)
#define WORD_KERNEL(name, ...) ROWS_FUNCTION(name, WORD_ROWS, MULTIPLY_WORDS, __VA_ARGS__)
WORD_KERNEL(u8_by_i8, 1, 0)
WORD_KERNEL(i8_by_i8, 1, 1)
WORD_KERNEL(i8_by_u8, 0, 0)
WORD_KERNEL(u8_by_u8, 0, 1)

static double spin_words(int64_t rounds, double *sink)
{
    enum { CHAINS = 12 };
    const word_vector factor = _mm512_set1_epi8((char)(1 + *sink));
    word_vector chain[CHAINS];
    EACH (i, CHAINS)
        chain[i] = _mm512_set1_epi32(i);
    for (int64_t round = 0; round < rounds; round++)
        EACH (i, CHAINS)
            chain[i] = add_dots(chain[i], factor, factor);
    EACH (i, CHAINS)
        *sink += _mm512_reduce_add_epi32(chain[i]) * 1e-300;
    return 2.0 * CHAINS * WORDS * WORD_BYTES * (double)rounds;
}
