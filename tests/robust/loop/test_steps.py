"""Selection of the models that are refined, passed to the network, and averaged."""

from dataclasses import replace

import numpy as np
import pytest
from scenes import contaminated_scene

from caransac import Options, kernels
from caransac.geometry import join_pose, pose_error_deg, split_pose
from caransac.robust.loop.ca_ransac import prior_round
from caransac.robust.loop.scale import Scale
from caransac.robust.loop.steps import Steps, likely_subset
from caransac.robust.problems import Essential, Homography
from caransac.robust.records import MatchInfo
from caransac.tuning import DEFAULT_TUNING, Tuning
from caransac_lab.synthetic import random_plane


def steps_of(problem, search_error, prior=None, *, tuning=DEFAULT_TUNING, **options):
    """Return the steps of a problem, and the record of a last round whose noise gives this search error."""
    prior = np.ones(problem.num_points, np.float32) if prior is None else prior
    scale = Scale.of(problem, "auto", replace(tuning, first_noise=1e9))
    steps = Steps(problem, scale, None, prior, MatchInfo(), Options(tuning=tuning, **options))
    last = prior_round(problem, scale, np.zeros((problem.num_points, 1), np.float32), prior)
    return steps, replace(last, noise=search_error / tuning.max_error)


def test_a_likely_subset_has_the_most_probable_points(rng):
    problem = Essential(kernels.pack(*rng.normal(size=(2, 100, 2))))
    probabilities = rng.permutation(100).astype(np.float32)
    chosen = likely_subset(problem, probabilities, 10)
    assert chosen.num_points == 10
    wanted = problem.points1[probabilities >= 90]
    assert np.array_equal(np.sort(chosen.points1, axis=0), np.sort(wanted, axis=0))
    assert likely_subset(problem, probabilities, 100) is problem
    assert likely_subset(problem, np.ones(100, np.float32), 10).num_points == 10


def two_motions(rng, share):
    """Create a cluster of matches that follow one pose, and spread matches that follow another one."""
    x1, x2, R, t, _ = contaminated_scene(rng, 600, outlier_ratio=0, noise=0)
    cluster = np.linalg.norm(x1, axis=1) < np.quantile(np.linalg.norm(x1, axis=1), 0.35)
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    follow = np.where(cluster[:, None], x2, x2 @ turned[:2, :2].T)
    others = np.flatnonzero(~cluster)[: int(share * cluster.sum())]
    chosen = np.concatenate([np.flatnonzero(cluster), others])
    problem = Essential(kernels.pack(x1[chosen], follow[chosen]))
    return problem, np.stack([join_pose(R, t), join_pose(turned @ R, turned @ t)]), cluster[chosen]


def test_spread_matches_count_more_than_a_cluster(rng):
    problem, models, _ = two_motions(rng, 0.95)
    totals = problem.msac_scores(models, 1e-3).sum(axis=1)
    assert totals[0] > totals[1]
    steps, last = steps_of(problem, 1e-3)
    assert np.array_equal(steps.attend(models, last), models[::-1])
    steps, last = steps_of(problem, 1e-3, tuning=Tuning(spread_ranking=False))
    assert np.array_equal(steps.attend(models, last), models)


@pytest.mark.parametrize(("prior_of_cluster", "winner"), [(0.9, 0), (0.05, 1)])
def test_improbable_matches_count_less(rng, prior_of_cluster, winner):
    """A cluster of two thirds of the matches wins, unless its prior probability is low."""
    problem, models, cluster = two_motions(rng, 0.3)
    prior = np.where(cluster, prior_of_cluster, 0.9).astype(np.float32)
    steps, last = steps_of(problem, 1e-3, prior, top_models=1)
    assert np.array_equal(steps.attend(models, last)[0], models[winner])


def test_two_models_of_one_consensus_are_one(rng):
    problem, models, _ = two_motions(rng, 0.95)
    nearly = np.stack([models[0], models[0], models[1]])
    nearly[1] = problem.model_kernels.retract(models[0], 1e-6 * np.ones(5))
    for tuning, count in ((DEFAULT_TUNING, 2), (Tuning(same_model=1.1), 3)):
        steps, last = steps_of(problem, 1e-3, tuning=tuning, top_models=3)
        assert len(steps.attend(nearly, last)) == count


