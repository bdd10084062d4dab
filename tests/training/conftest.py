"""What tests of training share: a small network, an example, a folder of scenes."""

import h5py
import numpy as np
import pytest
import torch

from caransac.synthetic import random_pair
from caransac.training.data import make_example, synthetic_pair
from caransac.training.state_module import StateModule


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


@pytest.fixture
def scenes(tmp_path, rng):
    """A folder of one scene of four pairs with three features per match."""
    pairs = {f"a{i}-b{i}": random_pair(rng, num_points=200, inlier_ratio=0.5) for i in range(4)}
    tables = {
        "matches": {key: np.c_[pair.points1, pair.points2] for key, pair in pairs.items()},
        "match_conf": {key: pair.scores for key, pair in pairs.items()},
        "match_features": {key: rng.normal(size=(200, 3)) for key in pairs},
        "K1_K2": {key: np.stack([pair.camera1.K, pair.camera2.K])[None] for key, pair in pairs.items()},
        "R": {f"a{i}": np.eye(3) for i in range(4)} | {f"b{i}": p.R for i, p in enumerate(pairs.values())},
        "T": {f"a{i}": np.zeros((3, 1)) for i in range(4)}
        | {f"b{i}": p.t[:, None] for i, p in enumerate(pairs.values())},
    }
    folder = tmp_path / "mine" / "train" / "scene"
    folder.mkdir(parents=True)
    for name, table in tables.items():
        with h5py.File(folder / f"{name}.h5", "w") as file:
            for key, value in table.items():
                file[key] = value
    return folder.parent
