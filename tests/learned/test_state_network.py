"""The state network: the low-rank shortcuts are exact, and the invariants of the attention hold."""

import itertools

import numpy as np
import pytest

from caransac.learned.side_information import NUM_FEATURES
from caransac.learned.state_network import StateNetwork, load_network


@pytest.fixture
def network(rng):
    """Random weights."""
    c = 12
    sizes = {
        "init": [7, c, c],
        "decoder": [c, 6, 3, 1],
        "message": [c] * 4,
        "digest": [c] * 4,
        "update": [2 * c, c, c, c],
    }
    weights = {"alpha": np.array(1.0), "beta": np.array(0.5)}
    for name, widths in sizes.items():
        for layer, (rows, columns) in enumerate(itertools.pairwise(widths)):
            weights[f"{name}.{layer}.weight"] = (rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32)
            weights[f"{name}.{layer}.bias"] = (rng.normal(size=columns) * 0.1).astype(np.float32)
    return StateNetwork(weights)


def naive_update(network, state, scores):
    """``F <- update([F, digest(A message(F))])`` with the (n, n) attention written out."""
    w = network.weights

    def mlp(name, x, activation):
        hidden = activation(x @ w[f"{name}.0.weight"] + w[f"{name}.0.bias"])
        hidden = activation(hidden @ w[f"{name}.1.weight"] + w[f"{name}.1.bias"]) + hidden
        return hidden @ w[f"{name}.2.weight"] + w[f"{name}.2.bias"]

    attention = scores.T @ scores / scores.sum()
    digest = mlp("digest", attention @ mlp("message", state, np.tanh), np.tanh)
    return mlp("update", np.concatenate([state, digest], axis=1), lambda x: np.maximum(x, 0.01 * x))


def test_the_shortcuts_are_exact(rng, network):
    state, scores = rng.normal(size=(40, 12)), rng.uniform(size=(4, 40)) * (rng.uniform(size=(4, 40)) < 0.5)
    assert np.allclose(network.update(state, scores), naive_update(network, state, scores), atol=1e-5)


def test_row_sums_of_the_attention_lie_between_zero_and_one(rng):
    scores = rng.uniform(size=(4, 40))
    rows = (scores.T @ scores / scores.sum()).sum(axis=1)
    assert rows.min() >= 0
    assert rows.max() <= 1


def test_the_order_of_the_points_does_not_matter(rng, network):
    state, scores, order = rng.normal(size=(40, 12)), rng.uniform(size=(4, 40)), rng.permutation(40)
    assert np.allclose(network.update(state, scores)[order], network.update(state[order], scores[:, order]), atol=1e-5)


def test_a_point_no_model_explains_is_updated_by_its_own_state_alone(rng, network):
    state, scores = rng.normal(size=(40, 12)), rng.uniform(size=(4, 40))
    scores[:, 5] = 0
    others = rng.normal(size=(40, 12))
    others[5] = state[5]
    assert np.allclose(
        network.update(state, scores)[5], network.update(others, rng.permuted(scores, axis=0))[5], atol=1e-5
    )


def test_no_consensus_at_all_is_no_division_by_zero(rng, network):
    assert np.isfinite(network.update(rng.normal(size=(10, 12)), np.zeros((4, 10)))).all()


def test_the_shipped_weights_fit_the_side_information():
    network = load_network("default")
    assert network.num_features == NUM_FEATURES
    probabilities = network.decode(network.init_state(np.zeros((3, NUM_FEATURES), np.float32)))
    assert probabilities.dtype == np.float32
    assert np.all((probabilities > 0) & (probabilities < 1))
