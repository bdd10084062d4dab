"""estimate_absolute_pose: truth, uncertain cameras, hopeless data, hostile arguments, and its result."""

import json
from dataclasses import replace

import numpy as np
import pytest

import caransac
from caransac import AbsolutePoseResult, Camera, Options, RefinedMatches, estimate_absolute_pose, load_result
from caransac.geometry import absolute_pose_error_deg, homogeneous, rotation_from_vector
from caransac.synthetic import make_query

METHODS = pytest.mark.parametrize("method", ["ca-ransac", "lm-lo", "lm-lo-u"])


def estimate(query, camera=None, **given):
    scores = {"scores": query.scores, "score_kind": "ratio"}
    return estimate_absolute_pose(query.points2d, query.points3d, camera or query.camera, **(scores | given))


def error_of(found, query):
    return absolute_pose_error_deg(found.R, found.t, query.R, query.t, query.points3d)


@METHODS
@pytest.mark.parametrize("flat", [False, True], ids=["cloud", "plane"])
def test_the_pose_is_found(method, flat):
    query = make_query(outlier_ratio=0.6, seed=1, flat=flat)
    found = estimate(query, options=Options(method=method))
    assert found.success and error_of(found, query) < 0.2
    assert np.mean(found.inliers == query.inliers) > 0.95
    assert found.camera == query.camera
    np.testing.assert_allclose(found.centre, -query.R.T @ query.t, atol=0.05)
    if method == "ca-ransac":
        assert found.probabilities[query.inliers].mean() > 0.8 > 0.2 > found.probabilities[~query.inliers].mean()
        assert found.confidence > 0.9 and found.noise_px == pytest.approx(0.5 * 1.177, rel=0.3)


def test_scores_are_not_needed():
    query = make_query(outlier_ratio=0.5, seed=2)
    found = estimate(query, scores=None, score_kind=None)
    assert error_of(found, query) < 0.2


def test_the_unit_and_the_frame_of_the_points_do_not_matter(rng):
    query = make_query(outlier_ratio=0.5, seed=3)
    turn, shift = rotation_from_vector(rng.normal(size=3)), 1e4 * rng.normal(size=3)
    moved = 1e3 * query.points3d @ turn.T + shift
    found = estimate_absolute_pose(query.points2d, moved, query.camera, scores=query.scores, score_kind="ratio")
    # x = R X + t with X' = s Q X + c: R' = R Q^T, t' = s t - R' c
    R, t = query.R @ turn.T, 1e3 * query.t - query.R @ turn.T @ shift
    assert absolute_pose_error_deg(found.R, found.t, R, t, moved) < 0.2


def test_lens_distortion_is_removed():
    query = make_query(outlier_ratio=0.4, seed=4)
    camera = Camera("SIMPLE_RADIAL", (*query.camera.params, -0.15), 1024, 768)
    pixels = camera.rays_to_pixels(query.camera.pixels_to_rays(query.points2d))
    found = estimate_absolute_pose(pixels, query.points3d, camera)
    assert error_of(found, query) < 0.3 and found.num_inliers > 0.9 * query.inliers.sum()


def bent_query(k1, seed, **given):
    """Create a query seen through a lens. Return it, its pixels, and its camera with the lens."""
    query = make_query(400, outlier_ratio=0.4, seed=seed, **given)
    lens = Camera("SIMPLE_RADIAL", (*query.camera.params, k1), 1024, 768)
    return query, lens.rays_to_pixels(query.camera.pixels_to_rays(query.points2d)), lens


@pytest.mark.parametrize("given", [0.0, -0.1])
@pytest.mark.parametrize("k1", [-0.15, -0.03, 0.1])
def test_an_uncertain_lens_is_found(k1, given):
    flat, uncertain, unbent = [], [], []
    for seed in range(3):
        query, pixels, lens = bent_query(k1, seed)
        known = {"scores": query.scores, "score_kind": "ratio"}
        stated = Camera("SIMPLE_RADIAL", (*query.camera.params, given), 1024, 768)
        doubt = replace(stated, distortion_deviation=0.1)
        found = [estimate_absolute_pose(pixels, query.points3d, each, **known) for each in (stated, doubt, lens)]
        for errors, each in zip((flat, uncertain, unbent), found, strict=True):
            errors.append(error_of(each, query))
        camera = found[1].camera
        assert camera.params[:3] == lens.params[:3] and camera.k1 == pytest.approx(k1, abs=0.005)
        assert 0 < camera.distortion_deviation < 0.01
        assert found[1].covariance.shape == (7, 7)
        assert np.sqrt(found[1].covariance[6, 6]) == pytest.approx(camera.distortion_deviation)
        assert found[1].num_inliers > 0.97 * found[2].num_inliers, "inliers refer to undistorted points"
        assert found[1].confidence > 0.9
    assert np.mean(uncertain) < max(0.3 * np.mean(flat), 2 * np.mean(unbent))


