"""Match descriptors: mutual nearest neighbours, and the ratio to the second-nearest neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_array
from caransac.geometry import Array, Floats

Real = TypeVar("Real", np.float32, np.float64)

BLOCK = 1024  # maximum number of descriptors compared at a time; the products of a block fit into the cache
MOST_PRODUCTS = 2**24  # maximum number of scalar products at a time (64 MB), however many descriptors there are


def match_vectors(vectors1: Floats, vectors2: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Find pairs of vectors that are each other's nearest neighbours.

    Args:
        vectors1: (N1, d) vectors, all of the same length.
        vectors2: (N2, d) vectors of the same length.

    Returns:
        Indices (M,) in `vectors1`, indices (M,) in `vectors2`, and ratios (M,): the squared distance from the first
        vector to its nearest neighbour divided by the squared distance to its second-nearest. The ratio is 1 if there
        is no second neighbour or both distances are zero.
    """
    vectors1, vectors2 = _vectors(vectors1, "vectors1"), _vectors(vectors2, "vectors2")
    count1, count2 = len(vectors1), len(vectors2)
    if count1 == 0 or count2 == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
    _check_width(vectors1, vectors2, "vectors1 and vectors2")
    vectors1, vectors2 = np.ascontiguousarray(vectors1), np.ascontiguousarray(vectors2)
    nearest = np.empty(count1, np.intp)  # index in vectors2, for each of vectors1
    similarity = np.empty((count1, 2))  # scalar products with the nearest and the second-nearest neighbour
    back, back_similarity = np.zeros(count2, np.intp), np.full(count2, -np.inf, np.float32)
    for block, products in _scalar_products(vectors1, vectors2):
        rows, columns = np.arange(len(products)), np.arange(count2)
        best = products.argmax(axis=0)
        best_similarity = products[best, columns]
        better = best_similarity > back_similarity
        back[better], back_similarity[better] = block.start + best[better], best_similarity[better]
        nearest[block] = best = products.argmax(axis=1)
        similarity[block, 0] = products[rows, best]
        products[rows, best] = -np.inf
        similarity[block, 1] = products.max(axis=1)
    length_sq = np.sum(vectors1.astype(float) ** 2, axis=1, keepdims=True)
    nearest_sq, second_sq = np.maximum(2 * (length_sq - similarity), 0).T
    mutual = np.flatnonzero(back[nearest] == np.arange(count1))
    return mutual, nearest[mutual], _ratio(nearest_sq, second_sq)[mutual]


def match_ratios(descriptors1: ArrayLike, descriptors2: ArrayLike, partners: ArrayLike) -> Floats:
    """Compute the distance of each match divided by the distance to the nearest other descriptor of image 2.

    Args:
        descriptors1: (n, d) descriptors of the matched keypoints of image 1.
        descriptors2: (m, d) descriptors of all keypoints of image 2.
        partners: (n,) index of each match's keypoint in image 2.

    Returns:
        (n,) ratios from 0 (unambiguous) to 1 (another descriptor fits as well or better, or there is no other).
    """
    # SIFT descriptors are bytes whose squares sum to about 512^2: the sums are exact in single precision.
    first = _vectors(descriptors1, "descriptors1").astype(np.float32, copy=False)
    second = _vectors(descriptors2, "descriptors2").astype(np.float32, copy=False)
    if len(first) and len(second):
        _check_width(first, second, "descriptors1 and descriptors2")
    partners = as_array(partners, "partners")
    if partners.shape != (len(first),) or (len(first) and partners.dtype.kind not in "iu"):
        raise ValueError(f"partners must be ({len(first)},) indices, got {partners.shape} {partners.dtype}")
    if len(first) and not 0 <= partners.min() <= partners.max() < len(second):
        raise ValueError(f"partners must be indices of descriptors2, below {len(second)}")
    partners = partners.astype(np.intp, copy=False)
    lengths1_sq, lengths2_sq = np.einsum("ij,ij->i", first, first), np.einsum("ij,ij->i", second, second)
    ratios_sq = np.empty(len(first), np.float32)
    for block, products in _scalar_products(first, second):
        distances_sq = lengths1_sq[block, None] + lengths2_sq - 2 * products
        rows = np.arange(len(distances_sq))
        own = distances_sq[rows, partners[block]]
        distances_sq[rows, partners[block]] = np.inf
        ratios_sq[block] = _ratio(own, distances_sq.min(axis=1))
    return np.sqrt(np.clip(ratios_sq, 0, 1))


def _vectors(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return vectors as an array (n, d). An empty list gives no vectors."""
    vectors = as_array(values, name)
    if vectors.shape == (0,):
        return vectors.reshape(0, 0)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be (n, d) real numbers, got {vectors.shape} {vectors.dtype}")
    return vectors


def _check_width(first: NDArray[Any], second: NDArray[Any], names: str) -> None:
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"{names} must be equally long, got {first.shape[1]} and {second.shape[1]} numbers each")


def _scalar_products(vectors1: Floats, vectors2: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows of `vectors1` and their scalar products (rows, N2) with all of `vectors2`."""
    rows = max(min(BLOCK, MOST_PRODUCTS // max(len(vectors2), 1)), 1)
    for start in range(0, len(vectors1), rows):
        block = slice(start, start + rows)
        yield block, vectors1[block] @ vectors2.T


def _ratio(nearest_sq: NDArray[Real], second_sq: NDArray[Real]) -> NDArray[Real]:
    """Divide squared nearest by squared second-nearest distances (n,); 1 if there is no second or both are zero."""
    usable = (second_sq > 0) & np.isfinite(second_sq)
    return np.asarray(np.divide(nearest_sq, second_sq, out=np.ones_like(nearest_sq), where=usable))
