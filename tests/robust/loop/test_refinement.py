"""Refinement of models: the weights of matches, and the improvement of rough models."""

import numpy as np
import pytest

from caransac.geometry import join_pose, pose_error_deg, rotation_from_vector, split_pose
from caransac.kernels import RefineOptions
from caransac.learned.state_network import load_network
from caransac.robust.loop.refinement import local_steps, loss_scale, match_weights, refine_weighted
from caransac.robust.loop.scale import Scale
from caransac.robust.problems import Essential, Fundamental, Homography
from caransac.synthetic import make_pair
from caransac.tuning import DEFAULT_TUNING, PAPER_TUNING, Tuning


def scene(noise_px, outlier_ratio=0.3, num_points=3000):
    """Return a problem, its scale for a threshold of one pixel, its true pose, and the mask of its right matches."""
    pair = make_pair(num_points, outlier_ratio, noise_px, seed=6)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    return problem, Scale.of(problem, 1.0, DEFAULT_TUNING), join_pose(pair.R, pair.t), pair.inliers


def test_probabilities_weigh_the_matches(rng):
    network = load_network("paper")
    probabilities = rng.uniform(0, 1, 500).astype(np.float32) ** 3
    expected = probabilities.astype(float) ** network.alpha
    assert network.alpha != 1
    for min_weight in (DEFAULT_TUNING.min_weight, 0.2):
        weights = match_weights(network, probabilities, min_weight)
        counts = expected > min_weight
        assert counts.any() and not counts.all()
        assert np.allclose(weights, np.where(counts, expected, 0), rtol=1e-4)


def test_rough_models_become_good_ones():
    problem, _, pose, inliers = scene(0.3)
    rough = join_pose(rotation_from_vector([0.001, -0.001, 0.001]) @ pose[:, :3], pose[:, 3])
    max_error, noise = problem.pixel, 0.2 * problem.pixel
    (local,) = problem.refine(rough[None], local_steps(problem, max_error, noise, DEFAULT_TUNING))
    final = refine_weighted(problem, local, inliers.astype(float), noise)
    errors = [pose_error_deg(*split_pose(model), *split_pose(pose)) for model in (rough, local, final)]
    assert max(errors[1:]) < 0.5 * errors[0]
    assert np.median(problem.distances(final)[inliers]) < np.median(problem.distances(rough)[inliers])


@pytest.mark.parametrize("problem_class", [Essential, Homography])
def test_the_loss_is_on_the_scale_of_the_noise(problem_class):
    pair = make_pair(300, outlier_ratio=0.2, seed=0)
    cameras = (pair.camera1, pair.camera2) if problem_class is Essential else ()
    problem = problem_class.from_pixels(pair.points1, pair.points2, *cameras)
    noise, weights = problem.pixel, pair.inliers.astype(float)
    model = problem.solve(np.flatnonzero(pair.inliers)[None, : problem.sample_size].astype(np.int32))[0]
    found = refine_weighted(problem, model, weights, noise)
    options = RefineOptions(loss_scale=noise)
    assert np.array_equal(found, problem.refine(model[None], options, weights)[0])
    other = RefineOptions(loss_scale=2 * noise)
    assert not np.allclose(found, problem.refine(model[None], other, weights)[0], atol=1e-9)


def test_local_steps_look_no_farther_than_their_reach():
    problem, _, pose, inliers = scene(0.5, outlier_ratio=0.0, num_points=400)
    rough = problem.model_kernels.retract(pose, 1e-4 * np.array([1, -1, 1, 1, 0]))
    max_error = 2 * problem.pixel
    found = problem.refine(rough[None], local_steps(problem, max_error, problem.pixel, DEFAULT_TUNING))[0]
    near = problem.distances(rough) < 5**0.5 * max_error
    assert inliers.all() and near.sum() > 350
    within = problem.subset(np.flatnonzero(near).astype(np.int32))
    alone = within.refine(rough[None], local_steps(within, max_error, problem.pixel, DEFAULT_TUNING))[0]
    assert np.allclose(found, alone, atol=1e-9)
    assert not np.array_equal(found, rough)
    still = local_steps(problem, max_error, problem.pixel, Tuning(local_steps=0))
    assert np.allclose(problem.refine(rough[None], still)[0], rough, atol=1e-12)


def test_wrong_matches_of_no_weight_do_not_move_the_model():
    problem, _, pose, inliers = scene(0.3, outlier_ratio=0.6, num_points=500)
    right = problem.subset(np.flatnonzero(inliers).astype(np.int32))
    noise = 0.2 * problem.pixel
    weighted = refine_weighted(problem, pose, inliers.astype(float), noise)
    alone = refine_weighted(right, pose, np.ones(right.num_points), noise)
    assert np.allclose(weighted, alone, atol=1e-7)


def test_the_final_loss_is_wide_if_that_predicts_a_smaller_variance(rng):
    """A wide loss is more precise without wrong matches. A narrow loss suppresses wrong matches near the model."""
    for share_near, wide in ((0.0, True), (0.7, False)):
        pair = make_pair(1000, outlier_ratio=0.0, noise_px=0.5, seed=2)
        moved = (rng.random(1000) < share_near)[:, None] * rng.uniform(-8, 8, (1000, 2))
        problem = Essential.from_pixels(pair.points1, pair.points2 + moved, pair.camera1, pair.camera2)
        pose, noise, weights = join_pose(pair.R, pair.t), 0.5 * 0.674 * problem.pixel, np.ones(1000)
        factor = DEFAULT_TUNING.wide_loss_scale if wide else 1.0
        assert loss_scale(problem, pose, weights, noise, DEFAULT_TUNING) == pytest.approx(factor * noise)
        assert loss_scale(problem, pose, weights, noise, PAPER_TUNING) == noise
        nothing = problem.subset(np.empty(0, np.int32))
        assert loss_scale(nothing, pose, np.empty(0), noise, DEFAULT_TUNING) == noise
        plain = Fundamental.from_pixels(pair.points1, pair.points2)
        assert loss_scale(plain, np.eye(3), weights, noise, DEFAULT_TUNING) == noise, "not for unknown cameras"
