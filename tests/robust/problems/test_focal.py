"""Poses of cameras with uncertain or unknown focal lengths."""

import numpy as np
import pytest

from caransac import Camera, Options, estimate_fundamental, estimate_relative_pose
from caransac.geometry import essential_from_pose, fundamental_from_essential, join_pose, pose_error_deg, sampson_sq
from caransac.kernels import FOCAL_POSES, IntrinsicsPrior, RefineOptions, pack
from caransac.robust.problems import Essential, FocalPose

SIZE = (1024, 768)


def scene(seed, focal1=900.0, focal2=900.0, outlier_ratio=0.3, noise_px=0.3):
    """Create a pair of cameras with given focal lengths that look at a common point from different viewpoints."""
    cameras = [Camera("PINHOLE", (f, f, (SIZE[0] - 1) / 2, (SIZE[1] - 1) / 2), *SIZE) for f in (focal1, focal2)]
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(-2, 2, (800, 2)), rng.uniform(4, 9, 800)]
    angle = np.radians(20 + 10 * rng.random())
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    t = -R @ np.array([0, 0, 6.0]) + [0.3, 0.2, 6.5]
    Y = X @ R.T + t
    points = [camera.rays_to_pixels(P[:, :2] / P[:, 2:]) for camera, P in zip(cameras, (X, Y), strict=True)]
    wrong = rng.random(800) < outlier_ratio
    points[1][wrong] = rng.uniform(0, SIZE, (int(wrong.sum()), 2))
    points = [p + rng.normal(0, noise_px, p.shape) for p in points]
    return points, cameras, R, t / np.linalg.norm(t)


def off(camera, factor, deviation):
    K = camera.K.copy()
    K[[0, 1], [0, 1]] *= factor
    return Camera.from_matrix(K, width=camera.width, height=camera.height, focal_deviation=deviation)


@pytest.mark.parametrize(
    ("shared", "steps"),
    [(True, (-1.5, -1.5)), (True, (0, 0)), (True, (1.5, 1.5)), (False, (-0.8, 0.8)), (False, (0.8, 0.8))],
)
def test_samples_are_solved_at_focal_lengths_that_the_prior_allows(shared, steps):
    """The true focal lengths are `steps` deviations off. Some exact sample must still give the true pose."""
    points, cameras, R, t = scene(0, outlier_ratio=0.0, noise_px=0.0)
    given = [off(camera, np.exp(-0.2 * step), 0.2) for camera, step in zip(cameras, steps, strict=True)]
    problem = FocalPose.from_pixels(*points, *given, shared=shared)
    models = problem.solve(np.random.default_rng(0).permutation(800)[:60].reshape(12, 5).astype(np.int32))
    errors = [pose_error_deg(model[:, :3], model[:, 3], R, t) for model in models]
    best = models[int(np.argmin(errors))]
    assert min(errors) < 1e-4
    assert best[0, 4:] == pytest.approx(0.2 * np.array(steps))


@pytest.mark.parametrize("factor", [0.95, 1.05])
@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
def test_a_stated_deviation_finds_pose_and_focal_length(factor, method):
    options = Options(method=method)
    given, uncertain, focal = [], [], []
    for seed in range(4):
        points, cameras, R, t = scene(seed)
        wrong = [off(camera, factor, 0.0) for camera in cameras]
        stated = [off(camera, factor, 0.05) for camera in cameras]
        result = estimate_relative_pose(*points, *wrong, options=options)
        given.append(pose_error_deg(result.R, result.t, R, t))
        assert result.camera1 == wrong[0], "an exact camera is returned unchanged"
        result = estimate_relative_pose(*points, *stated, options=options)
        uncertain.append(pose_error_deg(result.R, result.t, R, t))
        focal.append(abs(result.camera1.fx / 900 - 1))
        assert 0 < result.camera1.focal_deviation < 0.05
    assert np.mean(uncertain) < 0.6 * np.mean(given)
    assert np.mean(focal) < 0.025


