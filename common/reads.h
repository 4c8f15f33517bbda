/* SPDX-License-Identifier: Apache-2.0
 *
 * How a CPU reads a problem: what lies near, what is read where it is or packed on its way, and
 * what threads share of it. The chooser weighs by these rules, and the backend goes by them. */
#ifndef TG_READS_H
#define TG_READS_H

#include "gemm.h"

/* Do so many rows of A and columns of B lie in L1? */
static inline int tg_is_near(const tg_problem *p, int64_t lines, int64_t bytes, const tg_limits *l)
{
    return (double)lines * (double)p->k * (double)bytes <= 0.75 * (double)l->l1;
}

/* Are so many lines of so many elements more than there is room for? (Their product may be too
 * large to compute.) */
static inline int tg_exceeds(int64_t room, int64_t lines, int64_t length, int64_t bytes)
{
    return length > room / bytes / tg_max(lines, 1);
}

/* Is a matrix of so many lines so large that it comes from memory? */
static inline int tg_is_beyond_caches(int64_t lines, int64_t k, int64_t bytes, const tg_limits *l)
{
    return tg_exceeds(l->l3 / 4, lines, k, bytes);
}

/* With no more of k than this, C is what takes the time: a CPU writes it row by row, if A and B are
 * read where they are, or B is copied. */
enum { TG_FLAT_K = 16 };

/* Up to so many lines times columns that lie along k need nothing staged: squares of these are
 * turned in registers, B's for a few rows of A, or A's for a few columns of B. Those of A that
 * are little more than a vector are worth it if B had to be packed otherwise, or C to be added to.
 */
enum { TG_TURNED_ROWS = 4 };
typedef enum tg_turned { TG_NOT_TURNED, TG_TURNED_B, TG_TURNED_A } tg_turned;

/* Is a small B that is not read where it is copied to rows, for kernels that read A where it is? */
static inline int tg_copies_b(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return plan->a_in_place && !plan->b_in_place && !(p->flags & TG_PACKED) &&
           p->c.col_stride == 1 && p->c.type == p->a.type &&
           tg_kernel_bytes(p->a.type, *l, plan->tile) == bytes && plan->tile.inst.k == 1 &&
           !tg_exceeds(l->l2 / 4, p->n, p->k, bytes);
}

/* So many products of integers are exact in f32, whatever their order; in whole words. */
static inline int64_t tg_exact_k(tg_type a, tg_type b)
{
    return tg_round_down((1 << 24) / ((a == TG_I8 ? 128 : 255) * (b == TG_I8 ? 128 : 255)), 4);
}

/* Is it so small that short types are best made f32 of as a whole, and multiplied then? Few rows
 * convert a B that is not tiny on its way, and kernels of words do without. */
static inline int tg_widens(const tg_problem *p, const tg_limits *l)
{
    enum { TINY = 4096 }; /* elements */
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const int are_halves =
        tg_type_size(p->a.type) == 2 && (p->c.type == p->a.type || p->c.col_stride == 1);
    const int are_exact = tg_type_size(p->a.type) == 1 && p->k <= tg_exact_k(p->a.type, p->b.type);
    return (are_halves || are_exact) && !(p->flags & TG_PACKED) &&
           (p->m > TG_TURNED_ROWS || n * k <= TINY) &&
           m * k + k * n + m * n <= (double)l->l2 * 3 / 4 / (double)sizeof(float);
}

/* The columns that whole vectors of 64 bytes leave over, if they are so few that registers take
 * them of several rows (narrow.h): up to a lane of 16 bytes, or two where shuffles are not in the
 * way of multiply-adds, in cores that are quick with pairs of bf16. Others do so only if A is near,
 * or other columns bring it closer. 0: they are not, or A is little. */
