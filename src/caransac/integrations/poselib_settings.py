"""Conversion of PoseLib's settings, of versions 2 and 3, to options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caransac.integrations.foreign_settings import (
    Meanings,
    at_least,
    at_most,
    mean_nothing,
    means,
    must_be,
    translate,
    translate_limited,
)
from caransac.options import Options

RANSAC_SETTINGS: Meanings = {
    "max_error": means("max_error_px"),
    "max_epipolar_error": means("max_error_px"),
    "max_iterations": at_most,
    "min_iterations": at_least,
    "success_prob": means("success_probability"),
    "seed": means("seed"),
    "real_focal_check": must_be(False),
    "tangent_sampson": must_be(False),
    # Ignored: the threshold of absolute poses; the order of the points (pass scores); initial models are always tried.
    **mean_nothing(
        "max_reproj_error progressive_sampling max_prosac_iterations dyn_num_trials_mult score_initial_model"
    ),
}
HOMOGRAPHY_SETTINGS = {
    **RANSAC_SETTINGS,
    "max_reproj_error": means("max_error_px"),
    **mean_nothing("max_epipolar_error"),  # threshold of relative poses
}
# Thresholds of homographies in pixels, PoseLib's defaults: flat settings of version 2, nested settings of version 3.
FLAT_REPROJ_ERROR, NESTED_REPROJ_ERROR = 12.0, 1.0
# Our refinement has its own loss and stopping rule.
BUNDLE_SETTINGS: Meanings = {
    **mean_nothing("max_iterations loss_type loss_scale gradient_tol step_tol initial_lambda min_lambda max_lambda"),
    **mean_nothing("relative_cost_tol lambda_factor lambda_update damping verbose"),  # new in version 3
    "refine_focal_length": must_be(False),
    "refine_principal_point": must_be(False),
    "refine_extra_params": must_be(False),
}


def options_from(
    ransac: Mapping[str, Any] | Options | None,
    bundle: Mapping[str, Any] | None,
    settings: Meanings = RANSAC_SETTINGS,
    defaults: Options = Options(max_error_px=1.0),  # noqa: B008  # frozen; PoseLib's threshold
) -> Options:
    """Return the defaults, changed by PoseLib's settings of either version."""
    translate(Options(), as_dict(bundle, "bundle_opt"), BUNDLE_SETTINGS, "setting of bundle_opt")
    if isinstance(ransac, Options):
        return ransac
    flat = as_dict(ransac, "ransac_opt")
    translate(Options(), as_dict(flat.pop("bundle", None), "bundle"), BUNDLE_SETTINGS, "setting of bundle")
    flat |= as_dict(flat.pop("ransac", None), "ransac")
    what = "setting of ransac_opt"
    return translate_limited(defaults, flat, settings, what, fewest="min_iterations", most="max_iterations")


def as_dict(settings: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """Return a copy of the settings as a dict. Raise a ValueError that names them if they are not a mapping."""
    if not isinstance(settings, Mapping | None):
        raise ValueError(f"{name} must be a dict, not a {type(settings).__name__}")
    return dict(settings or {})
