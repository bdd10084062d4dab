"""Run the command line in forks of this process, in which one relevant call fails."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from caransac.cli import run_program, verify  # noqa: F401  # imported once, for all forks
from caransac_lab.bench import publication, runner
from caransac_lab.training import trainer

KINDS = ("full disk", "no memory", "SIGINT", "SIGKILL")
HANGS_S = 120.0
PYTHON_POINTS = {"_read_dataset", "write_checkpoint", "read_checkpoint", "save_arrays", "read_header", "transaction"}
CALLS = {"open", "read", "write", "flush", "fsync", "replace", "rename", "unlink", "chmod", "mkdir", "execute"}
CALLS |= {"executemany", "fetchone", "fetchall", "truncate", "write_record", "write_end_of_file", "writerows"}
FOREIGN = ("importlib", "threading", "multiprocessing", "concurrent", "matplotlib", "progress.py", "PIL", "faults.py")
Site = tuple[str, int, str]  # file, line and call

LAB_COMMANDS = ("bench", "train")
for each in LAB_COMMANDS:
    import_module(f"caransac_lab.cli.{each}")  # once, for all forks


@dataclass(frozen=True)
class Fault:
    """A fault at the n-th call of a run."""

    kind: str
    number: int
    site: Site


class Injector:
    """A profile function that records the relevant calls, or makes one of them fail."""

    def __init__(self, fault: Fault | None) -> None:
        self.fault, self.sites = fault, list[Site]()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Handle an event of `sys.setprofile`."""
        name = frame.f_code.co_name if event == "call" else getattr(argument, "__name__", "")
        if name not in (PYTHON_POINTS if event == "call" else CALLS if event == "c_call" else ()):
            return
        file = frame.f_code.co_filename
        streams = (sys.stdout, sys.stderr, sys.stdin, sys.__stdout__, sys.__stderr__)
        if any(part in file for part in FOREIGN) or getattr(argument, "__self__", None) in streams:
            return
        self.sites.append((file, frame.f_lineno, name))
        if self.fault is not None and len(self.sites) == self.fault.number:
            sys.setprofile(None)
            fail(self.fault.kind)


def fail(kind: str) -> None:
    """Cause a fault of a kind."""
    if kind == "full disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if kind == "no memory":
        raise MemoryError
    os.kill(os.getpid(), signal.SIGINT if kind == "SIGINT" else signal.SIGKILL)


class InlinePool(ThreadPoolExecutor):
    """A replacement for worker processes: one thread of this process."""

    def __init__(self, _: int, start: Callable[..., object] | None = None, *arguments: object) -> None:
        super().__init__(1)
        if start is not None and start is not runner.start_worker:  # start_worker would close the output
            start(*arguments)


def run(
    arguments: Sequence[str], folder: Path, fault: Fault | None = None, *, watch: bool = False
) -> tuple[int | None, str, list[Site]]:
    """Run a command in a fork, without its plots, which are slow and are redrawn each time.

    Args:
        arguments: arguments of the command.
        folder: folder for its output.
        fault: fault to inject.
        watch: whether to record the relevant calls.

    Returns:
        The exit code (None if it hung), its output, and the relevant calls.
    """
    said, noted = folder / "said.txt", folder / "sites.json"
    if (process := os.fork()) == 0:
        with said.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        code, injector = 1, Injector(fault)
        try:
            runner.ProcessPool = trainer.ProcessPool = InlinePool  # both commands use it
            publication.plots.draw_all = trainer.draw_training = lambda *_: None
            sys.argv = ["caransac", *arguments]
            if watch or fault is not None:
                sys.setprofile(injector.note)
            program = "caransac-lab" if arguments[0] in LAB_COMMANDS else "caransac"
            code = run_program(program, "", arguments[:1], None)
        except BaseException as error:
            os.write(2, f"Traceback: {type(error).__name__}: {error}\n".encode())
        finally:
            sys.setprofile(None)
            noted.write_text(json.dumps(injector.sites))
            os._exit(code)
    code_or_none = wait(process)
    sites = [tuple(site) for site in json.loads(noted.read_text())] if watch else []
    return code_or_none, said.read_text(errors="replace"), sites


def wait(process: int) -> int | None:
    """Return the exit code of a process: negative if a signal ended it, None if it had to be killed."""
    end = time.monotonic() + HANGS_S
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def choose(sites: Sequence[Site], count: int, seed: str) -> list[Fault]:
    """Choose `count` faults, spread over all places in the code, at the first, last and middle call of each."""
    places: dict[Site, list[int]] = {}
    for number, site in enumerate(sites, 1):
        places.setdefault(site, []).append(number)
    order, rng = list(places), random.Random(seed)
    chosen: dict[tuple[int, str], Fault] = {}
    for turn in range(3 * len(KINDS)):
        rng.shuffle(order)
        for index, site in enumerate(order):
            numbers = places[site]
            number, kind = numbers[(0, -1, len(numbers) // 2)[turn % 3]], KINDS[(turn + index) % len(KINDS)]
            if len(chosen) < count:
                chosen.setdefault((number, kind), Fault(kind, number, site))
    return list(chosen.values())