static inline int64_t tg_narrow(const tg_problem *p, tg_tile t, const tg_limits *l)
{
    enum { FEW = 8, LITTLE = 8192, LANE = 16, ENOUGH = 3 };
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), left = p->n % tg_max(t.vec, 1);
    const int shuffles = (l->matrix & TG_CPU_BF16) != 0;
    const int is_read = !(p->flags & TG_PACKED) && p->a.col_stride == 1 && p->c.col_stride == 1 &&
                        p->c.type == p->a.type && bytes == tg_kernel_bytes(p->a.type, *l, t);
    const int is_near = p->n >= ENOUGH * t.vec || !tg_exceeds(l->l2, p->m, p->k, bytes);
    const int takes = t.form == TG_OUTER && t.inst.k == 1 && l->vec_bytes == 64 &&
                      t.vec * bytes == l->vec_bytes && (shuffles || is_near);
    const int is_much = p->m > FEW && p->k > TG_FLAT_K && tg_exceeds(LITTLE, p->m, p->k, bytes);
    return takes && is_read && is_much && left <= (1 + shuffles) * LANE / bytes ? left : 0;
}

static inline int tg_packs_nothing(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return (plan->a_in_place && plan->b_in_place) || tg_copies_b(p, plan, l);
}

enum { TG_STREAM_ROWS = 32 };

static inline tg_turned tg_turned_of(const tg_problem *p, int64_t vector, int64_t block_k)
{
    const int is_worth =
        4 * p->m >= 5 * vector || (2 * p->m >= vector && (p->b.col_stride != 1 || p->k > block_k));
    if ((p->flags & TG_PACKED) || (p->c.type != p->a.type && p->c.type != TG_I32))
        return TG_NOT_TURNED;
    if (p->m <= TG_TURNED_ROWS && p->b.row_stride == 1 && p->b.col_stride != 1)
        return TG_TURNED_B;
    return p->n <= TG_TURNED_ROWS && is_worth && p->k >= vector && p->a.col_stride == 1 &&
                   p->a.row_stride != 1
               ? TG_TURNED_A
               : TG_NOT_TURNED;
}

/* Has each thread a strip of C for itself? */
static inline int tg_is_cut(const tg_plan *plan) { return plan->strips.m * plan->strips.n > 1; }

/* The largest of so many strips of all rows, or columns, that end where grains of them do. */
static inline int64_t tg_largest_strip(int64_t all, int64_t strips, int64_t grain)
{
    return tg_min(all, tg_ceil_div(tg_ceil_div(all, grain), strips) * grain);
}

/* Strips end where tiles do; or, if the largest is so much smaller then, where finer grains do: a
 * ragged tile takes as long as a quarter more. */
static inline int tg_strip_grain(int64_t all, int64_t strips, int tile, int fine)
{
    const int64_t in_tiles = tg_largest_strip(all, strips, tile);
    return tg_largest_strip(all, strips, fine) + tile / 4 < in_tiles ? fine : tile;
}

/* Cores of Xeons have it, and caches beyond it and memory are further off there than elsewhere. */
static inline int tg_has_large_l2(const tg_limits *l) { return l->l2 >= 2 << 20; }

/* The largest power of two that divides it: lines so far apart share sets of a cache. */
static inline int64_t tg_even_part(int64_t stride)
{
    return tg_max(1, (int64_t)((uint64_t)stride & -(uint64_t)stride));
}

/* Does L2 take so many rows of B before they push one another out? */
static inline int tg_holds_rows(const tg_problem *p, const tg_limits *l, int64_t rows)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return l->l2 / bytes / tg_even_part(p->b.row_stride) >= rows;
}

/* The columns of B that a thread has, and how many rows of them are as large as L2. */
static inline int64_t tg_columns_of_thread(const tg_problem *p, const tg_plan *plan)
{
    return tg_max(1, p->batch > 1 ? p->n : tg_ceil_div(p->n, plan->threads));
}

static inline int64_t tg_rows_in_l2(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    return l->l2 / (int64_t)tg_type_size(p->a.type) / tg_columns_of_thread(p, plan);
}

