"""Exact copies of matches: ten points that are matched thirty times each are only ten pieces of evidence.

If most matches are copies, the estimate uses one of each. The other copies get the same scores and probabilities.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from caransac.kernels import Indices
from caransac.results import Round
from caransac.robust.problems import Problem
from caransac.robust.problems.base import count_distinct
from caransac.robust.records import Estimate, MatchInfo


def find_distinct(
    problem: Problem, info: MatchInfo, max_copies: float
) -> tuple[Indices, NDArray[np.intp]] | tuple[None, None]:
    """Return the distinct matches (k,), each with its best score, and the index of every match (n,) among them.

    Return None, None if the share of copies is at most `max_copies`, or if too few matches are distinct for a model.
    """
    points = np.concatenate([problem.points1, problem.points2], axis=1)
    if not problem.sample_size <= count_distinct(points) < (1 - max_copies) * len(points):
        return None, None
    order = np.arange(len(points)) if info.scores is None else info.order()
    _, first, place = np.unique(points[order], axis=0, return_index=True, return_inverse=True)
    by_index = np.argsort(order[first])
    place[order] = np.argsort(by_index)[place]
    return order[first][by_index].astype(np.int32), place


def with_copies(problem: Problem, distinct: Indices, place: NDArray[np.intp], found: Estimate) -> Estimate:
    """Extend an estimate of distinct matches (k,) to all matches; `place` (n,) has the index of each among them."""
    model = found.model
    return replace(
        found,
        msac_scores=None if model is None else problem.msac_scores(model[None], found.max_error)[0],
        rounds=tuple(_spread(problem, distinct, place, each) for each in found.rounds),
    )


def _spread(problem: Problem, distinct: Indices, place: NDArray[np.intp], record: Round) -> Round:
    """Extend the record of a round on distinct matches to all matches."""
    return replace(
        record,
        samples=distinct[record.samples],
        msac_scores=problem.msac_scores(record.models, record.max_error),
        state=record.state[place],
        probabilities=record.probabilities[place],
    )
