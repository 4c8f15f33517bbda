#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the program: python3 tests/test_cli.py PROGRAM [TEST ...]

Every command, on files that this test writes itself. A failure prints the program's command line
and the line that repeats the test, whose files are then kept. Closes with "N passed, N failed".
cli_suite.py has what is not about a command; cli_bench.py, cli_gpu.py, cli_multiply.py and
cli_tune.py have more tests.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import cli_bench
import cli_gpu
import cli_multiply
import cli_tune
from cli_suite import (HERE, PROGRAM, UTF8, LeftOut, Run, build_wrong, integers, is_plot, main,
                       on_terminal, save, save_zeros, start)

COMMANDS = ["info", "tiles", "explain", "ladder", "multiply", "bench", "check", "tune"]


def test_help(t):
    overview = t.good("--help", says=["usage: tilegemm COMMAND", "^Exit status: 0"] +
                      [f"^  {c} " for c in COMMANDS])
    version = t.good("--version", says=[r"^tilegemm \d+\.\d+\.\d+\n$"])
    for same in ["-h", "help"]:
        t.expect(t.good(same, says=["usage"]).out == overview.out, f"{same} is --help", overview)
    for command in COMMANDS:
        first = t.good(command, "--help", says=[f"^usage: tilegemm {command}"])
        t.expect(t.good("help", command).out == first.out, "help COMMAND is COMMAND --help", first)
    t.good("info", says=[re.escape(version.out.split()[1])])


def test_usage(t):
    t.all_refused("""
        2 | which command                        |
        2 | no command "mulitply"                | mulitply
        2 | no option "--frob"                   | --frob
        2 | no option "--frob"                   | info --frob
        2 | no option "--trans-a"                | ladder --trans-a
        2 | no argument such as "now"            | check now
        2 | --type needs a value                 | tiles --type
        2 | --type takes f32.*u8, not "f128"     | tiles --type f128
        2 | --type takes f32.*u8, not "i32"      | bench --type i32
        2 | --peer is for f32 and f64, not for   | bench 9 --type bf16 --peer x=libm.so.6
        2 | --json takes no value                | bench --json=1
        2 | is no shape                          | explain 1 2 b
        2 | help takes no argument such as "x"   | help multiply x
        2 | --version takes no argument such as  | --version x
        2 | --help takes no argument such as "x" | --help x
        2 | --json does nothing with --once      | ladder --once v4_reg --json --plot x.svg
        2 | --rounds does nothing with --once    | ladder 8 --rounds 1 --once v4_reg
        2 | --rounds does nothing with --show    | tune --show --rounds 3
        2 | --type does nothing with --export    | tune --type f32 --export x
        2 | --import takes no shape such as "8"  | tune --import x 8
        2 | a shape is                           | explain 1 2
        2 | takes a shape                        | explain
        2 | --trans takes                        | bench 64 --trans NX
        2 | --batch takes                        | bench 8 --batch 0
        2 | --peer takes NAME=LIB                | bench 64 --peer libm.so.6
        2 | one --peer                           | ladder 64 --peer a=b --peer c=d
        1 | nowhere                              | info --backend nowhere
        1 | nowhere                              | check --backend nowhere
        1 | nonsense                             | explain 64 --tile nonsense
        1 | "nonsense" is no row                 | bench 8 --tile c6x8,nonsense
        1 | "" is no row                         | bench 8 --tile c6x8,
        1 | slices                               | explain 64 --tile 8x8x8/8x8/4x4/4/1/slices3
        1 | --once takes a row                   | ladder 64 --once v99
        1 | --counted needs --backend cuda       | ladder 64 --counted
        1 | cannot be read                       | bench --shapes nowhere
        1 | nowhere.so                           | bench 64 --peer x=./nowhere.so
        1 | has no                               | bench 64 --peer x=libm.so.6
        1 | no memory                            | bench 2000000000x2000000000x1
        1 | nowhere/x.svg cannot be written: No  | bench 1000000x1000000x1 --roofline nowhere/x.svg
        1 | nowhere/x.svg cannot be written: No  | ladder 1000000x1000000x1 --plot nowhere/x.svg
        1 | /dev/full is not a regular file      | ladder 8 --rounds 1 --plot /dev/full
        """)
    for text in ["0", "-1", "1.5", "2x", "", "99999999999999999999", " 2", "+2"]:
        t.refused(2, "--threads takes a whole number", "info", f"--threads={text}")
    for text in ["x", "", "nan", "inf", "1e999", "1 "]:
        t.refused(2, "--alpha takes a finite number", "multiply", "a", "b", "-o", "c",
                  f"--alpha={text}")
    for text in ["0", "1x2", "1x2x3x4", "x", "axbxc", "1xx3", "99999999999", "12345678901234567890",
                 "1x2x", "64..", "..64", "64..32", "0..4", "9" * 100]:
        t.refused(2, "is no shape", "bench", text)
    t.refused(1, "TILEGEMM_TILE", "check", env={"TILEGEMM_TILE": "junk"})


