/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel for every row of the table: compiled once for each instruction set and type of
 * elements, as TG_ISA and TG_T name them, with that set's compiler flags. */
#include <string.h>

#include "cpu.h"
#include "isa.h"

#define NAME(x) JOIN(x##_, TG_V)
#define TG_V 1
#include "microkernel.h"
#undef TG_V
#define TG_V 2
#include "microkernel.h"
#undef TG_V
#define TG_V 4
#include "microkernel.h"
#undef TG_V
#define TG_V 8
#include "microkernel.h"
#undef TG_V
#define TG_V 16
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V JOIN(IN_REGISTER_, TG_T)
#define NAME(x) JOIN(x##_, TG_T)
#define WIDE(x) JOIN(x##_, TG_V)
#include "pack.h"
#include "turned.h"
#if defined(__AVX512F__)
#include "narrow.h"
#define NARROW_OF_THIS NAME(narrow)
#else
#define NARROW_OF_THIS NULL
#endif

/* A tile that is less than half full is not worth a body of whole panels. */
#define IS_FULL_ENOUGH(rows, mr) (2 * (rows) > (mr))

/* Is each k of the panels next to the one before? */
static int is_packed(const tg_step *s, int mr, int nr, tg_form form)
{
    return s->b_row == nr && s->columns == nr && IS_FULL_ENOUGH(s->rows, mr) &&
           (form == TG_OUTER || s->a_col == s->rows);
}

/* Is there something to fetch, in steps that are long enough? */
static int is_coming(const tg_step *s, int mr, int vec)
{
    return s->coming && s->rows == mr && 2 * (s->columns % vec) <= vec;
}

/* One function for each row. Rows whose vec is wider than a register, or whose accumulators are
 * more than there are, are left empty. The CPU's own rows (no block of their own) that fill the
 * register have a body for every smaller number of rows and vectors too, so that ragged edges cost
 * what they are worth; those of fewer columns are masked, if the instruction set can. Whole panels,
 * packed or on their way there, have bodies of their own; and streams have functions, one for each
 * type of B, as compilers share out registers better in those. */
#undef TG_INST
#define TG_INST(m, n, k) k
#define M_(m, n) m
#define N_(m, n) n
#define BLOCK_M_(m, n, k) m
#define MISSING(block_m, mr, nr, vec, inst_k)                               \
    ((vec) * sizeof(TG_T) > VEC_BYTES || (mr) * (nr) / (vec) > REGISTERS || \
     ((block_m) == 0 && (inst_k) > 1))
#define RAGGED(vec, block_m) ((block_m) == 0 && (vec) * sizeof(TG_T) == VEC_BYTES)
#define GRAIN(vec, block_m) (RAGGED(vec, block_m) ? HAS_MASKS ? 1 : (vec) : 0)
#define OUTER(vec, rows, vectors, is_masked, form) \
    outer_##vec(rows, vectors, is_masked, form == TG_OUTER_T, 0, s)
#define IF_VECTORS(count, rows, nv, vec, form)                           \
    if ((count) <= (nv) && s->columns <= (count) * (vec)) {              \
        if (!HAS_MASKS || s->columns == (count) * (vec))                 \
            OUTER(vec, rows, count, WHOLE, form);                        \
        else if (HAS_LOWER && 2 * s->columns <= (2 * (count)-1) * (vec)) \
            OUTER(vec, rows, count, MASKED_LOWER, form);                 \
        else                                                             \
            OUTER(vec, rows, count, MASKED, form);                       \
        return;                                                          \
    }
#define IF_COMES(count, mr, vec)                                               \
    if (s->columns == (count) * (vec))                                         \
        outer_##vec(mr, count, WHOLE, 0, 1, s);                                \
    else if (s->columns > ((count)-1) * (vec) && s->columns < (count) * (vec)) \
        outer_##vec(mr, count, MASKED_LOWER, 0, 1, s);
#define FOR_VECTORS(IF, ...) \
    IF(1, __VA_ARGS__)       \
    IF(2, __VA_ARGS__)       \
    IF(3, __VA_ARGS__)       \
    IF(4, __VA_ARGS__)
