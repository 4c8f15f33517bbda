/* SPDX-License-Identifier: Apache-2.0
 *
 * `tilegemm bench`: times multiplications of random matrices, checks each result, and compares with
 * the machine's peak and with other libraries that take turns with it. A ratio above 1 means that
 * tilegemm was faster.
 */
#include "cli.h"
#include "tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, BAR = 20, SECONDS = 10 };

typedef struct shape_list {
    cli_shape *items;
    int count, room;
} shape_list;

typedef struct bench {
    const cli_options *options;
    cli_machine machine;
    shape_list shapes;
    cli_peer peers[CLI_LIST];
    int peer_count;
    cli_runner *runners; /* tilegemm's, then the peers' */
    int own_count;
    double log_share, log_median[CLI_LIST], log_best[CLI_LIST]; /* sums, of the first runner */
    int wrong;
} bench;

/* ----------------------------------------------------------------------------------- the shapes */
static int add_shape(shape_list *list, cli_shape shape)
{
    if (list->count == list->room) {
        int room = 2 * list->room + 16;
        cli_shape *more = realloc(list->items, (size_t)room * sizeof *more);
        if (!more)
            return cli_fail("there is no memory for %d shapes", room);
        list->items = more;
        list->room = room;
    }
    list->items[list->count++] = shape;
    return CLI_OK;
}

/* "64..4096": 64, 128, and so on. */
static int parse_range(const char *text, int64_t *low, int64_t *high)
{
    char copy[CLI_NAME];
    if (strlen(text) >= sizeof copy)
        return 0;
    strcpy(copy, text);
    char *dots = strstr(copy, "..");
    if (!dots)
        return 0;
    *dots = 0;
    return cli_parse_int(copy, 1, INT32_MAX, low) && cli_parse_int(dots + 2, *low, INT32_MAX, high);
}

/* True if the text is a shape or a range; *rc says whether there was memory for it. */
static int add_text(shape_list *list, const char *text, int *rc)
{
    cli_shape shape;
    int64_t low, high;
    *rc = CLI_OK;
    if (parse_range(text, &low, &high)) {
        for (int64_t size = low; size <= high && *rc == CLI_OK; size *= 2) {
            cli_shape cube = {size, size, size};
            *rc = add_shape(list, cube);
        }
        return 1;
    }
    if (!cli_parse_shape(text, &shape))
        return 0;
    *rc = add_shape(list, shape);
    return 1;
}

static int read_shapes(shape_list *list, const char *path)
{
    char line[256], word[256], rest[2];
    int number = 0, rc = CLI_OK;
    FILE *file = fopen(path, "r");
    if (!file)
        return cli_fail("--shapes %s cannot be read", path);
    while (rc == CLI_OK && fgets(line, sizeof line, file)) {
        number++;
        line[strcspn(line, "#")] = 0;
        int words = sscanf(line, "%255s %1s", word, rest);
        if (words == 2 || (words == 1 && !add_text(list, word, &rc)))
            rc = cli_fail("%s, line %d: \"%s\" is no shape such as 512 or 128x256x512", path,
                          number, word);
    }
    if (rc == CLI_OK && ferror(file))
        rc = cli_fail("--shapes %s cannot be read", path);
    fclose(file);
    return rc;
}

static int collect_shapes(bench *b)
{
    static const char *const usual[] = {"64..1024",     "127x129x131",  "1000",
                                        "1024x16x1024", "16x1024x1024", "1024x1024x16",
                                        "1x1024x1024"};
    const cli_options *o = b->options;
    int rc = o->shapes ? read_shapes(&b->shapes, o->shapes) : CLI_OK;
    for (int i = 0; i < o->word_count && rc == CLI_OK; i++) {
        if (!add_text(&b->shapes, o->words[i], &rc))
            rc = cli_misuse("\"%s\" is no shape: MxNxK, 512 or 64..4096, sizes from 1 to %d",
                            o->words[i], INT32_MAX);
    }
    if (rc == CLI_OK && o->shapes && b->shapes.count == 0)
        return cli_fail("%s has no shape in it", o->shapes);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && rc == CLI_OK; i++) {
        if (!o->shapes && o->word_count == 0)
            add_text(&b->shapes, usual[i], &rc);
    }
    return rc;
}

