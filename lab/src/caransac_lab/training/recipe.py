"""Settings that determine the result of a training run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from caransac._support.arrays import is_integer, is_real, shorten

TaskName = Literal["state", "absolute", "paper", "filter", "sample-quality"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All settings of a training run, except its length and the number of workers.

    Attributes:
        task: network to train: the state network of CA-RANSAC, that of absolute poses, the paper's network by the
            paper's training, the match filter, or the sample quality.
        data: folders of scenes in the layout of the RANSAC Tutorial 2020. Without any, training uses only synthetic
            pairs.
        val: folders of scenes for validation. Without any, every twentieth training pair is held out.
        unrelated: folders of pairs of unrelated images, for the confidence. Synthetic ones are always added.
        synthetic_share: share of synthetic pairs among the training pairs.
        fundamental_share: share of pairs solved for a fundamental matrix instead of a pose.
        width: width of the state.
        batch: pairs per optimiser step.
        epoch: steps between two validations.
        val_pairs: maximum number of validation pairs.
        learning_rate: initial learning rate of Adam. It is halved when the validation entropy stops falling.
        patience: epochs without a lower validation entropy before the learning rate is halved.
        start: initial weights, a name or a path; empty for random ones.
        with_filter: weights of a match filter, a name or a path, whose output the state network reads; empty for none.
        state_update: whether the state is updated; False is an ablation.
        prior_loss: task "paper" only. Whether the loss includes the probabilities before any model, as one more round.
            The paper's formula starts at the first round, so that nothing teaches which matches to sample first.
        lifted: task "paper" only. Number of features of the data, from the last, that are lifted like scores.
        max_matches: task "paper" only. Maximum number of matches of a training pair, chosen at random; 0 for all.
        filter_features: task "filter" only. Number of output features per match; 128 in the paper's experiment.
        self_supervised: whether the run's own final model labels the matches instead of the truth.
        seed: seed of all random numbers.
    """

    task: TaskName = "state"
    data: tuple[str, ...] = ()
    val: tuple[str, ...] = ()
    unrelated: tuple[str, ...] = ()
    synthetic_share: float = 0.3
    fundamental_share: float = 0.2
    width: int = 32
    batch: int = 16
    epoch: int = 100
    val_pairs: int = 100
    learning_rate: float = 1e-3
    patience: int = 3
    start: str = ""
    with_filter: str = ""
    state_update: bool = True
    prior_loss: bool = False
    lifted: int = 0
    max_matches: int = 0
    filter_features: int = 16
    self_supervised: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in get_args(TaskName):
            raise ValueError(f"task must be one of {', '.join(get_args(TaskName))}, not {self.task!r}")
        for name in ("with_filter", "self_supervised"):
            if self.task not in ("state", "paper") and getattr(self, name):
                raise ValueError(f"{name} is for training the state network, not the {self.task}")
        for name in ("synthetic_share", "fundamental_share"):
            if not is_real(value := getattr(self, name)) or not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {shorten(value)}")
        if not (is_integer(self.width) and 4 <= self.width <= 128 and self.width % 4 == 0):
            raise ValueError(f"width must be a multiple of 4 from 4 to 128, not {shorten(self.width)}")
        for name in ("batch", "epoch", "val_pairs", "patience"):
            if not is_integer(value := getattr(self, name)) or value < 1:
                raise ValueError(f"{name} must be at least 1, not {shorten(value)}")
        if self.task != "paper" and (self.prior_loss or self.lifted or self.max_matches):
            names = "prior_loss, lifted and max_matches"
            raise ValueError(f"{names} are for the training of the paper, not the {self.task}")
        for name in ("lifted", "max_matches"):
            if not is_integer(value := getattr(self, name)) or value < 0:
                raise ValueError(f"{name} must not be negative nor a fraction, got {shorten(value)}")
        if not is_integer(self.filter_features) or not 1 <= self.filter_features <= 128:
            raise ValueError(f"filter_features must be from 1 to 128, not {shorten(self.filter_features)}")
        if not is_integer(self.seed) or self.seed < 0:
            raise ValueError(f"seed must not be negative nor a fraction, got {shorten(self.seed)}")
        if not is_real(self.learning_rate) or not 0 < self.learning_rate < np.inf:
            raise ValueError(f"learning_rate must be positive, not {shorten(self.learning_rate)}")

    @classmethod
    def paper(cls, **given: Any) -> Recipe:
        """Return the recipe of the paper: a state of 128 numbers, real pairs, poses. Keywords override fields."""
        return cls(**{"task": "paper", "width": 128, "synthetic_share": 0.0, "fundamental_share": 0.0, **given})

    def differences(self, other: Recipe) -> list[str]:
        """Return the names of the fields in which two recipes differ."""
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]
