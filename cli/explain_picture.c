/* SPDX-License-Identifier: Apache-2.0
 *
 * The pictures of `tilegemm explain`:
 *
 *     C in blocks       a block in warps      a warp in units       a thread in vectors
 *     +---+---+         +---+---+             +---+---+             +---+---+
 *     |###|   |         |###|   |             |###|   |             |###|   |
 *     +---+---+         +---+---+             +---+---+             +---+---+
 *
 * The piece marked in one picture is the whole of the next. Where a CPU needs no blocks, a strip of
 * C, as each thread has one, is as good as a warp.
 */
#include "road.h"

#include <string.h>

enum { SHOWN = 4, PICTURES = 4, LINES = 12, WIDTH = 24 };

typedef struct picture {
    char title[CLI_NAME], size[CLI_NAME], cut[CLI_NAME], verb[CLI_NAME];
    int64_t rows, cols;
    char lines[LINES][WIDTH];
} picture;

/* One line of a grid: of its borders, or of the insides of a row of cells. */
static void draw_line(char *line, int64_t cols, char corner, const char *first, const char *cell)
{
    int is_cut = cols > SHOWN;
    int shown = is_cut ? SHOWN : (int)cols;
    *line = 0;
    for (int col = 0; col < shown; col++) {
        if (is_cut && col == SHOWN - 1)
            strcat(line, corner == '+' ? "+..." : corner == ':' ? ":   " : "|   ");
        else
            snprintf(line + strlen(line), 5, "%c%s", corner, col == 0 ? first : cell);
    }
    snprintf(line + strlen(line), 6, is_cut ? "%c%s%c" : "%c", corner, cell, corner);
}

static void draw_grid(picture *p)
{
    int is_cut = p->rows > SHOWN;
    int shown = is_cut ? SHOWN - 1 : (int)p->rows, line = 0;
    for (int row = 0; row < shown; row++) {
        draw_line(p->lines[line++], p->cols, '+', "---", "---");
        draw_line(p->lines[line++], p->cols, '|', row == 0 ? "###" : "   ", "   ");
    }
    draw_line(p->lines[line++], p->cols, '+', "---", "---");
    if (is_cut) {
        draw_line(p->lines[line++], p->cols, ':', "   ", "   ");
        draw_line(p->lines[line++], p->cols, '+', "---", "---");
        draw_line(p->lines[line++], p->cols, '|', "   ", "   ");
        draw_line(p->lines[line], p->cols, '+', "---", "---");
    }
}

static void name_picture(picture *p, const char *title, int64_t m, int64_t n, const char *pieces,
                         const char *verb)
{
    snprintf(p->title, CLI_NAME, "%s", title);
    snprintf(p->size, CLI_NAME, "%lld x %lld", (long long)m, (long long)n);
    snprintf(p->cut, CLI_NAME, "%lld x %lld %s%s", (long long)p->rows, (long long)p->cols, pieces,
             cli_s(p->rows * p->cols));
    snprintf(p->verb, CLI_NAME, "%s", verb);
    draw_grid(p);
}

static void print_row_of(const picture *pictures, size_t text_at)
{
    char row[PICTURES * (WIDTH + 2) + 1] = "";
    for (int i = 0; i < PICTURES; i++)
        snprintf(row + strlen(row), sizeof row - strlen(row), "%-*s", i < PICTURES - 1 ? WIDTH : 0,
                 (const char *)&pictures[i] + text_at);
    size_t length = strlen(row);
    while (length > 0 && row[length - 1] == ' ')
        row[--length] = 0;
    if (length > 0)
        printf("  %s\n", row);
}

/* What is held of a thread tile, in vectors; rows of A that are turned are one. */
static void count_vectors(picture *p, const cli_road *x)
{
    const tg_tile t = x->plan.tile;
    const int is_a = x->way.turned == TG_TURNED_A;
    p->rows = is_a ? tg_max(1, t.thread.m / t.vec) : t.thread.m;
    p->cols = is_a ? t.thread.n : tg_max(1, t.thread.n / t.vec);
}

static const char *verb_of(const cli_road *x)
{
    if (x->has_blocks)
        return x->stages_a || x->stages_b ? "a block is staged" : "a block is read";
    return x->plan.splits > 1 ? "its k is shared" : "a strip is a thread's";
}

void cli_draw_cuts(const cli_road *x, tg_mn lanes)
{
    picture p[PICTURES];
    const tg_tile t = x->plan.tile;
    const tg_mn warps = tg_tile_warps(t), unit = tg_tile_unit(t, lanes);
    const cli_shape c = x->shape;
    const char *piece = x->has_blocks ? "block" : "strip";
    char unit_text[CLI_NAME], piece_text[CLI_NAME];
    memset(p, 0, sizeof p);
    p[0].rows = x->has_blocks ? tg_ceil_div(c.m, t.block.m) : x->plan.strips.m;
    p[0].cols = x->has_blocks ? tg_ceil_div(c.n, t.block.n) : x->plan.strips.n;
    p[1].rows = warps.m, p[1].cols = warps.n;
    p[2].rows = tg_ceil_div(t.warp.m, unit.m);
    p[2].cols = tg_max(1, tg_ceil_div(t.warp.n - x->narrow * !x->has_blocks, unit.n));
    count_vectors(&p[3], x);
    snprintf(unit_text, sizeof unit_text, "a unit is %d x %d", unit.m, unit.n);
    snprintf(piece_text, sizeof piece_text, "a %s", piece);
    name_picture(&p[0], x->is_swapped ? "C transposed" : "C", c.m, c.n, piece, verb_of(x));
    name_picture(&p[1], piece_text, t.block.m, t.block.n, "warp", "a warp is owned");
    name_picture(&p[2], "a warp", t.warp.m, t.warp.n, "unit", unit_text);
    name_picture(&p[3], "a thread, held", t.thread.m, t.thread.n, "vector", "a vector is moved");
    print_row_of(p, offsetof(picture, title));
    print_row_of(p, offsetof(picture, size));
    for (int line = 0; line < LINES; line++)
        print_row_of(p, offsetof(picture, lines) + (size_t)line * WIDTH);
    print_row_of(p, offsetof(picture, cut));
    print_row_of(p, offsetof(picture, verb));
}
