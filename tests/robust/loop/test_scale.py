"""The scale of residuals: the measured noise, and the thresholds derived from it."""

import numpy as np
import pytest
from scenes import contaminated_scene

import caransac
from caransac import Options
from caransac.geometry import join_pose, pose_error_deg, rotation_from_vector
from caransac.kernels import pack
from caransac.robust.loop.scale import Scale, likely_matches
from caransac.robust.problems import Essential, Homography
from caransac.synthetic import make_pair
from caransac.tuning import DEFAULT_TUNING, Tuning

AUTO = Options(max_error_px="auto")
MEDIAN = 0.6745  # median of a half-normal distribution with deviation one


def estimate(pair, options=AUTO, scale=1.0):
    cameras = [camera.K * [[scale], [scale], [1]] for camera in (pair.camera1, pair.camera2)]
    return caransac.estimate_relative_pose(
        scale * pair.points1, scale * pair.points2, *cameras, scores=pair.scores, score_kind="ratio", options=options
    )


def scene(noise_px, outlier_ratio=0.3, num_points=3000):
    """Create a problem. Return it, the true pose, and the mask of right matches."""
    pair = make_pair(num_points, outlier_ratio, noise_px, seed=6)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    return problem, join_pose(pair.R, pair.t), pair.inliers


def as_prior(inliers):
    return np.where(inliers, 0.9, 0.1).astype(np.float32)


def measure(problem, model, prior, scale, rounds=4):
    """Measure the noise after some rounds, starting with the first noise."""
    likely, noise = likely_matches(problem, prior, scale.tuning), scale.first
    for _ in range(rounds):
        noise = scale.measure(likely, model, noise)
    return noise


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
@pytest.mark.parametrize("noise_px", [0.2, 1.0, 3.0, 4.0])
def test_the_threshold_follows_the_noise(method, noise_px):
    pair = make_pair(1000, outlier_ratio=0.4, noise_px=noise_px, seed=2)
    result = estimate(pair, Options(max_error_px="auto", method=method))
    deviations = result.max_error_px / max(noise_px, 0.4)
    assert 2.1 < deviations < 3.3  # relative to the noise of typical keypoints if the keypoints are more precise
    assert result.inliers[pair.inliers].mean() > 0.96
    if method == "ca-ransac":
        assert result.noise_px == pytest.approx(MEDIAN * noise_px, rel=0.2)
    else:
        assert result.noise_px is None


