"""When to stop."""

import math
from dataclasses import replace

import numpy as np
import pytest

from caransac import Options, Round
from caransac.robust.stopping import AMBIGUOUS, SURE, is_settled, samples_needed

NUM_POINTS = 40


def test_samples_needed_is_the_textbook_formula():
    assert samples_needed(0.5, 5, 0.99) == pytest.approx(math.log(0.01) / math.log(1 - 0.5**5))
    assert samples_needed(1.0, 5, 0.99) == 1
    assert samples_needed(0.0, 5, 0.99) == math.inf
    assert samples_needed(1e-9, 7, 0.99) > 1e50


def record(samples, num_hypotheses, num_inliers=0):
    """A round that drew these samples (S, 5), and whose best model has the first points as inliers."""
    scores = (np.arange(NUM_POINTS) < num_inliers).astype(np.float32)
    return Round(
        samples=np.asarray(samples, np.int32).reshape(-1, 5),
        num_hypotheses=num_hypotheses,
        models=np.zeros((1, 3, 4)),
        msac_scores=scores[None],
        state=np.zeros((NUM_POINTS, 1), np.float32),
        probabilities=scores,
        best=None,
        noise=0.1,
    )


def test_the_points_of_the_first_round_tell_how_many_samples_are_needed():
    everything, inliers = np.arange(40), np.arange(20)
    options = Options()
    needed = samples_needed(0.5, 5, options.success_probability)  # half of what was drawn first is right
    belief, first = record([], 0), record(everything, 100)
    for drawn, settled in ((math.floor(needed), False), (math.ceil(needed), True)):
        rounds = [belief, first, record(inliers, drawn, num_inliers=20)]
        assert is_settled(rounds, options) == settled
        assert not is_settled(rounds, Options(early_stop=False))


def test_one_round_settles_what_is_easy_and_has_no_rival():
    drawn = np.arange(40)
    before, needed = record([], 0), samples_needed(0.9, 5, Options().success_probability)
    enough, hardly = (record(drawn, int(factor * needed) + 1, num_inliers=36) for factor in (SURE, 1.0))
    assert is_settled([before, enough], Options())
    assert not is_settled([before, hardly], Options())
    assert is_settled([before, hardly, hardly], Options())
    for share, settled in ((AMBIGUOUS - 0.1, True), (AMBIGUOUS + 0.1, False)):
        scores = np.concatenate([enough.msac_scores, share * enough.msac_scores])
        assert is_settled([before, replace(enough, msac_scores=scores)], Options()) == settled
