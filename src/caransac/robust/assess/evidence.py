"""The evidence of a run about its own answer: the input of the confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from caransac.camera_priors import IGNORED_DISTORTION_DEVIATION
from caransac.geometry import Array
from caransac.kernels import inner_products, widths
from caransac.learned.state_network import StateNetwork
from caransac.options import Options
from caransac.robust.assess.rivals import unmoved
from caransac.robust.assess.uncertainty import lens_response
from caransac.robust.loop.refinement import match_weights
from caransac.robust.problems import Problem
from caransac.robust.records import Assessment, Estimate
from caransac.tuning import CAMERAS, ERRORS


def _number(label: str) -> Any:
    """Return the field of one number of evidence. Weights files contain its label."""
    return field(default=math.nan, metadata={"label": label})


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvidence:
    """Numbers of evidence with their labels, in the order of the fitted weights. NaN means not measured.

    docs/reliability.md has a table with the benefit of each number.
    """

    support: float = _number("log support: probability-weighted consensus of the answer")
    num_matches: float = _number("log number of matches")
    noise: float = _number("log(noise / extent of the points)")
    deviation: float = _number("log standard deviation of the baseline's direction at the estimated noise")
    safe_deviation: float = _number(
        "log standard deviation of that direction without the most influential matches, which may agree by chance"
    )
    width: float = _number("log(width / length) of the region of the inliers, clipped for wide regions")
    rival: float = _number("square root of the support of the strongest rival divided by the support of the answer")
    plane_margin: float = _number(
        "margin of the answer over the second pose of a plane, divided by its deviation by chance"
    )
    plane_share: float = _number("share of the inliers that a homography explains")
    rotation_deviation: float = _number("log standard deviation of the rotation at the estimated noise")
    lens_shift: float = _number(
        "log shift of the baseline's direction by the distortion of an ordinary lens, which is not modelled"
    )
    mirrored: float = _number("share of the inliers whose neighbourhood is mirrored; one half if there are too few")
    still: float = _number("share of the inliers that are in the same place in both images")
    camera_gain: float = _number(
        "log(consensus of the nearest fundamental matrix / consensus of the answer), large for wrong cameras"
    )
    focal_shift: float = _number("shift of the logarithm of the focal lengths if they are free")
    focal_deviation: float = _number("standard deviation of the logarithm of the focal lengths, given the matches")
    unusual_extent: float = _number(
        "excess of abs(log(extent of the points / extent in ordinary images)) over the usual range"
    )

    @property
    def numbers(self) -> Array:
        """The numbers (17,) in the order of the fields."""
        return np.array([getattr(self, name) for name in self.__slots__])  # astuple would deep-copy each number


EVIDENCE: tuple[str, ...] = tuple(each.metadata["label"] for each in fields(RunEvidence))


def run_evidence(
    network: StateNetwork, problem: Problem, found: Estimate, seen: Assessment, options: Options
) -> RunEvidence:
    """Return the evidence of a run about its answer, given the assessment so far. The answer must have a model."""
    assert found.model is not None and found.msac_scores is not None
    assert seen.rivalry is not None and seen.degeneracy is not None
    last, inliers = found.rounds[-1], found.inliers
    fitted = problem.subset(inliers)
    weights = fitted.share(match_weights(network, last.probabilities[inliers], options.tuning.min_weight))
    # Real errors exceed the noise by this factor. It balances the information with the prior, and is then removed.
    error_in_deviation = ERRORS.outcome**0.5
    rates, by_chance = outcome_rates(problem, found.model), chance_matches(problem, found)
    # Wrong matches agree with a model by chance. If the scene leaves two degrees of freedom open (lines, planes without
    # cameras, rotations), the model can even fit two of these matches exactly. An answer must not depend on so
    # few matches: `safe_deviation` drops the most influential ones, as many as chance explains (three deviations) and
    # three more.
    dropped = math.ceil(by_chance + 3.0 * by_chance**0.5) + 3
    little = 1e-5  # keeps logarithms finite
    variance = (error_in_deviation * last.noise) ** 2
    deviations = fitted.model_kernels.outcome_deviations(
        found.model, fitted.correspondences, weights, rates, variance, fitted.prior_information, dropped
    )
    numbers = {
        "support": math.log1p(float(inner_products(found.msac_scores[None], last.probabilities)[0])),
        "num_matches": math.log(problem.num_points),
        "noise": math.log(last.noise / problem.extent),
        "deviation": math.log(deviations[0] / error_in_deviation + little),
        "safe_deviation": math.log(deviations[1] / error_in_deviation + little),
        "width": math.log(min(inlier_width(fitted), 0.2)),  # wider regions are all equally good
        "rival": min(seen.rivalry.share, 1.0) ** 0.5,
    }
    if problem.traits.degeneracy is not None:
        numbers |= {"plane_margin": seen.degeneracy.margin, "plane_share": seen.degeneracy.share}
    if seen.rotation_variance is not None:
        numbers["rotation_deviation"] = math.log(seen.rotation_variance**0.5 + little)
    if (response := lens_response(fitted, found.model, weights, last.noise)) is not None:
        shift = IGNORED_DISTORTION_DEVIATION * float(np.linalg.norm(rates.T @ response))
        numbers["lens_shift"] = math.log(shift + little)
    if problem.traits.degeneracy != "one view":
        still = np.count_nonzero(unmoved(fitted, found.max_error)) / max(len(inliers), 1)
        numbers |= {"mirrored": 0.5 if seen.mirrored is None else seen.mirrored, "still": still}
    if (cameras := seen.cameras) is not None:
        numbers |= {"camera_gain": cameras.gain, "focal_shift": min(abs(cameras.shift), CAMERAS.largest_shift)}
        numbers |= {"focal_deviation": cameras.deviation, "unusual_extent": cameras.unusual}
    return RunEvidence(**numbers)


def outcome_rates(problem: Problem, model: Array) -> Array:
    """Return the derivatives (f, k) of a model's outcome with respect to its degrees of freedom."""
    step = 1e-6  # of finite differences
    steps = step * np.eye(problem.model_kernels.degrees_of_freedom)
    moved = problem.outcomes(np.concatenate([model[None], problem.model_kernels.retract(model, steps)]))
    same_sign = moved[1:] * np.sign(moved[1:] @ moved[0])[:, None]
    return np.asarray((same_sign - moved[0]) / step)


def chance_matches(problem: Problem, found: Estimate) -> float:
    """Return the number of inliers expected by chance, estimated from a band farther from the model."""
    assert found.model is not None
    background = 2.0, 6.0  # in thresholds: matches in this band agree with the model by chance
    near, far = (factor * found.max_error for factor in background)
    distances = problem.distances(found.model)
    return np.count_nonzero((distances > near) & (distances < far)) * found.max_error / (far - near)


def inlier_width(inliers: Problem) -> float:
    """Return width divided by length of the region of the inliers, the smaller of both images; near 0 for a line."""
    return max(min(widths(inliers.correspondences, 256)), 1e-4)  # 256 points are enough
