/* SPDX-License-Identifier: Apache-2.0
 *
 * The geometry of a tiling: everything that follows from a row of tiles.def and a device's limits,
 * stated once for C11, C++20 and device code.
 *
 *   block |  warp  |      unit = what one warp computes in one step = thread x lanes
 *   ------+--------+---   rep  = warp / unit: the unit repeats over the warp tile
 *         | u u u  |      A CPU core is a warp of one lane: there, unit = thread, and the repeats
 *         | u u u  |      are the two loops around the micro-kernel.
 *
 * A lane holds its thread tile in pieces of vec elements that lie a whole lane row apart, so that
 * neighbouring lanes move neighbouring vectors:
 *
 *   columns of a unit, thread.n = 4, vec = 2, 3 lanes:   00 11 22 | 00 11 22   (the lane of each)
 */
#ifndef TG_TILE_H
#define TG_TILE_H

#include <tilegemm.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TG_FN __host__ __device__ constexpr inline
#elif defined(__cplusplus)
#define TG_FN constexpr inline
#else
#define TG_FN static inline
#endif

/* One number of a tiling must lie in 1 .. TG_TILE_MAX; products of three then fit an int64_t. */
#define TG_TILE_MAX (1 << 20)

/* Fast memory serves so many bytes at once, one word from each of its banks. */
#define TG_BANK_BYTES 128

/* Slow memory moves so many neighbouring bytes at least. */
#define TG_SECTOR_BYTES 64

TG_FN int64_t tg_min(int64_t x, int64_t y) { return x < y ? x : y; }
TG_FN int64_t tg_max(int64_t x, int64_t y) { return x > y ? x : y; }
TG_FN int64_t tg_ceil_div(int64_t x, int64_t by) { return x / by + (x % by != 0); }
TG_FN int64_t tg_round_up(int64_t x, int64_t to) { return tg_ceil_div(x, to) * to; }
TG_FN int64_t tg_round_down(int64_t x, int64_t to) { return x / to * to; }
TG_FN int64_t tg_clamp(int64_t x, int64_t low, int64_t high)
{
    return tg_max(low, tg_min(x, high));
}

TG_FN int tg_in(int x, int low) { return x >= low && x <= TG_TILE_MAX; }

/* Bytes of an element of A and B as the kernels of a tiling take it. The FMAs of a CPU take f32 and
 * f64 only: what is shorter than f32 is converted on its way to them, and f16 always is. */
TG_FN int tg_kernel_bytes(tg_type type, tg_limits l, tg_tile t)
{
    int bytes = 0;
#define TG_X(name, value, text, ctype) bytes = type == name ? (int)sizeof(ctype) : bytes;
    TG_TYPE_LIST(TG_X)
#undef TG_X
    const int is_converted = l.l1 > 0 && bytes > 0 && (t.inst.k == 1 || type == TG_F16);
    return is_converted ? (int)tg_max(bytes, (int)sizeof(float)) : bytes;
}

/* The columns of a row of tiles.def as the initialiser of a tg_tile. */
#define TG_MN(m, n) \
    {               \
        m, n        \
    }
#define TG_INST(m, n, k) \
    {                    \
        m, n, k          \
    }
#define TG_FMA TG_INST(1, 1, 1)
#define TG_ROW(block, warp, thread, vec, stages, slices, form, ...)                     \
    {                                                                                   \
        TG_INST block, TG_MN warp, TG_MN thread, vec, stages, slices, form, __VA_ARGS__ \
    }

TG_FN int tg_tile_is_fma(tg_tile t) { return t.inst.m == 1 && t.inst.n == 1 && t.inst.k == 1; }

/* How many elements that are neighbours along k a CPU's kernel takes as one word. */
TG_FN int tg_tile_word(tg_tile t, int elem_bytes)
{
    return t.inst.k == 1 || elem_bytes > 4 ? 1 : 4 / elem_bytes;
}

/* AMD targets, 0x90a for gfx90a: CDNA's matrix instructions, or RDNA's from the third on. */
TG_FN int tg_amd_is_cdna(int target)
{
    return target == 0x908 || target == 0x90a || target == 0x942;
}
TG_FN int tg_amd_is_rdna(int target) { return target >> 8 == 0x11 || target >> 8 == 0x12; }

