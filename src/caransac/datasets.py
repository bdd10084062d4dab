"""Readers of correspondences with ground truth, one a layout; docs/formats.md describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from caransac._support.files import naming, open_h5, open_npz, read_text, replacing, save_arrays
from caransac.camera import Camera
from caransac.geometry import Array, relative_pose
from caransac.images import FeatureKind, detect, match_features, read_image
from caransac.matches import Matches, camera_from_h5
from caransac.options import ScoreKind
from caransac.synthetic import SyntheticPair, random_pair

SYNTHETIC_PAIRS = 100


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

    @classmethod
    def from_synthetic(cls, made: SyntheticPair, name: str = "") -> Pair:
        """A synthetic pair as one of the scene "synthetic"."""
        shared = (field.name for field in fields(SyntheticPair) if field.name != "inliers")
        return cls(scene="synthetic", name=name, **{field: getattr(made, field) for field in shared})


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
    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"no such folder of scenes: {root}")
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
        poses = {image: (rotations[image], translations[image]) for image in rotations}
        with (
            open_h5(folder / "matches.h5") as matches,
            open_h5(folder / "match_conf.h5") as confidences,
            open_h5(folder / "K1_K2.h5") as cameras,
        ):
            keys = sorted(matches.keys())
            np.random.default_rng(shuffle_seed).shuffle(keys)
            for key in keys[:max_pairs]:
                points = np.asarray(matches[key], float)
                K1, K2 = np.asarray(cameras[key], float)[0]
                parts = (part for image in key.split("-") for part in poses[image])
                R, t = relative_pose(*parts) if has_truth else (None, None)
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
    with open_h5(path) as file:
        return {key: np.asarray(file[key], float) for key in file}


def read_pair_list(path: str | Path, *, max_pairs: int | None = None) -> Iterator[Pair]:
    """Pairs of a list in SuperGlue's text form, as of ScanNet-1500, MegaDepth-1500 and YFCC, with matches cached in h5.

    A line is ``path1 path2 rotation1 rotation2 K1(9) K2(9) T(16)``, with T the pose of camera 2 from camera 1. The
    matches lie beside the list, ``list.h5`` for ``list.txt``: a group ``path1/path2`` for each pair, with ``-`` for
    every ``/`` in a path, that holds ``x1`` and ``x2`` (n, 2) and optionally ``scores`` (n,). Pixels are those of the
    image that K belongs to; the rotations (quarter turns a matcher may apply before) are ignored. Scores are
    confidences unless the file's attribute ``score_kind`` says "ratio".

    Args:
        path: the list.
        max_pairs: the first so many lines.

    Raises:
        ValueError: a line is not of this form, or a pair has no matches; the message says which.
    """
    path = Path(path)
    with open_h5(path.with_suffix(".h5")) as cache:
        kind = cast(ScoreKind, str(cache.attrs.get("score_kind", "confidence")))
        for words in _pair_lines(path, max_pairs):
            numbers = np.array(words[4:], float)
            pose = numbers[18:].reshape(4, 4)
            key = _pair_key(words)
            if key not in cache:
                raise ValueError(f"{path.with_suffix('.h5')}: no matches of {key}")
            matches = cache[key]
            yield Pair(
                scene=path.stem,
                name=key,
                points1=np.asarray(matches["x1"], float),
                points2=np.asarray(matches["x2"], float),
                scores=np.asarray(matches["scores"], float) if "scores" in matches else None,
                camera1=Camera.from_matrix(numbers[:9].reshape(3, 3)),
                camera2=Camera.from_matrix(numbers[9:18].reshape(3, 3)),
                R=pose[:3, :3],
                t=pose[:3, 3] / np.linalg.norm(pose[:3, 3]),
                score_kind=kind,
            )


def match_pair_list(
    path: str | Path,
    images: str | Path,
    *,
    features: FeatureKind = "rootsift",
    progress: Callable[[int, int], object] | None = None,
) -> Path:
    """Match the images of a pair list and keep the matches beside it, where `read_pair_list` looks for them.

    Nothing is done where that file is there already. An interrupted call continues where it was.

    Args:
        path: the list.
        images: the folder that its paths start from.
        features: see `images.match_images`; the scores are ratios.
        progress: called with the number of pairs done and of all, after each.

    Returns:
        The h5 file.

    Raises:
        ValueError: a line is not of the list's form, or the file that is there has matches of other features.
    """
    path = Path(path)
    cache_path, partial_path = path.with_suffix(".h5"), path.with_suffix(f".{features}.partial")
    if cache_path.is_file():
        with open_h5(cache_path) as cache:
            made_by = str(cache.attrs.get("features", features))  # other programs do not say
        if made_by != features:
            raise ValueError(f"{cache_path} has matches by {made_by}, not by {features}: move it away to match again")
        return cache_path
    lines = list(_pair_lines(path, None))
    read = lru_cache(maxsize=16)(lambda name: detect(read_image(Path(images) / name), features))
    with open_h5(partial_path, "a") as cache:
        cache.attrs["score_kind"], cache.attrs["features"] = "ratio", features
        for done, words in enumerate(lines, 1):
            key = _pair_key(words)
            if key not in cache or "scores" not in cache[key]:  # written last
                x1, x2, scores = match_features(read(words[0]), read(words[1]), features)
                if key in cache:
                    del cache[key]
                for name, values in (("x1", x1), ("x2", x2), ("scores", scores)):
                    cache[f"{key}/{name}"] = values
                cache.flush()
            if progress is not None:
                progress(done, len(lines))
    return partial_path.replace(cache_path)


def _pair_lines(path: Path, max_pairs: int | None) -> Iterator[list[str]]:
    """The words of the lines of a pair list."""
    for number, line in enumerate(_lines(path)[:max_pairs], 1):
        words = line.split()
        if len(words) != 38:
            raise ValueError(f"{path}: line {number} has {len(words)} words, not 38")
        yield words


def _pair_key(words: Sequence[str]) -> str:
    """Where the matches of a line lie in the h5 file."""
    return "/".join(word.replace("/", "-") for word in words[:2])


def read_posebench(path: str | Path, *, max_pairs: int | None = None) -> Iterator[Pair]:
    """Pairs of an h5 file of posebench: a group each with x1, x2 (n, 2), camera1, camera2, R and t; without scores.

    Args:
        path: the file.
        max_pairs: the first so many pairs by name.
    """
    path = Path(path)
    with open_h5(path) as file:
        for name in sorted(file)[:max_pairs]:
            group = file[name]
            with naming(path):
                t = np.asarray(group["t"], float).ravel()
                pair = Pair(
                    scene=path.stem,
                    name=name,
                    points1=np.asarray(group["x1"], float),
                    points2=np.asarray(group["x2"], float),
                    scores=None,
                    camera1=camera_from_h5(group["camera1"]),
                    camera2=camera_from_h5(group["camera2"]),
                    R=np.asarray(group["R"], float),
                    t=t / np.linalg.norm(t),
                )
            yield pair


def write_npz(root: str | Path, pair: Pair) -> Path:
    """Write a pair as ``root/<scene>/<name>.npz``, for `read_npz`; returns the path."""
    if pair.R is None or pair.t is None:
        raise ValueError(f"pair {pair.name!r} has no true pose")
    path = Path(root) / pair.scene / f"{pair.name.replace('/', '-')}.npz"
    matches = Matches(pair.points1, pair.points2, pair.scores, pair.score_kind, pair.camera1, pair.camera2)
    arrays = matches.to_arrays() | {"R": pair.R, "t": pair.t}
    if pair.features is not None:
        arrays["features"] = pair.features
    with replacing(path) as temporary:
        save_arrays(temporary, arrays)
    return path


def read_npz(root: str | Path, *, max_pairs: int | None = None) -> Iterator[Pair]:
    """Pairs of a folder ``root/<scene>/<name>.npz``, as `write_npz` writes them.

    An archive holds points1, points2 (n, 2), camera1_model, camera1_params, camera1_size and the same of camera2, R and
    t, and optionally scores (n,) with score_kind, and features (n, d).

    Args:
        root: folder of scenes.
        max_pairs: pairs a scene at most, the first ones by name.
    """
    for scene in _folders(Path(root)):
        for path in sorted(scene.glob("*.npz"))[:max_pairs]:
            with open_npz(path) as arrays:
                with naming(path):
                    matches = Matches.from_arrays(arrays)
                if matches.camera1 is None or matches.camera2 is None or "R" not in arrays or "t" not in arrays:
                    raise ValueError(f"{path} has no cameras or no true pose; want camera1_model, ..., R and t")
                yield Pair(
                    scene=scene.name,
                    name=path.stem,
                    points1=matches.points1,
                    points2=matches.points2,
                    scores=matches.scores,
                    camera1=matches.camera1,
                    camera2=matches.camera2,
                    R=arrays["R"],
                    t=arrays["t"] / np.linalg.norm(arrays["t"]),
                    score_kind=matches.score_kind,
                    features=arrays.get("features"),
                )


def make_synthetic(num_pairs: int, *, first: int = 0, score_kind: ScoreKind = "ratio") -> Iterator[Pair]:
    """Pairs of `synthetic.random_pair` with 300 to 2000 matches; pair i is the same whatever else is asked for."""
    for index in range(first, first + num_pairs):
        rng = np.random.default_rng([index, 1])
        made = random_pair(rng, num_points=int(rng.integers(300, 2000)), score_kind=score_kind)
        yield Pair.from_synthetic(made, f"{index:04d}")


@dataclass(frozen=True)
class Dataset:
    """Pairs that can be read again and again.

    Attributes:
        name: its name in tables.
        num_pairs: how many there are.
        read: starts reading.
    """

    name: str
    num_pairs: int
    read: Callable[[], Iterator[Pair]]


def open_dataset(source: str | Path, max_pairs: int | None = None) -> Dataset:
    """A data set by its place; its layout is seen from the files.

    Args:
        source: a folder of scenes (RANSAC Tutorial, or npz files), a pair list ``.txt``, a posebench ``.h5``, or
            ``synthetic:N`` for N synthetic pairs, ``synthetic:N:FIRST`` for those from number FIRST on.
        max_pairs: pairs a scene at most.

    Raises:
        ValueError: there is nothing of a known layout; the message names it.
    """
    if str(source).partition(":")[0] == "synthetic":
        return _open_synthetic(str(source), max_pairs)
    path = Path(source)
    name = "/".join(path.resolve().with_suffix("").parts[-2:])  # where it lay on the machine is nobody's business
    limit = max_pairs if max_pairs is not None else 10**9
    if path.suffix == ".txt" and path.is_file():
        return Dataset(name, min(limit, len(_lines(path))), lambda: read_pair_list(path, max_pairs=max_pairs))
    if path.suffix == ".h5" and path.is_file():
        with open_h5(path) as file:
            count = min(limit, len(file))
        return Dataset(name, count, lambda: read_posebench(path, max_pairs=max_pairs))
    if path.is_dir() and any(path.glob("*/matches.h5")):
        count = 0
        for matches in path.glob("*/matches.h5"):
            with open_h5(matches) as file:
                count += min(limit, len(file))
        return Dataset(name, count, lambda: read_ransac_tutorial(path, max_pairs=max_pairs))
    if path.is_dir() and any(path.glob("*/*.npz")):
        count = sum(min(limit, len(list(scene.glob("*.npz")))) for scene in _folders(path))
        return Dataset(name, count, lambda: read_npz(path, max_pairs=max_pairs))
    raise ValueError(f"no pairs in {source}: want a folder of scenes, a pair list .txt, a posebench .h5 or synthetic:N")


def _open_synthetic(source: str, max_pairs: int | None) -> Dataset:
    numbers = source.split(":")[1:]
    if len(numbers) > 2 or not all(number.isdigit() for number in numbers):
        raise ValueError(f"{source!r}: want synthetic:N, or synthetic:N:FIRST")
    count, first = [int(number) for number in numbers] + [SYNTHETIC_PAIRS, 0][len(numbers) :]
    count = count if max_pairs is None else min(count, max_pairs)
    return Dataset("synthetic", count, lambda: make_synthetic(count, first=first))


def _folders(root: Path) -> list[Path]:
    return sorted(folder for folder in root.iterdir() if folder.is_dir())


def _lines(path: Path) -> list[str]:
    return [line for line in read_text(path).splitlines() if line.strip()]
