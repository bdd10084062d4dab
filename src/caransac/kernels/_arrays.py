"""Arrays as the compiled module reads them: of its types, contiguous and aligned."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac.geometry import Array, Floats

Indices = NDArray[np.int32]
_Numbers = TypeVar("_Numbers", Array, Floats, Indices)


def aligned(array: _Numbers) -> _Numbers:
    """An array of any shape, copied if its numbers do not lie where C++, and some CPUs, want them."""
    return array if array.flags.aligned else array.copy()


def reals(array: object) -> Array:
    """An array of any shape in double precision."""
    return aligned(np.ascontiguousarray(array, dtype=np.float64))


def floats(array: ArrayLike) -> Floats:
    """An array of any shape in single precision."""
    return aligned(np.ascontiguousarray(array, dtype=np.float32))


def where(mask: NDArray[np.bool_]) -> Indices:
    """Indices (k,) of what is true of (n,), ascending."""
    return mask.nonzero()[0].astype(np.int32)


def integers(array: ArrayLike) -> Indices:
    """Integers of any shape in 32 bits; a ValueError if they are none or do not fit."""
    given = np.asarray(array)
    whole = given.dtype.kind in "iu" or given.size == 0
    if not whole or (given.dtype != np.int32 and np.any((given < -(2**31)) | (given >= 2**31))):
        raise ValueError("indices must be integers of 32 bits")  # others would silently become different ones
    return aligned(np.ascontiguousarray(given, dtype=np.int32))