/* Does the target have the instruction for elements of that size? */
TG_FN int tg_amd_has(int target, tg_mnk i, int elem_bytes)
{
    const int is_cdna2 = tg_amd_is_cdna(target) && target != 0x908;
    const int m = i.m == i.n ? i.m : 0;
    if (i.k == 1) /* the FMAs of a wave's lanes */
        return elem_bytes >= 4 && i.n == 8 && i.m == (target < 0x1000 ? 8 : 4);
    if (tg_amd_is_rdna(target))
        return elem_bytes <= 2 && m == 16 && i.k == 16;
    switch (elem_bytes) {
    case 8:
        return is_cdna2 && m == 16 && i.k == 4;
    case 4:
        return tg_amd_is_cdna(target) && ((m == 32 && i.k == 2) || (m == 16 && i.k == 4));
    case 2:
        return is_cdna2 && ((m == 32 && i.k == 8) || (m == 16 && i.k == 16));
    default:
        return is_cdna2 && m == 32 && i.k == (target == 0x942 ? 16 : 8);
    }
}

/* limits.matrix of NVIDIA's devices is small. */
TG_FN int tg_is_amd_matrix(tg_limits l) { return l.l1 == 0 && l.matrix > 16; }

/* Does a CPU have the instruction for elements of that size? */
TG_FN int tg_cpu_has(int matrix, tg_mnk i, int elem_bytes)
{
    const int is_tile = i.m == 16 && i.n == 16 && i.k * elem_bytes == 64;
    const int is_vnni = i.m == 1 && i.n == 1 && i.k == 4 && elem_bytes == 1;
    const int is_pair = i.m == 1 && i.n == 1 && i.k == 2 && elem_bytes == 2;
    return ((matrix & TG_CPU_VNNI) && is_vnni) || ((matrix & TG_CPU_BF16) && is_pair) ||
           ((matrix & TG_CPU_AMX) && is_tile && elem_bytes <= 2);
}

/* On a CPU, products of one type are all made in one order. Of whole numbers, any order will do; of
 * bf16, it is that of the instruction for them where there is one. */
TG_FN int tg_tile_keeps_order(tg_tile t, tg_limits l, tg_type type)
{
    return type != TG_BF16 || !(l.matrix & (TG_CPU_AMX | TG_CPU_BF16)) || t.inst.k > 1;
}

TG_FN tg_mn tg_tile_unit(tg_tile t, tg_mn lanes)
{
    tg_mn unit = {t.inst.m, t.inst.n};
    if (tg_tile_is_fma(t) || lanes.m * lanes.n == 1) {
        unit.m = t.thread.m * lanes.m;
        unit.n = t.thread.n * lanes.n;
    }
    return unit;
}

TG_FN tg_mn tg_tile_rep(tg_tile t, tg_mn lanes)
{
    tg_mn unit = tg_tile_unit(t, lanes);
    tg_mn rep = {t.warp.m / unit.m, t.warp.n / unit.n};
    return rep;
}

/* Does it move whole vectors, or as wide ones as its thread tile allows? */
TG_FN int tg_tile_is_wide(tg_tile t, int elem_bytes, int vec_bytes)
{
    const int whole = vec_bytes / elem_bytes;
    return t.vec == whole || t.thread.m % whole || t.thread.n % whole;
}

/* Of so few rows or columns that they are all of C's. */
TG_FN int tg_is_thin(tg_mnk block) { return tg_min(block.m, block.n) <= 16; }

/* A thin tile of few slices is for much k that comes from slow memory. */
TG_FN int tg_tile_streams(tg_tile t) { return tg_is_thin(t.block) && t.slices <= 4; }

/* The same tile of C' = B'A'. */
TG_FN tg_tile tg_tile_turned(tg_tile t)
{
    tg_tile turned = t;
    turned.block.m = t.block.n, turned.block.n = t.block.m;
    turned.warp.m = t.warp.n, turned.warp.n = t.warp.m;
    turned.thread.m = t.thread.n, turned.thread.n = t.thread.m;
    return turned;
}

TG_FN tg_mn tg_tile_warps(tg_tile t)
{
    tg_mn warps = {t.block.m / t.warp.m, t.block.n / t.warp.n};
    return warps;
}

TG_FN int64_t tg_tile_threads(tg_tile t, tg_mn lanes)
{
    tg_mn warps = tg_tile_warps(t);
    return (int64_t)warps.m * warps.n * t.slices * lanes.m * lanes.n;
}