def test_an_unknown_camera_needs_only_the_size():
    errors = []
    for seed in range(4):
        points, _, R, t = scene(seed, 750.0, 750.0)
        result = estimate_relative_pose(*points, image_size1=SIZE, image_size2=SIZE, same_camera=True)
        errors.append(pose_error_deg(result.R, result.t, R, t))
        assert abs(result.camera1.fx / 750 - 1) < 0.1
        assert abs(result.camera1.fx / result.camera2.fx - 1) < 0.01
        assert (result.camera1.width, result.camera1.height) == SIZE
    assert np.median(errors) < 3


def test_one_camera_may_be_known_and_the_other_not():
    points, cameras, R, t = scene(1, 900.0, 700.0)
    result = estimate_relative_pose(*points, cameras[0], None, image_size2=SIZE)
    assert result.camera1 == cameras[0]
    assert abs(result.camera2.fx / 700 - 1) < 0.1
    assert pose_error_deg(result.R, result.t, R, t) < 3


def test_fundamental_matrices_of_ordinary_cameras():
    points, cameras, R, t = scene(2)
    result = estimate_fundamental(*points, image_size1=SIZE, image_size2=SIZE)
    truth = fundamental_from_essential(essential_from_pose(R, t), cameras[0].K, cameras[1].K)
    near = np.sqrt(sampson_sq(truth, *points)) < 1
    assert np.median(np.sqrt(sampson_sq(result.F, *points))[near]) < 0.5
    assert np.linalg.norm(result.F) == pytest.approx(1)
    assert abs(np.linalg.det(result.F)) < 1e-12
    assert result.camera1.fx == pytest.approx(900, rel=0.15)
    assert estimate_fundamental(*points).camera1 is None


def test_zoomed_pairs_get_two_focal_lengths():
    """The focal lengths differ by a factor of 1.5, so a common focal length would be wrong for one image."""
    for seed in range(3):
        points, *_ = scene(seed, 700.0, 1050.0, outlier_ratio=0.1)
        shared = estimate_fundamental(*points, image_size1=SIZE, image_size2=SIZE, same_camera=True)
        decided = estimate_fundamental(*points, image_size1=SIZE, image_size2=SIZE)
        assert decided.num_inliers >= shared.num_inliers
        assert decided.camera2.fx / decided.camera1.fx == pytest.approx(1.5, rel=0.25)


def test_zero_deviation_means_an_exact_camera():
    points, cameras, _, _ = scene(3)
    matrices = [camera.K for camera in cameras]
    plain = estimate_relative_pose(*points, *matrices)
    stated = estimate_relative_pose(*points, *(Camera.from_matrix(K, focal_deviation=0.0) for K in matrices))
    assert np.array_equal(plain.R, stated.R)
    assert np.array_equal(plain.t, stated.t)


def test_swapping_the_images_swaps_the_cameras():
    points, cameras, _, _ = scene(0, 800.0, 1000.0)
    stated = [off(camera, 1.03, 0.05) for camera in cameras]
    one = estimate_relative_pose(*points, *stated)
    other = estimate_relative_pose(*points[::-1], *stated[::-1])
    assert pose_error_deg(other.R.T, -other.R.T @ other.t, one.R, one.t) < 0.5
    assert other.camera1.fx == pytest.approx(one.camera2.fx, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "camera1 is None: give image_size1"),
        ({"image_size1": SIZE}, "camera2 is None: give image_size2"),
        ({"image_size1": (0, 5), "image_size2": SIZE}, "image_size1 must be"),
        ({"image_size1": (5, 5, 3), "image_size2": SIZE}, "image_size1 must be"),
        ({"image_size1": "large", "image_size2": SIZE}, "image_size1"),
        ({"image_size1": SIZE, "image_size2": SIZE, "same_camera": "yes"}, "same_camera must be True, False or None"),
    ],
)
def test_mistakes_name_the_argument(arguments, message):
    points, *_ = scene(0)
    with pytest.raises(ValueError, match=message):
        estimate_relative_pose(*points, **arguments)


def test_sizes_come_together():
    points, *_ = scene(0)
    with pytest.raises(ValueError, match="image_size1 and image_size2"):
        estimate_fundamental(*points, image_size1=SIZE)


