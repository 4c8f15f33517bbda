/* SPDX-License-Identifier: Apache-2.0
 *
 * Tilings in words: names, text that reads back as the same tiling, and the sentence that refuses
 * one, each rule of legality at its border. */
#include "tile.h"

#include <limits.h>
#include <string.h>

#include "gemm.h"
#include "machines.h"
#include "test.h"

/* ------------------------------------------------------------------------- names and text */

static void check_round_trip(tg_tile t)
{
    char text[96], cut[8];
    tg_tile back;
    int length = tg_tile_print(&t, text, sizeof text);
    CHECK_INT(length, strlen(text));
    CHECK(length < 96);
    CHECK_SAY(tg_tile_parse(text, &back, NULL, 0) == TG_OK && tg_tile_same(t, back),
              "%s does not read back as itself", text);
    CHECK_INT(tg_tile_print(&t, NULL, 0), length);
    CHECK_INT(tg_tile_print(&t, cut, sizeof cut), length);
    CHECK(strlen(cut) == sizeof cut - 1 && strncmp(cut, text, sizeof cut - 1) == 0);
}

static int random_number(uint64_t h)
{
    return (int)(h >> 30 & 7 ? h % 300 : h % (TG_TILE_MAX + 1));
}

static void test_names(void)
{
    tg_tile t;
    for (int row = 0; row < tg_tile_count(); row++) {
        CHECK_INT(tg_tile_find(tg_tile_name(row)), row);
        CHECK(tg_tile_note(row) && *tg_tile_note(row));
        CHECK(!tg_tile_parse(tg_tile_name(row), &t, NULL, 0) && tg_tile_same(t, tg_tile_at(row)));
        check_round_trip(tg_tile_at(row));
        for (int other = 0; other < row; other++)
            CHECK_SAY(!tg_tile_same(tg_tile_at(row), tg_tile_at(other)), "%s and %s are the same",
                      tg_tile_name(row), tg_tile_name(other));
    }
    const tg_tile none = tg_tile_at(-1);
    CHECK(none.thread.m == 0 && none.block.k == 0 && tg_tile_at(tg_tile_count()).vec == 0);
    CHECK(!tg_tile_name(-1) && !tg_tile_name(tg_tile_count()) && !tg_tile_note(INT_MAX));
    CHECK_INT(tg_tile_find("no such row"), -1);
    CHECK_INT(tg_tile_find(NULL), -1);
    for (uint64_t i = 0; i < 3000; i++) {
        int x[14];
        for (uint64_t j = 0; j < 14; j++)
            x[j] = random_number(test_hash(i * 64 + j));
        check_round_trip((tg_tile){{x[0], x[1], x[2]},
                                   {x[3], x[4]},
                                   {x[5], x[6]},
                                   x[7],
                                   x[8],
                                   i % 3 ? 1 : x[9],
                                   (tg_form)(x[10] % 3),
                                   {i % 2 ? 1 : x[11], i % 2 ? 1 : x[12], i % 2 ? 1 : x[13]}});
    }
}

