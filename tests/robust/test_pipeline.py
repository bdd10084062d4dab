"""The pipeline: number of samples, final answer, trace, and effect of the tuning."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.geometry import pose_error_deg, rotation_from_vector, split_pose
from caransac.learned.side_information import side_information
from caransac.learned.state_network import load_network
from caransac.results import Round
from caransac.robust import pipeline
from caransac.robust.loop.scale import Scale
from caransac.robust.loop.steps import Steps
from caransac.robust.pipeline import adapt, conclude, estimate_model
from caransac.robust.problems import Essential, FocalPose, Fundamental, Homography
from caransac.robust.records import MatchInfo
from caransac.synthetic import make_pair
from caransac.tuning import DEFAULT_TUNING, Tuning

METHODS = ["ca-ransac", "lm-lo", "lm-lo-u"]


def problem_of(kind, pair):
    if kind is FocalPose:
        cameras = [replace(camera, focal_deviation=0.1) for camera in (pair.camera1, pair.camera2)]
        return FocalPose.from_pixels(pair.points1, pair.points2, *cameras, shared=True)
    cameras = (pair.camera1, pair.camera2) if kind is Essential else ()
    return kind.from_pixels(pair.points1, pair.points2, *cameras)


def counted(monkeypatch, kind):
    """Record the number of samples in all calls of a problem's solver."""
    calls, solve = [], kind.solve

    def counting(self, samples):
        calls.append(len(samples))
        return solve(self, samples)

    monkeypatch.setattr(kind, "solve", counting)
    return calls


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [Essential, Fundamental, Homography, FocalPose])
@pytest.mark.parametrize(("rounds", "samples"), [(1, 256), (3, 100), (4, 37)])
def test_exactly_the_budget_is_solved(monkeypatch, kind, method, rounds, samples):
    """The data are easy, so that early stopping would end after two rounds, or after one round of LM-LO."""
    pair = make_pair(500, outlier_ratio=0.1, seed=1)
    problem, info = problem_of(kind, pair), MatchInfo(pair.scores)
    monkeypatch.setattr("caransac.robust.pipeline.find_degeneracy", lambda *_: None)  # this step also solves samples
    monkeypatch.setattr("caransac.robust.pipeline.find_rivals", lambda *_: None)  # this step also solves samples
    monkeypatch.setattr("caransac.robust.pipeline.assess_confidence", lambda _network, _problem, found, _options: found)
    calls = counted(monkeypatch, kind)
    options = Options(method=method, rounds=rounds, samples_per_round=samples, early_stop=False)
    found = estimate_model(problem, info, options)
    assert calls == [samples] * rounds
    assert found.num_hypotheses == rounds * samples
    assert found.stop_reason == "budget"
    if kind is not Homography:  # early stopping needs a model, and points with depth have no homography
        calls.clear()
        stopped = estimate_model(problem, info, replace(options, early_stop=True, samples_per_round=256, rounds=4))
        assert sum(calls) == stopped.num_hypotheses == (512 if method == "ca-ransac" else 256)
        assert stopped.stop_reason == "early_stop"


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_samples_count_as_hypotheses(monkeypatch, method):
    points = np.ones((40, 2))
    calls = counted(monkeypatch, Essential)
    options = Options(method=method, rounds=3, samples_per_round=50)
    problem = Essential.from_pixels(points, points, *[make_pair(10).camera1] * 2)
    found = estimate_model(problem, MatchInfo(), options)
    assert found.stop_reason == "degenerate"
    assert sum(calls) == found.num_hypotheses == 150


@pytest.mark.parametrize("call", ["relative_pose", "fundamental", "homography"])
def test_the_trace_agrees_with_the_result(call):
    pair = make_pair(700, outlier_ratio=0.5, seed=2)
    cameras = (pair.camera1, pair.camera2) if call == "relative_pose" else ()
    result = getattr(caransac, f"estimate_{call}")(
        pair.points1,
        pair.points2,
        *cameras,
        scores=pair.scores,
        score_kind="ratio",
        options=Options(keep_trace=True),
    )
    last = result.trace[-1]
    assert np.array_equal(result.probabilities, last.probabilities)
    assert result.num_hypotheses == last.num_hypotheses == sum(len(record.samples) for record in result.trace)
    assert result.noise_px == pytest.approx(last.noise, rel=0.1)  # the noise of the answer, and of an earlier model
    model = {"relative_pose": lambda: np.c_[result.R, result.t], "fundamental": lambda: result.F}.get(
        call, lambda: result.H
    )()
    if call == "relative_pose":  # the answer is the mean of the best model and others that agree with it
        assert 0 < pose_error_deg(*split_pose(last.best), result.R, result.t) < 0.01
    else:
        assert np.array_equal(last.best, model)
    for record in result.trace:
        assert record.max_error == pytest.approx(DEFAULT_TUNING.max_error * result.trace[0].noise)


