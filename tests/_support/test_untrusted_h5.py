"""Untrusted HDF5 files: only data inside the file are read, and small files use little memory."""

import zlib

import h5py
import numpy as np
import pytest
from bombs import ELSEWHERE, SECRET, deflated_zeros, little_memory, write_secrets

from caransac._support.untrusted_h5 import read_h5
from caransac.cli import main
from caransac.io.matches import read_matches
from caransac_lab.datasets import read_posebench


@pytest.fixture
def path(tmp_path):
    """Path of an untrusted file. The files beside it must not be read."""
    write_secrets(tmp_path)
    return tmp_path / "file.h5"


@pytest.mark.parametrize("make", ELSEWHERE)
def test_other_files_are_not_read(path, tmp_path, make, capsys):
    with h5py.File(path, "w") as file:
        make(file, tmp_path)
    with h5py.File(path) as file:
        assert np.array_equal(file["pair"], SECRET), "h5py itself reads the other file"
    with pytest.raises(ValueError, match=r"file\.h5: pair.* another file|virtual dataset, made of other files"):
        read_matches(path, "pair")
    assert main(["pose", "--matches", str(path), "--key", "pair", "--save", str(tmp_path / "copy.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "copy.npz").exists()


def test_links_within_a_file_are_followed(path):
    with h5py.File(path, "w") as file:
        file["a/b/table"] = SECRET
        file["a/c"] = h5py.SoftLink("b/table")
        file["d"] = h5py.SoftLink("/a/c")
        file["loop"] = h5py.SoftLink("pool")
        file["pool"] = h5py.SoftLink("/loop")
        file["nowhere"] = h5py.SoftLink("/a/x/y")
    with read_h5(path) as file:
        for name in ("a/b/table", "a/c", "d"):
            assert name in file and np.array_equal(file.array(name), SECRET)
        assert not any(name in file for name in ("nowhere", "a/nothing/more", "a/b/table/deeper"))
        with pytest.raises(ValueError, match=r"file\.h5: loop: circular links"):
            file.array("loop")
        with pytest.raises(ValueError, match=r"file\.h5: no a/x"):
            file.group("a").array("x")
        with pytest.raises(ValueError, match=r"file\.h5: a is not an array"):
            file.array("a")
        with pytest.raises(ValueError, match=r"file\.h5: a/c is not a group"):
            file.group("a").group("c")


def vast_chunk(file):
    file.create_dataset("pair", (10, 4), float, chunks=(50_000_000, 4), maxshape=(None, 4))


def zeros_in_chunks(file):
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_chunk((2**24, 4))
    created.set_deflate(9)
    space = h5py.h5s.create_simple((2**26, 4))
    made = h5py.h5d.create(file.id, b"pair", h5py.h5t.NATIVE_DOUBLE, space, created)
    data = b"\x78\xda" + deflated_zeros(512) + zlib.adler32(bytes(2**29)).to_bytes(4, "big")
    made.write_direct_chunk((0, 0), data)


def more_than_it_says(file):
    """Write a chunk of 128 kB that expands to 300 MB."""
    file.create_dataset("pair", (4096, 4), float, chunks=(4096, 4), compression="gzip")
    file["pair"].id.write_direct_chunk((0, 0), b"\x78\xda" + deflated_zeros(300))


def much_more_than_it_says(file):
    file.create_dataset("pair", (10, 4), float, chunks=(10, 4), compression="gzip")
    file["pair"].id.write_direct_chunk((0, 0), b"\x78\xda" + deflated_zeros(3000))


def packed_twice(file):
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_chunk((10, 4))
    created.set_deflate(9)
    created.set_filter(h5py.h5z.FILTER_DEFLATE, h5py.h5z.FLAG_OPTIONAL, (9,))
    space = h5py.h5s.create_simple((10, 4))
    h5py.h5d.create(file.id, b"pair", h5py.h5t.NATIVE_DOUBLE, space, created)


def one_string_many_times(file):
    file.create_dataset("pair", data=["x" * 1000] * 3, dtype=h5py.string_dtype())


def no_array(file):
    file["pair"] = np.dtype("f8")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (vast_chunk, r"a chunk of .*file\.h5: pair would take 1\.60 GB"),
        (zeros_in_chunks, r"pair would take 2\.15 GB"),
        (more_than_it_says, r"becomes larger than the 131072 bytes"),
        (much_more_than_it_says, r"has a chunk of \d+ bytes that declares 320"),
        (packed_twice, r"compressed more than once"),
        (one_string_many_times, r"elements of any length"),
        (no_array, r"pair is not a group"),
    ],
)
def test_little_that_becomes_much_is_refused(path, make, message):
    with h5py.File(path, "w") as file:
        make(file)
    with little_memory(), pytest.raises(ValueError, match=message) as caught:
        read_matches(path, "pair")
    assert "file.h5: pair" in str(caught.value)


def test_ordinary_filters_are_read(path, rng):
    table = rng.normal(size=(5000, 4))
    with h5py.File(path, "w") as file:
        for name, how in {
            "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
            "lzf": {"compression": "lzf"},
            "plain": {"chunks": (1, 4)},
            "small": {"chunks": (1, 4), "compression": "gzip"},
        }.items():
            file.create_dataset(name, data=table, **how)
        file["pair"] = np.array(3)
        file.attrs["score_kind"] = "confidence"
    with read_h5(path) as file:
        for name in ("gzip", "lzf", "plain", "small"):
            assert np.array_equal(file.array(name), table)
        assert file.array("pair") == 3 and file.attrs["score_kind"] == "confidence" and "other" not in file.attrs


def test_attributes_have_a_limit_too(path):
    with h5py.File(path, "w") as file:
        file["pair"] = SECRET
        file.attrs["score_kind"] = ["ratio"] * 9
    with pytest.raises(ValueError, match=r"file\.h5: .*elements of any length"):
        read_matches(path, "pair")


def test_corrupt_arrays_name_file_and_dataset(path, rng):
    with h5py.File(path, "w") as file:
        file.create_dataset("pair", data=rng.normal(size=(500, 4)), compression="gzip", chunks=(500, 4))
        place = file["pair"].id.get_chunk_info(0).byte_offset
    data = bytearray(path.read_bytes())
    data[place + 100 : place + 3000] = bytes(2900)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"file\.h5: pair: .*filter returned failure"):
        read_matches(path, "pair")
    with pytest.raises(ValueError, match=r"file\.h5"):
        list(read_posebench(path))
