/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuning file: shown, carried from machine to machine, and written anew as a whole. Of its
 * lines this knows that the same KEY in "KEY = VALUE" is for the same problems; the library knows
 * the rest.
 */
#define _XOPEN_SOURCE 700
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header[] = "# Tilings that `tilegemm tune` found to be faster than the chooser's "
                             "own: tilegemm.h has the format.";

int cli_tuning_path(char *path, size_t size)
{
    int length = tg_tuning_path(path, size);
    if (length == 0 && getenv("TILEGEMM_TUNING"))
        return cli_fail("there is no tuning file: TILEGEMM_TUNING is empty");
    if (length == 0)
        return cli_fail("there is no folder for a tuning file: TILEGEMM_TUNING, XDG_CONFIG_HOME or "
                        "HOME must say where");
    return length < (int)size ? CLI_OK : cli_fail("%.100s... is too long a path", path);
}

/* --------------------------------------------------------------------------------------- lines */
/* How much of a line is its key; 0: it has none. */
static size_t key_length(const char *line)
{
    const char *end = line;
    for (const char *at = strstr(line, " = "); at && *line != '#'; at = strstr(at + 1, " = "))
        end = at;
    return (size_t)(end - line);
}

static int is_tiling(const char *line) { return *line && *line != '#'; }

static int count_tilings(const cli_lines *lines)
{
    int count = 0;
    for (int i = 0; i < lines->count; i++)
        count += is_tiling(lines->items[i]);
    return count;
}

static int append(cli_lines *lines, const char *line)
{
    char **more = realloc(lines->items, (size_t)(lines->count + 1) * sizeof *more);
    char *copy = strdup(line);
    if (more)
        lines->items = more;
    if (!more || !copy) {
        free(copy);
        return cli_fail("there is no memory for the tuning file");
    }
    lines->items[lines->count++] = copy;
    return CLI_OK;
}

void cli_lines_drop(cli_lines *lines, const char *line)
{
    size_t length = key_length(line);
    int kept = 0;
    for (int i = 0; i < lines->count; i++) {
        char *one = lines->items[i];
        if (key_length(one) == length && length > 0 && memcmp(one, line, length) == 0)
            free(one);
        else
            lines->items[kept++] = one;
    }
    lines->count = kept;
}

int cli_lines_put(cli_lines *lines, const char *line)
{
    cli_lines_drop(lines, line);
    return append(lines, line);
}

void cli_lines_free(cli_lines *lines)
{
    for (int i = 0; i < lines->count; i++)
        free(lines->items[i]);
    free(lines->items);
    memset(lines, 0, sizeof *lines);
}

int cli_lines_read(cli_lines *lines, const char *path)
{
    char *text = NULL;
    size_t room = 0;
    int rc = CLI_OK;
    memset(lines, 0, sizeof *lines);
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT ? CLI_OK : cli_fail("%s cannot be read: %s", path, strerror(errno));
    errno = 0;
    while (rc == CLI_OK && getline(&text, &room, file) >= 0) {
        text[strcspn(text, "\r\n")] = 0;
        rc = append(lines, text);
    }
    if (rc == CLI_OK && ferror(file))
        rc = cli_fail("%s cannot be read: %s", path, strerror(errno));
    free(text);
    fclose(file);
    if (rc != CLI_OK)
        cli_lines_free(lines);
    return rc;
}

/* As the XDG base directory specification wants them. How many were missing. */
static int make_folders(const char *path)
{
    char folder[PATH_MAX];
    int made = 0;
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        made += mkdir(folder, 0700) == 0; /* what fails here is told when the file is made */
        *slash = '/';
    }
    return made;
}

int cli_tuning_try(const char *path)
{
    char folder[PATH_MAX];
    int made = make_folders(path);
    const int rc = cli_temporary_try(path);
    snprintf(folder, sizeof folder, "%s", path);
    for (; made > 0; made--)
        rmdir(dirname(folder)); /* the innermost first */
    return rc;
}

int cli_tuning_lock(const char *path)
{
    char folder[PATH_MAX];
    make_folders(path);
    if (!realpath(path, folder))
        snprintf(folder, sizeof folder, "%s", path);
    const int lock = open(dirname(folder), O_RDONLY | O_CLOEXEC);
    if (lock >= 0)
        flock(lock, LOCK_EX); /* or this file system has no locks */
    return lock;
}

int cli_lines_write(const cli_lines *lines, const char *path)
{
    FILE *file = cli_temporary_open(path);
    if (!file)
        return CLI_FAILED;
    if (lines->count == 0 || strcmp(lines->items[0], header) != 0)
        fprintf(file, "%s\n", header);
    for (int i = 0; i < lines->count; i++)
        fprintf(file, "%s\n", lines->items[i]);
    return cli_temporary_close(file, path);
}

