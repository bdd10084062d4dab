"""Every adapter finds a plane and obeys its settings."""

import numpy as np
import pytest

from caransac.synthetic import PlanePair, transfer
from caransac_lab.bench.adapters import HOMOGRAPHY_ESTIMATORS
from caransac_lab.bench.contract import RunSettings

pytestmark = pytest.mark.slow

SIZE = (1200, 800)
H = np.array([[0.9, -0.2, 150.0], [0.15, 1.1, -60.0], [1e-4, -5e-5, 1.0]])
CORNERS = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]) * SIZE
ESTIMATORS = [pytest.param(estimator, id=name) for name, estimator in HOMOGRAPHY_ESTIMATORS.items()]
PEERS = [case for case in ESTIMATORS if case.values[0].module != "caransac"]


def planes(inlier_ratio, count=3, num_points=400):
    """Create unsorted matches of a plane, so that PROSAC has no advantage. All ratios are equal."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        points1 = rng.uniform(0, SIZE, (num_points, 2))
        points2 = transfer(H, points1) + 0.5 * rng.standard_normal((num_points, 2))
        wrong = rng.random(num_points) >= inlier_ratio
        points2[wrong] = rng.uniform(0, SIZE, (int(wrong.sum()), 2))
        yield PlanePair(str(seed), points1, points2, np.full(num_points, 0.5), H, CORNERS, SIZE, SIZE)


def errors(estimator, inlier_ratio, **settings):
    """Return corner errors, clamped at 100 px."""
    if estimator.missing:
        pytest.skip(estimator.missing)  # the peer has no wheel for this platform; the message names it
    told = RunSettings(**{"max_error_px": estimator.max_error_px, "iterations": 1024} | settings)
    return np.array([min(pair.corner_error_px(estimator.run(pair, told)), 100.0) for pair in planes(inlier_ratio)])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_plane_is_found(estimator):
    assert np.median(errors(estimator, 0.5)) < 2


@pytest.mark.parametrize("estimator", PEERS)
def test_threshold_takes_effect(estimator):
    assert errors(estimator, 0.5, max_error_px=200.0).mean() > 1.3 * errors(estimator, 0.5).mean()


@pytest.mark.parametrize("estimator", PEERS)
def test_iterations_take_effect(estimator):
    assert errors(estimator, 0.3).mean() < 0.5 * errors(estimator, 0.3, iterations=1).mean()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_too_few_matches_are_a_failure(estimator):
    if estimator.missing:
        pytest.skip(estimator.missing)  # the peer has no wheel for this platform
    (pair,) = planes(1.0, count=1, num_points=3)
    assert estimator.run(pair, RunSettings(max_error_px=3.0)) is None
