"""Draw the plots of a benchmark."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caransac import plot
from caransac._support.files import replacing
from caransac_lab.bench import summary
from caransac_lab.bench.benchmark import TableRow
from caransac_lab.bench.breakdown import PARTS
from caransac_lab.curves import draw_reliability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = re.compile(r" (\d+x\d+|\d+k?)$")  # "CA-RANSAC 8x256" and "LM-LO 10k" are points of one line
LABEL_SIZE = 7  # size of the names at points, in points
LEGEND_ROW = 0.2  # height of a legend row in inches
LEGEND_COLUMNS = 6  # columns of a legend below its plot
# Distances of a name from its point, in points; the nearest free one is used.
LABEL_DISTANCES = (5, 11, 18, 26, 35, 45, 60, 80)


def draw_all(out: Path, rows: Sequence[TableRow], results: Mapping[str, Any]) -> None:
    """Draw every plot of every data set and problem into a folder, as PNG and SVG."""
    for number, ((dataset, problem), group) in enumerate(groupby(rows, lambda row: (row.dataset, row.problem))):
        records = [r for r in results["rows"] if (r["dataset"], r["problem"]) == (dataset, problem)]
        stem = f"{problem}-{number}-{re.sub('[^A-Za-z0-9]+', '-', dataset)}"
        for name, figure in _draw(list(group), records, results["protocol"]["seeds"], f"{problem}, {dataset}"):
            save(figure, out / f"{stem}-{name}.png")


def _draw(
    rows: Sequence[TableRow], records: Sequence[Mapping[str, Any]], seeds: int, title: str
) -> Iterator[tuple[str, Figure]]:
    """Yield the plots of one data set and problem by name, if there is data for them."""
    yield "curves", draw_curves(rows, title)
    if any(record["ms"] is not None for record in records):
        yield "pareto", draw_points(records, "ms", "milliseconds per pair", title)
        yield "times", draw_times(records, title)
    if len({record["iterations"] for record in records}) > 1:
        yield "iterations", draw_points(records, "iterations", "hypotheses", title)
    yield "inlier-ratios", draw_inlier_ratios(records, seeds, title)
    curves = {row.method.label: summary.reliability(row) for row in rows}
    known = {label: bins for label, bins in curves.items() if bins is not None}
    if known:
        yield "reliability", draw_reliability(known)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and as SVG."""
    plot.save(figure, path)
    save_svg(figure, path.with_suffix(".svg"))


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure as a small SVG file with text as text. Equal figures give equal files."""
    from matplotlib import rc_context

    drawn = StringIO()
    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    text = re.sub(r"<!-- .*? -->", "", drawn.getvalue())  # comments that repeat the text
    with replacing(path) as temporary:
        temporary.write_text(re.sub(r">\s+<(?!g )", "><", text))  # one line per group


def draw_curves(rows: Sequence[TableRow], title: str) -> Figure:
    """Draw the share of pairs below an error, over the error."""
    figure, axes = _canvas()
    for row in rows:
        errors = np.sort([outcome.error_deg for run in row.outcomes for outcome in run.values()])
        shares = 100 * np.arange(1, len(errors) + 1) / len(errors)
        axes.step(errors, shares, where="post", label=row.method.label, **_style(axes, marker=False))
    axes.set(xscale="log", xlim=(0.05, 30), ylim=(0, 100), xlabel="pose error, degrees", ylabel="pairs, %", title=title)
    _finish(axes)
    return figure


def draw_points(records: Sequence[Mapping[str, Any]], name: str, label: str, title: str) -> Figure:
    """Draw AUC@5 over time or hypotheses, with the method's name at each point.

    Budgets of one method are joined by a line, the best trade-offs by a dashed line.
    """
    families: dict[str, list[tuple[float, float]]] = defaultdict(list)
    names: dict[str, tuple[float, float]] = {}
    for record in records:
        if record[name] is not None:
            names[record["method"]] = (record[name], record["figures"]["AUC5"]["mean"])
            families[BUDGET.sub("", record["method"])].append(names[record["method"]])
    figure, axes = _canvas()
    for number, points in enumerate(families.values()):
        axes.plot(*np.transpose(sorted(points)), color=f"C{number % 10}", marker="osD^"[number // 10 % 4])
    front = pareto_front(list(names.values()))
    if front:
        axes.plot(*np.transpose(front), color="0.6", ls="--", lw=1, zorder=0)
    axes.set(xscale="log", xlabel=label, ylabel="AUC@5°, %", title=title)
    axes.margins(0.12)
    _finish(axes)
    label_points(axes, names)
    return figure


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points (cost, value) that no other point beats in both, by cost."""
    front: list[tuple[float, float]] = []
    for cost, value in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or value > front[-1][1]:
            front.append((cost, value))
    return front


Box = tuple[float, float, float, float]  # left, bottom, right, top


