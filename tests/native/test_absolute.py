"""Absolute poses: three-point solver, reprojection errors and refinement, compared with truth and other libraries."""

import os

import numpy as np
import pytest

from caransac.geometry import (
    absolute_pose_error_deg,
    join_pose,
    reprojection_errors_sq,
    rotation_from_vector,
    split_pose,
)
from caransac.kernels import (
    ABSOLUTE_FOCAL_POSES,
    ABSOLUTE_POSES,
    POSES,
    IntrinsicsPrior,
    Loss,
    RefineOptions,
    neighbour_features,
    pack,
    pack_space,
    three_point,
)

pytestmark = pytest.mark.kernels

KINDS = pytest.mark.parametrize("kind", [ABSOLUTE_POSES, ABSOLUTE_FOCAL_POSES], ids=["pose", "focal"])
FREE = IntrinsicsPrior()


def random_rotations(rng, count):
    R = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return R * np.linalg.det(R)[:, None, None]


def random_samples(rng, count):
    """Create rays (count, 3, 2), points (count, 3, 3) and the poses (count, 3, 4) of cameras that see them."""
    R, t = random_rotations(rng, count), rng.normal(size=(count, 3))
    rays = rng.uniform(-0.8, 0.8, (count, 3, 2))
    seen = np.concatenate([rays, np.ones((count, 3, 1))], axis=2) * np.exp(rng.uniform(-1, 1.5, (count, 3, 1)))
    return rays, np.einsum("sji,skj->ski", R, seen - t[:, None]), np.concatenate([R, t[..., None]], axis=2)


def solve(rays, points):
    samples = np.arange(3 * len(rays), dtype=np.int32).reshape(-1, 3)
    return three_point(pack_space(rays.reshape(-1, 2), points.reshape(-1, 3)), samples)


def nearest(poses, origin, truth):
    """Return the distance of each true pose to the nearest solution of its sample."""
    best = np.full(len(truth), np.inf)
    solved, first = np.unique(origin, return_index=True)  # `origin` is sorted
    best[solved] = np.minimum.reduceat(np.abs(poses - truth[origin]).max(axis=(1, 2)), first)
    return best


def scene(rng, kind, num_points=40, noise=0.0):
    """Create points seen by a camera. Return correspondences, the model, rays and points."""
    R, t = rotation_from_vector(rng.normal(size=3)), np.array([0.2, -0.3, 5.0])
    points = rng.normal(size=(num_points, 3))
    seen = points @ R.T + t
    rays = seen[:, :2] / seen[:, 2:]
    model = join_pose(R, t)
    if kind is ABSOLUTE_FOCAL_POSES:
        log_scale, x, y, k1 = 0.05, 0.01, -0.02, -0.03
        rays = np.exp(log_scale) * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True)) * rays + (x, y)
        model = np.concatenate([model, [[log_scale, k1], [x, 0], [y, 0]]], axis=1)
    rays = rays + noise * rng.normal(size=rays.shape)
    return pack_space(rays, points), model, rays, points


def test_three_points_give_the_true_pose(rng):
    rays, points, truth = random_samples(rng, 100_000)
    poses, origin = solve(rays, points)
    error = nearest(poses, origin, truth)
    assert np.median(error) < 1e-13
    assert np.mean(error > 1e-6) < 1e-4
    R = poses[:, :, :3]
    assert np.abs(R @ R.swapaxes(1, 2) - np.eye(3)).max() < 1e-7
    assert np.linalg.det(R).min() > 0
    seen = np.einsum("mij,mkj->mki", R, points[origin]) + poses[:, None, :, 3]
    assert seen[..., 2].min() > 0
    assert np.abs(seen[..., :2] / seen[..., 2:] - rays[origin]).max() < 1e-6
    assert np.bincount(origin).max() <= 4


@pytest.mark.slow
def test_a_million_samples_give_the_true_pose(rng):
    rays, points, truth = random_samples(rng, 1_000_000)
    assert np.mean(nearest(*solve(rays, points), truth) > 1e-6) < 1e-5


