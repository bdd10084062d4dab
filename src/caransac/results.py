"""Results of an estimation: frozen records."""

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
from caransac.result_parts import RelativePose as RelativePose
from caransac.result_parts import Rival as Rival
from caransac.result_parts import Round as Round

DegeneracyKind = Literal["planar", "rotation"]
StopReason = Literal["budget", "early_stop", "time", "too_few_points", "degenerate", "no_consensus", "unsure"]
GeometryKind = Literal["pose", "pose_and_focals", "homography", "rotation", "fundamental", "none"]
Kind = TypeVar("Kind", bound="Result")

SHARED = ("points1", "points2", "trace")  # what the results in a result have in common with it
POSE_NUMBERS = ("rotation_x", "rotation_y", "rotation_z", "direction_1", "direction_2")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """What every estimation reports.

    The confidence, covariances, degeneracies, alternatives and rivals are computed when one of them is first read. That
    takes as long as a round or two.

    Attributes:
        success: whether there is a model, right or wrong; `is_confident` says whether to rely on it. Failure is a
            value, not an exception.
        stop_reason: with success, "budget" (all rounds ran), "early_stop" or "time" (``max_seconds`` have passed);
            without, "too_few_points" (fewer than a minimal sample), "degenerate" (no sample determined a model:
            repeated or collinear points) or "no_consensus" (the best model explains nothing beyond its own sample); of
            `caransac.estimate` also "unsure" (there are models, but none is reliable).
        inliers: (N,) bool over the points as given.
        num_inliers: how many of them.
        num_hypotheses: minimal samples drawn.
        consensus: total of the MSAC scores of the points as given; 0 without success.
        probabilities: (N,) probability that each match is within one pixel of the true geometry, from "ca-ransac"; None
            from the classical methods.
        confidence: probability that the model is right, from "ca-ransac"; 0 without success; None from the classical
            methods. A pose is right if its error is below 5°; a fundamental matrix, if the pose that it implies with
            the true cameras is; a homography, if its mean error at the corners of the matched region is below one per
            cent of the extent of the matches.
        warnings: doubts about what was given, each a sentence, such as a focal length that the matches contradict.
        trace: with ``keep_trace``, what every round of "ca-ransac" saw, from the prior before any model on; else None.
        elapsed_s: wall-clock seconds of the call, without the assessment that the first read of `confidence` starts.
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

    # Fields that are computed when one of them is first read. A plain default would be found in the class: they have
    # factories.
    _assessed: ClassVar[tuple[str, ...]] = ("confidence", "warnings")
    _derived: ClassVar[tuple[str, ...]] = ("num_matches",)  # what `to_dict` has beside the fields
    _points: ClassVar[tuple[str, ...]] = ()  # fields with the points that were given

    @classmethod
    def deferring(cls: type[Kind], assess: Callable[[], dict[str, Any]], **values: Any) -> Kind:
        """Return a result with these fields; `assess` returns the others when one of them is first read."""
        result = cls(confidence=None, **values)
        for name in cls._assessed:
            del result.__dict__[name]
        result.__dict__["_assess"] = assess
        return result

    if not TYPE_CHECKING:  # names that no result has must stay errors to type checkers

        def __getattr__(self, name: str) -> Any:
            """Assess the result: only what is not there yet comes here."""
            # Threads that come here at once compute the same. No lock: a fork could inherit it.
            if name in self._assessed and (assess := self.__dict__.get("_assess")) is not None:
                self.__dict__.update(assess())
                self.__dict__.pop("_assess", None)
            if name in self._assessed and name in self.__dict__:  # perhaps another thread was faster
                return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __getstate__(self) -> dict[str, Any]:
        """Pickles and copies have everything."""
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
        """Return True if there is a model, and `confidence` is at least the threshold, from 0 to 1.

        Raises:
            ValueError: the confidence is None.
        """
        check_real(threshold, "threshold", 0, 1)
        if self.confidence is None:
            raise ValueError("confidence is None, as of classical methods and of rays: check success and num_inliers")
        return self.success and self.confidence >= threshold

    @property
    def num_matches(self) -> int:
        """How many matches were given."""
        return len(self.inliers)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """The result as a dict that ``json.dumps`` takes; ``caransac pose --json`` prints it.

        It has the fields by their names, arrays being lists and `inliers` a list of indices; what is derived of them,
        such as `num_matches`; and "type" and "schema", see docs/formats.md.

        Args:
            full: with the points, the trace and what else is long, so that `from_dict` can read it back.
        """
        derived = {name: to_plain(getattr(self, name)) for name in self._derived}
        return {"type": type(self).__name__, "schema": SCHEMA} | fields_to_plain(self, full=full) | derived

    @classmethod
    def from_dict(cls: type[Kind], values: Mapping[str, Any]) -> Kind:
        """The result that `to_dict` with ``full=True`` described.

        Raises:
            ValueError: it is none, or none of this class; the message names what is wrong.
        """
        return _from_dict(cls, values)

    def save(self, path: str | Path | IO[bytes] | IO[str]) -> None:
        """Write everything to a file in JSON, for `load`: to a path, or to a file that is open for writing."""
        with delivering(path, ".json") as temporary:
            temporary.write_text(json.dumps(self.to_dict(full=True), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls: type[Kind], path: str | Path) -> Kind:
        """Read what `save` wrote; `caransac.load_result` reads a result of any class.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it holds no result, or none of this class; the message says why.
        """
        path = as_path(path)
        text = read_text(path)
        with naming(path):
            return _from_dict(cls, parse_json(text))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PixelResult(Result):
    """What every estimation from pixels reports.

    Attributes:
        max_error_px: threshold of the inliers in pixels: the option, or with "auto" four times the noise, or more if
            keypoints are more precise than usual.
        noise_px: median distance of right matches to the model in pixels, as "ca-ransac" estimates it; None without
            success, and from the classical methods.
    """

    max_error_px: float
    noise_px: float | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TwoViewResult(PixelResult):
    """What every estimation from matches of two images reports.

    Attributes:
        points1: (N, 2) the pixels in image 1 that were given: a copy.
        points2: (N, 2) the pixels in image 2.
    """

    points1: Array = field(metadata=FULL)
    points2: Array = field(metadata=FULL)

    _derived: ClassVar[tuple[str, ...]] = (
        "num_matches",
        "rotation_deg",
        "parallax_px",
        "rotation_deviation_deg",
        "direction_deviation_deg",
    )
    _points: ClassVar[tuple[str, ...]] = ("points1", "points2")

    @property
    def rotation_deg(self) -> float | None:
        """Angle of the rotation in degrees; None where there is none."""
        R = getattr(self, "R", None)
        return None if R is None else rotation_angle_deg(R)

    @property
    def rotation_deviation_deg(self) -> float | None:
        """Standard deviation of the angle by which the rotation is off, in degrees; None without a `covariance`."""
        return self._deviation_deg(slice(0, 3))

    @property
    def direction_deviation_deg(self) -> float | None:
        """Standard deviation of the angle by which the direction `t` is off, in degrees; None without a `covariance`.

        A direction that nothing tells has one of about 80 degrees.
        """
        return self._deviation_deg(slice(3, 5))

    def _deviation_deg(self, part: slice) -> float | None:
        covariance = getattr(self, "covariance", None)
        return None if covariance is None else float(np.degrees(np.sqrt(np.trace(covariance[part, part]))))

    @property
    @computed_once
    def parallax_px(self) -> float | None:
        """How far the inliers in image 2 are, in the median, from where the best pure rotation puts them, in pixels.

        None without a pose. Below about `max_error_px`, the direction of the translation says nothing.
        """
        if (pose := self._posed_cameras()) is None:
            return None
        R, _, camera1, camera2 = pose
        return median_parallax_px(R, self.points1[self.inliers], self.points2[self.inliers], camera1, camera2)

    @property
    @computed_once
    def mirrored_share(self) -> float | None:
        """Share of the inliers whose neighbourhood is turned over from image 1 to image 2.

        It is near 0 for images as cameras take them, and near 1 if one is mirrored. None if too few inliers tell.
        """
        return mirrored_share(self.points1[self.inliers], self.points2[self.inliers])

    @property
    @computed_once
    def points3d(self) -> Points3D | None:
        """The triangulated inliers, in the frame of camera 1, with their angles and reprojection errors.

        None where there is no pose, or the camera only turned.
        """
        if (pose := self._posed_cameras()) is None or getattr(self, "degeneracy", None) == "rotation":
            return None
        R, t, camera1, camera2 = pose
        return triangulate_matches(R, t, self.points1, self.points2, camera1, camera2, self.inliers)

    def _posed_cameras(self) -> tuple[Array, Array, Camera, Camera] | None:
        """Rotation, translation and both cameras, where the result has them all."""
        R, t, camera1, camera2 = (getattr(self, name, None) for name in ("R", "t", "camera1", "camera2"))
        return None if R is None or t is None or camera1 is None or camera2 is None else (R, t, camera1, camera2)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AbsolutePoseResult(PixelResult):
    """Absolute pose of a camera from 2D-3D matches: ``x = R X + t``.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation in the unit of the points, None without success.
        camera: the camera, as given where it was exact, else as refined, with the ``focal_deviation`` and the
            ``distortion_deviation`` that are left; None without success.
        covariance: (6, 6) of a rotation vector in radians that turns from the left, ``exp(w) R``, and of the
            translation. Where the camera is uncertain, then comes the logarithm of the focal length, then k1: (7, 7) or
            (8, 8). None without success.
        rivals: other poses, of many matches that the answer does not explain, the strongest first: a copy of the scene
            or a thing that moved.
        points2d: (N, 2) the pixels that were given: a copy.
        points3d: (N, 3) the 3D points.
    """

    R: Array | None
    t: Array | None
    camera: Camera | None = field(default_factory=NoneType)
    covariance: Array | None = field(default_factory=NoneType)
    rivals: tuple[Rival, ...] = field(default_factory=tuple)
    points2d: Array = field(metadata=FULL)
    points3d: Array = field(metadata=FULL)

    _assessed: ClassVar[tuple[str, ...]] = ("confidence", "warnings", "camera", "covariance", "rivals")
    _derived: ClassVar[tuple[str, ...]] = ("num_matches", "centre")
    _points: ClassVar[tuple[str, ...]] = ("points2d", "points3d")

    @property
    def centre(self) -> Array | None:
        """(3,) where the camera is among the points; None without success."""
        return None if self.R is None or self.t is None else np.asarray(-self.R.T @ self.t)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelativePoseResult(TwoViewResult):
    """Relative pose of camera 2 from camera 1: ``x2 = R x1 + t``.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation direction of length one, None without success.
        E: (3, 3) essential matrix ``[t]x R``, None without success.
        camera1: camera of image 1, as given where it was exact, else as refined, with the ``focal_deviation`` that is
            left; None without success.
        camera2: camera of image 2.
        degeneracy: "planar" if a plane explains the inliers, "rotation" if a rotation of the camera does, so that ``t``
            means nothing; None for a scene with depth, and without success.
        alternatives: other poses (R, t) that explain the matches as well, such as the second one of a plane.
        rivals: other poses, of many matches that the answer does not explain, the strongest first.
        rotation_confidence: probability that the error of the rotation is below 5°, from "ca-ransac".
        covariance: (5, 5) or more, of the numbers that `covariance_of` names, if noise is the only error: the rotation
            vector w of ``R_true = exp([w]x) R`` in radians; the direction along the two columns of
            `caransac.geometry.direction_basis(t)`, in radians; the logarithms of refined focal lengths. None without
            success.
        covariance_of: the names of these numbers.
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
    """Relative pose of camera 2 from camera 1 by their rays: ``x2 = R x1 + t``.

    The confidence is None: degeneracy, lenses and cameras are not assessed for rays.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation direction of length one, None without success.
        E: (3, 3) essential matrix ``[t]x R``, None without success.
        max_error_deg: threshold of the inliers: the largest angle to their epipolar planes, in degrees.
        noise_deg: median angle of right matches to their epipolar planes in degrees, as "ca-ransac" estimates it; None
            without success, and from the classical methods.
        rays1: (N, 3) the given rays of camera 1, as unit vectors.
        rays2: (N, 3) the given rays of camera 2, as unit vectors.
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
        F: (3, 3) of rank two and Frobenius norm one, None without success.
        camera1: camera of image 1 that F was found with, where image sizes were given; else None.
        camera2: camera of image 2.
        degeneracy: "planar" if a homography explains the inliers, of a plane or of a camera that only turned, so that F
            is one of many; "rotation" where the cameras found with F tell so; None otherwise.
        rivals: other fundamental matrices, of many matches that the answer does not explain, the strongest first.
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
        H: (3, 3) of Frobenius norm one, ``(H x1)[2] > 0`` for the inliers; None without success.
    """

    H: Array | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GeometryResult(TwoViewResult):
    """What two images have in common, whatever that is.

    Attributes:
        kind: "pose" (R, t, E and F), "pose_and_focals" (the same, with the cameras as refined), "homography" (H),
            "rotation" (R and H), "fundamental" (F), or "none".
        reason: why it is this kind, in a sentence.
        R: (3, 3) rotation, or None.
        t: (3,) translation direction of length one, or None.
        E: (3, 3) essential matrix, or None.
        F: (3, 3) fundamental matrix of pixels, without lens distortion, or None.
        H: (3, 3) homography of pixels, without lens distortion, or None.
        camera1: camera of image 1 that belongs to the answer, or None.
        camera2: camera of image 2.
        degeneracy: "planar", "rotation" or None, as in `RelativePoseResult`.
        alternatives: poses (R, t) that explain the matches as well as the answer, or that all explain its plane.
        rivals: other models of the epipolar geometry, of many matches that the answer does not explain.
        rotation_confidence: of `R`, as in `RelativePoseResult`.
        covariance: of `R` and `t`, as there.
        covariance_of: as there.
        epipolar: the estimate of the epipolar geometry, sure or not.
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
        """See `Result.to_dict`; what `epipolar` has in common with the result is written once."""
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
        ValueError: it holds no result; the message says why.
    """
    found = Result.load(path)
    assert isinstance(found, SomeResult)
    return found


def _from_dict(wanted: type[Kind], values: Any) -> Kind:
    """The result that a dict describes, if it is of the class that is wanted; a ValueError otherwise."""
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
        raise ValueError(f"{missing[0]} is missing; to_dict(full=True) and save() keep it")
    rows = [values[name] if isinstance(values[name], list) else () for name in found._points]  # or an empty array
    if not is_integer(count) or any(len(each) != count for each in rows):
        raise ValueError(f"{' and '.join(found._points)} must have num_matches rows, {shorten(count)}")
    shared = set()
    if isinstance(values.get("epipolar"), Mapping):
        shared = set(SHARED) - set(values["epipolar"])
        values = {**values, "epipolar": {**values["epipolar"], **{name: values[name] for name in shared}}}
    read = found(**fields_from_plain(found, values, count))
    if isinstance(read, GeometryResult):
        read = replace(read, epipolar=replace(read.epipolar, **{name: getattr(read, name) for name in shared}))
    assert isinstance(read, wanted)
    return read
