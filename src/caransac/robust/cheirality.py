"""Which of the four poses of an essential matrix it is."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, join_pose, poses_from_essential
from caransac.kernels import Correspondences, positive_depths


def choose_pose(E: Array, correspondences: Correspondences) -> Array:
    """The pose [R | t] (3, 4) of an essential matrix (3, 3) that puts most points in front of both cameras.

    Args:
        E: (3, 3), only nearly essential perhaps, as a fundamental matrix is between cameras.
        correspondences: in normalised image coordinates.
    """
    poses = join_pose(*poses_from_essential(E))
    in_front = positive_depths(poses, correspondences).sum(axis=1)
    return np.asarray(poses[int(np.argmax(in_front))])
