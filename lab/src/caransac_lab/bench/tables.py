"""Tables of a benchmark, independent of their display: columns with units, cells, and the best cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from caransac_lab.bench import summary
from caransac_lab.bench.paper import COLUMNS, PaperTable


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        label: name of the column.
        unit: unit of its cells; empty if there is none, or several.
        digits: number of digits after the decimal point.
        best: `min` or `max`, the function that selects the best number; None if no number is better.
        further: whether it is omitted if there is little room.
    """

    label: str
    unit: str = ""
    digits: int = 0
    best: Callable[[Iterable[float]], float] | None = None
    further: bool = False


@dataclass(frozen=True)
class Cell:
    """Content of a cell.

    Attributes:
        text: printed text.
        value: printed number, for comparisons; None if there is none.
        best: whether it is the best of its column, or equal to the best.
    """

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class ResultTable:
    """A table: title, columns, and rows of cells. The first cell of a row names the method."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def figure_column(name: str) -> Column:
    """Return the column of a figure of `summary.FIGURES`."""
    if name in ("Med", "Avg"):
        return Column({"Med": "median", "Avg": "mean"}[name], "°", 2, min, True)
    label = re.sub(r"(\d+)", r"@\1°", name)
    return Column(label, "%", 1, max, name not in ("AUC5", "AUC1"))


METHOD, TIME = Column("method"), Column("time", "ms", 1, min)
CONDITIONS = (TIME, Column("hypotheses"), Column("threshold", "px"), Column("no answer", "runs"))


def make_tables(results: Mapping[str, Any], paper: PaperTable | None = None) -> list[ResultTable]:
    """Create the tables of published results, one for each data set and problem, with the paper's figures."""
    return [
        _make_table(f"{problem}, {dataset}", list(rows), paper)
        for (dataset, problem), rows in groupby(results["rows"], lambda row: (row["dataset"], row["problem"]))
    ]


def _make_table(title: str, rows: Sequence[Mapping[str, Any]], paper: PaperTable | None) -> ResultTable:
    scenes = frozenset(rows[0]["scenes"])
    beside = [paper.figures(row["method"], scenes) if paper else {} for row in rows]
    printed = [name for name in COLUMNS if any(beside)]
    columns = (
        METHOD,
        *(figure_column(name) for name in summary.FIGURES),
        *(Column(f"paper {figure_column(name).label}", figure_column(name).unit) for name in printed),
        *CONDITIONS,
    )
    cells = [
        (
            _name(row),
            *(_figure(row["figures"][name], name) for name in summary.FIGURES),
            *(Cell(f"{figures[name]:g}" if name in figures else "") for name in printed),
            *_conditions(row),
        )
        for row, figures in zip(rows, beside, strict=True)
    ]
    size = f"{count(rows[0]['pairs'], 'pair')}, {count(len(scenes), 'scene')}"
    return ResultTable(f"{title} ({size})", columns, mark_best(columns, cells))


def mark_best(columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
    """Mark the best cells of every column. If all cells are equal, none is marked."""
    wanted: list[float | None] = []
    for number, column in enumerate(columns):
        values = {value for row in rows if (value := row[number].value) is not None}
        wanted.append(column.best(values) if column.best and len(values) > 1 else None)
    return tuple(
        tuple(
            replace(cell, best=cell.value is not None and cell.value == best)
            for cell, best in zip(row, wanted, strict=True)
        )
        for row in rows
    )


def as_markdown(table: ResultTable) -> str:
    """Format a table in Markdown with aligned columns; the best figures are bold."""
    head = [f"{column.label}, {column.unit}" if column.unit else column.label for column in table.columns]
    body = [[f"**{cell.text}**" if cell.best else cell.text for cell in row] for row in table.rows]
    widths = [max(map(len, texts)) for texts in zip(head, *body, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = (
        [line[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))]
        for line in (head, rule, *body)
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def fit(table: ResultTable, width: int) -> ResultTable:
    """Fit a table into `width` characters: columns marked as `further` are omitted, the last one first."""
    while len(as_markdown(table).partition("\n")[0]) > width:
        further = [number for number, column in enumerate(table.columns) if column.further]
        if not further:
            break
        kept = [number for number in range(len(table.columns)) if number != further[-1]]
        rows = tuple(tuple(row[number] for number in kept) for row in table.rows)
        table = replace(table, columns=tuple(table.columns[number] for number in kept), rows=rows)
    return table


def count(number: int, noun: str) -> str:
    """Return a number with a noun: ``1 scene``, ``2 scenes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _name(row: Mapping[str, Any]) -> Cell:
    marks = ("" if row["repeatable"] else " †") + ("" if row["within_budget"] else " ‡")
    return Cell(f"{row['method']}{marks}")


def make_cell(value: float, digits: int, deviation: float = 0.0) -> Cell:
    """Create the cell of a number, with its deviation over the seeds if there are several."""
    spread = f" ± {deviation:.{digits}f}" if deviation > 0 else ""
    return Cell(f"{value:.{digits}f}{spread}", round(value, digits))


def _figure(figure: Mapping[str, float], name: str) -> Cell:
    return make_cell(figure["mean"], figure_column(name).digits, figure["std"])


def _conditions(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the cells of `CONDITIONS`."""
    drawn = row["iterations"] if row["iterations"] is not None else row["mean_iterations"]
    threshold = row["max_error_px"]
    return (
        Cell("") if row["ms"] is None else make_cell(row["ms"], TIME.digits),
        Cell("own stopping" if drawn is None else f"{drawn:.0f}"),
        Cell(threshold if isinstance(threshold, str) else f"{threshold:g}"),
        Cell(str(row["failures"] + row["crashes"])),
    )
