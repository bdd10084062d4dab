"""A learned filter that judges all matches of a pair together, before any model is tried.

The network runs on every match and uses context normalisation, as in K. M. Yi, E. Trulls, Y. Ono, V. Lepetit, M.
Salzmann and P. Fua, "Learning to Find Good Correspondences" (CVPR 2018). All matches share the weights of every layer.
The outputs of each layer are normalised to mean zero and deviation one over the matches of the pair, so that the
matches exchange information.

Normalising the outputs of an affine layer only shifts and scales its weights, by the means and variances of its
outputs: ``x W`` has the mean ``mean(x) W`` and the variances of ``(x - mean(x)) W``. Every layer can therefore run
through `kernels.mlp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac import kernels
from caransac._support.arrays import as_matches
from caransac.geometry import Array, Floats, sampson_sq
from caransac.kernels import Layer, pack
from caransac.learned.network_layout import NUM_FEATURES
from caransac.learned.side_information import side_information
from caransac.learned.weights_file import LEAKY_RELU, NONE, TANH, Weights, layers_of, load
from caransac.options import ScoreKind, check_score_kind
from caransac_lab.networks.eight_point import eight_point
from caransac_lab.networks.weights import find_weights

NUM_INPUTS = 4 + NUM_FEATURES
# Maximum coordinate, in spreads from the centre. Larger ones are clipped, so that one extreme match cannot shrink all
# others.
FARTHEST = 3.0
KEPT_SHARE = 0.25
LARGEST_LIFTED, HALF_WAY = 1.5, 0.01  # maximum rescaled distance, and the distance in spreads that gives half of it
SMALLEST_VARIANCE = 1e-3  # added to variances, so that rounding is not amplified if all matches are similar


@dataclass(frozen=True, eq=False)
class Judgement:
    """Output of the filter for the matches of a pair.

    Attributes:
        log_odds: (n,) log-odds of being right, for equal numbers of right and wrong matches.
        features: (n, f) features of each match and its context.
    """

    log_odds: Floats
    features: Floats

    @property
    def probabilities(self) -> Floats:
        """Inlier probabilities (n,), for equal numbers of right and wrong matches."""
        return np.asarray(0.5 * (1 + np.tanh(0.5 * self.log_odds)))

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Mask (n,) of the most probable quarter of the matches, as many as CLNet keeps (Zhao et al., ICCV 2021)."""
        kept = np.zeros(len(self.log_odds), bool)
        kept[np.argsort(-self.log_odds, kind="stable")[: math.ceil(KEPT_SHARE * len(kept))]] = True
        return kept

    def fit(self, points1: Array, points2: Array) -> Array:
        """Fit a model (3, 3) without sampling, to the kept matches (n, 2) weighted by their probabilities."""
        kept = self.kept
        return eight_point(points1[kept], points2[kept], self.probabilities[kept])

    def as_paper_features(self, points1: Array, points2: Array) -> Array:
        """Return features (n, f + 1): those of kept matches, zero for others, and the distance to the filter's model.

        This is the side information of the paper's experiment with a filter, for weights trained with
        ``--paper --with-filter``. These weights lift the distance, which is rescaled to 0 on the model and 1.5 far from
        it.
        """
        features = np.where(self.kept[:, None], self.features, 0.0)
        if len(points1) < 8:
            return np.concatenate([features, np.full((len(features), 1), LARGEST_LIFTED)], axis=1)
        correspondences = pack(points1, points2)
        relative = correspondences.in_spreads(correspondences.spreads())
        model = self.fit(relative.points1, relative.points2)
        distances = np.sqrt(sampson_sq(model, relative.points1, relative.points2))
        lifted = LARGEST_LIFTED * distances / (distances + HALF_WAY)
        return np.concatenate([features, np.nan_to_num(lifted, nan=LARGEST_LIFTED)[:, None]], axis=1)

    @property
    def as_features(self) -> Floats:
        """Return features and log-odds (n, f + 1), the ``features=`` for weights trained with ``--with-filter``."""
        return np.concatenate([self.features, self.log_odds[:, None]], axis=1)


