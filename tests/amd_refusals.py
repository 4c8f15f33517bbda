#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""amd_refusals.py BUILD [EMULATOR]      HIP that cannot be used: a sentence each, and the CPU works

The device is none of those that the kernels are for: EMULATOR's, with a copy of the module in which that
target is another; ROCm is not installed.
Ends with 'N passed, N failed'."""
import os
import subprocess
import sys
import tempfile

OURS, OTHER = "gfx1030", "gfx1031"


def says(command, env, *sentences):
    """Does `tilegemm info` name the reason, and does the same call still multiply on the CPU?"""
    done = subprocess.run(command, env=dict(os.environ, **env), capture_output=True, text=True)
    line = next((x for x in done.stdout.splitlines() if "hip:" in x), done.stdout + done.stderr)
    is_good = done.returncode == 0 and all(x in line for x in sentences) and "✓ cpu" in done.stdout
    print(("" if is_good else "FAIL ") + line.strip())
    return is_good


def main(build, emulator=None):
    info = [os.path.join(build, "cli", "tilegemm"), "info"]
    name = "libtilegemm-hip.so"
    results = []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "libamdhip64.so.5"), "w") as file:
            file.write("not a library\n") # the loader looks no further
        results.append(says(info, {"LD_LIBRARY_PATH": folder}, "hip: absent", "libamdhip64.so"))
    results.append(says(info, {}, "hip: absent", "no HIP device"))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(build, name), "rb") as ours, open(os.path.join(folder, name), "wb") as file:
            file.write(ours.read().replace(OURS.encode(), OTHER.encode()))
        if emulator:
            results.append(says([emulator, OURS] + info, {"TILEGEMM_BACKEND_PATH": folder}, "hip: absent",
                                f"is a {OURS}, and the kernels are for gfx"))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
