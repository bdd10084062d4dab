"""The weighted eight-point algorithm: exact for exact matches, and independent of matches with weight zero."""

import cv2
import numpy as np
import pytest

from caransac.geometry import essential_from_pose, fundamental_from_essential, sampson_sq
from caransac.synthetic import make_pair
from caransac_lab.networks.eight_point import eight_point


@pytest.fixture
def exact():
    """A pair without noise but with wrong matches, and its fundamental matrix."""
    pair = make_pair(80, outlier_ratio=0.3, noise_px=0.0, seed=4)
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    return pair, F / np.linalg.norm(F)


def test_matches_of_weight_zero_do_not_change_the_matrix(exact):
    pair, truth = exact
    F = eight_point(pair.points1, pair.points2, pair.inliers * np.linspace(0.5, 2, 80))
    assert min(np.abs(F - truth).max(), np.abs(F + truth).max()) < 1e-6
    assert np.linalg.norm(F) == pytest.approx(1) and abs(np.linalg.det(F)) < 1e-12


def test_it_agrees_with_opencv_on_noisy_matches():
    pair = make_pair(60, outlier_ratio=0.0, noise_px=0.5, seed=5)
    ours = eight_point(pair.points1, pair.points2, np.ones(60))
    theirs, _ = cv2.findFundamentalMat(pair.points1, pair.points2, cv2.FM_8POINT)
    ours_px, theirs_px = (np.median(sampson_sq(F, pair.points1, pair.points2)) for F in (ours, theirs))
    assert ours_px == pytest.approx(theirs_px, rel=0.05)


@pytest.mark.parametrize("points", [np.zeros((9, 2)), np.ones((9, 2)), np.arange(18.0).reshape(9, 2)])
def test_degenerate_points_give_finite_numbers(points):
    assert np.isfinite(eight_point(points, points, np.ones(9))).all()
    assert np.isfinite(eight_point(points, points, np.zeros(9))).all()
