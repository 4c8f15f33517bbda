/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for one matrix, flush against a page that nobody may touch:
 *
 *     | forbidden | canary window | elements |  forbidden  |     flush at the end
 *     | forbidden | elements | canary window |  forbidden  |     flush at the start
 *
 * An access across the flush edge stops the program; one across the other edge changes the canary.
 * On a device the elements and the window are copied to device memory and back. */
#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>
#include <tilegemm.h>

typedef struct guard {
    unsigned char *pages;     /* usable bytes, with forbidden ones on both sides */
    size_t page_bytes;        /* how many are usable */
    size_t head, bytes, tail; /* canary, elements, canary: of the current use */
    unsigned char *window;    /* where head starts */
    void *device;             /* the copy of the window on a device, or NULL on a CPU */
} guard;

/* What canaries and unused elements hold: a NaN in f32 and f64. */
#define GUARD_BYTE 0xff

/* Makes room for bytes, `shift` of them away from the flush edge, and fills all with canaries.
 * Returns the first byte of the elements, or NULL when memory is short. */
void *guard_take(guard *g, size_t bytes, size_t shift, int at_end);
/* An address that may not be read or written. */
void *guard_forbidden(const guard *g);
/* Does every canary byte still hold? */
int guard_holds(const guard *g);
void guard_drop(guard *g);

/* The elements as the context's device sees them; NULL if the device has no memory for them. */
void *guard_to_device(guard *g, tg_context *ctx, int is_host);
tg_status guard_from_device(guard *g, tg_context *ctx);

#endif