/* ------------------------------------------------------------------------------------ verdicts */
enum { BACKENDS = 8 };

typedef struct devices {
    tg_context *contexts[BACKENDS];
    int count;
} devices;

static void open_devices(devices *d)
{
    d->count = 0;
    for (int i = 0; i < tg_backend_count() && d->count < BACKENDS; i++) {
        if (tg_open(&d->contexts[d->count], tg_backend_name(i), 0) == TG_OK)
            d->count++;
        else
            tg_close(d->contexts[d->count]);
    }
}

static void close_devices(devices *d)
{
    for (int i = 0; i < d->count; i++)
        tg_close(d->contexts[i]);
}

/* What the device that the line is for says to it; if that is not here, another says so. */
static tg_status judge(const devices *d, const char *line, const char **reason)
{
    tg_context *ctx = d->contexts[d->count - 1];
    for (int i = 0; i < d->count; i++) {
        const char *name = tg_device_backend(d->contexts[i]);
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ')
            ctx = d->contexts[i];
    }
    tg_status status = tg_tuning_add(ctx, line);
    *reason = tg_last_error(ctx);
    return status;
}

static void print_line(const char *mark, const char *line, const char *why_not, const char *reason)
{
    printf("%s ", mark);
    cli_print_text(line);
    if (*why_not) {
        printf("\n    %s: ", why_not);
        cli_print_text(reason);
    }
    printf("\n");
}

/* Prints each line with a mark, and why it is not used. Lines that are not good on their device, as
 * far as can be seen from here, are taken out if they are to be. */
static int show_lines(cli_lines *lines, int takes_out)
{
    devices d;
    int used = 0, kept = 0;
    open_devices(&d);
    for (int i = 0; i < lines->count && d.count > 0; i++) {
        char *line = lines->items[i];
        const char *reason = "";
        const int is_line = is_tiling(line);
        const tg_status status = is_line ? judge(&d, line, &reason) : TG_OK;
        const int is_bad = status != TG_OK && status != TG_NO_DEVICE;
        used += is_line && status == TG_OK;
        const cli_mark mark = status == TG_OK ? CLI_GOOD : is_bad ? CLI_BAD : CLI_NONE;
        const char *why_not = takes_out && is_bad ? "left out" : "not used";
        if (is_line)
            print_line(cli_mark_text(mark), line, status == TG_OK ? "" : why_not, reason);
        if (takes_out && (is_bad || !is_line))
            free(line);
        else
            lines->items[kept++] = line;
    }
    lines->count = kept;
    close_devices(&d);
    return used;
}

/* ------------------------------------------------------------------------------------ commands */
int cli_tuning_show(const char *path)
{
    cli_lines lines;
    int rc = cli_lines_read(&lines, path);
    if (rc != CLI_OK)
        return rc;
    printf("%s\n\n", path);
    int used = show_lines(&lines, 0);
    printf("%s%d line%s for this machine\n", count_tilings(&lines) ? "\n" : "", used, cli_s(used));
    cli_lines_free(&lines);
    return CLI_OK;
}

int cli_tuning_export(const char *path, const char *to)
{
    cli_lines lines;
    int rc = cli_lines_read(&lines, path);
    const int count = count_tilings(&lines);
    if (rc == CLI_OK && count == 0)
        rc = cli_fail("%s has no line to export", path);
    if (rc == CLI_OK)
        rc = cli_lines_write(&lines, to);
    if (rc == CLI_OK)
        printf("%d line%s written to %s\n", count, cli_s(count), to);
    cli_lines_free(&lines);
    return rc;
}

int cli_tuning_import(const char *path, const char *from)
{
    cli_lines lines = {NULL, 0}, more;
    if (access(from, R_OK) != 0)
        return cli_fail("--import %s cannot be read: %s", from, strerror(errno));
    int rc = cli_lines_read(&more, from);
    int used = rc == CLI_OK ? show_lines(&more, 1) : 0;
    if (rc == CLI_OK && more.count == 0)
        rc = cli_fail("%s has no line that this library can use", from);
    const int lock = rc == CLI_OK ? cli_tuning_lock(path) : -1;
    if (rc == CLI_OK)
        rc = cli_lines_read(&lines, path);
    for (int i = 0; i < more.count && rc == CLI_OK; i++)
        rc = cli_lines_put(&lines, more.items[i]);
    if (rc == CLI_OK)
        rc = cli_lines_write(&lines, path);
    close(lock);
    if (rc == CLI_OK)
        printf("\n%d line%s taken over, %d for this machine: %s\n", more.count, cli_s(more.count),
               used, path);
    cli_lines_free(&lines);
    cli_lines_free(&more);
    return rc;
}
