"""PoseLib's estimators of two views and of absolute poses, answered by caransac. PoseLib itself is not needed.

    from caransac.integrations import poselib
    pose, info = poselib.estimate_relative_pose(x1, x2, camera1, camera2, {"max_epipolar_error": 1.0}, {})
    pair, info = poselib.estimate_shared_focal_relative_pose(x1, x2, principal_point, {"max_epipolar_error": 1.0}, {})
    pose, info = poselib.estimate_absolute_pose(points2d, points3d, camera, {"max_reproj_error": 12.0}, {})

Every name that is not here (poselib.p3p, poselib.Camera, ...) is PoseLib's, where that is installed; then poses are of
its type poselib.CameraPose, too, and its functions take them.

Both forms of PoseLib's settings are understood: the two dicts of version 2, and the nested one of version 3,
``{"max_error": 1.0, "ransac": {...}, "bundle": {...}}``. A `caransac.Options` in their place is taken as it is.
Settings that neither knows raise a ValueError, where PoseLib ignores them. `scores` and `score_kind` are new, as in
`caransac.estimate_relative_pose`.

Where the data determine no model, what comes back is PoseLib's: the identity, of a pose with a zero translation, so
that code written for PoseLib runs on. Ask ``info["success"]``, which is new, or ``info["num_inliers"]``, which is zero
then; `caransac.estimate_relative_pose` itself never answers with an identity.
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

REFINED_FOCAL_DEVIATION = 0.1  # of a focal length that is to be refined


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
    """``poselib.estimate_relative_pose``.

    Args:
        points2D_1: (N, 2) pixels in image 1.
        points2D_2: (N, 2) pixels in image 2.
        camera1_dict: a dict {model, params, width, height}, a poselib.Camera, or what `caransac.estimate_relative_pose`
            takes.
        camera2_dict: camera of image 2.
        ransac_opt: PoseLib's settings, see `poselib_settings`, also nested as in version 3, or a `caransac.Options`.
            `max_epipolar_error` or `max_error` (a Sampson distance in pixels, 1 by default), `success_prob` and `seed`
            mean what they do there. `max_iterations` is the limit of hypotheses, a million at most; left at 100,000,
            ours holds. With an equal `min_iterations` just that many are tried. The others have no influence.
        bundle_opt: settings of the refinement, checked and without influence.
        initial_pose: a poselib.CameraPose, or another pose that `caransac.estimate_relative_pose` takes as
            `initial_model`. As there, it may lose. One with a zero translation, which stands for no pose, is ignored.
        camera1: another name of `camera1_dict`.
        camera2: another name of `camera2_dict`.
        opt: another name of `ransac_opt`, as in version 3.
        scores: (N,) one number per match, see `caransac.estimate_relative_pose`.
        score_kind: what the scores are, "ratio" or "confidence"; needed with scores.

    Returns:
        The pose, the identity with a zero translation where the data determine none, and a dict with

        - refinements: int, rounds of estimation, each of which ends with a refinement,
        - iterations: int, hypotheses tried,
        - num_inliers, inlier_ratio: int, float,
        - model_score: float, squared Sampson distances summed up, each cut at the threshold; lower is better,
        - inliers: list of N bool,
        - success: whether the data determine a model (new),
        - probabilities: (N,) probability of each match to be right (new),
        - confidence: probability that the pose is right to five degrees (new).

        The model's score is in pixels squared (PoseLib's is on the normalised plane), and the largest float without a
        model.

    Raises:
        ValueError: a setting is unknown, an argument has a wrong shape or value; the message names it.
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
    """``poselib.estimate_fundamental``.

    Arguments and errors as in `estimate_relative_pose`, without the cameras.

    Returns:
        F (3, 3) of norm one, the identity where the data determine none, and the same dict.
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
    """``poselib.estimate_homography``.

    Arguments and errors as in `estimate_fundamental`. The threshold is `max_reproj_error`, 12 pixels by default, or in
    nested settings `max_error`, one pixel by default, as in versions 2 and 3. It bounds the root mean square of the
    distances in both images, which at equal scales is PoseLib's distance in the second.

    Returns:
        H (3, 3) of norm one with ``x2 ~ H x1``, the identity where the data determine none, and the same dict; the
        model's score is made of these distances.
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
    """``poselib.estimate_absolute_pose``.

    Arguments and errors as in `estimate_relative_pose`. The threshold is `max_reproj_error`, 12 pixels by default, or
    in nested settings `max_error`, one pixel by default, as in versions 2 and 3. With ``refine_focal_length`` in
    `bundle_opt`, the focal length counts as known to ten per cent and is refined with the pose.

    Returns:
        The pose with ``x = R X + t``, the identity with a zero translation where the data determine none, and the same
        dict, with these beside:

        - camera: dict {model, params, width, height} of the camera, refined where it was to be (new),
        - covariance: (6, 6) see `caransac.AbsolutePoseResult`, None without a pose (new).
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
    """``poselib.estimate_shared_focal_relative_pose``: the pose of one camera of unknown focal length.

    What is known beforehand of focal lengths depends on the size of the images, which is not part of the call: it is
    twice the principal point or, where this is zero, what the points take up. Where you know the size,
    `caransac.estimate_relative_pose` takes it. Other arguments and errors as in `estimate_relative_pose`.

    Args:
        points2D_1: (N, 2) pixels in image 1.
        points2D_2: (N, 2) pixels in image 2.
        pp: (2,) principal point of both images in pixels; zero for points that are relative to it.
        ransac_opt: as in `estimate_relative_pose`.
        bundle_opt: as in `estimate_relative_pose`.
        initial_image_pair: a poselib.ImagePair, or one of ours, as `initial_pose` there.
        opt: another name of `ransac_opt`, as in version 3.
        scores: (N,) one number per match.
        score_kind: what the scores are.

    Returns:
        Pose and cameras, and the same dict. The principal points are refined a little, and so may differ from `pp` and
        from each other. Where the data determine nothing, the pose is the identity with a zero translation, and the
        cameras are those that were assumed.
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
    """The pose, or PoseLib's for none: code written for it asks a pose for R and t in any case."""
    if found.R is None or found.t is None:
        return records.make_pose(np.eye(3), np.zeros(3))
    return records.make_pose(found.R, found.t)


def _unknown_camera(pixels1: Array, pixels2: Array, pp: ArrayLike) -> _Camera:
    """What to assume of the camera of pixels (N, 2) with a principal point (2,)."""
    centre = as_reals(pp, "pp").ravel()
    if centre.shape != (2,):
        raise ValueError(f"pp must have shape (2,), got {np.shape(pp)}")
    extent = centre
    if np.min(centre) <= 0:
        extent = np.max(np.abs(np.concatenate([pixels1, pixels2]) - centre), axis=0, initial=0.5)
    width, height = np.ceil(2 * extent).astype(int).tolist()
    usual = _Camera.of_unknown_focal(width, height)
    return replace(usual, params=(usual.fx, *centre.tolist()), distortion_deviation=0.0)  # as PoseLib has it


def _known_pose(given: Any) -> Any:
    """Return a pose, or a pair of images as a record of pose and cameras; None for the pose that stands for none."""
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
