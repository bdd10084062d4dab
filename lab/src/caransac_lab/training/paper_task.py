"""Train as in the paper: its network, loop and loss, and pairs without augmentation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caransac.learned.network_layout import PAPER_LAYOUT
from caransac.options import MaxError, Options
from caransac_lab.datasets import Pair
from caransac_lab.training.data import PairSource, thin_out
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.state_task import StateTask
from caransac_lab.training.task import PairLoss
from caransac_lab.training.trainable_module import TrainableModule

MAX_ERROR_PX = 1.0


class PaperTask(StateTask):
    """Task: the state network of the paper, run with `Options.paper`, with the paper's loss."""

    usage = "caransac.Options.paper(weights={path!r})"
    problems = ()  # the paper has no confidence

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self.with_prior = recipe.prior_loss
        self.layout = replace(PAPER_LAYOUT, lifted=1 if self.filter else recipe.lifted)  # the filter's residual

    def options(self, seed: int, max_error_px: MaxError, *, early_stop: bool = False) -> Options:
        """Return the options of a run, which never stops early."""
        return Options.paper(max_error_px=max_error_px, state_update=self.recipe.state_update, seed=seed)

    def random_threshold(self, rng: np.random.Generator) -> MaxError:
        """Return the paper's threshold."""
        return MAX_ERROR_PX

    def augment(self, pair: Pair, rng: np.random.Generator) -> Pair:
        """Reduce the number of matches at random, for speed, without any other augmentation."""
        return thin_out(pair, self.recipe.max_matches, rng) if self.recipe.max_matches else pair

    def training_loss(self, network: TrainableModule, source: PairSource, rng: np.random.Generator) -> PairLoss | None:
        """Return the loss of one pair drawn from the source."""
        name = "fundamental" if rng.random() < self.recipe.fundamental_share else "essential"
        example = self.example(source.draw(rng), name, rng, MAX_ERROR_PX)
        return self._replay(network, example, int(rng.integers(2**63)))

    def validation_loss(self, network: TrainableModule, pair: Pair, index: int) -> PairLoss | None:
        """Return the loss of a validation pair."""
        name = "fundamental" if self.recipe.fundamental_share == 1 else "essential"
        return self._replay(network, self.example(pair, name, max_error_px=MAX_ERROR_PX), index)