@dataclass(frozen=True, eq=False)
class MatchFilter:
    """The weights of the filter.

    Layer l of the network has the weight ``context.l.weight`` (in, out). ``context.l.gain`` (out,) and
    ``context.l.shift`` (out,) are the deviation and the mean of its outputs. ``features`` and ``decoder`` follow, with
    the names of `layers_of`.
    """

    weights: Weights

    @property
    def num_features(self) -> int:
        """Number of features per match in `Judgement.as_features`."""
        return len(self.weights["features.0.bias"]) + 1

    @property
    def _depth(self) -> int:
        """Number of layers with context normalisation."""
        return len({name.split(".")[1] for name in self.weights if name.startswith("context.")})

    def judge(
        self,
        points1: ArrayLike,
        points2: ArrayLike,
        scores: ArrayLike | None = None,
        score_kind: ScoreKind | None = None,
    ) -> Judgement:
        """Judge the matches of a pair.

        Args:
            points1: (n, 2) points of image 1, in any unit: pixels or normalised coordinates.
            points2: (n, 2) points of image 2.
            scores: (n,) scores of the matches, or None.
            score_kind: kind of the scores; required with them.
        """
        first, second, numbers = as_matches(points1, points2, scores)
        return self.judge_inputs(filter_inputs(first, second, numbers, check_score_kind(scores, score_kind)))

    def judge_inputs(self, inputs: Floats) -> Judgement:
        """Judge matches from the output of `filter_inputs`: (n, NUM_INPUTS)."""
        if len(inputs) == 0:
            return Judgement(np.empty(0, np.float32), np.empty((0, self.num_features - 1), np.float32))
        x = inputs
        for index in range(self._depth):
            x = kernels.mlp([x], [self._context_layer(index, x)])
        features = kernels.mlp([x], layers_of(self.weights, "features", TANH))
        return Judgement(kernels.mlp([features], layers_of(self.weights, "decoder", NONE))[:, 0], features)

    def _context_layer(self, index: int, x: Floats) -> Layer:
        """Return a layer that includes the normalisation of its outputs over the inputs x (n, a).

        All layers except the first are residual. Inputs are centred in double precision, because single precision would
        lose the variance of inputs far from zero.
        """
        weight, gain, shift = (self.weights[f"context.{index}.{part}"] for part in ("weight", "gain", "shift"))
        mean = x.mean(axis=0, dtype=float)
        centred = (x - mean).astype(np.float32)
        outputs = kernels.mlp([centred], [(weight, np.zeros_like(gain), NONE, False)])
        variances = np.einsum("ni,ni->i", outputs, outputs, dtype=float) / len(x)
        scaled = weight * (gain / np.sqrt(variances + SMALLEST_VARIANCE))
        return scaled.astype(np.float32), (shift - mean @ scaled).astype(np.float32), LEAKY_RELU, index > 0

    def try_out(self) -> None:
        """Run every layer once. Raise an error if an array is missing or has a wrong shape."""
        self.judge_inputs(np.zeros((1, NUM_INPUTS), np.float32))


def filter_inputs(points1: Array, points2: Array, scores: Array | None, score_kind: ScoreKind) -> Floats:
    """Return the inputs of the filter for every match, both points and side information: (n, NUM_INPUTS)."""
    if len(points1) == 0:
        return np.empty((0, NUM_INPUTS), np.float32)
    correspondences = kernels.pack(points1, points2)
    spreads = correspondences.spreads()
    relative = correspondences.in_spreads(spreads)
    coordinates = [np.clip(points, -FARTHEST, FARTHEST) for points in (relative.points1, relative.points2)]
    side = side_information(correspondences, spreads, scores, score_kind)
    return np.concatenate([*coordinates, side], axis=1, dtype=np.float32)


def load_filter(name: str | Path = "filter") -> MatchFilter:
    """Load a filter by its name in the lab or by the path of an npz file. A changed file is read again."""
    return load(find_weights(name), MatchFilter, "filter")
