"""What the networks share: files of weights, and the layers in them."""

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
LARGEST_WEIGHT = 1e4  # trained ones are about one; far beyond, products of layers overflow to NaN
KEPT = 24  # networks in memory at most

NONE, LEAKY_RELU, TANH = Activation.NONE, Activation.LEAKY_RELU, Activation.TANH


class Network(Protocol):
    """What is made of weights."""

    def try_out(self) -> None:
        """Run every layer once; an error where an array is missing or has another shape."""


LoadedNetwork = TypeVar("LoadedNetwork", bound=Network)


def layers_of(weights: Weights, name: str, *activations: Activation, every_skip: bool = False) -> list[Layer]:
    """The first layers of a network; from the second on, hidden layers that keep their width are residual.

    Layer l of network ``net`` is ``net.l.weight`` (in, out) and ``net.l.bias`` (out,). With `every_skip`, all layers
    that keep their width are residual.
    """
    layers: list[Layer] = []
    for index, activation in enumerate(activations):
        weight, bias = weights[f"{name}.{index}.weight"], weights[f"{name}.{index}.bias"]
        keeps_width = weight.ndim == 2 and weight.shape[0] == weight.shape[1]
        residual = keeps_width and (every_skip or (index > 0 and activation is not NONE))
        layers.append((weight, bias, activation, residual))
    return layers


def weights_path(name: str | Path, argument: str = "weights") -> Path:
    """Where the weights of a name in the package lie; a `Path`, or a name that ends in ".npz", is a path itself."""
    return _path_of(name, argument) if isinstance(name, str | Path) else as_path(name, argument)


@lru_cache(maxsize=KEPT)
def _path_of(name: str | Path, argument: str) -> Path:
    path = as_path(name, argument)
    return FOLDER / f"{name}.npz" if _is_of_package(name) else path


def _is_of_package(name: str | Path) -> bool:
    return isinstance(name, str) and not name.endswith(".npz")


def read_weights(name: str | Path, argument: str = "weights") -> dict[str, Floats]:
    """The arrays of a file of weights, all of them finite.

    Args:
        name: a name in the package, or the path of an npz file.
        argument: what the caller calls it, for the message of the ValueError.
    """
    path = weights_path(name, argument)
    if not path.is_file():
        raise ValueError(_describe_missing(path, argument))
    try:
        with open_npz(path) as arrays, np.errstate(over="ignore"):  # what overflows is infinite, and refused below
            weights = {key: _as_weights(arrays[key], key) for key in arrays}
    except (ValueError, OSError) as error:
        raise ValueError(f"{argument}: {path} is not a caransac weights file: {error}") from error
    for key, array in weights.items():
        if not np.all(np.abs(array) <= LARGEST_WEIGHT):
            raise ValueError(f"{argument}: {path} holds numbers in {key} that are NaN, infinite or beyond 10,000")
    return weights


def _describe_missing(path: Path, argument: str) -> str:
    """The message about weights that are not there; it names the part of the project that has them."""
    if path.parent != FOLDER:
        return f"{argument}: no such file: {path}"
    known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.npz")))
    where = ". They are in caransac-lab: pass the path that caransac_lab.networks.weights.find_weights returns"
    return f"{argument}: the package has no weights {path.stem!r}, only {known}{where if path.stem in IN_LAB else ''}"


def _as_weights(array: NDArray[Any], key: str) -> Floats:
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{key} must hold real numbers, not {array.dtype}")
    return np.asarray(array, np.float32)


def load(name: str | Path, make: Callable[[Weights], LoadedNetwork], argument: str) -> LoadedNetwork:
    """The network of a file of weights; kept after the first call, until the file changes. Those of the package do not.

    Args:
        name: as in `read_weights`.
        make: the network's class.
        argument: as in `read_weights`.
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
    version: tuple[int, ...],  # noqa: ARG001  # part of the cache's key
) -> Network:
    """The network of the version of a file that is there now."""
    network = make(read_weights(Path(path), argument))
    try:
        network.try_out()
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        why = f"no array {error.args[0]}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ValueError(f"{argument}: {path} is not a caransac weights file: {why}") from error
    return network
