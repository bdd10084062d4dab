"""Synthetic pairs are what they claim to be."""

import numpy as np
import pytest

from caransac.geometry import essential_from_pose, fundamental_from_essential, sampson_sq
from caransac.synthetic import make_pair


@pytest.mark.parametrize("outlier_ratio", [0.0, 0.35, 1.0])
def test_inliers_obey_the_true_geometry(outlier_ratio):
    pair = make_pair(500, outlier_ratio, noise_px=0.3, seed=1)
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    distance = np.sqrt(sampson_sq(F, pair.points1, pair.points2))
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
