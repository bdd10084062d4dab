"""Two-view geometry in plain numpy: formulas, lenses, parallax and mirroring.

Conventions, here and everywhere: ``x2 = R x1 + t`` with ``|t| = 1``, ``E = [t]x R`` and ``x2^T F x1 = 0``.
"""

from caransac.geometry.formulas import (
    Array,
    Floats,
    angle_between_deg,
    cross_matrix,
    depths,
    epipolar_corrections,
    essential_from_fundamental,
    essential_from_pose,
    fundamental_from_essential,
    homogeneous,
    join_pose,
    msac_scores,
    nearest_rotation,
    pose_error_deg,
    poses_from_essential,
    quaternion_from_rotation,
    relative_pose,
    rotation_angle_deg,
    rotation_from_homography,
    rotation_from_vector,
    sampson_sq,
    split_pose,
)

__all__ = [
    "Array",
    "Floats",
    "angle_between_deg",
    "cross_matrix",
    "depths",
    "epipolar_corrections",
    "essential_from_fundamental",
    "essential_from_pose",
    "fundamental_from_essential",
    "homogeneous",
    "join_pose",
    "msac_scores",
    "nearest_rotation",
    "pose_error_deg",
    "poses_from_essential",
    "quaternion_from_rotation",
    "relative_pose",
    "rotation_angle_deg",
    "rotation_from_homography",
    "rotation_from_vector",
    "sampson_sq",
    "split_pose",
]
