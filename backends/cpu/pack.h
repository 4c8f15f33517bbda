/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between any two pairs of strides, for packing; included once for each element type.
 *
 *   rows to rows      straight moves
 *   columns to rows   squares are transposed in registers: in each round, all pairs of rows that
 *                     are 1, 2, 4, ... apart exchange every other 1, 2, 4, ... elements
 * The last piece of a ragged edge overlaps the one before it, and writes the same values again.
 *
 * Needs: TG_T the element type, TG_V the elements of a register, NAME(x) to mark x
 * with the type, WIDE(x) with both. */
#ifndef FETCH_ROWS
#define FETCH_ROWS 4    /* how far ahead of a copy memory is fetched */
#define FETCH_BYTES 256 /* and of a transposition, along its rows */
#define UPPER(e, d) ((e) & (d) ? TG_V + (e) - (d) : (e))
#define LOWER(e, d) (((e) & (d) ? TG_V + (e) : (e) + (d)) % (2 * TG_V))
/* Processors are quick with x0 y0 x1 y1 and x2 y2 x3 y3, in each lane of four. */
#define FIRST_IN_LANE(e, d) ((e) / 4 * 4 + (e) % 4 / 2 + (e) % 2 * TG_V)
#define LAST_IN_LANE(e, d) ((FIRST_IN_LANE(e, d) + 2) % (2 * TG_V))
/* And with every other lane of x, then of y. */
#define EVEN_LANE(e, d) ((e) / IN_LANE * 2 * IN_LANE + (e) % IN_LANE)
#define ODD_LANE(e, d) (EVEN_LANE(e, d) + IN_LANE)
#define EACH_OF_2(f, d) f(0, d), f(1, d)
#define EACH_OF_4(f, d) EACH_OF_2(f, d), f(2, d), f(3, d)
#define EACH_OF_8(f, d) EACH_OF_4(f, d), f(4, d), f(5, d), f(6, d), f(7, d)
#define EACH_OF_16(f, d) \
    EACH_OF_8(f, d), f(8, d), f(9, d), f(10, d), f(11, d), f(12, d), f(13, d), f(14, d), f(15, d)
#define EACH_OF(count, f, d) JOIN(EACH_OF_, count)(f, d)
/* The elements of x and y that `which` says, for a constant d. */
#define SHUFFLE(x, y, which, d)                                          \
    ((d) == 1   ? __builtin_shufflevector(x, y, EACH_OF(TG_V, which, 1)) \
     : (d) == 2 ? __builtin_shufflevector(x, y, EACH_OF(TG_V, which, 2)) \
     : (d) == 4 ? __builtin_shufflevector(x, y, EACH_OF(TG_V, which, 4)) \
                : __builtin_shufflevector(x, y, EACH_OF(TG_V, which, 8)))
#endif

typedef TG_T NAME(four) __attribute__((vector_size(4 * sizeof(TG_T))));
typedef TG_T NAME(four_loose)
    __attribute__((vector_size(4 * sizeof(TG_T)), aligned(sizeof(TG_T)), may_alias));

/* Of rows that are d apart, the upper one gets every other d elements of the lower one in place of
 * its own, and the lower one what is left over. */
static inline __attribute__((always_inline)) void NAME(mix)(WIDE(vector) * square, int rows, int d)
{
    const int is_in_lane = IN_LANE == 4 && d == 1,
              is_of_lanes = TG_V == 4 * IN_LANE && d >= IN_LANE;
    EACH (i, TG_V)
        if ((i & d) == 0 && i + d < rows) {
            const WIDE(vector) x = square[i], y = square[i + d];
            square[i] = is_in_lane    ? SHUFFLE(x, y, FIRST_IN_LANE, 1)
                        : is_of_lanes ? SHUFFLE(x, y, EVEN_LANE, 1)
                                      : SHUFFLE(x, y, UPPER, d);
            square[i + d] = is_in_lane    ? SHUFFLE(x, y, LAST_IN_LANE, 1)
                            : is_of_lanes ? SHUFFLE(x, y, ODD_LANE, 1)
                                          : SHUFFLE(x, y, LOWER, d);
        }
}

