"""Scenes that leave a pose undetermined or doubtful: planes, lines, rotations, tiny baselines, few matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac.synthetic.distributions import log_uniform

HardKind = Literal["depth", "plane", "line", "rotation", "tiny baseline", "few matches", "wrong focal"]
HARD_KINDS: tuple[HardKind, ...] = get_args(HardKind)

CAMERA = Camera("SIMPLE_PINHOLE", (900.0, 640.0, 480.0), 1280, 960)
NUM_POINTS, FEW_POINTS = (60, 600), (8, 30)
NOISES_PX = (0.3, 0.5, 1.0)
BASELINES, TINY_BASELINES = (0.1, 0.4), (1e-4, 10**-2.5)  # in depths
TURN = 0.12  # deviation of the rotation vector
WRONG_FACTORS = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class HardPair:
    """Matches of a hard scene.

    Attributes:
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        camera: of both images, as an estimator is told.
        R: (3, 3) true rotation.
        t: (3,) true translation of length one; None where the camera did not move.
    """

    points1: Array
    points2: Array
    camera: Camera
    R: Array
    t: Array | None


def make_hard_pair(kind: HardKind, rng: np.random.Generator, outlier_ratio: float = 0.0) -> HardPair:
    """A random pair of images of a hard scene, without scores; "depth" is an ordinary scene, to compare with."""
    R = rotation_from_vector(TURN * rng.normal(size=3))
    direction = rng.normal(size=3) * (1, 0.6, 0.5)
    low, high = TINY_BASELINES if kind == "tiny baseline" else BASELINES
    t = (kind != "rotation") * log_uniform(rng, low, high) * direction / np.linalg.norm(direction)
    count = int(rng.integers(*(FEW_POINTS if kind == "few matches" else NUM_POINTS)))
    points = _points(kind, 40 * count, rng)
    moved = points @ R.T + t
    ahead = (points[:, 2] > 0.1) & (moved[:, 2] > 0.1)
    pixels1, pixels2 = (CAMERA.rays_to_pixels(x[ahead, :2] / x[ahead, 2:]) for x in (points, moved))
    seen = np.flatnonzero([_inside(a) and _inside(b) for a, b in zip(pixels1, pixels2, strict=True)])[:count]
    noise = float(rng.choice(NOISES_PX))
    pixels1, pixels2 = (pixels[seen] + noise * rng.normal(size=(len(seen), 2)) for pixels in (pixels1, pixels2))
    num_wrong = round(len(seen) * outlier_ratio / (1 - outlier_ratio))
    size = CAMERA.width, CAMERA.height
    pixels1, pixels2 = (np.concatenate([p, rng.uniform(0, 1, (num_wrong, 2)) * size]) for p in (pixels1, pixels2))
    order = rng.permutation(len(pixels1))
    factor = float(rng.choice(WRONG_FACTORS)) if kind == "wrong focal" else 1.0
    length = float(np.linalg.norm(t))
    return HardPair(
        pixels1[order], pixels2[order], CAMERA.adjusted(factor, (0, 0), 0.0), R, t / length if length > 0 else None
    )


def _points(kind: HardKind, count: int, rng: np.random.Generator) -> Array:
    """Points (count, 3) of a scene at a depth of about one."""
    if kind == "line":
        middle, direction = np.array([*rng.uniform(-0.4, 0.4, 2), 1.0]), rng.normal(size=3)
        return middle + rng.uniform(-0.6, 0.6, (count, 1)) * direction / np.linalg.norm(direction)
    pixels = rng.uniform(0, 1, (count, 2)) * (CAMERA.width, CAMERA.height)
    rays = homogeneous(CAMERA.pixels_to_rays(pixels))
    if kind == "plane":
        inverse_depths = rays @ np.array([*(0.5 * rng.normal(size=2)), 1.0])
        return np.asarray(rays / np.where(inverse_depths > 0.2, inverse_depths, -1)[:, None])
    return np.asarray(rays * np.exp(rng.uniform(-0.7, 0.7, (count, 1))))


def _inside(pixel: Array) -> bool:
    return bool(0 <= pixel[0] < CAMERA.width and 0 <= pixel[1] < CAMERA.height)
