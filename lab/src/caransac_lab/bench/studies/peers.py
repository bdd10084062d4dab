"""Every method on the same matches, by `caransac-lab bench`, with the figures in one small file.

    caransac-lab study peers|unscored DIR ... [--max-pairs N] [--seeds K] [--out FILE]
    caransac-lab study tuned DIR ... --tune DIR [--tune-pairs N] [--out FILE]
    caransac-lab study paper DIR ... --train DIR ... [--max-pairs N] [--out FILE]

    peers    all methods, poses (E) and fundamental matrices (F); ours with several seeds, the others with one
    unscored the same for matches in random order without scores (DIR=none), the protocol of posebench
    tuned    the same, with the threshold of each method tuned on other scenes
    paper    the paper's own method and ours: all methods, its ablations, iterations and filters, and the gain of each
             difference from the default on training scenes

DIR is anything that `caransac-lab bench` reads. docs/benchmark.md has the rules. With --max-pairs, all methods get the
same pairs, the first of each scene in a fixed shuffle. Times are those of 5 pairs. Outcomes are stored in a journal
under build/publish, so that an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from caransac_lab.bench import machine
from caransac_lab.bench.paper import PRESET
from caransac_lab.bench.publication import Content, table
from caransac_lab.bench.studies.paper_rows import differences_table, orders_table, run_differences, run_rows

FIGURES = {"AUC5": "AUC@5, %", "AUC1": "AUC@1, %", "MAP20": "MAP@20, %", "Med": "median, °"}
DIGITS = {"Med": 3}
OURS, QUICK_PEER = ("CA-RANSAC", "LM-LO"), ("PoseLib",)
# Methods, those of a quick run, and an addition to their names. With an addition, methods stop by their own rule.
RUNS = (
    ((*OURS, PRESET), OURS, ""),
    (OURS, OURS, ", early stop"),
    (("peers",), QUICK_PEER, ""),
    (("PoseLib", "PoseLib PROSAC", "OpenCV USAC_DEFAULT", "OpenCV USAC_MAGSAC"), QUICK_PEER, ", adaptive"),
)
TIMING_PAIRS = "5"
TITLES = {
    "peers": "Every method on the same matches",
    "unscored": "Every method on the same matches, in random order and without scores",
    "tuned": "Thresholds tuned on other scenes",
    "paper": "The paper's own method, on other data than the paper's",
}
ABOUT = """\
Every method has 1024 hypotheses per pair, or its own stopping rule: "early stop" up to 1024 (LM-LO: 10,240), "adaptive"
up to 10,000. Figures are means over scenes, with the standard deviation over seeds if there are several. Times are
medians with one thread. px is the threshold. docs/benchmark.md has the rules. †: takes no seed; its figures vary from
run to run.
"""


def bench(work: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a benchmark run. Outcomes of an earlier run in the same folder are kept."""
    rules = ["--timing-pairs", TIMING_PAIRS, *arguments, "--out", str(work), "--quiet", "--no-plots"]
    command = [sys.executable, "-m", "caransac_lab", "bench", *rules]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [row for path in sorted(work.rglob("results.json")) for row in read_rows(path)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a benchmark file, with the columns that the tables show."""
    results = json.loads(path.read_text())
    rows = []
    for row in results["rows"]:
        figures = {name: [row["figures"][name][part] for part in ("mean", "std")] for name in FIGURES}
        kept = {name: row[name] for name in ("dataset", "problem", "method", "max_error_px", "iterations", "pairs")}
        kept |= {"seeds": results["protocol"]["seeds"], "ms": row["ms"], "repeatable": row["repeatable"]}
        kept |= {"no_answer": row["failures"] + row["crashes"], "scenes": len(row["scenes"]), "figures": figures}
        rows.append(kept)
    return rows


def run_table(asked: Namespace, work: Path) -> list[dict[str, Any]]:
    """Return all rows of a table, grouped by data set and problem."""
    pairs = [*asked.folders, *(["--max-pairs", asked.max_pairs] if asked.max_pairs else [])]
    both = [*pairs, "--problem", "E", "F"]
    if asked.study == "paper":
        return run_rows(bench, work, asked.folders, pairs[len(asked.folders) :], asked.quick)
    if asked.study == "tuned":
        methods, number = (["LM-LO", "PoseLib"], "1") if asked.quick else (["default"], asked.tune_pairs)
        rows = bench(work, [*both, "--methods", *methods, "--tune", asked.tune, "--tune-pairs", number])
    else:
        rows = []
        for number, (all_methods, few, more) in enumerate(RUNS):
            methods = few if asked.quick else all_methods
            rules = ["--seeds", asked.seeds if OURS[0] in methods else "1", *(["--adaptive"] if more else [])]
            found = bench(work / str(number), [*both, "--methods", *methods, *rules])
            rows += [row | {"method": row["method"] + more} for row in found]
    return sorted(rows, key=lambda row: (row["problem"], row["dataset"]))


def as_markdown(content: dict[str, Any]) -> str:
    """Format a table for every data set and problem."""
    text = f"# {TITLES[content['table']]}\n\n{ABOUT}"
    for (data, problem), found in groupby(content["rows"], lambda row: (row["dataset"], row["problem"])):
        rows = list(found)
        size = f"{rows[0]['pairs']} pairs, {rows[0]['scenes']} scenes"
        header = ["method", *FIGURES.values(), "ms", "hypotheses", "px", "no answer", "seeds"]
        text += f"\n## {problem}, {data} ({size})\n\n{table(header, map(cells_of, rows))}"
    if content["table"] == "paper":
        text += f"\n## Orders of the paper's tables\n\n{orders_table(content['rows'])}"
        text += f"\n## Gain of the differences\n\n{differences_table(content['differences'])}"
    return text


def cells_of(row: dict[str, Any]) -> list[str]:
    """Format a line of a table."""
    cells = [row["method"] + ("" if row["repeatable"] else " †")]
    cells += [figure(row, name) for name in FIGURES]
    cells += ["" if row["ms"] is None else f"{row['ms']:.1f}", str(row["iterations"] or "")]
    return [*cells, f"{row['max_error_px']}", str(row["no_answer"]), str(row["seeds"])]


def figure(row: dict[str, Any], name: str) -> str:
    """Format a figure, with its deviation if there are several seeds."""
    (mean, deviation), digits = row["figures"][name], DIGITS.get(name, 1)
    return f"{mean:.{digits}f}" + (f" ± {deviation:.{digits}f}" if row["seeds"] > 1 else "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", metavar="DIR", help="data sets")
    parser.add_argument("--max-pairs", metavar="N", help="pairs per scene (default: all)")
    parser.add_argument(
        "--seeds", default="3", metavar="K", help="number of seeds of our methods in 'peers' (default: %(default)s)"
    )
    parser.add_argument("--tune", metavar="DIR", help="scenes to tune thresholds on, for 'tuned'")
    parser.add_argument(
        "--tune-pairs",
        default="3",
        metavar="N",
        help="maximum number of pairs per scene of --tune (default: %(default)s)",
    )
    parser.add_argument("--train", nargs="+", metavar="DIR", help="training scenes, for the gain of each difference")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    for name, option in (("tuned", "tune"), ("paper", "train")):
        if (arguments.study == name) != (getattr(arguments, option) is not None):
            raise ValueError(f"{name} needs --{option}, the others do not")
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    kind, commit = "quick" if arguments.quick else "whole", str(machine.commit())
    work = machine.CLONE / "build" / "publish" / commit / f"{arguments.study}-{kind}"
    if commit.endswith("-dirty"):
        shutil.rmtree(work, ignore_errors=True)  # outcomes of unknown code
    content: Content = {"table": arguments.study, "rows": run_table(arguments, work)}
    if arguments.train is not None:
        content["differences"] = run_differences(arguments.train, arguments.quick)
    return content
