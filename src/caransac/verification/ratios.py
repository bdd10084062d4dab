"""Second-nearest-neighbour ratios of matches, from the descriptors they were made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caransac.geometry import Floats

CHUNK = 1024  # rows of the distance matrix at a time: 32 MB at 8,000 keypoints


def ratios(descriptors1: ArrayLike, descriptors2: ArrayLike, partners: ArrayLike) -> Floats:
    """Distance of each match over the distance to the nearest other descriptor of image 2.

    Args:
        descriptors1: (n, d) descriptors of the matched keypoints of image 1.
        descriptors2: (m, d) descriptors of all keypoints of image 2.
        partners: (n,) index of each match's keypoint in image 2.

    Returns:
        (n,) ratios from 0 (unmistakable) to 1 (something else fits as well or better).
    """
    # Entries of SIFT descriptors are bytes and their squares sum to about 512^2: exact in single precision.
    first, second = np.asarray(descriptors1, np.float32), np.asarray(descriptors2, np.float32)
    partners = np.asarray(partners, np.intp)
    if len(second) < 2:
        return np.ones(len(first), np.float32)
    norms1, norms2 = np.einsum("ij,ij->i", first, first), np.einsum("ij,ij->i", second, second)
    found = np.empty(len(first), np.float32)
    for start in range(0, len(first), CHUNK):
        part = slice(start, start + CHUNK)
        distances_sq = norms1[part, None] + norms2 - 2 * (first[part] @ second.T)
        rows = np.arange(len(distances_sq))
        own = distances_sq[rows, partners[part]]
        distances_sq[rows, partners[part]] = np.inf
        nearest_other = distances_sq.min(axis=1)
        certain = np.divide(own, nearest_other, out=np.ones_like(own), where=nearest_other > 0)
        found[part] = np.sqrt(np.clip(certain, 0, 1))
    return found
