"""The confidence: its evidence, and that it tells right from wrong."""

import numpy as np
import pytest

from caransac import Options, estimate_fundamental, estimate_relative_pose
from caransac.confidence import EVIDENCE, confidence, evidence
from caransac.estimator import Estimate, ca_ransac
from caransac.problems import Essential
from caransac.side import side_information
from caransac.state import StateNetwork, load_network
from caransac.synthetic import make_pair


def estimate(pair, scores=None):
    return estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, scores=scores)


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
    result = estimate_relative_pose(pair.points1, shuffled, pair.camera1, pair.camera2, scores=pair.scores)
    assert result.confidence < 0.3
    fundamental = estimate_fundamental(pair.points1, pair.points2, scores=pair.scores)
    noise = estimate_fundamental(pair.points1, shuffled, scores=pair.scores)
    assert noise.confidence < fundamental.confidence
    assert noise.confidence < 0.3


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
    found = ca_ransac(problem, network, side, Options())
    assert confidence(network, problem, found) is None
    numbers = evidence(network, problem, found)
    assert numbers.shape == (len(EVIDENCE),)
    assert np.isfinite(numbers).all()
    assert confidence(network, problem, Estimate(None, "degenerate", 0)) == 0
