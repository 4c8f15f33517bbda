/* SPDX-License-Identifier: Apache-2.0
 *
 * The register micro-kernel: a C "template", included once for each element type and vector width.
 * It is given constants mr and nv (rows, and vectors in a row) by an always-inlined call, so that
 * every loop over them unrolls and the accumulators live in registers:
 *
 *              b[p]:   | v | v |       acc[i][j] += a[i][p] * b[p][j]      mr x nv accumulators
 *      a[.][p]: s      | v | v |
 *               s      | v | v |       The last vector of a row may be masked.
 *
 * Needs: TG_T the element type, TG_V the elements of a vector, NAME(x) to mark x with both. */

#include "vector.h"
#define VECTOR NAME(vector)
#define LOOSE NAME(loose)
#define REGISTER JOIN(register_, TG_T)

/* Of the last vector in a row. */
static inline __attribute__((always_inline)) register_mask NAME(mask)(int nv, int is_masked,
                                                                      const tg_step *s)
{
    return NAME(first)(is_masked ? s->columns - (nv - 1) * TG_V : 0);
}

/* c := alpha * acc + beta * c. */
static inline __attribute__((always_inline)) void NAME(update)(VECTOR *acc, int mr, int nv,
                                                               int is_masked, register_mask mask,
                                                               TG_T *c, const tg_step *s)
{
    const TG_T alpha = (TG_T)s->alpha, beta = (TG_T)s->beta;
    const int64_t c_row = s->c_row;
    if (alpha != 1)
        EACH (i, mr * nv)
            acc[i] *= alpha;
    if (beta == 0)
        EACH (i, mr) {
            EACH (j, nv)
                NAME(store)(c + j * TG_V, acc[i * nv + j], is_masked && j == nv - 1, mask);
            c += c_row;
        }
    else
        EACH (i, mr) {
            EACH (j, nv) {
                const int is_part = is_masked && j == nv - 1;
                const VECTOR was = NAME(load)(c + j * TG_V, is_part, mask);
                NAME(store)(c + j * TG_V, acc[i * nv + j] + beta * was, is_part, mask);
            }
            c += c_row;
        }
}

/* sum += a * b in the lower half of a register. */
static inline __attribute__((always_inline)) VECTOR NAME(add_lower)(VECTOR sum, TG_T a,
                                                                    int is_spread, VECTOR b)
{
    REGISTER all = {0}, factor = {0};
    memcpy(&all, &sum, sizeof all < sizeof sum ? sizeof all : sizeof sum);
    memcpy(&factor, &b, sizeof factor < sizeof b ? sizeof factor : sizeof b);
    all = JOIN(ADD_LOWER_, TG_T)(all, a, is_spread, factor);
    memcpy(&sum, &all, sizeof all < sizeof sum ? sizeof all : sizeof sum);
    return sum;
}

/* acc += a * b at one k. */
static inline __attribute__((always_inline)) void
NAME(add)(VECTOR *acc, int mr, int nv, int is_lower, const TG_T *a, int64_t a_row, const VECTOR *b)
{
    EACH (i, mr)
        EACH (j, nv)
            if (is_lower && j == nv - 1)
                acc[i * nv + j] = NAME(add_lower)(acc[i * nv + j], a[i * a_row], nv > 2, b[j]);
            else
                acc[i * nv + j] += a[i * a_row] * b[j];
}

/* The same of a b in memory, which is copied to kept, if that is not NULL. */
static inline __attribute__((always_inline)) void NAME(multiply)(VECTOR *acc, int mr, int nv,
                                                                 int is_masked, register_mask mask,
                                                                 const TG_T *a, int64_t a_row,
                                                                 const TG_T *b, TG_T *kept)
{
    VECTOR b_now[MOST_VECTORS];
    EACH (j, nv)
        b_now[j] = NAME(load)(b + j * TG_V, j == nv - 1 ? is_masked : WHOLE, mask);
    if (kept)
        EACH (j, nv)
            *(LOOSE *)(kept + j * TG_V) = b_now[j];
    NAME(add)(acc, mr, nv, is_masked == MASKED_LOWER, a, a_row, b_now);
}

/* Every line in which these elements end: the line that they begin within came with the panel
 * before. */
static inline __attribute__((always_inline)) void NAME(fetch)(const TG_T *at, int count)
{
    const int bytes = count * (int)sizeof(TG_T);
    EACH (line, LINES(bytes))
        __builtin_prefetch((const char *)at + tg_min((line + 1) * LINE, bytes) - 1);
}

/* A tile of C, whose rows may begin anywhere in a line. */
static inline __attribute__((always_inline)) void NAME(fetch_c)(const TG_T *c, int64_t c_row,
                                                                int rows, int columns)
{
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, c += c_row) {
        EACH (line, LINES(columns * sizeof(TG_T)))
            __builtin_prefetch((const char *)c + line * LINE, 1);
        __builtin_prefetch((const char *)(c + columns) - 1, 1);
    }
}

