"""Keypoints that were detected in reduced photographs are refined in the original ones."""

import numpy as np
import pytest
from photographs import photograph

import caransac
from caransac.robust.patches.alignment import pyramid_level
from caransac.tuning import PatchTuning

TUNING = PatchTuning()


@pytest.mark.parametrize(
    ("side", "deviation_px", "level"),
    [(4000, 0.0, 0), (4000, 0.8, 0), (4000, 1.6, 1), (4000, 3.2, 2), (4000, 50.0, 2), (1024, 3.2, 0), (10**5, 50.0, 3)],
)
def test_the_level_fits_the_noise_and_the_size(side, deviation_px, level):
    images = np.zeros((10, side), np.uint8), np.zeros((side + 1, 10), np.uint8)
    assert pyramid_level(images, deviation_px, TUNING) == level
    small = np.zeros((100, 100), np.uint8)
    assert pyramid_level((images[0], small), deviation_px, TUNING) == 0


def test_points_of_reduced_photographs_are_refined(rng):
    pair = photograph(rng, noise_px=0.4)
    scale = 5
    images = [image.repeat(scale, axis=0).repeat(scale, axis=1) for image in pair.images]
    points1, points2, truth2 = (scale * (points + 0.5) - 0.5 for points in (pair.points1, pair.points2, pair.truth2))
    (focal, cx, cy), (width, height) = pair.camera.params, (pair.camera.width, pair.camera.height)
    params = scale * focal, scale * (cx + 0.5) - 0.5, scale * (cy + 0.5) - 0.5
    camera = caransac.Camera("SIMPLE_PINHOLE", params, scale * width, scale * height)
    found = caransac.estimate_relative_pose(points1, points2, camera, camera, images=images)
    right = found.refinement.refined & pair.is_right
    assert right.sum() > 0.9 * pair.is_right.sum()
    before, after = (np.linalg.norm(points - truth2, axis=1)[right] for points in (points2, found.points2))
    assert np.median(after) < 0.15 * np.median(before)
