# SPDX-License-Identifier: Apache-2.0
"""Tests of `tilegemm bench`, which test_cli.py runs with its own."""
import glob
import json
import os
import re
from pathlib import Path

from cli_suite import HERE, LeftOut, build_fake, is_plot, numpy, race_peer


def test_bench_short_types(t):
    for kind in ["f16", "bf16", "i8", "u8"]:
        t.good("bench", "70", "5x70x600", "--rounds", 1, "--trans", "TN", "--type", kind,
               says=["70x70x70 .* %", "5x70x600 .* %"])
        t.good("tiles", "--type", kind, says=["^c6x8 "])
        t.good("explain", "70", "--type", kind, says=[f"70 x 70 x 70, {kind}"])
        t.good("ladder", "33", "--rounds", 1, "--type", kind, "--threads", 1)


def test_bench(t):
    t.good("bench", "33", "16..64", "5x70x9", "--rounds", 2, "--trans", "TN", "--type", "f64",
           says=[f"^{name} .* %" for name in ["33x33x33", "16x16x16", "32x32x32", "64x64x64",
                                              "5x70x9", "geometric mean"]])
    Path("shapes").write_text("# shapes\n40   # a cube\n\n  8x9x10\n16..32\n")
    t.good("bench", "--shapes", "shapes", "--rounds", 2,
           says=[f"^{name} " for name in ["40x40x40", "8x9x10", "16x16x16", "32x32x32"]])
    t.good("bench", "40", "--tile", "all", "--rounds", 1,
           says=[f"^40x40x40 +{row} " for row in ["v0_global", "k5_2d", "k10_warp", "t24x40x3"]])
    run = t.good("bench", "40", "--tile", "c6x8,v4_reg", "--rounds", 1)
    t.expect(re.findall(r"^40x40x40 +(\w+) ", run.out, re.M)[1:] == ["v4_reg", "c6x8"], "two", run)
    for text, says in [("64\n64x\n", "shapes, line 2: .*no shape"),
                       ("64 64\n", "line 1: \"64\" is neither"),
                       ("9\n64 64 64x2\n", "shapes, line 2: \"64 64x2\" is neither"),
                       ("64 XX\n", "line 1: \"XX\" is neither"), ("64 nt\n", "\"nt\" is neither"),
                       ("64 T label\n", "is neither"), ("64 scores NT\n", "\"scores NT\" is neither"),
                       ("64 scores *9\n", "is neither"),
                       ("64 NN *0\n", "is neither"), ("# none\n", "has no shape in it")]:
        Path("shapes").write_text(text)
        t.refused(1, says, "bench", "--shapes", "shapes")


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
    t.expect("share_of_reading" not in one, "a small product is in a cache", run)
    run = t.good("bench", "1x9000x9000", "--rounds", 1, "--json", "--threads", 1)
    result = json.loads(run.out)["results"][0]
    share = 4 * 9000 * 9002 / result["runs"][0]["median_ms"] / 1e6 / result["reading_gbytes"]
    t.expect(abs(result["runs"][0]["share_of_reading"] / share - 1) < .01 and share > .2,
             "the rate of reading", run)


def test_bench_peak(t):
    env = build_fake("fake_peak.c", "peak.so")
    run = t.good("bench", "8", "9x300x300", "400", "8", "--rounds", 2, "--threads", 3, "--json",
                 "--roofline", "roof.svg", env=env)
    results = json.loads(run.out)["results"]
    t.expect(os.path.exists("peaked") and [r["peak_gflops"] for r in results] ==
             [r["runs"][0]["plan_threads"] for r in results], "the peak is of the threads", run)
    t.expect([r["runs"][0]["plan_threads"] for r in results][::2] == [1, 3], "one and all", run)
    t.expect(is_plot("roof.svg", "peak 3 GFLOP"), "the roof is the highest of them", run)


def test_bench_lists(t):
    Path("shapes").write_text("8x9x10 NT *5 attention, scores\n16 *3\n11 5 7 TT a label\n6x7x8\n")
    run = t.good("bench", "20x1x3", "--shapes", "shapes", "--rounds", 1, "--json", "--trans", "TN",
                 "--batch", 2)
    results = json.loads(run.out)["results"]
    found = [(r["m"], r["n"], r["k"], r["batch"], r["trans"], r["label"]) for r in results]
    t.expect(found == [(8, 9, 10, 5, "NT", "attention, scores"), (16, 16, 16, 3, "TN", ""),
                       (11, 5, 7, 2, "TT", "a label"), (6, 7, 8, 2, "TN", ""),
                       (20, 1, 3, 2, "TN", "")], "lines have a transpose, a batch, a label", run)
    checked = [r["runs"][0]["checked"] for r in results]
    t.expect(checked == [8 * 9 * 5, 16 * 16 * 3, 110, 84, 40], "every item is checked", run)
    t.good("bench", "--shapes", "shapes", "--rounds", 1,
           says=[r"^8x9x10 NT \*5 .* attention, scores$"])
    name = "é" * 60  # does not fit, and must not end within a letter
    Path("shapes").write_text(f"# {'a long line ' * 200} 7\n5 {name}\n")
    run = t.good("bench", "--shapes", "shapes", "--rounds", 1, "--json")
    label = json.loads(run.out)["results"][0]["label"]
    t.expect(len(label) > 20 and name.startswith(label), "a long comment, a long label", run)
    Path("shapes").write_bytes(b"5 caf\xe9 \xed\xa0\x80 \xc0\x80 \xf8\x90\x80\x80\n")
    run = t.good("bench", "--shapes", "shapes", "--rounds", 1, "--json")
    t.expect("\\ufffd" in run.out and run.out.isascii() and json.loads(run.out),
             "what is no UTF-8 is replaced", run)
    for path in glob.glob(os.path.join(HERE, "..", "docs", "shapes", "*.txt")):
        lines = [line.split("#")[0].strip() for line in open(path)]
        t.expect(all(re.match(r"$|\d[\dx.]*(\s+[NT]{2})?(\s+\*\d+)?(\s+[^\d\s*].*)?$", line)
                     for line in lines), f"{path} is a list of problems")


def test_bench_peer(t):
    libraries = os.environ.get("TILEGEMM_TEST_PEER", "").split()
    if numpy:
        libraries += glob.glob(os.path.join(os.path.dirname(numpy.__file__), "..", "numpy.libs",
                                            "libscipy_openblas*.so*"))
    if not libraries:
        raise LeftOut("name libraries in TILEGEMM_TEST_PEER")
    for library in libraries:
        for kind in ["f32", "f64"]:
            report, run = race_peer(t, "64 NT\n10x70x33 NT\n", "other", "--type", kind, "--peer",
                                    f"other={library}")
            t.expect(report["geometric_means"]["peers"][0]["median_ratio"] > 0, "ratio", run)
        t.refused(1, "has no typo_cblas_sgemm", "bench", "8", "--peer", f"x={library}:typo_")


def test_bench_fake_peer(t):
    shapes = "9x31x17\n9x31x17 NT\n9x31x17 TN *2\n9x31x17 TT *3\n1x9x5\n9x1x1 *2\n"
    for flags in [[], ["-DBATCHED"], ["-DWIDE"], ["-DWIDE", "-DBATCHED"]]:
        build_fake("fake_cblas.c", "fake.so", *flags)
        for kind in ["f32", "f64"]:
            race_peer(t, shapes, "fake", "--type", kind, "--peer", "fake=./fake.so")
            t.expect(os.path.exists("batched") == ("-DBATCHED" in flags), "batches are one call")
        Path("batched").unlink(missing_ok=True)