/* The same at the next k. An A that lies across it is fetched ahead like B. */
static inline __attribute__((always_inline)) void
NAME(step)(VECTOR *acc, int mr, int nv, int is_masked, register_mask mask, int is_k_major,
           int fetches, int64_t ahead, int64_t a_row, int64_t a_col, int64_t b_row, int keeps,
           const TG_T **a, const TG_T **b, TG_T **kept)
{
    NAME(multiply)(acc, mr, nv, is_masked, mask, *a, a_row, *b, keeps ? *kept : NULL);
    if (keeps)
        *kept += nv * TG_V;
    if (fetches)
        NAME(fetch)(*b + ahead, nv * TG_V);
    if (fetches && is_k_major)
        NAME(fetch)(*a + FETCH_STEPS * a_col, mr);
    *a += a_col;
    *b += b_row;
}

/* Loops of two leave room among decoded instructions for another program on the core, but with
 * vectors of 64 bytes they are up to a twentieth slower than those of four, if B is near. */
#define EACH_STEP                                                                                 \
    for (int64_t p = 0; p < k; p++) {                                                             \
        NAME(step)                                                                                \
        (acc, mr, nv, is_masked, mask, is_k_major, fetches, ahead, a_row, a_col, b_row, keeps, a, \
         b, kept);                                                                                \
        if (comes) {                                                                              \
            __builtin_prefetch(*coming, 0, 2);                                                    \
            *coming += coming_row;                                                                \
        }                                                                                         \
    }

/* The same over k, while a line of what comes is fetched for each `comes` of it. */
static inline __attribute__((always_inline)) void
NAME(steps)(VECTOR *acc, int mr, int nv, int is_masked, register_mask mask, int is_k_major,
            int fetches, int64_t ahead, int64_t k, int64_t a_row, int64_t a_col, int64_t b_row,
            int keeps, int comes, int64_t coming_row, const TG_T **a, const TG_T **b, TG_T **kept,
            const char **coming)
{
    if (comes < 2 && fetches) {
#pragma GCC unroll 2
        EACH_STEP
        return;
    }
    if (comes < 2) {
        UNROLL_STEPS
        EACH_STEP
        return;
    }
    for (int64_t p = 0; p < k / comes; p++) {
        EACH (x, comes)
            NAME(step)
        (acc, mr, nv, is_masked, mask, is_k_major, fetches, ahead, a_row, a_col, b_row, keeps, a, b,
         kept);
        __builtin_prefetch(*coming, 0, 2);
        *coming += coming_row;
    }
    if (k % comes)
        NAME(step)
    (acc, mr, nv, is_masked, mask, is_k_major, fetches, ahead, a_row, a_col, b_row, keeps, a, b,
     kept);
}

#define STEPS(fetches, comes)                                                                     \
    NAME(steps)                                                                                   \
    (acc, mr, nv, WHOLE, mask, is_k_major, fetches, ahead, part, a_row, a_col, b_row, !is_packed, \
     comes, coming_row, &a, &b, &kept, &coming)

/* A tile of panels. C is fetched in the last pieces of k, some of its rows in each: B's panel would
 * push it out of L1 again. */
static inline __attribute__((always_inline)) void
NAME(pieces)(VECTOR *acc, int mr, int nv, int is_k_major, int is_packed, int comes, int64_t ahead,
             int64_t a_row, int64_t a_col, int64_t b_row, const TG_T *a, const TG_T *b, TG_T *kept,
             const char *coming, const TG_T *c, const tg_step *s)
{
    const int64_t coming_row = s->coming ? s->coming_row : 0;
    const int64_t coming_jump = s->coming ? s->coming_jump : 0;
    const int64_t pieces = tg_max(1, tg_ceil_div(s->k, TG_PIECE));
    const int64_t rows = tg_ceil_div(mr, tg_min(pieces, C_PIECES));
    const int64_t with_c = tg_min(pieces, C_PIECES + C_AHEAD) * TG_PIECE;
    const register_mask mask = NAME(mask)(nv, WHOLE, s);
    int64_t c_left = mr;
    for (int64_t left = s->k, part; left > 0; left -= part) {
        const int64_t early = left - with_c;
        const int64_t most = early > 0 ? early : is_packed && c_left <= rows ? left : TG_PIECE;
        part = tg_min(left, comes && s->coming ? TG_PIECE : most);
        if (early <= 0 && c_left > 0) {
            NAME(fetch_c)(c, s->c_row, (int)tg_min(rows, c_left), nv * TG_V);
            c += rows * s->c_row;
            c_left -= rows;
        }
        if (!is_packed && left > TG_PIECE)
            STEPS(1, comes);
        else if (comes && s->coming)
            STEPS(0, comes);
        else if (VEC_BYTES >= 32 && is_packed && !s->is_near)
            STEPS(1, 0);
        else
            STEPS(0, 0);
        coming += coming_jump;
    }
}

/* Some tiles, one after the other. Pointers move from row to row: to know where each row is takes
 * more registers than there are. */
