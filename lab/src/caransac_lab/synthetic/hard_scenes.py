"""Scenes with ambiguous or uncertain poses: planes, lines, rotations, tiny baselines, two motions, duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac_lab.synthetic.distributions import log_uniform

HardKind = Literal[
    "depth",
    "plane",
    "line",
    "rotation",
    "tiny baseline",
    "few matches",
    "few matches at random",
    "wrong focal",
    "near rotation",
    "two motions",
    "symmetric copy",
    "repeated facade",
    "copies",
    "same image",
]
HARD_KINDS: tuple[HardKind, ...] = get_args(HardKind)

CAMERA = Camera("SIMPLE_PINHOLE", (900.0, 640.0, 480.0), 1280, 960)
NUM_POINTS, FEW_POINTS = (60, 600), (8, 30)
NOISES_PX = (0.3, 0.5, 1.0)
BASELINES, TINY_BASELINES = (0.1, 0.4), (1e-4, 10**-2.5)  # divided by the depth of the scene
TURN = 0.12  # standard deviation of the rotation vector
WRONG_FACTORS = (0.5, 2.0)
# Triangulation angles; k1 of a lens that the estimator does not know.
NEAR_ANGLES_DEG, NEAR_DISTORTION = (0.2, 2.0), -0.05
MOVING = 0.6  # share of the matches that follow a moving object or a copy of the scene
# Share on the facade; share of these that match the next window; period of the windows in depths.
FACADE, SHIFTED, PERIOD = 0.75, 0.6, (0.05, 0.12)
DISTINCT, COPIES = (8, 16), (20, 40)  # number of distinct matches, and number of copies of each
SIZES: dict[HardKind, tuple[int, int]] = {
    "few matches": FEW_POINTS,
    "few matches at random": FEW_POINTS,
    "copies": DISTINCT,
}


@dataclass(frozen=True, eq=False)
class HardPair:
    """Matches of a hard scene.

    Attributes:
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        camera: camera of both images, as passed to an estimator.
        R: (3, 3) true rotation.
        t: (3,) true translation of unit length; None if the camera did not move.
    """

    points1: Array
    points2: Array
    camera: Camera
    R: Array
    t: Array | None


def make_hard_pair(kind: HardKind, rng: np.random.Generator, outlier_ratio: float = 0.0) -> HardPair:
    """Create a random pair of a hard scene, without scores. "depth" is an ordinary scene for comparison."""
    R = rotation_from_vector(TURN * rng.normal(size=3))
    t = _translation(kind, rng)
    if kind == "same image":
        R = np.eye(3)
    low, high = SIZES.get(kind, NUM_POINTS)
    count = int(rng.integers(low, high))
    points = _points(kind, 40 * count, rng)
    moved = points @ R.T + t
    if kind in ("two motions", "symmetric copy", "repeated facade"):
        points, moved = _otherwise(kind, points, moved, R, count, rng)
    ahead = (points[:, 2] > 0.1) & (moved[:, 2] > 0.1)
    k1 = NEAR_DISTORTION if kind == "near rotation" else 0.0
    pixels1, pixels2 = (_project(x[ahead], k1) for x in (points, moved))
    seen = np.flatnonzero([_inside(a) and _inside(b) for a, b in zip(pixels1, pixels2, strict=True)])[:count]
    noise = 0.0 if kind == "same image" else float(rng.choice(NOISES_PX))
    pixels1, pixels2 = (pixels[seen] + noise * rng.normal(size=(len(seen), 2)) for pixels in (pixels1, pixels2))
    if kind == "few matches at random":  # the result of filtering matches of images that do not overlap
        pixels2 = rng.permutation(pixels2)
    num_wrong = round(len(seen) * outlier_ratio / (1 - outlier_ratio))
    size = CAMERA.width, CAMERA.height
    pixels1, pixels2 = (np.concatenate([p, rng.uniform(0, 1, (num_wrong, 2)) * size]) for p in (pixels1, pixels2))
    order = rng.permutation(len(pixels1))
    if kind == "copies":
        order = rng.permutation(np.repeat(order, rng.integers(*COPIES, len(order))))
    factor = float(rng.choice(WRONG_FACTORS)) if kind == "wrong focal" else 1.0
    length = float(np.linalg.norm(t))
    return HardPair(
        pixels1[order], pixels2[order], CAMERA.adjusted(factor, (0, 0), 0.0), R, t / length if length > 0 else None
    )


def _translation(kind: HardKind, rng: np.random.Generator) -> Array:
    """Draw the translation of the camera, in depths."""
    direction = rng.normal(size=3) * (1, 0.6, 0.5)
    low, high = TINY_BASELINES if kind == "tiny baseline" else BASELINES
    if kind == "near rotation":
        low, high = (float(np.tan(np.radians(angle))) for angle in NEAR_ANGLES_DEG)
    return np.asarray(
        (kind not in ("rotation", "same image")) * log_uniform(rng, low, high) * direction / np.linalg.norm(direction)
    )


def _otherwise(
    kind: HardKind, points: Array, moved: Array, R: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Move some points (n, 3) by another motion, or match them to others. Return the points and their new positions.

    Visible points come first, in the shares that both motions must have among `count` matches.
    """
    rays, share = points[:, :2] / points[:, 2:], MOVING
    if kind == "repeated facade":
        is_facade, share = np.arange(len(points)) < FACADE * len(points), FACADE * SHIFTED
        shift = rng.uniform(*PERIOD) * np.array([rng.choice([-1.0, 1.0]), 0.0, 0.0])
        moving = is_facade & (rng.random(len(points)) < SHIFTED)
        otherwise = moved + shift @ R.T
    else:  # an object covers one region; a copy of the scene covers the whole image
        place = rays @ rng.normal(size=2) if kind == "two motions" else rng.random(len(points))
        moving = place < np.quantile(place, MOVING)
        other = R @ rotation_from_vector(0.5 * TURN * rng.normal(size=3))
        otherwise = points @ other.T + _translation("depth", rng)
    moved = np.where(moving[:, None], otherwise, moved)
    seen = (points[:, 2] > 0.1) & (moved[:, 2] > 0.1)
    seen &= [
        _inside(pixel) for pixel in CAMERA.rays_to_pixels(moved[:, :2] / np.where(seen, moved[:, 2], 1.0)[:, None])
    ]
    number = round(share * count)
    chosen = [np.flatnonzero(seen & moving)[:number], np.flatnonzero(seen & ~moving)[: count - number]]
    order = rng.permutation(np.concatenate(chosen))
    return points[order], moved[order]


