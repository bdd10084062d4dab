"""Train the state network: the loop runs, torch replays it, and the confidence is fitted at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caransac.geometry import Floats
from caransac.learned.network_layout import DEFAULT_LAYOUT, NetworkLayout
from caransac.options import MaxError, Options
from caransac.robust.assess.confidence import CONFIDENCE_PARTS
from caransac.robust.assess.evidence import EVIDENCE
from caransac_lab.datasets import Pair
from caransac_lab.metrics import FAILURE_DEG, auc, expected_calibration_error
from caransac_lab.networks.match_filter import load_filter
from caransac_lab.training.calibration import fit_logistic
from caransac_lab.training.data import Example, PairSource, make_example, random_threshold, with_filter, with_noise
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.replay import Losses, replay
from caransac_lab.training.restaging import SceneKind, restage
from caransac_lab.training.state_module import StateModule
from caransac_lab.training.task import Figures, PairLoss, RunAll, ShowProgress, TrainingTask
from caransac_lab.training.trainable_module import TrainableModule

HARD_SHARE = 0.1  # share of hard training pairs: planes, solved for homographies, and pairs of few matches
PROBLEMS = ("essential", "fundamental", "focal", "guessed", "homography")  # problems with their own confidence


class LoopTask(TrainingTask):
    """Common part of the tasks that replay the loop: a state network.

    Attributes:
        layout: layout of the network.
        problems: problems that get a confidence.
        with_prior: whether the loss includes the probabilities before any model.
    """

    usage = "caransac.Options(weights={path!r})"
    decisive = "entropy"  # the pose errors of a hundred pairs are too noisy
    shown = ("train_loss", "train_auc5", "val_entropy", "val_auc5")
    panels = {  # noqa: RUF012  # a constant of the class, never written to
        "loss": ("loss", "entropy"),
        "cross entropy": ("prior", "posterior"),
        "AUC of the pose, %": ("auc5", "auc1"),
    }

    layout: NetworkLayout = DEFAULT_LAYOUT
    problems: tuple[str, ...] = PROBLEMS
    with_prior = True

    def make_network(self, num_inputs: int) -> StateModule:
        """Create the network with random weights."""
        return StateModule(num_inputs, self.recipe.width, self.layout)

    def options(self, seed: int, max_error_px: MaxError, *, early_stop: bool = False) -> Options:
        """Return the options of a run."""
        update = self.recipe.state_update
        return Options(max_error_px=max_error_px, early_stop=early_stop, state_update=update, seed=seed)

    def random_threshold(self, rng: np.random.Generator) -> MaxError:
        """Draw the threshold of a run."""
        return random_threshold(rng)

    def _replay(self, network: TrainableModule, example: Example, seed: int) -> PairLoss | None:
        assert isinstance(network, StateModule)
        options = self.options(seed, example.max_error_px)
        losses = replay(
            network, example, options, self_supervised=self.recipe.self_supervised, with_prior=self.with_prior
        )
        return None if losses is None else PairLoss(losses.total, figures_of(losses))

    def summarise(self, figures: Sequence[Figures | None]) -> Figures:
        """Average over runs. A run without a model counts as a failed pose."""
        found = [f for f in figures if f is not None]
        errors = [FAILURE_DEG if f is None else f["pose_error_deg"] for f in figures]
        errors = [error for error in errors if not np.isnan(error)]  # homographies have no pose
        means = {
            name: float(np.mean([f[name] for f in found])) if found else float("nan")
            for name in ("loss", "entropy", "prior", "posterior")
        }
        return means | {f"auc{x}": auc(errors, x) if errors else float("nan") for x in (5, 1)}

    def describe(self, network: TrainableModule) -> Figures:
        """Return the exponent of the refinement's weights, for the log."""
        assert isinstance(network, StateModule)
        return {"alpha": network.alpha.item()}

    def finish(self, weights: dict[str, Floats], runs: int, run_all: RunAll, progress: ShowProgress) -> dict[str, Any]:
        """Fit the confidence of every problem and add it to the weights."""
        if not self.problems:
            return {}
        calibration: dict[str, Any] = {}
        before = dict(weights)
        for done, name in enumerate(self.problems):
            progress("confidence", done, len(self.problems), {})
            results = run_all("evidence", [(before, name, index) for index in range(runs)])
            found = [result for result in results if result is not None]
            outcomes = [(numbers, right) for numbers, right, _ in found]
            calibration[name] = add_confidence(weights, f"confidence.{name}", outcomes)
            turned = [(numbers, right) for numbers, _, right in found if right is not None]
            if turned:
                calibration[f"{name}, rotation"] = add_confidence(weights, f"rotation_confidence.{name}", turned)
        progress("confidence", len(self.problems), len(self.problems), {})
        return {"confidence": {"evidence": EVIDENCE} | calibration}


