"""PoseLib: LO-RANSAC with truncated LM inside and Cauchy LM at the end."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.contract import (
    ADAPTIVE_SUCCESS_PROBABILITY,
    Answer,
    Estimator,
    HomographyEstimator,
    ProblemName,
    RunSettings,
)
from caransac_lab.datasets import Pair

MIN_ITERATIONS = 100  # as in posebench; PoseLib's default of 1000 is slow for easy pairs
MIN_MATCHES = {"E": 5, "F": 7, "H": 4}


def run(pair: Pair, problem: ProblemName, settings: RunSettings, *, prosac: bool) -> Answer | None:
    """Run PoseLib's estimators. Without scores, sampling is uniform."""
    import poselib

    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    fewest, most = settings.limits
    options = {
        "max_epipolar_error": settings.threshold_px,
        "min_iterations": MIN_ITERATIONS if fewest is None else fewest,
        "max_iterations": most,
        "success_prob": ADAPTIVE_SUCCESS_PROBABILITY,
        "progressive_sampling": prosac and pair.scores is not None,
        "seed": settings.seed,
    }
    if problem == "F":
        F, info = poselib.estimate_fundamental(pair.points1, pair.points2, options, {})
        matrix = np.asarray(F, float)
        found = Answer(matrix=matrix, iterations=info["iterations"]) if np.any(matrix) else None
    else:
        cameras = pair.camera1.to_dict(), pair.camera2.to_dict()
        pose, info = poselib.estimate_relative_pose(pair.points1, pair.points2, *cameras, options, {})
        found = Answer(pose=(np.asarray(pose.R), np.asarray(pose.t)), iterations=info["iterations"])
    return found if info["num_inliers"] > 0 else None  # PoseLib reports a failure as an identity


def run_homography(pair: PlanePair, settings: RunSettings, *, min_iterations: int | None = None) -> Array | None:
    """Estimate a homography by PoseLib with PROSAC. With `min_iterations`, its own stopping rule applies after them."""
    import poselib

    if len(pair.points1) < MIN_MATCHES["H"]:
        return None
    _, most = settings.limits
    options = {
        "max_reproj_error": settings.threshold_px,
        "min_iterations": most if min_iterations is None else min_iterations,
        "max_iterations": most,
        "success_prob": ADAPTIVE_SUCCESS_PROBABILITY,
        "progressive_sampling": True,
        "seed": settings.seed,
    }
    H, info = poselib.estimate_homography(pair.points1, pair.points2, options, {})
    return np.asarray(H, float) if info["num_inliers"] > 0 else None


ESTIMATORS = tuple(
    Estimator(
        name=name,
        about=f"LO-RANSAC with LM inside and at the end, {sampling}",
        module="poselib",
        package="poselib",
        min_version="2.0.4",
        run=partial(run, prosac=prosac),
        refines=True,
    )
    for name, sampling, prosac in (("PoseLib", "uniform sampling", False), ("PoseLib PROSAC", "PROSAC", True))
)
HOMOGRAPHY_ESTIMATORS = tuple(
    HomographyEstimator(
        name=name,
        about=f"LO-RANSAC with LM inside and at the end, PROSAC{more}",
        module="poselib",
        package="poselib",
        min_version="2.0.4",
        run=partial(run_homography, min_iterations=fewest),
        max_ratio=max_ratio,
    )
    for name, more, fewest, max_ratio in (
        ("PoseLib", "", None, 0.85),
        ("PoseLib, early stop", ", stops by itself after 100 hypotheses", 100, 0.85),
        ("PoseLib, all matches", ", without the filter", None, math.inf),
    )
)
