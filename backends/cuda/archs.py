#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""archs.py NVCC ARCH ...        the -gencode flags of the architectures
archs.py NVCC --root          the toolkit's folder

ARCH: 75, 80 ...; all: those that the compiler knows and that differ in what our kernels use, and the
PTX of the newest, which later GPUs can run; native: that of the GPU here. 90 means 90a, which has all
of Hopper's instructions."""
import os
import re
import subprocess
import sys

WORTH = (75, 80, 86, 89, 90, 100, 120)


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def root(nvcc):
    return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))


def chosen(nvcc, archs):
    if archs == ["native"]:
        capability = output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
        return sorted(set(capability.replace(".", "").split()))
    if archs == ["all"]:
        known = re.findall(r"compute_(\d+)", output(nvcc, "--list-gpu-arch"))
        return [str(arch) for arch in WORTH if str(arch) in known]
    return [arch.rstrip("a") for arch in archs]


def main(nvcc, archs):
    if archs == ["--root"]:
        return print(root(nvcc))
    flags = []
    for arch in chosen(nvcc, archs):
        real = arch + "a" * (arch == "90")
        flags.append(f"-gencode=arch=compute_{real},code=sm_{real}")
    if archs == ["all"]:
        flags.append(f"-gencode=arch=compute_{arch},code=compute_{arch}")
    print(" ".join(flags))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
