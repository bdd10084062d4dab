"""The state network in torch, for gradients only, and what other trainable networks share with it.

A test holds both implementations together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from caransac.geometry import Floats
from caransac.learned.state_network import StateNetwork

LEAK = 0.01  # of the leaky ReLU, as in the kernel


class Affine(nn.Module):
    """``x @ weight + bias`` with the weight (in, out) of the weights file."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def __call__(self, x: Tensor) -> Tensor:
        """(n, in) -> (n, out)."""
        return x @ self.weight + self.bias


def leaky_relu(x: Tensor) -> Tensor:
    """Leaky ReLU."""
    return torch.maximum(x, LEAK * x)


def hidden(x: Tensor, layer: Affine, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """A hidden layer after the first: residual where it keeps its width."""
    y = activation(layer(x))
    return y + x if layer.weight.shape[0] == layer.weight.shape[1] else y


class Mirror(nn.Module):
    """A network whose parameters bear the names and shapes of its weights file."""

    def to_weights(self) -> dict[str, Floats]:
        """The arrays of a weights file."""
        return {name: value.detach().numpy().astype(np.float32) for name, value in self.state_dict().items()}

    def load_weights(self, weights: Mapping[str, Floats]) -> None:
        """Take over the arrays of a weights file of the same width; others than the network's own are ignored."""
        own = self.state_dict()
        missing = [name for name in own if name not in weights]
        wrong = [name for name in own if name in weights and tuple(own[name].shape) != np.shape(weights[name])]
        if missing or wrong:
            raise ValueError(f"weights of another shape: {', '.join((missing + wrong)[:3])}")
        self.load_state_dict({name: torch.from_numpy(np.array(weights[name], np.float32)) for name in own})

    def start_from(self, weights: Mapping[str, Floats]) -> None:
        """Take over weights that training starts from."""
        self.load_weights(weights)


class TorchNetwork(Mirror):
    """The trainable state network; see `caransac.learned.state_network.StateNetwork` for what its parts mean."""

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

    def next_state(self, state: Tensor, scores: Tensor) -> Tensor:
        """State (n, c) after seeing the scores (k, n) of k models."""
        first, second, last = self.layers["message"]
        message = hidden(torch.tanh(first(state)), second, torch.tanh)
        totals = scores.sum(dim=1, keepdim=True)
        gathered = ((scores @ message) @ last.weight + totals * last.bias) / totals.sum().clamp(min=1e-6)

        first, second, last = self.layers["digest"]
        digest = torch.tanh(scores.T @ (gathered @ first.weight) + first.bias)
        digest = last(hidden(digest, second, torch.tanh))

        first, second, last = self.layers["update"]
        return last(hidden(leaky_relu(first(torch.cat([state, digest], dim=1))), second, leaky_relu))

    def to_numpy(self) -> StateNetwork:
        """The same network for the estimator."""
        return StateNetwork(self.to_weights())
