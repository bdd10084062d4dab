"""What worker processes do: gradients, validation and evidence, each pair by itself and repeatable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from caransac.api import pose_from_fundamental
from caransac.datasets import Pair
from caransac.geometry import Array, Floats, pose_error_deg
from caransac.learned.state_network import StateNetwork
from caransac.options import Options
from caransac.robust.ca_ransac import ca_ransac
from caransac.robust.confidence import CONFIDENT_DEG, evidence
from caransac.robust.problems import Fundamental, Problem
from caransac.training.data import PairSource, read_pairs, shuffled, synthetic_pair
from caransac.training.filter import FilterSubject
from caransac.training.network import Mirror
from caransac.training.quality import QualitySubject
from caransac.training.recipe import Recipe
from caransac.training.state import StateSubject
from caransac.training.subject import Figures, Subject

HELD_OUT = 20  # every so many training pairs are validated on where no other data are given
TRAINING, VALIDATION, EVIDENCE = range(3)  # streams of random numbers


SUBJECTS: dict[str, type[Subject]] = {
    "state": StateSubject,
    "filter": FilterSubject,
    "sample-quality": QualitySubject,
}


class Worker:
    """The data of a recipe, and what is computed from them."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.subject = SUBJECTS[recipe.subject](recipe)
        pairs, self.val_pairs = split_pairs(recipe)
        self.source = PairSource(pairs, recipe.synthetic_share)
        self.unrelated_pairs = read_pairs([Path(folder) for folder in recipe.unrelated])

    def sizes(self) -> tuple[int, int]:
        """Numbers the network reads of a match, and the number of validation pairs."""
        others = [*self.val_pairs, *self.unrelated_pairs]
        return self.subject.count_inputs(self.source, others), len(self.val_pairs)

    def gradient(
        self, weights: Mapping[str, Floats], step: int, examples: Sequence[int]
    ) -> tuple[list[Floats], list[Figures]]:
        """Sum of the gradients over some examples of a step, by parameter, and their figures."""
        network = self._network(weights)
        figures = []
        for index in examples:
            rng = np.random.default_rng([self.recipe.seed, TRAINING, step, index])
            lesson = self.subject.teach(network, self.source, rng)
            if lesson is not None:
                lesson[0].backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                figures.append(lesson[1])
        gradients = [(torch.zeros_like(p) if p.grad is None else p.grad).numpy() for p in network.parameters()]
        return gradients, figures

    def validate(self, weights: Mapping[str, Floats], index: int) -> Figures | None:
        """Figures of one validation pair, always with the same seed."""
        with torch.no_grad():
            lesson = self.subject.test(self._network(weights), self.val_pairs[index], index)
        return None if lesson is None else lesson[1]

    def evidence(self, weights: Mapping[str, Floats], problem_name: str, index: int) -> tuple[Array, bool] | None:
        """Evidence of one run on a training or unrelated pair, and whether its pose was right; None without a model."""
        assert isinstance(self.subject, StateSubject)
        rng = np.random.default_rng([self.recipe.seed, EVIDENCE, index])
        pair = self._evidence_pair(rng)
        example = self.subject.example(pair, problem_name)
        network = StateNetwork(weights)
        found = ca_ransac(example.problem, network, example.side, Options(seed=index))
        if found.model is None:
            return None
        return evidence(network, example.problem, found), is_right(pair, example.problem, found.model)

    def _evidence_pair(self, rng: np.random.Generator) -> Pair:
        """A related pair three times in four; else one of unrelated images, or one whose matches are shuffled."""
        if rng.random() < 0.75:
            return self.source.draw(rng)
        if self.unrelated_pairs and rng.random() < 0.7:
            return self.unrelated_pairs[int(rng.integers(len(self.unrelated_pairs)))]
        return shuffled(self.source.draw(rng), rng)

    def _network(self, weights: Mapping[str, Floats]) -> Mirror:
        network = self.subject.make_network(self.sizes()[0])
        network.load_weights(weights)
        return network


def is_right(pair: Pair, problem: Problem, model: Array) -> bool:
    """Whether a model's pose is within five degrees of the truth; never for unrelated images."""
    if pair.R is None or pair.t is None:
        return False
    if isinstance(problem, Fundamental):
        inliers = problem.inliers(model)
        F = problem.in_pixels(model[None]).reshape(3, 3)
        R, t = pose_from_fundamental(F, pair.points1[inliers], pair.points2[inliers], pair.camera1, pair.camera2)
    else:
        R, t = model[:9].reshape(3, 3), model[9:]
    return pose_error_deg(R, t, pair.R, pair.t) < CONFIDENT_DEG


def split_pairs(recipe: Recipe) -> tuple[list[Pair], list[Pair]]:
    """Training and validation pairs of a recipe; without real ones to validate on, synthetic ones."""
    pairs = read_pairs([Path(folder) for folder in recipe.data])
    if recipe.val:
        val_pairs = read_pairs([Path(folder) for folder in recipe.val])
    else:
        pairs, val_pairs = [p for i, p in enumerate(pairs) if i % HELD_OUT], pairs[::HELD_OUT]
    if not val_pairs:
        val_pairs = [
            synthetic_pair(np.random.default_rng([recipe.seed, VALIDATION, i])) for i in range(recipe.val_pairs)
        ]
    order = np.random.default_rng(recipe.seed).permutation(len(val_pairs))[: recipe.val_pairs]
    return pairs, [val_pairs[i] for i in order]


# One worker a process, made when first called: its data are read once, and a complaint about them reaches the caller.
_recipe: Recipe | None = None
_worker: Worker | None = None


def start(recipe: Recipe) -> None:
    """Make this process a worker of a recipe."""
    global _recipe, _worker
    torch.set_num_threads(1)
    _recipe, _worker = recipe, None


def call(method: str, arguments: tuple[Any, ...]) -> Any:
    """Call a method of this process's worker."""
    global _worker
    if _worker is None:
        assert _recipe is not None
        _worker = Worker(_recipe)
    return getattr(_worker, method)(*arguments)
