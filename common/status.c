/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of statuses and types, and the sentence that a context keeps of its last error. */
#include <stdarg.h>
#include <stdio.h>

#include "gemm.h"

const char *tg_version(void) { return TG_VERSION_TEXT; }

const char *tg_status_text(tg_status status)
{
    switch (status) {
#define TG_X(name, value, text) \
    case name:                  \
        return text;
        TG_STATUS_LIST(TG_X)
#undef TG_X
    }
    return "unknown status";
}

const char *tg_type_name(tg_type type)
{
    switch (type) {
#define TG_X(name, value, text, ctype) \
    case name:                         \
        return #text;
        TG_TYPE_LIST(TG_X)
#undef TG_X
    }
    return NULL;
}

size_t tg_type_size(tg_type type)
{
    switch (type) {
#define TG_X(name, value, text, ctype) \
    case name:                         \
        return sizeof(ctype);
        TG_TYPE_LIST(TG_X)
#undef TG_X
    }
    return 0;
}

tg_status tg_fail(tg_context *ctx, tg_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->error, sizeof ctx->error, format, args);
    va_end(args);
    return ctx->status = status;
}

tg_status tg_succeed(tg_context *ctx)
{
    ctx->error[0] = '\0';
    return ctx->status = TG_OK;
}

tg_status tg_last_status(const tg_context *ctx) { return ctx ? ctx->status : TG_OUT_OF_MEMORY; }

const char *tg_last_error(const tg_context *ctx)
{
    return ctx ? ctx->error : tg_status_text(TG_OUT_OF_MEMORY);
}
