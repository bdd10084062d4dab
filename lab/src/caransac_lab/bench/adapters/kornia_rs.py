"""kornia-rs: plain RANSAC in Rust."""

from __future__ import annotations

import numpy as np

from caransac.camera import mean_pixel
from caransac_lab.bench.contract import Answer, Estimator, ProblemName, RunSettings
from caransac_lab.datasets import Pair

MIN_MATCHES = {"E": 6, "F": 8}


def run(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Estimate the essential matrix of normalised coordinates, or the fundamental matrix of pixels."""
    from kornia_rs import ransac

    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    points, threshold, estimate = (pair.points1, pair.points2), settings.threshold_px, ransac.fundamental
    if problem == "E":  # both images share one threshold, so it is measured on the normalised image plane
        points = pair.camera1.pixels_to_rays(pair.points1), pair.camera2.pixels_to_rays(pair.points2)
        threshold, estimate = threshold * mean_pixel(pair.camera1, pair.camera2), ransac.essential
    found = estimate(
        np.ascontiguousarray(np.concatenate(points, axis=1)),
        threshold=threshold**2,  # compared with the squared Sampson distance, contrary to the documentation
        max_iters=settings.limits[1],
        confidence=settings.success_probability,
        seed=settings.seed,
    )
    if found.model is None:
        return None
    return Answer(matrix=np.asarray(found.model, float).reshape(3, 3), iterations=found.num_iters)


ESTIMATORS = (
    Estimator(
        name="kornia-rs",
        about="plain RANSAC, uniform sampling",
        module="kornia_rs",
        package="kornia-rs",
        min_version="0.2",
        run=run,
    ),
)
