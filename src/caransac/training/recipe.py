"""What decides the outcome of a training run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from caransac._support.arrays import is_integer, is_real, shorten

TaskName = Literal["state", "absolute", "filter", "sample-quality"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything a training run depends on, but for its length and the number of workers.

    Attributes:
        task: which network is trained: the state network of CA-RANSAC, that of absolute poses, the match filter, or
            the quality of samples.
        data: folders of scenes in the layout of the RANSAC Tutorial 2020; none trains on synthetic pairs alone.
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
        with_filter: weights of a match filter, a name or a path, whose judgement the state network is to read; empty
            for none.
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
    self_supervised: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in get_args(TaskName):
            raise ValueError(f"task must be one of {', '.join(get_args(TaskName))}, not {self.task!r}")
        for name in ("with_filter", "self_supervised"):
            if self.task != "state" and getattr(self, name):
                raise ValueError(f"{name} is for training the state network, not the {self.task}")
        for name in ("synthetic_share", "fundamental_share"):
            if not is_real(value := getattr(self, name)) or not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {shorten(value)}")
        if not (is_integer(self.width) and 4 <= self.width <= 128 and self.width % 4 == 0):
            raise ValueError(f"width must be a multiple of 4 from 4 to 128, not {shorten(self.width)}")
        for name in ("batch", "epoch", "val_pairs", "patience"):
            if not is_integer(value := getattr(self, name)) or value < 1:
                raise ValueError(f"{name} must be at least 1, not {shorten(value)}")
        if not is_integer(self.seed) or self.seed < 0:
            raise ValueError(f"seed must not be negative nor a fraction, got {shorten(self.seed)}")
        if not is_real(self.learning_rate) or not 0 < self.learning_rate < np.inf:
            raise ValueError(f"learning_rate must be positive, not {shorten(self.learning_rate)}")

    def differences(self, other: Recipe) -> list[str]:
        """Names of the fields in which two recipes differ."""
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]