#define RAGGED_ROWS(...) FOR_VECTORS(IF_VECTORS, __VA_ARGS__)
#define HAS_COMING(nr, vec, form) (FETCHES_COMING && (nr) >= 3 * (vec) && (form) == TG_OUTER)
#define STREAMS(vec, block_m, form) (RAGGED(vec, block_m) && (form) == TG_OUTER)
#define STREAM(name, b_type, mr, nr, vec) \
    ROWS_FUNCTION(stream_##name##_##b_type, mr, stream_##vec, (nr) / (vec), (tg_type)b_type, s)
#define STREAM_CASE(name, b_type)    \
    case b_type:                     \
        stream_##name##_##b_type(s); \
        return;
#define IF_FULL_ENOUGH(rows, mr, way, ...) \
    if (IS_FULL_ENOUGH(rows, mr)) {        \
        way(rows, __VA_ARGS__);            \
    }
#define PANELS(name, mr, nr, vec, form, way)                                       \
    ROWS_FUNCTION(way##_##name, mr, IF_FULL_ENOUGH, mr, way##_##vec, (nr) / (vec), \
                  form == TG_OUTER_T, s)
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    KERNEL(name, BLOCK_M_ block, M_ thread, N_ thread, vec, form, inst)
#define KERNEL(name, block_m, mr, nr, vec, form, inst)                            \
    STREAM(name, 0, mr, nr, vec)                                                  \
    STREAM(name, TG_F16, mr, nr, vec)                                             \
    STREAM(name, TG_BF16, mr, nr, vec)                                            \
    STREAM(name, TG_I8, mr, nr, vec)                                              \
    STREAM(name, TG_U8, mr, nr, vec)                                              \
    PANELS(name, mr, nr, vec, form, packed)                                       \
    PANELS(name, mr, nr, vec, form, keeping)                                      \
    static __attribute__((noinline, unused)) void coming_##name(const tg_step *s) \
    {                                                                             \
        FOR_VECTORS(IF_COMES, mr, vec)                                            \
    }                                                                             \
    static void name(const tg_step *s)                                            \
    {                                                                             \
        if (MISSING(block_m, mr, nr, vec, inst))                                  \
            return;                                                               \
        if (STREAMS(vec, block_m, form) && tg_is_stream(s, nr)) {                 \
            switch (CONVERTS ? (int)s->b_type : 0) {                              \
                STREAM_CASE(name, TG_F16)                                         \
                STREAM_CASE(name, TG_BF16)                                        \
                STREAM_CASE(name, TG_I8)                                          \
                STREAM_CASE(name, TG_U8)                                          \
                STREAM_CASE(name, 0)                                              \
            }                                                                     \
        } else if (RAGGED(vec, block_m)) {                                        \
            if (VEC_BYTES >= 32 && s->kept) {                                     \
                keeping_##name(s);                                                \
                return;                                                           \
            }                                                                     \
            if (is_packed(s, mr, nr, form)) {                                     \
                packed_##name(s);                                                 \
                return;                                                           \
            }                                                                     \
            if (HAS_COMING(nr, vec, form) && is_coming(s, mr, vec)) {             \
                coming_##name(s);                                                 \
                return;                                                           \
            }                                                                     \
            FOR_ROWS(s->rows, mr, RAGGED_ROWS, (nr) / (vec), vec, form)           \
        } else if (form == TG_DOT) {                                              \
            dot_##vec(mr, (nr) / (vec), s);                                       \
        } else {                                                                  \
            OUTER(vec, mr, (nr) / (vec), WHOLE, form);                            \
        }                                                                         \
    }
#include "tiles.def"

/* The most multiply-adds that registers alone allow: 12 chains hide any latency of today. */
static double spin(int64_t rounds, double *sink)
{
    enum { CHAINS = 12 };
    WIDE(vector) chain[CHAINS], factor = (WIDE(vector)){0} + (TG_T)(1 + *sink);
    EACH (i, CHAINS)
        chain[i] = factor * (TG_T)i;
    for (int64_t round = 0; round < rounds; round++)
        EACH (i, CHAINS)
            chain[i] = chain[i] * factor + factor;
    EACH (i, CHAINS)
        *sink += (double)chain[i][0] * 1e-300;
    return 2.0 * CHAINS * TG_V * (double)rounds;
}

const tg_kernels JOIN(JOIN(tg_, TG_ISA), JOIN(_, TG_T)) = {{
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    {MISSING(BLOCK_M_ block, M_ thread, N_ thread, vec, inst) ? NULL : name,      \
     GRAIN(vec, BLOCK_M_ block), N_ thread},
#include "tiles.def"
                                                           },
                                                           spin,
                                                           NAME(turned),
                                                           TG_V,
                                                           NARROW_OF_THIS};
