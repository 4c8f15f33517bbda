/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls are queued: on streams of several threads at once, into graphs that are replayed, across a
 * change of streams, and on devices beside each other. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "test.h"

/* A context on a stream of its own. */
typedef struct lane {
    tg_context *ctx;
    void *stream;
} lane;

static int lane_open(lane *l, int device)
{
    *l = (lane){gpu_open(device), NULL};
    return CHECK(gpu.use(device) == 0 && gpu.stream_create(&l->stream, 1) == 0) &&
           CHECK_SAY(!tg_set_stream(l->ctx, l->stream), "%s", tg_last_error(l->ctx));
}

static void lane_close(lane *l)
{
    tg_close(l->ctx);
    if (l->stream)
        CHECK(gpu.stream_destroy(l->stream) == 0);
}

/* -------------------------------------------------------------------- eight threads and streams */

enum { THREADS = 8, REPEATS = 12, SIDE = 150, DEPTH = 1700 };

/* The same real numbers again and again give the same bits. */
static int repeats_bits(tg_context *ctx, unsigned number)
{
    const size_t count = (size_t)SIDE * DEPTH, bytes = count * sizeof(double),
                 c_bytes = (size_t)SIDE * SIDE * sizeof(double);
    double *host = malloc(bytes), *first = malloc(c_bytes), *now = malloc(c_bytes);
    void *a = NULL, *c = NULL;
    int ok = host && first && now && !tg_alloc(ctx, bytes, &a) && !tg_alloc(ctx, c_bytes, &c);
    for (size_t i = 0; ok && i < count; i++)
        host[i] = (double)(test_hash(i + ((uint64_t)number << 40)) >> 11) * 0x1p-52 - 1;
    ok = ok && !tg_upload(ctx, a, host, bytes);
    for (int repeat = 0; ok && repeat < REPEATS; repeat++) {
        ok = !tg_dgemm(ctx, TG_ROW_MAJOR, TG_NO_TRANS, TG_TRANS, SIDE, SIDE, DEPTH, 0.7, a, DEPTH,
                       a, DEPTH, 0, c, SIDE) &&
             !tg_download(ctx, repeat ? now : first, c, c_bytes) &&
             (repeat == 0 || memcmp(first, now, c_bytes) == 0);
    }
    ok = !tg_free(ctx, a) && !tg_free(ctx, c) && ok;
    free(host);
    free(first);
    free(now);
    return ok;
}

static void *work(void *number)
{
    const unsigned me = *(unsigned *)number;
    lane l;
    product p;
    if (lane_open(&l, 0)) {
        CHECK_SAY(product_make(&p, l.ctx, SIDE + (int)me, SIDE, DEPTH), "%s", tg_last_error(l.ctx));
        for (unsigned repeat = 0; repeat < 3; repeat++)
            CHECK_SAY(product_fill(&p, me * 100 + repeat) && !product_start(&p) &&
                          product_is_right(&p),
                      "stream %u, call %u: %s", me, repeat, tg_last_error(l.ctx));
        product_drop(&p);
        CHECK_SAY(repeats_bits(l.ctx, me), "stream %u: other bits, or %s", me,
                  tg_last_error(l.ctx));
    }
    lane_close(&l);
    return NULL;
}

