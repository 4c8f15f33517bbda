/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of the library; contexts that open, and those that do not; the environment. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "test.h"

/* ------------------------------------------------------------------------------------ lists */

static void test_lists(void)
{
    char version[40], reason[300];
    int seen = 0;
    snprintf(version, sizeof version, "%d.%d.%d", TG_VERSION_MAJOR, TG_VERSION_MINOR,
             TG_VERSION_PATCH);
    CHECK(strcmp(tg_version(), version) == 0);
#define TG_X(name, value, text) \
    CHECK_INT(name, value);     \
    CHECK(strcmp(tg_status_text(name), text) == 0);
    TG_STATUS_LIST(TG_X)
#undef TG_X
#define TG_X(name, value, text, ctype)             \
    CHECK(strcmp(tg_type_name(name), #text) == 0); \
    CHECK_INT(tg_type_size(name), sizeof(ctype));
    TG_TYPE_LIST(TG_X)
#undef TG_X
    CHECK(strcmp(tg_status_text((tg_status)-1), "unknown status") == 0);
    CHECK(strcmp(tg_status_text((tg_status)99), "unknown status") == 0);
    CHECK(!tg_type_name((tg_type)0) && !tg_type_name((tg_type)99));
    CHECK(tg_type_size((tg_type)0) == 0 && tg_type_size((tg_type)-1) == 0);
    CHECK(!tg_backend_name(-1) && !tg_backend_name(tg_backend_count()));
    for (int i = 0; i < tg_backend_count(); i++) {
        seen += strcmp(tg_backend_name(i), "cpu") == 0;
        tg_context *ctx;
        tg_status status = tg_backend_reason(tg_backend_name(i), reason, sizeof reason);
        CHECK_INT(tg_open(&ctx, tg_backend_name(i), 0), status);
        CHECK((status == TG_OK) == (reason[0] == '\0'));
        CHECK((status == TG_OK) || strcmp(reason, tg_last_error(ctx)) == 0);
        CHECK_INT(tg_backend_reason(tg_backend_name(i), NULL, 0), status);
        CHECK_INT(tg_backend_reason(tg_backend_name(i), reason, 2), status);
        CHECK(strlen(reason) <= 1);
        tg_close(ctx);
    }
    CHECK_INT(seen, 1);
    CHECK(tg_backend_reason(NULL, reason, sizeof reason) != TG_OK && reason[0]);
    CHECK(tg_backend_reason("metal", reason, sizeof reason) == TG_NO_BACKEND);
    CHECK_TEXT(reason, "metal");
}

/* ---------------------------------------------------------------------------------- opening */

static void check_closed(tg_context *ctx)
{
    float x[3] = {1, 2, 3};
    char before[300];
    snprintf(before, sizeof before, "%s", tg_last_error(ctx));
    CHECK(before[0] != '\0');
    CHECK_INT(tg_sgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_NO_TRANS, 1, 1, 1, 1, x, 1, x + 1, 1, 0,
                       x + 2, 1),
              TG_BAD_ARGUMENT);
    CHECK(x[2] == 3);
    CHECK_INT(tg_set_threads(ctx, 1), TG_BAD_ARGUMENT);
    CHECK_INT(tg_sync(ctx), TG_BAD_ARGUMENT);
    CHECK(!*tg_device_backend(ctx) && !*tg_device_name(ctx) && !tg_device_limits(ctx).units);
    tg_close(ctx);
}

static void refuse_open(const char *backend, int device, tg_status expected, const char *parts,
                        int line)
{
    tg_context *ctx = NULL;
    tg_status status = tg_open(&ctx, backend, device);
    check_refused(ctx, status, expected, parts, __FILE__, line);
    check_closed(ctx);
}

static void test_environment(const char *name, const char *value, tg_status expected,
                             const char *parts)
{
    tg_context *ctx = NULL;
    const char *before = getenv(name);
    char kept[200];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    setenv(name, value, 1);
    tg_status status = tg_open(&ctx, api_backend(), 0);
    unsetenv(name);
    if (before)
        setenv(name, kept, 1);
    CHECK_SAY(status == expected, "%s=%s: status %d, expected %d: %s", name, value, (int)status,
              (int)expected, tg_last_error(ctx));
    CHECK_TEXT(tg_last_error(ctx), parts);
    if (status == TG_OK) {
        CHECK_SAY(multiplies(ctx, 150, 151, 152, 1), "%s=%s: wrong product", name, value);
        tg_close(ctx);
    } else if (ctx) {
        check_closed(ctx);
    }
}

static void test_all_environments(void)
{
    test_environment("TILEGEMM_TILE", "t64x64x16", TG_OK, "");
    test_environment("TILEGEMM_TILE", "24x40x3/0x0/3x5/1/1", TG_OK, "");
    test_environment("TILEGEMM_TILE", "48x40x3/24x40/3x5/1/1", api_is_cpu() ? TG_OK : TG_BAD_TILE,
                     api_is_cpu() ? "" : "TILEGEMM_TILE|rows of the table");
    test_environment("TILEGEMM_TILE", "", TG_OK, "");
    test_environment("TILEGEMM_TILE", "t65x65x65", TG_BAD_ARGUMENT, "TILEGEMM_TILE|t65x65x65");
    test_environment("TILEGEMM_TILE", "48x40x3/24x40/3x5/1", TG_BAD_ARGUMENT,
                     "TILEGEMM_TILE|stages");
    test_environment("TILEGEMM_TILE", "48x40x3/24x40/3x5/2/1", TG_BAD_TILE,
                     "TILEGEMM_TILE|thread.n = 5|vec = 2");
    test_environment("TILEGEMM_TILE", "0x0x0/0x0/8x8/4/1/inst0x0x0", TG_BAD_TILE, "inst");
    test_environment("TILEGEMM_TILE", "48x40x3/24x40/3x5/1/1/inst16x8x8", TG_BAD_TILE, "inst");
    test_environment("TILEGEMM_THREADS", "1", TG_OK, "");
    test_environment("TILEGEMM_THREADS", "3", TG_OK, "");
    test_environment("TILEGEMM_THREADS", "0", TG_OK, "");
    test_environment("TILEGEMM_THREADS", "", TG_OK, "");
    static const char *const bad[] = {"-1", "two", "2x", "1.5", "99999999999999999999", "2 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char parts[80];
        snprintf(parts, sizeof parts, "TILEGEMM_THREADS|%s", bad[i]);
        test_environment("TILEGEMM_THREADS", bad[i], TG_BAD_ARGUMENT, parts);
    }
    static const char *const switches[] = {"TILEGEMM_BATCH_INVARIANT", "TILEGEMM_TRACE"};
    for (int i = 0; i < 2; i++) {
        char parts[80];
        snprintf(parts, sizeof parts, "%s|yes|0 or 1", switches[i]);
        test_environment(switches[i], "0", TG_OK, "");
        test_environment(switches[i], "1", TG_OK, "");
        test_environment(switches[i], "", TG_OK, "");
        test_environment(switches[i], "yes", TG_BAD_ARGUMENT, parts);
    }
    if (!api_is_cpu()) {
        test_print("TILEGEMM_ISA is the CPU's alone\n");
        return;
    }
    test_environment("TILEGEMM_ISA", "portable", TG_OK, "");
    test_environment("TILEGEMM_ISA", "", TG_OK, "");
    test_environment("TILEGEMM_ISA", "mmx", TG_BAD_ARGUMENT, "TILEGEMM_ISA|mmx|portable");
#if defined(__x86_64__)
    test_environment("TILEGEMM_ISA", "avx2", TG_OK, "");
    test_environment("TILEGEMM_ISA", "avx512", TG_OK, "");
    test_environment("TILEGEMM_ISA", "vnni", TG_OK, "");
    test_environment("TILEGEMM_ISA", "bf16", TG_OK, "");
    test_environment("TILEGEMM_ISA", "amx", TG_OK, "");
#endif
}

void test_open(void)
{
    tg_context *ctx;
    test_lists();
    CHECK_INT(tg_open(&ctx, NULL, 0), TG_OK);
    CHECK_INT(tg_last_status(ctx), TG_OK);
    CHECK(tg_last_error(ctx)[0] == '\0' && tg_device_name(ctx)[0] != '\0');
    tg_close(ctx);
    refuse_open("metal", 0, TG_NO_BACKEND, "metal", __LINE__);
    refuse_open("", 0, TG_NO_BACKEND, "\"\"", __LINE__);
    refuse_open("CPU", 0, TG_NO_BACKEND, "CPU", __LINE__);
    refuse_open("cpu", -1, TG_BAD_ARGUMENT, "device = -1", __LINE__);
    refuse_open("cpu", 7, TG_NO_DEVICE, "device = 7", __LINE__);
    refuse_open(api_backend(), -1, TG_BAD_ARGUMENT, "device = -1", __LINE__);
    refuse_open(api_backend(), 99, TG_NO_DEVICE, "device = 99", __LINE__);
    test_all_environments();
}
