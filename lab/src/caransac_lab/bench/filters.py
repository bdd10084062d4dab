"""Filters before an estimator. A filter gives every match a weight and keeps those above zero, best first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from caransac._support.files import naming, version_of
from caransac._support.untrusted import open_npz
from caransac.geometry import Array
from caransac.learned.weights_file import weights_path
from caransac_lab.datasets import Pair
from caransac_lab.networks.match_filter import load_filter
from caransac_lab.networks.weights import find_weights

MIN_KEPT = 20  # minimum number of matches after a filter; the best are kept
CONTEXT_FILTER = "ContextFilter"  # name of our own learned filter in tables
PAPER_FILTER = "ContextFilter 128"  # the filter with as many features as in the paper's experiment
OWN_FILTERS = {CONTEXT_FILTER: "filter", PAPER_FILTER: "filter-128"}  # names of their weights


@dataclass(frozen=True)
class BenchFilter:
    """A filter by name.

    Attributes:
        name: name in tables.
        weigh: function that returns weights (n,) of a pair's matches, higher for better ones, above zero for those to
            keep. If it returns None, all matches are kept in their order. It must be picklable,
            because it runs in worker processes.
    """

    name: str
    weigh: Callable[[Pair], Array | None]

    def apply(self, pair: Pair) -> Pair:
        """Return the matches that pass, best first, with their weights as confidences."""
        weights = self.weigh(pair)
        if weights is None:
            return pair
        if weights.shape != (len(pair.points1),):
            raise ValueError(f"filter {self.name}: {weights.shape} weights for {len(pair.points1)} matches")
        order = np.argsort(-weights, kind="stable")
        order = order[: max(int((weights > 0).sum()), MIN_KEPT)]
        return replace(pair, scores=weights, score_kind="confidence").take(order)


@dataclass(frozen=True)
class BelowRatio:
    """Keep matches with a ratio below a limit. Confidences are only sorted."""

    max_ratio: float

    def __call__(self, pair: Pair) -> Array | None:
        """Return the weights (n,) of a pair's matches, or None."""
        if pair.scores is None:
            return None
        if pair.score_kind == "ratio":
            return np.asarray(self.max_ratio - pair.scores)
        return np.asarray(pair.scores - pair.scores.min() + 1.0) if len(pair.scores) else pair.scores


@dataclass(frozen=True)
class SavedMatchWeights:
    """Weights of matches from another program: an npz file with an array (n,) for every ``scene/pair``."""

    path: Path
    threshold: float = 0.0

    def __call__(self, pair: Pair) -> Array:
        """Return the weights (n,) of a pair's matches."""
        saved, key = _load(self.path, version_of(self.path)), f"{pair.scene}/{pair.name}"
        if key not in saved:
            raise ValueError(f"{self.path}: no weights of {key}")
        return np.asarray(saved[key] - self.threshold)


@dataclass(frozen=True)
class LearnedFilter:
    """Keep the matches that a network of `caransac_lab.networks.match_filter` considers right.

    Attributes:
        weights: weights of the network, a name in the package or a path.
        threshold: minimum probability of a kept match.
    """

    weights: str
    threshold: float = 0.5

    def __call__(self, pair: Pair) -> Array:
        """Return the weights (n,) of a pair's matches."""
        judgement = load_filter(self.weights).judge(pair.points1, pair.points2, pair.scores, pair.score_kind)
        return judgement.probabilities.astype(float) - self.threshold


def own_filters() -> list[BenchFilter]:
    """Return the learned filters of the package."""
    return [BenchFilter(name, LearnedFilter(weights)) for name, weights in OWN_FILTERS.items() if _has(weights)]


def _has(weights: str) -> bool:
    return weights_path(find_weights(weights)).is_file()


@lru_cache(maxsize=4)
def _load(path: Path, version: tuple[int, ...]) -> dict[str, Array]:  # noqa: ARG001  # part of the cache's key
    """Load the arrays of the current version of a file."""
    with open_npz(path) as arrays, naming(path):
        return {key: np.asarray(arrays[key], float) for key in arrays}


def ratio_filter(max_ratio: float) -> BenchFilter:
    """Return the classical filter by the second-nearest-neighbour ratio."""
    return BenchFilter(f"ratio<{max_ratio:g}", BelowRatio(max_ratio))


def saved_filter(text: str) -> BenchFilter:
    """Create the filter ``NAME=FILE`` or ``NAME=FILE:THRESHOLD`` of the command line.

    The file contains weights of matches, or the weights of a network from ``caransac-lab train --filter``.
    """
    name, _, rest = text.partition("=")
    file, colon, number = rest.rpartition(":")
    path = file if colon else rest
    try:
        limit = float(number) if colon else None
    except ValueError as error:
        raise ValueError(f"--filter must be NAME=FILE or NAME=FILE:THRESHOLD, not {text!r}") from error
    if not name or not Path(path).is_file():
        raise ValueError(f"--filter must be NAME=FILE with a file of weights, not {text!r}")
    given = {} if limit is None else {"threshold": limit}
    return BenchFilter(
        name, LearnedFilter(path, **given) if _is_network(path) else SavedMatchWeights(Path(path), **given)
    )


def _is_network(path: str) -> bool:
    with open_npz(Path(path)) as arrays:
        return "context.0.weight" in arrays
