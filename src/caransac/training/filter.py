"""The match filter in torch, the mirror of `caransac.learned.match_filter`, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from caransac.datasets import Pair
from caransac.learned.match_filter import NUM_INPUTS, SMALLEST_VARIANCE, MatchFilter, filter_inputs
from caransac.training.data import PairSource, right_matches
from caransac.training.network import Affine, Mirror, leaky_relu
from caransac.training.subject import Figures, Lesson, Subject

DEPTH = 8  # layers with context normalisation
NUM_FEATURES = 16  # of a match, for CA-RANSAC


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


class TorchFilter(Mirror):
    """The trainable filter; see `caransac.learned.match_filter.MatchFilter` for what its parts mean."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [NUM_INPUTS] + [width] * DEPTH
        self.layers = [ContextLayer(a, b) for a, b in pairwise(widths)]
        self.heads = [Affine(width, NUM_FEATURES), Affine(NUM_FEATURES, 1)]
        self.add_module("context", nn.ModuleList(self.layers))
        for name, head in zip(("features", "decoder"), self.heads, strict=True):
            self.add_module(name, nn.ModuleList([head]))

    def judge(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Log-odds (n,) and features (n, f) of matches by their inputs (n, NUM_INPUTS)."""
        first, *others = self.layers
        x = leaky_relu(first(inputs))
        for layer in others:
            x = x + leaky_relu(layer(x))
        read, decide = self.heads
        features = torch.tanh(read(x))
        return decide(features)[:, 0], features

    def to_numpy(self) -> MatchFilter:
        """The same filter without torch."""
        return MatchFilter(self.to_weights())


def balanced_entropy(log_odds: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy (n,), (n,) -> () with right and wrong ones of equal weight altogether, however many there are."""
    right = labels.mean()
    weights = labels / (2 * right).clamp(min=1e-6) + (1 - labels) / (2 * (1 - right)).clamp(min=1e-6)
    return binary_cross_entropy_with_logits(log_odds, labels, weight=weights)


class FilterSubject(Subject):
    """The match filter."""

    usage = "caransac bench DIR --methods ours --filter mine={path}"
    decisive = "entropy"
    shown = ("train_entropy", "val_entropy", "val_precision", "val_recall")
    panels = {  # noqa: RUF012  # a constant of the class, never written to
        "cross entropy, balanced": ("entropy",),
        "matches kept": ("precision", "recall", "right"),
    }

    def count_inputs(self, source: PairSource, others: Sequence[Pair]) -> int:
        """See `Subject.count_inputs`; features of the data's own are ignored."""
        return NUM_INPUTS

    def make_network(self, num_inputs: int) -> TorchFilter:
        """See `Subject.make_network`."""
        return TorchFilter(self.recipe.width)

    def teach(self, network: Mirror, source: PairSource, rng: np.random.Generator) -> Lesson | None:
        """See `Subject.teach`."""
        return self.test(network, source.draw(rng), 0)

    def test(self, network: Mirror, pair: Pair, index: int) -> Lesson | None:
        """See `Subject.test`."""
        assert isinstance(network, TorchFilter)
        labels = right_matches(pair)
        inputs = filter_inputs(pair.points1, pair.points2, pair.scores, pair.score_kind)
        log_odds, _ = network.judge(torch.from_numpy(inputs))
        loss = balanced_entropy(log_odds, torch.from_numpy(labels))
        kept = log_odds.detach().numpy() > 0
        return loss, {"entropy": loss.item()} | shares(kept, labels > 0)


def shares(kept: NDArray[np.bool_], right: NDArray[np.bool_]) -> Figures:
    """Share of right matches among those kept (n,), share of the right ones (n,) kept, and of right ones among all."""
    hits = float((kept & right).sum())
    return {
        "precision": hits / max(int(kept.sum()), 1),
        "recall": hits / max(int(right.sum()), 1),
        "right": float(right.mean()),
    }
