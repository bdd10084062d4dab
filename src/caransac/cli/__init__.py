"""The command line: one module per command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import caransac
from caransac.cli import bench, completion, demo, pose, train, verify, view

COMMANDS = (pose, view, verify, demo, train, bench, completion)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The parsed arguments; a mistake ends the process with exit code 2 and the usage of the command it was made in."""
    parser = argparse.ArgumentParser(
        prog="caransac", description="Robust two-view geometry from correspondences full of outliers."
    )
    parser.add_argument("--version", action="version", version=f"caransac {caransac.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for command in COMMANDS:
        command.add_parser(commands)
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:  # argparse itself would print the usage of the whole program
        commands.choices[parsed.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    return parsed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parsed = parse(arguments)
    try:
        code = int(parsed.run(parsed))
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()  # here, where a reader that has gone is noticed
        return code
    except BrokenPipeError:  # 'caransac ... | head' has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still flushes at its end
        return 141  # as a program that SIGPIPE ends
    except (ImportError, OSError, ValueError) as error:
        print(f"caransac: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("caransac: interrupted", file=sys.stderr)
        return 130
