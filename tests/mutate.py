#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in a copy of the tree, one at a time, and requires that the suite turns red for each.

    python3 tests/mutate.py [-DOPTION=VALUE ...] [WORD ...]
                                            all of them, or those whose names hold a word; options
                                            are Meson's, as -Darch_cpu=avx2; those of AVX-512 and
                                            AMX run anywhere with -Darch_cpu=avx512 -Demulated=true
    python3 tests/mutate.py --fit           only looks whether each of them fits the code

A planted bug is a replacement of text that must occur exactly once, so that one which no longer
fits the code is a failure too. The last line is `N passed, N failed`.
"""
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLS, KERNEL, PACK = "backends/cpu/gemm.c", "backends/cpu/microkernel.h", "backends/cpu/pack.h"
LOOPS, STAGE, DIRECT, WAYS, JOB = (f"backends/cpu/{name}.h"
                                   for name in ("loops", "stage", "direct", "ways", "job"))
TURNED, KERNELS = "backends/cpu/turned.h", "backends/cpu/kernels.c"
NARROW = "backends/cpu/narrow.h"
CONVERT, WORDS, PAIRS, AMX = (f"backends/cpu/{name}.h"
                               for name in ("convert", "words", "words_bf16", "amx"))
WORDS_PACK, FEW = "backends/cpu/words_pack.h", "backends/cpu/words_few.h"
KERNEL_FEW = "backends/cpu/microkernel_few.h"
CALL, CHECK, TILE, PICK = "common/gemm.c", "common/check.c", "common/tile.h", "common/pick.c"
CUT, CYCLES, PREPARE = "common/pick_cut.c", "common/pick_cycles.h", "common/prepare.c"
PACKED, GROUPED = "common/packed.c", "common/grouped.c"
SIMT, CARRIER, GEOMETRY = (f"backends/gpu/{name}.h" for name in ("simt_gemm", "carrier", "geometry"))
SIMT_TABLE = "backends/gpu/simt_table.h"
READS, WAY, CONTRACT = "common/reads.h", "common/way.h", "common/gemm.h"
STREAMS = "backends/cpu/streams.h"
TUNING = "common/tuning.c"

# name, file, what stands there, what is planted
MUTATIONS = [
    ("the last k is left out", KERNEL, "s->k - first, a_row", "s->k - first - (s->k > 16), a_row"),
    ("a run of tiles stays at one panel of B", KERNEL, "tile_b += s->b_next;", ""),
    ("a run of tiles takes the ragged one too", LOOPS, "tg_max(0, whole - 1)", "tg_max(0, whole)"),
    ("packed panels are taken for longer", KERNEL, "NAME(tiles)(mr, nv, 0, 1, 1, 0, COMES_WHOLE, 1, mr, nv * TG_V, s);",
     "NAME(tiles)(mr, nv, 0, 1, 1, 0, COMES_WHOLE, 1, mr + (mr % 8 == 6), nv * TG_V, s);"),
    ("a dot product starts at k = 1", KERNEL, "for (int64_t p = 0; p < s->k; p++, a",
     "a += s->a_col, b += s->b_row; for (int64_t p = 1; p < s->k; p++, a"),
    ("a BLAS call with another lda is taken for repeated", "common/gemm.c", " && x->lda == y->lda", ""),
    ("a packed head is read before its checks", PREPARE, "    if (tg_check_scalars(ctx, p))\n        return ctx->status;\n    p->flags |=",
     "    *swapped = is_swapped(p);\n    if (tg_check_scalars(ctx, p))\n        return ctx->status;\n    p->flags |="),
    ("streams serve four tiles of rows", READS, "is_far && !tg_has_large_l2(l) ? 8 : 4", "4"),
    ("streams serve as many rows where memory is far off", READS, "is_far && !tg_has_large_l2(l) ? 8 : 4", "is_far ? 8 : 4"),
    ("streams of narrow vectors are short where memory is far off", READS, "== 32 && is_far ? 3 : 2", "== 32 && l->l1 < 0 ? 3 : 2"),
    ("streams of narrow vectors are long where caches have B", READS, "== 32 && is_far ? 3 : 2", "== 32 ? 3 : 2"),
    ("streams serve as many rows where caches have B", READS, "is_far && !tg_has_large_l2(l) ? 8 : 4", "!tg_has_large_l2(l) ? 8 : 4"),
    ("near streams: rows a page apart are as many as others", READS, "is_crowded  ? 2 * TG_STREAMED", "p->k < 0 ? 2 * TG_STREAMED"),
    ("near streams: rows lie in any number of pages", READS, "return is_beyond ? tg_clamp", "return p->k < 0 ? tg_clamp"),
    ("streams of near words have no more rows than others", READS, "(1 + is_near) * TG_STREAM_ROWS", "TG_STREAM_ROWS"),
    ("streams of bytes have one tile of rows", READS, "BYTE_TILES = 4", "BYTE_TILES = 1"),
    ("C takes all the time of more k", READS, "TG_FLAT_K = 16", "TG_FLAT_K = 32"),
    ("C takes all the time of less k only", READS, "TG_FLAT_K = 16", "TG_FLAT_K = 8"),
    ("what is half of L1 is far", READS, "0.75 * (double)l->l1", "0.4 * (double)l->l1"),
    ("few rows of a tiny B are not widened", READS, "TINY = 4096", "TINY = 0"),
    ("a C of f32 whose columns lie apart is widened for", READS, "(p->c.type == p->a.type || p->c.col_stride == 1)", "1"),
    ("a B that is half of the last cache does not come from memory", READS, "l->l3 / 4, lines", "l->l3, lines"),
    ("few columns are turned for less than a vector and a quarter", READS, "4 * p->m >= 5 * vector", "p->m >= vector"),
    ("few columns are not turned for half a vector", READS, "(2 * p->m >= vector &&", "(p->m < 0 &&"),
    ("rows of a far A are fetched for any columns", READS, "p->n <= 2 * plan->tile.thread.n", "p->n > 0"),
    ("narrow columns of a far A are taken by all", READS, "(shuffles || is_near)", "1"),
    ("narrow columns of a far A are taken by none", READS, "p->n >= ENOUGH * t.vec || !tg_exceeds", "!tg_exceeds"),
    ("narrow columns are one lane everywhere", READS, "(1 + shuffles) * LANE", "LANE"),
    ("narrow columns are two lanes everywhere", READS, "(1 + shuffles) * LANE", "2 * LANE"),
    ("narrow columns have any number of rows", READS, "p->m > FEW && p->k > TG_FLAT_K", "p->k > TG_FLAT_K"),
    ("narrow columns have any k", READS, "p->m > FEW && p->k > TG_FLAT_K", "p->m > FEW"),
    ("narrow columns have a little A", READS, "tg_exceeds(LITTLE, p->m, p->k, bytes)", "1"),
    ("narrow columns read a panel that nobody packs", LOOPS, "if (j->reading.packs_late && t->size == 1)", "if (b->is_late)"),
    ("narrow columns are those at the start of a panel", LOOPS, "(const char *)s.b + past * j->bytes", "(const char *)s.b"),
    ("narrow columns leave the last rows out", LOOPS, "== 0 || done >= rows.end", "== 0"),
    ("directly: narrow columns are the first ones of B", DIRECT, "s->b = b + (end - cols.begin) * bytes;", "s->b = b;"),
    ("narrow: the last element of k is left out", NARROW, "if (left == 1)", "if (left == 5)"),
    ("narrow: the last elements of k are others", NARROW, "IN_LANE - 2, last, at", "IN_LANE - 1, last, at"),
    ("narrow: rows that are not there are read", NARROW, "s->rows - IN_REGISTER) * a_row;", "s->rows - 1) * a_row;"),
    ("narrow: so many rows are more than an int", NARROW, "const int64_t first = x * registers / tiles", "const int64_t first = (int)x * (int)registers / (int)tiles"),
    ("a copied B ends where the next thread's room begins", JOB, "tg_round_up(p->k * j->step.b_row * j->bytes, 64)", "p->k * j->step.b_row * j->bytes"),
    ("narrow: C is forgotten", NARROW, "if (beta != 0)", "if (0)"),
    ("narrow: a second lane is stored whole", NARROW, "x < lanes - 1 ? (1 << IN_LANE) - 1 : last", "(1 << IN_LANE) - 1"),
    ("two lanes of turned columns are of other columns", TURNED, "of[1] + below[e % IN_LANE]", "of[0] + below[e % IN_LANE]"),
    ("vectors of turned columns are all the first", TURNED, "a[i * a_row + e] * square[j * RUN + e]", "a[i * a_row + e] * square[e]"),
    ("rows of a near A are fetched", READS, "thread.n &&\n           tg_exceeds(l->l2, p->m, p->k, bytes);", "thread.n;"),
    ("rows of A are fetched for narrow panels", READS, "thread.n >= 3 * t.vec", "thread.n >= 2 * t.vec"),
    ("splits: two threads with a large L2 share k", READS, "(is_large ? 2 : 1)", "1"),
    ("narrow vectors pack on the way what is far", READS, "p->m <= FEW && !tg_exceeds(l->l2, p->n, p->k, bytes)", "p->m <= FEW"),
    ("narrow vectors pack on the way for many rows", READS, "p->m <= FEW && !tg_exceeds(l->l2, p->n, p->k, bytes)", "p->k <= l->l2 / bytes / tg_max(p->n, 1)"),
    ("narrow vectors do not keep what they pack on the way", KERNELS, "if (VEC_BYTES >= 32 && s->kept)", "if (VEC_BYTES >= 64 && s->kept)"),
    ("crowded rows of A are read where they are", CYCLES, "tg_even_part(p->a.row_stride) * bytes >= PAGE", "0"),
    ("rows of A are crowded half a page apart", CYCLES, "* bytes >= PAGE", "* bytes >= 8"),
    ("a B from memory is read in short runs", PICK, "FAR_RUN : NEAR_RUN", "NEAR_RUN : NEAR_RUN"),
    ("a B from caches is read in long runs", PICK, "FAR_RUN : NEAR_RUN", "FAR_RUN : FAR_RUN"),
    ("tiles: a C of bf16 is taken for sums", AMX, "!s->is_c_short;", "1;"),
    ("tiles: columns of bf16 are as far apart as sums", STREAMS, "s->is_c_short ? x->c_bytes : j->sum_bytes;", "j->sum_bytes;"),
    ("tiles: what is behind a line is read", AMX, "const __mmask64 mask = mask_of_bytes(bytes);", "const __mmask64 mask = mask_of_bytes(bytes + 2);"),
    ("tiles: the products of the last step are left out", AMX, "TILE_PRODUCTS(inst, , both_m, both_n)", ""),
    ("tiles: sums that waited are forgotten", LOOPS, "waits = now->is_short && now->beta != 0 &&", "waits = now->beta > 2 &&"),
    ("tiles: sums that waited are another row's", PAIRS, "s->waited + i * s->waited_row + j", "s->waited + j"),
    ("tiles: halves of two vectors change places", PAIRS, "_mm512_cvtne2ps_pbh(second, first)", "_mm512_cvtne2ps_pbh(first, second)"),
    ("pairs: a row behind the last one is packed", WORDS_PACK, "count > 1 ? mask : 0", "mask"),
    ("pairs: columns behind the last one are packed", WORDS_PACK, "__mmask32 mask = mask_of_halves(lines);", "__mmask32 mask = mask_of_halves(2 * lines);"),
    ("words: columns behind the last one are packed", WORDS_PACK, "__mmask64 mask = mask_of_halves(lines);", "__mmask64 mask = (uint32_t)-1;"),
    ("words: k behind the last one is packed", WORDS_PACK, "count > x ? mask : 0, from + x", "mask, from + x"),
    ("words: columns from 8 on are those before them", WORDS_PACK, "_mm512_set1_epi16(8)", "_mm512_set1_epi16(0)"),
    ("tiles: rows from 16 on are the first ones again", AMX, "TILE_LOAD(7, a + s->a_row,", "TILE_LOAD(7, a,"),
    ("tiles: lines where they are pass for a panel", AMX, "is_panel = s->a_col > 1;", "is_panel = s->a_col > 0;"),
    ("tiles: lines where they are go on a line further", AMX, "s->a_col * TILE_BYTES : TILE_BYTES;", "s->a_col * TILE_BYTES : 2 * TILE_BYTES;"),
    ("tiles: more lines than there are are read", STAGE, ".grain_there = j->words && tile->inst.m > 1 ? line : grain,", ".grain_there = grain,"),
    ("tiles: lines are read beyond k", READS, "p->k % t.inst.k == 0 &&\n           (is_crowded", "p->k % 2 == 0 &&\n           (is_crowded"),
    ("chooser: crowded lines are read as others are", READS, "(is_crowded ? p->n <=", "(t.vec < 0 ? p->n <="),
    ("tiles: few rows have denormals", FEW, "AS_TILES_DO = 0x9fc0", "AS_TILES_DO = 0x1f80"),
    ("tiles: few rows add the products of odd k to those of even ones", FEW, "odd[at] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * ROW_HALVES + 1]), b_odd[j], odd[at]);", "even[at] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * ROW_HALVES + 1]), b_odd[j], even[at]);"),
    ("tiles: few rows have one place for sums of even and of odd k", FEW, "_mm512_storeu_ps(at + 2 * below, odd[which]);", "_mm512_storeu_ps(at + below, odd[which]);"),
    ("tiles: few rows forget what they added of the k before", FEW, "even[i * nv + j] = k > 0 ?", "even[i * nv + j] = 0 ?"),
    ("tiles: of few rows what is behind k leaves -0", FEW, "s->k < ROW_HALVES - 1 ? 0.0f : -0.0f", "-0.0f"),
    ("tiles: few rows begin without the sums that wait", FEW, "s->begins_with_sums ? _mm512_loadu_ps(at)", "0 ? _mm512_loadu_ps(at)"),
    ("tiles: beta is applied for each slice of k", AMX, "p += slice, now.beta = 1)", "p += slice)"),
    ("tiles: a tile of C is stored as it is whatever beta", AMX, "s->alpha == 1 && s->beta == 0 &&", "s->alpha == 1 &&"),
    ("little words of bytes begin at once", CYCLES, "{330, 1300}", "{0, 1300}"),
    ("little tiles of bytes begin at once", CYCLES, "{330, 1300}", "{330, 0}"),
    ("words of bytes are slow where f32 would not take all at once", CYCLES, "t.inst.k == 1 || !tg_widens(p, l))", "t.inst.k == 1)"),
    ("tiles of words of bytes take no longer", CYCLES, "[] = {50, 300}", "[] = {0, 300}"),
    ("tiles of C of AMX's bytes take no longer", CYCLES, "[] = {50, 300}", "[] = {50, 0}"),
    ("packing on the way costs what packing costs", CYCLES, "hides_packing(p, l, plan, bytes) ? p->n % t.thread.n : p->n", "p->n"),
    ("rows of A half a page apart crowd", CYCLES, "is_a_across && p->a.col_stride % half_page", "plan->a_in_place && p->a.row_stride % half_page"),
    ("a near B is what all threads have of it", READS, "p->batch > 1 ? p->n : tg_ceil_div(p->n, plan->threads)", "p->n"),
    ("lots are fetched of rows that L2 does not hold", READS, " && tg_holds_rows(p, l, 2 * TG_LOT) &&", " &&"),
    ("lots are fetched of short rows", READS, ">= SHORT / (int64_t)tg_type_size(p->a.type)", ">= 0"),
    ("threads fetch lots of what they have in L2", READS, "(plan->threads <= 2 || !is_near)", "1"),
    ("lots: tiles below the first add to its sums", STREAMS, "s.sums_next = s.rows * s.sums_row;", "s.sums_next = 0;"),
    ("lots: low tiles have the sums of tall ones", STREAMS, "s.sums = (char *)s.sums + tiles[low] * s.sums_next * j->sum_bytes;", ""),
    ("rows far apart are as near as others", READS, "p->b.row_stride <= TWO_PAGES / bytes ? p->k / 4 : p->k - p->k / 3", "p->k / 4"),
    ("a far C costs rows of A along k more", CYCLES, "t.form == TG_OUTER_T && p->k < 8", "(t.form == TG_OUTER || p->k < 8)"),
    ("many rows of A are read by strips of columns", PICK, "plan->a_in_place && (threads == 2 || p->m <= t.block.m);", "plan->a_in_place;"),
    ("what is packed on its way has short rows in a large L2 too", PICK, "if (!late || fetches)", "if (1)"),
    ("threads never pack for themselves", PICK, "columns.strips.n = columns.threads;", ""),
    ("threads share the rows of a stream", CUT, "tg_is_streamed(p, l, plan, bytes) ? 1 : sharing", "sharing"),
    ("streams of a B that caches have skip the rest of k", STREAMS, "s->k = tg_min(j->reading.rows, left);", "s->k = tg_min(j->reading.rows, j->p->k - k);"),
    ("few columns are taken as rows, and their data not", PREPARE, "*swapped ^= 1;", ""),
    ("what waited beside C is stored side by side", STAGE, "c->store(c->at, c->row, c->col,", "c->store(c->at, c->row, 1,"),
    ("few columns as rows have no place of their own", JOB, "j->is_c_beside ? 2 : 1", "1"),
    ("an A along m is read in streams as if along k", STREAMS,
     "j->converts || (p->a.col_stride != 1 && !j->words)", "j->converts"),
    ("lower half: it is taken for all of a register", KERNELS, "2 * s->columns <= (2 * (count)-1) * (vec)",
     "2 * s->columns <= 2 * (count) * (vec)"),
    ("lower half: one column more is taken for it", KERNELS, "2 * s->columns <= (2 * (count)-1) * (vec)",
     "2 * s->columns <= (2 * (count)-1) * (vec) + 2"),
    ("C is read when beta is 0", KERNEL, "if (beta == 0)", "if (beta != beta)"),
    ("alpha is lost", KERNEL, "acc[i] *= alpha;", ";"),
    ("zeros of A are skipped", KERNEL, "acc[i * nv + j] += a[i * a_row] * b[j];",
     "if (a[i * a_row] != 0) acc[i * nv + j] += a[i * a_row] * b[j];"),
    ("beta is applied for each block of k", LOOPS, "is_first = a->ks.begin + k0 == 0",
     "is_first = k0 == 0"),
    ("beta is applied for each slice of k", LOOPS, "is_first = a->ks.begin + k0 == 0",
     "is_first = a->ks.begin == 0"),
    ("the ragged edge of m is one row short", LOOPS,
     "s.rows = (int)tg_min(a->line, a->lines.end - a->lines.begin - m);",
     "s.rows = (int)tg_min(a->line, tg_max(1, a->lines.end - a->lines.begin - m - (m > 0)));"),
    ("the ragged edge of n is taken for whole", LOOPS,
     "(left == b->line || left % b->grain == 0)", "(left > 0)"),
    ("columns are rounded up where C has no room", LOOPS, "(!rounds || now->is_beside)", "(rounds >= 0)"),
    ("the last pass rounds columns up, in C", LOOPS, "j->sums_bytes > 0 && !is_last;", "1;"),
    ("a copy along the other axis has the same counts", PACK, "from_inner, from_outer, inner, outer);", "from_inner, from_outer, outer, inner);"),
    ("the batch strides of A and B are swapped", STAGE, "x * j->a_item", "x * j->b_item"),
    ("packing writes one element too far apart", STAGE, "k_to = s->k_inner ? 1 : s->line;",
     "k_to = s->k_inner ? 1 : s->line - 1;"),
    ("a square is not transposed at the edge", PACK, "i + TG_V <= inner ? i : tg_max(0, inner - TG_V);",
     "i;"),
    ("threads do not wait for the staged panels", LOOPS,
     "wait_for(t); /* this block is staged, and the place of the next one was read */", ";"),
    ("a team has one place for blocks of A", LOOPS, "t->size > 1 && index % 2", "0"),
    ("a team has one place for blocks of B", LOOPS, "t->size > 1 && both % 2", "0"),
    ("a cell is staged while the one before it is read", CALLS,
     "wait_for(&t); /* the cell before it is read */", ";"),
    ("the last warps are left out", LOOPS, "end = (whose + 1) * warps / t->size * parts",
     "end = (whose + 1) * (warps / t->size) * parts"),
    ("a piece of a warp has the rows of another", LOOPS, "row + part * panels / parts * a->line",
     "row + part * (panels / parts) * a->line"),
    ("shares are not put back after a block", LOOPS, "put_back(t, index + 1);", ""),
    ("two threads share a large C", PICK, "if (threads == 2 &&", "if (threads == 0 &&"),
    ("threads share little of words", PICK, "!tg_is_cut(best) || now == best_cycles", "now == best_cycles"),
    ("strips in a row are all the first one", CALLS, "n = cell % j->strips.n;", "n = 0;"),
    ("the last pieces are in no strip", STAGE, "(strip + 1) * pieces / strips * grain", "(strip + 1) * (pieces / strips) * grain"),
    ("strips end where tiles do, however uneven", READS, "+ tile / 4 < in_tiles ? fine : tile", "+ tile < in_tiles ? fine : tile"),
    ("lines of C that two threads write cost nothing", CYCLES, "is_shared ? cycles_of_shared_line", "threads < 0 ? cycles_of_shared_line"),
    ("splits: strips of a far B are narrow", READS, "if (!is_plain || threads", "if (threads > 0 || !is_plain || threads"),
    ("splits: many rows do not fetch lots", READS, "> TG_STREAM_TILES * t.thread.m ? PAGE / 2", "> TG_STREAM_TILES * t.thread.m ? PAGE"),
    ("splits: all blocks have one place for sums", STREAMS, "t->apart + (block - !j->is_c_beside) * j->apart_bytes", "t->apart"),
    ("splits: the last block is not added", STREAMS, "block < j->splits; block++", "block + 1 < j->splits; block++"),
    ("splits: C is added to before all sums are there", STREAMS, "    wait_for(&(team){.size = threads});\n    add_sums", "    add_sums"),
    ("splits: sums apart have no room", CALLS, "(j.splits - !j.is_c_beside) * j.apart_bytes", "0"),
    ("splits: a C of halves has no room for the first block", CALLS, "(j.splits - !j.is_c_beside) * j.apart_bytes", "(j.splits - 1) * j.apart_bytes"),
    ("splits: the first block adds C as it is", STREAMS, "s.beta = block == 0 ? j->p->beta : 1;", "s.beta = 1;"),
    ("splits: items of a list are split as well", CALLS, "own.splits = 1; /*", "/*"),
    ("every thread streams all of C", JOB, " || j->is_direct || streams;", ";"),
    ("a stream has more rows than there is room for", WAY, "p->m <= t.block.m &&", ""),
    ("copied B: each strip of columns begins with the first", DIRECT, "item.b + cols.begin * b->col_stride * j->bytes", "item.b"),
    ("copied B: threads have one place for all", JOB, "j->copies_b || j->widens ? tg_round_up", "0 ? tg_round_up"),
    ("copied B: rows are one column too short", DIRECT, "               cols.end - cols.begin);", "               cols.end - cols.begin - 1);"),
    ("turned: what is left of k is left out", TURNED, "    for (; p < end; p++)\n", "    for (; p + 1 < end; p++)\n"),
    ("flat: all panels start at the first", DIRECT, "s->b = b + (n - cols.begin) * bytes;\n            s->c = (char", "s->b = b;\n            s->c = (char"),
    ("direct: slices of k begin at the first", DIRECT, "        b += s->k * s->b_row * bytes;\n", ""),
    ("direct: a slice of k forgets the one before it", DIRECT, "        s->beta = 1;\n    }\n    s->beta = beta;", "    }\n    s->beta = beta;"),
    ("direct: what is fetched ahead lies behind the slice", DIRECT, "            set_fetching(s);\n", "            ;\n"),
    ("a stream is cut between its rows", JOB, "streams ? is_turned_a : pieces_m", "j->turned ? is_turned_a : pieces_m"),
    ("a stream's panels all add to the first one's sums", KERNEL_FEW, "        sums += panels * s->sums_next;\n", ""),
    ("the rest of k in turned columns is the first one's", TURNED, "of[j * TG_V + i] + p * bytes", "of[j * TG_V] + p * bytes"),
    ("crowded columns are turned by lanes alone", TURNED, "NAME(exchange)(square, words);", "NAME(exchange)(square, IN_LANE);"),
    ("turned columns of a lane stay where neighbours were mixed", PACK, "IN_LANE == 4 && i % 4 == 1", "IN_LANE == 4 && i % 8 == 1"),
    ("lanes of turned columns are of one of them", TURNED, "of[x * IN_LANE + i % IN_LANE]", "of[i % IN_LANE]"),
    ("near columns: the fourth of a lane is the third", TURNED, "2 * b_row, 3 * b_row}", "2 * b_row, 2 * b_row}"),
    ("near columns go on by a run", TURNED, "at[x] += PARTS * run;", "at[x] += run;"),
    ("the rest of k in near columns is added twice", TURNED, "a + p + from, a_row, (int)back)", "a + p + from, a_row, 0)"),
    ("the rest of k in near columns lies behind it", TURNED, "from = done - back;", "from = done;"),
    ("near columns are taken where some are not there", TURNED, "s->columns >= TG_V && s->k", "s->k"),
    ("near columns are taken where k is shorter than a run", TURNED, " && s->k >= 2 * IN_LANE", ""),
    ("the last near columns lie behind the others", TURNED, "i : from + tg_min(i - others, last - 1)", "i : i"),
    ("a turned corner forgets C", TURNED, "corner, whole, others, c, s->c_row, from, mr,", "corner, whole, others, c, s->c_row, from, 0,"),
    ("a turned corner takes the last columns from elsewhere", TURNED, "corner, whole, others, c, s->c_row, from, mr,", "corner, whole, others, c, s->c_row, others, mr,"),
    ("few columns forget C", DIRECT, "else if (p->beta != 0)", "else if (p->beta > 1e9)"),
    ("few columns lie along k", DIRECT, "if (few_k != 1 || s.b_type) {", "if (s.b_type) {"),
    ("few columns' rows are the first ones", DIRECT, "s.b = b + n * s.b_row * bytes;\n        if", "s.b = b;\n        if"),
    ("few columns are written whole", DIRECT, "give_c(j, &c, s.c, most, few, s.columns, p->beta);", "give_c(j, &c, s.c, most, few, most, p->beta);"),
    ("a strip of few columns is as many rows", CALLS, "j->turned == TG_TURNED_A ? rows : cols", "cols"),
    ("slices of k of turned columns begin anew", TURNED, "p += s->slice, now.beta = 1", "p += s->slice"),
    ("turned columns that begin late in a line lose that part", TURNED, "of, a, a_row, p, p + lead);", "of, a, a_row, p + lead, p + lead);"),
    ("the plan of an empty problem stays", PREPARE, "    ctx->given.size = 0; /* the plan", "    /* the plan"),
    ("k = 0 leaves C alone", CALLS, "scale(j->p, j->items ? j->items[item].c : (char *)j->p->c.data + item * j->c_item);", ""),
    ("lda and ldb are swapped", CALL, "transa, m, k, form->lda,", "transa, m, k, form->ldb,"),
    ("C column-major keeps the strides of A", CONTRACT, "p->b.row_stride = q.a.col_stride,",
     "p->b.row_stride = q.a.row_stride,"),
    ("a leading dimension too short is taken", CALL, "if (ld < length)", "if (ld < length - 1)"),
    ("alpha is not rounded to float", "common/gemm.h", "*alpha = f32_alpha;", "(void)f32_alpha;"),
    ("the plan of another shape is used", CALL, "q->m == p->m && q->n == p->n", "q->n == p->n"),
    ("a small workspace is overrun", CALL, "if (ctx->workspace_is_callers)",
     "if (ctx->workspace_is_callers && bytes > 1u << 30)"),
    ("each call allocates a workspace anew", CALL, "if (bytes <= ctx->workspace_bytes)",
     "if (bytes <= ctx->workspace_bytes && (!bytes || ctx->workspace_is_callers))"),
    ("overlap is not looked for", CHECK, "if (views_overlap(&c, &v))", "if (0)"),
    ("elements of C may coincide", CHECK, "if (elements_coincide(c_stride, c_count))", "if (0)"),
    ("elements of C may coincide by all strides", CHECK, "x * u <= m * s + n * t; x++", "x < 1; x++"),
    ("elements of C coincide with what is not there", CHECK, "tg_min(2 * m, sum / s);", "sum / s;"),
    ("a matrix may span any number of bytes", CHECK, "span > most_elements", "0"),
    ("words: the row of top bits is forgotten", WORDS, "if (is_flipped)\n                sum =", "if (0)\n                sum ="),
    ("pairs: the last element of an odd k is lost", WORDS_PACK, "count > 0 ? mask : 0", "count > 1 ? mask : 0"),
    ("pairs: the upper half of the columns is the lower one", PAIRS, "by_turns(j % 2)", "by_turns(0)"),
    ("pairs: what follows A is read after an odd k", PAIRS, "if (!is_one)\n        memcpy", "if (1)\n        memcpy"),
    ("pairs: beta is forgotten", PAIRS, "if (s->alpha != 1 || s->beta != 0) {", "if (s->alpha != 1) {"),
    ("pairs: results that are denormals are zeros", PAIRS, "if (!_mm512_fpclass_ps_mask(x, DENORMAL))", "if (1)"),
    ("pairs: what is behind a slice of lines is multiplied", PAIRS, "if (2 * word < left)", "if (1)"),
    ("pairs: all slices of lines begin with beta", PAIRS, "p += s->slice, now.beta = 1)", "p += s->slice)"),
    ("pairs: more rows than there is room for sums of", JOB, "tg_max(rows + 1, TG_STREAM_ROWS)", "TG_STREAM_ROWS"),
    ("widened: C is not, though it is added to", DIRECT, "if (is_beside && s->beta != 0)", "if (0)"),
    ("directly: an item leaves the next one its last beta", DIRECT, "    s->beta = beta;\n", ""),
    ("widened: integers are added to in f32 too", DIRECT, "s->beta = j->add ? 0 : p->beta;", "s->beta = p->beta;"),
    ("widened: integers are summed in f32 for too long", READS, "p->k <= tg_exact_k(p->a.type, p->b.type);", "p->k > 0;"),
    ("widened: each thread has the first rows", DIRECT, "rows.begin * p->a.row_stride", "0 * p->a.row_stride"),
    ("words: the second vector has the first one's mask", WORDS, "j == nv - 1 ? last", "j == 0 ? last"),
    ("packed: the workspace is that of the plan before", PREPARE,
     "    if (packed && tg_packed_fit(ctx, p))\n        return ctx->status;\n    ctx->plan_bytes = tg_problem_is_empty(p) ? 0 : ctx->backend->workspace(ctx, p, &ctx->plan);\n",
     "    ctx->plan_bytes = tg_problem_is_empty(p) ? 0 : ctx->backend->workspace(ctx, p, &ctx->plan);\n    if (packed && tg_packed_fit(ctx, p))\n        return ctx->status;\n"),
    ("late: panels of one warp take one place", LOOPS, "now.b.is_late && lines <= j->tile.warp.m && j->tile.warp.n == now.b.line;",
     "now.b.is_late;"),
    ("late: the ragged panel is not packed", LOOPS, "if (is_late && !keeps)", "if (0)"),
    ("late: the second vector is not kept", KERNEL, "*(LOOSE *)(kept + j * TG_V) = b_now[j];",
     "*(LOOSE *)kept = b_now[j];"),
    ("words: A is packed for any sign of B", PACKED, "packed->other != other", "0"),
    ("scalars of whole numbers are looked at once", CALL, "if (p->c.type == TG_I32 && (alpha", "if (0 && (alpha"),
    ("streams: the sums begin anew", STREAMS, "s->begins_with_sums = k % j->slice > 0;", "s->begins_with_sums = 0;"),
    ("streams: beta is applied for each slice of k", STREAMS, "is_first ? j->p->beta : 1);", "j->p->beta);"),
    ("streams: all pages of columns are the first", STREAMS, "moved(c_at(j, x->item.c), 0, x->cols.begin)", "moved(c_at(j, x->item.c), 0, x->all.begin)"),
    ("streams: C of another type is not read", STREAMS, "if (j->is_c_beside && !x->is_apart && !j->add && p->beta != 0)", "if (0)"),
    ("streams: all rows of A are the first", STREAMS, "s->a_row = s->k;", "s->a_row = 0;"),
    ("streams: the sums of the block before go on", STREAMS, "s->begins_with_sums = k % j->slice > 0;",
     "s->begins_with_sums = k > 0;"),
    ("halves: as many are widened as fill L2", READS, "(double)l->l2 * 3 / 4 /", "(double)l->l2 /"),
    ("halves: streams take bf16 for f16", KERNELS, "(vec), (tg_type)b_type, s)", "(vec), (tg_type)(b_type == TG_BF16 ? TG_F16 : b_type), s)"),
    ("halves: a stream's panels are as far apart as of f32", KERNEL_FEW, "const int64_t b_next = s->b_next * bytes / TG_V;", "const int64_t b_next = s->b_next * (int64_t)sizeof(TG_T);"),
    ("halves: a stream's rows are as far apart as of f32", KERNEL_FEW, "b_row = s->b_row * bytes / TG_V, sums_row", "b_row = s->b_row * (int64_t)sizeof(TG_T), sums_row"),
    ("halves: the end of a sum is not converted", STREAMS, "tg_is_stream(s, j->kernel.columns) ?", "s->columns == j->kernel.columns ?"),
    ("halves: ragged columns are not converted", STREAMS, "tg_is_stream(s, j->kernel.columns) ?", "tg_is_stream(s, s->columns) ?"),
    ("halves: a pair that two blocks of k share is read as one of a block", WAY, "is_read && !parts_words && ", "is_read && "),
    ("a tiling may shrink to what no kernel has", "backends/cpu/backend.c", "if (shrinks && !can_shrink", "if (0 && !can_shrink"),
    ("near streams: the panels that are left are the first ones", KERNEL_FEW, "now.sums = (TG_T *)s->sums + done * s->sums_next;", ""),
    ("near streams: the panels that are left read B's first ones", KERNEL_FEW, "now.b = (const char *)s->b + done * s->b_next * NAME(bytes_as)(b_type) / TG_V;", ""),
    ("packed streams: panels side by side are neighbours", KERNEL_FEW, "const int64_t apart = are_apart ? b_next :", "const int64_t apart = are_apart < 0 ? b_next :"),
    ("packed streams: panels of a block of k are as long as of the first", STREAMS, "s->b_next = line * block_k;", "s->b_next = line * j->tile.block.k;"),
    ("packed streams: a block of k is the first", STREAMS, "(block * tg_round_up(p->n, line) +", "(0 * tg_round_up(p->n, line) +"),
    ("packed streams: what k ends with is the first", STREAMS, "(k - block) * line)", "0 * line)"),
    ("packed streams: sums that were left stay there", STREAMS, "            if (s.leaves_sums)\n                take_sums(&x, sums, s);\n", ""),
    ("packed streams: those of narrow tilings too", WAYS, "j->kernel.columns == t->thread.n && ", ""),
    ("packed streams: a slice that is not a block too", WAYS, "j->slice == t->block.k &&", "1 &&"),
    ("packed streams: sums have room for columns alone", JOB, "tg_round_up(columns, stream_panel(j)) + 16", "columns"),
    ("packed: panels of short types are taken for words", STAGE, "s->packed && s->bytes == j->bytes;", "s->packed != NULL;"),
    ("packed: short types are staged from the first panel", STAGE, "panels_in(j, s, s->packed) + panel * s->line * packed_k(j, s) * s->bytes", "panels_in(j, s, s->packed)"),
    ("packed: lines of k are as far apart as in a whole block", STAGE, "s->k_inner ? packed_k(j, s) : 1;", "s->k_inner ? s->k : 1;"),
    ("packed: bytes are packed as halves", CALLS, "s.bytes == 1 ? copy_bytes : copy_halves", "copy_halves"),
    ("bytes: each slice of turned columns is added to beta times C", DIRECT, "k == 0 ? j->p->beta : 1);", "j->p->beta);"),
    ("bytes: all slices of turned columns are the first", DIRECT, "s.b = b + k * bytes;", "s.b = b;"),
    ("bytes: the few lines of a slice are the first", DIRECT, "s.a = a + k * j->bytes;", "s.a = a;"),
    ("bytes: the few are of the type of the many", DIRECT, "few_type = is_b ? p->a.type : p->b.type;", "few_type = type;"),
    ("bytes: streams take unsigned ones for signed", KERNELS, "(vec), (tg_type)b_type, s)", "(vec), (tg_type)(b_type == TG_U8 ? TG_I8 : b_type), s)"),
    ("words: a stream has no more rows than a tile", STREAMS, "s->rows = (int)p->m;", "s->rows = (int)tg_min(p->m, j->tile.thread.m);"),
    ("bytes: turned ones lose their sign", "backends/cpu/isa.h", "_mm256_srai_epi32(up, 24)", "_mm256_srli_epi32(up, 24)"),
    ("bytes: turned ones keep their neighbours", "backends/cpu/isa.h", "_mm256_set1_epi32(255)", "_mm256_set1_epi32(511)"),
    ("halves: few rows are read as if widened", DIRECT, "if (few_k != 1 || s.b_type) {", "if (few_k != 1) {"),
    ("halves: of turned pairs the first counts twice", TURNED, "square[e / in_word], e % in_word", "square[e / in_word], 0"),
    ("halves: a run of panels is converted once", STREAMS, "is_there && runs_on ?", "runs_on ?"),
    ("directly: columns behind a panel that is cut are left out", DIRECT, "n += s->columns, panel++", "n += j->tile.thread.n, panel++"),
    ("flat: every panel of B is the first", DIRECT, "s->b_next = s->c_next = thread_n;",
     "s->c_next = thread_n;"),
    ("masks: the last vector is whole", KERNEL, "is_masked ? s->columns - (nv - 1) * TG_V : 0);",
     "TG_V);"),
    ("a known shape: overlap is not looked for", CALL, "tg_lie_apart(x->c, reach[2], x->a, reach[0])", "1"),
    ("a known shape: data may lie at odd addresses", CALL, " && odd == 0", ""),
    ("data may lie at odd addresses", CHECK, "((uintptr_t)data & (bytes - 1)) == 0", "1"),
    ("a known shape: alpha is the last one", CALL, "    p->alpha = alpha;\n", ""),
    ("a known shape: C may have other strides", CALL, "p->c.row_stride == q->c.row_stride && ", ""),
    ("batch invariance: the block of k depends on the row", TILE, "/ (32 * word), 8)",
     "/ (8 * unit.m * word), 8)"),
    ("short types: bf16 is rounded up at ties", CONVERT, "up = 0x7fff + (bits >> 16 & 1);",
     "up = 0 * bits + 0x8000;"),
    ("short types: bf16 loses NaN", CONVERT, "(up & ~is_nan)", "up"),
    ("short types: a row ends with its last whole register", CONVERT, "if (count % AT_ONCE && count >= AT_ONCE)", "if (0)"),
    ("short types: rows of 32 are rows of 16", CONVERT, "from + row * from_row, 16 * (x + 1));", "from + row * from_row, 16);"),
    ("beside C: what C had is forgotten", LOOPS, "    if (s->beta != 0)\n        take_c", "    if (s->beta > 2)\n        take_c"),
    ("beside C: there is room for one tile", CALLS, "tg_round_up(j->tile.warp.n, j->tile.thread.n);", "j->tile.thread.n;"),
    ("short types: each block of k is rounded", LOOPS, "j->sums_bytes ? &sums_block : &c_block",
     "&c_block"),
    ("short types: i8 has no sign", CONVERT, "int8_t, some_of_i8, (float)", "uint8_t, some_of_u8, (float)"),
    ("short types: integers are summed in f32 for too long", READS, "tg_round_down((1 << 24) /",
     "tg_round_down((1 << 30) /"),
    ("short types: columns are converted one too few", CONVERT, "tg_min(LINES_AT_ONCE, inner - i)",
     "tg_min(LINES_AT_ONCE, inner - i - (inner > 8))"),
    ("short types: a plan for other types is used", CALL, " && x->type == y->type", ""),
    ("short types: a fraction of an integer is taken", CHECK, "(int32_t)factor == factor", "1"),
    ("packed: each block of k has the panels of the first", STAGE, "(s->ks.begin * s->all_lines +", "(0 +"),
    ("packed: another k is taken", PACKED, "packed->k != p->k || ", ""),
    ("packed: another tiling than the forced one is taken", PACKED, "if (ctx->is_forced && ", "if (0 && "),
    ("packed: the plan for another tiling is used", CALL, "memcmp(packed, &ctx->packed, sizeof *packed) == 0",
     "1"),
    ("packed: the order of C decides which operand it is", PREPARE, "        return packed->is_swapped;",
     "        (void)0;"),
    ("packed: C may overlap it", CHECK, "if (views_overlap(&c, &v))",
     "if (!is_packed[i] && views_overlap(&c, &v))"),
    ("lists: alpha of the item before is used", GROUPED, "x->alpha == last->alpha &&", ""),
    ("lists: the data of later items are not checked", GROUPED, "&& tg_item_is_plain(solo, &data)", ""),
    ("lists: threads share one workspace", GROUPED, "(size_t)me * all->slice", "0 * (size_t)me"),
    ("lists: large items are left out", GROUPED, "run_some(ctx, l, 0, l->count, large, all->largest);", ";"),
    ("lists: the last items of a kind are left out", GROUPED, "    if (count > 0)\n        run_items(ctx, &p, items, count);",
     ""),
    ("small items: rows start a row late", DIRECT, "s->a = a + tall_rows * s->a_row * bytes;",
     "s->a = a + (tall_rows + 1) * s->a_row * bytes;"),
    ("small items: the tiles below the first are left out", DIRECT, "s->more = tiles - 1;", "s->more = 0;"),
    ("a step at once: beta is that of the call before", CALLS, "    s->beta = j->p->beta;\n", ""),
    ("a step at once: though it has several items", CALLS, "j->is_step && j->cells == 1 && p->k", "j->is_step && p->k"),
    ("a step at once: all items are the first", CALLS, "&low, item_at(j, item));", "&low, item_at(j, begin));"),
    ("a step at once: low rows are the first ones", CALLS, "run_step(j, low, item, j->rows.tall * j->rows.height);", "run_step(j, low, item, 0);"),
    ("a step at once: a strip is an item", JOB, "j->cells == p->batch && p->n", "p->n"),
    ("pieces of a thread tile lie side by side", TILE,
     "element / piece * piece * lanes + lane * piece", "element / piece * piece + lane * piece"),
    ("a rule of legality is dropped", TILE, "TG_REFUSE_IF(t.block.n % t.warp.n,",
     "TG_REFUSE_IF(t.block.n < t.warp.n,"),
    ("threads are asked for by any problem", PICK, "work_to_share = 1e6, work_per_thread = 2.5e5;",
     "work_to_share = 0, work_per_thread = 1;"),
    ("a forced row of the caches is always staged", PICK,
     "if (stated.stages == 1 && may_choose(p, stated, l, bytes))", "if (0)"),
    ("tuning: a line wins over tg_force", PREPARE, "forced ? forced : tg_tuning_find(ctx, p)",
     "tg_tuning_find(ctx, p) ? tg_tuning_find(ctx, p) : forced"),
    ("tuning: a line of another device is used", TUNING, "strcmp(x->device, ctx->device_name) != 0", "0"),
    ("tuning: a line is printed that is not taken", TUNING, "    if (check_tile(ctx, *tile, p.a.type))\n        return ctx->status;\n", ""),
    ("tuning: a line of another backend is used", TUNING, "strcmp(x->backend, ctx->backend->name) != 0",
     "0"),
    ("tuning: a line of another library is used", TUNING, "strcmp(x->library, library) != 0", "0"),
    ("tuning: a line of another format is used", TUNING, "x->format != FORMAT", "0"),
    ("tuning: a line is not read to its end", TUNING, "strcmp(again, text) != 0", "0"),
    ("tuning: an illegal tiling is used", TUNING, "    if (refusal)\n", "    if (0)\n"),
    ("tuning: a line changes bits", TUNING, "(has_block || ", "("),
    ("tuning: a line changes bits of f64 and bf16", TUNING, "if (is_cpu && (has_block",
     "if (is_cpu && type == TG_F32 && (has_block"),
    ("tuning: sizes are rounded down", TUNING, "tg_min(below + is_near_next,", "tg_min(below,"),
    ("tuning: a line is for any number of threads", TUNING,
     "return ctx->limits.l1 > 0 ? tg_units(ctx) : 0;", "return 1;"),
    ("tuning: a line for B transposed is used for B", TUNING, "return a < 0 || b < 0 ? -1 : 2 * a + b;",
     "return a < 0 || b < 0 ? -1 : 2 * a;"),
    ("tuning: a new line waits for the next shape", TUNING, "    ctx->given.size = 0;\n", ""),
    ("tuning: lines push one another out", TUNING, "while (table[at].key != 0 && table[at].key != key)", "while (0)"),
    ("tuning: lines are lost when there are more", TUNING, "*place_of(table, places, ctx->tuned[i].key) = ctx->tuned[i];", ";"),
    ("tuning: of lines for one problem the first counts", TUNING, "*place = *tuned;", "*place = place->key ? *place : *tuned;"),
    ("tuning: the end of a long line is one", TUNING, "if (length < TG_TUNING_LINE - 1)",
     "if ((length %= TG_TUNING_LINE - 1) >= 0)"),
    ("tuning: a NUL ends a line", TUNING, "(char)(c ? c : '?')", "(char)c"),
    ("GPU: no barrier between put and multiply", SIMT,
     "of_b.put(stage_of(step) + a_size);\n            __syncthreads();",
     "of_b.put(stage_of(step) + a_size);"),
    ("GPU: no barrier before a stage is staged again", SIMT,
     "if constexpr (T.stages == 1) {\n                __syncthreads();", "if constexpr (T.stages == 1) {"),
    ("GPU: slices do not wait for each other's sums", SIMT,
     "= at[i][j];\n            __syncthreads();", "= at[i][j];"),
    ("GPU: a copy is not waited for", SIMT, "T.stages == 1 ? 0 : T.stages - 2>();",
     "T.stages == 1 ? 0 : T.stages - 1>();"),
    ("GPU: slices are not summed", SIMT, "at[i][j] += fast[me.row(i) * T.block.n + me.col(j)];",
     "at[i][j] += 0 * fast[me.row(i) * T.block.n + me.col(j)];"),
    ("GPU: the edge of n is one short", SIMT, "if (col + e < cols)", "if (col + e + 1 < cols)"),
    ("GPU: the edge of m is one beyond", SIMT, "if (row >= rows)", "if (row > rows)"),
    ("GPU: the last k is left out", CARRIER, "left_u = int(tg_min(k, U));",
     "left_u = int(tg_min(k - (k < U), U));"),
    ("GPU: padding is not zero", CARRIER, "? from[e * (du * su + dv * sv)]\n"
     "                              : Elem(0);", "? from[e * (du * su + dv * sv)]\n"
     "                              : Elem(1);"),
    ("GPU: an unaligned base is read in vectors", CARRIER, "how = sv == 1 && is_aligned &&",
     "how = sv == 1 &&"),
    ("GPU: alpha is lost", SIMT, "alpha = is_partial ? Elem(1) : factor<Elem>(p.alpha);", "alpha = Elem(1);"),
    ("GPU: each split takes all of k", GEOMETRY,
     "k_end = tg_min(k_begin + (each + (split < one_more)) * t.block.k, p.k);", "k_end = p.k;"),
    ("GPU: the first split is summed alone", "backends/gpu/launch.h",
     "for (int split = 0; split < p.splits; split++)", "for (int split = 0; split < 1; split++)"),
    ("GPU: the items of B are as far apart as those of A", SIMT, "at.item * p.b_item",
     "at.item * p.a_item"),
    ("GPU: a block asks for half its fast memory", SIMT_TABLE,
     "fast_bytes = tg_tile_fast_bytes(tile, sizeof(Elem));",
     "fast_bytes = tg_tile_fast_bytes(tile, sizeof(Elem)) / 2;"),
    ("a stream has more clusters than a device runs", "common/tail.h",
     ": slots * 10 / 11 / tiles;", ": parts;"),
    ("edges: two rows or columns are left to one", "common/tail.h",
     "size % block == 1 ? size - 1 : size;", "size % block <= 2 ? size - size % block : size;"),
    ("edges: the column has too few blocks", "common/tail.h",
     "(e.n < n ? tg_ceil_div(e.m, e.width) : 0);\n    return e;",
     "(e.n < n ? e.m / e.width : 0);\n    return e;"),
    ("copies: few go on", "common/tail.h", "pieces > (double)(8 * TG_COPIED_FIRST * units)", "1"),
    ("copies: those that are used too seldom go on", "common/tail.h",
     "(double)m * (double)n >= 256.0 * (double)x", "1"),
    ("copies: those that take longer than the first blocks go on", "common/tail.h",
     "7.0 * (double)x < 2.0 * (double)(resident * block.m * block.n)", "1"),
    ("copies: they go on beside small blocks", "common/tail.h",
     "return tg_can_copy(block, resident) && pieces", "return pieces"),
    ("a module of another version is used", "common/modules.c",
     "if (module && strcmp(module->version, tg_version()) == 0 &&", "if (module &&"),
    ("modules are looked for in relative folders", "common/modules.c", "folder[0] != '/' || ", ""),
    ("a forked child starts threads", "backends/cpu/backend.c",
     "atomic_store(&is_forked_child, 1);", ";"),
]
FAKES = [f"tests/libfake-{kind}.so"
         for kind in ("good", "version", "context", "table", "null", "empty")]
SUITES = [("test_tile",), ("test_tile_words",), ("test_tail",), ("test_choose",), ("test_modules", *FAKES),
          ("test_simt_4x8",), ("test_simt_8x8",), ("test_gemm", "--thin"), ("test_bound", "--thin"),
          ("test_api",)]
# What a file has no part in needs neither be built nor run.
SUITES_OF = {"backends/gpu": [suite for suite in SUITES if "simt" in suite[0]],
             "backends/cpu": [suite for suite in SUITES if suite[0] in ("test_gemm", "test_bound",
                                                                        "test_api")],
             TUNING: [("test_api", "tuning")]}


IS_EMULATED = "-Demulated=true" in sys.argv


def machine_has(flag):
    if IS_EMULATED:
        return True
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return flag in file.read()


NEEDS = {"tiles:": "amx_bf16", "pairs:": "avx512_bf16", "words:": "avx512_vnni", "late:": "avx512f", "narrow:": "avx512f", "lower half:": "avx512f", "halves:": "f16c"}


def can_show(mutation):
    return all(machine_has(flag) for kind, flag in NEEDS.items() if mutation[0].startswith(kind))


def level_of(mutation):
    """Intel's cores have pairs, and do not choose them."""
    return {"TILEGEMM_ISA": "bf16"} if mutation[0].startswith("pairs:") else {}


