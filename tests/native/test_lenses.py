"""Lens distortion: rays through lenses, and poses refined together with lenses."""

from math import inf

import numpy as np
import pytest
from scenes import random_problems

from caransac import Camera
from caransac.geometry import join_pose, pose_error_deg
from caransac.kernels import (
    IntrinsicsPrior,
    RefineOptions,
    change_lenses,
    lens_information,
    pack,
    refine_lens_pose,
)

EXACT = IntrinsicsPrior(log_scale=(inf, inf), centre=(inf, inf))


def bend(rays, k1):
    return rays * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True))


def with_intrinsics(R, t):
    return np.concatenate([join_pose(R, t), np.zeros((3, 2))], axis=1)


@pytest.mark.parametrize("k1", [-0.3, -0.05, 0.0, 0.2])
def test_rays_match_the_camera(rng, k1):
    camera = Camera("SIMPLE_RADIAL", (500, 320, 240, k1))
    pixels = rng.uniform((100, 50), (540, 430), (200, 2))
    seen = change_lenses(pack((pixels - (320, 240)) / 500, np.zeros((200, 2))), (0.0, 0.0), (k1, 0.3))
    np.testing.assert_allclose(seen.points1, camera.pixels_to_rays(pixels), atol=1e-12)
    np.testing.assert_array_equal(seen.points2, np.zeros((200, 2)))


def test_every_point_has_a_ray_and_comes_back(rng):
    points = rng.normal(0, 3, (500, 2))  # many points are far outside the invertible range of these lenses
    seen = change_lenses(pack(points, points), (0.0, 0.0), (-0.4, 0.7))
    assert np.isfinite(seen.points1).all()
    order = np.argsort(np.linalg.norm(points, axis=1))
    assert np.all(np.diff(np.linalg.norm(seen.points1, axis=1)[order]) > 0), "the order of the radii is kept"
    back = change_lenses(seen, (-0.4, 0.7), (0.0, 0.0))
    np.testing.assert_allclose(back.points1, points, atol=1e-9)
    np.testing.assert_allclose(back.points2, points, atol=1e-9)


@pytest.mark.parametrize(("first", "second"), [(-0.1, -0.1), (0.15, -0.2)])
def test_poses_and_lenses_are_found_together(rng, first, second):
    x1, x2, R, t = (each[0] for each in random_problems(rng, 1, 300))
    rays = pack(bend(x1, first), bend(x2, second))
    options = RefineOptions(
        loss_scale=1e-2, max_steps=100, min_decrease=0.0, intrinsics=EXACT.with_lenses((1e-12, 1e-12), 0.0)
    )
    start = with_intrinsics(R, t)
    model, k1, costs = refine_lens_pose(start, (0.0, 0.0), rays, np.ones(300), (0.0, 0.0), options)
    assert k1 == pytest.approx((first, second), abs=1e-5)
    assert pose_error_deg(model[:, :3], model[:, 3], R, t) < 1e-3
    assert costs[1] < 1e-9 * costs[0]
    held, k1, costs = refine_lens_pose(
        start, (0.0, 0.0), rays, np.ones(300), (0.0, 0.0),
        RefineOptions(loss_scale=1e-2, intrinsics=EXACT.with_lenses((inf, inf), 0.0)),
    )  # fmt: skip
    assert k1 == (0.0, 0.0)
    assert costs[0] >= costs[1] > 0
    np.testing.assert_array_equal(held[:, 4:], 0.0)


