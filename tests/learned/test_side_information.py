"""Side information: scores and the agreement of neighbours."""

import numpy as np
import pytest

from caransac import kernels
from caransac.learned.side_information import NUM_FEATURES, NUM_SCORE_FEATURES, side_information
from caransac.synthetic import make_pair


def in_spreads(points1, points2):
    """Points as the neighbours are looked for among."""
    points = kernels.pack(points1, points2)
    return points.in_spreads(points.spreads())


def brute_force_features(points1, points2, min_distance=0.012, count=8):
    """The features of image 1's half, straight from their definition."""
    rows = []
    for i in range(len(points1)):
        here = np.linalg.norm(points1 - points1[i], axis=1)
        order = [j for j in np.argsort(here, kind="stable") if here[j] > min_distance][:count]
        there = np.linalg.norm(points2[order] - points2[i], axis=1)
        moved = np.linalg.norm((points2[order] - points2[i]) - (points1[order] - points1[i]), axis=1)
        change = np.sort(np.minimum(moved / (here[order] + 0.02), 50))
        near = np.sort(there)
        rows.append(
            [np.log(min(near[k], 5) + 0.01) for k in (0, 1, 3, 7)]
            + [np.log(change[k] + 0.05) for k in (0, 1, 3)]
            + [np.log(min(here[order[-1]], 5) + 0.01), np.mean(there < 0.25)]
        )
    return np.array(rows)


@pytest.mark.kernels
@pytest.mark.parametrize("num_points", [30, 400])
def test_neighbour_features_match_their_definition(num_points):
    pair = make_pair(num_points, outlier_ratio=0.5, seed=num_points)
    relative = in_spreads(pair.points1, pair.points2)
    points1, points2 = relative.points1, relative.points2
    features = kernels.neighbour_features(relative)
    assert features.shape == (num_points, 18)
    assert np.allclose(features[:, :9], brute_force_features(points1, points2), atol=1e-5)
    assert np.allclose(features[:, 9:], brute_force_features(points2, points1), atol=1e-5)


@pytest.mark.kernels
def test_neighbours_are_found_in_clusters_and_far_outside(rng):
    spots = rng.normal(size=(5, 2)) * 0.05 + rng.uniform(-1, 1, (60, 1, 2))
    points1 = np.concatenate([spots.reshape(-1, 2), rng.normal(size=(100, 2)) * 30, [[1e6, -1e6], [0, 2e5]]])
    points2 = np.stack([rng.uniform(-1, 1, len(points1)), np.zeros(len(points1))], axis=1)  # on a line
    features = kernels.neighbour_features(kernels.pack(points1, points2))
    assert np.allclose(features[:, :9], brute_force_features(points1, points2), atol=1e-5)
    assert np.allclose(features[:, 9:], brute_force_features(points2, points1), atol=1e-5)


@pytest.mark.kernels
@pytest.mark.parametrize("num_points", [1, 2, 8, 9])
def test_few_and_coinciding_points_have_finite_features(num_points):
    same = np.zeros((num_points, 2))
    assert np.isfinite(kernels.neighbour_features(kernels.pack(same, same))).all()
    assert kernels.neighbour_features(kernels.pack(same[:0], same[:0])).shape == (0, 18)


@pytest.mark.kernels
def test_a_crowd_on_one_spot_has_finite_features(rng):
    crowd = rng.normal(size=(20_000, 2)) * 1e-3
    assert np.isfinite(kernels.neighbour_features(kernels.pack(crowd, rng.normal(size=(20_000, 2))))).all()


@pytest.mark.kernels
@pytest.mark.parametrize("num_points", [0, 1, 2, 7, 300])
def test_points_are_centred_and_scaled_by_medians(rng, num_points):
    both = rng.normal(size=(2, num_points, 2)) * 40 + 600
    relative, spreads = in_spreads(*both), kernels.pack(*both).spreads()
    for points, found, (*centre, spread) in zip(both, (relative.points1, relative.points2), spreads, strict=True):
        if num_points == 0:
            assert (*centre, spread) == (0, 0, 0)
            continue
        shifted = points - np.median(points, axis=0)
        assert np.array_equal(centre, np.median(points, axis=0))
        assert spread == 1.6 * np.median(np.abs(shifted))
        assert np.array_equal(found, shifted / spread if num_points > 1 else shifted)


def test_features_do_not_depend_on_the_unit_of_the_points():
    pair = make_pair(200, seed=1)
    pixels, moved = (
        side_information(points, points.spreads(), pair.scores, "ratio")
        for points in (
            kernels.pack(pair.points1, pair.points2),
            kernels.pack(3 * pair.points1 - 50, pair.points2 / 7 + 1e3),
        )
    )
    assert pixels.shape == (200, NUM_FEATURES)
    assert np.allclose(pixels, moved, atol=1e-4)


def lifted(scores, kind):
    """What the scores become, of matches whose points do not matter."""
    points = np.arange(2.0 * len(scores)).reshape(-1, 2)
    correspondences = kernels.pack(points, points)
    given = None if scores[0] is None else np.asarray(scores, float)
    return side_information(correspondences, correspondences.spreads(), given, kind)[:, :NUM_SCORE_FEATURES]


@pytest.mark.kernels
def test_scores_are_lifted_to_sines_and_cosines(rng):
    scores = np.concatenate([rng.uniform(0, 1, 500), [0, 1.5]])
    phases = scores[:, None] * np.pi * 2.0 ** np.arange(8) / 1.5
    features = lifted(scores, "ratio")
    assert features.dtype == np.float32
    assert np.allclose(features[:, :-2], np.concatenate([np.sin(phases), np.cos(phases)], axis=1), atol=1e-6, rtol=0)
    assert np.array_equal(lifted([-1, 7], "ratio"), lifted([0, 1.5], "ratio"))


@pytest.mark.kernels
def test_kinds_of_scores_are_told_apart():
    scores = [0.2, 0.9]
    assert not np.array_equal(lifted(scores, "ratio"), lifted(scores, "confidence"))
    assert np.all(lifted([None, None], "ratio") == 0)


@pytest.mark.kernels
def test_side_information_is_both_and_what_the_caller_adds(rng):
    pair = make_pair(60, seed=2)
    points, own = kernels.pack(pair.points1, pair.points2), rng.normal(size=(60, 3))
    side = side_information(points, points.spreads(), pair.scores, "ratio", own)
    neighbours = kernels.neighbour_features(in_spreads(pair.points1, pair.points2))
    assert np.array_equal(side[:, :NUM_SCORE_FEATURES], lifted(pair.scores, "ratio"))
    assert np.array_equal(side[:, NUM_SCORE_FEATURES:NUM_FEATURES], neighbours)
    assert np.array_equal(side[:, NUM_FEATURES:], own.astype(np.float32))