def label_points(axes: Any, names: Mapping[str, tuple[float, float]]) -> None:
    """Write names at their points (x, y), as near as possible without covering a point or another name."""
    figure = axes.figure
    figure.draw_without_rendering()  # computes the layout
    to_points = 72 / figure.dpi  # below, all lengths are in points, which do not depend on the format
    places = dict(zip(names, axes.transData.transform(list(names.values())) * to_points, strict=True))
    frame = axes.get_window_extent().extents * to_points
    taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in places.values()]
    for name, (x, y) in sorted(places.items(), key=lambda item: tuple(item[1])):
        width, height = _text_size(axes, name, to_points)
        for dx, dy in _offsets(width, height):  # the last one is used if none is free
            box = (x + dx, y + dy, x + dx + width, y + dy + height)
            if _overlap(box, frame, whole=True) and not any(_overlap(box, other) for other in taken):
                break
        taken.append(box)
        text = axes.annotate(
            name,
            names[name],
            (dx, dy),
            textcoords="offset points",
            fontsize=LABEL_SIZE,
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},  # readable over lines
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": "0.6", "shrinkA": 0, "shrinkB": 2},
        )
        text.set_in_layout(False)


def _text_size(axes: Any, text: str, to_points: float) -> tuple[float, float]:
    """Return the width and height of a label in points."""
    drawn = axes.text(0, 0, text, fontsize=LABEL_SIZE)
    box = drawn.get_window_extent(axes.figure.canvas.get_renderer())
    drawn.remove()
    return box.width * to_points, box.height * to_points


def _offsets(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Yield possible positions of a label's lower left corner relative to its point, the nearest first."""
    for away in LABEL_DISTANCES:
        right, left, above, below = away, -away - width, away, -away - height
        yield from ((right, -height / 2), (left, -height / 2), (-width / 2, above), (-width / 2, below))
        yield from ((right, above), (right, below), (left, above), (left, below))


def _overlap(box: Box, other: Box, whole: bool = False) -> bool:
    """Return True if a box overlaps another, or with `whole`, if it lies completely inside."""
    left, bottom, right, top = box
    x1, y1, x2, y2 = other
    if whole:
        return bool(x1 <= left and right <= x2 and y1 <= bottom and top <= y2)
    return bool(left < x2 and x1 < right and bottom < y2 and y1 < top)


def draw_times(records: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Draw milliseconds per pair, one bar per method, divided into parts."""
    from matplotlib import colormaps

    timed = [record for record in records if record["ms"] is not None]
    spent = {part: np.array([record["parts_ms"].get(part, 0.0) for record in timed]) for part in PARTS}
    rows = -(-sum(bool(widths.any()) for widths in spent.values()) // LEGEND_COLUMNS)
    figure = plot.new_figure((9, 1.5 + 0.3 * len(timed) + LEGEND_ROW * rows))
    axes = figure.add_subplot()
    names = [record["method"] for record in timed]
    left = np.zeros(len(timed))
    # This colour map is a list and has `colors`, but the type of the registry does not include it.
    every: Sequence[tuple[float, ...]] = colormaps["tab20"].colors  # type: ignore[attr-defined]
    # Without greys; each part has the same colour in all plots.
    colours = [each for each in every if len(set(each)) > 1]
    for (part, widths), colour in zip(spent.items(), colours, strict=False):
        if widths.any():
            bars = axes.barh(names, widths, left=left, label=part, color="0.75" if part == "other" else colour)
            left += widths
    axes.bar_label(bars, labels=[f"{total:.1f}" for total in left], padding=3)
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds per pair, mean", title=title)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(
        fontsize="small", loc="outside lower center", ncols=LEGEND_COLUMNS
    )  # a legend beside the plot may be higher than the plot
    return figure


def draw_inlier_ratios(records: Sequence[Mapping[str, Any]], seeds: int, title: str) -> Figure:
    """Draw AUC@5 over the share of right matches, and above it the number of pairs with that share."""
    figure, axes = _canvas()
    for record in records:
        bins = record["by_inlier_ratio"]
        axes.plot([_middle(b) for b in bins], [b["AUC5"] for b in bins], label=record["method"], **_style(axes))
    axes.set(xlabel="right matches, share", ylabel="AUC@5°, %", xlim=(0, 1), title=title)
    # Runs that crashed have no share and count in the first bin.
    all_bins = min(records, key=lambda record: record["crashes"])["by_inlier_ratio"]
    above = axes.secondary_xaxis("top")
    above.set_xticks([_middle(b) for b in all_bins], [str(b["count"] // seeds) for b in all_bins])
    above.set_xlabel("pairs")
    _finish(axes)
    return figure


def _middle(part: Mapping[str, float]) -> float:
    """Return the middle of a bin."""
    return 0.5 * (part["from"] + part["to"])


def _canvas() -> tuple[Figure, Any]:
    """Create a figure and its axes."""
    figure = plot.new_figure((9, 5))
    return figure, figure.add_subplot()


def _style(axes: Any, marker: bool = True) -> dict[str, Any]:
    """Return the style of the next line: ten colours, then the same with other markers and dashes."""
    family, colour = divmod(len(axes.get_legend_handles_labels()[0]), 10)
    style: dict[str, Any] = {"color": f"C{colour}", "linestyle": ("-", "--", ":", "-.")[family % 4]}
    return style | {"marker": "osD^"[family % 4]} if marker else style


def _finish(axes: Any) -> None:
    """Add a grid, full numbers on a logarithmic axis, and the legend beside the plot.

    The figure is enlarged if it is too low for its legend.
    """
    if axes.get_xscale() == "log":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.grid(alpha=0.3)
    if entries := len(axes.get_legend_handles_labels()[0]):
        width, height = axes.figure.get_size_inches()
        axes.figure.set_size_inches(width, max(height, 1 + LEGEND_ROW * entries))
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
