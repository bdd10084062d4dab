"""Worker processes: values and errors come back, a crash costs one call, and a pool can be left at any time."""

import os
import pickle
import signal
import subprocess
import sys
import time
import traceback

import pytest
from calls import StubbornError, fail, nap_and_tell, remember

from caransac._support import processes
from caransac._support.processes import ProcessPool, WorkerDiedError

pytestmark = pytest.mark.slow

HANGS_S = 120.0  # seconds; reached only if a test fails, because the workers below sleep for a thousand seconds


def is_gone(pid):
    """Wait until a process has ended. Return False if it is still there after a while."""
    deadline = time.monotonic() + HANGS_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def pool():
    with ProcessPool(2, remember, "this") as pool:
        yield pool


def test_calls_run_in_prepared_worker_processes(pool):
    naps = [pool.submit(nap_and_tell, 0.5) for _ in range(2)]
    assert len({os.getpid(), *(nap.result() for nap in naps)}) == 3
    assert pool.submit(os.getenv, "REMEMBERED").result() == "this"
    assert "REMEMBERED" not in os.environ
    assert pool.submit(sorted, [1, 3, 2], reverse=True).result() == [3, 2, 1]


def test_errors_come_back_with_the_traceback_of_the_worker(pool):
    with pytest.raises(ValueError, match="wrong") as caught:
        pool.submit(fail, ValueError, "wrong").result()
    assert "in fail" in "".join(traceback.format_exception(caught.value))
    with pytest.raises(SystemExit):
        pool.submit(sys.exit, 1).result()
    with pytest.raises(RuntimeError, match=r"StubbornError\('one and two'\)"):
        pool.submit(fail, StubbornError, "one", "two").result()


def test_data_that_cannot_be_sent_are_an_error(pool):
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pool.submit(lambda: 1).result()
    with pytest.raises(TypeError, match="cannot pickle"):
        pool.submit(open, os.devnull).result()
    assert pool.submit(abs, -1).result() == 1


def test_a_crash_of_a_worker_costs_one_call():
    with ProcessPool(2) as pool:
        longer = pool.submit(nap_and_tell, 1.0)
        with pytest.raises(WorkerDiedError, match="exit code 3"):
            pool.submit(os._exit, 3).result()
        with pytest.raises(WorkerDiedError, match="exit code -9"):
            pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL).result()
        assert longer.result() and pool.submit(abs, -1).result() == 1


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs os.waitid to detect stopped processes")
def test_a_worker_that_stays_stopped_is_replaced(monkeypatch):
    monkeypatch.setattr(processes, "STOPPED_S", 0.3)
    monkeypatch.setattr(processes, "WATCH_S", 0.05)
    for work in (abs, len):  # small data, and data that do not fit into a pipe
        with ProcessPool(1) as pool:
            os.kill(pid := pool.submit(os.getpid).result(), signal.SIGSTOP)
            with pytest.raises(WorkerDiedError, match=r"a worker process was stopped for 0\.3 s, and was killed"):
                pool.submit(work, -1 if work is abs else bytes(10**8)).result(HANGS_S)
            assert is_gone(pid) and pool.submit(abs, -1).result() == 1


def test_a_briefly_stopped_worker_continues(pool):
    pid = pool.submit(os.getpid).result()
    os.kill(pid, signal.SIGSTOP)
    naps = [pool.submit(nap_and_tell, 0.2) for _ in range(2)]
    time.sleep(1.0)  # longer than the interval between two checks of the workers
    os.kill(pid, signal.SIGCONT)
    assert pid in {nap.result(HANGS_S) for nap in naps}


def test_a_worker_that_cannot_start_is_dead():
    with ProcessPool(1, os._exit, 4) as pool, pytest.raises(WorkerDiedError, match="exit code 4"):
        pool.submit(abs, -1).result()


def test_workers_ignore_interruptions(pool):
    pid = pool.submit(os.getpid).result()
    os.kill(pid, signal.SIGINT)
    assert pid in {pool.submit(nap_and_tell, 0.2).result() for _ in range(3)}


def test_workers_end_with_the_pool():
    with ProcessPool(1) as pool:
        pid = pool.submit(os.getpid).result()
    assert is_gone(pid)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, -1)


def test_an_interruption_kills_busy_workers_and_cancels_waiting_calls():
    with pytest.raises(KeyboardInterrupt), ProcessPool(1) as pool:
        pid = pool.submit(os.getpid).result()
        running, waiting = (pool.submit(time.sleep, 1000) for _ in range(2))
        while not running.running():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert is_gone(pid) and waiting.cancelled()
    with pytest.raises(WorkerDiedError):
        running.result()


def test_an_interruption_does_not_wait_for_data_that_a_worker_does_not_read():
    with pytest.raises(KeyboardInterrupt), ProcessPool(1) as pool:
        os.kill(pool.submit(os.getpid).result(), signal.SIGSTOP)
        sending = pool.submit(len, bytes(10**8))  # far more than fits into a pipe
        while not sending.running():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert isinstance(sending.exception(HANGS_S), WorkerDiedError), "the data were not sent completely"


SCRIPT = """
import sys, time
from caransac._support.batch import submit_all
from caransac._support import processes
from caransac._support.processes import ProcessPool

def items():
    yield 1000
    yield 1000
    if sys.argv[1] == "busy":
        time.sleep(1.0)
    print("ready", flush=True)
    yield 1000

if __name__ == "__main__":
    with ProcessPool(2) as pool:
        try:
            list(submit_all(pool, time.sleep, items(), look_ahead=4))
        except KeyboardInterrupt:
            sys.exit(130)
"""


@pytest.mark.parametrize("moment", ["starting", "busy"])
def test_an_interrupted_terminal_gets_its_prompt_back_without_noise(tmp_path, moment):
    (tmp_path / "script.py").write_text("import signal\nsignal.signal(2, signal.default_int_handler)\n" + SCRIPT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", moment],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)  # to all processes, as a terminal does
    # Returns when the workers have ended, too, because they keep the pipes open.
    _, errors = process.communicate(timeout=HANGS_S)
    assert (process.returncode, errors) == (130, "")


def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", "busy"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=HANGS_S)
