"""pycolmap's estimate_essential_matrix and estimate_fundamental_matrix, answered by caransac.

    from caransac.integrations import pycolmap as robust
    found = robust.estimate_essential_matrix(points2D1, points2D2, camera1, camera2, {"max_error": 1.0})

Cameras and settings are pycolmap's objects, or dicts. Returns are pycolmap's, with `probabilities` and `confidence`
beside them; None where the data determine no model, as there. `scores` and `score_kind` are new, as in
`caransac.estimate_relative_pose`.

COLMAP puts the centre of the top-left pixel at (0.5, 0.5). Nothing is to be shifted as long as the points and the
principal point are in the same convention: the pose depends on their difference alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from caransac import api
from caransac.camera import as_camera
from caransac.integrations.settings import (
    Meanings,
    at_least,
    at_most,
    means,
    means_nothing,
    translate_limited,
)
from caransac.options import Options, ScoreKind
from caransac.results import Result

if TYPE_CHECKING:
    import pycolmap

MAX_ERROR_PX = 4.0  # COLMAP's default

SETTINGS: Meanings = {
    "max_error": means("max_error_px"),
    "confidence": means("success_probability"),
    "max_num_trials": at_most,
    "min_num_trials": at_least,
    "random_seed": lambda seed: {} if seed == -1 else {"seed": seed},  # -1: any seed will do
    "min_inlier_ratio": means_nothing,  # in COLMAP a limit on hypotheses too
    "dyn_num_trials_multiplier": means_nothing,
    "num_threads": means_nothing,
}


def estimate_essential_matrix(
    points2D1: ArrayLike,
    points2D2: ArrayLike,
    camera1: Any,
    camera2: Any,
    estimation_options: pycolmap.RANSACOptions | Mapping[str, Any] | Options | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """``pycolmap.estimate_essential_matrix``. Needs pycolmap, whose Rigid3d it returns.

    Args:
        points2D1: (N, 2) pixels in image 1.
        points2D2: (N, 2) pixels in image 2.
        camera1: a pycolmap.Camera, a dict {model, params, width, height}, or what `caransac.estimate_relative_pose`
            takes.
        camera2: camera of image 2.
        estimation_options: a pycolmap.RANSACOptions, a dict of its fields, or a `caransac.Options`. `max_error` (a
            Sampson distance in pixels, 4 by default), `confidence` and `random_seed` mean what they do there.
            `max_num_trials` is the limit of hypotheses; left at 100,000, ours holds. With an equal `min_num_trials`
            just that many are tried. The others have no influence.
        scores: (N,) one number per match, see `caransac.estimate_relative_pose`.
        score_kind: what the scores are, "ratio" or "confidence"; needed with scores.

    Returns:
        A dict with E (3, 3), cam2_from_cam1 (pycolmap.Rigid3d), num_inliers, inlier_mask (N,) bool, probabilities (N,)
        and confidence, or None where the data determine no pose.

    Raises:
        ValueError: a setting is unknown, an argument has a wrong shape or value; the message names it.
        ImportError: pycolmap is not installed.
    """
    try:
        import pycolmap
    except ImportError as error:
        raise ImportError("cam2_from_cam1 needs pycolmap: pip install 'caransac[colmap]'") from error

    found = api.estimate_relative_pose(
        points2D1,
        points2D2,
        as_camera(camera1, "camera1"),
        as_camera(camera2, "camera2"),
        scores=scores,
        score_kind=score_kind,
        options=_options(estimation_options),
    )
    if found.R is None or found.t is None:
        return None
    pose = pycolmap.Rigid3d(pycolmap.Rotation3d(found.R), found.t)
    return {"E": found.E, "cam2_from_cam1": pose, **_common_entries(found)}


def estimate_fundamental_matrix(
    points2D1: ArrayLike,
    points2D2: ArrayLike,
    estimation_options: pycolmap.RANSACOptions | Mapping[str, Any] | Options | None = None,
    use_sampson_refinement: bool = True,  # noqa: ARG001  # the refinement always is one of Sampson distances
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """``pycolmap.estimate_fundamental_matrix``; pycolmap is not needed.

    Arguments and errors as in `estimate_essential_matrix`, without the cameras. `use_sampson_refinement` has no
    influence.

    Returns:
        A dict with F (3, 3), num_inliers, inlier_mask (N,) bool, probabilities (N,) and confidence, or None where the
        data determine no matrix.
    """
    options = _options(estimation_options)
    found = api.estimate_fundamental(points2D1, points2D2, scores=scores, score_kind=score_kind, options=options)
    return None if found.F is None else {"F": found.F, **_common_entries(found)}


def _options(settings: pycolmap.RANSACOptions | Mapping[str, Any] | Options | None) -> Options:
    if isinstance(settings, Options):
        return settings
    if settings is not None and hasattr(settings, "todict"):
        settings = settings.todict()
    if not isinstance(settings, Mapping | None):
        raise ValueError(f"estimation_options must be a pycolmap.RANSACOptions, not a {type(settings).__name__}")
    defaults, what = Options(max_error_px=MAX_ERROR_PX), "setting of estimation_options"
    return translate_limited(defaults, settings or {}, SETTINGS, what, fewest="min_num_trials", most="max_num_trials")


def _common_entries(found: Result) -> dict[str, Any]:
    return {
        "num_inliers": found.num_inliers,
        "inlier_mask": found.inliers,
        "probabilities": found.probabilities,
        "confidence": found.confidence,
    }
