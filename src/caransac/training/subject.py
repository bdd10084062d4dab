"""What a training run trains: a network, its loss on a pair, and the figures that tell how good it has become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from caransac.datasets import Pair
from caransac.geometry import Floats
from caransac.training.data import PairSource
from caransac.training.network import Mirror
from caransac.training.recipe import Recipe

Figures = dict[str, float]
Lesson = tuple[Tensor, Figures]  # a loss with gradient, and what to log of it
RunAll = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]  # a method of the workers, for all these arguments
Report = Callable[[str, int, int, dict[str, float]], None]  # stage, done, of how many, latest figures


class Subject(ABC):
    """What the trainer and its workers must know of what they train.

    Attributes:
        usage: how a user uses the weights, with ``{path}`` for their path.
        decisive: the figure, lower is better, whose validation decides on learning rate and best weights.
        shown: figures to show while training.
        panels: figures to draw, by title; each for training and validation.
    """

    usage: ClassVar[str]
    decisive: ClassVar[str]
    shown: ClassVar[tuple[str, ...]]
    panels: ClassVar[Mapping[str, tuple[str, ...]]]

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    @abstractmethod
    def count_inputs(self, source: PairSource, others: Sequence[Pair]) -> int:
        """Numbers the network reads of a match, with the data of a run.

        Raises:
            ValueError: the data do not fit together; the message says why.
        """

    @abstractmethod
    def make_network(self, num_inputs: int) -> Mirror:
        """The network, at random."""

    @abstractmethod
    def teach(self, network: Mirror, source: PairSource, rng: np.random.Generator) -> Lesson | None:
        """The loss on one pair of the source; None where it has nothing to teach."""

    @abstractmethod
    def test(self, network: Mirror, pair: Pair, index: int) -> Lesson | None:
        """The loss on a given pair, the same in every call."""

    def summarise(self, figures: Sequence[Figures | None]) -> Figures:
        """Means over pairs; those that gave nothing do not count."""
        found = [each for each in figures if each is not None]
        return {name: float(np.mean([each[name] for each in found])) for name in found[0]} if found else {}

    def describe(self, network: Mirror) -> Figures:
        """Numbers of the network itself to log."""
        return {}

    def finish(self, weights: dict[str, Floats], runs: int, run_all: RunAll, report: Report) -> dict[str, Any]:
        """Whatever is still to be done to the best weights, in place; returns what the model card should say of it.

        Args:
            weights: the arrays of the file of weights.
            runs: runs on pairs that this may take.
            run_all: calls the workers.
            report: told how far it is.
        """
        return {}
