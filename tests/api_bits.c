/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch invariance: an element of C has the same bits whether it is computed in a large product or
 * in a small one, first or last, alone or in a batch, from transposed matrices or not. A large
 * product is computed once; then rectangles of it again, each as a problem of its own.
 *
 *     +------------------+
 *     |   m0,n0          |     items of a batch are rectangles below each other
 *     |     +-----+      |
 *     |     |  0  |      |     what is beside them stays as it was
 *     |     +-----+      |
 *     |     |  1  |      |
 *     +-----+-----+------+
 *
 * A rectangle is computed in one of the ways in which problems can be given.
 */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "elements.h"
#include "test.h"

/* Both orders of a matrix on the device. */
typedef struct orders {
    int64_t rows, cols;
    tg_type type;
    void *by[2]; /* rows, columns */
} orders;

typedef struct large {
    int64_t m, n, k;
    uint32_t flags;
    double scale; /* of A and of B; C has that of their products */
    orders a, b, c;
    char *before[2], *after[2]; /* C on the host */
    size_t c_bytes;
} large;

static int64_t row_stride(const orders *x, int order) { return order ? 1 : x->cols; }
static int64_t col_stride(const orders *x, int order) { return order ? x->rows : 1; }

/* Values that are sure to be rounded. */
static void fill(const orders *x, int order, char *elements, double scale, uint64_t seed)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            const uint64_t hash = test_hash((uint64_t)(i * x->cols + j) + (seed << 40));
            element_put(x->type, elements, i * row_stride(x, order) + j * col_stride(x, order),
                        scale * ((double)(hash >> 11) * 0x1p-52 - 1));
        }
}

static orders make(tg_context *ctx, int64_t rows, int64_t cols, tg_type type, double scale,
                   uint64_t seed, char *copies[2])
{
    orders x = {rows, cols, type, {NULL, NULL}};
    const size_t bytes = (size_t)(rows * cols) * tg_type_size(type);
    for (int order = 0; order < 2; order++) {
        char *elements = malloc(bytes);
        if (!CHECK(elements))
            continue;
        fill(&x, order, elements, scale, seed);
        x.by[order] = api_upload(ctx, elements, bytes);
        if (copies)
            copies[order] = elements;
        else
            free(elements);
    }
    return x;
}

static void drop(tg_context *ctx, orders *x)
{
    CHECK(!tg_free(ctx, x->by[0]) && !tg_free(ctx, x->by[1]));
}

/* Where element (row, col) lies. */
static char *place(const orders *x, int order, int64_t row, int64_t col)
{
    const int64_t at = row * row_stride(x, order) + col * col_stride(x, order);
    return (char *)x->by[order] + at * (int64_t)tg_type_size(x->type);
}

static tg_input input(const orders *x, int order, int64_t row, int64_t col, int64_t batch_rows)
{
    const int64_t rows_apart = row_stride(x, order);
    return (tg_input){place(x, order, row, col), rows_apart, col_stride(x, order),
                      batch_rows * rows_apart, x->type};
}

/* As one problem; with A or B packed; as a list of problems, or of pointers. */
typedef enum way { PLAIN, PACKED_A, PACKED_B, GROUPED, POINTERS, WAYS } way;

typedef struct rectangle {
    int64_t m0, n0, m, n, batch;
    int a_order, b_order, c_order;
    way way;
} rectangle;

static tg_problem problem_of(const large *w, const rectangle *r)
{
    const int64_t c_row = row_stride(&w->c, r->c_order), c_col = col_stride(&w->c, r->c_order);
    tg_problem p = TG_PROBLEM_INIT;
    p.m = r->m, p.n = r->n, p.k = w->k, p.batch = r->batch;
    p.a = input(&w->a, r->a_order, r->m0, 0, r->m);
    p.b = input(&w->b, r->b_order, 0, r->n0, 0);
    p.c =
        (tg_output){place(&w->c, r->c_order, r->m0, r->n0), c_row, c_col, r->m * c_row, w->c.type};
    p.alpha = 0.7, p.beta = 0.3;
    p.flags = w->flags;
    return p;
}

