/* SPDX-License-Identifier: Apache-2.0
 *
 * A vector of elements, and how it comes from memory and goes there: whole, masked, or converted
 * on its way. Included once for each element type and vector width.
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

/* A vector, of which only the elements in the mask are there if it is masked. */
static inline __attribute__((always_inline)) VECTOR NAME(load)(const TG_T *at, int is_masked,
                                                               register_mask mask)
{
    VECTOR v = {0};
    const int is_lower = is_masked == MASKED_LOWER;
    if (!is_masked)
        return *(const LOOSE *)at;
    if (sizeof(TG_T) == sizeof(float)) {
        const register_f32 first =
            is_lower ? LOAD_LOWER_F32((const float *)at, mask) : LOAD_F32((const float *)at, mask);
        memcpy(&v, &first, sizeof first < sizeof v ? sizeof first : sizeof v);
    } else {
        const register_f64 first = is_lower ? LOAD_LOWER_F64((const double *)at, mask)
                                            : LOAD_F64((const double *)at, mask);
        memcpy(&v, &first, sizeof first < sizeof v ? sizeof first : sizeof v);
    }
    return v;
}

static inline __attribute__((always_inline)) void NAME(store)(TG_T *at, VECTOR v, int is_masked,
                                                              register_mask mask)
{
    if (!is_masked) {
        *(LOOSE *)at = v;
    } else if (sizeof(TG_T) == sizeof(float)) {
        register_f32 all = {0};
        memcpy(&all, &v, sizeof all < sizeof v ? sizeof all : sizeof v);
        STORE_F32((float *)at, mask, all);
    } else {
        register_f64 all = {0};
        memcpy(&all, &v, sizeof all < sizeof v ? sizeof all : sizeof v);
        STORE_F64((double *)at, mask, all);
    }
}

static inline __attribute__((always_inline)) register_mask NAME(first)(int count)
{
    return sizeof(TG_T) == sizeof(float) ? MASK_F32(count) : MASK_F64(count);
}

/* A whole vector of a type that is 0 if it is TG_T. */
static inline __attribute__((always_inline)) VECTOR NAME(load_as)(tg_type type, const void *at)
{
    VECTOR v = {0};
    if (type == 0)
        return *(const LOOSE *)at;
    const register_f32 wide = type == TG_F16 ? WIDEN_F16(at) : WIDEN_BF16(at);
    memcpy(&v, &wide, sizeof wide < sizeof v ? sizeof wide : sizeof v);
    return v;
}

#undef VECTOR
#undef LOOSE
