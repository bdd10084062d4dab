"""The estimators for posebench: the form of its pairs, and of the errors that it expects."""

import h5py
import numpy as np
import pytest
from layouts import write_posebench

from caransac.synthetic import make_pair
from caransac_lab.bench.posebench_estimators import essential_caransac, fundamental_caransac

OPTIONS = {"max_error": 1.0, "ransac": {"max_iterations": 1000, "min_iterations": 100, "success_prob": 0.9999}}


def read_instance(path, **changed):
    """A pair in the form in which posebench reads it: cameras are dictionaries, t is not normalised."""
    with h5py.File(path) as file:
        group = file["pair"]
        points = {name: group[name][:] for name in ("x1", "x2", "R", "t")}
        cameras = {}
        for number in (1, 2):
            camera = group[f"camera{number}"]
            size = {name: int(camera[name][()]) for name in ("width", "height")}
            cameras[f"cam{number}"] = {"model": camera["model"].asstr()[()], "params": camera["params"][:]} | size
    return points | cameras | {"threshold": 1.0, "opt": OPTIONS} | changed


@pytest.mark.parametrize("estimator", [essential_caransac, fundamental_caransac])
def test_a_pair_of_posebench_gets_its_errors(tmp_path, estimator):
    write_posebench(tmp_path / "some.h5", make_pair(400, outlier_ratio=0.5))
    found = estimator(read_instance(tmp_path / "some.h5"))
    assert found.keys() == {"rot", "t", "rt"}
    assert found["rot"] < 1 and found["t"] < 3
    assert 0 < found["rt"] < 5
    turned = read_instance(tmp_path / "some.h5", R=np.diag([1.0, -1.0, -1.0]))
    assert estimator(turned)["rot"] > 90


@pytest.mark.parametrize("estimator", [essential_caransac, fundamental_caransac])
def test_no_answer_is_the_worst_error(tmp_path, estimator):
    write_posebench(tmp_path / "some.h5", make_pair(3, outlier_ratio=0.0))
    found = estimator(read_instance(tmp_path / "some.h5"))
    assert (found["rot"], found["t"]) == (180.0, 180.0)


def test_options_of_posebench_and_ours_take_effect(tmp_path, monkeypatch):
    write_posebench(tmp_path / "some.h5", make_pair(100))
    seen = []
    original = essential_caransac.__globals__["caransac"].estimate_relative_pose

    def noted(*arguments, options):
        seen.append(options)
        return original(*arguments, options=options)

    monkeypatch.setattr("caransac_lab.bench.posebench_estimators.caransac.estimate_relative_pose", noted)
    instance = read_instance(tmp_path / "some.h5", opt={"ransac": {"max_iterations": 512, "success_prob": 0.99}})
    essential_caransac(instance)
    essential_caransac(instance, max_error_px=instance["threshold"], method="lm-lo")
    assert [(each.rounds * each.samples_per_round, each.success_probability) for each in seen] == [(512, 0.99)] * 2
    assert [each.max_error_px for each in seen] == ["auto", 1.0]