static void test_bad_text(void)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"", "no row"},
        {"v0", "\"v0\"|no row"},
        {"V0_global", "V0_global"},
        {"128x128/64x64/8x8/4/2", "128x128|block"},
        {"128x128x8x8/64x64/8x8/4/2", "block"},
        {"128x128x8/64/8x8/4/2", "warp"},
        {"128x128x8/64x64/8/4/2", "thread"},
        {"128x128x8/64x64/8x8/x/2", "vec"},
        {"128x128x8/64x64/8x8/4x4/2", "vec"},
        {"128x128x8/64x64/8x8/4/", "stages"},
        {"128x128x8/64x64/8x8/4", "stages"},
        {"128x128x8/64x64/8x8", "vec"},
        {"128x128x8/64x64", "thread"},
        {"128x128x8", "warp"},
        {"/64x64/8x8/4/2", "block"},
        {"-128x128x8/64x64/8x8/4/2", "block"},
        {"+128x128x8/64x64/8x8/4/2", "block"},
        {"0128x128x8/64x64/8x8/4/2", "block"},
        {" 128x128x8/64x64/8x8/4/2", "block"},
        {"128x128x8/64x64/8x8/4/2 ", "stages"},
        {"128X128X8/64x64/8x8/4/2", "block"},
        {"128x128x8.5/64x64/8x8/4/2", "block"},
        {"1048577x128x8/64x64/8x8/4/2", "block"},
        {"99999999999999999999x128x8/64x64/8x8/4/2", "block"},
        {"128x128x8/64x64/8x8/4/2/", "none of"},
        {"128x128x8/64x64/8x8/4/2/slice2", "slice2"},
        {"128x128x8/64x64/8x8/4/2/slices", "slices"},
        {"128x128x8/64x64/8x8/4/2/slicesx", "slicesx"},
        {"128x128x8/64x64/8x8/4/2/inst1x1", "inst1x1"},
        {"128x128x8/64x64/8x8/4/2/DOT", "DOT"},
        {"128x128x8/64x64/8x8/4/2/dot/dot", "to be written"},
        {"128x128x8/64x64/8x8/4/2/outer_t", "to be written"},
        {"128x128x8/64x64/8x8/4/2/slices1", "to be written"},
        {"128x128x8/64x64/8x8/4/2/dot/slices2", "slices2/dot"},
        {"128x128x8/64x64/8x8/4/2/inst1x1x1", "to be written"},
    };
    const tg_tile before = {{1, 2, 3}, {4, 5}, {6, 7}, 8, 9, 10, TG_DOT, {11, 12, 13}};
    tg_tile tile = before;
    char reason[300];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_SAY(tg_tile_parse(bad[i].text, &tile, reason, sizeof reason) == TG_BAD_ARGUMENT,
                  "\"%s\" was taken", bad[i].text);
        CHECK_TEXT(reason, bad[i].reason);
        CHECK(tg_tile_same(tile, before));
        CHECK_INT(tg_tile_parse(bad[i].text, &tile, NULL, 0), TG_BAD_ARGUMENT);
        CHECK_INT(tg_tile_parse(bad[i].text, &tile, reason, 1), TG_BAD_ARGUMENT);
        CHECK(reason[0] == '\0');
    }
    CHECK_INT(tg_tile_parse(NULL, &tile, reason, sizeof reason), TG_BAD_ARGUMENT);
    CHECK_TEXT(reason, "text|NULL");
    CHECK_INT(tg_tile_parse("v0_global", NULL, reason, sizeof reason), TG_BAD_ARGUMENT);
    CHECK_TEXT(reason, "tile|NULL");
}

/* ------------------------------------------------------------------------------- legality */

#define LEGAL \
    {128, 128, 16}, {64, 64}, {8, 8}, 4, 2, 1, TG_OUTER_T, { 1, 1, 1 }
#define OVER (TG_TILE_MAX + 1)

static void check_refusal(tg_tile t, tg_limits l, int elem_bytes, const char *sentence)
{
    char text[200];
    tg_verdict verdict = tg_tile_check(t, l, elem_bytes);
    CHECK_SAY(verdict.rule != NULL, "legal, not \"%s\"", sentence);
    if (verdict.rule) {
        tg_verdict_print(verdict, text, sizeof text);
        CHECK_TEXT(text, sentence);
    }
}

