/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that depends on the instruction set: compiled once for each, as TG_ISA names it, with
 * that set's compiler flags. It instantiates the micro-kernel for every row of the table. */
#include <string.h>

#include "cpu.h"
#include "isa.h"

/* Loops over the thread tile must unroll fully, or the accumulators end up in memory. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
/* A step of AVX-512 has 24 multiply-adds or more to hide a fetch behind. One of 12 has not: its
 * loop is best short, but for panels that come from beyond L2. Packed ones are fetched so many
 * steps ahead with either, except one of B that was packed on its way. */
enum { FETCHES_COMING = VEC_BYTES == 64, FETCH_PACKED_STEPS = VEC_BYTES == 64 ? 32 : 64 };
/* A core follows a dozen lines at once, more or less, and those of a panel are among them: what
 * else it fetches comes one by one, and the rows of C in two pieces of k, so many before the end.
 */
enum { COMES_WHOLE = FETCHES_COMING ? TG_COMING_STEPS : 0, C_PIECES = 2, C_AHEAD = 2 };
#if defined(__AVX512F__)
#define UNROLL_STEPS _Pragma("GCC unroll 4")
#else
#define UNROLL_STEPS _Pragma("GCC unroll 2")
#endif
/* Memory moves by the LINE; lines so many bytes apart have but one set of L1 between them. */
enum { LINE = 64, CROWDING = 4096, FETCH_STEPS = TG_FETCH_STEPS };
enum { MOST_ACCUMULATORS = 40, MOST_VECTORS = 8 };
/* The last vector of a row. Some cores with registers of 64 bytes have units of 32, and multiply
 * the lower halves alone in half the time. */
enum { WHOLE, MASKED, MASKED_LOWER, HAS_LOWER = VEC_BYTES == 64 };
#if !defined(ADD_LOWER_F32)
#define ADD_LOWER_F32(sum, a, is_spread, b) ((void)(a), (void)(is_spread), (void)(b), (sum))
#define ADD_LOWER_F64 ADD_LOWER_F32
#define LOAD_LOWER_F32 LOAD_F32
#define LOAD_LOWER_F64 LOAD_F64
#endif
#define LINES(bytes) ((int)((bytes) + LINE - 1) / LINE)

#define IN_LANE (16 / (int)sizeof(TG_T)) /* elements of a lane, which is loaded by itself */
#define CONVERTS(ctype) (HAS_HALVES && sizeof(ctype) == sizeof(float))
#define EACH(i, count) UNROLL for (int i = 0; i < (count); i++)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)

#define TG_T float
#define TG_V 1
#define NAME(x) x##_float_1
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 2
#define NAME(x) x##_float_2
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 4
#define NAME(x) x##_float_4
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 8
#define NAME(x) x##_float_8
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 16
#define NAME(x) x##_float_16
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V FLOATS
#define NAME(x) x##_float
#define WIDE(x) JOIN(x##_float_, TG_V)
#include "pack.h"
#include "turned.h"
#undef WIDE
#undef NAME
#undef TG_V
#undef TG_T

#define TG_T double
#define TG_V 1
#define NAME(x) x##_double_1
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 2
#define NAME(x) x##_double_2
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 4
#define NAME(x) x##_double_4
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 8
#define NAME(x) x##_double_8
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 16
#define NAME(x) x##_double_16
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V DOUBLES
#define NAME(x) x##_double
#define WIDE(x) JOIN(x##_double_, TG_V)
#include "pack.h"
#include "turned.h"
#undef WIDE
#undef NAME
#undef TG_V
#undef TG_T

#include "convert.h"
#if defined(__AVX512BW__)
#include "words.h"
#include "words_pack.h"
#include "words_stream.h"
#if defined(TG_HAS_BF16)
#include "words_bf16.h"
#endif
#if defined(TG_HAS_AMX)
#include "amx.h"
#endif

#define BY_WORDS(a, b, types, packed_a)                                                       \
    {                                                                                         \
        a, b, {1, 1, WORD_BYTES}, types, stream_##types, NULL, {packed_a, words_of_bytes}, 0, \
            spin_words, NULL, NULL                                                            \
    }