/* Bytes of A and B that a block stages at a time, all its stages together. */
TG_FN int64_t tg_tile_staged_bytes(tg_tile t, int elem_bytes)
{
    return ((int64_t)t.block.m + t.block.n) * t.block.k * t.stages * elem_bytes;
}

/* Bytes of fast memory that a block takes: the staged tiles, or later, in their place, the sums
 * that one slice hands to the first. Matrix instructions want two barriers for each stage of a
 * pipeline. */
TG_FN int64_t tg_tile_fast_bytes(tg_tile t, int elem_bytes)
{
    int64_t sums = t.slices > 1 ? (int64_t)t.block.m * t.block.n * elem_bytes : 0;
    int64_t barriers =
        tg_tile_is_fma(t) || t.stages < 3 ? 0 : 2 * (int64_t)t.stages * (int)sizeof(uint64_t);
    return tg_max(tg_tile_staged_bytes(t, elem_bytes) + barriers, sums);
}

/* Registers that hold a lane's part of C for the whole k loop: of the thread tile, or with a matrix
 * instruction, which leaves nothing to repeat later, of the whole warp tile. */
TG_FN int64_t tg_tile_accumulators(tg_tile t, tg_limits l, int elem_bytes)
{
    int64_t bytes = tg_max(1, tg_min((int64_t)t.vec * elem_bytes, l.register_bytes));
    int64_t elems = (int64_t)t.thread.m * t.thread.n;
    if (!tg_tile_is_fma(t) && l.l1 > 0) /* of vectors, or of tiles */
        return elems / ((int64_t)t.inst.m * t.inst.n * (t.inst.m == 1 ? t.vec : 1));
    if (!tg_tile_is_fma(t))
        elems = tg_ceil_div((int64_t)t.warp.m * t.warp.n, (int64_t)l.lanes.m * l.lanes.n);
    return tg_ceil_div(elems * elem_bytes, bytes);
}

/* Which row and column of its block a lane owns as element i (row) and j (column) of repeat rep. */
TG_FN int tg_piece_of(int element, int piece, int lane, int lanes)
{
    return element / piece * piece * lanes + lane * piece + element % piece;
}

TG_FN int tg_tile_row(tg_tile t, tg_mn lanes, int warp, int rep, int lane, int i)
{
    int piece = t.thread.m % t.vec == 0 ? t.vec : 1;
    return warp * t.warp.m + rep * tg_tile_unit(t, lanes).m + tg_piece_of(i, piece, lane, lanes.m);
}

TG_FN int tg_tile_col(tg_tile t, tg_mn lanes, int warp, int rep, int lane, int j)
{
    return warp * t.warp.n + rep * tg_tile_unit(t, lanes).n + tg_piece_of(j, t.vec, lane, lanes.n);
}

/* Fills in the zeros of a tiling. A warp without a size is one unit, unless the block comes from
 * the caches too:
 *   block.k  a panel of A and one of B, some 32 lines x block.k, take a quarter of L2, not of L1:
 *            kernels fetch ahead, and fewer passes over C are worth it. But what is read again and
 *            again, A's, is near L1 only if its lines are no longer than 2 KiB, and in it, while
 *            B's pass by, if they are half as long: tiles need that. It is the same for every other
 *            row, and so are the sums that an element of C is made of, to the last bit
 *   warp     its part of A, warp.m x block.k, takes 3/8 of its core's L2, and of B a quarter
 *   block.n  the part of B that all cores share takes a quarter of L3
 * (Low et al., Analytical modeling is enough for high-performance BLIS, TOMS 2016, with the parts
 * of A and B exchanged: here B is the operand that is loaded as vectors.) */
