"""The state network: a latent state per match, updated from the consensus of models, decoded to inlier probabilities.

With S the (n, k) MSAC scores of k models and C their totals, the attention is ``A = S S^T / sum C``, and a round is

    F <- update([F, digest(A message(F))]),    p = sigmoid(decoder(F)),

from ``F = init(side information)``. A is never formed. The kernel (`kernels.StateKernels`, single precision) saves work
without changing the result:

- ``message`` ends and ``digest`` starts with affine maps, which commute with sums over the matches:
  ``S^T (H W + b) = (S^T H) W + (S^T 1) b^T`` and ``(S G) W = S (G W)`` keep the cost at k rows instead of n (the
  latter only if ``digest`` does not start with a skip connection);
- the end of ``digest`` and the start of ``update`` are one affine layer;
- a match without any score, like most wrong ones, sends no message, and its digest is ``digest(0)``: its update depends
  only on its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from caransac._support.computed_once import computed_once
from caransac.geometry import Floats
from caransac.kernels import Layer, StateKernels
from caransac.learned.network_layout import NetworkLayout
from caransac.learned.weights_file import LEAKY_RELU, NONE, TANH, Weights, layers_of, load


class MatchStates(Protocol):
    """Interface of a network for the loop: states of matches, and their inlier probabilities."""

    @property
    def num_features(self) -> int:
        """Number of inputs of side information per match."""

    @property
    def alpha(self) -> float:
        """Exponent of the probabilities in the weights of the refinement."""

    def first(self, side: Floats) -> tuple[Floats, Floats]:
        """Return the state (n, c) and inlier probabilities (n,) from side information (n, d)."""

    def update(self, state: Floats, msac_scores: Floats) -> tuple[Floats, Floats]:
        """Return the state (n, c) and inlier probabilities (n,), updated with the MSAC scores (k, n) of k models."""


@dataclass(frozen=True, eq=False)
class StateNetwork:
    """The state network, built from weights that are named as in `layers_of`.

    `init` maps side information to states. `decoder` maps states to inlier log-odds. `message` (MLP3), `digest` (MLP2)
    and `update` (MLP1) are the state transformer ``F <- update([F, digest(A message(F))])``. `alpha` is the exponent of
    the probabilities in the weights of the refinement. The arrays determine the widths, and `NetworkLayout` the rest.
    """

    weights: Weights

    @property
    def num_features(self) -> int:
        """Number of inputs of side information per match."""
        return len(self.weights["init.0.weight"])

    @property
    @computed_once
    def layout(self) -> NetworkLayout:
        """Inputs for each match, and skip connections."""
        return NetworkLayout.of(self.weights)

    @property
    def alpha(self) -> float:
        """Exponent of the probabilities in the weights of the refinement."""
        return float(self.weights["alpha"])

    @property
    @computed_once
    def layers(self) -> dict[str, list[Layer]]:
        """Layers of every part, by the name of the part."""
        activations = {
            "init": (LEAKY_RELU, NONE),
            "decoder": (LEAKY_RELU, LEAKY_RELU, NONE),
            "message": (TANH, TANH, NONE),
            "digest": (TANH, TANH, NONE),
            "update": (LEAKY_RELU, LEAKY_RELU, NONE),
        }
        every_skip = self.layout.every_skip
        return {name: layers_of(self.weights, name, *each, every_skip=every_skip) for name, each in activations.items()}

    @property
    @computed_once
    def kernels(self) -> StateKernels:
        """The whole network in compiled form."""
        return StateKernels(**self.layers)

    def first(self, side: Floats) -> tuple[Floats, Floats]:
        """Return the state (n, c) and inlier probabilities (n,) from side information (n, d)."""
        return self.kernels.first(side)

    def update(self, state: Floats, msac_scores: Floats) -> tuple[Floats, Floats]:
        """Return the state (n, c) and inlier probabilities (n,), updated with the MSAC scores (k, n) of k models."""
        return self.kernels.update(state, msac_scores)

    def try_out(self) -> None:
        """Run every layer once, and check the weights of the confidence. Raise an error if anything is wrong."""
        _ = self.kernels, self.alpha
        if self.layout.lifted and self.num_features < self.layout.num_inputs(self.layout.lifted):
            raise ValueError(f"init.0.weight has too few rows for layout.lifted = {self.layout.lifted}")
        for name in self.weights:
            if name.startswith(("confidence.", "rotation_confidence.")):  # optional, but complete
                fit = name.rpartition(".")[0]
                standardised = any(f"{fit}.{part}" in self.weights for part in ("mean", "scale"))
                parts = ("weight", "bias", "mean", "scale") if standardised else ("weight", "bias")  # as in version 0.1
                found = [self.weights[f"{fit}.{part}"] for part in parts]
                if standardised:
                    _check_confidence(fit, *found)


def _check_confidence(fit: str, weight: Floats, bias: Floats, mean: Floats, scale: Floats) -> None:
    """Raise a ValueError if the weights of a confidence have inconsistent shapes or a negative scale."""
    if not np.all(scale >= 0):
        raise ValueError(f"{fit}.scale must not be negative")
    used = int(np.count_nonzero(scale))
    count = used + used * (used + 1) // 2
    if weight.shape != (count,) or bias.shape != () or mean.ndim != 1 or mean.shape != scale.shape:
        raise ValueError(f"{fit}.weight, .bias, .mean and .scale do not fit together")


def load_network(weights: str | Path) -> StateNetwork:
    """Load a network by its name in the package, or from an npz file. A changed file is read again."""
    return load(weights, StateNetwork, "weights")
