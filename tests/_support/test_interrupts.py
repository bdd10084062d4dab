"""Requests to stop: obeyed where somebody looks, enforced where nobody does."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from caransac._support import interrupts
from caransac._support.interrupts import InterruptGuard, InterruptRequest

SOON_S = 5.0  # long for a machine that others use too
PROGRAM = """
import sys, time
from caransac._support import interrupts
def work(mode):
    if mode == "checks":
        while True:
            interrupts.check()
            time.sleep(0.01)
    if mode == "swallows":
        while True:
            try:
                time.sleep(1000)
            except BaseException:
                pass
with interrupts.InterruptGuard("stopped") as guard:
    if sys.argv[1] == "released":
        guard.release()
    elif sys.argv[1] != "early":
        guard.begin("go on")
    try:
        print("ready", flush=True)
        work(sys.argv[1])
        time.sleep(30 if sys.argv[1] != "late" else 0)
    except KeyboardInterrupt as error:
        guard.say(type(error).__name__)
        sys.exit(interrupts.INTERRUPTED)
if sys.argv[1] == "late":
    print("done", flush=True)
    time.sleep(1.0)
"""


def start(mode, **further):
    """A process of its own group, which takes SIGINT as those of a terminal do."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, mode],
        stdout=subprocess.PIPE,
        stderr=further.pop("stderr", subprocess.PIPE),
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, further.get("handler", signal.SIG_DFL)),
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("checks", "stopped; InterruptRequest; go on\n"),
        ("sleeps", "stopped; go on\n"),
        ("swallows", "stopped; go on\n"),
        ("early", "stopped; the same command starts again\n"),
        ("released", "stopped; KeyboardInterrupt\n"),
    ],
)
def test_a_process_ends_soon_and_says_one_line(mode, message, times):
    process = start(mode)
    started = time.monotonic()
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        if mode == "released":
            break  # Python's own way: a second one would come anywhere
    assert process.communicate(timeout=SOON_S)[1] == message
    assert process.returncode == interrupts.INTERRUPTED
    assert time.monotonic() - started < SOON_S


def test_requests_after_the_end_of_the_work_change_nothing():
    process = start("late")
    assert process.stdout.readline() == "done\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=SOON_S)[1] == "" and process.returncode == 0


def test_a_process_that_ignores_interruptions_goes_on_doing_so():
    process = start("late", handler=signal.SIG_IGN)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "done\n"
    assert process.communicate(timeout=SOON_S)[1] == "" and process.returncode == 0


def test_the_cursor_of_a_terminal_comes_back():
    ours, theirs = pty.openpty()
    process = start("sleeps", stderr=theirs)
    os.close(theirs)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=SOON_S)
    assert os.read(ours, 1000).startswith(interrupts.SHOW_CURSOR)
    os.close(ours)


def test_a_guard_that_is_not_active_touches_no_signals(capfd):
    before = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    with InterruptGuard("stopped", active=False) as guard:
        guard.begin("go on")
        guard.say("once")
        guard.say("twice")
    assert (signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(before[1])) == before
    assert capfd.readouterr().err == "stopped; once; go on\n"


def test_nothing_is_raised_without_a_request(monkeypatch):
    interrupts.check()
    monkeypatch.setattr(interrupts, "_requested", True)
    monkeypatch.setattr(interrupts, "_obeyed", False)
    with pytest.raises(InterruptRequest):
        interrupts.check()


def test_a_request_while_the_guard_is_set_up_is_obeyed():
    program = (
        "import os, signal, sys, threading, time\n"
        "from caransac._support.interrupts import InterruptGuard\n"
        "start = threading.Thread.start\n"
        "def interrupted(thread):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    start(thread)\n"
        "threading.Thread.start = interrupted\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with InterruptGuard('stopped'): time.sleep(30)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (130, "stopped; the same command starts again\n")
