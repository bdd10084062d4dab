"""Matches of a plane as from image matching: like `realistic`, but one homography is the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.synthetic.outliers import draw_outliers, share_points
from caransac_lab.synthetic.realistic import draw_noise_px
from caransac_lab.synthetic.scene import Keypoints, Scene, Views, draw_scene, draw_views, image_size
from caransac_lab.synthetic.scores import ROOTSIFT, Descriptor, draw_ratios

PLANE = 0  # index of the plane: the largest surface of a scene
COHERENT = 0.25  # for each cause: maximum number of coherent wrong matches divided by the number of right ones


def random_plane(
    rng: np.random.Generator, *, num_points: int, inlier_ratio: float, descriptor: Descriptor = ROOTSIFT, name: str = ""
) -> PlanePair:
    """Create two views of a plane among other surfaces: clustered keypoints, structured outliers, realistic ratios.

    Coherent wrong matches are few compared to right ones, so that the plane is the answer. The corners are those of the
    bounding rectangle of the right matches in image 1.

    Args:
        rng: source of randomness; the same state gives the same pair.
        num_points: number of matches.
        inlier_ratio: fraction of right matches, from 0 to 1. There are at least four right matches.
        descriptor: distribution of the ratios.
        name: name of the pair.
    """
    num_right = round(num_points * inlier_ratio)
    if not 4 <= num_right <= num_points:
        raise ValueError(f"inlier_ratio must leave 4 to {num_points} right matches, not {inlier_ratio!r}")
    scene, views, right = _draw_right(rng, num_right)
    wrong1, wrong2, looks_right = draw_outliers(
        rng, scene, views, right, descriptor, num_points - num_right, round(COHERENT * num_right)
    )
    points1 = np.concatenate([right.pixels, wrong1])
    points2 = np.concatenate([views.project(right)[0], wrong2])
    # If a pattern repeats, the second-nearest descriptor is a good one, too.
    distinct = rng.uniform(0.4, 1, num_right) if scene.repetitive[PLANE] else np.ones(num_right)
    ratios = draw_ratios(rng, descriptor, inlier_ratio, np.concatenate([distinct, looks_right]))

    size1, size2 = image_size(views.camera1), image_size(views.camera2)
    noise_px = draw_noise_px(rng, num_points)
    points1, points2 = np.clip(points1 + noise_px[0], 0, size1), np.clip(points2 + noise_px[1], 0, size2)
    if not descriptor.mutual:
        points2 = share_points(rng, points2, num_right)
    order = rng.permutation(num_points)
    return PlanePair(
        name=name,
        points1=points1[order],
        points2=points2[order],
        scores=ratios[order],
        H=_homography(scene, views),
        corners=_rectangle(right.pixels),
        size1=(views.camera1.width, views.camera1.height),
        size2=(views.camera2.width, views.camera2.height),
    )


def _draw_right(rng: np.random.Generator, count: int) -> tuple[Scene, Views, Keypoints]:
    """Draw a scene with a plane, two views of it, and `count` keypoints on it that both views show."""
    while True:
        views = draw_views(rng)
        scene = _with_plane(draw_scene(rng, views.camera1))
        weights = rng.gamma(0.5, size=scene.num_clusters) * (scene.surfaces == PLANE)
        weights *= views.project(scene.middles())[1]
        if np.count_nonzero(weights) < 4:
            continue
        candidates = scene.draw(rng, weights, 4 * count + 50)
        seen = views.project(candidates)[1]
        # Depths are bounded, so a steep plane bends if it comes too near or too far. Such keypoints are excluded.
        flat = candidates.inverse_depths == np.clip(candidates.inverse_depths, 0.021, 3.99)
        chosen = np.flatnonzero(seen & flat)[:count]
        if len(chosen) == count:
            return scene, views, candidates.take(chosen)


def _with_plane(scene: Scene) -> Scene:
    """Return the scene with a smooth plane as its largest surface."""
    faces, roughness = scene.faces.copy(), scene.roughness.copy()
    faces[PLANE], roughness[PLANE] = faces[PLANE, 0], 0.0
    return replace(scene, faces=faces, roughness=roughness)


def _homography(scene: Scene, views: Views) -> Array:
    """Compute H of the plane: with inverse depth ``a . x`` on the ray x, image 2 sees the ray ``R x + (a . x) t``."""
    H = views.camera2.K @ (views.R + np.outer(views.t, scene.faces[PLANE, 0])) @ np.linalg.inv(views.camera1.K)
    return np.asarray(H / np.linalg.norm(H))


def _rectangle(points: Array) -> Array:
    """Return the corners (4, 2) of the bounding rectangle of points (n, 2)."""
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