/* ------------------------------------------------------------------------------ the contestants */
static int make_runners(bench *b)
{
    const cli_options *o = b->options;
    cli_runner *runner = calloc((size_t)tg_tile_count() + 1 + CLI_LIST, sizeof *runner);
    int wants_all = o->tile && strcmp(o->tile, "all") == 0;
    b->runners = runner;
    if (!runner)
        return cli_fail("there is no memory for the samples");
    snprintf(runner->name, CLI_NAME, "tilegemm");
    runner->mode = wants_all ? CLI_CHOSEN : CLI_AS_IS;
    runner++;
    for (int row = 0; row < tg_tile_count() && wants_all; row++) {
        runner->tile = tg_tile_at(row);
        if (tg_tile_refusal(b->machine.ctx, &runner->tile, o->type))
            continue;
        runner->mode = CLI_FORCED;
        snprintf(runner->name, CLI_NAME, "%s", tg_tile_name(row));
        runner++;
    }
    b->own_count = (int)(runner - b->runners);
    for (int i = 0; i < o->peer_count; i++) {
        int rc = cli_peer_open(&b->peers[i], o->peers[i], b->machine.threads);
        if (rc != CLI_OK)
            return rc;
        b->peer_count++;
        runner[i].peer = &b->peers[i];
        snprintf(runner[i].name, CLI_NAME, "%s", b->peers[i].name);
    }
    return CLI_OK;
}

/* ------------------------------------------------------------------------------------ the table */
static void print_heading(const bench *b)
{
    printf("tilegemm %s, %s, %d thread%s, %s %s\n\n", tg_version(), tg_device_name(b->machine.ctx),
           b->machine.threads, b->machine.threads == 1 ? "" : "s", tg_type_name(b->options->type),
           b->options->trans ? b->options->trans : "NN");
    printf("%-16s %-16s %10s %9s %9s %8s", "m x n x k", "tiling", "ms", "GFLOP/s", "best",
           "of peak");
    for (int i = 0; i < b->peer_count; i++)
        printf(" %10.10s %6s %6s", b->peers[i].name, "x", "x best");
    printf("\n");
}

static const char *tiling_name(const cli_runner *runner, char *text)
{
    if (runner->plan.row >= 0)
        return tg_tile_name(runner->plan.row);
    tg_tile_print(&runner->plan.tile, text, CLI_NAME);
    return text;
}

static void print_row(const bench *b, const cli_runner *runner, cli_shape shape, double peak)
{
    char text[CLI_NAME], tiling[CLI_NAME];
    double share = cli_gflops(shape, runner->median) * 1e9 / peak;
    snprintf(text, sizeof text, "%lldx%lldx%lld", (long long)shape.m, (long long)shape.n,
             (long long)shape.k);
    printf("%-16s %-16s %10.4f %9.2f %9.2f %6.1f %%", text, tiling_name(runner, tiling),
           1e3 * runner->median, cli_gflops(shape, runner->median), cli_gflops(shape, runner->best),
           100 * share);
    for (int i = 0; i < b->peer_count; i++) {
        const cli_runner *peer = &b->runners[b->own_count + i];
        printf(" %10.2f %6.2f %6.2f", cli_gflops(shape, peer->median),
               peer->median / runner->median, peer->best / runner->best);
    }
    printf("  ");
    cli_print_bar(share, BAR);
    printf("\n");
    fflush(stdout);
}

static void print_means(const bench *b)
{
    int count = b->shapes.count;
    printf("%-16s %-16s %10s %9s %9s %6.1f %%", "geometric mean", "", "", "", "",
           100 * exp(b->log_share / count));
    for (int i = 0; i < b->peer_count; i++)
        printf(" %10s %6.2f %6.2f", "", exp(b->log_median[i] / count), exp(b->log_best[i] / count));
    printf("\n\nof peak: of the multiply-adds alone that this machine did in the same rounds; "
           "times are medians\n");
    if (b->peer_count > 0)
        printf("x: times as fast as that library\n");
}

/* ------------------------------------------------------------------------------------- the JSON */
static void print_json_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_json_heading(const bench *b)
{
    printf("{\"program\": \"tilegemm\", \"version\": \"%s\", \"backend\": \"%s\", \"machine\": ",
           tg_version(), b->machine.backend);
    print_json_text(tg_device_name(b->machine.ctx));
    printf(", \"threads\": %d, \"type\": \"%s\", \"trans\": \"%s\", \"results\": [",
           b->machine.threads, tg_type_name(b->options->type),
           b->options->trans ? b->options->trans : "NN");
}

static void print_json_runner(const cli_runner *runner, cli_shape shape, int is_first)
{
    char tile[96];
    printf("%s\n   {\"name\": ", is_first ? "" : ",");
    print_json_text(runner->name);
    if (!runner->peer) {
        tg_tile_print(&runner->plan.tile, tile, sizeof tile);
        printf(", \"tile\": \"%s\", \"row\": ", tile);
        print_json_text(runner->plan.row < 0 ? "" : tg_tile_name(runner->plan.row));
    }
    printf(", \"samples\": %d, \"calls\": %lld, \"median_ms\": %.6g, \"best_ms\": %.6g, "
           "\"gflops\": %.6g, \"best_gflops\": %.6g, \"checked\": %lld, \"correct\": %s}",
           runner->sample_count, (long long)runner->calls, 1e3 * runner->median, 1e3 * runner->best,
           cli_gflops(shape, runner->median), cli_gflops(shape, runner->best),
           (long long)runner->verdict.checked, runner->verdict.worst > 1 ? "false" : "true");
}

