# SPDX-License-Identifier: Apache-2.0
"""Tests of `tilegemm multiply`, which test_cli.py runs with its own: on .npy files that they write
themselves, and on NumPy's where it is installed."""
import glob
import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

from cli_suite import (LeftOut, Run, integers, load, numpy, odd_files, product, save, save_zeros,
                       start, transpose)

A_TIMES_B = ["a.npy", "b.npy", "-o", "c.npy"]


def multiplies(t, what, wanted, *args, says=()):
    """The arguments write c.npy, which then holds `wanted`."""
    run = t.good("multiply", *args, "--verify", says=says)
    t.expect(load("c.npy")[0] == wanted, what, run)
    return run


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
                    run = multiplies(t, f"{kind} {orders} {args}", wanted, *A_TIMES_B, *args,
                                     says=["exactly equal"])
                    t.expect(load("c.npy")[1] == kind, "the product's type", run)
    t.expect(sorted(os.listdir(".")) == ["a.npy", "b.npy", "c.npy"], "no other file is left")


def test_multiply_short_types(t):
    a, b = integers(17, 140, 1), integers(140, 9, 2)
    a_u8 = [[x + 9 for x in row] for row in a]
    c = [[1000 * x for x in row] for row in integers(17, 9, 3)]
    for kind_a, kind_b, kind_c in [("<f2", "<f2", "<f2"), ("|i1", "|i1", "<i4"),
                                   ("|u1", "|i1", "<i4"), ("|u1", "|u1", "<i4")]:
        rows = a_u8 if kind_a == "|u1" else a
        columns = [[abs(x) for x in row] for row in b] if kind_b == "|u1" else b
        save("a.npy", rows, kind_a)
        save("b.npy", columns, kind_b, "F")
        save("c0.npy", c, kind_c)
        for args, wanted in [([], product(rows, columns)),
                             (["--alpha=-2", "--c=c0.npy"], product(rows, columns, -2, 1, c))]:
            if kind_c == "<f2":  # rounded to nearest, ties to even
                wanted = [list(struct.unpack("<9e", struct.pack("<9e", *row))) for row in wanted]
            run = multiplies(t, f"{kind_a} {kind_b} {args}", wanted, *A_TIMES_B, *args)
            t.expect(load("c.npy")[1] == kind_c, "the product's type", run)
    t.all_refused("""
        1 | c0.npy holds int32, which products of int8 | multiply c0.npy a.npy -o c.npy --trans-a
        1 | alpha = 0.5 is no whole number             | multiply a.npy b.npy -o c.npy --alpha 0.5
        1 | a.npy holds u8 and the product is in i32   | multiply a.npy b.npy -o c.npy --c a.npy
        """)


def test_multiply_factors(t):
    a, b, c = integers(5, 70, 3), integers(70, 33, 4), integers(5, 33, 5)
    save("a.npy", a, version=2)
    save("b.npy", b, version=3, order="F")
    save("c0.npy", c, order="F")
    for args, alpha, beta in [("--alpha -2", -2, 0), ("--c c0.npy", 1, 1),
                              ("--c c0.npy --beta=-3 --alpha=0.5", 0.5, -3),
                              ("--c c0.npy --beta 0", 1, 0), ("--alpha 0 --c c0.npy", 0, 1)]:
        multiplies(t, args, product(a, b, alpha, beta, c), *A_TIMES_B, *args.split())
    for row in ["v0_global", "t24x40x3", "k10_warp", "48x32x8/12x16/4x4/4/2"]:
        multiplies(t, f"tiling {row}", product(a, b), "a.npy", "b.npy", "--output", "c.npy",
                   "--tile", row)
    quiet = t.good("multiply", *A_TIMES_B, "--quiet", "--verify")
    t.expect(quiet.out == "", "--quiet is quiet", quiet)


def test_multiply_in_place(t):
    a = integers(20, 20, 6)
    save("c.npy", a)
    os.chmod("c.npy", 0o640)
    run = multiplies(t, "the output may be an input", product(a, a, 1, 1, a), "c.npy", "c.npy",
                     "--c", "c.npy", "-o", "c.npy")
    t.expect(os.stat("c.npy").st_mode & 0o777 == 0o640, "the file keeps its mode", run)
    t.expect(os.listdir(".") == ["c.npy"], "no other file is left")


def test_multiply_empty(t):
    for m, n, k in [(0, 4, 3), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1)]:
        save("a.npy", [[1] * k] * m, shape=(m, k))
        save("b.npy", [[1] * n] * k, shape=(k, n))
        multiplies(t, f"{m} x {n} x {k}", [[float(k)] * n] * m, *A_TIMES_B)


def test_multiply_headers(t):
    a = integers(4, 3, 7)
    wanted = product(a, transpose(a))
    save("b.npy", transpose(a))
    for head in ['{"shape":(4,3),"fortran_order":False,"descr":"<f4"}',
                 "{'shape': (4L, 3L), 'fortran_order': False, 'descr': '<f4'}",
                 "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 4 , 3 , ) , }"]:
        save("a.npy", a, header=head)
        multiplies(t, head, wanted, *A_TIMES_B)
    data = Path("a.npy").read_bytes()
    length = struct.unpack("<H", data[8:10])[0] + 3
    Path("a.npy").write_bytes(data[:8] + struct.pack("<H", length) + data[10:7 + length] + b"   " +
                              data[7 + length:])
    multiplies(t, "elements that are not aligned", wanted, *A_TIMES_B)


