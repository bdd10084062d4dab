"""Synthetic pairs have the requested properties."""

import numpy as np
import pytest

from caransac import kernels
from caransac.geometry import essential_from_pose, fundamental_from_essential, sampson_sq
from caransac_lab.synthetic import random_pair, realistic
from caransac_lab.synthetic.scores import BINARY, ROOTSIFT

SHARE_THAT_STAYS_CLOSE = 8  # index of the feature: share of a match's neighbours that stay close to it


def distances_px(pair):
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    return np.sqrt(sampson_sq(F, pair.points1, pair.points2))


def test_random_inliers_obey_the_true_geometry(rng):
    medians = []
    for _ in range(20):
        pair = random_pair(rng, num_points=400, inlier_ratio=0.5)
        right, wrong = (distances_px(pair)[chosen] for chosen in (pair.inliers, ~pair.inliers))
        medians.append(np.median(right))
        # The limits are twice the largest noise for the median, and the worst case of octave and tail for the maximum.
        assert medians[-1] < 4
        assert right.max() < 2 * 2**3 * 6 / 1.29 * 2
        assert np.median(wrong) > 5 * medians[-1]
        assert np.isclose(np.linalg.norm(pair.t), 1)
        assert np.allclose(pair.R @ pair.R.T, np.eye(3))
    assert 0.1 < np.median(medians) < 1


@pytest.mark.parametrize(
    ("num_points", "inlier_ratio"), [(100, 0.02), (8000, 0.95), (8000, 0.02), (37, 0.0), (37, 1.0), (1, 1.0), (1, 0.0)]
)
@pytest.mark.parametrize("score_kind", ["ratio", "confidence"])
def test_requested_properties_are_met(rng, num_points, inlier_ratio, score_kind):
    for _ in range(2):
        pair = random_pair(rng, num_points=num_points, inlier_ratio=inlier_ratio, score_kind=score_kind)
        assert pair.points1.shape == pair.points2.shape == (num_points, 2)
        assert pair.scores.shape == pair.inliers.shape == (num_points,)
        assert pair.inliers.dtype == bool
        assert pair.inliers.sum() == round(num_points * inlier_ratio)
        assert pair.score_kind == score_kind


def test_other_properties_vary_within_their_ranges(rng):
    pairs = [random_pair(rng) for _ in range(60)]
    sizes, ratios = (np.array(v) for v in zip(*((len(p.inliers), p.inliers.mean()) for p in pairs), strict=True))
    assert 100 <= sizes.min() < 250
    assert 3000 < sizes.max() <= 8000
    assert 0.015 < ratios.min() < 0.06
    assert 0.5 < ratios.max() <= 0.96
    assert 0.1 < np.median(ratios) < 0.35
    assert {pair.score_kind for pair in pairs} == {"ratio", "confidence"}
    assert {pair.camera1 == pair.camera2 for pair in pairs} == {True, False}
    assert {pair.camera1.width > pair.camera1.height for pair in pairs} == {True, False}
    for pair in pairs:
        assert pair.inliers.sum() >= 12
        assert np.all((pair.scores >= 0) & (pair.scores <= 1))
        for points, camera in ((pair.points1, pair.camera1), (pair.points2, pair.camera2)):
            assert np.all((points >= 0) & (points <= (camera.width, camera.height)))


def test_pairs_depend_only_on_the_generator():
    first, again, other = (random_pair(np.random.default_rng(seed)) for seed in (5, 5, 6))
    for name in ("points1", "points2", "scores", "R", "t", "inliers"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert (first.camera1, first.camera2, first.score_kind) == (again.camera1, again.camera2, again.score_kind)
    assert not np.array_equal(first.R, other.R)


@pytest.mark.parametrize(("score_kind", "sign"), [("ratio", 1), ("confidence", -1)])
def test_right_matches_have_better_scores_on_average(rng, score_kind, sign):
    pairs = [random_pair(rng, num_points=600, inlier_ratio=0.3, score_kind=score_kind) for _ in range(20)]
    gaps = [sign * (p.scores[~p.inliers].mean() - p.scores[p.inliers].mean()) for p in pairs]
    assert np.mean(gaps) > 0.05
    assert np.mean(np.array(gaps) > 0) > 0.9


def test_harder_pairs_have_worse_ratios(rng):
    def mean_ratio(inlier_ratio):
        pairs = [random_pair(rng, num_points=150, inlier_ratio=inlier_ratio, score_kind="ratio") for _ in range(20)]
        return np.mean([pair.scores[pair.inliers].mean() for pair in pairs])

    assert mean_ratio(0.05) > mean_ratio(0.8) + 0.1


def test_right_matches_agree_with_their_neighbours_and_some_wrong_ones_too(rng):
    right, wrong = [], []
    for _ in range(15):
        pair = random_pair(rng, num_points=800, inlier_ratio=0.3)
        points = kernels.pack(pair.points1, pair.points2)
        features = kernels.neighbour_features(points.in_spreads(points.spreads()))
        agreement = features[:, SHARE_THAT_STAYS_CLOSE]
        right.append(agreement[pair.inliers].mean())
        wrong.append(np.mean(agreement[~pair.inliers] >= 0.5))
    assert np.mean(right) > 0.5
    assert 0.01 < np.mean(wrong) < 0.3


def test_wrong_matches_share_points_only_if_matches_are_not_mutual(rng, monkeypatch):
    for descriptor in (ROOTSIFT, BINARY):
        monkeypatch.setattr(realistic, "DESCRIPTORS", (descriptor,))
        pair = random_pair(rng, num_points=1000, inlier_ratio=0.2)
        shared = 1 - len(np.unique(pair.points2, axis=0)) / 1000
        assert shared < 0.05 if descriptor.mutual else shared > 0.1


@pytest.mark.parametrize(
    ("name", "value"), [("num_points", 0), ("inlier_ratio", -0.1), ("inlier_ratio", 1.01), ("score_kind", "distance")]
)
def test_bad_arguments_are_named(rng, name, value):
    with pytest.raises(ValueError, match=name):
        random_pair(rng, **{name: value})
