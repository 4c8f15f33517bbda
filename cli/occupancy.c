/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks of a tiling one multiprocessor runs at once: by formula, from the tiling alone,
 * and as the driver says it of the compiled kernel. Each resource has room for so many blocks, and
 * the scarcest decides.
 */
#include "cli.h"
#include "tile.h"

#include <string.h>

/* Registers are given to whole warps in portions, to one of four schedulers each. */
enum { REGISTER_PORTION = 256, SCHEDULERS = 4 };

int64_t cli_held_registers(tg_tile t, tg_limits l, int elem_bytes)
{
    if (!l.fast_bytes)
        return tg_tile_accumulators(t, l, elem_bytes);
    int64_t elements = tg_ceil_div((int64_t)t.warp.m * t.warp.n, (int64_t)l.lanes.m * l.lanes.n);
    return tg_ceil_div(elements * elem_bytes, tg_max(1, l.register_bytes));
}

/* A lane holds its part of C, and a fragment of A and one of B; what addresses and counters take
 * comes on top, so this is the least. */
static int least_registers(tg_tile t, tg_limits l, int elem_bytes)
{
    tg_mn rep = tg_tile_rep(t, l.lanes);
    int64_t fragments = rep.m * t.thread.m + rep.n * t.thread.n;
    if (t.form == TG_DOT)
        fragments = 2;
    return (int)(cli_held_registers(t, l, elem_bytes) +
                 tg_ceil_div(fragments * elem_bytes, tg_max(1, l.register_bytes)));
}

static tg_usage usage_by_formula(tg_tile t, tg_limits l, int elem_bytes)
{
    tg_usage usage = {0};
    usage.threads = (int)tg_tile_threads(t, l.lanes);
    usage.registers = least_registers(t, l, elem_bytes);
    usage.fast_bytes = (int)tg_tile_fast_bytes(t, elem_bytes);
    return usage;
}

static int64_t room_for_registers(const cli_unit *unit, int registers, int threads, int warp)
{
    int64_t of_warp = tg_round_up((int64_t)registers * warp, REGISTER_PORTION);
    int64_t warps = tg_round_down(unit->registers / tg_max(of_warp, 1), SCHEDULERS);
    return warps / tg_max(1, tg_ceil_div(threads, warp));
}

/* A plan cuts its tile to the problem, and the kernel is the row's. */
static int read_usage(cli_machine *machine, const tg_plan *plan, tg_type type, tg_tile *tile,
                      tg_usage *usage)
{
    *tile = plan->tile;
    if (tg_tile_usage(machine->ctx, tile, type, usage) == TG_OK)
        return 1;
    if (plan->row < 0)
        return 0;
    tg_tile row = tg_tile_at(plan->row);
    row = tg_tile_resolve(machine->ctx, &row, type);
    if (tg_tile_usage(machine->ctx, &row, type, usage) != TG_OK)
        return 0;
    *tile = row;
    return 1;
}

cli_occupancy cli_read_occupancy(cli_machine *machine, const tg_plan *plan, tg_type type)
{
    tg_limits l = machine->limits;
    tg_tile tile;
    cli_occupancy x;
    memset(&x, 0, sizeof x);
    if (machine->is_host)
        return x;
    x.warp = l.lanes.m * l.lanes.n;
    x.unit = cli_read_unit(machine);
    x.is_measured = read_usage(machine, plan, type, &tile, &x.driver);
    x.formula = usage_by_formula(tile, l, tg_kernel_bytes(type, l, tile));
    x.is_known = x.unit.is_known;
    if (!x.is_known)
        return x;
    x.by_threads = x.unit.threads / tg_max(1, x.formula.threads);
    x.by_registers =
        room_for_registers(&x.unit, x.formula.registers, x.formula.threads, (int)tg_max(1, x.warp));
    x.by_fast = x.unit.fast_bytes / tg_max(1, x.formula.fast_bytes + x.unit.fast_taken);
    x.by_blocks = x.unit.blocks;
    x.blocks = tg_min(tg_min(x.by_threads, x.by_registers), tg_min(x.by_fast, x.by_blocks));
    x.formula.blocks_per_unit = (int)x.blocks;
    return x;
}

double cli_occupied(const cli_occupancy *x)
{
    const tg_usage *u = x->is_measured ? &x->driver : &x->formula;
    if (!x->is_known)
        return 0;
    return (double)u->blocks_per_unit * u->threads / x->unit.threads;
}

static void print_line(const char *name, const char *one, const char *unit, int64_t room,
                       const char *driver)
{
    printf("  %-12s %18s %12s %9lld   %s\n", name, one, unit, (long long)room, driver);
}

static void print_rooms(const cli_occupancy *x)
{
    char one[CLI_NAME], unit[CLI_NAME], driver[CLI_NAME] = "", bytes[CLI_NAME];
    const tg_usage *f = &x->formula, *d = &x->driver;
    printf("occupancy %18s %15s %9s   %s\n", "a block takes", "a unit has", "room for",
           x->is_measured ? "the driver says" : "");
    snprintf(one, sizeof one, "%d", f->threads);
    snprintf(unit, sizeof unit, "%d", x->unit.threads);
    if (x->is_measured)
        snprintf(driver, sizeof driver, "%d", d->threads);
    print_line("threads", one, unit, x->by_threads, driver);
    snprintf(one, sizeof one, "%d+ a thread", f->registers);
    snprintf(unit, sizeof unit, "%d", x->unit.registers);
    if (x->is_measured)
        snprintf(driver, sizeof driver, "%d a thread, %d bytes spilled", d->registers,
                 d->spilled_bytes);
    print_line("registers", one, unit, x->by_registers, driver);
    if (x->is_measured)
        cli_bytes_text(d->fast_bytes, driver);
    print_line("fast memory", cli_bytes_text(f->fast_bytes, bytes),
               cli_bytes_text((double)x->unit.fast_bytes, unit), x->by_fast, driver);
    snprintf(unit, sizeof unit, "%d", x->unit.blocks);
    if (x->is_measured)
        snprintf(driver, sizeof driver, "%d at once", d->blocks_per_unit);
    print_line("blocks", "1", unit, x->by_blocks, driver);
}

void cli_print_occupancy(const cli_occupancy *x)
{
    const tg_usage *u = x->is_measured ? &x->driver : &x->formula;
    if (x->is_known) {
        print_rooms(x);
        int warps = (int)tg_ceil_div(u->threads, tg_max(1, x->warp)) * u->blocks_per_unit;
        printf("  so %lld block%s at once by formula", (long long)x->blocks, cli_s(x->blocks));
        if (x->is_measured)
            printf(", %d by the driver", x->driver.blocks_per_unit);
        printf(": %d of %d warps, %.0f %%\n", warps, x->unit.threads / (int)tg_max(1, x->warp),
               100 * cli_occupied(x));
    } else if (x->is_measured) {
        printf(
            "occupancy     the driver runs %d block%s at once: %d threads, %d registers each, %d "
            "bytes spilled\n",
            u->blocks_per_unit, cli_s(u->blocks_per_unit), u->threads, u->registers,
            u->spilled_bytes);
    }
}
