"""Pairs as photographs have them: cropped, zoomed, through lenses that bend straight lines, mirrored, with overlays.

Data sets with truth were undistorted and mostly taken with one kind of lens; the confidence must not assume that all
photographs are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, homogeneous
from caransac_lab.datasets import Pair
from caransac_lab.synthetic.distributions import log_uniform

CROPPED, ONE_CROPPED = 0.35, 0.3  # share of pairs that are cropped, and share of these of which only one image is
SIDES = (0.3, 0.95)  # of what is left, in sides of the image: a lens of up to three times the focal length
OFF_CENTRE = 0.02  # deviation of the middle of a crop, in its longer side
DISTORTIONS = (0.01, 0.15)  # deviation of k1, of lenses from good to bad
MIN_MATCHES = 20  # that are left by a crop, at least
OVERLAYS, OVERLAY_SIDES, OVERLAY_NOISE_PX = (0.1, 2.0), (0.08, 0.5), 0.3  # matches in right ones; sides in the image's
SKEWS = (0.001, 0.03)  # of a rolling shutter, in heights of the image


def cropped(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with both images cropped, as a longer lens sees them, or one, as if zoomed; or as it is, at random."""
    if rng.random() >= CROPPED:
        return pair
    side = log_uniform(rng, *SIDES)
    one = rng.random() < ONE_CROPPED
    sides = (side, 1.0) if one and rng.random() < 0.5 else (1.0 if one else side, side)
    camera1, origin1 = _crop(pair.camera1, sides[0], rng)
    camera2, origin2 = _crop(pair.camera2, sides[1], rng)
    points1, points2 = pair.points1 - origin1, pair.points2 - origin2
    kept = _inside(points1, camera1) & _inside(points2, camera2)
    if np.count_nonzero(kept) < MIN_MATCHES:
        return pair
    return replace(pair, points1=points1, points2=points2, camera1=camera1, camera2=camera2).take(kept)


def bent(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair through a lens with radial distortion, of which its cameras do not know."""
    k1 = rng.normal(0, log_uniform(rng, *DISTORTIONS))
    return replace(pair, points1=_bend(pair.points1, pair.camera1, k1), points2=_bend(pair.points2, pair.camera2, k1))


def mirrored(pair: Pair) -> Pair:
    """The pair with its second image mirrored: no pose is right."""
    points2 = pair.points2.copy()
    points2[:, 0] = 2 * pair.camera2.K[0, 2] - points2[:, 0]
    return replace(pair, points2=points2, R=None, t=None)


def overlaid(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with matches in a corner that do not move: a logo, the bonnet of a car, dirt on the lens."""
    right = np.flatnonzero(pair.right_matches() > 0)
    right = right if len(right) else np.arange(len(pair.points1))  # of a camera that only turned
    drawn = rng.choice(right, max(int(log_uniform(rng, *OVERLAYS) * len(right)), 2))  # whose scores they have
    low, high = pair.points1.min(axis=0), pair.points1.max(axis=0)
    sides = rng.uniform(*OVERLAY_SIDES, 2) * (high - low)
    corner = np.where(rng.random(2) < 0.5, low, high - sides)
    still = corner + rng.uniform(0, 1, (len(drawn), 2)) * sides
    index = np.concatenate([np.arange(len(pair.points1)), drawn])
    joined, order = pair.take(index), rng.permutation(len(index))
    joined.points1[-len(drawn) :] = still
    joined.points2[-len(drawn) :] = still + OVERLAY_NOISE_PX * rng.normal(size=still.shape)
    return joined.take(order)


def sheared(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair through a rolling shutter of a camera that turns: lower rows are later, and farther to one side."""
    skew = rng.normal(0, log_uniform(rng, *SKEWS), 2)
    points = []
    for pixels, camera, each in zip((pair.points1, pair.points2), (pair.camera1, pair.camera2), skew, strict=True):
        rows = pixels[:, 1] - camera.K[1, 2]
        points.append(pixels + np.stack([each * rows, 0.3 * rng.normal() * each * rows], axis=1))
    return replace(pair, points1=points[0], points2=points[1])


def _bend(points: Array, camera: Camera, k1: float) -> Array:
    rays = camera.pixels_to_rays(points)
    bent = rays * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True))
    return np.asarray(np.where(np.isfinite(bent), (homogeneous(bent) @ camera.K.T)[:, :2], points))


def _crop(camera: Camera, side: float, rng: np.random.Generator) -> tuple[Camera, Array]:
    """The camera of a crop of about the middle, and where that begins."""
    cx, cy = camera.K[:2, 2]
    size = np.array([camera.width, camera.height] if camera.width else [round(2 * cx + 1), round(2 * cy + 1)])
    if side == 1.0:
        return replace(camera, width=int(size[0]), height=int(size[1])), np.zeros(2)
    new = np.maximum(np.rint(side * size), 1)
    origin = (size - new) / 2 + OFF_CENTRE * new.max() * rng.normal(size=2)
    moved = camera.adjusted(1.0, (-origin[0], -origin[1]), camera.focal_deviation)
    return replace(moved, width=int(new[0]), height=int(new[1])), origin


def _inside(points: Array, camera: Camera) -> NDArray[np.bool_]:
    return np.asarray((points >= 0).all(axis=1) & (points <= (camera.width - 1, camera.height - 1)).all(axis=1))
