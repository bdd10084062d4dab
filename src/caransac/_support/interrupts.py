"""Treat Ctrl-C as a request: stop at the next safe point, or anywhere after a grace period.

A signal handler that raises can interrupt anything, for example a lock that is being taken or a file that a library is
writing. Here the handler only records the request. Work that is done in pieces calls `check` between two pieces.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType

GRACE_S = 1.0  # seconds until the process is ended if no code reacted to the request
ENDING_S = 10.0  # seconds until the process is ended if code reacted; it may be saving data
INTERRUPTED = 130  # the shells' exit code for Ctrl-C
SHOW_CURSOR = b"\x1b[?25h"  # progress bars hide the cursor of the terminal

_requested = _obeyed = False  # global, because the signal belongs to the whole process


class InterruptRequest(KeyboardInterrupt):
    """A KeyboardInterrupt that is raised only by `check`."""


def check() -> None:
    """Raise an `InterruptRequest` if an `InterruptGuard` recorded a request to stop."""
    global _obeyed
    if _requested:
        _obeyed = True
        raise InterruptRequest


def is_requested() -> bool:
    """Return True if `check` would raise."""
    return _requested


@contextmanager
def held() -> Iterator[None]:
    """Delay Ctrl-C until the end of the ``with`` statement, which must be short. Then it raises as usual.

    This is for users of the library, whose process has no `InterruptGuard`. An exception inside the locks of a thread
    pool leaves them locked, and the pool then never ends.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if came:
            raise KeyboardInterrupt


class InterruptGuard:
    """Handle Ctrl-C in a process that runs one command. Use it in the main thread, in a ``with`` statement.

    Until `begin`, a request ends the process at once, with a message and exit code 130. After `begin` the request is
    recorded, and `check` raises. The process is ended anyway if nothing calls `check` within `GRACE_S`, for example
    during long native code, or if it has not ended within `ENDING_S`. Important data must therefore be safe at any
    time, as if the process could be killed. Further requests change nothing.

    After the ``with`` statement only the interpreter's exit remains, so requests are ignored. A process that ignored
    SIGINT from the start, like the background jobs of a shell, continues to ignore it.
    """

    def __init__(self, message: str, *, active: bool = True) -> None:
        """Store the message; signals are touched only in the ``with`` statement.

        Args:
            message: description of the event; the line begins with it.
            active: whether to handle signals. If False, only `say` has an effect.
        """
        self._message, self._how_to_continue = message, "the same command starts again"
        self._active = active and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._grace_s = 0.0
        self._ended = False
        self._saying = threading.Lock()  # never released, because the message is written only once

    def __enter__(self) -> InterruptGuard:
        if self._active:
            signal.signal(signal.SIGINT, _note)  # first, because the next lines must not be interrupted either
            reader, writer = os.pipe()
            if sys.platform != "win32":  # Windows needs no non-blocking file here
                os.set_blocking(writer, False)
            threading.Thread(target=self._watch, args=(reader,), daemon=True).start()
            # Wakes the watching thread, whatever the main thread does.
            signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            if _requested:  # a request came before the wake-up existed
                os.write(writer, bytes([signal.SIGINT]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._ended = not self._saying.locked()

    def begin(self, how_to_continue: str) -> None:
        """Record requests from now on instead of ending the process at once.

        Args:
            how_to_continue: instruction for resuming; the message ends with it.
        """
        self._how_to_continue, self._grace_s = how_to_continue, GRACE_S

    def release(self) -> None:
        """Restore Python's behaviour: Ctrl-C raises a KeyboardInterrupt anywhere. There is nothing to resume."""
        self._how_to_continue = ""
        if self._active:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def leave(self) -> None:
        """End the process at once if it belongs to the command. All files are closed; a normal exit is slower."""
        if self._active:
            with suppress(AttributeError, OSError):  # the stream may be closed, or have no reader
                sys.stdout.flush()
            os._exit(INTERRUPTED)

    def say(self, *further: str) -> None:
        """Write the message to stderr as one line, once. Call it when a request is obeyed.

        Args:
            further: additional events to report.
        """
        if self._saying.acquire(blocking=False):
            parts = (self._message, *further, self._how_to_continue)
            with suppress(OSError):
                os.write(2, f"{'; '.join(part for part in parts if part)}\n".encode())

    def _watch(self, reader: int) -> None:
        """Wait for a request and then for the end of the process. End the process if that takes too long."""
        while os.read(reader, 1)[0] != signal.SIGINT:
            pass
        time.sleep(self._grace_s)
        if _obeyed:
            time.sleep(ENDING_S - self._grace_s)
        if not self._ended:
            if os.isatty(2):
                os.write(2, SHOW_CURSOR)
            self.say()
            # Workers exist only if this module is loaded. An import here could wait forever for an import of the main
            # thread.
            workers = sys.modules.get("multiprocessing")
            with suppress(Exception):  # workers end with this process, but first they get a moment to run Python code
                for child in workers.active_children() if workers is not None else ():
                    child.kill()
            os._exit(INTERRUPTED)


def _note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # arguments of a handler
    global _requested
    _requested = True
