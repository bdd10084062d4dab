"""Interface of a training task: a network, its loss on a pair, and figures of its quality."""

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
RunAll = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]  # calls a method of the workers for each tuple
ShowProgress = Callable[[str, int, int, dict[str, float]], None]  # stage, done, total, latest figures


@dataclass(frozen=True, eq=False)
class PairLoss:
    """Loss and figures of one pair.

    Attributes:
        loss: () loss with gradient.
        figures: numbers to log.
    """

    loss: Tensor
    figures: Figures


class TrainingTask(ABC):
    """A network to train, with everything that the trainer and its workers need.

    Attributes:
        usage: instructions for using the weights, with ``{path}`` for their path.
        decisive: figure (lower is better) whose validation value controls the learning rate and the best weights.
        shown: figures to show during training.
        panels: figures to draw, by title; each for training and validation.
    """

    usage: ClassVar[str]
    decisive: ClassVar[str]
    shown: ClassVar[tuple[str, ...]]
    panels: ClassVar[Mapping[str, tuple[str, ...]]]

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def read_data(self) -> tuple[Any, list[Any], list[Any]]:
        """Return the training source, the validation data, and data without truth for the confidence.

        These are pairs, unless a task uses something else.
        """
        return read_data(self.recipe, self.augment)

    @abstractmethod
    def count_inputs(self, source: Any, others: Sequence[Any]) -> int:
        """Return the number of inputs of the network per match for the data of a run.

        Raises:
            ValueError: the data are inconsistent. The message says why.
        """

    @abstractmethod
    def make_network(self, num_inputs: int) -> TrainableModule:
        """Create the network with random weights."""

    def augment(self, pair: Pair, rng: np.random.Generator) -> Pair:
        """Vary a training pair at random, each time that it is drawn."""
        return augment(pair, rng)

    @abstractmethod
    def training_loss(self, network: TrainableModule, source: Any, rng: np.random.Generator) -> PairLoss | None:
        """Return the loss of one pair drawn from the source, or None if it has no gradient."""

    @abstractmethod
    def validation_loss(self, network: TrainableModule, pair: Any, index: int) -> PairLoss | None:
        """Return the loss of a given pair, the same in every call."""

    def summarise(self, figures: Sequence[Figures | None]) -> Figures:
        """Average figures over pairs. Pairs without figures do not count."""
        found = [each for each in figures if each is not None]
        return {name: float(np.mean([each[name] for each in found])) for name in found[0]} if found else {}

    def describe(self, network: TrainableModule) -> Figures:
        """Return figures of the network itself for the log."""
        return {}

    def finish(self, weights: dict[str, Floats], runs: int, run_all: RunAll, progress: ShowProgress) -> dict[str, Any]:
        """Complete the best weights in place. Return the entries for the model card.

        Args:
            weights: the arrays of the file of weights.
            runs: number of runs on pairs that this may take.
            run_all: function that calls the workers.
            progress: function that receives the progress.
        """
        return {}


def balanced_entropy(log_odds: Tensor, labels: Tensor) -> Tensor:
    """Compute the cross entropy (n,), (n,) -> () with equal total weights of right and wrong matches."""
    right = labels.mean()
    weights = labels / (2 * right).clamp(min=1e-6) + (1 - labels) / (2 * (1 - right)).clamp(min=1e-6)
    return binary_cross_entropy_with_logits(log_odds, labels, weight=weights)
