"""What the networks share: files of weights, and the layers in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from caransac._support.files import open_npz
from caransac.geometry import Floats
from caransac.kernels import Activation, Layer

Weights = Mapping[str, Floats]
Network = TypeVar("Network")

NONE, LEAKY_RELU, TANH = Activation.NONE, Activation.LEAKY_RELU, Activation.TANH


def layers_of(weights: Weights, name: str, *activations: Activation) -> list[Layer]:
    """The first layers of a network; from the second on, hidden layers that keep their width are residual.

    Layer l of network ``net`` is ``net.l.weight`` (in, out) and ``net.l.bias`` (out,).
    """
    layers: list[Layer] = []
    for index, activation in enumerate(activations):
        weight, bias = weights[f"{name}.{index}.weight"], weights[f"{name}.{index}.bias"]
        residual = index > 0 and activation is not NONE and weight.shape[0] == weight.shape[1]
        layers.append((weight, bias, activation, residual))
    return layers


def weights_path(name: str) -> Path:
    """Where the weights of a name in the package lie; the path of an npz file is its own name."""
    path = Path(name)
    return path if path.suffix == ".npz" else Path(__file__).parent / "weights" / f"{name}.npz"


def read_weights(name: str, argument: str = "weights") -> dict[str, Floats]:
    """The arrays of a file of weights.

    Args:
        name: a name in the package, or the path of an npz file.
        argument: what the caller calls it, for the message of the ValueError.
    """
    path = weights_path(name)
    if not path.is_file():
        raise ValueError(f"{argument}: no such file: {path}")
    try:
        with open_npz(path) as arrays:
            return {name: np.asarray(arrays[name], np.float32) for name in arrays}
    except (ValueError, OSError) as error:
        raise ValueError(f"{argument}: {path} is not a caransac weights file: {error}") from error


def load(name: str, make: Callable[[Weights], Network], run: Callable[[Network], object], argument: str) -> Network:
    """The network of a file of weights, run once to see that the file is one of its kind.

    Args:
        name: as in `read_weights`.
        make: makes the network.
        run: runs it on some input.
        argument: as in `read_weights`.
    """
    network = make(read_weights(name, argument))
    try:
        run(network)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{argument}: {weights_path(name)} is not a caransac weights file: {error}") from error
    return network
