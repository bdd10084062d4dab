"""Fixtures of the training tests: a small network, an example, a folder of scenes."""

from functools import partial

import h5py
import numpy as np
import pytest
import torch

from caransac_lab.synthetic import random_pair
from caransac_lab.training.data import make_example, synthetic_pair
from caransac_lab.training.state_module import StateModule


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(1)
    return StateModule(36, 16)


@pytest.fixture
def example(rng):
    while True:
        pair = synthetic_pair(rng)
        if len(pair.points1) < 1500 and pair.right_matches().mean() > 0.3:
            return make_example(pair)


def write_scene(folder, pairs, scores, features):
    """Write one scene in the layout of the RANSAC Tutorial 2020: pairs with scores and features."""
    keys = [f"a{i}-b{i}" for i in range(len(pairs))]
    tables = {
        "matches": {key: np.c_[pair.points1, pair.points2] for key, pair in zip(keys, pairs, strict=True)},
        "match_conf": dict(zip(keys, scores, strict=True)),
        "match_features": dict(zip(keys, features, strict=True)),
        "K1_K2": {key: np.stack([pair.camera1.K, pair.camera2.K])[None] for key, pair in zip(keys, pairs, strict=True)},
        "R": {f"a{i}": np.eye(3) for i in range(len(pairs))} | {f"b{i}": p.R for i, p in enumerate(pairs)},
        "T": {f"a{i}": np.zeros((3, 1)) for i in range(len(pairs))}
        | {f"b{i}": p.t[:, None] for i, p in enumerate(pairs)},
    }
    scene = folder / "mine" / "train" / "scene"
    scene.mkdir(parents=True)
    for name, table in tables.items():
        with h5py.File(scene / f"{name}.h5", "w") as file:
            for key, value in table.items():
                file[key] = value
    return scene.parent


@pytest.fixture
def scenes(tmp_path, rng):
    """A folder with one scene of four pairs, which have three features per match."""
    pairs = [random_pair(rng, num_points=200, inlier_ratio=0.5) for _ in range(4)]
    return write_scene(tmp_path, pairs, [pair.scores for pair in pairs], [rng.normal(size=(200, 3)) for _ in pairs])


@pytest.fixture
def make_scenes(tmp_path):
    """Return a function that writes a folder of given pairs; see `write_scene`."""
    return partial(write_scene, tmp_path)
