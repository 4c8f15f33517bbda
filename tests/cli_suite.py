# SPDX-License-Identifier: Apache-2.0
"""What test_cli.py stands on: running the program and judging it, .npy files good and odd."""
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

HERE = os.path.dirname(os.path.abspath(__file__))
UTF8 = {"LC_ALL": "C.UTF-8"}
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

    def good(self, *args, says="", **keys):
        run = Run(*args, **keys)
        self.expect(run.status == 0 and not run.err, "should succeed in silence on stderr", run)
        self.expect(re.search(says, run.out), f"should print {says!r}", run)
        return run

    def refused(self, status, says, *args, **keys):
        run = Run(*args, **keys)
        self.expect(run.status == status, f"should exit with {status}", run)
        first = run.err.split("\n")[0]
        self.expect(first.startswith("tilegemm: ") and re.search(says, first),
                    f"should say {says!r}", run)
        hint = len(run.err.strip().split("\n"))
        self.expect(hint == status, "one sentence, and a hint only after wrong use", run)
        return run


# --------------------------------------------------------------------------------------- files
def save(path, rows, kind="<f4", order="C", version=1, shape=None, cut=None, header=None):
    """Writes a list of rows as .npy; cut: only so many bytes of it."""
    shape = (len(rows), len(rows[0]) if rows else 0) if shape is None else shape
    letter = {"f4": "f", "f8": "d", "i8": "q", "f2": "e"}[kind[1:]]
    columns = zip(*rows) if order == "F" else rows
    flat = [x for row in columns for x in row]
    text = header or (f"{{'descr': '{kind}', 'fortran_order': {order == 'F'}, "
                      f"'shape': {shape}, }}")
    head = 10 if version == 1 else 12
    text += " " * (-(head + len(text) + 1) % 64) + "\n"
    data = b"\x93NUMPY" + bytes([version, 0])
    data += struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()
    data += struct.pack(f"{kind[0]}{len(flat)}{letter}", *flat)
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
    letter = {"<f4": "f", "<f8": "d"}[head["descr"]]
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
    save("half.npy", a, "<f2")
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


# Stands before the library and spoils one element of every product.
SPOILER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <tilegemm.h>

tg_status tg_gemm(tg_context *ctx, const tg_problem *p)
{
    tg_status (*gemm)(tg_context *, const tg_problem *) = dlsym(RTLD_NEXT, "tg_gemm");
    tg_status status = gemm(ctx, p);
    int64_t last = (p->m - 1) * p->c.row_stride + (p->n - 1) * p->c.col_stride;
    if (p->m > 0 && p->n > 0 && p->c.type == TG_F32)
        ((float *)p->c.data)[last] += 1;
    else if (p->m > 0 && p->n > 0)
        ((double *)p->c.data)[last] += 1;
    fclose(fopen("spoiled", "w"));
    return status;
}
"""


def build_spoiler():
    """The environment under which the library is wrong, or None."""
    with open("spoiler.c", "w") as file:
        file.write(SPOILER)
    build = ["cc", "-shared", "-fPIC", "-I", os.path.join(HERE, "..", "include"), "spoiler.c",
             "-o", "spoiler.so", "-ldl"]
    env = {**UTF8, "LD_PRELOAD": os.path.abspath("spoiler.so")}
    if not shutil.which("cc") or subprocess.run(build).returncode != 0:
        return None
    Run("bench", "8", "--rounds", 1, env=env)
    return env if os.path.exists("spoiled") else None


# Stands before the library, too, and calls the CPU a GPU: "cuda" is there, its memory is apart from
# the host's, and its multiprocessors take two blocks of everything.
FAKE_GPU = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <tilegemm.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static int is_fake;

tg_status tg_open(tg_context **ctx, const char *backend, int device)
{
    is_fake = backend && strcmp(backend, "cuda") == 0;
    return NEXT(tg_open)(ctx, is_fake ? "cpu" : backend, device);
}

tg_status tg_backend_reason(const char *backend, char *reason, size_t size)
{
    return strcmp(backend, "cuda") == 0 ? TG_OK : NEXT(tg_backend_reason)(backend, reason, size);
}

tg_limits tg_device_limits(const tg_context *ctx)
{
    tg_limits gpu = {{4, 8}, 1024, 16, 255, 4, 227 << 10, 0, 0, 1 << 20, 6, 16};
    return is_fake ? gpu : NEXT(tg_device_limits)(ctx);
}

tg_status tg_tile_usage(tg_context *ctx, const tg_tile *tile, tg_type type, tg_usage *usage)
{
    tg_usage gpu = {256, 96, 0, 32 << 10, 2};
    *usage = gpu;
    return TG_OK;
}
"""

# The driver's own libraries, as one.
FAKE_DRIVER = r"""
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 7; return 0; }
int cuDeviceGetPCIBusId(char *text, int size, int device) { *text = 'b'; text[1] = 0; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 39 ? 2048 : attribute == 82 ? 65536 : attribute == 106 ? 32
             : attribute == 81 ? 228 << 10 : attribute == 111 ? 1024 : -1;
    return device != 7;
}
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    *device = device;
    return *bus != 'b';
}
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    *mhz = which == 1 ? 1980 : 3201;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 698500; return 0; }
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits)
{
    *bits = 4 | 32;
    return 0;
}
"""

