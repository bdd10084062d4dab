"""Write published results: the output folder of a benchmark run, and the result files of studies.

A run writes results.json, table.md, table.csv and the plots. A study writes NAME.json and NAME.md. The entry "made" of
the JSON file contains the command, commit, version and packages. The study's function ``as_markdown`` creates the
Markdown from the JSON file.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import caransac
from caransac._support.files import replacing
from caransac_lab.bench import machine, plots, summary
from caransac_lab.bench.adapters import ESTIMATORS, HOMOGRAPHY_ESTIMATORS
from caransac_lab.bench.benchmark import TableRow
from caransac_lab.bench.contract import Estimator
from caransac_lab.bench.paper import PaperTable
from caransac_lab.bench.plan import Plan
from caransac_lab.bench.protocol import POLISH_PX
from caransac_lab.bench.tables import as_markdown, count, fit, make_tables

RUN_RESULTS, MARKDOWN, CSV = "results.json", "table.md", "table.csv"
RESULTS = machine.CLONE / "benchmarks" / "results"  # result files of the studies
LEFT_OUT = 77  # exit code of a study that cannot run here; its last line says why
FAILED = "failed"  # entry of a study that lists errors; such a study is printed but not published
WIDTH, DIGITS = 120, 5  # line width of JSON, and digits of a number
Content = dict[str, Any]

PLAIN = ("dataset", "problem", "method", "filter", "max_error_px", "iterations", "pairs", "failures", "crashes", "ms")


def publish_run(
    out: Path,
    plan: Plan,
    rows: Sequence[TableRow],
    missing: Mapping[str, str],
    *,
    command: str,
    paper: PaperTable | None = None,
    draw: bool = True,
) -> dict[str, Any]:
    """Write everything to a folder, with or without plots. Return the content of results.json."""
    results = collect_results(plan, rows, missing, command)
    with replacing(out / RUN_RESULTS) as path:
        path.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
    with replacing(out / MARKDOWN) as path:
        path.write_text(format_markdown(results, paper))
    with replacing(out / CSV) as path:
        write_csv(path, results)
    if draw:
        plots.draw_all(out, rows, results)
    return results


def collect_results(plan: Plan, rows: Sequence[TableRow], missing: Mapping[str, str], command: str) -> dict[str, Any]:
    """Return the content of results.json."""
    used: list[Estimator] = [row.method.estimator for row in rows]
    return {
        "schema": summary.SCHEMA,
        "command": command,
        "versions": machine.versions(used),
        "machine": machine.describe(),
        "protocol": {
            "iterations": None if plan.budget_ms else plan.iterations,
            "budget_ms": plan.budget_ms,
            "seeds": plan.seeds,
            "max_ratio": float(plan.max_ratio),
            "polish_px": POLISH_PX,
            "timing_pairs": plan.timing_pairs,
            "tuned_on": None if plan.tune is None else "/".join(Path(plan.tune).parts[-2:]),
            "tune_pairs": plan.tune_pairs,
        },
        "missing": dict(missing),
        "rows": [summary.summarise_row(row) for row in rows],
    }


def format_markdown(results: Mapping[str, Any], paper: PaperTable | None = None, width: int | None = None) -> str:
    """Format the tables, one per data set and problem, with command and conditions; wrapped if a width is given."""
    parts = [f"`{results['command']}`\n"]
    for table in make_tables(results, paper):
        parts += [f"## {table.title}\n", as_markdown(table if width is None else fit(table, width))]
    parts.append("".join(f"- {note}\n" for note in describe_conditions(results, paper)))
    return "\n".join(parts)


def write_csv(path: Path, results: Mapping[str, Any]) -> None:
    """Write one line per row, with figures as mean and standard deviation."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*PLAIN, *(f"{name}{suffix}" for name in summary.FIGURES for suffix in ("", " std"))])
        for row in results["rows"]:
            values = [row["figures"][name][part] for name in summary.FIGURES for part in ("mean", "std")]
            writer.writerow([*(row[name] for name in PLAIN), *values])


