"""The stopping rule."""

import math
from dataclasses import replace

import numpy as np
import pytest

from caransac import Options, Round
from caransac.robust.loop.stopping import is_settled, round_size, samples_needed
from caransac.robust.problems import Fundamental, Homography

NUM_POINTS = 40
POINTS = np.random.default_rng(0).uniform(0, 1000, (NUM_POINTS, 2))
EPIPOLAR = Fundamental.from_pixels(POINTS, POINTS).with_changes(sample_size=5)


def test_samples_needed_is_the_textbook_formula():
    assert samples_needed(0.5, 5, 0.99) == pytest.approx(math.log(0.01) / math.log(1 - 0.5**5))
    assert samples_needed(1.0, 5, 0.99) == 1
    assert samples_needed(0.0, 5, 0.99) == math.inf
    assert samples_needed(1e-9, 7, 0.99) > 1e50


def record(samples, num_hypotheses, num_inliers=0):
    """Create a round with these samples (S, 5), whose best model has the first points as inliers."""
    scores = (np.arange(NUM_POINTS) < num_inliers).astype(np.float32)
    return Round(
        samples=np.asarray(samples, np.int32).reshape(-1, 5),
        num_hypotheses=num_hypotheses,
        models=np.zeros((1, 3, 4)),
        max_error=1.0,
        msac_scores=scores[None],
        state=np.zeros((NUM_POINTS, 1), np.float32),
        probabilities=scores,
        best=None,
        noise=0.1,
    )


def test_the_points_of_the_first_round_determine_the_number_of_samples():
    everything, inliers = np.arange(40), np.arange(20)
    options = Options()
    needed = samples_needed(0.5, 5, options.success_probability)  # half of the matches in the first samples are right
    prior, first = record([], 0), record(everything, 100)
    for drawn, settled in ((math.floor(needed), False), (math.ceil(needed), True)):
        rounds = [prior, first, record(inliers, drawn, num_inliers=20)]
        assert is_settled(rounds, options) == settled
        assert not is_settled(rounds, Options(early_stop=False))


def test_the_prior_does_not_stop_the_loop():
    assert not is_settled([record([], 10**6)], Options())


@pytest.mark.parametrize(("factor", "settled"), [(0.9, False), (1.1, True)])
def test_two_rounds_are_enough_after_as_many_samples_as_are_needed(factor, settled):
    needed = samples_needed(0.9, 5, Options().success_probability)
    each = record(np.arange(40), int(factor * needed) + 1, num_inliers=36)
    assert is_settled([record([], 0), each, each], Options()) == settled


def test_one_round_is_never_enough():
    assert not is_settled([record([], 0), record(np.arange(40), 10**6, num_inliers=40)], Options())


def test_a_round_draws_few_samples_if_the_matches_are_probably_right():
    options, prior = Options(), record([], 0)
    sizes = [round_size(np.full(30, p, np.float32), prior, EPIPOLAR, options) for p in (0.99, 0.9, 0.8, 0.5)]
    needed = options.tuning.sample_margin * samples_needed(0.9, 5, options.success_probability)
    assert sizes[0] < sizes[1] == int(needed) < sizes[2] < sizes[3] == options.samples_per_round
    assert round_size(np.ones(30, np.float32), prior, EPIPOLAR, options) == options.local_models
    assert round_size(np.ones(30, np.float32), prior, EPIPOLAR, Options(early_stop=False)) == 256


def test_homographies_and_the_second_round_draw_fewer_samples():
    likely, options = np.full(30, 0.85, np.float32), Options()
    planes = Homography.from_pixels(POINTS, POINTS).with_changes(sample_size=5)
    epipolar, plane = (round_size(likely, record([], 0), problem, options) for problem in (EPIPOLAR, planes))
    assert options.local_models < plane < epipolar < options.samples_per_round
    agreeing = replace(record(np.arange(40), 30, 40), best=np.eye(3, 4))
    assert round_size(likely, agreeing, EPIPOLAR, options) == plane, "there is a model to improve on"


def test_a_round_that_contradicts_the_probabilities_is_followed_by_a_usual_one():
    likely, best = np.full(30, 0.99, np.float32), np.eye(3, 4)
    found = [replace(record(np.arange(40), 30, num_inliers), best=best) for num_inliers in (40, 10)]
    assert [round_size(likely, each, EPIPOLAR, Options()) for each in found] == [24, 256]
    assert round_size(likely, record(np.arange(40), 30), EPIPOLAR, Options()) == 256, "no model yet"
    assert round_size(likely, replace(found[0], num_hypotheses=256), EPIPOLAR, Options()) == 256
