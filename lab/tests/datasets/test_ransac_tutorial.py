"""The layout of the RANSAC Tutorial 2020."""

import h5py
import numpy as np
import pytest
from layouts import not_finite, refused, spoil

from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair
from caransac_lab.datasets import open_dataset, read_ransac_tutorial


def test_pairs_come_with_their_truth(folder):
    pairs = {pair.name: pair for pair in read_ransac_tutorial(folder, scenes=["alley"])}
    assert set(pairs) == {"a-b", "a-c", "b-c"}
    truth = make_pair(50, seed=0)
    pair = pairs["a-b"]
    assert np.array_equal(pair.points2, truth.points2)
    assert np.array_equal(pair.scores, truth.scores)
    assert pose_error_deg(pair.R, pair.t, truth.R, truth.t) < 1e-6
    assert np.allclose(pair.camera1.K, truth.camera1.K)


def test_the_path_selects_the_kind_of_scores(folder):
    ratios, confidences, none = (list(read_ransac_tutorial(f"{folder}{kind}")) for kind in ("", "=confidence", "=none"))
    assert {pair.score_kind for pair in ratios} == {"ratio"}
    assert {pair.score_kind for pair in confidences} == {"confidence"}
    assert all(np.array_equal(a.scores, b.scores) for a, b in zip(ratios, confidences, strict=True))
    assert all(pair.scores is None for pair in none) and len(none) == len(ratios)
    for pair, shuffled in zip(ratios, none, strict=True):
        rows, others = (np.hstack([each.points1, each.points2]).tolist() for each in (pair, shuffled))
        assert rows != others and sorted(rows) == sorted(others), "the order of the matches may depend on their scores"
    assert open_dataset(f"{folder}=confidence", 1).num_pairs == len(list(open_dataset(f"{folder}=none", 1).read()))


def test_scenes_without_poses_have_no_truth(folder):
    assert all(pair.R is None and pair.t is None for pair in read_ransac_tutorial(folder, scenes=["unrelated"]))


def test_a_limit_takes_the_first_of_a_fixed_shuffle(folder):
    names = [pair.name for pair in read_ransac_tutorial(folder)]
    assert len(names) == 6
    limited = [pair.name for pair in read_ransac_tutorial(folder, max_pairs=2)]
    assert limited == names[:2] + names[3:5]


def test_missing_files_are_named(folder, tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        next(read_ransac_tutorial(tmp_path / "nowhere"))
    (folder / "alley" / "match_conf.h5").unlink()
    with pytest.raises(ValueError, match=r"alley.*match_conf\.h5"):
        next(read_ransac_tutorial(folder, scenes=["alley"]))


@pytest.mark.slow
@not_finite
@pytest.mark.parametrize(
    ("file", "key"),
    [("matches", "a-c"), ("match_conf", "a-c"), ("K1_K2", "a-c"), ("match_features", "a-c"), ("R", "c"), ("T", "c")],
)
def test_numbers_of_the_tutorial_must_be_finite(folder, file, key, value):
    with h5py.File(folder / "alley" / "match_features.h5", "w") as features:
        features["a-c"] = np.ones((50, 2))
    assert len(list(read_ransac_tutorial(folder))) == 6
    spoil(folder / "alley" / f"{file}.h5", key, value)
    refused(lambda: read_ransac_tutorial(folder), f"alley/{file}.h5", key)


@pytest.mark.parametrize(
    ("file", "values", "reason"),
    [
        ("matches", np.zeros((50, 3)), r"want an array \(N, 4\) of x1 y1 x2 y2, got \(50, 3\)"),
        ("match_conf", np.zeros(49), r"scores must have shape \(50,\)"),
        ("match_features", np.zeros(50), r"features must have shape \(50, d\)"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(folder, file, values, reason):
    with h5py.File(folder / "alley" / f"{file}.h5", "a") as h5:
        h5.pop("a-c", None)
        h5["a-c"] = values
    with pytest.raises(ValueError, match=rf"alley.*: pair a-c: {reason}"):
        list(read_ransac_tutorial(folder))
