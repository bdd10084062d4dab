"""What a benchmark shows: how far it is, in a terminal the figures so far, and the tables at the end."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from caransac._support.progress import Progress
from caransac_lab.bench.journal import Key
from caransac_lab.bench.paper import PaperTable
from caransac_lab.bench.protocol import Outcome
from caransac_lab.bench.publication import describe_conditions, format_markdown
from caransac_lab.bench.tables import Cell, Column, ResultTable, figure_column, make_cell, make_tables, mark_best
from caransac_lab.metrics import summarise

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SO_FAR = ("AUC5", "AUC1", "MAP20", "Med")
BEST = "bold green"  # the style of the best figures
NAME_WIDTH = 20  # letters that the names of methods get at least in a narrow terminal


class Display:
    """An observer of a benchmark that shows its progress on stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._progress = Progress(below=self._table, quiet=quiet)
        self._stage, self._done, self._total = "", 0, 0
        self._errors: dict[str, list[float]] = {}

    def __enter__(self) -> Display:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def begin_stage(self, stage: str, total: int) -> None:
        """A stage begins; the table starts anew."""
        self._stage, self._done, self._total = stage, 0, total
        self._errors = defaultdict(list)
        self._show()

    def add_outcome(self, key: Key, outcome: Outcome) -> None:
        """An outcome is there."""
        self._errors[key[4]].append(outcome.error_deg)
        self._done += 1
        self._show()

    def _show(self) -> None:
        self._progress.show(self._stage, self._done, self._total, unit="runs")

    def _table(self) -> Table:
        """The figures of the present stage so far, over all pairs alike."""
        columns = (Column("so far"), *(figure_column(name) for name in SO_FAR), Column("runs"))
        rows = []
        for method, errors in self._errors.items():
            found = summarise(errors)
            figures = (make_cell(found[name], figure_column(name).digits) for name in SO_FAR)
            rows.append((Cell(method), *figures, Cell(str(len(errors)))))
        return draw_table(ResultTable("", columns, mark_best(columns, rows)))


def print_tables(results: Mapping[str, Any], paper: PaperTable | None = None) -> None:
    """Print published results to stdout: laid out in a terminal, elsewhere in Markdown, as they stand in the file."""
    console = _open_terminal()
    if console is None:
        print(format_markdown(results, paper), end="")
        return
    for table in make_tables(results, paper):
        console.print(f"\n{table.title}", style="bold", markup=False, highlight=False)
        console.print(draw_table(fit(table, console.width)))
    for note in describe_conditions(results, paper):
        console.print(f"- {note}", markup=False, highlight=False)


def draw_table(table: ResultTable) -> Table:
    """A table for rich, without its title: names to the left, where room is short in several lines, numbers right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, padding=0, collapse_padding=True)
    for number, column in enumerate(table.columns):
        head = Text(f"{column.label}\n{column.unit}".rstrip())
        drawn.add_column(head, justify="right" if number else "left", no_wrap=number > 0)
    for row in table.rows:
        drawn.add_row(*(Text(cell.text, style=BEST if cell.best else "") for cell in row))
    return drawn


def fit(table: ResultTable, width: int) -> ResultTable:
    """As much of a table as so many letters have room for: columns that are `further` go, the last one first."""
    while width_of(table) > width:
        further = [number for number, column in enumerate(table.columns) if column.further]
        if not further:
            break
        columns = tuple(column for number, column in enumerate(table.columns) if number != further[-1])
        rows = tuple(tuple(cell for number, cell in enumerate(row) if number != further[-1]) for row in table.rows)
        table = replace(table, columns=columns, rows=rows)
    return table


def width_of(table: ResultTable) -> int:
    """Letters in a line of a table as `draw_table` makes it, with names in lines of at most `NAME_WIDTH`."""
    columns = zip(*table.rows, strict=True)
    names, *others = (
        max(len(text) for text in (column.label, column.unit, *(cell.text for cell in cells)))
        for column, cells in zip(table.columns, columns, strict=True)
    )
    return min(names, NAME_WIDTH) + sum(others) + len(others) + 2  # one between columns, and one at either edge


def _open_terminal() -> Console | None:
    """What draws on stdout; None if that is no terminal, whatever the environment claims, or rich is not installed."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console()
