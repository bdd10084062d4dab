"""Content of the viewer: an estimation as numbers that a browser can read."""

from __future__ import annotations

import base64
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

import caransac
from caransac.camera import Camera
from caransac.geometry import (
    Array,
    homogeneous,
    join_pose,
    pose_error_deg,
    quaternion_from_rotation,
    rotation_angle_deg,
)
from caransac.geometry.parallax import median_parallax_px
from caransac.geometry.triangulation import triangulate_matches
from caransac.results import FundamentalResult, GeometryResult, HomographyResult, RelativePoseResult, Rival, Round
from caransac.viewer.geometries import (
    DrawnFundamental,
    DrawnGeometry,
    DrawnHomography,
    DrawnImage,
    DrawnPose,
    Pose,
)

DrawnResult = RelativePoseResult | FundamentalResult | HomographyResult

# Resolution: distances are 16-bit multiples of max_error_px / 256, so the largest is 256 thresholds.
STEPS_PER_THRESHOLD = 256
GRID = 65  # rows and columns of pixels that are undistorted to measure the field of view of a lens


def describe(
    result: DrawnResult,
    images: tuple[DrawnImage, DrawnImage],
    *,
    scores: Array | None,
    title: str,
    found: GeometryResult | None = None,
) -> dict[str, Any]:
    """Return the content of the report as plain JSON types. Arrays are little-endian, in base64.

    Args:
        result: the estimate to draw.
        images: the two images.
        scores: (n,) scores of the matches, or None.
        title: title of the report.
        found: the result of `caransac.estimate` that contains the estimate, or None.
    """
    max_error_px = result.max_error_px
    geometry, answer = _drawn_geometry(result, images, undistorts=found is not None)
    rounds = _rounds(result, answer)
    estimate = None if answer is None else geometry.pose(answer)
    turned = found.R if found is not None and found.kind == "rotation" else None
    R = turned if estimate is None else estimate[0]
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
            **_matrices(geometry, answer),
            "R": None if R is None else R.ravel().tolist(),
            "angleDeg": None if R is None else rotation_angle_deg(R),
            "parallaxPx": None if estimate is None else _parallax_px(images, estimate[0], result.inliers),
            "noisePx": result.noise_px,
            "noiseBeforePx": result.noise_before_px,
            "numRefined": result.num_refined,
            "degeneracy": None if isinstance(result, HomographyResult) else result.degeneracy,
            "rotationConfidence": getattr(result, "rotation_confidence", None),
            "rotationDeviationDeg": result.rotation_deviation_deg,
            "directionDeviationDeg": result.direction_deviation_deg,
            "rivals": [_rival(rival) for rival in getattr(result, "rivals", ())],
            "geometry": None if found is None else f"{found.kind.replace('_', ' ')}: {found.reason}",
            "alternatives": [_pose(pose) for pose in (() if found is None else found.alternatives)],
        },
        "estimate": None if estimate is None else {**_pose(estimate), "qvec": _qvec(estimate)},
        "images": [_image(image, geometry.undistorts) for image in images],
        "given2": _pack(result.refinement.given2, "<f4") if result.num_refined and result.refinement else None,
        "scores": None if scores is None else _pack(scores, "<f4"),
        "rounds": [_round(geometry, step, estimate, max_error_px) for step in rounds],
        "cloud": None if estimate is None else _cloud(result, images, estimate),
    }


def _drawn_geometry(
    result: DrawnResult, images: tuple[DrawnImage, DrawnImage], *, undistorts: bool
) -> tuple[DrawnGeometry, Array | None]:
    """Return the converter of models for drawing, and the final model. Homographies may refer to undistorted points."""
    if isinstance(result, RelativePoseResult):
        answer = None if result.R is None or result.t is None else join_pose(result.R, result.t)
        return DrawnPose(images, result.max_error_px), answer
    if isinstance(result, HomographyResult):
        return DrawnHomography(images, result.max_error_px, undistorts=undistorts), result.H
    return DrawnFundamental(images, result.max_error_px), result.F


def _matrices(geometry: DrawnGeometry, model: Array | None) -> dict[str, list[float] | None]:
    """Return the matrix of a model as "F" or "H". The other entry is None. Without a model both are None."""
    none: dict[str, list[float] | None] = {"F": None, "H": None}
    return none if model is None else none | {geometry.matrix_name: geometry.matrix(model).ravel().tolist()}


