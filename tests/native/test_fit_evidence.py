"""The evidence of a fit about its precision agrees with its formula."""

import numpy as np
import pytest

from caransac import kernels
from caransac.geometry.precision import fit_evidence

LIMITS = {"noise": 0.7, "loss_scale": 1.2, "reach": 4.0, "last": 8.0, "steepest": 20.0, "by_chance": 2.0, "freedoms": 5}


@pytest.mark.parametrize("enough", [100, 2000])
@pytest.mark.parametrize(("dimensions", "columns"), [(1, 5), (1, 11), (2, 6)])
def test_kernel_agrees_with_the_formula(rng, dimensions, columns, enough):
    n = 600
    residuals = rng.normal(size=n * dimensions) * np.repeat(rng.choice([0.7, 5.0], n), dimensions)
    slopes = rng.normal(size=(n * dimensions, columns)) * np.repeat(rng.choice([1.0, 30.0], n), dimensions)[:, None]
    weights = rng.uniform(size=n) * (rng.uniform(size=n) < 0.9)
    shares = weights * rng.uniform(size=n)
    found = kernels.fit_evidence(residuals, slopes, weights, shares, enough=enough, **LIMITS)
    expected = fit_evidence(residuals, slopes, weights, shares, enough=enough, **LIMITS)
    assert 0 < np.count_nonzero(expected[0]) < n
    assert (expected[2] > 1) == (enough == 100)
    for each, formula in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, formula, rtol=1e-9, atol=1e-12)


def test_nothing_and_numbers_that_are_not_finite_are_not_used():
    limits = {**LIMITS, "enough": 100}
    right, information, *sums = kernels.fit_evidence(np.zeros(0), np.zeros((0, 5)), np.zeros(0), np.zeros(0), **limits)
    assert right.shape == (0,) and not information.any() and sums == [1, 0, 0, 0]
    residuals, slopes = np.zeros(30), np.random.default_rng(0).normal(size=(30, 5))
    residuals[3], slopes[7, 2] = np.nan, np.nan
    right, information, *_ = kernels.fit_evidence(residuals, slopes, np.ones(30), np.ones(30), **limits)
    assert right[3] == right[7] == 0 and np.isfinite(information).all()
