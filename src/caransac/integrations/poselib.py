"""Drop-in replacements for PoseLib's estimators of two views and of absolute poses. PoseLib itself is not needed.

    from caransac.integrations import poselib
    pose, info = poselib.estimate_relative_pose(x1, x2, camera1, camera2, {"max_epipolar_error": 1.0}, {})
    pair, info = poselib.estimate_shared_focal_relative_pose(x1, x2, principal_point, {"max_epipolar_error": 1.0}, {})
    pose, info = poselib.estimate_absolute_pose(points2d, points3d, camera, {"max_reproj_error": 12.0}, {})

If PoseLib is installed, all other names (poselib.p3p, poselib.Camera, ...) are taken from it. Poses then have its type
poselib.CameraPose, so that its functions accept them.

Both forms of PoseLib's settings are accepted: the two dicts of version 2, and the nested dict of version 3,
``{"max_error": 1.0, "ransac": {...}, "bundle": {...}}``. A `caransac.Options` may replace them. Unknown settings, which
PoseLib ignores, raise a ValueError. `scores` and `score_kind` are new, as in `caransac.estimate_relative_pose`.

If the data do not determine a model, the result is the same as PoseLib's: an identity matrix, or a pose with the
identity rotation and zero translation. Code written for PoseLib therefore keeps running. Check ``info["success"]``,
which is new, or ``info["num_inliers"]``, which is then zero. `caransac.estimate_relative_pose` itself never returns an
identity.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caransac import api
from caransac._support.arrays import as_matches, as_reals
from caransac.camera import Camera as _Camera  # the name is PoseLib's
from caransac.geometry import Array
from caransac.given_cameras import as_camera, without_size
from caransac.integrations import poselib_records as records
from caransac.integrations.foreign_settings import is_on
from caransac.integrations.originals import all_names, original_attribute
from caransac.integrations.poselib_records import ImagePair
from caransac.integrations.poselib_settings import (
    FLAT_REPROJ_ERROR,
    HOMOGRAPHY_SETTINGS,
    NESTED_REPROJ_ERROR,
    as_dict,
    options_from,
)
from caransac.options import Options, ScoreKind
from caransac.results import AbsolutePoseResult, PixelResult, RelativePoseResult

REFINED_FOCAL_DEVIATION = 0.1  # relative prior deviation of a focal length that the caller wants refined


def estimate_relative_pose(
    points2D_1: ArrayLike,
    points2D_2: ArrayLike,
    camera1_dict: Any = None,
    camera2_dict: Any = None,
    ransac_opt: Mapping[str, Any] | Options | None = None,
    bundle_opt: Mapping[str, Any] | None = None,
    initial_pose: Any = None,
    *,
    camera1: Any = None,
    camera2: Any = None,
    opt: Mapping[str, Any] | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> tuple[records.CameraPose, dict[str, Any]]:
    """Replace ``poselib.estimate_relative_pose``.

    Args:
        points2D_1: (N, 2) pixels in image 1.
        points2D_2: (N, 2) pixels in image 2.
        camera1_dict: camera of image 1: a dict {model, params, width, height}, a poselib.Camera, or any camera that
            `caransac.estimate_relative_pose` accepts.
        camera2_dict: camera of image 2, in any of these forms.
        ransac_opt: PoseLib's settings in the form of version 2 or 3 (see `poselib_settings`), or a `caransac.Options`.
            `max_epipolar_error` or `max_error` (a Sampson distance in pixels, 1 by default), `success_prob` and `seed`
            have PoseLib's meaning. `max_iterations` is the maximum number of hypotheses, up to a million; PoseLib's
            default of 100,000 is replaced by ours. If `min_iterations` is equal to it, exactly that many are tried. All
            other settings are ignored.
        bundle_opt: settings of the refinement, which are checked but not used.
        initial_pose: a poselib.CameraPose, or another pose that `caransac.estimate_relative_pose` accepts as
            `initial_model`. It is only one of the hypotheses. A zero translation means no pose and is ignored.
        camera1: alternative name of `camera1_dict`.
        camera2: alternative name of `camera2_dict`.
        opt: alternative name of `ransac_opt`, as in version 3.
        scores: (N,) quality of each match; see `caransac.estimate_relative_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).

    Returns:
        The pose, or the identity with zero translation if the data do not determine a pose; and a dict with

        - refinements: int, number of rounds, each of which ends with a refinement,
        - iterations: int, number of hypotheses,
        - num_inliers: int,
        - inlier_ratio: float,
        - model_score: float, sum of the squared Sampson distances, each limited to the threshold; lower is better,
        - inliers: list of N bool,
        - success: whether the data determine a model (new),
        - probabilities: (N,) inlier probability of each match (new),
        - confidence: probability that the error of the pose is below five degrees (new).

        `model_score` is in squared pixels; PoseLib's is on the normalised plane. Without a model it is the largest
        float.

    Raises:
        ValueError: a setting is unknown, or an argument has a wrong shape or value; the message names it.
    """
    options = options_from(_either(ransac_opt, opt, "ransac_opt", "opt"), bundle_opt)
    found = api.estimate_relative_pose(
        points2D_1,
        points2D_2,
        without_size(_as_camera(_either(camera1_dict, camera1, "camera1_dict", "camera1"), "camera1")),
        without_size(_as_camera(_either(camera2_dict, camera2, "camera2_dict", "camera2"), "camera2")),
        scores=scores,
        score_kind=score_kind,
        initial_model=_known_pose(initial_pose),
        options=options,
    )
    return _pose(found), _info(found, options)


def estimate_fundamental(
    points2D_1: ArrayLike,
    points2D_2: ArrayLike,
    ransac_opt: Mapping[str, Any] | Options | None = None,
    bundle_opt: Mapping[str, Any] | None = None,
    initial_F: ArrayLike | None = None,
    *,
    opt: Mapping[str, Any] | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> tuple[Array, dict[str, Any]]:
    """Replace ``poselib.estimate_fundamental``.

    Arguments and errors are those of `estimate_relative_pose`, without cameras.

    Returns:
        F (3, 3) of norm one, or the identity if the data do not determine F; and the same dict.
    """
    options = options_from(_either(ransac_opt, opt, "ransac_opt", "opt"), bundle_opt)
    found = api.estimate_fundamental(
        points2D_1, points2D_2, scores=scores, score_kind=score_kind, initial_model=initial_F, options=options
    )
    return np.eye(3) if found.F is None else found.F, _info(found, options)


def estimate_homography(
    points2D_1: ArrayLike,
    points2D_2: ArrayLike,
    ransac_opt: Mapping[str, Any] | Options | None = None,
    bundle_opt: Mapping[str, Any] | None = None,
    initial_H: ArrayLike | None = None,
    *,
    opt: Mapping[str, Any] | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> tuple[Array, dict[str, Any]]:
    """Replace ``poselib.estimate_homography``.

    Arguments and errors are those of `estimate_fundamental`. The threshold is `max_reproj_error`, 12 pixels by default,
    as in version 2; in nested settings it is `max_error`, one pixel by default, as in version 3. It limits the root
    mean square of the distances in both images. If both images have the same scale, that is PoseLib's distance in the
    second image.

    Returns:
        H (3, 3) of norm one with ``x2 ~ H x1``, or the identity if the data do not determine H; and the same dict, in
        which `model_score` is computed from these distances.
    """
    settings = _either(ransac_opt, opt, "ransac_opt", "opt")
    nested = opt is not None or (isinstance(settings, Mapping) and bool({"ransac", "bundle"} & settings.keys()))
    defaults = Options(max_error_px=NESTED_REPROJ_ERROR if nested else FLAT_REPROJ_ERROR)
    options = options_from(settings, bundle_opt, HOMOGRAPHY_SETTINGS, defaults)
    found = api.estimate_homography(
        points2D_1, points2D_2, scores=scores, score_kind=score_kind, initial_model=initial_H, options=options
    )
    return np.eye(3) if found.H is None else found.H, _info(found, options)


def estimate_absolute_pose(
    points2D: ArrayLike,
    points3D: ArrayLike,
    camera_dict: Any = None,
    ransac_opt: Mapping[str, Any] | Options | None = None,
    bundle_opt: Mapping[str, Any] | None = None,
    initial_pose: Any = None,
    *,
    camera: Any = None,
    opt: Mapping[str, Any] | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> tuple[records.CameraPose, dict[str, Any]]:
    """Replace ``poselib.estimate_absolute_pose``.

    Arguments and errors are those of `estimate_relative_pose`. The threshold is `max_reproj_error`, 12 pixels by
    default, as in version 2; in nested settings it is `max_error`, one pixel by default, as in version 3. With
    ``refine_focal_length`` in `bundle_opt`, the focal length is treated as known to ten per cent and is refined with
    the pose.

    Returns:
        The pose with ``x = R X + t``, or the identity with zero translation if the data do not determine a pose; and
        the same dict with two more entries:

        - camera: dict {model, params, width, height} of the camera, refined if requested (new),
        - covariance: (6, 6) see `caransac.AbsolutePoseResult`; None without a pose (new).
    """
    settings = _either(ransac_opt, opt, "ransac_opt", "opt")
    bundle = as_dict(bundle_opt, "bundle_opt")
    if isinstance(settings, Mapping):
        settings = dict(settings)
        bundle |= as_dict(settings.pop("bundle", None), "bundle")
    nested = opt is not None or (isinstance(settings, Mapping) and "ransac" in settings)
    defaults = Options(max_error_px=NESTED_REPROJ_ERROR if nested else FLAT_REPROJ_ERROR)
    refine_focal = is_on(bundle.pop("refine_focal_length", False), "refine_focal_length")
    options = options_from(settings, bundle, HOMOGRAPHY_SETTINGS, defaults)
    lens = _as_camera(_either(camera_dict, camera, "camera_dict", "camera"), "camera")
    if refine_focal:
        lens = replace(lens, focal_deviation=REFINED_FOCAL_DEVIATION)
    found = api.estimate_absolute_pose(
        points2D, points3D, lens, scores=scores, score_kind=score_kind, initial_model=initial_pose, options=options
    )
    known = (found.camera or lens).exact.to_dict()
    return _pose(found), _info(found, options) | {"camera": known, "covariance": found.covariance}


def estimate_shared_focal_relative_pose(
    points2D_1: ArrayLike,
    points2D_2: ArrayLike,
    pp: ArrayLike = (0.0, 0.0),
    ransac_opt: Mapping[str, Any] | Options | None = None,
    bundle_opt: Mapping[str, Any] | None = None,
    initial_image_pair: Any = None,
    *,
    opt: Mapping[str, Any] | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> tuple[ImagePair, dict[str, Any]]:
    """Replace ``poselib.estimate_shared_focal_relative_pose``: the pose of one camera of unknown focal length.

    The prior of the focal length needs the size of the images, which is not an argument. It is assumed to be twice the
    principal point or, if this is zero, the extent of the points. If you know the size, use
    `caransac.estimate_relative_pose`. Other arguments and errors are those of `estimate_relative_pose`.

    Args:
        points2D_1: (N, 2) pixels in image 1.
        points2D_2: (N, 2) pixels in image 2.
        pp: (2,) principal point of both images in pixels; zero if the points are relative to it.
        ransac_opt: settings, as in `estimate_relative_pose`.
        bundle_opt: settings of the refinement, as in `estimate_relative_pose`.
        initial_image_pair: a poselib.ImagePair, or an `ImagePair` of this module, as `initial_pose` in
            `estimate_relative_pose`.
        opt: alternative name of `ransac_opt`, as in version 3.
        scores: (N,) quality of each match; see `caransac.estimate_relative_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).

    Returns:
        Pose and cameras, and the same dict. The principal points are refined a little. They may therefore differ from
        `pp` and from each other. If the data do not determine a pose, it is the identity with zero translation, and the
        cameras are the assumed ones.
    """
    options = options_from(_either(ransac_opt, opt, "ransac_opt", "opt"), bundle_opt)
    pixels1, pixels2, _ = as_matches(points2D_1, points2D_2, None)
    camera = _unknown_camera(pixels1, pixels2, pp)
    found = api.estimate_relative_pose(
        pixels1,
        pixels2,
        camera,
        camera,
        same_camera=True,
        scores=scores,
        score_kind=score_kind,
        initial_model=_known_pose(initial_image_pair),
        options=options,
    )
    cameras = (
        records.PinholeCamera(list(each.params), focal_deviation=each.focal_deviation)
        for each in (found.camera1 or camera, found.camera2 or camera)
    )
    return ImagePair(_pose(found), *cameras), _info(found, options)


def _pose(found: RelativePoseResult | AbsolutePoseResult) -> records.CameraPose:
    """Return the pose, or the identity that PoseLib returns for a failure, because its callers always read R and t."""
    if found.R is None or found.t is None:
        return records.make_pose(np.eye(3), np.zeros(3))
    return records.make_pose(found.R, found.t)


def _unknown_camera(pixels1: Array, pixels2: Array, pp: ArrayLike) -> _Camera:
    """Return the camera to assume for pixels (N, 2) with a principal point (2,)."""
    centre = as_reals(pp, "pp").ravel()
    if centre.shape != (2,):
        raise ValueError(f"pp must have shape (2,), got {np.shape(pp)}")
    extent = centre
    if np.min(centre) <= 0:
        extent = np.max(np.abs(np.concatenate([pixels1, pixels2]) - centre), axis=0, initial=0.5)
    width, height = np.ceil(2 * extent).astype(int).tolist()
    usual = _Camera.of_unknown_focal(width, height)
    return replace(usual, params=(usual.fx, *centre.tolist()), distortion_deviation=0.0)  # PoseLib has no distortion


def _known_pose(given: Any) -> Any:
    """Return a pose, or an image pair as a record of pose and cameras; None if it is PoseLib's pose for a failure."""
    pose = getattr(given, "pose", given)
    if hasattr(pose, "t") and not np.any(pose.t):
        return None
    return given if pose is given else SimpleNamespace(R=pose.R, t=pose.t, camera1=given.camera1, camera2=given.camera2)


def _either(first: Any, second: Any, name1: str, name2: str) -> Any:
    if first is not None and second is not None:
        raise ValueError(f"{name1} and {name2} are the same argument; give one of them")
    return second if first is None else first


def _as_camera(camera: Any, name: str) -> _Camera:
    if camera is None:
        raise ValueError(f"{name} is missing: a dict with model, params, width and height")
    return as_camera(camera, name)


def _info(found: PixelResult, options: Options) -> dict[str, Any]:
    num_points = len(found.inliers)
    return {
        "refinements": -(-found.num_hypotheses // options.samples_per_round),
        "iterations": found.num_hypotheses,
        "num_inliers": found.num_inliers,
        "inlier_ratio": found.num_inliers / max(num_points, 1),
        "model_score": (num_points - found.consensus) * found.max_error_px**2 if found.success else sys.float_info.max,
        "inliers": found.inliers.tolist(),
        "success": found.success,
        "probabilities": found.probabilities,
        "confidence": found.confidence,
    }


def __getattr__(name: str) -> Any:
    return records.pose_type() if name == "CameraPose" else original_attribute("poselib", name, "poselib")


def __dir__() -> list[str]:
    return all_names("poselib", {**globals(), "CameraPose": None})
