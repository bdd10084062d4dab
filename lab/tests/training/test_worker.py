"""Computations of worker processes on real pairs."""

import h5py
import numpy as np
import pytest

from caransac_lab.training.recipe import Recipe
from caransac_lab.training.state_module import StateModule
from caransac_lab.training.worker import Worker


def test_real_pairs_with_own_features(scenes):
    with pytest.raises(ValueError, match="synthetic_share"):
        Worker(Recipe(data=(str(scenes),), width=8)).sizes()
    worker = Worker(Recipe(data=(str(scenes),), width=8, synthetic_share=0.0))
    assert worker.sizes() == (39, 1)
    assert worker.source.pairs[0].scene == "mine/train/scene"
    network = StateModule(39, 8)
    gradients, figures = worker.gradient(network.to_weights(), 0, range(2))
    first = dict(zip(dict(network.named_parameters()), gradients, strict=True))["init.0.weight"]
    assert first.shape == (39, 8)
    assert np.abs(first[36:]).max() > 0
    assert len(figures) == 2
    numbers, right, rotation_right = worker.evidence(network.to_weights(), "essential", 1)
    assert np.isfinite(numbers).all()
    assert right in (True, False) and rotation_right in (True, False)
    (scenes / "scene" / "match_features.h5").unlink()
    assert Worker(Recipe(data=(str(scenes),), width=8)).sizes() == (36, 1)


def test_data_that_are_not_finite_are_refused(scenes):
    with h5py.File(scenes / "scene" / "matches.h5", "r+") as file:
        file["a2-b2"][7, 1] = np.nan
    with pytest.raises(ValueError, match=r"scene/matches\.h5: pair a2-b2: points1 must not contain NaN"):
        Worker(Recipe(data=(str(scenes),), width=8, synthetic_share=0.0))
