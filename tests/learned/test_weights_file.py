"""Weights files: invalid ones are refused, and a changed file is read again."""

import os

import numpy as np
import pytest

from caransac._support.files import replacing, save_arrays
from caransac.learned.state_network import load_network
from caransac.learned.weights_file import read_weights
from caransac.robust.assess.evidence import EVIDENCE

every_kind = pytest.mark.parametrize("name", ["default", "absolute"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "weights.npz"


def write_in_place(path, arrays):
    """Overwrite the file in place. Advance its time if the clock is too coarse to distinguish two quick writes."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    save_arrays(path, arrays)
    os.utime(path, ns=(before + 1, max(path.stat().st_mtime_ns, before + 1)))


def write_beside(path, arrays):
    """Replace the file by another one with the same time, as `replacing` and most programs do."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    with replacing(path) as temporary:
        save_arrays(temporary, arrays)
    os.utime(path, ns=(before, before))


@every_kind
@pytest.mark.parametrize("write", [write_in_place, write_beside])
def test_a_file_that_has_changed_is_read_again(path, name, write):
    load, arrays = load_network, read_weights(name)
    write(path, arrays)
    first, size = load(path), path.stat().st_size
    assert load(path) is load(str(path)) is first, "an unchanged file is not read again"
    changed = {key: array * 2 if key.endswith("scale") else array + np.float32(1) for key, array in arrays.items()}
    write(path, changed)
    assert path.stat().st_size == size
    second = load(path)
    assert all(np.array_equal(second.weights[key], array) for key, array in changed.items())
    assert all(np.array_equal(first.weights[key], array) for key, array in arrays.items())


def test_the_same_relative_path_elsewhere_is_another_file(tmp_path, monkeypatch):
    arrays = read_weights("default")
    for alpha in (1, 2):
        folder = tmp_path / str(alpha)
        folder.mkdir()
        save_arrays(folder / "mine.npz", arrays | {"alpha": np.array(alpha)})
    for alpha in (1, 2, 1):
        monkeypatch.chdir(tmp_path / str(alpha))
        assert load_network("mine.npz").alpha == alpha


@every_kind
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300])
def test_numbers_that_are_not_finite_are_refused(path, name, value):
    arrays = {key: array.astype(float) for key, array in read_weights(name).items()}
    key = sorted(arrays)[-1]
    arrays[key].flat[-1] = value
    save_arrays(path, arrays)
    with pytest.raises(ValueError, match=rf"weights\.npz has numbers in {key} that are NaN, infinite or beyond 10,000"):
        load_network(path)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("scale", -np.ones(len(EVIDENCE)), r"confidence\.essential\.scale must not be negative"),
        ("scale", np.zeros(len(EVIDENCE)), "do not fit together"),
        ("scale", np.ones(15), r"confidence\.essential\.weight, \.bias, \.mean and \.scale do not fit together"),
        ("weight", np.ones(16), "do not fit together"),
        ("bias", np.ones(2), "do not fit together"),
        ("mean", np.ones((4, 4)), "do not fit together"),
    ],
)
def test_confidences_that_would_be_nan_or_fail_are_refused(path, part, value, message):
    save_arrays(path, read_weights("default") | {f"confidence.essential.{part}": value.astype(np.float32)})
    with pytest.raises(ValueError, match=rf"weights\.npz is not a caransac weights file: .*{message}"):
        load_network(path)


@pytest.mark.parametrize("kind", ["c8", "?", "M8[s]", "S4", "V4"])
def test_arrays_without_numbers_are_refused(path, kind):
    save_arrays(path, read_weights("default") | {"alpha": np.zeros((), kind)})
    with pytest.raises(ValueError, match="alpha must contain real numbers"):
        load_network(path)


@pytest.mark.slow
@every_kind
def test_every_array_is_needed(path, name):
    arrays = read_weights(name)
    assert name != "default" or {"alpha", "confidence.essential.bias"} <= set(arrays)
    for key in arrays:
        save_arrays(path, {other: array for other, array in arrays.items() if other != key})
        with pytest.raises(ValueError, match=rf"weights\.npz is not a caransac weights file: no array {key}$"):
            load_network(path)


@pytest.mark.slow
@every_kind
def test_every_array_must_have_its_shape(path, name):
    arrays = read_weights(name)
    for key in arrays:
        if key.startswith("confidence"):
            continue  # checked by the confidence, which knows the evidence
        for wrong in (np.zeros((3, 3, 3)), np.zeros(129)):
            save_arrays(path, arrays | {key: wrong})
            with pytest.raises(ValueError, match=r"weights\.npz is not a caransac weights file"):
                load_network(path)


def test_missing_files_are_named(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    for missing in (tmp_path / "nothing.npz", tmp_path / "nothing", tmp_path / "folder.npz"):
        with pytest.raises(ValueError, match=r"no such file: .*(nothing|folder)"):
            load_network(missing)


def test_unknown_names_name_the_package_that_has_them():
    known = "absolute, default, paper, paper-c, paper-f"
    with pytest.raises(ValueError, match=rf"^weights: the package has no weights 'nothing', only {known}$"):
        load_network("nothing")
    for name in ("filter", "filter-128", "with-filter", "paper-with-filter", "sample-quality"):
        with pytest.raises(ValueError, match=rf"no weights '{name}', only {known}\. They are in caransac-lab: "):
            load_network(name)