/* One number of a legal tiling changed, and what is then said of it on a 4x8 grid. */
static void check_refusals(tg_limits l)
{
    tg_tile tile, *t = &tile;
    const struct {
        int *number, value;
        const char *sentence;
    } table[] = {
        {&t->thread.m, 0, "thread.m = 0 is less than 1"},
        {&t->thread.m, OVER, "thread.m = 1048577 is more than 1048576"},
        {&t->thread.n, -3, "thread.n = -3 is less than 1"},
        {&t->thread.n, OVER, "thread.n = 1048577 is more than 1048576"},
        {&t->block.m, 0, "block.m = 0 is "},
        {&t->block.m, INT_MAX, "block.m = 2147483647 is more than 1048576"},
        {&t->block.n, INT_MIN, "block.n = -2147483648 is less than 1"},
        {&t->block.n, OVER, "block.n = 1048577 is more than 1048576"},
        {&t->block.k, 0, "block.k = 0 is "},
        {&t->block.k, OVER, "block.k = 1048577 is more than 1048576"},
        {&t->warp.m, -1, "warp.m = -1 is less than 1"},
        {&t->warp.m, OVER, "warp.m = 1048577 is more than 1048576"},
        {&t->warp.n, -1, "warp.n = -1 is less than 1"},
        {&t->warp.n, OVER, "warp.n = 1048577 is more than 1048576"},
        {&t->vec, 0, "vec = 0 is less than 1"},
        {&t->vec, OVER, "vec = 1048577 is more than 1048576"},
        {&t->stages, -1, "stages = -1 is less than 0"},
        {&t->stages, 17, "stages = 17 is more than 16"},
        {&t->slices, 0, "slices = 0 is less than 1"},
        {&t->slices, 65, "slices = 65 is more than 64"},
        {(int *)&t->form, 3, "form = 3 is more than 2"},
        {&t->inst.m, 16, "inst starts with 16x1"},
        {&t->inst.n, 8, "inst starts with 1x8"},
        {&t->inst.k, 4, "FMA, 1x1x1, only"},
        {&t->inst.m, 0, "inst.m = 0 is less than 1"},
        {&t->inst.m, OVER, "inst.m = 1048577 is more than 1048576"},
        {&t->inst.n, -1, "inst.n = -1 is less than 1"},
        {&t->inst.n, OVER, "inst.n = 1048577 is more than 1048576"},
        {&t->inst.k, 0, "inst.k = 0 is less than 1"},
        {&t->inst.k, OVER, "inst.k = 1048577 is more than 1048576"},
        {&t->vec, 3, "vec = 3 is not a power of 2"},
        {&t->vec, 8, "vec is 32 bytes, and one instruction moves 16"},
        {&t->thread.n, 6, "thread.n = 6 is not a multiple of vec = 4"},
        {&t->warp.m, 48, "warp.m = 48 is not a multiple of the unit's 32"},
        {&t->warp.n, 96, "warp.n = 96 is not a multiple of the unit's 64"},
        {&t->block.m, 96, "block.m = 96 is not a multiple of warp.m = 64"},
        {&t->block.n, 65, "block.n = 65 is not a multiple of warp.n = 64"},
        {&t->slices, 3, "block.k = 16 is not a multiple of slices x inst.k = 3"},
        {&t->block.m, 64 * 32, "a block has 2048 threads, and the device allows 1024"},
        {&t->block.k, 32, "a block takes 65536 bytes, and its fast memory holds 49152"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        *t = (tg_tile){LEGAL};
        *table[i].number = table[i].value;
        check_refusal(*t, l, 4, table[i].sentence);
    }
}

#define LEGAL_MATRIX \
    {128, 128, 16}, {64, 32}, {2, 2}, 2, 4, 1, TG_OUTER, { 16, 8, 8 }

/* The same for matrix instructions, on a device that has those of 16 rows. */
static void check_matrix_refusals(tg_limits l)
{
    tg_tile tile, *t = &tile;
    const struct {
        int *number, value;
        const char *sentence;
    } table[] = {
        {&t->inst.m, 8, "inst.m = 8, and this device's matrix instructions have 16 rows"},
        {&t->inst.n, 16, "makes 256 elements of C, and the lanes' thread tiles hold 128"},
        {&t->thread.m, 4, "makes 128 elements of C, and the lanes' thread tiles hold 256"},
        {&t->inst.k, 32, "block.k = 16 is not a multiple of slices x inst.k = 32"},
        {&t->slices, 4, "block.k = 16 is not a multiple of slices x inst.k = 32"},
        {&t->slices, 2, "slices = 2, and matrix instructions take 1"},
        {&t->stages, 2, "stages = 2 is less than the 3"},
        {&t->warp.m, 8, "warp.m = 8 is not a multiple of the unit's 16"},
        {&t->warp.n, 36, "warp.n = 36 is not a multiple of the unit's 8"},
        {&t->warp.n, 8, "warp.n is 64 bytes, no multiple of all banks' 128"},
        {&t->block.k, 8, "block.k is 64 bytes, no multiple of all banks' 128"},
        {&t->warp.n, 128, "a thread accumulates in 512 registers, and has 255"},
        {&t->block.k, 64, "a block takes 524352 bytes, and its fast memory holds 232448"},
    };
    const tg_tile legal = {LEGAL_MATRIX};
    CHECK(tg_tile_check(legal, l, 8).rule == NULL);
    CHECK_INT(tg_tile_accumulators(legal, l, 8), 128);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        *t = legal;
        *table[i].number = table[i].value;
        check_refusal(*t, l, 8, table[i].sentence);
    }
    check_refusal(legal, l, 4, "multiply 8-byte elements here, and these have 4 bytes");
    l.matrix = 8;
    const tg_tile of_8 = {{48, 64, 16}, {24, 32}, {1, 2}, 2, 4, 1, TG_OUTER, {8, 8, 4}};
    check_refusal(of_8, l, 8, "warp.m is 192 bytes, no multiple of all banks' 128");
    l.matrix = 0;
    check_refusal(legal, l, 8, "inst starts with 16x8: this device multiplies with FMA");
}

