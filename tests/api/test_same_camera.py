"""The decision whether one camera took both images, if the caller does not specify it."""

from dataclasses import replace

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.api import same_camera
from caransac.api.refined_cameras import refined_cameras
from caransac.api.same_camera import estimate_focal_pose
from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import rotation_from_vector
from caransac.robust.records import MatchInfo

SIZE = (1024, 768)


def matches(seed, focal1, focal2):
    """Create pixels of a point cloud seen by two cameras with centred principal points."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(-2, 2, (600, 2)), rng.uniform(4, 9, 600)]
    angle = np.radians(25)
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    Y = X @ R.T - R @ [0, 0, 6.0] + [0.3, 0.2, 6.5]
    centre = (np.array(SIZE) - 1) / 2
    pixels = [f * P[:, :2] / P[:, 2:] + centre for f, P in ((focal1, X), (focal2, Y))]
    return [points + rng.normal(0, 0.3, points.shape) for points in pixels]


def uncertain(focal=UNKNOWN_FOCAL * SIZE[0], deviation=UNKNOWN_FOCAL_DEVIATION, size=SIZE):
    centre = (np.array(size) - 1) / 2
    return Camera("SIMPLE_PINHOLE", (focal, *centre), *size, deviation)


@pytest.fixture
def asked(monkeypatch):
    """Record for every estimate whether it assumed one camera."""
    calls, estimate = [], same_camera.estimate_model

    def recording(problem, info, options):
        calls.append(problem.shared)
        return estimate(problem, info, options)

    monkeypatch.setattr(same_camera, "estimate_model", recording)
    return calls


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("focal2", "one"), [(900.0, True), (1350.0, False)])
def test_two_unknown_cameras_are_one_unless_two_explain_more(asked, seed, focal2, one):
    points = matches(seed, 900.0, focal2)
    problem, found = estimate_focal_pose(*points, uncertain(), uncertain(), None, MatchInfo(), Options())
    assert asked == [True, False]
    assert problem.shared == one
    cameras = refined_cameras(problem, found, problem.cameras)
    assert cameras[1].fx / cameras[0].fx == pytest.approx(focal2 / 900, rel=0.01 if one else 0.2)


@pytest.mark.parametrize("said", [True, False])
def test_the_callers_statement_is_used(asked, said):
    points = matches(0, 900.0, 1350.0)
    problem, _ = estimate_focal_pose(*points, uncertain(), uncertain(), said, MatchInfo(), Options())
    assert problem.shared == said
    assert asked == [said]


def test_cameras_that_differ_are_two(asked):
    points = matches(0, 900.0, 900.0)
    one = uncertain(900.0, 0.05)
    others = [uncertain(950.0, 0.05), uncertain(900.0, 0.1), uncertain(900.0, 0.05, (800, 600))]
    others.append(replace(one, model="SIMPLE_RADIAL", params=(*one.params, 0.0)))
    for other in others:
        problem, _ = estimate_focal_pose(*points, one, other, None, MatchInfo(), Options())
        assert not problem.shared
    assert asked == [False] * len(others)


def test_a_shared_camera_may_take_portrait_and_landscape_images(asked):
    points = matches(0, 900.0, 900.0)
    one = uncertain(900.0, 0.05)
    for other in (one, replace(one, width=one.height, height=one.width)):
        problem, found = estimate_focal_pose(*points, one, other, None, MatchInfo(), Options())
        assert problem.shared
        assert found.model is not None
    assert asked == [True, True]


def test_without_an_answer_for_one_camera_two_are_not_tried(asked):
    few = np.zeros((3, 2))
    problem, found = estimate_focal_pose(few, few, uncertain(), uncertain(), None, MatchInfo(), Options())
    assert (found.model, found.stop_reason) == (None, "too_few_points")
    assert problem.shared
    assert asked == [True]


def test_motion_along_the_axis_and_zoom_are_both_possible():
    """If two cameras explain the matches as well as one, and the camera would move the other way, neither is sure."""
    found_both = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.c_[rng.uniform(-6, 6, (1600, 2)), rng.uniform(8, 12, 1600)]
        R, t = rotation_from_vector(0.02 * rng.normal(size=3)), np.array([0.05, 0.02, 0.5])
        Y = X @ R.T + t
        points = [f * P[:, :2] / P[:, 2:] + (512, 384) for f, P in ((870, X), (1131, Y))]
        seen = np.all([(p > 0) & (p < (1023, 767)) for p in points], axis=(0, 2))
        noisy = [(p[seen][:400] + 0.5 * rng.normal(size=(400, 2))).clip(0, (1023, 767)) for p in points]
        found = caransac.estimate_relative_pose(*noisy, image_size1=SIZE, image_size2=SIZE)
        if any(found.t @ other.t < 0 for other in found.alternatives):
            found_both += 1
            assert not found.is_confident(), seed
    assert found_both >= 4


def test_an_unusual_focal_length_is_doubtful():
    for seed in range(4):
        points = matches(seed, 900.0, 900.0)
        near, far = (
            caransac.estimate_relative_pose(*points, camera, camera)
            for camera in (uncertain(900.0, 0.05), uncertain(700.0, 0.05))
        )
        assert near.confidence > 0.9
        assert 0.5 < far.confidence <= 0.75
