#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""archs.py NVCC ARCH ...: the -gencode flags of the architectures; archs.py NVCC --root: its folder.

all is every one that the compiler knows from 75 to 121, of each major version those that differ in
what our kernels use, and the PTX of the newest, which later GPUs can still run."""
import os
import re
import subprocess
import sys

WORTH = (75, 80, 86, 89, 90, 100, 120)


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def known(nvcc):
    return sorted(int(x) for x in re.findall(r"compute_(\d+)\s", output(nvcc, "--list-gpu-arch") + " "))


def root(nvcc):
    return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))


def gencode(arch):
    real = "90a" if arch == "90" else arch
    return f"-gencode=arch=compute_{real},code=sm_{real}"


def main(nvcc, archs):
    if archs == ["--root"]:
        return print(root(nvcc))
    if archs == ["native"]:
        return print("-arch=native")
    newest = None
    if archs == ["all"]:
        archs = [str(arch) for arch in known(nvcc) if arch in WORTH]
        newest = archs[-1]
    flags = [gencode(arch) for arch in archs]
    if newest:
        flags.append(f"-gencode=arch=compute_{newest},code=compute_{newest}")
    print(" ".join(flags))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
