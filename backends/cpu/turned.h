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
/* How columns are read: lane by lane; a register at a time; or, all of them there, by two lanes. */
typedef enum turned_way { IN_LANES, IN_REGISTERS, IN_TWO_LANES } turned_way;
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

/* acc += a * b at a run of k, two lanes of each column, but for what is to be skipped of it. */
static inline __attribute__((always_inline)) void
NAME(add_run)(WIDE(vector) * acc, int mr, int nv, const char *const *at, int64_t b_row,
              int64_t offset, const TG_T *a, int64_t a_row, int skipped)
{
    enum { LANES = TG_V / IN_LANE, RUN = 2 * IN_LANE };
    const int64_t below[4] = {0, b_row, 2 * b_row, 3 * b_row};
    WIDE(vector) square[TG_TURNED_VECTORS * RUN];
    EACH (j, nv) {
        EACH (e, RUN) {
            const char *const *const of = at + j * LANES + e / IN_LANE * 2;
            const void *const lanes[2] = {of[0] + below[e % IN_LANE] + offset,
                                          of[1] + below[e % IN_LANE] + offset};
            square[j * RUN + e] = (WIDE(vector))load_two_of_two(lanes);
        }
        NAME(exchange)(square + j * RUN, RUN);
    }
    EACH (e, RUN)
        if (e >= skipped)
            EACH (i, mr)
                EACH (j, nv)
                    acc[i * nv + j] += a[i * a_row + e] * square[j * RUN + e];
}

/* acc += a * b from p to end, from columns that are all there, so many vectors of which begin at
 * `first`: addresses that follow from a few, not one for each column, leave the core its loads for
 * what is multiplied, and for what is fetched. Each element of a is spread once, for all. The last
 * run overlaps the one before it. */