def test_k1_is_unbiased_and_its_scatter_matches_the_information(rng):
    """Residuals are distances in the image. Distances between rays would be too small for some lenses."""
    x1, x2, R, t = (each[0] for each in random_problems(rng, 1, 400))
    truth, noise = -0.1, 2e-3
    found, deviations = [], []
    together = np.zeros((13, 6))
    together[range(5), range(5)] = together[[11, 12], 5] = 1
    options = RefineOptions(loss_scale=100 * noise, max_steps=50, intrinsics=EXACT.with_lenses((1e-9, 1e-9), 1e3))
    for _ in range(60):
        rays = pack(*(bend(x, truth) + rng.normal(0, noise, x.shape) for x in (x1, x2)))
        model, k1, _ = refine_lens_pose(with_intrinsics(R, t), (0.0, 0.0), rays, np.ones(400), (0.0, 0.0), options)
        seen = change_lenses(rays, (0.0, 0.0), k1)
        information = together.T @ lens_information(model, k1, seen, np.ones(400)) @ together / noise**2
        found.append(k1[0])
        deviations.append(np.linalg.inv(information)[5, 5] ** 0.5)
    assert abs(np.mean(found) - truth) < 3.5 * np.mean(deviations) / 60**0.5
    assert np.std(found) == pytest.approx(np.mean(deviations), rel=0.35)


def test_hostile_input(rng):
    rays = pack(rng.normal(0, 1, (20, 2)), rng.normal(0, 1, (20, 2)))
    model, options = with_intrinsics(np.eye(3), np.array([1.0, 0, 0])), RefineOptions(intrinsics=EXACT)
    with pytest.raises(ValueError, match="k1 must be finite"):
        change_lenses(rays, (0.0, np.nan), (0.0, 0.0))
    with pytest.raises(ValueError, match="weights must be finite"):
        refine_lens_pose(model, (0.0, 0.0), rays, np.full(20, -1.0), (0.0, 0.0), options)
    with pytest.raises(ValueError, match="one entry for every ray"):
        lens_information(model, (0.0, 0.0), rays, np.ones(3))
    with pytest.raises(ValueError, match="k1 must not be negative"):
        EXACT.with_lenses((-1.0, 0.0), 0.0)
    few = refine_lens_pose(model, (0.1, 0.1), rays, np.eye(20)[0], (0.0, 0.0), options)
    assert few[1] == (0.1, 0.1), "too few matches change nothing"


@pytest.mark.parametrize("count", [1, 15, 16, 53])
def test_the_information_of_k1_refers_to_distances_in_the_image(rng, count):
    """Compared with finite differences: points in the centre, outside the invertible range, and with weights."""
    x1, x2, R, t = (each[0] for each in random_problems(rng, 1, count))
    x1[0] = 0.0
    x2[0] = (R @ (0, 0, 3.0) + t)[:2] / (R @ (0, 0, 3.0) + t)[2]
    if count > 50:  # points on the epipolar plane of a ray far from the axis
        x1[1] = 3.0, 0.5
        x2[1] = (R @ (3.0, 0.5, 1.0) + 0.2 * t)[:2] / (R @ (3.0, 0.5, 1.0) + 0.2 * t)[2]
    truth, weights, essential = (-0.15, 0.1), rng.uniform(0.5, 2, count), np.cross(np.eye(3), t) @ R
    rays = pack(x1, x2)
    seen = change_lenses(rays, truth, (0.0, 0.0))
    points = np.concatenate([seen.points1, seen.points2], axis=1)

    def constraint(points, k1):
        through = change_lenses(pack(points[:, :2], points[:, 2:]), (0.0, 0.0), k1)
        first, second = (np.column_stack([x, np.ones(count)]) for x in (through.points1, through.points2))
        return np.sum(second @ essential * first, axis=1)

    def slope(move, h=1e-5):
        return (move(h) - move(-h)) / (2 * h)

    gradient = np.column_stack([slope(lambda h, axis=axis: constraint(points + h * axis, truth)) for axis in np.eye(4)])
    by_k1 = np.column_stack([slope(lambda h, axis=axis: constraint(points, truth + h * axis)) for axis in np.eye(2)])
    jacobian = by_k1 / np.linalg.norm(gradient, axis=1)[:, None]
    found = lens_information(with_intrinsics(R, t), truth, rays, weights)
    np.testing.assert_allclose(found[11:, 11:], jacobian.T @ (weights[:, None] * jacobian), rtol=1e-5, atol=1e-9)
