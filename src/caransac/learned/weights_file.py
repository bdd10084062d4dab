"""Weights files of all networks, and the layers in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from caransac._support.files import as_path, version_of
from caransac._support.untrusted import open_npz
from caransac.geometry import Floats
from caransac.kernels import Activation, Layer

Weights = Mapping[str, Floats]

FOLDER = Path(__file__).parent / "weights"
IN_LAB = frozenset({"filter", "filter-128", "paper-with-filter", "sample-quality", "with-filter"})
LARGEST_WEIGHT = 1e4  # trained weights are about one; with much larger ones, products of layers overflow to NaN
KEPT = 24  # maximum number of networks in memory

NONE, LEAKY_RELU, TANH = Activation.NONE, Activation.LEAKY_RELU, Activation.TANH


class Network(Protocol):
    """A network that is built from weights."""

    def try_out(self) -> None:
        """Run every layer once. Raise an error if an array is missing or has a wrong shape."""


LoadedNetwork = TypeVar("LoadedNetwork", bound=Network)


def layers_of(weights: Weights, name: str, *activations: Activation, every_skip: bool = False) -> list[Layer]:
    """Return the first layers of a network, one for each activation.

    Layer l of network ``net`` is ``net.l.weight`` (in, out) and ``net.l.bias`` (out,). Hidden layers of constant width
    are residual, except the first layer. With `every_skip`, all layers of constant width are residual.
    """
    layers: list[Layer] = []
    for index, activation in enumerate(activations):
        weight, bias = weights[f"{name}.{index}.weight"], weights[f"{name}.{index}.bias"]
        keeps_width = weight.ndim == 2 and weight.shape[0] == weight.shape[1]
        residual = keeps_width and (every_skip or (index > 0 and activation is not NONE))
        layers.append((weight, bias, activation, residual))
    return layers


def weights_path(name: str | Path, argument: str = "weights") -> Path:
    """Return the path of weights: a `Path`, a name that ends in ".npz", or a name in the package."""
    return _path_of(name, argument) if isinstance(name, str | Path) else as_path(name, argument)


@lru_cache(maxsize=KEPT)
def _path_of(name: str | Path, argument: str) -> Path:
    path = as_path(name, argument)
    return FOLDER / f"{name}.npz" if _is_of_package(name) else path


def _is_of_package(name: str | Path) -> bool:
    return isinstance(name, str) and not name.endswith(".npz")


def read_weights(name: str | Path, argument: str = "weights") -> dict[str, Floats]:
    """Return the arrays of a weights file. All are finite.

    Args:
        name: a name in the package, or the path of an npz file.
        argument: name of the caller's argument, for the message of a ValueError.
    """
    path = weights_path(name, argument)
    if not path.is_file():
        raise ValueError(_describe_missing(path, argument))
    try:
        with open_npz(path) as arrays, np.errstate(over="ignore"):  # overflow gives infinity, which is refused below
            weights = {key: _as_weights(arrays[key], key) for key in arrays}
    except (ValueError, OSError) as error:
        raise ValueError(f"{argument}: {path} is not a caransac weights file: {error}") from error
    for key, array in weights.items():
        if not np.all(np.abs(array) <= LARGEST_WEIGHT):
            raise ValueError(f"{argument}: {path} has numbers in {key} that are NaN, infinite or beyond 10,000")
    return weights


def _describe_missing(path: Path, argument: str) -> str:
    """Return the message about missing weights, which names the lab if the weights are there."""
    if path.parent != FOLDER:
        return f"{argument}: no such file: {path}"
    known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.npz")))
    where = ". They are in caransac-lab: pass the path that caransac_lab.networks.weights.find_weights returns"
    return f"{argument}: the package has no weights {path.stem!r}, only {known}{where if path.stem in IN_LAB else ''}"


def _as_weights(array: NDArray[Any], key: str) -> Floats:
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{key} must contain real numbers, not {array.dtype}")
    return np.asarray(array, np.float32)


def load(name: str | Path, make: Callable[[Weights], LoadedNetwork], argument: str) -> LoadedNetwork:
    """Return the network of a weights file, and cache it until the file changes.

    Files of the package are assumed never to change.

    Args:
        name: a name in the package, or the path of an npz file.
        make: class of the network.
        argument: name of the caller's argument, for the message of a ValueError.
    """
    path = weights_path(name, argument)
    try:
        version = () if _is_of_package(name) else version_of(path)
    except OSError as error:
        raise ValueError(_describe_missing(path, argument)) from error
    return cast(LoadedNetwork, _load(str(path), make, argument, version))


@lru_cache(maxsize=KEPT)
def _load(
    path: str,
    make: Callable[[Weights], Network],
    argument: str,
    version: tuple[int, ...],  # noqa: ARG001  # part of the cache key
) -> Network:
    """Return the network of the current version of a file."""
    network = make(read_weights(Path(path), argument))
    try:
        network.try_out()
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        why = f"no array {error.args[0]}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ValueError(f"{argument}: {path} is not a caransac weights file: {why}") from error
    return network
