"""MAGSAC++ by its authors."""

from __future__ import annotations

import numpy as np

from caransac.bench.contract import Answer, Estimator, ProblemName, RunSettings
from caransac.datasets import Pair
from caransac.geometry import Array

MIN_ITERATIONS = 50  # pymagsac's own
MIN_MATCHES = {"E": 8, "F": 10}  # it crashes on fewer
PROSAC = 1


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Its estimators with PROSAC sampling."""
    import pymagsac

    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    fewest, most = settings.limits
    options = {
        "probabilities": np.empty(0),
        "sampler": PROSAC,
        "use_magsac_plus_plus": True,
        "sigma_th": settings.max_error_px,
        "conf": settings.confidence,
        "min_iters": MIN_ITERATIONS if fewest is None else fewest,
        "max_iters": most,
    }
    matches = np.ascontiguousarray(np.concatenate([pair.points1, pair.points2], axis=1))
    sizes = (*image_size(pair.points1), *image_size(pair.points2))
    if problem == "F":
        matrix, _ = pymagsac.findFundamentalMatrix(matches, *sizes, **options)
    else:
        matrix, _ = pymagsac.findEssentialMatrix(matches, pair.camera1.K, pair.camera2.K, *sizes, **options)
    return None if matrix is None else Answer(matrix=np.asarray(matrix, float))


def image_size(points: Array) -> tuple[float, float]:
    """Width and height that hold all points (n, 2): cameras need not know theirs, and the samplers' grids want one."""
    width, height = points.max(axis=0) + 1
    return float(width), float(height)


ESTIMATORS = (
    Estimator(
        name="MAGSAC++",
        about="pymagsac, PROSAC; its threshold is the largest noise it considers",
        module="pymagsac",
        package="pymagsac",
        min_version="0.2",
        run=run,
        seeding="none",
        max_error_px=3.0,
    ),
)
