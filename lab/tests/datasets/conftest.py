"""Fixture: a small folder in the layout of the RANSAC Tutorial 2020."""

import h5py
import numpy as np
import pytest

from caransac.synthetic import make_pair


@pytest.fixture
def folder(tmp_path):
    """Two scenes of three pairs each; the second scene has no truth."""
    motion, world = make_pair(50, seed=0), make_pair(50, seed=9)
    poses = {
        "a": (world.R, world.t),
        "b": (motion.R @ world.R, motion.R @ world.t + motion.t),  # makes the pair a-b equal to the motion
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
