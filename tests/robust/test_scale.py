"""The threshold that is found with the noise."""

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair

AUTO = Options(max_error_px="auto")


def estimate(pair, options=AUTO, scale=1.0):
    cameras = [camera.K * [[scale], [scale], [1]] for camera in (pair.camera1, pair.camera2)]
    return caransac.estimate_relative_pose(
        scale * pair.points1, scale * pair.points2, *cameras, scores=pair.scores, score_kind="ratio", options=options
    )


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
@pytest.mark.parametrize("noise_px", [0.2, 1.0, 4.0])
def test_the_threshold_follows_the_noise(method, noise_px):
    pair = make_pair(1000, outlier_ratio=0.4, noise_px=noise_px, seed=2)
    result = estimate(pair, Options(max_error_px="auto", method=method))
    deviations = result.max_error_px / max(noise_px, 0.4)
    assert 2.1 < deviations < 3.0  # where keypoints are more precise than usual, of usual ones
    assert result.inliers[pair.inliers].mean() > 0.96
    if method == "ca-ransac":
        assert result.noise_px == pytest.approx(0.674 * noise_px, rel=0.2)
    else:
        assert result.noise_px is None


def test_the_unit_of_the_pixels_means_nothing():
    pair = make_pair(500, outlier_ratio=0.5, noise_px=0.7, seed=5)
    once, scaled = estimate(pair), estimate(pair, scale=8.0)
    assert scaled.max_error_px == pytest.approx(8 * once.max_error_px, rel=1e-6)
    assert pose_error_deg(once.R, once.t, scaled.R, scaled.t) < 1e-6
    assert np.array_equal(once.inliers, scaled.inliers)


def test_a_given_threshold_is_kept():
    pair = make_pair(300, seed=1)
    assert estimate(pair, Options(max_error_px=3.5)).max_error_px == pytest.approx(3.5)


def test_noisy_matches_are_served_better_than_by_one_pixel():
    errors = {}
    for seed in range(8):
        pair = make_pair(600, outlier_ratio=0.5, noise_px=3.0, seed=seed)
        for max_error_px in ("auto", 1.0):
            result = estimate(pair, Options(max_error_px=max_error_px))
            error = pose_error_deg(result.R, result.t, pair.R, pair.t) if result.success else 180
            errors.setdefault(max_error_px, []).append(error)
    assert np.mean(errors["auto"]) < np.mean(errors[1.0])


@pytest.mark.parametrize("seed", range(3))
def test_points_without_a_model_get_a_threshold_too(seed):
    points1, points2 = np.random.default_rng(seed).uniform(0, 1000, (2, 60, 2))
    result = caransac.estimate_fundamental(points1, points2, options=AUTO)
    assert 0.05 < result.max_error_px < 20


@pytest.mark.parametrize("wrong", ["car", 0, -1.0, None, float("nan"), True, np.array([1.0, 2.0])])
def test_other_thresholds_are_refused(wrong):
    with pytest.raises(ValueError, match="max_error_px must be"):
        Options(max_error_px=wrong)
