"""What the scripts of this folder share: options, where figures come from, Markdown, and files that people can read.

A result is one JSON file. Its entry "made" names command, commit, version and packages. Its tables are made from the
file, by the function `as_markdown` of its script. `publish.py` runs all scripts, `tables.py` makes all tables.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import caransac
from caransac._support.files import replacing
from caransac.bench import machine
from caransac.bench.adapters import ESTIMATORS, HOMOGRAPHY_ESTIMATORS

RESULTS = Path(__file__).parent / "results"
LEFT_OUT = 77  # exit code of a script that cannot run here, as its last line says
WIDTH, DIGITS = 120, 5  # of a line of JSON, and of a number

Content = dict[str, Any]


def make_parser(text: str | None, name: str) -> argparse.ArgumentParser:
    """A parser with the options that all these scripts have."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little data, to see that it works; needs --out to write")
    default = f"benchmarks/results/{name}.json"
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"default: {default}; the tables go beside it")
    return parser


def destination(arguments: argparse.Namespace, name: str) -> Path | None:
    """Where the figures go; nowhere after a quick run without a place."""
    default = None if arguments.quick else RESULTS / f"{name}.json"
    return arguments.out or default


def command_of(arguments: Sequence[str]) -> str:
    """The command that makes a file; of folders the last three parts, as nobody else has them there."""
    words, given = [], list(arguments)
    while given:
        word = given.pop(0)
        if word == "--out":
            given.pop(0)
            continue
        path = Path(word)
        words.append("/".join(path.parts[-3:]) if path.is_absolute() else word)
    return shlex.join(["python", *words])


def origin() -> Content:
    """What the figures of this run come from: to be asked before anything is measured."""
    script = f"benchmarks/{Path(sys.argv[0]).name}"
    estimators = [each for each in (*ESTIMATORS.values(), *HOMOGRAPHY_ESTIMATORS.values()) if not each.missing]
    about = {"command": command_of([script, *sys.argv[1:]]), "version": caransac.__version__}
    return about | machine.describe() | {"versions": machine.versions(estimators)}


def data_name(folder: Path) -> str:
    """The name of a data set: the last two parts of its path."""
    return "/".join(folder.resolve().parts[-2:])


def dump(content: Any) -> str:
    """JSON of few lines: whatever fits into one is one. Numbers have five digits, which is more than tables show."""
    return _lines(_rounded(content), 0) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _lines(value: Any, depth: int) -> str:
    whole = json.dumps(value, ensure_ascii=False)
    if depth + len(whole) <= WIDTH or not isinstance(value, dict | list):
        return whole
    inner, outer = " " * (depth + 1), " " * depth
    if isinstance(value, list):
        entries, ends = [_lines(each, depth + 1) for each in value], "[]"
    else:
        entries = [f"{json.dumps(name)}: {_lines(each, depth + 1)}" for name, each in value.items()]
        ends = "{}"
    lines = [inner + entries[0]]
    for entry in entries[1:]:  # short ones share a line
        if "\n" in lines[-1] + entry or len(lines[-1]) + len(entry) + 3 > WIDTH:
            lines.append(inner + entry)
        else:
            lines[-1] += f", {entry}"
    return ends[0] + "\n" + ",\n".join(lines) + f"\n{outer}{ends[1]}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def percent(count: float, total: int) -> str:
    """A share for readers; empty where there is nothing to have a share of."""
    return f"{100 * count / total:.1f}" if total else ""


def footer(content: Content) -> str:
    """By what a file was made."""
    made = content["made"]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"\n`{made['command']}`\n\nCommit {made['commit']}; {made['cpu']}, {made['instruction_set']}; {versions}.\n"


def publish(path: Path | None, content: Content, as_markdown: Callable[[Content], str]) -> None:
    """Print the tables; write them and the figures. The tables are made from what the file has."""
    text = dump(content)
    read = json.loads(text)
    tables = as_markdown(read) + footer(read)
    print(tables)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, written in ((path, text), (path.with_suffix(".md"), tables)):
        with replacing(target) as temporary:
            temporary.write_text(written)
