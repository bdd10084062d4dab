"""What a training task is: a network, its loss on a pair, and the figures that tell how good it has become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from caransac.geometry import Floats
from caransac_lab.datasets import Pair
from caransac_lab.training.data import augment, read_data
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.trainable_module import TrainableModule

Figures = dict[str, float]
RunAll = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]  # a method of the workers, for all these arguments
ShowProgress = Callable[[str, int, int, dict[str, float]], None]  # stage, done, of how many, latest figures


@dataclass(frozen=True, eq=False)
class PairLoss:
    """What one pair contributes.

    Attributes:
        loss: (), with gradient.
        figures: numbers to log.
    """

    loss: Tensor
    figures: Figures


class TrainingTask(ABC):
    """A network to train: all that the trainer and its workers must know of it.

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

    def read_data(self) -> tuple[Any, list[Any], list[Any]]:
        """What to draw from in training, what to validate on, and what has no truth, for the confidence.

        Pairs, unless a task is about something else.
        """
        return read_data(self.recipe, self.augment)

    @abstractmethod
    def count_inputs(self, source: Any, others: Sequence[Any]) -> int:
        """Numbers the network reads of a match, with the data of a run.

        Raises:
            ValueError: the data do not fit together; the message says why.
        """

    @abstractmethod
    def make_network(self, num_inputs: int) -> TrainableModule:
        """The network, at random."""

    def augment(self, pair: Pair, rng: np.random.Generator) -> Pair:
        """A training pair, varied at random each time that it is drawn."""
        return augment(pair, rng)

    @abstractmethod
    def training_loss(self, network: TrainableModule, source: Any, rng: np.random.Generator) -> PairLoss | None:
        """The loss on one pair drawn from the source; None where it has no gradient."""

    @abstractmethod
    def validation_loss(self, network: TrainableModule, pair: Any, index: int) -> PairLoss | None:
        """The loss on a given pair, the same in every call."""

    def summarise(self, figures: Sequence[Figures | None]) -> Figures:
        """Means over pairs; those that gave nothing do not count."""
        found = [each for each in figures if each is not None]
        return {name: float(np.mean([each[name] for each in found])) for name in found[0]} if found else {}

    def describe(self, network: TrainableModule) -> Figures:
        """Numbers of the network itself to log."""
        return {}

    def finish(self, weights: dict[str, Floats], runs: int, run_all: RunAll, progress: ShowProgress) -> dict[str, Any]:
        """Whatever is still to be done to the best weights, in place; returns what the model card should say of it.

        Args:
            weights: the arrays of the file of weights.
            runs: runs on pairs that this may take.
            run_all: calls the workers.
            progress: told how far it is.
        """
        return {}


def balanced_entropy(log_odds: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy (n,), (n,) -> () with right and wrong ones of equal weight altogether, however many there are."""
    right = labels.mean()
    weights = labels / (2 * right).clamp(min=1e-6) + (1 - labels) / (2 * (1 - right)).clamp(min=1e-6)
    return binary_cross_entropy_with_logits(log_odds, labels, weight=weights)
