"""Conversion of pycolmap's settings to options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caransac.integrations.foreign_settings import Meanings, at_least, at_most, mean_nothing, means, translate_limited
from caransac.options import Options
from caransac.results import Result

MAX_ERROR_PX = 4.0  # COLMAP's default

SETTINGS: Meanings = {
    "max_error": means("max_error_px"),
    "confidence": means("success_probability"),
    "max_num_trials": at_most,
    "min_num_trials": at_least,
    "random_seed": lambda seed: {} if seed == -1 else {"seed": seed},  # -1 means any seed
    **mean_nothing("min_inlier_ratio dyn_num_trials_multiplier num_threads"),  # the first only limits hypotheses
}


def load_pycolmap() -> Any:
    """Return the module pycolmap."""
    try:
        import pycolmap
    except ImportError as error:
        raise ImportError("pycolmap's objects need pycolmap: pip install 'caransac[colmap]'") from error
    return pycolmap


def common_entries(found: Result) -> dict[str, Any]:
    """Return the entries that the dicts of all answers have."""
    return {
        "num_inliers": found.num_inliers,
        "inlier_mask": found.inliers,
        "probabilities": found.probabilities,
        "confidence": found.confidence,
    }


def as_settings(settings: Any, name: str, kind: str) -> dict[str, Any]:
    """Return settings (an object of pycolmap, a dict or None) as a dict. Errors name the argument and its type."""
    if settings is not None and hasattr(settings, "todict"):
        settings = settings.todict()
    if not isinstance(settings, Mapping | None):
        raise ValueError(f"{name} must be a {kind}, not a {type(settings).__name__}")
    return dict(settings or {})


def as_options(settings: Any, name: str = "estimation_options") -> Options:
    """Return the options of a pycolmap.RANSACOptions, of a dict of its fields, or of a `caransac.Options`."""
    if isinstance(settings, Options):
        return settings
    asked = as_settings(settings, name, "pycolmap.RANSACOptions")
    defaults, what = Options(max_error_px=MAX_ERROR_PX), f"setting of {name}"
    return translate_limited(defaults, asked, SETTINGS, what, fewest="min_num_trials", most="max_num_trials")
