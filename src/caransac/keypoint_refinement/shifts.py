"""One shift for every keypoint, from the shifts of many matches: sparse robust least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.tuning import KEYPOINTS

Values = NDArray[Any]  # float32 where memory matters
Numbers = NDArray[np.intp] | NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class AlignedMatches:
    """Matches of keypoints whose patches were aligned.

    Attributes:
        keypoints1: (n,) numbers of the first keypoints, counted over all images.
        keypoints2: (n,) numbers of the second keypoints.
        offsets: (n, 2) distance in pixels from the second keypoint to the point that corresponds to the first one.
        maps: (n, 2, 2) local affine maps from the first image to the second.
        information: (n, 2, 2) inverse covariances of the offsets.
    """

    keypoints1: Numbers
    keypoints2: Numbers
    offsets: Array
    maps: Array
    information: Array

    @classmethod
    def join(cls, parts: Sequence[AlignedMatches]) -> AlignedMatches:
        """Join matches into one record."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__annotations__})

    def residuals(self, shifts: Array) -> Array:
        """Return how far apart the shifted keypoints (N, 2) of each match are, in pixels of the second image (n, 2)."""
        moved = np.einsum("nij,nj->ni", self.maps, shifts[self.keypoints1])
        return np.asarray(shifts[self.keypoints2] - moved - self.offsets)


def solve_shifts(equations: Callable[[], Iterable[Equations]], num_keypoints: int) -> Array:
    """Return the shifts (N, 2) of all keypoints that explain the offsets of the matches.

    Each match gives an equation, ``shift2 - map shift1 = offset``. Connected matches are a track; the equations do not
    determine its position as a whole, so every shift has a prior. Matches that contradict the others of their track
    lose their weight (Cauchy). Each round of reweighting takes some steps of conjugate gradients.

    Args:
        equations: function that returns the equations of all matches in parts. It is called many times, so that they
            need not fit into memory.
        num_keypoints: number of keypoints N.
    """
    shifts = np.zeros((2, num_keypoints), np.float32)  # there may be very many keypoints
    prior = KEYPOINTS.shift_deviation_px**-2
    for scale in KEYPOINTS.scales:
        weights = list[Values]()
        gradient, blocks = prior * shifts, np.zeros((2, 2, num_keypoints), np.float32)
        blocks[0, 0] = blocks[1, 1] = prior
        for part in equations():
            residuals = part.apply(shifts) - part.offsets
            weight = 1 / (1 + (residuals**2).sum(axis=0) / scale**2)
            weights.append(weight.astype(np.float32))
            gradient += part.apply_transposed(weight * residuals, num_keypoints)
            part.add_blocks(weight, blocks)

        def product(vector: Values, weights: list[Values] = weights) -> Values:
            total = prior * vector
            for part, weight in zip(equations(), weights, strict=True):
                total += part.apply_transposed(weight * part.apply(vector), num_keypoints)
            return total

        shifts -= _conjugate_gradients(product, gradient, _inverse(blocks))
    return np.ascontiguousarray(shifts.T, float)


def _conjugate_gradients(product: Callable[[Values], Values], right: Values, preconditioner: Values) -> Values:
    """Return about the x (2, N) with ``product(x) = right``, after a few steps from zero."""
    x, residual = np.zeros_like(right), right
    z = np.einsum("ijn,jn->in", preconditioner, residual)
    direction, length = z, float((residual * z).sum())
    for _ in range(KEYPOINTS.steps):
        if length <= 0:
            break
        image = product(direction)
        step = length / float((direction * image).sum())
        x = x + step * direction
        residual = residual - step * image
        z = np.einsum("ijn,jn->in", preconditioner, residual)
        before, length = length, float((residual * z).sum())
        direction = z + length / before * direction
    return x


class Equations:
    """The equations of some matches, scaled so that the errors have the deviation 1 in all directions.

    Vectors are (2, n): numpy is fastest if the long axis is the last.
    """

    def __init__(self, matches: AlignedMatches) -> None:
        self.keypoints = matches.keypoints1, matches.keypoints2
        # Patches on curved surfaces agree less well than the information of their grey levels promises.
        covariance = _inverse(np.moveaxis(matches.information, 0, 2) + 1e-6 * np.eye(2)[..., None])
        covariance += KEYPOINTS.least_deviation_px**2 * np.eye(2)[..., None]
        scale = _root(_inverse(covariance))
        second = scale.astype(np.float32)  # half the memory and time
        self.factors = -np.einsum("ijn,njk->ikn", second, matches.maps.astype(np.float32)), second
        self.offsets = np.einsum("ijn,nj->in", second, matches.offsets.astype(np.float32))

    def apply(self, shifts: Values) -> Values:
        """Return the left sides (2, n) for shifts (2, N)."""
        shifts = shifts.astype(np.float32)
        first, second = (
            np.einsum("ijn,jn->in", factor, shifts[:, number])
            for factor, number in zip(self.factors, self.keypoints, strict=True)
        )
        return np.asarray(first + second)

    def apply_transposed(self, values: Values, num_keypoints: int) -> Values:
        """Return the product (2, N) of the transposed matrix and values (2, n)."""
        total = np.zeros((2, num_keypoints), np.float32)
        for factor, number in zip(self.factors, self.keypoints, strict=True):
            for axis, value in enumerate(np.einsum("ijn,in->jn", factor, values)):
                total[axis] += np.bincount(number, value, num_keypoints)
        return total

    def add_blocks(self, weight: Values, blocks: Values) -> None:
        """Add the diagonal blocks of the weighted normal matrix to `blocks` (2, 2, N)."""
        for factor, number in zip(self.factors, self.keypoints, strict=True):
            squares = np.einsum("ijn,ikn,n->jkn", factor, factor, weight)
            for row, column in ((0, 0), (0, 1), (1, 1)):
                blocks[row, column] += np.bincount(number, squares[row, column], blocks.shape[2])
        blocks[1, 0] = blocks[0, 1]


def _inverse(matrices: Values) -> Values:
    """Return the inverses of symmetric matrices (2, 2, n)."""
    (a, b), (_, d) = matrices
    return np.asarray(np.array([[d, -b], [-b, a]]) / (a * d - b * b))


def _root(matrices: Values) -> Values:
    """Return upper triangular U with ``U^T U`` equal to positive definite matrices (2, 2, n)."""
    (a, b), (_, d) = matrices
    top = np.sqrt(a)
    return np.array([[top, b / top], [np.zeros_like(a), np.sqrt(d - b * b / a)]])