TG_FN tg_tile tg_tile_fill(tg_tile t, tg_limits l, int elem_bytes)
{
    if (!tg_in(t.thread.m, 1) || !tg_in(t.thread.n, 1) || !tg_in(t.warp.m, 0) ||
        !tg_in(t.warp.n, 0) || !tg_in(t.inst.m, 1) || !tg_in(t.inst.n, 1))
        return t; /* tg_tile_check refuses it */
    tg_mn unit = tg_tile_unit(t, l.lanes);
    const int from_caches = l.l1 > 0;
    const int64_t word = (int64_t)elem_bytes * tg_tile_word(t, elem_bytes);
    if (from_caches && t.block.k == 0)
        t.block.k =
            tg_tile_word(t, elem_bytes) * (int)tg_clamp(tg_round_down(l.l2 / 4 / (32 * word), 8),
                                                        64, (t.inst.m > 1 ? 1024 : 2048) / word);
    if (from_caches && t.block.n == 0 && t.block.k > 0) {
        int64_t column = (int64_t)t.block.k * elem_bytes;
        if (t.warp.n == 0)
            t.warp.n = (int)tg_max(tg_round_down(l.l2 / 4 / column, unit.n), unit.n);
        t.block.n = t.warp.n * (int)tg_clamp(l.l3 / 4 / (column * t.warp.n), 1, 16);
    }
    if (from_caches && t.block.m == 0 && t.block.k > 0) {
        int64_t row = (int64_t)t.block.k * elem_bytes;
        if (t.warp.m == 0)
            t.warp.m = (int)tg_max(tg_round_down(l.l2 * 3 / 8 / row, unit.m), unit.m);
        t.block.m = t.warp.m;
    }
    if (t.warp.m == 0)
        t.warp.m = unit.m;
    if (t.warp.n == 0)
        t.warp.n = unit.n;
    return t;
}

/* A CPU kernel whose block comes from the caches and whose vec fills a register has a body for each
 * smaller thread tile too: m rows for any m, n columns for any multiple of vec. */
TG_FN int tg_tile_shrinks(tg_tile t, tg_limits l, int elem_bytes)
{
    const int64_t word = (int64_t)elem_bytes * tg_tile_word(t, elem_bytes);
    return t.block.m == 0 && l.l1 > 0 && t.vec * word == l.register_bytes;
}

/* The answer to "is this tiling legal here?": rule is NULL if it is, else a sentence with two
 * places (%lld) for left and right. */
typedef struct tg_verdict {
    const char *rule;
    long long left, right;
} tg_verdict;

