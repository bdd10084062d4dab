"""What goes into the verification of a pair of images, and what comes out: plain records that can be pickled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, Floats
from caransac.options import Options, ScoreKind
from caransac.policy import GeometryPolicy

CalibrationPolicy = Literal["auto", "always", "never"]
FocalSource = Literal["given", "prior", "pooled", "unknown"]
ImageSize = tuple[int, int]  # width, height
MatchIndices = NDArray[np.uint32]
# Wider than what is found with the noise of most keypoints: a reconstruction can drop matches, but bring none back. At
# 3 px it has as many points in three images or more as with COLMAP's verification at 4 px, and smaller errors
# (`caransac-lab study real-databases`).
MAX_ERROR_PX = 3.0
# Least confidence of a pair with known focal lengths. One scene of eight decided: kitchen, for training. Below 0.2,
# wrong poses mislead COLMAP's global mapper there. At 0.35, its incremental mapper loses 7 of 24 images, because the
# matches of doubtful pairs are right. With unknown focal lengths, it loses as many at 0.2, so that no pair is rejected.
MIN_CONFIDENCE = 0.2


def check_calibrated(calibrated: str) -> None:
    """Raise a ValueError for a word that `CalibrationPolicy` does not have."""
    if calibrated not in get_args(CalibrationPolicy):
        raise ValueError(f"calibrated must be one of {', '.join(get_args(CalibrationPolicy))}, not {calibrated!r}")


class Config(IntEnum):
    """What kind of geometry a pair has, with COLMAP's numbers."""

    UNDEFINED = 0
    DEGENERATE = 1
    CALIBRATED = 2
    UNCALIBRATED = 3
    PLANAR = 4
    PANORAMIC = 5
    PLANAR_OR_PANORAMIC = 6
    WATERMARK = 7  # this and later ones only COLMAP has
    MULTIPLE = 8
    CALIBRATED_RIG = 9


# The matrices and vectors of a geometry, and which of them each kind has; only COLMAP has the other kinds.
SHAPES: Mapping[str, tuple[int, ...]] = {"F": (3, 3), "E": (3, 3), "H": (3, 3), "R": (3, 3), "t": (3,)}
DETERMINED: Mapping[Config, frozenset[str]] = {
    Config.DEGENERATE: frozenset(),
    Config.CALIBRATED: frozenset("FERt"),
    Config.UNCALIBRATED: frozenset("F"),
    Config.PLANAR: frozenset("FEHRt"),
    Config.PANORAMIC: frozenset("HRt"),
    Config.PLANAR_OR_PANORAMIC: frozenset("FH"),
}


class BadPairError(ValueError):
    """A pair that cannot be read: its `names`, and what is wrong with it."""

    def __init__(self, names: tuple[str, str], problem: str) -> None:
        super().__init__(problem)
        self.names = names


@contextmanager
def naming_pair(names: tuple[str, str]) -> Iterator[None]:
    """Turn ValueErrors about a pair into a `BadPairError`."""
    try:
        yield
    except ValueError as error:
        raise BadPairError(names, str(error)) from error


