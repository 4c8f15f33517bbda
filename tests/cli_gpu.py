# SPDX-License-Identifier: Apache-2.0
"""Tests of the program on GPUs, which test_cli.py runs with its own: on a CPU that passes for one,
and on a real one where it is there."""
import json
import os
import re
import shutil
from pathlib import Path

from cli_suite import UTF8, LeftOut, Run, build_fake_gpu, integers, is_plot, race_peer, save

GPU = ["--backend", "cuda"]


def test_fake_gpu(t):
    env = build_fake_gpu()
    t.good("info", *GPU, env=env, says=[
        "a unit holds +2048 threads, 65536 regis",
        "1980 MHz, memory 3201 MHz, 698 W, held back by power cap, heat"])
    t.good("explain", "1000x1000x512", "--tile", "64x64x16/32x32/4x4/4/2", *GPU, env=env, says=[
        r"blocks +256 \(16 x 16\)", r"waves +21.33: 256 blocks on 6 units, 2 at once",
        r"\[########\] \.\.\. \[##\.{6}\]", "tail +4 of 12 places, .* 67 % idle",
        r"threads +128 +2048 +16 +256", r"registers +44\+ a thread +65536 +10 +96 a thread",
        r"fast memory +16 KiB +228 KiB +13 +32 KiB",
        "10 blocks at once by formula, 2 by the driver: 16 of 64"])
    t.good("check", "--tile", "v5_reg_vec4", *GPU, env=env, says=["all exactly right"])
    save("a.npy", integers(30, 30, 1))
    t.good("multiply", "a.npy", "a.npy", "-o", "c.npy", "--verify", *GPU, env=env, says=["exactly"])
    for args in ["--type f32 --peer cublas=./cublas.so", "--type f64 --peer cublas=./narrow.so"]:
        race_fake_cublas(t, [*GPU, *args.split()], env)
    t.refused(1, "has no cublasCreate_v2", "bench", "8", *GPU, "--peer", "x=libm.so.6", env=env)
    t.refused(1, "nowhere.so", "ladder", "8", *GPU, "--peer", "x=./nowhere.so", env=env)


def race_fake_cublas(t, args, env):
    shapes = "24x31x17 NN\n24x31x17 NT\n24x31x17 TN\n24x31x17 TT *3\n1x9x5\n9x1x1 *2\n"
    report, run = race_peer(t, shapes, "cublas", *args, env=env)
    ratio = report["results"][0]["runs"][0]["ratios"][0]
    t.expect(ratio["peer"] == "cublas" and ratio["median"] > 0, "the ratios", run)
    t.expect(report["clocks_before"]["sm_mhz"] == 1980 and
             report["clocks_after"]["held_back_by"] == "power cap, heat", "the clocks", run)
    t.good("bench", "20", "--rounds", 1, *args, env=env,
           says=["clocks before: 1980 MHz", "clocks after"])


def test_real_gpu(t):
    env = {**UTF8, "CUDA_VISIBLE_DEVICES": "0"}
    if Run("explain", "64", *GPU, env=env).status != 0:
        raise LeftOut("there is none")
    cublas = os.environ.get("TILEGEMM_TEST_CUBLAS")
    peer = ["--peer", f"cublas={cublas}"] if cublas else []
    t.good("check", *GPU, env=env, says=["all exactly right"])
    t.good("info", *GPU, env=env, says=["a unit holds"])
    t.good("tiles", *GPU, env=env, says=["v0_global .*✓"])
    t.good("ladder", "300x200x100", *GPU, *peer, "--plot", "bars.svg", env=env,
           says=["k10_warp .*✓"])
    t.good("explain", "1000x900x800", *GPU, env=env, says=["by the driver"])
    save("a.npy", integers(30, 30, 1))
    t.good("multiply", "a.npy", "a.npy", "-o", "c.npy", "--verify", *GPU, env=env, says=["exactly"])
    shapes = "100 NN\n128x120x136 NT\n99x77x55 TN\n64x96x32 TT *30\n1x999x555\n7x1x1 *2\n"
    for kind in ["f32", "f64"]:
        args = [*GPU, *peer, "--type", kind]
        race_peer(t, shapes, "cublas" if cublas else None, *args, env=env)
        t.good("bench", "512", "--tile", "all", "--rounds", 2, "--roofline", "roof.svg", *args,
               env=env, says=["the chooser reaches"])
    if shutil.which("ncu"):
        run = t.good("ladder", "512", *GPU, "--counted", "--json", env=env)
        t.expect(all(r["counted_bytes"] > 0 for r in json.loads(run.out)["ladder"]), "counts", run)


def test_hip(t):
    if os.environ.get("TG_TEST_BACKEND") != "hip":
        raise LeftOut("it is not asked for")
    hip = ["--backend", "hip"]
    t.good("ladder", 64, "--rounds", 1, *hip, env=UTF8, says=[r"^k10_warp .*✓", r"^the chooser .*✓"])
    t.good("explain", "1000x900x800", *hip, env=UTF8, says=[
        r"a thread, held\n.*1000 x 900 ", "x [1-9][0-9]* vector", "the driver runs [1-9]", "^roofline .*bound"])


def write_ncu(*lines):
    os.makedirs("bin", exist_ok=True)
    Path("bin/ncu").write_text("\n".join(["#!/bin/sh", *lines, ""]))
    os.chmod("bin/ncu", 0o755)


def test_counted(t):
    env = build_fake_gpu()
    ladder = ["ladder", "24", *GPU, "--rounds", 1, "--peer", "cublas=./cublas.so", "--counted"]
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
    run = t.good(*ladder, "--plot", "bars.svg", env=env, says=["of cublas .* occupied .* counted"])
    t.expect(is_plot("bars.svg", "of cublas"), "bars", run)
