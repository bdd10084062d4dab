"""Models through minimal samples, the roots behind them, and the poses of a plane."""

from __future__ import annotations

from caransac import _native
from caransac._native import Correspondences
from caransac.geometry import Array
from caransac.kernels._arrays import Indices, integers


def five_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Essential matrices through samples of five calibrated correspondences.

    Args:
        correspondences: in normalised image coordinates.
        samples: (S, 5) indices of correspondences.

    Returns:
        (m, 3, 3) matrices of Frobenius norm sqrt(2), at most 10 per sample and none for a degenerate one, and (m,) the
        sample each comes from.
    """
    return _native.five_point(correspondences, integers(samples))


def five_point_poses(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Poses (p, 3, 4) of `five_point` that put their sample in front of both cameras, and (p,) that sample.

    At most one of the four poses of an essential matrix qualifies; matrices where none does are left out.
    """
    return _native.five_point_poses(correspondences, integers(samples))


def seven_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Fundamental matrices through samples (S, 7) of correspondences.

    Returns:
        (m, 3, 3) matrices of Frobenius norm one, at most 3 per sample and none for a degenerate one, and (m,) the
        sample each comes from.
    """
    return _native.seven_point(correspondences, integers(samples))


def four_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Homographies through samples (S, 4) of correspondences.

    Returns:
        (m, 3, 3) matrices of Frobenius norm one, at most one per sample and none for a degenerate or impossible one,
        and (m,) the sample each comes from.
    """
    return _native.four_point(correspondences, integers(samples))


def three_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Absolute poses [R | t] through samples (S, 3) of 3D points and their normalised image coordinates.

    Returns:
        (m, 3, 4) poses with ``x ~ R X + t`` and the sample in front of the camera, at most 4 per sample and none for a
        degenerate one, and (m,) the sample each comes from.
    """
    return _native.three_point(correspondences, integers(samples))


def real_roots(coefficients: Array) -> Array:
    """Distinct real roots of cubics or of polynomials of degree ten: what the solvers use.

    Args:
        coefficients: (m, 4) or (m, 11), constant term first.

    Returns:
        (m, 3) or (m, 10) roots in no particular order, the rest NaN.
    """
    return _native.real_roots(coefficients)


def plane_poses(H: Array, correspondences: Correspondences) -> Array:
    """The poses [R | t] that a homography (3, 3) of rays has, with most points in front of the camera: (k, 3, 4).

    Two for a plane, none for a rotation.
    """
    return _native.Homographies.plane_poses(H, correspondences)
