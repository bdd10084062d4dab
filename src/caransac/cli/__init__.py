"""The command line: one module per command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import caransac
from caransac._support.interrupts import INTERRUPTED, InterruptGuard


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Without arguments they are those of the process, which then belongs to the command: Ctrl-C ends it well, see
    `InterruptGuard`.
    """
    with InterruptGuard("caransac: interrupted", active=arguments is None) as guard:
        try:
            code = _run(arguments, guard)
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()  # here, where a reader that has gone is noticed
            return code
        except BrokenPipeError:  # 'caransac ... | head' has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still flushes at its end
            return 141  # as a program that SIGPIPE ends
        except (ImportError, OSError, ValueError) as error:
            print(f"caransac: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as error:
            guard.say(*map(str, error.args))
            return INTERRUPTED


def _run(arguments: Sequence[str] | None, guard: InterruptGuard) -> int:
    """Read the arguments, and run the command that they name."""
    # Here, as it takes a moment, in which somebody may think better of it.
    from caransac.cli import bench, demo, pose, train, verify, view

    parser = argparse.ArgumentParser(
        prog="caransac", description="Robust two-view geometry from correspondences full of outliers."
    )
    parser.add_argument("--version", action="version", version=f"caransac {caransac.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (pose, view, verify, demo, train, bench):
        command.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    if "how_to_continue" in parsed:  # of the commands that take long
        guard.begin(parsed.how_to_continue)
    else:
        guard.release()
    return int(parsed.run(parsed))
