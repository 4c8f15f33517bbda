/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16, i8 and u8 by AMX. A tile register has 16 rows of 64 bytes: 16 x 16 sums, 16
 * rows of A along k, packed or where they are, or the words (words.h) of 16 columns of B. Registers
 * 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B:
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

#if !defined(TILE_DOTS)
#define START_TILES(config) __asm__ volatile("ldtilecfg %0" : : "m"(config))
#define STOP_TILES __asm__ volatile("tilerelease" : :)
#define TILE_ZERO(x) __asm__ volatile("tilezero %%tmm" #x : :)
#define TILE_LOAD(x, at, row) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #x : : "r"(at), "r"(row) : "memory")
#define TILE_PASS(x, at, row) \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #x : : "r"(at), "r"(row) : "memory")
#define TILE_STORE(x, at, row) \
    __asm__ volatile("tilestored %%tmm" #x ", (%0,%1,1)" : : "r"(at), "r"(row) : "memory")
#define TILE_DOTS(name, sum, a, b) \
    __asm__ volatile(name " %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)

/* On a core that another program shares, tiles that are loaded and multiplied one right after the
 * other take four times as long as on one that is free, and a third less with some instructions
 * between them that do nothing; those cost a free core nothing. */
#define TILE_REST __asm__ volatile(".rept 20\n\tnop\n\t.endr" : :)
#endif

/* A thread that has tiles takes longer to be switched, so it has them only while it works. */
static void start_tiles(void) { START_TILES(whole_tiles); }
static void stop_tiles(void) { STOP_TILES; }

/* So many lines along k, up to 16, as a tile, with zeros for those that are not there, and behind
 * so many bytes. */
static inline __attribute__((always_inline)) void
copy_lines(char *tile, const char *lines, int64_t row, int64_t count, int64_t bytes)
{
    const __mmask64 mask = mask_of_bytes(bytes);
    for (int64_t i = 0; i < TILE; i++)
        _mm512_store_si512(tile + i * TILE_BYTES,
                           i < count ? _mm512_maskz_loadu_epi8(mask, lines + i * row)
                                     : _mm512_setzero_si512());
}

/* For streams (words_stream.h): 16 rows of A, from first on. */
static inline __attribute__((always_inline)) void stream_lines(char *tile, const tg_step *s,
                                                               int64_t first, int bytes)
{
    copy_lines(tile, (const char *)s->a + first * s->a_row * bytes, s->a_row * bytes,
               s->rows - first, s->k * bytes);
}

/* Two tiles of columns of B from col on. */
static inline __attribute__((always_inline)) void weave_tiles(char *tiles, const tg_step *s,
                                                              int64_t col, int bytes)
{
    const int in_word = WORD_BYTES / bytes;
    for (int word = 0; word < TILE; word++, tiles += TILE_BYTES) {
        const char *const from = (const char *)s->b + (word * in_word * s->b_row + col) * bytes;
        word_vector words[TILES];
        weave_rows(words, from, s->b_row, s->k - word * in_word, s->columns - col, bytes);
        EACH (x, TILES)
            _mm512_store_si512(tiles + x * TILE * TILE_BYTES, words[x]);
    }
}

/* C's tiles, whose columns are the rows here. */
static inline void turn_sums(float *to, const float *from)
{
    enum { SIDE = TILES * TILE };
    word_vector square[WORDS];
    for (int i = 0; i < SIDE; i += TILE)
        for (int j = 0; j < SIDE; j += TILE) {
            EACH (x, WORDS)
                square[x] = _mm512_load_si512(from + (j + x) * SIDE + i);
            turn(square);
            EACH (x, WORDS)
                _mm512_store_si512(to + (i + x) * SIDE + j, square[x]);
        }
}

/* Of all sums, which waited in whole lines. */
static inline __attribute__((always_inline)) void finish_sums(const float *sums, int64_t sums_row,
                                                              int is_whole, const tg_step *s)
{
    const float_scale by = float_scale_of(s);
    if (!is_whole && s->is_c_short) {
        scale_floats(sums, sums_row, s->rows, s->columns, 0, s);
        return;
    }
    for (int i = 0; i < s->rows; i++)
        for (int j = 0; j < s->columns; j += WORDS) {
            float *const c = (float *)s->c + i * s->c_row + j;
            const __mmask16 mask = mask_of_words(s->columns - j);
            const __m512 sum = _mm512_load_ps(sums + i * sums_row + j);
            if (is_whole)
                put_words((int32_t *)c, (word_vector)sum, mask, s);
            else
                put_floats(c, sum, mask, &by);
        }
}

/* ------------------------------------------------------------------------------------- tiles */

#define TILE_LINES(x, first, s, at, row, bytes)                                  \
    {                                                                            \
        const char *const lines = (const char *)(s)->b + (first) * (row) + (at); \
        if ((s)->columns >= (first) + TILE && (at) + TILE_BYTES <= (bytes)) {    \
            TILE_PASS(x, lines, row);                                            \
        } else {                                                                 \
            char tile[TILE * TILE_BYTES] __attribute__((aligned(64)));           \
            copy_lines(tile, lines, row, (s)->columns - (first),                 \
                       tg_min(TILE_BYTES, (bytes) - (at)));                      \
            TILE_LOAD(x, tile, (int64_t)TILE_BYTES);                             \
        }                                                                        \
    }

/* The operands of a step, 64 bytes of all lines along k, and its products. The operands of the next
 * one are best loaded after them: a product waits for what was loaded right before it. */
#define TILE_OPERANDS(rest, both_m, both_n, a, b, row, b_row) \
    {                                                         \
        TILE_PASS(6, b, b_row);                               \
        rest;                                                 \
        TILE_LOAD(4, a, row);                                 \
        rest;                                                 \
        if (both_n) {                                         \
            TILE_PASS(7, (b) + TILE_BYTES, b_row);            \
            rest;                                             \
        }                                                     \
        if (both_m) {                                         \
            TILE_LOAD(5, (a) + TILE * (row), row);            \
            rest;                                             \
        }                                                     \
    }
#define TILE_PRODUCTS(inst, rest, both_m, both_n) \
    {                                             \
        TILE_DOTS(inst, 0, 4, 6);                 \
        rest;                                     \
        if (both_n) {                             \
            TILE_DOTS(inst, 1, 4, 7);             \
            rest;                                 \
        }                                         \
        if (both_m) {                             \
            TILE_DOTS(inst, 2, 5, 6);             \
            rest;                                 \
        }                                         \
        if (both_m && both_n) {                   \
            TILE_DOTS(inst, 3, 5, 7);             \
            rest;                                 \
        }                                         \
    }

#define TILE_KERNEL(name, inst, turned_inst, bytes, is_whole)                                      \
    static inline                                                                                  \
        __attribute__((always_inline)) void name##_steps(int both_m, int both_n, const tg_step *s) \
    {                                                                                              \
        const char *a = s->a, *b = s->b;                                                           \
        const int64_t b_row = s->b_row * WORD_BYTES, is_panel = s->a_col > 1;                      \
        const int64_t row = is_panel ? TILE_BYTES : s->a_row * (bytes);                            \
        const int64_t a_step = is_panel ? s->a_col * TILE_BYTES : TILE_BYTES;                      \
        if (s->k <= 0)                                                                             \
            return;                                                                                \
        TILE_OPERANDS(, both_m, both_n, a, b, row, b_row)                                          \
        for (int64_t k = s->k - TILE; k > 0; k -= TILE) {                                          \
            a += a_step;                                                                           \
            b += TILE * b_row;                                                                     \
            TILE_PRODUCTS(inst, TILE_REST, both_m, both_n)                                         \
            TILE_OPERANDS(TILE_REST, both_m, both_n, a, b, row, b_row)                             \
        }                                                                                          \
        TILE_PRODUCTS(inst, , both_m, both_n)                                                      \
    }                                                                                              \
    static void name(const tg_step *s)                                                             \
    {                                                                                              \
        enum { SIDE = TILES * TILE, ROW = SIDE * WORD_BYTES };                                     \
        const int is_c = s->alpha == 1 && s->beta == 0 && s->rows == SIDE && s->columns == SIDE && \
                         !s->is_c_short;                                                           \
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
        finish_sums(sums, SIDE, is_whole, s);                                                      \
    }                                                                                              \
    static inline __attribute__((always_inline)) void name##_in_rows(const tg_step *s)             \
    {                                                                                              \
        const int both_m = s->rows > TILE;                                                         \
        char a[TILES][TILE * TILE_BYTES] __attribute__((aligned(64)));                             \
        char b[TILES][TILE * TILE_BYTES] __attribute__((aligned(64)));                             \
        stream_lines(a[0], s, 0, bytes);                                                           \
        TILE_LOAD(4, a[0], (int64_t)TILE_BYTES);                                                   \
        if (both_m) {                                                                              \
            stream_lines(a[1], s, TILE, bytes);                                                    \
            TILE_LOAD(5, a[1], (int64_t)TILE_BYTES);                                               \
        }                                                                                          \
        for (int64_t col = 0; col < s->columns; col += TILE) {                                     \
            if (col % TG_STREAM_PANEL == 0)                                                        \
                fetch_rows_of_b(s, col, TILE_BYTES / (bytes), bytes);                              \
            char *const b_now = b[col / TILE % TILES];                                             \
            float *const sums = (float *)s->sums + col, *const below = sums + TILE * s->sums_row;  \
            const int64_t row = s->sums_row * WORD_BYTES;                                          \
            if (b_now == b[0])                                                                     \
                weave_tiles(b_now, s, col, bytes);                                                 \
            TILE_ZERO(0);                                                                          \
            TILE_ZERO(1);                                                                          \
            if (s->begins_with_sums)                                                               \
                TILE_LOAD(0, sums, row);                                                           \
            if (s->begins_with_sums && both_m)                                                     \
                TILE_LOAD(1, below, row);                                                          \
            TILE_LOAD(6, b_now, (int64_t)TILE_BYTES);                                              \
            TILE_DOTS(inst, 0, 4, 6);                                                              \
            TILE_STORE(0, sums, row);                                                              \
            if (both_m) {                                                                          \
                TILE_DOTS(inst, 1, 5, 6);                                                          \
                TILE_STORE(1, below, row);                                                         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void stream_##name(const tg_step *s)                                                    \
    {                                                                                              \
        if (!is_whole && s->rows <= FEW_ROWS)                                                      \
            stream_few_rows(s);                                                                    \
        else if (s->k > 0)                                                                         \
            name##_in_rows(s);                                                                     \
        if (!s->leaves_sums)                                                                       \
            finish_sums(s->sums, s->sums_row, is_whole, s);                                        \
    }                                                                                              \
    static void lines_of_##name(const tg_step *s)                                                  \
    {                                                                                              \
        enum { SIDE = TILES * TILE, ROW = SIDE * WORD_BYTES };                                     \
        float turned[SIDE * SIDE] __attribute__((aligned(64)));                                    \
        float sums[SIDE * SIDE] __attribute__((aligned(64)));                                      \
        const int64_t row = s->b_row * (bytes), k = s->k * (bytes), slice = s->slice * (bytes);    \
        const int both_m = s->rows > TILE, both_n = s->columns > TILE;                             \
        tg_step now = *s;                                                                          \
        for (int64_t p = 0; p < k; p += slice, now.beta = 1) {                                     \
            TILE_ZERO(0);                                                                          \
            TILE_ZERO(1);                                                                          \
            TILE_ZERO(2);                                                                          \
            TILE_ZERO(3);                                                                          \
            for (int64_t at = p; at < tg_min(k, p + slice); at += TILE_BYTES) {                    \
                const char *const a = (const char *)s->a + at * TILE;                              \
                TILE_LOAD(6, a, (int64_t)TILE_BYTES);                                              \
                TILE_LINES(4, 0, s, at, row, k);                                                   \
                TILE_DOTS(turned_inst, 0, 4, 6);                                                   \
                if (both_m) {                                                                      \
                    TILE_LOAD(7, a + s->a_row, (int64_t)TILE_BYTES);                               \
                    TILE_DOTS(turned_inst, 1, 4, 7);                                               \
                }                                                                                  \
                if (both_n) {                                                                      \
                    TILE_LINES(5, TILE, s, at, row, k);                                            \
                    TILE_DOTS(turned_inst, 2, 5, 6);                                               \
                }                                                                                  \
                if (both_m && both_n)                                                              \
                    TILE_DOTS(turned_inst, 3, 5, 7);                                               \
            }                                                                                      \
            TILE_STORE(0, turned, (int64_t)ROW);                                                   \
            TILE_STORE(1, turned + TILE, (int64_t)ROW);                                            \
            TILE_STORE(2, turned + TILE * SIDE, (int64_t)ROW);                                     \
            TILE_STORE(3, turned + TILE * SIDE + TILE, (int64_t)ROW);                              \
            turn_sums(sums, turned);                                                               \
            finish_sums(sums, SIDE, is_whole, &now);                                               \
        }                                                                                          \
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
TILE_KERNEL(tiles_of_i8_i8, "tdpbssd", "tdpbssd", 1, 1)
TILE_KERNEL(tiles_of_i8_u8, "tdpbsud", "tdpbusd", 1, 1)
TILE_KERNEL(tiles_of_u8_i8, "tdpbusd", "tdpbsud", 1, 1)
TILE_KERNEL(tiles_of_u8_u8, "tdpbuud", "tdpbuud", 1, 1)
TILE_KERNEL(tiles_of_bf16, "tdpbf16ps", "tdpbf16ps", 2, 0)
