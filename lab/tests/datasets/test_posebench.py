"""The layout of posebench."""

import h5py
import numpy as np
import pytest
from layouts import assert_same, not_finite, refused, spoil, write_posebench

from caransac.synthetic import make_pair
from caransac_lab.datasets import open_dataset, read_posebench


@pytest.mark.parametrize("as_arrays", [False, True])
def test_posebench_files_have_cameras(tmp_path, as_arrays):
    made = make_pair(30)
    write_posebench(tmp_path / "some.h5", made, as_arrays)
    (pair,) = read_posebench(tmp_path / "some.h5")
    assert_same(pair, made)
    assert pair.camera1 == made.camera1
    assert pair.scores is None
    assert open_dataset(tmp_path / "some.h5").num_pairs == 1


def test_a_model_of_two_names_is_refused(tmp_path):
    write_posebench(tmp_path / "some.h5", make_pair(30))
    with h5py.File(tmp_path / "some.h5", "r+") as file:
        del file["pair/camera1/model"]
        file["pair/camera1/model"] = np.array([b"PINHOLE", b"OPENCV"])
    with pytest.raises(ValueError, match=r"some.h5: .*model must be one text, got 2"):
        next(read_posebench(tmp_path / "some.h5"))


def test_other_h5_files_are_refused_by_name(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.create_group("pair")["x1"] = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"other.h5: .*no pair/t"):
        next(read_posebench(tmp_path / "other.h5"))


@not_finite
@pytest.mark.parametrize("name", ["x1", "x2", "R", "t"])
def test_numbers_of_posebench_must_be_finite(tmp_path, name, value):
    write_posebench(tmp_path / "some.h5", make_pair(30))
    spoil(tmp_path / "some.h5", f"pair/{name}", value)
    refused(lambda: read_posebench(tmp_path / "some.h5"), "some.h5", "pair")


def test_cameras_of_posebenchs_own_files_are_arrays_of_one_entry(tmp_path):
    made = make_pair(30)
    write_posebench(tmp_path / "some.h5", made)
    with h5py.File(tmp_path / "some.h5", "r+") as file:
        for group in (file["pair/camera1"], file["pair/camera2"]):
            model, width, height = group["model"].asstr()[()], group["width"][()], group["height"][()]
            for name in ("model", "width", "height"):
                del group[name]
            group.create_dataset("model", data=[model], dtype=h5py.string_dtype())
            group["width"], group["height"] = [width], [height]
    (pair,) = read_posebench(tmp_path / "some.h5")
    assert pair.camera1 == made.camera1 and pair.camera2 == made.camera2