#define BY_TILES(a, b, bytes, types, element)                                                   \
    {                                                                                           \
        a, b, {TILE, TILE, TILE_BYTES / (bytes)}, types, stream_##types, lines_of_##types,      \
            {rows_of_##element, columns_of_##element}, (bytes) == 2, spin_##types, start_tiles, \
            stop_tiles                                                                          \
    }
static const tg_words words_table[] = {
    BY_WORDS(TG_I8, TG_I8, i8_by_i8, words_of_flipped),
    BY_WORDS(TG_U8, TG_I8, u8_by_i8, words_of_bytes),
    BY_WORDS(TG_I8, TG_U8, i8_by_u8, words_of_bytes),
    BY_WORDS(TG_U8, TG_U8, u8_by_u8, words_of_flipped),
#if defined(TG_HAS_BF16)
    {TG_BF16,
     TG_BF16,
     {1, 1, 2},
     pairs_of_bf16,
     stream_pairs_of_bf16,
     lines_of_pairs_of_bf16,
     {lines_of_halves, words_of_halves},
     1,
     spin_pairs_of_bf16,
     NULL,
     NULL},
#endif
#if defined(TG_HAS_AMX)
    BY_TILES(TG_I8, TG_I8, 1, tiles_of_i8_i8, bytes),
    BY_TILES(TG_I8, TG_U8, 1, tiles_of_i8_u8, bytes),
    BY_TILES(TG_U8, TG_I8, 1, tiles_of_u8_i8, bytes),
    BY_TILES(TG_U8, TG_U8, 1, tiles_of_u8_u8, bytes),
    BY_TILES(TG_BF16, TG_BF16, 2, tiles_of_bf16, halves),
#endif
    {0},
};
#else
static const tg_words words_table[] = {{0}};
#endif

/* Is each k of the panels next to the one before? (A tile that is less than half full is not worth
 * a body.) */
static int is_packed(const tg_step *s, int mr, int nr, tg_form form)
{
    return s->b_row == nr && s->columns == nr && 2 * s->rows > mr &&
           (form == TG_OUTER || s->a_col == s->rows);
}

/* Is there something to fetch, in steps that are long enough? */
static int is_coming(const tg_step *s, int mr, int vec)
{
    return s->coming && s->rows == mr && 2 * (s->columns % vec) <= vec;
}

/* One function for each type and row. Rows whose vec is wider than a register, or whose
 * accumulators are more than there are, are left empty.
 * The CPU's own rows (no block of their own) that fill the register have a body for every smaller
 * number of rows and vectors too, so that ragged edges cost what they are worth; those of fewer
 * columns are masked, if the instruction set can. Whole panels, packed or on
 * their way there, have bodies of their own, with cases below zero; and streams have functions, one
 * for each type of B, as compilers share out registers better in those. */
#undef TG_INST
#define TG_INST(m, n, k) k
#define M_(m, n) m
#define N_(m, n) n
#define BLOCK_M_(m, n, k) m
#define MISSING(ctype, block_m, mr, nr, vec, inst_k)                         \
    ((vec) * sizeof(ctype) > VEC_BYTES || (mr) * (nr) / (vec) > REGISTERS || \
     ((block_m) == 0 && (inst_k) > 1))
#define RAGGED(ctype, vec, block_m) ((block_m) == 0 && (vec) * sizeof(ctype) == VEC_BYTES)
#define GRAIN(ctype, vec, block_m) (RAGGED(ctype, vec, block_m) ? HAS_MASKS ? 1 : (vec) : 0)
#define OUTER(ctype, vec, rows, vectors, is_masked, form) \
    outer_##ctype##_##vec(rows, vectors, is_masked, form == TG_OUTER_T, 0, step)
#define IF_VECTORS(count, ctype, rows, nv, vec, form)                       \
    if ((count) <= (nv) && step->columns <= (count) * (vec)) {              \
        if (!HAS_MASKS || step->columns == (count) * (vec))                 \
            OUTER(ctype, vec, rows, count, WHOLE, form);                    \
        else if (HAS_LOWER && 2 * step->columns <= (2 * (count)-1) * (vec)) \
            OUTER(ctype, vec, rows, count, MASKED_LOWER, form);             \
        else                                                                \
            OUTER(ctype, vec, rows, count, MASKED, form);                   \
        return;                                                             \
    }
#define HAS_COMING(nr, vec, form) (FETCHES_COMING && (nr) >= 3 * (vec) && (form) == TG_OUTER)
#define STREAMS(ctype, vec, block_m, form) (RAGGED(ctype, vec, block_m) && (form) == TG_OUTER)
#define HAS_PACKED(count, mr) ((count) <= (mr) && 2 * (count) > (mr))
#define IF_ROWS(count, ctype, mr, nv, vec, form)   \
    case count:                                    \
        if ((count) > (mr))                        \
            return;                                \
        IF_VECTORS(1, ctype, count, nv, vec, form) \
        IF_VECTORS(2, ctype, count, nv, vec, form) \
        IF_VECTORS(3, ctype, count, nv, vec, form) \
        IF_VECTORS(4, ctype, count, nv, vec, form) \
        return;
#define IF_WHOLE(count, ctype, mr, nv, vec, form, way)                  \
    case count:                                                         \
        if (HAS_PACKED(count, mr))                                      \
            way##_##ctype##_##vec(count, nv, form == TG_OUTER_T, step); \
        return;
#define IF_STREAM(count, ctype, mr, nv, vec, b_type)         \
    case count:                                              \
        if ((count) <= (mr))                                 \
            stream_##ctype##_##vec(count, nv, b_type, step); \
        return;
#define FOR_ROWS(CASE, ...) \
    CASE(1, __VA_ARGS__)    \
    CASE(2, __VA_ARGS__)    \
    CASE(3, __VA_ARGS__)    \
    CASE(4, __VA_ARGS__)    \
    CASE(5, __VA_ARGS__)    \
    CASE(6, __VA_ARGS__)    \
    CASE(7, __VA_ARGS__)    \
    CASE(8, __VA_ARGS__)    \
    CASE(9, __VA_ARGS__)    \
    CASE(10, __VA_ARGS__)   \
    CASE(11, __VA_ARGS__)   \
    CASE(12, __VA_ARGS__)   \
    CASE(13, __VA_ARGS__)   \
    CASE(14, __VA_ARGS__)
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    KERNEL(float, name, BLOCK_M_ block, M_ thread, N_ thread, vec, form, inst)    \
    KERNEL(double, name, BLOCK_M_ block, M_ thread, N_ thread, vec, form, inst)
#define STREAM(ctype, name, b_type, mr, nr, vec)                                      \
    static __attribute__((noinline, unused)) void stream_##name##_##ctype##_##b_type( \
        const tg_step *step)                                                          \
    {                                                                                 \
        switch (step->rows) {                                                         \
            FOR_ROWS(IF_STREAM, ctype, mr, (nr) / (vec), vec, (tg_type)b_type)        \
        }                                                                             \
    }
