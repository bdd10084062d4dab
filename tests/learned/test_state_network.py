"""The state network: the low-rank shortcuts are exact, and the invariants of the attention are met."""

import itertools
import pickle

import numpy as np
import pytest

from caransac.learned.network_layout import NUM_FEATURES, PAPER_LAYOUT
from caransac.learned.state_network import StateNetwork, load_network

pytestmark = pytest.mark.kernels


def random_network(rng, c=12, hidden=12):
    """Create a network with a state of c numbers. No two adjacent layers have equal widths by accident."""
    sizes = {
        "init": [7, max(c - 3, 1), c],
        "decoder": [c, 6, 3, 1],
        "message": [c, hidden, hidden, hidden + 2],
        "digest": [hidden + 2, hidden, hidden, hidden + 1],
        "update": [c + hidden + 1, c, c, c],
    }
    weights = {"alpha": np.array(1.0)}
    for name, widths in sizes.items():
        for layer, (rows, columns) in enumerate(itertools.pairwise(widths)):
            weights[f"{name}.{layer}.weight"] = (rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32)
            weights[f"{name}.{layer}.bias"] = (rng.normal(size=columns) * 0.1).astype(np.float32)
    return StateNetwork(weights)


def paper_network(rng, c=128):
    """Create a network with the paper's layers and random weights. Layers of constant width have skip connections."""
    sizes = {
        "init": [16, c, c],
        "decoder": [c, c // 2, c // 4, 1],
        "message": [c, c, c, c],
        "digest": [c, c, c, c],
        "update": [2 * c, c, c, c],
    }
    weights = {"alpha": np.array(1.0), **PAPER_LAYOUT.to_weights()}
    for name, widths in sizes.items():
        for layer, (rows, columns) in enumerate(itertools.pairwise(widths)):
            weights[f"{name}.{layer}.weight"] = (rng.normal(size=(rows, columns)) / rows).astype(np.float32)
            weights[f"{name}.{layer}.bias"] = (rng.normal(size=columns) * 0.1).astype(np.float32)
    return StateNetwork(weights)


@pytest.fixture
def network(rng):
    """Random weights."""
    return random_network(rng)


def by_numpy(network, name, x, activation):
    """Compute a part of the network in double precision."""
    depth = sum(key.startswith(f"{name}.") for key in network.weights) // 2
    for layer in range(depth):
        weight, bias = (network.weights[f"{name}.{layer}.{part}"] for part in ("weight", "bias"))
        y = x.astype(float) @ weight + bias
        y = activation(y) if layer + 1 < depth else y
        skips = network.layout.every_skip or 0 < layer < depth - 1
        x = y + x if skips and weight.shape[0] == weight.shape[1] else y
    return x


def leaky_relu(x):
    return np.maximum(x, 0.01 * x)


def naive_update(network, state, scores):
    """Compute ``F <- update([F, digest(A message(F))])`` with the complete (n, n) attention matrix."""
    attention = scores.T @ scores / max(scores.sum(), 1e-6)
    digest = by_numpy(network, "digest", attention @ by_numpy(network, "message", state, np.tanh), np.tanh)
    return by_numpy(network, "update", np.concatenate([state, digest], axis=1), leaky_relu)


def naive_probabilities(network, state):
    return 1 / (1 + np.exp(-by_numpy(network, "decoder", state, leaky_relu)[:, 0]))


def some_scores(rng, k, n, share):
    """Draw MSAC scores (k, n) of models. A share of the matches has scores, each from half of the models."""
    return rng.uniform(size=(k, n)) * (rng.uniform(size=(k, n)) < 0.5) * (rng.uniform(size=n) < share)


@pytest.mark.parametrize("n", [0, 1, 11, 48, 200])
@pytest.mark.parametrize(("c", "hidden"), [(12, 12), (16, 16), (8, 20), (33, 7), (128, 120)])
def test_the_prior_matches_the_equations(rng, n, c, hidden):
    network, side = random_network(rng, c, hidden), rng.normal(size=(n, 7))
    state, probabilities = network.first(side)
    assert state.shape == (n, c) and probabilities.shape == (n,)
    assert np.allclose(state, by_numpy(network, "init", side, leaky_relu), atol=1e-5)
    assert np.allclose(probabilities, naive_probabilities(network, state), atol=1e-6)


@pytest.mark.parametrize("share", [0, 0.3, 1])
@pytest.mark.parametrize(("k", "n"), [(1, 0), (1, 1), (3, 12), (4, 40), (20, 300)])
@pytest.mark.parametrize(("c", "hidden"), [(12, 12), (16, 16), (8, 20), (33, 7), (128, 120)])
def test_the_shortcuts_are_exact(rng, k, n, share, c, hidden):
    network = random_network(rng, c, hidden)
    before, scores = rng.normal(size=(n, c)), some_scores(rng, k, n, share)
    state, probabilities = network.update(before, scores)
    assert state.dtype == probabilities.dtype == np.float32
    assert np.allclose(state, naive_update(network, before, scores), atol=1e-5)
    assert np.allclose(probabilities, naive_probabilities(network, state), atol=1e-6)


@pytest.mark.parametrize("share", [0, 0.3, 1])
@pytest.mark.parametrize("c", [8, 128])
def test_the_update_of_the_paper_matches_its_full_attention_matrix(rng, c, share):
    """A = S S^T / sum_j C_j and F <- MLP1([F, MLP2(A MLP3(F))]), with a skip connection if the width is kept."""
    network, n, k = paper_network(rng, c), 60, 4
    side, scores = rng.normal(size=(n, 16)), some_scores(rng, k, n, share)
    state, probabilities = network.first(side)
    assert np.allclose(state, by_numpy(network, "init", side, leaky_relu), atol=1e-5)
    assert np.allclose(probabilities, naive_probabilities(network, state), atol=1e-6)
    totals = scores.sum(axis=1)
    attention = np.zeros((n, n))
    for i, j in itertools.product(range(n), range(n)):
        attention[i, j] = sum(scores[m, i] * scores[m, j] for m in range(k)) / max(totals.sum(), 1e-6)
    assert attention.min() >= 0 and attention.sum(axis=1).max(initial=0) <= 1 + 1e-9
    message = by_numpy(network, "message", state, np.tanh)
    digest = by_numpy(network, "digest", attention @ message, np.tanh)
    expected = by_numpy(network, "update", np.concatenate([state, digest], axis=1), leaky_relu)
    updated, probabilities = network.update(state, scores)
    assert np.allclose(updated, expected, atol=1e-5, rtol=1e-5)
    assert np.allclose(probabilities, naive_probabilities(network, updated), atol=1e-6)


def test_every_layer_of_the_paper_that_keeps_its_width_has_a_skip_connection(rng):
    network = paper_network(rng)
    skips = {name: [residual for *_, residual in layers] for name, layers in network.layers.items()}
    assert skips == {
        "init": [False, True],
        "decoder": [False, False, False],
        "message": [True, True, True],
        "digest": [True, True, True],
        "update": [False, True, True],
    }


@pytest.mark.parametrize(("name", "value"), [("lifted", 0.5), ("lifted", -1), ("lifted", 1), ("every_skip", 2)])
def test_an_impossible_layout_is_refused(rng, name, value):
    weights = {**paper_network(rng, 8).weights, f"layout.{name}": np.array(value, np.float32)}
    with pytest.raises(ValueError, match="layout"):
        StateNetwork(weights).try_out()


@pytest.mark.parametrize(
    ("state", "scores", "message"),
    [
        ((5, 11), (4, 5), "state must be as wide"),
        ((5, 12), (4, 6), "column for every row of state"),
        ((5, 12), (0, 5), "1 to 1024 rows"),
        ((1, 12), (1025, 1), "1 to 1024 rows"),
    ],
)
def test_arrays_of_other_shapes_are_refused(network, state, scores, message):
    with pytest.raises(ValueError, match=message):
        network.update(np.zeros(state), np.zeros(scores))


def test_side_information_of_another_width_is_refused(network):
    with pytest.raises(ValueError, match="side must have a column"):
        network.first(np.zeros((5, 8)))


def test_a_network_that_was_used_can_be_pickled(rng, network):
    side = rng.normal(size=(9, 7))
    expected = network.first(side)
    again = pickle.loads(pickle.dumps(network)).first(side)
    assert all(np.array_equal(*pair) for pair in zip(again, expected, strict=True))


def test_row_sums_of_the_attention_lie_between_zero_and_one(rng):
    scores = rng.uniform(size=(4, 40))
    rows = (scores.T @ scores / scores.sum()).sum(axis=1)
    assert rows.min() >= 0
    assert rows.max() <= 1


def test_the_order_of_the_points_does_not_matter(rng, network):
    state, scores, order = rng.normal(size=(40, 12)), rng.uniform(size=(4, 40)), rng.permutation(40)
    for given, permuted in zip(
        network.update(state, scores), network.update(state[order], scores[:, order]), strict=True
    ):
        assert np.allclose(given[order], permuted, atol=1e-5)


def test_a_point_without_a_model_is_updated_only_from_its_own_state(rng, network):
    state, scores = rng.normal(size=(40, 12)), rng.uniform(size=(4, 40))
    scores[:, 5] = 0
    others = rng.normal(size=(40, 12))
    others[5] = state[5]
    for one, other in zip(
        network.update(state, scores), network.update(others, rng.permuted(scores, axis=0)), strict=True
    ):
        assert np.array_equal(one[5], other[5])


def test_a_zero_consensus_causes_no_division_by_zero(rng, network):
    state, probabilities = network.update(rng.normal(size=(10, 12)), np.zeros((4, 10)))
    assert np.isfinite(state).all() and np.isfinite(probabilities).all()


@pytest.mark.parametrize("log_odds", [-16.0, 16.0])
def test_rounding_keeps_probabilities_between_zero_and_one(rng, log_odds):
    """A negative probability would give NaN as a weight of the refinement."""
    weights = load_network("default").weights
    network = StateNetwork({**weights, "decoder.2.bias": np.full(1, log_odds, np.float32)})
    probabilities = network.first(rng.normal(size=(10_000, NUM_FEATURES)).astype(np.float32))[1]
    assert probabilities.min() >= 0 and probabilities.max() <= 1


def test_the_shipped_weights_fit_the_side_information():
    network = load_network("default")
    assert network.num_features == NUM_FEATURES
    _, probabilities = network.first(np.zeros((3, NUM_FEATURES), np.float32))
    assert probabilities.dtype == np.float32
    assert np.all((probabilities > 0) & (probabilities < 1))
