"""The preset of the paper: its sizes and constants, and every step of its rounds computed from the formulas."""

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

import caransac
from caransac.geometry import msac_scores, sampson_sq
from caransac.kernels import Loss, RefineOptions
from caransac.learned.network_layout import PAPER_LAYOUT
from caransac.learned.state_network import load_network
from caransac.options import Options
from caransac.robust.pipeline import adapt, describe_matches
from caransac.robust.problems import Essential, Fundamental
from caransac.robust.records import MatchInfo
from caransac.synthetic import make_pair
from caransac.tuning import DEFAULT_TUNING, PAPER_TUNING

NETWORKS = ("paper", "paper-c", "paper-f")


@pytest.fixture(params=["essential", "fundamental"])
def run(request):
    """A problem, its side information, and the rounds of the preset."""
    pair = make_pair(300, outlier_ratio=0.5, seed=11)
    if request.param == "essential":
        problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    else:
        problem = Fundamental.from_pixels(pair.points1, pair.points2)
    network, info = load_network("paper"), MatchInfo(pair.scores)
    found = adapt(problem, network, describe_matches(problem, info, network.layout), info, Options.paper(seed=4))
    return problem, network, found.rounds


@pytest.mark.parametrize("name", NETWORKS)
def test_the_networks_have_the_sizes_of_the_paper(name):
    network = load_network(name)
    sizes = {
        part: [layers[0][0].shape[0], *(weight.shape[1] for weight, *_ in layers)]
        for part, layers in network.layers.items()
    }
    assert sizes == {
        "init": [16, 128, 128],
        "decoder": [128, 64, 32, 1],
        "message": [128, 128, 128, 128],  # MLP3
        "digest": [128, 128, 128, 128],  # MLP2
        "update": [256, 128, 128, 128],  # MLP1
    }
    activations = {part: [kind.name for _, _, kind, _ in layers] for part, layers in network.layers.items()}
    assert activations == {
        "init": ["LEAKY_RELU", "NONE"],
        "decoder": ["LEAKY_RELU", "LEAKY_RELU", "NONE"],  # followed by a sigmoid
        "message": ["TANH", "TANH", "NONE"],
        "digest": ["TANH", "TANH", "NONE"],
        "update": ["LEAKY_RELU", "LEAKY_RELU", "NONE"],
    }
    for layers in network.layers.values():
        assert all(skips == (weight.shape[0] == weight.shape[1]) for weight, _, _, skips in layers)
    assert not network.layout.neighbours


def test_the_constants_match_the_paper():
    options = Options.paper(seed=7)
    assert (options.rounds, options.samples_per_round, options.top_models, options.local_models) == (4, 256, 4, 4)
    assert (options.max_error_px, options.early_stop, options.seed) == (1.0, False, 7)
    assert options.state_update and options.adaptive_sampling and options.adaptive_refinement
    assert options.weights == "paper"
    tuning = options.tuning
    assert tuning is PAPER_TUNING
    assert (tuning.min_pool, tuning.pool_success, tuning.static_ratio) == (15, 0.9, 0.8)
    assert (tuning.local_steps, tuning.min_weight, tuning.local_reach) == (10, 1e-3, pytest.approx(5**0.5))


def test_it_differs_from_the_default_in_the_fields_that_the_docs_list():
    default = asdict(DEFAULT_TUNING)
    changed = {name for name, value in asdict(PAPER_TUNING).items() if value != default[name]}
    assert changed == {
        "max_copies",
        "working_set",
        "compared_on",
        "spread_ranking",
        "sample_margin",
        "first_noise",
        "usual_matches",
        "max_error",
        "agreeing_deg",
        "wide_gain",
        "guessed_centre_deviation",
    }


def test_keywords_replace_its_options_and_wrong_ones_are_refused():
    assert Options.paper(rounds=8).rounds == 8
    assert Options.paper(weights="paper-f", state_update=False) != Options.paper()
    with pytest.raises(ValueError, match="did you mean 'rounds'"):
        Options.paper(round=8)


