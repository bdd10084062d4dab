"""Train the match filter: the network of `caransac_lab.networks.match_filter` in torch, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from caransac_lab.datasets import Pair
from caransac_lab.networks.match_filter import NUM_INPUTS, SMALLEST_VARIANCE, MatchFilter, filter_inputs
from caransac_lab.training.data import PairSource
from caransac_lab.training.task import Figures, PairLoss, TrainingTask, balanced_entropy
from caransac_lab.training.trainable_module import Affine, TrainableModule, leaky_relu

DEPTH = 8  # number of layers with context normalisation


class ContextLayer(nn.Module):
    """An affine layer whose outputs are normalised over the matches of a pair."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.gain = nn.Parameter(torch.ones(outputs))
        self.shift = nn.Parameter(torch.zeros(outputs))

    def __call__(self, x: Tensor) -> Tensor:
        """(n, in) -> (n, out)."""
        y = x @ self.weight
        centred = y - y.mean(dim=0)
        return centred * self.gain / ((centred**2).mean(dim=0) + SMALLEST_VARIANCE).sqrt() + self.shift


class FilterModule(TrainableModule):
    """The match filter in torch; `caransac_lab.networks.match_filter.MatchFilter` describes its parts."""

    def __init__(self, width: int, num_features: int = 16) -> None:
        super().__init__()
        widths = [NUM_INPUTS] + [width] * DEPTH
        self.layers = [ContextLayer(a, b) for a, b in pairwise(widths)]
        self.heads = [Affine(width, num_features), Affine(num_features, 1)]
        self.add_module("context", nn.ModuleList(self.layers))
        for name, head in zip(("features", "decoder"), self.heads, strict=True):
            self.add_module(name, nn.ModuleList([head]))

    def judge(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-odds (n,) and features (n, f) of matches from their inputs (n, NUM_INPUTS)."""
        first, *others = self.layers
        x = leaky_relu(first(inputs))
        for layer in others:
            x = x + leaky_relu(layer(x))
        read, decide = self.heads
        features = torch.tanh(read(x))
        return decide(features)[:, 0], features

    def to_numpy(self) -> MatchFilter:
        """Return the same filter without torch."""
        return MatchFilter(self.to_weights())


class FilterTask(TrainingTask):
    """Task: the match filter."""

    usage = "caransac-lab bench DIR --methods ours --filter mine={path}"
    decisive = "entropy"
    shown = ("train_entropy", "val_entropy", "val_precision", "val_recall")
    panels = {  # noqa: RUF012  # a constant of the class, never written to
        "cross entropy, balanced": ("entropy",),
        "matches kept": ("precision", "recall", "right"),
    }

    def count_inputs(self, source: PairSource, others: Sequence[Pair]) -> int:
        """Return the number of inputs per match; features of the data are ignored."""
        return NUM_INPUTS

    def make_network(self, num_inputs: int) -> FilterModule:
        """Create the network with random weights."""
        return FilterModule(self.recipe.width, self.recipe.filter_features)

    def training_loss(self, network: TrainableModule, source: PairSource, rng: np.random.Generator) -> PairLoss | None:
        """Return the loss of one pair drawn from the source."""
        return self._loss(network, source.draw(rng))

    def validation_loss(self, network: TrainableModule, pair: Pair, index: int) -> PairLoss | None:
        """Return the loss of a validation pair."""
        return self._loss(network, pair)

    def _loss(self, network: TrainableModule, pair: Pair) -> PairLoss:
        assert isinstance(network, FilterModule)
        labels = pair.right_matches()
        inputs = filter_inputs(pair.points1, pair.points2, pair.scores, pair.score_kind)
        log_odds, _ = network.judge(torch.from_numpy(inputs))
        loss = balanced_entropy(log_odds, torch.from_numpy(labels))
        kept = log_odds.detach().numpy() > 0
        return PairLoss(loss, {"entropy": loss.item()} | shares(kept, labels > 0))


def shares(kept: NDArray[np.bool_], right: NDArray[np.bool_]) -> Figures:
    """Return the precision and the recall of the kept matches (n,), and the share of right matches among all."""
    hits = float((kept & right).sum())
    return {
        "precision": hits / max(int(kept.sum()), 1),
        "recall": hits / max(int(right.sum()), 1),
        "right": float(right.mean()),
    }
