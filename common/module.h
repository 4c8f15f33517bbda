/* SPDX-License-Identifier: Apache-2.0
 *
 * How a backend hands itself over: by one function,
 *
 *     const tg_module *tg_module_cuda(void)
 *
 * GPU backends are files of their own, opened when one is first asked for: only they need the
 * runtime of their vendor, and one build of the library runs with any of them or none. Such a file
 * carries its own copy of the little that it uses of common/. */
#ifndef TG_MODULE_H
#define TG_MODULE_H

#include "gemm.h"

typedef struct tg_module {
    char version[16]; /* must be the library's own, and so must the other two */
    size_t context_bytes;
    uint64_t (*table)(void); /* a hash of the tilings: plans speak of rows by number */
    const tg_backend *backend;
} tg_module;

#define TG_BACKEND(name, linked) const tg_module *tg_module_##name(void);
#include "backends.def"

#endif
