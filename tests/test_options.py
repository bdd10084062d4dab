"""Options: frozen, checked, with errors that name the field."""

import dataclasses
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

from caransac import Options, estimate_relative_pose
from caransac.learned.weights_file import weights_path
from caransac.synthetic import make_pair


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "ransac"),
        ("weights", 3),
        ("local_models", 0),
        ("rounds", 0),
        ("rounds", 2.5),
        ("samples_per_round", -1),
        ("weights", ""),
        ("samples_per_round", True),
        ("max_error_px", -1.0),
        ("max_error_px", 0),
        ("max_error_px", np.nan),
        ("max_error_px", "1"),
        ("max_error_px", True),
        ("max_error_px", 1e200),
        ("max_error_px", 1e-170),
        ("top_models", 2**31),
        ("samples_per_round", 2**31),
        ("top_models", 0),
        ("rounds", 10**6 + 1),
        ("samples_per_round", 10**4 + 1),
        ("top_models", 1001),
        ("local_models", 1001),
        ("max_ratio", np.inf),
        ("early_stop", "no"),
        ("success_probability", 1.0),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", 0.5),
    ],
)
def test_impossible_options_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Options(**{name: value})


@pytest.mark.parametrize("name", ["oversampling", "sample_quality"])
def test_options_that_moved_name_the_lab(name):
    with pytest.raises(ValueError, match=f"the option '{name}' is in caransac-lab now"):
        Options(**{name: 8})


def test_numbers_of_numpy_do_not_overflow():
    options = Options(rounds=np.uint8(200), seed=np.uint64(2**63), max_error_px=np.float32(2))
    assert options == Options(rounds=200, seed=2**63, max_error_px=2.0)
    assert options.rounds * options.rounds == 40_000 and type(options.seed) is int


def test_misspelt_options_are_refused_with_a_hint():
    with pytest.raises(ValueError, match="unknown option 'max_eror_px'; did you mean 'max_error_px'"):
        Options(max_eror_px=2.0)
    with pytest.raises(ValueError, match="unknown option 'zzz'"):
        Options(zzz=1)


def test_options_are_frozen_comparable_and_picklable():
    options = Options(rounds=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.rounds = 8
    assert options == Options(rounds=7)
    assert pickle.loads(pickle.dumps(options)) == options
    assert dataclasses.replace(options, rounds=4) == Options()


def test_weights_may_be_a_path():
    pair = make_pair(300, seed=0)
    call = (pair.points1, pair.points2, pair.camera1, pair.camera2)
    path = weights_path("default")
    assert isinstance(path, Path)
    answers = [estimate_relative_pose(*call, options=Options(weights=w)).R for w in ("default", path, str(path))]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("threshold", "max_error_px"), ("max_iterations", "rounds"), ("confidence", "success_probability")],
)
def test_names_of_other_libraries_get_suggestions(theirs, ours):
    with pytest.raises(ValueError, match=f"unknown option '{theirs}'; did you mean '{ours}'"):
        Options(**{theirs: 1})


def test_the_signature_shows_the_fields():
    shown = inspect.signature(Options).parameters
    assert list(shown) == [field.name for field in dataclasses.fields(Options)]
    assert shown["max_error_px"].default == "auto"
