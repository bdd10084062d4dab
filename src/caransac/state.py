"""The state network: a latent state per match, updated from the consensus of models, decoded to inlier probabilities.

Single precision; every network runs through one kernel, `kernels.mlp`. The attention is ``A = S S^T / sum C`` with S
the (n, k) scores of k models and C their totals; it is never formed. Two identities keep the cost at k rows instead of
n wherever a layer is affine: ``S^T (H W + b) = (S^T H) W + (S^T 1) b^T`` and ``(S G) W = S (G W)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from caransac import kernels
from caransac.geometry import Floats
from caransac.kernels import Activation, Layer

NONE, LEAKY_RELU, TANH = Activation.NONE, Activation.LEAKY_RELU, Activation.TANH


@dataclass(frozen=True, eq=False)
class StateNetwork:
    """Weights of the networks; layer l of network ``net`` is ``net.l.weight`` (in, out) and ``net.l.bias`` (out,).

    init: side information -> state. decoder: state -> inlier log-odds. message (MLP3), digest (MLP2) and update (MLP1)
    make the state transformer ``F <- update([F, digest(A message(F))])``. ``alpha`` and ``beta`` are the exponents of
    the refinement's weights.
    """

    weights: Mapping[str, Floats]

    @property
    def num_features(self) -> int:
        """Numbers of side information a match."""
        return len(self.weights["init.0.weight"])

    @property
    def alpha(self) -> float:
        """Exponent of the probabilities in the refinement's weights."""
        return float(self.weights["alpha"])

    @property
    def beta(self) -> float:
        """Exponent of the prior probabilities in the refinement's weights."""
        return float(self.weights["beta"])

    def _layers(self, name: str, *activations: Activation) -> list[Layer]:
        """The first layers of a network; from the second on, hidden layers that keep their width are residual."""
        layers: list[Layer] = []
        for index, activation in enumerate(activations):
            weight, bias = self.weights[f"{name}.{index}.weight"], self.weights[f"{name}.{index}.bias"]
            residual = index > 0 and activation is not NONE and weight.shape[0] == weight.shape[1]
            layers.append((weight, bias, activation, residual))
        return layers

    def init_state(self, side: Floats) -> Floats:
        """State (n, c) from side information (n, d)."""
        return kernels.mlp([side], self._layers("init", LEAKY_RELU, NONE))

    def decode(self, state: Floats) -> Floats:
        """Inlier probabilities (n,) from states (n, c)."""
        log_odds = kernels.mlp([state], self._layers("decoder", LEAKY_RELU, LEAKY_RELU, NONE))[:, 0]
        return np.asarray(0.5 * (1 + np.tanh(0.5 * log_odds)))

    def update(self, state: Floats, scores: Floats) -> Floats:
        """State (n, c) after seeing the scores (k, n) of k models."""
        *hidden_layers, (weight, bias, _, _) = self._layers("message", TANH, TANH, NONE)
        hidden = kernels.mlp([state], hidden_layers)
        totals = scores.sum(axis=1, keepdims=True)
        gathered = ((scores @ hidden) @ weight + totals * bias) / max(float(totals.sum()), 1e-6)  # (k, c)

        (weight, bias, activation, residual), *layers = self._layers("digest", TANH, TANH, NONE)
        digest = kernels.mlp([scores.T], [(gathered @ weight, bias, activation, residual), *layers])

        return kernels.mlp([state, digest], self._layers("update", LEAKY_RELU, LEAKY_RELU, NONE))


@lru_cache(maxsize=8)
def load_network(weights: str) -> StateNetwork:
    """The network of a name in the package ("default") or of the path of an npz file; kept after the first call."""
    path = Path(weights)
    if path.suffix != ".npz":
        path = Path(__file__).parent / "weights" / f"{weights}.npz"
    if not path.is_file():
        raise ValueError(f"weights: no such file: {path}")
    try:
        with np.load(path) as arrays:
            network = StateNetwork({name: np.asarray(arrays[name], np.float32) for name in arrays})
        network.init_state(np.zeros((1, network.num_features), np.float32))
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"weights: {path} is not a caransac weights file: {error}") from error
    return network