/* How many elements are not as they must be: inside as in the large product, outside as before. */
static int64_t wrong_elements(const large *w, const rectangle *r, const char *got)
{
    const size_t size = tg_type_size(w->c.type);
    int64_t wrong = 0;
    for (int64_t i = 0; i < w->m; i++)
        for (int64_t j = 0; j < w->n; j++) {
            const int is_inside =
                i >= r->m0 && i < r->m0 + r->m * r->batch && j >= r->n0 && j < r->n0 + r->n;
            const char *wanted = is_inside ? w->after[r->c_order] : w->before[r->c_order];
            const size_t at = size * (size_t)(i * row_stride(&w->c, r->c_order) +
                                              j * col_stride(&w->c, r->c_order));
            wrong += memcmp(got + at, wanted + at, size) != 0;
        }
    return wrong;
}

/* Packed for another size of the other operand, and now and then for a C in the other order. */
static void multiply_packed(tg_context *ctx, const tg_problem *p, tg_flag which)
{
    tg_problem other = *p;
    size_t bytes = 0;
    void *packed = NULL;
    *(which == TG_A_PACKED ? &other.n : &other.m) = 1;
    if (p->m % 3 == 0) {
        other.c.row_stride = p->c.col_stride;
        other.c.col_stride = p->c.row_stride;
    }
    CHECK_OK(ctx, tg_pack_size(ctx, &other, which, &bytes));
    CHECK_OK(ctx, tg_alloc(ctx, bytes, &packed));
    CHECK_OK(ctx, tg_pack(ctx, &other, which, packed, bytes));
    CHECK_OK(ctx, tg_packed_gemm(ctx, p, which, packed));
    CHECK_OK(ctx, tg_free(ctx, packed));
}

/* Each batch item as a problem, all but one column of it, and that column as another. */
static void multiply_grouped(tg_context *ctx, const tg_problem *p)
{
    enum { MOST = 256 };
    tg_problem parts[2 * MOST];
    const int64_t items = p->batch < MOST ? p->batch : MOST;
    for (int64_t x = 0; x < 2 * items; x++) {
        const int64_t item = x / 2, column = x % 2 ? p->n - 1 : 0;
        tg_problem *part = &parts[x];
        *part = *p;
        part->batch = 1;
        part->n = x % 2 ? 1 : p->n - 1;
        part->a.data =
            (const char *)p->a.data + item * p->a.batch_stride * (int64_t)tg_type_size(p->a.type);
        part->b.data =
            (const char *)p->b.data + column * p->b.col_stride * (int64_t)tg_type_size(p->b.type);
        part->c.data = (char *)p->c.data + (item * p->c.batch_stride + column * p->c.col_stride) *
                                               (int64_t)tg_type_size(p->c.type);
    }
    CHECK_OK(ctx, tg_gemm_grouped(ctx, parts, 2 * items));
}

static void multiply_pointers(tg_context *ctx, const tg_problem *p)
{
    enum { MOST = 256 };
    const void *a[MOST], *b[MOST];
    void *c[MOST];
    tg_problem item = *p;
    item.batch = 1;
    for (int64_t x = 0; x < p->batch; x++) {
        a[x] = (const char *)p->a.data + x * p->a.batch_stride * (int64_t)tg_type_size(p->a.type);
        b[x] = p->b.data;
        c[x] = (char *)p->c.data + x * p->c.batch_stride * (int64_t)tg_type_size(p->c.type);
    }
    CHECK_OK(ctx, tg_gemm_pointers(ctx, &item, a, b, c, p->batch));
}

static void multiply(tg_context *ctx, const large *w, const rectangle *r, char *got)
{
    const tg_problem p = problem_of(w, r);
    tg_upload(ctx, w->c.by[r->c_order], w->before[r->c_order], w->c_bytes);
    if (r->way == PACKED_B || (r->way == PACKED_A && r->batch == 1))
        multiply_packed(ctx, &p, r->way == PACKED_A ? TG_A_PACKED : TG_B_PACKED);
    else if (r->way == GROUPED)
        multiply_grouped(ctx, &p);
    else if (r->way == POINTERS)
        multiply_pointers(ctx, &p);
    else
        CHECK_OK(ctx, tg_gemm(ctx, &p));
    CHECK_OK(ctx, tg_download(ctx, got, w->c.by[r->c_order], w->c_bytes));
}

/* A size from 1 to most; a small one as often as not. */
static int64_t some_size(uint64_t hash, int64_t most)
{
    const int64_t limit = hash % 2 || most < 20 ? most : 20;
    return 1 + (int64_t)(hash >> 8) % limit;
}

