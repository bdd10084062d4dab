"""The layout of posebench: one h5 file of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from caransac._support.arrays import as_reals
from caransac._support.files import as_path
from caransac._support.untrusted_h5 import read_h5
from caransac.io.matches import Matches, camera_from_h5
from caransac_lab.datasets.pair import Pair, naming_pair


def read_posebench(path: str | Path, *, max_pairs: int | None = None) -> Iterator[Pair]:
    """Read pairs from posebench's h5 file: groups with x1, x2 (n, 2), camera1, camera2, R and t, without scores.

    Args:
        path: path of the file.
        max_pairs: maximum number of pairs, the first ones by name.
    """
    path = as_path(path)
    with read_h5(path) as file:
        for name in sorted(file)[:max_pairs]:
            with naming_pair(path, name):
                group = file.group(name)
                t, R, x1, x2 = (as_reals(group.array(key), key) for key in ("t", "R", "x1", "x2"))
                cameras = [camera_from_h5(group.group(key)) for key in ("camera1", "camera2")]
                matches = Matches(x1, x2, None, "ratio", *cameras)
                pair = Pair.from_matches(path.stem, name, matches, R, t.ravel() / np.linalg.norm(t))
            yield pair


def count_posebench(path: Path, max_pairs: int | None) -> int:
    """Count the pairs that `read_posebench` reads."""
    with read_h5(path) as file:
        return len(sorted(file)[:max_pairs])
