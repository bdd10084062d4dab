"""What decides the outcome of a training run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

TaskName = Literal["state", "filter", "sample-quality"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything a training run depends on, but for its length and the number of workers.

    Attributes:
        task: which network is trained: the state network of CA-RANSAC, the match filter, or the quality of samples.
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
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)!r}")
        if not (4 <= self.width <= 128 and self.width % 4 == 0):
            raise ValueError(f"width must be a multiple of 4 from 4 to 128, not {self.width!r}")
        for name in ("batch", "epoch", "val_pairs", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, not {self.learning_rate!r}")

    def differences(self, other: Recipe) -> list[str]:
        """Names of the fields in which two recipes differ."""
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name)]
