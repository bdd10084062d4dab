"""What commands say on stderr: the option --quiet, and names from files, which must not steer a terminal."""

from __future__ import annotations

import argparse
import sys

from caransac._support.untrusted import escape_controls


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print only results, warnings and errors: no progress, no notes"
    )


def note(arguments: argparse.Namespace, text: str) -> None:
    """Say something on stderr that is no error, unless that is not wanted."""
    if not arguments.quiet:
        say(text)


def say(text: str) -> None:
    """Say a line on stderr; what it quotes of a file may hold anything, and is shown with escapes."""
    print(escape_controls(text), file=sys.stderr)
