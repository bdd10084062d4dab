"""How a state network is laid out: what it reads of a match, and where its skip connections are."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from caransac.geometry import Floats
from caransac.learned.weights_file import Weights

NUM_FOURIER_FEATURES = 16
NUM_SCORE_FEATURES = NUM_FOURIER_FEATURES + 2
NUM_NEIGHBOUR_FEATURES = 18
NUM_FEATURES = NUM_SCORE_FEATURES + NUM_NEIGHBOUR_FEATURES


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkLayout:
    """What the shapes of a network's arrays do not tell; field f is the number ``layout.f`` of a weights file.

    Attributes:
        neighbours: whether it reads the kind of the scores, and how a match agrees with its neighbours, beside the
            lifted score; the paper's reads only the lifted score.
        lifted: how many of the caller's features, the last ones, are lifted as the score is.
        every_skip: whether every layer that keeps its width has a skip connection, as the paper's do; else hidden
            layers after the first have.
    """

    neighbours: bool = True
    lifted: int = 0
    every_skip: bool = False

    @classmethod
    def of(cls, weights: Weights) -> NetworkLayout:
        """The layout of a file of weights; what it does not hold is as in the default weights."""
        given = {each.name: weights.get(f"layout.{each.name}") for each in fields(cls)}
        values = {name: float(array) for name, array in given.items() if array is not None}
        lifted = values.pop("lifted", 0.0)
        if lifted < 0 or lifted != int(lifted) or not set(values.values()) <= {0.0, 1.0}:
            raise ValueError("layout.* must be 0 or 1, layout.lifted a count")
        return cls(lifted=int(lifted), **{name: bool(value) for name, value in values.items()})

    def to_weights(self) -> dict[str, Floats]:
        """The arrays of a file of weights that tell it; none for that of the default weights."""
        if self == DEFAULT_LAYOUT:
            return {}
        return {f"layout.{each.name}": np.array(getattr(self, each.name), np.float32) for each in fields(self)}

    def num_inputs(self, num_own: int = 0) -> int:
        """Numbers that a network reads of a match, of which the caller gives so many features."""
        known = NUM_FEATURES if self.neighbours else NUM_FOURIER_FEATURES
        return known + num_own + (NUM_FOURIER_FEATURES - 1) * self.lifted


DEFAULT_LAYOUT = NetworkLayout()
PAPER_LAYOUT = NetworkLayout(neighbours=False, every_skip=True)
