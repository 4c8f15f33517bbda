/* SPDX-License-Identifier: Apache-2.0
 *
 * What an instruction set has beside the micro-kernels (kernels.c), and all of it in one table:
 * copies and conversions, and products of words. Compiled once for each, as TG_ISA names it, with
 * that set's compiler flags. */
#include <string.h>

#include "cpu.h"
#include "isa.h"

#define TG_T float
#define TG_V IN_REGISTER_float
#define NAME(x) x##_float_v
#include "vector.h"
#undef NAME
#define NAME(x) x##_float
#define WIDE(x) x##_float_v
#include "pack.h"
#undef TG_T
#undef TG_V
#undef NAME
#undef WIDE
#define TG_T double
#define TG_V IN_REGISTER_double
#define NAME(x) x##_double_v
#include "vector.h"
#undef NAME
#define NAME(x) x##_double
#define WIDE(x) x##_double_v
#include "pack.h"
#undef TG_T
#undef TG_V
#undef NAME
#undef WIDE

#include "convert.h"
#if defined(__AVX512BW__)
#include "words.h"
#include "words_pack.h"
#include "words_stream.h"
#if defined(TG_HAS_BF16)
#include "words_bf16.h"
#endif
#if defined(TG_HAS_AMX)
#include "words_few.h"
#include "amx.h"
#endif

#define BY_WORDS(a, b, types, packed_a)                                                    \
    {                                                                                      \
        a, b, {1, 1, WORD_BYTES}, types, stream_##types, NULL, {packed_a, words_of_bytes}, \
            spin_words, NULL, NULL                                                         \
    }
#define BY_TILES(a, b, bytes, types, element)                                                \
    {                                                                                        \
        a, b, {TILE, TILE, TILE_BYTES / (bytes)}, types, stream_##types, lines_of_##types,   \
            {rows_of_##element, columns_of_##element}, spin_##types, start_tiles, stop_tiles \
    }
static const tg_words words_table[] = {
    BY_WORDS(TG_I8, TG_I8, i8_by_i8, words_of_flipped),
    BY_WORDS(TG_U8, TG_I8, u8_by_i8, words_of_bytes),
    BY_WORDS(TG_I8, TG_U8, i8_by_u8, words_of_bytes),
    BY_WORDS(TG_U8, TG_U8, u8_by_u8, words_of_flipped),
#if defined(TG_HAS_BF16)
    {TG_BF16,
     TG_BF16,
     {1, 1, 2},
     pairs_of_bf16,
     stream_pairs_of_bf16,
     lines_of_pairs_of_bf16,
     {lines_of_halves, words_of_halves},
     spin_pairs_of_bf16,
     NULL,
     NULL},
#endif
#if defined(TG_HAS_AMX)
    BY_TILES(TG_I8, TG_I8, 1, tiles_of_i8_i8, bytes),
    BY_TILES(TG_I8, TG_U8, 1, tiles_of_i8_u8, bytes),
    BY_TILES(TG_U8, TG_I8, 1, tiles_of_u8_i8, bytes),
    BY_TILES(TG_U8, TG_U8, 1, tiles_of_u8_u8, bytes),
    BY_TILES(TG_BF16, TG_BF16, 2, tiles_of_bf16, halves),
#endif
    {0},
};
#else
static const tg_words words_table[] = {{0}};
#endif

_Static_assert(TG_F32 == 1 && (int)TG_I32 == TG_TYPES, "the tables below are indexed by type - 1");

extern const tg_kernels JOIN(JOIN(tg_, TG_ISA), _float), JOIN(JOIN(tg_, TG_ISA), _double);

const tg_isa JOIN(tg_isa_, TG_ISA) = {
    VEC_BYTES,
    REGISTERS,
    {&JOIN(JOIN(tg_, TG_ISA), _float), &JOIN(JOIN(tg_, TG_ISA), _double)},
    {copy_float, copy_double, widen_f16, widen_bf16, widen_i8, widen_u8, copy_float},
    {copy_float, copy_double, narrow_f16, narrow_bf16, NULL, NULL, copy_float},
    add_i32,
    CAN_CONVERT,
    words_table};
