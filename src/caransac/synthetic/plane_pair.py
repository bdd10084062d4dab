"""A pair of images of a plane: correspondences and the true homography."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, homogeneous

RIGHT_PX = 3.0  # transfer error below which a match is right


@dataclass(frozen=True, eq=False)
class PlanePair:
    """Correspondences of two images, and the homography of the plane that both show.

    Attributes:
        name: of the pair.
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        scores: (n,) second-nearest-neighbour ratios, lower for better matches.
        H: (3, 3) true homography, ``x2 ~ H x1``.
        corners: (4, 2) pixels in image 1 where the error of a homography is measured: corners of the plane, or of
            the image.
        size1: width and height of image 1.
        size2: width and height of image 2.
    """

    name: str
    points1: Array
    points2: Array
    scores: Array
    H: Array
    corners: Array
    size1: tuple[int, int]
    size2: tuple[int, int]

    def right_matches(self) -> NDArray[np.bool_]:
        """(n,) which matches are within `RIGHT_PX` of the true homography."""
        errors = np.linalg.norm(transfer(self.H, self.points1) - self.points2, axis=1)
        return np.asarray(errors < RIGHT_PX)

    def corner_error_px(self, H: Array | None) -> float:
        """Mean distance in image 2 of the corners from where a homography puts them; infinite for None."""
        if H is None:
            return float("inf")
        errors = np.linalg.norm(transfer(H, self.corners) - transfer(self.H, self.corners), axis=1)
        return float(errors.mean()) if np.isfinite(errors).all() else float("inf")


def transfer(H: Array, points1: Array) -> Array:
    """Where a homography (3, 3) puts points (n, 2) of image 1 in image 2: (n, 2)."""
    moved = homogeneous(points1) @ np.asarray(H, float).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(moved[:, :2] / moved[:, 2:])
