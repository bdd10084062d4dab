"""Robust two-view geometry: relative pose, fundamental matrix and homography from correspondences full of outliers.

Conventions: points are (N, 2) pixels, ``x2 = R x1 + t`` with ``|t| = 1``, ``x2^T F x1 = 0``, ``x2 ~ H x1``;
arguments come in the order points1, points2, camera1, camera2.
"""

from typing import TYPE_CHECKING, Any

from caransac.any_scene import estimate
from caransac.api import (
    estimate_fundamental,
    estimate_homography,
    estimate_relative_pose,
    pose_from_fundamental,
)
from caransac.camera import Camera
from caransac.focal_pooling import FocalEstimate, estimate_focal
from caransac.many_pairs import estimate_fundamentals, estimate_relative_poses
from caransac.options import Options
from caransac.results import FundamentalResult, GeometryResult, HomographyResult, RelativePoseResult, Round

if TYPE_CHECKING:
    from caransac.viewer import show

__version__ = "0.1.0"

__all__ = [
    "Camera",
    "FocalEstimate",
    "FundamentalResult",
    "GeometryResult",
    "HomographyResult",
    "Options",
    "RelativePoseResult",
    "Round",
    "__version__",
    "estimate",
    "estimate_focal",
    "estimate_fundamental",
    "estimate_fundamentals",
    "estimate_homography",
    "estimate_relative_pose",
    "estimate_relative_poses",
    "pose_from_fundamental",
    "show",
]


def __getattr__(name: str) -> Any:
    if name == "show":  # the viewer is loaded when it is used
        from caransac.viewer import show

        return show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
