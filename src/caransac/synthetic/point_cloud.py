"""Pairs of views of a cloud of points: simple, and easy to reason about."""

from __future__ import annotations

import numpy as np

from caransac._support.arrays import LARGEST_SIDE, as_size, check_real, check_whole
from caransac.camera import Camera
from caransac.geometry import rotation_from_vector
from caransac.synthetic.synthetic_pair import MOST_POINTS, SyntheticPair


def make_pair(
    num_points: int = 1000,
    outlier_ratio: float = 0.7,
    noise_px: float = 0.5,
    seed: int = 0,
    *,
    width: int = 1024,
    height: int = 768,
) -> SyntheticPair:
    """A pair of views of a cloud of points, with random outliers and ratio-like scores.

    Args:
        num_points: number of matches.
        outlier_ratio: fraction of them that are wrong, 0 to 1.
        noise_px: standard deviation of the keypoints' position in pixels.
        seed: seed of the scene.
        width: image width in pixels.
        height: image height in pixels.
    """
    check_whole(num_points, "num_points", 0, MOST_POINTS)
    check_real(outlier_ratio, "outlier_ratio", 0, 1)
    check_real(noise_px, "noise_px", 0, LARGEST_SIDE)
    width, height = as_size((width, height), "width and height")
    rng = np.random.default_rng(seed)
    focal = 0.9 * width
    camera = Camera("SIMPLE_PINHOLE", (focal, width / 2, height / 2), width, height)
    size = np.array([width, height])
    R = rotation_from_vector(rng.uniform(-0.25, 0.25, 3))
    t = rng.normal(size=3) * (1, 1, 0.5)
    t /= np.linalg.norm(t)

    num_inliers = round(num_points * (1 - outlier_ratio))
    points1, points2 = np.empty((0, 2)), np.empty((0, 2))
    while len(points1) < num_inliers:  # points seen by both cameras, at depths of 3 to 12 baselines
        pixels = rng.uniform(0, 1, (4 * num_points, 2)) * size
        rays = np.c_[camera.pixels_to_rays(pixels), np.ones(len(pixels))]
        moved = rays * rng.uniform(3, 12, (len(pixels), 1)) @ R.T + t
        projected = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
        seen = (moved[:, 2] > 0) & np.all((projected >= 0) & (projected < size), axis=1)
        points1 = np.concatenate([points1, pixels[seen]])
        points2 = np.concatenate([points2, projected[seen]])
    outliers = rng.uniform(0, 1, (2, num_points - num_inliers, 2)) * size
    points1 = np.concatenate([points1[:num_inliers], outliers[0]])
    points2 = np.concatenate([points2[:num_inliers], outliers[1]])
    points1 += rng.normal(size=points1.shape) * noise_px
    points2 += rng.normal(size=points2.shape) * noise_px

    inliers = np.arange(num_points) < num_inliers
    # Right matches spread over all ratios, wrong ones crowd just below one.
    scores = np.where(inliers, rng.beta(4, 2.5, num_points), rng.beta(14, 1.2, num_points))
    order = rng.permutation(num_points)
    return SyntheticPair(points1[order], points2[order], camera, camera, scores[order], R, t, inliers[order])
