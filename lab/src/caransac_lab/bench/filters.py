"""What stands before an estimator: a filter gives every match a weight, keeps those above zero, best first."""

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

MIN_KEPT = 20  # matches a filter leaves at least, the best ones
CONTEXT_FILTER = "ContextFilter"  # the name of our own learned filter in tables
PAPER_FILTER = "ContextFilter 128"  # that of as many features as the filter of the paper's experiment has
OWN_FILTERS = {CONTEXT_FILTER: "filter", PAPER_FILTER: "filter-128"}  # their weights


@dataclass(frozen=True)
class BenchFilter:
    """A filter by name.

    Attributes:
        name: its name in tables.
        weigh: gives a pair's matches weights (n,), higher for better ones, above zero for those to keep; None if
            nothing is known of them, and all stay in their order. Must be picklable: it runs in worker processes.
    """

    name: str
    weigh: Callable[[Pair], Array | None]

    def apply(self, pair: Pair) -> Pair:
        """The matches that pass, best first, with the weights as their confidences."""
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
    """Keeps matches with a ratio below a limit; of confidences it knows only the order."""

    max_ratio: float

    def __call__(self, pair: Pair) -> Array | None:
        """See `BenchFilter.weigh`."""
        if pair.scores is None:
            return None
        if pair.score_kind == "ratio":
            return np.asarray(self.max_ratio - pair.scores)
        return np.asarray(pair.scores - pair.scores.min() + 1.0) if len(pair.scores) else pair.scores


@dataclass(frozen=True)
class SavedMatchWeights:
    """Weights of matches that another program computed: an npz file with an array (n,) for every ``scene/pair``."""

    path: Path
    threshold: float = 0.0

    def __call__(self, pair: Pair) -> Array:
        """See `BenchFilter.weigh`."""
        saved, key = _load(self.path, version_of(self.path)), f"{pair.scene}/{pair.name}"
        if key not in saved:
            raise ValueError(f"{self.path}: no weights of {key}")
        return np.asarray(saved[key] - self.threshold)


@dataclass(frozen=True)
class LearnedFilter:
    """Keeps matches that a network of `caransac_lab.networks.match_filter` holds for right.

    Attributes:
        weights: the network's weights, a name in the package or a path.
        threshold: probability above which a match stays.
    """

    weights: str
    threshold: float = 0.5

    def __call__(self, pair: Pair) -> Array:
        """See `BenchFilter.weigh`."""
        judgement = load_filter(self.weights).judge(pair.points1, pair.points2, pair.scores, pair.score_kind)
        return judgement.probabilities.astype(float) - self.threshold


def own_filters() -> list[BenchFilter]:
    """The learned filters that come with the package."""
    return [BenchFilter(name, LearnedFilter(weights)) for name, weights in OWN_FILTERS.items() if _has(weights)]


def _has(weights: str) -> bool:
    return weights_path(find_weights(weights)).is_file()


@lru_cache(maxsize=4)
def _load(path: Path, version: tuple[int, ...]) -> dict[str, Array]:  # noqa: ARG001  # part of the cache's key
    """The arrays of the version of a file that is there now."""
    with open_npz(path) as arrays, naming(path):
        return {key: np.asarray(arrays[key], float) for key in arrays}


def ratio_filter(max_ratio: float) -> BenchFilter:
    """The classical filter by the second-nearest-neighbour ratio."""
    return BenchFilter(f"ratio<{max_ratio:g}", BelowRatio(max_ratio))


def saved_filter(text: str) -> BenchFilter:
    """The filter ``NAME=FILE`` or ``NAME=FILE:THRESHOLD`` of the command line.

    The file holds the weights of matches, or those of a network that ``caransac-lab train --filter`` has trained.
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
