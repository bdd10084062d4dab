"""The plots of a benchmark."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from caransac import plot
from caransac.bench import summary
from caransac.bench.benchmark import TableRow
from caransac.bench.breakdown import PARTS

BUDGET = re.compile(r" (\d+x\d+|\d+k?)$")  # "CA-RANSAC 8x256" and "LM-LO 10k" are points of one line


def draw_all(out: Path, rows: Sequence[TableRow], results: Mapping[str, Any]) -> None:
    """Every plot of every data set and problem, into a folder."""
    for number, ((dataset, problem), group) in enumerate(groupby(rows, lambda row: (row.dataset, row.problem))):
        found = list(group)
        records = [r for r in results["rows"] if (r["dataset"], r["problem"]) == (dataset, problem)]
        stem = f"{problem}-{number}-{re.sub('[^A-Za-z0-9]+', '-', dataset)}"
        title = f"{problem}, {dataset}"
        draw_curves(out / f"{stem}-curves.png", found, title)
        if any(record["ms"] is not None for record in records):
            draw_points(out / f"{stem}-pareto.png", records, "ms", "milliseconds per pair", title)
            draw_times(out / f"{stem}-times.png", records, title)
        if len({record["iterations"] for record in records}) > 1:
            draw_points(out / f"{stem}-iterations.png", records, "iterations", "hypotheses", title)
        draw_inlier_ratios(out / f"{stem}-inlier-ratios.png", records, title)
        curves = {row.method.label: summary.reliability(row) for row in found}
        known = {label: bins for label, bins in curves.items() if bins is not None}
        if known:
            plot.draw_reliability(out / f"{stem}-reliability.png", known)


def draw_curves(path: Path, rows: Sequence[TableRow], title: str) -> Path:
    """Share of the pairs below an error, over the error."""
    figure, axes = _canvas()
    for row in rows:
        errors = np.sort([outcome.error_deg for run in row.outcomes for outcome in run.values()])
        shares = 100 * np.arange(1, len(errors) + 1) / len(errors)
        axes.step(errors, shares, where="post", label=row.method.label, **_style(axes, marker=False))
    axes.set(xscale="log", xlim=(0.05, 30), ylim=(0, 100), xlabel="pose error, degrees", ylabel="pairs, %", title=title)
    _finish(axes)
    return plot.save(figure, path)


def draw_points(path: Path, records: Sequence[Mapping[str, Any]], name: str, label: str, title: str) -> Path:
    """AUC@5 over time or hypotheses, budgets of one method joined to a line, the best trade-offs by a dashed one."""
    families: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        if record[name] is not None:
            families[BUDGET.sub("", record["method"])].append((record[name], record["figures"]["AUC5"]["mean"]))
    figure, axes = _canvas()
    for family, points in families.items():
        axes.plot(*np.transpose(sorted(points)), label=family, **_style(axes))
    front = pareto_front([point for points in families.values() for point in points])
    if front:
        axes.plot(*np.transpose(front), color="0.6", ls="--", lw=1, zorder=0)
    axes.set(xscale="log", xlabel=label, ylabel="AUC@5°, %", title=title)
    _finish(axes)
    return plot.save(figure, path)


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points (cost, value) that no other beats in both, by cost."""
    front: list[tuple[float, float]] = []
    for cost, value in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or value > front[-1][1]:
            front.append((cost, value))
    return front


def draw_times(path: Path, records: Sequence[Mapping[str, Any]], title: str) -> Path:
    """Milliseconds per pair, one bar per method, divided into the parts they go to."""
    timed = [record for record in records if record["ms"] is not None]
    figure = plot.new_figure((9, 1.5 + 0.3 * len(timed)))
    axes = figure.add_subplot()
    names = [record["method"] for record in timed]
    left = np.zeros(len(timed))
    for part in PARTS:
        widths = np.array([record["parts_ms"].get(part, 0.0) for record in timed])
        if widths.any():
            bars = axes.barh(names, widths, left=left, label=part, color="0.75" if part == "other" else None)
            left += widths
    axes.bar_label(bars, labels=[f"{total:.1f}" for total in left], padding=3)
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds per pair, mean", title=title)
    _finish(axes)
    return plot.save(figure, path)


def draw_inlier_ratios(path: Path, records: Sequence[Mapping[str, Any]], title: str) -> Path:
    """AUC@5 over the share of right matches."""
    figure, axes = _canvas()
    for record in records:
        bins = record["by_inlier_ratio"]
        middles = [0.5 * (b["from"] + b["to"]) for b in bins]
        axes.plot(middles, [b["AUC5"] for b in bins], label=record["method"], **_style(axes))
    axes.set(xlabel="right matches, share", ylabel="AUC@5°, %", xlim=(0, 1), title=title)
    _finish(axes)
    return plot.save(figure, path)


def _canvas() -> tuple[Any, Any]:
    """A figure and its axes."""
    figure = plot.new_figure((9, 5))
    return figure, figure.add_subplot()


def _style(axes: Any, marker: bool = True) -> dict[str, Any]:
    """How to draw the next line: ten colours, then the same ones with other markers and dashes."""
    family, colour = divmod(len(axes.get_legend_handles_labels()[0]), 10)
    style: dict[str, Any] = {"color": f"C{colour}", "linestyle": ("-", "--", ":", "-.")[family % 4]}
    return style | {"marker": "osD^"[family % 4]} if marker else style


def _finish(axes: Any) -> None:
    """A grid, and the legend beside the plot, where it hides nothing."""
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