def _project(points: Array, k1: float) -> Array:
    rays = points[:, :2] / points[:, 2:]
    return CAMERA.rays_to_pixels(rays * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True)))


def _points(kind: HardKind, count: int, rng: np.random.Generator) -> Array:
    """Draw the points (count, 3) of a scene at a depth of about one."""
    if kind == "line":
        middle, direction = np.array([*rng.uniform(-0.4, 0.4, 2), 1.0]), rng.normal(size=3)
        return middle + rng.uniform(-0.6, 0.6, (count, 1)) * direction / np.linalg.norm(direction)
    pixels = rng.uniform(0, 1, (count, 2)) * (CAMERA.width, CAMERA.height)
    rays = homogeneous(CAMERA.pixels_to_rays(pixels))
    if kind == "plane":
        inverse_depths = rays @ np.array([*(0.5 * rng.normal(size=2)), 1.0])
        return np.asarray(rays / np.where(inverse_depths > 0.2, inverse_depths, -1)[:, None])
    depths = np.exp(rng.uniform(-0.7, 0.7, (count, 1)))
    if kind == "repeated facade":
        depths[: int(FACADE * count)] = 1.0
    return np.asarray(rays * depths)


def _inside(pixel: Array) -> bool:
    return bool(0 <= pixel[0] < CAMERA.width and 0 <= pixel[1] < CAMERA.height)
