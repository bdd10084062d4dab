"""Work of worker processes: gradients, validation and evidence. Each pair is independent and reproducible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from caransac.geometry import Array, Floats, rotation_angle_deg
from caransac.learned.state_network import StateNetwork
from caransac.robust.assess.evidence import run_evidence
from caransac.robust.pipeline import adapt, examine
from caransac.robust.problems import Homography
from caransac_lab.training.absolute_task import AbsoluteTask
from caransac_lab.training.data import (
    EVIDENCE_STREAM,
    TRAINING_STREAM,
    Example,
    filtered,
    with_noise,
    without_geometry,
)
from caransac_lab.training.filter_task import FilterTask
from caransac_lab.training.paper_task import PaperTask
from caransac_lab.training.photographs import bent, cropped, mirrored, overlaid, sheared
from caransac_lab.training.quality_task import QualityTask
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.restaging import Restaged, SceneKind, restage
from caransac_lab.training.state_task import LoopTask, StateTask
from caransac_lab.training.task import Figures, TrainingTask
from caransac_lab.training.trainable_module import TrainableModule

# Share of pairs, for each problem, with lens distortion that the cameras do not include.
BENT = {"essential": 0.2, "fundamental": 0.25, "focal": 0.35, "guessed": 0.25, "homography": 0.0}
FILTERED = 0.5  # share of pairs without geometry that are filtered
BENT_HARDLY_MOVED = 0.5  # share of distorted pairs if the camera hardly moved
WITHOUT_GEOMETRY, ORDINARY, OVERLAID_PLANES = 0.1, 0.5, 0.15  # shares of the runs that the confidence is fitted to
MOST_WRONG = 0.97  # maximum share of wrong matches for planes
# The other runs are hard scenes, in these proportions.
HARD_SCENES: dict[SceneKind | Literal["mirrored", "overlay", "shutter"], float] = {
    "plane": 1.0,
    "line": 0.6,
    "rotation": 1.0,
    "tiny": 1.2,
    "few": 1.0,
    "focal": 4.8,
    "centre": 1.6,
    "motions": 2.6,
    "facade": 1.0,
    "mirrored": 1.0,
    "overlay": 1.0,
    "shutter": 1.0,
}

TASKS: dict[str, type[TrainingTask]] = {
    "state": StateTask,
    "absolute": AbsoluteTask,
    "paper": PaperTask,
    "filter": FilterTask,
    "sample-quality": QualityTask,
}


class Worker:
    """The data of a recipe, and the computations on them."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.task = TASKS[recipe.task](recipe)
        self.source, self.val_pairs, self.unrelated_pairs = self.task.read_data()
        self.evidence_source = self.source.balanced() if isinstance(self.task, LoopTask) else self.source

    def sizes(self) -> tuple[int, int]:
        """Return the number of inputs per match, and the number of validation pairs."""
        others = [*self.val_pairs, *self.unrelated_pairs]
        return self.task.count_inputs(self.source, others), len(self.val_pairs)

    def gradient(
        self, weights: Mapping[str, Floats], step: int, examples: Sequence[int]
    ) -> tuple[list[Floats], list[Figures]]:
        """Return the sum of the gradients over some examples of a step, by parameter, and their figures."""
        network = self._network(weights)
        figures = []
        for index in examples:
            rng = np.random.default_rng([self.recipe.seed, TRAINING_STREAM, step, index])
            found = self.task.training_loss(network, self.source, rng)
            if found is not None:
                found.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                figures.append(found.figures)
        gradients = [(torch.zeros_like(p) if p.grad is None else p.grad).numpy() for p in network.parameters()]
        return gradients, figures

    def validate(self, weights: Mapping[str, Floats], index: int) -> Figures | None:
        """Return the figures of one validation pair, always with the same seed."""
        with torch.no_grad():
            found = self.task.validation_loss(self._network(weights), self.val_pairs[index], index)
        return None if found is None else found.figures

    def evidence(
        self, weights: Mapping[str, Floats], problem_name: str, index: int
    ) -> tuple[Array, bool, bool | None] | None:
        """Return the evidence of one run, and whether its answer and rotation are right; None without a model."""
        rng = np.random.default_rng([self.recipe.seed, EVIDENCE_STREAM, index])
        example, scene = self._evidence_example(problem_name, rng)
        network, problem = StateNetwork(weights), example.problem
        if problem.num_points < problem.sample_size:
            return None
        assert isinstance(self.task, LoopTask)
        options = self.task.options(index, example.max_error_px, early_stop=True)
        found = adapt(problem, network, example.side, example.info, options)
        if found.model is None:
            return None
        problem = problem.through(found.k1)
        numbers = run_evidence(network, problem, found, examine(problem, network, found, options), options).numbers
        H, R = (None, None) if scene is None else (scene.H, scene.R)
        return numbers, is_right(example, H, found.model), is_rotation_right(example, R, found.model)

    def _evidence_example(self, problem_name: str, rng: np.random.Generator) -> tuple[Example, Restaged | None]:
        """Draw an example for the confidence: a query, or a pair and its scene."""
        if isinstance(self.task, AbsoluteTask):
            return self.task.evidence_example(self.evidence_source, self.unrelated_pairs, problem_name, rng), None
        assert isinstance(self.task, StateTask)
        scene = self._evidence_scene(problem_name, rng)
        pair = cropped(scene.pair, rng) if problem_name == "focal" else scene.pair
        labels, max_error_px = pair.right_matches(), self.task.random_threshold(rng)
        pair = bent(pair, rng) if rng.random() < bent_share(problem_name, scene) else pair
        return self.task.example(with_noise(pair, rng), problem_name, rng, max_error_px, labels), scene

    def _evidence_scene(self, problem_name: str, rng: np.random.Generator) -> Restaged:
        """Draw a related pair in half of the runs, otherwise a hard scene, unrelated images, or random matches."""
        chance = rng.random()
        if chance < WITHOUT_GEOMETRY:
            pair = without_geometry(self.evidence_source.draw(rng), rng)
            if self.unrelated_pairs and rng.random() < 0.7:
                pair = self.unrelated_pairs[int(rng.integers(len(self.unrelated_pairs)))]
            return Restaged(filtered(pair, rng) if rng.random() < FILTERED else pair, kind="none")
        pair = self.evidence_source.draw(rng)
        if problem_name == "homography":
            scene = restage(pair, "plane" if rng.random() < 0.7 else "rotation", rng, MOST_WRONG)
            overlay = rng.random() < OVERLAID_PLANES
            return replace(scene, pair=overlaid(scene.pair, rng), kind="overlay") if overlay else scene
        if chance < WITHOUT_GEOMETRY + ORDINARY:
            return Restaged(pair, R=pair.R)
        kinds = [kind for kind in HARD_SCENES if kind not in ("focal", "centre") or problem_name == "essential"]
        shares = np.array([HARD_SCENES[kind] for kind in kinds])
        kind = kinds[int(rng.choice(len(kinds), p=shares / shares.sum()))]
        if kind == "mirrored":
            return Restaged(mirrored(pair), kind=kind)
        if kind == "overlay":
            return Restaged(overlaid(pair, rng), R=pair.R, kind=kind)
        if kind == "shutter":
            return Restaged(sheared(pair, rng), R=pair.R, kind=kind)
        return restage(pair, kind, rng)

    def _network(self, weights: Mapping[str, Floats]) -> TrainableModule:
        network = self.task.make_network(self.sizes()[0])
        network.load_weights(weights)
        return network


