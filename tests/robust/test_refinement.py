"""How models are fitted to points: the noise, the weights, and that a rough model becomes a good one."""

import numpy as np
import pytest

from caransac.geometry import join_pose, pose_error_deg, rotation_from_vector, split_pose
from caransac.learned.state_network import load_network
from caransac.robust.problems import Essential
from caransac.robust.refinement import (
    LARGEST_NOISE,
    NEGLIGIBLE_WEIGHT,
    SMALLEST_NOISE,
    TYPICAL_NOISE,
    belief_weights,
    estimate_noise,
    refine_locally,
    refine_weighted,
    trusted_points,
)
from caransac.synthetic import make_pair


def scene(noise_px, outlier_ratio=0.3, num_points=3000):
    """A problem with a threshold of one pixel, its true pose, and which of its points are right."""
    pair = make_pair(num_points, outlier_ratio, noise_px, seed=6)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2, 1.0)
    return problem, join_pose(pair.R, pair.t), pair.inliers


def as_prior(inliers):
    return np.where(inliers, 0.9, 0.1).astype(np.float32)


@pytest.mark.parametrize("noise_px", [0.2, 0.5, 1.0])
def test_the_noise_is_the_median_distance_of_right_matches(noise_px):
    problem, pose, inliers = scene(noise_px)
    noise = estimate_noise(trusted_points(problem, as_prior(inliers)), pose)
    assert noise == pytest.approx(0.6745 * noise_px, rel=0.05)  # the median of a half-normal distribution


@pytest.mark.parametrize(("noise_px", "expected"), [(0.01, SMALLEST_NOISE), (2.5, LARGEST_NOISE)])
def test_an_unlikely_noise_is_cut(noise_px, expected):
    problem, pose, inliers = scene(noise_px)
    assert estimate_noise(trusted_points(problem, as_prior(inliers)), pose) == expected


def test_without_points_near_the_model_the_noise_is_a_typical_one():
    problem, pose, inliers = scene(0.2)
    turned = join_pose(rotation_from_vector([0, 0, 1.0]) @ pose[:, :3], pose[:, 3])
    few = problem.subset(np.flatnonzero(inliers)[:50].astype(np.int32))
    assert estimate_noise(trusted_points(few, np.full(50, 0.9, np.float32)), turned) == TYPICAL_NOISE


def test_points_that_looked_right_are_trusted(rng):
    problem, _, _ = scene(0.5, num_points=400)
    prior = rng.permutation(np.linspace(0, 1, 400)).astype(np.float32)
    trusted = trusted_points(problem, prior)
    assert np.array_equal(trusted.points1, problem.points1[prior > 0.5])


def test_belief_and_prior_weigh_the_points(rng):
    network = load_network("default")
    probabilities, prior = rng.uniform(0, 1, (2, 500)).astype(np.float32) ** 3
    expected = probabilities.astype(float) ** network.alpha * prior.astype(float) ** network.beta
    weights = belief_weights(network, probabilities, prior)
    counts = expected > NEGLIGIBLE_WEIGHT
    assert counts.any() and not counts.all()
    assert np.allclose(weights, np.where(counts, expected, 0), rtol=1e-4)


def test_rough_models_become_good_ones():
    problem, pose, inliers = scene(0.3)
    rough = join_pose(rotation_from_vector([0.001, -0.001, 0.001]) @ pose[:, :3], pose[:, 3])
    (local,) = refine_locally(problem, rough[None], problem.max_error)
    final = refine_weighted(problem, local, inliers.astype(float), 0.3 * problem.max_error)
    errors = [pose_error_deg(*split_pose(model), *split_pose(pose)) for model in (rough, local, final)]
    assert max(errors[1:]) < 0.5 * errors[0]
    assert np.median(problem.distances(final)[inliers]) < np.median(problem.distances(rough)[inliers])