def test_scores_of_the_trace_match_its_models():
    pair = make_pair(700, outlier_ratio=0.5, seed=2)
    problem = problem_of(Essential, pair)
    found = estimate_model(problem, MatchInfo(pair.scores), Options(early_stop=False, keep_trace=True))
    start, *rounds = found.rounds
    network = load_network("default")
    side = side_information(problem.correspondences, problem.spreads, pair.scores, "ratio")
    assert np.array_equal(start.probabilities, network.first(side)[1])
    for before, record in zip(found.rounds, rounds, strict=False):
        assert np.array_equal(record.msac_scores, problem.msac_scores(record.models, record.max_error))
        state, probabilities = network.update(before.state, record.msac_scores)
        assert np.array_equal(record.state, state)
        assert np.array_equal(record.probabilities, probabilities)
    assert np.array_equal(found.msac_scores, problem.msac_scores(found.model[None], found.max_error)[0])
    assert found.max_error == Scale.of(problem, "auto", DEFAULT_TUNING).inlier_error(found.noise)


def record_of(problem, models, best, noise):
    return Round(
        samples=np.zeros((1, 5), np.int32),
        num_hypotheses=7,
        models=models,
        max_error=2.5 * noise,
        msac_scores=problem.msac_scores(models, 2.5 * noise),
        state=np.zeros((problem.num_points, 1), np.float32),
        probabilities=np.ones(problem.num_points, np.float32),
        best=best,
        noise=noise,
    )


def test_the_answer_of_a_run_is_supported():
    pair = make_pair(300, outlier_ratio=0.3, seed=4)
    problem = problem_of(Essential, pair)
    scale, noise = Scale.of(problem, "auto", DEFAULT_TUNING), 0.5 * problem.pixel
    right = np.c_[pair.R, pair.t]
    backwards = np.c_[pair.R, -pair.t]  # puts all points behind the cameras
    found = conclude(
        problem, scale, [record_of(problem, right[None], right, noise)], stop_reason="early_stop", answer=right
    )
    assert (found.stop_reason, found.num_hypotheses) == ("early_stop", 7)
    assert np.array_equal(found.model, right)
    record = record_of(problem, right[None], right, noise)
    assert conclude(problem, scale, [record], stop_reason="budget", answer=right).stop_reason == "budget"
    # A mean or refinement that loses the consensus is dropped. Without any consensus, there is no answer.
    for best in (right, backwards):
        record = record_of(problem, right[None], best, noise)
        kept = conclude(problem, scale, [record], stop_reason="budget", answer=backwards)
        assert np.array_equal(kept.model, right)
    few = problem.subset(np.flatnonzero(pair.inliers)[:5].astype(np.int32))
    nothing = conclude(few, scale, [record_of(few, right[None], right, noise)], stop_reason="early_stop", answer=right)
    assert (nothing.model, nothing.stop_reason) == (None, "no_consensus")
    record = record_of(problem, right[None], None, noise)
    assert conclude(problem, scale, [record], stop_reason="early_stop", answer=None).stop_reason == "degenerate"


class PlantedNetwork:
    """A network with fixed probabilities, independent of the data and the models."""

    num_features, alpha = 36, 1.0

    def __init__(self, prior):
        self.prior = np.asarray(prior, np.float32)

    def first(self, side):
        return np.zeros((len(side), 1), np.float32), self.prior

    def update(self, state, _msac_scores):
        return state, self.prior


class MisledNetwork(PlantedNetwork):
    """A network that exchanges right and wrong matches after the first round."""

    def update(self, state, _msac_scores):
        return state, 1 - self.prior


def test_the_best_model_so_far_is_kept_against_models_of_worse_samples():
    pair = make_pair(400, outlier_ratio=0.4, seed=1)
    problem, network = problem_of(Essential, pair), MisledNetwork(np.where(pair.inliers, 0.99, 0.01))
    options = Options(early_stop=False, adaptive_refinement=False)
    found = adapt(problem, network, np.zeros((400, 36), np.float32), MatchInfo(), options)
    assert pair.inliers[found.rounds[1].samples].all()
    for before, record in pairwise(found.rounds[1:]):
        assert not pair.inliers[record.samples].any()
        assert np.array_equal(record.models[0], before.best)
    assert pose_error_deg(*split_pose(found.model), pair.R, pair.t) < 0.5


