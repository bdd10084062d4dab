"""COLMAP's LO-RANSAC."""

from __future__ import annotations

from typing import Any

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


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Run COLMAP's estimators."""
    import pycolmap

    options = _options(settings)
    if problem == "F":
        found = pycolmap.estimate_fundamental_matrix(pair.points1, pair.points2, options)
        return None if found is None else Answer(matrix=np.asarray(found["F"], float))
    camera1, camera2 = (pycolmap.Camera(**camera.to_dict()) for camera in (pair.camera1, pair.camera2))
    found = pycolmap.estimate_essential_matrix(pair.points1, pair.points2, camera1, camera2, options)
    return None if found is None else Answer(matrix=np.asarray(found["E"], float))


def run_homography(pair: PlanePair, settings: RunSettings) -> Array | None:
    """Estimate a homography by COLMAP."""
    import pycolmap

    found = pycolmap.estimate_homography_matrix(pair.points1, pair.points2, _options(settings))
    return None if found is None else np.asarray(found["H"], float)


def _options(settings: RunSettings) -> Any:
    """Return the options of COLMAP's RANSAC."""
    import pycolmap

    options = pycolmap.RANSACOptions()
    fewest, most = settings.limits
    options.max_error = settings.threshold_px
    options.confidence = ADAPTIVE_SUCCESS_PROBABILITY
    options.max_num_trials = most
    options.random_seed = settings.seed
    if fewest is not None:
        options.min_num_trials = fewest
    return options


ESTIMATORS = (
    Estimator(
        name="COLMAP",
        about="pycolmap, LO-RANSAC, uniform sampling",
        module="pycolmap",
        package="pycolmap",
        min_version="3.12",
        run=run,
    ),
)
HOMOGRAPHY_ESTIMATORS = (
    HomographyEstimator(
        name="COLMAP",
        about="pycolmap, LO-RANSAC, uniform sampling",
        module="pycolmap",
        package="pycolmap",
        min_version="3.12",
        run=run_homography,
    ),
)
