"""The estimation problems behind one set of verbs: solve, rank, score, refine; one file a problem."""

from caransac.robust.problems.base import Problem
from caransac.robust.problems.essential import Essential
from caransac.robust.problems.fundamental import Fundamental

__all__ = ["Essential", "Fundamental", "Problem"]
