/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory traffic, counted by the device: this program runs itself once more under NVIDIA's ncu,
 * for a single multiplication, and adds up what each kernel of it read and wrote. The lines of
 * ncu's table that count:
 *
 *     "0","4711",...,"gemm",...,"dram__bytes_read.sum","byte","1,048,576"
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts ncu on this program; its output, errors among it, comes through *output. 0 or an errno. */
static int start(const cli_options *options, cli_shape shape, const char *rung, pid_t *child,
                 FILE **output)
{
    char program[CLI_LINE], sizes[3 * CLI_NAME];
    int ends[2];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || pipe(ends) != 0)
        return errno;
    program[length] = 0;
    snprintf(sizes, sizeof sizes, "%lldx%lldx%lld", (long long)shape.m, (long long)shape.n,
             (long long)shape.k);
    const char *words[] = {"ncu",
                           "--clock-control",
                           "none",
                           "--metrics",
                           "dram__bytes_read.sum,dram__bytes_write.sum",
                           "--csv",
                           "--print-units",
                           "base",
                           program,
                           "ladder",
                           sizes,
                           "--backend",
                           "cuda",
                           "--type",
                           tg_type_name(options->type),
                           "--once",
                           rung,
                           NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int error = posix_spawnp(child, "ncu", &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *output = error ? NULL : fdopen(ends[0], "r");
    if (!*output)
        close(ends[0]);
    return error;
}

/* The bytes that a line of the table counts, or -1 if it counts none. */
static double read_line(char *line)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"byte", 1}, {"Kbyte", 1e3}, {"Mbyte", 1e6}, {"Gbyte", 1e9}};
    char unit[CLI_NAME], value[CLI_NAME], digits[CLI_NAME];
    size_t length = 0;
    char *at = strstr(line, "\"dram__bytes_");
    if (!at || sscanf(at, "\"dram__bytes_%*[a-z_.]\",\"%63[^\"]\",\"%63[^\"]\"", unit, value) != 2)
        return -1;
    for (const char *from = value; *from; from++) {
        if (*from != ',')
            digits[length++] = *from;
    }
    digits[length] = 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(units[i].name, unit) == 0)
            return strtod(digits, NULL) * units[i].bytes;
    }
    return -1;
}

/* Adds up the table; *error: the first line in which ncu complains. */
static double read_table(FILE *output, char *error, size_t size)
{
    char line[4096];
    double bytes = -1;
    *error = 0;
    while (fgets(line, sizeof line, output)) {
        double more = read_line(line);
        if (more >= 0)
            bytes = (bytes < 0 ? 0 : bytes) + more;
        line[strcspn(line, "\r\n")] = 0;
        if (!*error && (strstr(line, "ERROR") || strstr(line, "tilegemm:")))
            snprintf(error, size, "%.*s", (int)size - 1, line);
    }
    return bytes;
}

int cli_count_traffic(const cli_options *options, cli_shape shape, const char *rung, double *bytes)
{
    char said[CLI_LINE];
    FILE *output = NULL;
    pid_t child = 0;
    int state = 0, error = start(options, shape, rung, &child, &output);
    if (error == ENOENT)
        return cli_fail("--counted needs ncu, NVIDIA's profiler, and it is not on PATH");
    if (error || !output)
        return cli_fail("--counted: ncu cannot be started: %s", strerror(error));
    *bytes = read_table(output, said, sizeof said);
    fclose(output);
    waitpid(child, &state, 0);
    if (*bytes < 0 || !WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return cli_fail("--counted: ncu counted nothing%s%s", *said ? ": it says " : "", said);
    return CLI_OK;
}
