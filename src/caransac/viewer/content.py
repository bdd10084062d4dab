"""What the viewer shows of an estimation, as numbers a browser can read."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

import caransac
from caransac.camera import Camera
from caransac.geometry import (
    Array,
    Floats,
    depths,
    essential_from_pose,
    fundamental_from_essential,
    homogeneous,
    join_pose,
    pose_error_deg,
    rotation_angle_deg,
    split_pose,
)
from caransac.results import AnyResult, GeometryResult, RelativePoseResult, Round
from caransac.robust.problems import Essential, FocalPose, Fundamental, Problem
from caransac.viewer.parallax import median_parallax_px

STEPS_PER_THRESHOLD = 256  # distances are sent as 16-bit multiples of max_error_px / 256, and end at 256 thresholds
LIKELY = 0.5  # probability from which on a match joins the cloud of triangulated points
GRID = 65  # rows and columns of pixels that are undistorted to learn how far a lens sees

Pose = tuple[Array, Array]


@dataclass(frozen=True)
class DrawnImage:
    """One of the two images.

    Attributes:
        pixels: (n, 2) the matches' points.
        camera: its camera, refined if it was doubtful, or None.
        given_camera: the camera that the estimation started from, in whose pixels it measures distances, or None.
        camera_source: where the camera comes from, in words.
        size: (width, height) in pixels.
        jpeg: the picture, of any scale, or None for an empty frame.
    """

    pixels: Array
    camera: Camera | None
    given_camera: Camera | None
    camera_source: str
    size: tuple[int, int]
    jpeg: bytes | None


def describe(
    result: AnyResult,
    images: tuple[DrawnImage, DrawnImage],
    *,
    scores: Array | None,
    title: str,
    found: GeometryResult | None = None,
) -> dict[str, Any]:
    """The report's content, of plain JSON types; arrays are little-endian in base64.

    Args:
        result: the estimate of the epipolar geometry, which is drawn.
        images: what it is of.
        scores: (n,) of the matches, or None.
        title: of the report.
        found: what was made of the estimate, where `caransac.estimate` did.
    """
    geometry: DrawnGeometry
    max_error_px = result.max_error_px
    if isinstance(result, RelativePoseResult):
        geometry = DrawnPose(images, max_error_px)
        answer = None if result.R is None or result.t is None else join_pose(result.R, result.t)
    else:
        geometry = DrawnFundamental(images, max_error_px)
        answer = result.F
    rounds = _rounds(result, answer)
    estimate = None if answer is None else geometry.pose(answer)
    return {
        "title": title,
        "version": caransac.__version__,
        "kind": geometry.kind,
        "maxErrorPx": max_error_px,
        "hasProbabilities": result.probabilities is not None,
        "summary": {
            "success": result.success,
            "stopReason": result.stop_reason,
            "confidence": result.confidence,
            "numMatches": len(result.inliers),
            "numInliers": result.num_inliers,
            "numHypotheses": result.num_hypotheses,
            "consensus": result.consensus,
            "elapsedMs": 1e3 * result.elapsed_s,
            "F": None if answer is None else geometry.fundamental(answer).ravel().tolist(),
            "angleDeg": None if estimate is None else rotation_angle_deg(estimate[0]),
            "parallaxPx": None if estimate is None else _parallax_px(images, estimate[0], result.inliers),
            "noisePx": result.noise_px,
            "degeneracy": result.degeneracy,
            "geometry": None if found is None else f"{found.kind.replace('_', ' ')}: {found.reason}",
            "alternatives": [_pose(pose) for pose in (() if found is None else found.alternatives)],
        },
        "estimate": _pose(estimate),
        "images": [_image(image, geometry.undistorts) for image in images],
        "scores": None if scores is None else _pack(scores, "<f4"),
        "rounds": [_round(geometry, step, estimate, max_error_px) for step in rounds],
        "cloud": None if estimate is None else _cloud(images, estimate, rounds[-1].probabilities),
    }


class DrawnGeometry(ABC):
    """The models of a trace as what can be drawn of them.

    Attributes:
        kind: what is estimated: "pose" or "fundamental".
        undistorts: whether the models are of points without their lens distortion.
    """

    kind: str
    undistorts: bool

    @abstractmethod
    def distances_px(self, model: Array) -> Array:
        """Sampson distances (n,) of the matches to a model in pixels, as the estimation measures them."""

    @abstractmethod
    def num_inliers(self, model: Array) -> int:
        """How many matches support a model."""

    @abstractmethod
    def fundamental(self, model: Array) -> Array:
        """Fundamental matrix (3, 3) of a model, of pixels without lens distortion where `undistorts`."""

    @abstractmethod
    def pose(self, model: Array) -> Pose | None:
        """Rotation (3, 3) and translation (3,) of a model, or None where the cameras are unknown."""


class DrawnPose(DrawnGeometry):
    """Relative poses [R | t], all with the cameras of the answer."""

    kind = "pose"
    undistorts = True

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float) -> None:
        (pixels1, camera1, given1), (pixels2, camera2, given2) = (
            (image.pixels, image.camera, image.given_camera or image.camera) for image in images
        )
        if camera1 is None or camera2 is None or given1 is None or given2 is None:
            number = 1 if camera1 is None else 2
            raise ValueError(
                f"camera{number} is missing: the epipolar lines of a relative pose need both cameras; if it was "
                f"unknown to the estimation, give size{number}"
            )
        self._K1, self._K2 = camera1.K, camera2.K
        self._problem: Problem = Essential.from_pixels(pixels1, pixels2, camera1, camera2, max_error_px)
        self._intrinsics = np.empty((3, 0))
        if (camera1, camera2) != (given1, given2):
            self._problem = FocalPose.from_pixels(pixels1, pixels2, given1, given2, max_error_px, shared=False)
            self._intrinsics = np.stack([_change(given1, camera1), _change(given2, camera2)], axis=1)
        self._max_error_px = max_error_px

    def _refined(self, model: Array) -> Array:
        """A pose with what the cameras of the answer differ by from those given: a model of the problem."""
        return np.concatenate([model, self._intrinsics], axis=1)

    def distances_px(self, model: Array) -> Array:
        """See `DrawnGeometry.distances_px`."""
        distances = self._problem.distances(self._refined(model)) / self._problem.max_error * self._max_error_px
        return self._problem.spread(distances, np.inf)

    def num_inliers(self, model: Array) -> int:
        """See `DrawnGeometry.num_inliers`."""
        return int(self._problem.inliers(self._refined(model)).sum())

    def fundamental(self, model: Array) -> Array:
        """See `DrawnGeometry.fundamental`."""
        F = fundamental_from_essential(essential_from_pose(*self.pose(model)), self._K1, self._K2)
        return np.asarray(F / np.linalg.norm(F))

    def pose(self, model: Array) -> Pose:
        """See `DrawnGeometry.pose`."""
        return split_pose(model)


class DrawnFundamental(DrawnGeometry):
    """Fundamental matrices of pixels as they are."""

    kind = "fundamental"
    undistorts = False

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float) -> None:
        self._images = images
        self._problem = Fundamental.from_pixels(images[0].pixels, images[1].pixels, max_error_px)
        self._max_error_px = max_error_px

    def distances_px(self, model: Array) -> Array:
        """See `DrawnGeometry.distances_px`."""
        normalised = self._problem.from_public(model)
        return self._problem.distances(normalised) / self._problem.max_error * self._max_error_px

    def num_inliers(self, model: Array) -> int:
        """See `DrawnGeometry.num_inliers`."""
        return int(self._problem.inliers(self._problem.from_public(model)).sum())

    def fundamental(self, model: Array) -> Array:
        """See `DrawnGeometry.fundamental`."""
        return model

    def pose(self, model: Array) -> Pose | None:
        """See `DrawnGeometry.pose`."""
        first, second = self._images
        if first.camera is None or second.camera is None:
            return None
        near = self.distances_px(model) < self._max_error_px
        return caransac.pose_from_fundamental(
            self.fundamental(model), first.pixels[near], second.pixels[near], first.camera, second.camera
        )


def _change(given: Camera, found: Camera) -> Array:
    """(3,) intrinsics of `FocalPose` that turn one camera into the other: the inverse of `Camera.adjusted`."""
    offset = found.K[:2, 2] - given.K[:2, 2]
    return np.array([np.log(found.fx / given.fx), offset[0] / given.fx, offset[1] / given.fy])


def _rounds(result: AnyResult, answer: Array | None) -> list[Round]:
    """The trace, or a single record where there is none; the last one's best model is the answer, if there is one."""
    if result.trace:
        *earlier, last = result.trace
    else:
        belief = result.inliers if result.probabilities is None else result.probabilities
        earlier = []
        last = Round(
            samples=np.empty((0, 0), np.int32),
            num_hypotheses=result.num_hypotheses,
            models=np.empty((0, 3, 4 if isinstance(result, RelativePoseResult) else 3)),
            msac_scores=np.empty((0, len(belief)), np.float32),
            state=np.empty((len(belief), 0), np.float32),
            probabilities=belief.astype(np.float32),
            best=None,
            noise=0.0,
        )
    return [*earlier, replace(last, best=last.best if answer is None else answer)]


