"""What a benchmark shows while it runs."""

from __future__ import annotations

import time
from collections import defaultdict
from types import TracebackType

from rich.console import Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from caransac.bench.journal import Key
from caransac.bench.protocol import Outcome
from caransac.metrics import summarise

REFRESH_S = 0.5
LOG_S = 30.0  # between two lines, where there is no terminal to draw on


class Display:
    """A progress bar with the time left, and a table of the figures so far; a few lines where there is no terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._live = Live(auto_refresh=False)
        self._task: TaskID | None = None
        self._errors: dict[str, list[float]] = {}
        self._drawn = 0.0

    def __enter__(self) -> Display:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw()
        self._live.__exit__(kind, error, trace)

    def begin_stage(self, stage: str, total: int) -> None:
        """A stage begins; the table starts anew."""
        self._task = self._progress.add_task(stage, total=total)
        self._errors = defaultdict(list)
        self._draw()

    def add_outcome(self, key: Key, outcome: Outcome) -> None:
        """An outcome is there."""
        assert self._task is not None
        self._errors[key[4]].append(outcome.error_deg)
        self._progress.advance(self._task)
        if time.monotonic() - self._drawn > (REFRESH_S if self._live.console.is_terminal else LOG_S):
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._live.console.is_terminal:
            self._live.update(Group(self._table(), self._progress), refresh=True)
        elif self._task is not None:
            task = self._progress.tasks[-1]
            print(f"{task.description}: {task.completed:.0f}/{task.total:.0f}", flush=True)

    def _table(self) -> Table:
        """The figures of the present stage so far, over all pairs alike."""
        table = Table("so far", "AUC@5", "AUC@1", "MAP@20", "median", "runs")
        for method, errors in self._errors.items():
            row = summarise(errors)
            cells = (f"{row[name]:.1f}" for name in ("AUC5", "AUC1", "MAP20"))
            table.add_row(method, *cells, f"{row['Med']:.2f}°", str(len(errors)))
        return table
