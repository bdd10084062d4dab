"""The state network in torch, only for gradients. Tests compare it with `caransac.learned.state_network`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from caransac.geometry import Floats
from caransac.learned.network_layout import DEFAULT_LAYOUT, NetworkLayout
from caransac.learned.state_network import StateNetwork
from caransac_lab.training.trainable_module import Affine, TrainableModule, leaky_relu

ALL_LAYERS = slice(None)


class StateModule(TrainableModule):
    """The state network in torch; `caransac.learned.state_network.StateNetwork` describes its parts."""

    def __init__(self, num_features: int, width: int, layout: NetworkLayout = DEFAULT_LAYOUT) -> None:
        """Create a network with random weights.

        Args:
            num_features: number of features of side information per match.
            width: width of the state.
            layout: positions of skip connections, and layout of the side information.
        """
        super().__init__()
        sizes = {
            "init": [num_features, width, width],
            "decoder": [width, width // 2, width // 4, 1],
            "message": [width] * 4,
            "digest": [width] * 4,
            "update": [2 * width, width, width, width],
        }
        self.layout = layout
        self.layers = {name: [Affine(a, b) for a, b in pairwise(widths)] for name, widths in sizes.items()}
        for name, layers in self.layers.items():
            self.add_module(name, nn.ModuleList(layers))
        self.alpha = nn.Parameter(torch.tensor(1.0))

    def to_weights(self) -> dict[str, Floats]:
        """Return the arrays of a weights file, including the layout."""
        return super().to_weights() | self.layout.to_weights()

    def start_from(self, weights: Mapping[str, Floats]) -> None:
        """Load weights that may have fewer features, the first ones. The new features initially have no effect."""
        known = np.asarray(weights["init.0.weight"]) if "init.0.weight" in weights else np.empty((0, 0))
        unknown = len(self.layers["init"][0].weight) - len(known)
        if unknown > 0:
            weights = {**weights, "init.0.weight": np.pad(known, ((0, unknown), (0, 0)))}
        self.load_weights(weights)

    def init_state(self, side: Tensor) -> Tensor:
        """Return the initial state (n, c) from side information (n, d)."""
        return self._run("init", side, leaky_relu)

    def log_odds(self, state: Tensor) -> Tensor:
        """Return the inlier log-odds (n,) of states (n, c)."""
        return self._run("decoder", state, leaky_relu)[:, 0]

    def next_state(self, state: Tensor, msac_scores: Tensor) -> Tensor:
        """Update the state (n, c) with the MSAC scores (k, n) of k models.

        Matches without any score send no message and share one digest.
        """
        rows = torch.nonzero((msac_scores > 0).any(dim=0))[:, 0]
        scores = msac_scores[:, rows]
        sums = scores @ self._run("message", state[rows], torch.tanh, slice(0, -1))
        totals = scores.sum(dim=1, keepdim=True)
        last = self.layers["message"][-1]
        gathered = sums @ last.weight + totals * last.bias
        if self._is_residual("message", len(self.layers["message"]) - 1):
            gathered = gathered + sums
        gathered = gathered / totals.sum().clamp(min=1e-6)

        first = self.layers["digest"][0]
        if self._is_residual("digest", 0):
            attended = scores.T @ gathered
            digest = torch.tanh(first(attended)) + attended
        else:
            digest = torch.tanh(scores.T @ (gathered @ first.weight) + first.bias)
        digest = self._run("digest", digest, torch.tanh, slice(1, None))
        without = self._run("digest", torch.zeros(1, len(first.weight)), torch.tanh)
        digests = without.expand(len(state), -1).index_copy(0, rows, digest)
        return self._run("update", torch.cat([state, digests], dim=1), leaky_relu)

    def _run(self, name: str, x: Tensor, activation: Callable[[Tensor], Tensor], part: slice = ALL_LAYERS) -> Tensor:
        """Apply some layers of a network, with the activation after all but the last: (n, a) -> (n, b)."""
        layers = self.layers[name]
        for index in range(len(layers))[part]:
            y = layers[index](x)
            y = activation(y) if index < len(layers) - 1 else y
            x = y + x if self._is_residual(name, index) else y
        return x

    def _is_residual(self, name: str, index: int) -> bool:
        """Return True if a layer has a skip connection; see `weights_file.layers_of`."""
        layers = self.layers[name]
        inputs, outputs = layers[index].weight.shape
        return inputs == outputs and (self.layout.every_skip or 0 < index < len(layers) - 1)

    def to_numpy(self) -> StateNetwork:
        """Return the same network for the estimator."""
        return StateNetwork(self.to_weights())