def test_multiply_odd_files(t):
    save("a.npy", integers(4, 4, 8))
    odd_files()
    for name, says in [
            ("header", "truncated"), ("magic", "not a NumPy"), ("data", "truncated"),
            ("more", "not one matrix"), ("big", "big-endian"), ("int", "integers"),
            ("bool", "holds booleans.*uint8"),
            ("bf16", "bfloat16"), ("cube", "3 dimensions"), ("vector", "vector of 16"),
            ("scalar", "0 dimensions"), ("huge", "more than memory"), ("huger", "header"),
            ("negative", "header"), ("junk", "header"), ("twice", "header"), ("missing", "header"),
            ("record", "header"), ("open", "header"), ("version", "version 9.0"),
            ("empty", "empty"), ("text", "not a NumPy"), ("folder", "not a regular file"),
            ("pipe", "not a regular file"), ("nowhere", "No such file")]:
        for files in [f"{name}.npy a.npy", f"a.npy {name}.npy", f"a.npy a.npy --c {name}.npy"]:
            t.refused(1, rf"{name}\.npy .*{says}", "multiply", *files.split(), "-o", "c.npy")
    advice = re.search(r"x, with (.*)", Run("multiply", "bf16.npy", "a.npy", "-o", "c.npy").err)
    t.expect(advice, "it says how to convert bf16")
    if numpy and advice:
        numpy.save("wide.npy", eval(advice[1], {"x": numpy.load("bf16.npy")}))
        bits = numpy.load("wide.npy").view("uint32") >> 16
        t.expect((bits == numpy.load("bf16.npy").view("uint16")).all(), "and keeps the values")
        t.good("multiply", "wide.npy", "a.npy", "-o", "wide.npy")
    t.expect(not glob.glob("c.npy*"), "no output is left behind")


def test_multiply_mismatch(t):
    save("a.npy", integers(4, 5, 1))
    save("b.npy", integers(6, 7, 2))
    save("d.npy", integers(5, 7, 2), "<f8")
    save("e.npy", integers(5, 5, 2))
    t.all_refused("""
    1 | a.npy is 4 x 5 and b.npy is 6 x 7   | multiply a.npy b.npy -o c.npy
    1 | transpose of b.npy is 7 x 6         | multiply a.npy b.npy -o c.npy --trans-b
    1 | a.npy holds f32 and d.npy holds f64 | multiply a.npy d.npy -o c.npy
    1 | is 5 x 5 and the product is 4 x 4   | multiply a.npy a.npy -o c.npy --trans-b --c e.npy
    1 | thread                              | multiply e.npy e.npy -o c.npy --tile 8x8x8/8x8/0x4/4/1
    2 | needs -o                            | multiply a.npy b.npy
    2 | two files                           | multiply a.npy -o c.npy
    2 | --beta needs --c                    | multiply a.npy b.npy -o c.npy --beta 2
    """)
    t.expect(not glob.glob("c.npy*"), "no output is left behind")


def test_multiply_outputs(t):
    save("a.npy", integers(40, 40, 1))
    before = sorted(os.listdir("."))
    t.all_refused(f"""
        1 | nowhere/c.npy cannot be written: No such | multiply a.npy a.npy -o nowhere/c.npy
        1 | cannot be written: Not a directory       | multiply a.npy a.npy -o a.npy/c.npy
        1 | not a regular file                       | multiply a.npy a.npy -o .
        1 | /dev/null is not a regular file          | multiply a.npy a.npy -o /dev/null
        1 | cannot be written: File name too long    | multiply a.npy a.npy -o {"c" * 300}
        """)
    t.refused(1, "c.npy cannot be written: File too large", "multiply", "a.npy", "a.npy", "-o",
              "c.npy", with_limit=4096)
    t.expect(sorted(os.listdir(".")) == before, "no file is left behind")
    save("old.npy", [[1]])
    os.symlink("old.npy", "link.npy")
    t.good("multiply", "a.npy", "a.npy", "-o", "link.npy")
    t.expect(os.path.islink("link.npy") and len(load("old.npy")[0]) == 40, "a link stays a link")


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
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE]:
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
        raise LeftOut("there is no NumPy")
    random_numbers = numpy.random.default_rng(1)
    for kind in ["f4", "f8"]:
        a = random_numbers.standard_normal((211, 150)).astype(kind)
        b = random_numbers.standard_normal((150, 97)).astype(kind)
        numpy.save("a.npy", a)
        numpy.save("b.npy", numpy.asfortranarray(b))
        run = t.good("multiply", *A_TIMES_B, "--verify", says=["within the"])
        c = numpy.load("c.npy")
        t.expect(c.dtype == a.dtype and c.shape == (211, 97), "the type and shape", run)
        k_u = (150 + 2) * numpy.finfo(kind).eps / 2
        bound = k_u / (1 - k_u) * (abs(a.astype("f8")) @ abs(b.astype("f8")))
        t.expect((abs(c - a @ b) <= 2 * bound).all(), "NumPy's product, as far as both may be off",
                 run)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return
    digits = load_digits().data.astype("f4")
    numpy.save("digits.npy", digits)
    run = t.good("multiply", "digits.npy", "digits.npy", "--trans-b", "-o", "c.npy", "--verify",
                 says=["exactly equal"])
    t.expect((numpy.load("c.npy") == digits @ digits.T).all(), "X times its transpose", run)
