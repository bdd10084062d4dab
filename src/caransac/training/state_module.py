"""The state network in torch, for gradients only; tests hold it and `caransac.learned.state_network` together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from caransac.geometry import Floats
from caransac.learned.state_network import StateNetwork
from caransac.training.trainable_module import Affine, TrainableModule, hidden, leaky_relu


class StateModule(TrainableModule):
    """The state network; see `caransac.learned.state_network.StateNetwork` for what its parts mean."""

    def __init__(self, num_features: int, width: int) -> None:
        super().__init__()
        sizes = {
            "init": [num_features, width, width],
            "decoder": [width, width // 2, width // 4, 1],
            "message": [width] * 4,
            "digest": [width] * 4,
            "update": [2 * width, width, width, width],
        }
        self.layers = {name: [Affine(a, b) for a, b in pairwise(widths)] for name, widths in sizes.items()}
        for name, layers in self.layers.items():
            self.add_module(name, nn.ModuleList(layers))
        self.alpha = nn.Parameter(torch.tensor(1.0))
        self.beta = nn.Parameter(torch.tensor(0.0))

    def start_from(self, weights: Mapping[str, Floats]) -> None:
        """Take over weights that may know fewer features, the first ones: the new ones count nothing to begin with."""
        known = np.asarray(weights["init.0.weight"]) if "init.0.weight" in weights else np.empty((0, 0))
        unknown = len(self.layers["init"][0].weight) - len(known)
        if unknown > 0:
            weights = {**weights, "init.0.weight": np.pad(known, ((0, unknown), (0, 0)))}
        self.load_weights(weights)

    def init_state(self, side: Tensor) -> Tensor:
        """State (n, c) from side information (n, d)."""
        first, last = self.layers["init"]
        return last(leaky_relu(first(side)))

    def log_odds(self, state: Tensor) -> Tensor:
        """Inlier log-odds (n,) of states (n, c)."""
        first, second, last = self.layers["decoder"]
        return last(hidden(leaky_relu(first(state)), second, leaky_relu))[:, 0]

    def next_state(self, state: Tensor, msac_scores: Tensor) -> Tensor:
        """State (n, c) after seeing the MSAC scores (k, n) of k models."""
        first, second, last = self.layers["message"]
        message = hidden(torch.tanh(first(state)), second, torch.tanh)
        totals = msac_scores.sum(dim=1, keepdim=True)
        gathered = ((msac_scores @ message) @ last.weight + totals * last.bias) / totals.sum().clamp(min=1e-6)

        first, second, last = self.layers["digest"]
        digest = torch.tanh(msac_scores.T @ (gathered @ first.weight) + first.bias)
        digest = last(hidden(digest, second, torch.tanh))

        first, second, last = self.layers["update"]
        return last(hidden(leaky_relu(first(torch.cat([state, digest], dim=1))), second, leaky_relu))

    def to_numpy(self) -> StateNetwork:
        """The same network for the estimator."""
        return StateNetwork(self.to_weights())