/* The only statement of legality. The tiling is filled in first. */
TG_FN tg_verdict tg_tile_check(tg_tile tile, tg_limits l, int elem_bytes)
{
    tg_tile t = tg_tile_fill(tile, l, elem_bytes);
#define TG_REFUSE_IF(broken, text, x, y)                             \
    if (broken) {                                                    \
        tg_verdict refusal = {text, (long long)(x), (long long)(y)}; \
        return refusal;                                              \
    }
#define TG_REFUSE_UNFILLED(name, x)                                                              \
    TG_REFUSE_IF((x) == 0, name " = %lld is for caches to fill in, and %lld bytes are known", 0, \
                 l.l1)
#define TG_REFUSE_OUTSIDE(name, x, low, high)                           \
    TG_REFUSE_IF((x) < (low), name " = %lld is less than %lld", x, low) \
    TG_REFUSE_IF((x) > (high), name " = %lld is more than %lld", x, high)
    TG_REFUSE_OUTSIDE("thread.m", t.thread.m, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("thread.n", t.thread.n, 1, TG_TILE_MAX)
    TG_REFUSE_UNFILLED("block.m", t.block.m)
    TG_REFUSE_OUTSIDE("block.m", t.block.m, 1, TG_TILE_MAX)
    TG_REFUSE_UNFILLED("block.n", t.block.n)
    TG_REFUSE_OUTSIDE("block.n", t.block.n, 1, TG_TILE_MAX)
    TG_REFUSE_UNFILLED("block.k", t.block.k)
    TG_REFUSE_OUTSIDE("block.k", t.block.k, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("warp.m", t.warp.m, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("warp.n", t.warp.n, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("vec", t.vec, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("stages", t.stages, 0, 16)
    TG_REFUSE_OUTSIDE("slices", t.slices, 1, 64)
    TG_REFUSE_OUTSIDE("form", t.form, TG_DOT, TG_OUTER_T)
    TG_REFUSE_OUTSIDE("inst.m", t.inst.m, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("inst.n", t.inst.n, 1, TG_TILE_MAX)
    TG_REFUSE_OUTSIDE("inst.k", t.inst.k, 1, TG_TILE_MAX)
    int64_t lanes = (int64_t)l.lanes.m * l.lanes.n;
    int is_inst = !tg_tile_is_fma(t), amd = is_inst && tg_is_amd_matrix(l),
        cpu = is_inst && l.l1 > 0, matrix = is_inst && !amd && !cpu;
    TG_REFUSE_IF(is_inst && !l.matrix && (t.inst.m > 1 || t.inst.n > 1),
                 "inst starts with %lldx%lld: this device multiplies with FMA, 1x1x1, only",
                 t.inst.m, t.inst.n)
    TG_REFUSE_IF(is_inst && !l.matrix,
                 "inst.k = %lld: this device multiplies with FMA, 1x1x%lld, only", t.inst.k, 1)
    TG_REFUSE_IF(amd && !tg_amd_has(l.matrix, t.inst, elem_bytes),
                 "inst.m = %lld, inst.n, inst.k: no instruction here for %lld-byte elements",
                 t.inst.m, elem_bytes)
    const tg_mnk f64 = {16, 16, 4};
    TG_REFUSE_IF(amd && t.inst.k == 1 && elem_bytes == 8 && tg_amd_has(l.matrix, f64, elem_bytes),
                 "inst.k = %lld: %lld-byte elements have matrix instructions here", t.inst.k,
                 elem_bytes)
    TG_REFUSE_IF(cpu && !tg_cpu_has(l.matrix, t.inst, elem_bytes),
                 "inst.k = %lld: no such instruction here for %lld-byte elements", t.inst.k,
                 elem_bytes)
    TG_REFUSE_IF(cpu && t.thread.m % t.inst.m, "thread.m = %lld is not a multiple of inst.m = %lld",
                 t.thread.m, t.inst.m)
    TG_REFUSE_IF(cpu && t.stages == 0, "stages = %lld, and words of %lld elements are staged",
                 t.stages, t.inst.k)
    TG_REFUSE_IF(matrix && elem_bytes != 8,
                 "matrix instructions multiply %lld-byte elements here, and these have %lld bytes",
                 8, elem_bytes)
    TG_REFUSE_IF(matrix && t.inst.m != l.matrix,
                 "inst.m = %lld, and this device's matrix instructions have %lld rows", t.inst.m,
                 l.matrix)
    TG_REFUSE_IF(!cpu && is_inst &&
                     (int64_t)t.inst.m * t.inst.n !=
                         tg_clamp((int64_t)t.thread.m * t.thread.n, 0, INT32_MAX) * lanes,
                 "an instruction makes %lld elements of C, and the lanes' thread tiles hold %lld",
                 (int64_t)t.inst.m * t.inst.n, (int64_t)t.thread.m * t.thread.n * lanes)
    tg_mn unit = tg_tile_unit(t, l.lanes);
    TG_REFUSE_IF(t.vec & (t.vec - 1), "vec = %lld is not a power of %lld", t.vec, 2)
    TG_REFUSE_IF(t.vec * elem_bytes > l.vec_bytes,
                 "vec is %lld bytes, and one instruction moves %lld", t.vec * elem_bytes,
                 l.vec_bytes)
    TG_REFUSE_IF(!amd && t.thread.n % t.vec, "thread.n = %lld is not a multiple of vec = %lld",
                 t.thread.n, t.vec)
    TG_REFUSE_IF(t.warp.m % unit.m,
                 "warp.m = %lld is not a multiple of the unit's %lld (thread.m x lanes, or inst.m)",
                 t.warp.m, unit.m)
    TG_REFUSE_IF(t.warp.n % unit.n,
                 "warp.n = %lld is not a multiple of the unit's %lld (thread.n x lanes, or inst.n)",
                 t.warp.n, unit.n)
    TG_REFUSE_IF(t.block.m % t.warp.m, "block.m = %lld is not a multiple of warp.m = %lld",
                 t.block.m, t.warp.m)
    TG_REFUSE_IF(t.block.n % t.warp.n, "block.n = %lld is not a multiple of warp.n = %lld",
                 t.block.n, t.warp.n)
    TG_REFUSE_IF(t.block.k % ((int64_t)t.slices * t.inst.k),
                 "block.k = %lld is not a multiple of slices x inst.k = %lld", t.block.k,
                 (int64_t)t.slices * t.inst.k)
    TG_REFUSE_IF(matrix && t.stages < 3,
                 "stages = %lld is less than the %lld that keep matrix instructions busy", t.stages,
                 3)
    TG_REFUSE_IF(amd && t.stages != 2, "stages = %lld, and matrix instructions take %lld here",
                 t.stages, 2)
    TG_REFUSE_IF(is_inst && t.slices != 1, "slices = %lld, and matrix instructions take %lld",
                 t.slices, 1)
    const int word_bytes = elem_bytes < 4 ? 4 : elem_bytes; /* short elements: several of k */
    TG_REFUSE_IF(!cpu && is_inst && t.warp.m * word_bytes % TG_BANK_BYTES,
                 "warp.m is %lld bytes, no multiple of all banks' %lld", t.warp.m * word_bytes,
                 TG_BANK_BYTES)
    TG_REFUSE_IF(!cpu && is_inst && t.warp.n * word_bytes % TG_BANK_BYTES,
                 "warp.n is %lld bytes, no multiple of all banks' %lld", t.warp.n * word_bytes,
                 TG_BANK_BYTES)
    TG_REFUSE_IF(matrix && t.block.k * elem_bytes % TG_BANK_BYTES,
                 "block.k is %lld bytes, no multiple of all banks' %lld", t.block.k * elem_bytes,
                 TG_BANK_BYTES)
    TG_REFUSE_IF(amd && t.vec * t.inst.n * word_bytes % TG_BANK_BYTES,
                 "vec x inst.n is %lld bytes, no multiple of all banks' %lld",
                 t.vec * t.inst.n * word_bytes, TG_BANK_BYTES)
    TG_REFUSE_IF(amd && t.warp.m % (t.vec * t.inst.m),
                 "warp.m = %lld is not a multiple of vec x inst.m = %lld", t.warp.m,
                 t.vec * t.inst.m)
    TG_REFUSE_IF(amd && t.warp.n % (t.vec * t.inst.n),
                 "warp.n = %lld is not a multiple of vec x inst.n = %lld", t.warp.n,
                 t.vec * t.inst.n)
    TG_REFUSE_IF(amd && t.block.k * elem_bytes % TG_SECTOR_BYTES,
                 "block.k is %lld bytes, no multiple of the %lld that memory moves at once",
                 t.block.k * elem_bytes, TG_SECTOR_BYTES)
    const int64_t at_once = 16 * tg_tile_threads(t, l.lanes);
    TG_REFUSE_IF(amd && (int64_t)t.block.m * t.block.k * elem_bytes % at_once,
                 "A's part of a stage is %lld bytes, and all threads move %lld at once",
                 (int64_t)t.block.m * t.block.k * elem_bytes, at_once)
    TG_REFUSE_IF(amd && (int64_t)t.block.n * t.block.k * elem_bytes % at_once,
                 "B's part of a stage is %lld bytes, and all threads move %lld at once",
                 (int64_t)t.block.n * t.block.k * elem_bytes, at_once)
    TG_REFUSE_IF(l.threads && tg_tile_threads(t, l.lanes) > l.threads,
                 "a block has %lld threads, and the device allows %lld",
                 tg_tile_threads(t, l.lanes), l.threads)
    TG_REFUSE_IF(tg_tile_accumulators(t, l, elem_bytes) > l.registers,
                 "a thread accumulates in %lld registers, and has %lld",
                 tg_tile_accumulators(t, l, elem_bytes), l.registers)
    /* Four SIMDs have two waves each to go on with: of two blocks, or of one of 512 threads. */
    const int is_shared =
        amd && l.fast_bytes && (tg_tile_threads(t, l.lanes) < 512 || t.inst.k == 1);
    TG_REFUSE_IF(is_shared && 2 * tg_tile_fast_bytes(t, elem_bytes) > l.fast_bytes,
                 "a block takes %lld bytes, and two are to share %lld",
                 tg_tile_fast_bytes(t, elem_bytes), l.fast_bytes)
    TG_REFUSE_IF(l.fast_bytes && tg_tile_fast_bytes(t, elem_bytes) > l.fast_bytes,
                 "a block takes %lld bytes, and its fast memory holds %lld",
                 tg_tile_fast_bytes(t, elem_bytes), l.fast_bytes)
#undef TG_REFUSE_OUTSIDE
#undef TG_REFUSE_UNFILLED
#undef TG_REFUSE_IF
    tg_verdict legal = {NULL, 0, 0};
    return legal;
}

TG_FN int tg_tile_fits(tg_tile t, tg_limits l, int elem_bytes)
{
    return tg_tile_check(t, l, elem_bytes).rule == NULL;
}

#endif
