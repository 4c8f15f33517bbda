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
 * not be there for their next lane: of those a whole register is read at a time. So it is of short
 * types, whose words are several along k, and become f32 when they are turned.
 *
 * Needs what pack.h does, and its squares; and load_lanes, a register of what lies at so many
 * places, or load_two_of_two, of two lanes at each of two. */
#ifndef TURNED_WAYS
#define TURNED_WAYS
/* How columns are read: lane by lane; a register at a time; or, all of them there, lane by lane
 * with nothing fetched, or by two lanes. */
typedef enum turned_way { IN_LANES, IN_REGISTERS, IN_LANES_NEAR, IN_TWO_LANES } turned_way;
#endif

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

/* A word is an element if type is 0, else so many short ones. */
static inline int NAME(in_word)(tg_type type)
{
    return type == 0 ? 1 : (int)sizeof(TG_T) / bytes_of_short(type);
}

static inline __attribute__((always_inline)) WIDE(vector)
    NAME(element_of)(tg_type type, WIDE(vector) words, int which)
{
    register_float wide;
    if (type == 0)
        return words;
    memcpy(&wide, &words, sizeof wide);
    wide = part_of(type, wide, which);
    memcpy(&words, &wide, sizeof wide);
    return words;
}

/* acc += a * b at the next words of one vector of columns. */
static inline __attribute__((always_inline)) void
NAME(add_turned)(WIDE(vector) * acc, int mr, int nv, int words, tg_type type, const char *const *of,
                 const TG_T *a, int64_t a_row, int64_t p)
{
    const int in_word = NAME(in_word)(type);
    WIDE(vector) square[TG_V];
    NAME(turn)(square, words, of, p / in_word);
    EACH (e, words * in_word) {
        const WIDE(vector) b_now = NAME(element_of)(type, square[e / in_word], e % in_word);
        EACH (i, mr)
            acc[i * nv] += a[i * a_row + p + e] * b_now;
    }
}

/* The same up to end, a lane at a time and then one by one: what squares leave of k. */
static inline __attribute__((always_inline)) int64_t
NAME(add_rest)(WIDE(vector) * acc, int mr, int nv, tg_type type, const char *const *of,
               const TG_T *a, int64_t a_row, int64_t p, int64_t end)
{
    const int bytes = (int)sizeof(TG_T) / NAME(in_word)(type);
    if (!type)
        for (; p + IN_LANE <= end; p += IN_LANE)
            EACH (j, nv)
                NAME(add_turned)(acc + j, mr, nv, IN_LANE, type, of + j * TG_V, a, a_row, p);
    for (; p < end; p++)
        EACH (j, nv) {
            char line[TG_V * sizeof(TG_T)];
            EACH (i, TG_V)
                memcpy(line + i * bytes, of[j * TG_V + i] + p * bytes, (size_t)bytes);
            const WIDE(vector) b_now = WIDE(load_as)(type, line);
            EACH (i, mr)
                acc[i * nv + j] += a[i * a_row + p] * b_now;
        }
    return p;
}

/* acc += a * b at the elements of a run of k, for so many of nv vectors. */
static inline __attribute__((always_inline)) void NAME(add_run)(WIDE(vector) * acc, int mr, int nv,
                                                                int vectors, int run, const TG_T *a,
                                                                int64_t a_row,
                                                                const WIDE(vector) * square)
{
    EACH (e, run)
        EACH (i, mr)
            EACH (j, vectors)
                acc[i * nv + j] += a[i * a_row + e] * square[j * run + e];
}

/* acc += a * b as long as k has whole lanes, or lines, from columns that are all there: addresses
 * that follow from a few, not one for each column, leave the core its loads for what is multiplied.
 * One or two rows are read faster in a short loop. Two lanes of a column at a time take half as
 * many loads, and leave some to fetch what comes. Returns where that ended. */
