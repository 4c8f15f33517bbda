/* SPDX-License-Identifier: Apache-2.0
 *
 * Up to four rows of bf16 times a B that lies in rows, to the bits that tiles of AMX make, without
 * them: they would be mostly empty, and B has to be woven for them. What the instruction does can
 * be done by multiply-adds of f32: products of even and of odd k make a sum each over 32 of k, and
 * both are added to what waits.
 *
 *     B  | -> -> -> -> -> -> |  eight rows of it from one end to the other, as memory likes them;
 *        | -> -> -> -> -> -> |  even and odd sums of all columns wait for the next eight of 32
 *
 * Near rows are read 32 at once by more than two rows of A, to whom sums that wait are no small
 * matter; so are narrow ones. */

/* So many rows of B are more than a core follows by itself: of some columns from col on, they are
 * fetched some way along, or what comes below them. */
static inline __attribute__((always_inline)) void fetch_rows_of_b(const tg_step *s, int64_t col,
                                                                  int rows, int bytes)
{
    enum { AHEAD = 768 };
    const int64_t row = s->b_row * bytes, columns = tg_min(TG_STREAM_PANEL, s->columns - col);
    const char *const b = (s->coming ? s->coming : (const char *)s->b + AHEAD) + col * bytes;
    EACH (i, rows)
        for (int64_t byte = 0; byte < columns * bytes; byte += LINE)
            __builtin_prefetch(b + i * row + byte, 0, 2);
}

enum { FEW_ROWS = 4, FEW_VECTORS = 4, FEW_K = 8, FEW_NARROW = 256 };

static inline __attribute__((always_inline)) __m512 widen_halves(const uint16_t *at, int is_masked,
                                                                 __mmask16 mask)
{
    return is_masked ? F32_OF_BF16(_mm256_maskz_loadu_epi16(mask, at)) : WIDEN_BF16(at);
}

/* All rows of A, as f32 with zeros behind, times nv vectors of columns, over so many of k from k
 * on. Between pieces of k, sums of even and of odd k wait below those of all rows. */
static inline __attribute__((always_inline)) void add_few_columns(int mr, int nv, int is_masked,
                                                                  const float *a, int64_t k,
                                                                  int64_t end, int64_t col,
                                                                  const tg_step *s)
{
    const __mmask16 last = mask_of_words(s->columns - col - (nv - 1) * WORDS);
    const int64_t sums_row = s->sums_row, below = mr * sums_row;
    const uint16_t *b = (const uint16_t *)s->b + k * s->b_row + col;
    /* To no sum, or 0 to both: what a tile adds that has zeros behind k. It turns -0 into 0. */
    const __m512 behind = _mm512_set1_ps(s->k < ROW_HALVES - 1 ? 0.0f : -0.0f);
    float *const sums = (float *)s->sums + col;
    __m512 even[FEW_ROWS * FEW_VECTORS], odd[FEW_ROWS * FEW_VECTORS];
    EACH (i, mr)
        EACH (j, nv) {
            const float *const at = sums + i * sums_row + j * WORDS;
            even[i * nv + j] = k > 0 ? _mm512_loadu_ps(at + below) : _mm512_setzero_ps();
            odd[i * nv + j] = k > 0 ? _mm512_loadu_ps(at + 2 * below) : _mm512_setzero_ps();
        }
    for (a += k; k < end; k += 2, a += 2, b += 2 * s->b_row) {
        __m512 b_even[FEW_VECTORS], b_odd[FEW_VECTORS];
        EACH (j, nv) {
            const int is_part = is_masked && j == nv - 1;
            b_even[j] = widen_halves(b + j * WORDS, is_part, last);
            b_odd[j] = _mm512_setzero_ps();
            if (k + 1 < end)
                b_odd[j] = widen_halves(b + s->b_row + j * WORDS, is_part, last);
        }
        EACH (i, mr)
            EACH (j, nv) {
                const int at = i * nv + j;
                even[at] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * ROW_HALVES]), b_even[j], even[at]);
                odd[at] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * ROW_HALVES + 1]), b_odd[j], odd[at]);
            }
    }
    EACH (i, mr)
        EACH (j, nv) {
            const int which = i * nv + j;
            float *const at = sums + i * sums_row + j * WORDS;
            if (end < s->k) {
                _mm512_storeu_ps(at + below, even[which]);
                _mm512_storeu_ps(at + 2 * below, odd[which]);
                continue;
            }
            const __m512 sum = s->begins_with_sums ? _mm512_loadu_ps(at) : _mm512_setzero_ps();
            const __m512 both = (even[which] + behind) + (odd[which] + behind);
            _mm512_storeu_ps(at, sum + both);
        }
}

/* So many columns go with so many rows. */
static inline int64_t few_columns(int64_t left, int rows)
{
    return left < FEW_VECTORS * WORDS || rows > 2 ? ROW_HALVES : FEW_VECTORS * WORDS;
}

#define IF_FEW(count)                                                          \
    case count:                                                                \
        if (left <= WORDS)                                                     \
            add_few_columns(count, 1, 1, a[0], k, end, at, s);                 \
        else if (few_columns(left, count) == ROW_HALVES)                       \
            add_few_columns(count, 2, left < ROW_HALVES, a[0], k, end, at, s); \
        else                                                                   \
            add_few_columns(count, FEW_VECTORS, 0, a[0], k, end, at, s);       \
        break;
static __attribute__((noinline)) void add_few_rows(const tg_step *s)
{
    const int fetches = s->rows > 2 && (s->is_near || s->columns <= FEW_NARROW);
    const int64_t piece = fetches || s->columns <= FEW_NARROW ? ROW_HALVES : FEW_K;
    float a[FEW_ROWS][ROW_HALVES] __attribute__((aligned(64)));
    for (int row = 0; row < s->rows; row++)
        EACH (half, 2)
            _mm512_store_ps(a[row] + half * WORDS,
                            widen_halves((const uint16_t *)s->a + row * s->a_row + half * WORDS, 1,
                                         mask_of_words(s->k - half * WORDS)));
    for (int64_t k = 0, end; k < s->k; k = end) {
        end = tg_min(k + piece, s->k);
        for (int64_t at = 0, left; (left = s->columns - at) > 0; at += few_columns(left, s->rows)) {
            if (fetches && at % TG_STREAM_PANEL == 0)
                fetch_rows_of_b(s, at, ROW_HALVES, sizeof(uint16_t));
            switch (s->rows) {
                IF_FEW(1)
                IF_FEW(2)
                IF_FEW(3)
                IF_FEW(4)
            }
        }
    }
}

/* As tiles do: to nearest, without exceptions, with denormals as zero. All is in a function of its
 * own so that nothing of it leaves the place where that is so. */
static void stream_few_rows(const tg_step *s)
{
    enum { AS_TILES_DO = 0x9fc0 };
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(AS_TILES_DO);
    add_few_rows(s);
    _mm_setcsr(mode);
}