static void print_json_shape(const bench *b, cli_shape shape, double peak, int is_first)
{
    printf("%s\n {\"m\": %lld, \"n\": %lld, \"k\": %lld, \"peak_gflops\": %.6g, \"runs\": [",
           is_first ? "" : ",", (long long)shape.m, (long long)shape.n, (long long)shape.k,
           peak / 1e9);
    for (int i = 0; i < b->own_count + b->peer_count; i++)
        print_json_runner(&b->runners[i], shape, i == 0);
    printf("]}");
}

static void print_json_means(const bench *b)
{
    int count = b->shapes.count;
    printf("],\n \"geometric_means\": {\"share_of_peak\": %.6g, \"peers\": [",
           exp(b->log_share / count));
    for (int i = 0; i < b->peer_count; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        print_json_text(b->peers[i].name);
        printf(", \"median_ratio\": %.6g, \"best_ratio\": %.6g}", exp(b->log_median[i] / count),
               exp(b->log_best[i] / count));
    }
    printf("]}, \"correct\": %s}\n", b->wrong ? "false" : "true");
}

/* -------------------------------------------------------------------------------------- running */
static void judge(bench *b, cli_shape shape, double peak)
{
    const cli_runner *own = &b->runners[0], *peers = &b->runners[b->own_count];
    b->log_share += log(cli_gflops(shape, own->median) * 1e9 / peak);
    for (int i = 0; i < b->peer_count; i++) {
        b->log_median[i] += log(peers[i].median / own->median);
        b->log_best[i] += log(peers[i].best / own->best);
    }
    for (int i = 0; i < b->own_count + b->peer_count; i++) {
        const cli_verdict *v = &b->runners[i].verdict;
        if (v->worst <= 1)
            continue;
        cli_fail("%s is wrong for %lld x %lld x %lld: C[%lld, %lld] is %.9g and should be %.9g",
                 b->runners[i].name, (long long)shape.m, (long long)shape.n, (long long)shape.k,
                 (long long)v->row, (long long)v->col, v->got, v->wanted);
        b->wrong = 1;
    }
}

static int run_shape(bench *b, int index)
{
    const cli_options *o = b->options;
    cli_shape shape = b->shapes.items[index];
    cli_work work;
    double peak;
    int rc = cli_work_make(&b->machine, &work, shape, o->type, o->trans ? o->trans : "NN",
                           CLI_RANDOM, 0);
    if (rc != CLI_OK)
        return rc;
    rc = cli_race(&b->machine, &work, b->runners, b->own_count + b->peer_count,
                  o->rounds ? o->rounds : ROUNDS, SECONDS, &peak);
    cli_work_free(&b->machine, &work);
    if (rc != CLI_OK)
        return rc;
    if (o->json)
        print_json_shape(b, shape, peak, index == 0);
    for (int i = 0; i < b->own_count && !o->json; i++)
        print_row(b, &b->runners[i], shape, peak);
    judge(b, shape, peak);
    return CLI_OK;
}

static int run_all(bench *b)
{
    int rc = make_runners(b);
    if (rc != CLI_OK)
        return rc;
    if (b->options->json)
        print_json_heading(b);
    else
        print_heading(b);
    for (int i = 0; i < b->shapes.count && rc == CLI_OK; i++)
        rc = run_shape(b, i);
    if (rc != CLI_OK)
        return rc;
    if (b->options->json)
        print_json_means(b);
    else
        print_means(b);
    return b->wrong ? CLI_FAILED : CLI_OK;
}

int cli_bench(const cli_options *options)
{
    bench b;
    memset(&b, 0, sizeof b);
    b.options = options;
    const char *trans = options->trans ? options->trans : "NN";
    if (strlen(trans) != 2 || strspn(trans, "NT") != 2)
        return cli_misuse("--trans takes NN, NT, TN or TT, not \"%s\"", trans);
    int rc = collect_shapes(&b);
    if (rc == CLI_OK)
        rc = cli_open(&b.machine, options);
    if (rc == CLI_OK) {
        rc = run_all(&b);
        cli_close(&b.machine);
    }
    free(b.runners);
    free(b.shapes.items);
    return rc;
}
