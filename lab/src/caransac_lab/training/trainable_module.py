"""Common parts of the networks in torch: layers equal to those of the kernels, and weights by their names in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from caransac.geometry import Floats

LEAK = 0.01  # slope of the leaky ReLU, as in the kernel


class Affine(nn.Module):
    """Affine layer ``x @ weight + bias`` with the weight (in, out) of the weights file."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the layer: (n, in) -> (n, out)."""
        return x @ self.weight + self.bias


def leaky_relu(x: Tensor) -> Tensor:
    """Apply the leaky ReLU."""
    return torch.maximum(x, LEAK * x)


def hidden(x: Tensor, layer: Affine, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a hidden layer after the first. It is residual if it keeps its width."""
    y = activation(layer(x))
    return y + x if layer.weight.shape[0] == layer.weight.shape[1] else y


class TrainableModule(nn.Module):
    """A torch module whose parameters have the names and shapes of its weights file."""

    def to_weights(self) -> dict[str, Floats]:
        """Return the arrays of a weights file."""
        return {name: value.detach().numpy().astype(np.float32) for name, value in self.state_dict().items()}

    def load_weights(self, weights: Mapping[str, Floats]) -> None:
        """Load the arrays of a weights file of the same width. Additional arrays are ignored."""
        own = self.state_dict()
        missing = [name for name in own if name not in weights]
        wrong = [name for name in own if name in weights and tuple(own[name].shape) != np.shape(weights[name])]
        if missing or wrong:
            raise ValueError(f"weights of another shape: {', '.join((missing + wrong)[:3])}")
        self.load_state_dict({name: torch.from_numpy(np.array(weights[name], np.float32)) for name in own})

    def start_from(self, weights: Mapping[str, Floats]) -> None:
        """Load the initial weights of a training run."""
        self.load_weights(weights)
