"""Check the points and scores that users pass, and convert them to float64 arrays."""

from __future__ import annotations

import sys
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

MOST_SHOWN = 200  # characters of a value in an error message
LARGEST = 1e12  # larger than any pixel coordinate; squares and products of such numbers do not overflow
LARGEST_SIDE = 10**6  # maximum width or height of an image, in pixels


def is_integer(value: object) -> TypeGuard[int]:
    """Return True for Python and numpy integers, except bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_real(value: object) -> TypeGuard[float]:
    """Return True for Python and numpy real numbers, except bool."""
    return isinstance(value, (float, np.floating)) or is_integer(value)


def check_whole(value: object, name: str, least: int, most: int | None = None) -> None:
    """Raise a ValueError that names the argument if it is not an integer in [least, most]."""
    if not is_integer(value) or not least <= value <= (sys.maxsize if most is None else most):
        between = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {between}, not {shorten(value)}")


def check_real(value: object, name: str, least: float, most: float) -> None:
    """Raise a ValueError that names the argument if it is not a number in [least, most]."""
    if not is_real(value) or not least <= value <= most:
        raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {shorten(value)}")


def shorten(value: object) -> str:
    """Return a short text for any value, for use in a message."""
    try:
        text = repr(value)
    except Exception:  # repr of a number with thousands of digits, or of a foreign class
        return f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Convert anything that numpy accepts, or a torch tensor of any device and dtype, to an array."""
    try:
        if callable(getattr(values, "detach", None)) and callable(getattr(values, "cpu", None)):  # a torch tensor
            values = values.detach().cpu()
            if values.is_floating_point() and values.element_size() < 4:  # numpy does not know bfloat16
                values = values.float()
        return np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:  # lists of unequal lengths, memory of another device
        raise ValueError(f"{name} must be an array: {error}") from error


def as_reals(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Convert numbers of any dtype, strides and shape to float64. Raise if one is not finite and real."""
    array = as_array(values, name)
    # Importing numpy.ma takes 20 ms; masked arrays exist only if it is imported.
    if "numpy.ma" in sys.modules and np.ma.isMaskedArray(values):
        raise ValueError(f"{name} must not be a masked array; pass the valid rows only")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must contain real numbers, not {array.dtype}")
    if array.dtype != np.float64:
        with np.errstate(over="ignore"):  # long doubles too large for float64 become infinite and are rejected below
            array = array.astype(np.float64)
    array = np.require(array, requirements=("C", "ALIGNED"))  # the memory layout that the compiled module requires
    if not array.min(initial=0.0) > -LARGEST or not array.max(initial=0.0) < LARGEST:  # NaN if any value is NaN
        raise ValueError(f"{name} must not contain NaN, infinity or numbers beyond {LARGEST:g}")
    return array


def as_size(values: ArrayLike, name: str) -> tuple[int, int]:
    """Return the (width, height) of an image as integers, in pixels."""
    numbers = as_reals(values, name)
    if numbers.shape != (2,) or not np.all((numbers >= 1) & (numbers <= LARGEST_SIDE) & (numbers == np.rint(numbers))):
        raise ValueError(
            f"{name} must be (width, height), whole numbers of pixels from 1 to {LARGEST_SIDE}, not {shorten(values)}"
        )
    return int(numbers[0]), int(numbers[1])


def as_points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return points as an array (N, 2)."""
    return as_rows(values, name, 2)


def as_rows(values: ArrayLike, name: str, width: int) -> NDArray[np.float64]:
    """Return rows as an array (N, width). An empty list gives no rows, whatever its shape."""
    rows = as_reals(values, name)
    if rows.shape == (0,):
        return rows.reshape(0, width)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name} must have shape (N, {width}), got {rows.shape}")
    return rows


def as_matches(
    points1: ArrayLike, points2: ArrayLike, scores: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Return points (N, 2) of two images, one match per row, and scores (N,) or None."""
    first, second = _as_matched(points1, "points1"), _as_matched(points2, "points2")
    if len(first) != len(second):
        raise ValueError(f"points1 and points2 must have the same length, got {len(first)} and {len(second)}")
    return first, second, check_scores(scores, len(first))


def _as_matched(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return points (N, 2). For points and keypoints of other libraries, the error names the function to call."""
    try:
        return as_points(values, name)
    except ValueError as error:
        array = as_array(values, name)
        if array.dtype.kind == "O" or array.ndim == 3:
            raise ValueError(f"{error}; caransac.matches_from converts points and keypoints of OpenCV") from error
        raise


def check_scores(scores: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    """Return scores as an array (count,), or None if there are none."""
    if scores is None:
        return None
    numbers = as_reals(scores, "scores")
    if numbers.shape != (count,):
        raise ValueError(f"scores must have shape ({count},), one per match, got {numbers.shape}")
    return numbers


def take_usable(values: NDArray[Scalar], usable: NDArray[np.bool_] | None) -> NDArray[Scalar]:
    """Select the values (n, ...) of the usable points from the values (N, ...) of all points."""
    return values if usable is None else values[usable]


def spread_usable(values: NDArray[Scalar], usable: NDArray[np.bool_] | None, fill: float = 0.0) -> NDArray[Scalar]:
    """Expand values (..., n) of the usable points to all points (..., N); the others get `fill`."""
    if usable is None:
        return values
    spread: NDArray[Any] = np.full((*values.shape[:-1], len(usable)), fill, values.dtype)
    spread[..., usable] = values
    return spread