static rectangle some_rectangle(const large *w, uint64_t seed)
{
    uint64_t hash = test_hash(seed);
    rectangle r = {.m = some_size(hash, w->m), .n = some_size(hash >> 1, w->n)};
    hash = test_hash(hash);
    r.batch = hash % 4 ? 1 : 1 + (int64_t)(hash >> 8) % (w->m / r.m);
    r.m0 = (int64_t)(hash >> 16) % (w->m - r.m * r.batch + 1);
    r.n0 = (int64_t)(hash >> 32) % (w->n - r.n + 1);
    hash = test_hash(hash);
    r.a_order = hash & 1, r.b_order = hash >> 1 & 1, r.c_order = hash >> 2 & 1;
    r.way = (way)((hash >> 8) % WAYS);
    if (!api_is_cpu() && (r.way == PACKED_A || r.way == PACKED_B))
        r.way = PLAIN;
    return r;
}

static void test_large(tg_context *ctx, large w, element_line types, int parts)
{
    rectangle whole = {.m = w.m, .n = w.n, .batch = 1};
    w.c_bytes = (size_t)(w.m * w.n) * tg_type_size(types.c);
    w.a = make(ctx, w.m, w.k, types.a, w.scale, 1, NULL);
    w.b = make(ctx, w.k, w.n, types.b, w.scale, 2, NULL);
    w.c = make(ctx, w.m, w.n, types.c, w.scale * w.scale, 3, w.before);
    char *got = malloc(w.c_bytes);
    for (int order = 0; order < 2; order++)
        w.after[order] = malloc(w.c_bytes);
    tg_set_threads(ctx, 1);
    for (whole.c_order = 0; whole.c_order < 2; whole.c_order++)
        multiply(ctx, &w, &whole, w.after[whole.c_order]);
    whole.c_order = 0;
    for (int i = 0; i < parts; i++) { /* first all of it, by more and more threads */
        const rectangle r = i < 8 ? whole : some_rectangle(&w, (uint64_t)i);
        tg_set_threads(ctx, i < 8 ? 1 + i : 1 + i % 5);
        multiply(ctx, &w, &r, got);
        const int64_t wrong = wrong_elements(&w, &r, got);
        CHECK_SAY(wrong == 0,
                  "%s: %lld elements of %lldx%lldx%lld * %lld at (%lld, %lld), orders %d %d %d, "
                  "way %d, "
                  "differ from those of %lldx%lldx%lld",
                  tg_type_name(types.a), (long long)wrong, (long long)r.m, (long long)r.n,
                  (long long)w.k, (long long)r.batch, (long long)r.m0, (long long)r.n0, r.a_order,
                  r.b_order, r.c_order, (int)r.way, (long long)w.m, (long long)w.n, (long long)w.k);
    }
    for (int order = 0; order < 2; order++) {
        free(w.before[order]);
        free(w.after[order]);
    }
    free(got);
    drop(ctx, &w.a);
    drop(ctx, &w.b);
    drop(ctx, &w.c);
}

void test_bits(tg_context *ctx)
{
    static const int64_t sizes[][3] = {{70, 110, 5},    {70, 110, 300},  {130, 90, 513},
                                       {90, 150, 1100}, {168, 48, 500},  {7, 150, 6000},
                                       {1000, 900, 4},  {20, 1100, 2500}};
    for (int line = 0; line < ELEMENT_LINES; line++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const element_line types = element_lines[line];
            const large w = {.m = sizes[i][0],
                             .n = sizes[i][1],
                             .k = sizes[i][2],
                             .flags = TG_BATCH_INVARIANT,
                             .scale = 1};
            const int is_from_memory = w.n * w.k > 2000000;
            const int parts = w.m * w.n < 100000 && !is_from_memory ? 60 : 12;
            if (types.c == TG_I32 || (!api_is_cpu() && (line >= PLAIN_LINES || is_from_memory)))
                continue;
            test_large(ctx, w, types, parts);
            if (api_is_cpu()) /* there it is always so */
                test_large(ctx, (large){.m = w.m, .n = w.n, .k = w.k, .scale = 1}, types,
                           parts / 3);
        }
    /* Products and sums that are denormals, or zeros where instructions make those of them. */
    for (int line = 0; line < ELEMENT_LINES && api_is_cpu(); line++)
        if (element_lines[line].a == TG_BF16 || element_lines[line].a == TG_F32)
            test_large(ctx, (large){.m = 90, .n = 150, .k = 101, .scale = 0x1p-63},
                       element_lines[line], 100);
    tg_set_threads(ctx, 0);
}
