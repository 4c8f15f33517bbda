/* SPDX-License-Identifier: Apache-2.0
 *
 * New .npy files, as mapped memory, and new files of text. One lives under a temporary name in the
 * folder of its target until it is kept, and leaves nothing behind if the program fails or is
 * interrupted before.
 */
#define _XOPEN_SOURCE 700
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char target_path[PATH_MAX], temporary_path[PATH_MAX];
static volatile sig_atomic_t has_temporary;
static const int fatal_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU, SIGBUS};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };

static void remove_and_die(int number)
{
    static const char text[] = "tilegemm: a file became shorter while it was in use\n";
    if (has_temporary)
        unlink(temporary_path);
    if (number == SIGBUS && write(STDERR_FILENO, text, sizeof text - 1) >= -1) /* always */
        _exit(CLI_FAILED);
    raise(number); /* the handler was reset: this ends the program as the signal would */
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = SA_RESETHAND}, old;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++) {
        if (sigaction(fatal_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(fatal_signals[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow so far is an error with a sentence */
}

/* Changes the files with signals held back, so that has_temporary is always true to them. */
static int hold_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    return sigprocmask(SIG_BLOCK, &all, before);
}

static mode_t mode_for(const char *path)
{
    struct stat about;
    mode_t mask = umask(0);
    umask(mask);
    return stat(path, &about) == 0 ? about.st_mode & 0777 : 0666 & ~mask;
}

/* Its descriptor, or -1 after saying why. */
static int temporary_make(const char *path)
{
    sigset_t before;
    struct stat about;
    const char *target = realpath(path, target_path); /* a link stays one */
    int length = snprintf(temporary_path, PATH_MAX, "%s.XXXXXX", target ? target : path);
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        cli_fail("%s is not a regular file and cannot be replaced", path);
        return -1;
    }
    if (length >= (int)sizeof temporary_path) {
        cli_fail("%s cannot be written: %s", path, strerror(ENAMETOOLONG));
        return -1;
    }
    snprintf(target_path, PATH_MAX, "%.*s", length - 7, temporary_path);
    catch_signals();
    hold_signals(&before);
    int fd = mkstemp(temporary_path);
    int error = errno;
    has_temporary = fd >= 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (fd < 0)
        cli_fail("%s cannot be written: %s", path, strerror(error));
    else
        fchmod(fd, mode_for(path)); /* or as mkstemp made it */
    return fd;
}

static int temporary_keep(const char *path)
{
    sigset_t before;
    hold_signals(&before);
    int is_kept = rename(temporary_path, target_path) == 0;
    int error = errno;
    if (!is_kept)
        unlink(temporary_path);
    has_temporary = 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return is_kept ? CLI_OK : cli_fail("%s cannot be written: %s", path, strerror(error));
}

static void temporary_discard(void)
{
    if (has_temporary)
        unlink(temporary_path);
    has_temporary = 0;
}

int cli_temporary_try(const char *path)
{
    int fd = temporary_make(path);
    if (fd < 0)
        return CLI_FAILED;
    close(fd);
    temporary_discard();
    return CLI_OK;
}

FILE *cli_temporary_open(const char *path)
{
    int fd = temporary_make(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file) {
        cli_fail("%s cannot be written: %s", path, strerror(errno));
        close(fd);
        temporary_discard();
    }
    return file;
}

int cli_temporary_close(FILE *file, const char *path)
{
    int is_written = fflush(file) == 0 && fsync(fileno(file)) == 0 && !ferror(file);
    int error = errno;
    fclose(file);
    if (is_written)
        return temporary_keep(path);
    temporary_discard();
    return cli_fail("%s cannot be written: %s", path, strerror(error));
}

static size_t format_header(char *text, int64_t rows, int64_t cols, tg_type type)
{
    static const char magic[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    memset(text, ' ', 128);
    memcpy(text, magic, sizeof magic);
    text[8] = 128 - 10;
    int length = snprintf(
        text + 10, 117, "{'descr': '<%c%zu', 'fortran_order': False, 'shape': (%lld, %lld), }",
        cli_is_whole(type) ? 'i' : 'f', tg_type_size(type), (long long)rows, (long long)cols);
    text[10 + length] = ' ';
    text[127] = '\n';
    return 128;
}

/* Takes the space on the disk now, so that writing through the map cannot fail later. */
static int map_new_file(cli_npy_out *file, int fd, size_t bytes)
{
    int error = posix_fallocate(fd, 0, (off_t)bytes);
    void *map = MAP_FAILED;
    if (error == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (error == 0 && map == MAP_FAILED)
        error = errno;
    if (error != 0)
        return cli_fail("%s cannot be written: %s", file->path, strerror(error));
    file->map = map;
    file->map_bytes = bytes;
    return CLI_OK;
}

int cli_npy_create(cli_npy_out *file, const char *path, int64_t rows, int64_t cols, tg_type type)
{
    char text[128];
    size_t header_bytes = format_header(text, rows, cols, type);
    size_t bytes = cli_matrix_bytes(rows, cols, type);
    memset(file, 0, sizeof *file);
    file->path = path;
    if (rows > 0 && cols > 0 && bytes == 0)
        return cli_fail("%s would be %lld x %lld, which is more than memory can have", path,
                        (long long)rows, (long long)cols);
    int fd = temporary_make(path);
    if (fd < 0)
        return CLI_FAILED;
    int rc = map_new_file(file, fd, header_bytes + bytes);
    close(fd);
    if (rc != CLI_OK) {
        cli_npy_discard(file);
        return rc;
    }
    memcpy(file->map, text, header_bytes);
    file->data = (char *)file->map + header_bytes;
    return CLI_OK;
}

static void unmap(cli_npy_out *file)
{
    if (file->map)
        munmap(file->map, file->map_bytes);
    file->map = file->data = NULL;
}

int cli_npy_keep(cli_npy_out *file)
{
    unmap(file);
    return temporary_keep(file->path);
}

void cli_npy_discard(cli_npy_out *file)
{
    unmap(file);
    temporary_discard();
}