def _round(geometry: DrawnGeometry, step: Round, estimate: Pose | None, max_error_px: float) -> dict[str, Any]:
    content: dict[str, Any] = {
        "probabilities": _pack(np.rint(255 * np.clip(step.probabilities, 0, 1)), "u1"),
        "noisePx": step.noise * max_error_px,
        "hypotheses": [],
        "F": None,
        "distances": None,
    }
    for model, msac_scores in zip(step.models, step.msac_scores, strict=True):
        pose = geometry.pose(model)
        if pose is not None:
            apart = None if estimate is None else pose_error_deg(*pose, *estimate)
            content["hypotheses"].append(
                {**(_pose(pose) or {}), "consensus": float(msac_scores.sum()), "apartDeg": apart}
            )
    if step.best is not None:
        distances = np.nan_to_num(geometry.distances_px(step.best) / max_error_px, nan=np.inf)
        largest = np.iinfo(np.uint16).max
        content["distances"] = _pack(np.minimum(np.rint(distances * STEPS_PER_THRESHOLD), largest), "<u2")
        content["F"] = geometry.fundamental(step.best).ravel().tolist()
        content["numInliers"] = geometry.num_inliers(step.best)
        pose = geometry.pose(step.best)
        content["apartDeg"] = None if pose is None or estimate is None else pose_error_deg(*pose, *estimate)
    return content


