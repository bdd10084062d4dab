"""What a benchmark shows while it runs: how far it is, and in a terminal the figures so far."""

from __future__ import annotations

from collections import defaultdict
from types import TracebackType
from typing import TYPE_CHECKING

from caransac._support.progress import Progress
from caransac.bench.journal import Key
from caransac.bench.protocol import Outcome
from caransac.metrics import summarise

if TYPE_CHECKING:
    from rich.table import Table


class Display:
    """An observer of a benchmark that shows its progress on stderr."""

    def __init__(self) -> None:
        self._progress = Progress(below=self._table)
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
        from rich.table import Table

        table = Table("so far", "AUC@5", "AUC@1", "MAP@20", "median", "runs")
        for method, errors in self._errors.items():
            row = summarise(errors)
            cells = (f"{row[name]:.1f}" for name in ("AUC5", "AUC1", "MAP20"))
            table.add_row(method, *cells, f"{row['Med']:.2f}°", str(len(errors)))
        return table
