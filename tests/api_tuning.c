/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the tuning file: what they are for, what wins over what, and why one is refused. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api.h"
#include "elements.h"
#include "test.h"

typedef char line_text[TG_TUNING_LINE];

enum { M = 100, N = 90, K = 1100 };

static tg_problem product(int64_t m, int64_t n, int64_t k, tg_type type)
{
    return api_product(m, n, k, type, NULL, NULL, NULL);
}

static tg_plan picked(tg_context *ctx, tg_problem p)
{
    tg_plan plan = TG_PLAN_INIT;
    CHECK_OK(ctx, tg_pick(ctx, &p, &plan));
    return plan;
}

static int is_tuned(tg_context *ctx, tg_problem p) { return picked(ctx, p).is_tuned; }

/* Adds a line for the problem with a row that the chooser does not take: that row, or -1. */
static int add_other_row(tg_context *ctx, tg_problem p, line_text line)
{
    const int chosen = picked(ctx, p).row;
    for (int row = tg_tile_count() - 1; row >= 0; row--) {
        const tg_tile tile = tg_tile_at(row);
        if (row != chosen && tg_tuning_print(ctx, &p, &tile, 8, line) == TG_OK &&
            tg_tuning_add(ctx, line) == TG_OK)
            return row;
    }
    CHECK_SAY(0, "no line for this device was taken");
    return -1;
}

/* ------------------------------------------------------------------------------ what it is for */

static void test_bucket(tg_context *ctx, tg_problem p)
{
    const struct {
        int64_t m, n, k, batch;
        int is_in;
    } near[] = {{64, 128, 1024, 1, 1}, {46, 181, 725, 1, 1},  {90, 91, 1448, 1, 1},
                {45, 128, 1024, 1, 0}, {91, 128, 1024, 1, 0}, {64, 90, 1024, 1, 0},
                {64, 182, 1024, 1, 0}, {64, 128, 724, 1, 0},  {64, 128, 1449, 1, 0},
                {64, 128, 1024, 2, 0}};
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        tg_problem q = product(near[i].m, near[i].n, near[i].k, p.a.type);
        q.batch = near[i].batch;
        q.a.batch_stride = q.b.batch_stride = q.c.batch_stride = 1 << 20;
        CHECK_SAY(is_tuned(ctx, q) == near[i].is_in, "%d x %d x %d * %d: tuned or not", (int)q.m,
                  (int)q.n, (int)q.k, (int)q.batch);
    }
    tg_problem q = p; /* B is transposed, and then has no unit stride */
    q.b.row_stride = 1, q.b.col_stride = q.k;
    CHECK(!is_tuned(ctx, q));
    q.b.row_stride = 2, q.b.col_stride = 2 * q.k;
    CHECK(!is_tuned(ctx, q));
    CHECK(!is_tuned(ctx, product(p.m, p.n, p.k, TG_F64)));
    q = product(p.n, p.m, p.k, p.a.type); /* C in columns is the product of the transposes */
    q.a.row_stride = q.b.row_stride = q.c.row_stride = 1;
    q.a.col_stride = q.m, q.b.col_stride = q.k, q.c.col_stride = q.m;
    CHECK(is_tuned(ctx, q));
    CHECK_OK(ctx, tg_set_threads(ctx, 3));
    CHECK_INT(is_tuned(ctx, p), !api_is_cpu());
    CHECK_OK(ctx, tg_set_threads(ctx, 2));
}

static void test_precedence(tg_context *ctx, tg_problem p, int row)
{
    const tg_tile tuned = tg_tile_at(row), forced = tg_tile_at(tg_tile_find("t64x64x16_v2"));
    tg_plan plan = picked(ctx, p);
    CHECK(plan.is_tuned && plan.tile.form == tuned.form && plan.tile.vec == tuned.vec);
    CHECK_INT(plan.row, row);
    CHECK(multiplies(ctx, 64, 128, 1024, 1));
    CHECK_OK(ctx, tg_force(ctx, &forced));
    plan = picked(ctx, p);
    CHECK(!plan.is_tuned && plan.row == tg_tile_find("t64x64x16_v2"));
    CHECK_OK(ctx, tg_force(ctx, NULL));
    CHECK(is_tuned(ctx, p));
}

