/* SPDX-License-Identifier: Apache-2.0
 *
 * Panels of words: 4 bytes that are neighbours along k. They are made of squares of 16 lines and 64
 * bytes of each, which are turned in registers where the matrix lies the other way. */

/* Halves of two registers by turns, from the lower or the upper ones. */
static inline __attribute__((always_inline)) word_vector by_turns(int is_upper)
{
    static const uint16_t from[2 * WORDS] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                             37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                             11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const word_vector lower = _mm512_loadu_si512(from);
    return is_upper ? _mm512_add_epi16(lower, _mm512_set1_epi16(WORDS)) : lower;
}

/* Words of halves of up to 32 lines, as rows of both lie there: two registers. */
static inline __attribute__((always_inline)) void
weave_halves(word_vector *words, const char *from, int64_t from_k, int64_t count, int64_t lines)
{
    const __mmask32 mask = mask_of_halves(lines);
    const word_vector low = _mm512_maskz_loadu_epi16(count > 0 ? mask : 0, from);
    const word_vector high = _mm512_maskz_loadu_epi16(count > 1 ? mask : 0, from + 2 * from_k);
    words[0] = _mm512_permutex2var_epi16(low, by_turns(0), high);
    words[1] = _mm512_permutex2var_epi16(low, by_turns(1), high);
}

/* The same of bytes. Rows 0 and 1 by turns, and rows 2 and 3 in the upper half, are 8 columns in
 * each lane: 0 to 7 and 16 to 23 in the one register, 8 to 15 and 24 to 31 in the other. */
static inline __attribute__((always_inline)) void
weave_bytes(word_vector *words, const char *from, int64_t from_k, int64_t count, int64_t lines)
{
    static const uint16_t first[2 * WORDS] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                              21, 6,  22, 7,  23, 32, 48, 33, 49, 34, 50,
                                              35, 51, 36, 52, 37, 53, 38, 54, 39, 55};
    const __mmask64 mask = mask_of_halves(lines);
    word_vector row[WORD_BYTES];
    EACH (x, WORD_BYTES)
        row[x] = _mm512_maskz_loadu_epi8(count > x ? mask : 0, from + x * from_k);
    const word_vector even = _mm512_shuffle_i32x4(row[0], row[2], 0x44);
    const word_vector odd = _mm512_shuffle_i32x4(row[1], row[3], 0x44);
    const word_vector low = _mm512_unpacklo_epi8(even, odd), lower = _mm512_loadu_si512(first);
    const word_vector high = _mm512_unpackhi_epi8(even, odd);
    words[0] = _mm512_permutex2var_epi16(low, lower, high);
    words[1] = _mm512_permutex2var_epi16(low, _mm512_add_epi16(lower, _mm512_set1_epi16(8)), high);
}

static inline __attribute__((always_inline)) void weave_rows(word_vector *words, const char *from,
                                                             int64_t from_k, int64_t count,
                                                             int64_t lines, int bytes)
{
    if (bytes == 1)
        weave_bytes(words, from, from_k, count, lines);
    else
        weave_halves(words, from, from_k, count, lines);
}

static inline __attribute__((always_inline)) void turn(word_vector *square)
{
    vector_float_v *const words = (vector_float_v *)square;
    exchange_float(words, WORDS);
}

/* Up to 16 lines, 64 bytes of each along k, zeros where there are no more. */
static inline __attribute__((always_inline)) void load_lines(word_vector *square, const char *from,
                                                             int64_t from_k, int64_t from_line,
                                                             int64_t count, int64_t lines,
                                                             int bytes)
{
    const int in_word = WORD_BYTES / bytes;
    char gathered[WORDS * 64];
    int64_t row = from_line * bytes;
    if (from_k != 1 && from_line == 1) {
        for (int word = 0; word < WORDS; word++) {
            word_vector both[2]; /* the second is of lines 16 to 31, which are none */
            weave_rows(both, from + word * in_word * from_k * bytes, from_k, count - word * in_word,
                       lines, bytes);
            square[word] = both[0];
        }
        turn(square);
        return;
    }
    if (from_k != 1) {
        for (int64_t line = 0; line < lines; line++)
            for (int64_t e = 0; e < count; e++)
                memcpy(gathered + line * 64 + e * bytes,
                       from + (line * from_line + e * from_k) * bytes, (size_t)bytes);
        from = gathered;
        row = 64;
    }
    EACH (line, WORDS)
        square[line] = _mm512_maskz_loadu_epi8(line < lines ? mask_of_bytes(count * bytes) : 0,
                                               from + line * row);
}

