/* SPDX-License-Identifier: Apache-2.0
 *
 * The device text of backends/gpu on a machine without a GPU: every row of the table whose inst is
 * FMA, launched as the host half launches it, with integers so small that every sum is exact,
 * against three loops, compared with ==.
 *
 *     test_simt_4x8 [--thin] [ROW]     LANES and FAST_KIB of a block: from tests/meson.build
 *
 * Matrices lie against forbidden pages (guard.h), and what is not an element of C must come back
 * bit by bit. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "fibers.h"

#define TG_WIDEST_LIMITS                                            \
    {                                                               \
        {LANES}, 1024, 16, 255, 4, FAST_KIB << 10, 0, 0, 0, 0, 0, 0 \
    }
#include "simt_table.h"

extern "C" {
#include "guard.h"
#include "test.h"
}

namespace
{

/* The elements of a matrix and where they lie: (i, j, item) at stored[low + i * row + ...]. */
template <class Elem> struct matrix {
    int64_t rows = 0, cols = 0, items = 0, row = 0, col = 0, item = 0, low = 0, all = 0;
    guard memory = {};
    Elem *stored = nullptr;
    std::vector<Elem> before;

    ~matrix() { guard_drop(&memory); }

    int64_t at(int64_t i, int64_t j, int64_t x) const { return low + i * row + j * col + x * item; }
    Elem *data() const { return stored + low; }
};

/* How a matrix can be stored. The last one is for inputs only: its elements coincide. */
enum layout { BY_ROWS, BY_COLS, SPREAD, BACKWARDS, ROWS_BACKWARDS, INTERLEAVED, ONE_ROW, LAYOUTS };

struct sample {
    int64_t m, n, k, batch;
    layout a, b, c;
    int alpha, beta, splits, shift, pad;
    bool at_start, shares_b;
};

template <class Elem> void set_strides(matrix<Elem> &x, layout how, int pad)
{
    const int64_t row = x.cols + pad, col = x.rows + pad;
    const int64_t strides[LAYOUTS][3] = {
        {row, 1, x.rows * row + 3},
        {1, col, x.cols * col + 3},
        {2 * row + 1, 2, x.rows * (2 * row + 1) + 3},
        {-row, -1, -(x.rows * row + 3)},
        {-row, 1, x.rows * row + 3},
        {x.items * row + pad, x.items, 1},
        {0, 1, row},
    };
    x.row = strides[how][0];
    x.col = strides[how][1];
    x.item = strides[how][2];
    x.low = 0;
    x.all = 1;
    const int64_t reaches[] = {(x.rows - 1) * x.row, (x.cols - 1) * x.col, (x.items - 1) * x.item};
    for (int64_t reach : reaches) {
        x.low -= reach < 0 ? reach : 0;
        x.all += std::abs(reach);
    }
}

/* Memory of canaries, which are NaN, with the elements of the matrix filled in. */
template <class Elem>
bool place(matrix<Elem> &x, int64_t rows, int64_t cols, int64_t items, layout how, const sample &s,
           bool is_filled)
{
    x.rows = rows, x.cols = cols, x.items = items;
    if (rows > 0 && cols > 0)
        set_strides(x, how, s.pad);
    const size_t bytes = size_t(x.all) * sizeof(Elem);
    x.stored = static_cast<Elem *>(
        guard_take(&x.memory, bytes, size_t(s.shift) * sizeof(Elem), !s.at_start));
    if (!x.stored)
        return false;
    for (int64_t item = 0; is_filled && item < items; item++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                x.stored[x.at(i, j, item)] = Elem(
                    int(test_hash(uint64_t(x.at(i, j, item)) * 3 + uint64_t(how) + uint64_t(rows)) %
                        15) -
                    7);
    x.before.assign(x.stored, x.stored + x.all);
    return true;
}

template <class Elem>
Elem expected(const sample &s, const matrix<Elem> &a, const matrix<Elem> &b, Elem old, int64_t i,
              int64_t j, int64_t item)
{
    Elem sum = 0;
    for (int64_t p = 0; p < s.k; p++)
        sum += a.stored[a.at(i, p, item)] * b.stored[b.at(p, j, s.shares_b ? 0 : item)];
    return Elem(s.k ? s.alpha : 0) * sum + (s.beta ? Elem(s.beta) * old : 0);
}

/* Compares, and puts the elements of C back to what they were. Returns how many are wrong. */
template <class Elem>
int64_t count_wrong(const sample &s, const matrix<Elem> &a, const matrix<Elem> &b, matrix<Elem> &c)
{
    int64_t wrong = 0;
    for (int64_t item = 0; item < s.batch; item++)
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t j = 0; j < s.n; j++) {
                const int64_t at = c.at(i, j, item);
                const Elem old = c.before[size_t(at)];
                wrong += c.stored[at] != expected(s, a, b, old, i, j, item);
                c.stored[at] = old;
            }
    return wrong;
}

