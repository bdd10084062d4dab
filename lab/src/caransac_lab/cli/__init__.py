"""The command line ``caransac-lab``: one module per command."""

from __future__ import annotations

from collections.abc import Sequence

from caransac.cli import run_program

COMMANDS = ("train", "bench", "paper", "study", "publish", "fit-confidence")
DESCRIPTION = "Training, benchmarks and published results of caransac."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program("caransac-lab", DESCRIPTION, COMMANDS, arguments)
