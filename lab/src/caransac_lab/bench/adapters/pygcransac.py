"""GC-RANSAC by its authors."""

from __future__ import annotations

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.adapters.gcransac_interface import find_homography, find_matrix
from caransac_lab.bench.contract import Answer, Estimator, HomographyEstimator, ProblemName, RunSettings
from caransac_lab.datasets import Pair

GRID, RADIUS = 1, 0


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Run its estimators. Its mask is not used, because some releases fill it with one value."""
    import pygcransac

    for neighbourhood in (GRID, RADIUS):  # the grid, its default, fails if it is too empty
        options = {"threshold": settings.threshold_px, "neighborhood": neighbourhood}
        found = find_matrix(pygcransac, pair, problem, settings, image_sizes, **options)
        if found is not None:
            return found
    return None


def run_homography(pair: PlanePair, settings: RunSettings) -> Array | None:
    """Estimate the homography with PROSAC sampling."""
    import pygcransac

    # Its sequential test, on by default, rejects right models if few matches are right. So does a high coherence
    # weight.
    options = {"threshold": settings.threshold_px, "use_sprt": False, "spatial_coherence_weight": 0.1}
    return find_homography(pygcransac, pair, settings, (*pair.size1[::-1], *pair.size2[::-1]), **options)


def image_sizes(pair: Pair) -> tuple[float, ...]:
    """Return height and width of both images as integers, so that they contain all points."""
    lengths = (length for points in (pair.points1, pair.points2) for length in points.max(axis=0)[::-1])
    return tuple(int(length) + 1 for length in lengths)


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
HOMOGRAPHY_ESTIMATORS = (
    HomographyEstimator(
        name="GC-RANSAC",
        about="pygcransac, PROSAC, graph-cut local optimisation",
        module="pygcransac",
        package="pygcransac",
        min_version="0.1",
        run=run_homography,
    ),
)
