"""Small networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caransac import _native
from caransac._native import Activation
from caransac.geometry import Floats

Layer = tuple[Floats, Floats, Activation, bool]


def mlp(x: Sequence[Floats], layers: Sequence[Layer]) -> Floats:
    """Apply a small network to every row of the arrays x side by side: (n, a), (n, b), ... -> (n, last outputs).

    A layer is ``(weight (a, b), bias (b,), activation, residual)``: ``activation(x @ weight + bias)``, plus x when
    residual. Arrays are single precision, layers at most 128 wide, x together at most 1024. x may be transposed
    or a slice: only blocks of rows are ever copied.
    """
    return _native.mlp([np.asarray(part, np.float32) for part in x], list(layers))


class StateKernels(_native.StateNetwork):
    """The state network with its weights packed: all layers in one call. See `caransac.learned.state_network`."""

    def __init__(
        self,
        init: Sequence[Layer],
        decoder: Sequence[Layer],
        message: Sequence[Layer],
        digest: Sequence[Layer],
        update: Sequence[Layer],
    ) -> None:
        """Pack layers as in `mlp`; message and digest have hidden layers and end without an activation.

        Any layer that keeps its width may be residual.
        """
        self._parts = [list(part) for part in (init, decoder, message, digest, update)]
        super().__init__(*self._parts)

    def __reduce__(self) -> tuple[type[StateKernels], tuple[list[Layer], ...]]:
        return StateKernels, tuple(self._parts)  # to be pickled, which the packed weights cannot be
