/* SPDX-License-Identifier: Apache-2.0
 *
 * Options: one list of all there are, from which parsing and help follow. A command names those
 * that it takes. "--name value" and "--name=value" are the same, "--" ends the options.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FLAG, TEXT, LIST, NUMBER, REAL, TYPE } kind;

typedef struct option {
    const char *name, *value;
    kind kind;
    size_t at;
    const char *help;
} option;

#define AT(member) offsetof(cli_options, member)

static const option option_table[] = {
    {"--backend", "NAME", TEXT, AT(backend), "cpu, cuda or hip (default: the best one present)"},
    {"--threads", "N", NUMBER, AT(threads), "CPU threads to use (default: all)"},
    {"--type", "TYPE", TYPE, AT(type),
     "f32, f64, f16, bf16, i8, or u8 with a B of i8 (default: f32)"},
    {"--tile", "TILING", TEXT, AT(tile),
     "a row of `tilegemm tiles`, or text such as 128x128x8/64x64/8x8/4/2;\n"
     "of bench, also all, or several rows with commas between"},
    {"-o", "C.npy", TEXT, AT(output), "the file to write; it may be one of the inputs"},
    {"--trans-a", NULL, FLAG, AT(trans_a), "multiply by the transpose of A"},
    {"--trans-b", NULL, FLAG, AT(trans_b), "multiply by the transpose of B"},
    {"--alpha", "X", REAL, AT(alpha), "factor of the product (default: 1)"},
    {"--c", "C0.npy", TEXT, AT(c0), "a matrix to add, times beta"},
    {"--beta", "Y", REAL, AT(beta), "factor of the matrix of --c (default: 1)"},
    {"--verify", NULL, FLAG, AT(verify), "check the result against the rounding bound"},
    {"--quiet", NULL, FLAG, AT(quiet), "print errors only"},
    {"--shapes", "FILE", TEXT, AT(shapes),
     "read problems from a file, one a line: SHAPE [NT] [*BATCH]\n"
     "[label], SHAPE being MxNxK, M N K or one number; # begins a comment"},
    {"--trans", "NN|NT|TN|TT", TEXT, AT(trans), "which of A and B are transposed (default: NN)"},
    {"--batch", "N", NUMBER, AT(batch), "multiply N matrices of that shape in one call"},
    {"--peer", "NAME=LIB[:PREFIX]", LIST, AT(peers),
     "time a library too (repeatable): CBLAS, PREFIX before cblas_sgemm;\n"
     "on a GPU its maker's: cublas=libcublas.so.13, rocblas=librocblas.so"},
    {"--rounds", "R", NUMBER, AT(rounds), "samples of each contestant; of tune, 6 and more"},
    {"--json", NULL, FLAG, AT(json), "print one JSON object instead of the table"},
    {"--roofline", "OUT.svg", TEXT, AT(roofline), "draw peak, bandwidth and each result"},
    {"--plot", "OUT.svg", TEXT, AT(plot), "draw the ladder as bars"},
    {"--counted", NULL, FLAG, AT(counted),
     "count each rung's memory traffic too, with NVIDIA's ncu (cuda only)"},
    {"--once", "RUNG", TEXT, AT(once),
     "only multiply once with this rung, for a profiler to look at"},
    {"--show", NULL, FLAG, AT(show),
     "show the lines of the tuning file, and which this machine uses"},
    {"--export", "FILE", TEXT, AT(export_to), "copy the tuning file's lines to a file"},
    {"--import", "FILE", TEXT, AT(import_from),
     "take over a file's lines, in place of those for the same problems"},
    {"--report", NULL, FLAG, AT(report), "describe the machine too, to send it with a question"},
    {"--help", NULL, FLAG, AT(help), "print this"},
};

static int takes(const char *const *names, const char *name)
{
    int is_taken = strcmp(name, "--help") == 0;
    for (int i = 0; names[i]; i++)
        is_taken |= strcmp(names[i], name) == 0;
    return is_taken;
}

int cli_takes_only(const cli_options *options, const char *mode, const char *const *names)
{
    for (size_t i = 0; i < sizeof(option_table) / sizeof(option_table[0]); i++) {
        if (options->given >> i & 1 && !takes(names, option_table[i].name))
            return cli_misuse("%s does nothing with %s", option_table[i].name, mode);
    }
    return CLI_OK;
}

/* The option that the first `length` characters of the argument name, if the command takes it. */
static const option *find_option(const cli_command *command, const char *name, size_t length)
{
    if (length == 2 && memcmp(name, "-h", 2) == 0)
        return find_option(command, "--help", 6);
    if (length == 8 && memcmp(name, "--output", 8) == 0)
        return find_option(command, "-o", 2);
    for (size_t i = 0; i < sizeof(option_table) / sizeof(option_table[0]); i++) {
        const option *one = &option_table[i];
        if (strlen(one->name) == length && memcmp(one->name, name, length) == 0)
            return takes(command->options, one->name) ? one : NULL;
    }
    return NULL;
}

static int parse_real(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*value);
}