/* Few rows times a B that is read where it is, with a large L2: so many tiles of them if each
 * fetches for itself what it reads next; and so many rows of B in a lot. */
enum { TG_STREAM_TILES = 2, TG_LOT = 64 };

/* Do kernels of words take rows of A as they lie along k? */
static inline int tg_takes_words_in_rows(tg_tile t) { return t.inst.k > 1 && t.form == TG_OUTER; }

/* Can sums of a few rows wait for those of other blocks of k? As rows of f32 or f64, which tiles of
 * halves make as well as kernels that convert them. */
static inline int tg_sums_wait(const tg_problem *p, tg_tile t, const tg_limits *l)
{
    const int bytes = (int)tg_type_size(p->a.type);
    if (t.inst.k > 1)
        return t.inst.m > 1 && bytes == 2;
    return t.form == TG_OUTER && t.stages == 1 && p->c.type == p->a.type &&
           (tg_kernel_bytes(p->a.type, *l, t) == bytes || bytes == 2);
}

/* Threads read strips of a B in rows badly if these are narrow: memory comes page by page. If they
 * were, and are far, threads share blocks of k as well, whose sums are made apart, and added in
 * order then. Those are to be little beside B. More than a few rows are better off without where
 * L2 is small, as are two threads where it is large, or many rows that can fetch lots, or that are
 * converted each time. So many blocks; or 1: k is not split. */
static inline int tg_stream_splits(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    enum { PAGE = 4096, LITTLE = 16 };
    const tg_tile t = plan->tile;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), threads = plan->threads;
    const int64_t row = p->n * bytes; /* of B */
    const int is_large = tg_has_large_l2(l);
    const int64_t tiles = bytes > 2 ? 2 * TG_STREAM_TILES : TG_STREAM_TILES;
    const int64_t most = is_large ? tiles * t.thread.m : TG_TURNED_ROWS;
    const int64_t widest = !is_large                             ? 2 * PAGE
                           : p->m > TG_STREAM_TILES * t.thread.m ? PAGE / 2
                                                                 : PAGE;
    const int64_t least = is_large ? l->l2 / 2 : 8 * l->l2; /* of B, for a thread */
    const int is_plain = p->batch == 1 && !(p->flags & TG_PACKED) && p->b.col_stride == 1 &&
                         p->c.col_stride == 1 && tg_sums_wait(p, t, l);
    if (!is_plain || threads <= (is_large ? 2 : 1) || row < PAGE || row > widest * threads ||
        p->k < least * threads / row || p->m > most || p->m > t.block.k / LITTLE)
        return 1;
    return (int)tg_ceil_div(p->k, tg_ceil_div(t.block.k, t.slices));
}

/* Is what a thread has of B so near that they read it best panel by panel? The first tile of them
 * then brings it closer for others, and no sums wait as in streams. So it is if L2 holds its rows,
 * or has room to spare: of a B that is some times as large, or of a little more if its rows, more
 * than two pages apart, are far for whatever fetches ahead. */
static inline int tg_reads_panels(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    enum { TWO_PAGES = 8192 };
    const int64_t bytes = (int64_t)tg_type_size(p->a.type), rows = tg_rows_in_l2(p, plan, l);
    const int64_t least = p->b.row_stride <= TWO_PAGES / bytes ? p->k / 4 : p->k - p->k / 3;
    return tg_has_large_l2(l) && tg_stream_splits(p, plan, l) == 1 && least <= rows &&
           (tg_holds_rows(p, l, p->k) || p->k <= rows / 4) &&
           (plan->threads <= 2 || p->m <= TG_STREAM_TILES * plan->tile.thread.m);
}

/* Or is it worth it that all tiles together fetch its rows, a lot of them ahead? Not if they are
 * short, if L2 does not hold two lots, or if it holds all that some threads have of B. */