def test_unwritable_output(t):
    with open("/dev/full", "w") as full:
        run = start("tiles", stdout=full, stderr=subprocess.PIPE)
        said = run.communicate()[1]
    t.expect(run.returncode == 1 and b"could not be written" in said, "a full stdout is an error")


def test_info(t):
    t.good("info", says=["registers", "cpu", "cuda", "hip", "vector", "L1 cache", "units",
                         "instructions", "portable"])
    kind = re.search("^cpu family.*: (.*)\nmodel\t.*: (.*)", Path("/proc/cpuinfo").read_text(), re.M)
    if kind:  # names alone may be alike
        t.good("info", says=[rf"cpu: .* \(family {kind[1]} model {kind[2]}\), \w+$"])
    Path("lines.txt").write_text("nonsense\n")
    traced = {"TILEGEMM_TRACE": "1", "TILEGEMM_TUNING": "lines.txt"}
    run = Run("info", "--backend", "cpu", env=traced)
    t.expect(run.err.count("line 1 is skipped") == 1, "a line is skipped once", run)
    only = t.good("info", "--backend", "cpu")
    t.expect("cuda" not in only.out, "--backend limits what is told", only)


def test_tiles(t):
    small, large = ["v0_global", "t24x40x3"], ["v7_double_buffer", "k5_2d", "k10_warp", "c6x8"]
    for kind, rows in [("f32", small + large), ("f64", small)]:  # SSE2 has 16 x 2 doubles
        run = t.good("tiles", "--type", kind, env=UTF8, says=[rf"^{row} .*✓" for row in rows])
        for refused in re.findall(r"^(\w+) .*·", run.out, re.M):
            t.says(run, rf"^  {refused} +\S.*\d")
    t.expect(Run("tiles", env={"LC_ALL": "C"}).out.isascii(), "plain ASCII without UTF-8")
    for absent, why in re.findall(r"(\w+): absent: (.*)", t.good("info").out):
        t.refused(1, re.escape(why), "tiles", "--backend", absent)


def test_explain(t):
    tile = "64x64x16/32x32/4x4/4/2"
    naive, tiled = 2 * 1024**3 + 1024**2, 2 * 16 * 1024**2 + 1024**2
    run = t.good("explain", "1024", "1024", "1024", "--tile", tile, "--threads", 1, says=[
        tile, r"blocks +256 \(16 x 16\), each walks k in 64 steps of 16",
        r"waves +1024: 1024 warp tiles on 1 thread,", "8 x 8 units", "2 x 2 warps",
        r"staged +8 KiB a block \(64 x 16 of A and 16 x 64 of B\)", "registers +4 of",
        "way +the nest of blocks", "reads +A: packed in panels; B: packed in panels$",
        "naive, 132 MiB tiled",
        f"{naive / tiled:.1f} times less", f"intensity +{2 * 1024**3 / tiled / 4:.2f}",
        "roofline +(compute bound|memory bound|no bound but the peak)", r"\|###\|",
        "2.147 GFLOP"])
    t.expect(max(map(len, run.out.split("\n"))) <= 100, "it is at most 100 columns wide", run)
    for args in ["1x1x1", "100000", "513 --type f64", "64 --tile v0_global"]:
        t.good("explain", *args.split(), says=["roofline"])


