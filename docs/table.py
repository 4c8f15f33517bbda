#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes measured tables into Markdown, so that no figure is ever typed.

    docs/table.py [--check] [--results FOLDER] [FILE.md ...]

The logs are docs/results/DATE-NAME.json, as `tilegemm bench --json` or `tilegemm ladder --json`
printed them; of each NAME the newest counts. In each file (README.md and docs/results/README.md
unless others are named) the lines up to `<!-- end -->` are replaced after

    <!-- table NAME -->      by all that the log says; where NAME is a pattern, say h?00-*, by one
                             table with a heading for each log that fits
    <!-- summary NAME -->    by one line for each log that fits, beside each peer
    <!-- groups NAME -->     by one line too, with each group of its problems beside the best peer

A name without a log is an error. A pattern that no log fits leaves what stands there. With --check
nothing is written, and a file that is not up to date is an error, as is a link from it to no file.
"""
import argparse
import fnmatch
import json
import os
import re
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LINK = re.compile(r"\]\(([^)#\s:]+)[)#]")
BLOCK = re.compile(r"(<!-- (table|summary|groups) ([\w.*?-]+) -->\n)(.*?)(<!-- end -->)", re.S)
FEW = 4


def newest_logs(folder, pattern):
    """[(NAME, file name, log)]"""
    newest = {}
    for file in sorted(os.listdir(folder)):
        name = re.fullmatch(r"(?:\d{4}-\d\d-\d\d-)?(.*)\.json", file)
        if name and fnmatch.fnmatchcase(name[1], pattern):
            newest[name[1]] = file
    logs = []
    for name, file in sorted(newest.items()):
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            logs.append((name, file, json.load(text)))
    if not logs and "*" not in pattern:
        raise SystemExit(f"table.py: {folder} has no log of {pattern}: DATE-{pattern}.json")
    return logs


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


def conditions(log, link):
    clocks = log.get("clocks_after")
    where = f"{log['machine']}, {log['type']}"
    if clocks:
        where += f", {clocks['sm_mhz']} MHz"
    if log["backend"] == "cpu":
        where += f", {log['threads']} thread{'s' if log['threads'] > 1 else ''}"
    return f"\n{where}, {log['date'][:10]}: [{os.path.basename(link)}]({link})\n"


def peers_of(log):
    return [peer["name"] for peer in log["geometric_means"]["peers"]]


def ratio(result, peer):
    """How many times as fast as the peer."""
    return next(one["median"] for one in result["runs"][0]["ratios"] if one["peer"] == peer)


def mean_ratio(results, peer):
    return statistics.geometric_mean(ratio(result, peer) for result in results)


def mean_share(results):
    return statistics.geometric_mean(result["runs"][0]["gflops"] / result["peak_gflops"] for result in results)


def groups_of(log):
    """{NAME: results}: problems with one label, up to its comma, of which there are a few."""
    groups = {}
    for result in log["results"]:
        groups.setdefault((result["label"] or "").split(",")[0], []).append(result)
    return {name: results for name, results in groups.items() if name and len(results) >= FEW}


def reading(run):
    """Of a product that no cache holds: the share of the rate at which memory can be read."""
    return f", {100 * run['share_of_reading']:.0f} % of reading" if "share_of_reading" in run else ""


def bench_table(log):
    rate, scale = rate_of([run["gflops"] for result in log["results"] for run in result["runs"]])
    head = ["m × n × k", rate, "of peak"] + [x for peer in peers_of(log) for x in (peer, "×")]
    rows = []
    for result in log["results"]:
        runs = {run["name"]: run for run in result["runs"]}
        own = result["runs"][0]
        row = [problem(result), f"{own['gflops'] / scale:.1f}",
               f"{100 * own['gflops'] / result['peak_gflops']:.0f} %" + reading(own)]
        for peer in peers_of(log):
            row += [f"{runs[peer]['gflops'] / scale:.1f}", f"{ratio(result, peer):.2f}"]
        rows.append(row)
    for name, results in (groups_of(log) | {"": log["results"]}).items():
        rows.append(["geometric mean" + (name and f", {name}"), "", f"{100 * mean_share(results):.0f} %"] +
                    [x for peer in peers_of(log) for x in ("", f"**{mean_ratio(results, peer):.2f}**")])
    return markdown(head, rows)


def day_of(log):
    return log["date"][5:10]


def summary_table(logs, link_to):
    """How a race stands beside each peer: a line a log."""
    logs = [one for one in logs if "geometric_means" in one[2]]
    peers = list(dict.fromkeys(peer for _, _, log in logs for peer in peers_of(log)))
    head = ["list", "date", "type", "cases", "of peak"]
    head += [x for peer in peers for x in (f"× {peer}", "worst", "best")]
    rows = []
    for name, file, log in logs:
        results = log["results"]
        row = [f"[{name}]({link_to(file)})", day_of(log), log["type"], str(len(results)),
               f"{100 * mean_share(results):.0f} %"]
        for peer in peers:
            ratios = [ratio(result, peer) for result in results] if peer in peers_of(log) else []
            row += ([f"**{mean_ratio(results, peer):.2f}**", f"{min(ratios):.2f}",
                     f"{max(ratios):.2f}"] if ratios else ["", "", ""])
        rows.append(row)
    return markdown(head, rows)


def beside_best(log, results):
    """How many times as fast as the peer that is best at each problem: the mean, and the worst."""
    ratios = [min(ratio(result, peer) for peer in peers_of(log)) for result in results]
    return f"{statistics.geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else ""


def groups_table(logs, link_to):
    logs = [one for one in logs if one[2].get("geometric_means", {}).get("peers")]
    groups = {name: groups_of(log) for name, _, log in logs}
    names = list(dict.fromkeys(group for one in groups.values() for group in one))
    rows = [[f"[{name}]({link_to(file)})", day_of(log), str(log["rounds"]), log["type"], str(log["threads"])] +
            [beside_best(log, groups[name].get(group, [])) for group in names] +
            [f"**{beside_best(log, log['results'])}**"] for name, file, log in logs]
    return markdown(["list", "date", "rounds", "type", "threads"] + names + ["all"], rows)


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


def fill_in(text, folder, here):
    def link_to(file):
        return os.path.relpath(os.path.join(folder, file), here)

    def fill_block(block):
        start, kind, pattern, _, end = block.groups()
        logs = newest_logs(folder, pattern)
        if not logs:
            return block[0]
        if kind != "table":
            return start + {"summary": summary_table, "groups": groups_table}[kind](logs, link_to) + end
        tables = []
        for name, file, log in logs:
            lines = ladder_table(log) if "ladder" in log else bench_table(log)
            heading = f"### {name}\n\n" if "*" in pattern else ""
            tables.append(heading + lines + conditions(log, link_to(file)))
        return start + "\n".join(tables) + end

    return BLOCK.sub(fill_block, text)


def dead_links(text, here):
    return [link for link in LINK.findall(text) if not os.path.exists(os.path.join(here, link))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    parser.add_argument("--results", default=os.path.join(HERE, "results"), metavar="FOLDER")
    parser.add_argument("files", nargs="*", metavar="FILE.md",
                        default=[os.path.join(HERE, "..", "README.md"),
                                 os.path.join(HERE, "results", "README.md")])
    options = parser.parse_args()
    stale = 0
    for path in options.files:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        here = os.path.dirname(os.path.abspath(path))
        after = fill_in(before, options.results, here)
        if options.check:
            for link in dead_links(before, here):
                print(f"table.py: {path} links to {link}, which is not there", file=sys.stderr)
                stale = 1
        if options.check and after != before:
            print(f"table.py: {path} is not what the logs say: run docs/table.py", file=sys.stderr)
            stale = 1
        elif after != before:
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
    return stale


if __name__ == "__main__":
    sys.exit(main())
