"""The progress display: lines without a terminal, a bar in a terminal, and nothing on stdout."""

import os
import pty
import re
import subprocess
import sys

import pytest

from caransac._support import progress
from caransac._support.progress import Progress


class Clock:
    """A clock that tests can advance."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "monotonic", made)
    return made


def run(clock, seconds, *, total=100, step=1, **further):
    """Show a stage in which `step` items finish per second."""
    with Progress() as shown:
        for second in range(seconds + 1):
            shown.show("verify", second * step, total, **further)
            clock.now += 1


def test_without_a_terminal_there_is_a_line_now_and_then(clock, capsys):
    run(clock, 50, total=100, step=2, unit="pairs")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "verify: 20/100 pairs, 2/s, 0:00:40 left",
        "verify: 40/100 pairs, 2/s, 0:00:30 left",
        "verify: 60/100 pairs, 2/s, 0:00:20 left",
        "verify: 80/100 pairs, 2/s, 0:00:10 left",
        "verify: 100/100 pairs in 0:00:50, 2/s",
    ]


def test_figures_have_their_own_line(clock, capsys):
    run(clock, 1, total=1, figures="loss 0.3")
    assert capsys.readouterr().err == "verify: 1/1 in 0:00:01, 1/s\n  loss 0.3\n"


def test_the_rate_covers_the_last_minute(clock, capsys):
    with Progress() as shown:
        shown.show("bench", 0, 10_000)
        shown.show("bench", 5_000, 10_000)  # items that an earlier run has finished
        for second in range(1, 101):
            clock.now += 1
            shown.show("bench", 5_000 + 10 * second, 10_000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[5] == "bench: 5600/10000, 93/s, 0:00:47 left"
    assert lines[6] == "bench: 5700/10000, 10/s, 0:07:10 left"


def test_the_rate_of_a_resumed_stage_counts_only_new_items(clock, capsys):
    with Progress() as shown:
        for step in range(900, 1001):
            shown.show("training", step, 1000)
            clock.now += 0.5
    assert capsys.readouterr().err.splitlines()[-1] == "training: 1000/1000 in 0:00:50, 2/s"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_every_stage_leaves_a_line_behind_unless_a_message_about_an_interruption_follows(clock, capsys, error):
    with pytest.raises(error), Progress() as shown:
        for stage, done in (("a", 1), ("a", 2), ("b", 0), ("b", 1)):
            shown.show(stage, done, 2)
            clock.now += 1
        raise error
    lines = ["a: 2/2 in 0:00:01, 1/s", "b: 1/2, 1/s, 0:00:01 left"]
    assert capsys.readouterr().err.splitlines() == (lines if error is ValueError else lines[:1])


@pytest.mark.parametrize("total", [0, 5])
def test_nothing_done_needs_no_line(total, capsys):
    with Progress() as shown:
        shown.show("verify", 0, total)
    assert capsys.readouterr().err == ""


def test_nothing_goes_to_stdout_if_stderr_is_closed(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    run(clock, 20, total=20)
    assert capsys.readouterr().out == ""


PROGRAM = """
import sys
if "without-rich" in sys.argv:
    sys.modules["rich"] = sys.modules["rich.console"] = sys.modules["rich.live"] = None
from caransac._support import progress
progress.REFRESH_S = 0.0
with progress.Progress() as shown:
    for done in range(51):
        shown.show("a stage of a benchmark with a name", done, 50, unit="pairs", figures="loss 0.3")
        print(done)
"""


def run_in_terminal(*arguments):
    """Run a program with stderr in a terminal of 80 columns. Return its stdout and the text in the terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 4096):
                written += part
        except OSError:  # Linux reports the end of the last writer as an error
            pass
        out = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0
    return out, written.decode()


def test_a_terminal_gets_a_bar_that_fits_and_stdout_is_not_affected():
    out, shown = run_in_terminal()
    assert out.split() == [str(number) for number in range(51)]
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n").splitlines()
    bars = [line for line in lines if "━" in line]
    assert len(bars) > 20
    assert all("a stage of a benchmark with a name" in line and "/50 pairs" in line for line in bars)
    assert any(line.rstrip().endswith("left") for line in bars)
    assert "loss 0.3" in lines
    assert max(map(len, lines)) <= 80
    assert re.search(r"with a name: 50/50 pairs in 0:00:0\d", shown)


def test_a_terminal_without_rich_gets_lines():
    out, shown = run_in_terminal("without-rich")
    assert out.split() == [str(number) for number in range(51)]
    assert "━" not in shown
    assert re.fullmatch(r"a stage .*: 50/50 pairs in 0:00:0\d.*/s\r\n  loss 0.3\r\n", shown)
