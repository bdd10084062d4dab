"""Two-view formulas in plain numpy. They specify the compiled kernels, which are tested against them.

Conventions, here and everywhere: ``x2 = R x1 + t`` with ``|t| = 1``, ``E = [t]x R`` and ``x2^T F x1 = 0``.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Floats = NDArray[np.float32]


def homogeneous(points: ArrayLike) -> Array:
    """Append a one to every point: (..., d) -> (..., d + 1)."""
    points = np.asarray(points, float)
    return np.concatenate([points, np.ones((*points.shape[:-1], 1))], axis=-1)


def cross_matrix(vectors: ArrayLike) -> Array:
    """Return the matrices of the cross product, ``cross_matrix(t) @ x == np.cross(t, x)``: (..., 3) -> (..., 3, 3)."""
    given = np.asarray(vectors, float)
    x, y, z = given[..., 0], given[..., 1], given[..., 2]
    matrices = np.zeros((*given.shape, 3))
    matrices[..., 0, 1], matrices[..., 0, 2], matrices[..., 1, 2] = -z, y, -x
    matrices[..., 1, 0], matrices[..., 2, 0], matrices[..., 2, 1] = z, -y, x
    return matrices


def relative_pose(R1: ArrayLike, t1: ArrayLike, R2: ArrayLike, t2: ArrayLike) -> tuple[Array, Array]:
    """Compute the pose of camera 2 relative to camera 1 from ``X1 = R1 X + t1`` and ``X2 = R2 X + t2``.

    Args:
        R1: (3, 3) rotation of camera 1.
        t1: (3,) or (3, 1) translation of camera 1.
        R2: (3, 3) rotation of camera 2.
        t2: translation of camera 2.

    Returns:
        R (3, 3) and t (3,) of unit length. t is NaN if both cameras are at the same place.
    """
    R = np.asarray(R2, float) @ np.asarray(R1, float).T
    t = np.ravel(t2) - R @ np.ravel(t1)
    length = float(np.linalg.norm(t))
    return R, np.asarray(t / length) if length > 0 else np.full(3, np.nan)


def join_pose(R: ArrayLike, t: ArrayLike) -> Array:
    """Join rotations (..., 3, 3) and translations (..., 3) to poses [R | t] (..., 3, 4)."""
    return np.concatenate([np.asarray(R, float), np.asarray(t, float)[..., None]], axis=-1)


def split_pose(pose: Array) -> tuple[Array, Array]:
    """Split poses [R | t] into copies of the rotations (..., 3, 3) and translations (..., 3)."""
    return pose[..., :3].copy(), pose[..., 3].copy()


def essential_from_pose(R: ArrayLike, t: ArrayLike) -> Array:
    """Compute essential matrices ``[t]x R``: (..., 3, 3) and (..., 3) -> (..., 3, 3)."""
    return np.asarray(cross_matrix(t) @ np.asarray(R, float))


def poses_from_essential(E: ArrayLike) -> tuple[Array, Array]:
    """Return the four poses of an essential matrix in arbitrary order: rotations (4, 3, 3), translations (4, 3)."""
    U, _, Vt = np.linalg.svd(np.asarray(E, float))
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    first, second = U @ turn @ Vt, U @ turn.T @ Vt
    first, second = first * np.linalg.det(first), second * np.linalg.det(second)
    t = U[:, 2]
    return np.stack([first, first, second, second]), np.stack([t, -t, t, -t])


def fundamental_from_essential(E: ArrayLike, K1: ArrayLike, K2: ArrayLike) -> Array:
    """Compute the fundamental matrix ``K2^-T E K1^-1`` for pixels: (3, 3) -> (3, 3)."""
    return np.asarray(
        np.linalg.inv(np.asarray(K2, float)).T @ np.asarray(E, float) @ np.linalg.inv(np.asarray(K1, float))
    )


def essential_from_fundamental(F: ArrayLike, K1: ArrayLike, K2: ArrayLike) -> Array:
    """Compute the essential matrix ``K2^T F K1`` for normalised image coordinates: (3, 3) -> (3, 3)."""
    return np.asarray(np.asarray(K2, float).T @ np.asarray(F, float) @ np.asarray(K1, float))


def rotation_from_homography(H: ArrayLike, K1: ArrayLike, K2: ArrayLike) -> Array:
    """Return the rotation (3, 3) nearest to a homography (3, 3) for pixels, if the camera only rotated."""
    return nearest_rotation(np.linalg.inv(np.asarray(K2, float)) @ np.asarray(H) @ np.asarray(K1))


def nearest_rotation(matrix: Array) -> Array:
    """Return the rotation (3, 3) nearest to a matrix (3, 3)."""
    U, _, Vt = np.linalg.svd(matrix)
    return np.asarray(U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt)


def mean_pose(poses: Array, weights: Array) -> Array:
    """Average similar poses (m, 3, 4) with weights (m,). Return [R | t] (3, 4) with t of unit length."""
    mean = np.asarray(np.average(poses, axis=0, weights=weights))
    mean[:, :3], mean[:, 3] = nearest_rotation(mean[:, :3]), mean[:, 3] / np.linalg.norm(mean[:, 3])
    return mean


def symmetric_inverse(matrix: Array) -> Array:
    """Return the pseudo-inverse of a symmetric matrix (n, n). If n is small, `np.linalg.pinv` is five times slower."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.abs(values)
    told = size > 1e-15 * size.max(initial=0.0)
    return np.asarray((vectors * np.where(told, 1 / np.where(told, values, 1.0), 0.0)) @ vectors.T)