static void test_line(tg_context *ctx)
{
    tg_problem p = product(64, 128, 1024, TG_F32);
    line_text line, again;
    CHECK(!is_tuned(ctx, p));
    const int row = add_other_row(ctx, p, line);
    const tg_tile tile = tg_tile_at(row);
    if (row < 0)
        return;
    CHECK_TEXT(line, "f32 NN 64x128x1024 *1 threads");
    CHECK_TEXT(line, tg_device_name(ctx));
    CHECK_TEXT(line, " +8%");
    test_bucket(ctx, p);
    test_precedence(ctx, p, row);
    p.m = 50, p.n = 150, p.k = 800; /* of the same bucket, so it is the same line */
    p.a.row_stride = p.k, p.b.row_stride = p.c.row_stride = p.n;
    CHECK_OK(ctx, tg_tuning_print(ctx, &p, &tile, 8, again));
    CHECK_SAY(strcmp(line, again) == 0, "%s\n%s", line, again);
    CHECK_REFUSED(ctx, tg_tuning_print(ctx, &p, &tile, -8, again), TG_BAD_ARGUMENT, "percent = -8");
    CHECK_OK(ctx, tg_tuning_print(ctx, &p, &tile, 999999999, again));
    CHECK_OK(ctx, tg_tuning_add(ctx, again));
    CHECK_REFUSED(ctx, tg_tuning_print(ctx, &p, &tile, 1000000000, again), TG_BAD_ARGUMENT,
                  "percent = 1000000000");
    p.a.col_stride = 2, p.a.row_stride = 4000;
    CHECK_REFUSED(ctx, tg_tuning_print(ctx, &p, &tile, 8, again), TG_NOT_SUPPORTED, "unit stride");
}

/* However many lines there are, and in whatever order, each is found. */
static void test_many(tg_context *ctx)
{
    enum { LINES = 100 };
    line_text line;
    const tg_tile tile = tg_tile_at(add_other_row(ctx, product(64, 128, 1024, TG_F32), line));
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < LINES; i++) {
            const uint64_t h = test_hash((uint64_t)i);
            const tg_problem p = product(1 << h % 12, 1 << h / 12 % 12, 1 << h / 144 % 12, TG_F32);
            CHECK_OK(ctx, tg_tuning_print(ctx, &p, &tile, i, line));
            if (pass == 0)
                CHECK_OK(ctx, tg_tuning_add(ctx, line));
            CHECK_SAY(is_tuned(ctx, p), "a line of %d is not found: %s", LINES, line);
        }
}

/* ---------------------------------------------------------------------------------- refusals */

/* The line with one text in place of another. */
static void refuse(tg_context *ctx, const char *line, const char *old, const char *new,
                   tg_status status, const char *parts)
{
    char edited[2 * TG_TUNING_LINE];
    const char *at = strstr(line, old);
    if (!CHECK_SAY(at != NULL, "\"%s\" is not in \"%s\"", old, line))
        return;
    snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - line), line, new, at + strlen(old));
    CHECK_REFUSED(ctx, tg_tuning_add(ctx, edited), status, parts);
}