#define IF_COMES(count, ctype, mr, vec)                                              \
    if (step->columns == (count) * (vec))                                            \
        outer_##ctype##_##vec(mr, count, WHOLE, 0, 1, step);                         \
    else if (step->columns > ((count)-1) * (vec) && step->columns < (count) * (vec)) \
        outer_##ctype##_##vec(mr, count, MASKED_LOWER, 0, 1, step);
#define COMES(ctype, name, mr, vec)                                                            \
    static __attribute__((noinline, unused)) void coming_##name##_##ctype(const tg_step *step) \
    {                                                                                          \
        IF_COMES(1, ctype, mr, vec)                                                            \
        IF_COMES(2, ctype, mr, vec)                                                            \
        IF_COMES(3, ctype, mr, vec)                                                            \
        IF_COMES(4, ctype, mr, vec)                                                            \
    }
#define PANELS(ctype, name, mr, nr, vec, form, way)                                           \
    static __attribute__((noinline, unused)) void way##_##name##_##ctype(const tg_step *step) \
    {                                                                                         \
        switch (step->rows) {                                                                 \
            FOR_ROWS(IF_WHOLE, ctype, mr, (nr) / (vec), vec, form, way)                       \
        }                                                                                     \
    }
#define KERNEL(ctype, name, block_m, mr, nr, vec, form, inst)               \
    STREAM(ctype, name, 0, mr, nr, vec)                                     \
    STREAM(ctype, name, TG_F16, mr, nr, vec)                                \
    STREAM(ctype, name, TG_BF16, mr, nr, vec)                               \
    COMES(ctype, name, mr, vec)                                             \
    PANELS(ctype, name, mr, nr, vec, form, packed)                          \
    PANELS(ctype, name, mr, nr, vec, form, keeping)                         \
    static void name##_##ctype(const tg_step *step)                         \
    {                                                                       \
        if (MISSING(ctype, block_m, mr, nr, vec, inst))                     \
            return;                                                         \
        if (STREAMS(ctype, vec, block_m, form) && tg_is_stream(step, nr)) { \
            if (CONVERTS(ctype) && step->b_type == TG_F16)                  \
                stream_##name##_##ctype##_TG_F16(step);                     \
            else if (CONVERTS(ctype) && step->b_type)                       \
                stream_##name##_##ctype##_TG_BF16(step);                    \
            else                                                            \
                stream_##name##_##ctype##_0(step);                          \
        } else if (RAGGED(ctype, vec, block_m)) {                           \
            if (VEC_BYTES >= 32 && step->kept) {                            \
                keeping_##name##_##ctype(step);                             \
                return;                                                     \
            }                                                               \
            if (is_packed(step, mr, nr, form)) {                            \
                packed_##name##_##ctype(step);                              \
                return;                                                     \
            }                                                               \
            if (HAS_COMING(nr, vec, form) && is_coming(step, mr, vec)) {    \
                coming_##name##_##ctype(step);                              \
                return;                                                     \
            }                                                               \
            switch (step->rows) {                                           \
                FOR_ROWS(IF_ROWS, ctype, mr, (nr) / (vec), vec, form)       \
            }                                                               \
        } else if (form == TG_DOT)                                          \
            dot_##ctype##_##vec(mr, (nr) / (vec), step);                    \
        else                                                                \
            OUTER(ctype, vec, mr, (nr) / (vec), 0, form);                   \
    }
