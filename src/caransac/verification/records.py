"""What goes into the verification of a pair of images, and what comes out: plain records that can be pickled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, Floats
from caransac.options import Options, ScoreKind

Calibrated = Literal["auto", "always", "never"]
MatchIndices = NDArray[np.uint32]
# Twice the estimator's own default: it finds more of the right matches at the price of a few more wrong ones, and poses
# are as good. A reconstruction can drop matches, but bring none back.
MAX_ERROR_PX = 2.0


def check_calibrated(calibrated: str) -> None:
    """Raise a ValueError for a word that `Calibrated` does not have."""
    if calibrated not in get_args(Calibrated):
        raise ValueError(f"calibrated must be one of {', '.join(get_args(Calibrated))}, not {calibrated!r}")


class Config(IntEnum):
    """What kind of geometry a pair has, with COLMAP's numbers."""

    UNDEFINED = 0
    DEGENERATE = 1
    CALIBRATED = 2
    UNCALIBRATED = 3
    PLANAR = 4
    PANORAMIC = 5
    PLANAR_OR_PANORAMIC = 6
    WATERMARK = 7  # from here on, COLMAP's alone
    MULTIPLE = 8
    CALIBRATED_RIG = 9


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How pairs are verified.

    Attributes:
        options: options of the estimator; every pair derives a seed of its own from ``options.seed`` and its names.
        min_inliers: a pair with fewer is degenerate. The default is COLMAP's.
        min_confidence: a pair whose confidence is lower is degenerate; from 0 to 1.
    """

    options: Options = field(default_factory=lambda: Options(max_error_px=MAX_ERROR_PX))
    min_inliers: int = 15
    min_confidence: float = 0.0

    def __post_init__(self) -> None:
        if self.min_inliers < 0:
            raise ValueError(f"min_inliers must not be negative, got {self.min_inliers}")
        if not 0 <= self.min_confidence <= 1:
            raise ValueError(f"min_confidence must be from 0 to 1, got {self.min_confidence}")
        if self.min_confidence > 0 and self.options.method != "ca-ransac":
            raise ValueError(f"min_confidence needs method 'ca-ransac'; {self.options.method!r} gives no confidence")


@dataclass(frozen=True, eq=False, kw_only=True)
class PairMatches:
    """A pair of images with its matches.

    Attributes:
        key: the pair's number in its source.
        image1: name of image 1.
        image2: name of image 2.
        matches: (n, 2) indices of the matched keypoints.
        points1: (n, 2) pixels of the matched keypoints in image 1.
        points2: (n, 2) pixels in image 2.
        cameras: both cameras, in the points' pixel convention; None where the focal lengths are unknown.
        scores: (n,) one number a match, or None.
        score_kind: what the scores are.
        descriptors: of the matched keypoints of image 1 (n, d) and of all keypoints of image 2 (m, d), to make ratios
            from; None otherwise.
    """

    key: int
    image1: str
    image2: str
    matches: MatchIndices
    points1: Floats
    points2: Floats
    cameras: tuple[Camera, Camera] | None = None
    scores: Floats | None = None
    score_kind: ScoreKind = "ratio"
    descriptors: tuple[NDArray[np.uint8], NDArray[np.uint8]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Geometry:
    """What verification found out about a pair. Matrices are None where they are not determined.

    Attributes:
        key: the pair's number in its source.
        image1: name of image 1.
        image2: name of image 2.
        config: the kind of geometry.
        matches: (k, 2) the inliers; none of a degenerate pair.
        num_matches: matches the pair had.
        confidence: probability that the geometry is right, or None from the classical methods.
        elapsed_ms: milliseconds it took.
        F: (3, 3) fundamental matrix of pixels, ``x2^T F x1 = 0``.
        E: (3, 3) essential matrix.
        H: (3, 3) homography of pixels, ``x2 ~ H x1``, where one explains the inliers.
        R: (3, 3) rotation, ``x2 = R x1 + t``.
        t: (3,) translation of length one; zero between images that differ by a rotation alone.
    """

    key: int
    image1: str
    image2: str
    config: Config
    matches: MatchIndices
    num_matches: int
    confidence: float | None
    elapsed_ms: float
    F: Array | None = None
    E: Array | None = None
    H: Array | None = None
    R: Array | None = None
    t: Array | None = None


@dataclass(frozen=True)
class Row:
    """A line of the report; a pair that an earlier run verified may lack what only that run knew.

    Attributes:
        image1: name of image 1.
        image2: name of image 2.
        matches: matches the pair had.
        inliers: how many of them are right.
        ratio: ``inliers / matches``.
        confidence: probability that the geometry is right.
        config: the kind of geometry, in small letters.
        ms: milliseconds it took.
    """

    image1: str
    image2: str
    matches: int
    inliers: int
    ratio: float
    confidence: float | None
    config: str
    ms: float | None

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        matches: int,
        inliers: int,
        config: int,
        confidence: float | None = None,
        ms: float | None = None,
    ) -> Row:
        """The line of these figures."""
        name = Config(config).name.lower() if config in list(Config) else f"config {config}"
        return cls(*names, matches, inliers, inliers / max(matches, 1), confidence, name, ms)

    @classmethod
    def of_geometry(cls, found: Geometry) -> Row:
        """The line of a pair just verified."""
        return cls.of(
            (found.image1, found.image2),
            found.num_matches,
            len(found.matches),
            found.config,
            found.confidence,
            found.elapsed_ms,
        )


class Source(Protocol):
    """Where pairs come from and geometries go to. Only the process that opened it uses it."""

    @property
    def batch_size(self) -> int:
        """Pairs that go to a worker at once and are then written together."""
        ...

    @property
    def pending(self) -> Sequence[int]:
        """Keys of the pairs to verify, in a fixed order."""
        ...

    @property
    def kept(self) -> Sequence[Row]:
        """What is known of the pairs that were verified before."""
        ...

    def read(self, key: int) -> PairMatches:
        """A pair."""
        ...

    def write(self, found: Sequence[Geometry]) -> None:
        """Keep the geometries of a batch, all or none."""
        ...

    def finish(self) -> None:
        """Called once, after the last pair."""
        ...

    def close(self) -> None:
        """Called once, whatever happened."""
        ...
