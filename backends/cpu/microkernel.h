/* SPDX-License-Identifier: Apache-2.0
 *
 * The register micro-kernel: a C "template", included once for each element type and vector width.
 * It is given constants mr and nv (rows, and vectors in a row) by an always-inlined call, so that
 * every loop over them unrolls and the accumulators live in registers:
 *
 *              b[p]:   | v | v |       acc[i][j] += a[i][p] * b[p][j]      mr x nv accumulators
 *      a[.][p]: s      | v | v |
 *               s      | v | v |       It sees full tiles only; gemm.c pads what is ragged.
 *
 * Needs: TG_T the element type, TG_V the elements of a vector, NAME(x) to mark x with both. */

#define VECTOR NAME(vector)
#define LOOSE NAME(loose)
#if TG_V == 1
typedef TG_T VECTOR;
typedef TG_T LOOSE;
#else
typedef TG_T VECTOR __attribute__((vector_size(TG_V * sizeof(TG_T))));
typedef TG_T LOOSE
    __attribute__((vector_size(TG_V * sizeof(TG_T)), aligned(sizeof(TG_T)), may_alias));
#endif

/* c := alpha * acc + beta * c */
static inline __attribute__((always_inline)) void NAME(update)(const VECTOR *acc, int mr, int nv,
                                                               const tg_step *s)
{
    const TG_T alpha = (TG_T)s->alpha, beta = (TG_T)s->beta;
    TG_T *c = s->c;
    if (beta == 0) {
        EACH (i, mr)
            EACH (j, nv)
                *(LOOSE *)(c + i * s->c_row + j * TG_V) = alpha * acc[i * nv + j];
        return;
    }
    EACH (i, mr)
        EACH (j, nv) {
            LOOSE *at = (LOOSE *)(c + i * s->c_row + j * TG_V);
            *at = alpha * acc[i * nv + j] + beta * *at;
        }
}

/* a_row is passed apart from the step, because it is the constant 1 for TG_OUTER_T. */
static inline __attribute__((always_inline)) void
NAME(outer)(VECTOR *acc, VECTOR *b_now, int mr, int nv, int64_t a_row, const tg_step *s)
{
    const TG_T *a = s->a, *b = s->b;
    const int64_t a_col = s->a_col, b_row = s->b_row;
    EACH (i, mr)
        for (int byte = 0; byte < nv * TG_V * (int)sizeof(TG_T); byte += 64)
            __builtin_prefetch((char *)((TG_T *)s->c + i * s->c_row) + byte, 1);
    EACH (i, mr * nv)
        acc[i] = (VECTOR){0};
#pragma GCC unroll 4
    for (int64_t p = 0; p < s->k; p++) {
        EACH (j, nv)
            b_now[j] = *(const LOOSE *)(b + j * TG_V);
        EACH (i, mr)
            EACH (j, nv)
                acc[i * nv + j] += a[i * a_row] * b_now[j];
        EACH (j, nv)
            __builtin_prefetch(b + FETCH_STEPS * b_row + j * TG_V);
        a += a_col;
        b += b_row;
    }
    NAME(update)(acc, mr, nv, s);
}

static inline __attribute__((always_inline)) void NAME(dot)(VECTOR *acc, int mr, int nv,
                                                            const tg_step *s)
{
    EACH (i, mr)
        EACH (j, nv) {
            const TG_T *a = (const TG_T *)s->a + i * s->a_row, *b = (const TG_T *)s->b + j * TG_V;
            VECTOR sum = {0};
            for (int64_t p = 0; p < s->k; p++, a += s->a_col, b += s->b_row)
                sum += *a * *(const LOOSE *)b;
            acc[i * nv + j] = sum;
        }
    NAME(update)(acc, mr, nv, s);
}

#undef VECTOR
#undef LOOSE