#include "tiles.def"

/* The most multiply-adds that registers alone allow: 12 chains hide any latency of today. */
#define SPIN(ctype)                                                  \
    static double spin_##ctype(int64_t rounds, double *sink)         \
    {                                                                \
        enum { CHAINS = 12, LANES = VEC_BYTES / sizeof(ctype) };     \
        typedef ctype wide __attribute__((vector_size(VEC_BYTES)));  \
        wide chain[CHAINS], factor = (wide){0} + (ctype)(1 + *sink); \
        EACH (i, CHAINS)                                             \
            chain[i] = factor * (ctype)i;                            \
        for (int64_t round = 0; round < rounds; round++)             \
            EACH (i, CHAINS)                                         \
                chain[i] = chain[i] * factor + factor;               \
        EACH (i, CHAINS)                                             \
            *sink += (double)chain[i][0] * 1e-300;                   \
        return 2.0 * CHAINS * LANES * (double)rounds;                \
    }
SPIN(float)
SPIN(double)

_Static_assert(TG_F32 == 1 && (int)TG_I32 == TG_TYPES, "the tables below are indexed by type - 1");

const tg_isa JOIN(tg_isa_, TG_ISA) = {
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    TEXT(TG_ISA),
    VEC_BYTES,
    REGISTERS,
    {{
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note)           \
    {MISSING(float, BLOCK_M_ block, M_ thread, N_ thread, vec, inst) ? NULL : name##_float, \
     GRAIN(float, vec, BLOCK_M_ block), N_ thread},
#include "tiles.def"
     },
     {
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note)             \
    {MISSING(double, BLOCK_M_ block, M_ thread, N_ thread, vec, inst) ? NULL : name##_double, \
     GRAIN(double, vec, BLOCK_M_ block), N_ thread},
#include "tiles.def"
     }},
    {copy_float, copy_double, widen_f16, widen_bf16, widen_i8, widen_u8, copy_float},
    {copy_float, copy_double, narrow_f16, narrow_bf16, NULL, NULL, copy_float},
    add_i32,
    {spin_float, spin_double},
    {turned_float, turned_double},
    {FLOATS, DOUBLES},
    HAS_HALVES,
    words_table};