/* The same of all rows at all distances: a square, or its lanes, are transposed. */
static inline __attribute__((always_inline)) void NAME(exchange)(WIDE(vector) * square, int rows)
{
    NAME(mix)(square, rows, 1);
    NAME(mix)(square, rows, 2);
    EACH (i, TG_V)
        if (IN_LANE == 4 && i % 4 == 1 && i < rows) { /* they have changed places */
            const WIDE(vector) x = square[i];
            square[i] = square[i + 1];
            square[i + 1] = x;
        }
    NAME(mix)(square, rows, 4);
    NAME(mix)(square, rows, 8);
}

/* At most TG_V rows and columns of `from`, a register each. */
static inline __attribute__((always_inline)) void NAME(transpose_square)(TG_T *to, int64_t to_row,
                                                                         const TG_T *from,
                                                                         int64_t from_row, int rows,
                                                                         int columns, int is_masked)
{
    const register_mask of_columns = WIDE(first)(columns), of_rows = WIDE(first)(rows);
    WIDE(vector) square[TG_V];
    EACH (i, TG_V) {
        square[i] = WIDE(load)(from, is_masked, of_columns);
        from += !is_masked || i + 1 < rows ? from_row : 0;
    }
    NAME(exchange)(square, TG_V);
    EACH (i, TG_V)
        if (!is_masked || i < columns)
            WIDE(store)(to + i * to_row, square[i], is_masked, of_rows);
}

static inline void NAME(transpose)(TG_T *to, int64_t to_row, const TG_T *from, int64_t from_row,
                                   int64_t outer, int64_t inner)
{
    enum { IN_A_LINE = LINE / (int)sizeof *from, AHEAD = FETCH_BYTES / (int)sizeof *from };
    const int rows = (int)tg_min(TG_V, inner), columns = (int)tg_min(TG_V, outer);
    for (int64_t i = 0; i < inner; i += TG_V)
        for (int64_t o = 0; o < outer; o += TG_V) {
            const int is_next = o + AHEAD >= outer; /* rows are fetched, from their start */
            const int64_t ahead = is_next ? o + AHEAD - outer : o + AHEAD;
            const int64_t first = is_next ? i + TG_V : i;
            const int64_t end = o % IN_A_LINE == 0 && ahead < outer ? first + TG_V : 0;
            for (int64_t row = first; row < tg_min(end, inner); row++)
                __builtin_prefetch(from + ahead + row * from_row);
            const int64_t at_i = i + TG_V <= inner ? i : tg_max(0, inner - TG_V);
            const int64_t at_o = o + TG_V <= outer ? o : tg_max(0, outer - TG_V);
            TG_T *const to_at = to + at_o * to_row + at_i;
            const TG_T *const from_at = from + at_o + at_i * from_row;
            if (rows == TG_V && columns == TG_V)
                NAME(transpose_square)(to_at, to_row, from_at, from_row, TG_V, TG_V, 0);
            else
                NAME(transpose_square)(to_at, to_row, from_at, from_row, rows, columns, 1);
        }
}

/* Copies rows of `runs` pieces of 64 bytes; small constants become straight vector moves. Rows of
 * one piece were fetched before (stage.h). */
static inline __attribute__((always_inline)) void NAME(copy_runs)(TG_T *to, int64_t to_row,
                                                                  const TG_T *from,
                                                                  int64_t from_row, int64_t rows,
                                                                  int runs)
{
    for (int64_t row = 0; row < rows; row++) {
        const char *source = (const char *)(from + row * from_row);
        const char *ahead = (const char *)(from + (row + FETCH_ROWS) * from_row);
        EACH (run, runs) {
            if (runs > 1)
                __builtin_prefetch(ahead + 64 * run);
            memcpy((char *)(to + row * to_row) + 64 * run, source + 64 * run, 64);
        }
    }
}

