/* SPDX-License-Identifier: Apache-2.0
 *
 * What is refused of packed operands: each difference between what was packed and what is to be
 * multiplied, in a sentence, with C as it was. That the products are right, and the same bits, is
 * for test_gemm and api_bits.c. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "test.h"

enum { M = 9, N = 50, K = 70, MOST = 96 };

static double a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];
static _Alignas(64) char memory[1 << 17], other_memory[1 << 17];

static tg_problem problem(tg_type type) { return api_product(M, N, K, type, a, b, c); }

static void poison_c(void)
{
    for (int i = 0; i < MOST * MOST; i++)
        c[i] = 1000 + i;
}

static void refused(tg_context *ctx, tg_status given, tg_status expected, const char *parts,
                    int line)
{
    int touched = 0;
    check_refused(ctx, given, expected, parts, __FILE__, line);
    for (int i = 0; i < MOST * MOST; i++)
        touched += c[i] != 1000 + i;
    test_note(touched == 0, __FILE__, line, "C was touched");
    poison_c();
}
#define REFUSED(call, expected, parts) refused(ctx, call, expected, parts, __LINE__)
/* The multiplication of a changed problem, with B as it was packed, is refused: by each function.
 */
#define USE(change, status, parts)                                            \
    do {                                                                      \
        tg_problem p = problem(TG_F64), q;                                    \
        size_t bytes;                                                         \
        tg_plan plan = TG_PLAN_INIT;                                          \
        change;                                                               \
        REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, memory), status, parts); \
        q = p, q.flags |= TG_B_PACKED, q.b.data = memory;                     \
        REFUSED(tg_gemm(ctx, &q), status, parts);                             \
        REFUSED(tg_gemm_workspace(ctx, &q, &bytes), status, parts);           \
        REFUSED(tg_pick(ctx, &q, &plan), status, parts);                      \
        REFUSED(tg_gemm_grouped(ctx, &q, 1), status, parts);                  \
    } while (0)

static void pack(tg_context *ctx, const tg_problem *p, tg_flag which, void *to)
{
    size_t bytes = 0;
    CHECK_OK(ctx, tg_pack_size(ctx, p, which, &bytes));
    CHECK(bytes <= sizeof memory);
    CHECK_OK(ctx, tg_pack(ctx, p, which, to, bytes));
}

/* ------------------------------------------------------------------------------------- packing */

