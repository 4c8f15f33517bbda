# SPDX-License-Identifier: Apache-2.0
"""What test_cli.py stands on: running the program and judging it, .npy files good and odd."""
import json
import os
import pty
import random
import re
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.dom.minidom
from pathlib import Path

try:
    import numpy
except ImportError:
    numpy = None

HERE = os.path.dirname(os.path.abspath(__file__))
UTF8 = {"LC_ALL": "C.UTF-8"}
LETTERS = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "u1": "B", "i4": "i"}  # NumPy's, struct's
PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""


class Run:
    """One run of the program; `with_limit` bounds the size of files that it may write."""

    def __init__(self, *args, env=None, with_limit=None):
        self.args = [str(arg) for arg in args]
        limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (with_limit, with_limit)))
        done = subprocess.run([PROGRAM] + self.args, stdin=subprocess.DEVNULL, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace",
                              env={**os.environ, **(env or {})},
                              preexec_fn=limit if with_limit else None)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr


class Suite:
    def __init__(self):
        self.passed = self.failed = 0
        self.test = self.folder = ""

    def expect(self, truth, what, run=None):
        self.passed += bool(truth)
        self.failed += not truth
        if truth:
            return
        print(f"FAILED {self.test}: {what}")
        if run:
            print(f"  status {run.status}, out {run.out[-400:]!r}, err {run.err[-400:]!r}")
            print(f"  command: cd {self.folder} && {shlex.join([PROGRAM] + run.args)}")
        script = os.path.join(HERE, "test_cli.py")
        print(f"REPRO: {sys.executable} {script} {PROGRAM} {self.test}")

    def says(self, run, pattern):
        self.expect(re.search(pattern, run.out, re.M), f"should print {pattern!r}", run)

    def good(self, *args, says=(), **keys):
        run = Run(*args, **keys)
        self.expect(run.status == 0, "should succeed", run)
        self.expect(not run.err, "should be silent on stderr", run)
        for pattern in says:
            self.says(run, pattern)
        return run

    def refused(self, status, says, *args, **keys):
        run = Run(*args, **keys)
        self.expect(run.status == status, f"should exit with {status}", run)
        first = run.err.split("\n")[0]
        self.expect(first.startswith("tilegemm: ") and re.search(says, first),
                    f"should say {says!r}", run)
        hint = len(run.err.strip().split("\n"))
        self.expect(hint == status, "one sentence, and a hint only after wrong use", run)

    def all_refused(self, table, **keys):
        """Lines of STATUS | what it says | command line."""
        for line in table.strip().splitlines():
            status, says, command = (part.strip() for part in line.split("|"))
            self.refused(int(status), says, *shlex.split(command), **keys)


# --------------------------------------------------------------------------------------- files
def save(path, rows, kind="<f4", order="C", version=1, shape=None, cut=None, header=None):
    """Writes a list of rows as .npy; cut: only so many bytes of it."""
    shape = (len(rows), len(rows[0]) if rows else 0) if shape is None else shape
    letter = {**LETTERS, "i8": "q", "b1": "?", "V2": "e"}[kind[1:]]
    columns = zip(*rows) if order == "F" else rows
    flat = [x for row in columns for x in row]
    text = header or (f"{{'descr': '{kind}', 'fortran_order': {order == 'F'}, "
                      f"'shape': {shape}, }}")
    head = 10 if version == 1 else 12
    text += " " * (-(head + len(text) + 1) % 64) + "\n"
    data = b"\x93NUMPY" + bytes([version, 0])
    data += struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()
    data += struct.pack(f"{kind[0].replace('|', '<')}{len(flat)}{letter}", *flat)
    with open(path, "wb") as file:
        file.write(data[:cut])


def save_zeros(path, rows, cols):
    save(path, [], "<f8", shape=(rows, cols))
    os.truncate(path, os.path.getsize(path) + rows * cols * 8)


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + length], {})
    assert (10 + length) % 64 == 0 and not head["fortran_order"]
    rows, cols = head["shape"]
    letter = LETTERS[head["descr"][1:]]
    flat = struct.unpack(f"<{rows * cols}{letter}", data[10 + length:])
    return [list(flat[i * cols:(i + 1) * cols]) for i in range(rows)], head["descr"]


def integers(rows, cols, seed):
    random.seed(seed)
    return [[random.randint(-9, 9) for _ in range(cols)] for _ in range(rows)]


def transpose(matrix):
    return [list(column) for column in zip(*matrix)]


def product(a, b, alpha=1, beta=0, c=None):
    return [[alpha * sum(x * y for x, y in zip(row, column)) + (beta * c[i][j] if c else 0)
             for j, column in enumerate(zip(*b))] for i, row in enumerate(a)]


