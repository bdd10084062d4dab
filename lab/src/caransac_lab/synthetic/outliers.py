"""Wrong matches with realistic causes."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, rotation_from_vector
from caransac_lab.synthetic.distributions import log_uniform
from caransac_lab.synthetic.scene import Keypoints, Scene, Views, image_size, reflect
from caransac_lab.synthetic.scores import Descriptor

# Causes of wrong matches other than chance, and the share of each that has ratios like right matches. For RootSIFT,
# wrong matches that agree with their neighbours have a median ratio of 0.90 and a first decile of 0.65; for the others
# these are 0.95 and 0.86. About a third therefore look right. For ALIKED they are mostly near misses and look hardly
# better than its other wrong matches (medians 0.96 and 0.97).
LOOKS_RIGHT = {"near miss": 0.1, "repetition": 0.4, "displaced patch": 0.3, "moving object": 0.9}


def draw_outliers(
    rng: np.random.Generator,
    scene: Scene,
    views: Views,
    right: Keypoints,
    descriptor: Descriptor,
    count: int,
    max_coherent: int | None = None,
) -> tuple[Array, Array, Array]:
    """Draw wrong matches: pixels (count, 2) in both images, and whether each looks right (count,), 0 or 1.

    `max_coherent` limits the number of wrong matches for each cause that makes many of them agree with each other.
    """
    # Both images have keypoints on texture; image 2 also on objects that image 1 does not show. A wrong match connects
    # any two keypoints, but seldom keypoints that have a right match.
    size2, num_clusters = image_size(views.camera2), scene.num_clusters
    texture = rng.gamma(log_uniform(rng, 0.2, 1.5), size=num_clusters) + 0.02
    crowds = np.bincount(right.clusters, minlength=num_clusters) * num_clusters / max(len(right.clusters), 1)
    unmatched = texture / (1 + log_uniform(rng, 0.3, 10) * crowds)
    points1 = scene.draw(rng, unmatched, count).pixels
    centres2, shown = views.project(scene.middles())
    centres2[~shown] = rng.random((num_clusters - shown.sum(), 2)) * size2
    clusters = rng.choice(num_clusters, count, p=texture / texture.sum())
    points2 = reflect(centres2[clusters] + scene.radii[clusters, None] * rng.normal(size=(count, 2)), size2)
    anywhere = rng.random(count) < rng.uniform(0, 0.4)
    points1[anywhere] = rng.random((anywhere.sum(), 2)) * image_size(views.camera1)
    points2[anywhere] = rng.random((anywhere.sum(), 2)) * size2

    near_misses = rng.beta(1, 1 / descriptor.near_misses - 1)
    others = rng.dirichlet([0.5] * (len(LOOKS_RIGHT) - 1)) * rng.beta(0.5, 6) * (1 - near_misses)
    counts = rng.multinomial(count, [near_misses, *others, 1 - near_misses - others.sum()])
    if max_coherent is not None:
        counts[1:] = np.minimum(counts[1:], max_coherent)  # the last entry, wrong by chance, takes the rest
    looks_right, stop = np.zeros(count), 0
    for (reason, plausible), number in zip(LOOKS_RIGHT.items(), counts, strict=False):
        part, stop = slice(stop, stop + number), stop + number
        weights = unmatched * shown if reason == "near miss" else rng.gamma(0.1, size=num_clusters)
        points1[part], wrong2 = _mislead(rng, scene, views, reason, weights + 1e-9, number)
        inside = np.all((wrong2 >= 0) & (wrong2 < size2), axis=1)
        points2[part] = np.where(inside[:, None], wrong2, points2[part])
        looks_right[part] = inside & (rng.random(number) < plausible)
    return points1, points2, looks_right


def _mislead(
    rng: np.random.Generator, scene: Scene, views: Views, reason: str, weights: Array, count: int
) -> tuple[Array, Array]:
    """Draw wrong matches with one cause from weighted clusters (c,): pixels (count, 2) in both images."""
    if reason == "repetition" and scene.repetitive.any():
        weights = weights * (scene.repetitive[scene.surfaces] + 1e-6)
    keypoints = scene.draw(rng, weights, count)
    points1, clusters = keypoints.pixels, keypoints.clusters
    if reason == "near miss":
        offsets = np.exp(rng.uniform(np.log(4), np.log(0.25 * image_size(views.camera2).max()), (count, 1)))
        return points1, views.project(keypoints)[0] + offsets * rng.normal(size=(count, 2))
    if reason == "repetition":  # the right surface, some periods of its pattern away
        periods = rng.uniform(-0.06, 0.06, (2, 2)) * image_size(scene.camera).max()
        steps = rng.integers(-2, 3, (scene.num_clusters, 2))[clusters] + rng.integers(0, 2, (count, 2))
        steps[np.all(steps == 0, axis=1)] = 1, 0
        return points1, views.project(scene.keypoints_at(points1 + steps @ periods, clusters, np.zeros(count)))[0]
    if reason == "displaced patch":  # rotated, scaled and moved as a whole
        turns = rng.normal(size=(scene.num_clusters, 2, 2)) * 0.3 + np.eye(2)
        targets = rng.random((scene.num_clusters, 2)) * image_size(views.camera2)
        return points1, targets[clusters] + np.einsum("nij,nj->ni", turns[clusters], points1 - scene.centres[clusters])
    R = rotation_from_vector(rng.normal(size=3) * 0.05) @ views.R  # a moving object
    return points1, Views(views.camera1, views.camera2, R, views.t + rng.normal(size=3) * 0.1).project(keypoints)[0]


def share_points(rng: np.random.Generator, points2: Array, first_outlier: int) -> Array:
    """Replace points of image 2 (n, 2) for matches that need not be mutual: a few points attract many wrong matches."""
    shared = np.flatnonzero(rng.random(len(points2)) < rng.uniform(0.2, 0.8))
    shared = shared[shared >= first_outlier]
    popular = rng.permutation(len(points2))[(len(points2) * rng.random(len(shared)) ** 3).astype(int)]
    shared_points = points2.copy()
    shared_points[shared] = points2[popular]
    return shared_points
