"""Synthetic planes have the requested properties."""

from dataclasses import replace

import numpy as np
import pytest

from caransac.synthetic import PlanePair, transfer
from caransac_lab.synthetic import random_plane
from caransac_lab.synthetic.scores import BINARY, ROOTSIFT


@pytest.mark.parametrize("descriptor", [ROOTSIFT, BINARY])
def test_right_matches_obey_the_homography(rng, descriptor):
    shares, medians = [], []
    for _ in range(10):
        pair = random_plane(rng, num_points=1000, inlier_ratio=0.3, descriptor=descriptor)
        errors = np.linalg.norm(transfer(pair.H, pair.points1) - pair.points2, axis=1)
        nearest = np.sort(errors)[:300]
        shares.append(pair.right_matches().mean())
        medians.append(np.median(nearest))
        # The worst case of noise, octave and tail in both images; the second image may be slightly larger.
        assert nearest.max() < 2 * 2 * 2**3 * 6 / 1.29 * 2
        assert np.median(errors) > 20
    assert 0.1 < np.median(medians) < 2
    assert 0.15 < np.median(shares) < 0.4


def test_right_matches_have_better_ratios(rng):
    pairs = [random_plane(rng, num_points=3000, inlier_ratio=0.05) for _ in range(10)]
    right = np.concatenate([pair.scores[pair.right_matches()] for pair in pairs])
    wrong = np.concatenate([pair.scores[~pair.right_matches()] for pair in pairs])
    assert right.mean() < wrong.mean() - 0.08


@pytest.mark.slow
def test_no_other_homography_has_more_matches(rng):
    """Coherent wrong matches are fewer than right ones, so the plane has the only large consensus set."""
    cv2 = pytest.importorskip("cv2")
    for _ in range(5):
        pair = random_plane(rng, num_points=1000, inlier_ratio=0.1)
        right = pair.right_matches()
        left = pair.points1[~right], pair.points2[~right]
        _, others = cv2.findHomography(*left, cv2.RANSAC, 3.0, maxIters=20_000, confidence=1 - 1e-12)
        assert others.sum() < 0.6 * right.sum()


def test_same_seed_same_pair_and_bad_ratios_raise():
    first, second, other = (
        random_plane(np.random.default_rng(seed), num_points=200, inlier_ratio=0.2) for seed in (3, 3, 4)
    )
    assert np.array_equal(first.points2, second.points2)
    assert not np.array_equal(first.points2, other.points2)
    for ratio in (0.01, 1.1, -0.2):
        with pytest.raises(ValueError, match="inlier_ratio"):
            random_plane(np.random.default_rng(0), num_points=200, inlier_ratio=ratio)


def test_the_corner_error_is_measured_at_the_corners():
    H = np.array([[1.1, 0.1, 20.0], [-0.05, 0.9, 7.0], [1e-4, 2e-4, 1.0]])
    corners = np.array([[10.0, 10], [90, 10], [90, 60], [10, 60]])
    nothing = np.empty((0, 2))
    pair = PlanePair("", nothing, nothing, np.empty(0), H, corners, (100, 100), (100, 100))
    assert pair.corner_error_px(-3 * H) == pytest.approx(0, abs=1e-9)
    shift = np.array([[1.0, 0, 3], [0, 1, 4], [0, 0, 1]])
    assert pair.corner_error_px(shift @ H) == pytest.approx(5)
    assert replace(pair, corners=corners[:1]).corner_error_px(np.eye(3)) == pytest.approx(
        np.linalg.norm(transfer(H, corners[:1]) - corners[0])
    )
    assert pair.corner_error_px(None) == np.inf
    assert pair.corner_error_px(np.zeros((3, 3))) == np.inf
