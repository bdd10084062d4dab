"""The estimation problems behind one set of verbs, one file for each problem.

A new problem needs a kind of model with its kernels (src/native/bindings/models.cpp) and a file here that says how
minimal samples are solved and how models look to users.
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
