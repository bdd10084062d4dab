"""Evidence from matches about wrong cameras."""

import numpy as np
import pytest

from caransac import Options, estimate, estimate_relative_pose
from caransac.geometry import angle_between_deg, rotation_angle_deg
from caransac.robust.assess.camera_evidence import check_cameras
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


def test_other_cameras_gain_the_consensus_that_wrong_focal_lengths_lose():
    right = [evidence("depth", seed).gain for seed in range(10)]
    wrong = [evidence("wrong focal", seed).gain for seed in range(10)]
    assert max(right) < 0.1
    assert np.median(wrong) > 0.4


def test_right_focal_lengths_stay_when_free():
    found = [evidence("depth", seed) for seed in range(10)]
    assert np.median([abs(d.shift) for d in found]) < 0.02
    assert not any(d.contradicts for d in found)
    assert np.median([d.deviation for d in found]) < 0.05


def test_a_plane_does_not_determine_the_focal_length():
    plane, depth = (np.median([evidence(kind, seed).deviation for seed in range(20)]) for kind in ("plane", "depth"))
    assert plane > 0.05 and plane > 5 * depth


def test_without_cameras_there_is_no_evidence():
    assert evidence("depth", 0, Fundamental) is None


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_a_focal_length_that_the_matches_contradict_is_named(factor):
    warned = 0
    for seed in range(6):
        pair = make_hard_pair("depth", np.random.default_rng(seed), 0.2)
        assert estimate_relative_pose(pair.points1, pair.points2, pair.camera, pair.camera).warnings == ()
        wrong = pair.camera.adjusted(factor, (0, 0), 0.0)
        found = estimate_relative_pose(pair.points1, pair.points2, wrong, wrong)
        if found.warnings:
            warned += 1
            (text,) = found.warnings
            better = float(text.removeprefix("the matches fit better with a focal length of ").partition(" times")[0])
            assert (better > 1) == (factor < 1)
            assert text in estimate(pair.points1, pair.points2, wrong, wrong).reason
    assert warned >= 3


def test_deviations_of_a_pose_include_an_unknown_camera():
    """Usually, they exceed the change of the pose if the focal length changes by its stated deviation."""
    ratios = []
    for seed in range(8):
        pair = make_hard_pair("depth", np.random.default_rng(seed), 0.0)
        size = pair.camera.width, pair.camera.height
        found = estimate_relative_pose(pair.points1, pair.points2, image_size1=size, image_size2=size, same_camera=True)
        factor = np.exp(found.camera1.focal_deviation)
        first, second = (
            estimate_relative_pose(pair.points1, pair.points2, camera, camera)
            for camera in (found.camera1.exact, found.camera1.adjusted(factor, (0, 0), 0.0))
        )
        ratios.append(rotation_angle_deg(second.R @ first.R.T) / found.rotation_deviation_deg)
        ratios.append(angle_between_deg(second.t, first.t) / found.direction_deviation_deg)
        np.testing.assert_allclose(found.covariance, found.covariance.T, atol=1e-12)
        assert np.linalg.eigvalsh(found.covariance).min() > -1e-9
    assert np.median(ratios) < 1.0, ratios
