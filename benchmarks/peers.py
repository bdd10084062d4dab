"""Every method on the same matches, by `caransac bench`: its figures in one small file.

    .venv/bin/python benchmarks/peers.py peers DIR ... [--out FILE]
    .venv/bin/python benchmarks/peers.py tuned DIR ... --tune DIR [--out FILE]
    .venv/bin/python benchmarks/peers.py paper DIR ... --train DIR ... [--out FILE]

    peers    all methods, poses (E) and fundamental matrices (F); ours with several seeds
    tuned    the same with the threshold of each method tuned on other scenes
    paper    the paper's own method beside ours: all methods, its ablations, iterations and filters, and what each
             difference from the default buys on training scenes

DIR is anything that `caransac bench` reads. docs/benchmark.md has the rules. Outcomes are kept in a journal under
build/publish, so that an interrupted run continues there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from paper_tables import differences_table, orders_table, run_differences, run_rows
from published import RESULTS, make_parser, origin, publish, table

from caransac.bench.paper import PRESET

ROOT = Path(__file__).parent.parent
FIGURES = {"AUC5": "AUC@5, %", "AUC1": "AUC@1, %", "MAP20": "MAP@20, %", "Med": "median, °", "Avg": "mean, °"}
DIGITS = {"Med": 3, "Avg": 2}
OWN_ROWS = ("ours", "ablations", "filtered", PRESET, "LM-LO 10k", "CA-RANSAC 8x256", "CA-RANSAC 4x256(x8)")
EARLY = ("CA-RANSAC", "LM-LO")  # run once more as by default: they stop when they are sure
OWN_SEEDS = 5
TITLES = {
    "peers": "Every method on the same matches",
    "tuned": "Thresholds tuned on other scenes",
    "paper": "The paper's own method, on other data than the paper's",
}
ABOUT = """\
1024 hypotheses per pair, or as many as the method wants ("early stop"). Figures are means over scenes, with the
standard deviation over seeds where there are several. Times are medians, one thread. px: the threshold.
docs/benchmark.md has the rules. †: takes no seed; its figures vary from run to run.
"""


def bench(work: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a run of the benchmark; outcomes of an earlier one in the same folder are kept."""
    command = [sys.executable, "-m", "caransac", "bench", *arguments, "--out", str(work), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [row for path in sorted(work.rglob("results.json")) for row in read_rows(path)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of the benchmark, with what the tables show of them."""
    results = json.loads(path.read_text())
    rows = []
    for row in results["rows"]:
        figures = {name: [row["figures"][name][part] for part in ("mean", "std")] for name in FIGURES}
        kept = {name: row[name] for name in ("dataset", "problem", "method", "max_error_px", "iterations", "pairs")}
        kept |= {"seeds": results["protocol"]["seeds"], "ms": row["ms"], "repeatable": row["repeatable"]}
        kept |= {"no_answer": row["failures"] + row["crashes"], "figures": figures}
        kept |= {"scenes_AUC5": {scene: found["AUC5"] for scene, found in row["scenes"].items()}}
        rows.append(kept)
    return rows


def run_table(name: str, folders: Sequence[str], tune: str | None, quick: bool, work: Path) -> list[dict[str, Any]]:
    """All rows of a table of all methods, those of one data set and problem together."""
    both = [*folders, "--problem", "E", "F"]
    if name == "tuned":
        methods = ["LM-LO", "PoseLib"] if quick else ["default"]
        rows = bench(work, [*both, "--methods", *methods, "--tune", str(tune), "--tune-pairs", "1" if quick else "8"])
    else:
        own, others = (("CA-RANSAC", "LM-LO"), ("PoseLib",)) if quick else (OWN_ROWS, ("peers",))
        seeds = 2 if quick else OWN_SEEDS
        rows = bench(work / "ours", [*both, "--methods", *own, "--seeds", str(seeds)])
        early = bench(work / "early", [*both, "--methods", *EARLY, "--adaptive", "--seeds", str(seeds)])
        rows += [row | {"method": f"{row['method']}, early stop"} for row in early]
        rows += bench(work / "peers", [*both, "--methods", *others])
    return sorted(rows, key=lambda row: (row["problem"], row["dataset"]))


def as_markdown(content: dict[str, Any]) -> str:
    """A table for every data set and problem."""
    text = f"# {TITLES[content['table']]}\n\n{ABOUT}"
    for (data, problem), found in groupby(content["rows"], lambda row: (row["dataset"], row["problem"])):
        rows = list(found)
        size = f"{rows[0]['pairs']} pairs, {len(rows[0]['scenes_AUC5'])} scenes"
        header = ["method", *FIGURES.values(), "ms", "hypotheses", "px", "no answer", "seeds"]
        text += f"\n## {problem}, {data} ({size})\n\n{table(header, map(cells_of, rows))}"
    if content["table"] == "paper":
        text += f"\n## Orders of the paper's tables\n\n{orders_table(content['rows'])}"
        text += f"\n## What the differences buy\n\n{differences_table(content['differences'])}"
    return text


def cells_of(row: dict[str, Any]) -> list[str]:
    """A line of a table."""
    cells = [row["method"] + ("" if row["repeatable"] else " †")]
    cells += [figure(row, name) for name in FIGURES]
    cells += ["" if row["ms"] is None else f"{row['ms']:.1f}", str(row["iterations"] or "")]
    return [*cells, f"{row['max_error_px']}", str(row["no_answer"]), str(row["seeds"])]


def figure(row: dict[str, Any], name: str) -> str:
    """A figure for readers, with its deviation where there are several seeds."""
    (mean, deviation), digits = row["figures"][name], DIGITS.get(name, 1)
    return f"{mean:.{digits}f}" + (f" ± {deviation:.{digits}f}" if row["seeds"] > 1 else "")


def main() -> None:
    """Run a table, write it."""
    parser = make_parser(__doc__, "TABLE")
    parser.add_argument("table", choices=list(TITLES))
    parser.add_argument("folders", nargs="+", metavar="DIR", help="data sets")
    parser.add_argument("--max-pairs", metavar="N", help="pairs of each scene at most (default: all)")
    parser.add_argument("--tune", metavar="DIR", help="other scenes to tune thresholds on")
    parser.add_argument(
        "--train", nargs="+", metavar="DIR", help="training scenes, to compare the ways of doing a thing"
    )
    arguments = parser.parse_args()
    for name, option in (("tuned", "tune"), ("paper", "train")):
        if (arguments.table == name) != (getattr(arguments, option) is not None):
            parser.error(f"{name} needs --{option}, the others do not")
    made, out = origin(), arguments.out or (None if arguments.quick else RESULTS / f"{arguments.table}.json")
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    kind = "quick" if arguments.quick else "whole"
    work = ROOT / "build" / "publish" / str(made["commit"]) / f"{arguments.table}-{kind}"
    if str(made["commit"]).endswith("-dirty"):
        shutil.rmtree(work, ignore_errors=True)  # outcomes of nobody knows which code
    limit = ["--max-pairs", arguments.max_pairs] if arguments.max_pairs else []
    content: dict[str, Any] = {"made": made, "table": arguments.table}
    if arguments.table == "paper":
        content["rows"] = run_rows(bench, work, arguments.folders, limit, arguments.quick)
        content["differences"] = run_differences(arguments.train, arguments.quick)
    else:
        content["rows"] = run_table(
            arguments.table, [*arguments.folders, *limit], arguments.tune, arguments.quick, work
        )
    publish(out, content, as_markdown)


if __name__ == "__main__":
    main()
