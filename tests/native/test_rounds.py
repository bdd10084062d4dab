"""The combined kernels for the steps of a round give the same results as their parts."""

import numpy as np
import pytest
from scenes import contaminated_scene

from caransac import kernels
from caransac.geometry import essential_from_pose, join_pose, mean_pose, split_pose
from caransac.kernels import FUNDAMENTALS, HOMOGRAPHIES, POSES, RAY_POSES, RefineOptions

SAME = 0.95


@pytest.fixture
def scene(rng):
    """Points, and good and bad poses from samples of them."""
    x1, x2, *_ = contaminated_scene(rng, 300, outlier_ratio=0.4)
    points = kernels.pack(x1, x2)
    samples = kernels.sample_uniform(np.arange(300, dtype=np.int32), 5, 60, seed=1)
    return points, kernels.five_point_poses(points, samples)[0]


def as_kind(kind, poses):
    return poses if kind is POSES else essential_from_pose(*split_pose(poses))


@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
def test_promising_models_are_the_best_ones_refined(scene, kind):
    points, models, options = scene[0], as_kind(kind, scene[1]), RefineOptions(max_steps=3)
    expected, _ = kind.refine(models[kind.top(models, points, 3e-3, 4)], points, options)
    assert np.array_equal(kind.promising(models, points, 3e-3, 4, options), expected)
    assert kind.promising(models[:0], points, 3e-3, 4, options).shape == (0, 3, kind.columns)
    assert len(kind.promising(models[:2], points, 3e-3, 4, options)) == 2


def distinct(scores, count, same=SAME):
    """Return the indices of rows of scores that differ from all rows kept before."""
    kept = []
    lengths = np.maximum(np.linalg.norm(scores, axis=1), 1e-6)
    for i, row in enumerate(scores):
        if len(kept) < count and all(row @ scores[k] < same * lengths[i] * lengths[k] for k in kept):
            kept.append(i)
    return kept


def spread_consensus(scores, regions, weights, sharpness):
    """Return the consensus that ranks models, from rows of scores (m, n)."""
    scores = scores.astype(float)
    weighted = weights * np.where(scores > 0, 1 / (1 + sharpness * (1 - scores)), 0)
    return np.array([sum(np.sqrt(np.bincount(cells, row)).sum() for cells in regions.cells) for row in weighted])


@pytest.mark.parametrize("kind", [POSES, FUNDAMENTALS])
@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("same", [0.5, SAME])
@pytest.mark.parametrize("sharpness", [0.0, 7.0])
def test_distinct_models_come_by_their_weighted_consensus(scene, rng, kind, count, same, sharpness):
    points, models = scene[0], as_kind(kind, scene[1])
    models = np.concatenate([models, kind.refine(models[:9], points, RefineOptions(loss_scale=2e-3))[0]])
    scores = kind.msac_scores(models, points, 3e-3)
    orders = []
    for weights in (np.ones(300, np.float32), rng.uniform(size=300).astype(np.float32) ** 2):
        regions = kernels.Regions(points, weights, sharpness)
        totals = kind.spread_consensus(models, points, 3e-3, regions)
        assert np.allclose(totals, spread_consensus(scores, regions, weights, sharpness), rtol=0.01)  # single precision
        order = np.argsort(-totals, kind="stable")
        kept = order[distinct(scores[order], count, same)]
        assert len(kept) < len(models)
        assert np.array_equal(kind.most_distinct(models, points, 3e-3, regions, count, same), models[kept])
        orders.append(order.tolist())
    assert orders[0] != orders[1]


def test_matches_of_no_weight_do_not_rank_models(scene):
    """A model that has only matches of weight zero comes last."""
    points, poses = scene
    everything = kernels.Regions(points, np.ones(300, np.float32), 7.0)
    best = POSES.most_distinct(poses, points, 3e-3, everything, 1, SAME)
    supporters = POSES.msac_scores(best, points, 3e-3)[0] > 0
    others = kernels.Regions(points, (~supporters).astype(np.float32), 7.0)
    assert POSES.spread_consensus(best, points, 3e-3, others) == 0
    totals = POSES.spread_consensus(
        POSES.most_distinct(poses, points, 3e-3, others, len(poses), 1.1), points, 3e-3, others
    )
    assert len(totals) == len(poses)  # a cosine is always below 1.1, so no model is dropped
    assert np.all(np.diff(totals) <= 0)
    assert totals[0] > 0
    assert totals[-1] == 0


def test_models_without_scores_are_all_distinct(scene):
    points, far = scene[0], np.tile(np.eye(3), (3, 1, 1))
    regions = kernels.Regions(points, np.ones(300, np.float32), 7.0)
    assert not HOMOGRAPHIES.msac_scores(far, points, 1e-9).any()
    assert len(HOMOGRAPHIES.most_distinct(far, points, 1e-9, regions, 2, SAME)) == 2
    assert HOMOGRAPHIES.most_distinct(far[:0], points, 1e-9, regions, 2, SAME).shape == (0, 3, 3)


