"""The common operations of essential and fundamental problems."""

import numpy as np
import pytest

from caransac._support.arrays import spread_usable, take_usable
from caransac.camera import Camera
from caransac.geometry import (
    angle_between_deg,
    essential_from_pose,
    fundamental_from_essential,
    join_pose,
    sampson_sq,
)
from caransac.kernels import pack
from caransac.robust.loop.refinement import refine_weighted
from caransac.robust.problems import Essential, Fundamental
from caransac.synthetic import make_pair


@pytest.fixture(params=["essential", "fundamental"])
def case(request):
    """A problem and its true model."""
    pair = make_pair(300, outlier_ratio=0.3, noise_px=0.5, seed=4)
    if request.param == "essential":
        problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
        return problem, join_pose(pair.R, pair.t)
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    problem = Fundamental.from_pixels(pair.points1, pair.points2)
    return problem, problem.from_public(F)


def test_jacobians_are_the_slopes_of_the_distances_along_retraction(case):
    problem, model = case
    residuals, jacobian = problem.model_kernels.jacobian(model, problem.correspondences)
    assert np.allclose(np.abs(residuals), problem.distances(model), atol=1e-9)
    for axis, slope in zip(np.eye(jacobian.shape[1]), jacobian.T, strict=True):
        ahead, behind = (
            problem.model_kernels.jacobian(
                problem.model_kernels.retract(model, sign * 1e-6 * axis), problem.correspondences
            )[0]
            for sign in (1, -1)
        )
        difference = np.minimum(np.abs(ahead - behind - 2e-6 * slope), np.abs(ahead + behind - 2e-6 * slope))
        assert difference.max() < 1e-9


def test_a_subset_is_the_problem_of_some_of_its_points(case):
    problem, model = case
    chosen = np.array([5, 3, 200], np.int32)
    sub = problem.subset(chosen)
    assert np.array_equal(sub.distances(model), problem.distances(model)[chosen])
    assert problem.num_points == 300
    assert problem.no_models.shape == (0, *model.shape)


def test_the_true_model_explains_the_inliers(case):
    problem, model = case
    max_error = problem.pixel
    inliers = problem.inliers(model, max_error)
    assert inliers.mean() > 0.6
    refined = refine_weighted(problem, model, inliers.astype(float), max_error)
    before, after = problem.msac_scores(np.stack([model, refined]), max_error).sum(axis=1)
    assert after > 0.99 * before


def test_inliers_are_the_matches_within_the_error(case):
    problem, model = case
    for max_error_px in (0.5, 2.0):
        near = problem.distances(model) < max_error_px * problem.pixel
        inliers = problem.inliers(model, max_error_px * problem.pixel)
        assert np.all(near[inliers])
        assert inliers.sum() > 0.97 * near.sum()  # except points behind a camera


def test_a_subset_keeps_the_scale_of_all(case):
    """The typical noise depends on the extent of all matches, so a subset must keep this extent."""
    problem, _ = case
    near = np.argsort(np.linalg.norm(problem.points1, axis=1))[:20].astype(np.int32)
    assert problem.subset(near).extent == problem.extent
    assert type(problem)(problem.subset(near).correspondences).extent < 0.9 * problem.extent


def test_public_models_come_back(case):
    problem, model = case
    again = problem.from_public(problem.public(model[None])[0])
    assert np.allclose(problem.distances(again), problem.distances(model), atol=1e-12)


def test_matches_beyond_the_reach_of_a_lens_are_not_usable():
    camera = Camera("RADIAL", (500.0, 320.0, 240.0, -0.4, 0.05))
    pixels1, pixels2 = np.random.default_rng(0).uniform(200, 400, (2, 50, 2))
    pixels2[[3, 30]] = 1e5
    problem = Essential.from_pixels(pixels1, pixels2, camera, camera)
    assert np.array_equal(np.flatnonzero(~problem.usable), [3, 30])
    assert problem.num_points == 48
    assert np.array_equal(take_usable(np.arange(50), problem.usable), np.delete(np.arange(50), [3, 30]))
    spread = spread_usable(np.ones((2, 48)), problem.usable)
    assert np.array_equal(np.flatnonzero(spread[0] == 0), [3, 30])
    assert spread.shape == (2, 50)


def test_fundamental_matrices_come_back_in_pixels():
    pair = make_pair(300, outlier_ratio=0.0, noise_px=0.3, seed=4)
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    problem = Fundamental.from_pixels(pair.points1, pair.points2)
    back = problem.public(problem.from_public(F)[None])[0]
    assert np.allclose(np.abs(back), np.abs(F / np.linalg.norm(F)))
    distances_px = np.sqrt(sampson_sq(F, pair.points1, pair.points2))
    assert np.allclose(problem.distances(problem.from_public(F)) / problem.pixel, distances_px, rtol=1e-4)


def test_the_baseline_of_a_fundamental_matrix_assumes_a_typical_camera():
    pair = make_pair(10, seed=4)
    K = np.diag([Fundamental.traits.usual_focal, Fundamental.traits.usual_focal, 1.0])
    model = fundamental_from_essential(essential_from_pose(pair.R, pair.t), K, K)
    problem = Fundamental(pack(pair.points1, pair.points2))
    angle = angle_between_deg(problem.outcomes(model[None])[0], pair.t)
    assert min(angle, 180 - angle) < 1e-6
