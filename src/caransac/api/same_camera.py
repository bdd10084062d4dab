"""Decide whether one camera took both images, if the cameras are uncertain and `same_camera` is not given."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from math import degrees

import numpy as np

from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL_DEVIATION, UNKNOWN_ZOOM_DEVIATION
from caransac.geometry import Array, angle_between_deg, rotation_angle_deg, split_pose
from caransac.options import Options
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import FocalPose
from caransac.robust.records import Assessment, Estimate, MatchInfo
from caransac.tuning import CAMERAS

# Minimum ratio of consensus (better / worse of the cases one camera and two) at which the better case is clear.
CLEAR_CONSENSUS = 1.1


def estimate_focal_pose(
    pixels1: Array,
    pixels2: Array,
    camera1: Camera,
    camera2: Camera,
    same_camera: bool | None,
    info: MatchInfo,
    options: Options,
    *,
    for_matrix: bool = False,
) -> tuple[FocalPose, Estimate]:
    """Estimate pose and focal lengths of uncertain cameras, and decide whether both are the same camera.

    Args:
        pixels1: (N, 2) pixels in image 1.
        pixels2: (N, 2) pixels in image 2.
        camera1: given or assumed camera of image 1.
        camera2: given or assumed camera of image 2.
        same_camera: whether they are the same camera; None to decide.
        info: scores and features of the matches.
        options: options of the estimation; see `Options`.
        for_matrix: whether only the fundamental matrix matters, which often is the same in both cases.

    Returns:
        The problem, undistorted with the estimated lenses, and its estimate.
    """
    if same_camera is None and not could_be_one(camera1, camera2):
        same_camera = False
    started = time.perf_counter()
    if same_camera is not None:
        return _estimate_as(same_camera, pixels1, pixels2, camera1, camera2, info, options)
    problem, found = _estimate_as(True, pixels1, pixels2, camera1, camera2, info, options)
    if camera1.focal_deviation < UNKNOWN_FOCAL_DEVIATION or found.model is None:  # given cameras that are equal
        return problem, found
    left = options.left_since(started)
    apart, otherwise = _estimate_as(False, pixels1, pixels2, camera1, camera2, info, left)
    if otherwise.model is None:
        return problem, found
    max_error = max(found.max_error, otherwise.max_error)  # consensus is comparable only at the same threshold
    together, split = (
        float(each.msac_scores(model[None], max_error).sum())
        for each, model in ((problem, found.model), (apart, otherwise.model))
    )
    answer, other = (found, otherwise) if split <= CAMERAS.more_consensus * together else (otherwise, found)
    clear = max(split, together) >= CLEAR_CONSENSUS * min(split, together)
    if not (clear or for_matrix) and other.model is not None:
        answer = replace(answer, assess=partial(_assess_both, answer, other.model, degrees(problem.outcome_limit)))
    return (problem if answer.model is found.model else apart), answer


def _assess_both(answer: Estimate, other: Array, limit_deg: float) -> Assessment:
    """Assess an answer if the model of the other case may be right instead.

    If their poses differ, that halves the confidence. Example: a camera moves backwards, or it moves forwards and zooms
    out.
    """
    seen = answer.assess()
    assert answer.model is not None and seen.degeneracy is not None
    (R, t), (other_R, other_t) = split_pose(answer.model), split_pose(other)
    turned = rotation_angle_deg(R @ other_R.T) > limit_deg
    if not turned and angle_between_deg(t, other_t) <= limit_deg:
        return seen
    others = np.concatenate([seen.degeneracy.alternatives, other[None]])
    seen = replace(seen, degeneracy=replace(seen.degeneracy, alternatives=others))
    if turned and seen.rotation_confidence is not None:
        seen = replace(seen, rotation_confidence=seen.rotation_confidence / 2)
    return seen if seen.confidence is None else replace(seen, confidence=seen.confidence / 2)


def _estimate_as(
    shared: bool,
    pixels1: Array,
    pixels2: Array,
    camera1: Camera,
    camera2: Camera,
    info: MatchInfo,
    options: Options,
) -> tuple[FocalPose, Estimate]:
    """Estimate with one camera for both images, or with two cameras, one of which may be zoomed."""
    cameras = [
        replace(camera, focal_deviation=UNKNOWN_ZOOM_DEVIATION)
        if not shared and camera.focal_deviation == UNKNOWN_FOCAL_DEVIATION
        else camera
        for camera in (camera1, camera2)
    ]
    problem = FocalPose.from_pixels(pixels1, pixels2, cameras[0], cameras[1], shared)
    found = estimate_model(problem, info, options)
    return problem.through(found.k1), found


def could_be_one(camera1: Camera, camera2: Camera) -> bool:
    """Return True if two cameras have the same model, size (or the rotated size), focal length and uncertainty."""
    sizes = [sorted((camera.width, camera.height)) for camera in (camera1, camera2)]
    alike = abs(camera1.mean_focal / camera2.mean_focal - 1) < CAMERAS.same_focal and camera1.model == camera2.model
    equally = camera1.focal_deviation == camera2.focal_deviation
    equally &= camera1.k1 == camera2.k1 and camera1.distortion_deviation == camera2.distortion_deviation
    return alike and sizes[0] == sizes[1] and equally