@pytest.mark.parametrize("noise_px", [0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("outlier_ratio", [0.0, 0.3, 0.6])
def test_the_noise_is_the_median_distance_of_right_matches(noise_px, outlier_ratio):
    problem, pose, inliers = scene(noise_px, outlier_ratio)
    scale = Scale.of(problem, "auto", DEFAULT_TUNING)
    noise = measure(problem, pose, as_prior(inliers), scale)
    assert noise == pytest.approx(np.median(problem.distances(pose)[inliers]), rel=0.05)
    assert noise / problem.pixel == pytest.approx(MEDIAN * noise_px, rel=0.1)


@pytest.mark.parametrize("share_wrong", [0.1, 0.3])
def test_wrong_matches_of_high_prior_do_not_change_the_noise(rng, share_wrong):
    problem, pose, inliers = scene(1.0, 0.5)
    prior = as_prior(inliers)
    wrong = np.flatnonzero(~inliers)
    prior[rng.choice(wrong, int(share_wrong * inliers.sum()), replace=False)] = 0.9
    scale = Scale.of(problem, "auto", DEFAULT_TUNING)
    assert measure(problem, pose, prior, scale) / problem.pixel == pytest.approx(MEDIAN, rel=0.15)


@pytest.mark.parametrize("noise_px", [0.3, 2.5])
def test_few_matches_are_pulled_towards_the_usual_noise(noise_px):
    """The typical noise has the weight of five matches, in addition to the five matches of the sample."""
    problem, pose, _ = scene(noise_px, 0.0)
    scale = Scale.of(problem, "auto", DEFAULT_TUNING)
    found = []
    for count in (5, 8, 12, 50, 2000):
        few = problem.subset(np.arange(count, dtype=np.int32))
        found.append(measure(few, pose, np.full(count, 0.9, np.float32), scale, rounds=8))
    assert found[0] == pytest.approx(scale.usual)
    distances = np.abs(np.log(np.array(found) / scale.usual))
    assert distances[1] < 0.6 * distances[-1]
    assert distances[2] < 0.9 * distances[-1]
    assert distances[3] == pytest.approx(distances[-1], rel=0.35)
    alone = Scale.of(problem, "auto", Tuning(usual_matches=1e-9))
    few = problem.subset(np.arange(12, dtype=np.int32))
    median = np.median(problem.distances(pose)[:25])
    assert measure(few, pose, np.full(12, 0.9, np.float32), alone, rounds=8) == pytest.approx(median, rel=0.3)


def test_without_matches_near_the_model_the_noise_is_the_usual_one():
    problem, pose, _ = scene(0.2, 0.0)
    turned = join_pose(rotation_from_vector([0, 0, 1.0]) @ pose[:, :3], pose[:, 3])
    few = problem.subset(np.arange(50, dtype=np.int32))
    scale = Scale.of(few, "auto", DEFAULT_TUNING)
    assert measure(few, turned, np.full(50, 0.9, np.float32), scale) == pytest.approx(scale.usual, rel=0.5)
    nothing = problem.subset(np.empty(0, np.int32))
    assert scale.measure(nothing, pose, scale.usual) == pytest.approx(scale.usual)


def test_the_noise_stays_in_its_range():
    problem, pose, _ = scene(0.0, 0.0)
    scale = Scale.of(problem, "auto", DEFAULT_TUNING)
    assert scale.measure(problem, pose, scale.first) == pytest.approx(0.2 * scale.usual, rel=0.01)
    problem, pose, _ = scene(3.0, 0.0)  # initially, no match is near enough to measure the noise
    assert scale.measure(problem, pose, 0.2 * scale.usual) > 0.5 * scale.usual
    problem, pose, _ = scene(40.0, 0.0)
    scale = Scale.of(problem, "auto", DEFAULT_TUNING)
    assert measure(problem, pose, np.ones(3000, np.float32), scale, 8) <= 20 * scale.usual * (1 + 1e-9)


def test_an_ordinary_keypoint_is_half_a_pixel_of_a_thousand():
    rng = np.random.default_rng(0)
    points1, points2 = rng.uniform(0, 1000, (2, 4000, 2))
    problem = Homography.from_pixels(points1, points2)
    usual = Scale.of(problem, "auto", DEFAULT_TUNING).usual / problem.pixel
    assert usual == pytest.approx(problem.median_error * 0.5, rel=0.25)


def test_thresholds_are_multiples_of_the_noise_and_search_thresholds_grow_slowly():
    problem, *_ = scene(0.5)
    scale = Scale.of(problem, "auto", DEFAULT_TUNING)
    for noise in (0.3 * scale.usual, scale.first):
        assert scale.search_error(noise) == scale.max_error(noise) == pytest.approx(4 * noise)
    noise = 9 * scale.first
    assert scale.search_error(noise) == scale.max_error(noise) == pytest.approx(4 * 3 * scale.first)
    assert scale.inlier_error(noise) == pytest.approx(4 * noise)
    deviation = scale.usual / problem.median_error
    # Some keypoints are less precise than most.
    assert scale.inlier_error(1e-9 * scale.usual) == pytest.approx(2 * deviation)


def test_right_matches_rarely_exceed_the_threshold_of_inliers(rng):
    for kind, dimensions, most in (
        (Essential, 1, 0.995),
        (Homography, 2, 0.999995),
    ):  # with two dimensions, few wrong matches are near the model
        errors = np.linalg.norm(rng.normal(size=(100_000, dimensions)), axis=1) * (2**0.5 if kind is Homography else 1)
        scale = Scale.of(kind(pack(*rng.normal(size=(2, 20, 2)))), "auto", DEFAULT_TUNING)
        noise = 100 * scale.usual
        within = np.mean(errors * noise / np.median(errors) < scale.inlier_error(noise))
        assert 0.97 < within < most


def test_the_unit_of_the_pixels_does_not_matter():
    pair = make_pair(500, outlier_ratio=0.5, noise_px=0.7, seed=5)
    once, scaled = estimate(pair), estimate(pair, scale=8.0)
    assert scaled.max_error_px == pytest.approx(8 * once.max_error_px, rel=1e-6)
    assert pose_error_deg(once.R, once.t, scaled.R, scaled.t) < 1e-6
    assert np.array_equal(once.inliers, scaled.inliers)


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo", "lm-lo-u"])
@pytest.mark.parametrize("max_error_px", [0.3, 1.0, 3.5])
def test_a_given_threshold_is_kept(method, max_error_px):
    pair = make_pair(300, seed=1)
    result = estimate(pair, Options(max_error_px=max_error_px, method=method, keep_trace=True))
    assert result.max_error_px == pytest.approx(max_error_px)
    for record in result.trace or ():
        assert record.max_error == pytest.approx(max_error_px)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    distances_px = problem.distances(join_pose(result.R, result.t)) / problem.pixel
    assert distances_px[result.inliers].max() < max_error_px


def test_a_given_threshold_bounds_the_noise():
    problem, pose, inliers = scene(3.0)
    scale = Scale.of(problem, 1.0, DEFAULT_TUNING)
    assert scale.fixed == problem.pixel
    assert scale.max_error(7.0) == scale.inlier_error(7.0) == problem.pixel
    assert measure(problem, pose, as_prior(inliers), scale, 8) <= problem.pixel * (1 + 1e-9)


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
@pytest.mark.parametrize("num_points", [3, 12])
def test_a_given_threshold_is_reported_without_a_model_too(method, num_points):
    """The cases are too few matches, and matches at one position."""
    points = np.ones((num_points, 2))
    result = caransac.estimate_relative_pose(
        points, points, np.eye(3), np.eye(3), options=Options(max_error_px=3.5, method=method)
    )
    assert not result.success
    assert result.max_error_px == pytest.approx(3.5)


def test_the_automatic_threshold_is_better_than_one_pixel_for_noisy_matches():
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


def test_matches_of_a_high_prior_are_likely(rng):
    problem, *_ = scene(0.5, num_points=400)
    prior = rng.permutation(np.linspace(0, 1, 400)).astype(np.float32)
    likely = likely_matches(problem, prior, DEFAULT_TUNING)
    assert np.array_equal(likely.points1, problem.points1[prior > 0.5])


@pytest.mark.parametrize("num_points", [7, 50, 400])
def test_the_most_probable_matches_are_likely_if_few_have_a_high_prior(rng, num_points):
    x1, x2, *_ = contaminated_scene(rng, num_points)
    problem = Essential(pack(x1, x2))
    prior = rng.permutation(np.linspace(0.01, 0.3, num_points)).astype(np.float32)
    expected = np.sort(np.argsort(-prior)[: DEFAULT_TUNING.min_pool])
    assert np.array_equal(likely_matches(problem, prior, DEFAULT_TUNING).points1, problem.points1[expected])
    alike = np.full(num_points, 0.2, np.float32)
    assert likely_matches(problem, alike, DEFAULT_TUNING).num_points >= min(DEFAULT_TUNING.min_pool, num_points)


@pytest.mark.parametrize("wrong", ["car", 0, -1.0, None, float("nan"), True, np.array([1.0, 2.0])])
def test_other_thresholds_are_refused(wrong):
    with pytest.raises(ValueError, match="max_error_px must be"):
        Options(max_error_px=wrong)