def test_promising_models_are_the_best_of_likely_matches_refined(rng):
    x1, x2, R, t, inliers = contaminated_scene(rng, 3000, outlier_ratio=0.7)
    problem = Essential(kernels.pack(x1, x2))
    probabilities = np.where(inliers, 0.9, 0.1).astype(np.float32) * rng.uniform(0.9, 1, 3000).astype(np.float32)
    samples = kernels.sample_uniform(np.flatnonzero(inliers).astype(np.int32), 5, 100, seed=0)
    models = problem.solve(samples)
    steps, last = steps_of(problem, 2e-3, probabilities, local_models=8, samples_per_round=100)
    found = steps.hypothesise(samples, last)
    assert found.shape == (8, 3, 4)
    assert len(steps.hypothesise(samples[:75], last)) == 6, "fewer samples give fewer models"
    errors = [pose_error_deg(*split_pose(model), R, t) for model in found]
    assert np.median(errors) < 0.2
    best = kernels.POSES.top(models, problem.correspondences, 2e-3, 8)
    before = [pose_error_deg(*split_pose(model), R, t) for model in models[best]]
    assert np.median(errors) < np.median(before)
    beside = steps.hypothesise(samples, replace(last, best=models[0]))
    assert np.array_equal(beside[0], models[0]) and np.array_equal(beside[1:], found), "the best model so far is kept"


def test_the_mean_is_of_poses_that_agree_by_their_consensus(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 600, outlier_ratio=0, noise=0)
    problem, truth = Essential(kernels.pack(x1, x2)), join_pose(R, t)

    def mean(poses, tuning=DEFAULT_TUNING):
        steps, last = steps_of(problem, 0.05, tuning=tuning)
        found = steps.average(replace(last, best=poses[0], models=np.array(poses[1:]).reshape(-1, 3, 4)))
        return pose_error_deg(*split_pose(found), R, t)

    ahead, behind = (problem.model_kernels.retract(truth, sign * 0.005 * np.ones(5)) for sign in (1, -1))
    assert mean([ahead, behind]) < 0.05 < 0.2 < mean([ahead]), "errors cancel"
    worse = problem.model_kernels.retract(truth, -0.03 * np.ones(5))
    assert mean([ahead, worse]) == pytest.approx(mean([ahead]), rel=0.05), (
        "a model with less consensus has almost no weight"
    )
    assert mean([ahead, worse], Tuning(mean_exponent=0.0)) > 1.2 * mean([ahead])
    other = problem.model_kernels.retract(truth, np.array([0, 0, 0, 0.3, 0.3]))
    assert mean([other, truth], Tuning(mean_exponent=0.0)) == mean([other]), "a different pose is not averaged"
    nowhere = join_pose(R, -t)  # puts all points behind the cameras
    assert mean([nowhere]) == pose_error_deg(R, -t, R, t)


@pytest.mark.parametrize(("rank_scale", "winner"), [(1.5, "precise"), (1e3, "wide")])
def test_a_precise_model_wins_over_a_rough_one_with_more_matches(rng, rank_scale, winner):
    x1, _, R, t, _ = contaminated_scene(rng, 400, outlier_ratio=0, noise=0)
    rays = np.c_[x1, np.ones(400)] * rng.uniform(3, 9, (400, 1))
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    poses = [(R, t), (turned @ R, turned @ t)]
    seen = [rays @ S.T + s for S, s in poses]
    first, second = (each[:, :2] / each[:, 2:] for each in seen)
    precise = np.arange(400) < 180
    # Noise of the precise model; the search error is four times as large, and the other matches have triple noise.
    noise = 1e-3
    x2 = np.where(precise[:, None], first, second)
    models = np.stack([join_pose(*pose) for pose in poses])
    x2 = x2 + np.where(precise[:, None], 0.0, rng.normal(size=(400, 2)) * 3 * noise)
    problem = Essential(kernels.pack(x1, x2))
    tuning = Tuning(rank_scale=rank_scale)
    steps, last = steps_of(problem, tuning.max_error * noise, tuning=tuning)
    assert np.array_equal(steps.attend(models, last)[0], models[0 if winner == "precise" else 1])


def test_probabilities_do_not_affect_the_refinement_of_a_homography(rng):
    plane = random_plane(rng, num_points=200, inlier_ratio=1.0)
    problem = Homography.from_pixels(plane.points1, plane.points2)
    likely = np.full(problem.num_points, 0.9, np.float32)
    unlikely = np.where(np.arange(problem.num_points) < 100, likely, 0.01).astype(np.float32)
    steps, _ = steps_of(problem, 0.05, likely)
    model = problem.from_public(plane.H)
    assert np.array_equal(steps.refine(model, likely, 0.01), steps.refine(model, unlikely, 0.01))