static void test_pack_arguments(tg_context *ctx)
{
    const tg_flag both = (tg_flag)(TG_A_PACKED | TG_B_PACKED);
    tg_problem p = problem(TG_F64);
    size_t bytes = 0;
    CHECK_INT(tg_pack_size(NULL, &p, TG_A_PACKED, &bytes), TG_BAD_ARGUMENT);
    CHECK_INT(tg_pack(NULL, &p, TG_A_PACKED, memory, sizeof memory), TG_BAD_ARGUMENT);
    CHECK_INT(tg_packed_gemm(NULL, &p, TG_A_PACKED, memory), TG_BAD_ARGUMENT);
    REFUSED(tg_pack_size(ctx, NULL, TG_A_PACKED, &bytes), TG_BAD_ARGUMENT, "problem is NULL");
    REFUSED(tg_pack_size(ctx, &p, TG_A_PACKED, NULL), TG_BAD_ARGUMENT, "bytes is NULL");
    REFUSED(tg_pack_size(ctx, &p, (tg_flag)0, &bytes), TG_BAD_ARGUMENT, "which = 0");
    REFUSED(tg_pack_size(ctx, &p, both, &bytes), TG_BAD_ARGUMENT, "which = 6");
    REFUSED(tg_packed_gemm(ctx, &p, both, memory), TG_BAD_ARGUMENT, "which = 6");
    p.flags = TG_B_PACKED;
    REFUSED(tg_pack_size(ctx, &p, TG_B_PACKED, &bytes), TG_BAD_ARGUMENT, "flags = 0x4");
    p.flags = 0, p.k = -1;
    REFUSED(tg_pack_size(ctx, &p, TG_B_PACKED, &bytes), TG_BAD_ARGUMENT, "k = -1");
    p.k = K, p.n = -2;
    REFUSED(tg_pack_size(ctx, &p, TG_B_PACKED, &bytes), TG_BAD_ARGUMENT, "n = -2");
    p.n = p.k = (int64_t)1 << 44, p.b.row_stride = p.b.col_stride = 0;
    REFUSED(tg_pack_size(ctx, &p, TG_B_PACKED, &bytes), TG_BAD_ARGUMENT, "B|address space");
    p = problem(TG_F64), p.b.type = TG_F32;
    REFUSED(tg_pack_size(ctx, &p, TG_B_PACKED, &bytes), TG_NOT_SUPPORTED, "b.type = f32");
    p = problem(TG_F64);
    CHECK_OK(ctx, tg_pack_size(ctx, &p, TG_B_PACKED, &bytes));
    memset(memory, 0x55, sizeof memory);
    REFUSED(tg_pack(ctx, &p, TG_B_PACKED, memory, bytes - 1), TG_BAD_ARGUMENT, "bytes = ");
    REFUSED(tg_pack(ctx, &p, TG_B_PACKED, NULL, bytes), TG_BAD_ARGUMENT, "packed|NULL");
    REFUSED(tg_pack(ctx, &p, TG_B_PACKED, memory + 32, bytes), TG_BAD_ARGUMENT, "packed|64");
    p.b.data = NULL;
    REFUSED(tg_pack(ctx, &p, TG_B_PACKED, memory, bytes), TG_BAD_ARGUMENT, "b is NULL");
    p.b.data = (char *)memory + 1;
    REFUSED(tg_pack(ctx, &p, TG_B_PACKED, memory, bytes), TG_BAD_ARGUMENT, "b = |not aligned");
    p.b.data = memory + bytes - sizeof(double);
    REFUSED(tg_pack(ctx, &p, TG_B_PACKED, memory, bytes), TG_BAD_ARGUMENT, "overlaps");
    for (size_t i = 0; i < sizeof memory; i++)
        if (memory[i] != 0x55)
            bytes = 0;
    CHECK_SAY(bytes > 0, "a refused tg_pack wrote");
}

/* In whole panels, of their own type. */
static void test_pack_sizes(tg_context *ctx)
{
    static const tg_type types[] = {TG_F64, TG_F32, TG_F16, TG_BF16, TG_I8, TG_U8};
    for (int i = 0; i < 6 * 2; i++) {
        const int64_t side = 4000;
        const tg_type type = types[i / 2];
        tg_problem p = api_product(M, side, side, type, a, b, c);
        size_t bytes = 0;
        p.m = i % 2 ? side : M;
        p.c.type = tg_type_size(type) == 1 ? TG_I32 : type;
        CHECK_OK(ctx, tg_pack_size(ctx, &p, i % 2 ? TG_A_PACKED : TG_B_PACKED, &bytes));
        const double times = (double)bytes / (double)(side * side) / (double)tg_type_size(type);
        CHECK_SAY(times >= 1 && times < 1.05, "%s takes %.2f times its own size",
                  tg_type_name(type), times);
    }
}

/* --------------------------------------------------------------------------------------- using */

static void test_mismatches(tg_context *ctx)
{
    tg_problem p = problem(TG_F64);
    p.m = -1, p.a.data = NULL, p.c.data = NULL; /* not looked at */
    pack(ctx, &p, TG_B_PACKED, memory);
    USE(p.k = K - 1, TG_BAD_ARGUMENT, "b was packed for k = 70 and n = 50|k = 69");
    USE(p.n = N - 1, TG_BAD_ARGUMENT, "b was packed for k = 70 and n = 50|n = 49");
    USE(p.a.type = p.b.type = p.c.type = TG_F32, TG_BAD_ARGUMENT, "packed as f64|b.type = f32");
    USE(p.flags = TG_A_PACKED, TG_NOT_SUPPORTED, "flags = 0x6");
    p = problem(TG_F64);
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, NULL), TG_BAD_ARGUMENT, "b = |no packed operand");
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, b), TG_BAD_ARGUMENT, "b = 0x|no packed operand");
    REFUSED(tg_packed_gemm(ctx, &p, TG_A_PACKED, memory + 8), TG_BAD_ARGUMENT, "a = 0x|no packed");
    p.m = N, p.n = M, p.a.row_stride = K, p.c.row_stride = M;
    REFUSED(tg_packed_gemm(ctx, &p, TG_A_PACKED, memory), TG_BAD_ARGUMENT, "a is a packed B");
    p = problem(TG_F64), p.c.data = memory + 512;
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, memory), TG_BAD_ARGUMENT, "C overlaps B");
    memcpy(other_memory, memory, sizeof memory);
    other_memory[8] = '9'; /* the version follows the magic */
    p = problem(TG_F64);
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, other_memory), TG_BAD_ARGUMENT, "version 9");
    other_memory[0] = 'T';
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, other_memory), TG_BAD_ARGUMENT, "no packed");
}

