"""Queries with an uncertain absolute pose, made from real ones, for fitting and testing the confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac_lab.datasets import Pair, Query
from caransac_lab.synthetic.distributions import log_uniform

FEW = (6, 30)  # number of matches
FOCAL_FACTORS = (1.15, 2.0)  # error factors of focal lengths that are passed as exact
FAR = (5.0, 100.0)  # factors of the depths
MAX_TILT = 1.2  # radians between a plane and the image
UNSCORED = 0.35  # share of hard queries without scores

# Share of right matches that lead to a copy; deviation of the copy's rotation vector.
COPIED, COPY_TURN = (0.1, 0.8), 0.3
PATCH_PX = (20.0, 150.0)  # side of the image region that contains all right matches

HardQuery = Literal["plane", "far", "few", "focal", "copy", "patch"]


def harden(query: Query, kind: HardQuery, rng: np.random.Generator) -> Query:
    """Place the right matches of a query in a hard scene, or use a wrong camera."""
    right = query.right_matches() > 0
    if rng.random() < UNSCORED:
        query = replace(query, scores=None)
    if kind == "focal":
        factor = rng.uniform(*FOCAL_FACTORS) ** rng.choice([-1, 1])
        return replace(query, camera=query.camera.adjusted(factor, (0.0, 0.0), 0.0))
    if kind == "few":
        size = int(rng.integers(FEW[0], FEW[1] + 1))
        num_right = min(int(rng.integers(size // 2, size + 1)), int(right.sum()))
        wrong = rng.permutation(np.flatnonzero(~right))[: size - num_right]
        return take(query, np.concatenate([rng.permutation(np.flatnonzero(right))[:num_right], wrong]))
    if right.sum() < 2:  # too few for a hard scene
        return query
    if kind == "copy":
        return _with_copy(query, right, rng)
    R, t = query.R, query.t
    assert R is not None and t is not None
    if kind == "patch":  # the right matches are moved together in the image, at their depths
        low, high = query.points2d[right].min(axis=0), query.points2d[right].max(axis=0)
        middle, factor = (
            query.points2d[rng.choice(np.flatnonzero(right))],
            log_uniform(rng, *PATCH_PX) / (high - low).max(),
        )
        pushed = middle + factor * (query.points2d - middle)
        query = replace(query, points2d=np.where(right[:, None], pushed, query.points2d))
    rays = homogeneous(query.camera.pixels_to_rays(query.points2d))
    depths: Array = np.maximum((query.points3d @ R[2]) + t[2], 1e-9)
    if kind == "plane":
        normal = rotation_from_vector([*rng.uniform(-MAX_TILT / 2, MAX_TILT / 2, 2), 0.0])[2]
        depths = np.median(depths) / np.maximum(rays @ normal, 0.1)
    elif kind == "far":
        share = rng.uniform(0.3, 1.0)
        depths = np.where(rng.random(len(depths)) < share, depths * log_uniform(rng, *FAR), depths)
    seen = rays * depths[:, None]
    seen[:, :2] += 0.5 / query.camera.mean_focal * depths[:, None] * rng.normal(size=(len(seen), 2))
    space = np.where(right[:, None], (seen - t) @ R, query.points3d)
    return replace(query, points3d=space)


def _with_copy(query: Query, right: NDArray[np.bool_], rng: np.random.Generator) -> Query:
    """Move the 3D points of some right matches to a copy of the scene, as by repetition, symmetry or a moved object."""
    points = query.points3d[right]
    centre, spread = np.median(points, axis=0), points.std(axis=0)
    order = query.points2d @ rng.normal(size=2) if rng.random() < 0.5 else rng.random(len(right))
    copied = right & (order < np.quantile(order[right], rng.uniform(*COPIED)))
    axis = rng.normal(size=3)
    step = spread * rng.normal(size=3) * rng.uniform(0.1, 1.0)
    half_turn = np.pi * axis / np.linalg.norm(axis)
    turn, step = ((np.zeros(3), step), (half_turn, 0 * step), (COPY_TURN * axis, step))[int(rng.integers(3))]
    moved = (query.points3d - centre) @ rotation_from_vector(turn).T + centre + step
    return replace(query, points3d=np.where(copied[:, None], moved, query.points3d))


def in_space(pair: Pair, rng: np.random.Generator) -> Query:
    """Make a query from the matches of unrelated images. Keypoints of image 2 are placed at random depths."""
    rays = homogeneous(pair.camera2.pixels_to_rays(pair.points2))
    slopes, waves = rng.normal(0, 0.5, 2), rng.normal(0, 3, (2, 2))
    depths = np.exp(rays[:, :2] @ slopes + 0.3 * np.sin(rays[:, :2] @ waves).sum(axis=1))
    return Query(
        pair.scene,
        pair.name,
        pair.points1,
        rays * depths[:, None],
        pair.scores,
        pair.camera1,
        None,
        None,
        pair.score_kind,
    )


def take(query: Query, kept: NDArray[np.intp]) -> Query:
    """Return the query with some of its matches."""
    scores = None if query.scores is None else query.scores[kept]
    return replace(query, points2d=query.points2d[kept], points3d=query.points3d[kept], scores=scores)
