"""SupeRANSAC by its authors: homographies."""

from __future__ import annotations

import numpy as np

from caransac.bench.contract import HomographyEstimator, RunSettings
from caransac.geometry import Array
from caransac.synthetic import PlanePair

MIN_MATCHES = 8


def run_homography(pair: PlanePair, settings: RunSettings) -> Array | None:
    """Its homography with the settings of the authors' own experiments."""
    import pysuperansac

    if len(pair.points1) < MIN_MATCHES:
        return None
    config = pysuperansac.RANSACSettings()  # a new one for every call, because the call rescales it
    config.inlier_threshold = settings.threshold_px
    config.min_iterations = config.max_iterations = settings.limits[1]
    config.confidence = settings.success_probability
    config.sampler = pysuperansac.SamplerType.PROSAC
    config.scoring = pysuperansac.ScoringType.MAGSAC
    config.local_optimization = pysuperansac.LocalOptimizationType.GCRANSAC
    config.final_optimization = pysuperansac.LocalOptimizationType.IteratedLSQ
    config.neighborhood_settings.neighborhood_grid_density = 6
    matches = np.ascontiguousarray(np.concatenate([pair.points1, pair.points2], axis=1))
    H, inliers, _, _ = pysuperansac.estimateHomography(matches, [*pair.size1, *pair.size2], [], config)
    return np.asarray(H, float) if len(inliers) >= 4 else None


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