def test_without_distortion_an_uncertain_lens_does_not_change_the_pose():
    query = make_query(400, outlier_ratio=0.4, seed=20)
    exact, uncertain = (estimate(query, replace(query.camera, distortion_deviation=d)) for d in (0.0, 0.05))
    np.testing.assert_array_equal(uncertain.R, exact.R)
    np.testing.assert_array_equal(uncertain.inliers, exact.inliers)
    assert uncertain.camera.k1 == 0 and 0 < uncertain.camera.distortion_deviation < 0.01
    assert np.all(np.diag(uncertain.covariance)[:6] > 0.999 * np.diag(exact.covariance)), "one more number is uncertain"


def test_lens_and_focal_length_are_found_together():
    query, pixels, lens = bent_query(-0.1, 21)
    given = Camera("SIMPLE_PINHOLE", query.camera.params, 1024, 768).adjusted(1.04, (0, 0), 0.05)
    unknown = {"image_size": (1024, 768)}
    for camera, told in ((replace(given, distortion_deviation=0.1), {}), (None, unknown)):
        found = estimate_absolute_pose(pixels, query.points3d, camera, scores=query.scores, score_kind="ratio", **told)
        assert error_of(found, query) < 0.2
        assert found.camera.k1 == pytest.approx(-0.1, abs=0.015)
        assert found.camera.mean_focal == pytest.approx(lens.mean_focal, rel=0.01)
        assert found.covariance.shape == (8, 8)
        left = found.camera.focal_deviation, found.camera.distortion_deviation
        np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)[6:]), left)
        shown = found.camera.rays_to_pixels(found.camera.pixels_to_rays(pixels))
        np.testing.assert_allclose(shown, pixels, atol=1e-6)


def test_the_returned_camera_projects_points_to_their_pixels():
    query, pixels, _ = bent_query(-0.12, 22)
    found = estimate_absolute_pose(pixels, query.points3d, image_size=(1024, 768))
    seen = query.points3d @ found.R.T + found.t
    off = np.linalg.norm(found.camera.rays_to_pixels(seen[:, :2] / seen[:, 2:]) - pixels, axis=1)
    assert np.median(off[query.inliers]) < 1.3 * 0.5 * 1.177


def test_lenses_of_very_many_matches():
    query, pixels, _ = bent_query(-0.1, 23)
    many = np.repeat(np.arange(400), 30)
    doubt = replace(query.camera, distortion_deviation=0.1)
    rng = np.random.default_rng(0)
    found = estimate_absolute_pose(pixels[many] + rng.normal(0, 0.3, (12000, 2)), query.points3d[many], doubt)
    assert error_of(found, query) < 0.1 and found.camera.k1 == pytest.approx(-0.1, abs=0.01)


@pytest.mark.parametrize("factor", [1.05, 0.95])
def test_an_uncertain_focal_length_is_refined(factor):
    query = make_query(outlier_ratio=0.5, seed=5)
    found = estimate(query, query.camera.adjusted(factor, (0, 0), 0.05))
    assert error_of(found, query) < 0.4
    assert found.camera.mean_focal == pytest.approx(query.camera.mean_focal, rel=0.01)
    assert 0 < found.camera.focal_deviation < 0.01
    assert found.covariance.shape == (7, 7)
    assert np.sqrt(found.covariance[6, 6]) == pytest.approx(found.camera.focal_deviation)


def test_an_unknown_focal_length_is_estimated():
    query = make_query(outlier_ratio=0.5, seed=6)
    found = estimate_absolute_pose(
        query.points2d, query.points3d, image_size=(1024, 768), scores=query.scores, score_kind="ratio"
    )
    assert error_of(found, query) < 0.5
    assert found.camera.mean_focal == pytest.approx(query.camera.mean_focal, rel=0.02)


