/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold of a problem before anything is computed: each refusal is a sentence that names
 * the argument and its value. */
#include <inttypes.h>

#include "gemm.h"

/* ------------------------------------------------------------------------------------- overlaps */

/* A matrix batch as a set of addresses: dimensions by falling stride, none negative; those that
 * repeat or have one element are left with stride 0 and count 1. */
typedef struct view {
    uintptr_t low;
    int64_t stride[3], count[3], bytes; /* stride in bytes; bytes of an element */
} view;

static view view_of(const void *data, const int64_t stride[3], const int64_t count[3],
                    int64_t bytes)
{
    view v = {(uintptr_t)data, {0, 0, 0}, {1, 1, 1}, bytes};
    for (int d = 0; d < 3; d++) {
        if (count[d] == 1 || stride[d] == 0)
            continue;
        int64_t step = stride[d] * bytes;
        if (step < 0) {
            v.low += (uintptr_t)(step * (count[d] - 1));
            step = -step;
        }
        int at = 2;
        for (; at > 0 && v.stride[at - 1] < step; at--) {
            v.stride[at] = v.stride[at - 1];
            v.count[at] = v.count[at - 1];
        }
        v.stride[at] = step;
        v.count[at] = count[d];
    }
    return v;
}

static view view_of_bytes(const void *memory, int64_t bytes)
{
    return view_of(memory, (const int64_t[]){1, 0, 0}, (const int64_t[]){bytes, 1, 1}, 1);
}

static uintptr_t view_last(const view *v)
{
    uintptr_t last = v->low;
    for (int d = 0; d < 3; d++)
        last += (uintptr_t)(v->stride[d] * (v->count[d] - 1));
    return last;
}

/* Does an element of v lie at this address? Exact where the strides are nested. */
static int view_holds(const view *v, uintptr_t address)
{
    if (address < v->low)
        return 0;
    uintptr_t rest = address - v->low;
    for (int d = 0; d < 3; d++)
        if (v->stride[d])
            rest -= (uintptr_t)tg_min((int64_t)(rest / (uintptr_t)v->stride[d]), v->count[d] - 1) *
                    (uintptr_t)v->stride[d];
    return rest < (uintptr_t)v->bytes;
}

/* Two matrices in one grid (of equal leading dimension, say): do their rectangles meet? */
static int rectangles_meet(const view *x, const view *y)
{
    int64_t line = x->stride[0], step = x->stride[1], per_line = line / step;
    int64_t distance = (int64_t)(y->low - x->low);
    if (y->low < x->low)
        return rectangles_meet(y, x);
    int64_t lines = distance / line, steps = distance % line / step;
    for (int wrap = 0; wrap < 2; wrap++, lines++, steps -= per_line)
        if (lines < x->count[0] && steps < x->count[1] && steps + y->count[1] > 0)
            return 1;
    return 0;
}

/* True only if an element of x surely is one of y. */
static int views_overlap(const view *x, const view *y)
{
    uintptr_t x_last = view_last(x), y_last = view_last(y);
    if (x_last + (uintptr_t)x->bytes <= y->low || y_last + (uintptr_t)y->bytes <= x->low)
        return 0;
    int same_grid =
        x->bytes == y->bytes && x->stride[0] == y->stride[0] && x->stride[1] == y->stride[1] &&
        x->stride[1] > 0 && !x->stride[2] && !y->stride[2] && x->stride[0] % x->stride[1] == 0 &&
        x->stride[1] * x->count[1] <= x->stride[0] && y->stride[1] * y->count[1] <= y->stride[0] &&
        (int64_t)(x->low - y->low) % x->stride[1] == 0;
    if (same_grid)
        return rectangles_meet(x, y);
    return view_holds(x, y->low) || view_holds(x, y_last) || view_holds(y, x->low) ||
           view_holds(y, x_last);
}

tg_reach tg_reach_of(const tg_input *x, int64_t rows, int64_t cols, int64_t batch)
{
    const int64_t bytes = (int64_t)tg_type_size(x->type);
    const int64_t span[3] = {(rows - 1) * x->row_stride, (cols - 1) * x->col_stride,
                             (batch - 1) * x->batch_stride};
    tg_reach reach = {0, bytes, (uintptr_t)bytes - 1};
    for (int d = 0; d < 3; d++)
        *(span[d] < 0 ? &reach.begin : &reach.end) += span[d] * bytes;
    return reach;
}

/* The least i >= 0 for which i * s - w is a multiple of t; -1 if i * s is larger than any span, or
 * there is none. s and w are less than t. */
static int64_t solve(int64_t s, int64_t w, int64_t t)
{
    const int64_t most = (int64_t)1 << 50;
    if (s == 0 || w == 0)
        return w == 0 ? 0 : -1;
    const int64_t j = solve(t % s, (s - w % s) % s, s);
    return j < 0 || j > most / t ? -1 : (w + j * t) / s;
}

/* Do two elements of C coincide? Not if each stride is larger than what smaller ones span, and
 * surely if there are more elements than places. Else, if their indices can differ by x, i and j,
 * not all 0, so that x * u == i * s + j * t. Of x there are the fewest, and not many: they are
 * tried. i and j are counted from the lowest ones, -m and -n. */
