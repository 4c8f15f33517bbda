# SPDX-License-Identifier: Apache-2.0
"""Tests of `tilegemm tune` and of the tuning file."""
import os
import re
import subprocess
from pathlib import Path

from cli_suite import UTF8, Run, build_fake, on_terminal, start

KEY = "cpu f32 NN 32x64x32 *1 threads 1 "


def build_slow():
    """The environment under which the chooser is slower than any tiling."""
    env = {**build_fake("fake_slow.c", "slow.so"), "TILEGEMM_TUNING": "tuned/lines.txt"}
    Run("bench", "8", "--rounds", 1, env=env)
    assert os.path.exists("slowed"), "the chooser is fast"
    return env


def lines_of(path):
    return [line for line in Path(path).read_text().splitlines() if line and line[0] != "#"]


def why(t, *args, env, traced=True):
    """What `explain` says of the choice, and the trace."""
    run = Run("explain", *args, "--threads", 1, env={**env, "TILEGEMM_TRACE": "1" if traced else ""})
    t.expect(run.status == 0, "a tuning file is never fatal", run)
    return re.search("^why +(.*)", run.out, re.M)[1], run.err


def tune(t, env, *args):
    """A bucket of two shapes, and one of one. The lines that there are have no part in the race, or
    the trace would tell of them."""
    Path("shapes").write_text("30x60x33\n33x66x30\n9 *3\n")
    return t.good("tune", "--shapes", "shapes", "--threads", 1, "--rounds", 6, *args,
                  env={**env, "TILEGEMM_TRACE": "1"})


def test_tune(t):
    env = build_slow()
    os.mkdir("tuned")
    others = [KEY + "Another CPU, avx512 = v1 x 8x8x8/0x0/1x1/1/1 +3%", "nonsense"]
    device = re.search("cpu: (.*)", t.good("info", "--backend", "cpu").out)[1]
    Path("tuned/lines.txt").write_text("\n".join([*others, KEY + device + " = v0 old", ""]))
    run = tune(t, env)
    t.says(run, r"^32x64x32 NN +2 +\d+ +\+\d")
    t.says(run, "^2 of 2 buckets have a tiling that is faster")
    lines = lines_of("tuned/lines.txt")
    t.expect(lines[:2] == others and len(lines) == 4, "other devices' lines stay", run)
    t.expect(sum(line.startswith(KEY + device) for line in lines) == 1, "one line a bucket", run)
    t.expect(all(re.search(r"/2(/outer)? \+\d", line) for line in lines[2:]), "the best has it", run)
    t.expect(sorted(os.listdir("tuned")) == ["lines.txt"], "no temporary file is left", run)
    tuned = {"TILEGEMM_TUNING": "tuned/lines.txt"}
    t.expect(why(t, "32", "64", "32", env=tuned)[0].startswith("a line of the"), "it is used")
    t.expect(why(t, "32", "64", "32", "--type", "f64", env=tuned)[0].startswith("the chooser's"),
             "but not for another type")
    t.expect(why(t, "32x64x32", "--tile", "c6x8", env=tuned)[0].startswith("it was asked"),
             "--tile wins")
    run = t.good("bench", "32x64x32", "40", "--threads", 1, "--rounds", 1, "--json", env=tuned)
    t.expect(re.findall(r'"tuned": (\w+)', run.out) == ["true", "false"], "a log says so", run)
    run = t.good("tune", "--show", env={**tuned, **UTF8}, says=["^tuned/lines.txt$", "^✗ nonsense$",
                 f"^✓ {re.escape(KEY)}", "^✗ cpu .*Another CPU", "^2 lines for this machine"])
    run = tune(t, {**env, "SLOW": "tilings"})
    t.says(run, "^0 of 2 buckets have")
    t.expect(lines_of("tuned/lines.txt") == others, "a line that is slower now goes", run)


def test_tune_doubts(t):
    """Gains that are large, but on one shape a loss; and those that two rounds of five deny."""
    env = build_slow()
    for slow, kept in [("m33", 1), ("some", 0)]:
        run = tune(t, {**env, "SLOW": slow, "TILEGEMM_TUNING": slow}, "--rounds", 15)
        t.says(run, f"^{kept} of 2 buckets have")
        t.says(run, r"^32x64x32 NN +2 +\d+ +\+\d+\.\d %")
        t.expect(os.path.exists(slow) == kept, "a file is made for a line alone", run)
        t.expect(not kept or not any(line.startswith(KEY) for line in lines_of(slow)),
                 "there is a doubt", run)


