"""Estimators for posebench (https://github.com/PoseLib/posebench): docs/benchmark.md shows how to add them to it.

posebench calls an estimator with a dictionary: points x1 and x2 (n, 2), cameras cam1 and cam2, the true R and t, and
options. The estimator returns the errors of rotation and translation in degrees, and its seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import caransac
from caransac.camera import Camera
from caransac.geometry import (
    Array,
    angle_between_deg,
    essential_from_fundamental,
    poses_from_essential,
    rotation_angle_deg,
)
from caransac.options import in_rounds
from caransac_lab.metrics import FAILURE_DEG

Instance = Mapping[str, Any]


def essential_caransac(instance: Instance, **options: Any) -> dict[str, float]:
    """Estimate a pose. Options of `caransac.Options` replace those of posebench; the threshold is automatic."""
    arguments = [instance[name] for name in ("x1", "x2", "cam1", "cam2")]
    started = time.perf_counter()
    found = caransac.estimate_relative_pose(*arguments, options=options_of(instance, **options))
    seconds = time.perf_counter() - started
    poses = [] if found.R is None or found.t is None else [(found.R, found.t)]
    return least_errors(instance, poses) | {"rt": seconds}


def fundamental_caransac(instance: Instance, **options: Any) -> dict[str, float]:
    """Estimate a fundamental matrix. As in posebench, the best of its four poses counts."""
    started = time.perf_counter()
    found = caransac.estimate_fundamental(instance["x1"], instance["x2"], options=options_of(instance, **options))
    seconds = time.perf_counter() - started
    poses: Iterable[tuple[Array, Array]] = []
    if found.F is not None:
        K1, K2 = (Camera.from_dict(instance[name]).K for name in ("cam1", "cam2"))
        poses = zip(*poses_from_essential(essential_from_fundamental(found.F, K1, K2)), strict=True)
    return least_errors(instance, poses) | {"rt": seconds}


def options_of(instance: Instance, **options: Any) -> caransac.Options:
    """Return posebench's limit of iterations and success probability as our options."""
    given = instance["opt"]["ransac"]
    limits = in_rounds(given["max_iterations"]) | {"success_probability": given["success_prob"]}
    return caransac.Options(**limits | options)


def least_errors(instance: Instance, poses: Iterable[tuple[Array, Array]]) -> dict[str, float]:
    """Return the errors of the pose with the smallest sum of errors; 180 degrees without a pose."""
    errors = (
        (rotation_angle_deg(instance["R"] @ R.T), angle_between_deg(instance["t"].ravel(), t.ravel())) for R, t in poses
    )
    rotation, translation = min(errors, key=sum, default=(FAILURE_DEG, FAILURE_DEG))
    return {"rot": rotation, "t": translation}
