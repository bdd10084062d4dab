"""Layout of a state network: the inputs for each match, and the skip connections."""

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
    """Properties of a network that its array shapes do not determine. Weights files store them as ``layout.<name>``.

    Attributes:
        neighbours: whether the network reads the kind of the scores, and the agreement of a match with its neighbours,
            in addition to the lifted score. The paper's network reads only the lifted score.
        lifted: number of the caller's last features that are lifted like the score.
        every_skip: whether every layer of constant width has a skip connection, as in the paper. Otherwise only hidden
            layers after the first have one.
    """

    neighbours: bool = True
    lifted: int = 0
    every_skip: bool = False

    @classmethod
    def of(cls, weights: Weights) -> NetworkLayout:
        """Return the layout of a weights file. Missing entries have the values of the default weights."""
        given = {each.name: weights.get(f"layout.{each.name}") for each in fields(cls)}
        values = {name: float(array) for name, array in given.items() if array is not None}
        lifted = values.pop("lifted", 0.0)
        if lifted < 0 or lifted != int(lifted) or not set(values.values()) <= {0.0, 1.0}:
            raise ValueError("layout.* must be 0 or 1, and layout.lifted must be a count")
        return cls(lifted=int(lifted), **{name: bool(value) for name, value in values.items()})

    def to_weights(self) -> dict[str, Floats]:
        """Return the arrays for a weights file; empty for the layout of the default weights."""
        if self == DEFAULT_LAYOUT:
            return {}
        return {f"layout.{each.name}": np.array(getattr(self, each.name), np.float32) for each in fields(self)}

    def num_inputs(self, num_own: int = 0) -> int:
        """Return the number of inputs per match, if the caller gives `num_own` features."""
        known = NUM_FEATURES if self.neighbours else NUM_FOURIER_FEATURES
        return known + num_own + (NUM_FOURIER_FEATURES - 1) * self.lifted


DEFAULT_LAYOUT = NetworkLayout()
PAPER_LAYOUT = NetworkLayout(neighbours=False, every_skip=True)