@pytest.mark.slow
def test_three_points_agree_with_poselib_and_opencv(rng):
    """The test compares 20,000 samples, or the number in CARANSAC_SAMPLES; a million take two minutes."""
    poselib, cv2 = pytest.importorskip("poselib"), pytest.importorskip("cv2")
    count = int(os.environ.get("CARANSAC_SAMPLES", "20000"))
    rays, points, _ = random_samples(rng, count)
    poses, origin = solve(rays, points)
    starts = np.searchsorted(origin, np.arange(count + 1))
    units = np.concatenate([rays, np.ones((count, 3, 1))], axis=2)
    units /= np.linalg.norm(units, axis=2, keepdims=True)
    found, missed = {"poselib": 0, "opencv": 0}, {"poselib": 0, "opencv": 0}
    for k in range(count):
        ours = poses[starts[k] : starts[k + 1]]
        theirs = {"poselib": [each.Rt for each in poselib.p3p(list(units[k]), list(points[k]))], "opencv": []}
        if k % 10 == 0:  # OpenCV is slow and also returns poses with points behind the camera
            _, *vectors = cv2.solveP3P(points[k], rays[k], np.eye(3), None, flags=cv2.SOLVEPNP_P3P)
            each_pose = (join_pose(cv2.Rodrigues(w)[0], t.ravel()) for w, t in zip(*vectors, strict=True))
            theirs["opencv"] = [
                pose
                for pose in each_pose
                if reprojection_errors_sq(*split_pose(pose), rays[k], points[k]).max() < 1e-16
            ]
        for name, each in theirs.items():
            found[name] += len(each)
            missed[name] += sum(np.abs(ours - pose).max(axis=(1, 2)).min(initial=np.inf) > 1e-4 for pose in each)
    assert found["poselib"] > 1.5 * count and found["opencv"] > 0.1 * count
    assert len(poses) >= 0.9999 * found["poselib"]
    assert missed["poselib"] <= 1e-4 * found["poselib"] and missed["opencv"] <= 1e-4 * found["opencv"]


def test_noise_does_not_cost_solutions(rng):
    rays, points, truth = random_samples(rng, 20_000)
    poses, origin = solve(rays + 1e-4 * rng.normal(size=rays.shape), points)
    error = nearest(poses, origin, truth)
    assert np.median(error) < 5e-3
    assert np.isfinite(poses).all()


@pytest.mark.parametrize("degenerate", ["repeated", "collinear", "same ray", "huge", "tiny"])
def test_degenerate_samples_give_finite_poses_or_none(rng, degenerate):
    rays, points, truth = random_samples(rng, 100)
    if degenerate == "repeated":
        points[:, 1] = points[:, 0]
    elif degenerate == "collinear":
        points[:, 2] = 2 * points[:, 1] - points[:, 0]
    elif degenerate == "same ray":
        rays[:, 1] = rays[:, 0]
    elif degenerate == "huge":
        points *= 1e30
    else:
        points *= 1e-30
    poses, origin = solve(rays, points)
    assert np.isfinite(poses).all()
    if degenerate in ("huge", "tiny"):  # only the unit changes
        truth[:, :, 3] *= 1e30 if degenerate == "huge" else 1e-30
        rotations = nearest(poses[..., :3], origin, truth[..., :3])
        assert np.mean(rotations < 1e-6) > 0.99
    else:
        assert len(poses) == 0


@KINDS
def test_errors_and_scores_match_the_formula(rng, kind):
    correspondences, model, rays, points = scene(rng, ABSOLUTE_POSES, noise=0.01)
    padded = np.zeros((3, kind.columns))
    padded[:, :4] = model
    padded[2, 3] = -0.5  # some points behind the camera
    expected = reprojection_errors_sq(*split_pose(padded[:, :4]), rays, points)
    assert np.isinf(expected).any() and np.isfinite(expected).any()
    np.testing.assert_allclose(kind.residuals_sq(padded[None], correspondences)[0], expected, rtol=1e-9)
    for max_error in (0.01, 0.3):
        scores = kind.msac_scores(padded[None], correspondences, max_error)[0]
        np.testing.assert_allclose(scores, np.maximum(1 - expected / max_error**2, 0), atol=1e-6)