static int elements_coincide(const int64_t stride[3], const int64_t count[3])
{
    const view c = view_of(NULL, stride, count, 1);
    int64_t span = 0;
    int is_nested = 1, few = 2;
    double elements = 1;
    for (int d = 2; d >= 0; d--) {
        if (stride[d] == 0 && count[d] > 1)
            return 1;
        is_nested &= c.count[d] == 1 || c.stride[d] > span;
        span += c.stride[d] * (c.count[d] - 1);
        elements *= (double)c.count[d];
        few = c.count[d] < c.count[few] ? d : few;
    }
    if (is_nested || elements > (double)span + 1)
        return !is_nested;
    const int64_t u = c.stride[few], s = c.stride[(few + 1) % 3], t = c.stride[(few + 2) % 3];
    const int64_t m = c.count[(few + 1) % 3] - 1, n = c.count[(few + 2) % 3] - 1;
    for (int64_t x = 0; x < c.count[few] && x * u <= m * s + n * t; x++) {
        const int64_t sum = x * u + m * s + n * t, above = tg_max(0, sum - 2 * n * t);
        const int64_t first = x == 0 ? m + 1 : tg_ceil_div(above, s);
        const int64_t last = tg_min(2 * m, sum / s);
        const int64_t more = first > last ? -1 : solve(s % t, (sum - first * s) % t, t);
        if (more >= 0 && first + more <= last)
            return 1;
    }
    return 0;
}

/* --------------------------------------------------------------------------------------- checks */

static tg_status check_type(tg_context *ctx, const char *name, tg_type type)
{
    if (!tg_type_size(type))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "%s = %d is no element type", name, (int)type);
    return TG_OK;
}

/* Is there such a line in the table of element types? */
static tg_status check_types(tg_context *ctx, const tg_problem *p)
{
    const tg_type a = p->a.type, b = p->b.type, c = p->c.type;
    if (check_type(ctx, "a.type", a) || check_type(ctx, "b.type", b) ||
        check_type(ctx, "c.type", c))
        return ctx->status;
    const tg_type sum = tg_sum_type(a);
    if (!sum || !tg_sum_type(b))
        return tg_fail(ctx, TG_NOT_SUPPORTED, "%c.type = %s is a type of C only", sum ? 'b' : 'a',
                       tg_type_name(sum ? b : a));
    const int is_gpu = ctx->limits.l1 == 0; /* whose kernels multiply a type with itself */
    if (a != b && (is_gpu || sum != TG_I32 || tg_sum_type(b) != TG_I32))
        return tg_fail(ctx, TG_NOT_SUPPORTED,
                       "a.type = %s and b.type = %s are not multiplied with each other on %s",
                       tg_type_name(a), tg_type_name(b), ctx->device_name);
    if (c != sum && (c != a || sum != TG_F32))
        return tg_fail(ctx, TG_NOT_SUPPORTED,
                       "c.type = %s does not take the products of a.type = %s, which are in %s",
                       tg_type_name(c), tg_type_name(a), tg_type_name(sum));
    return TG_OK;
}

static tg_status check_whole(tg_context *ctx, const char *name, double factor)
{
    if (factor >= INT32_MIN && factor <= INT32_MAX && (int32_t)factor == factor)
        return TG_OK;
    return tg_fail(ctx, TG_NOT_SUPPORTED,
                   "%s = %.17g is no whole number that i32 holds, and A and B hold integers", name,
                   factor);
}

tg_status tg_check_scalars(tg_context *ctx, const tg_problem *p)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"m", p->m}, {"n", p->n}, {"k", p->k}, {"batch", p->batch}};
    for (int i = 0; i < 4; i++)
        if (sizes[i].value < 0)
            return tg_fail(ctx, TG_BAD_ARGUMENT, "%s = %" PRId64 " is negative", sizes[i].name,
                           sizes[i].value);
    if (check_types(ctx, p))
        return ctx->status;
    if (p->c.type == TG_I32 &&
        (check_whole(ctx, "alpha", p->alpha) || check_whole(ctx, "beta", p->beta)))
        return ctx->status;
    if (p->compute != TG_STRICT)
        return tg_fail(ctx, TG_NOT_SUPPORTED, "compute = %d is not TG_STRICT (0)", (int)p->compute);
    if (p->flags & ~(uint32_t)(TG_BATCH_INVARIANT | TG_PACKED))
        return tg_fail(ctx, TG_NOT_SUPPORTED, "flags = 0x%" PRIx32 " holds an unknown flag",
                       p->flags);
    if ((p->flags & TG_PACKED) == TG_PACKED)
        return tg_fail(ctx, TG_NOT_SUPPORTED,
                       "flags = 0x%" PRIx32 ": A and B are both packed, and only one can be",
                       p->flags);
    return TG_OK;
}

/* A matrix must span less than the address space, even if what it repeats were there several times;
 * then no computation of an address or of a size overflows. */
