"""DEGENSAC: LO-RANSAC for fundamental matrices that handles dominant planes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.contract import Answer, Estimator, HomographyEstimator, ProblemName, RunSettings
from caransac_lab.datasets import Pair

MIN_MATCHES = 8


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Estimate the fundamental matrix, with the degeneracy check."""
    import pydegensac

    assert problem == "F"
    matrix = _find(pydegensac.findFundamentalMatrix, pair, settings)
    return None if matrix is None else Answer(matrix=matrix)


def run_homography(pair: PlanePair, settings: RunSettings) -> Array | None:
    """Estimate the homography."""
    import pydegensac

    return _find(pydegensac.findHomography, pair, settings)


def _find(find: Callable[..., Any], pair: Pair | PlanePair, settings: RunSettings) -> Array | None:
    """Return the matrix (3, 3) from a function of the library, or None if it has no inliers."""
    if len(pair.points1) < MIN_MATCHES:
        return None
    matrix, inliers = find(
        pair.points1,
        pair.points2,
        px_th=settings.threshold_px,
        conf=settings.success_probability,
        max_iters=settings.limits[1],
        seed=settings.seed,
    )
    return np.asarray(matrix, float) if np.any(inliers) else None


ESTIMATORS = (
    Estimator(
        name="DEGENSAC",
        about="pydegensac, Sampson distance, check for degeneracy",
        problems=("F",),
        module="pydegensac",
        package="pydegensac",
        min_version="0.2",
        run=run,
    ),
)
HOMOGRAPHY_ESTIMATORS = (
    HomographyEstimator(
        name="DEGENSAC",
        about="pydegensac, LO-RANSAC, uniform sampling, Sampson distance",
        module="pydegensac",
        package="pydegensac",
        min_version="0.2",
        run=run_homography,
        max_error_px=2.0,
    ),
)