@KINDS
def test_the_jacobian_matches_finite_differences(rng, kind):
    correspondences, model, *_ = scene(rng, kind, noise=0.02)
    residuals, jacobian = kind.jacobian(model, correspondences)
    assert residuals.shape == (40, 2) and jacobian.shape == (40, 2, kind.degrees_of_freedom)
    np.testing.assert_allclose((residuals**2).sum(axis=1), kind.residuals_sq(model[None], correspondences)[0])
    step = 1e-6
    for k, unit in enumerate(np.eye(kind.degrees_of_freedom)):
        ahead, behind = (kind.jacobian(kind.retract(model, s * step * unit), correspondences)[0] for s in (1, -1))
        np.testing.assert_allclose(jacobian[:, :, k], (ahead - behind) / (2 * step), atol=1e-7)


@KINDS
def test_the_information_matches_the_jacobian(rng, kind):
    correspondences, model, *_ = scene(rng, kind, noise=0.02)
    weights = rng.uniform(0, 1, 40)
    _, jacobian = kind.jacobian(model, correspondences)
    expected = np.einsum("n,ndf,ndg->fg", weights, jacobian, jacobian)
    np.testing.assert_allclose(kind.information(model, correspondences, weights), expected, rtol=1e-9, atol=1e-9)


@KINDS
@pytest.mark.parametrize("loss", [Loss.CAUCHY, Loss.TRUNCATED])
def test_refinement_finds_the_truth(rng, kind, loss):
    correspondences, model, *_ = scene(rng, kind)
    start = kind.retract(model, 0.02 * rng.normal(size=kind.degrees_of_freedom))
    options = RefineOptions(loss=loss, loss_scale=1.0, intrinsics=FREE)
    refined, costs = kind.refine(start[None], correspondences, options)
    np.testing.assert_allclose(refined[0], model, atol=1e-6)
    assert costs[0, 1] < 1e-12 < costs[0, 0]


@KINDS
def test_single_precision_finds_the_same(rng, kind):
    correspondences, model, *_ = scene(rng, kind, 700, noise=0.002)
    start = kind.retract(model, 0.02 * rng.normal(size=kind.degrees_of_freedom))
    found = [
        kind.refine(
            start[None], correspondences, RefineOptions(loss_scale=0.01, intrinsics=FREE, single_precision=single)
        )
        for single in (False, True)
    ]
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-4)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-4)


def test_refinement_ignores_outliers_and_never_raises_the_cost(rng):
    correspondences, model, rays, points = scene(rng, ABSOLUTE_POSES, 200, noise=0.001)
    rays[:60] += rng.normal(size=(60, 2))
    correspondences = pack_space(rays, points)
    starts = np.stack([ABSOLUTE_POSES.retract(model, 0.03 * rng.normal(size=6)) for _ in range(20)])
    refined, costs = ABSOLUTE_POSES.refine(starts, correspondences, RefineOptions(loss_scale=0.003))
    assert np.all(costs[:, 1] <= costs[:, 0])
    errors = [absolute_pose_error_deg(*split_pose(pose), *split_pose(model), points) for pose in refined]
    assert np.median(errors) < 0.1


def test_exact_parameters_do_not_change(rng):
    correspondences, model, *_ = scene(rng, ABSOLUTE_FOCAL_POSES, noise=0.01)
    held = IntrinsicsPrior(log_scale=(np.inf, 0.0), centre=(np.inf, 0.0), k1=(np.inf, 0.0))
    start = model.copy()
    start[:, 4:] = [[0.1, 0.02], [0.03, 0], [0.01, 0]]
    refined, _ = ABSOLUTE_FOCAL_POSES.refine(start[None], correspondences, RefineOptions(intrinsics=held))
    np.testing.assert_array_equal(refined[0, :, 4:], start[:, 4:])
    assert np.abs(refined[0, :, :4] - start[:, :4]).max() > 1e-4


def test_a_prior_pulls_the_focal_length_towards_it(rng):
    correspondences, model, *_ = scene(rng, ABSOLUTE_FOCAL_POSES, noise=0.001)
    found = []
    for precision in (0.0, 1.0, 1e3):
        prior = IntrinsicsPrior(log_scale=(precision, 0.0), centre=(np.inf, 0.0), k1=(np.inf, 0.0))
        refined, _ = ABSOLUTE_FOCAL_POSES.refine(model[None], correspondences, RefineOptions(intrinsics=prior))
        found.append(abs(refined[0, 0, 4]))
    assert found[0] > found[1] > found[2]
    assert found[2] < 1e-3


