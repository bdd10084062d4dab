"""Scripts of other projects, unchanged and with our import, and the same figures of both.

DIR has copies of projects that you fetched, in folders of their names: posebench, glue-factory, pyslam, OpenSfM,
vismatch and opencv (only samples/python). Missing projects are left out. Each script runs twice, in separate processes:
unchanged, and from a copy in which ``import cv2`` is ``from caransac.integrations import opencv as cv2``, and
``import poselib`` likewise. Nothing else is changed. Stand-ins replace compiled parts of the projects and packages that
the estimates do not need. Two names that OpenCV and numpy have removed are restored for both runs. Each project has its
module in `other_projects`. Needs the extra 'bench', and for glue-factory and vismatch ``pip install torch omegaconf``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from caransac_lab.bench.publication import Content, LeftOutError, add_common, table
from caransac_lab.bench.studies.other_projects import PROJECTS
from caransac_lab.bench.studies.other_projects.project_data import Data, Row

NAME = "third_party"
MODULE = "caransac_lab.bench.studies.third_party"  # this module, which each run of a project starts as a program
PAIRS, QUICK_PAIRS = 20, 2  # pairs per scene
IMPORT = re.compile(r"^([ \t]*)import (cv2|poselib)(?: as (\w+))?[ \t]*$", re.MULTILINE)
OURS = {"cv2": "opencv", "poselib": "poselib"}


def copy_project(folder: Path, place: Path, ours: bool) -> None:
    """Copy the Python files of a project, optionally with our import."""
    for path in folder.rglob("*.py"):
        target = place / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not ours:
            shutil.copyfile(path, target)
            continue
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        target.write_text(with_our_import(text), encoding="utf-8", errors="surrogateescape")


def with_our_import(text: str) -> str:
    """Replace a script's imports of OpenCV and PoseLib as described in docs/migration.md."""
    return IMPORT.sub(
        lambda found: f"{found[1]}from caransac.integrations import {OURS[found[2]]} as {found[3] or found[2]}", text
    )


def run_copy(name: str, ours: bool, arguments: argparse.Namespace) -> list[Row]:
    """Return the rows of a project from a separate process."""
    with tempfile.TemporaryDirectory() as scratch:
        copy_project(arguments.projects / name, Path(scratch) / name, ours)
        rows = Path(scratch) / "rows.json"
        words = ["-m", MODULE, "--projects", scratch, "--worker", name, "--out", str(rows)]
        for option in ("pairs", "homographies", "photos"):
            if getattr(arguments, option) is not None:
                words += [f"--{option}", str(getattr(arguments, option).resolve())]
        command = [sys.executable, *words, *(["--quick"] if arguments.quick else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name}, {'ours' if ours else 'original'}: {done.stderr}")
        return list(json.loads(rows.read_text()))


def check_imports(name: str) -> None:
    """Exit with a message if a project imports a package that is not installed."""
    if lacking := [package for package in PROJECTS[name].imports if find_spec(package) is None]:
        packages = " ".join(lacking)
        raise SystemExit(f"{name} imports {' and '.join(lacking)}, not installed here: pip install {packages}")


def measure(arguments: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Return the rows of all available projects, and the names of the missing ones."""
    there = [name for name, project in PROJECTS.items() if (arguments.projects / name / project.needs).is_file()]
    for name in there:
        check_imports(name)
    rows = []
    for name in there:
        original, ours = (run_copy(name, which, arguments) for which in (False, True))
        for before, after in zip(original, ours, strict=True):
            rows.append({**before, "original": before.pop("value"), "ours": after["value"]})
            rows[-1].pop("value", None)
            print(rows[-1], flush=True)
    return rows, [name for name in PROJECTS if name not in there]


def as_markdown(content: dict[str, Any]) -> str:
    """Format the table."""
    head = (
        "# Scripts of other projects with our import\n\n`caransac-lab study third_party --help` describes the runs.\n\n"
    )
    missing = f"\nMissing: {', '.join(content['missing'])}.\n" if content["missing"] else ""
    return head + rows_table(content["rows"]) + missing


def rows_table(rows: list[Row]) -> str:
    """Format every script with both figures."""
    header = ["script", "library", "on", "pairs", "figure", "original", "here"]
    return table(
        header,
        [[*(str(row[key]) for key in header[:5]), *map(_figure, (row["original"], row["ours"]))] for row in rows],
    )


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--projects", type=Path, required=True, metavar="DIR", help="folder of the projects")
    parser.add_argument("--pairs", type=Path, metavar="DIR", help="pairs of images with true poses (docs/formats.md)")
    parser.add_argument("--homographies", type=Path, metavar="DIR", help="planar pairs with true homographies")
    parser.add_argument("--photos", type=Path, metavar="DIR", help="photographs")
    parser.add_argument("--worker", choices=PROJECTS, help=argparse.SUPPRESS)


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    rows, missing = measure(arguments)
    if not rows:
        raise LeftOutError(f"no project in {arguments.projects}")
    return {"rows": rows, "missing": missing}


def work(words: list[str]) -> None:
    """Run the scripts of one project in this separate process."""
    parser = argparse.ArgumentParser()
    add_common(parser, NAME)
    add_arguments(parser)
    arguments = parser.parse_args(words)
    count = QUICK_PAIRS if arguments.quick else PAIRS
    data = Data(arguments.pairs, arguments.homographies, arguments.photos, count)
    rows = list(PROJECTS[arguments.worker].run(arguments.projects / arguments.worker, data))
    arguments.out.write_text(json.dumps(rows))


if __name__ == "__main__":
    work(sys.argv[1:])
