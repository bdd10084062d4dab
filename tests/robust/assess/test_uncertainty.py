"""The covariance of poses, compared with simulations."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from caransac import (
    Camera,
    Options,
    estimate,
    estimate_absolute_pose,
    estimate_fundamental,
    estimate_homography,
    estimate_relative_pose,
)
from caransac.api.result_fields import as_covariance
from caransac.geometry import (
    direction_basis,
    essential_from_pose,
    fundamental_from_essential,
    homogeneous,
    join_pose,
    pose_error_deg,
    rotation_angle_deg,
    rotation_from_vector,
    split_pose,
    vector_from_rotation,
)
from caransac.kernels import RefineOptions
from caransac.robust.assess.uncertainty import lens_response
from caransac.robust.problems import Essential, FocalPose, Fundamental
from caransac.synthetic import make_pair, make_query
from caransac_lab.synthetic.hard_scenes import CAMERA

CHI_SQ_95 = {2: 5.991, 3: 7.815, 5: 11.07, 6: 12.59}  # 95 % quantiles by degrees of freedom
NAMES = ("rotation_x", "rotation_y", "rotation_z", "direction_1", "direction_2")


def make_matches(rng, count, noise_px, baseline=0.25):
    """Create matches of a scene with depth. Return them and the pose."""
    R, direction = rotation_from_vector(0.15 * rng.normal(size=3)), rng.normal(size=3) * (1, 0.6, 0.5)
    t = direction / np.linalg.norm(direction)
    pixels = rng.uniform(0, 1, (12 * count, 2)) * (CAMERA.width, CAMERA.height)
    points = homogeneous(CAMERA.pixels_to_rays(pixels)) * np.exp(rng.uniform(-0.7, 0.7, (12 * count, 1)))
    moved = points @ R.T + baseline * t
    ahead = moved[:, 2] > 0.1
    pixels1, pixels2 = (CAMERA.rays_to_pixels(x[ahead, :2] / x[ahead, 2:]) for x in (points, moved))
    seen = np.flatnonzero(((pixels2 > 0) & (pixels2 < (CAMERA.width, CAMERA.height))).all(axis=1))[:count]
    noisy = (each[seen] + noise_px * rng.normal(size=(len(seen), 2)) for each in (pixels1, pixels2))
    return *noisy, R, t


def error_of(found, R, t):
    """Return the error of a pose in the parameters of its covariance."""
    return np.r_[vector_from_rotation(R @ found.R.T), direction_basis(found.t).T @ t]


def solved(pair, **told):
    """Return an estimated relative pose, and its error in the parameters of the covariance; None for a wrong pose."""
    found = estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **told)
    right = found.success and pose_error_deg(found.R, found.t, pair.R, pair.t) < 15
    return (found, error_of(found, pair.R, pair.t)) if right else None


def located(query, **told):
    """Return an estimated absolute pose, and its error in the parameters of the covariance; None for a wrong pose."""
    found = estimate_absolute_pose(query.points2d, query.points3d, query.camera, **told)
    right = found.success and rotation_angle_deg(query.R @ found.R.T) < 15
    return (found, np.r_[vector_from_rotation(query.R @ found.R.T), query.t - found.t]) if right else None


def coverage(answers):
    """Return the shares of errors in the 95 % ellipses: of all numbers, of the rotation, and of the rest."""
    inside = []
    for found, off in answers:
        parts = slice(None), slice(0, 3), slice(3, None)
        distances_sq = [off[part] @ np.linalg.solve(found.covariance[part, part], off[part]) for part in parts]
        inside.append([each < CHI_SQ_95[len(off[part])] for each, part in zip(distances_sq, parts, strict=True)])
    return np.mean(inside, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize(("make", "answer"), [(make_pair, solved), (make_query, located)])
def test_ellipses_contain_the_stated_share_of_errors(make, answer, scored):
    shares = []
    for noise_px, count, wrong in itertools.product((0.3, 1.0, 2.0), (100, 400, 2000), (0.2, 0.4, 0.7)):
        scenes = [make(count, wrong, noise_px, seed) for seed in range(40)]
        told = [{"scores": each.scores, "score_kind": "ratio"} if scored else {} for each in scenes]
        answers = [answer(each, **more) for each, more in zip(scenes, told, strict=True)]
        shares.append(coverage([each for each in answers if each is not None]))
    assert np.all(np.mean(shares, axis=0) > 0.93)
    assert np.all(np.mean(shares, axis=0) < 0.98)
    assert np.min(shares) > 0.75  # the goal is 0.9; four standard deviations of 40 scenes are 0.19
    # Without scores, before: 0.22 of relative poses at 2 px and 70 % wrong matches, and all absolute poses.


@pytest.mark.parametrize("make", [make_pair, make_query])
@pytest.mark.parametrize("noise_px", [0.3, 2.0])
def test_the_stated_noise_is_that_of_the_keypoints(make, noise_px):
    answer, median = (solved, 0.674) if make is make_pair else (located, 1.177)
    found = [answer(make(500, 0.5, noise_px, seed))[0].noise_px for seed in range(8)]
    assert np.median(found) == pytest.approx(median * noise_px, rel=0.08)


def test_points_that_cannot_be_pixels_are_refused():
    pair = make_pair(40, seed=1)
    for calls in (estimate_relative_pose, estimate_fundamental, estimate_homography):
        cameras = (pair.camera1, pair.camera2) if calls is estimate_relative_pose else ()
        found = calls(500 + 1e-7 * pair.points1, 500 + 1e-7 * pair.points2, *cameras)
        assert not found.success and found.stop_reason in ("degenerate", "no_consensus") and found.confidence == 0
    many, identity = make_pair(200, seed=1), Camera("SIMPLE_PINHOLE", (1.0, 0.0, 0.0), 1, 1)
    rays = [many.camera1.pixels_to_rays(each) for each in (many.points1, many.points2)]
    assert estimate_relative_pose(*rays, identity, identity).success, "rays instead of pixels are points, too"


def test_covariances_are_symmetric_and_positive(rng):
    """Absurd points: nearly coincident, collinear, of very different magnitudes, or almost without parallax."""
    for _ in range(60):
        count = int(rng.integers(6, 40))
        points1 = rng.normal(size=(count, 2)) * 10.0 ** rng.uniform(-3, 4) + rng.uniform(0, 1000, 2)
        points2 = points1 + rng.normal(size=(count, 2)) * 10.0 ** rng.uniform(-6, 3)
        points1[:, 1] *= 10.0 ** -rng.integers(0, 8)
        points1, points2 = np.clip(points1, 0, 900), np.clip(points2, 0, 900)
        points3d = np.c_[points2, rng.normal(size=count)] * 10.0 ** rng.uniform(-8, 8)
        uncertain = replace(CAMERA, focal_deviation=0.3, distortion_deviation=0.1)
        for camera in (CAMERA, uncertain):
            relative = estimate_relative_pose(points1, points2, camera, camera)
            for found in (relative, estimate_absolute_pose(points1, points3d, camera)):
                if found.covariance is not None:
                    np.testing.assert_array_equal(found.covariance, found.covariance.T)
                    deviations = np.sqrt(np.diag(found.covariance))
                    units = np.where(deviations > 0, deviations, 1.0)
                    assert np.linalg.eigvalsh(found.covariance / np.outer(units, units)).min() > -1e-9
            if relative.points3d is not None:
                assert np.isfinite(relative.points3d.error_px).all()


def test_an_indefinite_covariance_becomes_the_nearest_one():
    damaged = np.array([[4.0, 5.0], [5.1, 4.0]])
    np.testing.assert_allclose(as_covariance(damaged), np.full((2, 2), 4.525), rtol=0.12)
    assert np.linalg.eigvalsh(as_covariance(damaged)).min() > -1e-12
    assert as_covariance(np.array([[np.inf, 0.0], [0.0, 1.0]])) is None
    right = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(as_covariance(right), right)
    negative = as_covariance(np.diag([-1.0, 2.0]))
    np.testing.assert_array_equal(negative, np.diag([0.0, 2.0]))


def test_covariance_parameters_match_the_kernels(rng):
    pair = make_pair(50, seed=1)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    model = join_pose(pair.R, pair.t)
    step = 1e-6 * rng.normal(size=5)
    R, t = split_pose(problem.model_kernels.retract(model, step))
    np.testing.assert_allclose(vector_from_rotation(R @ pair.R.T), step[:3], atol=1e-10)
    np.testing.assert_allclose(direction_basis(pair.t).T @ t, step[3:], atol=1e-10)
    vector = rng.normal(size=3)
    np.testing.assert_allclose(vector_from_rotation(rotation_from_vector(vector)), vector, atol=1e-12)
    np.testing.assert_allclose(vector_from_rotation(np.eye(3)), 0, atol=0)


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo", "lm-lo-u"])
def test_every_method_has_a_covariance(method):
    pair = make_pair(300, outlier_ratio=0.3, seed=2)
    cameras = pair.camera1, pair.camera2
    found = estimate_relative_pose(pair.points1, pair.points2, *cameras, options=Options(method=method))
    assert found.covariance.shape == (5, 5) and found.covariance_of == NAMES
    assert np.linalg.eigvalsh(found.covariance).min() > 0
    assert found.rotation_deviation_deg == pytest.approx(np.degrees(np.sqrt(np.trace(found.covariance[:3, :3]))))
    assert 0 < found.rotation_deviation_deg < found.direction_deviation_deg < 5
    again = type(found).from_dict(found.to_dict(full=True))
    np.testing.assert_array_equal(again.covariance, found.covariance)
    assert again.covariance_of == NAMES
    failed = estimate_relative_pose(pair.points1[:3], pair.points2[:3], *cameras, options=Options(method=method))
    assert failed.covariance is None and failed.rotation_deviation_deg is None


def test_a_damaged_covariance_is_refused():
    pair = make_pair(100, seed=2)
    values = estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2).to_dict(full=True)
    values["covariance"] = values["covariance"][:3]
    with pytest.raises(ValueError, match="covariance"):
        type(estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)).from_dict(values)


def test_the_covariance_includes_refined_focal_lengths():
    *points, R, t = make_matches(np.random.default_rng(5), 400, 0.5)
    uncertain = replace(CAMERA.adjusted(1.04, (0, 0), 0.05))
    shared = estimate_relative_pose(*points, uncertain, uncertain, same_camera=True)
    assert shared.covariance_of == (*NAMES, "focal") and shared.covariance.shape == (6, 6)
    apart = estimate_relative_pose(*points, uncertain, uncertain, same_camera=False)
    assert apart.covariance_of == (*NAMES, "focal1", "focal2") and apart.covariance.shape == (7, 7)
    one = estimate_relative_pose(*points, CAMERA, uncertain)
    assert one.covariance_of == (*NAMES, "focal2") and one.covariance.shape == (6, 6)
    for found in (shared, apart, one):
        off = np.log(CAMERA.fx / found.camera2.fx)
        assert abs(off) < 4 * found.covariance[-1, -1] ** 0.5 < 0.25
        assert pose_error_deg(found.R, found.t, R, t) < 5
    assert estimate(*points, uncertain, uncertain).covariance is not None


def bend(pixels, k1):
    rays = CAMERA.pixels_to_rays(pixels)
    return CAMERA.rays_to_pixels(rays * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True)))


@pytest.mark.slow
def test_the_covariance_includes_estimated_lenses():
    lens, off = CAMERA.with_lens(0.0, 0.1), []
    for seed in range(60):
        *points, R, t = make_matches(np.random.default_rng([seed, 9]), 400, 0.5)
        found = estimate_relative_pose(*(bend(each, -0.1) for each in points), lens, lens, same_camera=True)
        assert found.covariance_of == (*NAMES, "k1") and found.covariance.shape == (6, 6)
        assert np.linalg.eigvalsh(found.covariance).min() > 0
        pose = error_of(found, R, t)
        off.append(
            [
                (found.camera1.k1 + 0.1) / found.covariance[5, 5] ** 0.5,
                pose @ np.linalg.solve(found.covariance[:5, :5], pose),
            ]
        )
    k1, distances_sq = np.array(off).T
    assert 0.5 < np.sqrt(np.mean(k1**2)) < 1.6
    assert np.mean(distances_sq < CHI_SQ_95[5]) >= 0.85
    *points, R, t = make_matches(np.random.default_rng(5), 400, 0.5)
    flat = estimate_relative_pose(*points, lens, lens)
    assert flat.covariance_of == NAMES, "no k1 was estimated"
    bent = [bend(each, -0.1) for each in points]
    assert estimate_relative_pose(*bent, lens, lens, same_camera=False).covariance_of[5:] == ("k1_1", "k1_2")
    known = CAMERA.with_lens(-0.1, 0.0)
    assert estimate_relative_pose(*bent, known, lens).covariance_of[5:] == ("k1_2",)
    doubtful = replace(lens, focal_deviation=0.03)
    found = estimate_relative_pose(*bent, doubtful, doubtful, same_camera=True)
    assert found.covariance_of[5:] == ("focal", "k1") and found.covariance.shape == (7, 7)


def test_an_undetermined_direction_has_a_deviation_of_about_a_radian(rng):
    """The camera only rotated. In one scene of eight, chance matches still seem to determine the direction."""
    R = rotation_from_vector([0.02, 0.1, -0.03])
    answers = []
    for _ in range(9):
        pixels1 = rng.uniform(200, 800, (200, 2))
        turned = homogeneous(CAMERA.pixels_to_rays(pixels1)) @ R.T
        pixels2 = CAMERA.rays_to_pixels(turned[:, :2] / turned[:, 2:])
        points = (pixels + 0.5 * rng.normal(size=(200, 2)) for pixels in (pixels1, pixels2))
        answers.append(estimate_relative_pose(*points, CAMERA, CAMERA))
    assert 5 < np.median([found.direction_deviation_deg for found in answers]) < 82
    assert max(found.rotation_deviation_deg for found in answers) < 2
    assert np.median([found.rotation_confidence for found in answers]) > 0.8
    assert max(found.confidence for found in answers) < 0.5


def test_more_matches_give_smaller_deviations():
    small, large = (
        estimate_relative_pose(*make_matches(np.random.default_rng(7), count, 0.5)[:2], CAMERA, CAMERA)
        for count in (1000, 12_000)
    )
    assert large.direction_deviation_deg < 0.6 * small.direction_deviation_deg


def test_the_focal_length_of_an_unknown_long_lens_has_a_wide_deviation():
    """If the prior is far from the truth, the deviation must be large enough."""
    long = Camera("SIMPLE_PINHOLE", (2.2 * CAMERA.width, 639.5, 479.5), CAMERA.width, CAMERA.height)
    rng = np.random.default_rng(11)
    points = np.concatenate([rng.uniform(-0.2, 0.2, (600, 2)), rng.uniform(0.8, 1.3, (600, 1))], axis=1)
    moved = points @ rotation_from_vector([0.02, 0.15, 0.03]).T + (-0.15, 0.03, 0.02)
    pixels = [long.rays_to_pixels(x[:, :2] / x[:, 2:]) for x in (points, moved)]
    seen = np.all([((each > 0) & (each < (1280, 960))).all(axis=1) for each in pixels], axis=0)
    noisy = (each[seen] + 0.5 * rng.normal(size=(seen.sum(), 2)) for each in pixels)
    found = estimate_relative_pose(*noisy, image_size1=(1280, 960), image_size2=(1280, 960))
    assert abs(np.log(found.camera1.fx / long.fx)) < 3 * found.camera1.focal_deviation


@pytest.mark.parametrize("kind", ["essential", "fundamental", "focal"])
def test_lenses_move_a_model_as_refinement_on_bent_points_does(kind):
    """Compared to first order in k1, without noise."""
    points1, points2, R, t = make_matches(np.random.default_rng(3), 900, 0.0)
    focal, centre, k1 = CAMERA.fx, np.array(CAMERA.K[:2, 2]), 1e-3

    def problem_of(bend):
        rays = [(points - centre) / focal for points in (points1, points2)]
        pixels = [ray * (1 + bend * np.sum(ray**2, axis=1, keepdims=True)) * focal + centre for ray in rays]
        if kind == "essential":
            return Essential.from_pixels(*pixels, CAMERA, CAMERA)
        if kind == "focal":
            uncertain = CAMERA.adjusted(1.0, (0, 0), 0.1)
            return FocalPose.from_pixels(*pixels, uncertain, uncertain, shared=True)
        return Fundamental.from_pixels(*pixels)

    problem, bent = problem_of(0.0), problem_of(k1)
    model = join_pose(R, t)
    if kind == "focal":
        model = np.c_[model, np.zeros((3, 2))]
    if kind == "fundamental":  # its points are centred by medians, not about the centre of the lens
        model = problem.from_public(fundamental_from_essential(essential_from_pose(R, t), CAMERA.K, CAMERA.K))
    noise = 0.5 * problem.pixel
    response = lens_response(problem, model, np.ones(problem.num_points), noise)
    options = RefineOptions(loss_scale=1e3, intrinsics=problem.intrinsics_prior(noise), min_decrease=1e-12)
    moved = bent.refine(model[None], options)[0]
    directions = problem.outcomes(np.stack([model, problem.model_kernels.retract(model, k1 * response), moved]))
    directions *= np.sign(directions @ directions[0])[:, None]
    predicted, found = directions[1] - directions[0], directions[2] - directions[0]
    if kind == "essential":
        assert np.linalg.norm(predicted - found) < 0.1 * np.linalg.norm(found)
    assert 0.2 < np.linalg.norm(predicted) / np.linalg.norm(found) < 5  # otherwise, priors and centres differ slightly
