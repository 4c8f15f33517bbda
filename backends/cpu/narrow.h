/* SPDX-License-Identifier: Apache-2.0
 *
 * The few columns that whole vectors leave over, times many rows of A that lie along k: a register
 * takes a lane of 16 bytes of them for each of several rows, where the micro-kernel would leave
 * most of one empty. Whole lanes of A are loaded, and one element after the other fills them:
 *
 *   A   row 0   a00 a01 a02 a03       at k = 1:   a01 a01 a01 a01 | a11 a11 a11 a11 | a21 ...
 *       row 1   a10 a11 a12 a13         times     b10 b11 b12 b13 | b10 b11 b12 b13 | b10 ...
 *       row 2   a20 ...                   is added to row 0       | row 1           | row 2 of C
 *
 * Included once for each element type. Needs what turned.h does, and lanes that are masked. */
#ifndef NARROW_ROWS
/* Registers of rows that are multiplied side by side, so that as many sums are on their way; fewer
 * if rows share a set of L1, which would not hold a line of each until its last lane. */
enum { NARROW_ROWS = 8, CROWDED_ROWS = 3, NARROW_LANES = 2, LANE = 16 };
#define OF_ITS_LANE(e, d) ((e) / IN_LANE * IN_LANE + (d) % IN_LANE)
#define FILL(v, d) __builtin_shufflevector(v, v, EACH_OF(TG_V, OF_ITS_LANE, d))
#endif
#define LANE_OF JOIN(lane_, TG_T)

/* Each lane filled with one of its elements. */
static inline __attribute__((always_inline)) WIDE(vector) NAME(fill)(WIDE(vector) v, int e)
{
    return e == 0 ? FILL(v, 0) : e == 1 ? FILL(v, 1) : e == 2 ? FILL(v, 2) : FILL(v, 3);
}

/* acc += a * b at the k of a lane, the last ones from `first` on: A is read from there back. */
static inline __attribute__((always_inline)) void
NAME(add_narrow)(WIDE(vector) * acc, int registers, int lanes, int first, register_mask last,
                 const char *const *at, const int64_t *below, const TG_T *b, int64_t b_row)
{
    enum { ALL = (1 << IN_LANE) - 1 };
    WIDE(vector) b_now[4 * NARROW_LANES];
    EACH (e, IN_LANE)
        EACH (x, lanes)
            if (e >= first) {
                const LANE_OF lane = JOIN(LOAD_LANE_, TG_T)(b + (e - first) * b_row + x * IN_LANE,
                                                            x < lanes - 1 ? ALL : last);
                b_now[e * lanes + x] = JOIN(SPREAD_LANE_, TG_T)(lane);
            }
    EACH (i, registers) {
        const void *lane[TG_V / IN_LANE];
        EACH (row, TG_V / IN_LANE)
            lane[row] = at[i] + below[row] - first * (int)sizeof(TG_T);
        const WIDE(vector) a_now = (WIDE(vector))load_lanes(lane);
        EACH (e, IN_LANE)
            EACH (x, lanes)
                if (e >= first)
                    acc[i * lanes + x] += NAME(fill)(a_now, e) * b_now[e * lanes + x];
    }
}

/* One row of C, from a lane of each vector. */
static inline __attribute__((always_inline)) void
NAME(store_narrow)(TG_T *c, const TG_T *sums, int lanes, register_mask last, TG_T beta)
{
    EACH (x, lanes) {
        const register_mask mask = x < lanes - 1 ? (1 << IN_LANE) - 1 : last;
        LANE_OF sum;
        memcpy(&sum, sums + x * TG_V, sizeof sum);
        if (beta != 0)
            sum = sum + beta * JOIN(LOAD_LANE_, TG_T)(c + x * IN_LANE, mask);
        JOIN(STORE_LANE_, TG_T)(c + x * IN_LANE, mask, sum);
    }
}

/* If the last rows do not fill a register, those above them are in it once more, which are not
 * stored: there are some, if need be above all that are asked for. */