def is_right(example: Example, H: Array | None, model: Array) -> bool:
    """Return True if a model is right in the sense of its confidence. H is the true homography, if there is one."""
    problem = example.problem
    if isinstance(problem, Homography):
        if H is None:
            return False
        error = np.subtract(*problem.outcomes(np.stack([model, problem.from_public(H)])))
        return bool(np.linalg.norm(error.reshape(-1, 2), axis=1).mean() < problem.outcome_limit)
    return example.R is not None and example.pose_error_deg(model) < math.degrees(problem.outcome_limit)


def bent_share(problem_name: str, scene: Restaged) -> float:
    """Return the probability of lens distortion in a scene. It is larger if distortion looks like a translation."""
    hardly_moved = scene.kind == "tiny" and problem_name != "homography"
    return BENT_HARDLY_MOVED if hardly_moved else BENT[problem_name]


def is_rotation_right(example: Example, R: Array | None, model: Array) -> bool | None:
    """Return True if the rotation of a model is right; None for models without a rotation."""
    if not example.problem.traits.uncertainty:
        return None
    return R is not None and rotation_angle_deg(model[:, :3] @ R.T) < math.degrees(example.problem.outcome_limit)


# One worker per process, created by the first call: its data are read once, and errors in them reach the caller.
_recipe: Recipe | None = None
_worker: Worker | None = None


def start(recipe: Recipe) -> None:
    """Make this process a worker for a recipe."""
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
