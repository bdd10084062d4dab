"""Correspondences and what is known of them before any model: where they are, the likeliest, samples."""

from __future__ import annotations

from caransac import _native
from caransac._native import Correspondences
from caransac.geometry import Array, Floats
from caransac.kernels._arrays import Indices, integers


def pack(points1: Array, points2: Array) -> Correspondences:
    """Points (n, 2) and (n, 2), a match in every row, as every kernel reads them; a ValueError if one is not finite.

    ``len`` of it is n, ``points1`` and ``points2`` are copies of the points, ``subset`` takes some of them by index,
    ``spreads`` says of either image where its points are, (2, 3): their centre and the spread around it, blind to a few
    absurd ones, and ``in_spreads`` gives the points relative to that.
    """
    return _native.pack(points1, points2)


def pack_space(points2d: Array, points3d: Array) -> Correspondences:
    """Points (n, 2) of an image and the 3D points (n, 3) that they match, as `pack`.

    ``points1`` are those of the image and ``points2`` the 3D points; ``spreads`` and ``in_spreads`` have the first two
    coordinates of the centred 3D points.
    """
    return _native.pack_space(points2d, points3d)


def calibrate(pixels1: Array, pixels2: Array, intrinsics: Array) -> Correspondences:
    """Normalised image coordinates of pixels (n, 2) of two cameras, the rows fx, fy, cx, cy of intrinsics (2, 4)."""
    return _native.calibrate(pixels1, pixels2, intrinsics)


def normalise(pixels1: Array, pixels2: Array) -> tuple[Correspondences, Array, float]:
    """Points ``(pixels - centre) * scale`` of about one for pixels (n, 2) of two images; centres (2, 2); scale.

    Each image is centred by medians, and both are scaled alike.
    """
    return _native.normalise(pixels1, pixels2)


def widths(correspondences: Correspondences, most: int) -> tuple[float, float]:
    """Width of the region of the points in its lengths, in either image: little for a line.

    Medians of the distances along and across the region from its middle; `most` points, or all, are used.
    """
    return _native.widths(correspondences, most)


def most_likely(probabilities: Floats, count: int) -> Indices:
    """Indices (k,) of the `count` most probable points, ascending; of equal ones the first, and all if no more."""
    return _native.most_likely(probabilities, count)


def inner_products(rows: Floats, row: Floats) -> Floats:
    """Inner products (m,) of rows (m, n) with one (n,): the same from any number of threads of any library."""
    return _native.inner_products(rows, row)


def sample_uniform(pool: Indices, size: int, count: int, *, seed: int, first: int = 0) -> Indices:
    """Samples of `size` distinct members of the pool, every subset equally likely: (count, size).

    Sample number first + i depends on the seed and that number only: batches can be drawn in any order, by any number
    of threads and on any platform.
    """
    return _native.sample_uniform(integers(pool), size, count, seed, first)


def sample_prosac(
    pool: Indices, size: int, count: int, *, seed: int, first: int = 0, horizon: float = 200_000.0
) -> Indices:
    """As `sample_uniform`, from a growing prefix of a pool ordered best first (PROSAC): (count, size).

    Args:
        pool: indices, best first.
        size: members of a sample.
        count: samples to draw.
        seed: seed.
        first: number of the first sample.
        horizon: samples after which the prefix has become the whole pool.
    """
    return _native.sample_prosac(integers(pool), size, count, seed, first, horizon)
