"""Side information of matches: scores, and agreement with neighbours."""

from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest

from caransac import kernels
from caransac.learned.network_layout import NUM_FEATURES, NUM_SCORE_FEATURES, PAPER_LAYOUT
from caransac.learned.side_information import side_information
from caransac.synthetic import make_pair


def in_spreads(points1, points2):
    """Return points in the coordinates of the neighbour search, which are relative to the spread of the points."""
    points = kernels.pack(points1, points2)
    return points.in_spreads(points.spreads())


NEAR_TIE = 2.5e-4  # if squared distances differ by less than this ratio, either point may count as nearer


def possible_neighbours(points, i, min_distance=0.012, count=8, most=20):
    """Return the possible sets of neighbours of point i: several if distances nearly tie, `most` as a maximum."""
    distance_sq = np.sum((points - points[i]) ** 2, axis=1)
    order = [j for j in np.argsort(distance_sq, kind="stable") if distance_sq[j] > min_distance**2]
    last = distance_sq[order[count - 1]]
    sure = [j for j in order if distance_sq[j] < last * (1 - NEAR_TIE)]
    tied = [j for j in order if abs(distance_sq[j] - last) <= last * NEAR_TIE]
    return [sure + list(others) for others in islice(combinations(tied, count - len(sure)), most)]


def features_of(points1, points2, i, neighbours):
    """Compute the features of one point for image 1 from their definition."""
    ways1, ways2 = points1[neighbours] - points1[i], points2[neighbours] - points2[i]
    here, there, moved = (np.linalg.norm(ways, axis=1) for ways in (ways1, ways2, ways2 - ways1))
    change, near = np.sort(np.minimum(moved / (here + 0.02), 50)), np.sort(there)
    return (
        [np.log(min(near[k], 5) + 0.01) for k in (0, 1, 3, 7)]
        + [np.log(change[k] + 0.05) for k in (0, 1, 3)]
        + [np.log(min(here.max(), 5) + 0.01), np.mean(there < 0.25)]
    )


def assert_features_match_their_definition(points1, points2, rows, share=1.0):
    """Assert that the features of (a share of) some points equal their definition; nearly tied neighbours may vary."""
    features = kernels.neighbour_features(kernels.pack(points1, points2))
    assert features.shape == (len(points1), 18)
    for found, here, there in ((features[:, :9], points1, points2), (features[:, 9:], points2, points1)):
        possible = [possible_neighbours(here, i) for i in rows]
        assert np.mean([len(sets) == 1 for sets in possible]) > 0.95
        agreeing = [
            len(sets) == 20
            or any(np.allclose(found[i], features_of(here, there, i, chosen), atol=1e-5) for chosen in sets)
            for i, sets in zip(rows, possible, strict=True)
        ]
        assert np.mean(agreeing) >= share


@pytest.mark.kernels
@pytest.mark.parametrize("num_points", [30, 400, 3000])
def test_neighbour_features_match_their_definition(num_points):
    pair = make_pair(num_points, outlier_ratio=0.5, seed=num_points)
    relative = in_spreads(pair.points1, pair.points2)
    assert_features_match_their_definition(relative.points1, relative.points2, range(0, num_points, num_points // 30))


@pytest.mark.kernels
def test_neighbours_are_found_in_clusters_and_far_outside(rng):
    spots = rng.normal(size=(5, 2)) * 0.05 + rng.uniform(-1, 1, (60, 1, 2))
    points1 = np.concatenate([spots.reshape(-1, 2), rng.normal(size=(100, 2)) * 30, [[1e6, -1e6], [0, 2e5]]])
    points2 = np.stack([rng.uniform(-1, 1, len(points1)), np.zeros(len(points1))], axis=1)  # on a line
    assert_features_match_their_definition(points1, points2, range(len(points1)))


@pytest.mark.slow
@pytest.mark.kernels
def test_neighbours_are_found_next_to_crowds_and_in_them(rng):
    crowds = rng.normal(size=(900, 1, 2)) * 0.03 + rng.uniform(-1, 1, (3, 2))
    points1 = np.concatenate([crowds.reshape(-1, 2), rng.uniform(-2, 2, (300, 2))])
    points2 = rng.normal(size=points1.shape)
    assert_features_match_their_definition(points1, points2, range(0, 2700, 20))
    # The search is limited, so a few neighbours behind dense clusters may be missed.
    assert_features_match_their_definition(points1, points2, range(2700, 3000), share=0.97)


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
    """Return the lifted scores; the points do not matter."""
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
def test_kinds_of_scores_are_distinguished():
    scores = [0.2, 0.9]
    assert not np.array_equal(lifted(scores, "ratio"), lifted(scores, "confidence"))
    assert np.all(lifted([None, None], "ratio") == 0)


@pytest.mark.kernels
def test_side_information_has_scores_neighbours_and_the_callers_features(rng):
    pair = make_pair(60, seed=2)
    points, own = kernels.pack(pair.points1, pair.points2), rng.normal(size=(60, 3))
    side = side_information(points, points.spreads(), pair.scores, "ratio", own)
    neighbours = kernels.neighbour_features(in_spreads(pair.points1, pair.points2))
    assert np.array_equal(side[:, :NUM_SCORE_FEATURES], lifted(pair.scores, "ratio"))
    assert np.array_equal(side[:, NUM_SCORE_FEATURES:NUM_FEATURES], neighbours)
    assert np.array_equal(side[:, NUM_FEATURES:], own.astype(np.float32))


@pytest.mark.kernels
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_fourier_features_match_the_paper(rng, count):
    """Frequencies 2^0 to 2^7 of pi x / 1.5, sines and cosines: 16 numbers."""
    values = rng.uniform(0, 1.5, count)
    phases = np.pi * values[:, None] * 2.0 ** np.arange(8) / 1.5
    expected = np.concatenate([np.sin(phases), np.cos(phases)], axis=1)
    assert np.allclose(kernels.fourier_features(values), expected, atol=1e-6, rtol=0)


@pytest.mark.kernels
def test_the_papers_input_is_the_lifted_score_then_lifted_and_plain_features(rng):
    pair = make_pair(60, seed=3)
    points = kernels.pack(pair.points1, pair.points2)
    own = rng.uniform(0, 1, (60, 6))
    lift = kernels.fourier_features
    given = points, points.spreads(), pair.scores
    assert np.array_equal(side_information(*given, "ratio", layout=PAPER_LAYOUT), lift(pair.scores))
    assert np.array_equal(side_information(*given, "confidence", layout=PAPER_LAYOUT), lift(1 - pair.scores))
    without = side_information(points, points.spreads(), None, "ratio", layout=PAPER_LAYOUT)
    assert without.shape == (60, 16) and not without.any()
    for lifted in (0, 1, 2):
        layout = replace(PAPER_LAYOUT, lifted=lifted)
        side = side_information(*given, "ratio", own, layout)
        columns = [lift(pair.scores), *(lift(own[:, 6 - lifted + i]) for i in range(lifted)), own[:, : 6 - lifted]]
        assert side.shape == (60, layout.num_inputs(6))
        assert np.array_equal(side, np.concatenate(columns, axis=1).astype(np.float32))