void test_streams(void)
{
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    int started = 0;
    for (; started < THREADS; started++) {
        numbers[started] = (unsigned)started;
        if (pthread_create(&threads[started], NULL, work, &numbers[started]))
            break;
    }
    CHECK_INT(started, THREADS);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void *call_there(void *p)
{
    CHECK_SAY(!product_start(p), "in another thread: %s", tg_last_error(((product *)p)->ctx));
    return NULL;
}

/* A context goes from one thread to another, which has never met the device: where it knows nothing
 * of the operands yet, and where there is nothing to ask. */
void test_threads(void)
{
    static const int rows[] = {SIDE, 1};
    tg_context *ctx = gpu_open(0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pthread_t thread;
        product p;
        CHECK_SAY(product_make(&p, ctx, rows[i], SIDE, SIDE), "%s", tg_last_error(ctx));
        for (unsigned call = 0; call < 3; call++)
            CHECK(product_fill(&p, call) && !pthread_create(&thread, NULL, call_there, &p) &&
                  !pthread_join(thread, NULL) && product_is_right(&p));
        product_drop(&p);
    }
    tg_close(ctx);
}

/* --------------------------------------------------------------------------------------- copies */

/* The tile that copies while it multiplies, on Hopper (tail.h). */
static const tg_tile *copying_tile(void)
{
    static tg_tile tile;
    tile = tg_tile_at(tg_tile_find("t128x128x32"));
    tg_context *ctx = gpu_open(0);
    const int takes_it = !tg_tile_refusal(ctx, &tile, TG_F32);
    tg_close(ctx);
    return takes_it ? &tile : NULL;
}

/* Odd lines, and an edge: on several streams at once, whose blocks wait for copies while others
 * have the device. The second time the workspace has old copies. */
static void copy_on_streams(const tg_tile *tile)
{
    enum { LANES = 3, HIGH = 2049, BROAD = 2047, DEEP = 1601 };
    lane lanes[LANES] = {{NULL, NULL}};
    product p[LANES] = {{.ctx = NULL}};
    for (int i = 0; i < LANES; i++)
        CHECK(lane_open(&lanes[i], 0) && !tg_force(lanes[i].ctx, tile) &&
              product_make(&p[i], lanes[i].ctx, HIGH, BROAD, DEEP));
    for (int i = 0; i < 2 * LANES; i += LANES) {
        for (int j = 0; j < LANES; j++)
            CHECK(product_fill(&p[j], (uint64_t)(i + j)));
        for (int j = 0; j < LANES; j++)
            CHECK_SAY(!product_start(&p[j]), "%s", tg_last_error(lanes[j].ctx));
        for (int j = 0; j < LANES; j++)
            CHECK_SAY(product_is_right(&p[j]), "stream %d is wrong", j);
    }
    for (int i = 0; i < LANES; i++) {
        product_drop(&p[i]);
        lane_close(&lanes[i]);
    }
}

/* One operand or both, from each kind of lines, with tiles that are split at the end and without.
 */
static void copy_all_kinds(const tg_tile *tile)
{
    static const struct {
        int m, n, k, ldb; /* 0: B is not transposed */
    } cases[] = {{2303, 2305, 1441, 0},
                 {1152, 4737, 1440, 0},
                 {1152, 4736, 1440, 1440},
                 {1152, 3711, 1760, 1761}};
    tg_context *ctx = gpu_open(0);
    CHECK(!tg_force(ctx, tile));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int m = cases[i].m, n = cases[i].n, k = cases[i].k, ldb = cases[i].ldb;
        product p;
        CHECK(ldb ? product_make_nt(&p, ctx, m, n, k, ldb) : product_make(&p, ctx, m, n, k));
        CHECK_SAY(product_fill(&p, 10 + i) && !product_start(&p) && product_is_right(&p),
                  "%d x %d x %d, ldb %d: %s", m, n, k, ldb, tg_last_error(ctx));
        product_drop(&p);
    }
    tg_close(ctx);
}

void test_copies(void)
{
    const tg_tile *tile = copying_tile();
    if (!tile)
        return;
    copy_on_streams(tile);
    copy_all_kinds(tile);
}

/* --------------------------------------------------------------------------------------- graphs */

/* Captures a call for each product, and replays them with new numbers in the same memory. */
static void capture(lane *l, product p[2])
{
    void *graph = NULL, *ready = NULL;
    CHECK_INT(gpu.capture_begin(l->stream, 0), 0);
    for (int i = 0; i < 2; i++)
        CHECK_SAY(!product_start(&p[i]), "captured: %s", tg_last_error(l->ctx));
    CHECK_INT(gpu.capture_end(l->stream, &graph), 0);
    if (!CHECK(graph != NULL) || !CHECK_INT(gpu.graph_prepare(&ready, graph, 0), 0))
        return;
    for (uint64_t replay = 0; replay < 3; replay++) {
        CHECK(product_fill(&p[0], 10 + replay) && product_fill(&p[1], 20 + replay));
        CHECK_INT(gpu.graph_launch(ready, l->stream), 0);
        CHECK_SAY(product_is_right(&p[0]) && product_is_right(&p[1]), "replay %d is wrong",
                  (int)replay);
    }
    CHECK(gpu.ready_destroy(ready) == 0 && gpu.graph_destroy(graph) == 0);
}