def sampson_sq(model: ArrayLike, points1: ArrayLike, points2: ArrayLike) -> Array:
    """Compute the squared Sampson distances of correspondences to one essential or fundamental matrix.

    The Sampson distance is the first-order approximation of the distance from (x1, x2) to the nearest pair that
    satisfies ``x2^T M x1 = 0`` exactly.

    Args:
        model: (3, 3) matrix M.
        points1: (n, 2) points in image 1, in the coordinates that M refers to.
        points2: (n, 2) points in image 2.

    Returns:
        (n,) squared distances, in the unit of the points squared.
    """
    model = np.asarray(model, float)
    x1, x2 = homogeneous(points1), homogeneous(points2)
    lines2, lines1 = x1 @ model.T, x2 @ model
    gradient = lines2[:, 0] ** 2 + lines2[:, 1] ** 2 + lines1[:, 0] ** 2 + lines1[:, 1] ** 2
    return np.asarray(np.sum(x2 * lines2, axis=1) ** 2 / gradient)


def msac_scores(residuals_sq: ArrayLike, max_error: float) -> Array:
    """Compute MSAC scores ``1 - min(r, T^2) / T^2``: 0 for NaN, and for errors of ``max_error`` or more."""
    return np.asarray(1.0 - np.fmin(np.asarray(residuals_sq, float) / max_error**2, 1.0))


def epipolar_corrections(R: ArrayLike, t: ArrayLike, points1: ArrayLike, points2: ArrayLike) -> tuple[Array, Array]:
    """Return Sampson's corrections (n, 2) and (n, 2) of the points in both images.

    To first order, they are the smallest changes that make the correspondences satisfy a pose. Their length is the
    Sampson distance.
    """
    x1, x2 = homogeneous(points1), homogeneous(points2)
    E = essential_from_pose(R, t)
    lines2, lines1 = x1 @ E.T, x2 @ E
    gradient_sq = np.sum(lines2[:, :2] ** 2, axis=1) + np.sum(lines1[:, :2] ** 2, axis=1)
    residuals = np.sum(x2 * lines2, axis=1)
    steps = -np.divide(residuals, gradient_sq, out=np.zeros_like(residuals), where=gradient_sq > 0)[:, None]
    return steps * lines1[:, :2], steps * lines2[:, :2]


def depths(R: ArrayLike, t: ArrayLike, points1: ArrayLike, points2: ArrayLike) -> Array:
    """Triangulate ``l1 R x1 + t = l2 x2`` by least squares. Return the depths (l1, l2) of the points: (n, 2).

    The depths are NaN if the rays are parallel.
    """
    rays1, rays2 = homogeneous(points1) @ np.asarray(R, float).T, homogeneous(points2)
    across = np.cross(rays1, rays2)
    # The cross product with one ray removes its depth from the equation.
    lever1, lever2 = np.cross(rays2, np.asarray(t, float)), np.cross(rays1, np.asarray(t, float))
    scaled = np.stack([np.sum(lever1 * across, axis=1), np.sum(lever2 * across, axis=1)], axis=1)
    length_sq = np.sum(across**2, axis=1)[:, None]
    return np.asarray(np.divide(scaled, length_sq, out=np.full_like(scaled, np.nan), where=length_sq > 0))


def rotation_from_vector(vector: ArrayLike) -> Array:
    """Compute the rotation by ``|vector|`` radians about ``vector`` (Rodrigues' formula): (3,) -> (3, 3)."""
    vector = np.asarray(vector, float)
    angle = float(np.linalg.norm(vector))
    axis = cross_matrix(vector / angle) if angle > 0 else np.zeros((3, 3))
    return np.asarray(np.eye(3) + np.sin(angle) * axis + (1 - np.cos(angle)) * axis @ axis)


