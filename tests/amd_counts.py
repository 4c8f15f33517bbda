#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""amd_counts.py EMULATOR TEST_GEMM TARGET ...     what one step of a large row's loop executes, counted

The emulator counts what is executed. Two depths of one tile give two equations for what a block costs,
and a step of its loop; the rows of FLOORS must not fall below theirs, no banks of fast memory may
conflict, and slow memory is read in whole 64-byte pieces. Prints the table of docs/amd.md, and at last
'N passed, N failed'.

Cycles are those of one wave: those of matrix instructions, and of FMAs that are slow, follow from what
AMD published; any other vector instruction issues in 4 (64 lanes on 16) or in 1 (32 lanes on 32). Fast
memory gives 128 bytes a cycle to
all SIMDs of a unit, each of which runs such a wave; its cycles are the emulator's, conflicts included."""
import collections
import os
import re
import subprocess
import sys
import tempfile

# cycles of an instruction on one SIMD: target, part of its name
CYCLES = [("", r"32x32x2_?f32", 64), ("", r"16x16x4_?f32", 32), ("", r"16x16x4_?f64", 32),
          ("gfx90a", "32x32x8", 64), ("gfx90a", "16x16x16", 32), ("gfx942", r"32x32x8_", 32),
          ("gfx942", "16x16x16", 16), ("gfx942", "i32_32x32x16", 32), ("gfx11", "wmma", 32), ("gfx12", "wmma", 16),
          ("gfx908", "v_fma_f64", 8), ("gfx11", "v_fma_f64", 16), ("gfx12", "v_fma_f64", 32)]

# targets, type, row, its block: of vector cycles, the least share that multiplies and adds; for each of
# those, the most cycles of reading fast memory
CDNA, RDNA = ("gfx90a", "gfx942"), ("gfx1100", "gfx1201")
FLOORS = [(CDNA, "f32", "mfma128x128x16", (128, 128, 16), .98, .30), (CDNA, "f32", "mfma128x64x16", (128, 64, 16), .95, .45),
          (CDNA, "f64", "mfma128x128x8", (128, 128, 8), .97, .75), (CDNA, "bf16", "mfma128x128x32", (128, 128, 32), .90, .50),
          (("gfx942",), "f16", "mfma128x128x32", (128, 128, 32), .90, .50), (RDNA, "f16", "wmma128x128x32", (128, 128, 32), .88, .45),
          (RDNA, "bf16", "wmma128x128x32", (128, 128, 32), .88, .45), (("gfx90a",), "i8", "mfma128x128x64", (128, 128, 64), .95, .75),
          (("gfx942",), "i8", "mfma256x128x64", (256, 128, 64), .90, .75),
          (("gfx942",), "i8", "mfma128x128x64_16", (128, 128, 64), .86, .75), (RDNA, "i8", "wmma128x128x64", (128, 128, 64), .90, .75),
          (CDNA, "f32", "fma128x128x16", (128, 128, 16), .95, .75), (("gfx908",), "f64", "fma128x128x8", (128, 128, 8), .95, .75),
          (RDNA, "f32", "fma128x128x16_32", (128, 128, 16), .95, .75), (RDNA, "f64", "fma128x128x8_32", (128, 128, 8), .95, .75)]


def executed(emulator, target, test, kind, row, shape):
    """(work-groups, instructions by name and 'fast' cycles, the emulator's totals) of one product"""
    with tempfile.NamedTemporaryFile(mode="r") as log:
        env = dict(os.environ, TG_TEST_BACKEND="hip", AMD_EMULATOR_STATS="1", AMD_EMULATOR_STATS_FILE=log.name)
        done = subprocess.run([emulator, target, test, "hip", kind, row, "NN", "x".join(map(str, shape))], env=env, capture_output=True, text=True)
        text = log.read()
    if done.returncode or "1 passed" not in done.stdout:
        sys.exit(f"{target} {kind} {row}: {done.stdout}{done.stderr}")
    part = next(x for x in re.split(r"\n(?=kernel )", text) if re.match(r"kernel \w*(matrix|simt)_gemm", x))
    counts = collections.Counter({name: int(n) for name, n in re.findall(r"^  op (\S+)\s+(\d+)$", part, re.M)})
    fast = re.search(r"lds total: conflict-free cycles (\d+), actual (\d+)", part)
    counts["fast"] = int(fast[2])
    counts["reads"] = sum(int(x) for x in re.findall(r"^  lds 0x\w+ +ds_(?:load|read).*actual +(\d+)", part, re.M))
    pieces = float(re.search(r"use of 64-B segments ([\d.]+)", part)[1])
    return int(re.search(r"(\d+) work-groups", part)[1]), counts, int(fast[2]) - int(fast[1]), pieces


def a_step(emulator, target, test, kind, row, block):
    """What a work-group's waves execute in a step: cost = work-groups x start + steps x this."""
    runs = []
    for steps in 64, 192:
        runs.append((steps, *executed(emulator, target, test, kind, row, (block[0], block[1], steps * block[2]))))
    (s1, w1, c1, *_), (s2, w2, c2, conflicts, pieces) = runs
    determinant = s2 * w1 - s1 * w2
    return {x: (c2[x] * w1 - c1[x] * w2) / determinant for x in c2}, conflicts, pieces


def is_matrix(x):
    return x.startswith(("v_mfma", "v_wmma"))


def is_multiply_add(x):
    return is_matrix(x) or bool(re.search(r"v_(pk_|dual_)?(fma|mac|mad)[ac]?c?_f", x))


def judge(target, step):
    """cycles of all waves that multiply and add, and of other vector instructions"""
    issue = 4 if target.startswith("gfx9") else 1
    multiply = other = count = 0
    for name, n in step.items():
        if is_multiply_add(name):
            count += n
            multiply += n * next((c for of, part, c in CYCLES if target.startswith(of) and re.search(part, name)), issue)
        elif name.startswith("v_"):
            other += n * issue
    return count, multiply, other


def main(emulator, test, *wanted):
    passed = failed = 0
    for target, (kind, row, block, least, most) in ((x, rest) for targets, *rest in FLOORS for x in targets if x in wanted):
        step, conflicts, pieces = a_step(emulator, target, test, kind, row, block)
        count, multiply, other = judge(target, step)
        simds = 4 if target.startswith("gfx9") else 2
        share, fast, reads = multiply / (multiply + other), simds * step["fast"] / multiply, simds * step["reads"] / multiply
        is_good = share >= least and reads <= most and conflicts == 0 and pieces >= 99
        passed, failed = passed + is_good, failed + (not is_good)
        print(f"| {row} | {kind} | {target} | {count:.0f} | {share:.1%} | {fast:.2f} | {reads:.2f} | {conflicts} | {pieces:.0f} % |" + ("" if is_good else " BELOW ITS FLOOR"))
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or not passed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
