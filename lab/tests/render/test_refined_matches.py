"""Matches refined in rendered photographs, compared with the exact truth."""

import cv2
import numpy as np
import pytest

import caransac
from caransac_lab.render import render_depth, render_views
from caransac_lab.render.views import SETTINGS

pytestmark = pytest.mark.slow


def true_matches(views, faces, count=2000):
    """Return corners of image 1 and their places in image 2, where both see the same surface."""
    K, image = views.camera.K, cv2.cvtColor(views.images[0], cv2.COLOR_RGB2GRAY)
    points = cv2.goodFeaturesToTrack(image, count, 0.005, 5).reshape(-1, 2).astype(float)
    inverse_depths = []
    for R, t in zip(views.rotations, views.translations, strict=True):
        depth = render_depth(faces, views.camera, R, t)
        inverse_depths.append(np.where(depth > 0, 1 / np.where(depth > 0, depth, 1), 0))
    here, smooth = _interpolate(inverse_depths[0], points)
    points, here = points[smooth], here[smooth]
    rays = (points - K[:2, 2]) / K[[0, 1], [0, 1]]
    X = np.column_stack([rays, np.ones(len(rays))]) / here[:, None]
    R, t = views.rotations, views.translations
    Y = (X - t[0]) @ R[0] @ R[1].T + t[1]
    truth = Y[:, :2] / Y[:, 2:] * K[[0, 1], [0, 1]] + K[:2, 2]
    inside = ((truth > 1) & (truth < np.array([views.camera.width, views.camera.height]) - 2)).all(axis=1)
    points, truth, Y = points[inside], truth[inside], Y[inside]
    there, smooth = _interpolate(inverse_depths[1], truth)
    seen = smooth & (np.abs(there * Y[:, 2] - 1) < 0.01)
    return points[seen], truth[seen]


def _interpolate(image, points):
    """Return the values (n,) at points, which are linear on a plane, and a mask of those without an edge."""
    corner = np.floor(points).astype(int)
    x, y = corner.T
    u, v = (points - corner).T
    four = np.stack([image[y, x], image[y, x + 1], image[y + 1, x], image[y + 1, x + 1]])
    weights = np.stack([(1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v])
    value = (four * weights).sum(axis=0)
    return value, (value > 0) & (np.ptp(four, axis=0) < 0.01 * value)


@pytest.mark.parametrize("scene", ["courtyard", "boxes"])
def test_keypoints_moved_by_a_pixel_return(rng, scene):
    errors, worse, refined = [], [], []
    for seed in range(2):
        views = render_views(2, scene=scene, seed=seed, arc_deg=12.0)
        points1, truth = true_matches(views, SETTINGS[scene].make(seed))
        assert len(points1) > 1000
        angle = rng.uniform(0, 2 * np.pi, len(truth))
        moved = truth + np.stack([np.cos(angle), np.sin(angle)], axis=1)
        found = caransac.refine_matches(*views.images, points1, moved)
        error = np.linalg.norm(found.points2 - truth, axis=1)[found.refined]
        errors.append(np.median(error))
        worse.append(np.mean(error > 1))
        refined.append(found.refined.mean())
    assert max(errors) < 0.1
    assert max(worse) < 0.02
    assert min(refined) > 0.9
