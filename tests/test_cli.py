#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the program: python3 tests/test_cli.py PROGRAM [TEST ...]

Every command, on files that this test writes itself (NumPy is used too where it is installed). A
failure prints the program's command line and the line that repeats the test, whose files are then
kept. Closes with "N passed, N failed". cli_suite.py has what is not about a command.
"""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.dom.minidom

from cli_suite import (HERE, PROGRAM, UTF8, Run, build_fake_gpu, build_wrong, integers, load,
                       main, odd_files, on_terminal, product, save, save_zeros, start, transpose)

try:
    import numpy
except ImportError:
    numpy = None

COMMANDS = ["info", "tiles", "explain", "ladder", "multiply", "bench", "check"]


def test_help(t):
    overview = t.good("--help", says="usage: tilegemm COMMAND")
    version = t.good("--version", says=r"^tilegemm \d+\.\d+\.\d+\n$")
    t.good("-h", says="usage")
    t.good("help", says="usage")
    for command in COMMANDS:
        t.expect(f"\n  {command} " in overview.out, f"--help names {command}", overview)
        first = t.good(command, "--help", says=f"^usage: tilegemm {command}")
        t.expect(t.good("help", command).out == first.out, "help COMMAND is COMMAND --help", first)
    t.expect(version.out.split()[1] in t.good("info").out, "info tells the version", version)


def test_usage(t):
    t.refused(2, "which command")
    t.refused(2, 'no command "mulitply"', "mulitply")
    t.refused(2, 'no option "--frob"', "--frob")
    t.refused(2, 'no option "--frob"', "info", "--frob")
    t.refused(2, 'no option "--trans-a"', "ladder", "--trans-a")
    t.refused(2, 'no argument such as "now"', "check", "now")
    t.refused(2, "--type needs a value", "tiles", "--type")
    t.refused(2, '--type takes f32 or f64, not "f16"', "tiles", "--type", "f16")
    t.refused(2, "--json takes no value", "bench", "--json=1")
    for text in ["0", "-1", "1.5", "2x", "", "99999999999999999999", " 2", "+2"]:
        t.refused(2, "--threads takes a whole number", "info", f"--threads={text}")
    for text in ["x", "", "nan", "inf", "1e999", "1 "]:
        t.refused(2, "--alpha takes a finite number", "multiply", "a", "b", "-o", "c",
                  f"--alpha={text}")
    for text in ["0", "1x2", "1x2x3x4", "x", "axbxc", "1xx3", "99999999999", "12345678901234567890",
                 "1x2x", "64..", "..64", "64..32", "0..4", "9" * 100]:
        t.refused(2, "is no shape", "bench", text)
    t.refused(2, "is no shape", "explain", "1", "2", "b")
    t.refused(2, "a shape is", "explain", "1", "2")
    t.refused(2, "takes a shape", "explain")
    t.refused(2, "--trans takes", "bench", "64", "--trans", "NX")
    t.refused(2, "--peer takes NAME=LIB", "bench", "64", "--peer", "libm.so.6")
    t.refused(1, "nowhere", "info", "--backend", "nowhere")
    t.refused(1, "nowhere", "check", "--backend", "nowhere")
    t.refused(1, "TILEGEMM_TILE", "check", env={"TILEGEMM_TILE": "junk"})


def test_unwritable_output(t):
    with open("/dev/full", "w") as full:
        run = start("tiles", stdout=full, stderr=subprocess.PIPE)
        said = run.communicate()[1]
    t.expect(run.returncode == 1 and b"could not be written" in said, "a full stdout is an error")


def test_info(t):
    run = t.good("info", says="registers")
    for word in ["cpu", "cuda", "hip", "vector", "L1 cache", "units", "instructions", "portable"]:
        t.expect(word in run.out, f"info tells {word}", run)
    only = t.good("info", "--backend", "cpu")
    t.expect("cuda" not in only.out, "--backend limits what is told", only)


def rows_of_tiles():
    return re.findall(r"^(\w+) +\d+x\d+x\d+/", Run("tiles").out, re.M)


def test_tiles(t):
    for kind in ["f32", "f64"]:
        run = t.good("tiles", "--type", kind, env=UTF8)
        for row in ["v0_global", "v7_double_buffer", "k5_2d", "k10_warp", "t24x40x3", "c6x8"]:
            line = re.search(rf"^{row} .*", run.out, re.M)
            t.expect(line and "✓" in line[0], f"{row} runs somewhere", run)
        for refused in re.findall(r"^(\w+) .*·", run.out, re.M):
            t.expect(re.search(rf"^  {refused} +\S.*\d", run.out, re.M),
                     f"the refusal of {refused} is a sentence", run)
    t.expect(Run("tiles", env={"LC_ALL": "C"}).out.isascii(), "plain ASCII without UTF-8")


def test_explain(t):
    tile = "64x64x16/32x32/4x4/4/2"
    run = t.good("explain", "1024", "1024", "1024", "--tile", tile, "--threads", 1)
    naive, tiled = 2 * 1024**3 + 1024**2, 2 * 16 * 1024**2 + 1024**2
    for says in [tile, r"blocks +256 \(16 x 16\), each walks k in 64 steps of 16",
                 r"waves +1024: 1024 warp tiles on 1 threads", "8 x 8 units", "2 x 2 warps",
                 r"staged +16 KiB", "registers +4 of", "naive, 132 MiB tiled",
                 f"{naive / tiled:.1f} times less", f"intensity +{2 * 1024**3 / tiled / 4:.2f}",
                 "roofline +(compute|memory) bound", r"\|###\|", "2.147 GFLOP"]:
        t.expect(re.search(says, run.out), f"explain says {says!r}", run)
    for args in [("7", "1", "3000"), ("1x1x1",), ("100000",), ("513", "--type", "f64"),
                 ("64", "--tile", "v0_global")]:
        t.good("explain", *args, says="roofline")
    t.refused(1, "nonsense", "explain", "64", "--tile", "nonsense")
    t.refused(1, "slices", "explain", "64", "--tile", "8x8x8/8x8/4x4/4/1/slices3")
    t.expect(max(map(len, run.out.split("\n"))) <= 100, "it is at most 100 columns wide", run)


def test_ladder(t):
    run = t.good("ladder", "64", "70", "66", "--rounds", 2, env=UTF8)
    for rung in ["v0_global", "v1_shared_8", "v1_shared_16", "v1_shared_32x16", "v1_shared",
                 "v2_work", "v3_vec4", "v4_reg", "v5_reg_vec4", "v6_a_k_major",
                 "v7_double_buffer", "k5_2d", "k10_warp", "the chooser"]:
        t.expect(re.search(rf"^{rung} .* \d.*✓", run.out, re.M), f"{rung} is timed and exact", run)
    t.good("ladder", "33", "--rounds", 1, "--type", "f64", "--threads", 1)


def test_ladder_once_and_json(t):
    t.expect(t.good("ladder", "64", "--once", "v4_reg").out == "", "--once says nothing")
    t.good("ladder", "64", "--once", "the chooser")
    t.refused(1, "--once takes a row", "ladder", "64", "--once", "v99")
    t.refused(1, "--counted needs --backend cuda", "ladder", "64", "--counted")
    t.refused(2, "one --peer", "ladder", "64", "--peer", "a=b", "--peer", "c=d")
    run = t.good("ladder", "40", "--rounds", 1, "--json")
    rungs = {rung["rung"]: rung for rung in json.loads(run.out)["ladder"]}
    t.expect(all(rung["exact"] and rung["gflops"] > 0 for rung in rungs.values()), "rungs", run)
    t.expect(rungs["v1_shared"]["staged_bytes"] == 2 * 32 * 32 * 4, "what is staged", run)


def test_tables(t):
    script = os.path.join(HERE, "..", "docs", "table.py")

    def run(*args):
        return subprocess.run([sys.executable, script, "--results", ".", *args, "page.md"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with open("page.md", "w") as file:
        file.write("# A\n<!-- table race -->\n<!-- end -->\n"
                   "<!-- table steps -->\nold\n<!-- end -->\n")
    t.expect("no log of race" in run().stdout, "a log that is missing is an error")
    for name, args in [("2001-01-01-race", ["bench", "8", "9x8x7", "--batch", "3"]),
                       ("2000-01-01-race", ["bench", "5"]), ("steps", ["ladder", "16"])]:
        with open(name + ".json", "w") as file:
            file.write(t.good(*args, "--rounds", 1, "--json").out)
    t.expect(run("--check").returncode == 1, "--check sees that it is stale")
    t.expect(run().returncode == 0 and run("--check").returncode == 0, "then it is up to date")
    page = open("page.md").read()
    for says in [r"^\| 8 · 3 \| [\d.]+ \| \d+ % \|$", r"^\| 9 × 8 × 7 · 3 \|", "2001-01-01-race",
                 r"^\| `v0_global` \| .* 1.0 ", r"^\| geometric mean "]:
        t.expect(re.search(says, page, re.M), f"the page says {says!r}")
    t.expect("old" not in page and page.startswith("# A\n<!-- table race -->\n"), "what was there")


def test_check(t):
    run = t.good("check", says="all exactly right", env=UTF8)
    refused = re.search(r"^refused by cpu:\n((?:  .*\n)*)", Run("tiles").out, re.M)
    refused = re.findall(r"^  (\w+)", refused[1], re.M) if refused else []
    for row in set(rows_of_tiles()) - set(refused):
        t.expect(re.search(rf"^{row} .*✓", run.out, re.M), f"{row} is checked", run)
    t.expect("✗" not in run.out, "nothing is wrong", run)
    one = t.good("check", "--tile", "v4_reg", "--report", says="all exactly right")
    t.expect("L1 cache" in one.out, "--report describes the machine", one)


def test_multiply_kinds(t):
    a, b = integers(17, 13, 1), integers(13, 9, 2)
    wanted = product(a, b)
    for kind in ["<f4", "<f8"]:
        for trans_a in [False, True]:
            for trans_b in [False, True]:
                for orders in ["CC", "CF", "FC", "FF"]:
                    save("a.npy", transpose(a) if trans_a else a, kind, orders[0])
                    save("b.npy", transpose(b) if trans_b else b, kind, orders[1])
                    args = ["--trans-a"] * trans_a + ["--trans-b"] * trans_b
                    run = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--verify", *args,
                                 says="exactly equal")
                    t.expect(load("c.npy") == (wanted, kind), f"{kind} {orders} {args}", run)
    t.expect(sorted(os.listdir(".")) == ["a.npy", "b.npy", "c.npy"], "no other file is left")


def test_multiply_factors(t):
    a, b, c = integers(5, 70, 3), integers(70, 33, 4), integers(5, 33, 5)
    save("a.npy", a, version=2)
    save("b.npy", b, version=3, order="F")
    save("c0.npy", c, order="F")
    for args, alpha, beta in [(["--alpha", "-2"], -2, 0), (["--c", "c0.npy"], 1, 1),
                              (["--c", "c0.npy", "--beta=-3", "--alpha=0.5"], 0.5, -3),
                              (["--c", "c0.npy", "--beta", "0"], 1, 0),
                              (["--alpha", "0", "--c", "c0.npy"], 0, 1)]:
        run = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--verify", *args)
        t.expect(load("c.npy")[0] == product(a, b, alpha, beta, c), f"{args}", run)
    for row in ["v0_global", "t24x40x3", "k10_warp", "48x32x8/12x16/4x4/4/2"]:
        run = t.good("multiply", "a.npy", "b.npy", "--output", "c.npy", "--tile", row)
        t.expect(load("c.npy")[0] == product(a, b), f"tiling {row}", run)
    quiet = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--quiet", "--verify")
    t.expect(quiet.out == "", "--quiet is quiet", quiet)


def test_multiply_in_place(t):
    a = integers(20, 20, 6)
    save("a.npy", a)
    os.chmod("a.npy", 0o640)
    run = t.good("multiply", "a.npy", "a.npy", "--c", "a.npy", "-o", "a.npy", "--verify")
    t.expect(load("a.npy")[0] == product(a, a, 1, 1, a), "the output may be an input", run)
    t.expect(os.stat("a.npy").st_mode & 0o777 == 0o640, "the file keeps its mode", run)
    t.expect(os.listdir(".") == ["a.npy"], "no other file is left")


def test_multiply_empty(t):
    for m, n, k in [(0, 4, 3), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1)]:
        save("a.npy", [[1] * k] * m, shape=(m, k))
        save("b.npy", [[1] * n] * k, shape=(k, n))
        run = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--verify")
        t.expect(load("c.npy")[0] == [[float(k)] * n] * m, f"{m} x {n} x {k}", run)


def test_multiply_headers(t):
    a = integers(4, 3, 7)
    save("b.npy", transpose(a))
    for head in ['{"shape":(4,3),"fortran_order":False,"descr":"<f4"}',
                 "{'shape': (4L, 3L), 'fortran_order': False, 'descr': '<f4'}",
                 "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 4 , 3 , ) , }"]:
        save("a.npy", a, header=head)
        run = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--verify")
        t.expect(load("c.npy")[0] == product(a, transpose(a)), head, run)
    with open("a.npy", "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0] + 3
    with open("a.npy", "wb") as file:
        file.write(data[:8] + struct.pack("<H", length) + data[10:7 + length] + b"   " +
                   data[7 + length:])
    run = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--verify")
    t.expect(load("c.npy")[0] == product(a, transpose(a)), "elements that are not aligned", run)


def test_multiply_odd_files(t):
    save("a.npy", integers(4, 4, 8))
    odd_files()
    for name, says in [
            ("header", "truncated"), ("magic", "not a NumPy"), ("data", "truncated"),
            ("more", "not one matrix"), ("big", "big-endian"), ("int", "integers"),
            ("half", "<f2"), ("cube", "3 dimensions"), ("vector", "vector of 16"),
            ("scalar", "0 dimensions"), ("huge", "more than memory"), ("huger", "header"),
            ("negative", "header"), ("junk", "header"), ("twice", "header"), ("missing", "header"),
            ("record", "header"), ("open", "header"), ("version", "version 9.0"),
            ("empty", "empty"), ("text", "not a NumPy"), ("folder", "not a regular file"),
            ("pipe", "not a regular file"), ("nowhere", "No such file")]:
        for files in [(f"{name}.npy", "a.npy"), ("a.npy", f"{name}.npy")]:
            t.refused(1, rf"{name}\.npy .*{says}", "multiply", *files, "-o", "c.npy")
        t.refused(1, rf"{name}\.npy .*{says}", "multiply", "a.npy", "a.npy", "--c", f"{name}.npy",
                  "-o", "c.npy")
    t.expect(not glob.glob("c.npy*"), "no output is left behind")


def test_multiply_mismatch(t):
    save("a.npy", integers(4, 5, 1))
    save("b.npy", integers(6, 7, 2))
    save("d.npy", integers(5, 7, 2), "<f8")
    save("c0.npy", integers(5, 5, 2))
    t.refused(1, "a.npy is 4 x 5 and b.npy is 6 x 7", "multiply", "a.npy", "b.npy", "-o", "c.npy")
    t.refused(1, "transpose of b.npy is 7 x 6", "multiply", "a.npy", "b.npy", "-o", "c.npy",
              "--trans-b")
    t.refused(1, "a.npy holds f32 and d.npy holds f64", "multiply", "a.npy", "d.npy", "-o", "c.npy")
    t.refused(1, "c0.npy is 5 x 5 and the product is 4 x 4", "multiply", "a.npy", "a.npy",
              "--trans-b", "--c", "c0.npy", "-o", "c.npy")
    t.refused(2, "needs -o", "multiply", "a.npy", "b.npy")
    t.refused(2, "two files", "multiply", "a.npy", "-o", "c.npy")
    t.refused(2, "--beta needs --c", "multiply", "a.npy", "b.npy", "-o", "c.npy", "--beta", "2")
    t.refused(1, "thread", "multiply", "a.npy", "a.npy", "--trans-b", "-o", "c.npy", "--tile",
              "8x8x8/8x8/0x4/4/1")
    t.expect(not glob.glob("c.npy*"), "no output is left behind")


def test_multiply_outputs(t):
    save("a.npy", integers(40, 40, 1))
    before = sorted(os.listdir("."))
    multiply = ["multiply", "a.npy", "a.npy", "-o"]
    t.refused(1, "nowhere/c.npy cannot be written: No such", *multiply, "nowhere/c.npy")
    t.refused(1, "cannot be written: Not a directory", *multiply, "a.npy/c.npy")
    t.refused(1, "not a regular file", *multiply, ".")
    t.refused(1, "/dev/null is not a regular file", *multiply, "/dev/null")
    t.refused(1, "cannot be written: File name too long", *multiply, "c" * 300)
    t.refused(1, "c.npy cannot be written: File too large", *multiply, "c.npy", with_limit=4096)
    t.expect(sorted(os.listdir(".")) == before, "no file is left behind")


def start_slow(t, **keys):
    """A multiplication that takes long enough to be disturbed, once it has begun to write."""
    save_zeros("a.npy", 2000, 2000)
    run = start("multiply", "a.npy", "a.npy", "-o", "c.npy", "--tile", "v1_shared_8", "--threads",
                1, **keys)
    until = time.time() + 60
    while not glob.glob("c.npy*") and run.poll() is None and time.time() < until:
        time.sleep(0.01)
    t.expect(run.poll() is None, "the work lasts long enough to be disturbed")
    return run


def test_multiply_interrupted(t):
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        run = start_slow(t, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        run.send_signal(number)
        t.expect(run.wait(timeout=60) == -number, f"it ends by signal {number}")
        t.expect(os.listdir(".") == ["a.npy"], "no file is left behind")


def test_multiply_shrinking_input(t):
    run = start_slow(t, stderr=subprocess.PIPE)
    os.truncate("a.npy", 1000)
    said = run.communicate(timeout=60)[1]
    t.expect(run.returncode == 1 and b"became shorter" in said, "it ends with a sentence")
    t.expect(os.listdir(".") == ["a.npy"], "no file is left behind")


def test_multiply_numpy(t):
    if not numpy:
        print("test_multiply_numpy is left out: there is no NumPy")
        return
    random_numbers = numpy.random.default_rng(1)
    for kind in ["f4", "f8"]:
        a = random_numbers.standard_normal((211, 150)).astype(kind)
        b = random_numbers.standard_normal((150, 97)).astype(kind)
        numpy.save("a.npy", a)
        numpy.save("b.npy", numpy.asfortranarray(b))
        run = t.good("multiply", "a.npy", "b.npy", "-o", "c.npy", "--verify", says="within the")
        c = numpy.load("c.npy")
        t.expect(c.dtype == a.dtype and c.shape == (211, 97), "the type and shape", run)
        t.expect(numpy.allclose(c, a @ b, rtol=1e-4, atol=1e-4), "NumPy's product", run)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return
    digits = load_digits().data.astype("f4")
    numpy.save("digits.npy", digits)
    run = t.good("multiply", "digits.npy", "digits.npy", "--trans-b", "-o", "c.npy", "--verify",
                 says="exactly equal")
    t.expect((numpy.load("c.npy") == digits @ digits.T).all(), "X times its transpose", run)


def test_bench(t):
    run = t.good("bench", "33", "16..64", "5x70x9", "--rounds", 2, "--trans", "TN", "--type", "f64")
    for shape in ["33x33x33", "16x16x16", "32x32x32", "64x64x64", "5x70x9", "geometric mean"]:
        t.expect(re.search(rf"^{shape} .* %", run.out, re.M), f"{shape} has its row", run)
    with open("shapes", "w") as file:
        file.write("# shapes\n40   # a cube\n\n  8x9x10\n16..32\n")
    run = t.good("bench", "--shapes", "shapes", "--rounds", 2)
    for shape in ["40x40x40", "8x9x10", "16x16x16", "32x32x32"]:
        t.expect(re.search(rf"^{shape} ", run.out, re.M), f"{shape} comes from the file", run)
    run = t.good("bench", "40", "--tile", "all", "--rounds", 1)
    for row in ["v0_global", "k5_2d", "k10_warp", "t24x40x3"]:
        t.expect(re.search(rf"^40x40x40 +{row} ", run.out, re.M), f"all has {row}", run)
    for text, says in [("64\n64x\n", "shapes, line 2: .*no shape"),
                       ("64 64 64\n", "line 1: \"64 64\" is neither"),
                       ("64 NN *0\n", "is neither"), ("# none\n", "has no shape in it")]:
        with open("shapes", "w") as file:
            file.write(text)
        t.refused(1, says, "bench", "--shapes", "shapes")
    t.refused(1, "cannot be read", "bench", "--shapes", "nowhere")
    t.refused(1, "nowhere.so", "bench", "64", "--peer", "x=./nowhere.so")
    t.refused(1, "has no ", "bench", "64", "--peer", "x=libm.so.6")
    t.refused(1, "no memory", "bench", "2000000000x2000000000x1")


def test_bench_json(t):
    run = t.good("bench", "64", "3x4x5", "--rounds", 3, "--json", "--threads", 1)
    report = json.loads(run.out)
    t.expect(report["correct"] and report["type"] == "f32" and report["machine"], "head", run)
    t.expect([(r["m"], r["n"], r["k"]) for r in report["results"]] == [(64,) * 3, (3, 4, 5)],
             "the shapes", run)
    one = report["results"][0]["runs"][0]
    t.expect(0 < one["best_ms"] <= one["median_ms"] and one["samples"] == 3, "the times", run)
    t.expect(abs(one["gflops"] * one["median_ms"] * 1e6 / (2 * 64**3) - 1) < 1e-3, "GFLOP/s", run)
    t.expect(one["correct"] and one["checked"] == 4096, "the result is checked", run)
    t.expect(one["splits"] == 1 and one["tail"] == "whole" and "x" in one["tile"], "the plan", run)
    t.expect(report["rounds"] == 3 and "--json" in report["command"] and
             re.match(r"\d{4}-\d\d-\d\d ", report["date"]), "the conditions", run)


def test_bench_lists(t):
    with open("shapes", "w") as file:
        file.write("8x9x10 NT *5 attention, scores\n16 *3\n11x5x7 TT a label\n6x7x8\n")
    run = t.good("bench", "20x1x3", "--shapes", "shapes", "--rounds", 1, "--json", "--trans", "TN",
                 "--batch", 2)
    found = [(r["m"], r["n"], r["k"], r["batch"], r["trans"], r["label"])
             for r in json.loads(run.out)["results"]]
    t.expect(found == [(8, 9, 10, 5, "NT", "attention, scores"), (16, 16, 16, 3, "TN", ""),
                       (11, 5, 7, 2, "TT", "a label"), (6, 7, 8, 2, "TN", ""),
                       (20, 1, 3, 2, "TN", "")], "lines have a transpose, a batch, a label", run)
    checked = [r["runs"][0]["checked"] for r in json.loads(run.out)["results"]]
    t.expect(checked == [8 * 9 * 5, 16 * 16 * 3, 110, 84, 40], "every item is checked", run)
    table = t.good("bench", "--shapes", "shapes", "--rounds", 1)
    t.expect(re.search(r"^8x9x10 NT \*5 .* attention, scores$", table.out, re.M), "table", table)
    t.refused(2, "--batch takes", "bench", "8", "--batch", "0")
    for path in glob.glob(os.path.join(HERE, "..", "docs", "shapes", "*.txt")):
        lines = [line.split("#")[0].strip() for line in open(path)]
        t.expect(all(re.match(r"$|\d[\dx.]*(\s+[NT]{2})?(\s+\*\d+)?(\s+[^\d\s*].*)?$", line)
                     for line in lines), f"{path} is a list of problems")


def is_plot(path, *words):
    text = xml.dom.minidom.parse(path).toxml()
    return all(word in text for word in words)


def test_plots(t):
    run = t.good("bench", "16..64", "9x8x7", "--rounds", 1, "--roofline", "roof.svg")
    t.expect(is_plot("roof.svg", "peak ", "memory ", "64x64x64", "9x8x7"), "roofline", run)
    run = t.good("ladder", "32", "--rounds", 1, "--plot", "bars.svg")
    t.expect(is_plot("bars.svg", "peak ", "v0_global", "k10_warp", "the chooser"), "bars", run)
    t.refused(1, "nowhere/x.svg cannot be written", "bench", "8", "--rounds", 1, "--roofline",
              "nowhere/x.svg")
    t.refused(1, "nowhere/x.svg cannot be written", "ladder", "8", "--rounds", 1, "--plot",
              "nowhere/x.svg")
    t.refused(1, "/dev/full cannot be written", "ladder", "8", "--rounds", 1, "--plot", "/dev/full")


def test_bench_peer(t):
    libraries = os.environ.get("TILEGEMM_TEST_PEER", "").split()
    if numpy:
        libraries += glob.glob(os.path.join(os.path.dirname(numpy.__file__), "..", "numpy.libs",
                                            "libscipy_openblas*.so*"))
    for library in libraries:
        for kind in ["f32", "f64"]:
            run = t.good("bench", "64", "10x70x33", "--rounds", 2, "--type", kind, "--trans", "NT",
                         "--peer", f"other={library}", "--json")
            report = json.loads(run.out)
            runs = report["results"][1]["runs"]
            t.expect([r["name"] for r in runs] == ["tilegemm", "other"], "both run", run)
            t.expect(all(r["correct"] for r in runs), "both are right", run)
            t.expect(report["geometric_means"]["peers"][0]["median_ratio"] > 0, "ratio", run)
    if not libraries:
        print("test_bench_peer is left out: name libraries in TILEGEMM_TEST_PEER")


def test_fake_gpu(t):
    env = build_fake_gpu()
    gpu = ["--backend", "cuda"]
    info = t.good("info", *gpu, env=env, says="a unit holds +2048 threads, 65536 regis")
    t.expect("1980 MHz, memory 3201 MHz, 698 W, held back by power cap, heat" in info.out, "clocks",
             info)
    run = t.good("explain", "1000x1000x512", "--tile", "64x64x16/32x32/4x4/4/2", *gpu, env=env)
    for says in [r"blocks +256 \(16 x 16\)", r"waves +21.33: 256 blocks on 6 units, 2 at once",
                 r"\[########\] \.\.\. \[##\.{6}\]", "tail +4 of 12 places, .* 67 % idle",
                 r"threads +128 +2048 +16 +256",
                 r"registers +44\+ a thread +65536 +10 +96 a thread",
                 r"fast memory +16 KiB +228 KiB +13 +32 KiB",
                 "10 blocks at once by formula, 2 by the driver: 16 of 64"]:
        t.expect(re.search(says, run.out), f"explain says {says!r}", run)
    t.good("check", "--tile", "v5_reg_vec4", *gpu, env=env, says="all exactly right")
    save("a.npy", integers(30, 30, 1))
    t.good("multiply", "a.npy", "a.npy", "-o", "c.npy", "--verify", *gpu, env=env, says="exactly")
    for kind, library in [("f32", "cublas.so"), ("f64", "narrow.so")]:
        bench_with_cublas(t, gpu + ["--type", kind, "--peer", f"cublas=./{library}"], env)
    t.refused(1, "has no cublasCreate_v2", "bench", "8", *gpu, "--peer", "x=libm.so.6", env=env)
    t.refused(1, "nowhere.so", "ladder", "8", *gpu, "--peer", "x=./nowhere.so", env=env)


def test_real_gpu(t):
    env = {**UTF8, "CUDA_VISIBLE_DEVICES": "0"}
    if Run("explain", "64", "--backend", "cuda", env=env).status != 0:
        print("test_real_gpu is left out: there is none")
        return
    gpu = ["--backend", "cuda"]
    peer = os.environ.get("TILEGEMM_TEST_CUBLAS")
    peer = ["--peer", f"cublas={peer}"] if peer else []
    t.good("check", *gpu, env=env, says="all exactly right")
    t.good("info", *gpu, env=env, says="a unit holds")
    t.good("tiles", *gpu, env=env, says="v0_global .*✓")
    t.good("ladder", "300x200x100", *gpu, *peer, "--plot", "bars.svg", env=env, says="k10_warp .*✓")
    t.good("explain", "1000x900x800", *gpu, env=env, says="by the driver")
    save("a.npy", integers(30, 30, 1))
    t.good("multiply", "a.npy", "a.npy", "-o", "c.npy", "--verify", *gpu, env=env, says="exactly")
    for kind in ["f32", "f64"]:
        bench_on_gpu(t, [*gpu, *peer, "--type", kind], env, bool(peer))
    if shutil.which("ncu"):
        run = t.good("ladder", "512", *gpu, "--counted", "--json", env=env)
        t.expect(all(r["counted_bytes"] > 0 for r in json.loads(run.out)["ladder"]), "counts", run)


def bench_on_gpu(t, args, env, has_peer):
    with open("shapes", "w") as file:
        file.write("100 NN\n128x120x136 NT\n99x77x55 TN\n64x96x32 TT *30\n1x999x555\n7x1x1 *2\n")
    run = t.good("bench", "--shapes", "shapes", "--rounds", 2, "--json", *args, env=env)
    runs = [one for result in json.loads(run.out)["results"] for one in result["runs"]]
    t.expect(len(runs) == 6 + 6 * has_peer and all(one["correct"] for one in runs), "right", run)
    t.good("bench", "512", "--tile", "all", "--rounds", 2, "--roofline", "roof.svg", *args, env=env,
           says="the chooser reaches")


def bench_with_cublas(t, args, env):
    with open("shapes", "w") as file:
        file.write("24x31x17 NN\n24x31x17 NT\n24x31x17 TN\n24x31x17 TT *3\n1x9x5\n9x1x1 *2\n")
    run = t.good("bench", "--shapes", "shapes", "--rounds", 1, "--json", *args, env=env)
    report = json.loads(run.out)
    runs = [one for result in report["results"] for one in result["runs"]]
    t.expect(len(runs) == 12 and all(one["correct"] for one in runs), "all are right", run)
    t.expect([one["name"] for one in runs[:2]] == ["tilegemm", "cublas"], "both run", run)
    t.expect(runs[0]["ratios"][0]["peer"] == "cublas" and runs[0]["ratios"][0]["median"] > 0,
             "the ratios", run)
    t.expect(report["clocks_before"]["sm_mhz"] == 1980 and
             report["clocks_after"]["held_back_by"] == "power cap, heat", "the clocks", run)
    table = t.good("bench", "20", "--rounds", 1, *args, env=env)
    t.expect("clocks before: 1980 MHz" in table.out and "clocks after" in table.out, "table", table)


def write_ncu(*lines):
    os.makedirs("bin", exist_ok=True)
    with open("bin/ncu", "w") as file:
        file.write("\n".join(["#!/bin/sh", *lines, ""]))
    os.chmod("bin/ncu", 0o755)


def test_counted(t):
    env = build_fake_gpu()
    ladder = ["ladder", "24", "--backend", "cuda", "--rounds", 1, "--peer", "cublas=./cublas.so",
              "--counted"]
    run = Run(*ladder, env={**env, "PATH": "/nowhere"})
    t.expect(run.status == 1 and "not on PATH" in run.err, "a sentence where ncu is missing", run)
    t.expect(re.search(r"^v0_global .*✓", run.out, re.M), "the times are told all the same", run)
    env["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
    write_ncu("echo '==ERROR== ERR_NVGPUCTRPERM: no permission'", "exit 1")
    run = Run(*ladder, env=env)
    t.expect(run.status == 1 and "ERR_NVGPUCTRPERM" in run.err, "and where it refuses", run)
    write_ncu("shift 7", """echo '"0","1","gemm","x","dram__bytes_read.sum","byte","1,048,576"'""",
              '"$@" || exit 1',
              """echo '"0","1","gemm","x","dram__bytes_write.sum","Kbyte","2,048.5"'""")
    run = t.good(*ladder, "--json", env=env)
    rungs = json.loads(run.out)["ladder"]
    t.expect([r["counted_bytes"] for r in rungs] == [1048576 + 2048500] * len(rungs), "sums", run)
    t.expect(all(r["of_peer"] > 0 and r["occupied"] == 0.25 for r in rungs), "other columns", run)
    run = t.good(*ladder, "--plot", "bars.svg", env=env, says=r"of cublas .* occupied .* counted")
    t.expect(is_plot("bars.svg", "of cublas"), "bars", run)


def test_wrong_library(t):
    env = build_wrong()
    before = sorted(os.listdir("."))
    check = Run("check", env=env)
    t.expect(check.status == 1 and "REPRO: tilegemm check" in check.out, "check sees it", check)
    for args in [["ladder", "16", "--rounds", "1"], ["bench", "20", "--rounds", "1"],
                 ["bench", "20", "--type", "f64", "--rounds", "1", "--json"]]:
        run = Run(*args, env=env)
        t.expect(run.status == 1 and re.search("is wrong.* is .*not|should", run.err),
                 f"{args[0]} sees it", run)
    save("a.npy", integers(30, 30, 1))
    t.refused(1, "the result is wrong", "multiply", "a.npy", "a.npy", "-o", "c.npy", "--verify",
              env=env)
    save_zeros("a.npy", 1100, 1100)
    t.refused(1, "the result is wrong", "multiply", "a.npy", "a.npy", "-o", "c.npy", "--verify",
              env=env)
    t.expect(sorted(os.listdir(".")) == sorted(before + ["a.npy"]), "no output is left behind")


def test_colour(t):
    for args in [["tiles"], ["nonsense"]]:
        t.expect(b"\033[" in on_terminal(args, {"NO_COLOR": ""}), f"{args} is coloured")
        t.expect(b"\033[" not in on_terminal(args, {"NO_COLOR": "1"}), f"{args} under NO_COLOR")
        t.expect(b"\033[" not in on_terminal(args, {"TERM": "dumb"}), f"{args} on TERM=dumb")
        t.expect("\033" not in Run(*args).out + Run(*args).err, f"{args} into a pipe")


def test_progress(t):
    save_zeros("a.npy", 6000, 1500)
    save_zeros("b.npy", 1500, 1500)
    args = ["multiply", "a.npy", "b.npy", "-o", "c.npy"]
    t.expect(b"] " in on_terminal(args, {}), "a long multiplication shows its progress")
    t.expect(b"] " not in on_terminal(args + ["--quiet"], {}), "but not when it is to be quiet")


def test_completion(t):
    script = os.path.join(HERE, "..", "cli", "completion.bash")
    if not shutil.which("bash"):
        print("test_completion is left out: there is no bash")
        return

    def complete(*words):
        text = (f"source {shlex.quote(script)}; COMP_WORDS=({shlex.join(words)}); "
                f"COMP_CWORD={len(words) - 1}; _tilegemm; echo ${{COMPREPLY[*]}}")
        done = subprocess.run(["bash", "-c", text], stdout=subprocess.PIPE, text=True)
        return done.stdout.split()

    t.expect(set(COMMANDS) <= set(complete(PROGRAM, "")), "commands are completed")
    t.expect(complete(PROGRAM, "mul") == ["multiply"], "a command is completed")
    t.expect(complete(PROGRAM, "multiply", "--tr") == ["--trans-a", "--trans-b"], "options are")
    t.expect(complete(PROGRAM, "bench", "--type", "") == ["f32", "f64"], "values are")
    t.expect(complete(PROGRAM, "bench", "--tile", "k") == ["k5_2d", "k10_warp"], "tilings are")


if __name__ == "__main__":
    sys.exit(main({name: test for name, test in globals().items() if name.startswith("test_")}))
