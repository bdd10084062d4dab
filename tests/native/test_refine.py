"""Refinement: Jacobians by finite differences, descent, convergence, losses."""

import numpy as np
import pytest
from scenes import contaminated_scene, random_problems

from caransac import geometry, kernels
from caransac.kernels import Loss
from caransac.robust.problems import Essential, Fundamental
from caransac.synthetic import make_pair

pytestmark = pytest.mark.kernels

RHO = {
    Loss.SQUARED: lambda s, _: s,
    Loss.TRUNCATED: lambda s, c: np.minimum(s, c * c),
    Loss.CAUCHY: lambda s, c: c * c * np.log1p(s / (c * c)),
    Loss.HUBER: lambda s, c: np.where(s <= c * c, s, 2 * c * np.sqrt(s) - c * c),
}


def signed_sampson(model, x1, x2):
    h1, h2 = geometry.homogeneous(x1), geometry.homogeneous(x2)
    return np.sign(np.sum(h2 * (h1 @ model.T), axis=1)) * np.sqrt(geometry.sampson_sq(model, x1, x2))


def central_differences(function, dof, step=1e-6):
    columns = [(function(step * unit) - function(-step * unit)) / (2 * step) for unit in np.eye(dof)]
    return np.stack(columns, axis=1)


def nearby(rng, R, t, size=0.02):
    return kernels.retract_pose(R, t, rng.normal(size=5) * size)


def test_pose_jacobian_matches_central_differences(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 50)
    residual, jacobian = kernels.pose_jacobian(R, t, x1, x2)
    assert np.allclose(residual, signed_sampson(geometry.essential_from_pose(R, t), x1, x2), atol=1e-12)

    def along(delta):
        return signed_sampson(geometry.essential_from_pose(*kernels.retract_pose(R, t, delta)), x1, x2)

    assert np.allclose(jacobian, central_differences(along, 5), rtol=1e-5, atol=1e-7)


