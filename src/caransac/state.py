"""The state network: a latent state per match, updated from the consensus of models, decoded to inlier probabilities.

Plain numpy, single precision. The attention is ``A = S S^T / sum C`` with S the (n, k) scores of k models and C their
totals; it is never formed. Two identities keep the cost at k rows instead of n wherever a layer is affine:
``S^T (H W + b) = (S^T H) W + (S^T 1) b^T`` and ``(S G) W = S (G W)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from caransac.side import Floats

LEAK = 0.01


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

    def _layer(self, name: str, index: int) -> tuple[Floats, Floats]:
        return self.weights[f"{name}.{index}.weight"], self.weights[f"{name}.{index}.bias"]

    def _affine(self, name: str, index: int, x: Floats) -> Floats:
        weight, bias = self._layer(name, index)
        return x @ weight + bias

    def init_state(self, side: Floats) -> Floats:
        """State (n, c) from side information (n, d)."""
        return self._affine("init", 1, _leaky_relu(self._affine("init", 0, side)))

    def decode(self, state: Floats) -> Floats:
        """Inlier probabilities (n,) from states (n, c)."""
        hidden = _leaky_relu(self._affine("decoder", 0, state))
        hidden = _leaky_relu(self._affine("decoder", 1, hidden))
        return _sigmoid(self._affine("decoder", 2, hidden)[:, 0])

    def update(self, state: Floats, scores: Floats) -> Floats:
        """State (n, c) after seeing the scores (k, n) of k models."""
        hidden = np.tanh(self._affine("message", 0, state))
        hidden = np.tanh(self._affine("message", 1, hidden)) + hidden
        weight, bias = self._layer("message", 2)
        totals = scores.sum(axis=1, keepdims=True)
        gathered = ((scores @ hidden) @ weight + totals * bias) / max(float(totals.sum()), 1e-6)  # (k, c)

        weight, bias = self._layer("digest", 0)
        hidden = np.tanh(scores.T @ (gathered @ weight) + bias)
        hidden = np.tanh(self._affine("digest", 1, hidden)) + hidden
        digest = self._affine("digest", 2, hidden)

        hidden = _leaky_relu(self._affine("update", 0, np.concatenate([state, digest], axis=1)))
        hidden = _leaky_relu(self._affine("update", 1, hidden)) + hidden
        return self._affine("update", 2, hidden)


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


def _leaky_relu(x: Floats) -> Floats:
    return np.asarray(np.maximum(x, LEAK * x))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))
