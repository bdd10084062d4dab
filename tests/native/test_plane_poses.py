"""The poses of cameras that see a plane."""

import numpy as np
import pytest

from caransac import kernels
from caransac.geometry import cross_matrix, homogeneous, rotation_from_vector


def test_a_homography_gives_back_its_pose(rng):
    for _ in range(100):
        R, t = rotation_from_vector(0.3 * rng.normal(size=3)), 0.4 * rng.normal(size=3)
        normal = np.array([*(0.4 * rng.normal(size=2)), 1.0])
        H = (R + np.outer(t, normal)) * rng.choice([-2.0, 0.5])
        rays = rng.uniform(-0.4, 0.4, (20, 2))
        if np.any(homogeneous(rays) @ normal < 0.1) or np.linalg.det(R + np.outer(t, normal)) < 0.05:
            continue
        poses = kernels.plane_poses(H, kernels.pack(rays, rays))
        direction = t / np.linalg.norm(t)
        assert min(np.abs(pose - np.c_[R, direction]).max() for pose in poses) < 1e-6
        # Each pose maps the plane like the homography, so its essential matrix vanishes on matches of the plane.
        moved = homogeneous(rays) @ H.T
        for pose in poses:
            E = cross_matrix(pose[:, 3]) @ pose[:, :3]
            assert np.abs(np.einsum("ni,ij,nj->n", moved, E, homogeneous(rays))).max() < 1e-9


def test_a_rotation_has_no_poses_to_choose_from():
    R = rotation_from_vector(np.array([0.1, 0.2, 0.0]))
    assert len(kernels.plane_poses(R, kernels.pack(np.zeros((4, 2)), np.zeros((4, 2))))) == 0


@pytest.mark.parametrize("H", [np.zeros((3, 3)), np.full((3, 3), np.nan), np.full((3, 3), 1e300), np.diag([1.0, 0, 0])])
def test_invalid_homographies_have_no_poses(H):
    points = kernels.pack(np.zeros((4, 2)), np.zeros((4, 2)))
    assert len(kernels.plane_poses(H, points)) == 0
