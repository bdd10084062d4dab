"""Drop-in replacements for pycolmap's estimators of absolute poses; see `caransac.integrations.pycolmap`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from caransac import api
from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_ZOOM_DEVIATION
from caransac.given_cameras import as_camera
from caransac.integrations.foreign_settings import Meanings, drop_default, is_on, mean_nothing, must_be, translate
from caransac.integrations.pycolmap_settings import as_options, as_settings, common_entries, load_pycolmap
from caransac.options import Options, ScoreKind

if TYPE_CHECKING:
    import pycolmap

MAX_ERROR_PX, MAX_NUM_TRIALS = 12.0, 10_000  # COLMAP's defaults
REFINED_FOCAL_DEVIATION = 0.1  # relative prior deviation of a focal length that the caller wants refined
ESTIMATION_SETTINGS = ("estimate_focal_length", "ransac")
REFINEMENT_SETTINGS: Meanings = {  # our refinement has its own loss and stopping rule
    **mean_nothing("gradient_tolerance max_num_iterations loss_function_scale print_summary"),
    **mean_nothing("position_prior_in_world position_prior_covariance"),
    **mean_nothing("refine_focal_length"),  # see `estimate_and_refine_absolute_pose`
    "refine_extra_params": must_be(False),
    "use_position_prior": must_be(False),
}


def estimate_absolute_pose(
    points2D: ArrayLike,
    points3D: ArrayLike,
    camera: Any,
    estimation_options: pycolmap.AbsolutePoseEstimationOptions | Mapping[str, Any] | Options | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """Replace ``pycolmap.estimate_absolute_pose``.

    It is `estimate_and_refine_absolute_pose`, because our poses are always refined.
    """
    return estimate_and_refine_absolute_pose(
        points2D, points3D, camera, estimation_options, scores=scores, score_kind=score_kind
    )


def estimate_and_refine_absolute_pose(
    points2D: ArrayLike,
    points3D: ArrayLike,
    camera: Any,
    estimation_options: pycolmap.AbsolutePoseEstimationOptions | Mapping[str, Any] | Options | None = None,
    refinement_options: pycolmap.AbsolutePoseRefinementOptions | Mapping[str, Any] | None = None,
    return_covariance: bool = False,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """Replace ``pycolmap.estimate_and_refine_absolute_pose``. Needs pycolmap, whose Rigid3d it returns.

    Args:
        points2D: (N, 2) pixels.
        points3D: (N, 3) 3D points. A keypoint with several points counts as one match.
        camera: a pycolmap.Camera, a dict {model, params, width, height}, or any camera that
            `caransac.estimate_absolute_pose` accepts. As in pycolmap, an estimated or refined focal length is written
            into a given pycolmap.Camera.
        estimation_options: a pycolmap.AbsolutePoseEstimationOptions, a dict of its fields, or a `caransac.Options`. In
            `ransac`, `max_error` (12 pixels by default), `confidence` and `random_seed` have pycolmap's meaning.
            `max_num_trials` is the maximum number of hypotheses, up to a million; pycolmap's default of 10,000 is
            replaced by ours. With `estimate_focal_length`, the focal length is treated as known to 25 per cent.
        refinement_options: a pycolmap.AbsolutePoseRefinementOptions or a dict of its fields. With
            `refine_focal_length`, the focal length is treated as known to ten per cent. `refine_extra_params` and
            `use_position_prior` raise an error. All other settings are ignored.
        return_covariance: whether to return the covariance.
        scores: (N,) quality of each match; see `caransac.estimate_absolute_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).

    Returns:
        A dict with cam_from_world (pycolmap.Rigid3d), num_inliers, inlier_mask (N,) bool, probabilities (N,),
        confidence and, if requested, the covariance (6, 6) of rotation vector and translation; or None if the data
        do not determine a pose.

    Raises:
        ValueError: a setting is unknown, or an argument has a wrong shape or value; the message names it.
        ImportError: pycolmap is not installed.
    """
    pycolmap = load_pycolmap()
    options, estimate_focal = _estimation(estimation_options)
    refinement = as_settings(refinement_options, "refinement_options", "pycolmap.AbsolutePoseRefinementOptions")
    translate(Options(), refinement, REFINEMENT_SETTINGS, "setting of refinement_options")
    refine_focal = is_on(refinement.get("refine_focal_length"), "refine_focal_length")
    deviation = REFINED_FOCAL_DEVIATION if refine_focal else 0.0
    deviation = UNKNOWN_ZOOM_DEVIATION if estimate_focal else deviation
    lens = as_camera(camera, "camera")
    if deviation > 0:
        lens = replace(lens, focal_deviation=deviation)
    found = api.estimate_absolute_pose(points2D, points3D, lens, scores=scores, score_kind=score_kind, options=options)
    if found.R is None or found.t is None:
        return None
    if deviation > 0 and found.camera is not None:
        _write_focal(camera, found.camera)
    assert found.covariance is not None
    pose = pycolmap.Rigid3d(pycolmap.Rotation3d(found.R), found.t)
    covariance = {"covariance": found.covariance[:6, :6]} if return_covariance else {}
    return {"cam_from_world": pose, **common_entries(found), **covariance}


def _estimation(settings: Any) -> tuple[Options, bool]:
    """Return pycolmap's settings as options, and whether to estimate the focal length."""
    if isinstance(settings, Options):
        return settings, False
    asked = as_settings(settings, "estimation_options", "pycolmap.AbsolutePoseEstimationOptions")
    if unknown := sorted(set(asked) - set(ESTIMATION_SETTINGS)):
        raise ValueError(
            f"unknown setting of estimation_options {unknown[0]!r}; it has {', '.join(ESTIMATION_SETTINGS)}"
        )
    ransac = as_settings(asked.get("ransac"), "ransac", "pycolmap.RANSACOptions")
    drop_default(ransac, "max_num_trials", MAX_NUM_TRIALS)
    estimate_focal = is_on(asked.get("estimate_focal_length"), "estimate_focal_length")
    return as_options({"max_error": MAX_ERROR_PX} | ransac, "ransac"), estimate_focal


def _write_focal(camera: Any, found: Camera) -> None:
    """Write a focal length into a pycolmap.Camera, as pycolmap does. Other cameras do not change."""
    places = getattr(camera, "focal_length_idxs", None)
    if places is not None:
        params = list(camera.params)
        for place, focal in zip(places(), (found.fx, found.fy), strict=False):
            params[place] = focal
        camera.params = params
