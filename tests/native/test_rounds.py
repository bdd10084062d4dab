"""The steps of a round, each in one call: the same as its parts one by one."""

import numpy as np
import pytest
from scenes import contaminated_scene

from caransac import kernels
from caransac.geometry import essential_from_pose, split_pose
from caransac.kernels import FUNDAMENTALS, HOMOGRAPHIES, POSES, RefineOptions

SAME = 0.95


@pytest.fixture
def scene(rng):
    """Points, and poses of samples of them, good and bad."""
    x1, x2, *_ = contaminated_scene(rng, 300, outlier_ratio=0.4)
    points = kernels.pack(x1, x2)
    samples = kernels.sample_uniform(np.arange(300, dtype=np.int32), 5, 60, seed=1)
    return points, kernels.five_point_poses(points, samples)[0]


def as_kind(kind, poses):
    return poses if kind is POSES else essential_from_pose(*split_pose(poses))


@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
def test_promising_models_are_compared_twice_and_refined(scene, kind):
    fine, models = scene[0], as_kind(kind, scene[1])
    coarse, options = fine.subset(np.arange(0, 300, 5, dtype=np.int32)), RefineOptions(max_steps=3)
    kept = models[kind.top(models, coarse, 3e-3, 12)]
    kept = kept[kind.top(kept, fine, 3e-3, 4)]
    expected, _ = kind.refine(kept, fine, options)
    assert np.array_equal(kind.promising(models, coarse, fine, 3e-3, 12, 4, options), expected)
    assert kind.promising(models[:0], coarse, fine, 3e-3, 12, 4, options).shape == (0, *kind.shape)
    assert len(kind.promising(models[:2], coarse, fine, 3e-3, 12, 4, options)) == 2


def distinct(scores, count):
    """Rows of scores that differ from those before."""
    kept = []
    lengths = np.maximum(np.linalg.norm(scores, axis=1), 1e-6)
    for i, row in enumerate(scores):
        if len(kept) < count and all(row @ scores[k] < SAME * lengths[i] * lengths[k] for k in kept):
            kept.append(i)
    return kept


@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_attention_goes_to_distinct_models_with_the_largest_consensus(scene, kind, count):
    points, models = scene[0], as_kind(kind, scene[1])
    models = np.concatenate([models, kind.refine(models[:9], points, RefineOptions(loss_scale=2e-3))[0]])
    regions = kernels.Regions(points)
    found, scores = kind.attend(models, points, regions, 1e-3, 3e-3, 20, count, SAME)
    finalists = models[np.argsort(-kind.spread_consensus(models, points, 1e-3, regions), kind="stable")[:20]]
    all_scores = kind.msac_scores(finalists, points, 3e-3)
    kept = distinct(all_scores, count)
    assert len(kept) < 20
    assert np.array_equal(found, finalists[kept])
    assert np.array_equal(scores, all_scores[kept])


def test_models_without_scores_are_all_distinct(scene):
    points, far = scene[0], np.tile(np.eye(3), (3, 1, 1))
    found, scores = HOMOGRAPHIES.attend(far, points, kernels.Regions(points), 1e-9, 1e-9, 5, 2, SAME)
    assert len(found) == 2
    assert not scores.any()
    nothing, none = HOMOGRAPHIES.attend(far[:0], points, kernels.Regions(points), 1e-9, 1e-9, 5, 2, SAME)
    assert nothing.shape == (0, 3, 3)
    assert none.shape == (0, 300)


def at_distances(distances, dimensions, rng):
    """Points at the given distances from a model, the model, and its kind."""
    points1 = rng.normal(size=(len(distances), 2))
    if dimensions == 1:  # a camera that moves sideways: the lines are horizontal, and both points share the error
        offset = np.stack([rng.normal(size=len(distances)), 2**0.5 * distances], axis=1)
        return kernels.pack(points1, points1 + offset), essential_from_pose(np.eye(3), [1.0, 0, 0]), FUNDAMENTALS
    angles = rng.uniform(0, 2 * np.pi, len(distances))
    offset = distances[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return kernels.pack(points1, points1 + offset), np.eye(3), HOMOGRAPHIES


@pytest.mark.parametrize("dimensions", [1, 2])
def test_right_matches_are_told_from_the_background(rng, dimensions):
    right = np.linalg.norm(rng.normal(size=(2000, dimensions)), axis=1)
    wrong = 20 * rng.random(1500) ** (1 / dimensions)  # uniform in the volume
    points, model, kind = at_distances(np.concatenate([right, wrong]), dimensions, rng)
    count, median = kind.right_matches(model, points, 20.0, dimensions)
    assert count == pytest.approx(2000, rel=0.05)
    assert median == pytest.approx(np.median(right), rel=0.05)


def test_background_alone_is_no_match(rng):
    points, model, kind = at_distances(rng.uniform(0, 10, 1000), 1, rng)
    assert kind.right_matches(model, points, 10.0, 1)[0] < 80
    assert kind.right_matches(model, points.subset(np.empty(0, np.int32)), 10.0, 1) == (0.0, 10.0)


@pytest.mark.parametrize("num_points", [1, 2, 7, 100])
def test_the_near_median_is_that_of_the_near_ones(rng, num_points):
    distances = rng.uniform(0, 2, num_points)
    distances[0] = 0.5
    points, model, kind = at_distances(distances, 1, rng)
    near = distances[distances < 1]
    count, median = kind.near_median(model, points, 1.0)
    assert count == len(near)
    assert median == pytest.approx(np.median(near))
    assert kind.near_median(model, points, 1e-9) == (0, 1e-9)


def test_wrong_arguments_are_named(scene):
    points, poses = scene
    regions = kernels.Regions(points)
    with pytest.raises(ValueError, match="max_error must be positive"):
        POSES.promising(poses, points, points, 0.0, 4, 2, RefineOptions())
    with pytest.raises(ValueError, match="shortlist and count must be positive"):
        POSES.promising(poses, points, points, 1.0, 4, 0, RefineOptions())
    with pytest.raises(ValueError, match="search_error and max_error must be positive"):
        POSES.attend(poses, points, regions, 1.0, -1.0, 4, 2, SAME)
    with pytest.raises(ValueError, match="finalists and count must be positive"):
        POSES.attend(poses, points, regions, 1.0, 1.0, 4, 0, SAME)
    with pytest.raises(ValueError, match="regions must be those"):
        POSES.attend(poses, points.subset(np.arange(9, dtype=np.int32)), regions, 1.0, 1.0, 4, 2, SAME)
    with pytest.raises(ValueError, match="near must be positive"):
        POSES.right_matches(poses[0], points, 0.0, 1)
    with pytest.raises(ValueError, match="dimensions must be 1 or 2"):
        POSES.right_matches(poses[0], points, 1.0, 3)
