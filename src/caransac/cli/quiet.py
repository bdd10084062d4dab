"""The option --quiet of commands that take long: only results and errors."""

from __future__ import annotations

import argparse
import sys


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="show neither progress nor notes: only results and what went wrong"
    )


def note(arguments: argparse.Namespace, text: str) -> None:
    """Say something on stderr that is no error, unless that is not wanted."""
    if not arguments.quiet:
        print(text, file=sys.stderr)
