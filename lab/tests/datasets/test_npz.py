"""Our own layout of npz archives."""

from dataclasses import replace

import numpy as np
import pytest
from layouts import assert_same, not_finite, refused

from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair, read_npz, write_npz


@pytest.mark.parametrize("scored", [True, False])
def test_npz_files_are_read_as_written(tmp_path, scored):
    made = make_pair(30)
    scores = made.scores if scored else None
    features = np.ones((30, 2)) if scored else None
    cameras = made.camera1, made.camera2
    truth = Pair("x", "a/b", made.points1, made.points2, scores, *cameras, made.R, made.t, "confidence", features)
    write_npz(tmp_path, truth)
    (pair,) = read_npz(tmp_path)
    assert_same(pair, truth)
    assert (pair.scene, pair.name) == ("x", "a-b")
    assert pair.camera2 == truth.camera2
    if scored:
        assert pair.score_kind == "confidence"
        assert np.array_equal(pair.scores, scores)
        assert np.array_equal(pair.features, features)


@not_finite
@pytest.mark.parametrize("name", ["points1", "points2", "scores", "R", "t", "features"])
def test_numbers_of_archives_must_be_finite(tmp_path, name, value):
    path = write_npz(tmp_path, replace(Pair.from_synthetic(make_pair(30), "a-b"), features=np.ones((30, 2))))
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays[name].flat[-1] = value
    np.savez(path, **arrays)
    refused(lambda: read_npz(tmp_path), "a-b.npz", "a-b")


def test_other_archives_are_refused_by_name(tmp_path):
    scene = tmp_path / "scene"
    scene.mkdir()
    (scene / "pair.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"pair.npz is not an npz archive"):
        next(read_npz(tmp_path))
