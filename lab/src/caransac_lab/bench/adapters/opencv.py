"""OpenCV: its classical RANSAC and the USAC framework, including the settings that correspond to VSAC."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from caransac.camera import mean_pixel
from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.contract import Answer, Estimator, HomographyEstimator, ProblemName, RunSettings
from caransac_lab.datasets import Pair

MIN_MATCHES = {"E": 6, "F": 8, "H": 5}


def run(pair: Pair, problem: ProblemName, settings: RunSettings, *, flag: str) -> Answer | None:
    """Call ``cv2.findEssentialMat`` or ``cv2.findFundamentalMat`` with a method's flag."""
    import cv2

    cv2.setNumThreads(1)
    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    iterations, method = settings.limits[1], getattr(cv2, flag)
    if problem == "F":
        method = cv2.FM_RANSAC if flag == "RANSAC" else method
        matrix, _ = cv2.findFundamentalMat(
            pair.points1, pair.points2, method, settings.threshold_px, settings.success_probability, iterations
        )
        return _only(matrix)
    # Both images share one threshold, so it is measured on the normalised image plane.
    rays = pair.camera1.pixels_to_rays(pair.points1), pair.camera2.pixels_to_rays(pair.points2)
    matrix, _ = cv2.findEssentialMat(
        *rays,
        np.eye(3),
        method=method,
        prob=settings.success_probability,
        threshold=settings.threshold_px * mean_pixel(pair.camera1, pair.camera2),
        maxIters=iterations,
    )
    return _only(matrix)


def run_vsac(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Run OpenCV's USAC framework with VSAC's settings: MSAC, inner local optimisation, final covariance polishing.

    VSAC's authors contributed these settings to OpenCV as the defaults of the framework. Their own program differs.
    """
    import cv2

    cv2.setNumThreads(1)
    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    params = cv2.UsacParams()
    params.confidence = settings.success_probability
    params.maxIterations = settings.limits[1]
    params.threshold = settings.threshold_px
    params.randomGeneratorState = settings.seed
    params.sampler = cv2.SAMPLING_UNIFORM
    params.score = cv2.SCORE_METHOD_MSAC
    params.loMethod = cv2.LOCAL_OPTIM_INNER_LO
    params.final_polisher = cv2.COV_POLISHER
    if problem == "F":
        matrix, _ = cv2.findFundamentalMat(pair.points1, pair.points2, params)
    else:
        undistorted = np.zeros(5)
        matrix, _ = cv2.findEssentialMat(
            pair.points1, pair.points2, pair.camera1.K, pair.camera2.K, undistorted, undistorted, params
        )
    return _only(matrix)


def run_homography(pair: PlanePair, settings: RunSettings, *, flag: str) -> Array | None:
    """Call ``cv2.findHomography`` with a method's flag."""
    import cv2

    cv2.setNumThreads(1)
    if len(pair.points1) < MIN_MATCHES["H"]:
        return None
    matrix, _ = cv2.findHomography(
        pair.points1,
        pair.points2,
        getattr(cv2, flag),
        settings.threshold_px,
        maxIters=settings.limits[1],
        confidence=settings.success_probability,
    )
    found = _only(matrix)
    return None if found is None else found.matrix


def _only(matrix: Any) -> Answer | None:
    """Return the answer if it is a single matrix. OpenCV may also return nothing, or several matrices in a column."""
    if matrix is None or matrix.shape != (3, 3) or not np.all(np.isfinite(matrix)) or not np.any(matrix):
        return None
    return Answer(matrix=np.asarray(matrix, float))


FLAGS = (
    ("OpenCV RANSAC", "RANSAC", "plain RANSAC"),
    ("OpenCV USAC_DEFAULT", "USAC_DEFAULT", "MSAC, local optimisation"),
    ("OpenCV USAC_ACCURATE", "USAC_ACCURATE", "MSAC, graph-cut local optimisation"),
    ("OpenCV USAC_MAGSAC", "USAC_MAGSAC", "MAGSAC score, sigma local optimisation"),
)
ESTIMATORS = (
    *(
        Estimator(
            name=name,
            about=about,
            module="cv2",
            package="opencv-python-headless",
            min_version="4.8",
            run=partial(run, flag=flag),
            seeding="shuffle",
        )
        for name, flag, about in FLAGS
    ),
    Estimator(
        name="OpenCV VSAC",
        about="USAC framework with the settings that correspond to VSAC: MSAC, inner LO, covariance polisher",
        module="cv2",
        package="opencv-python-headless",
        min_version="4.8",
        run=run_vsac,
    ),
)
HOMOGRAPHY_ESTIMATORS = tuple(
    HomographyEstimator(
        name=name,
        about=about,
        module="cv2",
        package="opencv-python-headless",
        min_version="4.8",
        run=partial(run_homography, flag=flag),
    )
    for name, flag, about in FLAGS
)
