"""Indices as the compiled module reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indices = NDArray[np.int32]


def where(mask: NDArray[np.bool_]) -> Indices:
    """Indices (k,) of what is true of (n,), ascending."""
    return mask.nonzero()[0].astype(np.int32)


def integers(array: ArrayLike) -> Indices:
    """Return integers of any shape in 32 bits; raise a ValueError if they are none or do not fit."""
    given = np.asarray(array)
    if given.dtype == np.int32:
        return given
    whole = given.dtype.kind in "iu" or given.size == 0
    if not whole or np.any((given < -(2**31)) | (given >= 2**31)):
        raise ValueError("indices must be integers of 32 bits")  # others would silently become different ones
    return given.astype(np.int32)
