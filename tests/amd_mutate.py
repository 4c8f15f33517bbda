#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""amd_mutate.py ROCM EMULATOR      planted bugs that AMD's emulated suite must find
amd_mutate.py --fit              only looks whether each of them fits the code

Plants them in a copy of the tree, one at a time, as mutate.py does. The last line is
`N passed, N failed`."""
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INST, KERNEL, STAGE = (f"backends/hip/matrix{part}.h" for part in ("_inst", "", "_stage"))

# name, file, what stands there, what is planted; target, product
MUTATIONS = [
    ("no barrier between put and multiply", KERNEL, "S::a_panel::words);\n                __syncthreads();\n", "S::a_panel::words);\n", "gfx90a", "f32 mfma128x128x16 NN 130x70x50"),
    ("C is put where a wave still reads", KERNEL, "half = part_of % halves;\n        __syncthreads();\n", "half = part_of % halves;\n", "gfx1100", "f16 wmma128x128x32 NN 130x70x50"),
    ("a wave has 64 lanes", KERNEL, "same_in_all(thread / lanes)", "same_in_all(thread / 64)", "gfx1100", "f16 wmma64x64x32 NN 70x66x50"),
    ("a lane's rows of an instruction are another's", INST, "return lane / n * run;", "return (lane / n ^ 1) * run;", "gfx90a", "f64 mfma64x64x16 NN 70x66x50"),
    ("rows past the end of C are stored", KERNEL, "if (row >= this->rows ||", "if (row > this->rows ||", "gfx90a", "f32 mfma64x64x16 NN 33x16x16"),
    ("what lies past the end of k is no zero", STAGE, "got[e] = k < k_left ? got[e] : Elem(0);", "", "gfx90a", "bf16 mfma64x64x32 TN 33x16x17"),
    ("lines change places on the way in only", KERNEL, "(i * Side) ^ Panel::swizzle(u)", "i * Side", "gfx1100", "i8 wmma128x128x64 NT 33x40x64"),
    ("a lane's FMAs take another lane's row of A", INST, "int a_row(int lane) { return lane / n; }", "int a_row(int lane) { return lane % n; }", "gfx1100", "f32 fma128x128x16_32 NN 70x66x50"),
]


def is_caught(emulator, folder, target, product):
    env = dict(os.environ, TG_TEST_BACKEND="hip", AMD_EMULATOR_RACES="1", AMD_EMULATOR_ALIGN="16")
    done = subprocess.run([emulator, target, os.path.join(folder, "tests", "test_gemm"), "hip"] + product.split(),
                          env=env, capture_output=True, text=True)
    return done.returncode != 0 or "1 passed, 0 failed" not in done.stdout


def build(folder):
    return ["ninja", "-C", folder, "--quiet", "libtilegemm-hip.so", "tests/test_gemm"]


def fits():
    unfit = []
    for name, file, old, *_ in MUTATIONS:
        with open(os.path.join(TOP, file), encoding="utf-8") as stored:
            if stored.read().count(old) != 1:
                unfit.append(name)
    for name in unfit:
        print(f"{name}: its text does not stand once in the code")
    return not unfit


def main(rocm, emulator):
    passed = 0
    with tempfile.TemporaryDirectory() as temp:
        tree = os.path.join(temp, "tree")
        shutil.copytree(TOP, tree, symlinks=True, ignore=shutil.ignore_patterns(".*", "build*"))
        folders = {target: os.path.join(temp, target) for *_, target, _ in MUTATIONS}
        for target, folder in folders.items():
            subprocess.run(["meson", "setup", folder, tree, "-Dbackends=hip", "-Darch_cpu=portable", "-Dhome_hip=" + rocm,
                            "-Darch_hip=" + target], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(build(folder), check=True)
        were_red = [is_caught(emulator, folders[target], target, product) for *_, target, product in MUTATIONS]
        for (name, file, old, new, target, product), was_red in zip(MUTATIONS, were_red):
            path = os.path.join(tree, file)
            with open(path, encoding="utf-8") as stored:
                text = stored.read()
            with open(path, "w", encoding="utf-8") as stored:
                stored.write(text.replace(old, new))
            folder, stands = folders[target], text.count(old) == 1
            is_built = subprocess.run(build(folder)).returncode == 0
            is_good = stands and not was_red and is_built and is_caught(emulator, folder, target, product)
            passed += is_good
            print(f"{name:50} {'caught' if is_good else 'RED BEFORE' if was_red else 'NOT CAUGHT'}", flush=True)
            with open(path, "w", encoding="utf-8") as stored:
                stored.write(text)
    print(f"{passed} passed, {len(MUTATIONS) - passed} failed")
    return passed < len(MUTATIONS)


if __name__ == "__main__":
    if sys.argv[1:] == ["--fit"]:
        sys.exit(not fits())
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
