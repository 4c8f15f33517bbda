/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm info`: what is here. `tilegemm tiles`: the table of tilings against the machines here
 * and two models of GPUs, with the reason wherever one cannot run a tiling.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "tile.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* ---------------------------------------------------------------------------------------- info */
static void print_bytes(const char *name, int64_t bytes, const char *none)
{
    char text[CLI_NAME];
    printf("  %-16s %s\n", name, bytes ? cli_bytes_text((double)bytes, text) : none);
}

static void print_limits(tg_limits l)
{
    printf("  %-16s %d x %d\n", "lanes of a warp", l.lanes.m, l.lanes.n);
    if (l.threads)
        printf("  %-16s %d in a block\n", "threads", l.threads);
    printf("  %-16s %d bytes\n", "vector", l.vec_bytes);
    printf("  %-16s %d of %d bytes\n", "registers", l.registers, l.register_bytes);
    print_bytes("fast memory", l.fast_bytes, "the caches");
    if (l.fast_bytes) {
        print_bytes("shared cache", l.l3, "unknown");
    } else {
        print_bytes("L1 cache", l.l1, "unknown");
        print_bytes("L2 cache", l.l2, "unknown");
        print_bytes("L3 cache", l.l3, "none");
    }
    printf("  %-16s %d\n", "units", l.units);
    if (l.memory_bytes > 0)
        printf("  %-16s %.1f bytes at most, in a cycle of a unit\n", "memory", l.memory_bytes);
}

/* Of the driver that the backend has loaded. */
static void print_driver(const char *backend)
{
    typedef int version_fn(int *version);
    static const struct {
        const char *backend, *library, *function;
    } of[] = {{"cuda", "libcuda.so.1", "cuDriverGetVersion"},
              {"hip", "libamdhip64.so.7", "hipDriverGetVersion"},
              {"hip", "libamdhip64.so.6", "hipDriverGetVersion"},
              {"hip", "libamdhip64.so.5", "hipDriverGetVersion"}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        const int is_it = strcmp(of[i].backend, backend) == 0;
        void *library = is_it ? dlopen(of[i].library, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        version_fn *get = library ? (version_fn *)dlsym(library, of[i].function) : NULL;
        int version;
        if (get && get(&version) == 0)
            printf("  %-16s %d, %s\n", "driver", version, of[i].library);
    }
}

static void print_gpu(const cli_machine *machine)
{
    print_driver(machine->backend);
    cli_unit unit = cli_read_unit(machine);
    cli_clocks clocks = cli_read_clocks(machine);
    char text[CLI_NAME];
    if (unit.is_known)
        printf("  %-16s %d threads, %d registers, %s of fast memory, %d blocks\n", "a unit holds",
               unit.threads, unit.registers, cli_bytes_text((double)unit.fast_bytes, text),
               unit.blocks);
    cli_print_clocks("  clocks now", &clocks);
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The instruction sets are tried through the variable that names the best one to use; the device's
 * name ends with the one that is used. */
static void print_instruction_sets(void)
{
    static const char *const names[] = {"portable", "avx2", "avx512", "vnni", "bf16", "amx"};
    const char *given = getenv("TILEGEMM_ISA");
    char *before = given ? strdup(given) : NULL;
    setenv("TILEGEMM_TUNING", "", 1); /* a trace has told of its lines */
    printf("  %-16s", "instructions");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tg_context *ctx;
        setenv("TILEGEMM_ISA", names[i], 1);
        if (tg_open(&ctx, "cpu", 0) == TG_OK && ends_with(tg_device_name(ctx), names[i]))
            printf(" %s", names[i]);
        tg_close(ctx);
    }
    printf("\n");
    if (before)
        setenv("TILEGEMM_ISA", before, 1);
    else
        unsetenv("TILEGEMM_ISA");
    free(before);
}

static int print_backend(const char *name, const cli_options *options)
{
    char reason[400];
    if (tg_backend_reason(name, reason, sizeof reason) != TG_OK) {
        printf("%s %s: absent: %s\n", cli_mark_text(CLI_NONE), name, reason);
        return CLI_OK;
    }
    cli_options here = *options;
    cli_machine machine;
    here.backend = name;
    int rc = cli_open(&machine, &here);
    if (rc != CLI_OK)
        return rc;
    printf("%s %s: %s\n", cli_mark_text(CLI_GOOD), name, tg_device_name(machine.ctx));
    print_limits(machine.limits);
    if (machine.is_host) {
        printf("  %-16s %d\n", "threads used", machine.threads);
        print_instruction_sets();
    } else {
        print_gpu(&machine);
    }
    cli_close(&machine);
    return CLI_OK;
}

int cli_info(const cli_options *options)
{
    int rc = CLI_OK, count = 0;
    struct utsname os = {0};
    uname(&os);
    printf("tilegemm %s, %d tilings, %s %s %s\n\n", tg_version(), tg_tile_count(), os.sysname,
           os.release, os.machine);
    for (int i = 0; i < tg_backend_count() && rc == CLI_OK; i++) {
        const char *name = tg_backend_name(i);
        if (options->backend && strcmp(options->backend, name) != 0)
            continue;
        rc = print_backend(name, options);
        count++;
    }
    if (count == 0)
        return cli_fail("there is no backend \"%s\"", options->backend);
    return rc;
}

/* --------------------------------------------------------------------------------------- tiles */
/* A column of the matrix: a device that is here, or a model of one. */
typedef struct column {
    const char *name;
    cli_machine machine; /* ctx NULL: a model */
    tg_limits model;
} column;

enum { COLUMNS = 8 };

static const column model_table[] = {
    {.name = "4x8", .model = {{4, 8}, 1024, 16, 255, 4, 227 * 1024, 0, 0, 0, 0, 16, 0}},
    {.name = "8x8", .model = {{8, 8}, 1024, 16, 255, 4, 64 * 1024, 0, 0, 0, 0, 0, 0}},
};

/* NULL, or why the column's machine cannot run the row. */
static const char *refusal(column *where, int row, tg_type type, char *text, size_t size)
{
    tg_tile tile = tg_tile_at(row);
    if (where->machine.ctx)
        return tg_tile_refusal(where->machine.ctx, &tile, type);
    tg_verdict verdict =
        tg_tile_check(tile, where->model, tg_kernel_bytes(type, where->model, tile));
    if (!verdict.rule)
        return NULL;
    snprintf(text, size, verdict.rule, verdict.left, verdict.right);
    return text;
}

static int open_columns(column *columns, int *count, const cli_options *options)
{
    *count = 0;
    for (int i = 0; i < tg_backend_count() && *count < COLUMNS - 2; i++) {
        const char *name = tg_backend_name(i);
        int is_wanted = options->backend ? strcmp(options->backend, name) == 0
                                         : tg_backend_reason(name, NULL, 0) == TG_OK;
        cli_options here = *options;
        here.backend = name;
        if (!is_wanted)
            continue;
        columns[*count].name = name;
        int rc = cli_open(&columns[*count].machine, &here);
        if (rc != CLI_OK)
            return rc;
        ++*count;
    }
    if (options->backend && *count == 0)
        return cli_fail("there is no backend \"%s\"", options->backend);
    for (int i = 0; i < 2 && (options->type == TG_F32 || options->type == TG_F64); i++)
        columns[(*count)++] = model_table[i]; /* both models know f32 and f64 alone */
    return CLI_OK;
}

static int name_width(void)
{
    int width = 0;
    for (int row = 0; row < tg_tile_count(); row++)
        width = (int)tg_max(width, (int64_t)strlen(tg_tile_name(row)));
    return width;
}

static void print_matrix(column *columns, int count, tg_type type)
{
    int width = name_width();
    char text[400];
    printf("%-*s  %-30s", width, "", tg_type_name(type));
    for (int i = 0; i < count; i++)
        printf(" %-4s", columns[i].name);
    printf(" good at\n");
    for (int row = 0; row < tg_tile_count(); row++) {
        tg_tile tile = tg_tile_at(row);
        char spelled[96];
        tg_tile_print(&tile, spelled, sizeof spelled);
        printf("%-*s  %-30s", width, tg_tile_name(row), spelled);
        for (int i = 0; i < count; i++)
            printf(" %s   ",
                   cli_mark_text(refusal(&columns[i], row, type, text, sizeof text) ? CLI_NONE
                                                                                    : CLI_GOOD));
        printf(" %s\n", tg_tile_note(row));
    }
}

static void print_refusals(column *columns, int count, tg_type type)
{
    int width = name_width();
    char text[400];
    for (int i = 0; i < count; i++) {
        int is_first = 1;
        for (int row = 0; row < tg_tile_count(); row++) {
            const char *why = refusal(&columns[i], row, type, text, sizeof text);
            if (why && is_first)
                printf("\nrefused by %s:\n", columns[i].name);
            if (why)
                printf("  %-*s  %s\n", width, tg_tile_name(row), why);
            is_first &= !why;
        }
    }
}

int cli_tiles(const cli_options *options)
{
    column columns[COLUMNS];
    int count;
    memset(columns, 0, sizeof columns);
    int rc = open_columns(columns, &count, options);
    if (rc == CLI_OK) {
        print_matrix(columns, count, options->type);
        printf("\n%s runs   %s refused   4x8, 8x8: limits of a CUDA and of a CDNA device, by the "
               "lanes of a warp\n",
               cli_mark_text(CLI_GOOD), cli_mark_text(CLI_NONE));
        print_refusals(columns, count, options->type);
    }
    for (int i = 0; i < COLUMNS; i++)
        cli_close(&columns[i].machine);
    return rc;
}
