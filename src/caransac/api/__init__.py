"""The public calls: pixels in, result out."""

from caransac.api.any_geometry import estimate
from caransac.api.estimators import (
    estimate_fundamental,
    estimate_homography,
    estimate_relative_pose,
    pose_from_fundamental,
    profile_focal,
)
from caransac.api.focal_pooling import FocalEstimate, estimate_focal
from caransac.api.localisation import estimate_absolute_pose
from caransac.api.many_pairs import estimate_fundamentals, estimate_relative_poses

__all__ = [
    "FocalEstimate",
    "estimate",
    "estimate_absolute_pose",
    "estimate_focal",
    "estimate_fundamental",
    "estimate_fundamentals",
    "estimate_homography",
    "estimate_relative_pose",
    "estimate_relative_poses",
    "pose_from_fundamental",
    "profile_focal",
]
