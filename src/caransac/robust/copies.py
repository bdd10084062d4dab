"""Matches that are exact copies of each other: ten points, each matched thirty times, are no more evidence than ten.

If most matches are copies, an estimate works on one of each, and the copies share what is found for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from caransac.kernels import Indices
from caransac.results import Round
from caransac.robust.problems import Problem
from caransac.robust.records import Estimate, MatchInfo


def find_distinct(
    problem: Problem, info: MatchInfo, max_copies: float
) -> tuple[Indices, NDArray[np.intp]] | tuple[None, None]:
    """Return the distinct matches (k,), the best scored of each, and for each match (n,) its place among them.

    None, None if at most the share `max_copies` of the matches are copies, or if too few are distinct for a model.
    """
    points = np.concatenate([problem.points1, problem.points2], axis=1)
    # Equal matches have equal products with these irrational numbers, other matches hardly ever.
    keys = points @ np.sqrt([2, 3, 5, 7, 11, 13])[: points.shape[1]]
    if not problem.sample_size <= len(np.unique(keys)) < (1 - max_copies) * len(keys):
        return None, None
    order = np.arange(len(keys)) if info.scores is None else info.order()
    _, first, place = np.unique(keys[order], return_index=True, return_inverse=True)
    by_index = np.argsort(order[first])
    place[order] = np.argsort(by_index)[place]
    return order[first][by_index].astype(np.int32), place


def with_copies(problem: Problem, distinct: Indices, place: NDArray[np.intp], found: Estimate) -> Estimate:
    """Return the estimate of distinct matches as one of all matches.

    Args:
        problem: all matches.
        distinct: (k,) the matches that it was estimated from.
        place: (n,) the place of each match, or of what it is a copy of, among the distinct ones.
        found: the estimate of the distinct ones.
    """
    model = found.model
    return replace(
        found,
        msac_scores=None if model is None else problem.msac_scores(model[None], found.max_error)[0],
        rounds=tuple(_spread(problem, distinct, place, each) for each in found.rounds),
    )


def _spread(problem: Problem, distinct: Indices, place: NDArray[np.intp], record: Round) -> Round:
    """Return the record of a round on distinct matches as one on all."""
    return replace(
        record,
        samples=distinct[record.samples],
        msac_scores=problem.msac_scores(record.models, record.max_error),
        state=record.state[place],
        probabilities=record.probabilities[place],
    )