def planted(seed=0):
    """Create matches of one motion and 1.5 times as many of another motion, like those of a repeated pattern."""
    first, second = (make_pair(n, outlier_ratio=0.0, seed=s) for n, s in ((200, 10 + seed), (300, 50 + seed)))
    points1, points2 = (np.concatenate([getattr(p, name) for p in (first, second)]) for name in ("points1", "points2"))
    problem = Essential.from_pixels(points1, points2, first.camera1, first.camera2)
    return problem, first, second, np.arange(500) < 200


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("prior_of_pattern", "wins"), [(0.95, "pattern"), (0.06, "truth")])
def test_a_repeated_pattern_of_low_prior_does_not_win(seed, prior_of_pattern, wins):
    problem, truth, pattern, right = planted(seed)
    # Both motions are sampled, and models of both are refined. Their priors decide.
    prior = np.where(right, 0.95, prior_of_pattern)
    tuning = Tuning(pool_success=1e-9)
    options = Options(tuning=tuning, rounds=1, samples_per_round=1000, local_models=500)
    side = np.zeros((500, 36), np.float32)
    found = adapt(problem, PlantedNetwork(prior), side, MatchInfo(), options)
    expected = truth if wins == "truth" else pattern
    model = found.rounds[-1].models[0]
    assert pose_error_deg(*split_pose(model), expected.R, expected.t) < 2
    other = pattern if wins == "truth" else truth
    assert pose_error_deg(*split_pose(model), other.R, other.t) > 5


@pytest.mark.parametrize(
    "changed",
    [
        {"max_error": 8.0},
        {"first_noise": 8.0},
        {"usual_matches": 1000.0},
        {"min_weight": 0.5},
        {"compared_on": 40},
        {"local_steps": 1},
        {"pool_success": 0.1},
        {"same_model": 1.1},
        {"working_set": 400},
    ],
)
def test_the_tuning_reaches_the_answer(changed):
    """An unchanged tuning gives an identical answer."""
    pair = make_pair(600, outlier_ratio=0.6, seed=3)
    problem, info = problem_of(Essential, pair), MatchInfo(pair.scores)
    usual, same, other = (
        estimate_model(problem, info, Options(tuning=tuning, early_stop=False))
        for tuning in (DEFAULT_TUNING, Tuning(), Tuning(**changed))
    )
    assert np.array_equal(usual.model, same.model)
    assert not np.array_equal(usual.model, other.model)


def plane_matches(rng, num_right=120, num_wrong=300):
    """Create matches of a plane with good scores, and wrong matches."""
    right1 = rng.uniform(0, 1000, (num_right, 2))
    H = np.array([[0.9, 0.1, 30], [-0.05, 1.1, -20], [1e-5, 2e-5, 1]])
    moved = np.c_[right1, np.ones(num_right)] @ H.T
    wrong1, wrong2 = rng.uniform(0, 1000, (2, num_wrong, 2))
    points1 = np.concatenate([right1, wrong1])
    points2 = np.concatenate([moved[:, :2] / moved[:, 2:], wrong2])
    scores = np.concatenate([rng.uniform(0.2, 0.6, num_right), rng.uniform(0.7, 1, num_wrong)])
    return points1, points2, scores, np.arange(num_right + num_wrong) < num_right


def draw_of(problem, info, prior, **options):
    """Return the samples of the first and of the second round."""
    options = Options(**options)
    scale, network = Scale.of(problem, "auto", options.tuning), PlantedNetwork(prior)
    steps = Steps(problem, scale, network, network.prior, info, options)
    last = record_of(problem, problem.no_models, None, scale.first)
    last = replace(last, probabilities=network.prior, num_hypotheses=0)
    return steps.draw(last), steps.draw(replace(last, num_hypotheses=options.samples_per_round))


def test_half_of_the_samples_of_homographies_go_by_score(rng):
    """If the network is wrong about every match, samples by score still find the plane."""
    points1, points2, scores, right = plane_matches(rng)
    problem, prior = Homography.from_pixels(points1, points2), np.where(right, 0.0, 0.99)
    first, second = draw_of(problem, MatchInfo(scores), prior, early_stop=False)
    assert first.shape == second.shape == (256, 4)
    for samples in (first, second):
        by_probability, by_score = samples[:128], samples[128:]
        assert not right[by_probability].any()
        assert right[by_score].mean() > 0.9
    best = np.argsort(scores, kind="stable")
    assert sorted(first[128]) == sorted(best[:4])  # PROSAC starts with the four best matches
    both = [tuple(sorted(sample)) for sample in np.concatenate([first, second]).tolist()]
    assert len(set(both)) > 0.9 * len(both)  # the second round continues the sequence of the first


