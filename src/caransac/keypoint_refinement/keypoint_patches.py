"""Align the patches of matched keypoints, with pure functions that any worker can run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from caransac.geometry import Floats
from caransac.io.images import Image, read_grey
from caransac.kernels import local_maps
from caransac.robust.patches.alignment import refine_in_photographs
from caransac.tuning import DEFAULT_TUNING
from caransac.verification.pair_records import ImageSize, MatchIndices
from caransac.verification.pair_verification import check_build, until_interrupted

CACHED_BYTES = 2**27  # grey levels that a worker keeps in memory
# One aligned match: its number among the verified matches of the pair, its keypoints, and the fields of
# `AlignedMatches`.
ALIGNED = np.dtype(
    [
        ("match", "<u4"),
        ("keypoints", "<u4", 2),
        ("offset", "<f4", 2),
        ("map", "<f4", (2, 2)),
        ("information", "<f4", (2, 2)),
    ]
)


@dataclass(frozen=True)
class PhotographFile:
    """The file of a photograph.

    Attributes:
        path: path of the file.
        size: width and height that the photograph must have; None if they are unknown.
        upright: whether the keypoints belong to the photograph after the rotation by its EXIF orientation.
    """

    path: str
    size: ImageSize | None
    upright: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class PhotographedPair:
    """The verified matches of a pair, and the files of its photographs.

    Attributes:
        key: number of the pair in its collection.
        image1: name of image 1.
        image2: name of image 2.
        files: files of both images.
        matches: (n, 2) indices of the matched keypoints.
        points1: (n, 2) pixels of the matched keypoints in image 1; (0, 0) is the centre of the top-left pixel.
        points2: (n, 2) pixels in image 2.
    """

    key: int
    image1: str
    image2: str
    files: tuple[PhotographFile, PhotographFile]
    matches: MatchIndices
    points1: Floats
    points2: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class PairOffsets:
    """Result of the alignment of a pair.

    Attributes:
        key: number of the pair.
        num_matches: number of verified matches.
        aligned: (k,) records `ALIGNED` of the matches whose patches are similar.
        problems: reasons why photographs cannot be used, by image name. If there is one, nothing is aligned.
    """

    key: int
    num_matches: int
    aligned: np.ndarray
    problems: dict[str, str] = field(default_factory=dict)


class PhotographCache:
    """The photographs that a worker used last. Pickling gives an empty cache."""

    def __init__(self) -> None:
        self._kept: OrderedDict[PhotographFile, Image | str] = OrderedDict()
        self._bytes = 0

    def __reduce__(self) -> tuple[type[PhotographCache], tuple[()]]:
        return PhotographCache, ()

    def read(self, file: PhotographFile) -> Image | str:
        """Return the grey levels (H, W) of a photograph, or the reason why it cannot be used."""
        if file in self._kept:
            self._kept.move_to_end(file)
            return self._kept[file]
        found: Image | str
        try:
            found = read_grey(file.path, file.size, upright=file.upright)
        except (OSError, ValueError) as error:
            found = str(error)
        self._kept[file] = found
        self._bytes += _size(found)
        while self._bytes > CACHED_BYTES and len(self._kept) > 2:
            self._bytes -= _size(self._kept.popitem(last=False)[1])
        return found


def _size(photograph: Image | str) -> int:
    return 0 if isinstance(photograph, str) else photograph.nbytes


def align_batch(pairs: Sequence[PhotographedPair], cache: PhotographCache, build: str) -> list[PairOffsets]:
    """Align pairs one after the other, in a worker. Raise if the worker has another build of caransac."""
    check_build(build)
    return [align_pair(pair, cache) for pair in until_interrupted(pairs)]


def align_pair(pair: PhotographedPair, cache: PhotographCache) -> PairOffsets:
    """Align the patches of all matches of a pair. The result depends only on the pair and its photographs."""
    count = len(pair.points1)
    first, second = map(cache.read, pair.files)
    if isinstance(first, str) or isinstance(second, str):
        named = {pair.image1: first, pair.image2: second}
        problems = {name: text for name, text in named.items() if isinstance(text, str)}
        return PairOffsets(key=pair.key, num_matches=count, aligned=np.zeros(0, ALIGNED), problems=problems)
    points1, points2 = pair.points1.astype(float), pair.points2.astype(float)
    tuning = DEFAULT_TUNING.patches
    maps = local_maps(points1, points2, tuning.neighbours)
    found = refine_in_photographs((first, second), points1, points2, tuning, maps=maps)
    rows = np.flatnonzero(found.refined)
    aligned = np.zeros(len(rows), ALIGNED)
    aligned["match"], aligned["keypoints"], aligned["map"] = rows, pair.matches[rows], maps[rows]
    aligned["offset"] = found.points2[rows] - points2[rows]
    aligned["information"] = found.information[rows]
    return PairOffsets(key=pair.key, num_matches=count, aligned=aligned)
