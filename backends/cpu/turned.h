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
 * then changes places as in pack.h. But columns that crowd in a few sets of L1 would not be there
 * for their next lane: of those a whole register is read at a time.
 *
 * Needs what pack.h does, and its squares; and load_lanes, a register of what lies at so many
 * places. */

/* Memory likes long runs: what a line has in its next 1024 bytes is fetched at once, and a line
 * after the other while all of them are multiplied. */
static inline __attribute__((always_inline)) void
NAME(fetch_lines)(int count, const TG_T *const *of, int64_t p, int64_t left)
{
    enum { IN_LINE = LINE / (int)sizeof(TG_T), RUN = 16 * IN_LINE };
    const int64_t run = tg_round_down(p, RUN) + RUN, lines = count * TG_V / IN_LINE;
    const int64_t first = (p - run + RUN) / TG_V * lines;
    if (run + RUN <= left)
        EACH (i, lines) {
            const int64_t at = (first + i) * IN_LINE;
            __builtin_prefetch(of[at / RUN] + run + at % RUN, 0, 2);
        }
}

/* The elements at p, p + 1, ... of TG_V columns. */
static inline __attribute__((always_inline)) void
NAME(turn)(WIDE(vector) * square, const TG_T *const *of, int64_t p, int is_crowded)
{
    enum { IN_LANE = 16 / sizeof(TG_T), LANES = TG_V / IN_LANE };
    EACH (i, TG_V) {
        const void *lane[LANES];
        EACH (x, LANES)
            lane[x] = of[x * IN_LANE + i % IN_LANE] + p + i / IN_LANE * IN_LANE;
        if (is_crowded)
            square[i] = *(const WIDE(loose) *)(of[i] + p);
        else
            square[i] = (WIDE(vector))load_lanes(lane);
    }
    NAME(exchange)(square, 1);
    if (is_crowded || IN_LANE > 2)
        NAME(exchange)(square, 2);
    if (is_crowded) {
        NAME(exchange)(square, 4);
        NAME(exchange)(square, 8);
    }
}

/* acc := a * b, from nv vectors of columns that start at `of`. With one, FMAs wait for each other;
 * but columns that are pages apart share the sets of L1, which hold eight or so. */
static inline __attribute__((always_inline)) void NAME(multiply_turned)(WIDE(vector) * acc, int mr,
                                                                        int nv, int is_crowded,
                                                                        const TG_T *const *of,
                                                                        const tg_step *s)
{
    const TG_T *const a = s->a;
    const int64_t a_row = s->a_row;
    int64_t p = 0;
    EACH (i, mr * nv)
        acc[i] = (WIDE(vector)){0};
    for (; p + TG_V <= s->k; p += TG_V) {
        if (s->ahead)
            NAME(fetch_lines)(nv * TG_V, of, p, s->ahead);
        EACH (j, nv) {
            WIDE(vector) square[TG_V];
            NAME(turn)(square, of + j * TG_V, p, is_crowded);
            EACH (e, TG_V)
                EACH (i, mr)
                    acc[i * nv + j] += a[i * a_row + p + e] * square[e];
        }
    }
    for (; p < s->k; p++)
        EACH (j, nv) {
            WIDE(vector) b_now = {0};
            EACH (i, TG_V)
                b_now[i] = of[j * TG_V + i][p];
            EACH (i, mr)
                acc[i * nv + j] += a[i * a_row + p] * b_now;
        }
}

/* b_row is from column to column here. Columns that are not there are the last one once more. */
static inline __attribute__((always_inline)) void NAME(turned_tile)(int mr, int nv,
                                                                    const tg_step *s)
{
    enum { MOST = TG_TURNED_VECTORS * TG_V };
    const int64_t columns = s->columns, whole = nv * TG_V;
    WIDE(vector) acc[TG_TURNED_ROWS * TG_TURNED_VECTORS];
    const TG_T *of[MOST];
    TG_T corner[TG_TURNED_ROWS * MOST], *const c = s->c;
    EACH (i, nv * TG_V)
        of[i] = (const TG_T *)s->b + tg_min(i, columns - 1) * s->b_row;
    if (s->b_row * (int64_t)sizeof(TG_T) % CROWDING == 0)
        NAME(multiply_turned)(acc, mr, nv, 1, of, s);
    else
        NAME(multiply_turned)(acc, mr, nv, 0, of, s);
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

static void NAME(turned)(const tg_step *s)
{
    const int is_narrow = s->columns <= TG_V;
#define CASE(rows)                                         \
    case rows:                                             \
        if (is_narrow)                                     \
            NAME(turned_tile)(rows, 1, s);                 \
        else                                               \
            NAME(turned_tile)(rows, TG_TURNED_VECTORS, s); \
        return;
    switch (s->rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
    }
#undef CASE
}
