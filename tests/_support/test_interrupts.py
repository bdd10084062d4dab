"""Requests to stop: code that checks for them stops itself; other code is interrupted."""

import os
import pty
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from caransac._support import interrupts
from caransac._support.interrupts import InterruptGuard, InterruptRequest

pytestmark = pytest.mark.slow

HANGS_S = 120.0  # seconds; reached only if a test fails, because the programs below run much longer
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
        time.sleep(1000 if sys.argv[1] != "late" else 0)
    except KeyboardInterrupt as error:
        guard.say(type(error).__name__)
        sys.exit(interrupts.INTERRUPTED)
if sys.argv[1] == "late":
    print("done", flush=True)
    sys.stdin.readline()
"""


def start(mode, **further):
    """Start a process in its own group that gets SIGINT like the processes of a terminal."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, mode],
        stdout=subprocess.PIPE,
        stderr=further.pop("stderr", subprocess.PIPE),
        stdin=subprocess.PIPE,
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
def test_a_process_ends_with_a_one_line_message(mode, message, times):
    process = start(mode)
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        if mode == "released":
            break  # Python's own handler; a second signal could arrive at any moment
    assert process.communicate(timeout=HANGS_S)[1] == message
    assert process.returncode == interrupts.INTERRUPTED


def test_requests_after_the_end_are_ignored():
    process = start("late")
    assert process.stdout.readline() == "done\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate("\n", timeout=HANGS_S)[1] == "" and process.returncode == 0


def test_a_process_that_ignores_interruptions_keeps_ignoring_them():
    process = start("late", handler=signal.SIG_IGN)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "done\n"
    assert process.communicate("\n", timeout=HANGS_S)[1] == "" and process.returncode == 0


def test_the_cursor_of_a_terminal_is_restored():
    ours, theirs = pty.openpty()
    process = start("sleeps", stderr=theirs)
    os.close(theirs)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=HANGS_S)
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
        "with InterruptGuard('stopped'): time.sleep(1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert (done.returncode, done.stderr) == (130, "stopped; the same command starts again\n")


def test_deferred_interrupts_arrive_afterwards():
    before, done = signal.signal(signal.SIGINT, signal.default_int_handler), []
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.held():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")
        assert done == ["all of it"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt), interrupts.held():
            signal.raise_signal(signal.SIGINT)
            raise OSError("which comes in the middle")
        with interrupts.held():
            pass
    finally:
        signal.signal(signal.SIGINT, before)


def test_foreign_handlers_are_not_changed():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            assert came == [1]
        with ThreadPoolExecutor(1) as pool:  # threads cannot set signal handlers
            assert pool.submit(lambda: interrupts.held().__enter__()).result() is None
    finally:
        signal.signal(signal.SIGINT, before)
