"""Base class of the problems with uncalibrated pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caransac.geometry import Array
from caransac.kernels import Correspondences, normalise
from caransac.robust.problems.base import Problem

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on


class PixelProblem(Problem):
    """Points are pixels, centred and divided by one scale for both images."""

    def __init__(self, correspondences: Correspondences, pixel: float = 1.0) -> None:
        super().__init__(correspondences, pixel)
        self._normalise1 = self._normalise2 = np.eye(3)

    @classmethod
    def from_pixels(cls, pixels1: Array, pixels2: Array) -> Self:
        """Make the problem from pixels (n, 2)."""
        points, centres, scale = normalise(pixels1, pixels2)
        problem = cls(points, scale)
        problem._normalise1, problem._normalise2 = (
            np.array([[scale, 0, -scale * x], [0, scale, -scale * y], [0, 0, 1]]) for x, y in centres
        )
        return problem
