"""Origin of a result: machine, commit and versions."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import caransac
from caransac.kernels import instruction_set
from caransac_lab.bench.contract import LibraryCall, installed_version

DECIDING = (":(top)", ":(top,exclude)benchmarks/results", ":(top,exclude,glob)**/*.md")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def find_clone() -> Path:
    """Return the folder of the clone that contains this file or the current folder; otherwise the current folder."""
    places = (*Path(__file__).parents, Path.cwd(), *Path.cwd().parents)
    return next((place for place in places if (place / "src/caransac/__init__.py").is_file()), Path.cwd())


CLONE = find_clone()


def versions(estimators: Iterable[LibraryCall]) -> dict[str, str]:
    """Return the versions of everything that affects the results of the estimators."""
    packages = {e.package: installed_version(e.module) for e in estimators if e.module != "caransac"}
    own = {"caransac": caransac.__version__, "numpy": np.__version__, "python": platform.python_version()}
    return own | dict(sorted(packages.items()))


def describe() -> dict[str, str | int | None]:
    """Describe the machine and the commit."""
    return {
        "commit": commit(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "instruction_set": instruction_set(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cpu_model() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """Return the commit of the checkout of the package or the current folder, with ``-dirty`` if it was changed.

    Changes of published results and texts are ignored, because they affect no figure.
    """
    for folder in (Path(caransac.__file__).parent, Path.cwd()):
        try:
            if (Path(_git(folder, "rev-parse", "--show-toplevel")) / "src/caransac/__init__.py").is_file():
                changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *DECIDING)
                return _git(folder, "rev-parse", "--short=12", "HEAD") + ("-dirty" if changed else "")
        except (OSError, subprocess.CalledProcessError):
            continue
    return None


def _git(folder: Path, *arguments: str) -> str:
    """Run git and return its output. It has its own session, so that a Ctrl-C cannot end it."""
    command = ["git", "-C", str(folder), *arguments]
    asked = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    return asked.stdout.strip()
