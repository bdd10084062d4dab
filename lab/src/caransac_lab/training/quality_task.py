"""Train the sample quality: `networks.sample_quality.LearnedQuality` in torch, with labels from the solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from caransac.geometry import split_pose
from caransac.kernels import Indices, five_point_poses
from caransac.learned.state_network import load_network
from caransac.options import SAMPLES_PER_ROUND
from caransac.robust.loop.sampling import PoolSampler, sampling_pool
from caransac.tuning import DEFAULT_TUNING
from caransac_lab.datasets import Pair
from caransac_lab.networks.sample_quality import LearnedQuality, geometric_quality, sample_inputs
from caransac_lab.training.data import Example, PairSource, make_example
from caransac_lab.training.task import PairLoss, TrainingTask, balanced_entropy
from caransac_lab.training.trainable_module import Affine, TrainableModule, hidden, leaky_relu

NUM_SAMPLES, OVERSAMPLING = 1024, 8  # samples of a pair in its loss; samples that compete in the figures
GOOD_DEG = 10.0  # a sample is good if one of its models has a smaller pose error


class QualityModule(TrainableModule):
    """The quality of minimal samples in torch; `networks.sample_quality.LearnedQuality` describes its parts."""

    def __init__(self, num_inputs: int, width: int) -> None:
        super().__init__()
        sizes = {
            "match": [num_inputs, width, width],
            "context": [2 * width, width, width],
            "decoder": [2 * width + 4, width, 1],
        }
        self.layers = {name: [Affine(a, b) for a, b in pairwise(widths)] for name, widths in sizes.items()}
        for name, layers in self.layers.items():
            self.add_module(name, nn.ModuleList(layers))

    def log_odds(self, matches: Tensor, spread: Tensor) -> Tensor:
        """Return log-odds (S,) of samples from the output of `sample_inputs`: (S, k, 4), (S, 4)."""
        first, second = self.layers["match"]
        read = hidden(leaky_relu(first(matches)), second, leaky_relu)
        context = read.mean(dim=1, keepdim=True).expand_as(read)
        first, second = self.layers["context"]
        read = hidden(leaky_relu(first(torch.cat([read, context], dim=2))), second, leaky_relu)
        first, last = self.layers["decoder"]
        pooled = torch.cat([read.mean(dim=1), read.amax(dim=1), spread], dim=1)
        return last(leaky_relu(first(pooled)))[:, 0]

    def to_numpy(self) -> LearnedQuality:
        """Return the same quality without torch."""
        return LearnedQuality(self.to_weights())


def good_samples(example: Example, samples: Indices) -> NDArray[np.bool_]:
    """Return which samples (S, 5) have a pose within `GOOD_DEG` of the truth: (S,)."""
    assert example.R is not None and example.t is not None
    poses, owners = five_point_poses(example.rays, samples)
    rotations, translations = split_pose(poses)
    cosines = np.minimum(0.5 * (np.einsum("sij,ij->s", rotations, example.R) - 1), translations @ example.t)
    good = np.zeros(len(samples), bool)
    good[owners[cosines > np.cos(np.radians(GOOD_DEG))]] = True
    return good


def draw_samples(example: Example, seed: int) -> Indices:
    """Draw samples (S, 5) like the first round of CA-RANSAC with its default weights."""
    network = load_network("default")
    _, prior = network.first(example.side)
    pool = sampling_pool(prior, 5, SAMPLES_PER_ROUND, DEFAULT_TUNING)
    return PoolSampler(pool, 5, seed).draw(0, NUM_SAMPLES)


def share_kept(qualities: NDArray[np.floating], good: NDArray[np.bool_]) -> float:
    """Return the share of good samples (S,) among the best of every `OVERSAMPLING` samples by quality (S,)."""
    best = qualities.reshape(-1, OVERSAMPLING).argmax(axis=1)
    return float(np.take_along_axis(good.reshape(-1, OVERSAMPLING), best[:, None], axis=1).mean())


class QualityTask(TrainingTask):
    """Task: the quality of minimal samples of five matches."""

    usage = "caransac_lab.networks.oversampling.oversample(8, {path!r})"
    decisive = "entropy"
    shown = ("train_entropy", "val_entropy", "val_drawn", "val_geometric", "val_kept")
    panels = {  # noqa: RUF012  # a constant of the class, never written to
        "cross entropy, balanced": ("entropy",),
        "share of good samples": ("drawn", "geometric", "kept"),
    }

    def count_inputs(self, source: PairSource, others: Sequence[Pair]) -> int:
        """Return the number of inputs per match: two points."""
        return 4

    def make_network(self, num_inputs: int) -> QualityModule:
        """Create the network with random weights."""
        return QualityModule(num_inputs, self.recipe.width)

    def training_loss(self, network: TrainableModule, source: PairSource, rng: np.random.Generator) -> PairLoss | None:
        """Return the loss of one pair drawn from the source."""
        return self._loss(network, source.draw(rng), int(rng.integers(2**63)))

    def validation_loss(self, network: TrainableModule, pair: Pair, index: int) -> PairLoss | None:
        """Return the loss of a validation pair."""
        return self._loss(network, pair, index)

    def _loss(self, network: TrainableModule, pair: Pair, seed: int) -> PairLoss | None:
        """Return the loss of the samples of a pair, or None if all are good or all are bad."""
        assert isinstance(network, QualityModule)
        example = make_example(replace(pair, features=None))
        samples = draw_samples(example, seed)
        good = good_samples(example, samples)
        if good.all() or not good.any():
            return None
        x1, x2 = (points.take(samples, axis=0) for points in (example.problem.points1, example.problem.points2))
        log_odds = network.log_odds(*map(torch.from_numpy, sample_inputs(x1, x2)))
        loss = balanced_entropy(log_odds, torch.from_numpy(good.astype(np.float32)))
        figures = {
            "entropy": loss.item(),
            "drawn": float(good.mean()),
            "geometric": share_kept(geometric_quality(x1, x2), good),
            "kept": share_kept(log_odds.detach().numpy(), good),
        }
        return PairLoss(loss, figures)
