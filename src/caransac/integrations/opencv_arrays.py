"""Arrays of OpenCV's calls: points in all its forms, masks, and cv2.UMat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_array, as_reals


def as_points(points: Any, name: str, *, width: int = 2, homogeneous: bool = False) -> Any:
    """Convert points (N, 1, width) or (1, N, width), or an empty list, to (N, width). Estimators check the rest.

    With `homogeneous`, three coordinates are accepted, too. As in cv2, a point at infinity is replaced by its first two
    coordinates.
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
    """Return the mask (N, 1) uint8 like cv2.

    Args:
        mask: mask of the caller, or None. It is filled and returned if it fits.
        inliers: (N,) values of the mask.
        fewest: minimum number of points. With fewer, the result is None.
        on_device: whether to return a cv2.UMat.
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

    untyped: Any = cv2  # its stubs lack both of these calls
    if is_umat(mask) and mask.get().size == len(inliers):
        untyped.copyTo(column.reshape(mask.get().shape), None, mask)  # into the caller's memory
        return mask
    return untyped.UMat(column)


def is_umat(value: object) -> bool:
    """Return True for a cv2.UMat, without importing cv2."""
    return type(value).__name__ == "UMat" and callable(getattr(value, "get", None))


def downloaded(value: Any) -> Any:
    """Return a cv2.UMat as an array, and any other value unchanged."""
    return value.get() if is_umat(value) else value