static tg_status check_span(tg_context *ctx, const char *name, const int64_t stride[3],
                            const int64_t count[3])
{
    const int64_t most_elements = (int64_t)1 << 48;
    int64_t span = 1;
    for (int d = 0; d < 3; d++) {
        int64_t reach;
        if (count[d] < 2)
            continue;
        if (stride[d] == INT64_MIN ||
            __builtin_mul_overflow(tg_max(1, stride[d] < 0 ? -stride[d] : stride[d]), count[d] - 1,
                                   &reach) ||
            __builtin_add_overflow(span, reach, &span) || span > most_elements)
            return tg_fail(ctx, TG_BAD_ARGUMENT,
                           "%s spans more than the address space: %" PRId64 " x %" PRId64
                           " x batch %" PRId64 " with strides %" PRId64 ", %" PRId64 ", %" PRId64,
                           name, count[0], count[1], count[2], stride[0], stride[1], stride[2]);
    }
    return TG_OK;
}

static tg_status check_aligned(tg_context *ctx, char name, const void *data, tg_type type)
{
    const size_t bytes = tg_type_size(type); /* a power of two */
    if (((uintptr_t)data & (bytes - 1)) == 0)
        return TG_OK;
    return tg_fail(ctx, TG_BAD_ARGUMENT, "%c = %p is not aligned to its elements of %zu bytes",
                   name, data, bytes);
}

tg_status tg_check_apart(tg_context *ctx, const tg_problem *p, int is_b, const void *memory,
                         int64_t bytes)
{
    const tg_input *x = is_b ? &p->b : &p->a;
    const view packed = view_of_bytes(memory, bytes);
    const view v = view_of(x->data, (const int64_t[]){x->row_stride, x->col_stride, 0},
                           (const int64_t[]){is_b ? p->k : p->m, is_b ? p->n : p->k, 1},
                           (int64_t)tg_type_size(x->type));
    if (check_aligned(ctx, is_b ? 'b' : 'a', x->data, x->type))
        return ctx->status;
    if (views_overlap(&packed, &v))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "packed = %p overlaps what is to be packed at %p",
                       memory, x->data);
    return TG_OK;
}

tg_status tg_check_matrices(tg_context *ctx, const tg_problem *p, int with_data)
{
    const size_t bytes = tg_type_size(p->c.type);
    const int64_t c_count[3] = {p->m, p->n, p->batch};
    const int64_t c_stride[3] = {p->c.row_stride, p->c.col_stride, p->c.batch_stride};
    const int reads_inputs = p->k > 0 && p->alpha != 0;
    if (check_span(ctx, "C", c_stride, c_count))
        return ctx->status;
    if (elements_coincide(c_stride, c_count))
        return tg_fail(ctx, TG_BAD_ARGUMENT,
                       "elements of C coincide: %" PRId64 " x %" PRId64 " x batch %" PRId64
                       " with strides %" PRId64 ", %" PRId64 ", %" PRId64,
                       p->m, p->n, p->batch, c_stride[0], c_stride[1], c_stride[2]);
    if (with_data && !p->c.data && (reads_inputs || p->beta != 1))
        return tg_fail(ctx, TG_BAD_ARGUMENT, "c is NULL and C is %" PRId64 " x %" PRId64, p->m,
                       p->n);
    if (with_data && check_aligned(ctx, 'c', p->c.data, p->c.type))
        return ctx->status;
    if (!reads_inputs)
        return TG_OK;
    if (p->flags & TG_PACKED && tg_packed_check(ctx, p))
        return ctx->status;
    const tg_input *input[2] = {&p->a, &p->b};
    const int is_packed[2] = {p->flags & TG_A_PACKED, p->flags & TG_B_PACKED};
    const int64_t count[2][3] = {{p->m, p->k, p->batch}, {p->k, p->n, p->batch}};
    int64_t stride[2][3];
    for (int i = 0; i < 2; i++) {
        stride[i][0] = input[i]->row_stride;
        stride[i][1] = input[i]->col_stride;
        stride[i][2] = input[i]->batch_stride;
        if (is_packed[i])
            continue;
        if (check_span(ctx, i ? "B" : "A", stride[i], count[i]))
            return ctx->status;
    }
    const view c = view_of(p->c.data, c_stride, c_count, (int64_t)bytes);
    for (int i = 0; i < 2 && with_data; i++) {
        const tg_input *x = input[i];
        const char name = "ab"[i], matrix = "AB"[i];
        if (!x->data)
            return tg_fail(ctx, TG_BAD_ARGUMENT, "%c is NULL and %c is %" PRId64 " x %" PRId64,
                           name, matrix, count[i][0], count[i][1]);
        if (check_aligned(ctx, name, x->data, x->type))
            return ctx->status;
        const view v = is_packed[i]
                           ? view_of_bytes(x->data, tg_packed_bytes(x->data))
                           : view_of(x->data, stride[i], count[i], (int64_t)tg_type_size(x->type));
        if (views_overlap(&c, &v))
            return tg_fail(ctx, TG_BAD_ARGUMENT, "c = %p: C overlaps %c at %p", p->c.data, matrix,
                           x->data);
    }
    return TG_OK;
}
