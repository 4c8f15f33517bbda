#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes measured tables into Markdown, so that no figure is ever typed.

    docs/table.py [--check] [--results FOLDER] [FILE.md ...]

Between the lines `<!-- table NAME -->` and `<!-- end -->` of each file (README.md unless others are
named) stands what the newest docs/results/*NAME.json says, as `tilegemm bench --json` or `tilegemm
ladder --json` printed it. With --check nothing is written, and a file that is not up to date is an
error.
"""
import argparse
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCK = re.compile(r"(<!-- table ([\w.-]+) -->\n)(.*?)(<!-- end -->)", re.S)


def newest_log(folder, name):
    logs = sorted(log for log in os.listdir(folder)
                  if re.fullmatch(rf"(.*-)?{re.escape(name)}\.json", log))
    if not logs:
        raise SystemExit(f"table.py: {folder} has no log of {name}: *-{name}.json")
    with open(os.path.join(folder, logs[-1])) as file:
        return json.load(file), logs[-1]


def markdown(head, rows):
    """The first column is text, the others are numbers."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def rate_of(gflops_list):
    return ("TFLOP/s", 1e3) if max(gflops_list) >= 1e4 else ("GFLOP/s", 1)


def problem(result):
    shape = " × ".join(str(result[size]) for size in "mnk")
    if result["m"] == result["n"] == result["k"]:
        shape = str(result["m"])
    trans = "" if result["trans"] == "NN" else " " + result["trans"]
    batch = "" if result["batch"] == 1 else f" · {result['batch']}"
    return shape + trans + batch + (f", {result['label']}" if result["label"] else "")


def conditions(log, name):
    clocks = log.get("clocks_after")
    where = f"{log['machine']}, {log['type']}"
    if clocks:
        where += f", {clocks['sm_mhz']} MHz"
    if log["backend"] == "cpu":
        where += f", {log['threads']} thread{'s' if log['threads'] > 1 else ''}"
    return f"\n{where}, {log['date'][:10]}: [{name}](docs/results/{name})\n"


def bench_table(log):
    peers = [peer["name"] for peer in log["geometric_means"]["peers"]]
    rate, scale = rate_of([run["gflops"] for result in log["results"] for run in result["runs"]])
    head = ["m × n × k", rate, "of peak"] + [x for peer in peers for x in (peer, "×")]
    rows = []
    for result in log["results"]:
        runs = {run["name"]: run for run in result["runs"]}
        own = result["runs"][0]
        row = [problem(result), f"{own['gflops'] / scale:.1f}",
               f"{100 * own['gflops'] / result['peak_gflops']:.0f} %"]
        for peer in peers:
            row += [f"{runs[peer]['gflops'] / scale:.1f}",
                    f"{runs[peer]['median_ms'] / own['median_ms']:.2f}"]
        rows.append(row)
    means = log["geometric_means"]
    rows.append(["geometric mean", "", f"{100 * means['share_of_peak']:.0f} %"] +
                [x for peer in means["peers"] for x in ("", f"**{peer['median_ratio']:.2f}**")])
    return markdown(head, rows)


def bytes_text(count):
    for unit in ["B", "KiB", "MiB", "GiB"]:
        if count < 1024 or unit == "GiB":
            return f"{count:.3g} {unit}" if count < 100 else f"{count:.0f} {unit}"
        count /= 1024


def ladder_table(log):
    rungs = log["ladder"]
    rate, scale = rate_of([rung["gflops"] for rung in rungs])
    columns = [
        ("ms", lambda rung: f"{rung['median_ms']:.3f}"),
        (rate, lambda rung: f"{rung['gflops'] / scale:.3g}"),
        ("× first", lambda rung: f"{rungs[0]['median_ms'] / rung['median_ms']:.1f}"),
        ("of peak", lambda rung: f"{100 * rung['gflops'] / log['peak_gflops']:.0f} %")]
    if "peer" in log:
        columns += [(f"of {log['peer']}", lambda rung: f"{100 * rung['of_peer']:.0f} %")]
    columns += [("staged", lambda rung: bytes_text(rung["staged_bytes"]))]
    if log["backend"] != "cpu":
        columns += [("occupied", lambda rung: f"{100 * rung['occupied']:.0f} %")]
    columns += [("traffic", lambda rung: bytes_text(rung["traffic_bytes"]))]
    if "counted_bytes" in rungs[0]:
        columns += [("counted", lambda rung: bytes_text(rung["counted_bytes"]))]
    return markdown(["rung"] + [name for name, _ in columns],
                    [[f"`{rung['rung']}`"] + [text(rung) for _, text in columns]
                     for rung in rungs])


def fill_in(text, folder):
    def table(block):
        log, name = newest_log(folder, block[2])
        lines = ladder_table(log) if "ladder" in log else bench_table(log)
        return block[1] + lines + conditions(log, name) + block[4]
    return BLOCK.sub(table, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    parser.add_argument("--results", default=os.path.join(HERE, "results"), metavar="FOLDER")
    parser.add_argument("files", nargs="*", metavar="FILE.md",
                        default=[os.path.join(HERE, "..", "README.md")])
    options = parser.parse_args()
    stale = 0
    for path in options.files:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after = fill_in(before, options.results)
        if options.check and after != before:
            print(f"table.py: {path} is not what the logs say: run docs/table.py", file=sys.stderr)
            stale = 1
        elif after != before:
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
    return stale


if __name__ == "__main__":
    sys.exit(main())
