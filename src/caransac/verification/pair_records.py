"""Input and output of the verification of a pair: plain records that can be pickled."""

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
# Wider than the noise of most keypoints requires: a reconstruction can drop matches but cannot recover them. At 3 px it
# has as many points in three or more images as with COLMAP's verification at 4 px, and smaller errors (`caransac-lab
# study real-databases`).
MAX_ERROR_PX = 3.0
# Minimum confidence of a pair with known focal lengths. It was chosen on one of eight scenes, the training scene
# kitchen. Below 0.2, wrong poses mislead COLMAP's global mapper there. At 0.35, its incremental mapper loses 7 of 24
# images, because the matches of doubtful pairs are right. With unknown focal lengths it loses as many at 0.2, so no
# pair is rejected.
MIN_CONFIDENCE = 0.2


def check_calibrated(calibrated: str) -> None:
    """Raise a ValueError if the value is not one of `CalibrationPolicy`."""
    if calibrated not in get_args(CalibrationPolicy):
        raise ValueError(f"calibrated must be one of {', '.join(get_args(CalibrationPolicy))}, not {calibrated!r}")


class Config(IntEnum):
    """Kind of geometry of a pair, with COLMAP's numbers."""

    UNDEFINED = 0
    DEGENERATE = 1
    CALIBRATED = 2
    UNCALIBRATED = 3
    PLANAR = 4
    PANORAMIC = 5
    PLANAR_OR_PANORAMIC = 6
    WATERMARK = 7  # only COLMAP uses this and later values
    MULTIPLE = 8
    CALIBRATED_RIG = 9


# Matrices and vectors of a geometry, and those that each kind has. Only COLMAP uses the other kinds.
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
    """A pair that cannot be read. It has the `names` of the images, and the reason."""

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
    """Options of the verification of pairs.

    Attributes:
        estimation: options of the estimator. The seed of each pair is derived from their seed and the image names.
        min_inliers: minimum number of inliers; a pair with fewer is degenerate. The default is COLMAP's.
        min_confidence: minimum confidence, from 0 to 1; a pair below it is degenerate. None means 0.2 for pairs with
            known focal lengths and 0 for other pairs.
    """

    estimation: Options = field(default_factory=lambda: Options(max_error_px=MAX_ERROR_PX))
    min_inliers: int = 15
    min_confidence: float | None = None

    def __post_init__(self) -> None:
        self.policy(calibrated=True)  # validates the values
        if not isinstance(self.estimation, Options):
            raise ValueError(f"estimation must be a caransac.Options, not {type(self.estimation).__name__}")
        if self.min_confidence and self.estimation.method != "ca-ransac":
            raise ValueError(f"min_confidence needs method 'ca-ransac'; {self.estimation.method!r} gives no confidence")

    def policy(self, *, calibrated: bool) -> GeometryPolicy:
        """Return the acceptance policy for pairs with known focal lengths, or for other pairs."""
        usual = MIN_CONFIDENCE if calibrated else 0.0
        least = usual if self.min_confidence is None else self.min_confidence
        return GeometryPolicy(min_inliers=self.min_inliers, min_confidence=least)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairMatches:
    """A pair of images with its matches.

    Attributes:
        key: number of the pair in its source.
        image1: name of image 1.
        image2: name of image 2.
        matches: (n, 2) indices of the matched keypoints.
        points1: (n, 2) pixels of the matched keypoints in image 1. If there are cameras, the points are undistorted, or
            NaN if that is impossible. A match with NaN is never an inlier.
        points2: (n, 2) pixels in image 2.
        cameras: both cameras, without distortion, in the pixel convention of the points; None if a focal length is
            unknown.
        image_sizes: sizes of both images for a pair without cameras; None if they are unknown or must not be used.
        same_camera: whether one camera took both images; None to let the estimator decide.
        scores: (n,) one number per match, or None.
        score_kind: kind of the scores.
        descriptors: (n, d) descriptors of the matched keypoints of image 1 and (m, d) of all keypoints of image 2, for
            computing ratios; or None.
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
        """Return the pair with the ratios (n,) instead of its descriptors."""
        return replace(self, scores=ratios, score_kind="ratio", descriptors=None)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairGeometry:
    """Result of the verification of a pair. Matrices that are not determined are None.

    Attributes:
        key: number of the pair in its source.
        image1: name of image 1.
        image2: name of image 2.
        config: kind of geometry, which determines which matrices exist.
        matches: (k, 2) inliers; empty for a degenerate pair.
        num_matches: number of matches of the pair.
        confidence: probability that the geometry is right, or None with the classical methods.
        elapsed_ms: duration in milliseconds.
        F: (3, 3) fundamental matrix of pixels, ``x2^T F x1 = 0``.
        E: (3, 3) essential matrix.
        H: (3, 3) homography of pixels, ``x2 ~ H x1``, if one explains the inliers.
        R: (3, 3) rotation, ``x2 = R x1 + t``.
        t: (3,) translation of unit length; zero if the images differ only by a rotation.
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
            raise ValueError("matches must be empty for a degenerate pair")
        for name, shape in SHAPES.items():
            matrix, determined = getattr(self, name), name in DETERMINED[self.config]
            if (matrix is not None) != determined or (matrix is not None and matrix.shape != shape):
                wanted = f"have shape {shape}" if determined else "be None"
                raise ValueError(f"{name} must {wanted} if config is {self.config.name}")


