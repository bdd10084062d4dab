"""Data sets by their location, and synthetic data sets."""

import numpy as np
import pytest
from layouts import write_pair_list

from caransac.synthetic import make_pair
from caransac_lab.datasets import make_synthetic, open_dataset, write_npz


def test_synthetic_pairs_depend_only_on_their_number():
    few, many = list(make_synthetic(2)), list(make_synthetic(3))
    assert np.array_equal(few[1].points2, many[1].points2)
    assert next(make_synthetic(1, first=1)).name == few[1].name
    assert not np.array_equal(many[1].R, many[2].R)


def test_layouts_are_seen_from_the_files(folder, tmp_path):
    assert open_dataset(folder).num_pairs == 6
    assert open_dataset(folder, max_pairs=2).num_pairs == len(list(open_dataset(folder, max_pairs=2).read())) == 4
    lists = tmp_path / "lists"
    lists.mkdir()
    dataset = open_dataset(write_pair_list(lists, [make_pair(30)]))
    assert (dataset.name, dataset.num_pairs) == ("lists/list", 1)
    assert len(list(dataset.read())) == len(list(dataset.read())) == 1
    pair = next(make_synthetic(1))
    write_npz(tmp_path / "archives", pair)
    assert open_dataset(tmp_path / "archives").num_pairs == 1
    assert open_dataset("synthetic:3").num_pairs == len(list(open_dataset("synthetic:3").read())) == 3
    with pytest.raises(ValueError, match="nowhere"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="synthetic:N"):
        open_dataset("synthetic:many")