# cuBLAS as its manual has it: columns first, and a new stream takes the workspace away.
FAKE_CUBLAS = r"""
#include <stddef.h>
#include <stdint.h>

static struct { size_t bytes; } state;
int cublasCreate_v2(void **handle) { *handle = &state; return 0; }
int cublasDestroy_v2(void *handle) { return handle != &state; }
int cublasSetStream_v2(void *handle, void *stream) { state.bytes = 0; return stream != NULL; }
int cublasSetWorkspace_v2(void *handle, void *memory, size_t bytes)
{
    state.bytes = memory ? bytes : 0;
    return 0;
}

#define AT(x, trans, i, j, ld) x[(trans) ? (j) + (i) * (int64_t)ld : (i) + (j) * (int64_t)ld]
#define GEMM(name, batched, type, size)                                                          \
    int name(void *h, int ta, int tb, size m, size n, size k, const type *alpha, const type *a,  \
             size lda, const type *b, size ldb, const type *beta, type *c, size ldc)             \
    {                                                                                            \
        if (h != &state || state.bytes < 64 << 20 || ta & ~1 || tb & ~1)                         \
            return 14;                                                                           \
        for (size i = 0; i < m; i++)                                                             \
            for (size j = 0; j < n; j++) {                                                       \
                double sum = 0;                                                                  \
                for (size p = 0; p < k; p++)                                                     \
                    sum += (double)AT(a, ta, i, p, lda) * AT(b, tb, p, j, ldb);                  \
                type *at = &AT(c, 0, i, j, ldc);                                                 \
                *at = *alpha * sum + (*beta == 0 ? 0 : *beta * *at);                             \
            }                                                                                    \
        return 0;                                                                                \
    }                                                                                            \
    int batched(void *h, int ta, int tb, size m, size n, size k, const type *alpha,              \
                const type *a, size lda, int64_t as, const type *b, size ldb, int64_t bs,        \
                const type *beta, type *c, size ldc, int64_t cs, size count)                     \
    {                                                                                            \
        int status = 0;                                                                          \
        for (size x = 0; x < count; x++)                                                         \
            status |= name(h, ta, tb, m, n, k, alpha, a + x * as, lda, b + x * bs, ldb, beta,    \
                           c + x * cs, ldc);                                                     \
        return status;                                                                           \
    }
GEMM(cublasSgemm_v2, cublasSgemmStridedBatched, float, int)
GEMM(cublasDgemm_v2, cublasDgemmStridedBatched, double, int)
#ifdef WIDE
GEMM(cublasSgemm_v2_64, cublasSgemmStridedBatched_64, float, int64_t)
GEMM(cublasDgemm_v2_64, cublasDgemmStridedBatched_64, double, int64_t)
#endif
"""


def build_library(name, text, *flags):
    """True if the shared library could be built from the text."""
    with open("library.c", "w") as file:
        file.write(text)
    build = ["cc", "-shared", "-fPIC", "-O1", "-w", "-I", os.path.join(HERE, "..", "include"),
             "library.c", "-o", name, "-ldl", *flags]
    return bool(shutil.which("cc")) and subprocess.run(build).returncode == 0


def build_fake_gpu():
    """The environment under which the CPU passes for a GPU, or None. Writes cublas.so and
    narrow.so, without the 64-bit names, too."""
    here = os.getcwd()
    libraries = [("gpu.so", FAKE_GPU), ("libcuda.so.1", FAKE_DRIVER),
                 ("libnvidia-ml.so.1", FAKE_DRIVER), ("narrow.so", FAKE_CUBLAS),
                 ("cublas.so", FAKE_CUBLAS, "-DWIDE")]
    env = {**UTF8, "LD_PRELOAD": os.path.join(here, "gpu.so"), "LD_LIBRARY_PATH": here}
    if not all(build_library(*library) for library in libraries):
        return None
    return env if Run("explain", "8", "--backend", "cuda", env=env).status == 0 else None


def main(tests):
    if not PROGRAM or not set(sys.argv[2:]) <= set(tests):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [TEST ...], tests: {' '.join(tests)}")
    for name in ["TILEGEMM_TILE", "TILEGEMM_THREADS", "TILEGEMM_ISA", "NO_COLOR"]:
        os.environ.pop(name, None)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # the CPU is tested, unless a test says otherwise
    suite = Suite()
    here = os.getcwd()
    for name in sys.argv[2:] or tests:
        suite.test, suite.folder = name, tempfile.mkdtemp(prefix="tilegemm-")
        os.chdir(suite.folder)
        before = suite.failed
        try:
            tests[name](suite)
        except Exception as error:  # a test that breaks is a failure, and the others go on
            suite.expect(False, f"{type(error).__name__}: {error}")
        os.chdir(here)
        if suite.failed == before:
            shutil.rmtree(suite.folder)
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0
