/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm explain`: how a problem is cut, drawn (explain_picture.c), and what follows from it,
 * counted.
 */
#include "road.h"

#include <stdlib.h>

typedef struct subject {
    cli_machine machine;
    cli_shape shape;
    tg_type type;
    tg_plan plan;
    cli_road road;
    int elem;
} subject;

static const char *why(const subject *x)
{
    const char *tile = getenv("TILEGEMM_TILE");
    if (x->machine.is_forced)
        return "it was asked for";
    if (tile && *tile)
        return "TILEGEMM_TILE asks for it";
    return x->plan.is_tuned ? "a line of the tuning file" : "the chooser's";
}

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
    printf("why           %s%s%s\n", why(x), row < 0 ? "" : ": ", row < 0 ? "" : tg_tile_note(row));
}

/* The way that ARCHITECTURE.md has a table of. */
static const char *way_text(const cli_road *road)
{
    const tg_way way = road->way;
    if (way.is_streamed)
        return "in streams: B is read once, along its rows, while the sums of all columns wait";
    if (way.turned)
        return "a few lines times many along k, of which squares are turned in registers";
    if (way.widens)
        return "directly: A and B become f32 as a whole, and no block is staged";
    if (way.is_direct)
        return way.is_flat
                   ? "directly: C is written row by row, and no block is staged"
                   : "directly: all rows with each panel of columns, and no block is staged";
    return "the nest of blocks";
}

static void print_way(const subject *x)
{
    const cli_road *road = &x->road;
    const cli_shape s = road->shape;
    if (road->is_swapped)
        printf("transposed    C' = B' A', %lld x %lld x %lld: from here on, that is C = A B\n",
               (long long)s.m, (long long)s.n, (long long)s.k);
    if (!x->machine.is_host)
        return;
    printf("way           %s\n", way_text(road));
    printf("reads         A: %s; B: %s\n", road->a, road->b);
    if (road->narrow > 0)
        printf("narrow        the last %lld column%s, for several rows of A at a time\n",
               (long long)road->narrow, cli_s(road->narrow));
}

/* So many pieces of a side, each cut in strips first. */
static int64_t pieces_of(int64_t all, int strips, int piece)
{
    return strips * tg_ceil_div(tg_ceil_div(all, strips), piece);
}

/* Blocks, or, where there are none, thread tiles. */
static tg_mn grid_of(const cli_road *road)
{
    const tg_tile t = road->plan.tile;
    const tg_mn strips = road->plan.strips;
    const int64_t n = road->has_blocks ? road->shape.n : tg_max(1, road->shape.n - road->narrow);
    return (tg_mn){
        (int)pieces_of(road->shape.m, strips.m, road->has_blocks ? t.block.m : t.thread.m),
        (int)pieces_of(n, strips.n, road->has_blocks ? t.block.n : t.thread.n)};
}

static void print_blocks(const subject *x)
{
    const cli_road *road = &x->road;
    const tg_mn grid = grid_of(road);
    const int64_t count = (int64_t)grid.m * grid.n, step = road->plan.tile.block.k;
    const int64_t steps = tg_ceil_div(road->shape.k, step);
    printf("%s %lld (%d x %d), each walks k in %lld step%s of %lld\n",
           road->has_blocks ? "blocks       " : "tiles        ", (long long)count, grid.m, grid.n,
           (long long)steps, cli_s(steps), (long long)step);
    if (road->plan.splits > 1)
        printf("splits        k is cut in %d ranges, %s, and their sums are added in order\n",
               road->plan.splits,
               x->machine.is_host ? "which the threads share" : "each a block's own");
}

/* What a CPU's threads share: the warp tiles of blocks, the panels of ranges of k, or strips. */
static void print_turns(const subject *x)
{
    const cli_road *road = &x->road;
    const tg_plan *plan = &road->plan;
    const tg_mn grid = grid_of(road), warps = tg_tile_warps(plan->tile);
    const int is_cut = tg_is_cut(plan);
    const char *piece = plan->splits > 1              ? "panel"
                        : is_cut || !road->has_blocks ? "strip"
                                                      : "warp tile";
    const int64_t pieces = plan->splits > 1 ? (int64_t)plan->splits * grid.n
                           : is_cut || !road->has_blocks
                               ? (int64_t)plan->strips.m * plan->strips.n
                               : (int64_t)grid.m * grid.n * warps.m * warps.n;
    const int64_t threads = tg_max(1, plan->threads), waves = tg_ceil_div(pieces, threads);
    printf("waves         %lld: %lld %s%s on %lld thread%s, %.0f %% of the places taken\n",
           (long long)waves, (long long)pieces, piece, cli_s(pieces), (long long)threads,
           cli_s(threads), 100.0 * (double)pieces / (double)(waves * threads));
    if (is_cut)
        printf("strips        %d x %d of C, one for each thread%s\n", plan->strips.m,
               plan->strips.n,
               road->stages_a || road->stages_b ? ", which stages what it needs itself" : "");
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
    printf("tail          %lld of %lld place%s, ", (long long)left, (long long)places,
           cli_s(places));
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
    int at_once = occupancy->is_measured ? occupancy->driver.blocks_per_unit
                                         : (int)tg_max(1, occupancy->blocks);
    const tg_mn grid = grid_of(&x->road);
    int64_t blocks = (int64_t)grid.m * grid.n * tg_max(1, x->plan.splits);
    int64_t places = tg_max(1, (int64_t)x->machine.limits.units * tg_max(1, at_once));
    int64_t full = blocks / places, left = blocks % places;
    printf("waves         %.2f: %lld block%s on %d unit%s, %d at once on each\n",
           (double)blocks / (double)places, (long long)blocks, cli_s(blocks),
           x->machine.limits.units, cli_s(x->machine.limits.units), at_once);
    draw_waves(full, left, places);
    if (left > 0)
        print_tail(x, left, places);
}

static void print_traffic(const subject *x)
{
    char naive_text[CLI_NAME], tiled_text[CLI_NAME];
    double naive = cli_naive_traffic(x->shape, x->type);
    double tiled = cli_traffic(&x->road.plan, x->road.shape, x->type);
    printf("traffic       %s naive, %s tiled: %.1f times less from slow memory\n",
           cli_bytes_text(naive, naive_text), cli_bytes_text(tiled, tiled_text), naive / tiled);
    printf("intensity     %.2f FLOP a byte of slow memory\n",
           cli_gflops(x->shape, 1) * 1e9 / tiled);
}

static void print_most(const subject *x, const char *where, double flops)
{
    printf("              %sat most %.1f GFLOP/s and at least %.3f ms\n", where, flops / 1e9,
           1e12 * cli_gflops(x->shape, 1) / flops);
}

/* What a CPU's caches hold comes from memory once, and not again in the next call. */
static int print_cached(const subject *x, double peak)
{
    char all_text[CLI_NAME], caches_text[CLI_NAME];
    const double all = cli_least_traffic(x->shape, x->type);
    const int64_t caches = cli_cache_bytes(&x->machine);
    if (!x->machine.is_host || all > (double)caches)
        return 0;
    printf("roofline      no bound but the peak: caches of %s hold all of A, B and C, %s\n",
           cli_bytes_text((double)caches, caches_text), cli_bytes_text(all, all_text));
    print_most(x, "", peak);
    return 1;
}

static int print_roofline(subject *x)
{
    double peak, intensity = cli_gflops(x->shape, 1) * 1e9 /
                             cli_traffic(&x->road.plan, x->road.shape, x->type);
    tg_status status = TG_OK;
    if (x->machine.is_host) { /* a small problem uses fewer */
        x->machine.threads = x->plan.threads;
        status = tg_set_threads(x->machine.ctx, x->plan.threads);
    }
    if (status != TG_OK || tg_peak(x->machine.ctx, x->type, &peak) != TG_OK)
        return cli_fail_call(&x->machine, "the peak probe");
    if (print_cached(x, peak))
        return CLI_OK;
    double bandwidth = cli_bandwidth(&x->machine);
    if (bandwidth <= 0)
        return cli_fail("the bandwidth of the memory could not be measured");
    int is_compute_bound = intensity * bandwidth >= peak;
    printf("roofline      %s bound: peak %.1f GFLOP/s, memory %.1f GB/s, they meet at %.2f FLOP a "
           "byte\n",
           is_compute_bound ? "compute" : "memory", peak / 1e9, bandwidth / 1e9, peak / bandwidth);
    print_most(x, is_compute_bound ? "" : "if all of that is from slow memory, ",
               is_compute_bound ? peak : intensity * bandwidth);
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

/* A GPU's stages are as many as the tiling says; a CPU's kernels fetch ahead by themselves. */
static void print_staged(const subject *x)
{
    const cli_road *road = &x->road;
    const tg_tile t = road->plan.tile;
    char text[CLI_NAME];
    const char *bytes = cli_bytes_text((double)cli_staged_bytes(road, &x->machine), text);
    if (road->way.copies_b)
        printf("staged        %s, a copy of B\n", bytes);
    else if (!road->stages_a && !road->stages_b)
        printf("staged        nothing\n");
    else {
        printf("staged        %s a block (", bytes);
        if (!x->machine.is_host)
            printf("%d stage%s of ", t.stages, cli_s(t.stages));
        if (road->stages_a)
            printf("%d x %d of A%s", t.block.m, t.block.k, road->stages_b ? " and " : "");
        if (road->stages_b)
            printf("%d x %d of B", t.block.k, t.block.n);
        printf(")\n");
    }
}

static void print_caches(const subject *x)
{
    const cli_road *road = &x->road;
    const tg_tile t = road->plan.tile;
    const tg_limits l = x->machine.limits;
    const int64_t panel = (int64_t)road->plan.tile.block.k * x->elem;
    printf("fast memory   the caches:\n");
    if (!road->has_blocks) {
        const int64_t all = (int64_t)cli_least_traffic(road->shape, x->type);
        print_cache("A, B and C", all, "L2", l.l2);
        print_cache("A, B and C", all, "L3", l.l3);
        return;
    }
    print_cache("a thread's rows of A", t.thread.m * panel, "L1", l.l1);
    print_cache("a warp's columns of B", t.warp.n * panel, "L2", l.l2);
    if (road->stages_a || road->stages_b)
        print_cache("the staged block", cli_staged_bytes(road, &x->machine), "L3", l.l3);
}

static void print_use(const subject *x)
{
    char text[CLI_NAME];
    const tg_tile t = x->road.plan.tile;
    const tg_limits l = x->machine.limits;
    const int64_t threads = tg_tile_threads(t, l.lanes);
    print_staged(x);
    if (l.threads)
        printf("threads       %lld of %d in a block, lanes %d x %d\n", (long long)threads,
               l.threads, l.lanes.m, l.lanes.n);
    else if (x->road.has_blocks)
        printf("threads       %lld warp tile%s in a block, a core is a warp of one lane\n",
               (long long)threads, cli_s(threads));
    printf("registers     %lld of %d accumulate, %d bytes each\n",
           (long long)cli_held_registers(t, l, x->elem), l.registers, l.register_bytes);
    if (l.fast_bytes)
        printf("fast memory   %.0f %% of %s that one block may have\n",
               100.0 * (double)tg_tile_staged_bytes(t, x->elem) / (double)l.fast_bytes,
               cli_bytes_text((double)l.fast_bytes, text));
    else
        print_caches(x);
}

static int explain(subject *x)
{
    const tg_problem p = cli_plain_problem(x->shape, x->type);
    tg_plan plan = TG_PLAN_INIT;
    if (tg_pick(x->machine.ctx, &p, &plan) != TG_OK)
        return cli_fail_call(&x->machine, "");
    x->plan = plan;
    x->elem = tg_kernel_bytes(x->type, x->machine.limits, plan.tile);
    x->road = cli_find_road(&x->machine, x->shape, x->type, &plan);
    print_what(x);
    print_way(x);
    printf("\n");
    cli_draw_cuts(&x->road, x->machine.limits.lanes);
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