static inline __attribute__((always_inline)) int64_t
NAME(add_near)(WIDE(vector) * acc, int mr, int nv, int is_wide, const char *b, int64_t b_row,
               const TG_T *a, int64_t a_row, int64_t p, int64_t end)
{
    enum { LANES = TG_V / IN_LANE, FETCHED = 256 };
    const char *at[TG_TURNED_VECTORS * LANES]; /* the first of so many columns that share lanes */
    const int64_t below[4] = {0, b_row, 2 * b_row, 3 * b_row};
    const int run = is_wide ? 2 * IN_LANE : IN_LANE;
    const int parts = is_wide ? 2 : mr > 2 ? LANES : 1, step = parts * run;
    const int is_together = is_wide && mr > 1; /* each element of a is spread once, for all */
    EACH (x, nv * LANES)
        at[x] = b + x * IN_LANE * b_row + p * (int64_t)sizeof(TG_T);
    for (; p + step <= end; p += step) {
        EACH (part, parts) {
            WIDE(vector) square[TG_TURNED_VECTORS * TG_V];
            EACH (j, nv) {
                const char *const *const of = at + j * LANES;
                const int bytes = part * run * (int)sizeof(TG_T);
                WIDE(vector) *const now = square + is_together * j * run;
                EACH (e, run) {
                    const int64_t column = below[e % IN_LANE];
                    const void *lane[LANES];
                    EACH (x, LANES)
                        lane[x] = of[is_wide ? e / IN_LANE * 2 + x % 2 : x] + column + bytes;
                    now[e] = is_wide ? (WIDE(vector))load_two_of_two(lane)
                                     : (WIDE(vector))load_lanes(lane);
                }
                if (is_wide)
                    EACH (x, TG_V / 2)
                        __builtin_prefetch(of[part * LANES / 2 + x / IN_LANE] + below[x % IN_LANE] +
                                           FETCHED);
                NAME(exchange)(now, run);
                if (!is_together)
                    NAME(add_run)(acc + j, mr, nv, 1, run, a + p + part * run, a_row, now);
            }
            if (is_together)
                NAME(add_run)(acc, mr, nv, nv, run, a + p + part * run, a_row, square);
        }
        EACH (x, nv * LANES)
            at[x] += step * (int)sizeof(TG_T);
    }
    return p;
}

/* So many of k, in whole words, lie before a line of memory begins in all columns; 0 if it does not
 * in all of them. */
static inline int64_t NAME(lead)(const char *column, int64_t b_row, tg_type type, int64_t most)
{
    const int64_t past = (int64_t)((uintptr_t)column % LINE), word = (int64_t)sizeof(TG_T);
    return past && b_row % LINE == 0 ? tg_min(most, (LINE - past) / word * NAME(in_word)(type)) : 0;
}

/* acc := a * b from p to end, from nv vectors of columns that start at `of`; p + lead is where
 * whole registers lie in lines. */
static inline __attribute__((always_inline)) void
NAME(multiply_turned)(WIDE(vector) * acc, int mr, int nv, turned_way way, tg_type type,
                      const char *const *of, int64_t p, int64_t end, int64_t lead, const tg_step *s)
{
    const TG_T *const a = s->a;
    const int64_t a_row = s->a_row;
    const int in_word = NAME(in_word)(type);
    const int words = way == IN_REGISTERS ? TG_V : IN_LANE, times = TG_V / words;
    EACH (i, mr * nv)
        acc[i] = (WIDE(vector)){0};
    if (way == IN_LANES_NEAR || way == IN_TWO_LANES)
        p = NAME(add_near)(acc, mr, nv, VEC_BYTES == 64 && way == IN_TWO_LANES, of[0],
                           s->b_row * (int64_t)sizeof(TG_T), a, a_row, p, end);
    p = NAME(add_rest)(acc, mr, nv, type, of, a, a_row, p, p + lead);
    for (; p + TG_V * in_word <= end; p += TG_V * in_word) {
        if (s->ahead)
            NAME(fetch_lines)
        (nv * TG_V, of, (uint64_t)(p / in_word), (uint64_t)(s->k / in_word), (uint64_t)s->ahead);
        EACH (x, times)
            EACH (j, nv)
                NAME(add_turned)
        (acc + j, mr, nv, words, type, of + j * TG_V, a, a_row, p + x * words);
    }
    NAME(add_rest)(acc, mr, nv, type, of, a, a_row, p, end);
}

/* b_row is from column to column here, and a sum ends after each slice of k. Columns that are not
 * there are the last one once more. */
