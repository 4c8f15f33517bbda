/* SPDX-License-Identifier: Apache-2.0
 *
 * Backends that are files of their own, on machines that lack the file, the driver or the device:
 * a status, a sentence, and the CPU instead.
 *
 *     test_modules GOOD VERSION CONTEXT NULL EMPTY     files that are made from fake_module.c
 *
 * Each is put under the name of the HIP module into a folder of its own. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tilegemm.h>
#include <unistd.h>

#include "test.h"

static char top[] = "/tmp/test_modules_XXXXXX";

/* The path of top/folder or of top/folder/libtilegemm-hip.so. */
static const char *path_in(const char *folder, int is_file)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s%s", top, folder, is_file ? "/libtilegemm-hip.so" : "");
    return path;
}

static void make_folder(const char *folder, const char *module)
{
    char whole[PATH_MAX];
    CHECK_SAY(mkdir(path_in(folder, 0), 0700) == 0, "no folder %s", path_in(folder, 0));
    CHECK_SAY(realpath(module, whole) && symlink(whole, path_in(folder, 1)) == 0, "no %s", module);
}

static void drop_folder(const char *folder)
{
    unlink(path_in(folder, 1));
    rmdir(path_in(folder, 0));
}

/* With TILEGEMM_BACKEND_PATH like this, HIP is refused with these words. */
static void refused(const char *search, tg_status expected, const char *parts, int line)
{
    char reason[300] = "";
    tg_context *ctx;
    setenv("TILEGEMM_BACKEND_PATH", search, 1);
    const tg_status status = tg_backend_reason("hip", reason, sizeof reason);
    test_note(status == expected, __FILE__, line, "%s: status %d, expected %d: %s", search,
              (int)status, (int)expected, reason);
    test_text(reason, parts, __FILE__, line);
    test_note(tg_open(&ctx, "hip", 0) == status && strcmp(tg_last_error(ctx), reason) == 0,
              __FILE__, line, "tg_open says \"%s\"", tg_last_error(ctx));
    tg_close(ctx);
    unsetenv("TILEGEMM_BACKEND_PATH");
}

static void test_bad_modules(void)
{
    char search[3 * PATH_MAX];
    char version[80];
    snprintf(version, sizeof version, "hip module|0.0.9|%s", tg_version());
    refused(path_in("version", 0), TG_NO_BACKEND, version, __LINE__);
    refused(path_in("context", 0), TG_NO_BACKEND, "hip module|another build of version", __LINE__);
    refused(path_in("table", 0), TG_NO_BACKEND, "hip module|another build of version", __LINE__);
    refused(path_in("null", 0), TG_NO_BACKEND, "hip module|unknown", __LINE__);
    refused(path_in("empty", 0), TG_NO_BACKEND, "hip module|unknown", __LINE__);
    refused(path_in("text", 0), TG_NO_BACKEND, "does not load|libtilegemm-hip.so", __LINE__);
    refused(path_in("good", 0), TG_NO_DEVICE, "the module was asked", __LINE__);
    snprintf(search, sizeof search, "/nowhere::%s/none:%s/good:%s/version", top, top, top);
    refused(search, TG_NO_DEVICE, "the module was asked", __LINE__);
    snprintf(search, sizeof search, "%s/version:%s/good", top, top);
    refused(search, TG_NO_BACKEND, version, __LINE__);
}

/* What a relative folder means depends on who calls from where: it is not looked into. */
static void test_relative_folders(void)
{
    static const char *const folders[] = {"good", "./good", "good:version:text", ".", ""};
    char before[PATH_MAX], reason[300];
    CHECK(getcwd(before, sizeof before) && chdir(top) == 0);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        setenv("TILEGEMM_BACKEND_PATH", folders[i], 1);
        tg_backend_reason("hip", reason, sizeof reason);
        CHECK_SAY(!strstr(reason, "was asked") && !strstr(reason, "0.0.9") &&
                      !strstr(reason, "does not load"),
                  "\"%s\" is looked into: %s", folders[i], reason);
        unsetenv("TILEGEMM_BACKEND_PATH");
    }
    CHECK(chdir(path_in("good", 0)) == 0);
    tg_backend_reason("hip", reason, sizeof reason);
    CHECK_SAY(!strstr(reason, "was asked"), "the current directory is looked into");
    CHECK(chdir(before) == 0);
}

/* A module that was built beside the library loads; what it misses here is a device. */
static void test_gpu(const char *name, const char *text, int is_built)
{
    char reason[300] = "", file[40];
    tg_context *ctx;
    const tg_status status = tg_backend_reason(name, reason, sizeof reason);
    CHECK_INT(tg_open(&ctx, name, 0), status);
    if (status) {
        snprintf(file, sizeof file, "libtilegemm-%s.so", name);
        CHECK_INT(status, is_built ? TG_NO_DEVICE : TG_NO_BACKEND);
        CHECK_TEXT(reason, is_built ? text : file);
        CHECK(strcmp(reason, tg_last_error(ctx)) == 0);
        CHECK_INT(tg_sync(ctx), TG_BAD_ARGUMENT);
    }
    test_print("%s: %s\n", name, status ? reason : tg_device_name(ctx));
    tg_close(ctx);
}

/* Without a name, the best backend that opens; the CPU where there is no other. */
static void test_best(void)
{
    const char *best = NULL;
    tg_context *ctx;
    for (int i = 0; i < tg_backend_count() && !best; i++)
        if (tg_backend_reason(tg_backend_name(i), NULL, 0) == TG_OK)
            best = tg_backend_name(i);
    CHECK(best != NULL);
    setenv("TILEGEMM_BACKEND_PATH", path_in("version", 0), 1);
    CHECK_INT(tg_open(&ctx, NULL, 0), TG_OK);
    CHECK(best && strcmp(tg_device_backend(ctx), best) == 0);
    tg_close(ctx);
    unsetenv("TILEGEMM_BACKEND_PATH");
}

int main(int argc, char **argv)
{
    static const char *const folders[] = {"good", "version", "context", "table", "null", "empty"};
    enum { FAKES = sizeof folders / sizeof folders[0] };
    if (!CHECK_INT(argc, FAKES + 1) || !CHECK(mkdtemp(top) != NULL))
        return test_close();
    for (int i = 0; i < FAKES; i++)
        make_folder(folders[i], argv[1 + i]);
    CHECK(mkdir(path_in("text", 0), 0700) == 0);
    FILE *text = fopen(path_in("text", 1), "w");
    CHECK(text && fputs("not a library\n", text) >= 0 && fclose(text) == 0);
    unsetenv("TILEGEMM_BACKEND_PATH");
    test_bad_modules();
    test_relative_folders();
    test_gpu("cuda", "CUDA", TG_TEST_HAS_CUDA);
    test_gpu("hip", "HIP", TG_TEST_HAS_HIP);
    test_best();
    for (int i = 0; i < FAKES; i++)
        drop_folder(folders[i]);
    drop_folder("text");
    rmdir(top);
    return test_close();
}
