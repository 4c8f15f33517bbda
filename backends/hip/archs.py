#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""archs.py HIPCC ARCH ...        the targets by name, as gfx90a
archs.py HIPCC --root          ROCm's folder

ARCH: gfx90a or 90a ...; all: those of ours that the compiler can do; native: those of the GPUs here."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

OURS = "906 908 90a 942 1030 1100 1151 1200 1201".split()
PROBE = "#include <hip/hip_runtime.h>\n__global__ void probe(unsigned *to) { *to = threadIdx.x; }\n"


def root(hipcc):
    return os.path.dirname(os.path.dirname(os.path.realpath(hipcc)))


def can_do(hipcc, arch):
    """Does it compile for the target, whose device libraries may be missing?"""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "probe.hip"), "w") as file:
            file.write(PROBE)
        command = [hipcc, "-x", "hip", "--offload-arch=" + arch, "--cuda-device-only", "-c", "probe.hip"]
        return subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


def chosen(hipcc, archs):
    if archs == ["native"]:
        lister = os.path.join(root(hipcc), "bin", "rocm_agent_enumerator")
        names = subprocess.run([lister], capture_output=True, check=True, text=True).stdout.split()
        return sorted(set(names) - {"gfx000"})
    if archs == ["all"]:
        archs = ["gfx" + arch for arch in OURS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return [arch for arch, good in zip(archs, pool.map(lambda a: can_do(hipcc, a), archs)) if good]
    return ["gfx" + arch.removeprefix("gfx") for arch in archs]


def main(hipcc, archs):
    print(root(hipcc) if archs == ["--root"] else " ".join(chosen(hipcc, archs)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
