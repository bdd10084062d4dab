"""The arrays of OpenCV's calls: points in its forms, masks, and a cv2.UMat for any of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_array, as_reals


def as_points(points: Any, name: str, *, width: int = 2, homogeneous: bool = False) -> Any:
    """Points (N, 1, width) and (1, N, width), and an empty list, as (N, width); the estimation checks the rest.

    With `homogeneous`, points of three coordinates too; as in cv2, those at infinity keep their direction for a place.
    """
    points = downloaded(points)
    array = as_array(points, name)
    if np.ma.isMaskedArray(points):
        return points
    if array.size == 0:
        return np.empty((0, width))
    if array.ndim == 3 and array.shape[2] in (width, 3 if homogeneous else width) and 1 in array.shape[:2]:
        array = array.reshape(-1, array.shape[2])
    if homogeneous and array.ndim == 2 and array.shape[1] == 3:
        array = as_reals(array, name)
        array = array[:, :2] / np.where(array[:, 2:] == 0, 1, array[:, 2:])
    return array


def write_mask(mask: Any, inliers: NDArray[np.bool_], *, fewest: int, on_device: bool) -> Any:
    """The mask (N, 1) uint8 as cv2 returns it.

    Args:
        mask: the caller's, or None. It is filled and returned if it fits.
        inliers: (N,) what goes into it.
        fewest: points below which there is none.
        on_device: whether it is to be a cv2.UMat.
    """
    if isinstance(mask, np.ndarray) and not on_device and mask.dtype == np.uint8 and mask.size == len(inliers):
        if not mask.flags.writeable:
            raise ValueError("mask must be writable: the inliers are written to it")
        mask[...] = inliers.reshape(mask.shape)
        return mask
    column = inliers.astype(np.uint8)[:, None]
    if not on_device:
        return column if len(inliers) >= fewest else None
    import cv2

    untyped: Any = cv2  # whose stubs know neither of these calls
    if is_umat(mask) and mask.get().size == len(inliers):
        untyped.copyTo(column.reshape(mask.get().shape), None, mask)  # into the caller's memory
        return mask
    return untyped.UMat(column)


def is_umat(value: object) -> bool:
    """Whether something is a cv2.UMat, which can be told without importing cv2."""
    return type(value).__name__ == "UMat" and callable(getattr(value, "get", None))


def downloaded(value: Any) -> Any:
    """A cv2.UMat as an array; anything else as it is."""
    return value.get() if is_umat(value) else value
