"""Residuals, consensus and the ranking with early rejection."""

import numpy as np
import pytest
from scenes import contaminated_scene

from caransac import Options, estimate_relative_pose, geometry, kernels
from caransac.robust.problems import Problem
from caransac.synthetic import make_pair

pytestmark = pytest.mark.kernels


def scene_with_models(rng, num_points, num_samples=300):
    x1, x2, R, t, _ = contaminated_scene(rng, num_points)
    samples = kernels.sample_uniform(np.arange(num_points), 5, num_samples, seed=1)
    models, _ = kernels.five_point(x1[samples], x2[samples])
    return x1, x2, np.concatenate([models, geometry.essential_from_pose(R, t)[None]])


def test_residuals_match_their_specification(rng):
    x1, x2, models = scene_with_models(rng, 203)
    expected = np.stack([geometry.sampson_sq(model, x1, x2) for model in models])
    assert np.allclose(kernels.residuals_sq(models, x1, x2), expected, rtol=1e-6, atol=1e-18)


@pytest.mark.parametrize("num_points", [1, 7, 16, 255, 256, 257, 1000])
def test_totals_match_their_specification(rng, num_points):
    x1, x2, models = scene_with_models(rng, max(num_points, 20))
    x1, x2 = x1[:num_points], x2[:num_points]
    index, totals = kernels.top_models(models, x1, x2, 1e-3, len(models))
    expected = geometry.msac_scores(kernels.residuals_sq(models, x1, x2), 1e-3).sum(axis=1)
    assert sorted(index) == list(range(len(models)))
    assert np.allclose(totals, expected[index], atol=1e-3 * max(1, num_points / 100))


@pytest.mark.parametrize("k", [1, 4, 32])
@pytest.mark.parametrize("num_points", [50, 700, 3000])
def test_early_rejection_changes_nothing(rng, num_points, k):
    x1, x2, models = scene_with_models(rng, num_points)
    all_index, all_totals = kernels.top_models(models, x1, x2, 1e-3, len(models))
    index, totals = kernels.top_models(models, x1, x2, 1e-3, k)
    assert np.array_equal(index, all_index[:k])
    assert np.array_equal(totals, all_totals[:k])


def test_equal_models_keep_their_order(rng):
    x1, x2, models = scene_with_models(rng, 100, 20)
    repeated = np.concatenate([models, models])
    index, _ = kernels.top_models(repeated, x1, x2, 1e-3, len(repeated))
    for i in range(len(models)):
        assert np.argmax(index == i) < np.argmax(index == i + len(models))


def test_single_precision_ranks_like_double_precision(rng):
    x1, x2, models = scene_with_models(rng, 2000, 600)
    exact = geometry.msac_scores(kernels.residuals_sq(models, x1, x2), 1e-3).sum(axis=1)
    index, _ = kernels.top_models(models, x1, x2, 1e-3, 8)
    best = np.sort(exact)[::-1][:8]
    assert np.abs(exact[index] - best).max() < 0.02, "at most models within rounding trade places"
    assert index[0] == np.argmax(exact)


def test_scores_match_their_specification(rng):
    x1, x2, models = scene_with_models(rng, 203)
    x1[7] = np.nan
    expected = geometry.msac_scores(kernels.residuals_sq(models, x1, x2), 1e-3)
    scores = kernels.msac_scores(models, x1, x2, 1e-3)
    assert np.allclose(scores, expected, atol=1e-6)
    assert np.all(scores[:, 7] == 0)


def test_pose_scores_are_zero_behind_a_camera(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 203)
    rotations, translations = np.stack([R, R, R.T]), np.stack([t, -t, t])
    models = geometry.essential_from_pose(rotations, translations)
    in_front = kernels.positive_depths(rotations, translations, x1, x2)
    scores = kernels.pose_scores(rotations, translations, x1, x2, 1e-3)
    assert scores.dtype == np.float32
    assert np.allclose(scores, kernels.msac_scores(models, x1, x2, 1e-3) * in_front, atol=1e-6)
    assert scores[1].sum() < 0.1 * scores[0].sum()


def test_spread_consensus_matches_its_definition(rng):
    scores = rng.uniform(size=(7, 150)).astype(np.float32)
    regions = rng.integers(0, 9, (2, 150))
    expected = [sum(np.sqrt(np.bincount(region, row)).sum() for region in regions) for row in scores.astype(float)]
    assert np.allclose(kernels.spread_consensus(scores, regions, 9), expected)
    with pytest.raises(ValueError, match="below num_regions"):
        kernels.spread_consensus(scores, regions, 8)
    with pytest.raises(ValueError, match="every point"):
        kernels.spread_consensus(scores[:, 1:], regions, 9)


@pytest.mark.parametrize("max_error_px", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("focal", [50.0, 1000.0, 50_000.0])
def test_single_precision_ranking_does_not_harm_the_final_pose(monkeypatch, focal, max_error_px):
    def rank_in_double(self, models, k, max_error):
        totals = kernels.msac_scores(self.matrices(models), self.points1, self.points2, max_error).sum(axis=1)
        return np.argsort(-totals, kind="stable")[:k]

    errors = {}
    for precision in ("single", "double"):
        if precision == "double":
            monkeypatch.setattr(Problem, "rank", rank_in_double)
        errors[precision] = []
        for seed in range(8):
            pair = make_pair(600, outlier_ratio=0.5, noise_px=0.3 * max_error_px, seed=seed)
            rays = [pair.camera1.pixels_to_rays(points) for points in (pair.points1, pair.points2)]
            # The same scene through a lens of another focal length: only the unit of the pixel changes.
            points = [rays[i] * focal for i in range(2)]
            threshold = max_error_px * focal / pair.camera1.fx
            K = np.diag([focal, focal, 1.0])
            result = estimate_relative_pose(*points, K, K, options=Options(method="lm-lo", max_error_px=threshold))
            errors[precision].append(geometry.pose_error_deg(result.R, result.t, pair.R, pair.t))
    assert np.allclose(errors["single"], errors["double"], atol=0.02 * max_error_px + 1e-3)


def test_points_on_both_epipoles_score_nothing():
    model = geometry.essential_from_pose(np.eye(3), [0, 0, 1.0])  # forward motion: the epipoles are the image centres
    index, totals = kernels.top_models(model[None], np.zeros((3, 2)), np.zeros((3, 2)), 1e-3, 1)
    assert index.tolist() == [0]
    assert totals.tolist() == [0]


def test_no_models_and_no_points():
    index, totals = kernels.top_models(np.zeros((0, 3, 3)), np.zeros((4, 2)), np.zeros((4, 2)), 1.0, 4)
    assert len(index) == len(totals) == 0
    assert kernels.residuals_sq(np.zeros((2, 3, 3)), np.zeros((0, 2)), np.zeros((0, 2))).shape == (2, 0)
    with pytest.raises(ValueError, match="same length"):
        kernels.residuals_sq(np.zeros((2, 3, 3)), np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="max_error_sq"):
        kernels.top_models(np.zeros((1, 3, 3)), np.zeros((4, 2)), np.zeros((4, 2)), 0.0, 4)
