/* SPDX-License-Identifier: Apache-2.0
 *
 * A few rows of A times columns of B that lie along k, as weights often do: squares of B are turned
 * in registers and multiplied at once, so that B is read in long runs, and nothing is written but
 * C. (Dot products would be summed in another order.) Included once for each element type.
 *
 *          k ->                       element e of all columns is one vector:
 *   b  0   b00 b01 b02 b03 ...          b00 b10 b20 b30     acc += a0 * that
 *   b  1   b10 b11 b12 b13 ...          b01 b11 b21 b31     acc += a1 * that
 *   b  2   b20 b21 b22 b23 ...          ...
 *
 * Lanes of 16 bytes are turned as they are loaded, each from a column of its own; what is in a lane
 * then changes places as in pack.h. But if more than eight columns crowd in a set of L1, they would
 * not be there for their next lane: of those a whole register is read at a time. So it is of f16
 * and bf16, whose words are pairs along k, and become f32 when they are turned.
 *
 * Needs what pack.h does, and its squares; and load_lanes, a register of what lies at so many
 * places. */

/* Memory likes long runs: what a line has in its next 1024 bytes is fetched at once, and a line
 * after the other while all of them are multiplied. */
static inline __attribute__((always_inline)) void
NAME(fetch_lines)(int count, const char *const *of, int64_t p, int64_t left)
{
    enum { IN_LINE = LINE / (int)sizeof(TG_T), RUN = 16 * IN_LINE };
    const int64_t run = tg_round_down(p, RUN) + RUN, lines = count * TG_V / IN_LINE;
    const int64_t first = (p - run + RUN) / TG_V * lines;
    if (run + RUN <= left)
        EACH (i, lines) {
            const int64_t at = (first + i) * IN_LINE;
            __builtin_prefetch(of[at / RUN] + (run + at % RUN) * (int64_t)sizeof(TG_T), 0, 2);
        }
}

/* The words at p, p + 1, ... of TG_V columns: a register of each, or a lane. */
static inline __attribute__((always_inline)) void NAME(turn)(WIDE(vector) * square, int words,
                                                             const char *const *of, int64_t p)
{
    enum { LANES = TG_V / IN_LANE };
    EACH (i, words) {
        const void *lane[LANES];
        EACH (x, LANES)
            lane[x] = of[x * IN_LANE + i % IN_LANE] + p * (int64_t)sizeof(TG_T);
        if (words == TG_V)
            memcpy(&square[i], of[i] + p * (int64_t)sizeof(TG_T), sizeof square[i]);
        else
            square[i] = (WIDE(vector))load_lanes(lane);
    }
    NAME(exchange)(square, words);
}

/* Of words, which are elements if type is 0, else pairs of halves. */
static inline __attribute__((always_inline)) WIDE(vector)
    NAME(element_of)(tg_type type, WIDE(vector) words, int which)
{
    register_f32 wide;
    if (type == 0)
        return words;
    memcpy(&wide, &words, sizeof wide);
    wide = half_of(type, wide, which);
    memcpy(&words, &wide, sizeof wide);
    return words;
}

/* acc += a * b at the next words of one vector of columns. */
static inline __attribute__((always_inline)) void
NAME(add_turned)(WIDE(vector) * acc, int mr, int nv, int words, tg_type type, const char *const *of,
                 const TG_T *a, int64_t a_row, int64_t p)
{
    const int in_word = type ? 2 : 1;
    WIDE(vector) square[TG_V];
    NAME(turn)(square, words, of, p / in_word);
    EACH (e, words * in_word) {
        const WIDE(vector) b_now = NAME(element_of)(type, square[e / in_word], e % in_word);
        EACH (i, mr)
            acc[i * nv] += a[i * a_row + p + e] * b_now;
    }
}

