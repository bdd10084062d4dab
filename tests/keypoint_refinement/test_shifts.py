"""Shifts of keypoints from the offsets of their matches."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from caransac.keypoint_refinement import shifts
from caransac.keypoint_refinement.shifts import AlignedMatches, Equations, solve_shifts
from caransac.tuning import KEYPOINTS


def make_matches(rng, tracks=60, length=6, noise=0.05, outliers=0.0):
    """Return true shifts, matches between all keypoints of each track, and which of them are right."""
    truth = rng.normal(0, 0.6, (tracks * length, 2))
    pairs = np.array(
        [(t * length + i, t * length + j) for t in range(tracks) for i, j in combinations(range(length), 2)]
    )
    maps = np.eye(2) + rng.normal(0, 0.2, (len(pairs), 2, 2))
    offsets = truth[pairs[:, 1]] - np.einsum("nij,nj->ni", maps, truth[pairs[:, 0]])
    offsets += rng.normal(0, noise, offsets.shape)
    right = rng.random(len(pairs)) >= outliers
    offsets[~right] += rng.choice([-1, 1], (np.sum(~right), 2)) * rng.uniform(0.7, 2, (np.sum(~right), 2))
    roots = rng.normal(0, 6, (len(pairs), 2, 2)) + 20 * np.eye(2)
    matches = AlignedMatches(
        keypoints1=pairs[:, 0],
        keypoints2=pairs[:, 1],
        offsets=offsets,
        maps=maps,
        information=roots @ roots.transpose(0, 2, 1),
    )
    return truth, matches, right


def solve(matches, count):
    equations = Equations(matches)
    return solve_shifts(lambda: [equations], count)


def test_without_reweighting_it_is_linear_least_squares(rng, monkeypatch):
    monkeypatch.setattr(shifts, "KEYPOINTS", replace(KEYPOINTS, scales=(1e6,), steps=60))
    truth, matches, _ = make_matches(rng, tracks=5)
    A, b = [np.eye(truth.size) / KEYPOINTS.shift_deviation_px], [np.zeros(truth.size)]
    for k in range(len(matches.offsets)):
        rows = np.zeros((2, truth.size))
        rows[:, 2 * matches.keypoints2[k] :][:, :2] = np.eye(2)
        rows[:, 2 * matches.keypoints1[k] :][:, :2] = -matches.maps[k]
        covariance = np.linalg.inv(matches.information[k]) + KEYPOINTS.least_deviation_px**2 * np.eye(2)
        scale = np.linalg.cholesky(np.linalg.inv(covariance)).T
        A.append(scale @ rows)
        b.append(scale @ matches.offsets[k])
    expected = np.linalg.lstsq(np.concatenate(A), np.concatenate(b), rcond=None)[0].reshape(-1, 2)
    np.testing.assert_allclose(solve(matches, len(truth)), expected, atol=1e-4)


def test_shifts_explain_the_offsets(rng):
    truth, matches, _ = make_matches(rng)
    found = solve(matches, len(truth))
    assert np.median(np.linalg.norm(matches.residuals(found), axis=1)) < 0.1


def test_wrong_offsets_lose_their_weight(rng):
    truth, matches, right = make_matches(rng, outliers=0.2)
    distances = np.linalg.norm(matches.residuals(solve(matches, len(truth))), axis=1)
    assert np.mean(distances[right] < KEYPOINTS.max_residual_px) > 0.98
    assert np.mean(distances[~right] > KEYPOINTS.max_residual_px) > 0.95


def test_a_match_along_an_edge_moves_keypoints_only_across_it():
    information = np.diag([400.0, 1e-4])[None]
    one = np.array([0])
    matches = AlignedMatches(
        keypoints1=one, keypoints2=one + 1, offsets=np.ones((1, 2)), maps=np.eye(2)[None], information=information
    )
    first, second = solve(matches, 2)
    assert second[0] - first[0] == pytest.approx(1, abs=0.1)
    assert abs(second[1] - first[1]) < 0.01


def test_parts_give_the_same_shifts(rng):
    truth, matches, _ = make_matches(rng)
    parts = [
        Equations(AlignedMatches(**{name: value[chosen] for name, value in vars(matches).items()}))
        for chosen in (slice(0, 100), slice(100, 101), slice(101, None))
    ]
    np.testing.assert_allclose(solve_shifts(lambda: parts, len(truth)), solve(matches, len(truth)), atol=1e-5)


def test_keypoints_without_matches_stay(rng):
    truth, matches, _ = make_matches(rng, tracks=3)
    assert not solve(matches, len(truth) + 4)[len(truth) :].any()


def test_joined_matches_keep_their_order(rng):
    _, matches, _ = make_matches(rng, tracks=2)
    twice = AlignedMatches.join([matches, matches])
    np.testing.assert_array_equal(twice.maps, np.concatenate([matches.maps] * 2))
