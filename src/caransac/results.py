"""Results of estimations: frozen records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import check_real, is_integer, shorten
from caransac._support.computed_once import computed_once
from caransac._support.files import as_path, delivering, naming
from caransac._support.untrusted import parse_json, read_text
from caransac.camera import Camera
from caransac.geometry import Array, rotation_angle_deg
from caransac.geometry.mirroring import mirrored_share
from caransac.geometry.parallax import median_parallax_px
from caransac.geometry.triangulation import Points3D as Points3D
from caransac.geometry.triangulation import triangulate_matches
from caransac.plot.display import as_html, describe
from caransac.result_format import FULL, SCHEMA, fields_from_plain, fields_to_plain, to_plain
from caransac.result_parts import RefinedMatches as RefinedMatches
from caransac.result_parts import Refinement as Refinement
from caransac.result_parts import RelativePose as RelativePose
from caransac.result_parts import Rival as Rival
from caransac.result_parts import Round as Round

DegeneracyKind = Literal["planar", "rotation"]
StopReason = Literal["budget", "early_stop", "time", "too_few_points", "degenerate", "no_consensus", "unsure"]
GeometryKind = Literal["pose", "pose_and_focals", "homography", "rotation", "fundamental", "none"]
Kind = TypeVar("Kind", bound="Result")

SHARED = ("points1", "points2", "refinement", "trace")  # fields that a result shares with the results inside it
POSE_NUMBERS = ("rotation_x", "rotation_y", "rotation_z", "direction_1", "direction_2")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """Fields and methods of every result.

    The first access to the confidence, covariances, degeneracies, alternatives or rivals computes all of them. That
    takes as long as one or two rounds.

    Attributes:
        success: whether there is a model, right or wrong; `is_confident` decides whether to rely on it. Failure is a
            value, not an exception.
        stop_reason: reason why the estimation ended. With success: "budget" (all rounds ran), "early_stop" or "time"
            (``max_seconds`` have passed). Without success: "too_few_points" (fewer than a minimal sample), "degenerate"
            (no sample determined a model, because of repeated or collinear points, or because all points of an image
            are within about a thousandth of a pixel) or "no_consensus" (the best model
            explains only its own sample). Only from `caransac.estimate`: "unsure" (there are models, but none is
            reliable).
        inliers: (N,) bool mask over the given points.
        num_inliers: number of inliers.
        num_hypotheses: number of minimal samples drawn.
        consensus: sum of the MSAC scores of the given points; 0 without success.
        probabilities: (N,) probability that a match is within one pixel of the true geometry; None from the
            classical methods.
        confidence: probability that the model is right; 0 without success; None from the classical methods, for rays,
            and for weights without a fitted confidence. A pose is right if its error is below 5°. A fundamental matrix
            is right if the pose that it implies with the true cameras is right. A homography is right if its mean error
            at the corners of the matched region is below one per cent of the extent of the matches.
        warnings: sentences about doubtful input, such as a given focal length that the matches contradict.
        trace: one record of the prior and one of each round of "ca-ransac"; None without ``keep_trace``.
        elapsed_s: wall-clock seconds of the call, without the assessment that the first access to `confidence` starts.
    """

    success: bool
    stop_reason: StopReason
    inliers: NDArray[np.bool_]
    num_inliers: int
    num_hypotheses: int
    consensus: float
    probabilities: Array | None
    confidence: float | None
    warnings: tuple[str, ...] = field(default_factory=tuple)
    trace: tuple[Round, ...] | None = field(metadata=FULL)
    elapsed_s: float

    # Fields that the first access to one of them computes. They have default factories: Python would find a plain
    # default in the class and never call `__getattr__`.
    _assessed: ClassVar[tuple[str, ...]] = ("confidence", "warnings")
    _derived: ClassVar[tuple[str, ...]] = ("num_matches",)  # properties that `to_dict` adds to the fields
    _points: ClassVar[tuple[str, ...]] = ()  # fields with the given points

    @classmethod
    def deferring(cls: type[Kind], assess: Callable[[], dict[str, Any]], **values: Any) -> Kind:
        """Return a result with these fields. `assess` computes the others when one of them is first read."""
        result = cls(confidence=None, **values)
        for name in cls._assessed:
            del result.__dict__[name]
        result.__dict__["_assess"] = assess
        return result

    if not TYPE_CHECKING:  # type checkers must still report unknown names

        def __getattr__(self, name: str) -> Any:
            """Assess the result. Python calls this only for attributes that do not exist yet."""
            # Concurrent threads compute the same values. There is no lock, because a forked process could inherit it.
            if name in self._assessed and (assess := self.__dict__.get("_assess")) is not None:
                self.__dict__.update(assess())
                self.__dict__.pop("_assess", None)
            if name in self._assessed and name in self.__dict__:  # another thread may have been faster
                return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __getstate__(self) -> dict[str, Any]:
        """Assess the result first, so that pickles and copies are complete."""
        _ = self.confidence
        return self.__dict__

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __bool__(self) -> bool:
        raise ValueError(
            "a result is neither true nor false: ask result.is_confident() whether to rely on it, or result.success "
            "whether there is a model at all"
        )

    def is_confident(self, threshold: float = 0.5) -> bool:
        """Return True if there is a model and its `confidence` reaches the threshold (0 to 1).

        Raises:
            ValueError: the confidence is None.
        """
        check_real(threshold, "threshold", 0, 1)
        if self.confidence is None:
            raise ValueError("confidence is None for classical methods and for rays: check success and num_inliers")
        return self.success and self.confidence >= threshold

    @property
    def num_matches(self) -> int:
        """Number of given matches."""
        return len(self.inliers)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """Return the result as a dict for ``json.dumps``; ``caransac pose --json`` prints it.

        It has the fields, derived values such as `num_matches`, and the keys "type" and "schema" (see docs/formats.md).
        Arrays become lists, and `inliers` becomes a list of indices.

        Args:
            full: whether to include the points, the trace and other long fields, which `from_dict` needs.
        """
        derived = {name: to_plain(getattr(self, name)) for name in self._derived}
        return {"type": type(self).__name__, "schema": SCHEMA} | fields_to_plain(self, full=full) | derived

    @classmethod
    def from_dict(cls: type[Kind], values: Mapping[str, Any]) -> Kind:
        """Return the result from the dict of ``to_dict(full=True)``.

        Raises:
            ValueError: the dict is not a result, or is a result of another class; the message names the error.
        """
        return _from_dict(cls, values)

    def save(self, path: str | Path | IO[bytes] | IO[str]) -> None:
        """Write the whole result as JSON to a path or an open file. `load` reads it back."""
        with delivering(path, ".json") as temporary:
            temporary.write_text(json.dumps(self.to_dict(full=True), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls: type[Kind], path: str | Path) -> Kind:
        """Read a result that `save` wrote; `caransac.load_result` reads results of any class.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it contains no result, or a result of another class; the message names the error.
        """
        path = as_path(path)
        text = read_text(path)
        with naming(path):
            return _from_dict(cls, parse_json(text))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PixelResult(Result):
    """Additional fields of every result that is estimated from pixels.

    Attributes:
        max_error_px: inlier threshold in pixels. With the option "auto" it is four times the noise, with a minimum that
            applies if the keypoints are very precise.
        noise_px: estimated median distance in pixels of right matches to the true model; None without success, and from
            the classical methods.
        refinement: matches that were refined in photographs; None without photographs, or without a model.
    """

    max_error_px: float
    noise_px: float | None
    refinement: Refinement | None = field(default=None, metadata=FULL)

    @property
    def num_refined(self) -> int | None:
        """Number of refined matches that the answer was estimated from; None without photographs.

        It is 0 if the answer was estimated from the given matches; see `Refinement.is_used`.
        """
        if self.refinement is None:
            return None
        return self.refinement.num_refined if self.refinement.is_used else 0

    @property
    def noise_before_px(self) -> float | None:
        """`noise_px` before the matches were refined; None if the answer was estimated from the given matches."""
        if not self.num_refined or self.refinement is None or self.noise_px is None:
            return None
        return self.refinement.noise_before_px


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TwoViewResult(PixelResult):
    """Additional fields of every result that is estimated from matches of two images.

    Attributes:
        points1: (N, 2) copy of the given pixels in image 1.
        points2: (N, 2) copy of the given pixels in image 2. If the answer was estimated from matches refined in the
            photographs, these have their refined points.
    """

    points1: Array = field(metadata=FULL)
    points2: Array = field(metadata=FULL)

    _derived: ClassVar[tuple[str, ...]] = (
        "num_matches",
        "num_refined",
        "noise_before_px",
        "rotation_deg",
        "parallax_px",
        "rotation_deviation_deg",
        "direction_deviation_deg",
    )
    _points: ClassVar[tuple[str, ...]] = ("points1", "points2")

    @property
    def rotation_deg(self) -> float | None:
        """Angle of the rotation in degrees, or None if the result has no rotation."""
        R = getattr(self, "R", None)
        return None if R is None else rotation_angle_deg(R)

    @property
    def rotation_deviation_deg(self) -> float | None:
        """Standard deviation of the rotation in degrees; None without a `covariance`."""
        return self._deviation_deg(slice(0, 3))

    @property
    def direction_deviation_deg(self) -> float | None:
        """Standard deviation of the direction `t` in degrees; None without a `covariance`.

        It is about 80 degrees if the matches do not constrain the direction.
        """
        return self._deviation_deg(slice(3, 5))

    def _deviation_deg(self, part: slice) -> float | None:
        covariance = getattr(self, "covariance", None)
        return None if covariance is None else float(np.degrees(np.sqrt(np.trace(covariance[part, part]))))

    @property
    @computed_once
    def parallax_px(self) -> float | None:
        """Median distance in pixels between the inliers in image 2 and their prediction by the best pure rotation.

        None without a pose. If it is below about `max_error_px`, the direction of the translation is meaningless.
        """
        if (pose := self._posed_cameras()) is None:
            return None
        R, _, camera1, camera2 = pose
        return median_parallax_px(R, self.points1[self.inliers], self.points2[self.inliers], camera1, camera2)

    @property
    @computed_once
    def mirrored_share(self) -> float | None:
        """Share of the inliers whose neighbourhood is mirrored between image 1 and image 2.

        It is near 0 for ordinary images, and near 1 if one of them is mirrored. None if there are too few inliers.
        """
        return mirrored_share(self.points1[self.inliers], self.points2[self.inliers])

    @property
    @computed_once
    def points3d(self) -> Points3D | None:
        """Triangulated inliers in the frame of camera 1, with their angles and reprojection errors.

        None if there is no pose, or if the camera only rotated.
        """
        if (pose := self._posed_cameras()) is None or getattr(self, "degeneracy", None) == "rotation":
            return None
        R, t, camera1, camera2 = pose
        return triangulate_matches(R, t, self.points1, self.points2, camera1, camera2, self.inliers)

    def _posed_cameras(self) -> tuple[Array, Array, Camera, Camera] | None:
        """Return rotation, translation and both cameras, or None if any of them is missing."""
        R, t, camera1, camera2 = (getattr(self, name, None) for name in ("R", "t", "camera1", "camera2"))
        return None if R is None or t is None or camera1 is None or camera2 is None else (R, t, camera1, camera2)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AbsolutePoseResult(PixelResult):
    """Absolute pose of a camera from 2D-3D matches: ``x = R X + t``.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation in the unit of the points, None without success.
        camera: given camera if it was exact, otherwise the refined camera with its remaining ``focal_deviation`` and
            ``distortion_deviation``; None without success.
        covariance: covariance of the pose, (6, 6): first the rotation vector w of ``exp([w]x) R`` in radians, then the
            translation. For an uncertain camera, the logarithm of the focal length and k1 follow, so that the shape is
            (7, 7) or (8, 8). None without success.
        rivals: poses supported by many outliers of the answer, the strongest first: a copy of the scene, or an object
            that moved.
        points2d: (N, 2) copy of the given pixels. If the answer was estimated from points refined in photographs of the
            scene, these are the refined points.
        points3d: (N, 3) copy of the given 3D points.
    """

    R: Array | None
    t: Array | None
    camera: Camera | None = field(default_factory=NoneType)
    covariance: Array | None = field(default_factory=NoneType)
    rivals: tuple[Rival, ...] = field(default_factory=tuple)
    points2d: Array = field(metadata=FULL)
    points3d: Array = field(metadata=FULL)

    _assessed: ClassVar[tuple[str, ...]] = ("confidence", "warnings", "camera", "covariance", "rivals")
    _derived: ClassVar[tuple[str, ...]] = ("num_matches", "num_refined", "noise_before_px", "centre")
    _points: ClassVar[tuple[str, ...]] = ("points2d", "points3d")

    @property
    def centre(self) -> Array | None:
        """(3,) position of the camera in the frame of the 3D points; None without success."""
        return None if self.R is None or self.t is None else np.asarray(-self.R.T @ self.t)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelativePoseResult(TwoViewResult):
    """Pose of camera 2 relative to camera 1: ``x2 = R x1 + t``.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation direction of length one, None without success.
        E: (3, 3) essential matrix ``[t]x R``, None without success.
        camera1: camera of image 1, refined if it was not exact, with its remaining ``focal_deviation``; None without
            success.
        camera2: camera of image 2, like `camera1`.
        degeneracy: "planar" if a plane explains the inliers; "rotation" if a pure rotation explains them, so that ``t``
            is meaningless; None if the scene has depth, and without success.
        alternatives: other poses (R, t) that explain the same matches as well, such as the second pose of a plane.
        rivals: poses supported by many outliers of the answer, the strongest first.
        rotation_confidence: probability that the error of the rotation is below 5°; None from the classical methods.
        covariance: covariance, (5, 5) or larger, of the numbers that `covariance_of` names. It assumes that noise is
            the only error. The numbers are: the rotation vector w of ``R_true = exp([w]x) R`` in radians; the direction
            along the two columns of `caransac.geometry.direction_basis(t)`, in radians; the logarithms of refined focal
            lengths; estimated k1. None without success.
        covariance_of: names of the numbers in `covariance`, in order.
    """

    R: Array | None
    t: Array | None
    E: Array | None
    camera1: Camera | None = None
    camera2: Camera | None = None
    degeneracy: DegeneracyKind | None = field(default_factory=NoneType)
    alternatives: tuple[RelativePose, ...] = field(default_factory=tuple)
    rivals: tuple[Rival, ...] = field(default_factory=tuple)
    rotation_confidence: float | None = field(default_factory=NoneType)
    covariance: Array | None = field(default_factory=NoneType)
    covariance_of: tuple[str, ...] = field(default_factory=tuple)

    _assessed: ClassVar[tuple[str, ...]] = (
        "confidence",
        "warnings",
        "degeneracy",
        "alternatives",
        "rivals",
        "rotation_confidence",
        "covariance",
        "covariance_of",
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RayPoseResult(Result):
    """Pose of camera 2 relative to camera 1, estimated from rays: ``x2 = R x1 + t``.

    The confidence is None, because degeneracy, lenses and cameras are not assessed for rays.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation direction of length one, None without success.
        E: (3, 3) essential matrix ``[t]x R``, None without success.
        max_error_deg: inlier threshold: the maximum angle in degrees between a ray and its epipolar plane.
        noise_deg: estimated median angle in degrees between the rays of right matches and their epipolar planes; None
            without success, and from the classical methods.
        rays1: (N, 3) unit vectors of the given rays of camera 1.
        rays2: (N, 3) unit vectors of the given rays of camera 2.
    """

    R: Array | None
    t: Array | None
    E: Array | None
    max_error_deg: float
    noise_deg: float | None
    rays1: Array = field(metadata=FULL)
    rays2: Array = field(metadata=FULL)

    _derived: ClassVar[tuple[str, ...]] = ("num_matches", "rotation_deg")
    _points: ClassVar[tuple[str, ...]] = ("rays1", "rays2")

    @property
    def rotation_deg(self) -> float | None:
        """Angle of the rotation in degrees; None without success."""
        return None if self.R is None else rotation_angle_deg(self.R)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FundamentalResult(TwoViewResult):
    """Fundamental matrix of pixel coordinates: ``x2^T F x1 = 0``.

    Attributes:
        F: (3, 3) matrix of rank two and Frobenius norm one; None without success.
        camera1: camera of image 1 that was estimated with F; None if the image sizes were not given.
        camera2: camera of image 2, like `camera1`.
        degeneracy: "planar" if a homography (of a plane, or of a camera that only rotated) explains the inliers, so
            that many other F explain them, too; "rotation" if the cameras estimated with F show a pure rotation; None
            otherwise.
        rivals: fundamental matrices supported by many outliers of the answer, the strongest first.
    """

    F: Array | None
    camera1: Camera | None = None
    camera2: Camera | None = None
    degeneracy: DegeneracyKind | None = field(default_factory=NoneType)
    rivals: tuple[Rival, ...] = field(default_factory=tuple)

    _assessed: ClassVar[tuple[str, ...]] = ("confidence", "warnings", "degeneracy", "rivals")


EpipolarResult = RelativePoseResult | FundamentalResult


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HomographyResult(TwoViewResult):
    """Homography of pixel coordinates: ``x2 ~ H x1``.

    Attributes:
        H: (3, 3) matrix of Frobenius norm one, with ``(H x1)[2] > 0`` for the inliers; None without success.
    """

    H: Array | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GeometryResult(TwoViewResult):
    """The most specific geometry that two images support.

    Attributes:
        kind: "pose" (R, t, E and F), "pose_and_focals" (the same, with refined cameras), "homography" (H), "rotation"
            (R and H), "fundamental" (F), or "none".
        reason: sentence that explains the kind.
        R: (3, 3) rotation, or None.
        t: (3,) translation direction of length one, or None.
        E: (3, 3) essential matrix, or None.
        F: (3, 3) fundamental matrix for undistorted pixels, or None.
        H: (3, 3) homography for undistorted pixels, or None.
        camera1: camera of image 1 in the answer, or None.
        camera2: camera of image 2 in the answer, or None.
        degeneracy: "planar", "rotation" or None, as in `RelativePoseResult`.
        alternatives: other poses (R, t) that explain the matches as well; for a homography, all poses that explain its
            plane.
        rivals: models of the epipolar geometry supported by many outliers of the answer.
        rotation_confidence: confidence of `R`, as in `RelativePoseResult`.
        covariance: covariance of `R` and `t`, as in `RelativePoseResult`.
        covariance_of: names of the numbers in `covariance`, as in `RelativePoseResult`.
        epipolar: the estimate of the epipolar geometry, reliable or not.
    """

    kind: GeometryKind
    reason: str
    R: Array | None = None
    t: Array | None = None
    E: Array | None = None
    F: Array | None = None
    H: Array | None = None
    camera1: Camera | None = None
    camera2: Camera | None = None
    degeneracy: DegeneracyKind | None = None
    alternatives: tuple[RelativePose, ...] = ()
    rivals: tuple[Rival, ...] = ()
    rotation_confidence: float | None = None
    covariance: Array | None = None
    covariance_of: tuple[str, ...] = ()
    epipolar: EpipolarResult = field(metadata=FULL)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """Return the dict of `Result.to_dict`, in which `epipolar` does not repeat points and trace of the result."""
        values = super().to_dict(full=full)
        for name in SHARED if full else ():
            if getattr(self.epipolar, name) is getattr(self, name):
                del values["epipolar"][name]
        return values


SomeResult = (
    RelativePoseResult | RayPoseResult | FundamentalResult | HomographyResult | GeometryResult | AbsolutePoseResult
)


def load_result(path: str | Path) -> SomeResult:
    """Read a result of any class that ``result.save(path)`` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it contains no result; the message names the error.
    """
    found = Result.load(path)
    assert isinstance(found, SomeResult)
    return found


def _from_dict(wanted: type[Kind], values: Any) -> Kind:
    """Return the result that a dict describes. Raise a ValueError if it is not of the wanted class."""
    if not isinstance(values, Mapping):
        raise ValueError("a result must be a dict, as to_dict(full=True) returns it")
    names = {each.__name__: each for each in get_args(SomeResult) if issubclass(each, wanted)}
    found = names.get(values["type"]) if isinstance(values.get("type"), str) else None
    if found is None:
        raise ValueError(f"type must be {' or '.join(names)}, not {shorten(values.get('type'))}")
    if values.get("schema") != SCHEMA:
        raise ValueError(f"schema must be {SCHEMA}, not {shorten(values.get('schema'))}: another version wrote it")
    count: Any = values.get("num_matches")
    missing = [name for name in (*found._points, "trace") if name not in values]
    if missing:
        raise ValueError(f"{missing[0]} is missing; to_dict(full=True) and save() include it")
    rows = [values[name] if isinstance(values[name], list) else () for name in found._points]  # or an empty array
    if not is_integer(count) or any(len(each) != count for each in rows):
        raise ValueError(f"{' and '.join(found._points)} must have num_matches rows, {shorten(count)}")
    shared = set()
    if isinstance(values.get("epipolar"), Mapping):
        shared = set(SHARED) - set(values["epipolar"])
        values = {**values, "epipolar": {**values["epipolar"], **{name: values[name] for name in shared & set(values)}}}
    read = found(**fields_from_plain(found, values, count))
    if isinstance(read, GeometryResult):
        read = replace(read, epipolar=replace(read.epipolar, **{name: getattr(read, name) for name in shared}))
    assert isinstance(read, wanted)
    return read
