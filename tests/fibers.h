/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU for machines that have none: what backends/gpu/simt_gemm.h needs of a device's compiler,
 * and what simt_table.h needs of its runtime, GPU(name). Include it before them, in one C++ file of
 * a program. The lanes of a block are fibers of one thread. Each runs until it comes to a barrier;
 * when all have, they go on, from last to first:
 *
 *     lane 0   |-- stage --|                                      |-- multiply --|
 *     lane 1               |-- stage --|           |-- multiply --|
 *                                      ^ barrier
 *
 * A missing barrier is then a wrong result on every run; and ThreadSanitizer, to which a fiber is a
 * thread and only a barrier orders, calls it a race. Fast memory starts as NaN; a byte beyond what
 * the launch asked for is an error, to AddressSanitizer at once, and otherwise after the block.
 * With LATE_COPIES, copies in the background are made when they are waited for, and not before. */
#ifndef FIBERS_H
#define FIBERS_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#include "call.h"

/* --------------------------------------------------------------------- the device's compiler */

#define __global__
#define __device__
#define __shared__
#define __grid_constant__
#define GPU_BOUNDS(...)
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __syncthreads() fibers::barrier(__LINE__)

struct dim3 {
    unsigned x;
    dim3(unsigned x = 1) : x(x) {}
};
static dim3 blockIdx, gridDim;

namespace fibers
{
/* What host and lanes both use, and which orders nothing. */
template <class T> struct unordered {
    T value;
    operator T() const { return __atomic_load_n(&value, __ATOMIC_RELAXED); }
    void operator=(T x) { __atomic_store_n(&value, x, __ATOMIC_RELAXED); }
};
} // namespace fibers
static struct {
    fibers::unordered<unsigned> x;
} threadIdx;

namespace tg
{
alignas(16) static unsigned char tg_fast_memory[256 << 10];
}

/* There where a sanitizer is linked in. */
extern "C" {
void __sanitizer_start_switch_fiber(void **from, const void *stack, size_t bytes)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *here, const void **stack, size_t *bytes)
    __attribute__((weak));
void *__tsan_get_current_fiber(void) __attribute__((weak));
void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));
void __tsan_acquire(void *at) __attribute__((weak));
void __tsan_release(void *at) __attribute__((weak));
}

/* ----------------------------------------------------------------------------------- the fibers */

namespace fibers
{

enum { MOST_LANES = 1024, STACK = 256 << 10, FORBIDDEN = 4 << 10 };

struct copy {
    void *to;
    const void *from;
    int bytes, valid, group;
};

struct fiber {
    ucontext_t context;
    const void *stack;
    size_t stack_bytes;
    void *asan, *tsan;
    unordered<int> waits_at;  /* the line of the barrier, or 0: it is through with the block */
    std::vector<copy> copies; /* not yet made */
    int groups;               /* of them, committed */
};

static fiber host, lanes[MOST_LANES];
static int lanes_made;
static void (*kernel)(tg_call);
static const tg_call *argument;

/* What went wrong in the kernels, as a sentence; NULL if nothing did. */
static const char *complaint;

/* What orders for ThreadSanitizer: all that was done before `what` happened comes before all that
 * is done after it was seen. */
static char start, arrival;
static void happened(char &what)
{
    if (__tsan_release)
        __tsan_release(&what);
}
static void saw(char &what)
{
    if (__tsan_acquire)
        __tsan_acquire(&what);
}

static void go(fiber &from, fiber &to)
{
    const unsigned without_order = 1;
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(to.tsan, without_order);
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from.asan, to.stack, to.stack_bytes);
    swapcontext(&from.context, &to.context);
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(from.asan, nullptr, nullptr);
}

/* Back to the host until all lanes have come here. */
static void barrier(int line)
{
    fiber &me = lanes[threadIdx.x];
    me.waits_at = line;
    happened(arrival);
    go(me, host);
    saw(start);
}

/* The life of a fiber: a lane of one block, then of the next. */
static void live()
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(nullptr, &host.stack, &host.stack_bytes);
    for (saw(start);;) {
        kernel(*argument);
        if (!lanes[threadIdx.x].copies.empty())
            complaint = "a lane returned before its copies were made";
        barrier(0);
    }
}

