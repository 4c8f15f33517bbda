/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program says and how it looks: errors as one sentence on stderr, colour only on a
 * terminal and never under NO_COLOR, block characters only in a UTF-8 locale.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *command_name = "";

void cli_name_command(const char *name) { command_name = name; }

static int has_colour(FILE *file)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return !(no_colour && *no_colour) && !(terminal && strcmp(terminal, "dumb") == 0) &&
           isatty(fileno(file));
}

static int is_utf8(void) { return strcmp(nl_langinfo(CODESET), "UTF-8") == 0; }

static void print_error(const char *format, va_list values)
{
    int colour = has_colour(stderr);
    fflush(stdout);
    fprintf(stderr, "%stilegemm:%s ", colour ? "\033[31m" : "", colour ? "\033[0m" : "");
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_error(format, values);
    va_end(values);
    return CLI_FAILED;
}

int cli_misuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_error(format, values);
    va_end(values);
    fprintf(stderr, "`tilegemm%s%s --help` shows how it is used\n", *command_name ? " " : "",
            command_name);
    return CLI_MISUSED;
}

const char *cli_mark_text(cli_mark mark)
{
    static const char *const plain[] = {"+", "X", "-"};
    static const char *const utf8[] = {"✓", "✗", "·"};
    static const char *const coloured[] = {"\033[32m✓\033[0m", "\033[31m✗\033[0m",
                                           "\033[2m·\033[0m"};
    if (!is_utf8())
        return plain[mark];
    return has_colour(stdout) ? coloured[mark] : utf8[mark];
}

void cli_print_bar(double share, int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int blocks = is_utf8();
    int colour = has_colour(stdout);
    double clipped = share > 0 ? fmin(share, 1) : 0;
    int parts = (int)lrint(clipped * width * 8);
    fputs(colour ? "\033[36m" : "", stdout);
    for (int column = 0; column < (blocks ? parts / 8 : (parts + 4) / 8); column++)
        fputs(blocks ? "█" : "#", stdout);
    fputs(blocks ? eighths[parts % 8] : "", stdout);
    fputs(colour ? "\033[0m" : "", stdout);
}

void cli_show_progress(int64_t done, int64_t all)
{
    enum { WIDTH = 40 };
    int filled = (int)((double)done / (double)all * WIDTH);
    if (!isatty(fileno(stderr)))
        return;
    if (done == all) {
        fputs("\r\033[K", stderr);
        return;
    }
    fputs("\r[", stderr);
    for (int column = 0; column < WIDTH; column++)
        fputc(column < filled ? '#' : ' ', stderr);
    fprintf(stderr, "] %3d %%", (int)(100.0 * (double)done / (double)all));
    fflush(stderr);
}

const char *cli_bytes_text(double bytes, char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 6; unit++)
        bytes /= 1024;
    int is_whole = fabs(bytes - rint(bytes)) < 0.05;
    snprintf(text, CLI_NAME, is_whole ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

const char *cli_s(int64_t count) { return count == 1 ? "" : "s"; }

int cli_letter_bytes(const char *text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char first = (unsigned char)*text;
    const int is_first = first < 0x80 || (first >= 0xc0 && first < 0xf8);
    const int more = !is_first ? -1 : (first >= 0xc0) + (first >= 0xe0) + (first >= 0xf0);
    uint32_t letter = more > 0 ? first & (0x3f >> more) : first;
    for (int i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        letter = letter << 6 | (text[i] & 0x3f);
    }
    const int is_half = letter >> 11 == 0x1b; /* of a pair in UTF-16 */
    const int is_none = is_half || (letter & 0xfffe) == 0xfffe || letter > 0x10ffff;
    const int is_control = letter < ' ' || (letter >= 0x7f && letter < 0xa0);
    return more >= 0 && letter >= least[more] && !is_none && !is_control ? more + 1 : 0;
}

void cli_print_text(const char *text)
{
    for (int bytes; *text; text += bytes ? bytes : 1) {
        bytes = cli_letter_bytes(text);
        printf("%.*s", bytes ? bytes : 1, bytes ? text : "?");
    }
}

void cli_print_json_text(const char *text)
{
    putchar('"');
    for (int bytes; *text; text += bytes ? bytes : 1) {
        bytes = cli_letter_bytes(text);
        if ((unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else if (bytes == 0)
            printf("\\ufffd");
        else if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            printf("%.*s", bytes, text);
    }
    putchar('"');
}

void cli_print_json_heading(const cli_machine *machine, const cli_options *options, int rounds)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    printf("{\"program\": \"tilegemm\", \"version\": \"%s\", \"date\": \"%s\",\n \"command\": ",
           tg_version(), date);
    cli_print_json_text(options->command);
    printf(",\n \"backend\": \"%s\", \"machine\": ", machine->backend);
    cli_print_json_text(tg_device_name(machine->ctx));
    printf(", \"units\": %d, \"threads\": %d, \"type\": \"%s\", \"rounds\": %d",
           machine->limits.units, machine->threads, tg_type_name(options->type), rounds);
}

void cli_print_heading(const cli_machine *machine, tg_type type)
{
    printf("tilegemm %s, %s", tg_version(), tg_device_name(machine->ctx));
    if (machine->is_host)
        printf(", %d thread%s", machine->threads, cli_s(machine->threads));
    printf(", %s", tg_type_name(type));
}

cli_rate cli_rate_for(double peak)
{
    static const cli_rate giga = {"GFLOP/s", 1e9}, tera = {"TFLOP/s", 1e12};
    return peak >= 1e13 ? tera : giga;
}
