"""Effects of photographs on pairs: crops, zoom, lens distortion, mirroring, overlays.

Data sets with truth are undistorted and mostly taken with one kind of lens. The confidence must not assume that all
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

CROPPED, ONE_CROPPED = 0.35, 0.3  # share of cropped pairs, and share of these with only one cropped image
SIDES = (0.3, 0.95)  # sides of the crop divided by those of the image: up to three times the focal length
OFF_CENTRE = 0.02  # deviation of the centre of a crop, divided by its longer side
DISTORTIONS = (0.01, 0.15)  # deviations of k1, from good to bad lenses
MIN_MATCHES = 20  # minimum number of matches after a crop
# Matches divided by right matches; sides divided by those of the image; noise of the matches.
OVERLAYS, OVERLAY_SIDES, OVERLAY_NOISE_PX = (0.1, 2.0), (0.08, 0.5), 0.3
SKEWS = (0.001, 0.03)  # skew of a rolling shutter, divided by the image height


def cropped(pair: Pair, rng: np.random.Generator) -> Pair:
    """Crop both images of a pair, as with a longer lens, or one, as with a zoom, or none, at random."""
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
    """Add radial distortion to a pair. Its cameras remain without distortion."""
    k1 = rng.normal(0, log_uniform(rng, *DISTORTIONS))
    return replace(pair, points1=_bend(pair.points1, pair.camera1, k1), points2=_bend(pair.points2, pair.camera2, k1))


def mirrored(pair: Pair) -> Pair:
    """Mirror the second image of a pair, so that no pose is right."""
    points2 = pair.points2.copy()
    points2[:, 0] = 2 * pair.camera2.K[0, 2] - points2[:, 0]
    return replace(pair, points2=points2, R=None, t=None)


def overlaid(pair: Pair, rng: np.random.Generator) -> Pair:
    """Add static matches in a corner of a pair: a logo, the bonnet of a car, dirt on the lens."""
    right = np.flatnonzero(pair.right_matches() > 0)
    right = right if len(right) else np.arange(len(pair.points1))  # a camera that only rotated has no right matches
    # The new matches copy the scores of these right matches.
    drawn = rng.choice(right, max(int(log_uniform(rng, *OVERLAYS) * len(right)), 2))
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
    """Add the rolling shutter of a rotating camera to a pair: lower rows are later and farther to one side."""
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
    """Return the camera of a crop near the centre, and the corner of the crop."""
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