def test_fundamental_jacobian_matches_central_differences(rng):
    x1, x2, _, _, _ = contaminated_scene(rng, 50)
    model = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([1, 0.3, 0]) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    residual, jacobian = kernels.fundamental_jacobian(model, x1, x2)
    assert np.allclose(residual, signed_sampson(model, x1, x2), atol=1e-12)

    def along(delta):
        return signed_sampson(kernels.retract_fundamental(model, delta), x1, x2)

    assert np.allclose(jacobian, central_differences(along, 7), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("single_precision", [False, True])
def test_cost_is_as_specified_and_never_rises(rng, loss, weighted, single_precision):
    x1, x2, R, t, _ = contaminated_scene(rng, 301)
    weights = rng.uniform(0, 1, 301) if weighted else np.ones(301)
    starts = [nearby(rng, R, t, size) for size in (0.001, 0.01, 0.1, 1.0)]
    rotations, translations = (np.stack(parts) for parts in zip(*starts, strict=True))
    refined_R, refined_t, costs = kernels.refine_pose(
        rotations,
        translations,
        x1,
        x2,
        weights=weights if weighted else None,
        loss=loss,
        loss_scale=1e-3,
        single_precision=single_precision,
    )
    start = geometry.essential_from_pose(rotations, translations)
    end = geometry.essential_from_pose(refined_R, refined_t)
    for i in range(len(starts)):
        before = np.sum(weights * RHO[loss](geometry.sampson_sq(start[i], x1, x2), 1e-3))
        after = np.sum(weights * RHO[loss](geometry.sampson_sq(end[i], x1, x2), 1e-3))
        assert costs[i] == pytest.approx([before, after], rel=1e-9)
        assert costs[i, 1] <= costs[i, 0]
    assert np.allclose(refined_R @ refined_R.swapaxes(1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(refined_R), 1)
    assert np.allclose(np.linalg.norm(refined_t, axis=1), 1)


@pytest.mark.parametrize("loss", list(Loss))
def test_the_gradient_vanishes_where_refinement_ends(rng, loss):
    x1, x2, R, t, inliers = contaminated_scene(rng, 300)
    if loss in (Loss.SQUARED, Loss.HUBER):  # outliers would move the minimum far away
        x1, x2 = x1[inliers], x2[inliers]
    R, t = nearby(rng, R, t, 0.003)
    R, t, _ = kernels.refine_pose(R[None], t[None], x1, x2, loss=loss, loss_scale=1e-3, max_steps=100)

    def cost(delta):
        model = geometry.essential_from_pose(*kernels.retract_pose(R[0], t[0], delta))
        return np.array([np.sum(RHO[loss](geometry.sampson_sq(model, x1, x2), 1e-3))])

    curvature = [(cost(h) + cost(-h) - 2 * cost(0 * h))[0] / 1e-8 for h in 1e-4 * np.eye(5)]
    newton_step = central_differences(cost, 5, 1e-6)[0] / np.abs(curvature)
    assert np.abs(newton_step).max() < 1e-4


@pytest.mark.parametrize("max_error_px", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("problem", [Essential, Fundamental])
def test_single_precision_steps_reach_the_same_costs(problem, max_error_px):
    pair = make_pair(3000, outlier_ratio=0.5, noise_px=0.5 * max_error_px, seed=1)
    cameras = (pair.camera1, pair.camera2) if problem is Essential else ()
    scene = problem.from_pixels(pair.points1, pair.points2, *cameras, max_error_px)
    samples = kernels.sample_uniform(np.flatnonzero(pair.inliers), scene.sample_size, 100, seed=0)
    models = scene.solve(samples)
    models = models[scene.rank(models, 32, scene.max_error)]
    options = {"loss": Loss.TRUNCATED, "loss_scale": scene.max_error, "max_residual": 2 * scene.max_error}
    costs = []
    for single_precision in (False, True):
        options["single_precision"] = single_precision
        if problem is Essential:
            *_, cost = kernels.refine_pose(*scene.split(models), scene.points1, scene.points2, **options)
        else:
            _, cost = kernels.refine_fundamental(scene.matrices(models), scene.points1, scene.points2, **options)
        costs.append(cost)
    assert np.allclose(costs[1][:, 0], costs[0][:, 0], rtol=1e-12, atol=0)
    assert np.allclose(costs[1][:, 1], costs[0][:, 1], rtol=1e-4, atol=0)


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
def test_noise_free_data_is_fitted_exactly(rng, problem):
    x1, x2, R, t = (array[0] for array in random_problems(rng, 1, 40))
    if problem == "pose":
        start_R, start_t = nearby(rng, R, t, 0.05)
        refined_R, refined_t, _ = kernels.refine_pose(start_R[None], start_t[None], x1, x2, loss_scale=1e-2)
        assert geometry.pose_error_deg(refined_R[0], refined_t[0], R, t) < 1e-7
    else:
        truth = geometry.essential_from_pose(R, t)
        start = kernels.retract_fundamental(truth, rng.normal(size=7) * 0.02)
        refined, _ = kernels.refine_fundamental(start[None], x1, x2, loss_scale=1e-2, max_steps=50)
        assert geometry.sampson_sq(refined[0], x1, x2).max() < 1e-18


@pytest.mark.parametrize("loss", list(Loss))
def test_fundamental_matrices_keep_rank_two_and_improve(rng, loss):
    x1, x2, R, t, _ = contaminated_scene(rng, 300)
    truth = geometry.essential_from_pose(R, t)
    starts = np.stack([kernels.retract_fundamental(truth, rng.normal(size=7) * s) for s in (0.001, 0.01, 0.1)])
    refined, costs = kernels.refine_fundamental(starts, x1, x2, loss=loss, loss_scale=1e-3)
    assert np.all(costs[:, 1] <= costs[:, 0])
    assert np.abs(np.linalg.det(refined)).max() < 1e-14
    assert np.allclose(np.linalg.norm(refined, axis=(1, 2)), 1)
    for model, cost in zip(refined, costs, strict=True):
        assert cost[1] == pytest.approx(np.sum(RHO[loss](geometry.sampson_sq(model, x1, x2), 1e-3)), rel=1e-9)


def test_refinement_recovers_the_pose_despite_outliers(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 500, 0.5)
    start_R, start_t = nearby(rng, R, t, 0.002)
    refined_R, refined_t, _ = kernels.refine_pose(
        start_R[None], start_t[None], x1, x2, loss=Loss.TRUNCATED, loss_scale=2e-3, max_residual=5e-3
    )
    before = geometry.pose_error_deg(start_R, start_t, R, t)
    assert geometry.pose_error_deg(refined_R[0], refined_t[0], R, t) < 0.5 * before


def test_zero_weights_remove_points(rng):
    x1, x2, R, t, inliers = contaminated_scene(rng, 200)
    start_R, start_t = (part[None] for part in nearby(rng, R, t))
    weights = inliers.astype(float)
    with_weights = kernels.refine_pose(start_R, start_t, x1, x2, weights=weights, loss=Loss.SQUARED)
    without_points = kernels.refine_pose(start_R, start_t, x1[inliers], x2[inliers], loss=Loss.SQUARED)
    assert np.array_equal(with_weights[0], without_points[0])


def test_too_few_points_leave_the_model_alone(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 40)
    for n in (0, 4):
        refined_R, refined_t, costs = kernels.refine_pose(R[None], t[None], x1[:n], x2[:n])
        assert np.allclose(refined_R[0], R)
        assert np.allclose(refined_t[0], t)
        assert np.all(costs == 0)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200, "epipoles"])
def test_points_without_a_residual_change_nothing(rng, loss, bad):
    x1, x2, R, _, _ = contaminated_scene(rng, 60, outlier_ratio=0)
    t = np.array([0, 0, 1.0])
    with_bad1, with_bad2 = (np.concatenate([x, [[0.0, 0.0]]]) for x in (x1, x2))
    if bad == "epipoles":  # of the model it starts from: there the distance is 0 / 0
        with_bad1[-1] = (R.T @ t)[:2] / (R.T @ t)[2]
    else:
        with_bad1[-1, 0] = bad
    alone = kernels.refine_pose(R[None], t[None], x1, x2, loss=loss, loss_scale=1e-2, max_steps=1)
    together = kernels.refine_pose(R[None], t[None], with_bad1, with_bad2, loss=loss, loss_scale=1e-2, max_steps=1)
    assert np.isfinite(together[2]).all()
    assert together[2][0, 0] == pytest.approx(alone[2][0, 0])
    if bad != "epipoles":
        assert np.allclose(together[0], alone[0], atol=1e-12)


def test_impossible_arguments_are_refused(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 20)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weights"):
            kernels.refine_pose(R[None], t[None], x1, x2, weights=np.r_[bad, np.ones(19)])
    with pytest.raises(ValueError, match="weights"):
        kernels.refine_pose(R[None], t[None], x1, x2, weights=np.ones(19))
    with pytest.raises(ValueError, match="loss_scale"):
        kernels.refine_pose(R[None], t[None], x1, x2, loss_scale=0.0)
    with pytest.raises(ValueError, match="max_steps"):
        kernels.refine_pose(R[None], t[None], x1, x2, max_steps=-1)
    with pytest.raises(ValueError, match="rotations and translations"):
        kernels.refine_pose(R[None], np.stack([t, t]), x1, x2)
