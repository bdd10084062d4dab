"""Lists of pairs in SuperGlue's text form, with an h5 file of matches beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from caransac._support.arrays import as_reals
from caransac._support.files import check_writable, replacing_h5
from caransac._support.sqlite_files import connect, explaining, transaction
from caransac._support.untrusted import read_text
from caransac._support.untrusted_h5 import read_h5
from caransac.camera import Camera
from caransac.datasets.pair import Pair, naming_pair
from caransac.io.images import FeatureKind, detect, match_features, read_image
from caransac.io.matches import Matches
from caransac.options import ScoreKind

# HDF5 files do not survive the death of their writer, so that matches are kept in an SQLite file until all are there.
OTHERWISE = "is not what an unfinished run of this version left ({error}): move it away to start anew"


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
    with read_h5(path.with_suffix(".h5")) as cache:
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
                group = cache.group(key)
                scores = group.array("scores") if "scores" in group else None
                matches = Matches(group.array("x1"), group.array("x2"), scores, kind, *cameras)
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
        with read_h5(cache_path) as cache:
            made_by = str(cache.attrs.get("features", features))  # other programs do not say
        if made_by != features:
            raise ValueError(f"{cache_path} has matches by {made_by}, not by {features}: move it away to match again")
        return cache_path
    lines = list(_pair_lines(path, None))
    check_writable(cache_path)
    read = lru_cache(maxsize=16)(lambda name: detect(read_image(Path(images) / name), features))
    with explaining(partial_path, OTHERWISE), closing(connect(partial_path)) as work:
        work.execute("CREATE TABLE IF NOT EXISTS pairs (key TEXT PRIMARY KEY, x1 BLOB, x2 BLOB, scores BLOB)")
        known = {key for (key,) in work.execute("SELECT key FROM pairs")}
        for done, words in enumerate(lines, 1):
            if (key := _pair_key(words)) not in known:
                found = match_features(read(words[0]), read(words[1]), features)
                with transaction(work):
                    row = (key, *(np.ascontiguousarray(array, "<f8").tobytes() for array in found))
                    work.execute("INSERT INTO pairs VALUES (?, ?, ?, ?)", row)
                known.add(key)
            if progress is not None:
                progress(done, len(lines))
        _write_matches(cache_path, work, dict.fromkeys(map(_pair_key, lines)), features)
    partial_path.unlink()
    return cache_path


def _write_matches(path: Path, work: sqlite3.Connection, keys: Iterable[str], features: FeatureKind) -> None:
    """The h5 file of all pairs that a work file has."""
    with replacing_h5(path) as cache:
        cache.attrs["score_kind"], cache.attrs["features"] = "ratio", features
        for key in keys:
            row = work.execute("SELECT x1, x2, scores FROM pairs WHERE key = ?", (key,)).fetchone()
            count = len(row[2]) // 8
            if [len(data) for data in row] != [16 * count, 16 * count, 8 * count]:
                raise TypeError("arrays of other shapes")
            for name, data, shape in zip(("x1", "x2", "scores"), row, ((-1, 2), (-1, 2), (-1,)), strict=True):
                cache[f"{key}/{name}"] = np.frombuffer(data, "<f8").reshape(shape)


def _pair_lines(path: Path, max_pairs: int | None) -> Iterator[list[str]]:
    """The words of the lines of a pair list."""
    for number, line in enumerate(_lines(path, max_pairs), 1):
        words = line.split()
        if len(words) != 38:
            raise ValueError(f"{path}: line {number} has {len(words)} words, not 38")
        yield words


def count_pair_list(path: Path, max_pairs: int | None) -> int:
    """How many pairs `read_pair_list` reads."""
    return len(_lines(path, max_pairs))


def _lines(path: Path, max_pairs: int | None) -> list[str]:
    return [line for line in read_text(path).splitlines() if line.strip()][:max_pairs]


def _pair_key(words: Sequence[str]) -> str:
    """Where the matches of a line lie in the h5 file."""
    return "/".join(word.replace("/", "-") for word in words[:2])
