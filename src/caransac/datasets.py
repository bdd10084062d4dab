"""Readers of correspondences with ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caransac.camera import Camera
from caransac.geometry import Array
from caransac.types import ScoreKind


@dataclass(frozen=True, eq=False)
class Pair:
    """Correspondences of two images.

    Attributes:
        scene: the scene they belong to.
        name: the pair's name within the scene.
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        scores: (n,) second-nearest-neighbour ratios, or what `score_kind` says; None without.
        camera1: camera of image 1.
        camera2: camera of image 2.
        R: (3, 3) true rotation, ``x2 = R x1 + t``, or None where there is no truth (unrelated images).
        t: (3,) true translation of length one, or None.
        score_kind: what the scores are.
        features: (n, d) further numbers about each match, or None.
    """

    scene: str
    name: str
    points1: Array
    points2: Array
    scores: Array | None
    camera1: Camera
    camera2: Camera
    R: Array | None
    t: Array | None
    score_kind: ScoreKind = "ratio"
    features: Array | None = None


def read_ransac_tutorial(
    root: str | Path, *, scenes: Sequence[str] | None = None, max_pairs: int | None = None, shuffle_seed: int = 0
) -> Iterator[Pair]:
    """Pairs in the layout of the RANSAC Tutorial 2020: ``root/<scene>/{matches,match_conf,K1_K2,R,T}.h5``.

    A scene may add ``match_features.h5``, (n, d) numbers for each pair, to train weights that read them.

    Args:
        root: folder of scenes.
        scenes: their names; all folders when None.
        max_pairs: pairs a scene at most, the first ones in a fixed shuffle.
        shuffle_seed: seed of that shuffle.

    Raises:
        ValueError: a folder or file is missing; the message names it.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError("reading h5 files needs h5py: pip install 'caransac[bench]'") from error

    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"root: no such folder: {root}")
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if scenes is None else list(scenes)
    if not names:
        raise ValueError(f"root: no scenes in {root}")
    for scene in names:
        folder = root / scene
        for file in ("matches.h5", "match_conf.h5", "K1_K2.h5"):
            if not (folder / file).is_file():
                raise ValueError(f"scene {scene!r} has no {file} in {folder}")
        has_truth = (folder / "R.h5").is_file() and (folder / "T.h5").is_file()
        features = _read_all(folder / "match_features.h5") if (folder / "match_features.h5").is_file() else {}
        rotations, translations = (_read_all(folder / f"{n}.h5") if has_truth else {} for n in "RT")
        with (
            h5py.File(folder / "matches.h5") as matches,
            h5py.File(folder / "match_conf.h5") as confidences,
            h5py.File(folder / "K1_K2.h5") as cameras,
        ):
            keys = sorted(matches.keys())
            np.random.default_rng(shuffle_seed).shuffle(keys)
            for key in keys[:max_pairs]:
                points = np.asarray(matches[key], float)
                K1, K2 = np.asarray(cameras[key], float)[0]
                R, t = _relative_pose(key, rotations, translations) if has_truth else (None, None)
                yield Pair(
                    scene=scene,
                    name=key,
                    points1=points[:, :2],
                    points2=points[:, 2:],
                    scores=np.asarray(confidences[key], float).ravel(),
                    camera1=Camera.from_matrix(K1),
                    camera2=Camera.from_matrix(K2),
                    R=R,
                    t=t,
                    features=features.get(key),
                )


def _read_all(path: Path) -> dict[str, Array]:
    import h5py

    with h5py.File(path) as file:
        return {key: np.asarray(file[key], float) for key in file}


def _relative_pose(key: str, rotations: dict[str, Array], translations: dict[str, Array]) -> tuple[Array, Array]:
    """Pose of the second image from the first, of ``first-second``, from their poses in the world."""
    first, second = key.split("-")
    R = rotations[second] @ rotations[first].T
    t = (translations[second] - R @ translations[first]).ravel()
    return R, t / np.linalg.norm(t)
