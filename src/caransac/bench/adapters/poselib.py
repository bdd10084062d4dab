"""PoseLib: LO-RANSAC with truncated LM inside and Cauchy LM at the end."""

from __future__ import annotations

from functools import partial

import numpy as np

from caransac.bench.contract import ADAPTIVE_SUCCESS_PROBABILITY, Answer, Estimator, ProblemName, RunSettings
from caransac.datasets import Pair

MIN_ITERATIONS = 1000  # PoseLib's own
MIN_MATCHES = {"E": 5, "F": 7}


def run(pair: Pair, problem: ProblemName, settings: RunSettings, *, prosac: bool) -> Answer | None:
    """PoseLib's estimators."""
    import poselib

    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    fewest, most = settings.limits
    options = {
        "max_epipolar_error": settings.max_error_px,
        "min_iterations": MIN_ITERATIONS if fewest is None else fewest,
        "max_iterations": most,
        "success_prob": ADAPTIVE_SUCCESS_PROBABILITY,
        "progressive_sampling": prosac,
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