static inline __attribute__((always_inline)) void NAME(narrow_tile)(int registers, int lanes,
                                                                    const tg_step *s)
{
    enum { IN_REGISTER = TG_V / IN_LANE };
    const int64_t a_row = s->a_row * (int64_t)sizeof(TG_T), b_row = s->b_row;
    const int64_t below[4] = {0, a_row, 2 * a_row, 3 * a_row};
    const register_mask last = WIDE(first)(s->columns - (lanes - 1) * IN_LANE);
    const TG_T alpha = (TG_T)s->alpha, beta = (TG_T)s->beta, *b = s->b;
    WIDE(vector) acc[NARROW_ROWS * NARROW_LANES], sums[NARROW_ROWS * NARROW_LANES];
    const char *at[NARROW_ROWS];
    EACH (i, registers)
        at[i] = (const char *)s->a + tg_min(i * IN_REGISTER, s->rows - IN_REGISTER) * a_row;
    EACH (i, registers * lanes)
        acc[i] = (WIDE(vector)){0};
    int64_t left = s->k;
    for (; left >= IN_LANE; left -= IN_LANE, b += IN_LANE * b_row) {
        NAME(add_narrow)(acc, registers, lanes, 0, last, at, below, b, b_row);
        EACH (i, registers)
            at[i] += LANE;
    }
    if (left == 1)
        NAME(add_narrow)(acc, registers, lanes, IN_LANE - 1, last, at, below, b, b_row);
    if (left == 2)
        NAME(add_narrow)(acc, registers, lanes, IN_LANE - 2, last, at, below, b, b_row);
    if (left == 3)
        NAME(add_narrow)(acc, registers, lanes, IN_LANE - 3, last, at, below, b, b_row);
    if (alpha != 1)
        EACH (i, registers * lanes)
            acc[i] *= alpha;
    EACH (i, registers * lanes)
        sums[i] = acc[i];
    TG_T *c = s->c;
    for (int row = 0; row < s->rows; row++, c += s->c_row) {
        const int i = row / IN_REGISTER;
        const int in = row - tg_min(i * IN_REGISTER, s->rows - IN_REGISTER);
        NAME(store_narrow)(c, (const TG_T *)&sums[i * lanes] + in * IN_LANE, lanes, last, beta);
    }
}

/* A function for each count: a compiler shares out registers best in small ones. */
#define NARROW(lanes, count)                                                               \
    static __attribute__((noinline)) void NAME(narrow_##lanes##_##count)(const tg_step *s) \
    {                                                                                      \
        NAME(narrow_tile)(count, lanes, s);                                                \
    }
#define NARROW_COUNTS(DO, lanes) \
    DO(lanes, 1)                 \
    DO(lanes, 2)                 \
    DO(lanes, 3)                 \
    DO(lanes, 4)                 \
    DO(lanes, 5)                 \
    DO(lanes, 6)                 \
    DO(lanes, 7)                 \
    DO(lanes, 8)
#define NARROWS(DO) NARROW_COUNTS(DO, 1) NARROW_COUNTS(DO, 2)
#define NARROW_AT(lanes, count) [lanes - 1][count - 1] = NAME(narrow_##lanes##_##count),
NARROWS(NARROW)

static void NAME(narrow)(const tg_step *s)
{
    enum { IN_REGISTER = TG_V / IN_LANE };
    static void (*const tile[NARROW_LANES][NARROW_ROWS])(const tg_step *) = {NARROWS(NARROW_AT)};
    const int64_t registers = tg_ceil_div(s->rows, IN_REGISTER);
    const int is_crowded = s->a_row * (int64_t)sizeof(TG_T) % CROWDING == 0;
    const int64_t tiles = tg_ceil_div(registers, is_crowded ? CROWDED_ROWS : NARROW_ROWS);
    tg_step now = *s;
    for (int64_t x = 0; x < tiles; x++) {
        const int64_t first = x * registers / tiles, end = (x + 1) * registers / tiles;
        const int64_t row = first * IN_REGISTER;
        now.rows = (int)(tg_min(end * IN_REGISTER, s->rows) - row);
        now.a = (const TG_T *)s->a + row * s->a_row;
        now.c = (TG_T *)s->c + row * s->c_row;
        tile[s->columns > IN_LANE][end - first - 1](&now);
    }
}
#undef LANE_OF
