"""The noise of right matches, and the thresholds that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from caransac.geometry import Array, Floats
from caransac.kernels import most_likely, where
from caransac.options import MaxError
from caransac.robust.problems import Problem
from caransac.tuning import Tuning


@dataclass(frozen=True)
class Scale:
    """Noise and thresholds of a problem. All lengths are in the unit of its points.

    Attributes:
        usual: noise of ordinary keypoints; if the caller gave a threshold, the noise that corresponds to it.
        first: noise of the first round.
        attention_error: threshold of the scores that the network reads. It is the same in all rounds, as in training.
        fixed: threshold given by the caller; None if thresholds follow the noise.
        usual_reach: minimum threshold of the returned inliers if thresholds follow the noise.
        tuning: see `Tuning`.
    """

    usual: float
    first: float
    attention_error: float
    fixed: float | None
    usual_reach: float
    tuning: Tuning

    @classmethod
    def of(cls, problem: Problem, max_error_px: MaxError, tuning: Tuning) -> Scale:
        """Return the scale of a problem, given its threshold in pixels or "auto"."""
        deviation = tuning.usual_deviation * problem.extent
        fixed = None if max_error_px == "auto" else max_error_px * problem.pixel
        usual = deviation * problem.median_error if fixed is None else fixed / tuning.max_error
        first = tuning.first_noise * usual
        return cls(
            usual=usual,
            first=first,
            attention_error=tuning.max_error * first if fixed is None else fixed,
            fixed=fixed,
            usual_reach=problem.error_dimensions**0.5 * tuning.usual_reach * deviation,
            tuning=tuning,
        )

    def search_error(self, noise: float) -> float:
        """Return the threshold at which models are compared and locally refined.

        It is proportional to the noise up to `first`, and to its square root above. A proportional threshold would feed
        back: a loose model explains more matches, which raise the noise and the threshold, which favours loose models.
        """
        return self.tuning.max_error * min(noise, math.sqrt(self.first * noise))

    def max_error(self, noise: float) -> float:
        """Return the threshold of a model's support."""
        return self.search_error(noise) if self.fixed is None else self.fixed

    def inlier_error(self, noise: float) -> float:
        """Return the threshold of the returned inliers, which right matches rarely exceed."""
        return max(self.tuning.max_error * noise, self.usual_reach) if self.fixed is None else self.fixed

    def measure(self, likely: Problem, model: Array, noise: float) -> float:
        """Return the noise of a model: the median distance of right matches among the likely matches.

        The number of wrong matches near the model is estimated from matches farther away and subtracted. If there are
        few right matches, the result is close to `usual`.

        Args:
            likely: the matches to measure it on.
            model: the model.
            noise: the noise so far.
        """
        tuning = self.tuning
        matches, median = likely.model_kernels.right_matches(
            model, likely.correspondences, tuning.noise_reach * noise, likely.error_dimensions
        )
        matches = max(matches - likely.sample_size, 0.0)  # any model fits its own sample
        share = matches / (matches + tuning.usual_matches)
        measured: float = self.usual ** (1 - share) * max(median, self.least) ** share
        return min(measured, self.most)

    def measure_answer(self, problem: Problem, model: Array, noise: float) -> float:
        """Return the noise of the answer from all matches. Few matches cannot show that it is less than usual.

        Args:
            problem: the matches.
            model: the answer.
            noise: the noise of the last round.
        """
        matches, median = corrected_noise(problem, model, noise, self.tuning)
        share = matches / (matches + self.tuning.usual_matches)
        median = max(median, self.least)
        with_prior: float = self.usual ** (1 - share) * median**share
        return min(max(median, with_prior), self.most)

    @property
    def least(self) -> float:
        """Minimum noise. Thresholds follow the noise, and exact points have nearly none."""
        return 0.2 * self.usual

    @property
    def most(self) -> float:
        """Maximum noise. Random points have a huge noise."""
        return 20.0 * self.usual if self.fixed is None else self.fixed


def corrected_noise(problem: Problem, model: Array, noise: float, tuning: Tuning) -> tuple[float, float]:
    """Return the number of right matches, and their median distance. A fit to n matches reduces it: this is corrected.

    Args:
        problem: the matches, which the model was fitted to.
        model: the model.
        noise: approximate noise.
        tuning: see `Tuning`.
    """
    matches, median = problem.model_kernels.right_matches(
        model, problem.correspondences, tuning.noise_reach * noise, problem.error_dimensions
    )
    if matches == 0:
        return 0.0, noise
    # A sample has as many coordinates as a model has degrees of freedom.
    return matches, median * math.sqrt(matches / max(matches - problem.sample_size, 0.5 * matches))


def likely_matches(problem: Problem, prior: Floats, tuning: Tuning) -> Problem:
    """Return the subproblem of matches with a high prior, on which the noise is measured."""
    least = float(prior[most_likely(prior, tuning.min_pool)].min())
    return problem.subset(where(prior >= min(tuning.likely_prior, least)))