def test_a_prior_pulls_k1_towards_the_given_value(rng):
    correspondences, model, *_ = scene(rng, ABSOLUTE_FOCAL_POSES, noise=0.001)  # the true k1 is -0.03
    found = []
    for precision in (0.0, 0.1, 100.0, np.inf):
        prior = IntrinsicsPrior(log_scale=(np.inf, 0.0), centre=(np.inf, 0.0)).with_lenses((precision, 0.0), 0.0, 0.1)
        refined, _ = ABSOLUTE_FOCAL_POSES.refine(model[None], correspondences, RefineOptions(intrinsics=prior))
        found.append(refined[0, 0, 5])
    assert found[0] < found[1] < found[2] and found[0] == pytest.approx(-0.03, abs=0.02)
    assert found[2] == pytest.approx(0.1, abs=2e-3)
    assert found[3] == model[0, 5], "exact parameters do not change"


def test_the_largest_consensus_is_the_same_as_by_scoring_all(rng):
    correspondences, model, *_ = scene(rng, ABSOLUTE_POSES, 300, noise=0.002)
    models = np.stack([ABSOLUTE_POSES.retract(model, 0.02 * rng.normal(size=6)) for _ in range(100)])
    totals = ABSOLUTE_POSES.msac_scores(models, correspondences, 0.02).sum(axis=1)
    top = ABSOLUTE_POSES.top(models, correspondences, 0.02, 5)
    np.testing.assert_allclose(totals[top], np.sort(totals)[::-1][:5], rtol=1e-5)


def test_deviations_agree_with_repeated_experiments(rng):
    correspondences, model, rays, points = scene(rng, ABSOLUTE_POSES, 60)
    noise, rates = 0.002, np.eye(6)[:, 3:]
    expected, without = ABSOLUTE_POSES.outcome_deviations(
        model, correspondences, np.ones(60), rates, noise**2, np.zeros((6, 6)), 3
    )
    options = RefineOptions(loss_scale=1.0)
    moved = np.stack(
        [
            ABSOLUTE_POSES.refine(model[None], pack_space(rays + noise * rng.normal(size=rays.shape), points), options)[
                0
            ][0, :, 3]
            for _ in range(400)
        ]
    )
    assert without > expected
    assert np.sqrt(np.linalg.eigvalsh(np.cov(moved.T)).max()) == pytest.approx(expected, rel=0.15)


def test_images_and_space_are_not_confused(rng):
    in_space, model, rays, points = scene(rng, ABSOLUTE_POSES)
    two_views = pack(rays, points[:, :2])
    assert in_space.points2.shape == (40, 3) and two_views.points2.shape == (40, 2)
    np.testing.assert_array_equal(in_space.subset(np.array([3, 1], np.int32)).points2, points[[3, 1]])
    with pytest.raises(ValueError, match="points in space"):
        ABSOLUTE_POSES.residuals_sq(model[None], two_views)
    with pytest.raises(ValueError, match="points in space"):
        three_point(two_views, np.array([[0, 1, 2]], np.int32))
    with pytest.raises(ValueError, match="two images"):
        POSES.residuals_sq(model[None], in_space)
    with pytest.raises(ValueError, match="points3d must be finite"):
        pack_space(rays, points * np.nan)
    with pytest.raises(ValueError, match="same length"):
        pack_space(rays[:3], points)


def test_neighbours_in_space_count_with_their_depth(rng):
    points2d = rng.uniform(-1, 1, (200, 2))
    flat = np.c_[points2d, np.zeros(200)]
    deep = flat + (0, 0, 1) * rng.normal(size=(200, 1))
    near, far = (neighbour_features(pack_space(points2d, points)) for points in (flat, deep))
    assert np.median(far[:, 0]) > np.median(near[:, 0]) + 0.5  # distance of the nearest neighbour in space
    np.testing.assert_allclose(near[:, :4], neighbour_features(pack(points2d, points2d))[:, :4], rtol=1e-5)
