/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backends there are, and why one cannot be used. */
#include <stdio.h>
#include <string.h>

#include "gemm.h"

#define TG_BACKEND(name, built, sentence) extern const tg_backend tg_backend_##name;
#include "backends.def"

static const struct entry {
    const char *name;
    const tg_backend *backend; /* NULL if not built in */
    const char *absent;
} entries[] = {
#define BUILT_1(name) &tg_backend_##name
#define BUILT_0(name) NULL
#define SELECT(name, built) BUILT_##built(name)
#define TG_BACKEND(name, built, sentence) {#name, SELECT(name, built), sentence},
#include "backends.def"
};

int tg_backend_count(void) { return (int)(sizeof entries / sizeof entries[0]); }

const char *tg_backend_name(int index)
{
    return index >= 0 && index < tg_backend_count() ? entries[index].name : NULL;
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
        if (!entries[i].backend)
            snprintf(reason, size, "%s", entries[i].absent);
        else if ((*status = entries[i].backend->reason(reason, size)) == TG_OK)
            return entries[i].backend;
        if (name)
            return NULL;
    }
    if (name)
        snprintf(reason, size, "backend = \"%s\" is none of cuda, hip, cpu", name);
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