/* acc := a * b, from nv vectors of columns that start at `of`. */
static inline __attribute__((always_inline)) void
NAME(multiply_turned)(WIDE(vector) * acc, int mr, int nv, int is_crowded, tg_type type,
                      const char *const *of, const tg_step *s)
{
    const TG_T *const a = s->a;
    const int64_t a_row = s->a_row;
    const int in_word = type ? 2 : 1, bytes = (int)sizeof(TG_T) / in_word;
    const int words = is_crowded ? TG_V : IN_LANE, times = TG_V / words;
    int64_t p = 0;
    EACH (i, mr * nv)
        acc[i] = (WIDE(vector)){0};
    for (; p + TG_V * in_word <= s->k; p += TG_V * in_word) {
        if (s->ahead)
            NAME(fetch_lines)(nv * TG_V, of, p / in_word, s->ahead / in_word);
        EACH (x, times)
            EACH (j, nv)
                NAME(add_turned)
        (acc + j, mr, nv, words, type, of + j * TG_V, a, a_row, p + x * words);
    }
    if (times > 1)
        for (; p + words <= s->k; p += words)
            EACH (j, nv)
                NAME(add_turned)(acc + j, mr, nv, words, type, of + j * TG_V, a, a_row, p);
    for (; p < s->k; p++)
        EACH (j, nv) {
            char line[TG_V * sizeof(TG_T)];
            EACH (i, TG_V)
                memcpy(line + i * bytes, of[j * TG_V + i] + p * bytes, (size_t)bytes);
            const WIDE(vector) b_now = WIDE(load_as)(type, line);
            EACH (i, mr)
                acc[i * nv + j] += a[i * a_row + p] * b_now;
        }
}

/* b_row is from column to column here. Columns that are not there are the last one once more. */
static inline __attribute__((always_inline)) void NAME(turned_tile)(int mr, int nv, tg_type type,
                                                                    const tg_step *s)
{
    enum { MOST = TG_TURNED_VECTORS * TG_V };
    const int64_t columns = s->columns, whole = nv * TG_V;
    const int64_t b_row = s->b_row * (type ? 2 : (int64_t)sizeof(TG_T)); /* in bytes */
    WIDE(vector) acc[TG_TURNED_ROWS * TG_TURNED_VECTORS];
    const char *of[MOST];
    TG_T corner[TG_TURNED_ROWS * MOST], *const c = s->c;
    EACH (i, nv * TG_V)
        of[i] = (const char *)s->b + tg_min(i, columns - 1) * b_row;
    if (type || (TG_V > 8 && b_row % CROWDING == 0))
        NAME(multiply_turned)(acc, mr, nv, 1, type, of, s);
    else
        NAME(multiply_turned)(acc, mr, nv, 0, type, of, s);
    if (columns == whole) {
        WIDE(update)(acc, mr, nv, 0, WIDE(first)(0), c, s);
        return;
    }
    tg_step in_corner = *s;
    in_corner.c_row = whole;
    for (int i = 0; i < mr * whole; i++) {
        const int64_t row = i / whole, col = i % whole;
        corner[i] = s->beta != 0 && col < columns ? c[row * s->c_row + col] : 0;
    }
    WIDE(update)(acc, mr, nv, 0, WIDE(first)(0), corner, &in_corner);
    for (int i = 0; i < mr; i++)
        memcpy(c + i * s->c_row, corner + i * whole, (size_t)columns * sizeof *c);
}

#define ROWS(rows, nv, type)                  \
    case rows:                                \
        NAME(turned_tile)(rows, nv, type, s); \
        return;
#define EACH_ROWS(nv, type) \
    switch (s->rows) {      \
        ROWS(1, nv, type)   \
        ROWS(2, nv, type)   \
        ROWS(3, nv, type)   \
        ROWS(4, nv, type)   \
    }

static __attribute__((noinline, unused)) void NAME(turned_f16)(const tg_step *s)
{
    EACH_ROWS(1, TG_F16)
}

static __attribute__((noinline, unused)) void NAME(turned_bf16)(const tg_step *s)
{
    EACH_ROWS(1, TG_BF16)
}

static void NAME(turned)(const tg_step *s)
{
    if (CONVERTS(TG_T) && s->b_type == TG_F16) {
        NAME(turned_f16)(s);
    } else if (CONVERTS(TG_T) && s->b_type) {
        NAME(turned_bf16)(s);
    } else if (s->columns <= TG_V) {
        EACH_ROWS(1, (tg_type)0)
    } else {
        EACH_ROWS(TG_TURNED_VECTORS, (tg_type)0)
    }
}
#undef EACH_ROWS
#undef ROWS
