/* SPDX-License-Identifier: Apache-2.0
 *
 * The counters and the output of the test programs; see test.h. */
#define _GNU_SOURCE
#include "test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int passed, failed, left_out;

static FILE *output(void)
{
    static FILE *copy;
    if (!copy) {
        int fd = dup(STDOUT_FILENO);
        copy = fd >= 0 ? fdopen(fd, "w") : NULL;
        if (!copy)
            return stderr;
        setvbuf(copy, NULL, _IOLBF, 1 << 12);
    }
    return copy;
}

__attribute__((constructor)) static void keep_stdout(void) { output(); }

void test_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(output(), format, args);
    va_end(args);
}

int test_note(int ok, const char *file, int line, const char *format, ...)
{
    const char *slash = strrchr(file, '/');
    char message[600];
    va_list args;
    if (ok) {
        passed++;
        return 1;
    }
    failed++;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(output(), "%s:%d: %s\n", slash ? slash + 1 : file, line, message);
    return 0;
}

int test_holds(const char *text, const char *parts)
{
    char part[200];
    while (*parts) {
        size_t length = strcspn(parts, "|");
        snprintf(part, sizeof part, "%.*s", (int)length, parts);
        if (!strstr(text, part))
            return 0;
        parts += length + (parts[length] == '|');
    }
    return 1;
}

int test_has_time(void)
{
    static time_t began;
    const char *seconds = getenv("TG_TEST_SECONDS");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    began = began ? began : now.tv_sec;
    const int has = !seconds || !*seconds || now.tv_sec - began < atoi(seconds);
    left_out += !has;
    return has;
}

int test_close(void)
{
    if (left_out)
        fprintf(output(), "%d left out for want of time\n", left_out);
    fprintf(output(), "%d passed, %d failed\n", passed, failed);
    fflush(output());
    return failed != 0 || passed == 0;
}

uint64_t test_hash(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
