"""MAGSAC++ by its authors."""

from __future__ import annotations

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.adapters.gcransac_interface import find_homography, find_matrix
from caransac_lab.bench.contract import Answer, Estimator, HomographyEstimator, ProblemName, RunSettings
from caransac_lab.datasets import Pair


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Run its estimators."""
    import pymagsac

    options = {"use_magsac_plus_plus": True, "sigma_th": settings.threshold_px}
    return find_matrix(pymagsac, pair, problem, settings, image_sizes, **options)


def run_homography(pair: PlanePair, settings: RunSettings) -> Array | None:
    """Estimate the homography with PROSAC sampling."""
    import pymagsac

    options = {"use_magsac_plus_plus": True, "sigma_th": settings.threshold_px}
    return find_homography(pymagsac, pair, settings, (*pair.size1, *pair.size2), **options)


def image_sizes(pair: Pair) -> tuple[float, ...]:
    """Return width and height of both images that contain all points. Its grids need sizes that cameras may lack."""
    return tuple(float(length) + 1 for points in (pair.points1, pair.points2) for length in points.max(axis=0))


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
HOMOGRAPHY_ESTIMATORS = (
    HomographyEstimator(
        name="MAGSAC++",
        about="pymagsac, PROSAC; its threshold is the largest noise it considers",
        module="pymagsac",
        package="pymagsac",
        min_version="0.2",
        run=run_homography,
        max_error_px=5.0,
    ),
)
