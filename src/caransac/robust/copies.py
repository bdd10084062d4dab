"""Copies of matches: ten points that are matched thirty times each are only ten pieces of evidence.

Matches are copies if their points are in the same cells of both images, or of the image and of space. A cell is as
large as the usual threshold of inliers. If most matches are copies, the estimate uses one of each. The other copies get
the same probabilities.
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
from caransac.tuning import Tuning


def find_distinct(
    problem: Problem, info: MatchInfo, tuning: Tuning
) -> tuple[Indices, NDArray[np.intp]] | tuple[None, None]:
    """Return the distinct matches (k,), each with its best score, and the index of every match (n,) among them.

    Return None, None if the share of copies is at most `tuning.max_copies`, or if too few matches are distinct for a
    model.
    """
    points = np.concatenate([problem.points1, problem.points2], axis=1)
    points /= tuning.max_error * tuning.usual_deviation * problem.extent
    if not problem.sample_size <= count_distinct(np.rint(points)) < (1 - tuning.max_copies) * len(points):
        return None, None
    kept = np.arange(len(points)) if info.scores is None else info.order()
    place = np.argsort(kept)
    for shift in (0.0, 0.5):  # the borders of the second grid are in the middle of the cells of the first
        _, first, again = np.unique(np.rint(points[kept] + shift), axis=0, return_index=True, return_inverse=True)
        kept, place = kept[first], again.reshape(-1)[place]
    by_index = np.argsort(kept)
    return kept[by_index].astype(np.int32), np.argsort(by_index)[place]


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