/* AMD's, on a gfx90a. */
static void check_amd_refusals(tg_limits l)
{
    const tg_tile legal = {{128, 64, 16}, {64, 32}, {2, 2}, 2, 2, 1, TG_OUTER_T, {16, 16, 4}};
    tg_tile tile, *t = &tile;
    const struct {
        int *number, value;
        const char *sentence;
    } table[] = {
        {&t->inst.m, 32, "inst.m = 32, inst.n, inst.k: no instruction here for 4-byte elements"},
        {&t->thread.n, 4, "makes 256 elements of C, and the lanes' thread tiles hold 512"},
        {&t->stages, 3, "stages = 3, and matrix instructions take 2 here"},
        {&t->slices, 2, "slices = 2, and matrix instructions take 1"},
        {&t->vec, 1, "vec x inst.n is 64 bytes, no multiple of all banks' 128"},
        {&t->vec, 4, "warp.n = 32 is not a multiple of vec x inst.n = 64"},
        {&t->warp.m, 16, "warp.m is 64 bytes, no multiple of all banks' 128"},
        {&t->warp.n, 16, "warp.n is 64 bytes, no multiple of all banks' 128"},
        {&t->block.k, 8, "block.k is 32 bytes, no multiple of the 64"},
        {&t->warp.m, 32, "B's part of a stage is 4096 bytes, and all threads move 8192 at once"},
        {&t->block.n, 256, "A's part of a stage is 8192 bytes, and all threads move 16384 at once"},
    };
    CHECK(tg_tile_check(legal, l, 4).rule == NULL);
    CHECK_INT(tg_tile_fast_bytes(legal, 4), 24576);
    check_refusal(legal, l, 8, "a block takes 49152 bytes, and two are to share 65536");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        *t = legal;
        *table[i].number = table[i].value;
        check_refusal(*t, l, 4, table[i].sentence);
    }
    const tg_tile tall = {{128, 64, 16}, {32, 64}, {2, 2}, 4, 2, 1, TG_OUTER_T, {16, 16, 4}};
    check_refusal(tall, l, 4, "warp.m = 32 is not a multiple of vec x inst.m = 64");
    l.matrix = 0x908;
    CHECK(tg_tile_check(legal, l, 4).rule == NULL);
    check_refusal(legal, l, 8, "no instruction here for 8-byte elements");
}

/* FMAs of all lanes as an instruction: that of waves of 64, and of 32. */
static void check_fma_refusals(tg_limits l)
{
    tg_tile fma = {{128, 128, 16}, {64, 64}, {1, 1}, 4, 2, 1, TG_OUTER_T, {8, 8, 1}};
    CHECK(tg_tile_check(fma, l, 4).rule == NULL);
    check_refusal(fma, l, 2, "no instruction here for 2-byte elements");
    fma.block.k = 8, fma.vec = 2;
    CHECK(tg_tile_check(fma, l, 8).rule == NULL);
    l.matrix = 0x90a;
    check_refusal(fma, l, 8, "inst.k = 1: 8-byte elements have matrix instructions here");
    fma.block.k = 16, fma.vec = 4;
    fma.inst.m = 4;
    check_refusal(fma, l, 4, "inst.m = 4, inst.n, inst.k: no instruction here");
    l.lanes.m = 4;
    l.matrix = 0x1030;
    CHECK(tg_tile_check(fma, l, 4).rule == NULL);
    fma.inst.m = 8;
    check_refusal(fma, l, 4, "inst.m = 8, inst.n, inst.k: no instruction here");
    l.matrix = 8; /* NVIDIA's */
    check_refusal(fma, l, 8, "makes 64 elements of C, and the lanes' thread tiles hold 32");
}

