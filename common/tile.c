/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of tilings, and tilings as text: names print and parse, refusals are sentences. */
#include "tile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gemm.h"

static const struct row {
    const char *name;
    tg_tile tile;
    const char *note;
} rows[] = {
#define TG_TILE(name, block, warp, thread, vec, stages, slices, form, inst, note) \
    {#name, TG_ROW(block, warp, thread, vec, stages, slices, form, inst), note},
#include "tiles.def"
};

static const tg_tile no_tile;

int tg_tile_count(void) { return (int)(sizeof rows / sizeof rows[0]); }

static const struct row *row_at(int row)
{
    return row >= 0 && row < tg_tile_count() ? &rows[row] : NULL;
}

const char *tg_tile_name(int row) { return row_at(row) ? rows[row].name : NULL; }
const char *tg_tile_note(int row) { return row_at(row) ? rows[row].note : NULL; }
tg_tile tg_tile_at(int row) { return row_at(row) ? rows[row].tile : no_tile; }

int tg_tile_find(const char *name)
{
    for (int row = 0; name && row < tg_tile_count(); row++)
        if (strcmp(rows[row].name, name) == 0)
            return row;
    return -1;
}

int tg_tile_same(tg_tile x, tg_tile y)
{
    return x.block.m == y.block.m && x.block.n == y.block.n && x.block.k == y.block.k &&
           x.warp.m == y.warp.m && x.warp.n == y.warp.n && x.thread.m == y.thread.m &&
           x.thread.n == y.thread.n && x.vec == y.vec && x.stages == y.stages &&
           x.slices == y.slices && x.form == y.form && x.inst.m == y.inst.m &&
           x.inst.n == y.inst.n && x.inst.k == y.inst.k;
}

int tg_tile_row_like(const tg_tile *tile, const tg_limits *l, tg_type type)
{
    const int bytes = tg_kernel_bytes(type, *l, *tile);
    const tg_tile filled = tg_tile_fill(*tile, *l, bytes);
    for (int row = 0; row < tg_tile_count(); row++)
        if (tg_tile_same(*tile, rows[row].tile) ||
            tg_tile_same(filled, tg_tile_fill(rows[row].tile, *l, bytes)))
            return row;
    return -1;
}

/* FNV-1a. */
uint64_t tg_tile_table(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char text[200];
    for (int row = 0; row < tg_tile_count(); row++) {
        int length = snprintf(text, sizeof text, "%s ", rows[row].name);
        tg_tile_print(&rows[row].tile, text + length, sizeof text - (size_t)length);
        for (const char *letter = text; *letter; letter++)
            hash = (hash ^ (unsigned char)*letter) * 0x100000001b3u;
    }
    return hash;
}

/* The names that forms have in text; the last is the one left out. */
static const char *const form_names[] = {"dot", "outer", "outer_t"};

int tg_tile_print(const tg_tile *t, char *text, size_t size)
{
    char slices[24] = "", form[24] = "", inst[48] = "";
    if (!t)
        return snprintf(text, size, "%s", "");
    if (t->slices != 1)
        snprintf(slices, sizeof slices, "/slices%d", t->slices);
    if (t->form != TG_OUTER_T && t->form >= TG_DOT && t->form < TG_OUTER_T)
        snprintf(form, sizeof form, "/%s", form_names[t->form]);
    if (!tg_tile_is_fma(*t))
        snprintf(inst, sizeof inst, "/inst%dx%dx%d", t->inst.m, t->inst.n, t->inst.k);
    return snprintf(text, size, "%dx%dx%d/%dx%d/%dx%d/%d/%d%s%s%s", t->block.m, t->block.n,
                    t->block.k, t->warp.m, t->warp.n, t->thread.m, t->thread.n, t->vec, t->stages,
                    slices, form, inst);
}

/* Reads "AxBxC" of count numbers, each 0 .. TG_TILE_MAX without a sign or leading zeros. */
static int parse_numbers(const char *text, size_t length, int count, int *numbers)
{
    const char *at = text, *end = text + length;
    for (int i = 0; i < count; i++) {
        const char *first = at;
        int value = 0;
        while (at < end && *at >= '0' && *at <= '9' && value <= TG_TILE_MAX)
            value = value * 10 + (*at++ - '0');
        if (at == first || value > TG_TILE_MAX || (*first == '0' && at - first > 1))
            return 0;
        if (i + 1 < count && (at == end || *at++ != 'x'))
            return 0;
        numbers[i] = value;
    }
    return at == end;
}

static tg_status refuse(char *reason, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tg_status refuse(char *reason, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (reason && size)
        vsnprintf(reason, size, format, args);
    va_end(args);
    return TG_BAD_ARGUMENT;
}

/* One of the parts that may follow the five: slicesN, dot or outer, instMxNxK. */
static int parse_option(const char *text, size_t length, tg_tile *t)
{
    for (int form = TG_DOT; form <= TG_OUTER_T; form++)
        if (strlen(form_names[form]) == length && memcmp(form_names[form], text, length) == 0)
            return t->form = (tg_form)form, 1;
    if (length > 6 && memcmp(text, "slices", 6) == 0)
        return parse_numbers(text + 6, length - 6, 1, &t->slices);
    int inst[3];
    if (length < 5 || memcmp(text, "inst", 4) || !parse_numbers(text + 4, length - 4, 3, inst))
        return 0;
    t->inst = (tg_mnk){inst[0], inst[1], inst[2]};
    return 1;
}

static tg_status parse_text(const char *text, tg_tile *tile, char *reason, size_t size)
{
    static const struct {
        const char *what;
        int count;
    } parts[] = {{"block MxNxK", 3}, {"warp MxN", 2}, {"thread MxN", 2}, {"vec", 1}, {"stages", 1}};
    int numbers[5][3] = {{0}};
    const char *at = text;
    for (int part = 0; part < 5; part++) {
        size_t length = strcspn(at, "/");
        if (!parse_numbers(at, length, parts[part].count, numbers[part]))
            return refuse(reason, size, "\"%s\" is no row and no tiling: \"%.*s\" is not a %s",
                          text, (int)length, at, parts[part].what);
        at += length;
        if (*at == '/')
            at++;
        else if (part < 4)
            return refuse(reason, size, "\"%s\" is no row and no tiling: it ends before %s", text,
                          parts[part + 1].what);
    }
    tg_tile t = {{numbers[0][0], numbers[0][1], numbers[0][2]},
                 {numbers[1][0], numbers[1][1]},
                 {numbers[2][0], numbers[2][1]},
                 numbers[3][0],
                 numbers[4][0],
                 1,
                 TG_OUTER_T,
                 TG_FMA};
    while (*at || at[-1] == '/') {
        size_t length = strcspn(at, "/");
        if (!parse_option(at, length, &t))
            return refuse(reason, size,
                          "\"%s\" is no tiling: \"%.*s\" is none of slicesN, dot, outer, instMxNxK",
                          text, (int)length, at);
        at += length;
        at += *at == '/';
    }
    char canonical[128];
    tg_tile_print(&t, canonical, sizeof canonical);
    if (strcmp(text, canonical) != 0)
        return refuse(reason, size, "\"%s\" is to be written \"%s\"", text, canonical);
    *tile = t;
    return TG_OK;
}

tg_status tg_tile_parse(const char *text, tg_tile *tile, char *reason, size_t size)
{
    if (reason && size)
        reason[0] = '\0';
    if (!text || !tile)
        return refuse(reason, size, "%s is NULL", text ? "tile" : "text");
    int row = tg_tile_find(text);
    if (row < 0)
        return parse_text(text, tile, reason, size);
    *tile = rows[row].tile;
    return TG_OK;
}

void tg_verdict_print(tg_verdict verdict, char *text, size_t size)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the rules of tile.h are the formats */
    snprintf(text, size, verdict.rule, verdict.left, verdict.right);
#pragma GCC diagnostic pop
}