def direction_basis(t: ArrayLike) -> Array:
    """Return two orthonormal directions (3, 2) perpendicular to t (3,): a basis for small changes of t."""
    direction = np.asarray(t, float) / np.linalg.norm(t)
    x, y, z = direction.tolist()  # np.cross takes ten times as long
    across = ((0.0, z, -y), (-z, 0.0, x), (y, -x, 0.0))[int(np.abs(direction).argmin())]
    length = math.hypot(*across)
    a, b, c = (each / length for each in across)
    return np.array([[a, y * c - z * b], [b, z * a - x * c], [c, x * b - y * a]])


def vector_from_rotation(R: ArrayLike) -> Array:
    """Return the rotation vector (3,), axis times angle in radians: the inverse of `rotation_from_vector`."""
    w, *xyz = quaternion_from_rotation(R)
    length = float(np.linalg.norm(xyz))
    return np.asarray(xyz) * (2 * np.arctan2(length, w) / length if length > 1e-12 else 2.0)


def quaternion_from_rotation(R: ArrayLike) -> Array:
    """Convert a rotation matrix (3, 3) to a unit quaternion (w, x, y, z) with w >= 0."""
    (a, b, c), (d, e, f), (g, h, i) = np.asarray(R, float)
    # Four times the products of the quaternion's entries. Every row is a multiple of the quaternion; the row with the
    # largest diagonal entry is never small (Shepperd, 1978).
    products = np.array(
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, d + b, c + g],
            [c - g, d + b, 1 - a + e - i, h + f],
            [d - b, c + g, h + f, 1 - a - e + i],
        ]
    )
    quaternion = products[np.argmax(np.diag(products))]
    return np.asarray(np.copysign(1, quaternion[0]) * quaternion / np.linalg.norm(quaternion))


def rotation_from_quaternion(quaternion: ArrayLike) -> Array:
    """Convert a quaternion (w, x, y, z) of any length except zero to a rotation matrix (3, 3)."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def angle_between_deg(a: ArrayLike, b: ArrayLike) -> float:
    """Compute the angle between two vectors in degrees, accurate near 0 and near 180 degrees."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)))


def rotation_angle_deg(R: ArrayLike) -> float:
    """Compute the angle of a rotation matrix in degrees, accurate near 0 and near 180 degrees."""
    R = np.asarray(R, float)
    twice_sine = np.linalg.norm([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return float(np.degrees(np.arctan2(twice_sine, np.trace(R) - 1.0)))


def reprojection_errors_sq(R: ArrayLike, t: ArrayLike, points2d: ArrayLike, points3d: ArrayLike) -> Array:
    """Compute the squared distances (n,) of normalised image points (n, 2) to the projections of points (n, 3).

    The distance is infinite for points behind the camera.
    """
    seen = np.asarray(points3d, float) @ np.asarray(R, float).T + np.asarray(t, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors_sq = np.sum((seen[:, :2] / seen[:, 2:] - np.asarray(points2d, float)) ** 2, axis=1)
    return np.asarray(np.where(seen[:, 2] > 0, errors_sq, np.inf))


def absolute_pose_error_deg(
    R: ArrayLike, t: ArrayLike, true_R: ArrayLike, true_t: ArrayLike, points3d: ArrayLike
) -> float:
    """Return the error of an absolute pose in degrees: the larger of rotation error and position error.

    The position error is the angle whose tangent is the distance to the true position divided by the median depth of
    the points (n, 3).
    """
    R, t, true_R, true_t = (np.asarray(each, float) for each in (R, t, true_R, true_t))
    depth = max(abs(float(np.median(np.asarray(points3d, float) @ true_R[2] + true_t[2]))), 1e-9)
    place = float(np.linalg.norm(R.T @ t - true_R.T @ true_t))
    return max(rotation_angle_deg(R @ true_R.T), float(np.degrees(np.arctan(place / depth))))


def pose_error_deg(R: ArrayLike, t: ArrayLike, true_R: ArrayLike, true_t: ArrayLike) -> float:
    """Return the error of a relative pose in degrees: the larger of rotation error and translation direction error.

    The sign of the translation counts: a reversed direction is an error of 180 degrees.
    """
    rotation = rotation_angle_deg(np.asarray(R, float) @ np.asarray(true_R, float).T)
    return max(rotation, angle_between_deg(t, true_t))
