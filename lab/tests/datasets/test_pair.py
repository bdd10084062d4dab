"""The truth about a pair."""

from dataclasses import replace

import numpy as np

from caransac.geometry import depths, essential_from_pose, fundamental_from_essential, sampson_sq
from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair


def test_right_matches_are_near_the_true_geometry_and_in_front_of_both_cameras():
    pair = Pair.from_synthetic(make_pair(2000, outlier_ratio=0.8, noise_px=0.7))
    K1, K2 = pair.camera1.K, pair.camera2.K
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), K1, K2)
    near = sampson_sq(F, pair.points1, pair.points2) < 1
    rays = pair.camera1.pixels_to_rays(pair.points1), pair.camera2.pixels_to_rays(pair.points2)
    ahead = np.all(depths(pair.R, pair.t, *rays) > 0, axis=1)
    assert np.array_equal(pair.right_matches(), near & ahead)
    assert np.any(near & ~ahead), "some wrong matches are near by chance"
    assert not replace(pair, R=None, t=None).right_matches().any()