/* What was packed for one tiling is not taken for another. */
static void test_tiles(tg_context *ctx)
{
    const tg_tile small = tg_tile_at(tg_tile_find("t64x64x16_v2"));
    const tg_tile odd = tg_tile_at(tg_tile_find("t24x40x3"));
    tg_problem p = problem(TG_F64);
    pack(ctx, &p, TG_B_PACKED, memory);
    CHECK_OK(ctx, tg_force(ctx, &small));
    USE((void)0, TG_BAD_TILE, "b was packed for the tiling|64x64x16/32x32/4x4/2/2 is forced");
    pack(ctx, &p, TG_B_PACKED, memory);
    CHECK_OK(ctx, tg_packed_gemm(ctx, &p, TG_B_PACKED, memory));
    poison_c();
    CHECK_OK(ctx, tg_force(ctx, &odd));
    USE((void)0, TG_BAD_TILE, "64x64x16/32x32/4x4/2/2, and 24x40x3|is forced");
    CHECK_OK(ctx, tg_force(ctx, NULL));
    CHECK_OK(ctx, tg_packed_gemm(ctx, &p, TG_B_PACKED, memory)); /* which says its tiling */
    poison_c();
}

/* Words of A are made for the type of B. */
static void test_words(tg_context *ctx)
{
    const tg_tile tile = tg_tile_at(tg_tile_find("c13x32_i8"));
    tg_problem p = problem(TG_I8);
    p.c.type = TG_I32;
    if (tg_tile_refusal(ctx, &tile, TG_I8)) {
        test_print("no instruction for words here\n");
        return;
    }
    CHECK_OK(ctx, tg_force(ctx, &tile));
    pack(ctx, &p, TG_A_PACKED, memory);
    p.b.type = TG_U8;
    REFUSED(tg_packed_gemm(ctx, &p, TG_A_PACKED, memory), TG_BAD_ARGUMENT,
            "a was packed for b.type = i8, and here it is u8");
    p.b.type = TG_I8;
    CHECK_OK(ctx, tg_packed_gemm(ctx, &p, TG_A_PACKED, memory));
    poison_c();
    CHECK_OK(ctx, tg_force(ctx, NULL));
}

/* A context that is limited to a lesser instruction set has other registers. */
static void test_instruction_sets(tg_context *ctx)
{
    tg_context *lesser;
    tg_problem p = problem(TG_F64);
    const char *isa = getenv("TILEGEMM_ISA");
    char before[32];
    snprintf(before, sizeof before, "%s", isa ? isa : "");
    setenv("TILEGEMM_ISA", "portable", 1);
    CHECK_INT(tg_open(&lesser, "cpu", 0), TG_OK);
    setenv("TILEGEMM_ISA", before, 1);
    pack(ctx, &p, TG_B_PACKED, memory);
    const tg_limits x = tg_device_limits(ctx), y = tg_device_limits(lesser);
    if (x.registers != y.registers || x.vec_bytes != y.vec_bytes)
        CHECK_REFUSED(lesser, tg_packed_gemm(lesser, &p, TG_B_PACKED, memory), TG_BAD_ARGUMENT,
                      "b was packed for|registers of");
    tg_close(lesser);
    setenv("TILEGEMM_ISA", "avx512", 1); /* tiles sum bf16 in another order */
    CHECK_INT(tg_open(&lesser, "cpu", 0), TG_OK);
    setenv("TILEGEMM_ISA", before, 1);
    if (tg_device_limits(lesser).vec_bytes == x.vec_bytes && x.matrix & TG_CPU_AMX &&
        !(tg_device_limits(lesser).matrix & TG_CPU_AMX)) {
        p = problem(TG_BF16);
        pack(lesser, &p, TG_B_PACKED, memory);
        REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, memory), TG_BAD_ARGUMENT,
                "b was packed for other instructions|bf16");
    }
    tg_close(lesser);
}

