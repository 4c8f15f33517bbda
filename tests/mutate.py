#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tests: mutate.py [WORD ...]

Plants one bug at a time in a copy of the tree, builds that, runs the suites, and requires at least
one to fail. Prints a table `mutation | caught by` and closes with "N passed, N failed". With words,
only mutations whose names hold one of them. A text that is not found exactly once is a failure too:
the code has moved, and its mutation must follow.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNEL = "backends/cpu/microkernel.h"
CPU = "backends/cpu/gemm.c"
GEMM = "common/gemm.c"
CHECK = "common/check.c"
TILE = "common/tile.h"

# What is run, in this order, until one is red.
SUITES = [["test_tile"], ["test_choose"], ["test_gemm", "cpu", "--thin"],
          ["test_bound", "cpu", "--thin"], ["test_api"], ["test_gemm", "cpu", "--thin", "--seed", "2"],
          ["test_gemm"]]

# Name, file, text, what it becomes. Mutations of one file stand together: that builds fastest.
MUTATIONS = [
    ("owner of a column uses the rows' unit", TILE,
     "rep * tg_tile_unit(t, lanes).n", "rep * tg_tile_unit(t, lanes).m"),
    ("owner's pieces ignore the lanes", TILE,
     "element / piece * piece * lanes", "element / piece * piece"),
    ("rule dropped: thread.n is a multiple of vec", TILE,
     "TG_REFUSE_IF(t.thread.n % t.vec,", "TG_REFUSE_IF(t.thread.n < 0,"),
    ("rule dropped: block.k is a multiple of slices", TILE,
     "TG_REFUSE_IF(t.block.k % t.slices,", "TG_REFUSE_IF(t.block.k < 0,"),
    ("C is read although beta == 0", KERNEL, "if (beta == 0) {", "if (s->k < 0) {"),
    ("alpha is lost when beta == 0", KERNEL,
     "= alpha * acc[i * nv + j];", "= acc[i * nv + j];"),
    ("zeros of A are skipped", KERNEL,
     "acc[i * nv + j] += a[i * a_row] * b_now[j];",
     "if (a[i * a_row] != 0) acc[i * nv + j] += a[i * a_row] * b_now[j];"),
    ("the last k of each block is dropped", CPU,
     "(range){k, tg_min(p->k, k + tile->block.k)}",
     "(range){k, tg_min(p->k, k + tile->block.k) - (k > 0)}"),
    ("edge mask in m is one too far", CPU,
     "tg_min(a->line, a->lines.end - a->lines.begin - m)",
     "tg_min(a->line, a->lines.end - a->lines.begin - m + 1)"),
    ("edge mask in n is one short", CPU,
     "tg_min(b->line, b->lines.end - b->lines.begin - n)",
     "tg_min(b->line, b->lines.end - b->lines.begin - n - (n > 0))"),
    ("B steps by the batch stride of A", CPU,
     "item * p->b.batch_stride", "item * p->a.batch_stride"),
    ("beta is applied in every block of k", CPU, "c, k ? 1 : p->beta)", "c, p->beta)"),
    ("beta is applied in every slice of k", CPU, "ks, k0 ? 1 : beta)", "ks, beta)"),
    ("panels are packed too close together", CPU,
     "panel * s->line * s->k * j->bytes", "panel * s->line * (s->k - 1) * j->bytes"),
    ("k == 0 returns without scaling C", CPU, "        scale(&j);\n", ""),
    ("the barrier after staging is dropped", CPU,
     "wait_for(t); /* staged, before it is read */", "(void)t;"),
    ("the barrier after reading is dropped", CPU,
     "wait_for(t); /* read, before it is staged anew */", "(void)t;"),
    ("threads are used in a forked child", "backends/cpu/backend.c",
     "!atomic_load_explicit(&is_forked_child, memory_order_relaxed)", "1"),
    ("rows and columns are exchanged by the layout", GEMM,
     "(layout == TG_ROW_MAJOR) != is_transposed", "(layout == TG_ROW_MAJOR) == is_transposed"),
    ("TG_CONJ_TRANS is taken for TG_NO_TRANS", GEMM,
     "trans != TG_NO_TRANS;", "trans == TG_TRANS;"),
    ("lda is not checked", GEMM, "if (ld < length)", "if (ld < 0)"),
    ("A and B are read although alpha == 0", GEMM, "if (p->alpha == 0)", "if (p->m < 0)"),
    ("a caller's small workspace is used all the same", GEMM,
     "if (bytes <= ctx->workspace_bytes)",
     "if (bytes <= ctx->workspace_bytes || ctx->workspace_is_callers)"),
    ("C column-major: B's strides are not exchanged", GEMM,
     "p->a.row_stride = q.b.col_stride, p->a.col_stride = q.b.row_stride;",
     "p->a.row_stride = q.b.row_stride, p->a.col_stride = q.b.col_stride;"),
    ("overlap is not checked", CHECK,
     "if (views_overlap(&c, &v, (int64_t)bytes))", "if (bytes == 0 && views_overlap(&c, &v, 0))"),
    ("coinciding elements of C are not checked", CHECK,
     "if (elements_coincide(c_stride, c_count))",
     "if (bytes == 0 && elements_coincide(c_stride, c_count))"),
    ("spans may overflow", CHECK, "if (check_span(ctx, name, stride, count, bytes))", "if (!name)"),
]


def run(command, folder, log, limit):
    try:
        return subprocess.run(command, cwd=folder, stdout=log, stderr=log, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return -1


def suite_that_fails(build):
    """The name of the first suite that is red, or None. A crash and a hang are red too."""
    with open(os.devnull, "w") as nowhere:
        for suite in SUITES:
            command = [os.path.join(build, "tests", suite[0])] + suite[1:]
            if run(command, build, nowhere, 300) != 0:
                return " ".join(suite)
    return None


def build_tree(build):
    with open(os.path.join(build, "log"), "w") as log:
        targets = sorted({"tests/" + suite[0] for suite in SUITES})
        return run(["ninja"] + targets, build, log, 900) == 0


def plant(tree, mutation):
    """Writes the mutated file; False if its text is not there exactly once."""
    _, name, text, replacement = mutation
    with open(os.path.join(ROOT, name)) as file:
        source = file.read()
    with open(os.path.join(tree, name), "w") as file:
        file.write(source.replace(text, replacement))
    return source.count(text) == 1


def outcome(tree, build, mutation):
    """What the table says, and whether that is right."""
    if not plant(tree, mutation):
        return "TEXT NOT FOUND ONCE in " + mutation[1], False
    if not build_tree(build):
        return "DOES NOT BUILD", False
    caught_by = suite_that_fails(build)
    return caught_by or "NOT CAUGHT", caught_by is not None


def main():
    words = sys.argv[1:]
    wanted = [m for m in MUTATIONS if not words or any(word in m[0] for word in words)]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))
        with open(os.path.join(folder, "log"), "w") as log:
            ready = run(["meson", "setup", build, tree, "-Dbuildtype=debugoptimized"], folder, log, 300) == 0
        if not ready or not build_tree(build):
            sys.exit("the tree does not build")
        already = suite_that_fails(build)
        if already:
            print(f"{already} is red without any mutation")
            failed += 1
        print(f"{'mutation':50} | caught by")
        for mutation in wanted if not already else []:
            said, is_right = outcome(tree, build, mutation)
            print(f"{mutation[0]:50} | {said}", flush=True)
            shutil.copy(os.path.join(ROOT, mutation[1]), os.path.join(tree, mutation[1]))
            passed += is_right
            failed += not is_right
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
