/* SPDX-License-Identifier: Apache-2.0
 *
 * A vector of elements, and how it comes from memory and goes there: whole, masked, or converted
 * on its way. Included once for each element type and vector width.
 *
 * Needs: TG_T the element type, TG_V the elements of a vector, NAME(x) to mark x with both. */

#define VECTOR NAME(vector)
#define LOOSE NAME(loose)
#define REGISTER JOIN(register_, TG_T)
#if TG_V == 1
typedef TG_T VECTOR;
typedef TG_T LOOSE;
#else
typedef TG_T VECTOR __attribute__((vector_size(TG_V * sizeof(TG_T))));
typedef TG_T LOOSE
    __attribute__((vector_size(TG_V * sizeof(TG_T)), aligned(sizeof(TG_T)), may_alias));
#endif

/* A vector, of which only the elements in the mask are there if it is masked. */
static inline __attribute__((always_inline)) VECTOR NAME(load)(const TG_T *at, int is_masked,
                                                               register_mask mask)
{
    VECTOR v = {0};
    if (!is_masked)
        return *(const LOOSE *)at;
    const REGISTER first =
        is_masked == MASKED_LOWER ? JOIN(LOAD_LOWER_, TG_T)(at, mask) : JOIN(LOAD_, TG_T)(at, mask);
    memcpy(&v, &first, sizeof first < sizeof v ? sizeof first : sizeof v);
    return v;
}

static inline __attribute__((always_inline)) void NAME(store)(TG_T *at, VECTOR v, int is_masked,
                                                              register_mask mask)
{
    REGISTER all = {0};
    if (!is_masked) {
        *(LOOSE *)at = v;
    } else {
        memcpy(&all, &v, sizeof all < sizeof v ? sizeof all : sizeof v);
        JOIN(STORE_, TG_T)(at, mask, all);
    }
}

static inline __attribute__((always_inline)) register_mask NAME(first)(int count)
{
    return JOIN(MASK_, TG_T)(count);
}

/* A whole vector of a type that is 0 if it is TG_T; and the bytes of one. */
static inline __attribute__((always_inline)) VECTOR NAME(load_as)(tg_type type, const void *at)
{
    VECTOR v = {0};
    if (type == 0)
        return *(const LOOSE *)at;
    const register_float wide = type == TG_F16    ? WIDEN_F16(at)
                                : type == TG_BF16 ? WIDEN_BF16(at)
                                : type == TG_I8   ? WIDEN_I8(at)
                                                  : WIDEN_U8(at);
    memcpy(&v, &wide, sizeof wide < sizeof v ? sizeof wide : sizeof v);
    return v;
}

static inline __attribute__((always_inline)) int64_t NAME(bytes_as)(tg_type type)
{
    return type == 0 ? (int64_t)sizeof(VECTOR) : TG_V * bytes_of_short(type);
}

#undef VECTOR
#undef LOOSE
#undef REGISTER
