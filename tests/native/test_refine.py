"""Refinement: Jacobians by finite differences, descent, convergence, losses."""

import numpy as np
import pytest
from scenes import contaminated_scene, random_problems

from caransac import geometry
from caransac.geometry import join_pose, split_pose
from caransac.kernels import FUNDAMENTALS, POSES, Loss, RefineOptions, pack, sample_uniform, where
from caransac.robust.problems import Essential, Fundamental
from caransac.synthetic import make_pair

pytestmark = pytest.mark.kernels

RHO = {
    Loss.TRUNCATED: lambda s, c: np.minimum(s, c * c),
    Loss.CAUCHY: lambda s, c: c * c * np.log1p(s / (c * c)),
}


def signed_sampson(model, x1, x2):
    h1, h2 = geometry.homogeneous(x1), geometry.homogeneous(x2)
    return np.sign(np.sum(h2 * (h1 @ model.T), axis=1)) * np.sqrt(geometry.sampson_sq(model, x1, x2))


def central_differences(function, dof, step=1e-6):
    columns = [(function(step * unit) - function(-step * unit)) / (2 * step) for unit in np.eye(dof)]
    return np.stack(columns, axis=1)


def nearby(rng, pose, size=0.02):
    return POSES.retract(pose, rng.normal(size=5) * size)


def essential(pose):
    return geometry.essential_from_pose(*split_pose(pose))


def pose_error(pose, R, t):
    return geometry.pose_error_deg(*split_pose(pose), R, t)


def test_pose_jacobian_matches_central_differences(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 50)
    pose = join_pose(R, t)
    residual, jacobian = POSES.jacobian(pose, pack(x1, x2))
    assert np.allclose(residual, signed_sampson(essential(pose), x1, x2), atol=1e-12)

    def along(delta):
        return signed_sampson(essential(POSES.retract(pose, delta)), x1, x2)

    assert np.allclose(jacobian, central_differences(along, POSES.degrees_of_freedom), rtol=1e-5, atol=1e-7)