def test_samples_come_from_the_pool(run):
    problem, _, rounds = run
    assert len(rounds) == 5 and [record.num_hypotheses for record in rounds] == [0, 256, 512, 768, 1024]
    limit = (1 - 0.1 ** (1 / 256)) ** (1 / problem.sample_size)
    for last, record in pairwise(rounds):
        pool = np.flatnonzero(last.probabilities > limit)
        pool = pool if len(pool) >= 15 else np.argsort(-last.probabilities, kind="stable")[:15]
        assert np.isin(record.samples, pool).all() and record.samples.shape == (256, problem.sample_size)
        assert all(len(set(sample)) == problem.sample_size for sample in record.samples.tolist())


def test_models_are_the_four_of_the_largest_total_consensus_refined_on_their_own_inliers(run):
    problem, _, rounds = run
    for last, record in pairwise(rounds):
        models = problem.solve(record.samples)
        models = models if last.best is None else np.concatenate([last.best[None], models])
        residuals = problem.model_kernels.residuals_sq(models, problem.correspondences)
        totals = np.array([msac_scores(each, problem.pixel).sum() for each in residuals])
        chosen = models[np.argsort(-totals, kind="stable")[:4]]
        steps = RefineOptions(
            loss=Loss.TRUNCATED, loss_scale=problem.pixel, max_residual=5**0.5 * problem.pixel, max_steps=10
        )
        refined = problem.refine(chosen, steps)
        scores = problem.msac_scores(refined, problem.pixel)
        order = np.argsort(-scores.sum(axis=1), kind="stable")
        assert record.max_error == pytest.approx(problem.pixel) and record.noise == pytest.approx(problem.pixel)
        # The refinement uses single precision and stops at a relative decrease of 1e-4.
        assert record.msac_scores.sum(axis=1) == pytest.approx(scores[order].sum(axis=1), rel=5e-3)
        assert np.all(np.diff(record.msac_scores.sum(axis=1)) <= 1e-3)


def test_state_and_refinement_match_the_formulas(run):
    problem, network, rounds = run
    for last, record in pairwise(rounds):
        state, probabilities = network.update(last.state, record.msac_scores)
        assert np.array_equal(state, record.state) and np.array_equal(probabilities, record.probabilities)
        weights = record.probabilities.astype(float) ** network.alpha
        weights[weights <= 1e-3] = 0
        (best,) = problem.refine(record.models[:1], RefineOptions(loss_scale=problem.pixel, min_decrease=1e-6), weights)
        assert np.abs(record.best - best).max() < 1e-6


@pytest.mark.parametrize("problem", ["E", "F"])
def test_it_finds_the_truth(problem):
    pair = make_pair(800, outlier_ratio=0.7, seed=3)
    scores = {"scores": pair.scores, "score_kind": "ratio", "options": Options.paper()}
    if problem == "E":
        found = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **scores)
        assert caransac.geometry.pose_error_deg(found.R, found.t, pair.R, pair.t) < 1
    else:
        found = caransac.estimate_fundamental(pair.points1, pair.points2, **scores)
        assert np.median(sampson_sq(found.F, pair.points1, pair.points2)[pair.inliers]) < 1
    assert found.num_hypotheses == 1024 and found.stop_reason == "budget"
    assert found.probabilities[pair.inliers].mean() > 0.8 > 0.2 > found.probabilities[~pair.inliers].mean()


@pytest.mark.parametrize("width", [1, 128])
def test_features_of_another_width_are_refused(width):
    pair = make_pair(60, seed=1)
    points = pair.points1, pair.points2, pair.camera1, pair.camera2
    with pytest.raises(ValueError, match=r"features must have shape \(N, 0\)"):
        caransac.estimate_relative_pose(*points, features=np.zeros((60, width)), options=Options.paper())


def test_hopeless_matches_have_no_answer():
    points = np.zeros((40, 2))
    found = caransac.estimate_relative_pose(points, points, np.eye(3), np.eye(3), options=Options.paper())
    assert not found.success
    few = caransac.estimate_fundamental(points[:3], points[:3], options=Options.paper())
    assert few.stop_reason == "too_few_points"


def test_the_layout_of_the_file_is_the_papers():
    assert load_network("paper").layout == PAPER_LAYOUT