def build(folder, suites):
    targets = ["tests/" + suite[0] for suite in suites] + FAKES
    return subprocess.run(["ninja", "-C", folder, "--quiet"] + targets,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def caught_by(folder, suites, level):
    """The first suite that is red, or None."""
    for suite, *args in suites:
        try:
            done = subprocess.run([os.path.join(folder, "tests", suite)] + args, timeout=900 if IS_EMULATED else 120,
                                  cwd=folder, env=os.environ | level, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return suite + " (hangs)"
        if done.returncode != 0:
            return suite
    return None


def fits(tree, mutation):
    _, name, old, _ = mutation
    with open(os.path.join(tree, name), encoding="utf-8") as file:
        times = file.read().count(old)
    if times != 1:
        print(f"{mutation[0]}: its text stands {times} times in {name}: {old}")
    return times == 1


def plant(tree, folder, mutation):
    """What caught the bug; None if nothing did or it could not be planted."""
    _, name, old, new = mutation
    suites = SUITES_OF.get(name) or SUITES_OF.get(os.path.dirname(name), SUITES)
    path = os.path.join(tree, name)
    if not fits(tree, mutation):
        return None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    built = build(folder, suites)
    caught = caught_by(folder, suites, level_of(mutation)) if built.returncode == 0 else None
    if built.returncode != 0:
        print(built.stdout[-2000:])
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return caught


def main():
    if sys.argv[1:] == ["--fit"]:
        return not all([fits(TOP, mutation) for mutation in MUTATIONS])
    options = [a for a in sys.argv[1:] if a.startswith("-D")]
    words = [a for a in sys.argv[1:] if a not in options]
    wanted = [m for m in MUTATIONS if not words or any(w in m[0] for w in words)]
    passed = 0
    with tempfile.TemporaryDirectory() as temp:
        tree, folder = os.path.join(temp, "tree"), os.path.join(temp, "build")
        shutil.copytree(TOP, tree, symlinks=True, ignore=shutil.ignore_patterns(".*", "build*"))
        subprocess.run(["meson", "setup", folder, tree, "-Dbackends=cpu"] + options,
                       check=True, stdout=subprocess.DEVNULL)
        untouched = build(folder, SUITES)
        red = "the build" if untouched.returncode != 0 else caught_by(folder, SUITES, {})
        if red:
            sys.exit(f"{red} is red before anything is planted\n{untouched.stdout}")
        for mutation in filter(can_show, wanted):
            caught = plant(tree, folder, mutation)
            passed += caught is not None
            print(f"{mutation[0]:45} {caught or 'NOT CAUGHT'}", flush=True)
    left_out = [mutation[0] for mutation in wanted if not can_show(mutation)]
    if left_out:
        print("left out, for want of F16C, AVX-512, VNNI, BF16 or AMX here:", "; ".join(left_out))
    planted = len(wanted) - len(left_out)
    print(f"{passed} passed, {planted - passed} failed")
    return passed < planted


if __name__ == "__main__":
    sys.exit(main())
