"""Residuals, consensus, and ranking with early rejection."""

import numpy as np
import pytest
from scenes import contaminated_scene

from caransac import Options, estimate_relative_pose, geometry, kernels
from caransac.geometry import join_pose
from caransac.kernels import FUNDAMENTALS, POSES
from caransac.synthetic import make_pair

pytestmark = pytest.mark.kernels


def scene_with_models(rng, num_points, num_samples=300):
    """Return points, the same points packed, and essential matrices, which FUNDAMENTALS scores without cheirality."""
    x1, x2, R, t, _ = contaminated_scene(rng, num_points)
    points = kernels.pack(x1, x2)
    samples = kernels.sample_uniform(np.arange(num_points, dtype=np.int32), 5, num_samples, seed=1)
    models, _ = kernels.five_point(points, samples)
    return x1, x2, points, np.concatenate([models, geometry.essential_from_pose(R, t)[None]])


def consensus(models, points, max_error):
    return geometry.msac_scores(FUNDAMENTALS.residuals_sq(models, points), max_error).sum(axis=1)


def test_residuals_match_their_specification(rng):
    x1, x2, points, models = scene_with_models(rng, 203)
    expected = np.stack([geometry.sampson_sq(model, x1, x2) for model in models])
    assert np.allclose(FUNDAMENTALS.residuals_sq(models, points), expected, rtol=1e-6, atol=1e-18)


def test_residuals_of_poses_equal_those_of_their_essential_matrices(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 50)
    expected = geometry.sampson_sq(geometry.essential_from_pose(R, t), x1, x2)
    assert np.allclose(POSES.residuals_sq(join_pose(R, t)[None], kernels.pack(x1, x2))[0], expected, rtol=1e-6)


@pytest.mark.parametrize("num_points", [20, 255, 256, 257, 1000])
def test_models_are_ranked_by_their_consensus(rng, num_points):
    _, _, points, models = scene_with_models(rng, num_points)
    order = FUNDAMENTALS.top(models, points, 1e-3, len(models))
    assert sorted(order) == list(range(len(models)))
    ranked = consensus(models, points, 1e-3)[order]
    assert np.all(np.diff(ranked) < 1e-3 * max(1, num_points / 100)), "equal up to rounding in single precision"


@pytest.mark.parametrize("k", [1, 4, 32])
@pytest.mark.parametrize("num_points", [50, 700, 3000])
def test_early_rejection_does_not_change_the_ranking(rng, num_points, k):
    _, _, points, models = scene_with_models(rng, num_points)
    everything = FUNDAMENTALS.top(models, points, 1e-3, len(models))
    assert np.array_equal(FUNDAMENTALS.top(models, points, 1e-3, k), everything[:k])


def test_equal_models_keep_their_order(rng):
    _, _, points, models = scene_with_models(rng, 100, 20)
    repeated = np.concatenate([models, models])
    index = FUNDAMENTALS.top(repeated, points, 1e-3, len(repeated))
    for i in range(len(models)):
        assert np.argmax(index == i) < np.argmax(index == i + len(models))


def test_single_precision_ranks_like_double_precision(rng):
    _, _, points, models = scene_with_models(rng, 2000, 600)
    exact = consensus(models, points, 1e-3)
    index = FUNDAMENTALS.top(models, points, 1e-3, 8)
    best = np.sort(exact)[::-1][:8]
    assert np.abs(exact[index] - best).max() < 0.02, "only models that are equal up to rounding may change places"
    assert index[0] == np.argmax(exact)


def test_poses_are_ranked_like_their_essential_matrices(rng):
    x1, x2, _, _, _ = contaminated_scene(rng, 300)
    points = kernels.pack(x1, x2)
    poses, _ = kernels.five_point_poses(points, kernels.sample_uniform(np.arange(300, dtype=np.int32), 5, 100, seed=1))
    matrices = geometry.essential_from_pose(*geometry.split_pose(poses))
    assert np.array_equal(POSES.top(poses, points, 1e-3, 20), FUNDAMENTALS.top(matrices, points, 1e-3, 20))


@pytest.mark.parametrize("num_points", [1, 15, 16, 203])
def test_scores_match_their_specification(rng, num_points):
    _, _, points, models = scene_with_models(rng, 203)
    points = points.subset(np.arange(num_points, dtype=np.int32))
    expected = geometry.msac_scores(FUNDAMENTALS.residuals_sq(models, points), 1e-3)
    scores = FUNDAMENTALS.msac_scores(models, points, 1e-3)
    assert scores.dtype == np.float32
    assert np.allclose(scores, expected, atol=1e-6)