def test_hopeless_data_is_a_failure():
    few = np.zeros((3, 2))
    result = estimate_relative_pose(few, few, image_size1=SIZE, image_size2=SIZE)
    assert (result.success, result.stop_reason, result.camera1) == (False, "too_few_points", None)
    same = np.ones((50, 2))
    assert estimate_fundamental(same, same, image_size1=SIZE, image_size2=SIZE).stop_reason == "degenerate"


def test_jacobians_are_the_slopes_of_the_residuals(rng):
    points = pack(*rng.normal(size=(2, 40, 2)) * 0.3)
    pose = join_pose(np.linalg.qr(rng.normal(size=(3, 3)))[0], [0.6, 0.0, 0.8])
    model = np.concatenate([pose, rng.normal(size=(3, 2)) * 0.05], axis=1)
    _, jacobian = FOCAL_POSES.jacobian(model, points)
    for axis, slope in zip(np.eye(11), jacobian.T, strict=True):
        ahead, behind = (FOCAL_POSES.jacobian(FOCAL_POSES.retract(model, s * 1e-6 * axis), points)[0] for s in (1, -1))
        assert np.allclose((ahead - behind) / 2e-6, slope, atol=1e-6)


def test_a_finite_prior_pulls_and_an_infinite_one_fixes():
    points, cameras, R, t = scene(0, outlier_ratio=0.0)
    problem = Essential.from_pixels(*points, *(off(camera, 1.1, 0.0) for camera in cameras))
    start = np.concatenate([join_pose(R, t), np.zeros((3, 2))], axis=1)[None]
    found = {}
    for name, precision in {"free": 0.0, "soft": 1e-3, "fixed": np.inf}.items():
        prior = IntrinsicsPrior(log_scale=(precision,) * 2, centre=(np.inf,) * 2)
        options = RefineOptions(loss_scale=1e-3, intrinsics=prior, max_steps=100)
        found[name] = FOCAL_POSES.refine(start, problem.correspondences, options)[0][0, 0, 4]
    assert found["free"] == pytest.approx(-np.log(1.1), abs=0.03)
    assert found["fixed"] == 0
    assert found["free"] < found["soft"] < 0
    with pytest.raises(ValueError, match="negative"):
        IntrinsicsPrior(log_scale=(-1.0, 0.0))


def test_deviations_are_honest():
    """The focal length is within two of its deviations of the truth for most pairs."""
    errors = []
    for seed in range(12):
        points, cameras, _, _ = scene(seed, outlier_ratio=0.2, noise_px=0.5)
        stated = [off(camera, float(np.exp(np.random.default_rng(seed).normal(0, 0.05))), 0.05) for camera in cameras]
        stated[1] = stated[0]
        result = estimate_relative_pose(*points, *stated, same_camera=True)
        errors.append(np.log(result.camera1.fx / 900) / result.camera1.focal_deviation)
    assert np.mean(np.abs(errors) < 2) > 0.8


def test_models_are_poses_to_users():
    points, cameras, _, _ = scene(0)
    stated = [off(camera, 1.02, 0.05) for camera in cameras]
    result = estimate_relative_pose(*points, *stated, options=Options(keep_trace=True))
    assert result.trace[-1].models.shape[1:] == (3, 4)
    problem = FocalPose.from_pixels(*points, *stated, shared=True)
    pose = join_pose(result.R, result.t)
    assert np.array_equal(problem.public(problem.from_public(pose)[None])[0], pose)


@pytest.mark.parametrize("shared", [True, False])
def test_samples_of_a_part_are_solved_on_its_own_points(shared):
    points, cameras, *_ = scene(0)
    lenses = [off(camera, 1.1, 0.15) for camera in cameras]
    problem = FocalPose.from_pixels(*points, *lenses, shared)
    index = np.arange(100, 50, -1, dtype=np.int32)
    samples = np.arange(50, dtype=np.int32).reshape(10, 5)
    assert len(problem.solve(samples)) > 0
    assert np.array_equal(problem.subset(index).solve(samples), problem.solve(index[samples]))
