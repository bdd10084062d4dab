"""GC-RANSAC by its authors."""

from __future__ import annotations

import numpy as np

from caransac.bench.contract import Answer, Estimator, ProblemName, RunSettings
from caransac.datasets import Pair

MIN_ITERATIONS = 50  # pygcransac's own
MIN_MATCHES = {"E": 8, "F": 10}
PROSAC, GRID, RADIUS = 1, 1, 0


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Its estimators with PROSAC sampling. The mask it returns is not used: some releases fill it with one value."""
    import pygcransac

    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    fewest, most = settings.limits
    options = {
        "probabilities": np.empty(0),
        "sampler": PROSAC,
        "threshold": settings.max_error_px,
        "conf": settings.confidence,
        "min_iters": MIN_ITERATIONS if fewest is None else fewest,
        "max_iters": most,
    }
    matches = np.ascontiguousarray(np.concatenate([pair.points1, pair.points2], axis=1))
    sizes = [int(length) + 1 for points in (pair.points1, pair.points2) for length in points.max(axis=0)[::-1]]
    for neighbourhood in (GRID, RADIUS):  # the grid, its default, refuses to work where few matches leave it empty
        options["neighborhood"] = neighbourhood
        if problem == "F":
            matrix, _ = pygcransac.findFundamentalMatrix(matches, *sizes, **options)
        else:
            matrix, _ = pygcransac.findEssentialMatrix(matches, pair.camera1.K, pair.camera2.K, *sizes, **options)
        if matrix is not None:
            return Answer(matrix=np.asarray(matrix, float))
    return None


ESTIMATORS = (
    Estimator(
        name="GC-RANSAC",
        about="pygcransac, PROSAC, graph-cut local optimisation",
        module="pygcransac",
        package="pygcransac",
        min_version="0.1",
        run=run,
        seeding="none",
    ),
)