def test_scores_of_poses_are_zero_behind_a_camera(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 203)
    rotations, translations = np.stack([R, R, R.T]), np.stack([t, -t, t])
    poses, points = join_pose(rotations, translations), kernels.pack(x1, x2)
    in_front = kernels.positive_depths(poses, points)
    scores = POSES.msac_scores(poses, points, 1e-3)
    everywhere = FUNDAMENTALS.msac_scores(geometry.essential_from_pose(rotations, translations), points, 1e-3)
    assert np.allclose(scores, everywhere * in_front, atol=1e-6)
    assert scores[1].sum() < 0.1 * scores[0].sum()


@pytest.mark.parametrize("sharpness", [0.0, 7.0])
@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
def test_spread_consensus_matches_its_definition(rng, kind, sharpness):
    x1, x2, R, t, _ = contaminated_scene(rng, 150)
    points = kernels.pack(x1, x2)
    models = np.stack([join_pose(R, t), join_pose(R, -t), join_pose(R.T, t)])
    models = models if kind is POSES else geometry.essential_from_pose(*geometry.split_pose(models))
    weights = rng.uniform(0, 1, 150).astype(np.float32)
    regions = kernels.Regions(points, weights, sharpness)
    scores = kind.msac_scores(models, points, 2e-3).astype(float)
    # Cauchy's kernel of the distances. The squared distance relative to the threshold is 1 - score.
    scores = weights * np.where(scores > 0, 1 / (1 + sharpness * (1 - scores)), 0)
    expected = [sum(np.sqrt(np.bincount(cells, row)).sum() for cells in regions.cells) for row in scores]
    assert np.allclose(kind.spread_consensus(models, points, 2e-3, regions), expected, rtol=1e-4)  # single precision
    with pytest.raises(ValueError, match="regions must be those of the correspondences"):
        kind.spread_consensus(models, points.subset(np.arange(9, dtype=np.int32)), 2e-3, regions)


@pytest.mark.parametrize("max_error_px", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("focal", [50.0, 1000.0, 50_000.0])
def test_single_precision_ranking_does_not_harm_the_final_pose(monkeypatch, focal, max_error_px):
    def promising_in_double(self, models, correspondences, max_error, count, options):
        residuals_sq = self.residuals_sq(models, correspondences)
        totals = geometry.msac_scores(residuals_sq, max_error).sum(axis=1)
        return self.refine(models[np.argsort(-totals, kind="stable")[:count]], correspondences, options)[0]

    errors = {}
    for precision in ("single", "double"):
        if precision == "double":
            monkeypatch.setattr(kernels.ModelKernels, "promising", promising_in_double)
        errors[precision] = []
        for seed in range(8):
            pair = make_pair(600, outlier_ratio=0.5, noise_px=0.3 * max_error_px, seed=seed)
            rays = [pair.camera1.pixels_to_rays(points) for points in (pair.points1, pair.points2)]
            # The same scene with another focal length: only the unit of the pixels changes.
            points = [rays[i] * focal for i in range(2)]
            threshold = max_error_px * focal / pair.camera1.fx
            K = np.diag([focal, focal, 1.0])
            result = estimate_relative_pose(*points, K, K, options=Options(method="lm-lo", max_error_px=threshold))
            errors[precision].append(geometry.pose_error_deg(result.R, result.t, pair.R, pair.t))
    assert np.allclose(errors["single"], errors["double"], atol=0.02 * max_error_px + 1e-3)


def test_points_on_both_epipoles_have_score_zero():
    model = geometry.essential_from_pose(np.eye(3), [0, 0, 1.0])  # forward motion: the epipoles are the image centres
    points = kernels.pack(np.zeros((3, 2)), np.zeros((3, 2)))
    assert FUNDAMENTALS.top(model[None], points, 1e-3, 1).tolist() == [0]
    assert FUNDAMENTALS.msac_scores(model[None], points, 1e-3).tolist() == [[0, 0, 0]]


def test_no_models_and_no_points():
    points, nothing = (kernels.pack(np.zeros((count, 2)), np.zeros((count, 2))) for count in (4, 0))
    assert len(FUNDAMENTALS.top(np.zeros((0, 3, 3)), points, 1.0, 4)) == 0
    assert FUNDAMENTALS.residuals_sq(np.zeros((2, 3, 3)), nothing).shape == (2, 0)
    for verb in (FUNDAMENTALS.top, FUNDAMENTALS.msac_scores):
        with pytest.raises(ValueError, match="max_error must be positive"):
            verb(np.zeros((1, 3, 3)), points, 0.0, *([4] if verb == FUNDAMENTALS.top else []))
    with pytest.raises(TypeError):
        POSES.residuals_sq(np.zeros((1, 3, 3)), points)
