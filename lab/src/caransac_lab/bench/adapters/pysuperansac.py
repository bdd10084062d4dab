"""SupeRANSAC by its authors, with the settings of their own experiments."""

from __future__ import annotations

from typing import Any

import numpy as np

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.contract import Answer, Estimator, HomographyEstimator, ProblemName, RunSettings
from caransac_lab.datasets import Pair

MIN_MATCHES = 8
SAMPLE_SIZE = {"E": 5, "F": 7, "H": 4}
LOCAL_OPTIMISATION = {"E": "NestedRANSAC", "F": "GCRANSAC", "H": "GCRANSAC"}
FINAL_OPTIMISATION = {"E": "LSQ", "F": "LSQ", "H": "IteratedLSQ"}
GRID_DENSITY = {"E": 4, "F": 3, "H": 6}  # density of the grid that defines neighbours


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Estimate the essential or fundamental matrix."""
    import pysuperansac

    if len(pair.points1) < MIN_MATCHES:
        return None
    matches, shift1, shift2 = _shifted(pair)
    sizes = [float(length) + 1 for length in matches.max(axis=0)]  # contain all points; cameras may have no size
    config = _config(problem, settings, "PROSAC" if pair.scores is not None else "Uniform")
    if problem == "F":
        matrix, inliers, _, iterations = pysuperansac.estimateFundamentalMatrix(matches, sizes, [], config)
        matrix = shift2.T @ matrix @ shift1
    else:
        cameras = shift1 @ pair.camera1.K, shift2 @ pair.camera2.K
        matrix, inliers, _, iterations = pysuperansac.estimateEssentialMatrix(matches, *cameras, sizes, [], config)
    if len(inliers) < SAMPLE_SIZE[problem]:
        return None
    return Answer(matrix=np.asarray(matrix, float), iterations=iterations)


def run_homography(pair: PlanePair, settings: RunSettings) -> Array | None:
    """Estimate the homography."""
    import pysuperansac

    if len(pair.points1) < MIN_MATCHES:
        return None
    matches, shift1, shift2 = _shifted(pair)
    sizes = np.maximum([*pair.size1, *pair.size2], matches.max(axis=0) + 1).tolist()
    H, inliers, _, _ = pysuperansac.estimateHomography(matches, sizes, [], _config("H", settings, "PROSAC"))
    return np.asarray(np.linalg.inv(shift2) @ H @ shift1) if len(inliers) >= SAMPLE_SIZE["H"] else None


def _shifted(pair: Pair | PlanePair) -> tuple[Array, Array, Array]:
    """Shift matches (n, 4) to non-negative coordinates, which its grid requires. Return them and both shifts (3, 3)."""
    matches = np.ascontiguousarray(np.concatenate([pair.points1, pair.points2], axis=1))
    offsets = np.maximum(0.0, -matches.min(axis=0))
    shift1, shift2 = np.eye(3), np.eye(3)
    shift1[:2, 2], shift2[:2, 2] = offsets[:2], offsets[2:]
    return matches + offsets, shift1, shift2


def _config(problem: str, settings: RunSettings, sampler: str) -> Any:
    """Return a new configuration for every call, because the call rescales it."""
    import pysuperansac

    optimisations = pysuperansac.LocalOptimizationType
    config = pysuperansac.RANSACSettings()
    fewest, config.max_iterations = settings.limits
    if fewest is not None:
        config.min_iterations = fewest
    config.inlier_threshold = settings.threshold_px
    config.confidence = settings.success_probability
    config.sampler = getattr(pysuperansac.SamplerType, sampler)
    config.scoring = pysuperansac.ScoringType.MAGSAC
    config.local_optimization = getattr(optimisations, LOCAL_OPTIMISATION[problem])
    config.final_optimization = getattr(optimisations, FINAL_OPTIMISATION[problem])
    config.neighborhood_settings.neighborhood_grid_density = GRID_DENSITY[problem]
    return config


ESTIMATORS = (
    Estimator(
        name="SupeRANSAC",
        about="pysuperansac, PROSAC, MAGSAC++ scores, nested RANSAC (E) or graph-cut (F) local optimisation",
        module="pysuperansac",
        package="pysuperansac",
        min_version="1.0",
        run=run,
        seeding="none",
        max_error_px=5.0,
    ),
)
HOMOGRAPHY_ESTIMATORS = (
    HomographyEstimator(
        name="SupeRANSAC",
        about="pysuperansac, PROSAC, MAGSAC++ scores, graph-cut local optimisation, iterated least squares",
        module="pysuperansac",
        package="pysuperansac",
        min_version="1.0",
        run=run_homography,
        max_error_px=5.0,
    ),
)
