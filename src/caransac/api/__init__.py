"""The public calls, which take pixels and return results."""

from caransac.api.any_geometry import estimate
from caransac.api.camera_pooling import CameraEstimate, estimate_camera
from caransac.api.estimators import (
    estimate_fundamental,
    estimate_homography,
    estimate_relative_pose,
    estimate_relative_pose_from_rays,
    pose_from_fundamental,
)
from caransac.api.localisation import estimate_absolute_pose
from caransac.api.many_pairs import estimate_fundamentals, estimate_relative_poses
from caransac.api.photographs import refine_matches

__all__ = [
    "CameraEstimate",
    "estimate",
    "estimate_absolute_pose",
    "estimate_camera",
    "estimate_fundamental",
    "estimate_fundamentals",
    "estimate_homography",
    "estimate_relative_pose",
    "estimate_relative_pose_from_rays",
    "estimate_relative_poses",
    "pose_from_fundamental",
    "refine_matches",
]
