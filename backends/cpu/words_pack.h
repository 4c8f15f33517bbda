/* SPDX-License-Identifier: Apache-2.0
 *
 * Panels of words: [word][line], a word being 4 bytes that are neighbours along k, or [line][k]. In
 * squares of 16 lines and 64 bytes of each, which are turned in registers where the matrix lies the
 * other way. */

/* A word of each of 16 lines, which lie side by side: of as many elements as there are. */
static inline __attribute__((always_inline)) word_vector
weave(const char *from, int64_t from_k, int64_t count, int64_t lines, int bytes)
{
    const __mmask16 mask = mask_of_words(lines);
    word_vector words = _mm512_setzero_si512();
    EACH (part, WORD_BYTES / bytes)
        if (part < count) {
            const char *row = from + part * from_k * bytes;
            const word_vector wide =
                bytes == 1 ? _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, row))
                           : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row));
            words = _mm512_or_si512(words, _mm512_slli_epi32(wide, 8 * bytes * part));
        }
    return words;
}

static inline __attribute__((always_inline)) void turn(word_vector *square)
{
    vector_float_16 *const words = (vector_float_16 *)square;
    exchange_float(words, 1);
    exchange_float(words, 2);
    exchange_float(words, 4);
    exchange_float(words, 8);
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
        EACH (word, WORDS)
            square[word] = weave(from + word * in_word * from_k * bytes, from_k,
                                 count - word * in_word, lines, bytes);
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

/* A panel as [word][line], or as [line][k], filled up with zeros to whole words, or 64 bytes. */
static inline __attribute__((always_inline)) void
pack_panel(char *to, int64_t to_row, const char *from, int64_t from_k, int64_t from_line, int64_t k,
           int64_t lines, int bytes, int is_by_words, int top_bit)
{
    const word_vector flip = _mm512_set1_epi8((char)top_bit);
    const int64_t in_word = WORD_BYTES / bytes, few = WORDS * in_word;
    word_vector square[WORDS];
    for (int64_t i = 0; i < lines; i += WORDS)
        for (int64_t at = 0; at < k; at += few) {
            const int64_t left = tg_min(few, k - at), rows = tg_min(WORDS, lines - i);
            const char *const source = from + (i * from_line + at * from_k) * bytes;
            if (!is_by_words) {
                load_lines(square, source, from_k, from_line, left, rows, bytes);
                EACH (line, WORDS)
                    if (line < rows)
                        _mm512_storeu_si512(to + (i + line) * to_row * bytes + at * bytes,
                                            square[line]);
                continue;
            }
            if (from_line == 1) {
                EACH (word, WORDS)
                    square[word] = weave(source + word * in_word * from_k * bytes, from_k,
                                         left - word * in_word, rows, bytes);
            } else {
                load_lines(square, source, from_k, from_line, left, rows, bytes);
                turn(square);
            }
            EACH (word, WORDS)
                if (word * in_word < left)
                    _mm512_mask_storeu_epi32(to + ((at / in_word + word) * to_row + i) * WORD_BYTES,
                                             mask_of_words(rows),
                                             _mm512_xor_si512(square[word], flip));
        }
}

#define PACK_WORDS(name, bytes, top_bit)                                                        \
    static void name(void *to, int64_t to_k, int64_t to_line, const void *from, int64_t from_k, \
                     int64_t from_line, int64_t k, int64_t lines)                               \
    {                                                                                           \
        (void)to_line;                                                                          \
        pack_panel(to, to_k, from, from_k, from_line, k, lines, bytes, 1, top_bit);             \
    }
#define PACK_LINES(name, bytes)                                                                    \
    static void name(void *to, int64_t to_line, int64_t to_k, const void *from, int64_t from_line, \
                     int64_t from_k, int64_t lines, int64_t k)                                     \
    {                                                                                              \
        (void)to_k;                                                                                \
        pack_panel(to, to_line, from, from_k, from_line, k, lines, bytes, 0, 0);                   \
    }
PACK_WORDS(words_of_bytes, 1, 0)
PACK_WORDS(words_of_flipped, 1, TOP_BIT)
#if defined(TG_HAS_AMX)
PACK_WORDS(words_of_halves, 2, 0)
PACK_LINES(lines_of_bytes, 1)
PACK_LINES(lines_of_halves, 2)
#endif