/* Copies rows of so few elements that their number is best known. */
static inline __attribute__((always_inline)) void NAME(copy_few)(TG_T *to, int64_t to_row,
                                                                 const TG_T *from, int64_t from_row,
                                                                 int64_t rows, int count)
{
    for (int64_t row = 0; row < rows; row++, to += to_row, from += from_row) {
        memcpy(to, from, (size_t)count * sizeof *to);
    }
}

/* Rows of any length, a line at a time while the next row is fetched, then four elements; the last
 * four overlap those before them. */
static inline __attribute__((always_inline)) void NAME(copy_rows)(TG_T *to, int64_t to_row,
                                                                  const TG_T *from,
                                                                  int64_t from_row, int64_t rows,
                                                                  int64_t length)
{
    enum { IN_A_LINE = LINE / (int)sizeof *from };
    for (int64_t row = 0; row < rows; row++, to += to_row, from += from_row) {
        int64_t i = 0;
        for (; i + IN_A_LINE <= length; i += IN_A_LINE) {
            __builtin_prefetch(from + from_row + i);
            memcpy(to + i, from + i, LINE);
        }
        for (; i + 4 <= length; i += 4)
            *(NAME(four_loose) *)(to + i) = *(const NAME(four_loose) *)(from + i);
        if (length >= 4)
            *(NAME(four_loose) *)(to + length - 4) = *(const NAME(four_loose) *)(from + length - 4);
        else
            for (int64_t i = 0; i < length; i++)
                to[i] = from[i];
    }
}

static inline void NAME(copy)(void *to_void, int64_t to_outer, int64_t to_inner,
                              const void *from_void, int64_t from_outer, int64_t from_inner,
                              int64_t outer, int64_t inner)
{
    TG_T *to = to_void;
    const TG_T *from = from_void;
    if (to_inner != 1 && to_outer == 1) { /* the same, by the other axis */
        NAME(copy)(to, to_inner, 1, from, from_inner, from_outer, inner, outer);
        return;
    }
    if (to_inner != 1 || (from_inner != 1 && (from_outer != 1 || outer < 4 || inner < 4)))
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++)
                to[o * to_outer + i * to_inner] = from[o * from_outer + i * from_inner];
    else if (from_inner != 1)
        NAME(transpose)(to, to_outer, from, from_inner, outer, inner);
    else if (inner == 6)
        NAME(copy_few)(to, to_outer, from, from_outer, outer, 6);
    else if (inner * (int)sizeof *to == 64)
        NAME(copy_runs)(to, to_outer, from, from_outer, outer, 1);
    else if (inner * (int)sizeof *to == 128)
        NAME(copy_runs)(to, to_outer, from, from_outer, outer, 2);
    else if (inner * (int)sizeof *to == 192)
        NAME(copy_runs)(to, to_outer, from, from_outer, outer, 3);
    else
        NAME(copy_rows)(to, to_outer, from, from_outer, outer, inner);
}

/* Columns are fetched in runs of `run` words, a power of two: while one run of all columns is
 * multiplied, the next is fetched, one column after the other. */
static inline __attribute__((always_inline)) void
NAME(fetch_lines)(int count, const char *const *of, uint64_t p, uint64_t words, uint64_t run)
{
    enum { IN_LINE = LINE / (int)sizeof(TG_T) };
    const uint64_t next = (p & -run) + run, lines = (uint64_t)count * TG_V / IN_LINE;
    const uint64_t first = (p & (run - 1)) / TG_V * lines;
    const int shift = __builtin_ctzll(run);
    if (next + run <= words)
        EACH (i, (int)lines) {
            const uint64_t at = (first + (uint64_t)i) * IN_LINE;
            __builtin_prefetch(of[at >> shift] + (next + (at & (run - 1))) * sizeof(TG_T), 0, 2);
        }
}
