"""The confidence: its evidence, and that it tells right from wrong."""

import numpy as np
import pytest

from caransac import Options, estimate_fundamental, estimate_relative_pose
from caransac.camera import Camera
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.learned.side_information import side_information
from caransac.learned.state_network import StateNetwork, load_network
from caransac.robust.ca_ransac import first_belief
from caransac.robust.confidence import ERRORS_IN_DEVIATION, EVIDENCE, confidence, evidence, within_limit
from caransac.robust.estimate import Estimate
from caransac.robust.methods import adapt
from caransac.robust.problems import Essential
from caransac.synthetic import make_pair


def estimate(pair, scores=None):
    return estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=scores, score_kind="ratio"
    )


def test_the_shipped_weights_carry_the_confidence():
    weights = load_network("default").weights
    for problem in ("essential", "fundamental"):
        assert weights[f"confidence.{problem}.weight"].shape == (len(EVIDENCE),)
        assert np.isfinite(weights[f"confidence.{problem}.bias"])


@pytest.mark.parametrize("seed", range(4))
def test_right_answers_are_trusted_and_answers_from_nothing_are_not(seed, rng):
    pair = make_pair(1000, outlier_ratio=0.5, seed=seed)
    assert estimate(pair, pair.scores).confidence > 0.9
    shuffled = rng.permutation(pair.points2)
    result = estimate_relative_pose(
        pair.points1, shuffled, pair.camera1, pair.camera2, scores=pair.scores, score_kind="ratio"
    )
    assert result.confidence < 0.3
    fundamental = estimate_fundamental(pair.points1, pair.points2, scores=pair.scores, score_kind="ratio")
    noise = estimate_fundamental(pair.points1, shuffled, scores=pair.scores, score_kind="ratio")
    assert noise.confidence < fundamental.confidence
    assert noise.confidence < 0.3


def turned(baseline, seed):
    """Right matches, half as many wrong ones, of a camera that turned and moved by a share of the scene's depth."""
    rng = np.random.default_rng(seed)
    camera = Camera("SIMPLE_PINHOLE", (600, 320, 240), 640, 480)
    points1 = rng.uniform((0, 0), (640, 480), (900, 2))
    depths = rng.uniform(4, 12, 900)
    rays = np.c_[camera.pixels_to_rays(points1), np.ones(900)] * depths[:, None]
    R, t = rotation_from_vector(rng.normal(0, 0.1, 3)), rng.normal(size=3)
    t /= np.linalg.norm(t)
    seen = rays @ R.T + baseline * depths.mean() * t
    points2 = camera.rays_to_pixels(seen[:, :2] / seen[:, 2:]) + rng.normal(0, 0.4, (900, 2))
    points2[600:] = rng.uniform((0, 0), (640, 480), (300, 2))
    return estimate_relative_pose(points1 + rng.normal(0, 0.4, (900, 2)), points2, camera, camera), R, t


def test_cameras_that_hardly_moved_are_not_trusted():
    for baseline, low, high in ((0.0, 0.0, 0.3), (0.03, 0.9, 1.0)):
        confidences, right = [], []
        for seed in range(12):
            result, R, t = turned(baseline, seed)
            confidences.append(result.confidence)
            right.append(pose_error_deg(result.R, result.t, R, t) < 5)
        assert low <= np.mean(confidences) <= high
        assert abs(np.mean(confidences) - np.mean(right)) < 0.2


def test_the_limit_is_that_of_two_normal_coordinates(rng):
    deviation = np.radians(1.5)
    errors = np.linalg.norm(rng.normal(0, ERRORS_IN_DEVIATION * deviation, (100_000, 2)), axis=1)
    assert within_limit(deviation) == pytest.approx(np.mean(errors < np.radians(5)), abs=0.01)
    assert within_limit(1e-5) == 1
    assert 0 < within_limit(1e3) < 1e-6


def test_failures_have_none_and_classical_methods_do_not_tell():
    pair = make_pair(100, seed=0)
    cameras = pair.camera1, pair.camera2
    failed = estimate_relative_pose(pair.points1[:3], pair.points2[:3], *cameras)
    assert not failed.success
    assert failed.confidence == 0
    classical = estimate_relative_pose(pair.points1, pair.points2, *cameras, options=Options(method="lm-lo"))
    assert classical.confidence is None


def test_weights_without_a_confidence_say_so():
    pair = make_pair(300, seed=0)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2, 1.0)
    shipped = load_network("default")
    network = StateNetwork({k: v for k, v in shipped.weights.items() if not k.startswith("confidence")})
    side = side_information(problem.points1, problem.points2, pair.scores, "ratio")
    found = adapt(problem, network, first_belief(problem, network, side), Options())
    assert confidence(network, problem, found) is None
    numbers = evidence(network, problem, found)
    assert numbers.shape == (len(EVIDENCE),)
    assert np.isfinite(numbers).all()
    assert confidence(network, problem, Estimate(model=None, stop_reason="degenerate", num_hypotheses=0)) == 0