template <class Elem> bool is_untouched(const matrix<Elem> &x)
{
    return guard_holds(&x.memory) &&
           memcmp(x.stored, x.before.data(), x.before.size() * sizeof(Elem)) == 0;
}

template <class Elem>
tg_call call_of(const sample &s, const matrix<Elem> &a, const matrix<Elem> &b,
                const matrix<Elem> &c)
{
    static tg_met met[TG_MET];
    tg_call call = {};
    call.met = met;
    call.m = s.m, call.n = s.n, call.k = s.k, call.batch = s.batch;
    call.a = s.k ? static_cast<const void *>(a.data()) : guard_forbidden(&a.memory);
    call.b = s.k ? static_cast<const void *>(b.data()) : guard_forbidden(&b.memory);
    call.c = c.data();
    call.a_row = a.row, call.a_col = a.col, call.a_item = a.item;
    call.b_row = b.row, call.b_col = b.col, call.b_item = s.shares_b ? 0 : b.item;
    call.c_row = c.row, call.c_col = c.col, call.c_item = c.item;
    call.alpha = s.k ? s.alpha : 0;
    call.beta = s.beta;
    call.splits = s.k ? s.splits : 1;
    call.units = 4;
    return call;
}

std::string words_of(const sample &s)
{
    char text[200];
    snprintf(text, sizeof text,
             "%dx%dx%d batch %d%s, layouts %d %d %d, alpha %d, beta %d, splits %d, shift %d, "
             "pad %d%s",
             int(s.m), int(s.n), int(s.k), int(s.batch), s.shares_b ? " of one B" : "", s.a, s.b,
             s.c, s.alpha, s.beta, s.splits, s.shift, s.pad, s.at_start ? ", at start" : "");
    return text;
}

template <class Elem> void run(const tg_kernel_entry &kernel, const char *name, const sample &s)
{
    matrix<Elem> a, b, c;
    guard workspace = {};
    fibers::complaint = nullptr;
    const std::string what =
        std::string(name) + (sizeof(Elem) == 8 ? " f64 " : " f32 ") + words_of(s);
    if (!place(a, s.m, s.k, s.batch, s.a, s, true) ||
        !place(b, s.k, s.n, s.shares_b ? 1 : s.batch, s.b, s, true) ||
        !place(c, s.m, s.n, s.batch, s.c, s, s.beta != 0)) {
        CHECK_SAY(0, "%s: no memory", what.c_str());
        return;
    }
    tg_call call = call_of(s, a, b, c);
    const size_t bytes = kernel.workspace ? kernel.workspace(&call) : 0;
    if (bytes)
        call.workspace = guard_take(&workspace, (bytes + 255) / 256 * 256, 0, 1);
    CHECK_SAY((bytes > 0) == (call.splits > 1), "%s: a workspace of %zu bytes", what.c_str(),
              bytes);
    const int error = kernel.launch(&call, nullptr);
    const int64_t wrong = count_wrong(s, a, b, c);
    CHECK_SAY(!error && !wrong, "%s: error %d, %lld elements are wrong", what.c_str(), error,
              static_cast<long long>(wrong));
    CHECK_SAY(!fibers::complaint, "%s: %s", what.c_str(), fibers::complaint);
    CHECK_SAY(is_untouched(a) && is_untouched(b) && is_untouched(c) &&
                  (!bytes || guard_holds(&workspace)),
              "%s: what is no element of C was changed", what.c_str());
    guard_drop(&workspace);
}

/* One of several values, by a hash of the case's number and the place where it is asked for. */
template <size_t Count> int64_t one_of(const int (&values)[Count], uint64_t seed)
{
    return values[test_hash(seed) % Count];
}

/* Around the block and the warp tile: ragged, whole, and several blocks. */
int64_t size_around(int block, int unit, uint64_t seed)
{
    const int sizes[] = {1, unit - 1, unit + 1, block - 1, block, block + 1, block + unit + 1};
    const int64_t size = one_of(sizes, seed);
    return size > 0 ? size : 1;
}

