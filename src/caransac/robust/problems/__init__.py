"""The estimation problems, one file for each problem. All have the same methods.

CONTRIBUTING.md, "A new problem", explains how to add one.
"""

from caransac.robust.problems.absolute import Absolute, AbsoluteFocal
from caransac.robust.problems.base import Problem, with_intrinsics
from caransac.robust.problems.essential import Essential
from caransac.robust.problems.focal import FocalPose
from caransac.robust.problems.fundamental import Fundamental
from caransac.robust.problems.homography import Homography
from caransac.robust.problems.rays import Spherical

__all__ = [
    "Absolute",
    "AbsoluteFocal",
    "Essential",
    "FocalPose",
    "Fundamental",
    "Homography",
    "Problem",
    "Spherical",
    "with_intrinsics",
]