def test_explain_ways(t):
    """What needs no blocks is not told to stage them, and a transposed problem is counted as such."""
    def explain(shape, *says, env=None):
        run = t.good("explain", *shape.split(), "--threads", 1, says=says, env=env)
        t.expect(max(map(len, run.out.split("\n"))) <= 100, "it is at most 100 columns wide", run)
        t.expect(not re.search(r"(?<!x )\b1 (step|warp tile|thread|strip|column|range)s\b", run.out),
                 "one is one", run)
        return run

    directly = explain("30 40 50", "way +directly", "reads +A: in place; B: in place",
                       "staged +nothing", "1 x 1 strip", r"tiles +\d+ \(\d+ x \d+\), each walks k in 1 step",
                       "waves +1: 1 strip on 1 thread,", "roofline +no bound but the peak: caches")
    t.expect(not re.search("a block is staged|meet at|slow memory, at", directly.out, re.M),
             "no stage, and no bound by memory", directly)
    explain("2 3000 3000", "way +in streams", "reads +A: in place; B: in streams", "staged +nothing",
            r"tiles +\d+ \(1 x \d+\)")
    explain("3000 4 3000", "way +a few lines", "A: rows turned in registers; B: copied along k",
            "staged +nothing", r"\(\d+ x 1\), each")
    for shape, turned, tiles in [("3000 1 2000", "1 x 3000 x 2000", r"\(1 x \d+\), each walks"),
                                 ("7 1 3000", "1 x 7 x 3000", r"\(1 x \d+\), each walks")]:
        explain(shape, f"transposed +C' = B' A', {turned}:", "C transposed", f"^  {turned[:-7]} ",
                "reads +A: in place; B: columns turned in registers", tiles)
    explain("3000 3000 3000", "way +the nest of blocks", r"staged +[\d.]+ [KM]iB a block \(")
    t.expect("transposed" not in explain("1 70 70").out, "a row is not transposed")
    run = t.good("explain", "2", "2048", "8192", "--threads", 2)
    splits = re.search(r"^splits +k is cut in (\d+) ranges", run.out, re.M)
    panels = re.search(r"^tiles +(\d+) ", run.out, re.M)
    if splits:  # where there are two threads, and caches that ask for it
        t.says(run, rf"^waves +\d+: {int(splits[1]) * int(panels[1])} panels on 2 threads")
    explain("64", "why +TILEGEMM_TILE asks for it: ", env={"TILEGEMM_TILE": "v4_reg"})
    explain("64", "why +the chooser's: ", env={"TILEGEMM_TILE": ""})
    explain("64 --tile v3_vec4", "why +it was asked for: ", env={"TILEGEMM_TILE": "v4_reg"})


def test_ladder(t):
    rungs = ["v0_global", "v1_shared_8", "v1_shared_16", "v1_shared_32x16", "v1_shared", "v2_work",
             "v3_vec4", "v4_reg", "v5_reg_vec4", "v6_a_k_major", "v7_double_buffer", "k5_2d",
             "k10_warp", "the chooser"]
    t.good("ladder", "64", "70", "66", "--rounds", 2, env=UTF8,
           says=[rf"^{rung} .* \d.*✓" for rung in rungs])
    t.good("ladder", "33", "--rounds", 1, "--type", "f64", "--threads", 1)
    t.expect(t.good("ladder", "64", "--once", "v4_reg").out == "", "--once says nothing")
    t.good("ladder", "64", "--once", "the chooser")
    run = t.good("ladder", "40", "--rounds", 1, "--json")
    told = {rung["rung"]: rung for rung in json.loads(run.out)["ladder"]}
    t.expect(all(rung["exact"] and rung["gflops"] > 0 for rung in told.values()), "rungs", run)
    t.expect(told["v1_shared"]["staged_bytes"] == 2 * 32 * 32 * 4, "what is staged", run)
    t.expect(told["v0_global"]["staged_bytes"] == told["the chooser"]["staged_bytes"] == 0,
             "what stages nothing", run)