/* Words of a CPU: four bytes by VNNI, a pair of bf16 or 64 bytes of it by AMX. */
static void check_cpu_refusals(tg_limits l)
{
    tg_tile four = tg_tile_at(tg_tile_find("c13x32_i8"));
    tg_tile tiles = tg_tile_at(tg_tile_find("c32x32_bf16"));
    CHECK(tg_tile_check(four, l, 1).rule == NULL && tg_tile_check(tiles, l, 2).rule == NULL);
    check_refusal(four, l, 2, "inst.k = 4: no such instruction here for 2-byte elements");
    check_refusal(tiles, l, 4, "inst.k = 32: no such instruction here for 4-byte elements");
    tiles.thread.m = 20;
    check_refusal(tiles, l, 2, "thread.m = 20 is not a multiple of inst.m = 16");
    four.stages = 0;
    check_refusal(four, l, 1, "stages = 0, and words of 4 elements are staged");
    four.stages = 1;
    l.matrix = TG_CPU_AMX;
    check_refusal(four, l, 1, "inst.k = 4: no such instruction here");
    l.matrix = TG_CPU_VNNI;
    CHECK(tg_tile_check(four, l, 1).rule == NULL);
    check_refusal(tg_tile_at(tg_tile_find("c32x32_i8")), l, 1, "inst.k = 64: no such instruction");
    const tg_tile pair = tg_tile_at(tg_tile_find("c8x48_bf16"));
    check_refusal(pair, l, 2, "inst.k = 2: no such instruction here for 2-byte elements");
    l.matrix = TG_CPU_BF16;
    CHECK(tg_tile_check(pair, l, 2).rule == NULL);
    check_refusal(pair, l, 4, "inst.k = 2: no such instruction here for 4-byte elements");
    CHECK(tg_tile_keeps_order(pair, l, TG_BF16));
    CHECK(!tg_tile_keeps_order(tg_tile_at(tg_tile_find("c8x48")), l, TG_BF16));
    CHECK(tg_tile_keeps_order(tg_tile_at(tg_tile_find("c8x48")), l, TG_F16));
}

static void test_rules(void)
{
    const tg_limits gpu = {{4, 8}, 1024, 16, 255, 4, KIB(48), 0, 0, 0, 100, 0, 0};
    const tg_tile legal = {LEGAL};
    const tg_tile many = {{512, 256, 2}, {64, 128}, {16, 16}, 4, 1, 1, TG_OUTER_T, {1, 1, 1}};
    char text[200];
    CHECK(tg_tile_check(legal, gpu, 4).rule == NULL);
    check_refusals(gpu);
    check_matrix_refusals((tg_limits){{4, 8}, 1024, 16, 255, 4, KIB(227), 0, 0, 0, 132, 16, 0});
    check_amd_refusals((tg_limits){{8, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 0, 104, 0x90a, 0});
    check_fma_refusals((tg_limits){{8, 8}, 1024, 16, 255, 4, KIB(64), 0, 0, 0, 60, 0x906, 0});
    check_cpu_refusals((tg_limits){
        {1, 1}, 0, 64, 32, 64, 0, KIB(32), KIB(1024), KIB(32768), 8, TG_CPU_VNNI | TG_CPU_AMX, 0});
    tg_verdict_print(tg_tile_check(many, gpu, 4), text, sizeof text);
    CHECK_TEXT(text, "a thread accumulates in 256 registers, and has 255");
    tg_limits at_border = gpu;
    at_border.threads = (int)tg_tile_threads(legal, gpu.lanes);
    at_border.registers = (int)tg_tile_accumulators(legal, gpu, 4);
    at_border.fast_bytes = tg_tile_staged_bytes(legal, 4);
    at_border.vec_bytes = 16;
    CHECK(tg_tile_check(legal, at_border, 4).rule == NULL);
    at_border.threads = at_border.fast_bytes = 0;
    CHECK(tg_tile_check(legal, at_border, 4).rule == NULL);
    CHECK(tg_tile_check(legal, gpu, 8).rule != NULL);
}

/* Whatever the numbers are, the answer is a sentence and not a trap. */
static void test_any_numbers(void)
{
    static const int numbers[] = {0, 1, 2, 3, -1, 7, 64, OVER - 1, OVER, INT_MAX, INT_MIN};
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    for (uint64_t i = 0; i < 60000; i++) {
        int x[14];
        for (uint64_t j = 0; j < 14; j++) {
            uint64_t h = test_hash(i * 16 + j);
            x[j] = h >> 40 & 1 ? (int)(h % 5) : numbers[h % NUMBERS];
        }
        if (i % 4)
            x[11] = x[12] = x[13] = 1;
        const tg_tile t = {
            {x[0], x[1], x[2]},   {x[3], x[4]},         {x[5], x[6]}, x[7], x[8], x[9],
            (tg_form)(x[10] & 3), {x[11], x[12], x[13]}};
        const tg_limits l = machines[i % MACHINES].limits;
        char text[200];
        tg_verdict verdict = tg_tile_check(t, l, i / 7 % 2 ? 8 : 4);
        if (verdict.rule)
            tg_verdict_print(verdict, text, sizeof text);
        else
            CHECK(tg_tile_same(tg_tile_fill(t, l, 4), t) || t.block.m == 0 || t.block.n == 0 ||
                  t.block.k == 0 || t.warp.m == 0 || t.warp.n == 0);
    }
}

int main(void)
{
    test_names();
    test_bad_text();
    test_rules();
    test_any_numbers();
    return test_close();
}