def test_fundamental_jacobian_matches_central_differences(rng):
    x1, x2, _, _, _ = contaminated_scene(rng, 50)
    model = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([1, 0.3, 0]) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    residual, jacobian = FUNDAMENTALS.jacobian(model, pack(x1, x2))
    assert np.allclose(residual, signed_sampson(model, x1, x2), atol=1e-12)

    def along(delta):
        return signed_sampson(FUNDAMENTALS.retract(model, delta), x1, x2)

    assert np.allclose(jacobian, central_differences(along, FUNDAMENTALS.degrees_of_freedom), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
def test_the_information_matches_the_jacobian(rng, kind):
    x1, x2, R, t, _ = contaminated_scene(rng, 203)
    model = join_pose(R, t) if kind is POSES else geometry.essential_from_pose(R, t)
    weights = rng.uniform(size=203)
    weights[::3] = 0
    jacobian = kind.jacobian(model, pack(x1, x2))[1]
    expected = jacobian.T @ (jacobian * weights[:, None])
    assert np.allclose(kind.information(model, pack(x1, x2), weights), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
@pytest.mark.parametrize("held", [False, True])
def test_the_response_is_the_least_squares_step_to_the_moved_points(rng, kind, held):
    x1, x2, R, t, _ = contaminated_scene(rng, 203)
    model = join_pose(R, t) if kind is POSES else geometry.essential_from_pose(R, t) / 2**0.5
    points, moved = pack(x1, x2), pack(x1, x2 + 1e-3 * rng.normal(size=x2.shape))
    weights, variance, prior = rng.uniform(size=203), 1e-4, np.diag(rng.uniform(1e3, 1e4, kind.degrees_of_freedom))
    (before, slopes), (after, _) = kind.jacobian(model, points), kind.jacobian(model, moved)
    information = slopes.T @ (slopes * weights[:, None]) / variance
    if held:
        prior[0, 0] = np.inf
        information[0] = information[:, 0] = 0
    information += np.minimum(prior, 1e12)
    information += (1e-9 * np.trace(information) + 1e-12) * np.eye(len(information))
    pull = slopes.T @ (weights * (after - before)) / variance
    found = kind.response(model, points, moved, weights, variance, prior)
    np.testing.assert_allclose(found, -np.linalg.solve(information, pull), rtol=1e-9, atol=1e-12)
    assert (abs(found[0]) < 1e-6 * np.abs(found).max()) == held
    assert np.array_equal(kind.response(model, points, points, weights, variance, prior), np.zeros_like(found))


def test_matches_that_move_to_nan_have_no_response(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 203)
    far = x2.copy()
    far[:3] = 1e200, -1e300
    prior, model = np.eye(5), join_pose(R, t)
    weights = np.ones(203)
    found = POSES.response(model, pack(x1, x2), pack(x1, far), weights, 1e-4, prior)
    assert np.isfinite(found).all()
    with pytest.raises(ValueError, match="as many points"):
        POSES.response(model, pack(x1, x2), pack(x1[:9], x2[:9]), weights, 1e-4, prior)
    with pytest.raises(ValueError, match="variance must be positive"):
        POSES.response(model, pack(x1, x2), pack(x1, x2), weights, 0.0, prior)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("single_precision", [False, True])
def test_cost_is_as_specified_and_never_rises(rng, loss, weighted, single_precision):
    x1, x2, R, t, _ = contaminated_scene(rng, 301)
    weights = rng.uniform(0, 1, 301) if weighted else np.ones(301)
    starts = np.stack([nearby(rng, join_pose(R, t), size) for size in (0.001, 0.01, 0.1, 1.0)])
    options = RefineOptions(loss=loss, loss_scale=1e-3, single_precision=single_precision)
    refined, costs = POSES.refine(starts, pack(x1, x2), options, weights if weighted else None)
    for start, end, cost in zip(starts, refined, costs, strict=True):
        before = np.sum(weights * RHO[loss](geometry.sampson_sq(essential(start), x1, x2), 1e-3))
        after = np.sum(weights * RHO[loss](geometry.sampson_sq(essential(end), x1, x2), 1e-3))
        assert cost == pytest.approx([before, after], rel=1e-9)
        assert cost[1] <= cost[0]
    rotations, translations = split_pose(refined)
    assert np.allclose(rotations @ rotations.swapaxes(1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(rotations), 1)
    assert np.allclose(np.linalg.norm(translations, axis=1), 1)


@pytest.mark.parametrize("loss", list(Loss))
def test_the_gradient_vanishes_at_the_end_of_the_refinement(rng, loss):
    x1, x2, R, t, _ = contaminated_scene(rng, 300)
    start = nearby(rng, join_pose(R, t), 0.003)
    options = RefineOptions(loss=loss, loss_scale=1e-3, max_steps=100)
    (end,), _ = POSES.refine(start[None], pack(x1, x2), options)

    def cost(delta):
        return np.array([np.sum(RHO[loss](geometry.sampson_sq(essential(POSES.retract(end, delta)), x1, x2), 1e-3))])

    curvature = [(cost(h) + cost(-h) - 2 * cost(0 * h))[0] / 1e-8 for h in 1e-4 * np.eye(5)]
    newton_step = central_differences(cost, 5, 1e-6)[0] / np.abs(curvature)
    assert np.abs(newton_step).max() < 1e-4


@pytest.mark.parametrize("max_error_px", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("problem", [Essential, Fundamental])
def test_single_precision_steps_reach_the_same_costs(problem, max_error_px):
    pair = make_pair(3000, outlier_ratio=0.5, noise_px=0.5 * max_error_px, seed=1)
    cameras = (pair.camera1, pair.camera2) if problem is Essential else ()
    scene = problem.from_pixels(pair.points1, pair.points2, *cameras)
    max_error = max_error_px * scene.pixel
    samples = sample_uniform(where(pair.inliers), scene.sample_size, 100, seed=0)
    models = scene.solve(samples)
    models = models[scene.model_kernels.top(models, scene.correspondences, max_error, 32)]
    costs = []
    for single_precision in (False, True):
        options = RefineOptions(
            loss=Loss.TRUNCATED,
            loss_scale=max_error,
            max_residual=2 * max_error,
            single_precision=single_precision,
        )
        costs.append(scene.model_kernels.refine(models, scene.correspondences, options)[1])
    assert np.allclose(costs[1][:, 0], costs[0][:, 0], rtol=1e-12, atol=0)
    assert np.allclose(costs[1][:, 1], costs[0][:, 1], rtol=1e-4, atol=0)


def test_noise_free_data_is_fitted_exactly(rng):
    x1, x2, R, t = (array[0] for array in random_problems(rng, 1, 40))
    points = pack(x1, x2)
    start = nearby(rng, join_pose(R, t), 0.05)
    (refined,), _ = POSES.refine(start[None], points, RefineOptions(loss_scale=1e-2))
    assert pose_error(refined, R, t) < 1e-7
    start = FUNDAMENTALS.retract(geometry.essential_from_pose(R, t), rng.normal(size=7) * 0.02)
    (refined,), _ = FUNDAMENTALS.refine(start[None], points, RefineOptions(loss_scale=1e-2, max_steps=50))
    assert geometry.sampson_sq(refined, x1, x2).max() < 1e-18


@pytest.mark.parametrize("loss", list(Loss))
def test_fundamental_matrices_keep_rank_two_and_improve(rng, loss):
    x1, x2, R, t, _ = contaminated_scene(rng, 300)
    truth = geometry.essential_from_pose(R, t)
    starts = np.stack([FUNDAMENTALS.retract(truth, rng.normal(size=7) * s) for s in (0.001, 0.01, 0.1)])
    refined, costs = FUNDAMENTALS.refine(starts, pack(x1, x2), RefineOptions(loss=loss, loss_scale=1e-3))
    assert np.all(costs[:, 1] <= costs[:, 0])
    assert np.abs(np.linalg.det(refined)).max() < 1e-14
    assert np.allclose(np.linalg.norm(refined, axis=(1, 2)), 1)
    for model, cost in zip(refined, costs, strict=True):
        assert cost[1] == pytest.approx(np.sum(RHO[loss](geometry.sampson_sq(model, x1, x2), 1e-3)), rel=1e-9)


def test_refinement_recovers_the_pose_despite_outliers(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 500, 0.5)
    start = nearby(rng, join_pose(R, t), 0.002)
    options = RefineOptions(loss=Loss.TRUNCATED, loss_scale=2e-3, max_residual=5e-3)
    (refined,), _ = POSES.refine(start[None], pack(x1, x2), options)
    assert pose_error(refined, R, t) < 0.5 * pose_error(start, R, t)


def test_zero_weights_remove_points(rng):
    x1, x2, R, t, inliers = contaminated_scene(rng, 200)
    start = nearby(rng, join_pose(R, t))[None]
    with_weights, _ = POSES.refine(start, pack(x1, x2), RefineOptions(), inliers.astype(float))
    without_points, _ = POSES.refine(start, pack(x1[inliers], x2[inliers]), RefineOptions())
    assert np.array_equal(with_weights, without_points)


def test_too_few_points_do_not_change_the_model(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 40)
    for n in (0, 4):
        refined, costs = POSES.refine(join_pose(R, t)[None], pack(x1[:n], x2[:n]), RefineOptions())
        assert np.allclose(refined[0], join_pose(R, t))
        assert np.all(costs == 0)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("bad", [1e200, "epipoles"])
def test_points_without_a_residual_are_ignored(rng, loss, bad):
    x1, x2, R, _, _ = contaminated_scene(rng, 60, outlier_ratio=0)
    t = np.array([0, 0, 1.0])
    with_bad1, with_bad2 = (np.concatenate([x, [[0.0, 0.0]]]) for x in (x1, x2))
    if bad == "epipoles":  # at the epipoles of the initial model, the distance is 0 / 0
        with_bad1[-1] = (R.T @ t)[:2] / (R.T @ t)[2]
    else:
        with_bad1[-1, 0] = bad
    options = RefineOptions(loss=loss, loss_scale=1e-2, max_steps=1)
    alone, alone_costs = POSES.refine(join_pose(R, t)[None], pack(x1, x2), options)
    together, costs = POSES.refine(join_pose(R, t)[None], pack(with_bad1, with_bad2), options)
    assert np.isfinite(costs).all()
    assert costs[0, 0] == pytest.approx(alone_costs[0, 0])
    if bad != "epipoles":
        assert np.allclose(together, alone, atol=1e-12)


def test_impossible_arguments_are_refused(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 20)
    pose, points = join_pose(R, t)[None], pack(x1, x2)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weights"):
            POSES.refine(pose, points, RefineOptions(), np.r_[bad, np.ones(19)])
    with pytest.raises(ValueError, match="weights"):
        POSES.refine(pose, points, RefineOptions(), np.ones(19))
    for name, value in {"loss_scale": 0.0, "max_steps": -1, "max_points": -1, "max_residual": -1.0}.items():
        with pytest.raises(ValueError, match=name):
            RefineOptions(**{name: value})
    with pytest.raises(TypeError):
        RefineOptions(los_scale=1.0)
