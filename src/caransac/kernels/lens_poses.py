"""Lenses that bend straight lines, COLMAP's SIMPLE_RADIAL: rays through others, and poses refined with them.

A pair ``k1`` is of the lenses of image 1 and 2, in the unit of the rays: of the cameras these were normalised with.
"""

from __future__ import annotations

from caransac import _native
from caransac._native import Correspondences, RefineOptions
from caransac.geometry import Array

TwoNumbers = tuple[float, float]


def change_lenses(rays: Correspondences, before: TwoNumbers, after: TwoNumbers) -> Correspondences:
    """Rays of pixels that were seen through some lenses as those of the same pixels through others.

    A lens of negative k1 folds back at some radius; from 0.9 of it on rays are bent along its tangent there.
    """
    return _native.change_lenses(rays, before, after)


def refine_lens_pose(
    model: Array, k1: TwoNumbers, rays: Correspondences, weights: Array, given: TwoNumbers, options: RefineOptions
) -> tuple[Array, TwoNumbers, TwoNumbers]:
    """Refine a model of `FOCAL_POSES` and its lenses by Levenberg-Marquardt on the robust Sampson cost of their rays.

    Args:
        model: (3, 6), as of `FOCAL_POSES`.
        k1: of its lenses.
        rays: as seen through these.
        weights: (n,) of the rays, not negative.
        given: k1 that the prior is about.
        options: how; the loss is Cauchy's.

    Returns:
        The model (3, 6), k1 of its lenses, and the cost before and after.
    """
    return _native.refine_lens_pose(model, k1, rays, weights, given, options)


def lens_information(model: Array, k1: TwoNumbers, rays: Correspondences, weights: Array) -> Array:
    """``J^T W J`` of the distances (13, 13): what rays say, at noise one, of the degrees of freedom `RELATIVE`."""
    return _native.lens_information(model, k1, rays, weights)
