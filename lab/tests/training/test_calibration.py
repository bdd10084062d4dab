"""The fit of the confidence."""

import numpy as np

from caransac_lab.training.calibration import fit_logistic


def test_logistic_regression_finds_the_log_odds(rng):
    x = rng.normal(size=(20000, 3)) * [1, 10, 0.1]
    log_odds = x @ [1.0, -0.1, 5.0] + 0.03 * x[:, 0] * x[:, 1] - 0.5
    y = rng.uniform(size=20000) < 1 / (1 + np.exp(-log_odds))
    fit = fit_logistic(x, y)
    expected = 1 / (1 + np.exp(-log_odds))
    usual = np.all(np.abs((x - fit.mean) / fit.scale) < 2, axis=1)
    assert np.abs(fit.probabilities(x) - expected)[usual].mean() < 0.02
    # Calibrated in every decile of the probabilities.
    for share in np.array_split(np.argsort(fit.probabilities(x)), 10):
        assert abs(fit.probabilities(x)[share].mean() - y[share].mean()) < 0.05


def test_separable_outcomes_do_not_diverge(rng):
    x = rng.normal(size=(500, 3))
    fit = fit_logistic(x, x[:, 0] > 0)
    assert np.isfinite(fit.weight).all()
    assert np.mean((fit.probabilities(x) > 0.5) == (x[:, 0] > 0)) > 0.95
