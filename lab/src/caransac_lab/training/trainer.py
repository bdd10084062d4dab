"""The training run: batches on worker processes, validation, checkpoints, log, curves, and final weights."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import caransac
from caransac._support.arrays import is_integer, is_real
from caransac._support.batch import map_ordered
from caransac._support.files import check_no_input, make_folder, replacing, save_arrays
from caransac._support.interrupts import InterruptRequest
from caransac._support.processes import ProcessPool
from caransac.geometry import Floats
from caransac.learned.weights_file import read_weights, weights_path
from caransac_lab.curves import draw_training
from caransac_lab.networks.weights import find_weights
from caransac_lab.training import worker
from caransac_lab.training.checkpoint import read_checkpoint, write_checkpoint
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.task import Figures, ShowProgress

CHUNK = 4  # pairs per gradient call; fixed, so that the sums do not depend on the number of workers
CLIP = 1.0  # maximum norm of a gradient
CHECKPOINT_S = 120.0
CHECKPOINT, WEIGHTS, CARD, LOG, CURVES = "checkpoint.pt", "weights.npz", "weights.json", "log.csv", "curves.png"


@dataclass
class TrainingState:
    """Progress of a run. A checkpoint has this, the network, the optimiser and the learning rate."""

    step: int = 0
    seconds: float = 0.0
    figures: list[Figures] = field(default_factory=list)  # since the last validation
    log: list[dict[str, float]] = field(default_factory=list)
    best_weights: dict[str, Tensor] = field(default_factory=dict)


def train(
    recipe: Recipe,
    out: Path,
    *,
    steps: int,
    workers: int = 1,
    resume: bool = False,
    evidence_runs: int = 1500,
    progress: ShowProgress = lambda *_: None,
) -> Path:
    """Train a network. Write its weights, a model card, a log and curves to a folder.

    Args:
        recipe: data and settings of the training.
        out: folder for the results. It contains a checkpoint from which an interrupted run can resume.
        steps: total number of optimiser steps, including those before a resumption. 0 keeps the initial weights and
            only fits their confidence.
        workers: number of processes that share the pairs of a step. It does not change the result.
        resume: whether to resume the run in `out`, if there is one.
        evidence_runs: number of runs of the estimator per problem for fitting the confidence.
        progress: called after every step with the stage, the progress, and the latest figures.

    Returns:
        The path of the weights.

    Raises:
        ValueError: the folder contains another run, or data are missing. The message says which.
    """
    for name, value, least in (("steps", steps, 0), ("workers", workers, 1), ("evidence_runs", evidence_runs, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    if steps == 0 and not recipe.start:
        raise ValueError("steps must be at least 1 without weights to start from")
    starts = (weights_path(find_weights(name)) for name in (recipe.start, recipe.with_filter) if name)
    check_no_input(out / WEIGHTS, starts, "out:")
    make_folder(out)
    if (out / CHECKPOINT).exists() and not resume:
        raise ValueError(f"out: {out} contains a training run; resume it or choose another folder")
    with ProcessPool(workers, worker.start, recipe) as pool:
        training = Training(recipe, out, pool)
        if resume:
            training.restore()
        training.run(steps, progress)
        return training.export(evidence_runs, progress)


class Training:
    """A training run in progress."""

    def __init__(self, recipe: Recipe, out: Path, pool: Executor) -> None:
        self.recipe, self.out, self.pool = recipe, out, pool
        self.task = worker.TASKS[recipe.task](recipe)
        self.num_inputs, self.num_val_pairs = self._map("sizes", [()])[0]
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers are not affected
            torch.manual_seed(recipe.seed)
            self.network = self.task.make_network(self.num_inputs)
        if recipe.start:
            self.network.start_from(read_weights(find_weights(recipe.start), "start"))
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=recipe.learning_rate)
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, factor=0.5, patience=recipe.patience, threshold=1e-3
        )
        self.state = TrainingState()

    @property
    def decisive(self) -> str:
        """Column of the log that controls the learning rate and the best weights."""
        return f"val_{self.task.decisive}"

    def run(self, steps: int, progress: ShowProgress) -> None:
        """Train up to a number of steps and validate every epoch. An interruption leaves a checkpoint."""
        started = saved = time.monotonic()
        before, first = self.state.seconds, self.state.step
        try:
            while self.state.step < steps or self._is_validation_due(steps):
                if validating := self._is_validation_due(steps):
                    self.validate()
                else:
                    self.step()
                    self.state.seconds = before + time.monotonic() - started
                if validating or time.monotonic() - saved > CHECKPOINT_S:
                    self.save()
                    saved = time.monotonic()
                if validating:  # after saving, because drawing takes a moment without checks for interruptions
                    draw_training(self.out / CURVES, self.state.log, self.task.panels)
                progress("training", self.state.step, steps, self._latest())
        except InterruptRequest:  # raised while workers were busy, so the state is that of the last complete step
            if self.state.step > first:
                self.save()
            raise

    def _is_validation_due(self, steps: int) -> bool:
        """Return True if a validation comes before the next step. An interrupted run may have stopped before it.

        Without any steps, the initial weights are the best ones.
        """
        step, log = self.state.step, self.state.log
        due = step == steps or (step > 0 and step % self.recipe.epoch == 0)
        return due and (not log or log[-1]["step"] < step)

    def step(self) -> None:
        """Take one optimiser step."""
        weights, indices = self.network.to_weights(), range(self.recipe.batch)
        chunks = [indices[first : first + CHUNK] for first in range(0, len(indices), CHUNK)]
        results = self._map("gradient", [(weights, self.state.step, chunk) for chunk in chunks])
        for number, parameter in enumerate(self.network.parameters()):
            total = np.sum([gradients[number] for gradients, _ in results], axis=0)
            parameter.grad = torch.as_tensor(total / self.recipe.batch, dtype=torch.float32)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        self.optimiser.step()
        self.state.step += 1
        for _, figures in results:
            self.state.figures += figures

    def validate(self) -> None:
        """Evaluate the network on the validation pairs, log it, and halve the learning rate on a plateau."""
        weights = self.network.to_weights()
        results = self._map("validate", [(weights, index) for index in range(self.num_val_pairs)])
        row = {
            "step": self.state.step,
            "seconds": round(self.state.seconds, 1),
            "learning_rate": self.optimiser.param_groups[0]["lr"],
            **self.task.describe(self.network),
            **self._summarise("train", self.state.figures),
            **self._summarise("val", results),
        }
        if not self.state.log or row[self.decisive] < min(r[self.decisive] for r in self.state.log):
            self.state.best_weights = {name: torch.from_numpy(array) for name, array in weights.items()}
        self.state.log.append(row)
        self.state.figures = []
        self.schedule.step(row[self.decisive])
        with replacing(self.out / LOG) as path, path.open("w", newline="") as file:
            writer = csv.DictWriter(file, dict.fromkeys(name for row in self.state.log for name in row))
            writer.writeheader()
            writer.writerows(self.state.log)

    def save(self) -> None:
        """Write the checkpoint."""
        parts = {
            "recipe": asdict(self.recipe),
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "state": asdict(self.state),
        }
        write_checkpoint(self.out / CHECKPOINT, parts)

    def restore(self) -> None:
        """Resume from the checkpoint, if there is one."""
        path = self.out / CHECKPOINT
        if not path.exists():
            return
        parts = read_checkpoint(path)
        try:
            recipe = Recipe(**parts["recipe"])
            self.network.load_state_dict(parts["network"])
            self.optimiser.load_state_dict(parts["optimiser"])
            self.schedule.load_state_dict(parts["schedule"])
            self.state = TrainingState(*(parts["state"][each.name] for each in fields(TrainingState)))
            self._check_state()
        except Exception as error:  # a foreign file may raise anything
            if changed := [name for name, value in asdict(self.recipe).items() if value != parts["recipe"][name]]:
                raise ValueError(f"out: {self.out} contains a run with another {', '.join(changed)}") from error
            why = " ".join(str(error).split())
            raise ValueError(f"{path} does not contain a run of caransac: choose another folder ({why})") from error
        if changed := self.recipe.differences(recipe):
            raise ValueError(f"out: {self.out} contains a run with another {', '.join(changed)}")

    def _check_state(self) -> None:
        """Raise a ValueError if a checkpoint has impossible values."""
        state, shapes = self.state, {name: array.shape for name, array in self.network.to_weights().items()}
        if not is_integer(state.step) or state.step < 0 or not is_real(state.seconds):
            raise ValueError("step and seconds must be numbers")
        for row in [*state.log, *state.figures]:
            if not isinstance(row, dict) or not all(is_real(number) for number in row.values()):
                raise ValueError("log and figures must be lists of named numbers")
        if any(not {"step", self.decisive} <= row.keys() for row in state.log):
            raise ValueError(f"the log must have step and {self.decisive}")
        best = {name: tuple(tensor.shape) for name, tensor in state.best_weights.items()}
        if best != (shapes if state.log else {}):
            raise ValueError("the best weights must be those of the network")
        weights = (*self.network.parameters(), *state.best_weights.values())
        if not all(torch.isfinite(tensor).all() for tensor in weights):
            raise ValueError("weights must be finite")

    def export(self, evidence_runs: int, progress: ShowProgress) -> Path:
        """Complete the best weights, and write them with their card."""
        weights: dict[str, Floats] = {name: tensor.numpy() for name, tensor in self.state.best_weights.items()}
        finishing = self.task.finish(weights, evidence_runs, self._map, progress)
        best = min(self.state.log, key=lambda row: row[self.decisive])
        card = {
            "caransac": caransac.__version__,
            "parameters": int(sum(np.size(array) for array in weights.values())),
            "inputs": self.num_inputs,
            "recipe": asdict(self.recipe)
            | {name: _short(getattr(self.recipe, name)) for name in ("data", "val", "unrelated")},
            "steps": self.state.step,
            "hours": round(self.state.seconds / 3600, 2),
            "validation": {name.removeprefix("val_"): value for name, value in best.items() if name.startswith("val_")},
            **{name: best[name] for name in self.task.describe(self.network)},
            **finishing,
        }
        # An interrupted run may lack the latest curves.
        draw_training(self.out / CURVES, self.state.log, self.task.panels)
        with replacing(self.out / WEIGHTS) as path:
            save_arrays(path, weights)
        with replacing(self.out / CARD) as path:
            path.write_text(json.dumps(card, indent=2) + "\n")
        return self.out / WEIGHTS

    def _map(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of the workers for every tuple of arguments, in order."""
        return list(map_ordered(partial(worker.call, method), arguments, self.pool))

    def _latest(self) -> dict[str, float]:
        """Return recent figures of the training, and those of the last validation."""
        recent = self.state.figures[-4 * self.recipe.batch :]
        row = (self.state.log[-1] if self.state.log else {}) | self._summarise("train", recent)
        return {name: row[name] for name in self.task.shown if name in row}

    def _summarise(self, name: str, figures: Sequence[Figures | None]) -> Figures:
        """Return the task's summary of figures, each with a prefix; empty without figures."""
        summary = self.task.summarise(figures) if figures else {}
        return {f"{name}_{each}": value for each, value in summary.items()}


def _short(folders: Sequence[str]) -> list[str]:
    """Shorten folders to their last two names, because the rest of a path is private."""
    return ["/".join(Path(folder).resolve().parts[-2:]) for folder in folders]
