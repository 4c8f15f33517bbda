/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16, i8 and u8 by AMX. A tile register has 16 rows of 64 bytes: 16 x 16 sums, 16
 * rows of A along k, or the words (words.h) of 16 columns of B. Registers 0 to 3 are sums, 4 and 5
 * of A, 6 and 7 of B:
 *
 *              | 6 | 7 |
 *          ----+---+---+      One instruction adds 16 x 16 dot products of 64 bytes. Denormal bf16
 *           4  | 0 | 1 |      count as zero, as do sums that would be denormal.
 *           5  | 2 | 3 | */

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

enum { TILE = 16, TILE_BYTES = 64, TILES = 2 };

#define TILES_OF(x)            \
    {                          \
        x, x, x, x, x, x, x, x \
    }
static const tile_config whole_tiles = {1, 0, {0}, TILES_OF(TILE_BYTES), TILES_OF(TILE)};

/* A thread that has tiles takes longer to be switched, so it has them only while it works. */
static void start_tiles(void) { __asm__ volatile("ldtilecfg %0" : : "m"(whole_tiles)); }
static void stop_tiles(void) { __asm__ volatile("tilerelease" : :); }

#define TILE_ZERO(x) __asm__ volatile("tilezero %%tmm" #x : :)
#define TILE_LOAD(x, at, row) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #x : : "r"(at), "r"(row) : "memory")
#define TILE_PASS(x, at, row) \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #x : : "r"(at), "r"(row) : "memory")
#define TILE_STORE(x, at, row) \
    __asm__ volatile("tilestored %%tmm" #x ", (%0,%1,1)" : : "r"(at), "r"(row) : "memory")
#define TILE_DOTS(name, sum, a, b) \
    __asm__ volatile(name " %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)

/* c := alpha * sums + beta * c, as f32 or i32. */
static inline __attribute__((always_inline)) void finish_tiles(const float *sums, int64_t sums_row,
                                                               int is_whole, const tg_step *s)
{
    const __m512 alpha = _mm512_set1_ps((float)s->alpha), beta = _mm512_set1_ps((float)s->beta);
    for (int i = 0; i < s->rows; i++)
        for (int j = 0; j < s->columns; j += WORDS) {
            float *const c = (float *)s->c + i * s->c_row + j;
            const __mmask16 mask = mask_of_words(s->columns - j);
            __m512 sum = _mm512_load_ps(sums + i * sums_row + j);
            if (is_whole) {
                put_words((int32_t *)c, (word_vector)sum, mask, s);
                continue;
            }
            sum = _mm512_mul_ps(sum, alpha);
            if (s->beta != 0)
                sum += _mm512_maskz_loadu_ps(mask, c) * beta;
            _mm512_mask_storeu_ps(c, mask, sum);
        }
}

/* For streams (words_stream.h): all rows of A, as register 4. */
static inline __attribute__((always_inline)) void stream_lines(const tg_step *s, int bytes)
{
    char a[TILE * TILE_BYTES] __attribute__((aligned(64)));
    const __mmask64 along = mask_of_bytes(s->k * bytes);
    for (int i = 0; i < TILE; i++) {
        const char *const row = (const char *)s->a + i * s->a_row * bytes;
        _mm512_store_si512(a + i * TILE_BYTES, i < s->rows ? _mm512_maskz_loadu_epi8(along, row)
                                                           : _mm512_setzero_si512());
    }
    TILE_LOAD(4, a, (int64_t)TILE_BYTES);
}

/* 16 columns of B from col on. */
static inline __attribute__((always_inline)) void weave_tile(char *tile, const tg_step *s,
                                                             int64_t col, int bytes)
{
    const int in_word = WORD_BYTES / bytes;
    const __mmask16 mask = mask_of_words(s->columns - col);
    for (int word = 0; word < TILE; word++) {
        const char *const from = (const char *)s->b + (word * in_word * s->b_row + col) * bytes;
        _mm512_store_si512(tile + word * TILE_BYTES,
                           weave_end(from, s->b_row, s->k - word * in_word, mask, bytes));
    }
}

#define TILE_KERNEL(name, inst, bytes, is_whole)                                                   \
    static inline                                                                                  \
        __attribute__((always_inline)) void name##_steps(int both_m, int both_n, const tg_step *s) \
    {                                                                                              \
        const char *a = s->a, *b = s->b;                                                           \
        const int64_t row = TILE_BYTES, b_row = s->b_row * WORD_BYTES, a_step = s->a_col * row;    \
        for (int64_t k = s->k; k > 0; k -= TILE) {                                                 \
            TILE_PASS(6, b, b_row);                                                                \
            TILE_LOAD(4, a, row);                                                                  \
            TILE_DOTS(inst, 0, 4, 6);                                                              \
            if (both_n) {                                                                          \
                TILE_PASS(7, b + TILE_BYTES, b_row);                                               \
                TILE_DOTS(inst, 1, 4, 7);                                                          \
            }                                                                                      \
            if (both_m) {                                                                          \
                TILE_LOAD(5, a + TILE * row, row);                                                 \
                TILE_DOTS(inst, 2, 5, 6);                                                          \
            }                                                                                      \
            if (both_m && both_n)                                                                  \
                TILE_DOTS(inst, 3, 5, 7);                                                          \
            a += a_step;                                                                           \
            b += TILE * b_row;                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name(const tg_step *s)                                                             \
    {                                                                                              \
        enum { SIDE = TILES * TILE, ROW = SIDE * WORD_BYTES };                                     \
        const int is_c = s->alpha == 1 && s->beta == 0 && s->rows == SIDE && s->columns == SIDE;   \
        float waiting[SIDE * SIDE] __attribute__((aligned(64)));                                   \
        float *const sums = is_c ? s->c : waiting;                                                 \
        const int64_t row = is_c ? s->c_row * WORD_BYTES : ROW;                                    \
        fetch_words(s);                                                                            \
        TILE_ZERO(0);                                                                              \
        TILE_ZERO(1);                                                                              \
        TILE_ZERO(2);                                                                              \
        TILE_ZERO(3);                                                                              \
        if (s->rows > TILE && s->columns > TILE)                                                   \
            name##_steps(1, 1, s);                                                                 \
        else if (s->rows > TILE)                                                                   \
            name##_steps(1, 0, s);                                                                 \
        else if (s->columns > TILE)                                                                \
            name##_steps(0, 1, s);                                                                 \
        else                                                                                       \
            name##_steps(0, 0, s);                                                                 \
        TILE_STORE(0, sums, row);                                                                  \
        TILE_STORE(1, sums + TILE, row);                                                           \
        TILE_STORE(2, (char *)sums + TILE * row, row);                                             \
        TILE_STORE(3, (char *)(sums + TILE) + TILE * row, row);                                    \
        if (is_c)                                                                                  \
            return;                                                                                \
        finish_tiles(sums, SIDE, is_whole, s);                                                     \
    }                                                                                              \
    static void stream_##name(const tg_step *s)                                                    \
    {                                                                                              \
        stream_lines(s, bytes);                                                                    \
        for (int64_t col = 0; col < s->columns; col += TILE) {                                     \
            char b[TILE * TILE_BYTES] __attribute__((aligned(64)));                                \
            float *const sums = (float *)s->sums + col;                                            \
            const int64_t row = s->sums_row * WORD_BYTES;                                          \
            weave_tile(b, s, col, bytes);                                                          \
            if (s->begins_with_sums)                                                               \
                TILE_LOAD(0, sums, row);                                                           \
            else                                                                                   \
                TILE_ZERO(0);                                                                      \
            TILE_LOAD(6, b, (int64_t)TILE_BYTES);                                                  \
            TILE_DOTS(inst, 0, 4, 6);                                                              \
            TILE_STORE(0, sums, row);                                                              \
        }                                                                                          \
        if (!s->leaves_sums)                                                                       \
            finish_tiles(s->sums, s->sums_row, is_whole, s);                                       \
    }                                                                                              \
    static double spin_##name(int64_t rounds, double *sink)                                        \
    {                                                                                              \
        enum { SUMS = 4 };                                                                         \
        start_tiles();                                                                             \
        TILE_ZERO(4);                                                                              \
        TILE_ZERO(6);                                                                              \
        for (int64_t round = 0; round < rounds; round++) {                                         \
            TILE_DOTS(inst, 0, 4, 6);                                                              \
            TILE_DOTS(inst, 1, 4, 6);                                                              \
            TILE_DOTS(inst, 2, 4, 6);                                                              \
            TILE_DOTS(inst, 3, 4, 6);                                                              \
        }                                                                                          \
        stop_tiles();                                                                              \
        *sink += 1e-300;                                                                           \
        return 2.0 * SUMS * TILE * TILE * TILE_BYTES / (bytes) * (double)rounds;                   \
    }
TILE_KERNEL(tiles_of_i8_i8, "tdpbssd", 1, 1)
TILE_KERNEL(tiles_of_i8_u8, "tdpbsud", 1, 1)
TILE_KERNEL(tiles_of_u8_i8, "tdpbusd", 1, 1)
TILE_KERNEL(tiles_of_u8_u8, "tdpbuud", 1, 1)
TILE_KERNEL(tiles_of_bf16, "tdpbf16ps", 2, 0)