def test_tune_terminal(t):
    os.environ["TILEGEMM_TUNING"] = "lines.txt"
    shown = on_terminal(["tune", "8", "20", "--threads", "1", "--rounds", "6"], {})
    os.environ["TILEGEMM_TUNING"] = ""
    t.expect(b"] " in shown, "a bar shows the progress")


def test_tuning_file(t):
    env = build_slow()
    tune(t, env)
    t.good("tune", "--export", "copy.txt", env=env, says=["^2 lines written to copy.txt$"])
    good = next(line for line in lines_of("copy.txt") if line.startswith(KEY))
    t.expect(lines_of("copy.txt") == lines_of("tuned/lines.txt"), "an export has all lines")
    edits = [(r"\+\d+%$", "+x%", "is no line"), ("64x32 ", "65x32 ", "65 is no power of two"),
             (" v1 ", " v2 ", "format v2"), (r" [\d.]+-", " 9.9-", "wrote it"),
             ("^cpu", "cuda", "it is for cuda"), ("threads 1 .* = ", "threads 1 A CPU = ", '"A CPU"'),
             ("0x0x0/", "0x0x64/", "could change bits"), (r"/(\d+x\d+)/(\d+)/", r"/\1/3/", "vec = 3")]
    bad = [re.sub(old, new, good) for old, new, _ in edits]
    Path("bad.txt").write_text("\n".join(bad) + "\n")
    asked, trace = why(t, "32x64x32", env={"TILEGEMM_TUNING": "bad.txt"})
    t.expect(asked.startswith("the chooser's"), "none of the bad lines is used")
    for number, (_, _, says) in enumerate(edits, 1):
        t.expect(f"bad.txt, line {number} is skipped: " in trace and
                 says in trace.splitlines()[number - 1], f"line {number}: {says!r} in {trace!r}")
    t.expect(why(t, "32x64x32", env={"TILEGEMM_TUNING": "bad.txt"}, traced=False)[1] == "",
             "the library prints nothing unless it is to trace")
    other = good.replace("32x64x32", "64x32x32")
    there = {**UTF8, "TILEGEMM_TUNING": "new/folder/lines.txt"}
    Path("bad.txt").write_text("\n".join(bad + [good, other, "# mine"]) + "\n")
    t.good("tune", "--import", "bad.txt", env=there, says=["^4 lines taken over, 2 for this machine",
           "left out: .*no line", "left out: .*bits", "left out: .*wrote it", "not used: .*cuda",
           f"^✓ {re.escape(good)}"])
    t.expect(lines_of("new/folder/lines.txt") == bad[4:6] + [good, other],
             "what may be of use is there")
    t.good("tune", "--import", "copy.txt", env=there)
    t.expect(lines_of("new/folder/lines.txt")[:3] == bad[4:6] + [other] and
             sorted(lines_of("new/folder/lines.txt")[3:]) == sorted(lines_of("copy.txt")),
             "the same key, the same line")
    os.symlink("copy.txt", "link.txt")
    t.good("tune", "--import", "bad.txt", env={**UTF8, "TILEGEMM_TUNING": "link.txt"})
    t.expect(os.path.islink("link.txt") and bad[4] in lines_of("copy.txt"), "a link stays a link")


def test_tuning_writers(t):
    """Lines that are taken over at the same time are all there in the end."""
    env = build_slow()
    tune(t, env)
    good = next(line for line in lines_of("tuned/lines.txt") if line.startswith(KEY))
    lines = [good.replace("32x64x32", f"{2**i}x64x32") for i in range(8)]
    runs = []
    for i, line in enumerate(lines):
        Path(f"{i}.txt").write_text(line + "\n")
        runs.append(start("tune", "--import", f"{i}.txt", stdout=subprocess.DEVNULL,
                          env={**os.environ, "TILEGEMM_TUNING": "new/all.txt"}))
    t.expect(all(run.wait(timeout=60) == 0 for run in runs), "all of them succeed")
    t.expect(sorted(lines_of("new/all.txt")) == sorted(lines), "no line is lost")
    t.expect(os.listdir("new") == ["all.txt"], "nothing else is left")