static inline __attribute__((always_inline)) void
NAME(tiles)(int mr, int nv, int is_masked, int is_k_major, int is_packed, int keeps, int comes,
            int64_t a_row, int64_t a_col, int64_t b_row, const tg_step *s)
{
    const int64_t coming_row = s->coming ? s->coming_row : 0;
    const int64_t coming_jump = s->coming ? s->coming_jump : 0;
    const int64_t coming_steps = s->coming ? s->coming_steps : s->k;
    const char *tile_coming = s->coming ? s->coming : s->b; /* or what is there */
    const int64_t ahead = is_packed ? FETCH_PACKED_STEPS * b_row : s->ahead;
    const int64_t first = s->steps_that_fetch;
    const register_mask mask = NAME(mask)(nv, is_masked, s);
    const TG_T *tile_a = s->a, *tile_b = s->b;
    TG_T *c = s->c;
    int64_t sums_at = 0; /* there may be none */
    for (int64_t more = s->more; more >= 0; more--) {
        const TG_T *a = tile_a, *b = tile_b;
        const char *coming = tile_coming;
        TG_T *kept = s->kept;
        VECTOR acc[MOST_ACCUMULATORS]; /* not of the caller: clang 14 would keep that in memory */
        EACH (i, mr * nv)
            acc[i] = (VECTOR){0};
        if (s->begins_with_sums) {
            const TG_T *sums = (const TG_T *)s->sums + sums_at;
            EACH (i, mr) {
                EACH (j, nv)
                    acc[i * nv + j] = *(const LOOSE *)(sums + j * TG_V);
                sums += s->sums_row;
            }
        }
        if (is_packed || keeps) {
            NAME(pieces)
            (acc, mr, nv, is_k_major, is_packed, comes, ahead, a_row, a_col, b_row, a, b, kept,
             coming, c, s);
        } else {
            if (first > 0)
                NAME(fetch_c)(c, s->c_row, mr, nv * TG_V);
            for (int64_t left = first, part; left > 0; left -= part) {
                part = comes ? tg_min(left, coming_steps) : left;
                NAME(steps)
                (acc, mr, nv, is_masked, mask, is_k_major, 1, ahead, part, a_row, a_col, b_row, 0,
                 comes, coming_row, &a, &b, &kept, &coming);
                if (comes)
                    coming += coming_jump;
            }
            NAME(steps)
            (acc, mr, nv, is_masked, mask, is_k_major, 0, ahead, s->k - first, a_row, a_col, b_row,
             0, comes, coming_row, &a, &b, &kept, &coming);
        }
        if (s->leaves_sums) {
            TG_T *sums = (TG_T *)s->sums + sums_at;
            EACH (i, mr) {
                EACH (j, nv)
                    *(LOOSE *)(sums + j * TG_V) = acc[i * nv + j];
                sums += s->sums_row;
            }
        } else {
            NAME(update)(acc, mr, nv, is_masked, mask, c, s);
        }
        tile_a += s->a_next;
        tile_b += s->b_next;
        tile_coming += s->coming_next;
        sums_at += s->sums_next;
        c += s->c_next;
    }
}

static inline __attribute__((always_inline)) void
NAME(outer)(int mr, int nv, int is_masked, int is_k_major, int comes, const tg_step *s)
{
    if (is_k_major)
        NAME(tiles)(mr, nv, is_masked, 1, 0, 0, comes, 1, s->a_col, s->b_row, s);
    else
        NAME(tiles)(mr, nv, is_masked, 0, 0, 0, comes, s->a_row, 1, s->b_row, s);
}

/* The same on packed panels: strides that the compiler knows cost no instructions. */
static inline __attribute__((always_inline)) void NAME(packed)(int mr, int nv, int is_k_major,
                                                               const tg_step *s)
{
    if (is_k_major)
        NAME(tiles)(mr, nv, 0, 1, 1, 0, COMES_WHOLE, 1, mr, nv * TG_V, s);
    else
        NAME(tiles)(mr, nv, 0, 0, 1, 0, COMES_WHOLE, s->a_row, 1, nv * TG_V, s);
}

/* The same on a B that is packed on its way. */
static inline __attribute__((always_inline)) void NAME(keeping)(int mr, int nv, int is_k_major,
                                                                const tg_step *s)
{
    if (is_k_major)
        NAME(tiles)(mr, nv, 0, 1, 0, 1, COMES_WHOLE, 1, s->a_col, s->b_row, s);
    else
        NAME(tiles)(mr, nv, 0, 0, 0, 1, COMES_WHOLE, s->a_row, 1, s->b_row, s);
}

static inline __attribute__((always_inline)) void NAME(dot)(int mr, int nv, const tg_step *s)
{
    VECTOR acc[MOST_ACCUMULATORS];
    EACH (i, mr)
        EACH (j, nv) {
            const TG_T *a = (const TG_T *)s->a + i * s->a_row, *b = (const TG_T *)s->b + j * TG_V;
            VECTOR sum = {0};
            for (int64_t p = 0; p < s->k; p++, a += s->a_col, b += s->b_row)
                sum += *a * *(const LOOSE *)b;
            acc[i * nv + j] = sum;
        }
    NAME(update)(acc, mr, nv, 0, NAME(mask)(nv, 0, s), s->c, s);
}

#include "microkernel_few.h"

#undef EACH_STEP
#undef STEPS
#undef VECTOR
#undef LOOSE
#undef REGISTER
