/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between any two pairs of strides, for packing; included once for each element type.
 *
 *   rows to rows      straight moves
 *   columns to rows   4x4 squares are transposed in registers
 * The last piece of a ragged edge overlaps the one before it, and writes the same values again.
 *
 * Needs: TG_T the element type, NAME(x) to mark x with it. */
#ifndef FETCH_ROWS
#define FETCH_ROWS 4    /* how far ahead of a copy memory is fetched */
#define FETCH_BYTES 256 /* and of a transposition, along its rows, */
#define STREAMS 8       /* so many of them at a time: far more would each open a page of memory */
#endif

typedef TG_T NAME(four) __attribute__((vector_size(4 * sizeof(TG_T))));
typedef TG_T NAME(four_loose)
    __attribute__((vector_size(4 * sizeof(TG_T)), aligned(sizeof(TG_T)), may_alias));
typedef TG_T NAME(eight) __attribute__((vector_size(8 * sizeof(TG_T))));
typedef TG_T NAME(eight_loose)
    __attribute__((vector_size(8 * sizeof(TG_T)), aligned(sizeof(TG_T)), may_alias));

static inline __attribute__((always_inline)) void
NAME(transpose_4x4)(TG_T *to, int64_t to_row, const TG_T *from, int64_t from_row)
{
    const NAME(four) r0 = *(const NAME(four_loose) *)from;
    const NAME(four) r1 = *(const NAME(four_loose) *)(from + from_row);
    const NAME(four) r2 = *(const NAME(four_loose) *)(from + 2 * from_row);
    const NAME(four) r3 = *(const NAME(four_loose) *)(from + 3 * from_row);
    const NAME(four) low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    const NAME(four) low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    const NAME(four) high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const NAME(four) high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(NAME(four_loose) *)to = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    *(NAME(four_loose) *)(to + to_row) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    *(NAME(four_loose) *)(to + 2 * to_row) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    *(NAME(four_loose) *)(to + 3 * to_row) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/* Two 4x4 squares, which lie below each other and then beside each other, so that registers of
 * eight are transposed in each half alone. */
static inline __attribute__((always_inline)) NAME(eight)
    NAME(load_halves)(const TG_T *from, const TG_T *beside)
{
    const NAME(four) low = *(const NAME(four_loose) *)from;
    const NAME(four) high = *(const NAME(four_loose) *)beside;
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

static inline __attribute__((always_inline)) void
NAME(transpose_8x4)(TG_T *to, int64_t to_row, const TG_T *from, int64_t from_row)
{
    const TG_T *beside = from + 4 * from_row;
    const NAME(eight) r0 = NAME(load_halves)(from, beside);
    const NAME(eight) r1 = NAME(load_halves)(from + from_row, beside + from_row);
    const NAME(eight) r2 = NAME(load_halves)(from + 2 * from_row, beside + 2 * from_row);
    const NAME(eight) r3 = NAME(load_halves)(from + 3 * from_row, beside + 3 * from_row);
    const NAME(eight) low01 = __builtin_shufflevector(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13);
    const NAME(eight) low23 = __builtin_shufflevector(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13);
    const NAME(eight) high01 = __builtin_shufflevector(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15);
    const NAME(eight) high23 = __builtin_shufflevector(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);
    *(NAME(eight_loose) *)to = __builtin_shufflevector(low01, low23, 0, 1, 8, 9, 4, 5, 12, 13);
    *(NAME(eight_loose) *)(to + to_row) =
        __builtin_shufflevector(low01, low23, 2, 3, 10, 11, 6, 7, 14, 15);
    *(NAME(eight_loose) *)(to + 2 * to_row) =
        __builtin_shufflevector(high01, high23, 0, 1, 8, 9, 4, 5, 12, 13);
    *(NAME(eight_loose) *)(to + 3 * to_row) =
        __builtin_shufflevector(high01, high23, 2, 3, 10, 11, 6, 7, 14, 15);
}

static void NAME(transpose)(TG_T *to, int64_t to_row, const TG_T *from, int64_t from_row,
                            int64_t outer, int64_t inner)
{
    enum { IN_A_LINE = 64 / (int)sizeof *from, AHEAD = FETCH_BYTES / (int)sizeof *from };
    for (int64_t few = 0; few < inner; few += STREAMS)
        for (int64_t line = 0; line < outer; line += IN_A_LINE) {
            const int64_t end = line + IN_A_LINE < outer ? line + IN_A_LINE : outer;
            const int64_t last = few + STREAMS < inner ? few + STREAMS : inner;
            const int is_next = line + AHEAD >= outer; /* rows are fetched, from their start */
            const int64_t at = is_next ? line + AHEAD - outer : line + AHEAD;
            const int64_t by = is_next ? STREAMS : 0;
            for (int64_t i = few + by; i < tg_min(last + by, inner) && at < outer; i++)
                __builtin_prefetch(from + at + i * from_row);
            for (int64_t i = few; inner >= STREAMS && i < last; i += STREAMS) {
                const int64_t at_i = tg_min(i, inner - STREAMS);
                for (int64_t o = line; o < end; o += 4) {
                    const int64_t at_o = o + 4 <= outer ? o : outer - 4;
                    NAME(transpose_8x4)
                    (to + at_o * to_row + at_i, to_row, from + at_o + at_i * from_row, from_row);
                }
            }
            for (int64_t i = few; inner < STREAMS && i < last; i += 4) {
                const int64_t at_i = i + 4 <= inner ? i : inner - 4;
                for (int64_t o = line; o < end; o += 4) {
                    const int64_t at_o = o + 4 <= outer ? o : outer - 4;
                    NAME(transpose_4x4)
                    (to + at_o * to_row + at_i, to_row, from + at_o + at_i * from_row, from_row);
                }
            }
        }
}

/* Copies rows of `runs` pieces of 64 bytes; small constants become straight vector moves. */
static inline __attribute__((always_inline)) void NAME(copy_runs)(TG_T *to, int64_t to_row,
                                                                  const TG_T *from,
                                                                  int64_t from_row, int64_t rows,
                                                                  int runs)
{
    for (int64_t row = 0; row < rows; row++) {
        const char *source = (const char *)(from + row * from_row);
        const char *ahead = (const char *)(from + (row + FETCH_ROWS) * from_row);
        EACH (run, runs) {
            __builtin_prefetch(ahead + 64 * run);
            memcpy((char *)(to + row * to_row) + 64 * run, source + 64 * run, 64);
        }
    }
}

/* Rows of any length, four elements at a time; the last four overlap those before them. */
static inline __attribute__((always_inline)) void NAME(copy_rows)(TG_T *to, int64_t to_row,
                                                                  const TG_T *from,
                                                                  int64_t from_row, int64_t rows,
                                                                  int64_t length)
{
    for (int64_t row = 0; row < rows; row++, to += to_row, from += from_row) {
        for (int64_t i = 0; i + 4 <= length; i += 4)
            *(NAME(four_loose) *)(to + i) = *(const NAME(four_loose) *)(from + i);
        if (length >= 4)
            *(NAME(four_loose) *)(to + length - 4) = *(const NAME(four_loose) *)(from + length - 4);
        else
            for (int64_t i = 0; i < length; i++)
                to[i] = from[i];
    }
}

static void NAME(copy)(void *to_void, int64_t to_outer, int64_t to_inner, const void *from_void,
                       int64_t from_outer, int64_t from_inner, int64_t outer, int64_t inner)
{
    TG_T *to = to_void;
    const TG_T *from = from_void;
    if (to_inner != 1 || (from_inner != 1 && (from_outer != 1 || outer < 4 || inner < 4)))
        for (int64_t o = 0; o < outer; o++)
            for (int64_t i = 0; i < inner; i++)
                to[o * to_outer + i * to_inner] = from[o * from_outer + i * from_inner];
    else if (from_inner != 1)
        NAME(transpose)(to, to_outer, from, from_inner, outer, inner);
    else if (inner * (int)sizeof *to == 64)
        NAME(copy_runs)(to, to_outer, from, from_outer, outer, 1);
    else if (inner * (int)sizeof *to == 128)
        NAME(copy_runs)(to, to_outer, from, from_outer, outer, 2);
    else if (inner * (int)sizeof *to == 192)
        NAME(copy_runs)(to, to_outer, from, from_outer, outer, 3);
    else
        NAME(copy_rows)(to, to_outer, from, from_outer, outer, inner);
}
