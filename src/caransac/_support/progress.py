"""Show progress on stderr: a bar in a terminal, otherwise a line every few seconds. stdout is only for results."""

from __future__ import annotations

import math
import sys
from collections import deque
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

REFRESH_S = 0.5  # seconds between two drawings of the bar
LINE_INTERVAL_S = 10.0  # seconds between two lines if there is no terminal
# Only the last minute counts, so that work resumed from an earlier run does not inflate the rate for long.
RATE_WINDOW_S = 60.0


class Progress:
    """Show the progress of a run, stage by stage.

    A terminal shows a bar for the current stage. If stderr is not a terminal or rich is not installed, a line is
    written every `LINE_INTERVAL_S` seconds. Every stage ends with one line that states its duration.

        with Progress() as progress:
            progress.show("verify", 0, len(pairs), unit="pairs")
            for done, pair in enumerate(pairs, 1):
                verify(pair)
                progress.show("verify", done, len(pairs), unit="pairs")
    """

    def __init__(self, *, quiet: bool = False) -> None:
        """Create a display; `quiet` turns it off."""
        self._quiet, self._live = quiet, None if quiet else _open_live()
        self._stage: _Stage | None = None
        self._shown = -math.inf  # time of the last drawing, in seconds of the monotonic clock

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, KeyboardInterrupt):  # an interruption has its own message
            self._end_stage()
        if self._live is not None:
            self._live.stop()

    def show(self, description: str, done: int, total: int, *, unit: str = "", figures: str = "") -> None:
        """Report the progress of a stage. A new description starts a new stage.

        Args:
            description: name of the stage, a few words.
            done: number of finished items. The time of a stage starts with its first call.
            total: total number of items.
            unit: name of the items, in the plural.
            figures: additional text, shown on its own line.
        """
        if self._quiet:
            return
        if self._stage is None or self._stage.description != description:
            self._end_stage()
            self._stage = _Stage(description, done)
            self._shown = monotonic() if self._live is None else -math.inf
        self._stage.update(done, total, unit, figures)
        if done >= total:
            self._end_stage()
        elif monotonic() - self._shown >= (LINE_INTERVAL_S if self._live is None else REFRESH_S):
            self._shown = monotonic()
            if self._live is None:
                self._write(self._stage.as_text())
            else:
                self._live.update(self._draw(self._stage), refresh=True)

    def _end_stage(self) -> None:
        """Write the final line of the stage if it made any progress."""
        if self._stage is not None and self._stage.done > 0:
            self._write(self._stage.as_text())
        self._stage = None

    def _write(self, text: str) -> None:
        if self._live is not None:
            self._live.update("", refresh=True)
            self._live.console.print(text, markup=False, highlight=False)
        elif sys.stderr is not None:  # stderr may be closed
            print(text, file=sys.stderr, flush=True)

    def _draw(self, stage: _Stage) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        row = Table.grid(padding=(0, 1), expand=True)
        row.add_column(no_wrap=True)
        row.add_column(ratio=1, min_width=8)
        row.add_column(no_wrap=True)
        row.add_row(Text(stage.description), ProgressBar(stage.total, stage.done), Text(stage.status()))
        return Group(row, Text(stage.figures)) if stage.figures else Group(row)


class _Stage:
    """Progress and speed of one stage."""

    def __init__(self, description: str, done: int) -> None:
        self.description, self.total, self.unit, self.figures = description, 0, "", ""
        self.start = monotonic(), done
        self.recent = deque([self.start])  # (time, items done by then)

    @property
    def done(self) -> int:
        return self.recent[-1][1]

    def update(self, done: int, total: int, unit: str, figures: str) -> None:
        self.total, self.unit, self.figures = total, unit, figures
        now = monotonic()
        self.recent.append((now, done))
        while self.recent[1][0] < now - RATE_WINDOW_S:
            self.recent.popleft()

    def status(self) -> str:
        """Return ``1200/5000 pairs, 35/s, 0:01:48 left``, or at the end ``5000/5000 pairs in 0:02:23, 35/s``."""
        ended = self.done >= self.total
        (begun, before), (now, done) = self.start if ended else self.recent[0], self.recent[-1]
        count = f"{done}/{self.total} {self.unit}".rstrip()
        rate = (done - before) / (now - begun) if now > begun else 0.0
        speed = f", {rate:{'.0f' if rate >= 10 else '.2g'}}/s" if rate > 0 else ""
        if ended:
            return f"{count} in {_clock(now - begun)}{speed}"
        return f"{count}{speed}" + (f", {_clock((self.total - done) / rate)} left" if rate > 0 else "")

    def as_text(self) -> str:
        """Return the description and the status, with the figures on a second line."""
        return f"{self.description}: {self.status()}" + (f"\n  {self.figures}" if self.figures else "")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _open_live() -> Live | None:
    """Return the progress display, or None if there is no terminal or rich is missing."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        return None
    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    return Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
