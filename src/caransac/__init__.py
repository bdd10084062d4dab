"""Robust geometry: relative and absolute pose, fundamental matrix and homography from matches full of outliers.

Conventions: points are (N, 2) pixels, ``x2 = R x1 + t`` with ``|t| = 1``, ``x2^T F x1 = 0``, ``x2 ~ H x1``,
``x = R X + t`` for 3D points X; arguments come in the order points1, points2, camera1, camera2.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, which takes a while to load
if TYPE_CHECKING:
    from typing import Any

    from caransac.api import (
        CameraEstimate,
        estimate,
        estimate_absolute_pose,
        estimate_camera,
        estimate_fundamental,
        estimate_fundamentals,
        estimate_homography,
        estimate_relative_pose,
        estimate_relative_pose_from_rays,
        estimate_relative_poses,
        pose_from_fundamental,
    )
    from caransac.camera import Camera
    from caransac.io.adapters import matches_from, matches_from_warp
    from caransac.io.matches import Matches
    from caransac.options import Options
    from caransac.policy import GeometryPolicy
    from caransac.results import (
        AbsolutePoseResult,
        FundamentalResult,
        GeometryResult,
        HomographyResult,
        Points3D,
        RayPoseResult,
        RelativePose,
        RelativePoseResult,
        Rival,
        Round,
        load_result,
    )
    from caransac.viewer import show

__version__ = "0.2.0"

__all__ = [
    "AbsolutePoseResult",
    "Camera",
    "CameraEstimate",
    "FundamentalResult",
    "GeometryPolicy",
    "GeometryResult",
    "HomographyResult",
    "Matches",
    "Options",
    "Points3D",
    "RayPoseResult",
    "RelativePose",
    "RelativePoseResult",
    "Rival",
    "Round",
    "__version__",
    "estimate",
    "estimate_absolute_pose",
    "estimate_camera",
    "estimate_fundamental",
    "estimate_fundamentals",
    "estimate_homography",
    "estimate_relative_pose",
    "estimate_relative_pose_from_rays",
    "estimate_relative_poses",
    "load_result",
    "matches_from",
    "matches_from_warp",
    "pose_from_fundamental",
    "show",
]

# Loaded when they are first used: the command line answers to Ctrl-C before numpy is there, which takes a while.
_MODULES = {
    "api": (
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
    ),
    "camera": ("Camera",),
    "io.adapters": ("matches_from", "matches_from_warp"),
    "io.matches": ("Matches",),
    "options": ("Options",),
    "policy": ("GeometryPolicy",),
    "results": (
        "AbsolutePoseResult",
        "FundamentalResult",
        "GeometryResult",
        "HomographyResult",
        "Points3D",
        "RelativePose",
        "RayPoseResult",
        "RelativePoseResult",
        "Rival",
        "Round",
        "load_result",
    ),
    "viewer": ("show",),
}

# Names of an earlier version: where they are now. Each warns for one minor version, then it goes.
_MOVED = {
    "images": "io.images",
    "lens": "geometry.lens",
    "matches": "io.matches",
    "parallax": "geometry.parallax",
    "types": "results",
}
# Modules of an earlier version that only the lab has.
_IN_LAB = ("bench", "datasets", "filter", "render", "training")
# What finds cameras found focal lengths only.
_RENAMED = {"FocalEstimate": "CameraEstimate", "estimate_focal": "estimate_camera"}


def __getattr__(name: str) -> Any:
    if name in _MOVED or name in _RENAMED:
        import warnings

        now = f"{__name__}.{_MOVED.get(name) or _RENAMED[name]}"
        warnings.warn(
            f"{__name__}.{name} is {now} since 0.2; the old name goes in 0.3", DeprecationWarning, stacklevel=2
        )
        return import_module(now) if name in _MOVED else __getattr__(_RENAMED[name])
    for module, names in _MODULES.items():
        if name in names:
            globals()[name] = found = getattr(import_module(f"{__name__}.{module}"), name)
            return found
    if name in _IN_LAB:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it is in caransac-lab now")
    if not name.startswith("__"):
        try:  # modules need no import of their own: caransac.geometry
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise  # it is there, and something that it needs is not
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
