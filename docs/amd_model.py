#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""amd_model.py      what AMD's GPUs might reach: a model, with nothing timed on any of them

    rate = peak x share x waves
    peak   units x operations of a unit in a cycle x clock, as published; of the H200, as its probe measured
    share  of the loop's cycles, those that multiply and add, as if nothing overlapped: docs/amd.md's table,
           at most 1 / (cycles of fast memory for each); of the H200, the floors of tests/sass.py
    waves  whole tiles of C on all units: the last wave is as long as the others

It knows nothing of slow memory, of latency, or of clocks that power limits: it is for rows whose copies
overlap with multiplication. It is checked on those of the H200, 4096^3, where what is off by more than
15 % is told."""
import math
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests"))
import sass  # noqa: E402

SIZE = 8192
# GPU, target, units, GHz; operations of a unit in a cycle; what rocBLAS and hipBLASLt were reported to reach
GPUS = [("MI210", "gfx90a", 104, 1.7), ("MI250X, one of two", "gfx90a", 110, 1.7), ("MI300X", "gfx942", 304, 2.1),
        ("RX 7900 XTX", "gfx1100", 96, 2.5), ("RX 9070 XT", "gfx1201", 64, 2.97)]
RATES = {("gfx90a", "f32"): 256, ("gfx90a", "f64"): 256, ("gfx90a", "bf16"): 1024, ("gfx90a", "i8"): 1024,
         ("gfx942", "f32"): 256, ("gfx942", "f64"): 256, ("gfx942", "bf16"): 2048, ("gfx942", "i8"): 4096,
         ("gfx1100", "f32"): 256, ("gfx1201", "f32"): 256, ("gfx1100", "f16"): 512, ("gfx1201", "f16"): 1024}
SEEN = {("MI210", "f32"): "37.9", ("MI210", "f64"): "27.1", ("MI250X, one of two", "f32"): "21.6, tuned 37.5",
        ("MI300X", "f32"): "88", ("MI300X", "f64"): "69", ("MI300X", "bf16"): "708",
        ("RX 7900 XTX", "f32"): "22.8 to 28", ("RX 9070 XT", "f32"): "10",
        ("RX 7900 XTX", "f16"): "95 to 101", ("RX 9070 XT", "f16"): "113.5"}
H200_PEAK, H200_UNITS = 65.3, 132  # TFLOP/s of nothing but f32 multiply-adds


def waves(size, block, slots):
    tiles = math.prod(math.ceil(size / x) for x in block)
    return size * size / math.prod(block) / (math.ceil(tiles / slots) * slots)


def check():
    print(f"| row | H200, f32 4096^3: model | measured | |\n|---|--:|--:|--:|")
    log = open(os.path.join(TOP, "docs/results/2026-11-21-h200-rows.txt")).read()
    for (kind, block, element), (_, share) in sass.FLOORS.items():
        m, n, _ = map(int, block.split("x"))
        time = re.search(rf"^4096 4096 4096 1 NN {element} t{block}\w* 1 0 ([\d.]+)$", log, re.M)
        if kind == "hopper" and time:
            model, measured = H200_PEAK * share * waves(4096, (m, n), H200_UNITS), 2 * 4096**3 / float(time[1]) * 1e-6
            print(f"| t{block} | {model:.1f} | {measured:.1f} | {model / measured - 1:+.0%}{'' if abs(model / measured - 1) <= .15 else ' OFF'} |")


def predict():
    print(f"\n| GPU | type | row | peak | model, {SIZE}^3 | rocBLAS, published |\n|---|---|---|--:|--:|--:|")
    table = re.findall(r"^\| (\w+) \| (\w+) \| (gfx\w+) \| \d+ \| ([\d.]+)% \| ([\d.]+) \|", open(os.path.join(TOP, "docs/amd.md")).read(), re.M)
    for name, target, units, clock in GPUS:
        best = {}
        for row, kind, of, share, fast in table:
            if of == target and (target, kind) in RATES:
                peak = units * clock * RATES[target, kind] * 1e-3
                block = [int(x) for x in re.search(r"(\d+)x(\d+)", row).groups()]
                rate = peak * min(float(share) / 100, 1 / float(fast)) * waves(SIZE, block, 2 * units)
                best[kind] = max(best.get(kind, (0,)), (rate, row, peak))
        for kind, (rate, row, peak) in best.items():
            print(f"| {name} | {kind} | {row} | {peak:.1f} | {rate:.1f} | {SEEN.get((name, kind), '-')} |")


if __name__ == "__main__":
    check()
    predict()