@pytest.mark.parametrize("by_score", [0.5, 0.0])
def test_samples_by_score_find_the_plane_that_does_not_look_right(monkeypatch, rng, by_score):
    points1, points2, scores, right = plane_matches(rng)
    problem, network = Homography.from_pixels(points1, points2), PlantedNetwork(np.where(right, 0.02, 0.99))
    assert Homography.traits.by_score == 0.5
    monkeypatch.setattr(Homography, "traits", replace(Homography.traits, by_score=by_score))
    side = np.zeros((len(points1), 36), np.float32)
    found = adapt(problem, network, side, MatchInfo(scores), Options(early_stop=False, adaptive_refinement=False))
    share = problem.inliers(found.rounds[-1].models[0], 2 * problem.pixel)[right].mean()
    assert share > 0.95 if by_score else share < 0.1


def test_only_homographies_have_samples_by_score(rng):
    points1, points2, scores, right = plane_matches(rng)
    prior = np.where(right, 0.0, 0.99)
    assert not right[draw_of(Homography.from_pixels(points1, points2), MatchInfo(), prior)[0]].any()  # without scores
    assert not right[draw_of(Fundamental.from_pixels(points1, points2), MatchInfo(scores), prior)[0]].any()
    confidences = MatchInfo(1 - scores, "confidence")
    samples = draw_of(Homography.from_pixels(points1, points2), confidences, prior, early_stop=False)[0]
    assert right[samples[128:]].mean() > 0.9


def test_rounds_draw_other_samples_and_keep_the_best_model():
    pair = make_pair(600, outlier_ratio=0.6, seed=3)
    problem = problem_of(Essential, pair)
    found = estimate_model(problem, MatchInfo(pair.scores), Options(early_stop=False))
    drawn = [record.samples for record in found.rounds[1:]]
    assert all(not np.array_equal(a, b) for a, b in pairwise(drawn))
    errors = [pose_error_deg(*split_pose(record.best), pair.R, pair.t) for record in found.rounds[1:]]
    assert errors[-1] < 1


def test_rotated_images_give_the_rotated_answer():
    """No direction is special: if the images are rotated by 90 degrees, the pose is rotated, too."""
    pair = make_pair(600, outlier_ratio=0.5, seed=5)
    turn = rotation_from_vector([0, 0, np.pi / 2])
    rays = [pair.camera1.pixels_to_rays(points) for points in (pair.points1, pair.points2)]
    K = np.diag([1000.0, 1000.0, 1])
    plain, turned = (
        caransac.estimate_relative_pose(
            *(1000 * r @ S[:2, :2].T for r in rays), K, K, scores=pair.scores, score_kind="ratio"
        )
        for S in (np.eye(3), turn)
    )
    for result, S in ((plain, np.eye(3)), (turned, turn)):
        assert pose_error_deg(S.T @ result.R @ S, S.T @ result.t, pair.R, pair.t) < 0.6


@pytest.mark.parametrize("broken", [{"noise": np.nan}, {"model": np.full((3, 4), np.inf)}])
def test_an_answer_that_is_not_finite_is_a_failure(monkeypatch, broken):
    whole = pipeline.conclude
    monkeypatch.setattr(pipeline, "conclude", lambda *arguments: replace(whole(*arguments), **broken))
    pair = make_pair(60, seed=1)
    result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)
    assert not result.success
    assert (result.R, result.covariance, result.confidence, result.num_inliers) == (None, None, 0.0, 0)
    assert result.stop_reason == "degenerate"


@pytest.mark.parametrize("broken", [{"confidence": np.nan}, {"covariance": np.full((5, 5), np.inf)}])
def test_an_assessment_with_a_number_that_is_not_finite_gives_no_confidence(monkeypatch, broken):
    whole = pipeline.assess_confidence
    monkeypatch.setattr(pipeline, "assess_confidence", lambda *arguments: replace(whole(*arguments), **broken))
    pair = make_pair(60, seed=1)
    result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)
    assert result.success
    assert (result.covariance, result.confidence, result.rotation_confidence) == (None, 0.0, 0.0)
