"""What a result must say about where it comes from."""

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
    """The folder of the clone that this file or the current folder is in; the current folder if there is none."""
    places = (*Path(__file__).parents, Path.cwd(), *Path.cwd().parents)
    return next((place for place in places if (place / "src/caransac/__init__.py").is_file()), Path.cwd())


CLONE = find_clone()


def versions(estimators: Iterable[LibraryCall]) -> dict[str, str]:
    """Versions of everything the outcome of the estimators depends on."""
    packages = {e.package: installed_version(e.module) for e in estimators if e.module != "caransac"}
    own = {"caransac": caransac.__version__, "numpy": np.__version__, "python": platform.python_version()}
    return own | dict(sorted(packages.items()))


def describe() -> dict[str, str | int | None]:
    """The machine and the commit."""
    return {
        "commit": commit(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "instruction_set": instruction_set(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cpu_model() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the checkout that the package or the current folder belongs to; ``-dirty`` if it was changed.

    Published results and texts may change: they decide no figure.
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
    """What git says; in a session of its own, as a Ctrl-C that ends it would look like no commit."""
    command = ["git", "-C", str(folder), *arguments]
    asked = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    return asked.stdout.strip()
