"""Checked float64 arrays of the points and scores that users pass, and rows of the usable ones among them."""

from __future__ import annotations

import sys
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

MOST_SHOWN = 200  # characters of a value in a message
LARGEST = 1e12  # beyond any pixel; squares and products of such numbers are still far from overflow
LARGEST_SIDE = 10**6  # of an image, in pixels


def is_integer(value: object) -> TypeGuard[int]:
    """Whether something is a whole number of Python or numpy; a bool is none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_real(value: object) -> TypeGuard[float]:
    """Whether something is a real number of Python or numpy; a bool is none."""
    return isinstance(value, (float, np.floating)) or is_integer(value)


def check_whole(value: object, name: str, least: int, most: int | None = None) -> None:
    """Raise a ValueError that names an argument which is no whole number between two, both included."""
    if not is_integer(value) or not least <= value <= (sys.maxsize if most is None else most):
        between = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {between}, not {shorten(value)}")


def check_real(value: object, name: str, least: float, most: float) -> None:
    """Raise a ValueError that names an argument which is no number between two, both included."""
    if not is_real(value) or not least <= value <= most:
        raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {shorten(value)}")


def shorten(value: object) -> str:
    """What stands for a value in a message, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # of a number with thousands of digits, or of anybody's class
        return f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def as_array(values: Any, name: str) -> NDArray[Any]:
    """An array of what numpy takes for one, or of a torch tensor on any device, with gradients, of any dtype."""
    try:
        if callable(getattr(values, "detach", None)) and callable(getattr(values, "cpu", None)):  # without torch itself
            values = values.detach().cpu()
            if values.is_floating_point() and values.element_size() < 4:  # numpy does not know bfloat16
                values = values.float()
        return np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:  # lists of unequal lengths, memory of another device
        raise ValueError(f"{name} must be an array: {error}") from error


def as_reals(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Finite real numbers of any dtype, strides and shape."""
    array = as_array(values, name)
    if "numpy.ma" in sys.modules and np.ma.isMaskedArray(values):  # else there are none; importing it takes 20 ms
        raise ValueError(f"{name} must not be a masked array; pass the valid rows only")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}")
    if array.dtype != np.float64:
        with np.errstate(over="ignore"):  # what only a long double holds becomes infinite, and is refused
            array = array.astype(np.float64)
    array = np.require(array, requirements=("C", "ALIGNED"))  # as the compiled module reads them
    if not array.min(initial=0.0) > -LARGEST or not array.max(initial=0.0) < LARGEST:  # both are NaN of any NaN
        raise ValueError(f"{name} must not contain NaN, infinity or numbers beyond {LARGEST:g}")
    return array


def as_size(values: ArrayLike, name: str) -> tuple[int, int]:
    """(width, height) of an image, whole numbers of pixels."""
    numbers = as_reals(values, name)
    if numbers.shape != (2,) or not np.all((numbers >= 1) & (numbers <= LARGEST_SIDE) & (numbers == np.rint(numbers))):
        raise ValueError(
            f"{name} must be (width, height), whole numbers of pixels from 1 to {LARGEST_SIDE}, not {shorten(values)}"
        )
    return int(numbers[0]), int(numbers[1])


def as_points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Points (N, 2)."""
    return as_rows(values, name, 2)


def as_rows(values: ArrayLike, name: str, width: int) -> NDArray[np.float64]:
    """Rows (N, width); an empty list has none, and no width that could be wrong."""
    rows = as_reals(values, name)
    if rows.shape == (0,):
        return rows.reshape(0, width)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name} must have shape (N, {width}), got {rows.shape}")
    return rows


def as_matches(
    points1: ArrayLike, points2: ArrayLike, scores: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Points (N, 2) of two images, one match per row, and scores (N,) if there are any."""
    first, second = as_points(points1, "points1"), as_points(points2, "points2")
    if len(first) != len(second):
        raise ValueError(f"points1 and points2 must have the same length, got {len(first)} and {len(second)}")
    return first, second, check_scores(scores, len(first))


def check_scores(scores: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
    """Scores (count,), if there are any."""
    if scores is None:
        return None
    numbers = as_reals(scores, "scores")
    if numbers.shape != (count,):
        raise ValueError(f"scores must have shape ({count},), one per match, got {numbers.shape}")
    return numbers


def take_usable(values: NDArray[Scalar], usable: NDArray[np.bool_] | None) -> NDArray[Scalar]:
    """Return the values (n, ...) of the usable points among values (N, ...) of all given points."""
    return values if usable is None else values[usable]


def spread_usable(values: NDArray[Scalar], usable: NDArray[np.bool_] | None, fill: float = 0.0) -> NDArray[Scalar]:
    """Return values (..., n) of the usable points as values (..., N) of all given points, `fill` for the others."""
    if usable is None:
        return values
    spread: NDArray[Any] = np.full((*values.shape[:-1], len(usable)), fill, values.dtype)
    spread[..., usable] = values
    return spread