static void test_refusals(tg_context *ctx)
{
    const tg_problem p = product(64, 128, 1024, TG_F32);
    line_text line;
    const int row = add_other_row(ctx, p, line);
    tg_tile tile = tg_tile_at(row);
    if (row < 0)
        return;
    CHECK_OK(ctx, tg_tuning_add(ctx, line));
    const char *device = tg_device_name(ctx), *library = strstr(line, " = v1 ") + 6;
    char text[96];
    tg_tile_print(&tile, text, sizeof text);
    CHECK_REFUSED(ctx, tg_tuning_add(ctx, NULL), TG_BAD_ARGUMENT, "line is NULL");
    CHECK_REFUSED(ctx, tg_tuning_add(ctx, ""), TG_BAD_ARGUMENT, "is no line");
    CHECK_REFUSED(ctx, tg_tuning_add(ctx, " = "), TG_BAD_ARGUMENT, "is no line");
    CHECK_REFUSED(ctx, tg_tuning_add(ctx, "\xff\x01 = v1 x x +1%"), TG_BAD_ARGUMENT, "is no line");
    refuse(ctx, line, " = ", " ", TG_BAD_ARGUMENT, "is no line");
    refuse(ctx, line, "threads", "thread", TG_BAD_ARGUMENT, "is no line");
    refuse(ctx, line, "+8%", "8%", TG_BAD_ARGUMENT, "is no line");
    refuse(ctx, line, "+8%", "+-8%", TG_BAD_ARGUMENT, "is no line");
    refuse(ctx, line, "+8%", "+8% and more", TG_BAD_ARGUMENT, "to be written");
    refuse(ctx, line, "64x", "064x", TG_BAD_ARGUMENT, "to be written");
    refuse(ctx, line, "64x", "65x", TG_BAD_ARGUMENT, "65 is no power of two");
    refuse(ctx, line, "64x", "0x", TG_BAD_ARGUMENT, "0 is no power of two");
    refuse(ctx, line, "64x", "-64x", TG_BAD_ARGUMENT, "no power of two");
    refuse(ctx, line, "f32", "f31", TG_BAD_ARGUMENT, "f31 NN|no such problem");
    refuse(ctx, line, "NN", "NX", TG_BAD_ARGUMENT, "f32 NX|no such problem");
    refuse(ctx, line, "threads ", "threads -", TG_BAD_ARGUMENT, "");
    refuse(ctx, line, text, "8x8", TG_BAD_ARGUMENT, "8x8|is not a block");
    refuse(ctx, line, "= v1", "= v2", TG_NOT_SUPPORTED, "format v2|reads v1");
    refuse(ctx, line, library, "0.0.9-12345678 8x8x8/0x0/1x1/1/1 +1%", TG_NOT_SUPPORTED,
           "0.0.9-12345678 wrote it");
    refuse(ctx, line, tg_device_backend(ctx), "metal", TG_NO_DEVICE, "it is for metal");
    refuse(ctx, line, device, "Another device", TG_NO_DEVICE, "for \"Another device\"");
    refuse(ctx, line, text, "24x40x3/24x40/3x5/2/1", TG_BAD_TILE, "thread.n = 5");
    if (!api_is_cpu())
        return;
    refuse(ctx, line, "0x0x0/", "0x0x8/", TG_BAD_TILE, "could change bits|block 0x0x0");
    refuse(ctx, line, text, "t", TG_BAD_ARGUMENT, "is no row");
    tile.slices = 2;
    tg_tile_print(&tile, text, sizeof text);
    refuse(ctx, line, strstr(line, "0x0x0/"), text, TG_BAD_ARGUMENT, "is no line");
    strcat(text, " +8%");
    refuse(ctx, line, strstr(line, "0x0x0/"), text, TG_BAD_TILE, "could change bits|one slice");
    tile.slices = 1, tile.stages = 0;
    tg_tile_print(&tile, text, sizeof text);
    strcat(text, " +8%");
    refuse(ctx, line, strstr(line, "0x0x0/"), text, TG_BAD_TILE, "could change bits|stages");
    refuse(ctx, line, strstr(line, "0x0x0/"), "0x0x0/0x0/1x1/1/1/dot +8%", TG_BAD_TILE, "bits");
}

