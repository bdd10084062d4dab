"""What the scripts of this folder that print several tables share: options, stored figures, Markdown, files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from caransac._support.files import replacing
from caransac.bench import machine
from caransac.bench.adapters import ESTIMATORS

RESULTS = Path("benchmarks/results")


def make_parser(text: str | None, name: str) -> argparse.ArgumentParser:
    """A parser with the options that all these scripts have."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few runs, to see that it works; needs --out to write")
    default = RESULTS / f"{name}.json"
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"default: {default}; the tables go beside it")
    return parser


def destination(arguments: argparse.Namespace, name: str) -> Path | None:
    """Where the figures go; nowhere after a quick run without a place."""
    default = None if arguments.quick else RESULTS / f"{name}.json"
    return arguments.out or default


def stored(path: Path | None) -> dict[str, Any]:
    """The figures of an earlier run, which must be there."""
    if path is None or not path.is_file():
        raise SystemExit(f"no figures of an earlier run in {path}")
    return dict(json.loads(path.read_text()))


def origin(peers: Iterable[str] = ()) -> dict[str, Any]:
    """Machine, commit and versions of what the estimators by these names need."""
    return machine.describe() | {"versions": machine.versions([ESTIMATORS[name] for name in peers])}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def percent(count: float, total: int) -> str:
    """A share for readers; empty where there is nothing to have a share of."""
    return f"{100 * count / total:.1f}" if total else ""


def publish(path: Path | None, content: dict[str, Any], text: str) -> None:
    """Print the tables; write them and the figures, with what made them."""
    for whose, made in content["origin"].items():
        text += f"\n{whose}: commit {made['commit']}, {made['cpu']}, {made['instruction_set']}.\n"
    print(text)
    if path is None:
        return
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
    with replacing(path.with_suffix(".md")) as temporary:
        temporary.write_text(text)
