"""Small neural networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caransac import _native
from caransac._native import Activation
from caransac.geometry import Floats

Layer = tuple[Floats, Floats, Activation, bool]


def mlp(x: Sequence[Floats], layers: Sequence[Layer]) -> Floats:
    """Apply a small network to the concatenated rows of arrays: (n, a), (n, b), ... -> (n, last outputs).

    A layer is ``(weight (a, b), bias (b,), activation, residual)``: ``activation(x @ weight + bias)``, plus x if
    residual. Arrays are in single precision. The maximum width is 128 for a layer, and 1024 for the inputs together.
    Inputs may be transposed or slices; only blocks of rows are copied.
    """
    return _native.mlp([np.asarray(part, np.float32) for part in x], list(layers))


class StateKernels(_native.StateNetwork):
    """The state network with packed weights: all layers in one call. See `caransac.learned.state_network`."""

    def __init__(
        self,
        init: Sequence[Layer],
        decoder: Sequence[Layer],
        message: Sequence[Layer],
        digest: Sequence[Layer],
        update: Sequence[Layer],
    ) -> None:
        """Pack layers as in `mlp`. `message` and `digest` have hidden layers and end without an activation.

        Every layer whose input and output have the same width may be residual.
        """
        self._parts = [list(part) for part in (init, decoder, message, digest, update)]
        super().__init__(*self._parts)

    def __reduce__(self) -> tuple[type[StateKernels], tuple[list[Layer], ...]]:
        return StateKernels, tuple(self._parts)  # for pickling, as packed weights cannot be pickled