def test_a_wrong_focal_length_lowers_the_confidence():
    query = make_query(outlier_ratio=0.5, seed=7)
    right, wrong = (estimate(query, query.camera.adjusted(f, (0, 0), 0.0)) for f in (1.0, 1.4))
    assert right.confidence > 0.9 > 0.5 > wrong.confidence


def test_the_covariance_agrees_with_repeated_experiments():
    errors, predicted = [], []
    for seed in range(60):
        query = make_query(120, outlier_ratio=0.0, noise_px=0.0, seed=8)
        noisy = query.points2d + np.random.default_rng(seed).normal(size=query.points2d.shape)
        found = estimate_absolute_pose(noisy, query.points3d, query.camera)
        errors.append(found.t - query.t)
        predicted.append(found.covariance[3:6, 3:6])
    scatter = np.trace(np.cov(np.array(errors).T))
    assert 0.7 < np.mean([np.trace(each) for each in predicted]) / scatter < 1.6


def test_points_of_one_keypoint_count_once():
    ratios = []
    for seed in range(9, 15):
        query = make_query(300, outlier_ratio=0.3, seed=seed)
        repeated = np.repeat(np.arange(300), 3)
        once = estimate_absolute_pose(query.points2d, query.points3d, query.camera)
        thrice = estimate_absolute_pose(query.points2d[repeated], query.points3d[repeated], query.camera)
        assert error_of(thrice, query) < 0.3
        assert thrice.num_inliers > 2.5 * once.num_inliers
        ratios.append(np.trace(thrice.covariance[:3, :3]) / np.trace(once.covariance[:3, :3]))
    assert 0.7 < np.mean(ratios) < 1.4  # not a third, which would be overconfident


def test_a_right_candidate_among_wrong_ones_is_found(rng):
    query = make_query(200, outlier_ratio=0.0, seed=10)
    points2d = np.concatenate([query.points2d] * 3)
    points3d = np.concatenate([query.points3d, rng.permutation(query.points3d), rng.permutation(query.points3d)])
    found = estimate_absolute_pose(points2d, points3d, query.camera)
    assert error_of(found, query) < 0.3


@METHODS
@pytest.mark.parametrize("case", ["none", "two", "one point", "line", "random", "behind"])
def test_hopeless_data_fail_as_a_value(method, case, rng):
    query = make_query(60, outlier_ratio=0.0, seed=11)
    points2d, points3d = query.points2d, query.points3d
    if case == "none":
        points2d, points3d = np.empty((0, 2)), np.empty((0, 3))
    elif case == "two":
        points2d, points3d = points2d[:2], points3d[:2]
    elif case == "one point":
        points3d = np.ones((60, 3))
    elif case == "line":
        points3d = np.outer(rng.normal(size=60), [1.0, 2, 3])
    elif case == "random":
        points3d = rng.normal(size=(60, 3))
    found = estimate_absolute_pose(points2d, points3d, query.camera, options=Options(method=method))
    if case == "behind":
        return
    if found.success:
        assert case == "random" and (found.confidence is None or found.confidence < 0.5)
    else:
        assert found.R is None and found.covariance is None and found.num_inliers == 0
        assert found.stop_reason in ("too_few_points", "degenerate", "no_consensus")


def test_far_and_absurd_points_do_no_harm(rng):
    query = make_query(300, outlier_ratio=0.3, seed=12)
    points3d = query.points3d.copy()
    wrong = np.flatnonzero(~query.inliers)
    points3d[wrong[:20]] = 1e9 * rng.normal(size=(20, 3))
    far = np.flatnonzero(query.inliers)[:30]
    rays = homogeneous(query.camera.pixels_to_rays(query.points2d[far]))
    points3d[far] = (1e4 * rays - query.t) @ query.R
    found = estimate_absolute_pose(query.points2d, points3d, query.camera)
    assert absolute_pose_error_deg(found.R, found.t, query.R, query.t, query.points3d) < 0.3
    assert found.inliers[far].mean() > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points2d": np.zeros((10, 3))}, "points2d must have shape"),
        ({"points3d": np.zeros((10, 2))}, "points3d must have shape"),
        ({"points3d": np.zeros((9, 3))}, "same length"),
        ({"points3d": np.full((10, 3), np.nan)}, "points3d must not contain"),
        ({"camera": None}, "image_size"),
        ({"camera": np.eye(2)}, "camera: K must be 3x3"),
        ({"camera": None, "image_size": (0, 0)}, "image_size must be"),
        ({"scores": np.zeros(10)}, "score_kind"),
        ({"scores": np.zeros(9), "score_kind": "ratio"}, "scores must have shape"),
        ({"options": {"rounds": 3}}, "options must be"),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"points2d": np.zeros((10, 2)), "points3d": np.zeros((10, 3)), "camera": np.eye(3)} | change
    with pytest.raises(ValueError, match=message):
        estimate_absolute_pose(**given)


