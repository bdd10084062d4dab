"""Messages of commands: the option --quiet, and escaping of names of files and from files."""

from __future__ import annotations

import argparse
import sys

from caransac._support.untrusted import escape_controls


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option --quiet."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print only results, warnings and errors: no progress, no notes"
    )


def note(arguments: argparse.Namespace, text: str) -> None:
    """Print a note on stderr, unless --quiet is given."""
    if not arguments.quiet:
        say(text)


def say(text: str) -> None:
    """Print a line on stderr. Escape control characters, which may come from a file or its name."""
    print(escape_controls(text), file=sys.stderr)


def show(text: str) -> None:
    """Print a line on stdout. Escape control characters, which may come from a file or its name."""
    print(escape_controls(text))
