/* SPDX-License-Identifier: Apache-2.0
 *
 * Few rows times a B that is read once: in streams along its rows, while sums wait (streams.h), or
 * in panels that were packed beforehand. Memory is the limit then, or, of a B that is near, how
 * many sums are on their way: so, where a panel has few, several are multiplied side by side. A
 * part of microkernel.h, and needs what that does. */

/* Tiles over a multiple of TG_STREAMED of k that are not the last, in whole vectors, and with
 * nothing in the way: memory is the limit, if the instructions between its lines are few. B is of
 * b_type, which load_as knows; of what comes, up to so many lines are fetched for each of k. */
static inline __attribute__((always_inline)) void
NAME(stream_lines)(int mr, int nv, int lines, tg_type b_type, const tg_step *s)
{
    const int64_t bytes = NAME(bytes_as)(b_type);
    const int64_t a_row = s->a_row, b_row = s->b_row * bytes / TG_V, sums_row = s->sums_row;
    const TG_T *a = s->a;
    const char *b = s->b;
    TG_T *sums = s->sums;
    const int comes = lines > 0 && mr > 2; /* else memory is all that takes time */
    const int64_t coming_row = s->coming ? s->coming_row : 0;
    int64_t line[MOST_VECTORS]; /* the last one again, where there are no more: no branch */
    EACH (j, nv)
        line[j] = LINE * tg_min(j, s->coming ? s->coming_lines - 1 : 0);
    const char *tile_coming = s->coming ? s->coming : s->b; /* or what is there */
    for (int64_t more = s->more; more >= 0; more--) {
        VECTOR acc[MOST_ACCUMULATORS];
        const char *coming = tile_coming;
        EACH (i, mr)
            EACH (j, nv) {
                const TG_T *at = sums + i * sums_row + j * TG_V;
                acc[i * nv + j] = (VECTOR){0};
                if (s->begins_with_sums)
                    acc[i * nv + j] = *(const LOOSE *)at;
            }
        for (int64_t k = 0; k < s->k; k += TG_STREAMED) {
            const TG_T *const a_now = a + k;
            const char *const b_now = b + k * b_row;
            EACH (p, TG_STREAMED) {
                VECTOR row[MOST_VECTORS];
                EACH (j, nv)
                    row[j] = NAME(load_as)(b_type, b_now + p * b_row + j * bytes);
                NAME(add)(acc, mr, nv, 0, a_now + p, a_row, row);
                if (comes) {
                    EACH (j, lines)
                        __builtin_prefetch(coming + line[j], 0, 2);
                    coming += coming_row;
                }
            }
        }
        EACH (i, mr)
            EACH (j, nv)
                *(LOOSE *)(sums + i * sums_row + j * TG_V) = acc[i * nv + j];
        tile_coming += s->coming_next;
        a += s->a_next;
        b += s->b_next * bytes / TG_V;
        sums += s->sums_next;
    }
}

static inline __attribute__((always_inline)) void NAME(stream_tiles)(int mr, int nv, tg_type b_type,
                                                                     const tg_step *s)
{
    if (VEC_BYTES < 32 || (VEC_BYTES == 32 && !s->coming))
        NAME(stream_lines)(mr, nv, 0, b_type, s);
    else if (VEC_BYTES == 32 || (mr > 4 && s->coming_lines == 1))
        NAME(stream_lines)(mr, nv, 1, b_type, s);
    else
        NAME(stream_lines)(mr, nv, nv, b_type, s);
}

/* Of few rows, panels that are neighbours are as one, if they are near: more sums hide what a
 * multiply-add takes. */
static inline __attribute__((always_inline)) void NAME(stream)(int mr, int nv, tg_type b_type,
                                                               const tg_step *s)
{
    const int panels = SIDE_BY_SIDE(mr * nv);
    if (panels == 1 || !s->is_near || s->b_next != nv * TG_V) {
        NAME(stream_tiles)(mr, nv, b_type, s);
        return;
    }
    const int64_t wide = (s->more + 1) / panels, done = wide * panels;
    tg_step now = *s;
    now.more = wide - 1;
    now.b_next *= panels;
    now.sums_next *= panels;
    now.coming_next *= panels;
    NAME(stream_tiles)(mr, nv * panels, b_type, &now);
    now = *s;
    now.more -= done;
    now.b = (const char *)s->b + done * nv * NAME(bytes_as)(b_type);
    now.sums = (TG_T *)s->sums + done * s->sums_next;
    NAME(stream_tiles)(mr, nv, b_type, &now);
}

/* Few rows, and so many packed panels side by side: memory comes faster in several streams than in
 * one, and more sums hide what a multiply-add takes. The tiles that are left, if they are so many.
 */
static inline __attribute__((always_inline)) int64_t NAME(weave)(int mr, int nv, int panels,
                                                                 int64_t tile, const tg_step *s)
{
    const register_mask mask = NAME(mask)(nv, WHOLE, s);
    for (; tile + panels <= s->more + 1; tile += panels) {
        const TG_T *a = s->a, *b = (const TG_T *)s->b + tile * s->b_next;
        TG_T *const c = (TG_T *)s->c + tile * s->c_next;
        VECTOR acc[MOST_ACCUMULATORS];
        EACH (i, panels * mr * nv)
            acc[i] = (VECTOR){0};
        for (int64_t p = 0; p < s->k; p++) {
            EACH (x, panels)
                NAME(multiply)
            (acc + x * mr * nv, mr, nv, WHOLE, mask, a, s->a_row, b + x * s->b_next, NULL);
            a++;
            b += nv * TG_V;
        }
        EACH (x, panels)
            NAME(update)(acc + x * mr * nv, mr, nv, WHOLE, mask, c + x * s->c_next, s);
    }
    return tile;
}

static inline __attribute__((always_inline)) void NAME(woven)(int mr, int nv, const tg_step *s)
{
    const int64_t tile = NAME(weave)(mr, nv, SIDE_BY_SIDE(mr * nv), 0, s);
    NAME(weave)(mr, nv, 1, tile, s);
}
