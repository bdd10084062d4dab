"""The layout of the RANSAC Tutorial 2020: folders of scenes with several h5 files each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from caransac._support.arrays import as_reals
from caransac._support.files import as_path, naming
from caransac._support.untrusted import check_size
from caransac._support.untrusted_h5 import read_h5
from caransac.camera import Camera
from caransac.geometry import Array, relative_pose
from caransac.io.matches import Matches
from caransac.options import ScoreKind
from caransac_lab.datasets.pair import Pair, naming_pair


def read_ransac_tutorial(
    root: str | Path, *, scenes: Sequence[str] | None = None, max_pairs: int | None = None, shuffle_seed: int = 0
) -> Iterator[Pair]:
    """Read pairs in the layout of the RANSAC Tutorial 2020: ``root/<scene>/{matches,match_conf,K1_K2,R,T}.h5``.

    A scene may add ``match_features.h5`` with (n, d) features for each pair, to train weights that read them.

    Args:
        root: folder of scenes. Scores are ratios by default; ``FOLDER=confidence`` reads them as confidences,
            ``FOLDER=none`` ignores them and shuffles the matches, because their order may depend on the scores.
        scenes: names of scenes; None for all folders.
        max_pairs: maximum number of pairs per scene, the first ones in a fixed shuffle.
        shuffle_seed: seed of that shuffle.

    Raises:
        ValueError: a folder or file is missing or invalid. The message names it.
    """
    root, kind = split_score_kind(as_path(root, "root"))
    if not root.is_dir():
        raise ValueError(f"no such folder of scenes: {root}")
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if scenes is None else list(scenes)
    if not names:
        raise ValueError(f"root: no scenes in {root}")
    for scene in names:
        for file in ("matches.h5", "match_conf.h5", "K1_K2.h5"):
            if not (root / scene / file).is_file():
                raise ValueError(f"scene {scene!r} has no {file} in {root / scene}")
        for pair in _read_scene(root, scene, max_pairs, shuffle_seed):
            if kind == "none":
                order = np.random.default_rng(0).permutation(len(pair.points1))
                yield replace(pair.take(order), scores=None)
            else:
                yield replace(pair, score_kind=kind)


def split_score_kind(root: Path) -> tuple[Path, ScoreKind | Literal["none"]]:
    """Split ``FOLDER=confidence`` or ``FOLDER=none`` into the folder and the kind of its scores; "ratio" otherwise."""
    kinds: tuple[ScoreKind | Literal["none"], ...] = ("confidence", "none")
    for kind in kinds:
        if root.name.endswith(f"={kind}"):
            return Path(str(root).removesuffix(f"={kind}")), kind
    return root, "ratio"


def count_ransac_tutorial(root: Path, max_pairs: int | None) -> int:
    """Count the pairs that `read_ransac_tutorial` reads from all scenes."""
    count = 0
    for path in split_score_kind(root)[0].glob("*/matches.h5"):
        with read_h5(path) as file:
            count += len(sorted(file)[:max_pairs])
    return count


def _read_scene(root: Path, scene: str, max_pairs: int | None, shuffle_seed: int) -> Iterator[Pair]:
    """Read the pairs of one scene for `read_ransac_tutorial`."""
    folder = root / scene
    has_truth = (folder / "R.h5").is_file() and (folder / "T.h5").is_file()
    features, rotations, translations = (_read_all(folder / f"{name}.h5") for name in ("match_features", "R", "T"))
    with (
        read_h5(folder / "matches.h5") as points,
        read_h5(folder / "match_conf.h5") as scores,
        read_h5(folder / "K1_K2.h5") as cameras,
    ):
        keys = sorted(points)
        np.random.default_rng(shuffle_seed).shuffle(keys)
        for key in keys[:max_pairs]:
            with naming_pair(folder / "matches.h5", key):
                matches = _matches_of_table(points.array(key))
            with naming_pair(folder / "match_conf.h5", key):
                matches = replace(matches, scores=scores.array(key).ravel())
            with naming_pair(folder / "K1_K2.h5", key):
                camera1, camera2 = map(Camera.from_matrix, cameras.array(key)[0])
                matches = replace(matches, camera1=camera1, camera2=camera2)
            with naming_pair(folder, key):
                poses = (table[image] for image in key.split("-") for table in (rotations, translations))
                R, t = relative_pose(*poses) if has_truth else (None, None)
                pair = Pair.from_matches(scene, key, matches, R, t, features.get(key))
            yield pair


def read_poses(folder: Path) -> dict[str, tuple[Array, Array]]:
    """Read the true poses of the images of a scene by name, R (3, 3) and t (3,) with ``x = R X + t``."""
    rotations, translations = (_read_all(folder / f"{name}.h5") for name in ("R", "T"))
    return {name: (R, translations[name].ravel()) for name, R in rotations.items() if name in translations}


def _matches_of_table(table: Array) -> Matches:
    if table.ndim != 2 or table.shape[1] != 4:
        raise ValueError(f"want an array (N, 4) of x1 y1 x2 y2, got {table.shape}")
    return Matches(table[:, :2], table[:, 2:])


def _read_all(path: Path) -> dict[str, Array]:
    """Read the arrays of an h5 file by key; empty if there is no file."""
    if not path.is_file():
        return {}
    found, size = dict[str, Array](), path.stat().st_size
    with read_h5(path) as file, naming(path):
        for key in file:
            found[key] = as_reals(file.array(key), key)
            check_size(sum(array.nbytes for array in found.values()), size, str(path))
    return found