def odd_files():
    a = integers(4, 4, 8)
    save("header.npy", a, cut=40)
    save("magic.npy", a, cut=7)
    save("data.npy", a, cut=-5)
    save("more.npy", a + a, shape=(4, 4))
    save("big.npy", a, ">f4")
    save("int.npy", a, "<i8")
    save("bool.npy", [[x > 0 for x in row] for row in a], "|b1")
    save("bf16.npy", a, "|V2")
    save("cube.npy", a, shape=(2, 2, 4))
    save("vector.npy", a, shape=(16,))
    save("scalar.npy", [], shape=())
    save("huge.npy", a, shape=(2**40, 2**40))
    save("huger.npy", a, shape=(10**30, 1))
    save("negative.npy", a, shape=(-4, 4))
    save("junk.npy", a, header="{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4, 4)}")
    save("twice.npy", a, header="{'descr': '<f4', 'descr': '<f4', 'shape': (4, 4)}")
    save("missing.npy", a, header="{'descr': '<f4', 'shape': (4, 4)}")
    save("record.npy", a, header="{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4,)}")
    save("open.npy", a, header="{'descr': '<f4")
    save("version.npy", a, version=9)
    for name, data in [("empty.npy", b""), ("text.npy", b"1 2\n3 4\n" * 9)]:
        with open(name, "wb") as file:
            file.write(data)
    os.mkdir("folder.npy")
    os.mkfifo("pipe.npy")


def start(*args, **keys):
    """The program in the background."""
    return subprocess.Popen([PROGRAM] + [str(arg) for arg in args], stdin=subprocess.DEVNULL,
                            **keys)


def on_terminal(args, env):
    ours, theirs = pty.openpty()
    run = subprocess.Popen([PROGRAM] + args, stdin=subprocess.DEVNULL, stdout=theirs,
                           stderr=theirs, env={**os.environ, "TERM": "xterm", **UTF8, **env})
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            part = b""
        if not part:
            break
        seen += part
    os.close(ours)
    run.wait()
    return seen


def is_plot(path, *words):
    text = xml.dom.minidom.parse(path).toxml()
    return all(word in text for word in words)


def race_peer(t, shapes, peer, *args, env=None):
    """Both run in every case and are right. The report, and the run for messages."""
    Path("shapes").write_text(shapes)
    run = t.good("bench", "--shapes", "shapes", "--rounds", 2, "--json", *args, env=env)
    report = json.loads(run.out)
    names = ["tilegemm"] + ([peer] if peer else [])
    for result in report["results"]:
        t.expect([one["name"] for one in result["runs"]] == names, "both run", run)
        t.expect(all(one["correct"] for one in result["runs"]), "both are right", run)
    t.expect(len(report["results"]) == shapes.count("\n"), "every case", run)
    return report, run


class LeftOut(Exception):
    """This machine lacks what the test needs."""


def build_fake(source, library, *flags):
    """Builds tests/SOURCE, and returns the environment that puts it before the library."""
    build = ["cc", "-shared", "-fPIC", "-O1", "-w", "-I", os.path.join(HERE, "..", "include"),
             os.path.join(HERE, source), "-o", library, "-ldl", *flags]
    if not shutil.which("cc"):
        raise LeftOut("there is no compiler")
    program = Path(PROGRAM).read_bytes()
    if b"libtilegemm.so" not in program or b"__asan_init" in program:
        raise LeftOut("nothing can stand before this library")
    subprocess.run(build, check=True)
    here = os.getcwd()
    return {**UTF8, "LD_PRELOAD": os.path.join(here, library), "LD_LIBRARY_PATH": here}


def build_wrong():
    """The environment under which the library is wrong."""
    env = build_fake("fake_wrong.c", "wrong.so")
    Run("bench", "8", "--rounds", 1, env=env)
    assert os.path.exists("spoiled"), "the library is right"
    return env


def build_fake_gpu():
    """The environment under which the CPU passes for a GPU. Writes cublas.so and narrow.so, without
    the 64-bit names, too."""
    build_fake("fake_cublas.c", "narrow.so")
    build_fake("fake_cublas.c", "cublas.so", "-DWIDE")
    env = build_fake("fake_gpu.c", "gpu.so")
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"]:
        os.symlink("gpu.so", name)
    assert Run("explain", "8", "--backend", "cuda", env=env).status == 0, "there is no GPU"
    return env


def main(tests):
    if not PROGRAM or not set(sys.argv[2:]) <= set(tests):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [TEST ...], tests: {' '.join(tests)}")
    for name in ["TILEGEMM_TILE", "TILEGEMM_THREADS", "TILEGEMM_ISA", "TILEGEMM_TRACE", "NO_COLOR"]:
        os.environ.pop(name, None)
    os.environ["TILEGEMM_TUNING"] = ""  # of the machine's user are no lines
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # the CPU is tested, unless a test says otherwise
    suite = Suite()
    here = os.getcwd()
    for name in sys.argv[2:] or tests:
        suite.test, suite.folder = name, tempfile.mkdtemp(prefix="tilegemm-")
        os.chdir(suite.folder)
        before = suite.failed
        try:
            tests[name](suite)
        except LeftOut as reason:
            print(f"{name} is left out: {reason}")
        except Exception as error:  # a test that breaks is a failure, and the others go on
            suite.expect(False, f"{type(error).__name__}: {error}")
        os.chdir(here)
        if suite.failed == before:
            shutil.rmtree(suite.folder)
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0