def _image(image: DrawnImage, undistorts: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "points": _pack(image.pixels, "<f4"),
        "size": list(image.size),
        "picture": None,
        "camera": None,
        "lens": None,
        "corners": None,
    }
    if image.jpeg is not None:
        content["picture"] = "data:image/jpeg;base64," + base64.b64encode(image.jpeg).decode()
    if image.camera is not None:
        content["camera"] = {
            "focalPx": image.camera.mean_focal,
            "focalDeviation": image.camera.focal_deviation,
            "source": image.camera_source,
        }
        right, bottom = np.array(image.size) - 0.5  # the centre of the top-left pixel is (0, 0)
        pixels = [[-0.5, -0.5], [right, -0.5], [right, bottom], [-0.5, bottom]]
        corners = homogeneous(pixels) @ np.linalg.inv(image.camera.K).T
        content["corners"] = corners[:, :2].tolist()
        if undistorts and image.camera.is_distorted:
            content["lens"] = _lens(image.camera, image.size)
    return content


def _lens(camera: Camera, size: tuple[int, int]) -> dict[str, float]:
    """The distortion's parameters, and the largest radius on the normalised image plane that the image shows."""
    columns, rows = np.meshgrid(*(np.linspace(0, length, GRID) - 0.5 for length in size))
    rays = camera.pixels_to_rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    reach = float(np.nanmax(np.linalg.norm(rays, axis=1), initial=0.0))
    (_, _, cx), (_, _, cy), _ = camera.K.tolist()
    projection = {"fx": camera.fx, "fy": camera.fy, "cx": cx, "cy": cy, "fisheye": camera.is_fisheye}
    return {**projection, **asdict(camera.distortion), "reach": reach}


def _cloud(images: tuple[DrawnImage, DrawnImage], pose: Pose, probabilities: Floats) -> dict[str, str] | None:
    """Likely matches triangulated in the frame of camera 1, in baselines; those in front of both cameras."""
    first, second = images
    if first.camera is None or second.camera is None:
        return None
    rays1, rays2 = first.camera.pixels_to_rays(first.pixels), second.camera.pixels_to_rays(second.pixels)
    usable = (probabilities > LIKELY) & np.isfinite(rays1).all(axis=1) & np.isfinite(rays2).all(axis=1)
    index = np.flatnonzero(usable)
    if len(index) == 0:
        return None
    depth1, depth2 = depths(*pose, rays1[index], rays2[index]).T
    front = (depth1 > 0) & (depth2 > 0)
    points = homogeneous(rays1[index]) * depth1[:, None]
    return {"index": _pack(index[front], "<u4"), "points": _pack(points[front], "<f4")}


def _parallax_px(images: tuple[DrawnImage, DrawnImage], R: Array, inliers: NDArray[np.bool_]) -> float | None:
    """The median parallax of the inliers; None without both cameras."""
    first, second = images
    if first.camera is None or second.camera is None:
        return None
    points = first.pixels[inliers], second.pixels[inliers]
    return median_parallax_px(R, *points, first.camera, second.camera)


def _pose(pose: Pose | None) -> dict[str, list[float]] | None:
    return None if pose is None else {"R": np.ravel(pose[0]).tolist(), "t": np.ravel(pose[1]).tolist()}


def _pack(values: NDArray[Any], dtype: DTypeLike) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode()