class StateTask(LoopTask):
    """Task: the state network of CA-RANSAC for two views."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self.filter = load_filter(recipe.with_filter) if recipe.with_filter else None

    def count_inputs(self, source: PairSource, others: Sequence[Pair]) -> int:
        """Return the number of inputs of the network per match, checked over all data."""
        widths = {0 if pair.features is None else pair.features.shape[1] for pair in (*source.pairs, *others)}
        if len(widths) > 1:
            raise ValueError(f"data: pairs have different numbers of features: {sorted(widths)}")
        if max(widths) < self.layout.lifted and not self.filter:
            raise ValueError(f"lifted: the data have {max(widths)} features, not {self.layout.lifted}")
        if widths != {0} and source.synthetic_share > 0:
            raise ValueError("synthetic_share: synthetic pairs have no features of their own, so it must be 0")
        return self.layout.num_inputs(max(widths) + (self.filter.num_features if self.filter else 0))

    def example(
        self,
        pair: Pair,
        problem_name: str = "essential",
        rng: np.random.Generator | None = None,
        max_error_px: MaxError = "auto",
        labels: Floats | None = None,
    ) -> Example:
        """Prepare a pair for the loop, including the output of the filter if there is one."""
        pair = with_filter(pair, self.filter, as_paper=self.layout.lifted > 0) if self.filter else pair
        return make_example(pair, problem_name, rng, max_error_px, labels, self.layout)

    def training_loss(self, network: TrainableModule, source: PairSource, rng: np.random.Generator) -> PairLoss | None:
        """Return the loss of one pair drawn from the source."""
        name = "fundamental" if rng.random() < self.recipe.fundamental_share else "essential"
        pair = source.draw(rng)
        if rng.random() < HARD_SHARE:
            kind: SceneKind = "plane" if rng.random() < 0.5 else "few"
            name, pair = "homography" if kind == "plane" else name, restage(pair, kind, rng).pair
        example = self.example(with_noise(pair, rng), name, rng, self.random_threshold(rng))
        if example.problem.num_points < example.problem.sample_size:
            return None
        return self._replay(network, example, int(rng.integers(2**63)))

    def validation_loss(self, network: TrainableModule, pair: Pair, index: int) -> PairLoss | None:
        """Return the loss of a validation pair."""
        return self._replay(network, self.example(pair), index)


def figures_of(losses: Losses) -> Figures:
    """Return the figures of a run's losses."""
    names = ("entropy", "prior", "posterior", "pose_error_deg")
    return {"loss": losses.total.item()} | {name: getattr(losses, name) for name in names}


def add_confidence(weights: dict[str, Floats], name: str, results: Sequence[tuple[Any, bool]]) -> dict[str, float]:
    """Fit the confidence of a problem, add it to the weights, and return the quality of the fit."""
    evidence = np.array([numbers for numbers, _ in results])
    outcomes = np.array([right for _, right in results])
    fit = fit_logistic(evidence, outcomes)
    for part in CONFIDENCE_PARTS:
        weights[f"{name}.{part}"] = np.asarray(getattr(fit, part), np.float32)
    predicted = fit.probabilities(evidence)
    return {
        "runs": len(results),
        "share_right": float(outcomes.mean()),
        "calibration_error": expected_calibration_error(predicted, outcomes),
    }