static inline __attribute__((always_inline)) void
NAME(add_near)(WIDE(vector) * acc, int mr, int nv, const char *const *first, int64_t b_row,
               const TG_T *a, int64_t a_row, int64_t p, int64_t end)
{
    enum { LANES = TG_V / IN_LANE, RUN = 2 * IN_LANE, PARTS = 2, FETCHED = 256 };
    const char *at[TG_TURNED_VECTORS * LANES]; /* the first of so many columns that share lanes */
    const int64_t bytes = sizeof(TG_T), run = RUN * bytes;
    EACH (x, nv * LANES)
        at[x] = first[x / LANES] + x % LANES * IN_LANE * b_row + p * bytes;
    for (; p + PARTS * RUN <= end; p += PARTS * RUN) {
        EACH (part, PARTS) {
            EACH (x, nv * TG_V / PARTS)
                __builtin_prefetch(at[part * nv * LANES / PARTS + x / IN_LANE] +
                                   x % IN_LANE * b_row + FETCHED);
            NAME(add_run)(acc, mr, nv, at, b_row, part * run, a + p + part * RUN, a_row, 0);
        }
        EACH (x, nv * LANES)
            at[x] += PARTS * run;
    }
    for (int64_t done = 0; p + done < end; done += RUN) {
        const int64_t back = tg_max(0, p + done + RUN - end), from = done - back;
        NAME(add_run)(acc, mr, nv, at, b_row, from * bytes, a + p + from, a_row, (int)back);
    }
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
    if (way == IN_TWO_LANES) {
        NAME(add_near)(acc, mr, nv, of, s->b_row * (int64_t)sizeof(TG_T), a, a_row, p, end);
        return;
    }
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

/* Rows of C, and of a corner for one whose columns are not all there: the last ones of it, which
 * stand where its last vector begins, may be some of the others once more. */
static inline __attribute__((always_inline)) void
NAME(move_rows)(TG_T *to, int64_t to_row, int64_t to_last, const TG_T *from, int64_t from_row,
                int64_t from_last, int rows, int others, int64_t last)
{
    EACH (i, rows) {
        memcpy(to + i * to_row, from + i * from_row, (size_t)others * sizeof *to);
        memcpy(to + i * to_row + to_last, from + i * from_row + from_last,
               (size_t)last * sizeof *to);
    }
}

/* b_row is from column to column here, and a sum ends after each slice of k. If some columns are
 * not there, the last vector begins with earlier ones, or repeats the last one. */
static inline __attribute__((always_inline)) void NAME(turned_tile)(int mr, int nv, turned_way way,
                                                                    tg_type type, const tg_step *s)
{
    enum { MOST = TG_TURNED_VECTORS * TG_V };
    const int is_near = way == IN_TWO_LANES, whole = nv * TG_V, others = whole - TG_V;
    const int apart = is_near ? TG_V : 1;
    const int64_t columns = s->columns, bytes = (int)sizeof(TG_T) / NAME(in_word)(type);
    const int64_t b_row = s->b_row * bytes, from = is_near ? columns - TG_V : others;
    const int64_t last = is_near ? TG_V : columns - others;
    WIDE(vector) acc[TG_TURNED_ROWS * TG_TURNED_VECTORS];
    const char *of[MOST];
    TG_T corner[TG_TURNED_ROWS * MOST], *const c = s->c;
    tg_step now = *s;
    EACH (i, whole)
        if (i % apart == 0) {
            const int64_t column = i < others ? i : from + tg_min(i - others, last - 1);
            of[i / apart] = (const char *)s->b + column * b_row;
        }
    if (columns < whole) {
        now.c_row = whole;
        memset(corner, 0, (size_t)(mr * whole) * sizeof *corner);
        if (s->beta != 0)
            NAME(move_rows)(corner, whole, others, c, s->c_row, from, mr, others, last);
    }
    for (int64_t p = 0; p < s->k; p += s->slice, now.beta = 1) {
        const int64_t end = tg_min(s->k, p + s->slice);
        const int64_t lead =
            way == IN_REGISTERS ? NAME(lead)(of[0] + p * bytes, b_row, type, end - p) : 0;
        NAME(multiply_turned)(acc, mr, nv, way, type, of, p, end, lead, s);
        WIDE(update)(acc, mr, nv, 0, WIDE(first)(0), columns < whole ? corner : c, &now);
    }
    if (columns < whole)
        NAME(move_rows)(c, s->c_row, from, corner, whole, others, mr, others, last);
}

#define TURNED(name, rows, ...) \
    ROWS_FUNCTION(NAME(turned_##name), rows, NAME(turned_tile), __VA_ARGS__, s)
TURNED(crowded, TG_TURNED_ROWS, 1, IN_REGISTERS, (tg_type)0)
TURNED(f16, TG_TURNED_ROWS, 1, IN_REGISTERS, TG_F16)
TURNED(bf16, TG_TURNED_ROWS, 1, IN_REGISTERS, TG_BF16)
TURNED(i8, TG_TURNED_ROWS, 1, IN_REGISTERS, TG_I8)
TURNED(u8, TG_TURNED_ROWS, 1, IN_REGISTERS, TG_U8)
TURNED(one, TG_TURNED_ROWS, 1, IN_TWO_LANES, (tg_type)0)
TURNED(near, TG_TURNED_ROWS, TG_TURNED_NEAR, IN_TWO_LANES, (tg_type)0)
TURNED(most, 1, TG_TURNED_VECTORS, IN_TWO_LANES, (tg_type)0)

static void NAME(turned)(const tg_step *s)
{
    const int crowds = TG_V > 8 && s->b_row * (int64_t)sizeof(TG_T) % CROWDING == 0;
    const int is_near = VEC_BYTES == 64 && !s->ahead && s->columns >= TG_V && s->k >= 2 * IN_LANE;
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
        NAME(turned_one)(s);
    } else if (is_near && s->columns <= TG_TURNED_NEAR * TG_V) {
        NAME(turned_near)(s);
    } else if (is_near) {
        NAME(turned_most)(s);
    } else if (s->columns <= TG_V) {
        FOR_ROWS(s->rows, TG_TURNED_ROWS, NAME(turned_tile), 1, IN_LANES, (tg_type)0, s)
    } else {
        FOR_ROWS(s->rows, TG_TURNED_ROWS, NAME(turned_tile), TG_TURNED_NEAR, IN_LANES, (tg_type)0,
                 s)
    }
}
#undef TURNED
