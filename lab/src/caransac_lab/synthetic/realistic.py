"""Realistic pairs, as from image matching."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
from caransac.options import ScoreKind, check_score_kind
from caransac.synthetic import SyntheticPair
from caransac_lab.synthetic.distributions import log_uniform
from caransac_lab.synthetic.outliers import draw_outliers, share_points
from caransac_lab.synthetic.scene import Keypoints, Scene, Views, draw_scene, draw_views, image_size
from caransac_lab.synthetic.scores import DESCRIPTORS, draw_confidences, draw_ratios


def random_pair(
    rng: np.random.Generator,
    *,
    num_points: int | None = None,
    inlier_ratio: float | None = None,
    score_kind: ScoreKind | None = None,
) -> SyntheticPair:
    """Create a realistic pair: surfaces, clustered keypoints, structured outliers, realistic scores.

    Arguments that are None are drawn at random.

    Args:
        rng: source of randomness; the same state gives the same pair.
        num_points: number of matches; by default from 100 to 8000, log-uniform.
        inlier_ratio: fraction of right matches, from 0 to 1; by default from 0.02 to 0.95, mostly low, with at least 12
            right matches.
        score_kind: kind of the scores.
    """
    if num_points is None:
        num_points = round(log_uniform(rng, 100, 8000))
    elif num_points < 1:
        raise ValueError(f"num_points must be at least 1, not {num_points!r}")
    if inlier_ratio is None:
        inlier_ratio = min(max(0.02 + 0.93 * float(rng.beta(0.8, 2.2)), 12 / num_points), 1.0)
    elif not 0 <= inlier_ratio <= 1:
        raise ValueError(f"inlier_ratio must be between 0 and 1, not {inlier_ratio!r}")
    if score_kind is None:
        score_kind = "ratio" if rng.random() < 0.5 else "confidence"
    check_score_kind(None, score_kind)

    descriptor = DESCRIPTORS[rng.integers(len(DESCRIPTORS))]
    num_inliers = round(num_points * inlier_ratio)
    scene, views, right = _draw_inliers(rng, num_inliers)
    wrong1, wrong2, looks_right = draw_outliers(rng, scene, views, right, descriptor, num_points - num_inliers)
    points1 = np.concatenate([right.pixels, wrong1])
    points2 = np.concatenate([views.project(right)[0], wrong2])
    # If a pattern repeats, the second-nearest descriptor is a good one, too.
    distinct = np.where(scene.repetitive[scene.surfaces[right.clusters]], rng.uniform(0.4, 1), 1.0)
    ratios = draw_ratios(rng, descriptor, inlier_ratio, np.concatenate([distinct, looks_right]))

    noise_px = draw_noise_px(rng, num_points)
    points1 = np.clip(points1 + noise_px[0], 0, image_size(views.camera1))
    points2 = np.clip(points2 + noise_px[1], 0, image_size(views.camera2))
    if not descriptor.mutual:
        points2 = share_points(rng, points2, num_inliers)
    scores = ratios if score_kind == "ratio" else draw_confidences(rng, ratios)
    order = rng.permutation(num_points)
    cameras, t = (views.camera1, views.camera2), views.t / np.linalg.norm(views.t)
    inliers = order < num_inliers
    return SyntheticPair(points1[order], points2[order], *cameras, scores[order], views.R, t, inliers, score_kind)


def _draw_inliers(rng: np.random.Generator, count: int) -> tuple[Scene, Views, Keypoints]:
    """Draw a scene, two views of it, and `count` keypoints that both views show."""
    for attempt in range(10):
        views = draw_views(rng)
        if attempt == 9:  # two nearly equal views share almost all keypoints
            views = Views(views.camera1, views.camera1, np.eye(3), 0.01 * views.t / np.linalg.norm(views.t))
        scene = draw_scene(rng, views.camera1)
        # Right matches crowd in regions of good texture and overlap: even if nine in ten matches are wrong, half of the
        # neighbours of a right match are right.
        weights = rng.gamma(log_uniform(rng, 0.1, 1), size=scene.num_clusters)
        candidates = scene.draw(rng, weights * views.project(scene.middles())[1] + 1e-9, 2 * count + 50)
        seen = np.flatnonzero(views.project(candidates)[1])
        if len(seen) >= max(count / 2, 12):
            break
    return scene, views, candidates.take(np.resize(seen, count))


def draw_noise_px(rng: np.random.Generator, count: int) -> Array:
    """Draw keypoint errors (2, count, 2): 0.2 to 2 px depending on the pair, more in higher octaves, heavy-tailed."""
    octaves = np.minimum(rng.exponential(0.5, (count, 1)), 3)
    errors = np.clip(rng.standard_t(5, (2, count, 2)), -6, 6) / 1.29  # unit standard deviation
    return np.asarray(0.2 * 10 ** rng.beta(1, 2) * 2**octaves * errors)
