"""What a method hands back."""

from __future__ import annotations

from dataclasses import dataclass

from caransac.geometry import Array, Floats
from caransac.results import Round, StopReason


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """The answer of a method.

    Attributes:
        model: the best model of the problem, or None with the reason.
        stop_reason: why it stopped, or failed.
        num_hypotheses: minimal samples drawn.
        msac_scores: (n,) of the model at the problem's threshold; None without a model.
        rounds: what every round believed; empty from a method that has no beliefs.
        confidence: probability that the pose is right; None from a method that cannot tell.
    """

    model: Array | None
    stop_reason: StopReason
    num_hypotheses: int
    msac_scores: Floats | None = None
    rounds: tuple[Round, ...] = ()
    confidence: float | None = None

    @property
    def noise(self) -> float | None:
        """Noise in thresholds; None without a model, and from a method that does not look for it."""
        return self.rounds[-1].noise if self.rounds and self.model is not None else None

    @property
    def probabilities(self) -> Floats | None:
        """(n,) inlier probabilities after the last round; None from a method that has none."""
        return self.rounds[-1].probabilities if self.rounds else None
