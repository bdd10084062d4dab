"""Lens distortion is estimated only if the matches determine it."""

from dataclasses import replace

import numpy as np
import pytest

from caransac import Camera, Options, estimate, estimate_fundamental, estimate_relative_pose
from caransac.geometry import pose_error_deg, sampson_sq

SIZE = (1024, 768)
CENTRE = (511.5, 383.5)


def scene(seed, k1=(-0.1, -0.1), focals=(700.0, 700.0), outlier_ratio=0.3, noise_px=0.3):
    """Create a pair of distorted images of points at many depths: points, R, t."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(-4, 4, (1500, 2)), rng.uniform(4, 9, 1500)]
    angle = np.radians(15 + 10 * rng.random())
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    t = -R @ np.array([0, 0, 6.0]) + [0.3, 0.2, 6.5]
    points = [
        Camera("SIMPLE_RADIAL", (f, *CENTRE, k)).rays_to_pixels(P[:, :2] / P[:, 2:])
        for P, f, k in zip((X, X @ R.T + t), focals, k1, strict=True)
    ]
    inside = np.all([np.all((p > 0) & (p < SIZE), axis=1) for p in points], axis=0)
    points = [p[inside] for p in points]
    wrong = rng.random(len(points[0])) < outlier_ratio
    points[1][wrong] = rng.uniform(0, SIZE, (int(wrong.sum()), 2))
    return [p + rng.normal(0, noise_px, p.shape) for p in points], R, t / np.linalg.norm(t)


def camera(focal=700.0, **deviations):
    return Camera("SIMPLE_PINHOLE", (focal, *CENTRE), *SIZE, **deviations)


def error(result, R, t):
    return pose_error_deg(result.R, result.t, R, t)


@pytest.mark.parametrize("k1", [-0.2, -0.1, 0.1])
def test_a_bent_lens_is_found_with_the_pose(k1):
    flat, uncertain, off = [], [], []
    for seed in range(4):
        points, R, t = scene(seed, (k1, k1))
        flat.append(error(estimate_relative_pose(*points, camera(), camera()), R, t))
        lens = camera(distortion_deviation=0.1)
        result = estimate_relative_pose(*points, lens, lens)
        uncertain.append(error(result, R, t))
        assert result.camera1.model == "SIMPLE_RADIAL"
        assert result.camera1.params[:3] == (700.0, *CENTRE)
        assert 0 < result.camera1.distortion_deviation < 0.1
        assert result.camera1.k1 == pytest.approx(result.camera2.k1, abs=1e-3), "both may be the same camera"
        off.append(result.camera1.k1 - k1)
        unbent = estimate_relative_pose(*points, *(Camera("SIMPLE_RADIAL", (700.0, *CENTRE, k1)),) * 2)
        assert result.num_inliers > 0.97 * unbent.num_inliers, "inliers refer to undistorted points"
        assert result.noise_px < 1.15 * unbent.noise_px
    assert np.mean(uncertain) < 0.3 * np.mean(flat)
    assert np.max(np.abs(off)) < 0.02


def test_without_distortion_an_uncertain_lens_does_not_change_the_pose():
    """If there is no evidence of distortion, the result is identical to that of an exact camera."""
    for seed in range(4):
        points, *_ = scene(seed, (0.0, 0.0))
        exact = estimate_relative_pose(*points, camera(), camera())
        lens = camera(distortion_deviation=0.1)
        uncertain = estimate_relative_pose(*points, lens, lens)
        np.testing.assert_array_equal(uncertain.R, exact.R)
        np.testing.assert_array_equal(uncertain.t, exact.t)
        np.testing.assert_array_equal(uncertain.inliers, exact.inliers)
        assert exact.camera1 == camera()
        assert uncertain.camera1 == uncertain.camera2 == lens, "the given camera, because no lens was estimated"


def test_lenses_of_two_cameras_differ():
    off = []
    for seed in range(4):
        points, R, t = scene(seed, (-0.15, 0.1), (700.0, 800.0))
        lenses = [camera(focal, distortion_deviation=0.1) for focal in (700.0, 800.0)]
        result = estimate_relative_pose(*points, *lenses)
        assert error(result, R, t) < 0.5
        off += [result.camera1.k1 + 0.15, result.camera2.k1 - 0.1]
        half = estimate_relative_pose(*points, lenses[0], Camera("SIMPLE_RADIAL", (800.0, *CENTRE, 0.1), *SIZE))
        assert half.camera1.k1 == pytest.approx(-0.15, abs=0.03), "one of the lenses may be known"
        assert half.camera2.params[3] == 0.1
    assert np.max(np.abs(off)) < 0.04


def test_stated_deviations_are_used():
    points, R, t = scene(0, (-0.1, -0.1))
    near, far = (camera().with_lens(k1, 0.02) for k1 in (-0.09, -0.05))
    result = estimate_relative_pose(*points, near, near)
    assert error(result, R, t) < 0.3
    assert result.camera1 == near, "there is no evidence against the stated k1"
    result = estimate_relative_pose(*points, far, far)
    assert error(result, R, t) < 0.3
    assert result.camera1.k1 == pytest.approx(-0.1, abs=0.012)
    assert result.camera1.distortion_deviation < 0.02
    sure = replace(far, distortion_deviation=1e-6)
    assert estimate_relative_pose(*points, sure, sure).camera1.k1 == pytest.approx(-0.05, abs=1e-4)


@pytest.mark.parametrize("focal", ["uncertain", "unknown"])
def test_lens_and_focal_length_are_found_together(focal):
    flat, uncertain, off = [], [], []
    for seed in range(4):
        points, R, t = scene(seed)
        given = camera(720.0, focal_deviation=0.04) if focal == "uncertain" else Camera.of_unknown_focal(*SIZE)
        given = replace(given, distortion_deviation=0.0)
        flat.append(error(estimate_relative_pose(*points, given, given), R, t))
        lens = replace(given, distortion_deviation=0.1)
        arguments = (lens, lens) if focal == "uncertain" else (None, None)
        result = estimate_relative_pose(*points, *arguments, image_size1=SIZE, image_size2=SIZE)
        uncertain.append(error(result, R, t))
        off.append(result.camera1.k1 + 0.1)
        assert result.camera1.model == "SIMPLE_RADIAL"
        assert result.camera1.focal_deviation > 0
    assert np.mean(uncertain) < 0.5 * np.mean(flat)
    assert np.mean(np.abs(off)) < 0.04


def test_fundamental_matrices_are_of_unbent_pixels():
    points, *_ = scene(1, outlier_ratio=0.0)
    result = estimate_fundamental(*points, image_size1=SIZE, image_size2=SIZE)
    unbent = [c.undistort_pixels(p) for c, p in zip((result.camera1, result.camera2), points, strict=True)]
    assert np.median(np.sqrt(sampson_sq(result.F, *unbent))) < 0.5
    assert result.camera1.k1 < -0.05


def test_swapping_the_images_swaps_the_lenses():
    points, R, t = scene(2, (-0.15, 0.1), (700.0, 800.0))
    lenses = [camera(focal, distortion_deviation=0.1) for focal in (700.0, 800.0)]
    forth = estimate_relative_pose(*points, *lenses)
    back = estimate_relative_pose(*points[::-1], *lenses[::-1])
    assert back.camera1.k1 == pytest.approx(forth.camera2.k1, abs=0.02)
    assert pose_error_deg(back.R.T, -back.R.T @ back.t, R, t) < 0.5


def test_one_call_for_all_finds_the_lens():
    points, R, t = scene(3)
    lens = camera(distortion_deviation=0.1)
    result = estimate(*points, lens, lens)
    assert result.kind == "pose"
    assert pose_error_deg(result.R, result.t, R, t) < 0.5
    assert result.camera1.k1 == pytest.approx(-0.1, abs=0.012)


def test_many_matches_are_all_seen_through_the_lens():
    points, R, t = scene(4)
    many = [np.tile(p, (12, 1)) for p in points]
    rng = np.random.default_rng(0)
    many = [p + rng.normal(0, 0.3, p.shape) for p in many]
    assert len(many[0]) > 8192
    lens = camera(distortion_deviation=0.1)
    result = estimate_relative_pose(*many, lens, lens)
    assert error(result, R, t) < 0.3
    assert result.num_inliers > 0.55 * len(many[0])


@pytest.mark.parametrize("count", [0, 3, 5, 7, 12])
def test_hopeless_data_is_a_failure(count):
    rng = np.random.default_rng(count)
    lens = camera(distortion_deviation=0.1)
    result = estimate_relative_pose(rng.uniform(0, 700, (count, 2)), rng.uniform(0, 700, (count, 2)), lens, lens)
    assert result.num_inliers <= count
    assert result.success or result.R is None


def test_classical_methods_do_not_estimate_lenses():
    points, *_ = scene(0)
    lens = camera(distortion_deviation=0.1)
    result = estimate_relative_pose(*points, lens, lens, options=Options(method="lm-lo"))
    assert result.camera1 == result.camera2 == lens
    stated = replace(camera(720.0).with_lens(-0.09, 0.02), focal_deviation=0.04)
    refined = estimate_relative_pose(*points, stated, stated, options=Options(method="lm-lo")).camera1
    assert refined.distortion_deviation == 0.02, "this method does not estimate k1"
    assert refined.k1 == pytest.approx(-0.09 * (refined.fx / 720.0) ** 2), "same rays with another focal length"