@dataclass(frozen=True, kw_only=True)
class VerificationOptions:
    """How pairs are verified.

    Attributes:
        estimation: options of the estimator; every pair derives a seed of its own from their seed and its names.
        min_inliers: a pair with fewer is degenerate. The default is COLMAP's.
        min_confidence: a pair whose confidence is lower is degenerate; from 0 to 1. None for 0.2 if the focal lengths
            of a pair are known, and for 0 if not.
    """

    estimation: Options = field(default_factory=lambda: Options(max_error_px=MAX_ERROR_PX))
    min_inliers: int = 15
    min_confidence: float | None = None

    def __post_init__(self) -> None:
        self.policy(calibrated=True)  # which checks what it has
        if not isinstance(self.estimation, Options):
            raise ValueError(f"estimation must be a caransac.Options, not {type(self.estimation).__name__}")
        if self.min_confidence and self.estimation.method != "ca-ransac":
            raise ValueError(f"min_confidence needs method 'ca-ransac'; {self.estimation.method!r} gives no confidence")

    def policy(self, *, calibrated: bool) -> GeometryPolicy:
        """What is accepted of pairs with known focal lengths, or of others."""
        usual = MIN_CONFIDENCE if calibrated else 0.0
        least = usual if self.min_confidence is None else self.min_confidence
        return GeometryPolicy(min_inliers=self.min_inliers, min_confidence=least)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairMatches:
    """A pair of images with its matches.

    Attributes:
        key: the pair's number in its source.
        image1: name of image 1.
        image2: name of image 2.
        matches: (n, 2) indices of the matched keypoints.
        points1: (n, 2) pixels of the matched keypoints in image 1. Where there are cameras they are free of lens
            distortion, and NaN where that cannot be removed: such a match is never an inlier.
        points2: (n, 2) pixels in image 2.
        cameras: both cameras, without distortion and in the points' pixel convention; None where a focal length is
            unknown.
        image_sizes: of both images, for a pair without cameras; None where they are unknown or not to be used.
        same_camera: whether both images were taken by one camera; None where that is to be decided.
        scores: (n,) one number per match, or None.
        score_kind: what the scores are.
        descriptors: of the matched keypoints of image 1 (n, d) and of all keypoints of image 2 (m, d), to make ratios
            from; None otherwise.
    """

    key: int
    image1: str
    image2: str
    matches: MatchIndices
    points1: Floats | Array
    points2: Floats | Array
    cameras: tuple[Camera, Camera] | None = None
    image_sizes: tuple[ImageSize, ImageSize] | None = None
    same_camera: bool | None = None
    scores: Floats | None = None
    score_kind: ScoreKind = "ratio"
    descriptors: tuple[NDArray[np.uint8], NDArray[np.uint8]] | None = None

    def __post_init__(self) -> None:
        for name in ("matches", "points1", "points2"):
            if (shape := getattr(self, name).shape) != (len(self.matches), 2):
                raise ValueError(f"{name} must have shape ({len(self.matches)}, 2), got {shape}")
        if self.cameras is not None and any(camera.is_distorted for camera in self.cameras):
            raise ValueError("cameras must have no distortion: remove it from the points, once for each image")

    def with_ratios(self, ratios: Floats) -> PairMatches:
        """The pair with the ratios (n,) of its descriptors in their place."""
        return replace(self, scores=ratios, score_kind="ratio", descriptors=None)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairGeometry:
    """What verification found out about a pair. Matrices are None where they are not determined.

    Attributes:
        key: the pair's number in its source.
        image1: name of image 1.
        image2: name of image 2.
        config: the kind of geometry, which says what of the matrices is determined.
        matches: (k, 2) the inliers; none of a degenerate pair.
        num_matches: matches the pair had.
        confidence: probability that the geometry is right, or None from the classical methods.
        elapsed_ms: milliseconds it took.
        F: (3, 3) fundamental matrix of pixels, ``x2^T F x1 = 0``.
        E: (3, 3) essential matrix.
        H: (3, 3) homography of pixels, ``x2 ~ H x1``, where one explains the inliers.
        R: (3, 3) rotation, ``x2 = R x1 + t``.
        t: (3,) translation of length one; zero between images that differ only by a rotation.
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

    def __post_init__(self) -> None:
        if self.config not in DETERMINED:
            raise ValueError(f"config must be one of {', '.join(each.name for each in DETERMINED)}, not {self.config}")
        if self.matches.ndim != 2 or self.matches.shape[1] != 2 or len(self.matches) > self.num_matches:
            raise ValueError(f"matches must be up to {self.num_matches} rows of 2, got shape {self.matches.shape}")
        if self.config == Config.DEGENERATE and len(self.matches):
            raise ValueError("matches must be none of a degenerate pair")
        for name, shape in SHAPES.items():
            matrix, determined = getattr(self, name), name in DETERMINED[self.config]
            if (matrix is not None) != determined or (matrix is not None and matrix.shape != shape):
                wanted = f"have shape {shape}" if determined else "be None"
                raise ValueError(f"{name} must {wanted} where config is {self.config.name}")


@dataclass(frozen=True)
class CameraFocal:
    """What is known of the focal length of a camera before its pairs are verified.

    Attributes:
        focal_px: the focal length in pixels; None where it is unknown.
        deviation: its relative standard deviation, 0 for exact; None where it is unknown.
        source: "given" and trusted as it is, "prior" of EXIF or the like, "pooled" over pairs of its images,
            or "unknown".
    """

    focal_px: float | None
    deviation: float | None
    source: FocalSource


@dataclass(frozen=True)
class UnknownCamera:
    """A camera whose focal length is unknown.

    Attributes:
        image_size: of its images.
        pairs: keys of pairs of its images that may show it.
    """

    image_size: ImageSize
    pairs: Sequence[int]


@dataclass(frozen=True)
class PairReport:
    """A line of the report: what became of a pair. One that an earlier run verified may lack what only that run knew.

    Attributes:
        image1: name of image 1.
        image2: name of image 2.
        matches: matches the pair had.
        inliers: how many of them are right.
        ratio: ``inliers / matches``.
        confidence: probability that the geometry is right.
        config: the kind of geometry, in small letters.
        ms: milliseconds it took.
        focal1: focal length in pixels that was assumed for image 1, None where it is unknown.
        focal_deviation1: its relative standard deviation.
        focal_source1: where it comes from, see `CameraFocal`.
        focal2: the same of image 2.
        focal_deviation2: its relative standard deviation.
        focal_source2: where it comes from.
        problem: why it was skipped; empty of others.
    """

    image1: str
    image2: str
    matches: int
    inliers: int
    ratio: float
    confidence: float | None
    config: str
    ms: float | None
    focal1: float | None = None
    focal_deviation1: float | None = None
    focal_source1: str = "unknown"
    focal2: float | None = None
    focal_deviation2: float | None = None
    focal_source2: str = "unknown"
    problem: str = ""

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        matches: int,
        inliers: int,
        config: int,
        confidence: float | None = None,
        ms: float | None = None,
    ) -> PairReport:
        """The line of these figures."""
        name = Config(config).name.lower() if config in list(Config) else f"config {config}"
        return cls(*names, matches, inliers, inliers / max(matches, 1), confidence, name, ms)

    @classmethod
    def of_skipped(cls, error: BadPairError) -> PairReport:
        """The line of a pair that cannot be read."""
        return cls(*error.names, 0, 0, 0.0, None, "skipped", None, problem=str(error))

    @classmethod
    def of_geometry(cls, found: PairGeometry) -> PairReport:
        """The line of a pair just verified."""
        return cls.of(
            (found.image1, found.image2),
            found.num_matches,
            len(found.matches),
            found.config,
            found.confidence,
            found.elapsed_ms,
        )

    def with_focals(self, focal1: CameraFocal, focal2: CameraFocal) -> PairReport:
        """The line with what was known of the cameras."""
        return replace(
            self,
            focal1=focal1.focal_px,
            focal_deviation1=focal1.deviation,
            focal_source1=focal1.source,
            focal2=focal2.focal_px,
            focal_deviation2=focal2.deviation,
            focal_source2=focal2.source,
        )
