"""What decides the outcome of a training run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from caransac._support.arrays import is_integer, is_real, shorten

TaskName = Literal["state", "absolute", "paper", "filter", "sample-quality"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything a training run depends on, but for its length and the number of workers.

    Attributes:
        task: which network is trained: the state network of CA-RANSAC, that of absolute poses, that of the paper by
            the paper's training, the match filter, or the quality of samples.
        data: folders of scenes in the layout of the RANSAC Tutorial 2020; none trains only on synthetic pairs.
        val: folders of scenes to validate on; none holds out every twentieth training pair.
        unrelated: folders of pairs of unrelated images, for the confidence; synthetic ones are always added.
        synthetic_share: share of synthetic pairs among the training pairs.
        fundamental_share: share of pairs solved for a fundamental matrix instead of a pose.
        width: width of the state.
        batch: pairs per optimiser step.
        epoch: steps between two validations.
        val_pairs: pairs to validate on, at most.
        learning_rate: of Adam at the start; halved when the validation entropy stops falling.
        patience: epochs without a lower validation entropy before that.
        start: weights to start from, a name or a path; empty starts at random.
        with_filter: weights of a match filter, a name or a path, whose output the state network is to read; empty
            for none.
        state_update: an ablation: False trains without updates of the state.
        prior_loss: task "paper" only. Count the probabilities before any model in the loss, as those of one more round.
            The paper's formula starts at the first round; then nothing teaches which matches to sample first.
        lifted: task "paper" only. How many of the features of the data, the last ones, are lifted as the scores are.
        max_matches: task "paper" only. Matches of a training pair at most, chosen at random; 0 for all.
        filter_features: task "filter" only. Numbers that it tells of each match; in the paper's experiment, 128.
        self_supervised: label matches by the run's own final model instead of the truth.
        seed: seed of everything.
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
        """The recipe of the paper: a state of 128 numbers, only real pairs and poses. Keywords replace parts of it."""
        return cls(**{"task": "paper", "width": 128, "synthetic_share": 0.0, "fundamental_share": 0.0, **given})

    def differences(self, other: Recipe) -> list[str]:
        """Names of the fields in which two recipes differ."""
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]