static bool make_lanes(int count)
{
    if (__tsan_get_current_fiber && !host.tsan)
        host.tsan = __tsan_get_current_fiber();
    for (; lanes_made < count; lanes_made++) {
        fiber &lane = lanes[lanes_made];
        void *space = mmap(nullptr, FORBIDDEN + STACK, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (space == MAP_FAILED)
            return false;
        lane.stack = static_cast<char *>(space) + FORBIDDEN;
        lane.stack_bytes = STACK;
        if (mprotect(const_cast<void *>(lane.stack), STACK, PROT_READ | PROT_WRITE) ||
            getcontext(&lane.context))
            return false;
        lane.context.uc_stack.ss_sp = const_cast<void *>(lane.stack);
        lane.context.uc_stack.ss_size = STACK;
        makecontext(&lane.context, live, 0);
        if (__tsan_create_fiber)
            lane.tsan = __tsan_create_fiber(0);
    }
    return true;
}

/* All lanes up to their next barrier; false if they returned instead. */
static bool run_to_barrier(int count, bool is_backwards)
{
    int waiting = 0, line = 0;
    happened(start);
    for (int i = 0; i < count; i++) {
        threadIdx.x = unsigned(is_backwards ? count - 1 - i : i);
        fiber &lane = lanes[threadIdx.x];
        if (lane.waits_at == 0)
            continue;
        go(host, lane);
        if (lane.waits_at && line && lane.waits_at != line)
            complaint = "the lanes of a block wait at different barriers";
        waiting += lane.waits_at != 0;
        line = lane.waits_at;
    }
    saw(arrival);
    if (waiting && waiting < count)
        complaint = "some lanes of a block wait for others that have returned";
    return waiting > 0;
}

static void run_block(int count, size_t fast)
{
    const size_t all = sizeof tg::tg_fast_memory;
    memset(tg::tg_fast_memory, 0xff, all);
    ASAN_POISON_MEMORY_REGION(tg::tg_fast_memory + fast, all - fast);
    for (int lane = 0; lane < count; lane++)
        lanes[lane].waits_at = 1;
    for (bool is_backwards = false; run_to_barrier(count, is_backwards);)
        is_backwards = !is_backwards;
    ASAN_UNPOISON_MEMORY_REGION(tg::tg_fast_memory + fast, all - fast);
    for (size_t i = fast; i < all && !complaint; i++)
        if (tg::tg_fast_memory[i] != 0xff)
            complaint = "more fast memory was written than the launch asked for";
}

} // namespace fibers

#ifdef LATE_COPIES
#define TG_OWN_COPIES
namespace tg
{

constexpr bool has_async_copy = true;

template <int Bytes> void copy_async(void *fast, const void *slow, int valid, const void *anywhere)
{
    fibers::fiber &me = fibers::lanes[threadIdx.x];
    const void *from = valid ? slow : anywhere;
    if (reinterpret_cast<uintptr_t>(fast) % Bytes || reinterpret_cast<uintptr_t>(from) % Bytes)
        fibers::complaint = "a copy is not aligned to its size";
    me.copies.push_back({fast, from, Bytes, valid, me.groups});
}

inline void commit_copies() { fibers::lanes[threadIdx.x].groups++; }

/* Makes all copies but those of the last groups. */
template <int Pending> void wait_for_copies()
{
    fibers::fiber &me = fibers::lanes[threadIdx.x];
    size_t made = 0;
    for (; made < me.copies.size() && me.copies[made].group < me.groups - Pending; made++) {
        const fibers::copy &c = me.copies[made];
        memset(c.to, 0, size_t(c.bytes));
        memcpy(c.to, c.from, size_t(c.valid));
    }
    me.copies.erase(me.copies.begin(), me.copies.begin() + int64_t(made));
}

} // namespace tg
#endif

/* ---------------------------------------------------------------------------------- the runtime */

#define GPU(name) fiber##name
#define GPU_MOST_BLOCKS(threads) INT32_MAX

typedef void *fiberStream_t;
struct fiberFuncAttributes {
    int numRegs;
    size_t localSizeBytes, sharedSizeBytes;
};
enum { fiberFuncAttributeMaxDynamicSharedMemorySize, fiberErrorInvalidValue = 1 };

static inline int fiberFuncSetAttribute(const void *, int, int) { return 0; }
static inline int fiberFuncGetAttributes(fiberFuncAttributes *attributes, const void *)
{
    *attributes = {};
    return 0;
}
static inline int fiberOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int,
                                                                 size_t)
{
    *blocks = 1;
    return 0;
}

static int fiberLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t fast, fiberStream_t)
{
    if (grid.x == 0 || block.x == 0 || block.x > fibers::MOST_LANES ||
        fast > sizeof tg::tg_fast_memory || !fibers::make_lanes(int(block.x)))
        return fiberErrorInvalidValue;
    fibers::kernel = reinterpret_cast<void (*)(tg_call)>(const_cast<void *>(function));
    fibers::argument = static_cast<const tg_call *>(arguments[0]);
    gridDim = grid;
    for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
        fibers::run_block(int(block.x), fast);
    return 0;
}

#endif
