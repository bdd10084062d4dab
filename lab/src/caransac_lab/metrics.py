"""Figures of merit for the pose errors of many pairs, as in the literature."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_array, check_real, check_whole
from caransac.geometry import Array

FAILURE_DEG = 180.0  # error of a pair without an answer
SMALLEST_DEG, MOST_BINS = 1e-9, 10**6


def auc(errors_deg: ArrayLike, limit_deg: float) -> float:
    """Compute the area under the recall curve up to a limit: the mean of ``max(0, 1 - error / limit)``, in percent."""
    errors = _numbers(errors_deg, "errors_deg")
    check_real(limit_deg, "limit_deg", SMALLEST_DEG, FAILURE_DEG)
    return float(100 * np.maximum(0, 1 - errors / limit_deg).mean())


def summarise(errors_deg: ArrayLike) -> dict[str, float]:
    """Compute AUC@5, AUC@1, MAP@20 (percent below 20 degrees), median and mean of pose errors in degrees."""
    errors = _numbers(errors_deg, "errors_deg")
    return {
        "AUC5": auc(errors, 5.0),
        "AUC1": auc(errors, 1.0),
        "MAP20": float(100 * (errors < 20).mean()),
        "Med": float(np.median(errors)),
        "Avg": float(errors.mean()),
    }


def calibration_bins(probabilities: ArrayLike, outcomes: ArrayLike, num_bins: int = 10) -> Array:
    """Compute the reliability of probabilities in equal bins: rows (mean probability, observed frequency, count).

    Args:
        probabilities: (n,) predicted probabilities.
        outcomes: (n,) outcomes, 0 or 1.
        num_bins: number of bins between 0 and 1; empty bins are omitted.
    """
    p, y = _numbers(probabilities, "probabilities"), _numbers(outcomes, "outcomes")
    if p.shape != y.shape:
        raise ValueError(f"outcomes must be {p.shape}, one for each of probabilities, got {y.shape}")
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"probabilities must be from 0 to 1, but are {p.min():.3g} to {p.max():.3g}")
    check_whole(num_bins, "num_bins", 1, MOST_BINS)
    bins = np.minimum((p * num_bins).astype(int), num_bins - 1)
    counts, sums, hits = (np.bincount(bins, w, num_bins) for w in (np.ones_like(p), p, y))
    filled = counts > 0
    return np.stack([sums[filled] / counts[filled], hits[filled] / counts[filled], counts[filled]], axis=1)


def expected_calibration_error(probabilities: ArrayLike, outcomes: ArrayLike, num_bins: int = 10) -> float:
    """Compute the mean difference between probability and frequency over `calibration_bins`, weighted by count."""
    predicted, observed, counts = calibration_bins(probabilities, outcomes, num_bins).T
    return float(np.sum(np.abs(predicted - observed) * counts) / counts.sum())


def _numbers(values: ArrayLike, name: str) -> Array:
    """Return one or more numbers (n,) without NaN. A failure may have an infinite error."""
    numbers = as_array(values, name)
    if numbers.dtype.kind not in "fiub" or numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"{name} must be (n,) real numbers, at least one, got {numbers.shape} {numbers.dtype}")
    numbers = numbers.astype(float)
    if np.isnan(numbers).any():
        raise ValueError(f"{name} must not contain NaN")
    return numbers
