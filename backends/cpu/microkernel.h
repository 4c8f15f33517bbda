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

/* A vector, of which only the first elements are there if it is masked. */
static inline __attribute__((always_inline)) VECTOR NAME(load)(const TG_T *at, int is_masked,
                                                               int elements)
{
    VECTOR v = {0};
    if (!is_masked)
        return *(const LOOSE *)at;
    if (sizeof(TG_T) == sizeof(float)) {
        const register_f32 first = LOAD_F32((const float *)at, elements);
        memcpy(&v, &first, sizeof first < sizeof v ? sizeof first : sizeof v);
    } else {
        const register_f64 first = LOAD_F64((const double *)at, elements);
        memcpy(&v, &first, sizeof first < sizeof v ? sizeof first : sizeof v);
    }
    return v;
}

static inline __attribute__((always_inline)) void NAME(store)(TG_T *at, VECTOR v, int is_masked,
                                                              int elements)
{
    if (!is_masked) {
        *(LOOSE *)at = v;
    } else if (sizeof(TG_T) == sizeof(float)) {
        register_f32 all = {0};
        memcpy(&all, &v, sizeof all < sizeof v ? sizeof all : sizeof v);
        STORE_F32((float *)at, elements, all);
    } else {
        register_f64 all = {0};
        memcpy(&all, &v, sizeof all < sizeof v ? sizeof all : sizeof v);
        STORE_F64((double *)at, elements, all);
    }
}

/* c := alpha * acc + beta * c */
static inline __attribute__((always_inline)) void NAME(update)(const VECTOR *acc, int mr, int nv,
                                                               int is_masked, const tg_step *s)
{
    const TG_T alpha = (TG_T)s->alpha, beta = (TG_T)s->beta;
    const int last = s->columns - (nv - 1) * TG_V;
    TG_T *c = s->c;
    if (beta == 0) {
        EACH (i, mr)
            EACH (j, nv)
                NAME(store)
        (c + i * s->c_row + j * TG_V, alpha * acc[i * nv + j], is_masked && j == nv - 1, last);
        return;
    }
    EACH (i, mr)
        EACH (j, nv) {
            TG_T *at = c + i * s->c_row + j * TG_V;
            const int is_part = is_masked && j == nv - 1;
            NAME(store)
            (at, alpha * acc[i * nv + j] + beta * NAME(load)(at, is_part, last), is_part, last);
        }
}

/* acc += a * b over k. A lies along k, or across it (k-major): then it is fetched ahead like B. */
static inline __attribute__((always_inline)) void
NAME(steps)(VECTOR *acc, int mr, int nv, int is_masked, int last, int is_k_major, int fetches,
            int64_t ahead, int64_t k, int64_t a_row, int64_t a_col, int64_t b_row,
            const TG_T **a_at, const TG_T **b_at)
{
    const TG_T *a = *a_at, *b = *b_at;
    VECTOR b_now[MOST_VECTORS];
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; p++) {
        EACH (j, nv)
            b_now[j] = NAME(load)(b + j * TG_V, is_masked && j == nv - 1, last);
        EACH (i, mr)
            EACH (j, nv)
                acc[i * nv + j] += a[i * a_row] * b_now[j];
        if (fetches)
            EACH (j, nv)
                __builtin_prefetch(b + ahead + j * TG_V);
        if (fetches && is_k_major)
            EACH (line, LINES(mr * sizeof(TG_T)))
                __builtin_prefetch((const char *)(a + FETCH_STEPS * a_col) + line * LINE);
        a += a_col;
        b += b_row;
    }
    *a_at = a;
    *b_at = b;
}

static inline __attribute__((always_inline)) void NAME(fetch_row)(const TG_T *c, int nv)
{
    EACH (line, LINES(nv * sizeof(VECTOR)))
        __builtin_prefetch((const char *)c + line * LINE, 1);
}

/* C is best fetched a row at a time, and late: all at once it keeps A and B waiting, and early it
 * is pushed out of L1 again. Where A is read along k there are no registers for that. */
static inline __attribute__((always_inline)) void NAME(multiply)(int mr, int nv, int is_masked,
                                                                 int is_k_major, int64_t a_col,
                                                                 int64_t b_row, tg_step *s)
{
    const TG_T *a = s->a, *b = s->b, *c = s->c;
    const int64_t a_row = is_k_major ? 1 : s->a_row;
    const char *next = s->next;
    const int last = s->columns - (nv - 1) * TG_V;
    VECTOR acc[MOST_ACCUMULATORS]; /* not of the caller: clang 14 would keep that in memory */
    if (!is_k_major)
        EACH (i, mr)
            NAME(fetch_row)(c + i * s->c_row, nv);
    EACH (i, mr * nv)
        acc[i] = (VECTOR){0};
    if (!is_k_major && s->begins_with_sums)
        EACH (i, mr)
            EACH (j, nv)
                acc[i * nv + j] = *(const LOOSE *)((TG_T *)s->sums + i * s->sums_row + j * TG_V);
    for (int64_t left = is_k_major ? s->k / STEPS : 0; left > 0; left--) {
        if (left < mr + FETCH_ROWS_AHEAD) {
            NAME(fetch_row)(c, nv);
            c += s->c_row;
        }
        if (next < s->next_end)
            __builtin_prefetch(next, 0, 2);
        next += LINE;
        NAME(steps)
        (acc, mr, nv, is_masked, last, 1, 1, FETCH_STEPS * b_row, STEPS, a_row, a_col, b_row, &a,
         &b);
    }
    for (int64_t left = is_k_major ? s->k % STEPS : 0; left > 0; left--)
        NAME(steps)(acc, mr, nv, is_masked, last, 1, 0, 0, 1, a_row, a_col, b_row, &a, &b);
    if (!is_k_major) {
        const int64_t with = s->steps_that_fetch;
        NAME(steps)
        (acc, mr, nv, is_masked, last, 0, 1, s->ahead, with, a_row, a_col, b_row, &a, &b);
        NAME(steps)
        (acc, mr, nv, is_masked, last, 0, 0, 0, s->k - with, a_row, a_col, b_row, &a, &b);
    }
    s->next = next;
    if (!is_k_major && s->leaves_sums)
        EACH (i, mr)
            EACH (j, nv)
                *(LOOSE *)((TG_T *)s->sums + i * s->sums_row + j * TG_V) = acc[i * nv + j];
    else
        NAME(update)(acc, mr, nv, is_masked, s);
}

static inline __attribute__((always_inline)) void NAME(outer)(int mr, int nv, int is_masked,
                                                              int is_k_major, tg_step *s)
{
    NAME(multiply)(mr, nv, is_masked, is_k_major, is_k_major ? s->a_col : 1, s->b_row, s);
}

/* The same on packed panels: strides that the compiler knows cost no instructions. */
static inline __attribute__((always_inline)) void NAME(packed)(int mr, int nv, tg_step *s)
{
    NAME(multiply)(mr, nv, 0, 1, mr, nv * TG_V, s);
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
    NAME(update)(acc, mr, nv, 0, s);
}

#undef VECTOR
#undef LOOSE
