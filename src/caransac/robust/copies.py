"""Matches that are copies of each other count once: the same place found at several scales, or by several matchers.

Eight points, each matched thirty times, are no more evidence than eight. An estimate works on one of each; the others
share what is found of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from caransac.kernels import Indices, originals
from caransac.results import Round
from caransac.robust.problems import Problem
from caransac.robust.records import Estimate, MatchInfo
from caransac.tuning import Tuning


def find_originals(problem: Problem, info: MatchInfo, tuning: Tuning) -> Indices | None:
    """Of every match (n,) the best scored one that it is a copy of, or itself; None where copies are as few as usual.

    Detectors find some places twice. That says little, and their copies differ: their mean is better than one of them.
    """
    if problem.num_points < 2:
        return None
    order = np.arange(problem.num_points, dtype=np.int32) if info.scores is None else info.order()
    reach = tuning.usual_reach * tuning.usual_deviation * problem.extent
    found = originals(problem.correspondences, order, reach)
    counts = np.bincount(found)
    num_distinct = np.count_nonzero(counts)
    if num_distinct < problem.sample_size:  # hopeless, for a reason that is told with all of them
        return None
    share, most = tuning.usual_copies
    return None if num_distinct >= (1 - share) * len(found) and counts.max() <= most else found


def with_copies(problem: Problem, distinct: Indices, place: NDArray[np.intp], found: Estimate) -> Estimate:
    """The estimate of distinct matches as one of all.

    Args:
        problem: all matches.
        distinct: (k,) those that were estimated from.
        place: (n,) of every match the one of the distinct that it is, or is a copy of.
        found: their estimate.
    """
    model = found.model
    return replace(
        found,
        msac_scores=None if model is None else problem.msac_scores(model[None], found.max_error)[0],
        rounds=tuple(_with_copies(problem, distinct, place, each) for each in found.rounds),
    )


def _with_copies(problem: Problem, distinct: Indices, place: NDArray[np.intp], record: Round) -> Round:
    return replace(
        record,
        samples=distinct[record.samples],
        msac_scores=problem.msac_scores(record.models, record.max_error),
        state=record.state[place],
        probabilities=record.probabilities[place],
    )
