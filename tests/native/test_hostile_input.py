"""Kernels return or raise for any input: they do not touch foreign memory, and they terminate."""

import threading

import numpy as np
import pytest

from caransac import estimate_fundamental, kernels
from caransac.kernels import FOCAL_POSES, FUNDAMENTALS, HOMOGRAPHIES, POSES, Activation, RefineOptions
from caransac.learned.state_network import load_network
from caransac.synthetic import make_pair

pytestmark = pytest.mark.kernels

HUGE = 1.7e308
KINDS = {"poses": POSES, "focal_poses": FOCAL_POSES, "fundamentals": FUNDAMENTALS, "homographies": HOMOGRAPHIES}


def huge_points(rng, count=500):
    return kernels.pack(*rng.choice([-HUGE, HUGE, 1.0], size=(2, count, 2)))


def test_cells_of_huge_coordinates_are_in_the_grid(rng):
    points = huge_points(rng)
    regions = kernels.Regions(points, np.ones(500, np.float32), 7.0)
    assert 0 <= regions.cells.min() <= regions.cells.max() < 256
    assert np.isfinite(POSES.spread_consensus(np.eye(3, 4)[None], points, 1.0, regions)).all()


def test_points_in_spreads_stay_finite(rng):
    points = kernels.pack(*rng.normal(size=(2, 50, 2)))
    smallest, wrong = np.full((2, 3), 5e-324), np.ones((2, 3))
    assert np.isfinite(points.in_spreads(smallest).points1).all()
    wrong[1, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        points.in_spreads(wrong)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entry", [np.nan, np.inf, HUGE, 0.0])
def test_deviations_of_any_model_are_numbers(rng, kind, entry):
    verbs, points = KINDS[kind], kernels.pack(*rng.normal(size=(2, 50, 2)))
    rates, prior = rng.normal(size=(verbs.degrees_of_freedom, 3)), np.eye(verbs.degrees_of_freedom)
    prior[0, 0] = np.inf
    for dropped in (0, 7, 2**31 - 1):
        found = verbs.outcome_deviations(
            np.full((3, verbs.columns), entry), points, np.ones(50), rates, 1.0, prior, dropped
        )
        assert len(found) == 2
    for variance, count in ((0.0, 1), (np.nan, 1), (1.0, -1)):
        with pytest.raises(ValueError, match=r"variance|dropped"):
            verbs.outcome_deviations(np.ones((3, verbs.columns)), points, np.ones(50), rates, variance, prior, count)


def test_features_of_any_coordinates_are_finite(rng):
    for points in (huge_points(rng), kernels.pack(*rng.normal(size=(2, 500, 2))), kernels.pack(*np.zeros((2, 500, 2)))):
        features = kernels.neighbour_features(points)
        assert features.shape == (500, 18)
        assert np.isfinite(features).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, HUGE, 1e-320, 0.0])
def test_models_of_any_numbers_are_scored_and_refined(rng, kind, entry):
    verbs = KINDS[kind]
    models = np.full((3, 3, verbs.columns), entry)
    for points in (kernels.pack(*rng.normal(size=(2, 50, 2))), huge_points(rng), kernels.pack(*np.empty((2, 0, 2)))):
        scores = verbs.msac_scores(models, points, 0.1)
        assert scores.shape == (3, len(points))
        assert (scores >= 0).all()
        assert (scores <= 1).all()
        assert verbs.top(models, points, 0.1, 2).tolist() == [0, 1]
        refined, costs = verbs.refine(models, points, RefineOptions(max_residual=0.5))
        assert refined.shape == models.shape
        assert not (costs < 0).any(), "a NaN cost must not count as the lowest"
        refined, costs = verbs.refine(models, points, RefineOptions())
        assert not (costs < 0).any(), "a NaN cost must not count as the lowest"


@pytest.mark.parametrize("wrong", [2**32, -(2**32), 2**63 - 1, 1.5, np.nan, np.inf, 1e300])
def test_indices_of_other_types_are_refused(rng, wrong):
    points = kernels.pack(*rng.normal(size=(2, 10, 2)))
    for solve, size in ((kernels.five_point, 5), (kernels.seven_point, 7), (kernels.four_point, 4)):
        with pytest.raises(TypeError, match="incompatible"):
            solve(points, np.full((2, size), wrong))
    with pytest.raises(TypeError, match="incompatible"):
        kernels.sample_uniform(np.full(9, wrong), 3, 1, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [kernels.five_point, kernels.five_point_poses, kernels.seven_point])
def test_indices_changed_by_another_thread_are_not_followed(rng, solver):
    points = kernels.pack(*rng.normal(size=(2, 10, 2)))
    right = rng.integers(0, 10, (2000, 7 if solver is kernels.seven_point else 5)).astype(np.int32)
    shared, stop = right.copy(), threading.Event()

    def change():
        while not stop.is_set():
            shared[:] = 2**30
            shared[:] = right

    thread = threading.Thread(target=change)
    thread.start()
    answers = set()
    try:
        for _ in range(100):
            try:
                solver(points, shared)
                answers.add("solved")
            except ValueError:
                answers.add("refused")
    finally:
        stop.set()
        thread.join()
    assert answers <= {"solved", "refused"}
    assert answers


def test_arrays_at_odd_addresses_are_read():
    def displaced(array):
        memory = np.empty(array.nbytes + 1, np.uint8)[1:]
        moved = memory.view(array.dtype).reshape(array.shape)
        moved[:] = array
        assert not moved.flags.aligned
        return moved

    pair = make_pair(200, outlier_ratio=0.4, seed=3)
    expected = estimate_fundamental(pair.points1, pair.points2, scores=pair.scores, score_kind="ratio")
    points1, points2, scores = (displaced(each) for each in (pair.points1, pair.points2, pair.scores))
    found = estimate_fundamental(points1, points2, scores=scores, score_kind="ratio")
    assert np.array_equal(found.F, expected.F)


def test_polynomials_of_any_numbers_have_their_roots_or_none():
    hostile = [np.nan, np.inf, -np.inf, HUGE, -HUGE, 5e-324, 0.0, 1.0]
    coefficients = np.array(np.meshgrid(*[hostile] * 4)).reshape(4, -1).T
    roots = kernels.real_roots(coefficients)
    assert roots.shape == (len(hostile) ** 4, 3)
    assert not np.isinf(roots).any()
    assert kernels.real_roots(np.tile(coefficients, 3)[:, :11]).shape == (len(hostile) ** 4, 10)


def test_empty_networks_and_absurd_sizes_are_answered():
    layer = (np.zeros((0, 2), np.float32), np.ones(2, np.float32), Activation.NONE, False)
    with pytest.raises(ValueError, match="columns"):  # the layer has no weights
        kernels.mlp([np.zeros((5, 0), np.float32)], [layer])
    for horizon in (5e-324, HUGE, np.inf):
        samples = kernels.sample_prosac(np.arange(10, dtype=np.int32), 3, 5, seed=0, first=2**62, horizon=horizon)
        assert all(len(set(sample)) == 3 for sample in samples.tolist())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_absurd_states_and_scores_do_not_affect_other_matches(rng, value):
    """Only the models' messages change, which reach only the matches with scores."""
    states = load_network("default").kernels
    state, scores = rng.normal(size=(100, 16)), rng.uniform(size=(4, 100))
    scores[:, 50:] = 0
    expected = [answer[51:] for answer in states.update(state, scores)]
    state[50, 3], scores[2, 10] = value, value
    for answer, before in zip(states.update(state, scores), expected, strict=True):
        assert np.array_equal(answer[51:], before)
