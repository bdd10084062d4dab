"""The estimation problems behind one set of verbs, one file for each problem.

CONTRIBUTING.md, "A new problem", says how to add one.
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
