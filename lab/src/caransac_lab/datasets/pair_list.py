"""Lists of pairs in the text formats of SuperGlue and glue-factory, with an h5 file of matches beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from caransac._support.arrays import as_reals
from caransac._support.files import as_path, check_writable, replacing_h5
from caransac._support.sqlite_files import check_schema, connect, explaining, transaction
from caransac._support.untrusted import read_text
from caransac._support.untrusted_h5 import read_h5
from caransac.camera import Camera
from caransac.geometry import Array
from caransac.io.images import FeatureKind, detect, match_features, read_image
from caransac.io.matches import Matches
from caransac.options import ScoreKind
from caransac_lab.datasets.pair import Pair, naming_pair

# An HDF5 file is corrupt if its writer is killed, so matches are collected in an SQLite file until all exist.
OTHERWISE = "is not what an unfinished run of this version left ({error}): move it away to start anew"


VIEWS = "views.txt"  # beside a list that has only names: cameras and poses in glue-factory's format
# By words per line: number of words before K1, and number of words of the pose.
POSE_WORDS = {32: (2, 12), 36: (2, 16), 38: (4, 16)}


@dataclass(frozen=True, eq=False)
class _Listed:
    """A line of a list: the names of two images, their cameras, and the pose of camera 2 relative to camera 1."""

    names: tuple[str, str]
    cameras: tuple[Camera, Camera]
    R: Array
    t: Array

    @property
    def key(self) -> str:
        """Name of the group of its matches in the h5 file."""
        return _pair_key(self.names)


def read_pair_list(path: str | Path, *, max_pairs: int | None = None) -> Iterator[Pair]:
    """Read the pairs of a list, e.g. of ScanNet-1500, MegaDepth-1500 or YFCC, with matches cached in h5.

    A line has one of these forms, which may be mixed in a list:

    - SuperGlue's ``path1 path2 rotation1 rotation2 K1(9) K2(9) T(16)``, with T the pose of camera 2 from camera 1;
    - glue-factory's, the same without the rotations; the pose may also be ``R(9) t(3)``;
    - glue-factory's ``path1 path2``, with a file ``views.txt`` beside the list that has the lines
      ``path R(9) t(3) MODEL width height params...``. Its poses are from the world to the camera, its cameras COLMAP's.

    The matches are beside the list, in ``list.h5`` for ``list.txt``. Each pair has a group ``path1/path2``, with ``-``
    for every ``/`` in a path, that contains ``x1`` and ``x2`` (n, 2) and optionally ``scores`` (n,). Pixels refer to
    the image of the camera; the rotations (quarter turns that a matcher may apply first) are ignored. Scores are
    confidences unless the file's attribute ``score_kind`` is "ratio".

    Args:
        path: path of the list.
        max_pairs: maximum number of lines, from the start of the list.

    Raises:
        ValueError: a line has none of these forms, or a pair has no matches. The message says which.
    """
    path = as_path(path)
    with read_h5(path.with_suffix(".h5")) as cache:
        kind = cast(ScoreKind, str(cache.attrs.get("score_kind", "confidence")))
        for listed in _read_list(path, max_pairs):
            if listed.key not in cache:
                raise ValueError(f"{path.with_suffix('.h5')}: no matches of {listed.key}")
            with naming_pair(path.with_suffix(".h5"), listed.key):
                group = cache.group(listed.key)
                scores = group.array("scores") if "scores" in group else None
                matches = Matches(group.array("x1"), group.array("x2"), scores, kind, *listed.cameras)
            yield Pair.from_matches(path.stem, listed.key, matches, listed.R, listed.t / np.linalg.norm(listed.t))


def match_pair_list(
    path: str | Path,
    images: str | Path,
    *,
    features: FeatureKind = "rootsift",
    progress: Callable[[int, int], object] | None = None,
) -> Path:
    """Match the images of a pair list and store the matches beside it for `read_pair_list`.

    Nothing is done if that file exists already. An interrupted call resumes.

    Args:
        path: path of the list.
        images: root folder of the paths in the list.
        features: see `images.match_images`; the scores are ratios.
        progress: called after each pair with the number of finished pairs and the total.

    Returns:
        The h5 file.

    Raises:
        ValueError: a line has none of the forms of a list, or the existing file has matches of other features.
    """
    path = as_path(path)
    cache_path, partial_path = path.with_suffix(".h5"), path.with_suffix(f".{features}.partial")
    if cache_path.is_file():
        with read_h5(cache_path) as cache:
            made_by = str(cache.attrs.get("features", features))  # files of other programs lack this attribute
        if made_by != features:
            raise ValueError(f"{cache_path} has matches by {made_by}, not by {features}: move it away to match again")
        return cache_path
    pairs = list(_read_list(path, None))
    check_writable(cache_path)
    read = lru_cache(maxsize=16)(lambda name: detect(read_image(Path(images) / name), features))
    with explaining(partial_path, OTHERWISE), closing(connect(partial_path)) as work:
        check_schema(work, {"pairs": "key"}, partial_path)
        work.execute("CREATE TABLE IF NOT EXISTS pairs (key TEXT PRIMARY KEY, x1 BLOB, x2 BLOB, scores BLOB)")
        known = {key for (key,) in work.execute("SELECT key FROM pairs")}
        for done, listed in enumerate(pairs, 1):
            if (key := listed.key) not in known:
                found = match_features(read(listed.names[0]), read(listed.names[1]), features)
                with transaction(work):
                    row = (key, *(np.ascontiguousarray(array, "<f8").tobytes() for array in found))
                    work.execute("INSERT INTO pairs VALUES (?, ?, ?, ?)", row)
                known.add(key)
            if progress is not None:
                progress(done, len(pairs))
        _write_matches(cache_path, work, dict.fromkeys(listed.key for listed in pairs), features)
    partial_path.unlink()
    return cache_path


def _write_matches(path: Path, work: sqlite3.Connection, keys: Iterable[str], features: FeatureKind) -> None:
    """Write the h5 file of all pairs in a work file."""
    with replacing_h5(path) as cache:
        cache.attrs["score_kind"], cache.attrs["features"] = "ratio", features
        for key in keys:
            row = work.execute("SELECT x1, x2, scores FROM pairs WHERE key = ?", (key,)).fetchone()
            count = len(row[2]) // 8
            if [len(data) for data in row] != [16 * count, 16 * count, 8 * count]:
                raise TypeError("arrays of other shapes")
            for name, data, shape in zip(("x1", "x2", "scores"), row, ((-1, 2), (-1, 2), (-1,)), strict=True):
                cache[f"{key}/{name}"] = np.frombuffer(data, "<f8").reshape(shape)


def _read_list(path: Path, max_pairs: int | None) -> Iterator[_Listed]:
    """Read the lines of a list of any form."""
    views: dict[str, tuple[Camera, Array, Array]] | None = None
    for number, line in enumerate(_lines(path, max_pairs), 1):
        words = line.split()
        if len(words) == 2 and views is None:
            views = _read_views(path.with_name(VIEWS))
        if len(words) != 2 and len(words) not in POSE_WORDS:
            raise ValueError(f"{path}: line {number} has {len(words)} words, not 2, 32, 36 or 38")
        with naming_pair(path, _pair_key(words)):
            listed = _listed_numbers(words) if len(words) > 2 or views is None else _listed_views(words, views)
        yield listed


def _listed_numbers(words: Sequence[str]) -> _Listed:
    """Parse a line with calibration matrices and the pose."""
    before, pose_words = POSE_WORDS[len(words)]
    numbers = as_reals(np.array(words[before:], float), "the line")
    camera1, camera2 = (Camera.from_matrix(K) for K in numbers[:18].reshape(2, 3, 3))
    if pose_words == 12:
        R, t = numbers[18:27].reshape(3, 3), numbers[27:]
    else:
        pose = numbers[18:].reshape(4, 4)
        R, t = pose[:3, :3], pose[:3, 3]
    return _Listed((words[0], words[1]), (camera1, camera2), R, t)


def _listed_views(words: Sequence[str], views: Mapping[str, tuple[Camera, Array, Array]]) -> _Listed:
    """Parse a line of two names, whose cameras and poses are in another file."""
    if missing := [name for name in words if name not in views]:
        raise ValueError(f"{VIEWS} has no line for {missing[0]}")
    (camera1, R1, t1), (camera2, R2, t2) = (views[name] for name in words)
    R = R2 @ R1.T
    return _Listed((words[0], words[1]), (camera1, camera2), R, t2 - R @ t1)


def _read_views(path: Path) -> dict[str, tuple[Camera, Array, Array]]:
    """Read cameras and world-to-camera poses, R (3, 3) and t (3,), by image name."""
    if not path.is_file():
        raise FileNotFoundError(
            f"no such file: {path}, which has the cameras and poses of a list of two names per line"
        )
    views = {}
    for number, line in enumerate(_lines(path, None), 1):
        words = line.split()
        try:
            numbers = as_reals(np.array(words[1:13], float), "the line")
            model, width, height, *params = words[13:]
            camera = Camera(model, tuple(map(float, params)), int(width), int(height))
            views[words[0]] = camera, numbers[:9].reshape(3, 3), numbers[9:]
        except ValueError as error:
            raise ValueError(
                f"{path}: line {number} is not 'path R(9) t(3) MODEL width height params...': {error}"
            ) from error
    return views


def count_pair_list(path: Path, max_pairs: int | None) -> int:
    """Count the pairs that `read_pair_list` reads."""
    return len(_lines(path, max_pairs))


def _lines(path: Path, max_pairs: int | None) -> list[str]:
    return [line for line in read_text(path).splitlines() if line.strip()][:max_pairs]


def _pair_key(words: Sequence[str]) -> str:
    """Return the name of the group of matches for the two images named by the first words."""
    return "/".join(word.replace("/", "-") for word in words[:2])
