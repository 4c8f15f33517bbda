/* SPDX-License-Identifier: Apache-2.0
 *
 * The call of one case, in each of the ways that lead to the same elements: by tg_sgemm or
 * tg_dgemm, as a problem, with an operand packed, as a list of problems, with arrays of pointers.
 */
#include "case_oracle.h"

#include <stdlib.h>
#include <string.h>

static tg_problem problem_of(const run *r)
{
    const gemm_case *c = r->c;
    const matrix *x = r->x;
    tg_problem p = TG_PROBLEM_INIT;
    p.m = c->m, p.n = c->n, p.k = c->k, p.batch = c->batch;
    p.alpha = c->alpha, p.beta = c->beta;
    p.a = (tg_input){x[0].data, x[0].stride[0], x[0].stride[1], x[0].stride[2], x[0].type};
    p.b = (tg_input){x[1].data, x[1].stride[0], x[1].stride[1], x[1].stride[2], x[1].type};
    p.c = (tg_output){x[2].data, x[2].stride[0], x[2].stride[1], x[2].stride[2], x[2].type};
    return p;
}

static tg_trans trans_of(char letter)
{
    return letter == 'N' ? TG_NO_TRANS : letter == 'T' ? TG_TRANS : TG_CONJ_TRANS;
}

static tg_status call_blas(const run *r)
{
    const gemm_case *c = r->c;
    const matrix *x = r->x;
    const int is_col_major = c->kind[0] == 'c';
    const tg_layout layout = is_col_major ? TG_COL_MAJOR : TG_ROW_MAJOR;
    const tg_trans ta = trans_of(c->kind[is_col_major]), tb = trans_of(c->kind[is_col_major + 1]);
    int64_t ld[3];
    for (int i = 0; i < 3; i++)
        ld[i] = case_layout(c, i) == 'c' ? x[i].stride[1] : x[i].stride[0];
    if (c->type == TG_F64)
        return tg_dgemm(r->ctx, layout, ta, tb, c->m, c->n, c->k, c->alpha, x[0].data, ld[0],
                        x[1].data, ld[1], c->beta, x[2].data, ld[2]);
    return tg_sgemm(r->ctx, layout, ta, tb, c->m, c->n, c->k, (float)c->alpha, x[0].data, ld[0],
                    x[1].data, ld[1], (float)c->beta, x[2].data, ld[2]);
}

/* Exactly as much workspace as the neediest of the problems asks for, flush against a forbidden
 * page if its size allows; or none, if the case does not say so. */
static tg_status give_workspace(run *r, const tg_problem *p, int64_t count)
{
    size_t most = 0;
    for (int64_t x = 0; r->c->workspace && x < count; x++) {
        size_t bytes;
        const tg_status status = tg_gemm_workspace(r->ctx, &p[x], &bytes);
        if (status)
            return status;
        most = bytes > most ? bytes : most;
    }
    if (!most)
        return TG_OK;
    void *const memory_of_host = guard_take(&r->workspace, most, (64 - most % 64) % 64, 1);
    if (!memory_of_host)
        return TG_OUT_OF_MEMORY;
    memset(memory_of_host, 0xff, most); /* NaN of each type */
    void *memory = guard_to_device(&r->workspace, r->ctx, r->is_host);
    return memory ? tg_set_workspace(r->ctx, memory, most) : TG_OUT_OF_MEMORY;
}

/* ---------------------------------------------------------------------------------- the ways */

/* Packs as for another size of the other operand, at the edge of a forbidden page. */
static tg_status call_packed(run *r, tg_problem p)
{
    const tg_flag which = r->c->way == WAY_PACKED_A ? TG_A_PACKED : TG_B_PACKED;
    tg_problem other = p;
    size_t bytes;
    *(which == TG_A_PACKED ? &other.n : &other.m) = -77;
    tg_status status = tg_pack_size(r->ctx, &other, which, &bytes);
    if (status)
        return status;
    void *packed = guard_take(&r->packed, bytes, (64 - bytes % 64) % 64, 1);
    if (!packed)
        return TG_OUT_OF_MEMORY;
    status = tg_pack(r->ctx, &other, which, packed, bytes);
    (which == TG_A_PACKED ? &p.a : &p.b)->data = packed;
    p.flags |= which;
    if (status || (status = give_workspace(r, &p, 1)))
        return status;
    p.flags &= ~(uint32_t)which;
    return tg_packed_gemm(r->ctx, &p, which, packed);
}