/* No line is printed that would not be taken, and each that would be taken is printed. */
static void test_print_and_add_agree(tg_context *ctx)
{
    const tg_problem p = product(64, 128, 1024, TG_F32);
    line_text line, printed;
    if (add_other_row(ctx, p, line) < 0)
        return;
    const int key = (int)(strstr(strstr(line, " = v1 ") + 6, " ") + 1 - line);
    for (int i = 0; i < 12 * tg_tile_count(); i++) {
        tg_tile tile = tg_tile_at(i / 12);
        char text[128], edited[2 * TG_TUNING_LINE];
        tile.stages = i % 3, tile.slices = 1 + i / 3 % 2, tile.block.k += i / 6 % 2 * 8;
        tg_tile_print(&tile, text, sizeof text);
        snprintf(edited, sizeof edited, "%.*s%s +8%%", key, line, text);
        const tg_status is_printed = tg_tuning_print(ctx, &p, &tile, 8, printed);
        const tg_status is_added = tg_tuning_add(ctx, edited);
        CHECK_SAY(is_printed == is_added && (is_added == TG_OK || is_added == TG_BAD_TILE),
                  "%s: printed %d, added %d", edited, (int)is_printed, (int)is_added);
        CHECK(is_printed != TG_OK || strcmp(printed, edited) == 0);
    }
}

/* --------------------------------------------------------------------- results stay the same */

/* Whatever line a CPU takes, its sums have the same bits as the chooser's. */
static void test_same_bits(tg_type type, tg_type c_type)
{
    static double a[M * K], b[K * N], wanted[M * N], c[M * N]; /* room for any type */
    tg_problem p = product(M, N, K, type);
    tg_context *ctx;
    int ways = 0;
    for (int i = 0; i < M * K; i++)
        element_put(type, a, i, (double)(test_hash((uint64_t)i) % 2000) / 999 - 1);
    for (int i = 0; i < K * N; i++)
        element_put(type, b, i, (double)(test_hash(~(uint64_t)i) % 2000) / 999 - 1);
    p.a.data = a, p.b.data = b, p.c.data = wanted;
    p.c.type = c_type;
    CHECK_INT(tg_open(&ctx, api_backend(), 0), TG_OK);
    CHECK_OK(ctx, tg_gemm(ctx, &p));
    p.c.data = c;
    for (int row = 0; row < tg_tile_count(); row++)
        for (int way = 0; way < 4; way++) {
            tg_tile tile = tg_tile_at(row);
            line_text line;
            tile.stages = 1 + way % 2;
            tile.warp.m = way / 2 * tile.thread.m, tile.warp.n = way / 2 * 2 * tile.thread.n;
            if (tg_tuning_print(ctx, &p, &tile, 1, line) != TG_OK)
                continue;
            CHECK_OK(ctx, tg_tuning_add(ctx, line));
            const tg_plan plan = picked(ctx, p); /* of lines for one problem the last one counts */
            CHECK(plan.is_tuned && plan.tile.stages == tile.stages);
            CHECK_OK(ctx, tg_gemm(ctx, &p));
            CHECK_SAY(memcmp(c, wanted, M * N * tg_type_size(c_type)) == 0, "other bits: %s", line);
            ways++;
        }
    CHECK_SAY(ways >= 4, "%s: %d ways", tg_type_name(type), ways);
    tg_close(ctx);
}

/* ----------------------------------------------------------------------------------- the file */

static void expect_path(const char *tuning, const char *config, const char *home,
                        const char *expected)
{
    const char *const names[] = {"TILEGEMM_TUNING", "XDG_CONFIG_HOME", "HOME"};
    const char *const values[] = {tuning, config, home};
    char *before[3], path[80];
    for (int i = 0; i < 3; i++) {
        before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i]);
    }
    CHECK_INT(tg_tuning_path(path, sizeof path), strlen(expected));
    CHECK_SAY(strcmp(path, expected) == 0, "\"%s\" and not \"%s\"", path, expected);
    CHECK_INT(tg_tuning_path(path, 3), strlen(expected));
    CHECK(strncmp(path, expected, 2) == 0 && strlen(path) <= 2);
    for (int i = 0; i < 3; i++) {
        before[i] ? setenv(names[i], before[i], 1) : unsetenv(names[i]);
        free(before[i]);
    }
}

