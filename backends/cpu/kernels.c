/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel for every row of the table: compiled once for each instruction set and type of
 * elements, as TG_ISA and TG_T name them, with that set's compiler flags. */
#include <string.h>

#include "cpu.h"
#include "isa.h"

#define TG_V 1
#define NAME(x) x##_1
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 2
#define NAME(x) x##_2
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 4
#define NAME(x) x##_4
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 8
#define NAME(x) x##_8
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V 16
#define NAME(x) x##_16
#include "microkernel.h"
#undef TG_V
#undef NAME
#define TG_V JOIN(IN_REGISTER_, TG_T)
#define NAME(x) JOIN(x##_, TG_T)
#define WIDE(x) JOIN(x##_, TG_V)
#include "pack.h"
#include "turned.h"

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
    outer_##vec(rows, vectors, is_masked, form == TG_OUTER_T, 0, step)
#define IF_VECTORS(count, rows, nv, vec, form)                              \
    if ((count) <= (nv) && step->columns <= (count) * (vec)) {              \
        if (!HAS_MASKS || step->columns == (count) * (vec))                 \
            OUTER(vec, rows, count, WHOLE, form);                           \
        else if (HAS_LOWER && 2 * step->columns <= (2 * (count)-1) * (vec)) \
            OUTER(vec, rows, count, MASKED_LOWER, form);                    \
        else                                                                \
            OUTER(vec, rows, count, MASKED, form);                          \
        return;                                                             \
    }
#define HAS_COMING(nr, vec, form) (FETCHES_COMING && (nr) >= 3 * (vec) && (form) == TG_OUTER)
#define STREAMS(vec, block_m, form) (RAGGED(vec, block_m) && (form) == TG_OUTER)
#define HAS_PACKED(count, mr) ((count) <= (mr) && 2 * (count) > (mr))
#define IF_ROWS(count, mr, nv, vec, form)   \
    case count:                             \
        if ((count) > (mr))                 \
            return;                         \
        IF_VECTORS(1, count, nv, vec, form) \
        IF_VECTORS(2, count, nv, vec, form) \
        IF_VECTORS(3, count, nv, vec, form) \
        IF_VECTORS(4, count, nv, vec, form) \
        return;
#define IF_WHOLE(count, mr, nv, vec, form, way)               \
    case count:                                               \
        if (HAS_PACKED(count, mr))                            \
            way##_##vec(count, nv, form == TG_OUTER_T, step); \
        return;
#define IF_STREAM(count, mr, nv, vec, b_type)      \
    case count:                                    \
        if ((count) <= (mr))                       \
            stream_##vec(count, nv, b_type, step); \
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
    KERNEL(name, BLOCK_M_ block, M_ thread, N_ thread, vec, form, inst)
#define STREAM(name, b_type, mr, nr, vec)                                                       \
    static __attribute__((noinline, unused)) void stream_##name##_##b_type(const tg_step *step) \
    {                                                                                           \
        switch (step->rows) {                                                                   \
            FOR_ROWS(IF_STREAM, mr, (nr) / (vec), vec, (tg_type)b_type)                         \
        }                                                                                       \
    }
#define STREAM_CASE(name, b_type)       \
    case b_type:                        \
        stream_##name##_##b_type(step); \
        return;
#define IF_COMES(count, mr, vec)                                                     \
    if (step->columns == (count) * (vec))                                            \
        outer_##vec(mr, count, WHOLE, 0, 1, step);                                   \
    else if (step->columns > ((count)-1) * (vec) && step->columns < (count) * (vec)) \
        outer_##vec(mr, count, MASKED_LOWER, 0, 1, step);
#define COMES(name, mr, vec)                                                         \
    static __attribute__((noinline, unused)) void coming_##name(const tg_step *step) \
    {                                                                                \
        IF_COMES(1, mr, vec)                                                         \
        IF_COMES(2, mr, vec)                                                         \
        IF_COMES(3, mr, vec)                                                         \
        IF_COMES(4, mr, vec)                                                         \
    }
#define PANELS(name, mr, nr, vec, form, way)                                        \
    static __attribute__((noinline, unused)) void way##_##name(const tg_step *step) \
    {                                                                               \
        switch (step->rows) {                                                       \
            FOR_ROWS(IF_WHOLE, mr, (nr) / (vec), vec, form, way)                    \
        }                                                                           \
    }
#define KERNEL(name, block_m, mr, nr, vec, form, inst)                   \
    STREAM(name, 0, mr, nr, vec)                                         \
    STREAM(name, TG_F16, mr, nr, vec)                                    \
    STREAM(name, TG_BF16, mr, nr, vec)                                   \
    STREAM(name, TG_I8, mr, nr, vec)                                     \
    STREAM(name, TG_U8, mr, nr, vec)                                     \
    COMES(name, mr, vec)                                                 \
    PANELS(name, mr, nr, vec, form, packed)                              \
    PANELS(name, mr, nr, vec, form, keeping)                             \
    static void name(const tg_step *step)                                \
    {                                                                    \
        if (MISSING(block_m, mr, nr, vec, inst))                         \
            return;                                                      \
        if (STREAMS(vec, block_m, form) && tg_is_stream(step, nr)) {     \
            switch (CONVERTS ? (int)step->b_type : 0) {                  \
                STREAM_CASE(name, TG_F16)                                \
                STREAM_CASE(name, TG_BF16)                               \
                STREAM_CASE(name, TG_I8)                                 \
                STREAM_CASE(name, TG_U8)                                 \
                STREAM_CASE(name, 0)                                     \
            }                                                            \
        } else if (RAGGED(vec, block_m)) {                               \
            if (VEC_BYTES >= 32 && step->kept) {                         \
                keeping_##name(step);                                    \
                return;                                                  \
            }                                                            \
            if (is_packed(step, mr, nr, form)) {                         \
                packed_##name(step);                                     \
                return;                                                  \
            }                                                            \
            if (HAS_COMING(nr, vec, form) && is_coming(step, mr, vec)) { \
                coming_##name(step);                                     \
                return;                                                  \
            }                                                            \
            switch (step->rows) {                                        \
                FOR_ROWS(IF_ROWS, mr, (nr) / (vec), vec, form)           \
            }                                                            \
        } else if (form == TG_DOT)                                       \
            dot_##vec(mr, (nr) / (vec), step);                           \
        else                                                             \
            OUTER(vec, mr, (nr) / (vec), 0, form);                       \
    }
#include "tiles.def"

/* The most multiply-adds that registers alone allow: 12 chains hide any latency of today. */
static double spin(int64_t rounds, double *sink)
{
    enum { CHAINS = 12 };
    typedef TG_T wide __attribute__((vector_size(VEC_BYTES)));
    wide chain[CHAINS], factor = (wide){0} + (TG_T)(1 + *sink);
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
                                                           TG_V};