static inline int tg_fetches_lots(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    enum { SHORT = 2048 };
    const int is_near = p->k <= tg_rows_in_l2(p, plan, l) && tg_holds_rows(p, l, p->k);
    return tg_has_large_l2(l) && !tg_reads_panels(p, plan, l) && tg_holds_rows(p, l, 2 * TG_LOT) &&
           tg_columns_of_thread(p, plan) >= SHORT / (int64_t)tg_type_size(p->a.type) &&
           (plan->threads <= 2 || !is_near);
}

/* So many tiles of rows of A are served by a B that is read where it is: more if it is far, and
 * with vectors of 64 bytes. */
static inline int tg_stream_tiles(const tg_limits *l, int64_t bytes, int is_far)
{
    const int most = is_far && !tg_has_large_l2(l) ? 8 : 4;
    if (l->vec_bytes < 64 || bytes == 1)
        return l->vec_bytes == 32 && is_far ? 3 : 2;
    return most;
}

static inline int64_t tg_stream_rows(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    const int is_far = tg_exceeds(l->l2, p->n, p->k, bytes);
    const int is_alone = tg_has_large_l2(l) && !tg_fetches_lots(p, plan, l) &&
                         tg_stream_splits(p, plan, l) == 1 &&
                         (plan->threads > 2 || !tg_reads_panels(p, plan, l));
    const int most = tg_stream_tiles(l, bytes, is_far);
    const int64_t tiles = is_alone ? tg_min(TG_STREAM_TILES, most) : most;
    return plan->tile.form == TG_OUTER && p->b.col_stride == 1 ? tiles * plan->tile.thread.m : 0;
}

/* Is B read in streams, where it is or converted? */
static inline int tg_is_streamed(const tg_problem *p, const tg_limits *l, const tg_plan *plan,
                                 int bytes)
{
    return p->m <= tg_stream_rows(p, plan, l) &&
           (plan->b_in_place || tg_type_size(p->a.type) != (size_t)bytes);
}

/* A B that is read in streams: rows at a time, from memory and from caches. */
enum { TG_STREAMED = 8, TG_STREAMED_NEAR = 256 };

/* So many from caches. Narrow panels of them stay in L1 for the next tile of rows; so do few rows
 * of B, if they are a page apart and share sets of it; and where caches beyond L2 are far, they may
 * lie in few pages. */
static inline int64_t tg_near_rows(const tg_problem *p, tg_tile t, const tg_limits *l,
                                   int64_t bytes, int converts)
{
    enum { PAGE = 4096, PAGES = 32 };
    const int64_t in_pages = PAGES * PAGE / bytes / tg_max(1, p->b.row_stride);
    const int is_beyond = tg_has_large_l2(l) && tg_exceeds(l->l2, p->n, p->k, bytes);
    const int is_crowded =
        l->vec_bytes == 32 && !converts && tg_even_part(p->b.row_stride) * bytes >= PAGE;
    const int is_narrow = l->vec_bytes < 64 && p->m > t.thread.m;
    const int64_t near = is_crowded  ? 2 * TG_STREAMED
                         : is_narrow ? TG_STREAMED_NEAR / 4
                                     : TG_STREAMED_NEAR;
    return is_beyond ? tg_clamp(tg_round_down(in_pages, TG_STREAMED), 32, near) : near;
}

/* Is it a few rows, of which so many words of B are used at once that it is best read where it is?
 * Twice as many, if kernels can and B is in L1; and so many tiles of bytes, whose words are made
 * once for all of them. */
static inline int tg_streams_words(const tg_problem *p, tg_tile t, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->b.type);
    const int is_near = !tg_exceeds(l->l1, p->n, p->k, bytes);
    enum { BYTE_TILES = 4 };
    const int64_t rows = tg_takes_words_in_rows(t) ? (1 + is_near) * TG_STREAM_ROWS
                         : t.inst.m > 1            ? tg_min(t.thread.m, TG_STREAM_ROWS)
                                                   : BYTE_TILES * t.thread.m;
    return t.inst.k > 1 && p->m <= rows && p->a.col_stride == 1 && p->b.col_stride == 1;
}

