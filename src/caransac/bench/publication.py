"""The output folder: results.json, table.md, table.csv and the plots."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from caransac._support.files import replacing
from caransac.bench import machine, plots, summary
from caransac.bench.benchmark import TableRow
from caransac.bench.contract import Estimator
from caransac.bench.paper import PaperTable
from caransac.bench.plan import Plan
from caransac.bench.protocol import POLISH_PX
from caransac.bench.tables import as_markdown, count, make_tables

RESULTS, MARKDOWN, CSV = "results.json", "table.md", "table.csv"
PLAIN = ("dataset", "problem", "method", "filter", "max_error_px", "iterations", "pairs", "failures", "crashes", "ms")


def publish(
    out: Path,
    plan: Plan,
    rows: Sequence[TableRow],
    missing: Mapping[str, str],
    *,
    command: str,
    paper: PaperTable | None = None,
) -> dict[str, Any]:
    """Write everything to a folder; returns the content of results.json."""
    results = collect_results(plan, rows, missing, command)
    summary.check(results)
    with replacing(out / RESULTS) as path:
        path.write_text(json.dumps(results, indent=1) + "\n")
    with replacing(out / MARKDOWN) as path:
        path.write_text(format_markdown(results, paper))
    with replacing(out / CSV) as path:
        write_csv(path, results)
    plots.draw_all(out, rows, results)
    return results


def collect_results(plan: Plan, rows: Sequence[TableRow], missing: Mapping[str, str], command: str) -> dict[str, Any]:
    """What is published as results.json, of the shape `summary.SHAPE`."""
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


def format_markdown(results: Mapping[str, Any], paper: PaperTable | None = None) -> str:
    """The tables, one per data set and problem, with the command and the conditions."""
    parts = [f"`{results['command']}`\n"]
    for table in make_tables(results, paper):
        parts += [f"## {table.title}\n", as_markdown(table)]
    parts.append("".join(f"- {note}\n" for note in describe_conditions(results, paper)))
    return "\n".join(parts)


def write_csv(path: Path, results: Mapping[str, Any]) -> None:
    """One line per row, figures as mean and standard deviation."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*PLAIN, *(f"{name}{suffix}" for name in summary.FIGURES for suffix in ("", " std"))])
        for row in results["rows"]:
            values = [row["figures"][name][part] for name in summary.FIGURES for part in ("mean", "std")]
            writer.writerow([*(row[name] for name in PLAIN), *values])


def describe_conditions(results: Mapping[str, Any], paper: PaperTable | None) -> list[str]:
    """What a reader of the tables must know: sentences."""
    rules, place = results["protocol"], results["machine"]
    notes = [
        "Figures are means over scenes, the best ones bold; median and mean are those of the errors. The sign of the "
        "translation counts, except in the figures called folded; a pair without an answer counts 180°.",
        "Thresholds: "
        + (
            f"tuned on {rules['tuned_on']}, at most {count(rules['tune_pairs'], 'pair')} per scene."
            if rules["tuned_on"]
            else "each method's default."
        ),
    ]
    if any(row["dataset"] == "synthetic" for row in results["rows"]):
        notes.append(
            "Synthetic pairs are of the kind that CA-RANSAC's weights were trained on: a first look, not a verdict."
        )
    if rules["budget_ms"]:
        notes.append(f"Hypotheses: as many as take each method {rules['budget_ms']:g} ms per pair.")
    if rules["seeds"] > 1:
        notes.append(f"Mean ± standard deviation over {rules['seeds']} seeds.")
    if not all(row["repeatable"] for row in results["rows"]):
        notes.append("†: takes no seed; its figures vary from run to run.")
    if not all(row["within_budget"] for row in results["rows"]):
        notes.append("‡: takes longer than the budget however few its hypotheses.")
    notes += [f"Missing: {name}: {why}." for name, why in results["missing"].items()]
    if paper and not any(paper.figures(row["method"], frozenset(row["scenes"])) for row in results["rows"]):
        notes.append(f"The paper's figures ({paper.title}) belong to other data and are not shown.")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    if rules["timing_pairs"]:
        notes.append(f"Times: median over at most {count(rules['timing_pairs'], 'pair')}, one thread, {place['cpu']}.")
    notes.append(f"Commit {place['commit'] or 'unknown'}; {versions}; instruction set {place['instruction_set']}.")
    return notes
