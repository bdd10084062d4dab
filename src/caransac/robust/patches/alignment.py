"""Refine matches in two photographs: move the second point to where the patches around both points agree."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.kernels import align_patches, local_maps
from caransac.result_parts import RefinedMatches
from caransac.tuning import PatchTuning

Photographs = tuple[NDArray[Any], NDArray[Any]]


def refine_in_photographs(
    images: Photographs,
    points1: Array,
    points2: Array,
    tuning: PatchTuning,
    chosen: NDArray[np.intp] | None = None,
    deviation_px: float = 0.0,
    *,
    maps: Array | None = None,
) -> RefinedMatches:
    """Refine the chosen matches (k,), most of which should be right; None for all.

    Patches are compared through local affine maps (k, 2, 2), which come from neighbouring matches unless they are
    given. The derivatives of a homography are not better. `deviation_px` is the standard deviation of the points, if it
    is known.
    """
    index = np.arange(len(points1)) if chosen is None else chosen
    if maps is None:
        maps = local_maps(points1[index], points2[index], tuning.neighbours)
    moved, refined = points2.copy(), np.zeros(len(points2), bool)
    correlations, information = np.zeros(len(points2)), np.zeros((len(points2), 2, 2))
    level = pyramid_level(images, deviation_px, tuning)
    at_once = 2**16  # Ctrl-C works between the calls
    for start in range(0, len(index), at_once):
        part = slice(start, start + at_once)
        some = index[part]
        points, both, about, _, compared = align_patches(
            *images,
            points1[some],
            points2[some],
            maps[part],
            level=level,
            radius=tuning.radius,
            max_steps=tuning.max_steps,
            max_step=tuning.max_step_px,
            max_shift=tuning.max_shift_px,
            min_step=tuning.min_step_px,
            affine_deviation=tuning.affine_deviation,
        )
        before, after = both.T
        good = compared & (after > tuning.min_correlation) & (after >= before)
        kept = some[good]
        moved[kept], refined[kept] = points[good], True
        correlations[kept], information[kept] = after[good], about[good]
    return RefinedMatches(points2=moved, refined=refined, correlations=correlations, information=information)


def pyramid_level(images: Photographs, deviation_px: float, tuning: PatchTuning) -> int:
    """Return the pyramid level at which to refine points with a standard deviation: a pixel is 2^level pixels wide.

    Keypoints that were detected in a reduced photograph have more noise in the pixels of the original one, and what
    they were detected from is wider than a patch of it.
    """
    wider = deviation_px / tuning.usual_deviation_px
    room = min(max(image.shape[:2]) for image in images) / tuning.least_side
    return min(round(log2(max(wider, 1.0))), int(log2(max(room, 1.0))), tuning.max_level)
