/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm explain`: how a problem is cut, drawn, and what follows from it, counted:
 *
 *     C in blocks       a block in warps      a warp in units       a thread in vectors
 *     +---+---+         +---+---+             +---+---+             +---+---+
 *     |###|   |         |###|   |             |###|   |             |###|   |
 *     +---+---+         +---+---+             +---+---+             +---+---+
 *
 * The piece marked in one picture is the whole of the next.
 */
#include "cli.h"
#include "tile.h"

#include <string.h>

/* ---------------------------------------------------------------------------------- the picture */
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
    int is_one = p->rows * p->cols == 1;
    snprintf(p->title, CLI_NAME, "%s", title);
    snprintf(p->size, CLI_NAME, "%lld x %lld", (long long)m, (long long)n);
    snprintf(p->cut, CLI_NAME, "%lld x %lld %s%s", (long long)p->rows, (long long)p->cols, pieces,
             is_one ? "" : "s");
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

static void print_pictures(tg_tile t, tg_mn lanes, cli_shape shape)
{
    picture p[PICTURES];
    tg_mn warps = tg_tile_warps(t), rep = tg_tile_rep(t, lanes), unit = tg_tile_unit(t, lanes);
    char unit_text[CLI_NAME];
    memset(p, 0, sizeof p);
    p[0].rows = tg_ceil_div(shape.m, t.block.m), p[0].cols = tg_ceil_div(shape.n, t.block.n);
    p[1].rows = warps.m, p[1].cols = warps.n;
    p[2].rows = rep.m, p[2].cols = rep.n;
    p[3].rows = t.thread.m, p[3].cols = tg_max(1, t.thread.n / t.vec);
    snprintf(unit_text, sizeof unit_text, "a unit is %d x %d", unit.m, unit.n);
    name_picture(&p[0], "C", shape.m, shape.n, "block", "a block is staged");
    name_picture(&p[1], "a block", t.block.m, t.block.n, "warp", "a warp is owned");
    name_picture(&p[2], "a warp", t.warp.m, t.warp.n, "unit", unit_text);
    name_picture(&p[3], "a thread, held", t.thread.m, t.thread.n, "vector", "a vector is moved");
    print_row_of(p, offsetof(picture, title));
    print_row_of(p, offsetof(picture, size));
    for (int line = 0; line < LINES; line++)
        print_row_of(p, offsetof(picture, lines) + (size_t)line * WIDTH);
    print_row_of(p, offsetof(picture, cut));
    print_row_of(p, offsetof(picture, verb));
}

/* ----------------------------------------------------------------------------------- the counts */
typedef struct subject {
    cli_machine machine;
    cli_shape shape;
    tg_type type;
    tg_plan plan;
    int elem;
} subject;

static void print_what(const subject *x)
{
    char spelled[96];
    int row = x->plan.row;
    tg_tile_print(&x->plan.tile, spelled, sizeof spelled);
    printf("problem       %lld x %lld x %lld, %s, %.3f GFLOP\n", (long long)x->shape.m,
           (long long)x->shape.n, (long long)x->shape.k, tg_type_name(x->type),
           cli_gflops(x->shape, 1));
    printf("device        %s: %s\n", x->machine.backend, tg_device_name(x->machine.ctx));
    printf("tiling        %s, cut to the problem from %s\n", spelled,
           row < 0 ? "a text" : tg_tile_name(row));
    printf("why           %s%s%s\n\n",
           x->machine.is_forced ? "it was asked for"
           : x->plan.is_tuned   ? "a line of the tuning file"
                                : "the chooser's",
           row < 0 ? "" : ": ", row < 0 ? "" : tg_tile_note(row));
}

static void print_blocks(const subject *x)
{
    tg_tile t = x->plan.tile;
    int64_t rows = tg_ceil_div(x->shape.m, t.block.m), cols = tg_ceil_div(x->shape.n, t.block.n);
    int64_t steps = tg_ceil_div(x->shape.k, t.block.k);
    printf("blocks        %lld (%lld x %lld), each walks k in %lld steps of %d\n",
           (long long)(rows * cols), (long long)rows, (long long)cols, (long long)steps, t.block.k);
    if (x->plan.splits > 1)
        printf("splits        k is cut in %d ranges, each a block's own, and their sums are added "
               "in order\n",
               x->plan.splits);
}

/* A CPU's threads share the warp tiles of a block. */
static void print_turns(const subject *x)
{
    tg_tile t = x->plan.tile;
    tg_mn warps = tg_tile_warps(t);
    int64_t blocks = tg_ceil_div(x->shape.m, t.block.m) * tg_ceil_div(x->shape.n, t.block.n);
    int64_t pieces = blocks * warps.m * warps.n * t.slices;
    int64_t threads = tg_max(1, x->plan.threads), waves = tg_ceil_div(pieces, threads);
    printf("waves         %lld: %lld warp tiles on %lld threads, %.0f %% of the places taken\n",
           (long long)waves, (long long)pieces, (long long)threads,
           100.0 * (double)pieces / (double)(waves * threads));
    if (x->plan.strips.m * x->plan.strips.n > 1)
        printf(
            "strips        %d x %d of C, one for each thread, which stages what it needs itself\n",
            x->plan.strips.m, x->plan.strips.n);
}

/* [########][########] ... [###.....]: the waves, the last as full as it is. */
static void draw_waves(int64_t full, int64_t left, int64_t places)
{
    enum { CELL = 8, MOST = 6 };
    int64_t shown = tg_min(full, MOST);
    printf("              ");
    for (int64_t i = 0; i < shown; i++)
        printf("[########]");
    if (full > shown)
        printf(" ... ");
    if (left > 0) {
        int taken = (int)tg_max(1, left * CELL / places);
        printf("[%.*s%.*s]", taken, "########", CELL - taken, "........");
    }
    printf("\n");
}

/* What the units that the last wave leaves idle do. */
static void print_tail(const subject *x, int64_t left, int64_t places)
{
    printf("tail          %lld of %lld places, ", (long long)left, (long long)places);
    if (x->plan.tail == TG_TAIL_SPLIT)
        printf("each block's k cut in up to %lld ranges for the idle ones\n",
               (long long)(places / left));
    else
        printf("run like the others: %.0f %% idle\n",
               100.0 * (double)(places - left) / (double)places);
}

/* A GPU's units take so many blocks at once each. */
static void print_waves(const subject *x, const cli_occupancy *occupancy)
{
    tg_tile t = x->plan.tile;
    int at_once = occupancy->is_measured ? occupancy->driver.blocks_per_unit
                                         : (int)tg_max(1, occupancy->blocks);
    int64_t blocks = tg_ceil_div(x->shape.m, t.block.m) * tg_ceil_div(x->shape.n, t.block.n) *
                     tg_max(1, x->plan.splits);
    int64_t places = tg_max(1, (int64_t)x->machine.limits.units * tg_max(1, at_once));
    int64_t full = blocks / places, left = blocks % places;
    printf("waves         %.2f: %lld blocks on %d units, %d at once on each\n",
           (double)blocks / (double)places, (long long)blocks, x->machine.limits.units, at_once);
    draw_waves(full, left, places);
    if (left > 0)
        print_tail(x, left, places);
}

static void print_traffic(const subject *x)
{
    char naive_text[CLI_NAME], tiled_text[CLI_NAME];
    double naive = cli_naive_traffic(x->shape, x->type);
    double tiled = cli_traffic(&x->plan, x->shape, x->type);
    printf("traffic       %s naive, %s tiled: %.1f times less from slow memory\n",
           cli_bytes_text(naive, naive_text), cli_bytes_text(tiled, tiled_text), naive / tiled);
}

static int print_roofline(subject *x)
{
    double peak,
        intensity = cli_gflops(x->shape, 1) * 1e9 / cli_traffic(&x->plan, x->shape, x->type);
    printf("intensity     %.2f FLOP a byte of slow memory\n", intensity);
    tg_status status = TG_OK;
    if (x->machine.is_host) { /* a small problem uses fewer */
        x->machine.threads = x->plan.threads;
        status = tg_set_threads(x->machine.ctx, x->plan.threads);
    }
    if (status != TG_OK || tg_peak(x->machine.ctx, x->type, &peak) != TG_OK)
        return cli_fail_call(&x->machine, "the peak probe");
    double bandwidth = cli_bandwidth(&x->machine);
    if (bandwidth <= 0)
        return cli_fail("the bandwidth of the memory could not be measured");
    int is_compute_bound = intensity * bandwidth >= peak;
    printf("roofline      %s bound: peak %.1f GFLOP/s, memory %.1f GB/s, they meet at %.2f FLOP a "
           "byte\n",
           is_compute_bound ? "compute" : "memory", peak / 1e9, bandwidth / 1e9, peak / bandwidth);
    double most = (is_compute_bound ? peak : intensity * bandwidth) / 1e9;
    printf("              where no other cache helps, at most %.1f GFLOP/s and at least %.3f ms\n",
           most, 1e3 * cli_gflops(x->shape, 1) / most);
    return CLI_OK;
}

static void print_cache(const char *what, int64_t bytes, const char *name, int64_t size)
{
    char text[CLI_NAME], size_text[CLI_NAME];
    if (size > 0)
        printf("              %s: %s, %.1f %% of the %s of %s\n", what,
               cli_bytes_text((double)bytes, text), 100.0 * (double)bytes / (double)size, name,
               cli_bytes_text((double)size, size_text));
}

static void print_use(const subject *x)
{
    char text[CLI_NAME];
    tg_tile t = x->plan.tile;
    tg_limits l = x->machine.limits;
    int64_t threads = tg_tile_threads(t, l.lanes), panel = (int64_t)t.block.k * x->elem;
    int64_t staged = tg_tile_staged_bytes(t, x->elem);
    int64_t held = cli_held_registers(t, l, x->elem);
    printf("staged        %s a block (%d stage%s of %d x %d of A and %d x %d of B)\n",
           cli_bytes_text((double)staged, text), t.stages, t.stages == 1 ? "" : "s", t.block.m,
           t.block.k, t.block.k, t.block.n);
    if (l.threads)
        printf("threads       %lld of %d in a block, lanes %d x %d\n", (long long)threads,
               l.threads, l.lanes.m, l.lanes.n);
    else
        printf("threads       %lld warp tile%s in a block, a core is a warp of one lane\n",
               (long long)threads, threads == 1 ? "" : "s");
    printf("registers     %lld of %d accumulate, %d bytes each\n", (long long)held, l.registers,
           l.register_bytes);
    if (l.fast_bytes) {
        printf("fast memory   %.0f %% of %s that one block may have\n",
               100.0 * (double)staged / (double)l.fast_bytes,
               cli_bytes_text((double)l.fast_bytes, text));
        return;
    }
    printf("fast memory   the caches:\n");
    print_cache("a thread's rows of A", t.thread.m * panel, "L1", l.l1);
    print_cache("a warp's columns of B", t.warp.n * panel, "L2", l.l2);
    print_cache("the staged block", staged, "L3", l.l3);
}

static int explain(subject *x)
{
    tg_problem p = TG_PROBLEM_INIT;
    tg_plan plan = TG_PLAN_INIT;
    p.m = x->shape.m, p.n = x->shape.n, p.k = x->shape.k;
    p.a.type = x->type, p.b.type = cli_b_type(x->type), p.c.type = cli_c_type(x->type);
    p.a.row_stride = p.k, p.b.row_stride = p.c.row_stride = p.n;
    p.a.col_stride = p.b.col_stride = p.c.col_stride = 1;
    if (tg_pick(x->machine.ctx, &p, &plan) != TG_OK)
        return cli_fail_call(&x->machine, "");
    x->plan = plan;
    x->elem = tg_kernel_bytes(x->type, x->machine.limits, plan.tile);
    print_what(x);
    print_pictures(plan.tile, x->machine.limits.lanes, x->shape);
    printf("\n");
    print_blocks(x);
    cli_occupancy occupancy = cli_read_occupancy(&x->machine, &plan, x->type);
    if (x->machine.is_host)
        print_turns(x);
    else
        print_waves(x, &occupancy);
    print_use(x);
    cli_print_occupancy(&occupancy);
    print_traffic(x);
    return print_roofline(x);
}

int cli_explain(const cli_options *options)
{
    subject x = {.type = options->type};
    if (options->word_count == 0)
        return cli_misuse("explain takes a shape: M N K");
    int rc = cli_words_shape(options, &x.shape);
    if (rc == CLI_OK)
        rc = cli_open(&x.machine, options);
    if (rc != CLI_OK)
        return rc;
    rc = explain(&x);
    cli_close(&x.machine);
    return rc;
}
