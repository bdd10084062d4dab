"""Matches tell whether the cameras they were given with are right."""

import numpy as np

from caransac import Options
from caransac.robust.assess.camera_evidence import CameraEvidence, check_cameras
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import Essential, Fundamental
from caransac.robust.records import MatchInfo
from caransac_lab.synthetic.hard_scenes import make_hard_pair


def evidence(kind, seed, problem=Essential):
    pair = make_hard_pair(kind, np.random.default_rng(seed), 0.2)
    cameras = (pair.camera, pair.camera) if problem is Essential else ()
    given = problem.from_pixels(pair.points1, pair.points2, *cameras)
    options = Options()
    return check_cameras(given, estimate_model(given, MatchInfo(), options), options.tuning)


def test_wrong_focal_lengths_lose_consensus_that_other_cameras_gain():
    right = [evidence("depth", seed).gain for seed in range(10)]
    wrong = [evidence("wrong focal", seed).gain for seed in range(10)]
    assert max(right) < 0.1
    assert np.median(wrong) > 0.4


def test_right_focal_lengths_stay_when_free():
    found = [evidence("depth", seed) for seed in range(10)]
    assert np.median([d.shift for d in found]) < 0.02
    assert np.median([d.deviation for d in found]) < 0.05


def test_a_plane_does_not_tell_the_focal_length():
    plane, depth = (np.median([evidence(kind, seed).deviation for seed in range(20)]) for kind in ("plane", "depth"))
    assert plane > 0.05 and plane > 5 * depth


def test_without_cameras_there_is_no_evidence():
    assert evidence("depth", 0, Fundamental) == CameraEvidence()
