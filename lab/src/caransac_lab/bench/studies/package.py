"""Cost of an installation: size of the wheel, and the time of the first import and of the first estimate.

The wheel is the one in dist/ from `make dist`; without one, its rows are omitted. Times are medians of new processes,
without the start of Python itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median
from typing import Any
from zipfile import ZipFile

import caransac
from caransac_lab.bench.machine import CLONE
from caransac_lab.bench.publication import Content, table

NAME = "package"
DIST = CLONE / "dist"
RUNS, QUICK_RUNS = 15, 2
PROGRAMS = {
    "import numpy": "import numpy",
    "import caransac": "import caransac",
    "import caransac.api: all that an estimate needs": "import caransac.api",
    "import, and the first estimate of 1000 matches": (
        "import caransac; from caransac.synthetic import make_pair; p = make_pair();"
        "caransac.estimate_relative_pose(p.points1, p.points2, p.camera1, p.camera2)"
    ),
}


def seconds_of(program: str) -> float:
    """Return the seconds that a new process takes for a program."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - started


def measure_times(runs: int) -> dict[str, float]:
    """Return the milliseconds of every program."""
    found: dict[str, list[float]] = {name: [] for name in ("", *PROGRAMS)}
    for _ in range(runs + 1):  # the first run fills the caches
        for name, seconds in found.items():
            seconds.append(seconds_of(PROGRAMS.get(name, "")))
    bare = median(found.pop("")[1:])
    return {name: 1e3 * (median(seconds[1:]) - bare) for name, seconds in found.items()}


def measure_wheels() -> dict[str, Any]:
    """Return the sizes in bytes of the wheels of this version, packed and unpacked."""
    sizes = {}
    for path in sorted(DIST.glob(f"caransac-{caransac.__version__}-*.whl")):
        with ZipFile(path) as wheel:
            sizes[path.name] = {"packed": path.stat().st_size, "unpacked": sum(f.file_size for f in wheel.infolist())}
    return sizes


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    text = "# The package\n\n`caransac-lab study package --help` describes the measurement.\n\n"
    text += table(["", "ms"], ([name, f"{max(ms, 0):.0f}"] for name, ms in content["ms"].items()))
    sizes = ([name, *(f"{size / 1e6:.2f}" for size in found.values())] for name, found in content["wheels"].items())
    return text + "\n" + table(["wheel", "MB", "MB unpacked"], sizes) if content["wheels"] else text


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    return {"ms": measure_times(QUICK_RUNS if arguments.quick else RUNS), "wheels": measure_wheels()}