/* The part of a problem from row m0 and column n0 on, of batch item x. */
static tg_problem part_of(const tg_problem *p, int64_t x, int64_t m0, int64_t n0)
{
    tg_problem part = *p;
    const char *a = p->a.data, *b = p->b.data;
    char *c = p->c.data;
    const int64_t a_bytes = (int64_t)tg_type_size(p->a.type);
    const int64_t b_bytes = (int64_t)tg_type_size(p->b.type);
    const int64_t c_bytes = (int64_t)tg_type_size(p->c.type);
    part.batch = 1;
    if (a)
        part.a.data = a + (x * p->a.batch_stride + m0 * p->a.row_stride) * a_bytes;
    if (b)
        part.b.data = b + (x * p->b.batch_stride + n0 * p->b.col_stride) * b_bytes;
    if (c)
        part.c.data =
            c + (x * p->c.batch_stride + m0 * p->c.row_stride + n0 * p->c.col_stride) * c_bytes;
    return part;
}

/* Each item as up to four problems: C is cut once across and once along. */
static tg_status call_grouped(run *r, const tg_problem *p)
{
    const int64_t m[3] = {0, p->m / 3, p->m}, n[3] = {0, p->n - p->n / 4, p->n};
    tg_problem *parts = malloc((size_t)(4 * p->batch + 1) * sizeof *parts);
    int64_t count = 0;
    for (int64_t x = 0; parts && x < p->batch; x++)
        for (int quarter = 0; quarter < 4; quarter++) {
            const int i = quarter / 2, j = quarter % 2;
            parts[count] = part_of(p, x, m[i], n[j]);
            parts[count].m = m[i + 1] - m[i];
            parts[count].n = n[j + 1] - n[j];
            count++;
        }
    tg_status status = give_workspace(r, parts, count);
    if (!status)
        status = tg_gemm_grouped(r->ctx, parts, count);
    free(parts);
    return status;
}

static tg_status call_pointers(run *r, const tg_problem *p)
{
    const size_t batch = (size_t)p->batch + 1;
    const void **inputs = malloc(2 * batch * sizeof *inputs);
    void **outputs = malloc(batch * sizeof *outputs);
    const tg_problem item = part_of(p, 0, 0, 0);
    for (int64_t x = 0; inputs && outputs && x < p->batch; x++) {
        const tg_problem part = part_of(p, x, 0, 0);
        inputs[x] = part.a.data;
        inputs[batch + (size_t)x] = part.b.data;
        outputs[x] = part.c.data;
    }
    tg_status status = give_workspace(r, &item, p->batch > 0);
    if (!status)
        status = tg_gemm_pointers(r->ctx, &item, inputs, inputs + batch, outputs, p->batch);
    free(inputs);
    free(outputs);
    return status;
}

static tg_status call_in_its_way(run *r)
{
    const gemm_case *c = r->c;
    const tg_problem p = problem_of(r);
    const int is_packed = c->way == WAY_PACKED_A || c->way == WAY_PACKED_B;
    const int is_shared =
        c->batch == 1 || (c->batch > 1 && c->share >> (c->way == WAY_PACKED_B) & 1);
    if (is_packed && r->is_host && is_shared && r->reads_inputs)
        return call_packed(r, p);
    if (c->way == WAY_GROUPED)
        return call_grouped(r, &p);
    if (c->way == WAY_POINTERS)
        return call_pointers(r, &p);
    const tg_status status = give_workspace(r, &p, 1);
    if (status)
        return status;
    const int is_blas = c->kind[0] != 'g' && (c->type == TG_F32 || c->type == TG_F64);
    return is_blas ? call_blas(r) : tg_gemm(r->ctx, &p);
}

int case_call(run *r)
{
    if (tg_set_threads(r->ctx, r->c->threads))
        return case_fail(r, "tg_set_threads: %s", tg_last_error(r->ctx));
    const tg_status status = call_in_its_way(r);
    if (status || tg_last_status(r->ctx) || tg_last_error(r->ctx)[0])
        case_fail(r, "status %d: %.200s", (int)status, tg_last_error(r->ctx));
    tg_sync(r->ctx);
    tg_set_workspace(r->ctx, NULL, 0);
    return !status;
}
