"""Our own layout: folders of scenes, with one npz archive per pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from caransac._support.arrays import as_reals
from caransac._support.files import as_path, replacing, save_arrays
from caransac._support.untrusted import open_npz
from caransac.io.matches import Matches
from caransac_lab.datasets.pair import Pair, naming_pair


def write_npz(root: str | Path, pair: Pair) -> Path:
    """Write a pair as ``root/<scene>/<name>.npz`` for `read_npz`, and return the path."""
    if not isinstance(pair, Pair):
        raise ValueError(f"pair must be a caransac_lab.datasets.Pair, not a {type(pair).__name__}")
    if pair.R is None or pair.t is None:
        raise ValueError(f"pair {pair.name!r} has no true pose")
    path = as_path(root, "root") / pair.scene / f"{pair.name.replace('/', '-')}.npz"
    matches = Matches(pair.points1, pair.points2, pair.scores, pair.score_kind, pair.camera1, pair.camera2)
    arrays = matches.to_arrays() | {"R": pair.R, "t": pair.t}
    if pair.features is not None:
        arrays["features"] = pair.features
    with replacing(path) as temporary:
        save_arrays(temporary, arrays)
    return path


def read_npz(root: str | Path, *, max_pairs: int | None = None) -> Iterator[Pair]:
    """Read pairs from a folder ``root/<scene>/<name>.npz``, as written by `write_npz`.

    An archive contains points1, points2 (n, 2), camera1_model, camera1_params, camera1_size, the same for camera2, R
    and t, and optionally scores (n,) with score_kind, and features (n, d).

    Args:
        root: folder of scenes.
        max_pairs: maximum number of pairs per scene, the first ones by name.
    """
    for scene, paths in _scenes(as_path(root, "root"), max_pairs).items():
        for path in paths:
            with open_npz(path) as arrays, naming_pair(path, path.stem):
                matches = Matches.from_arrays(arrays)
                if "R" not in arrays or "t" not in arrays:
                    raise ValueError("no true pose; want R and t")
                R, t = (as_reals(arrays[key], key) for key in ("R", "t"))
                unit = t / np.linalg.norm(t)
                pair = Pair.from_matches(scene, path.stem, matches, R, unit, arrays.get("features"))
            yield pair


def count_npz(root: Path, max_pairs: int | None) -> int:
    """Count the pairs that `read_npz` reads."""
    return sum(len(paths) for paths in _scenes(root, max_pairs).values())


def _scenes(root: Path, max_pairs: int | None) -> dict[str, list[Path]]:
    """Return the archives of every scene in order, up to `max_pairs` of each."""
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir())
    return {folder.name: sorted(folder.glob("*.npz"))[:max_pairs] for folder in folders}