def test_the_same_seed_gives_the_same_answer():
    query = make_query(outlier_ratio=0.6, seed=13)
    first, second = (estimate(query, options=Options(seed=4)) for _ in range(2))
    np.testing.assert_array_equal(first.R, second.R)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)


def test_very_many_matches():
    query = make_query(30_000, outlier_ratio=0.5, seed=14)
    found = estimate(query)
    assert error_of(found, query) < 0.05
    assert np.mean(found.inliers == query.inliers) > 0.95


def test_the_result_is_displayed_and_saved(tmp_path):
    query = make_query(100, outlier_ratio=0.3, seed=15)
    found = estimate(query, options=Options(keep_trace=True))
    assert repr(found).startswith("AbsolutePoseResult(success, rotation")
    assert "inliers" in found._repr_html_() and "matrices" in found._repr_html_()
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["type"] == "AbsolutePoseResult" and "points3d" not in plain and len(plain["centre"]) == 3
    found.save(tmp_path / "pose.json")
    for back in (load_result(tmp_path / "pose.json"), AbsolutePoseResult.load(tmp_path / "pose.json")):
        assert isinstance(back, AbsolutePoseResult) and back.camera == found.camera
        for name in ("R", "t", "covariance", "points2d", "points3d", "inliers", "probabilities"):
            np.testing.assert_array_equal(getattr(back, name), getattr(found, name))
    assert len(back.trace) == len(found.trace) and back.trace[-1].models.shape[1:] == (3, 4)
    with pytest.raises(ValueError, match="type must be"):
        caransac.RelativePoseResult.load(tmp_path / "pose.json")


def test_refined_points_give_a_second_pose():
    query = make_query(num_points=300, outlier_ratio=0.3, noise_px=1.0, seed=4)
    exact = make_query(num_points=300, outlier_ratio=0.3, noise_px=0.05, seed=4)
    calls = []

    def refine(chosen, deviation_px):
        calls.append((chosen, deviation_px))
        moved, refined = query.points2d.copy(), np.zeros(len(query.points2d), bool)
        moved[chosen], refined[chosen] = exact.points2d[chosen], True
        information = np.where(refined, 400.0, 0.0)[:, None, None] * np.eye(2)
        return RefinedMatches(
            points2=moved, refined=refined, correlations=refined.astype(float), information=information
        )

    np.testing.assert_allclose(query.points3d, exact.points3d)
    given = caransac.estimate_absolute_pose(query.points2d, query.points3d, query.camera)
    found = caransac.estimate_absolute_pose(query.points2d, query.points3d, query.camera, refine=refine)
    (chosen, deviation_px), *_ = calls
    assert set(chosen) <= set(np.flatnonzero(given.inliers)) and 0.5 < deviation_px < 2
    assert found.num_refined == found.refinement.num_refined > 150
    assert found.noise_px < 0.2 * found.noise_before_px
    np.testing.assert_array_equal(found.refinement.given2, query.points2d)
    np.testing.assert_array_equal(found.points2d[chosen], exact.points2d[chosen])
    error, before = (np.linalg.norm(each.centre + query.R.T @ query.t) for each in (found, given))
    assert error < 0.3 * before
    assert caransac.AbsolutePoseResult.from_dict(found.to_dict(full=True)).num_refined == found.num_refined
    with pytest.raises(ValueError, match="refine must be a function"):
        caransac.estimate_absolute_pose(query.points2d, query.points3d, query.camera, refine=query)
