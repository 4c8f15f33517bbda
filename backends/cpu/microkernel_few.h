/* SPDX-License-Identifier: Apache-2.0
 *
 * Few rows times a B that is read once: in streams along its rows, while sums wait (streams.h), or
 * in panels that were packed beforehand. Memory is the limit then, or, of a B that is near, how
 * many sums are on their way: so, where a panel has few, several are multiplied side by side. A
 * part of microkernel.h, and needs what that does. */

/* Tiles over a multiple of TG_STREAMED of k that are not the last, in whole vectors, and with
 * nothing in the way: memory is the limit, if the instructions between its lines are few. So many
 * panels are side by side, next to one another if not apart. B is of b_type, which load_as knows;
 * of what comes, up to so many lines are fetched for each of k. */
static inline __attribute__((always_inline)) void NAME(stream_lines)(int mr, int nv, int panels,
                                                                     int are_apart, int lines,
                                                                     tg_type b_type,
                                                                     const tg_step *s)
{
    const int all = panels * nv;
    const int64_t bytes = NAME(bytes_as)(b_type);
    const int64_t a_row = s->a_row, b_row = s->b_row * bytes / TG_V, sums_row = s->sums_row;
    const int64_t b_next = s->b_next * bytes / TG_V;
    const int64_t apart = are_apart ? b_next : nv * bytes;
    const TG_T *a = s->a;
    const char *b = s->b;
    TG_T *sums = s->sums;
    const int comes = lines > 0 && mr > 2; /* else memory is all that takes time */
    const int64_t coming_row = s->coming ? s->coming_row : 0;
    int64_t line[MOST_VECTORS]; /* the last one again, where there are no more: no branch */
    EACH (j, nv)
        line[j] = LINE * tg_min(j, s->coming ? s->coming_lines - 1 : 0);
    const char *tile_coming = s->coming ? s->coming : s->b; /* or what is there */
    for (int64_t more = s->more + 1; more >= panels; more -= panels) {
        VECTOR acc[MOST_ACCUMULATORS];
        const char *coming = tile_coming;
        EACH (i, mr)
            EACH (j, all) {
                const TG_T *at = sums + i * sums_row + j * TG_V;
                acc[i * all + j] = (VECTOR){0};
                if (s->begins_with_sums)
                    acc[i * all + j] = *(const LOOSE *)at;
            }
        for (int64_t k = 0; k < s->k; k += TG_STREAMED) {
            const TG_T *const a_now = a + k;
            const char *const b_now = b + k * b_row;
            EACH (p, TG_STREAMED) {
                VECTOR row[MOST_VECTORS];
                EACH (j, all)
                    row[j] =
                        NAME(load_as)(b_type, b_now + j / nv * apart + j % nv * bytes + p * b_row);
                NAME(add)(acc, mr, all, 0, a_now + p, a_row, row);
                if (comes) {
                    EACH (j, lines)
                        __builtin_prefetch(coming + line[j], 0, 2);
                    coming += coming_row;
                }
            }
        }
        EACH (i, mr)
            EACH (j, all)
                *(LOOSE *)(sums + i * sums_row + j * TG_V) = acc[i * all + j];
        tile_coming += panels * s->coming_next;
        a += s->a_next;
        b += panels * b_next;
        sums += panels * s->sums_next;
    }
}

static inline __attribute__((always_inline)) void
NAME(stream_tiles)(int mr, int nv, int panels, int are_apart, tg_type b_type, const tg_step *s)
{
    if (VEC_BYTES < 32 || (VEC_BYTES == 32 && !s->coming))
        NAME(stream_lines)(mr, nv, panels, are_apart, 0, b_type, s);
    else if (VEC_BYTES == 32 || (mr > 4 && s->coming_lines == 1))
        NAME(stream_lines)(mr, nv, panels, are_apart, 1, b_type, s);
    else
        NAME(stream_lines)(mr, nv, panels, are_apart, nv, b_type, s);
}

/* Of few rows, several panels are multiplied side by side: neighbours if they are near, since more
 * sums hide what a multiply-add takes; and packed ones, since memory comes faster in several
 * streams than in one. */
static inline __attribute__((always_inline)) void NAME(stream)(int mr, int nv, tg_type b_type,
                                                               const tg_step *s)
{
    const int panels = TG_SIDE_BY_SIDE(mr * nv, VEC_BYTES, REGISTERS);
    const int are_apart = s->b_next != nv * TG_V;
    tg_step now = *s;
    if (panels > 1 && are_apart)
        NAME(stream_tiles)(mr, nv, panels, 1, b_type, s);
    else if (panels > 1 && s->is_near)
        NAME(stream_tiles)(mr, nv, panels, 0, b_type, s);
    if (panels > 1 && (are_apart || s->is_near)) {
        const int64_t done = (s->more + 1) / panels * panels;
        now.more -= done;
        now.b = (const char *)s->b + done * s->b_next * NAME(bytes_as)(b_type) / TG_V;
        now.sums = (TG_T *)s->sums + done * s->sums_next;
    }
    NAME(stream_tiles)(mr, nv, 1, 0, b_type, &now);
}
