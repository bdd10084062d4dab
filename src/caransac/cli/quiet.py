"""What commands say on stderr: the option --quiet, and names from files, which must not steer a terminal."""

from __future__ import annotations

import argparse
import re
import sys

# Control characters, and those that change the direction of what follows.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


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
    print(CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text), file=sys.stderr)