def test_tuning_folders(t):
    here = {"TILEGEMM_TUNING": "", "XDG_CONFIG_HOME": "", "HOME": os.getcwd()}
    Path("a_file").write_text("")
    Path("lines.txt").write_text("nonsense\n")
    t.all_refused("""
        1 | TILEGEMM_TUNING is empty           | tune 8
        1 | TILEGEMM_TUNING is empty           | tune --show
        2 | is no shape                        | tune 8x
        2 | --trans takes                      | tune --trans XY
        2 | --rounds 5 is too few: it takes 6  | tune 8 --rounds 5
        """, env=here)
    Path("corrupt.txt").write_bytes(b"\x1b[31mred\x7f \xc2\x9b \xff \xc3\xa9\n")
    seen = on_terminal(["tune", "--show"], {"TILEGEMM_TUNING": "corrupt.txt", "NO_COLOR": "1"})
    t.expect(seen.count("?[31mred? ?? ? \xe9".encode()) == 2, f"no control bytes: {seen}")
    for path, says in [("a_file/x", "cannot be read: Not a dir"), ("/dev/null", "not a regular"),
                       ("/proc/nowhere/x", "/proc/nowhere/x cannot be written: No such")]:
        t.refused(1, says, "tune", "1000000", env={"TILEGEMM_TUNING": path})
        t.expect(why(t, "32", env={"TILEGEMM_TUNING": path})[0].startswith("the chooser's"), path)
    for path, reason in [("nowhere/x", "No such"), ("a_file/x", "Not a dir"), (".", "it is no file"),
                         ("/dev/null", "it is no file of at most 1 MiB")]:
        trace = why(t, "32", env={"TILEGEMM_TUNING": path})[1]
        t.expect(trace.startswith(f"tilegemm: {path} is not used: {reason}"), f"why not: {trace}")
    at = {"TILEGEMM_TUNING": "mine.txt"}
    t.refused(1, "nowhere cannot be read", "tune", "--import", "nowhere", env=at)
    Path("comments.txt").write_text("# mine\n\n")
    for path in ["mine.txt", "a_file", "comments.txt"]:
        t.refused(1, f"{path} has no line to export", "tune", "--export", "copy.txt",
                  env={"TILEGEMM_TUNING": path})
    run = Run("tune", "--import", "lines.txt", env=at)
    t.expect(run.status == 1 and "lines.txt has no line that" in run.err, "nothing to import", run)
    t.good("tune", "--show", env=at, says=["^0 lines for this machine"])
    t.expect(not os.path.exists("mine.txt") and not os.path.exists("copy.txt"), "nothing is written")
    slow = build_slow()
    os.environ.pop("TILEGEMM_TUNING")
    for env, path in [({**here, "XDG_CONFIG_HOME": os.path.join(os.getcwd(), "c")}, "c/tilegemm"),
                      (here, ".config/tilegemm")]:
        env = {name: it for name, it in {**slow, **env}.items() if name != "TILEGEMM_TUNING"}
        t.good("tune", "8", "--threads", 1, "--rounds", 6, env={**env, "SLOW": "tilings"},
               says=[f"^0 of 1 .*{path}/tuning.txt is not made$"])
        t.expect(not os.path.exists(os.path.dirname(path)), "no folder is made for no line")
        t.good("tune", "8", "--threads", 1, "--rounds", 6, env=env)
        t.expect(os.listdir(path) == ["tuning.txt"], "a missing folder is made")
    t.refused(1, "HOME must say where", "tune", env={"XDG_CONFIG_HOME": "", "HOME": ""})
    t.good("explain", "32", env={"XDG_CONFIG_HOME": "", "HOME": "", "TILEGEMM_TRACE": "1"})
    t.good("explain", "32", env={"XDG_CONFIG_HOME": "/nowhere", "TILEGEMM_TRACE": "1"})
    t.refused(1, 'TILEGEMM_TRACE = "yes" is not 0 or 1', "info", env={"TILEGEMM_TRACE": "yes"})
    os.environ["TILEGEMM_TUNING"] = ""
