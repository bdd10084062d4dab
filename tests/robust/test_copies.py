"""Copies of a match count once."""

import numpy as np
import pytest

from caransac import Options, estimate_fundamental, estimate_homography, estimate_relative_pose, kernels
from caransac.robust.copies import find_originals
from caransac.robust.problems import Essential
from caransac.robust.records import MatchInfo
from caransac.synthetic import make_pair
from caransac.tuning import DEFAULT_TUNING


def test_originals_are_those_of_all_comparisons(rng):
    points = rng.uniform(-1, 1, (4, 300)) * 0.05
    order = rng.permutation(300).astype(np.int32)
    reach = 0.01
    expected = np.arange(300)
    chosen: list[int] = []
    for i in order:
        near = [k for k in chosen if np.abs(points[:, i] - points[:, k]).max() <= reach]
        if not near:
            chosen.append(i)
        expected[i] = -1 if near else i  # any of several may be taken
    found = kernels.originals(kernels.pack(points[:2].T, points[2:].T), order, reach)
    assert np.array_equal(found == np.arange(300), expected == np.arange(300))
    assert np.abs(points - points[:, found]).max() <= reach
    assert np.array_equal(found[found], found)


def test_far_and_wrong_arguments_are_answered_or_refused():
    far = kernels.pack(np.full((3, 2), 1e300), np.zeros((3, 2)))
    assert kernels.originals(far, np.arange(3, dtype=np.int32), 1e-3).tolist() == [0, 1, 2]
    points = kernels.pack(np.zeros((3, 2)), np.zeros((3, 2)))
    assert kernels.originals(points, np.array([2, 0, 1], np.int32), 1e-3).tolist() == [2, 2, 2]
    for order in ([0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1]):
        with pytest.raises(ValueError, match="every index once"):
            kernels.originals(points, np.array(order, np.int32), 1e-3)
    with pytest.raises(ValueError, match="reach must be positive"):
        kernels.originals(points, np.arange(3, dtype=np.int32), 0.0)


def copied(pair, times, rng, jitter_px=0.0):
    """Every match several times, in another order."""
    index = rng.permutation(np.repeat(np.arange(len(pair.points1)), times))
    points1, points2 = (p[index] + jitter_px * rng.normal(size=(len(index), 2)) for p in (pair.points1, pair.points2))
    return points1, points2, index


@pytest.mark.parametrize("call", [estimate_fundamental, estimate_homography, None])
def test_copies_are_no_further_evidence(call):
    pair = make_pair(40, outlier_ratio=0.4, noise_px=0.7, seed=3)
    cameras = () if call else (pair.camera1, pair.camera2)
    call = call or estimate_relative_pose
    once = call(pair.points1, pair.points2, *cameras)
    index = np.repeat(np.arange(40), 25)
    often = call(pair.points1[index], pair.points2[index], *cameras)
    assert often.confidence == once.confidence  # the very same estimate
    assert often.num_inliers % 25 == 0
    assert often.inliers.shape == often.probabilities.shape == index.shape
    for number in range(40):  # copies share what is found of them
        assert len(set(often.inliers[index == number])) == len(set(often.probabilities[index == number])) == 1


def test_the_trace_is_of_all_matches(rng):
    pair = make_pair(60, outlier_ratio=0.2, seed=4)
    points1, points2, index = copied(pair, 12, rng, jitter_px=0.05)
    found = estimate_relative_pose(points1, points2, pair.camera1, pair.camera2, options=Options(keep_trace=True))
    assert found.success and found.num_inliers > 0.6 * len(index)
    for record in found.trace[1:]:
        assert record.state.shape[0] == record.probabilities.shape[0] == record.msac_scores.shape[1] == len(index)
        assert record.samples.max() < len(index)
    lo = estimate_relative_pose(points1, points2, pair.camera1, pair.camera2, options=Options(method="lm-lo-u"))
    assert lo.success and lo.inliers.shape == index.shape


def test_the_best_scored_one_is_kept_and_few_copies_are_left(rng):
    pair = make_pair(200, outlier_ratio=0.2, seed=5)
    points1, points2, index = copied(pair, 10, rng)
    problem = Essential.from_pixels(points1, points2, pair.camera1, pair.camera2)
    scores = rng.uniform(0, 1, len(index))
    found = find_originals(problem, MatchInfo(scores, "ratio"), DEFAULT_TUNING)
    assert np.array_equal(index[found], index)
    for number in range(0, 200, 20):
        assert scores[found[index == number][0]] == scores[index == number].min()
    some = np.r_[np.arange(200), np.arange(15)]
    problem = Essential.from_pixels(pair.points1[some], pair.points2[some], pair.camera1, pair.camera2)
    assert find_originals(problem, MatchInfo(), DEFAULT_TUNING) is None
