"""The reader of the RANSAC Tutorial's layout."""

import h5py
import numpy as np
import pytest

from caransac.datasets import read_ransac_tutorial
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair


@pytest.fixture
def folder(tmp_path):
    """Two scenes of three pairs each, the second scene without truth."""
    motion, world = make_pair(50, seed=0), make_pair(50, seed=9)
    poses = {
        "a": (world.R, world.t),
        "b": (motion.R @ world.R, motion.R @ world.t + motion.t),  # so that a-b is the motion
        "c": (np.eye(3), np.zeros(3)),
    }
    for scene in ("alley", "unrelated"):
        (tmp_path / scene).mkdir()

        def write(name, values, scene=scene):
            with h5py.File(tmp_path / scene / f"{name}.h5", "w") as file:
                for key, value in values.items():
                    file[key] = value

        pairs = {key: make_pair(50, seed=seed) for seed, key in enumerate(["a-b", "a-c", "b-c"])}
        write("matches", {key: np.c_[pair.points1, pair.points2] for key, pair in pairs.items()})
        write("match_conf", {key: pair.scores for key, pair in pairs.items()})
        write("K1_K2", {key: np.stack([pair.camera1.K, pair.camera2.K])[None] for key, pair in pairs.items()})
        if scene == "alley":
            write("R", {image: R for image, (R, _) in poses.items()})
            write("T", {image: t[:, None] for image, (_, t) in poses.items()})
    return tmp_path


def test_pairs_come_with_their_truth(folder):
    pairs = {pair.name: pair for pair in read_ransac_tutorial(folder, scenes=["alley"])}
    assert set(pairs) == {"a-b", "a-c", "b-c"}
    truth = make_pair(50, seed=0)
    pair = pairs["a-b"]
    assert np.array_equal(pair.points2, truth.points2)
    assert np.array_equal(pair.scores, truth.scores)
    assert pose_error_deg(pair.R, pair.t, truth.R, truth.t) < 1e-6
    assert np.allclose(pair.camera1.K, truth.camera1.K)


def test_scenes_without_truth_have_none(folder):
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
