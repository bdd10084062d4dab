"""Figures of merit over the pose errors of many pairs, as the literature reports them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caransac.geometry import Array

FAILURE_DEG = 180.0  # the error of a pair without an answer


def auc(errors_deg: ArrayLike, limit_deg: float) -> float:
    """Area under the recall curve up to a limit: the mean of ``max(0, 1 - error / limit)``, in percent."""
    errors = np.asarray(errors_deg, float)
    return float(100 * np.maximum(0, 1 - errors / limit_deg).mean())


def summarise(errors_deg: ArrayLike) -> dict[str, float]:
    """AUC@5, AUC@1, MAP@20 (percent below 20 degrees), median and mean of pose errors in degrees."""
    errors = np.asarray(errors_deg, float)
    return {
        "AUC5": auc(errors, 5.0),
        "AUC1": auc(errors, 1.0),
        "MAP20": float(100 * (errors < 20).mean()),
        "Med": float(np.median(errors)),
        "Avg": float(errors.mean()),
    }


def calibration_bins(probabilities: ArrayLike, outcomes: ArrayLike, num_bins: int = 10) -> Array:
    """Reliability of probabilities: rows (mean probability, frequency of the outcome, count) of equally wide bins.

    Args:
        probabilities: (n,) predicted.
        outcomes: (n,) 0 or 1, what came true.
        num_bins: bins between 0 and 1; empty ones are left out.
    """
    p, y = np.asarray(probabilities, float), np.asarray(outcomes, float)
    bins = np.minimum((p * num_bins).astype(int), num_bins - 1)
    counts, sums, hits = (np.bincount(bins, w, num_bins) for w in (np.ones_like(p), p, y))
    filled = counts > 0
    return np.stack([sums[filled] / counts[filled], hits[filled] / counts[filled], counts[filled]], axis=1)


def expected_calibration_error(probabilities: ArrayLike, outcomes: ArrayLike, num_bins: int = 10) -> float:
    """Mean distance between probability and frequency over `calibration_bins`, weighted by their counts."""
    predicted, observed, counts = calibration_bins(probabilities, outcomes, num_bins).T
    return float(np.sum(np.abs(predicted - observed) * counts) / counts.sum())