/* Nothing is read where nothing is to be read, and nothing is written where nothing is. */
static void test_empty_packed(tg_context *ctx)
{
    static const _Alignas(64) char nothing[sizeof memory / 64];
    tg_problem p = problem(TG_F64);
    tg_plan plan = TG_PLAN_INIT;
    p.alpha = 0, p.beta = 1;
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, NULL), TG_OK, "");
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, (const void *)64), TG_OK, "");
    p.alpha = 1, p.m = 0;
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, NULL), TG_OK, "");
    p = problem(TG_F64), p.n = 0, p.b.data = NULL;
    pack(ctx, &p, TG_B_PACKED, memory);
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, memory), TG_OK, "");
    p = problem(TG_F64), p.m = 0, p.k = INT64_MAX, p.flags = TG_B_PACKED, p.b.data = nothing;
    CHECK_OK(ctx, tg_pick(ctx, &p, &plan)); /* no operand is read */
    p = problem(TG_F64), p.k = 0, p.beta = 1, p.b.data = NULL;
    pack(ctx, &p, TG_B_PACKED, memory);
    REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, memory), TG_OK, "");
}

static int is_product(void)
{
    int wrong = 0;
    for (int x = 0; x < M * N; x++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += a[x / N * K + k] * b[k * N + x % N];
        wrong += c[x] != sum;
    }
    return wrong == 0;
}

/* Packed for two tilings and used in turns: the plan of the one is not used for the other. */
static void test_turns(tg_context *ctx)
{
    static const char *const names[] = {"t64x64x16_v2", "t24x40x3"};
    char *const packed[] = {memory, other_memory};
    const tg_problem p = problem(TG_F64);
    for (int i = 0; i < MOST * MOST; i++) {
        a[i] = i % 11 - 5;
        b[i] = i % 7 - 3;
    }
    for (int i = 0; i < 2; i++) {
        const tg_tile tile = tg_tile_at(tg_tile_find(names[i]));
        CHECK_OK(ctx, tg_force(ctx, &tile));
        pack(ctx, &p, TG_B_PACKED, packed[i]);
    }
    CHECK_OK(ctx, tg_force(ctx, NULL));
    for (int turn = 0; turn < 6; turn++) {
        poison_c();
        CHECK_OK(ctx, tg_packed_gemm(ctx, &p, TG_B_PACKED, packed[turn / 2 % 2]));
        CHECK_SAY(is_product(), "wrong in turn %d", turn);
    }
    poison_c();
}

void test_packed(tg_context *ctx)
{
    tg_problem p = problem(TG_F64);
    size_t bytes;
    poison_c();
    if (!api_is_cpu()) {
        REFUSED(tg_pack_size(ctx, &p, TG_B_PACKED, &bytes), TG_NOT_SUPPORTED, "not packed");
        REFUSED(tg_pack(ctx, &p, TG_B_PACKED, memory, 64), TG_NOT_SUPPORTED, "not packed");
        REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, memory), TG_NOT_SUPPORTED, "not packed");
        void *far; /* where the host may not read */
        CHECK_OK(ctx, tg_alloc(ctx, 4096, &far));
        REFUSED(tg_packed_gemm(ctx, &p, TG_B_PACKED, far), TG_NOT_SUPPORTED, "not packed");
        CHECK_OK(ctx, tg_free(ctx, far));
        return;
    }
    test_pack_arguments(ctx);
    test_pack_sizes(ctx);
    test_mismatches(ctx);
    test_tiles(ctx);
    test_words(ctx);
    test_instruction_sets(ctx);
    test_empty_packed(ctx);
    test_turns(ctx);
}