/* Opens a context with this text as the file. Is the problem tuned? */
static int opens_tuned(const char *text, size_t length, tg_problem p)
{
    char path[] = "/tmp/tilegemm_tuning_XXXXXX";
    int file = mkstemp(path), answer;
    tg_context *ctx;
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length && close(file) == 0);
    setenv("TILEGEMM_TUNING", path, 1);
    CHECK_INT(tg_open(&ctx, api_backend(), 0), TG_OK);
    CHECK(tg_last_error(ctx)[0] == '\0');
    CHECK_OK(ctx, tg_set_threads(ctx, 2));
    answer = is_tuned(ctx, p);
    tg_close(ctx);
    unlink(path);
    setenv("TILEGEMM_TUNING", "", 1);
    return answer;
}

static void test_file(tg_context *ctx)
{
    const tg_problem p = product(64, 128, 1024, TG_F32);
    static char text[20 * TG_TUNING_LINE];
    line_text line;
    if (add_other_row(ctx, p, line) < 0)
        return;
    const size_t length = (size_t)snprintf(
        text, sizeof text, "# comment\n\nnonsense\n%s and more\n%.30s\n%s\r\n%0900d\n%s = v9\n",
        line, line, line, 0, line);
    CHECK(opens_tuned(text, length, p));
    CHECK(opens_tuned(line, strlen(line), p)); /* without a new line at the end */
    CHECK(!opens_tuned(line, strlen(line) - 1, p));
    CHECK(!opens_tuned("", 0, p));
    memset(text, 0, sizeof text);
    CHECK(!opens_tuned(text, sizeof text, p));
    memcpy(text, line, strlen(line));
    CHECK(!opens_tuned(text, strlen(line) + 5, p)); /* NULs behind it */
    snprintf(text, sizeof text, "%0*d%s", TG_TUNING_LINE - 1, 0, line);
    CHECK(!opens_tuned(text, strlen(text), p)); /* the end of a long line */
    char folder[] = "/tmp/tilegemm_tuning_XXXXXX", pipe[80];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    CHECK(mkfifo(pipe, 0600) == 0);
    const char *const others[] = {"/nowhere/tuning.txt", "/tmp", "/dev/zero", "", pipe};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        tg_context *other;
        setenv("TILEGEMM_TUNING", others[i], 1);
        CHECK_INT(tg_open(&other, api_backend(), 0), TG_OK);
        CHECK_OK(other, tg_set_threads(other, 2));
        CHECK(!is_tuned(other, p));
        tg_close(other);
    }
    unlink(pipe);
    rmdir(folder);
    expect_path("x/y", "/c", "/h", "x/y");
    expect_path("", "/c", "/h", "");
    expect_path(NULL, "/c", "/h", "/c/tilegemm/tuning.txt");
    expect_path(NULL, "c", "/h", "/h/.config/tilegemm/tuning.txt");
    expect_path(NULL, NULL, "/h", "/h/.config/tilegemm/tuning.txt");
    expect_path(NULL, "", "h", "");
    expect_path(NULL, NULL, NULL, "");
}

void test_tuning(void)
{
    char *before = getenv("TILEGEMM_TUNING") ? strdup(getenv("TILEGEMM_TUNING")) : NULL;
    tg_context *ctx;
    setenv("TILEGEMM_TUNING", "", 1);
    CHECK_INT(tg_open(&ctx, api_backend(), 0), TG_OK);
    CHECK_OK(ctx, tg_set_threads(ctx, 2));
    test_line(ctx);
    test_many(ctx);
    test_refusals(ctx);
    test_print_and_add_agree(ctx);
    test_file(ctx);
    tg_close(ctx);
    if (api_is_cpu()) {
        test_same_bits(TG_F32, TG_F32);
        test_same_bits(TG_F64, TG_F64);
        test_same_bits(TG_BF16, TG_F32);
    }
    before ? setenv("TILEGEMM_TUNING", before, 1) : unsetenv("TILEGEMM_TUNING");
    free(before);
}
