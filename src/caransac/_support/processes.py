"""An executor of worker processes that can be stopped at once. If a worker dies, only its own call fails."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from caransac._support import interrupts

if TYPE_CHECKING:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection as Connection
    else:
        from multiprocessing.connection import Connection

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")

PATIENCE_S = 5.0  # seconds for a worker to exit by itself
STOPPED_S = 10.0  # seconds that a worker may stay stopped, e.g. by SIGSTOP; Ctrl-Z stops the watching process, too
WATCH_S = 0.5  # seconds between two checks for stopped workers


class WorkerDiedError(BrokenExecutor):
    """The worker process of a call ended before the call did."""


class RemoteError(Exception):
    """The traceback of an exception in a worker. It is the cause of the exception that is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    was_stopped: threading.Event = field(default_factory=threading.Event)


class ProcessPool(Executor):
    """An executor of spawned processes, for use in a ``with`` statement.

    Every worker has its own pipe, and a thread in this process serves it. No queue has to be joined, and a worker that
    dies leaves no lock behind. Its death raises `WorkerDiedError` only in the call that it was running; a new worker
    replaces it. A stopped worker would never answer and is killed after `STOPPED_S` (not on Windows).

    Workers ignore SIGINT, which a terminal sends to all processes; this process decides. If an exception leaves the
    ``with`` statement, for example an interruption, waiting calls are cancelled and workers are killed. Workers also
    end if this process is killed. Workers are spawned, so a script must open the pool under
    ``if __name__ == "__main__":``.
    """

    def __init__(self, workers: int, start: Callable[..., object] | None = None, *arguments: object) -> None:
        """Prepare the pool. Workers start when there are calls for them.

        Args:
            workers: maximum number of processes.
            start: function that every worker calls first.
            arguments: arguments of `start`.
        """
        self._main = _serve, start, arguments
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="caransac")
        self._of_thread = threading.local()
        self._lock = threading.Lock()  # protects the attributes below
        self._workers: list[_Worker] = []
        self._killed = False
        self._over = threading.Event()
        self._watchdog = threading.Thread(target=self._watch, daemon=True)

    def submit(
        self, function: Callable[Parameters, Value], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Value]:
        """Call a function in a worker; see `Executor.submit`."""
        return self._threads.submit(self._call, function, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish all calls, see `Executor.shutdown`. Without `wait`, the workers end with this process."""
        with interrupts.held():
            self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            self._threads.shutdown()
            for worker in self._workers:
                with suppress(OSError):
                    worker.connection.send_bytes(b"")
            for worker in self._workers:
                _end(worker, PATIENCE_S)
            self._over.set()

    def kill(self) -> None:
        """Kill the workers at once. Their calls and all later calls raise `WorkerDiedError`."""
        with interrupts.held(), self._lock:
            self._killed = True
            for worker in self._workers:
                worker.process.kill()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if kind is not None:
            self.kill()
        self.shutdown(cancel_futures=kind is not None)
        return False

    def _call(self, function: Callable[..., Value], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
        call = pickle.dumps((function, args, kwargs))
        worker = self._worker()
        try:
            worker.connection.send_bytes(call)
            reply = worker.connection.recv_bytes()
        except (EOFError, OSError) as error:
            self._forget(worker)
            stopped = f"was stopped for {STOPPED_S:g} s, and was killed"
            died = f"died, with exit code {worker.process.exitcode}"
            raise WorkerDiedError(f"a worker process {stopped if worker.was_stopped.is_set() else died}") from error
        value, failure, remote_traceback = pickle.loads(reply)
        if failure is not None:
            raise failure from RemoteError(remote_traceback)
        return value  # type: ignore[no-any-return]  # the function's own

    def _worker(self) -> _Worker:
        """Return the worker of the calling thread. Start it if it does not exist."""
        worker: _Worker | None = getattr(self._of_thread, "worker", None)
        if worker is None:
            with self._lock:
                if self._killed:
                    raise WorkerDiedError("the workers were killed")
                worker = self._of_thread.worker = _start(*self._main)
                self._workers.append(worker)
                if self._watchdog.ident is None:
                    self._watchdog.start()
        return worker

    def _watch(self) -> None:
        """Kill workers that stay stopped."""
        looks: dict[_Worker, int] = {}
        while not self._over.wait(WATCH_S):
            with self._lock:
                looks = {worker: looks.get(worker, 0) + 1 for worker in self._workers if _is_stopped(worker)}
            for worker in (each for each, count in looks.items() if count * WATCH_S > STOPPED_S):
                worker.was_stopped.set()
                worker.process.kill()

    def _forget(self, worker: _Worker) -> None:
        """Remove a dead worker so that a new one can replace it."""
        self._of_thread.worker = None
        with self._lock:
            self._workers.remove(worker)
        _end(worker, 0.0)


def _start(main: Callable[..., None], *arguments: object) -> _Worker:
    """Start a process with the other end of a pipe and the arguments."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=main, args=(theirs, *arguments), daemon=True)
    try:
        with _interruptions_blocked():
            process.start()
    finally:
        theirs.close()
    return _Worker(process, ours)


@contextmanager
def _interruptions_blocked() -> Iterator[None]:
    """Block SIGINT in this thread and in the processes that it starts, until they ignore it themselves.

    This is impossible on Windows. A worker that is interrupted while it starts dies there, and its call fails.
    """
    if sys.platform == "win32":
        yield
    else:
        resource_tracker.ensure_running()  # started here, because it would unblock the signal during the start
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_stopped(worker: _Worker) -> bool:
    """Return True if a worker is stopped, e.g. by SIGSTOP; False if the system cannot tell."""
    if sys.platform != "win32" and hasattr(os, "waitid") and worker.process.pid is not None:
        with suppress(ChildProcessError):  # WNOWAIT keeps the status for the code that waits for the process to end
            return os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return False


def _end(worker: _Worker, patience_s: float) -> None:
    """Wait until a worker ends. Kill it if that takes too long."""
    worker.process.join(patience_s)
    worker.process.kill()
    worker.process.join()
    worker.connection.close()


def _serve(connection: Connection, start: Callable[..., object] | None, arguments: tuple[object, ...]) -> None:
    """Run calls in a worker, one after the other, until an empty call arrives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if start is not None:
        start(*arguments)
    with suppress(EOFError, BrokenPipeError):  # the parent process ended
        while call := connection.recv_bytes():
            connection.send_bytes(_reply(call))


def _reply(call: bytes) -> bytes:
    """Run a call. Return its value, its exception and the traceback, pickled."""
    try:
        function, args, kwargs = pickle.loads(call)
        return pickle.dumps((function(*args, **kwargs), None, ""))
    except BaseException as error:
        text = traceback.format_exc()
        try:
            reply = pickle.dumps((None, error, text))
            pickle.loads(reply)
        except Exception:  # some exceptions cannot be pickled or unpickled
            reply = pickle.dumps((None, RuntimeError(repr(error)), text))
        return reply


def _end_with_parent() -> None:
    """Wait until the parent process ends, even if it is killed, and then end this process."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
