#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""amd_static.py MODULE READELF [TARGET ...]    what the compiler made of each AMD kernel in a file

No kernel may keep registers in slow memory, or take more fast memory by itself than a block has. With
targets, a table of their kernels is printed too. Ends with 'N passed, N failed'."""
import re
import struct
import subprocess
import sys
import tempfile

AMDGPU, FAST = 224, 64 << 10
FIELDS = {"vgpr_count": "VGPRs", "agpr_count": "AGPRs", "vgpr_spill_count": "spilled", "sgpr_spill_count": "SGPRs moved",
          "private_segment_fixed_size": "scratch", "group_segment_fixed_size": "fast memory",
          "max_flat_workgroup_size": "threads"}


def code_objects(data):
    """Every ELF file for AMD's GPUs inside."""
    at = -1
    while (at := data.find(b"\x7fELF\x02\x01\x01\x40", at + 1)) >= 0:
        machine, = struct.unpack_from("<H", data, at + 18)
        sections, = struct.unpack_from("<Q", data, at + 40)
        size, count = struct.unpack_from("<HH", data, at + 58)
        if machine == AMDGPU:
            yield data[at:at + sections + size * count]


def kernels(readelf, code):
    """(target, name, field: number) of each, from the notes as readelf prints them."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        notes = subprocess.run([readelf, "--notes", file.name], capture_output=True, text=True).stdout
    target = re.search(r"amdhsa\.target:\s*.*?(gfx\w+)", notes)
    for entry in re.split(r"\n  - ", notes)[1:]:
        name = re.search(r"\.name:\s+(\w+)", entry[entry.find("\n    .kernarg_segment_size") :])
        numbers = {field: int(x) for field, x in re.findall(r"^    \.(\w+):\s+(\d+)$", "    " + entry, re.M)}
        if name and "vgpr_count" in numbers:
            yield target[1], name[1], numbers


def short(name):
    """The template's numbers: kind, block and thread tile, element, as far as the name tells."""
    kind = re.search(r"(simt|skinny|batch|matrix)_gemm", name)
    numbers = re.findall(r"Li(\d+)E", name)
    if not kind or len(numbers) < 10:
        return re.sub(r"^_ZN\d+tg_wave\d+\d\d?", "", name)[:24]
    return f"{kind[1]} {'x'.join(numbers[:3])} {name[name.rfind('EEEE') + 4:][:1]}"


def main(module, readelf, *wanted):
    passed = failed = 0
    for code in code_objects(open(module, "rb").read()):
        for target, name, x in kernels(readelf, code):
            is_good = not x["vgpr_spill_count"] and not x["private_segment_fixed_size"] and x["group_segment_fixed_size"] <= FAST
            passed, failed = passed + is_good, failed + (not is_good)
            if not is_good or target in wanted:
                print(target, short(name) if is_good else name, *(f"{text} {x.get(field, 0)}" for field, text in FIELDS.items()), sep=" | ")
    print(f"{passed} passed, {failed + (not passed)} failed")
    return failed > 0 or not passed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