def describe_conditions(results: Mapping[str, Any], paper: PaperTable | None) -> list[str]:
    """Return sentences with the conditions that readers of the tables must know."""
    rules, place = results["protocol"], results["machine"]
    notes = [
        "Figures are means over scenes; the best ones are bold. Median and mean refer to the errors. The sign of the "
        "translation counts, except in folded figures. A pair without an answer has an error of 180°.",
        "Thresholds: "
        + (
            f"tuned on {rules['tuned_on']}, at most {count(rules['tune_pairs'], 'pair')} per scene."
            if rules["tuned_on"]
            else "each method's default."
        ),
    ]
    if any(row["dataset"] == "synthetic" for row in results["rows"]):
        notes.append("CA-RANSAC's weights were trained on such synthetic pairs, so use real pairs to compare methods.")
    if rules["budget_ms"]:
        notes.append(f"Hypotheses: the number that takes each method {rules['budget_ms']:g} ms per pair.")
    if rules["seeds"] > 1:
        notes.append(f"Mean ± standard deviation over {rules['seeds']} seeds.")
    if not all(row["repeatable"] for row in results["rows"]):
        notes.append("†: takes no seed; its figures vary from run to run.")
    if not all(row["within_budget"] for row in results["rows"]):
        notes.append("‡: takes longer than the budget even with the fewest hypotheses.")
    notes += [f"Missing: {name}: {why}." for name, why in results["missing"].items()]
    if paper and not any(paper.figures(row["method"], frozenset(row["scenes"])) for row in results["rows"]):
        notes.append(f"The paper's figures ({paper.title}) belong to other data and are not shown.")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    if rules["timing_pairs"]:
        notes.append(f"Times: median over at most {count(rules['timing_pairs'], 'pair')}, one thread, {place['cpu']}.")
    notes.append(f"Commit {place['commit'] or 'unknown'}; {versions}; instruction set {place['instruction_set']}.")
    return notes


class LeftOutError(Exception):
    """A study that cannot run here, with the reason."""


def add_common(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the common options of all studies."""
    parser.add_argument(
        "--quick", action="store_true", help="run on little data, as a test; the result is written only with --out"
    )
    default = f"benchmarks/results/{name}.json"
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"default: {default}; the tables go beside it")


def command_of(arguments: Sequence[str]) -> str:
    """Return the command that creates a file, with folders shortened to their last three parts."""
    words, given = [], list(arguments)
    while given:
        word = given.pop(0)
        if word == "--out":
            given.pop(0)
            continue
        path = Path(word)
        words.append("/".join(path.parts[-3:]) if path.is_absolute() else word)
    return shlex.join(["caransac-lab", *words])


def origin(arguments: Sequence[str]) -> Content:
    """Return the origin of a study's figures, from its command line. Call it before any measurement."""
    estimators = [each for each in (*ESTIMATORS.values(), *HOMOGRAPHY_ESTIMATORS.values()) if not each.missing]
    about = {"command": command_of(arguments), "version": caransac.__version__}
    return about | machine.describe() | {"versions": machine.versions(estimators)}


def data_name(folder: Path) -> str:
    """Return the name of a data set: the last two parts of its path."""
    return "/".join(folder.resolve().parts[-2:])


def dump(content: Any) -> str:
    """Format JSON in few lines: one line for everything that fits. Numbers have five digits, more than tables."""
    return _lines(_rounded(content), 0) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _lines(value: Any, depth: int) -> str:
    whole = json.dumps(value, ensure_ascii=False)
    if depth + len(whole) <= WIDTH or not isinstance(value, dict | list):
        return whole
    inner, outer = " " * (depth + 1), " " * depth
    if isinstance(value, list):
        entries, ends = [_lines(each, depth + 1) for each in value], "[]"
    else:
        entries = [f"{json.dumps(name)}: {_lines(each, depth + 1)}" for name, each in value.items()]
        ends = "{}"
    lines = [inner + entries[0]]
    for entry in entries[1:]:  # short entries share a line
        if "\n" in lines[-1] + entry or len(lines[-1]) + len(entry) + 3 > WIDTH:
            lines.append(inner + entry)
        else:
            lines[-1] += f", {entry}"
    return ends[0] + "\n" + ",\n".join(lines) + f"\n{outer}{ends[1]}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def columns_table(
    rows: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, str] | None = None,
    show: Callable[[Any], str] = str,
) -> str:
    """Format a Markdown table of rows by label. A cell is empty if its row lacks the entry.

    Args:
        rows: rows by label.
        columns: column titles by the names of entries; None for all entries of the first row.
        show: function that formats a cell.
    """
    heads = columns or {name: name for name in next(iter(rows.values()))}
    cells = ([label, *(show(row[name]) if name in row else "" for name in heads)] for label, row in rows.items())
    return table(["", *heads.values()], cells)


def percent(count: float, total: int) -> str:
    """Format a share; empty if the total is zero."""
    return f"{100 * count / total:.1f}" if total else ""


def footer(content: Content) -> str:
    """Return a line with the origin of a file."""
    made = content["made"]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"\n`{made['command']}`\n\nCommit {made['commit']}; {made['cpu']}, {made['instruction_set']}; {versions}.\n"


def publish_study(path: Path | None, content: Content, format_study: Callable[[Content], str]) -> None:
    """Print the tables, and write them and the figures. The tables are created from the content of the file."""
    text = dump(content)
    read = json.loads(text)
    tables = format_study(read) + footer(read)
    print(tables)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, written in ((path, text), (path.with_suffix(".md"), tables)):
        with replacing(target) as temporary:
            temporary.write_text(written)
