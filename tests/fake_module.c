/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules for test_modules, which all pass themselves off as that of HIP: FAKE_GOOD is one whose
 * device is missing, and the others are modules that the library must not use. */
#include <stdio.h>

#include "module.h"

#ifndef FAKE_EMPTY
static tg_status no_device(char *reason, size_t size)
{
    snprintf(reason, size, "the module was asked, and has no device");
    return TG_NO_DEVICE;
}

#ifdef FAKE_TABLE
static uint64_t other_table(void) { return tg_tile_table() + 1; }
#endif

__attribute__((visibility("default"))) const tg_module *tg_module_hip(void)
{
    static const tg_backend backend = {.name = "hip", .reason = no_device};
    static tg_module module = {TG_VERSION_TEXT, sizeof(tg_context), tg_tile_table, &backend};
#if defined(FAKE_VERSION)
    snprintf(module.version, sizeof module.version, "0.0.9");
#elif defined(FAKE_CONTEXT)
    module.context_bytes += 8;
#elif defined(FAKE_TABLE)
    module.table = other_table;
#elif defined(FAKE_NULL)
    return NULL;
#endif
    return &module;
}
#endif
