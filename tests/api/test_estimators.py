"""The public calls: accuracy, conventions of input and output, determinism."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from estimates import METHODS, solve

import caransac
from caransac import Camera, Options, estimate_relative_pose
from caransac.geometry import (
    essential_from_pose,
    fundamental_from_essential,
    pose_error_deg,
    sampson_sq,
)
from caransac.learned.state_network import load_network
from caransac.synthetic import make_pair


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_the_pose_is_found_among_outliers(method, seed):
    pair = make_pair(1500, outlier_ratio=0.7, noise_px=0.5, seed=seed)
    result = solve("pose", pair, scores=pair.scores, score_kind="ratio", options=Options(method=method))
    assert result.success
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 1.0
    assert np.allclose(result.R @ result.R.T, np.eye(3), atol=1e-12)
    assert np.linalg.norm(result.t) == pytest.approx(1)
    assert np.allclose(result.E, essential_from_pose(result.R, result.t))
    assert result.inliers.dtype == bool
    assert result.inliers.shape == (1500,)
    assert result.num_inliers == result.inliers.sum()
    assert np.mean(pair.inliers[result.inliers]) > 0.95
    assert np.mean(result.inliers[pair.inliers]) > 0.85
    assert 0 < result.consensus <= result.num_inliers
    assert result.elapsed_s > 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_the_fundamental_matrix_is_found_among_outliers(method, seed):
    pair = make_pair(1500, outlier_ratio=0.6, noise_px=0.5, seed=seed)
    result = solve(
        "fundamental", pair, scores=pair.scores, score_kind="ratio", options=Options(method=method, rounds=8)
    )
    assert result.success
    assert np.linalg.norm(result.F) == pytest.approx(1)
    assert abs(np.linalg.det(result.F / np.abs(result.F).max())) < 1e-10
    truth = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    clean = make_pair(1500, outlier_ratio=0, noise_px=0, seed=seed)
    assert np.allclose(sampson_sq(truth, clean.points1, clean.points2), 0, atol=1e-12)
    assert np.sqrt(np.median(sampson_sq(result.F, clean.points1, clean.points2))) < 0.5
    assert np.mean(pair.inliers[result.inliers]) > 0.9


def test_distorted_cameras_are_undistorted():
    pair = make_pair(600, outlier_ratio=0.3, noise_px=0.2, seed=11)
    focal = pair.camera1.fx
    lens = {"model": "RADIAL", "width": 1024, "height": 768, "params": [focal, 512, 384, -0.2, 0.05]}
    rays1, rays2 = (pair.camera1.pixels_to_rays(points) for points in (pair.points1, pair.points2))
    seen1, seen2 = (Camera.from_dict(lens).rays_to_pixels(rays) for rays in (rays1, rays2))
    result = estimate_relative_pose(seen1, seen2, lens, lens)
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.5
    undistorted = estimate_relative_pose(seen1, seen2, pair.camera1.K, pair.camera1.K)
    assert undistorted.noise_px > 2 * result.noise_px  # a camera without distortion sees the distortion as noise
    assert undistorted.confidence < result.confidence


def test_points_the_lens_cannot_show_are_outliers():
    pair = make_pair(300, outlier_ratio=0.1, noise_px=0.2, seed=12)
    lens = Camera("SIMPLE_RADIAL", (pair.camera1.fx, 512, 384, -0.05))
    points1 = lens.rays_to_pixels(pair.camera1.pixels_to_rays(pair.points1))
    points1[5] = (1e5, 1e5)
    result = estimate_relative_pose(points1, pair.points2, lens, pair.camera2, scores=pair.scores, score_kind="ratio")
    assert result.success
    assert not result.inliers[5]
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 1.0


def test_a_pinhole_matrix_and_a_dict_give_the_same():
    pair = make_pair(200, seed=3)
    forms = pair.camera1, pair.camera1.K, pair.camera1.to_dict()
    results = [estimate_relative_pose(pair.points1, pair.points2, form, form) for form in forms]
    assert all(np.array_equal(result.E, results[0].E) for result in results)


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
def test_swapping_the_images_inverts_the_answer(problem):
    pair = make_pair(800, outlier_ratio=0.3, noise_px=0.3, seed=4)
    swapped = dataclasses.replace(pair, points1=pair.points2, points2=pair.points1)
    forth, back = solve(problem, pair), solve(problem, swapped)
    if problem == "pose":
        assert pose_error_deg(back.R.T, -back.R.T @ back.t, forth.R, forth.t) < 0.5
    else:
        assert np.mean(forth.inliers == back.inliers) > 0.97


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
def test_dtype_and_strides_do_not_matter(problem):
    pair = make_pair(400, outlier_ratio=0.4, seed=5)
    rounded = dataclasses.replace(pair, points1=np.round(pair.points1), points2=np.round(pair.points2))
    expected = solve(problem, rounded)
    both = np.c_[rounded.points1, rounded.points2]
    for points1, points2 in [
        (rounded.points1.astype(np.float32), rounded.points2.astype(np.float16)),
        (rounded.points1.astype(np.int64), rounded.points2.astype(np.uint16)),
        (np.asfortranarray(rounded.points1), both[:, 2:]),
        (rounded.points1[::-1].copy()[::-1], np.repeat(rounded.points2, 2, axis=0)[::2]),
        (rounded.points1.tolist(), rounded.points2.astype(">f8")),
    ]:
        result = solve(problem, dataclasses.replace(rounded, points1=points1, points2=points2))
        assert np.array_equal(result.inliers, expected.inliers)
        assert result.consensus == expected.consensus


def test_inputs_are_not_written_to():
    pair = make_pair(300, seed=6)
    before = [array.copy() for array in (pair.points1, pair.points2, pair.scores)]
    for array in (pair.points1, pair.points2, pair.scores):
        array.setflags(write=False)
    solve("pose", pair, scores=pair.scores, score_kind="ratio")
    solve("fundamental", pair, scores=pair.scores, score_kind="ratio")
    assert all(np.array_equal(a, b) for a, b in zip(before, (pair.points1, pair.points2, pair.scores), strict=True))


def test_scores_have_a_direction():
    pair = make_pair(3000, outlier_ratio=0.9, noise_px=0.5, seed=8)
    budget = Options(method="lm-lo", rounds=1, samples_per_round=64, max_ratio=2.0, early_stop=False)
    right = solve("pose", pair, scores=pair.scores, score_kind="ratio", options=budget)
    as_confidence = solve("pose", pair, scores=1 - pair.scores, score_kind="confidence", options=budget)
    wrong = solve("pose", pair, scores=1 - pair.scores, score_kind="ratio", options=budget)
    assert np.array_equal(right.E, as_confidence.E)
    assert right.num_inliers > 2 * wrong.num_inliers


def test_filtered_matches_are_still_reported():
    pair = make_pair(1000, outlier_ratio=0.5, noise_px=0.3, seed=9)
    result = solve("pose", pair, scores=pair.scores, score_kind="ratio", options=Options(method="lm-lo", max_ratio=0.5))
    beyond = pair.scores >= 0.5
    assert result.inliers[beyond & pair.inliers].mean() > 0.9
    few = solve("pose", pair, scores=pair.scores, score_kind="ratio", options=Options(method="lm-lo", max_ratio=1e-6))
    assert few.success, "the best 20 matches always remain"


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bits_from_any_number_of_threads(problem, method):
    pairs = [make_pair(500, outlier_ratio=0.5, seed=seed) for seed in range(4)] * 4

    def run(pair):
        result = solve(problem, pair, scores=pair.scores, score_kind="ratio", options=Options(method=method, seed=3))
        model = result.E if problem == "pose" else result.F
        return model.tobytes() + result.inliers.tobytes() + np.float64(result.consensus).tobytes()

    alone = [run(pair) for pair in pairs]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(run, pairs))
    assert alone == together
    assert alone[:4] == alone[4:8]


@pytest.mark.parametrize("method", METHODS)
def test_early_stop_off_runs_exactly_the_budget(method):
    pair = make_pair(500, outlier_ratio=0.2, seed=1)
    for rounds, samples in ((4, 256), (3, 100), (1, 7)):
        options = Options(method=method, rounds=rounds, samples_per_round=samples, early_stop=False)
        result = solve("pose", pair, options=options)
        assert result.num_hypotheses == rounds * samples
        assert result.stop_reason == "budget"


@pytest.mark.parametrize("method", METHODS)
def test_early_stop_saves_samples_on_easy_pairs_only(method):
    easy, hard = make_pair(500, outlier_ratio=0.1, seed=1), make_pair(500, outlier_ratio=0.98, seed=1)
    options = Options(method=method)
    assert solve("pose", easy, options=options).stop_reason == "early_stop"
    assert solve("pose", easy, options=options).num_hypotheses < 1024
    assert solve("pose", hard, options=options).stop_reason == "budget"


def test_probabilities_separate_right_and_wrong_matches():
    pair = make_pair(1500, outlier_ratio=0.7, noise_px=0.3, seed=4)
    probabilities = solve("pose", pair, scores=pair.scores, score_kind="ratio").probabilities
    assert probabilities.shape == (1500,)
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    assert probabilities[pair.inliers].mean() > 0.8
    assert probabilities[~pair.inliers].mean() < 0.05


def test_missing_and_foreign_weights_are_refused(tmp_path):
    pair = make_pair(100)
    with pytest.raises(ValueError, match="weights: the package has no weights 'nothing', only absolute"):
        solve("pose", pair, options=Options(weights="nothing"))
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    (tmp_path / "empty.npz").touch()
    (tmp_path / "half.npz").write_bytes((tmp_path / "foreign.npz").read_bytes()[:100])
    for name in ("foreign", "empty", "half"):
        with pytest.raises(ValueError, match="not a caransac weights file"):
            solve("pose", pair, options=Options(weights=str(tmp_path / f"{name}.npz")))


def test_a_fundamental_matrix_and_the_cameras_give_the_pose():
    pair = make_pair(400, outlier_ratio=0.1, noise_px=0.2, seed=6)
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    R, t = caransac.pose_from_fundamental(F, pair.points1, pair.points2, pair.camera1, pair.camera2.K)
    assert pose_error_deg(R, t, pair.R, pair.t) < 1e-4
    with pytest.raises(ValueError, match="F must not be zero"):
        caransac.pose_from_fundamental(np.zeros((3, 3)), pair.points1, pair.points2, pair.camera1, pair.camera2)
    with pytest.raises(ValueError, match="points1 must not be empty"):
        caransac.pose_from_fundamental(F, np.empty((0, 2)), np.empty((0, 2)), pair.camera1, pair.camera2)
    with pytest.raises(ValueError, match="F must have shape"):
        caransac.pose_from_fundamental(F[:2], pair.points1, pair.points2, pair.camera1, pair.camera2)


def test_features_must_fit_the_weights(tmp_path):
    pair = make_pair(200, outlier_ratio=0.3, seed=6)
    features = np.ones((200, 3))
    with pytest.raises(ValueError, match=r"shape \(N, 0\) for weights 'default'.*additional numbers for each match"):
        solve("pose", pair, features=features)
    with pytest.raises(ValueError, match=r"features must have shape \(200, d\).*not keypoints or descriptors"):
        solve("pose", pair, features=features[:10])
    shipped = dict(load_network("default").weights)
    first = shipped["init.0.weight"]
    shipped["init.0.weight"] = np.concatenate([first, np.zeros((3, first.shape[1]), np.float32)])
    np.savez(tmp_path / "more.npz", **shipped)
    options = Options(weights=str(tmp_path / "more.npz"))
    assert np.array_equal(solve("pose", pair, features=features, options=options).R, solve("pose", pair).R)
    with pytest.raises(ValueError, match="got none"):
        solve("pose", pair, options=options)
