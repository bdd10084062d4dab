"""Every adapter obeys its settings: threshold, iterations and seed have an effect."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair
from caransac_lab.bench.adapters import ESTIMATORS, gcransac_interface
from caransac_lab.bench.contract import RunSettings, installed_version
from caransac_lab.bench.protocol import BenchMethod, Job, pose_of_essential, pose_of_fundamental, run_job
from caransac_lab.datasets import Pair

pytestmark = pytest.mark.slow

CASES = [
    pytest.param(estimator, problem, id=f"{estimator.name}-{problem}")
    for estimator in ESTIMATORS.values()
    for problem in estimator.problems
    if estimator.module != "caransac" or estimator.name in ("CA-RANSAC", "LM-LO", "LM-LO-U")
    if (estimator.name, problem) != ("SupeRANSAC", "E")  # has its own test below
]
# Peers that report no iterations, or that may stop early.
PEERS = [case for case in CASES if case.values[0].module not in ("caransac", "poselib", "pysuperansac")]


POSELIB = ("PoseLib", "PoseLib PROSAC")


def pairs(count=3, outlier_ratio=0.5, num_points=300):
    """Create pairs without scores, so that no method can distinguish right matches beforehand."""
    for seed in range(count):
        made = make_pair(num_points, outlier_ratio, noise_px=0.3, seed=seed)
        cameras = made.camera1, made.camera2
        yield Pair("made", str(seed), made.points1, made.points2, None, *cameras, made.R, made.t)


def errors(estimator, problem, given=None, **settings):
    """Return pose errors, clamped at 30 degrees, of an estimator without the final refinement of the protocol."""
    if estimator.missing:
        pytest.skip(estimator.missing)  # the peer has no wheel for this platform; the message names it
    told = RunSettings(**{"max_error_px": estimator.max_error_px, "iterations": 1024} | settings)
    pose_of = pose_of_essential if problem == "E" else pose_of_fundamental
    clamped = []
    for pair in given or pairs():
        found = estimator.run(pair, problem, told)
        pose = None if found is None else found.pose or pose_of(found.matrix, pair)
        clamped.append(30.0 if pose is None else min(pose_error_deg(*pose, pair.R, pair.t), 30.0))
    return np.array(clamped)


@pytest.mark.parametrize(("estimator", "problem"), CASES)
def test_threshold_takes_effect(estimator, problem):
    fine = errors(estimator, problem)
    coarse = errors(estimator, problem, max_error_px=100.0)
    assert np.median(fine) < 3
    # It measures the noise, so a wrong threshold hardly affects the accuracy.
    if estimator.name.startswith("CA-RANSAC"):
        assert not np.array_equal(fine, coarse)
    else:
        assert coarse.mean() > 1.5 * fine.mean()


@pytest.mark.parametrize(("estimator", "problem"), PEERS)
def test_iterations_take_effect(estimator, problem):
    hard = list(pairs(outlier_ratio=0.55))
    tries = 4 if estimator.seeding == "none" else 1  # without a seed, single runs may fail
    few, many = (
        np.min([errors(estimator, problem, hard, iterations=count) for _ in range(tries)], axis=0)
        for count in (2, 1500)
    )
    assert many.mean() < 0.6 * few.mean()


@pytest.mark.parametrize(
    "name", ["CA-RANSAC", "CA-RANSAC 4x256(x8)", "LM-LO", "LM-LO-U 512", "PoseLib", "PoseLib PROSAC"]
)
@pytest.mark.parametrize("problem", ["E", "F"])
def test_reported_iterations_match_the_request(name, problem):
    estimator = ESTIMATORS[name]
    pair = next(pairs(1))
    wanted = estimator.iterations or 768
    assert estimator.run(pair, problem, RunSettings(iterations=wanted)).iterations == wanted


@pytest.mark.parametrize(("estimator", "problem"), CASES)
def test_own_stopping_and_too_few_matches(estimator, problem):
    assert np.median(errors(estimator, problem, iterations=None)) < 3
    few = next(pairs(1, num_points=3))
    job = Job(BenchMethod(estimator.name, None, estimator.name), problem, RunSettings(iterations=10))
    assert run_job(job, few).status == "failed"


@pytest.mark.parametrize(("estimator", "problem"), [case for case in CASES if case.values[0].seeding != "none"])
def test_seeds_repeat_and_differ(estimator, problem):
    if estimator.missing:
        pytest.skip(estimator.missing)  # the peer has no wheel for this platform; the message names it
    hard = list(pairs(3, outlier_ratio=0.6))

    def found(seed):
        job = Job(BenchMethod(estimator.name, None, estimator.name), problem, RunSettings(iterations=64, seed=seed))
        return [run_job(job, pair).error_deg for pair in hard]

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_superansac_finds_easy_poses():
    """A weaker test, because pysuperansac 1.0 sometimes fails if half of the matches are wrong."""
    estimator, easy = ESTIMATORS["SupeRANSAC"], list(pairs(5, outlier_ratio=0.2))
    fine = np.median(errors(estimator, "E", easy))
    assert fine < 1
    assert np.median(errors(estimator, "E", easy, max_error_px=100.0)) > 1.5 * fine
    assert np.median(errors(estimator, "E", easy, iterations=None)) < 1
    assert estimator.run(next(pairs(1, num_points=3)), "E", RunSettings()) is None


def test_superansac_draws_the_requested_number_of_samples():
    """Its local optimisation finds the model even from two hypotheses, so errors do not depend on their number."""
    estimator = ESTIMATORS["SupeRANSAC"]
    if estimator.missing:
        pytest.skip(estimator.missing)  # the peer has no wheel for this platform
    for wanted in (2, 768):
        assert estimator.run(next(pairs(1)), "F", RunSettings(max_error_px=3.0, iterations=wanted)).iterations == wanted


@pytest.mark.parametrize(("name", "library"), [("GC-RANSAC", "pygcransac"), ("MAGSAC++", "pymagsac")])
def test_matches_without_scores_are_sampled_uniformly(name, library, monkeypatch):
    """PROSAC would draw from the first few matches, which are no better than the others."""
    drawn, scored = [], Pair.from_synthetic(make_pair(50))
    fake = SimpleNamespace(findEssentialMatrix=lambda *_, sampler, **__: (drawn.append(sampler), (np.eye(3), None))[1])
    monkeypatch.setitem(sys.modules, library, fake)
    for pair in (scored, replace(scored, scores=None)):
        assert ESTIMATORS[name].run(pair, "E", RunSettings()) is not None
    assert drawn == [gcransac_interface.PROSAC, gcransac_interface.UNIFORM]


def test_poselib_samples_progressively_only_with_scores():
    scored = Pair.from_synthetic(make_pair(300, outlier_ratio=0.6))
    for pair, same in ((scored, False), (replace(scored, scores=None), True)):
        uniform, prosac = (ESTIMATORS[name].run(pair, "E", RunSettings(iterations=20)).pose for name in POSELIB)
        assert np.array_equal(uniform[1], prosac[1]) == same


def test_messages_about_missing_packages_name_the_remedy():
    absent = replace(ESTIMATORS["PoseLib"], module="no_such_module")
    assert "poselib>=2.0.4" in absent.missing
    assert "pip install" in absent.missing
    old = replace(ESTIMATORS["PoseLib"], min_version="99.0")
    assert "99.0" in old.missing
    assert installed_version("poselib") in old.missing
