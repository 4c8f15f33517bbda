#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes lines such as tests/test_choose.c reads of what rows took in races:

    tilegemm bench --shapes docs/shapes/cpu-rows.txt --tile ROW,ROW --threads 1 --json | docs/rows.py

m n k batch transposes type row splits tail microseconds, the best sample: neighbours only make one slower. The first runner, which is the
chooser's, is left out, and so is all that took more than 3 times as long as the best.
"""
import json
import sys

for log in [json.loads(text) for text in sys.stdin.read().replace("}\n{", "}\0{").split("\0")]:
    for one in log["results"]:
        rows = [run for run in one["runs"][1:] if run.get("row")]
        best = min(run["best_ms"] for run in rows)
        for run in rows:
            if run["best_ms"] <= 3 * best:
                print(one["m"], one["n"], one["k"], one["batch"], one["trans"], log["type"], run["row"],
                      run["splits"], int(run["tail"] == "split"), "%.2f" % (1e3 * run["best_ms"]))
