"""Figures of merit, compared with their definitions."""

import numpy as np
import pytest

from caransac_lab.metrics import auc, calibration_bins, expected_calibration_error, summarise


def test_auc_is_the_area_under_the_recall_curve(rng):
    errors = rng.exponential(3, 400)
    grid = np.linspace(0, 5, 200_001)
    recall = np.searchsorted(np.sort(errors), grid, side="right") / len(errors)
    assert auc(errors, 5) == pytest.approx(100 * recall.mean(), abs=1e-2)


def test_summary_of_known_errors():
    figures = summarise([0.0, 0.5, 10.0, 180.0])
    assert figures == {"AUC5": 47.5, "AUC1": 37.5, "MAP20": 75.0, "Med": 5.25, "Avg": 47.625}


def test_calibration_error_of_calibrated_and_overconfident_probabilities(rng):
    p = rng.uniform(size=50_000)
    honest = rng.uniform(size=50_000) < p
    assert expected_calibration_error(p, honest) < 0.01
    assert expected_calibration_error(np.sqrt(p), honest) == pytest.approx(2 / 3 - 1 / 2, abs=0.01)
    assert expected_calibration_error([1.0, 1.0], [0, 1]) == 0.5
    bins = calibration_bins([0.0, 0.05, 0.95, 1.0], [0, 1, 1, 1])
    assert np.allclose(bins, [[0.025, 0.5, 2], [0.975, 1, 2]])


def test_impossible_values_are_refused_by_name():
    for wrong in (None, 7, "xyz", [], [np.nan], [[1.0]], [1j]):
        with pytest.raises(ValueError, match="errors_deg must"):
            auc(wrong, 5.0)
    with pytest.raises(ValueError, match="limit_deg must"):
        auc([1.0], np.nan)
    with pytest.raises(ValueError, match="probabilities must be from 0 to 1"):
        calibration_bins([0.5, 2.0], [0, 1])
    with pytest.raises(ValueError, match="outcomes must be"):
        calibration_bins([0.5, 0.2], [1.0])
    with pytest.raises(ValueError, match="num_bins must"):
        expected_calibration_error([0.5], [1], num_bins=0)