@pytest.mark.parametrize("kind", [POSES, RAY_POSES])
@pytest.mark.parametrize(("reach", "exponent"), [(0.05, 50.0), (0.5, 2.0), (2.5, 0.0)])
def test_the_mean_is_of_the_poses_that_agree_with_the_first(rng, kind, reach, exponent):
    x1, x2, R, t, _ = contaminated_scene(rng, 300, outlier_ratio=0.2)
    points, truth = kernels.pack(x1, x2), join_pose(R, t)
    poses = np.stack([kind.retract(truth, size * rng.normal(size=5)) for size in (0.01, 0.01, 0.02, 0.02, 0.2, 0.9)])
    regions = kernels.Regions(points, np.ones(300, np.float32), 7.0)
    agreeing = poses[np.linalg.norm(poses[:, :, 3] - poses[0, :, 3], axis=1) < reach]
    consensus = kind.spread_consensus(agreeing, points, 0.1, regions)
    expected = mean_pose(agreeing, (consensus / consensus.max()) ** exponent)
    found = kind.mean_of_agreeing(poses, points, 0.1, regions, reach, exponent)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    assert len(agreeing) > 1
    assert (len(agreeing) < len(poses)) == (reach < 1)


@pytest.mark.parametrize("entry", [np.nan, np.inf, -1e300])
def test_poses_of_no_numbers_are_their_own_mean(scene, entry):
    points, poses = scene
    regions = kernels.Regions(points, np.ones(300, np.float32), 7.0)
    absurd = np.full((1, 3, 4), entry)
    assert np.array_equal(POSES.mean_of_agreeing(absurd, points, 1.0, regions, 0.1, 50.0), absurd[0], equal_nan=True)
    mixed = np.concatenate([poses[:1], absurd])
    np.testing.assert_allclose(POSES.mean_of_agreeing(mixed, points, 1.0, regions, 0.1, 50.0), poses[0], atol=1e-12)


def at_distances(distances, dimensions, rng):
    """Create points at given distances from a model. Return them, the model, and its kind."""
    points1 = rng.normal(size=(len(distances), 2))
    # A camera that moves sideways: lines are horizontal, and the error is divided between both points.
    if dimensions == 1:
        offset = np.stack([rng.normal(size=len(distances)), 2**0.5 * distances], axis=1)
        return kernels.pack(points1, points1 + offset), essential_from_pose(np.eye(3), [1.0, 0, 0]), FUNDAMENTALS
    angles = rng.uniform(0, 2 * np.pi, len(distances))
    offset = distances[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return kernels.pack(points1, points1 + offset), np.eye(3), HOMOGRAPHIES


@pytest.mark.parametrize("dimensions", [1, 2])
def test_right_matches_are_separated_from_the_background(rng, dimensions):
    right = np.linalg.norm(rng.normal(size=(2000, dimensions)), axis=1)
    wrong = 20 * rng.random(1500) ** (1 / dimensions)  # uniform in the volume
    points, model, kind = at_distances(np.concatenate([right, wrong]), dimensions, rng)
    count, median = kind.right_matches(model, points, 20.0, dimensions)
    assert count == pytest.approx(2000, rel=0.05)
    assert median == pytest.approx(np.median(right), rel=0.05)


def test_a_background_without_right_matches_gives_few_matches(rng):
    points, model, kind = at_distances(rng.uniform(0, 10, 1000), 1, rng)
    assert kind.right_matches(model, points, 10.0, 1)[0] < 80
    assert kind.right_matches(model, points.subset(np.empty(0, np.int32)), 10.0, 1) == (0.0, 10.0)


def test_wrong_arguments_are_named(scene):
    points, poses = scene
    regions = kernels.Regions(points, np.ones(300, np.float32), 7.0)
    with pytest.raises(ValueError, match="max_error must be positive"):
        POSES.promising(poses, points, 0.0, 2, RefineOptions())
    with pytest.raises(ValueError, match="count must be positive"):
        POSES.promising(poses, points, 1.0, 0, RefineOptions())
    with pytest.raises(ValueError, match="max_error must be positive"):
        POSES.most_distinct(poses, points, -1.0, regions, 2, SAME)
    with pytest.raises(ValueError, match="count must be positive"):
        POSES.most_distinct(poses, points, 1.0, regions, 0, SAME)
    with pytest.raises(ValueError, match="regions must be those"):
        POSES.most_distinct(poses, points.subset(np.arange(9, dtype=np.int32)), 1.0, regions, 2, SAME)
    with pytest.raises(ValueError, match="models must not be empty"):
        POSES.mean_of_agreeing(poses[:0], points, 1.0, regions, 0.1, 50.0)
    with pytest.raises(ValueError, match="regions must be those"):
        POSES.mean_of_agreeing(poses, points.subset(np.arange(9, dtype=np.int32)), 1.0, regions, 0.1, 50.0)
    with pytest.raises(ValueError, match="near must be positive"):
        POSES.right_matches(poses[0], points, 0.0, 1)
    with pytest.raises(ValueError, match="dimensions must be 1 or 2"):
        POSES.right_matches(poses[0], points, 1.0, 3)