/* Rows to a panel of words, with zeros for so many of k that are not there. */
static inline __attribute__((always_inline)) void pack_rows(char *to, int64_t panel,
                                                            const char *from, int64_t from_k,
                                                            int64_t k, int64_t end, int64_t lines,
                                                            int bytes, word_vector flip)
{
    const int in_word = WORD_BYTES / bytes;
    for (int64_t i = 0; i < panel; i += 2 * WORDS)
        for (int64_t at = 0; at < end; at += in_word) {
            const char *const source = from + (i + at * from_k) * bytes;
            char *const words_at = to + (at / in_word * panel + i) * WORD_BYTES;
            word_vector words[2];
            weave_rows(words, source, from_k, k - at, lines - i, bytes);
            _mm512_mask_storeu_epi32(words_at, mask_of_words(panel - i),
                                     _mm512_xor_si512(words[0], flip));
            _mm512_mask_storeu_epi32(words_at + WORDS * WORD_BYTES,
                                     mask_of_words(panel - i - WORDS),
                                     _mm512_xor_si512(words[1], flip));
        }
}

/* What a panel is made of, from its first k on, with zeros for lines that are not there:
 *   WORDS_OF_LINES  a word of each line, then the next of each, ...
 *   WHOLE_TILES     the same, filled up with zeros to 16 words of each
 *   TILES_OF_LINES  64 bytes of each line, filled up with zeros, then the next 64 of each, ...
 *   WHOLE_LINES     all words of a line, then all of the next, which is so many elements further;
 *                   of those that are there */
typedef enum panel_form { WORDS_OF_LINES, WHOLE_TILES, TILES_OF_LINES, WHOLE_LINES } panel_form;

static inline __attribute__((always_inline)) void
pack_panel(char *to, int64_t panel, const char *from, int64_t from_k, int64_t from_line, int64_t k,
           int64_t lines, int bytes, panel_form form, int top_bit)
{
    const word_vector flip = _mm512_set1_epi8((char)top_bit);
    const int64_t in_word = WORD_BYTES / bytes, few = WORDS * in_word;
    word_vector square[WORDS];
    if (from_line == 1 && (form == WORDS_OF_LINES || form == WHOLE_TILES)) {
        pack_rows(to, panel, from, from_k, k, form == WHOLE_TILES ? tg_round_up(k, few) : k, lines,
                  bytes, flip);
        return;
    }
    for (int64_t i = 0; i < (form == WHOLE_LINES ? lines : panel); i += WORDS)
        for (int64_t at = 0; at < k; at += few) {
            const int64_t left = tg_min(few, k - at), rows = tg_clamp(lines - i, 0, WORDS);
            const int64_t end = form == WHOLE_TILES ? few : left;
            const __mmask16 all = mask_of_words(panel - i);
            const char *const source = from + (i * from_line + at * from_k) * bytes;
            char *const whole = to + at * panel * bytes; /* 64 bytes of all lines */
            load_lines(square, source, from_k, from_line, left, rows, bytes);
            if (form == WHOLE_LINES) {
                EACH (line, WORDS)
                    if (line < rows)
                        _mm512_mask_storeu_epi32(to + ((i + line) * panel + at) * bytes,
                                                 mask_of_words(tg_ceil_div(left, in_word)),
                                                 square[line]);
                continue;
            }
            if (form == TILES_OF_LINES) {
                EACH (line, WORDS)
                    if (i + line < panel)
                        _mm512_storeu_si512(whole + (i + line) * 64, square[line]);
                continue;
            }
            turn(square);
            EACH (word, WORDS)
                if (word * in_word < end)
                    _mm512_mask_storeu_epi32(whole + (word * panel + i) * WORD_BYTES, all,
                                             _mm512_xor_si512(square[word], flip));
        }
}

#define PACK(name, bytes, form, top_bit)                                                         \
    static void name(void *to, int64_t panel, int64_t to_line, const void *from, int64_t from_k, \
                     int64_t from_line, int64_t k, int64_t lines)                                \
    {                                                                                            \
        (void)to_line;                                                                           \
        pack_panel(to, panel, from, from_k, from_line, k, lines, bytes, form, top_bit);          \
    }
PACK(words_of_bytes, 1, WORDS_OF_LINES, 0)
PACK(words_of_flipped, 1, WORDS_OF_LINES, TOP_BIT)
#if defined(TG_HAS_BF16)
/* Other kernels take lines so: outer is the line here. */
static void lines_of_halves(void *to, int64_t to_line, int64_t to_k, const void *from,
                            int64_t from_line, int64_t from_k, int64_t lines, int64_t k)
{
    (void)to_k;
    pack_panel(to, to_line, from, from_k, from_line, k, lines, 2, WHOLE_LINES, 0);
}
PACK(words_of_halves, 2, WORDS_OF_LINES, 0)
#endif
#if defined(TG_HAS_AMX)
PACK(columns_of_bytes, 1, WHOLE_TILES, 0)
PACK(columns_of_halves, 2, WHOLE_TILES, 0)
PACK(rows_of_bytes, 1, TILES_OF_LINES, 0)
PACK(rows_of_halves, 2, TILES_OF_LINES, 0)
#endif