/* Programs set the stream before each call: also to one that is being captured, which cannot wait
 * for what was queued on the one before. */
static void capture_elsewhere(lane *l, product *p)
{
    void *other = NULL, *graph = NULL, *ready = NULL;
    CHECK(product_fill(p, 41) && !product_start(p));
    CHECK_INT(gpu.stream_create(&other, 1), 0);
    CHECK_INT(gpu.capture_begin(other, 0), 0);
    CHECK_SAY(!tg_set_stream(l->ctx, other) && !product_start(p), "%s", tg_last_error(l->ctx));
    CHECK_INT(gpu.capture_end(other, &graph), 0);
    if (CHECK(graph != NULL) && CHECK_INT(gpu.graph_prepare(&ready, graph, 0), 0)) {
        CHECK(product_fill(p, 42));
        CHECK_INT(gpu.graph_launch(ready, other), 0);
        CHECK(product_is_right(p));
        CHECK(gpu.ready_destroy(ready) == 0 && gpu.graph_destroy(graph) == 0);
    }
    CHECK(!tg_set_stream(l->ctx, l->stream) && gpu.stream_destroy(other) == 0);
}

/* A workspace that is too small cannot grow while a graph is captured: an error, and no harm. */
static void grow_in_capture(lane *l, product *p)
{
    void *graph = NULL;
    CHECK(product_fill(p, 31));
    CHECK_INT(gpu.capture_begin(l->stream, 0), 0);
    const tg_status status = product_start(p);
    CHECK_SAY(status == TG_OK || tg_last_error(l->ctx)[0], "status %d without a sentence", status);
    (void)gpu.capture_end(l->stream, &graph);
    if (graph)
        (void)gpu.graph_destroy(graph);
    CHECK_SAY(!product_start(p) && product_is_right(p), "after a broken capture: %s",
              tg_last_error(l->ctx));
}

/* The workspace is the caller's then: as much as the larger call asks for, and no better aligned
 * than it must be. */
void test_graphs(void)
{
    lane l;
    product p[2] = {{0}};
    void *memory = NULL;
    if (lane_open(&l, 0)) {
        CHECK(product_make(&p[0], l.ctx, 300, 310, 320));
        if (product_make_shared(&p[1], l.ctx, 0)) {
            grow_in_capture(&l, &p[1]);
        } else {
            test_print("no product of the chooser's takes a workspace\n");
            CHECK(product_make(&p[1], l.ctx, 30, 31, 3200));
        }
        const size_t first = product_workspace(l.ctx, p[0].m, p[0].n, p[0].k),
                     second = product_workspace(l.ctx, p[1].m, p[1].n, p[1].k);
        const size_t larger = first > second ? first : second;
        const size_t bytes = (larger + 63) / 64 * 64; /* an emulated allocation may end at a page */
        CHECK_SAY(!tg_alloc(l.ctx, bytes + 64, &memory) &&
                      !tg_set_workspace(l.ctx, (char *)memory + 64, bytes),
                  "a workspace of %zu bytes: %s", bytes, tg_last_error(l.ctx));
        capture(&l, p);
        capture_elsewhere(&l, &p[1]);
        CHECK_SAY(!tg_set_workspace(l.ctx, NULL, 0), "%s", tg_last_error(l.ctx));
        tg_free(l.ctx, memory);
    }
    product_drop(&p[0]);
    product_drop(&p[1]);
    lane_close(&l);
}

/* ------------------------------------------------------------------------------ order, and ends */

/* Calls that are queued on the lane's stream: on a real device, for milliseconds. */
static int keep_busy(lane *l, product *p)
{
    const int is_real = gpu.start_empty_kernel != NULL, side = is_real ? 1024 : 16;
    if (!CHECK(product_make(p, l->ctx, side, side, side)) || !CHECK(product_fill(p, 5)))
        return 0;
    CHECK(!tg_set_stream(l->ctx, l->stream));
    for (int call = 0; call < 500; call++)
        CHECK(!product_start(p));
    return 1;
}

/* What was queued on one stream is waited for on the next. */
static void wait_for_both(lane *l, void *other)
{
    product p;
    if (keep_busy(l, &p)) {
        CHECK(!tg_set_stream(l->ctx, other));
        CHECK(!tg_sync(l->ctx));
        CHECK_INT(gpu.stream_ask(l->stream), 0);
    }
    product_drop(&p);
}