/* Or with columns that lie along k, of which 16 are a tile as they lie, or are turned? */
static inline int tg_turns_words(const tg_problem *p, tg_tile t)
{
    return (t.inst.m > 1 || tg_takes_words_in_rows(t)) && p->m <= t.thread.m &&
           p->b.row_stride == 1 && p->b.col_stride != 1 && !(p->flags & TG_PACKED);
}

/* Lines of A along k are rows of tiles as they lie, or words, if k ends with one. Tiles are worth
 * packing if they are needed often, sooner if L1 has fewer ways than there are lines so far apart
 * that they push one another out. */
static inline int tg_reads_lines(const tg_problem *p, const tg_plan *plan)
{
    enum { WAY = 4096, WAYS = 8, SELDOM = 8, OFTEN = 2048 };
    const tg_tile t = plan->tile;
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    const int64_t apart = tg_min(tg_even_part(p->a.row_stride), WAY / bytes) * bytes;
    const int is_crowded = t.thread.m * apart > WAYS * WAY;
    if (p->a.col_stride != 1 || tg_takes_words_in_rows(t))
        return p->a.col_stride == 1;
    return t.inst.m > 1 && p->k % t.inst.k == 0 &&
           (is_crowded ? p->n <= SELDOM * t.thread.n * plan->strips.n
                       : tg_min(p->m, p->n) <= OFTEN);
}

/* A B that lies in rows can be packed by the kernel that reads it first: with vectors of 64 bytes
 * it has stores to spare, and time to fetch what comes next; with half of that it pays for few
 * rows, of a B that is in L2. B then comes panel by panel, so A must be read where it is. Not if so
 * many rows of B share sets of L2 that they push one another out; and the table's own kernels do
 * it, on whole columns and more than half of their rows. */
static inline int tg_packs_late(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const tg_tile t = plan->tile, row = tg_tile_at(plan->row);
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    enum { FEW = 48 };
    const int is_near = p->m <= FEW && !tg_exceeds(l->l2, p->n, p->k, bytes);
    return l->vec_bytes >= (is_near ? 32 : 64) && t.form != TG_DOT && t.inst.k == 1 &&
           t.slices == 1 && row.thread.n == t.thread.n && 2 * t.thread.m > row.thread.m &&
           p->m >= t.thread.m && plan->a_in_place && !plan->b_in_place && !(p->flags & TG_PACKED) &&
           p->b.col_stride == 1 && p->c.col_stride == 1 && p->c.type == p->a.type &&
           tg_kernel_bytes(p->a.type, *l, t) == bytes && tg_holds_rows(p, l, t.block.k / 2);
}

/* Does it fetch the block that comes next, too? One with a large L2 is faster without: so many
 * lines from caches further off were in the way of others, or gone again. It fetches what is a
 * little further along. */
static inline int tg_fetches_late(const tg_limits *l) { return !tg_has_large_l2(l); }

/* Can kernels fetch rows of A, those of the next tile while this one is multiplied? With vectors of
 * 64 bytes, if they lie along k and B is packed. */
static inline int tg_can_fetch_rows(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const tg_tile t = plan->tile;
    return l->vec_bytes >= 64 && t.form == TG_OUTER && t.inst.k == 1 && t.slices == 1 &&
           plan->a_in_place && !plan->b_in_place && !(p->flags & TG_A_PACKED) &&
           tg_tile_at(plan->row).thread.n >= 3 * t.vec;
}

/* Do they so in every tile, since a large A comes from memory for a few columns of B? */
static inline int tg_fetches_rows(const tg_problem *p, const tg_plan *plan, const tg_limits *l)
{
    const int64_t bytes = (int64_t)tg_type_size(p->a.type);
    return tg_can_fetch_rows(p, plan, l) && p->n <= 2 * plan->tile.thread.n &&
           tg_exceeds(l->l2, p->m, p->k, bytes);
}

#endif