def _rounds(result: DrawnResult, answer: Array | None) -> list[Round]:
    """Return the trace, or a single round if there is none. The last round gets the final model, if there is one."""
    if result.trace:
        *earlier, last = result.trace
    else:
        likely = result.inliers if result.probabilities is None else result.probabilities
        earlier = []
        last = Round(
            samples=np.empty((0, 0), np.int32),
            num_hypotheses=result.num_hypotheses,
            models=np.empty((0, 3, 4 if isinstance(result, RelativePoseResult) else 3)),
            max_error=result.max_error_px,
            msac_scores=np.empty((0, len(likely)), np.float32),
            state=np.empty((len(likely), 0), np.float32),
            probabilities=likely.astype(np.float32),
            best=None,
            noise=0.0,
        )
    return [*earlier, replace(last, best=last.best if answer is None else answer)]


def _round(geometry: DrawnGeometry, step: Round, estimate: Pose | None, max_error_px: float) -> dict[str, Any]:
    content: dict[str, Any] = {
        "probabilities": _pack(np.rint(255 * np.clip(step.probabilities, 0, 1)), "u1"),
        "noisePx": step.noise if step.best is not None else 0.0,
        "hypotheses": [],
        **_matrices(geometry, step.best),
        "distances": None,
    }
    for model, msac_scores in zip(step.models, step.msac_scores, strict=True):
        pose = geometry.pose(model)
        if pose is not None:
            apart = None if estimate is None else pose_error_deg(*pose, *estimate)
            content["hypotheses"].append({**_pose(pose), "consensus": float(msac_scores.sum()), "apartDeg": apart})
    if step.best is not None:
        largest = np.iinfo(np.uint16).max
        # Some distances overflow or are NaN.
        distances_px = np.fmin(geometry.distances_px(step.best), largest * max_error_px)
        distances = np.rint(distances_px / max_error_px * STEPS_PER_THRESHOLD)
        content["distances"] = _pack(np.minimum(distances, largest), "<u2")
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
        content["camera"] = {"focal": image.focal}
        right, bottom = np.array(image.size) - 0.5  # (0, 0) is the centre of the top-left pixel
        pixels = [[-0.5, -0.5], [right, -0.5], [right, bottom], [-0.5, bottom]]
        corners = homogeneous(pixels) @ np.linalg.inv(image.camera.K).T
        content["corners"] = corners[:, :2].tolist()
        if undistorts and image.camera.is_distorted:
            content["lens"] = _lens(image.camera, image.size)
    return content


def _lens(camera: Camera, size: tuple[int, int]) -> dict[str, float]:
    """Return the distortion parameters, and the largest radius on the normalised image plane that is visible."""
    columns, rows = np.meshgrid(*(np.linspace(0, length, GRID) - 0.5 for length in size))
    rays = camera.pixels_to_rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    reach = float(np.nanmax(np.linalg.norm(rays, axis=1), initial=0.0))
    (_, _, cx), (_, _, cy), _ = camera.K.tolist()
    projection = {"fx": camera.fx, "fy": camera.fy, "cx": cx, "cy": cy, "projection": camera.projection}
    return {**projection, **asdict(camera.distortion), "reach": reach}


def _cloud(result: DrawnResult, images: tuple[DrawnImage, DrawnImage], pose: Pose) -> dict[str, str] | None:
    """Triangulate the inliers in front of both cameras, in the frame of camera 1 and units of the baseline."""
    first, second = images
    found = result.points3d
    if not isinstance(result, RelativePoseResult) and first.camera is not None and second.camera is not None:
        points = first.pixels, second.pixels
        found = triangulate_matches(*pose, *points, first.camera, second.camera, result.inliers)
    if found is None or len(found) == 0:
        return None
    return {"index": _pack(found.index, "<u4"), "points": _pack(found.xyz, "<f4")}


def _parallax_px(images: tuple[DrawnImage, DrawnImage], R: Array, inliers: NDArray[np.bool_]) -> float | None:
    """Return the median parallax of the inliers, or None if a camera is unknown."""
    first, second = images
    if first.camera is None or second.camera is None:
        return None
    points = first.pixels[inliers], second.pixels[inliers]
    return median_parallax_px(R, *points, first.camera, second.camera)


def _pose(pose: Pose) -> dict[str, list[float]]:
    return {"R": np.ravel(pose[0]).tolist(), "t": np.ravel(pose[1]).tolist()}


def _rival(rival: Rival) -> dict[str, Any]:
    """Return the share of a rival, the matches that support it, and its pose if it has one."""
    pose = None if rival.R is None or rival.t is None else _pose((rival.R, rival.t))
    return {"share": rival.share, "inliers": np.flatnonzero(rival.inliers).tolist(), "pose": pose}


def _qvec(pose: Pose) -> list[float]:
    """Return the rotation as a unit quaternion in COLMAP's order: w, x, y, z."""
    qvec: list[float] = quaternion_from_rotation(pose[0]).tolist()
    return qvec


def _pack(values: NDArray[Any], dtype: DTypeLike) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode()