def with_peer(log, *ratios):
    """The log, as if a library had taken so many times as long."""
    for result, ratio in zip(log["results"], ratios):
        result["runs"][0]["ratios"] = [{"peer": "other", "median": ratio}]
        result["runs"] += [{"name": "other", "gflops": result["runs"][0]["gflops"] / ratio}]
    log["geometric_means"]["peers"] = [{"name": "other", "median_ratio": 1.5}]
    return log


def test_tables(t):
    script = os.path.join(HERE, "..", "docs", "table.py")

    def run(*args):
        return subprocess.run([sys.executable, script, "--results", ".", *args, "page.md"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    t.expect(subprocess.run([sys.executable, script, "--check"]).returncode == 0,
             "the tables are what the logs say")
    Path("page.md").write_text("# A\n" + "".join(
        f"<!-- {what} -->\nold {what}\n<!-- end -->\n"
        for what in ["table race", "table steps", "table race-*", "summary race*", "groups race*", "table none-*"]))
    t.expect("no log of race" in run().stdout, "a log that is missing is an error")
    for name, args in [("2001-01-01-race", ["bench", "8", "9x8x7", "--batch", "3"]),
                       ("2000-01-01-race", ["bench", "5"]), ("steps", ["ladder", "16"]),
                       ("2000-02-02-race-all", ["bench", "6", "7"])]:
        log = json.loads(t.good(*args, "--rounds", 1, "--json").out)
        log = with_peer(log, 3, 0.75) if name.endswith("all") else log
        Path(name + ".json").write_text(json.dumps(log))
    t.expect(run("--check").returncode == 1, "--check sees that it is stale")
    t.expect(run().returncode == 0 and run("--check").returncode == 0, "then it is up to date")
    page = Path("page.md").read_text()
    Path("page.md").write_text(page + "[gone](gone.json)")
    t.expect("links to gone.json" in run("--check").stdout, "a link to no file is an error")
    for says in [r"^\| 8 · 3 \| [\d.]+ \| \d+ % \|$", r"^\| 9 × 8 × 7 · 3 \|",
                 r": \[2001-01-01-race.json\]\(2001-01-01-race.json\)$",
                 r"^\| `v0_global` \| .* 1.0 ", r"^\| geometric mean ", "^### race-all$",
                 r"^\| 7 \| .* \| 0.75 \|$", r"^\| \[race\]\(2001-.* \| 2 \| \d+ % \|  \|  \|  \|$",
                 r"^\| \[race-all\]\(2000-.* \| \*\*1.50\*\* \| 0.75 \| 3.00 \|$",
                 r"^\| \[race-all\]\(2000-.* \| \d+ \| \*\*1.50 \(0.75\)\*\* \|$"]:
        t.expect(re.search(says, page, re.M), f"the page says {says!r}")
    t.expect(re.findall("old .*", page) == ["old table none-*"] and
             page.startswith("# A\n<!-- table race -->\n"), "what no log is there for stays")


def test_check(t):
    tiles = Run("tiles").out
    refused = re.search(r"^refused by cpu:\n((?:  .*\n)*)", tiles, re.M)
    refused = re.findall(r"^  (\w+)", refused[1], re.M) if refused else []
    rows = set(re.findall(r"^(\w+) +\d+x\d+x\d+/", tiles, re.M)) - set(refused)
    run = t.good("check", env=UTF8, says=["all exactly right"] + [rf"^{row} .*✓" for row in rows])
    t.expect("✗" not in run.out, "nothing is wrong", run)
    t.good("check", "--tile", "v4_reg", "--report", says=[
        r"^tilegemm \S+, \d+ tilings, \w+", "cpu: ", "L1 cache", r"^f32: [1-9]\d*\.\d GFLOP/s",
        "all exactly right"])


def test_plots(t):
    run = t.good("bench", "16..64", "9x8x7", "--rounds", 1, "--roofline", "roof.svg")
    t.expect(is_plot("roof.svg", "peak ", "memory ", "64x64x64", "9x8x7"), "roofline", run)
    run = t.good("ladder", "32", "--rounds", 1, "--plot", "bars.svg")
    t.expect(is_plot("bars.svg", "peak ", "v0_global", "k10_warp", "the chooser"), "bars", run)
    for command in [["bench", "8", "--roofline"], ["ladder", "8", "--plot"]]:
        Path("old.svg").write_text("old")
        before = sorted(os.listdir("."))
        t.refused(1, "old.svg cannot be written: File too large", *command, "old.svg",
                  "--rounds", 1, with_limit=1000)
        t.expect(Path("old.svg").read_text() == "old", "an old file stays")
        t.expect(sorted(os.listdir(".")) == before, "no other file is left")
    Path("shapes").write_bytes(b"8 a\x01\x7f\xe9\xef\xbf\xbf<b\n")
    run = t.good("bench", "--shapes", "shapes", "--rounds", 1, "--roofline", "roof.svg")
    t.expect(is_plot("roof.svg", "a\ufffd\ufffd\ufffd\ufffd"), "what is no letter is replaced", run)


def test_wrong_library(t):
    env = build_wrong()
    before = sorted(os.listdir("."))
    check = Run("check", env=env)
    t.expect(check.status == 1 and "REPRO: tilegemm check" in check.out, "check sees it", check)
    for args in ["ladder 16 --rounds 1", "bench 20 --rounds 1",
                 "bench 20 --type f64 --rounds 1 --json"]:
        run = Run(*args.split(), env=env)
        t.expect(run.status == 1 and re.search("is wrong.* is .*not|should", run.err),
                 f"{args} sees it", run)
    save("small.npy", integers(30, 30, 1))
    save_zeros("large.npy", 1100, 1100)
    t.all_refused("""
        1 | the result is wrong | multiply small.npy small.npy -o c.npy --verify
        1 | the result is wrong | multiply large.npy large.npy -o c.npy --verify
        """, env=env)
    t.expect(sorted(os.listdir(".")) == sorted(before + ["large.npy", "small.npy"]),
             "no output is left behind")


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
        raise LeftOut("there is no bash")

    def complete(*words):
        text = (f"source {shlex.quote(script)}; COMP_WORDS=({shlex.join(words)}); "
                f"COMP_CWORD={len(words) - 1}; _tilegemm; echo ${{COMPREPLY[*]}}")
        done = subprocess.run(["bash", "-c", text], stdout=subprocess.PIPE, text=True)
        return done.stdout.split()

    t.expect(set(COMMANDS) <= set(complete(PROGRAM, "")), "commands are completed")
    t.expect(complete(PROGRAM, "mul") == ["multiply"], "a command is completed")
    t.expect(complete(PROGRAM, "multiply", "--tr") == ["--trans-a", "--trans-b"], "options are")
    t.expect(complete(PROGRAM, "bench", "--type", "f") == ["f32", "f64", "f16"], "values are")
    t.expect(complete(PROGRAM, "bench", "--tile", "k") == ["k5_2d", "k10_warp"], "tilings are")
    t.expect(complete(PROGRAM, "bench", "--tile", "a") == ["all"], "all of them, in a race")
    t.expect(complete(PROGRAM, "check", "--tile", "a") == [], "but one where one is run")


if __name__ == "__main__":
    everything = {**globals()}
    for more in [cli_bench, cli_gpu, cli_multiply, cli_tune]:
        everything.update(vars(more))
    sys.exit(main({name: it for name, it in everything.items() if name.startswith("test_")}))
