"""Mirrored images are distinguished from ordinary ones."""

import numpy as np
import pytest

from caransac.geometry.mirroring import mirrored_share
from caransac.synthetic import make_pair
from caransac_lab.synthetic import random_plane

FLIPS = {"left and right": (-1, 1), "up and down": (1, -1)}


@pytest.mark.parametrize("flip", FLIPS.values(), ids=FLIPS)
@pytest.mark.parametrize("angle_deg", [0, 90, 200])
def test_flips_turn_neighbourhoods_over_and_rotations_do_not(flip, angle_deg):
    plane = random_plane(np.random.default_rng(1), num_points=300, inlier_ratio=1.0)
    angle = np.radians(angle_deg)
    turned = plane.points2 @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    assert mirrored_share(plane.points1, turned) < 0.1
    assert mirrored_share(plane.points1, turned * flip) > 0.9


def test_depth_confuses_some_neighbourhoods_and_not_most():
    for seed in range(10):
        pair = make_pair(600, 0.0, seed=seed)
        assert mirrored_share(pair.points1, pair.points2) < 0.5 < mirrored_share(pair.points1, -pair.points2[:, ::-1])


def test_few_points_and_points_on_a_line_give_no_mirroring(rng):
    points = rng.uniform(0, 100, (15, 2))
    assert mirrored_share(points, points) is None
    line = np.outer(np.arange(50.0), [1, 2])
    assert mirrored_share(line, line) is None
