/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `tilegemm`: what it can do, one line each, and how to call it.
 */
#include "cli.h"

#include <locale.h>
#include <string.h>

static const cli_command command_table[] = {
    {"info",
     "",
     "Shows the backends, the device and its limits.",
     cli_info,
     {"--backend", "--threads"}},
    {"tiles",
     "",
     "Shows every tiling and which machines can run it, and why not.",
     cli_tiles,
     {"--backend", "--type"}},
    {"explain",
     "M N K",
     "Draws how a problem is cut, and counts what that costs.",
     cli_explain,
     {"--backend", "--threads", "--type", "--tile"}},
    {"ladder",
     "[M N K]",
     "Times the ladder: from one output per thread to warp tiles, one idea a rung.\n"
     "Without a shape: 512 512 512.",
     cli_ladder,
     {"--backend", "--threads", "--type", "--peer", "--rounds", "--counted", "--json", "--plot",
      "--once"}},
    {"multiply",
     "A.npy B.npy -o C.npy",
     "Multiplies two matrices in NumPy files: C := alpha * A * B + beta * C0.",
     cli_multiply,
     {"--backend", "--threads", "--tile", "-o", "--trans-a", "--trans-b", "--alpha", "--c",
      "--beta", "--verify", "--quiet"}},
    {"bench",
     "[SHAPE ...]",
     "Times multiplications, in turn with other libraries, and checks their results.\n"
     "SHAPE is MxNxK, 512 for a cube, or 64..4096 for the cubes of all doublings between: three\n"
     "numbers with blanks between are three cubes.",
     cli_bench,
     {"--backend", "--threads", "--type", "--tile", "--trans", "--batch", "--shapes", "--peer",
      "--rounds", "--json", "--roofline"}},
    {"check",
     "",
     "Runs every tiling on this machine and compares with exact results.",
     cli_check,
     {"--backend", "--threads", "--tile", "--report"}},
    {"tune",
     "[SHAPE ...]",
     "Looks for faster tilings than the chooser's, and writes them to the tuning file.\n"
     "Every program that uses the library on this machine takes them from there. The file is\n"
     "tilegemm/tuning.txt in $XDG_CONFIG_HOME or ~/.config, or what $TILEGEMM_TUNING names;\n"
     "$TILEGEMM_TUNING empty: none. Without shapes: some of all kinds, in less than five minutes.\n"
     "A line is for a bucket: all sizes that are nearest to its powers of two. It is written if\n"
     "the tiling gains 2 % in the geometric mean of the bucket's shapes, if the lower end of the\n"
     "medians' 95 % confidence intervals is a gain too, and if it is certainly slower on none.",
     cli_tune,
     {"--backend", "--threads", "--type", "--trans", "--batch", "--shapes", "--rounds", "--show",
      "--export", "--import"}},
};

enum { COMMANDS = sizeof(command_table) / sizeof(command_table[0]) };

static int print_help(void)
{
    printf("tilegemm %s: matrix multiplication from one tiling description\n\n"
           "usage: tilegemm COMMAND [ARGUMENT ...]\n\n",
           tg_version());
    for (int i = 0; i < COMMANDS; i++) {
        const char *summary = command_table[i].summary;
        printf("  %-10s %.*s\n", command_table[i].name, (int)strcspn(summary, "\n"), summary);
    }
    printf("\n`tilegemm COMMAND --help` shows the options of a command.\n"
           "`tilegemm --version` prints the version.\n"
           "Exit status: 0 all went well, 1 something failed, 2 it was called wrongly; a sentence\n"
           "on stderr says what.\n");
    return CLI_OK;
}

static int print_command_help(const cli_command *command)
{
    printf("usage: tilegemm %s%s%s [OPTION ...]\n\n%s\n\n", command->name,
           *command->words ? " " : "", command->words, command->summary);
    cli_print_options(command);
    return CLI_OK;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_options options;
    cli_name_command(command->name);
    int rc = cli_parse(command, argc, argv, &options);
    if (rc != CLI_OK)
        return rc;
    if (options.help)
        return print_command_help(command);
    if (!*command->words && options.word_count > 0)
        return cli_misuse("%s takes no argument such as \"%s\"", command->name, options.words[0]);
    return command->run(&options);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return cli_misuse("which command?");
    const char *name = argv[1];
    int is_version = strcmp(name, "--version") == 0, wants_help = strcmp(name, "help") == 0;
    int is_overview =
        strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (wants_help && argc == 2);
    int most = is_version || is_overview ? 2 : wants_help ? 3 : argc;
    if (argc > most)
        return cli_misuse("%s takes no argument such as \"%s\"", name, argv[most]);
    if (is_version)
        return printf("tilegemm %s\n", tg_version()) > 0 ? CLI_OK : CLI_FAILED;
    if (is_overview)
        return print_help();
    if (wants_help)
        name = argv[2];
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, command_table[i].name) == 0)
            return wants_help ? print_command_help(&command_table[i])
                              : run_command(&command_table[i], argc - 2, argv + 2);
    }
    return cli_misuse("there is no %s \"%s\"", name[0] == '-' ? "option" : "command", name);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    int rc = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail("the output could not be written");
    return rc;
}