sample sample_of(const tg_tile &t, tg_mn unit, int number, uint64_t seed)
{
    static const int alphas[] = {1, 1, -1, 2}, betas[] = {0, 1, -1, 2}, splits[] = {1, 2, 3, 1},
                     batches[] = {1, 1, 2}, pads[] = {0, 3, 4},
                     outputs[] = {0, 0, SPREAD, BACKWARDS, ROWS_BACKWARDS, INTERLEAVED};
    const int k = t.block.k, depths[] = {1, k - 1, k, k + 1, 2 * k + 3, 3 * k, 5 * k + 1};
    seed = test_hash(seed + uint64_t(number)) << 8;
    sample s;
    s.m = size_around(t.block.m, unit.m, seed + 1);
    s.n = size_around(t.block.n, unit.n, seed + 2);
    s.k = number % 8 == 7 ? 0 : one_of(depths, seed + 3);
    s.k = s.k == 0 && number % 8 != 7 ? 1 : s.k;
    s.batch = one_of(batches, seed + 4);
    s.a = layout(test_hash(seed + 5) % LAYOUTS);
    s.b = layout(number % LAYOUTS);
    s.c = layout(one_of(outputs, seed + 6));
    s.alpha = int(one_of(alphas, seed + 7));
    s.beta = int(one_of(betas, seed + 8));
    s.splits = int(one_of(splits, seed + 9));
    s.shift = test_hash(seed + 10) % 4 == 0;
    s.pad = int(one_of(pads, seed + 11));
    s.at_start = test_hash(seed + 12) % 2;
    s.shares_b = test_hash(seed + 13) % 3 == 0;
    return s;
}

template <class Elem> int run_row(int row, int cases)
{
    const tg_kernel_entry *kernel = tg::simt_find<Elem>(row);
    if (!kernel)
        return 0;
    const tg_tile t = tg_tile_fill(tg_tile_at(row), tg::widest, sizeof(Elem));
    const tg_mn unit = tg_tile_unit(t, tg::widest.lanes);
    for (int number = 0; number < cases; number++)
        run<Elem>(*kernel, tg_tile_name(row),
                  sample_of(t, unit, number, uint64_t(row) * 2 + sizeof(Elem) / 8));
    tg_usage usage = {};
    CHECK_INT(kernel->usage(&usage), 0);
    CHECK_INT(usage.threads, tg_tile_threads(t, tg::widest.lanes));
    CHECK_INT(usage.fast_bytes, tg_tile_fast_bytes(t, sizeof(Elem)));
    return 1;
}

/* Block numbers are taken apart in 32 bits; here in 64. A C of few rows may be very wide. */
void test_positions()
{
    const tg_tile t = tg_tile_at(tg_tile_find("v1_shared_8"));
    const int64_t wide = int64_t(1) << 33;
    blockIdx = 0;
    const int64_t sizes[][2] = {{1, 1}, {1, wide}, {9, wide / 2}, {wide, 5}, {70, 300}, {64, 64}};
    for (const auto &size : sizes)
        for (int splits = 1; splits <= 3; splits += 2) {
            tg_call p = {};
            p.m = size[0], p.n = size[1], p.k = 100, p.splits = splits;
            const int64_t tiles_m = tg_ceil_div(p.m, 8), tiles_n = tg_ceil_div(p.n, 8);
            const int64_t tiles = tiles_m * tiles_n, all = 3 * splits * tiles;
            const int64_t blocks[] = {0,       1,      tiles - 1, tiles, 2 * tiles + tiles / 3,
                                      all / 2, all - 1};
            for (int64_t block : blocks) {
                p.first_block = block % all;
                const tg::position at(p, t);
                const int64_t tile = p.first_block % tiles, rest = p.first_block / tiles;
                const int64_t group = tile / (8 * tiles_n), rows = tg_min(8, tiles_m - 8 * group);
                const int64_t place = tile % (8 * tiles_n);
                CHECK_SAY(at.row == (8 * group + place % rows) * 8 && at.col == place / rows * 8 &&
                              at.split == rest % splits && at.item == rest / splits,
                          "block %lld of %lldx%lld: tile %lld, %lld", (long long)p.first_block,
                          (long long)p.m, (long long)p.n, (long long)at.row, (long long)at.col);
            }
        }
}

} // namespace

int main(int argc, char **argv)
{
    const char *only = nullptr;
    int cases = 24, rows = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--thin") == 0)
            cases = 2;
        else
            only = argv[i];
    test_positions();
    for (int row = 0; row < tg_tile_count(); row++)
        if (!only || strcmp(only, tg_tile_name(row)) == 0) {
            rows += run_row<float>(row, cases);
            rows += run_row<double>(row, cases);
        }
    test_print("%d kernels on lanes %dx%d\n", rows, tg::widest.lanes.m, tg::widest.lanes.n);
    CHECK_SAY(rows >= (only ? 1 : 30), "only %d kernels ran", rows);
    return test_close();
}