@dataclass(frozen=True)
class CameraFocal:
    """Prior knowledge of the focal length of a camera.

    Attributes:
        focal_px: focal length in pixels; None if it is unknown.
        deviation: relative standard deviation, 0 for exact; None if it is unknown.
        source: "given" (exact), "prior" (e.g. from EXIF), "pooled" (over pairs of the camera's images) or "unknown".
    """

    focal_px: float | None
    deviation: float | None
    source: FocalSource


@dataclass(frozen=True)
class UnknownCamera:
    """A camera whose focal length is unknown.

    Attributes:
        image_size: size of the camera's images.
        pairs: keys of pairs of its images from which the focal length may be estimated.
    """

    image_size: ImageSize
    pairs: Sequence[int]


@dataclass(frozen=True)
class PairReport:
    """Report of one pair. Reports of pairs from an earlier run may be incomplete.

    Attributes:
        image1: name of image 1.
        image2: name of image 2.
        matches: number of matches.
        inliers: number of inliers.
        ratio: ``inliers / matches``.
        confidence: probability that the geometry is right.
        config: kind of geometry, in lower case.
        ms: duration in milliseconds.
        focal1: assumed focal length of image 1 in pixels, None if it is unknown.
        focal_deviation1: relative standard deviation of `focal1`.
        focal_source1: source of `focal1`, see `CameraFocal`.
        focal2: assumed focal length of image 2 in pixels, None if it is unknown.
        focal_deviation2: relative standard deviation of `focal2`.
        focal_source2: source of `focal2`.
        problem: reason for skipping the pair; empty otherwise.
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
        """Create a report from these values."""
        name = Config(config).name.lower() if config in list(Config) else f"config {config}"
        return cls(*names, matches, inliers, inliers / max(matches, 1), confidence, name, ms)

    @classmethod
    def of_skipped(cls, error: BadPairError) -> PairReport:
        """Create the report of a pair that cannot be read."""
        return cls(*error.names, 0, 0, 0.0, None, "skipped", None, problem=str(error))

    @classmethod
    def of_geometry(cls, found: PairGeometry) -> PairReport:
        """Create the report of a pair that was just verified."""
        return cls.of(
            (found.image1, found.image2),
            found.num_matches,
            len(found.matches),
            found.config,
            found.confidence,
            found.elapsed_ms,
        )

    def with_focals(self, focal1: CameraFocal, focal2: CameraFocal) -> PairReport:
        """Return the report with the focal lengths of the cameras."""
        return replace(
            self,
            focal1=focal1.focal_px,
            focal_deviation1=focal1.deviation,
            focal_source1=focal1.source,
            focal2=focal2.focal_px,
            focal_deviation2=focal2.deviation,
            focal_source2=focal2.source,
        )
