#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the machine code of the CUDA module with no GPU.

    tests/sass.py CUOBJDUMP libtilegemm-cuda.so

Of the time of a large product, what is not multiply-adds is lost. For the kernels of FLOORS, in the
code of every architecture, this finds the loop with the highest share of multiply-adds among its
instructions, and counts also their share of the issue slots if each of the two register banks gives
one operand a cycle (f32). A kernel below its floor is a failure."""
import re
import subprocess
import sys

# kernel, block, type: the least shares, of instructions and of slots
FLOORS = {
    ("hopper", "128x128x32", "f32"): (.94, .91),
    ("hopper", "64x128x64", "f32"): (.94, .90),
    ("hopper", "64x64x64", "f32"): (.94, .90),
    ("hopper", "48x128x64", "f32"): (.92, .87),
    ("hopper", "32x64x64", "f32"): (.88, .80),
    ("hopper", "16x64x64", "f32"): (.82, .73),
    ("simt", "128x128x8", "f32"): (.91, .66),
    ("simt", "128x64x16", "f32"): (.89, .72),
    ("simt", "64x64x32", "f32"): (.91, .65),
    ("simt", "128x64x8", "f64"): (.80, 0),
    ("batch", "32x32x16", "f32"): (.83, .67),
    ("batch", "64x64x16", "f32"): (.84, .68),
}
MANY_F64_UNITS = ("sm_80", "sm_90a", "sm_100")  # elsewhere f64 waits for its few units
KERNELS = (("9tg_hopper4gemm", "hopper"), ("2tg9simt_gemm", "simt"), ("2tg10batch_gemm", "batch"))
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([^;]*?)\s*;", re.M)


def loops(code):
    """The instructions between each backward branch and its target."""
    place = {int(at, 16): number for number, (at, _) in enumerate(code)}
    for number, (at, text) in enumerate(code):
        jump = re.match(r"BRA(?:\.\w+)* (?:\S+, )?`?\(?(?:\.L_x_\d+|0x([0-9a-f]+))", text)
        if jump and jump.group(1) and int(jump.group(1), 16) < int(at, 16):
            first = place.get(int(jump.group(1), 16))
            if first is not None:
                yield [text for _, text in code[first:number + 1]]


def lost_to_banks(loop, name):
    """Slots lost because two operands lie in one bank; what the instruction before left in the
    reuse cache is not read."""
    lost, waiting, kept = 0, [0, 0], {}
    for text in loop:
        if not text.startswith(name):
            kept, waiting = {}, [max(0, reads - 1) for reads in waiting]
            continue
        operands = [operand.strip() for operand in text.split(None, 1)[1].split(",")[1:4]]
        registers = [re.match(r"-?\|?R(\d+)", operand) for operand in operands]
        for slot, register in enumerate(registers):
            if register and kept.get(slot) != register.group(1):
                waiting[int(register.group(1)) % 2] += 1
        kept = {slot: register.group(1) for slot, register in enumerate(registers)
                if register and ".reuse" in operands[slot]}
        over = max(0, max(waiting) - 2)
        lost += over
        waiting = [max(0, reads - over - 1) for reads in waiting]
    return lost


def shares(code, name):
    best = max(loops(code), key=lambda loop: sum(text.startswith(name) for text in loop) / len(loop),
               default=None)
    if best is None:
        return 0, 0
    work = sum(text.startswith(name) for text in best)
    return work / len(best), work / (len(best) + lost_to_banks(best, name))


def kernels(dump):
    """(architecture, kernel, block, type, instructions) of those that are judged."""
    for of_arch in re.split(r"\narch = ", dump)[1:]:
        arch = of_arch.split("\n", 1)[0]
        for text in re.split(r"\n\s+Function : ", of_arch)[1:]:
            name = text.split("\n", 1)[0]
            kernel = next((short for mangled, short in KERNELS if mangled in name), None)
            block = "x".join(re.findall(r"Li(\d+)E", name)[:3])
            kind = "f64" if re.search(r"Ed(Xtl|LN)", name) else "f32"
            judged = kind == "f32" or arch in MANY_F64_UNITS
            if judged and (kernel, block, kind) in FLOORS:
                yield arch, kernel, block, kind, INSTRUCTION.findall(text)


def main(cuobjdump, module):
    dump = subprocess.run([cuobjdump, "-sass", module], stdout=subprocess.PIPE, check=True, text=True)
    worst, failed = {}, 0
    for arch, kernel, block, kind, code in kernels(dump.stdout):
        key = arch, kernel, block, kind
        worst[key] = min(worst.get(key, (1, 1)), shares(code, "FFMA" if kind == "f32" else "DFMA"))
    for (arch, *key), (share, slots) in sorted(worst.items()):
        floor = FLOORS[tuple(key)]
        is_low = share < floor[0] or slots < floor[1]
        failed += is_low
        print(f"{arch:8} {key[0]:7}{key[1]:11} {key[2]}  {share:6.1%} {slots:6.1%}"
              + (f"  BELOW {floor[0]:.0%} {floor[1]:.0%}" if is_low else ""))
    missing = set(FLOORS) - {tuple(key) for _, *key in worst}
    for key in sorted(missing):
        print("no kernel:", *key)
    failed += len(missing)
    print(f"{len(worst) + len(missing) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
