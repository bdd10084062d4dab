"""Alignment of the patches around a match in two photographs, as a specification of the compiled kernel.

It is the inverse compositional algorithm of Baker and Matthews ("Lucas-Kanade 20 Years On", IJCV 2004), on grey levels
that are normalised to mean 0 and deviation 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caransac.geometry.formulas import Array


@dataclass(frozen=True, kw_only=True)
class PatchOptions:
    """Options of `align_patch`, with the names and units of the kernel's arguments."""

    radius: int
    max_steps: int
    max_step: float
    max_shift: float
    min_step: float
    affine_deviation: float


@dataclass(frozen=True, eq=False, kw_only=True)
class AlignedPatch:
    """Result of `align_patch`.

    Attributes:
        point2: (2,) position of the match in image 2.
        map: (2, 2) affine map from image 1 to image 2.
        before: correlation of the patches before the alignment.
        after: correlation after it.
        information: (2, 2) inverse covariance of `point2`.
    """

    point2: Array
    map: Array
    before: float
    after: float
    information: Array


def smooth(image: Array) -> Array:
    """Return grey levels (H, W) filtered by the cubic B-spline, with repeated borders."""
    padded = np.pad(np.asarray(image, float), 1, mode="edge")
    rows = (padded[:-2] + 4 * padded[1:-1] + padded[2:]) / 6
    return np.asarray((rows[:, :-2] + 4 * rows[:, 1:-1] + rows[:, 2:]) / 6)


def sample(image: Array, points: Array) -> Array:
    """Return the grey levels (n,) at points (n, 2), linearly interpolated. Borders are repeated."""
    height, width = image.shape
    x, y = np.clip(points, 0, [width - 1, height - 1]).T
    column, row = np.minimum(x.astype(int), width - 2), np.minimum(y.astype(int), height - 2)
    u, v = x - column, y - row
    upper = (1 - u) * image[row, column] + u * image[row, column + 1]
    lower = (1 - u) * image[row + 1, column] + u * image[row + 1, column + 1]
    return np.asarray((1 - v) * upper + v * lower)


def align_patch(
    image1: Array, image2: Array, point1: Array, point2: Array, map_: Array, options: PatchOptions
) -> AlignedPatch | None:
    """Align the patches of one match, given smooth grey levels and a local affine map of about unit scale.

    Return None if a patch has no texture, lies across the border, or moves too far.
    """
    radius = options.radius
    ticks = np.arange(-radius, radius + 1)
    u = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2).astype(float)
    weights = np.exp(-(u**2).sum(axis=1) / (2 * (0.6 * radius) ** 2))
    weights /= weights.sum()
    middle = np.rint(point1)  # whole pixels of image 1 need no interpolation
    start = point2 + map_ @ (middle - point1)
    inside = np.ones(len(u), bool)
    for image, at in ((image1, middle + u), (image2, start + u @ map_.T)):
        inside &= ((at >= 0) & (at <= np.array(image.shape[::-1]) - 1)).all(axis=1)
    weights = np.where(inside, weights, 0.0)
    if weights.sum() < 0.5:
        return None
    weights /= weights.sum()

    template = _normalised(sample(image1, middle + u), weights)
    if template is None:
        return None
    grey, contrast = template
    gx, gy = ((sample(image1, middle + u + e) - sample(image1, middle + u - e)) / (2 * contrast) for e in np.eye(2))
    columns = [gx, gy]
    if options.affine_deviation > 0:
        columns += [gx * u[:, 0], gx * u[:, 1], gy * u[:, 0], gy * u[:, 1]]
    slopes = np.stack(columns, axis=1)
    slopes -= weights @ slopes
    slopes -= grey[:, None] * ((weights * grey) @ slopes)
    H = slopes.T @ (weights[:, None] * slopes)

    def variance(correlation: float) -> float:
        return (2 * (1 - correlation) + 0.01) / (len(u) / 30)  # every thirtieth pixel has an independent error

    centre, map_, correlations = start.copy(), map_.copy(), list[float]()
    for step in range(options.max_steps + 1):
        moved = _normalised(sample(image2, centre + u @ map_.T), weights)
        if moved is None:
            return None
        correlations.append(float((weights * moved[0]) @ grey))
        if step == options.max_steps:
            break
        deviations = [options.max_shift] * 2 + [options.affine_deviation] * (len(H) - 2)
        prior = np.diag(variance(correlations[0]) / np.square(deviations))
        change = np.linalg.solve(H + prior, slopes.T @ (weights * (moved[0] - grey)))
        if len(change) > 2:
            map_ = map_ @ np.linalg.inv(np.eye(2) + change[2:].reshape(2, 2))
        shift = -map_ @ change[:2]
        length = float(np.linalg.norm(shift))
        centre = centre + shift * min(1.0, options.max_step / max(length, 1e-12))
        if np.linalg.norm(centre - start) > options.max_shift:
            return None
        if length < options.min_step:
            break
    back = np.linalg.inv(map_)
    return AlignedPatch(
        point2=centre - map_ @ (middle - point1),
        map=map_,
        before=correlations[0],
        after=correlations[-1],
        information=back.T @ H[:2, :2] @ back / variance(correlations[-1]),
    )


def _normalised(grey: Array, weights: Array) -> tuple[Array, float] | None:
    """Return grey levels with weighted mean 0 and deviation 1, and their deviation; None if they are constant."""
    mean = float(weights @ grey)
    deviation = float(weights @ (grey - mean) ** 2) ** 0.5
    return None if deviation <= 1e-6 * abs(mean) else ((grey - mean) / deviation, deviation)
