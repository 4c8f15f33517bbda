/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npy files, format versions 1.0, 2.0 and 3.0, as mapped memory:
 *
 *     \x93NUMPY  major minor  header length (2 bytes, from 2.0 on 4)  header  elements
 *     header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), } and spaces
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct header {
    char descr[16];
    int is_fortran, rank;
    int64_t dims[2];
    unsigned seen; /* a bit for each of the three keys */
} header;

static void skip_space(const char **at) { *at += strspn(*at, " \t\r\n"); }

static int skip(const char **at, const char *text)
{
    skip_space(at);
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return 0;
    *at += length;
    return 1;
}

static int read_string(const char **at, char *text, size_t size)
{
    skip_space(at);
    char quote = **at;
    const char *end = quote == '\'' || quote == '"' ? strchr(*at + 1, quote) : NULL;
    if (!end || (size_t)(end - *at) > size)
        return 0;
    size_t length = (size_t)(end - *at - 1);
    memcpy(text, *at + 1, length);
    text[length] = 0;
    *at = end + 1;
    return 1;
}

static int read_shape(const char **at, header *h)
{
    if (!skip(at, "("))
        return 0;
    for (h->rank = 0; !skip(at, ")"); h->rank++) {
        char digits[24] = "";
        size_t length = strspn(*at, "0123456789");
        int64_t dim;
        if (length >= sizeof digits)
            return 0;
        memcpy(digits, *at, length);
        if (!cli_parse_int(digits, 0, INT64_MAX, &dim))
            return 0;
        if (h->rank < 2)
            h->dims[h->rank] = dim;
        *at += length;
        skip(at, "L"); /* as Python 2 wrote it */
        skip_space(at);
        if (!skip(at, ",") && **at != ')')
            return 0;
    }
    return 1;
}

static int read_entry(const char **at, header *h)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    unsigned which = 0;
    if (!read_string(at, key, sizeof key) || !skip(at, ":"))
        return 0;
    while (which < 3 && strcmp(key, keys[which]) != 0)
        which++;
    if (which == 3 || h->seen & 1u << which)
        return 0;
    h->seen |= 1u << which;
    if (which == 0) {
        skip_space(at);
        return read_string(at, h->descr, sizeof h->descr);
    }
    if (which == 2)
        return read_shape(at, h);
    h->is_fortran = skip(at, "True");
    return h->is_fortran || skip(at, "False");
}

static int read_header(const char *text, header *h)
{
    memset(h, 0, sizeof *h);
    if (!skip(&text, "{"))
        return 0;
    while (!skip(&text, "}")) {
        if (!read_entry(&text, h))
            return 0;
        skip_space(&text);
        if (!skip(&text, ",") && *text != '}')
            return 0;
    }
    skip_space(&text);
    return *text == 0 && h->seen == 7;
}

/* CLI_OK with the type set, or what is wrong with the element type. */
static int check_type(const char *path, const char *descr, tg_type *type)
{
    static const struct {
        const char *descr;
        tg_type type;
    } known[] = {{"<f4", TG_F32}, {"<f8", TG_F64}, {"<f2", TG_F16},
                 {"|i1", TG_I8},  {"|u1", TG_U8},  {"<i4", TG_I32}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(descr, known[i].descr) == 0) {
            *type = known[i].type;
            return CLI_OK;
        }
    if (descr[0] == '>')
        return cli_fail("%s holds big-endian elements (\"%s\"): convert it with astype('<f4') or "
                        "astype('<f8')",
                        path, descr);
    if (descr[0] && descr[1] == 'b')
        return cli_fail("%s holds booleans (\"%s\"): convert it with astype('uint8')", path, descr);
    if (descr[0] && strchr("iu", descr[1]))
        return cli_fail("%s holds integers (\"%s\"), and of those int8 and uint8 are multiplied: "
                        "convert it with astype('float32') or astype('float64')",
                        path, descr);
    if (strcmp(descr, "|V2") == 0 || strcmp(descr, "<V2") == 0)
        return cli_fail("%s holds two bytes of no type (\"%s\"). NumPy does not know bfloat16: if "
                        "that is what they are, convert what it loads, x, with "
                        "(x.view('uint16').astype('uint32') << 16).view('float32')",
                        path, descr);
    return cli_fail(
        "%s holds elements of type \"%s\", and only float16, float32, float64, int8 and "
        "uint8 are multiplied",
        path, descr);
}

