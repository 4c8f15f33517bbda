/* SPDX-License-Identifier: Apache-2.0
 *
 * Hopper's f32 kernel: the host's half. A call becomes a schedule, two descriptions of operands for
 * the copy engine, and one launch; or two, if something must be copied or set to zero. */
#ifndef TG_HOPPER_CALL_H
#define TG_HOPPER_CALL_H

#include <cstdlib>

#include "hopper.h"

namespace tg_hopper
{

using encode_function = decltype(&cuTensorMapEncodeTiled);

/* An operand with x (m or n) and k as its axes. */
struct operand {
    const float *data;
    int64_t x_stride, k_stride, item_stride;
    int x, k, items;  /* items: 1 if all of the batch share one */
    bool may_along_k; /* may it be fetched along k?             */
};

/* How it gets into shared memory: as the loop wants it, along k, or straight from a copy. */
enum class way { straight, along_k, copied };

/* The engine fetches lines of unit stride whose starts are multiples of 16 bytes. */
inline bool engine_takes(const operand &o, bool along_k)
{
    const int64_t most = (int64_t)1 << 37;
    const int64_t along = along_k ? o.k_stride : o.x_stride;
    const int64_t across = along_k ? o.x_stride : o.k_stride;
    const int64_t length = along_k ? o.k : o.x;
    const bool item =
        o.items == 1 || (o.item_stride > 0 && o.item_stride < most && o.item_stride % quad == 0);
    return along == 1 && across >= length && across < most && across % quad == 0 && item &&
           (uintptr_t)o.data % 16 == 0;
}

inline way way_of(const operand &o)
{
    return engine_takes(o, false)                   ? way::straight
           : o.may_along_k && engine_takes(o, true) ? way::along_k
                                                    : way::copied;
}

inline operand described(const void *data, int64_t x_stride, int64_t k_stride, int64_t item_stride,
                         int64_t x, const tg_call *c, bool may_along_k)
{
    const int items = item_stride == 0 ? 1 : (int)c->batch;
    return {(const float *)data, x_stride, k_stride,   item_stride, (int)x,
            (int)c->k,           items,    may_along_k};
}

inline operand described_a(const tg_call *c, bool may_along_k)
{
    return described(c->a, c->a_row, c->a_col, c->a_item, c->m, c, may_along_k);
}

inline operand described_b(const tg_call *c, bool may_along_k)
{
    return described(c->b, c->b_col, c->b_row, c->b_item, c->n, c, may_along_k);
}

/* Do copies go on while tiles are multiplied that begin with the first k? (tail.h) */
template <tg_tile T> bool can_go_on(const tg_call *c, int64_t x)
{
    constexpr int blocks = shape<T, ways{}>::blocks;
    const int64_t units = tg_max(1, c->units);
    const int64_t tiles = tg_ceil_div(tg_without_edge(c->m, T.block.m), T.block.m) *
                          tg_ceil_div(tg_without_edge(c->n, T.block.n), T.block.n);
    return c->batch == 1 && (c->tail == TG_TAIL_WHOLE || tiles >= units * blocks) &&
           tg_copies_go_on(c->m, c->n, c->k, x, T.block, units, blocks);
}

/* Operands that lie k-major have the best loop: if B is copied, and without loss of time, A is too.
 * Else A may lie along k, and B if A does and lanes can be slices. */
template <tg_tile T> operand operand_a(const tg_call *c)
{
    const bool b_is_copied = !lanes_can_be_slices<T> && !engine_takes(described_b(c, false), false);
    return described_a(c, !(b_is_copied && can_go_on<T>(c, c->m + c->n)));
}

template <tg_tile T> operand operand_b(const tg_call *c)
{
    return described_b(c, lanes_can_be_slices<T> && way_of(operand_a<T>(c)) == way::along_k);
}

/* If only B lies along k, or both do, may not, and A is the smaller copy, C' = B'A' is multiplied.
 */
template <tg_tile T> bool is_to_turn(const tg_call *c)
{
    const operand a = operand_a<T>(c), b = operand_b<T>(c);
    return writes_columns<T> && way_of(b) == way::copied && engine_takes(b, true) &&
           !(engine_takes(a, true) && c->m >= c->n);
}

/* Whatever their addresses may be. */
template <tg_tile T> bool lie_k_major(tg_call c)
{
    c.a = c.b = nullptr;
    return way_of(operand_a<T>(&c)) != way::along_k && way_of(operand_b<T>(&c)) != way::along_k;
}

inline int64_t copy_pitch(const operand &o) { return tg_round_up(o.x, 32); }

inline size_t copy_bytes(const operand &o)
{
    return way_of(o) == way::copied ? tg_round_up(copy_pitch(o) * o.k * o.items * 4, 256) : 0;
}

/* With a tail, the tiles of the last wave are split; without one, none is. */
template <tg_tile T> schedule schedule_of(const tg_call *call)
{
    const int steps = (int)tg_ceil_div(call->k, T.block.k);
    const int64_t units = tg_max(1, call->units);
    const int64_t slots = tg_tail_slots(units, shape<T, ways{}>::blocks, T);
    const tg_edges e = call->batch == 1 && call->has_edges && lie_k_major<T>(*call)
                           ? tg_edges_of(call->m, call->n, T.block, units, shape<T, ways{}>::blocks)
                           : tg_edges{call->m, call->n, 0, 0};
    schedule s = {};
    s.m = (int)e.m;
    s.n = (int)e.n;
    s.steps = s.part_steps = steps;
    s.units = (int)units;
    s.cluster = 1;
    s.edge_blocks = (int)e.blocks;
    s.edge_width = (int)e.width;
    s.tiles_m = (int)tg_ceil_div(e.m, T.block.m);
    s.tiles_n = (int)tg_ceil_div(e.n, T.block.n);
    const int64_t tiles = (int64_t)s.tiles_m * s.tiles_n * call->batch;
    s.split = call->tail == TG_TAIL_WHOLE ? 0 : tiles % slots;
    if (s.split)
        s.part_steps = (int)tg_tail_steps(s.split, slots, steps, T);
    s.parts = (int)tg_ceil_div(steps, s.part_steps);
    if (s.parts == 1)
        s.split = 0;
    s.whole = tiles - s.split;
    if (slots == 2 * units && s.whole >= slots)
        s.early = (int)tg_min(units, s.split * (s.parts - 1));
    s.of_item = divisor((int64_t)s.tiles_m * s.tiles_n);
    s.of_strip = divisor((int64_t)group * s.tiles_n);
    s.of_last_strip = divisor(tg_max(1, s.tiles_m % group));
    s.of_split = divisor(tg_max(1, s.split));
    return s;
}

/* How many slices are copied first. The others, if there are any, while tiles are multiplied that
 * begin with the first k: parts of tiles come after them, and none is early. */
template <tg_tile T> void divide(copies *c, schedule *s, const tg_call *call, bool is_k_major)
{
    const int64_t x = (c->a.items ? call->m : 0) + (c->b.items ? call->n : 0);
    if (x == 0)
        return;
    c->of_item = divisor(s->steps * (T.block.k / piece));
    c->of_slice = divisor(c->pieces());
    c->of_draw = divisor(tg_ceil_div(c->pieces(), drawn_at_once));
    c->all = c->first = c->of_item.by * (unsigned)tg_max(c->a.items, c->b.items);
    if (is_k_major && can_go_on<T>(call, x)) {
        c->first = (unsigned)tg_ceil_div(TG_COPIED_FIRST * s->units, c->pieces());
        s->early = 0;
    }
}

/* The workspace: copy of A, copy of B, partial tiles, tickets, how much of each slice is copied. */
template <tg_tile T> struct layout {
    size_t a, b, partials, tickets, copied, bytes;

    layout(const tg_call *call, const schedule &s)
    {
        a = 0;
        b = a + copy_bytes(operand_a<T>(call));
        partials = b + copy_bytes(operand_b<T>(call));
        tickets = partials + s.split * s.parts * T.block.m * T.block.n * sizeof(float);
        copied = tickets + s.split * sizeof(unsigned);
        const int64_t slices = (int64_t)s.steps * T.block.k / piece;
        bytes = tg_round_up(copied + (partials > 0 ? slices + 1 : 0) * sizeof(unsigned), 256);
    }
};

/* Which way round it will be depends on addresses that are not known yet. */
template <tg_tile T> size_t workspace(const tg_call *call)
{
    const tg_call turned = tg_transposed(call);
    return tg_max(layout<T>(call, schedule_of<T>(call)).bytes,
                  layout<across<T>>(&turned, schedule_of<across<T>>(&turned)).bytes);
}

template <tg_tile T> int takes(const tg_call *call)
{
    const int64_t most = INT32_MAX - 256;
    if (call->c_col != 1 || call->k < 1 || call->m > most || call->n > most || call->k > most ||
        call->batch > most)
        return 0;
    const double tiles = (double)tg_ceil_div(call->m, T.block.m) * tg_ceil_div(call->n, T.block.n);
    const double copied = (double)tg_round_up(tg_max(call->m, call->n), piece) *
                          tg_round_up(call->k, T.block.k) * call->batch;
    return tiles * call->batch < 1e9 && copied < 1e12;
}

/* The box is as wide as the block and block.k deep, or, along k, a row wide. A thread that has not
 * met the device yet gets its context, which encoding needs, from the runtime. */
inline bool encode(encode_function encode, CUtensorMap *map, const operand &o, int box_x, int box_k)
{
    const bool along_k = o.x_stride != 1;
    const cuuint64_t x = o.x, k = o.k, across = along_k ? o.x_stride : o.k_stride;
    const cuuint64_t item = o.items == 1 ? across : o.item_stride;
    const cuuint64_t size[3] = {along_k ? k : x, along_k ? x : k, (cuuint64_t)o.items};
    const cuuint64_t stride[2] = {across * 4, item * 4};
    const cuuint32_t box[3] = {(cuuint32_t)(along_k ? row_k : box_x),
                               (cuuint32_t)(along_k ? box_x : box_k), 1};
    const cuuint32_t every[3] = {1, 1, 1};
    const auto is_encoded = [&] {
        return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, const_cast<float *>(o.data), size,
                      stride, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      along_k ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
    };
    return is_encoded() || (cudaFree(nullptr) == cudaSuccess && is_encoded());
}

/* The operand as the kernel fetches it; if that is a copy, the copying is noted. */
inline operand fetched(const operand &o, void *memory, copy *copy)
{
    if (way_of(o) != way::copied)
        return o;
    const int64_t pitch = copy_pitch(o), item_pitch = pitch * o.k;
    copy->from = (const char *)o.data;
    copy->to = (char *)memory;
    copy->x_step = o.x_stride * 4;
    copy->x_jump = o.x_stride * 4 * 5;
    copy->k_step = o.k_stride * 4;
    copy->item_step = o.item_stride * 4;
    copy->pitch = pitch * 4;
    copy->item_pitch = item_pitch * 4;
    copy->x = o.x;
    copy->k = o.k;
    copy->items = o.items;
    copy->along_x = llabs(o.x_stride) <= llabs(o.k_stride);
    return {(const float *)memory, 1, pitch, item_pitch, o.x, o.k, o.items, false};
}

inline void describe_c(arguments *args, const tg_call *call)
{
    args->c = (float *)call->c;
    args->c_row = call->c_row;
    args->c_col = call->c_col;
    args->c_item = call->c_item;
    args->alpha = (float)call->alpha;
    args->beta = (float)call->beta;
    const int64_t length = call->c_col == 1 ? call->n : call->m;
    const int64_t across = call->c_col == 1 ? call->c_row : call->c_col;
    args->wide =
        ((uintptr_t)call->c % 16 | length % quad | across % quad | call->c_item % quad) == 0;
}

inline edge edge_of(const schedule &s, const operand &one, int tiled, const operand &all,
                    int length, float *c, int64_t c_across, int64_t c_along)
{
    edge e = {};
    if (one.x == tiled)
        return e;
    e.width = s.edge_width;
    e.blocks = (int)tg_ceil_div(length, e.width);
    e.length = length;
    e.one = one.data + tiled * one.x_stride;
    e.one_k = one.k_stride;
    e.all = all.data;
    e.all_k = all.k_stride;
    e.c = c + tiled * c_across;
    e.c_step = c_along;
    return e;
}

/* The edge of m has the corner. */
inline void describe_edges(arguments *args, const operand &a, const operand &b)
{
    args->k = a.k;
    args->edge_of_m = edge_of(args->s, a, args->s.m, b, b.x, args->c, args->c_row, args->c_col);
    args->edge_of_n =
        edge_of(args->s, b, args->s.n, a, args->s.m, args->c, args->c_col, args->c_row);
}

/* Kernels start while others end. So that blocks which could have a multiprocessor each do not
 * double up then, they ask for more shared memory than two can have. */
template <tg_tile T, ways W> int fast_bytes(const schedule &s, const tg_call *call)
{
    return s.blocks() > call->units ? shape<T, W>::bytes : shape<T, W>::alone;
}

template <tg_tile T, ways W> int start(const arguments &args, const tg_call *call, void *stream)
{
    using S = shape<T, W>;
    const auto kernel = gemm<T, W>;
    if (const int error = tg::ask_for_fast_once(call, (const void *)kernel, S::alone))
        return error;
    return tg::start(kernel, args.s.blocks(), S::threads, fast_bytes<T, W>(args.s, call), args,
                     *call, stream, args.s.cluster);
}

/* If all tiles are split, and all parts run at once, those of a tile are a cluster. */
template <tg_tile T, ways W> void gather(schedule &s, const tg_call *call)
{
    if (!call->early || s.whole || s.parts < 2 || s.parts > TG_MOST_OF_CLUSTER)
        return;
    using S = shape<T, W>;
    const int64_t wanted = tg_ceil_div(s.edge_blocks, s.parts) + s.split;
    const int bytes = fast_bytes<T, W>(s, call), blocks = bytes == S::alone ? 1 : S::blocks;
    const auto kernel = (const void *)gemm<T, W>;
    if (tg::ask_for_fast_once(call, kernel, S::alone) ||
        wanted > tg::clusters_at_once(kernel, s.parts, S::threads, bytes, blocks, call))
        return;
    s.cluster = s.parts;
    s.of_split = divisor(s.parts);
    s.edge_blocks = (int)tg_round_up(s.edge_blocks, s.parts);
}

template <tg_tile T> int launch_oriented(const tg_call *call, void *stream)
{
    static const auto encoder = tg::driver_function<encode_function>("cuTensorMapEncodeTiled");
    if (!encoder)
        return cudaErrorNotSupported;
    arguments args = {};
    args.s = schedule_of<T>(call);
    const layout<T> at(call, args.s);
    gather<T, ways{true, false}>(args.s, call);
    char *memory = (char *)call->workspace;
    copies &copied = args.copied;
    const operand a = fetched(operand_a<T>(call), memory + at.a, &copied.a);
    const operand b = fetched(operand_b<T>(call), memory + at.b, &copied.b);
    if (!encode(encoder, &args.a, a, T.block.m, T.block.k) ||
        !encode(encoder, &args.b, b, T.block.n, T.block.k))
        return cudaErrorInvalidValue;
    describe_c(&args, call);
    describe_edges(&args, a, b);
    args.a_items = a.items > 1;
    args.b_items = b.items > 1;
    args.partials = (float *)(memory + at.partials);
    args.tickets = copied.tickets = (unsigned *)(memory + at.tickets);
    copied.ticket_count = args.s.cluster > 1 ? 0 : args.s.split;
    copied.next = (unsigned *)(memory + at.copied);
    copied.copied = copied.next + 1;
    const bool is_k_major = !is_turned<T> && a.x_stride == 1 && b.x_stride == 1;
    divide<T>(&copied, &args.s, call, is_k_major);
    if (copied.pieces() || copied.ticket_count)
        if (const int error = start_first(copied, *call, stream))
            return error;
    if constexpr (!is_turned<T>) /* else A lies along k */
        if (is_k_major)
            return start<T, ways{false, false}>(args, call, stream);
    if constexpr (lanes_can_be_slices<T>)
        if (b.x_stride != 1)
            return start<T, ways{true, true}>(args, call, stream);
    return start<T, ways{true, false}>(args, call, stream);
}

template <tg_tile T> int launch(const tg_call *call, void *stream)
{
    if (!is_to_turn<T>(call))
        return launch_oriented<T>(call, stream);
    const tg_call turned = tg_transposed(call);
    return launch_oriented<across<T>>(&turned, stream);
}

template <tg_tile T> int usage(tg_usage *usage)
{
    using S = shape<T, ways{}>;
    const int error = tg::usage_of(gemm<T, ways{}>, S::threads, S::bytes, usage, S::alone);
    usage->registers = S::consumer_registers;
    return error;
}

} /* namespace tg_hopper */

#endif
