/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backends there are, and why one cannot be used: built in, or a module in a file of its own.
 * Modules are looked for in the folders of TILEGEMM_BACKEND_PATH, then beside the library itself
 * and in the folder tilegemm/ there; never in the current directory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module.h"

typedef const tg_module *(*module_function)(void);

static const struct entry {
    const char *name;
    module_function linked; /* NULL: in a file */
} entries[] = {
#define LINKED_1(name) tg_module_##name
#define LINKED_0(name) NULL
#define SELECT(name, linked) LINKED_##linked(name)
#define TG_BACKEND(name, linked) {#name, SELECT(name, linked)},
#include "backends.def"
};

static const char names[] =
#define TG_BACKEND(name, linked) " " #name
#include "backends.def"
    ;

int tg_backend_count(void) { return (int)(sizeof entries / sizeof entries[0]); }

const char *tg_backend_name(int index)
{
    return index >= 0 && index < tg_backend_count() ? entries[index].name : NULL;
}

/* Opens folder/libtilegemm-NAME.so if there is such a file; *found then says so. */
static void *open_in(const char *folder, size_t length, const char *name, int *found, char *reason,
                     size_t size)
{
    char path[1024];
    int written = snprintf(path, sizeof path, "%.*s/libtilegemm-%s.so", (int)length, folder, name);
    if (length == 0 || folder[0] != '/' || written >= (int)sizeof path || access(path, R_OK) != 0)
        return NULL;
    *found = 1;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *error = library ? NULL : dlerror();
    if (!library)
        snprintf(reason, size, "%s does not load: %s", path, error ? error : "no reason given");
    return library;
}

static void *open_module(const char *name, char *reason, size_t size)
{
    static const char anchor;
    const char *folders = getenv("TILEGEMM_BACKEND_PATH");
    int found = 0;
    void *library = NULL;
    while (folders && *folders && !found) {
        const size_t length = strcspn(folders, ":");
        library = open_in(folders, length, name, &found, reason, size);
        folders += length + (folders[length] == ':');
    }
    Dl_info self;
    char folder[1024] = "";
    if (!found && dladdr(&anchor, &self) && self.dli_fname)
        snprintf(folder, sizeof folder, "%s", self.dli_fname);
    char *end = strrchr(folder, '/');
    if (!found && end) {
        *end = '\0';
        library = open_in(folder, strlen(folder), name, &found, reason, size);
        snprintf(end, sizeof folder - (size_t)(end - folder), "/tilegemm");
        if (!found)
            library = open_in(folder, strlen(folder), name, &found, reason, size);
    }
    if (!found)
        snprintf(reason, size, "this installation has no %s module, libtilegemm-%s.so", name, name);
    return library;
}

static const tg_backend *load(const struct entry *e, char *reason, size_t size)
{
    module_function function = e->linked;
    if (!function) {
        char symbol[64];
        void *library = open_module(e->name, reason, size);
        if (!library)
            return NULL;
        snprintf(symbol, sizeof symbol, "tg_module_%s", e->name);
        *(void **)&function = dlsym(library, symbol);
    }
    const tg_module *module = function ? function() : NULL;
    if (module && strcmp(module->version, tg_version()) == 0 &&
        module->context_bytes == sizeof(tg_context) && module->table() == tg_tile_table())
        return module->backend;
    if (module && strcmp(module->version, tg_version()) == 0)
        snprintf(reason, size, "the %s module is of another build of version %s than the library",
                 e->name, tg_version());
    else
        snprintf(reason, size, "the %s module is of version %.15s, and the library of %s", e->name,
                 module ? module->version : "unknown", tg_version());
    return NULL;
}

const tg_backend *tg_backend_find(const char *name, tg_status *status, char *reason, size_t size)
{
    char nowhere[1];
    if (!reason || !size)
        reason = nowhere, size = sizeof nowhere;
    reason[0] = '\0';
    *status = TG_NO_BACKEND;
    for (int i = 0; i < tg_backend_count(); i++) {
        if (name && strcmp(name, entries[i].name) != 0)
            continue;
        const tg_backend *backend = load(&entries[i], reason, size);
        *status = backend ? backend->reason(reason, size) : TG_NO_BACKEND;
        if (*status == TG_OK)
            return backend;
        if (name)
            return NULL;
    }
    if (name)
        snprintf(reason, size, "backend = \"%s\" is none of%s", name, names);
    return NULL;
}

tg_status tg_backend_reason(const char *backend, char *reason, size_t size)
{
    tg_status status;
    if (!backend) {
        if (reason && size)
            snprintf(reason, size, "backend is NULL");
        return TG_BAD_ARGUMENT;
    }
    tg_backend_find(backend, &status, reason, size);
    return status;
}