static int check_shape(const char *path, const header *h)
{
    if (h->rank == 2)
        return CLI_OK;
    if (h->rank == 1)
        return cli_fail("%s holds a vector of %lld elements: make it a matrix with "
                        "reshape(1, -1) or reshape(-1, 1)",
                        path, (long long)h->dims[0]);
    return cli_fail("%s has %d dimensions, and a matrix has 2", path, h->rank);
}

/* Points the view at the elements, which begin at byte `offset`. */
static int place_view(cli_npy *file, const header *h, tg_type type, size_t offset)
{
    long long rows = (long long)h->dims[0], cols = (long long)h->dims[1];
    size_t bytes = cli_matrix_bytes(rows, cols, type), there = file->map_bytes - offset;
    if (rows > 0 && cols > 0 && bytes == 0)
        return cli_fail("%s says it is %lld x %lld, which is more than memory can have", file->path,
                        rows, cols);
    if (there != bytes)
        return cli_fail("%s says it is %lld x %lld and needs %zu bytes for that, but has %zu: it "
                        "is %s",
                        file->path, rows, cols, bytes, there,
                        there < bytes ? "truncated" : "not one matrix");
    tg_input view = {(char *)file->map + offset, cols, 1, 0, type};
    if (h->is_fortran)
        view.row_stride = 1, view.col_stride = rows;
    if (offset % tg_type_size(type) != 0) {
        file->copy = malloc(bytes + 1);
        if (!file->copy)
            return cli_fail("%s needs %zu bytes of memory, which could not be had", file->path,
                            bytes);
        view.data = memcpy(file->copy, view.data, bytes);
    }
    file->view = view;
    file->rows = rows;
    file->cols = cols;
    return CLI_OK;
}

static int read_npy(cli_npy *file)
{
    const unsigned char *bytes = file->map;
    header h;
    tg_type type = TG_F32;
    if (file->map_bytes < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return cli_fail("%s is not a NumPy .npy file", file->path);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return cli_fail("%s has version %d.%d of the .npy format, and 1.0, 2.0 and 3.0 are read",
                        file->path, bytes[6], bytes[7]);
    size_t start = bytes[6] == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1 && file->map_bytes >= 12)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (file->map_bytes < start || file->map_bytes - start < length)
        return cli_fail("%s ends inside its header: it is truncated", file->path);
    char *text = calloc(1, length + 1);
    if (!text)
        return cli_fail("%s has a header of %zu bytes, which is too much", file->path, length);
    memcpy(text, bytes + start, length);
    int is_header = strlen(text) == length && read_header(text, &h);
    free(text);
    if (!is_header)
        return cli_fail("%s has a header that does not describe an array of numbers", file->path);
    int rc = check_type(file->path, h.descr, &type);
    if (rc == CLI_OK)
        rc = check_shape(file->path, &h);
    return rc == CLI_OK ? place_view(file, &h, type, start + length) : rc;
}

int cli_npy_open(cli_npy *file, const char *path)
{
    struct stat about;
    memset(file, 0, sizeof *file);
    file->path = path;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about) != 0) {
        int rc = cli_fail("%s cannot be read: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    int is_file = S_ISREG(about.st_mode);
    void *map = MAP_FAILED;
    if (is_file && about.st_size > 0)
        map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (!is_file)
        return cli_fail("%s is not a regular file", path);
    if (about.st_size == 0)
        return cli_fail("%s is empty", path);
    if (map == MAP_FAILED)
        return cli_fail("%s cannot be mapped: %s", path, strerror(error));
    file->map = map;
    file->map_bytes = (size_t)about.st_size;
    int rc = read_npy(file);
    if (rc != CLI_OK)
        cli_npy_close(file);
    return rc;
}

void cli_npy_close(cli_npy *file)
{
    free(file->copy);
    if (file->map)
        munmap(file->map, file->map_bytes);
    file->map = file->copy = NULL;
}
