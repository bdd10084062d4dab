"""Weights of the lab are found by name, and files of another kind are refused."""

import numpy as np
import pytest

from caransac._support.files import save_arrays
from caransac.learned.state_network import load_network
from caransac.learned.weights_file import IN_LAB, read_weights
from caransac_lab.networks.match_filter import load_filter
from caransac_lab.networks.sample_quality import load_quality
from caransac_lab.networks.weights import FOLDER, find_weights

LOADERS = {"default": load_network, "filter": load_filter, "sample-quality": load_quality}


def test_the_list_of_weights_in_the_lab_is_complete():
    assert {path.stem for path in FOLDER.glob("*.npz")} == IN_LAB
    assert {path.stem for path in FOLDER.glob("*.json")} == IN_LAB


def test_names_of_the_package_and_paths_are_not_changed(tmp_path):
    assert find_weights("default") == "default"
    assert find_weights(tmp_path / "filter") == tmp_path / "filter"
    assert find_weights("filter").is_file()


@pytest.mark.parametrize("name", LOADERS)
def test_weights_of_another_kind_are_refused(name):
    for other in set(LOADERS) - {name}:
        with pytest.raises(ValueError, match=rf"{other}\.npz is not a caransac weights file"):
            LOADERS[name](find_weights(other))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["filter", "sample-quality"])
def test_every_array_is_needed_and_must_have_its_shape(tmp_path, name):
    arrays, path = read_weights(find_weights(name)), tmp_path / "weights.npz"
    for key in arrays:
        save_arrays(path, {other: array for other, array in arrays.items() if other != key})
        with pytest.raises(ValueError, match=rf"weights\.npz is not a caransac weights file: no array {key}$"):
            LOADERS[name](path)
        for wrong in (np.zeros((3, 3, 3)), np.zeros(129)):
            save_arrays(path, arrays | {key: wrong})
            with pytest.raises(ValueError, match=r"weights\.npz is not a caransac weights file"):
                LOADERS[name](path)


@pytest.mark.parametrize("name", ["filter", "sample-quality"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300])
def test_numbers_that_are_not_finite_are_refused(tmp_path, name, value):
    arrays = {key: array.astype(float) for key, array in read_weights(find_weights(name)).items()}
    key = sorted(arrays)[-1]
    arrays[key].flat[-1] = value
    save_arrays(tmp_path / "weights.npz", arrays)
    with pytest.raises(ValueError, match=rf"weights\.npz has numbers in {key} that are NaN, infinite or beyond"):
        LOADERS[name](tmp_path / "weights.npz")
