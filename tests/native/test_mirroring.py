"""The turns of neighbourhoods agree with their formula."""

import numpy as np
import pytest

from caransac import kernels
from caransac.geometry.mirroring import NEIGHBOUR, mirrored_turns
from caransac.synthetic import make_pair


@pytest.mark.parametrize("flip", [1, -1])
@pytest.mark.parametrize("n", [NEIGHBOUR + 2, 60, 128])
def test_kernel_agrees_with_the_formula(n, flip):
    for seed in range(5):
        pair = make_pair(n, 0.3, seed=seed)
        points = kernels.pack(pair.points1, pair.points2 * [flip, 1])
        assert kernels.mirrored_turns(points, NEIGHBOUR) == mirrored_turns(points.points1, points.points2)


@pytest.mark.parametrize("value", [0.0, 1e308])
def test_equal_and_huge_points_do_not_turn(value):
    points = kernels.pack(*np.full((2, 40, 2), value))
    assert kernels.mirrored_turns(points, NEIGHBOUR) == (0, 0)
    assert kernels.mirrored_turns(points.subset(np.arange(6, dtype=np.int32)), NEIGHBOUR) == (0, 0)
