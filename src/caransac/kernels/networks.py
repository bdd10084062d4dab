"""Small networks, and the side information that they read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caransac import _native
from caransac._native import Activation, Correspondences, ScoreKind
from caransac.geometry import Array, Floats

Layer = tuple[Floats, Floats, Activation, bool]


def mlp(x: Sequence[Floats], layers: Sequence[Layer]) -> Floats:
    """A small network applied to every row of the arrays x side by side: (n, a), (n, b), ... -> (n, last outputs).

    A layer is ``(weight (a, b), bias (b,), activation, residual)``: ``activation(x @ weight + bias)``, plus x when
    residual. Arrays are single precision, layers at most 128 wide, x together at most 1024. x may be transposed
    or a slice: only blocks of rows are ever copied.
    """
    return _native.mlp([np.asarray(part, np.float32) for part in x], list(layers))


class StateKernels:
    """The state network with its weights packed: all layers in one call. See `caransac.learned.state_network`."""

    def __init__(
        self,
        init: Sequence[Layer],
        decoder: Sequence[Layer],
        message: Sequence[Layer],
        digest: Sequence[Layer],
        update: Sequence[Layer],
    ) -> None:
        """Layers as in `mlp`; message and digest have hidden layers and end without an activation.

        Any layer that keeps its width may be residual.
        """
        self._parts = [list(part) for part in (init, decoder, message, digest, update)]
        self._native = _native.StateNetwork(*self._parts)

    def __reduce__(self) -> tuple[type[StateKernels], tuple[list[Layer], ...]]:
        return StateKernels, tuple(self._parts)  # to be pickled, which the packed weights cannot be

    def first(self, side: Floats) -> tuple[Floats, Floats]:
        """States (n, c) and inlier probabilities (n,) from side information (n, d)."""
        return self._native.first(side)

    def update(self, state: Floats, msac_scores: Floats) -> tuple[Floats, Floats]:
        """States (n, c) and inlier probabilities (n,) after seeing scores (k, n), k from 1 to 1024.

        Of the same bits from any number of threads of any library.
        """
        return self._native.update(state, msac_scores)


def side_information(correspondences: Correspondences, scores: Array | None, score_kind: ScoreKind) -> Floats:
    """Scores (n,), or none, lifted to 16 sines and cosines and two numbers for their kind, then `neighbour_features`.

    Returns:
        (n, 36).
    """
    return _native.side_information(correspondences, scores, score_kind)


def fourier_features(values: Array) -> Floats:
    """Numbers (n,) from 0 to 1.5, others cut to that, lifted to the sines and cosines of pi 2^i x / 1.5: (n, 16)."""
    return _native.fourier_features(values)


def neighbour_features(correspondences: Correspondences) -> Floats:
    """How each match agrees with its spatial neighbours in either image: (n, 18); neighbours.h says which numbers.

    Points are in units of their spread in each image, around their centre.
    """
    return _native.neighbour_features(correspondences)
