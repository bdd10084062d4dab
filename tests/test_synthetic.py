"""Synthetic matches have the requested properties."""

import numpy as np
import pytest

from caransac.geometry import essential_from_pose, fundamental_from_essential, sampson_sq
from caransac.synthetic import make_pair, make_plane, transfer


def distances_px(pair):
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    return np.sqrt(sampson_sq(F, pair.points1, pair.points2))


@pytest.mark.parametrize("outlier_ratio", [0.0, 0.35, 1.0])
def test_inliers_obey_the_true_geometry(outlier_ratio):
    pair = make_pair(500, outlier_ratio, noise_px=0.3, seed=1)
    distance = distances_px(pair)
    assert pair.inliers.sum() == round(500 * (1 - outlier_ratio))
    if pair.inliers.any():
        assert distance[pair.inliers].std() < 0.3
        assert distance[pair.inliers].max() < 1.5
    if not pair.inliers.all():
        assert np.median(distance[~pair.inliers]) > 10
    if 0 < outlier_ratio < 1:
        assert pair.scores[pair.inliers].mean() < pair.scores[~pair.inliers].mean() - 0.1


def test_same_seed_same_pair_and_bad_ratios_raise():
    assert np.array_equal(make_pair(seed=3).points2, make_pair(seed=3).points2)
    assert not np.array_equal(make_pair(seed=3).points2, make_pair(seed=4).points2)
    with pytest.raises(ValueError, match="outlier_ratio"):
        make_pair(outlier_ratio=1.5)


@pytest.mark.parametrize("outlier_ratio", [0.0, 0.35, 1.0])
def test_right_matches_of_a_plane_obey_its_homography(outlier_ratio):
    pair = make_plane(500, outlier_ratio, noise_px=0.3, seed=1)
    distance = np.linalg.norm(transfer(pair.H, pair.points1) - pair.points2, axis=1)
    right = pair.right_matches()
    assert right.mean() == pytest.approx(1 - outlier_ratio, abs=0.05)
    assert not right.any() or np.median(distance[right]) < 1
    if 0 < outlier_ratio < 1:
        assert pair.scores[right].mean() < pair.scores[~right].mean() - 0.1
    assert pair.corner_error_px(pair.H) == 0
    assert np.array_equal(make_plane(seed=3).points2, make_plane(seed=3).points2)
    assert pair.corner_error_px(None) == np.inf