static inline __attribute__((always_inline)) void NAME(turned_tile)(int mr, int nv, turned_way way,
                                                                    tg_type type, const tg_step *s)
{
    enum { MOST = TG_TURNED_VECTORS * TG_V };
    const int64_t columns = s->columns, whole = nv * TG_V,
                  bytes = (int)sizeof(TG_T) / NAME(in_word)(type);
    const int64_t b_row = s->b_row * bytes;
    WIDE(vector) acc[TG_TURNED_ROWS * TG_TURNED_VECTORS];
    const char *of[MOST];
    TG_T corner[TG_TURNED_ROWS * MOST], *const c = s->c;
    tg_step now = *s;
    EACH (i, nv * TG_V)
        of[i] = (const char *)s->b + tg_min(i, columns - 1) * b_row;
    if (columns < whole) {
        now.c_row = whole;
        for (int i = 0; i < mr * whole; i++) {
            const int64_t row = i / whole, col = i % whole;
            corner[i] = s->beta != 0 && col < columns ? c[row * s->c_row + col] : 0;
        }
    }
    for (int64_t p = 0; p < s->k; p += s->slice, now.beta = 1) {
        const int64_t end = tg_min(s->k, p + s->slice);
        const int64_t lead =
            way == IN_REGISTERS ? NAME(lead)(of[0] + p * bytes, b_row, type, end - p) : 0;
        NAME(multiply_turned)(acc, mr, nv, way, type, of, p, end, lead, s);
        WIDE(update)(acc, mr, nv, 0, WIDE(first)(0), columns < whole ? corner : c, &now);
    }
    for (int i = 0; i < mr && columns < whole; i++)
        memcpy(c + i * s->c_row, corner + i * whole, (size_t)columns * sizeof *c);
}

#define TURNED_ROWS(name, rows, ...) \
    ROWS_FUNCTION(NAME(turned_##name), rows, NAME(turned_tile), __VA_ARGS__, s)
#define TURNED(name, ...) TURNED_ROWS(name, TG_TURNED_ROWS, __VA_ARGS__)
TURNED(crowded, 1, IN_REGISTERS, (tg_type)0)
TURNED(f16, 1, IN_REGISTERS, TG_F16)
TURNED(bf16, 1, IN_REGISTERS, TG_BF16)
TURNED(i8, 1, IN_REGISTERS, TG_I8)
TURNED(u8, 1, IN_REGISTERS, TG_U8)
TURNED(near, 1, IN_LANES_NEAR, (tg_type)0)
TURNED(all_near, TG_TURNED_NEAR, IN_TWO_LANES, (tg_type)0)
TURNED_ROWS(wide, 1, TG_TURNED_VECTORS, IN_TWO_LANES, (tg_type)0)

static void NAME(turned)(const tg_step *s)
{
    const int crowds = TG_V > 8 && s->b_row * (int64_t)sizeof(TG_T) % CROWDING == 0;
    const int is_near = VEC_BYTES == 64 && !s->ahead;
    if (CONVERTS && s->b_type == TG_F16) {
        NAME(turned_f16)(s);
    } else if (CONVERTS && s->b_type == TG_BF16) {
        NAME(turned_bf16)(s);
    } else if (CONVERTS && s->b_type == TG_I8) {
        NAME(turned_i8)(s);
    } else if (CONVERTS && s->b_type) {
        NAME(turned_u8)(s);
    } else if (crowds && s->columns <= TG_V) {
        NAME(turned_crowded)(s);
    } else if (is_near && s->columns == TG_V) {
        NAME(turned_near)(s);
    } else if (VEC_BYTES == 64 && s->columns == TG_TURNED_VECTORS * TG_V) {
        NAME(turned_wide)(s);
    } else if (is_near && s->columns == TG_TURNED_NEAR * TG_V) {
        NAME(turned_all_near)(s);
    } else if (s->columns <= TG_V) {
        FOR_ROWS(s->rows, TG_TURNED_ROWS, NAME(turned_tile), 1, IN_LANES, (tg_type)0, s)
    } else {
        FOR_ROWS(s->rows, TG_TURNED_ROWS, NAME(turned_tile), TG_TURNED_NEAR, IN_LANES, (tg_type)0,
                 s)
    }
}
#undef TURNED
#undef TURNED_ROWS