/* Also where calls on the next were captured first, which could not wait. */
static void wait_after_capture(lane *l, void *other)
{
    product p;
    void *graph = NULL;
    if (keep_busy(l, &p)) {
        CHECK_INT(gpu.capture_begin(other, 0), 0);
        CHECK(!tg_set_stream(l->ctx, other) && !product_start(&p));
        CHECK_INT(gpu.capture_end(other, &graph), 0);
        CHECK(!product_start(&p) && !gpu.stream_wait(other));
        CHECK_INT(gpu.stream_ask(l->stream), 0);
        CHECK(graph && gpu.graph_destroy(graph) == 0);
    }
    product_drop(&p);
}

/* The workspace of a context is used on one stream, and then on the next: that one waits. */
void test_order(void)
{
    lane l;
    product p[2] = {{0}};
    void *other = NULL;
    if (lane_open(&l, 0) && CHECK_INT(gpu.stream_create(&other, 1), 0) &&
        product_make_shared(&p[0], l.ctx, 0) && product_make_shared(&p[1], l.ctx, 0))
        for (uint64_t turn = 0; turn < 20; turn++) {
            CHECK(product_fill(&p[0], turn) && product_fill(&p[1], 100 + turn));
            CHECK(!tg_set_stream(l.ctx, l.stream) && !product_start(&p[0]));
            CHECK(!tg_set_stream(l.ctx, other) && !product_start(&p[1]));
            CHECK_SAY(product_is_right(&p[1]), "the second stream, turn %d", (int)turn);
            CHECK_INT(gpu.stream_wait(l.stream), 0);
            CHECK_SAY(product_is_right(&p[0]), "the first stream, turn %d", (int)turn);
        }
    if (other) {
        wait_for_both(&l, other);
        wait_after_capture(&l, other);
    }
    product_drop(&p[0]);
    product_drop(&p[1]);
    CHECK_SAY(!tg_set_stream(l.ctx, NULL), "%s", tg_last_error(l.ctx));
    lane_close(&l);
    if (other)
        CHECK_INT(gpu.stream_destroy(other), 0);
}

/* tg_close waits for what is queued, also for the workspace that it frees. */
void test_close_in_flight(void)
{
    tg_context *owner = gpu_open(0);
    product p = {0};
    if (!product_make_shared(&p, owner, 0))
        CHECK(product_make(&p, owner, 500, 500, 5000));
    for (uint64_t turn = 0; turn < 5; turn++) {
        lane l;
        if (!lane_open(&l, 0) || !CHECK(product_fill(&p, turn)))
            break;
        product borrowed = p;
        borrowed.ctx = l.ctx;
        for (int call = 0; call < 20; call++)
            CHECK_SAY(!product_start(&borrowed), "%s", tg_last_error(l.ctx));
        lane_close(&l);
        CHECK_SAY(product_is_right(&p), "closed in flight, turn %d", (int)turn);
    }
    product_drop(&p);
    tg_close(owner);
}

/* ------------------------------------------------------------------------------------- devices */

void test_devices(void)
{
    tg_context *ctx[2] = {NULL, NULL};
    product p[2] = {{0}};
    CHECK_INT(tg_open(&ctx[0], gpu_backend, 99), TG_NO_DEVICE);
    CHECK_TEXT(tg_last_error(ctx[0]), "device = 99");
    tg_close(ctx[0]);
    ctx[0] = gpu_open(0);
    if (tg_open(&ctx[1], gpu_backend, 1)) {
        test_print("one device only: %s\n", tg_last_error(ctx[1]));
    } else {
        for (int i = 0; i < 2; i++)
            CHECK(product_make(&p[i], ctx[i], 200 + i, 210, 900));
        for (uint64_t turn = 0; turn < 5; turn++) {
            CHECK(product_fill(&p[0], turn) && product_fill(&p[1], 50 + turn));
            CHECK(!product_start(&p[0]) && !product_start(&p[1]));
            CHECK(product_is_right(&p[1]) && product_is_right(&p[0]));
        }
        product_drop(&p[0]);
        product_drop(&p[1]);
    }
    tg_close(ctx[0]);
    tg_close(ctx[1]);
}
