"""The choice of one of the four poses of an essential matrix."""

import numpy as np
from scenes import random_problems

from caransac.geometry import essential_from_pose, join_pose
from caransac.kernels import pack
from caransac.robust.problems.relative import choose_pose


def test_most_points_decide(rng):
    x1, x2, R, t = random_problems(rng, 20, 30)
    for i in range(20):
        E = essential_from_pose(R[i], t[i])
        x2[i, :8] = rng.uniform(-1, 1, (8, 2))  # wrong matches, at random positions
        for sign in (1, -1):
            pose = choose_pose(sign * E, pack(x1[i], x2[i]))
            assert np.allclose(pose, join_pose(R[i], t[i]), atol=1e-6)
