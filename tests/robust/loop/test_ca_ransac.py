"""The loop: its arithmetic, its trace, its ablations."""

import numpy as np
import pytest

from caransac import Options, estimate_fundamental, estimate_relative_pose
from caransac.geometry import pose_error_deg, sampson_sq
from caransac.learned.state_network import load_network
from caransac.synthetic import make_pair


def run(pair, **options):
    return estimate_relative_pose(
        pair.points1,
        pair.points2,
        pair.camera1,
        pair.camera2,
        scores=pair.scores,
        score_kind="ratio",
        options=Options(early_stop=False, **options),
    )


def test_the_trace_records_every_round():
    pair = make_pair(800, outlier_ratio=0.7, seed=3)
    result = run(pair, keep_trace=True, rounds=3, top_models=2)
    assert run(pair).trace is None
    assert len(result.trace) == 4
    start, *rounds = result.trace
    assert start.models.shape == (0, 3, 4)
    assert start.samples.shape == (0, 5)
    assert start.best is None
    assert start.msac_scores.shape == (0, 800)
    for record in rounds:
        assert record.models.shape[1:] == record.best.shape == (3, 4)
        assert 1 <= len(record.models) <= 2
        assert record.msac_scores.shape == (len(record.models), 800)
        assert np.all((record.msac_scores >= 0) & (record.msac_scores <= 1))
        assert record.probabilities.shape == (800,)
        assert 0 < record.noise <= 1
        assert record.samples.shape == (256, 5)
        assert len(record.state) == 800
    entropy = [
        -np.mean(np.where(pair.inliers, np.log(r.probabilities), np.log1p(-r.probabilities))) for r in result.trace
    ]
    assert entropy[-1] < 0.7 * entropy[0]  # the probabilities improve over the rounds


def test_the_trace_of_a_fundamental_matrix_is_in_pixels():
    pair = make_pair(800, outlier_ratio=0.5, seed=3)
    options = Options(keep_trace=True, max_error_px=1.0)
    result = estimate_fundamental(pair.points1, pair.points2, scores=pair.scores, score_kind="ratio", options=options)
    last = result.trace[-1]
    assert np.allclose(np.abs(last.best), np.abs(result.F))
    distances = np.sqrt(sampson_sq(last.models[0], pair.points1, pair.points2))
    scored = last.msac_scores[0] > 0
    assert np.allclose(last.msac_scores[0][scored], 1 - distances[scored] ** 2, atol=1e-4)


@pytest.mark.parametrize("switch", ["state_update", "adaptive_sampling", "adaptive_refinement"])
def test_ablations_have_the_stated_effect(switch):
    pair = make_pair(1000, outlier_ratio=0.6, seed=5)
    full = run(pair, keep_trace=True)
    ablated = run(pair, keep_trace=True, **{switch: False})
    assert pose_error_deg(ablated.R, ablated.t, pair.R, pair.t) < 2
    prior = full.trace[0].probabilities
    if switch == "state_update":
        assert all(np.array_equal(r.probabilities, prior) for r in ablated.trace)
    elif switch == "adaptive_sampling":
        assert not np.array_equal(ablated.trace[1].models, full.trace[1].models)
        confidence = estimate_relative_pose(
            pair.points1, pair.points2, pair.camera1, pair.camera2, options=Options(adaptive_sampling=False)
        )
        assert confidence.success  # without scores, all matches are in the pool
    else:
        assert np.array_equal(ablated.trace[1].models, full.trace[1].models)
        assert not np.array_equal(ablated.trace[1].best, full.trace[1].best)


def test_memory_grows_with_the_matches_not_with_their_square():
    """A hundred thousand matches would need 40 GB for their attention matrix."""
    network = load_network("default")
    state = np.zeros((100_000, len(network.weights["decoder.0.weight"])), np.float32)
    scores = np.ones((4, 100_000), np.float32)
    assert network.update(state, scores)[0].shape == state.shape
