"""The output folder: results.json, table.md, table.csv and the plots."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from caransac._support.files import replacing
from caransac.bench import machine, plots, summary
from caransac.bench.benchmark import TableRow
from caransac.bench.contract import Estimator
from caransac.bench.paper import COLUMNS, PaperTable
from caransac.bench.plan import Plan
from caransac.bench.protocol import POLISH_PX

RESULTS, MARKDOWN, CSV = "results.json", "table.md", "table.csv"
CONDITIONS = ("ms", "hypotheses", "threshold", "no answer")
PLAIN = ("dataset", "problem", "method", "filter", "max_error_px", "iterations", "pairs", "failures", "crashes", "ms")


def publish(
    out: Path,
    plan: Plan,
    rows: Sequence[TableRow],
    missing: Mapping[str, str],
    *,
    command: str,
    table: PaperTable | None = None,
) -> dict[str, Any]:
    """Write everything to a folder; returns the content of results.json."""
    results = collect_results(plan, rows, missing, command)
    summary.check(results)
    with replacing(out / RESULTS) as path:
        path.write_text(json.dumps(results, indent=1) + "\n")
    with replacing(out / MARKDOWN) as path:
        path.write_text(format_markdown(results, table))
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


def format_markdown(results: Mapping[str, Any], table: PaperTable | None = None) -> str:
    """The tables, one per data set and problem, with the command and the conditions."""
    parts = [f"`{results['command']}`\n"]
    for (dataset, problem), group in groupby(results["rows"], lambda row: (row["dataset"], row["problem"])):
        rows = list(group)
        scenes = frozenset(rows[0]["scenes"])
        beside = {row["method"]: table.figures(row["method"], scenes) if table else {} for row in rows}
        columns = COLUMNS if any(beside.values()) else ()
        head = ["method", *summary.FIGURES, *(f"paper {name}" for name in columns), *CONDITIONS]
        lines = [head, ["---"] * len(head)]
        for row in rows:
            paper = [f"{beside[row['method']][name]:g}" if name in beside[row["method"]] else "" for name in columns]
            lines.append([_name(row), *_cells(row), *paper, *_conditions(row)])
        parts.append(f"## {problem}, {dataset} ({rows[0]['pairs']} pairs, {len(scenes)} scenes)\n")
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")
        if table and not columns:
            parts.append(f"The paper's figures ({table.title}) belong to other data and are not shown.\n")
    parts.append(_notes(results, table))
    return "\n".join(parts)


def write_csv(path: Path, results: Mapping[str, Any]) -> None:
    """One line per row, figures as mean and standard deviation."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*PLAIN, *(f"{name}{suffix}" for name in summary.FIGURES for suffix in ("", " std"))])
        for row in results["rows"]:
            values = [row["figures"][name][part] for name in summary.FIGURES for part in ("mean", "std")]
            writer.writerow([*(row[name] for name in PLAIN), *values])


def _name(row: Mapping[str, Any]) -> str:
    marks = ("" if row["repeatable"] else " †") + ("" if row["within_budget"] else " ‡")
    return f"{row['method']}{marks}"


def _cells(row: Mapping[str, Any]) -> list[str]:
    """The figures; with several seeds, and their deviation."""
    cells = []
    for name in summary.FIGURES:
        figure, digits = row["figures"][name], 2 if name in ("Med", "Avg") else 1
        deviation = f" ± {figure['std']:.{digits}f}" if figure["std"] > 0 else ""
        cells.append(f"{figure['mean']:.{digits}f}{deviation}")
    return cells


def _conditions(row: Mapping[str, Any]) -> list[str]:
    drawn = row["iterations"] if row["iterations"] is not None else row["mean_iterations"]
    hypotheses = "own stopping" if row["iterations"] is None and drawn is None else f"{drawn:.0f}"
    ms = "" if row["ms"] is None else f"{row['ms']:.1f}"
    threshold = row["max_error_px"]
    return [
        ms,
        hypotheses,
        threshold if isinstance(threshold, str) else f"{threshold:g} px",
        str(row["failures"] + row["crashes"]),
    ]


def _notes(results: Mapping[str, Any], table: PaperTable | None) -> str:
    rules, place = results["protocol"], results["machine"]
    notes = [
        "Figures are means over scenes. AUC and MAP in percent, Med and Avg in degrees; the sign of the translation "
        "counts but in the figures called folded; a pair without an answer counts 180°.",
        "Thresholds: "
        + (
            f"tuned on {rules['tuned_on']}, {rules['tune_pairs']} pairs per scene at most."
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
    notes += [f"Missing: {name}: not part of this benchmark." for name in (table.absent if table else ())]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    if rules["timing_pairs"]:
        notes.append(f"Times: median over {rules['timing_pairs']} pairs at most, one thread, {place['cpu']}.")
    notes.append(f"Commit {place['commit'] or 'unknown'}; {versions}; instruction set {place['instruction_set']}.")
    return "\n".join(f"- {note}" for note in notes) + "\n"
