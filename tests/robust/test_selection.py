"""Which models are refined and attended to."""

from dataclasses import replace

import numpy as np
import pytest
from scenes import contaminated_scene

from caransac import kernels
from caransac.geometry import join_pose, pose_error_deg, split_pose
from caransac.robust.problems import Essential
from caransac.robust.scale import Scale
from caransac.robust.selection import likely_subset, mean_of_agreeing, most_distinct, promising, rank_regions
from caransac.tuning import DEFAULT_TUNING, Tuning


def scale_of(problem, search_error, tuning=DEFAULT_TUNING):
    """The scale of a problem, and the noise whose search error is the given one."""
    scale = Scale.of(problem, "auto", replace(tuning, first_noise=1e9))
    return scale, search_error / tuning.max_error


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
    """A cluster of matches that follow one pose, others all over the images another: problem, models, cluster."""
    x1, x2, R, t, _ = contaminated_scene(rng, 600, outlier_ratio=0, noise=0)
    cluster = np.linalg.norm(x1, axis=1) < np.quantile(np.linalg.norm(x1, axis=1), 0.35)
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    follow = np.where(cluster[:, None], x2, x2 @ turned[:2, :2].T)
    others = np.flatnonzero(~cluster)[: int(share * cluster.sum())]
    chosen = np.concatenate([np.flatnonzero(cluster), others])
    problem = Essential(kernels.pack(x1[chosen], follow[chosen]))
    return problem, np.stack([join_pose(R, t), join_pose(turned @ R, turned @ t)]), cluster[chosen]


def test_evidence_spread_over_the_images_counts_for_more_than_a_cluster_of_it(rng):
    problem, models, _ = two_motions(rng, 0.95)
    totals = problem.msac_scores(models, 1e-3).sum(axis=1)
    assert totals[0] > totals[1]
    regions = rank_regions(problem, np.ones(problem.num_points, np.float32), DEFAULT_TUNING)
    best = most_distinct(problem, models, regions, 2, *scale_of(problem, 1e-3))
    assert np.array_equal(best, models[::-1])


@pytest.mark.parametrize(("prior_of_cluster", "winner"), [(0.9, 0), (0.05, 1)])
def test_what_looks_wrong_counts_for_less(rng, prior_of_cluster, winner):
    """A cluster of two thirds of the matches wins, unless it is unlikely before any model."""
    problem, models, cluster = two_motions(rng, 0.3)
    prior = np.where(cluster, prior_of_cluster, 0.9).astype(np.float32)
    regions = rank_regions(problem, prior, DEFAULT_TUNING)
    best = most_distinct(problem, models, regions, 1, *scale_of(problem, 1e-3))
    assert np.array_equal(best[0], models[winner])


def test_two_models_of_one_consensus_are_one(rng):
    problem, models, _ = two_motions(rng, 0.95)
    nearly = np.stack([models[0], models[0], models[1]])
    nearly[1] = problem.retract(models[0], 1e-6 * np.ones(5))
    regions = rank_regions(problem, np.ones(problem.num_points, np.float32), DEFAULT_TUNING)
    scale, noise = scale_of(problem, 1e-3)
    assert len(most_distinct(problem, nearly, regions, 3, scale, noise)) == 2
    assert len(most_distinct(problem, nearly, regions, 3, *scale_of(problem, 1e-3, Tuning(same_model=1.1)))) == 3


def test_promising_models_are_the_best_of_likely_matches_refined(rng):
    x1, x2, R, t, inliers = contaminated_scene(rng, 3000, outlier_ratio=0.7)
    problem = Essential(kernels.pack(x1, x2))
    probabilities = np.where(inliers, 0.9, 0.1).astype(np.float32) * rng.uniform(0.9, 1, 3000).astype(np.float32)
    samples = kernels.sample_uniform(np.flatnonzero(inliers).astype(np.int32), 5, 100, seed=0)
    models = problem.solve(samples)
    scale, noise = scale_of(problem, 2e-3)
    found = promising(problem, models, probabilities, 8, scale, noise)
    assert found.shape == (8, 3, 4)
    errors = [pose_error_deg(*split_pose(model), R, t) for model in found]
    assert np.median(errors) < 0.2
    before = [pose_error_deg(*split_pose(model), R, t) for model in problem.best(models, 8, 2e-3)]
    assert np.median(errors) < np.median(before)
    assert len(promising(problem, models[:3], probabilities, 8, scale, noise)) == 3


def test_the_mean_is_of_poses_that_agree_by_their_consensus(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 600, outlier_ratio=0, noise=0)
    problem, truth = Essential(kernels.pack(x1, x2)), join_pose(R, t)
    regions = rank_regions(problem, np.ones(problem.num_points, np.float32), DEFAULT_TUNING)

    def mean(poses, tuning=DEFAULT_TUNING):
        found = mean_of_agreeing(problem, np.stack(poses), regions, *scale_of(problem, 0.05, tuning))
        return pose_error_deg(*split_pose(found), R, t)

    ahead, behind = (problem.retract(truth, sign * 0.005 * np.ones(5)) for sign in (1, -1))
    assert mean([ahead, behind]) < 0.05 < 0.2 < mean([ahead]), "errors cancel"
    worse = problem.retract(truth, -0.03 * np.ones(5))
    assert mean([ahead, worse]) == pytest.approx(mean([ahead]), rel=0.05), "less consensus counts for next to nothing"
    assert mean([ahead, worse], Tuning(mean_exponent=0.0)) > 1.2 * mean([ahead])
    other = problem.retract(truth, np.array([0, 0, 0, 0.3, 0.3]))
    assert mean([other, truth], Tuning(mean_exponent=0.0)) == mean([other]), "another answer has no part in it"
    nowhere = join_pose(R, -t)  # all points behind the cameras
    assert mean([nowhere]) == pose_error_deg(R, -t, R, t)


@pytest.mark.parametrize(("rank_scale", "winner"), [(1.5, "precise"), (1e3, "wide")])
def test_a_precise_model_wins_over_one_that_more_matches_are_merely_near(rng, rank_scale, winner):
    x1, _, R, t, _ = contaminated_scene(rng, 400, outlier_ratio=0, noise=0)
    rays = np.c_[x1, np.ones(400)] * rng.uniform(3, 9, (400, 1))
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    poses = [(R, t), (turned @ R, turned @ t)]
    seen = [rays @ S.T + s for S, s in poses]
    first, second = (each[:, :2] / each[:, 2:] for each in seen)
    precise = np.arange(400) < 180
    noise = 1e-3  # of the precise one; a search error is four, and the others are two away from theirs
    x2 = np.where(precise[:, None], first, second)
    models = np.stack([join_pose(*pose) for pose in poses])
    x2 = x2 + np.where(precise[:, None], 0.0, rng.normal(size=(400, 2)) * 3 * noise)
    problem = Essential(kernels.pack(x1, x2))
    tuning = Tuning(rank_scale=rank_scale, first_noise=1e9)
    regions = rank_regions(problem, np.ones(400, np.float32), tuning)
    best = most_distinct(problem, models, regions, 1, Scale.of(problem, "auto", tuning), noise)[0]
    assert np.array_equal(best, models[0 if winner == "precise" else 1])
