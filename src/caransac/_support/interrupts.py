"""Ctrl-C as a request: noted when it comes, obeyed where nothing is half-done, and after a moment wherever that is.

An exception out of a signal handler can come in the middle of anything: a lock that is being taken, a file that a
library is writing. Here the handler only notes the request. Work that is done in pieces calls `check` between two.
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

GRACE_S = 1.0  # from a request to the end of a process in which nobody has obeyed it
ENDING_S = 10.0  # to the end of one in which somebody has: it may be saving something
INTERRUPTED = 130  # the exit code, as shells have it
SHOW_CURSOR = b"\x1b[?25h"  # which a bar in a terminal hides

_requested = _obeyed = False  # of the process, as the signal itself is


class InterruptRequest(KeyboardInterrupt):
    """A KeyboardInterrupt that comes where `check` is called, and nowhere else."""


def check() -> None:
    """Raise an `InterruptRequest` if there was a request to stop that an `InterruptGuard` noted."""
    global _obeyed
    if _requested:
        _obeyed = True
        raise InterruptRequest


def is_requested() -> bool:
    """Whether `check` would raise."""
    return _requested


@contextmanager
def held() -> Iterator[None]:
    """Let a Ctrl-C wait for the end of the ``with`` statement, which must come soon: then it raises as it would have.

    For users of the library, whose process has no `InterruptGuard`: an exception in the middle of the locks of a thread
    pool leaves them taken, and the pool then never ends.
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
    """What Ctrl-C does in a process that belongs to one command; used in its main thread, in a ``with`` statement.

    Until `begin`, a request ends the process at once, with a message and exit code 130. From then on it is noted, and
    `check` raises. Where nobody has checked within `GRACE_S`, because of native code that takes long for example, or
    where the process has not ended within `ENDING_S`, it ends all the same: what must not be lost has to be safe at any
    time, as if the process were killed. Further requests change nothing.

    After the ``with`` statement nothing is left to interrupt but the end of the interpreter, so requests are ignored. A
    process that ignored them from the start, as the background jobs of a shell do, goes on ignoring them.
    """

    def __init__(self, message: str, *, active: bool = True) -> None:
        """Prepare it.

        Args:
            message: says what happened, the beginning of a line.
            active: False to touch no signals, and only `say`.
        """
        self._message, self._how_to_continue = message, "the same command starts again"
        self._active = active and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._grace_s = 0.0
        self._ended = False
        self._saying = threading.Lock()  # never released: there is one message

    def __enter__(self) -> InterruptGuard:
        if self._active:
            signal.signal(signal.SIGINT, _note)  # first: what follows must not be interrupted either
            reader, writer = os.pipe()
            if sys.platform != "win32":  # which wants no such thing
                os.set_blocking(writer, False)
            threading.Thread(target=self._watch, args=(reader,), daemon=True).start()
            signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # wakes the thread, whatever this one is doing
            if _requested:  # before it could
                os.write(writer, bytes([signal.SIGINT]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._ended = not self._saying.locked()

    def begin(self, how_to_continue: str) -> None:
        """From here on there is something that must end well.

        Args:
            how_to_continue: what the message says of it, the end of a line.
        """
        self._how_to_continue, self._grace_s = how_to_continue, GRACE_S

    def release(self) -> None:
        """Let Ctrl-C raise a KeyboardInterrupt wherever it comes, as Python does: there is nothing to continue."""
        self._how_to_continue = ""
        if self._active:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def leave(self) -> None:
        """End the process, if it belongs to the command: all is closed, and the end of an interpreter takes a while."""
        if self._active:
            with suppress(AttributeError, OSError):  # it may be closed, or nobody may read it
                sys.stdout.flush()
            os._exit(INTERRUPTED)

    def say(self, *further: str) -> None:
        """Write the message to stderr, as one line, unless that is done; called when a request is obeyed.

        Args:
            further: what else happened.
        """
        if self._saying.acquire(blocking=False):
            parts = (self._message, *further, self._how_to_continue)
            with suppress(OSError):
                os.write(2, f"{'; '.join(part for part in parts if part)}\n".encode())

    def _watch(self, reader: int) -> None:
        """Wait for a request, then for the end of the process; end it if that does not come."""
        while os.read(reader, 1)[0] != signal.SIGINT:
            pass
        time.sleep(self._grace_s)
        if _obeyed:
            time.sleep(ENDING_S - self._grace_s)
        if not self._ended:
            if os.isatty(2):
                os.write(2, SHOW_CURSOR)
            self.say()
            # Without it there are none; to import it here could wait for ever for what the main thread is importing.
            workers = sys.modules.get("multiprocessing")
            with suppress(Exception):  # they end with this process, but not before they have a moment for Python code
                for child in workers.active_children() if workers is not None else ():
                    child.kill()
            os._exit(INTERRUPTED)


def _note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # what a handler is called with
    global _requested
    _requested = True
