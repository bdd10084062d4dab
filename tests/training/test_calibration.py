"""The fit of the confidence."""

import numpy as np
import pytest

from caransac.training.calibration import fit_logistic


def test_logistic_regression_finds_the_log_odds(rng):
    x = rng.normal(size=(20000, 3)) * [1, 10, 0.1]
    weights, bias = np.array([1.0, -0.1, 5.0]), -0.5
    y = rng.uniform(size=20000) < 1 / (1 + np.exp(-(x @ weights + bias)))
    found, offset = fit_logistic(x, y)
    assert np.allclose(found, weights, rtol=0.15)
    assert offset == pytest.approx(bias, abs=0.1)
    separable = fit_logistic(x, x[:, 0] > 0)
    assert np.isfinite(separable[0]).all()
