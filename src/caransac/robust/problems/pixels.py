"""What problems of uncalibrated pixels share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caransac.geometry import Array
from caransac.options import MaxError
from caransac.robust.problems.base import Problem

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

SMALLEST_SPREAD = 1e-6  # pixels; below, all points are one


class PixelProblem(Problem):
    """Points are pixels, centred and with one scale for both images."""

    def __init__(self, points1: Array, points2: Array, max_error_px: MaxError, pixel: float = 1.0) -> None:
        super().__init__(points1, points2, max_error_px, pixel)
        self._normalise1 = self._normalise2 = np.eye(3)

    @classmethod
    def from_pixels(cls, pixels1: Array, pixels2: Array, max_error_px: MaxError) -> Self:
        """The problem of pixels (n, 2)."""
        points1, points2, normalise1, normalise2 = normalise_pixels(pixels1, pixels2)
        problem = cls(points1, points2, max_error_px, normalise1[0, 0])
        problem._normalise1, problem._normalise2 = normalise1, normalise2
        return problem


def normalise_pixels(pixels1: Array, pixels2: Array) -> tuple[Array, Array, Array, Array]:
    """Pixels (n, 2) of two images as points of the order of one, and the similarities (3, 3) that make them so.

    Each image is centred but both are scaled alike: distances in an image then only change their unit. Medians, because
    a single absurd match would otherwise squeeze all others into a point.
    """
    centre1, centre2 = (np.median(pixels, axis=0) if len(pixels) else np.zeros(2) for pixels in (pixels1, pixels2))
    shifted1, shifted2 = pixels1 - centre1, pixels2 - centre2
    spread = float(np.median(np.abs([shifted1, shifted2]))) if len(pixels1) else 0.0
    scale = 0.5 / spread if spread > SMALLEST_SPREAD else 1.0
    to1, to2 = (
        np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])
        for centre in (centre1, centre2)
    )
    return shifted1 * scale, shifted2 * scale, to1, to2
