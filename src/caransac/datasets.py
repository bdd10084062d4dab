"""Readers of correspondences with ground truth, one a layout; docs/formats.md describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from caransac._support.arrays import as_reals
from caransac._support.files import naming, open_npz, read_text, replacing, save_arrays
from caransac.camera import Camera
from caransac.geometry import Array, Floats, relative_pose
from caransac.images import FeatureKind, detect, match_features, read_image
from caransac.matches import Matches, camera_from_h5, open_h5
from caransac.options import ScoreKind
from caransac.robust.problems import Essential
from caransac.synthetic import SyntheticPair, random_pair

SYNTHETIC_PAIRS = 100
RIGHT_PX = 1.0  # Sampson distance to the true geometry below which a match is right


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

    @classmethod
    def from_matches(
        cls, scene: str, name: str, matches: Matches, R: Array | None, t: Array | None, features: Array | None = None
    ) -> Pair:
        """A pair of matches, checked as all `Matches` are, with their cameras.

        Args:
            scene: the scene they belong to.
            name: the pair's name within the scene.
            matches: its matches.
            R: (3, 3) true rotation, or None.
            t: (3,) true translation of length one, or None.
            features: (n, d) further numbers about each match, or None.

        Raises:
            ValueError: there are no cameras, or the features do not fit the matches; the message says which.
        """
        if matches.camera1 is None or matches.camera2 is None:
            raise ValueError("no cameras; want camera1 and camera2")
        if features is not None:
            features = as_reals(features, "features")
            if features.ndim != 2 or len(features) != len(matches.points1):
                raise ValueError(f"features must have shape ({len(matches.points1)}, d), got {features.shape}")
        known = {field.name: getattr(matches, field.name) for field in fields(matches)}
        return cls(scene=scene, name=name, R=R, t=t, features=features, **known)

    def right_matches(self) -> Floats:
        """(n,) 1 for the matches within a pixel of the true geometry and in front of both cameras; 0 without truth."""
        if self.R is None or self.t is None:
            return np.zeros(len(self.points1), np.float32)
        problem = Essential.from_pixels(self.points1, self.points2, self.camera1, self.camera2, RIGHT_PX)
        return problem.inliers(np.concatenate([self.R.ravel(), self.t])).astype(np.float32)


@contextmanager
def naming_pair(path: Path, name: str) -> Iterator[None]:
    """Turn errors about what a file holds of a pair into ValueErrors that name both."""
    try:
        yield
    except (LookupError, TypeError, ValueError) as error:
        why = error.args[0] if isinstance(error, LookupError) else error  # a KeyError puts its text in quotes
        raise ValueError(f"{path}: pair {name}: {why}") from error


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
        ValueError: a folder or file is missing, or holds what is no pair; the message names it.
    """
    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"no such folder of scenes: {root}")
    names = sorted(path.name for path in root.iterdir() if path.is_dir()) if scenes is None else list(scenes)
    if not names:
        raise ValueError(f"root: no scenes in {root}")
    for scene in names:
        for file in ("matches.h5", "match_conf.h5", "K1_K2.h5"):
            if not (root / scene / file).is_file():
                raise ValueError(f"scene {scene!r} has no {file} in {root / scene}")
        yield from _read_scene(root, scene, max_pairs, shuffle_seed)


def _read_scene(root: Path, scene: str, max_pairs: int | None, shuffle_seed: int) -> Iterator[Pair]:
    """Pairs of one scene of `read_ransac_tutorial`."""
    folder = root / scene
    has_truth = (folder / "R.h5").is_file() and (folder / "T.h5").is_file()
    features, rotations, translations = (_read_all(folder / f"{name}.h5") for name in ("match_features", "R", "T"))
    with (
        open_h5(folder / "matches.h5") as points,
        open_h5(folder / "match_conf.h5") as scores,
        open_h5(folder / "K1_K2.h5") as cameras,
    ):
        keys = sorted(points.keys())
        np.random.default_rng(shuffle_seed).shuffle(keys)
        for key in keys[:max_pairs]:
            with naming_pair(folder / "matches.h5", key):
                matches = _matches_of_table(np.asarray(points[key], float))
            with naming_pair(folder / "match_conf.h5", key):
                matches = replace(matches, scores=np.asarray(scores[key], float).ravel())
            with naming_pair(folder / "K1_K2.h5", key):
                camera1, camera2 = map(Camera.from_matrix, np.asarray(cameras[key], float)[0])
                matches = replace(matches, camera1=camera1, camera2=camera2)
            with naming_pair(folder, key):
                poses = (table[image] for image in key.split("-") for table in (rotations, translations))
                R, t = relative_pose(*poses) if has_truth else (None, None)
                pair = Pair.from_matches(scene, key, matches, R, t, features.get(key))
            yield pair


def _matches_of_table(table: Array) -> Matches:
    if table.ndim != 2 or table.shape[1] != 4:
        raise ValueError(f"want an array (N, 4) of x1 y1 x2 y2, got {table.shape}")
    return Matches(table[:, :2], table[:, 2:])


def _read_all(path: Path) -> dict[str, Array]:
    """The arrays of an h5 file by their keys; none without the file."""
    if not path.is_file():
        return {}
    with open_h5(path) as file, naming(path):
        return {key: as_reals(np.asarray(file[key], float), key) for key in file}


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
            key = _pair_key(words)
            with naming_pair(path, key):
                numbers = as_reals(np.array(words[4:], float), "the line")
                cameras = [Camera.from_matrix(K) for K in numbers[:18].reshape(2, 3, 3)]
                pose = numbers[18:].reshape(4, 4)
            if key not in cache:
                raise ValueError(f"{path.with_suffix('.h5')}: no matches of {key}")
            with naming_pair(path.with_suffix(".h5"), key):
                x1, x2 = (np.asarray(cache[key][name], float) for name in ("x1", "x2"))
                scores = np.asarray(cache[key]["scores"], float) if "scores" in cache[key] else None
                matches = Matches(x1, x2, scores, kind, *cameras)
            yield Pair.from_matches(path.stem, key, matches, pose[:3, :3], pose[:3, 3] / np.linalg.norm(pose[:3, 3]))


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
            with naming_pair(path, name):
                t, R, x1, x2 = (as_reals(np.asarray(group[key], float), key) for key in ("t", "R", "x1", "x2"))
                cameras = [camera_from_h5(group[key]) for key in ("camera1", "camera2")]
                matches = Matches(x1, x2, None, "ratio", *cameras)
                pair = Pair.from_matches(path.stem, name, matches, R, t.ravel() / np.linalg.norm(t))
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
            with open_npz(path) as arrays, naming_pair(path, path.stem):
                matches = Matches.from_arrays(arrays)
                if "R" not in arrays or "t" not in arrays:
                    raise ValueError("no true pose; want R and t")
                R, t = (as_reals(arrays[key], key) for key in ("R", "t"))
                unit = t / np.linalg.norm(t)
                pair = Pair.from_matches(scene.name, path.stem, matches, R, unit, arrays.get("features"))
            yield pair


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