static int parse_type(const char *text, tg_type *type)
{
#define TG_X(name, value, spelling, ctype) \
    if (strcmp(text, #spelling) == 0) {    \
        *type = name;                      \
        return name != TG_I32;             \
    }
    TG_TYPE_LIST(TG_X)
#undef TG_X
    return 0;
}

static int set_number(const option *one, const char *text, int *to)
{
    int64_t most = strcmp(one->name, "--rounds") == 0 ? CLI_ROUNDS : INT_MAX;
    int64_t number;
    if (!cli_parse_int(text, 1, most, &number))
        return cli_misuse("%s takes a whole number from 1 to %lld, not \"%s\"", one->name,
                          (long long)most, text);
    *to = (int)number;
    return CLI_OK;
}

static int set_option(cli_options *options, const option *one, const char *text)
{
    void *to = (char *)options + one->at;
    switch (one->kind) {
    case FLAG:
        *(int *)to = 1;
        return CLI_OK;
    case TEXT:
        *(const char **)to = text;
        return CLI_OK;
    case NUMBER:
        return set_number(one, text, to);
    case LIST:
        if (options->peer_count == CLI_LIST)
            return cli_misuse("%s can be given %d times at most", one->name, CLI_LIST);
        options->peers[options->peer_count++] = text;
        return CLI_OK;
    case REAL:
        if (!parse_real(text, to))
            return cli_misuse("%s takes a finite number, not \"%s\"", one->name, text);
        return CLI_OK;
    case TYPE:
        if (!parse_type(text, to))
            return cli_misuse("%s takes f32, f64, f16, bf16, i8 or u8, not \"%s\"", one->name,
                              text);
    }
    return CLI_OK;
}

/* Reads the option at argv[*at] and moves past it and its value. */
static int parse_option(const cli_command *command, char **argv, int *at, cli_options *options)
{
    const char *name = argv[(*at)++];
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const option *one = find_option(command, name, length);
    if (!one)
        return cli_misuse("%s has no option \"%.*s\"", command->name, (int)length, name);
    if (one->kind == FLAG && equals)
        return cli_misuse("%s takes no value", one->name);
    const char *text = equals ? equals + 1 : one->kind == FLAG ? "" : argv[*at];
    if (!text)
        return cli_misuse("%s needs a value: %s %s", one->name, one->name, one->value);
    *at += !equals && one->kind != FLAG;
    options->given |= 1ull << (one - option_table);
    return set_option(options, one, text);
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_options *options)
{
    cli_options none = {.type = TG_F32, .alpha = 1, .beta = NAN, .words = argv};
    *options = none;
    int has_ended = 0;
    snprintf(options->command, CLI_LINE, "tilegemm %s", command->name);
    for (int at = 0; at < argc; at++) {
        size_t length = strlen(options->command);
        snprintf(options->command + length, CLI_LINE - length, " %s", argv[at]);
    }
    for (int at = 0; at < argc;) {
        if (!has_ended && strcmp(argv[at], "--") == 0) {
            has_ended = 1;
            at++;
        } else if (has_ended || argv[at][0] != '-' || argv[at][1] == 0) {
            options->words[options->word_count++] = argv[at++];
        } else {
            int rc = parse_option(command, argv, &at, options);
            if (rc != CLI_OK)
                return rc;
        }
    }
    return CLI_OK;
}

static void print_help_lines(const char *left, const char *help)
{
    for (const char *line = help; line; left = "") {
        const char *end = strchr(line, '\n');
        printf("  %-26s %.*s\n", left, (int)strcspn(line, "\n"), line);
        line = end ? end + 1 : NULL;
    }
}

void cli_print_options(const cli_command *command)
{
    for (size_t i = 0; i < sizeof(option_table) / sizeof(option_table[0]); i++) {
        const option *one = &option_table[i];
        char left[CLI_NAME];
        snprintf(left, sizeof left, "%s%s%s", one->name, one->value ? " " : "",
                 one->value ? one->value : "");
        if (takes(command->options, one->name))
            print_help_lines(left, one->help);
    }
}

int cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *value)
{
    int64_t number = 0;
    if (!*text)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *text - '0', &number))
            return 0;
    }
    *value = number;
    return number >= low && number <= high;
}

int cli_parse_shape(const char *text, cli_shape *shape)
{
    char copy[CLI_NAME];
    int64_t *const sizes[] = {&shape->m, &shape->n, &shape->k};
    int count = 0;
    if (strlen(text) >= sizeof copy)
        return 0;
    strcpy(copy, text);
    for (char *at = copy; at; count++) {
        char *cross = strchr(at, 'x');
        if (cross)
            *cross = 0;
        if (count == 3 || !cli_parse_int(at, 1, INT32_MAX, sizes[count]))
            return 0;
        at = cross ? cross + 1 : NULL;
    }
    if (count == 1)
        shape->n = shape->k = shape->m;
    shape->batch = 1;
    return count == 1 || count == 3;
}

int cli_is_trans(const char *text) { return strlen(text) == 2 && strspn(text, "NT") == 2; }

int cli_words_shape(const cli_options *options, cli_shape *shape)
{
    char joined[CLI_NAME];
    int count = options->word_count;
    if (count == 0)
        return CLI_OK;
    if (count != 1 && count != 3)
        return cli_misuse("a shape is M N K, MxNxK or one number, and %d words were given", count);
    int length = snprintf(joined, sizeof joined, count == 1 ? "%s" : "%sx%sx%s", options->words[0],
                          count == 3 ? options->words[1] : "", count == 3 ? options->words[2] : "");
    if (length >= (int)sizeof joined || !cli_parse_shape(joined, shape))
        return cli_misuse("\"%s\" is no shape: M N K, MxNxK or one number, each from 1 to %d",
                          joined, INT32_MAX);
    return CLI_OK;
}
