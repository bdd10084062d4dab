"""The confidence of an estimate: the probability that it is right, from the run's own evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from caransac.camera_priors import UNKNOWN_DISTORTION_DEVIATION
from caransac.geometry import Array, Floats
from caransac.kernels import RELATIVE, RefineOptions, inner_products, where, widths
from caransac.learned.state_network import StateNetwork
from caransac.learned.weights_file import KEPT
from caransac.options import Options
from caransac.robust.assess.camera_evidence import check_cameras
from caransac.robust.assess.evidence import EVIDENCE, RunEvidence
from caransac.robust.loop.refinement import match_weights
from caransac.robust.problems import Problem
from caransac.robust.problems.base import USUAL_DISTORTION
from caransac.robust.records import Estimate

SAME_CONSENSUS = 0.8  # cosine of the scores of two models that are one answer
FEW = 8  # matches: fewer of them that were likely say little
STEP = 1e-6  # of finite differences
# Real errors of the baseline's direction in units of the deviation that independent noise predicts. Of 3, 4 and 5, the
# best calibrated on training pairs; lenses, poses taken for truth and outliers among the inliers make up the rest.
ERRORS_IN_DEVIATION = 4.0
# Wrong matches agree with a model by chance, and most of all with one that was free to choose them: where a scene
# leaves two degrees of freedom (lines, planes without cameras, rotations), it goes through two of them exactly. An
# answer must not rest on so few: those of the largest influence are taken away before its deviation is taken.
FREE_MATCHES, CHANCE_DEVIATIONS = 3, 3.0
BACKGROUND = 2.0, 6.0  # in thresholds: as many matches are this far from the model by chance as are near it
WIDE, WIDTH_POINTS = 0.2, 256  # more of it says no more
STRONGEST = 1.0  # rival, in the answer: a stronger one says no more
# As likely as not, a camera that is said to be exact has a lens that nobody told of, with a k1 as unknown ones have it.
# No answer is surer than that such a lens leaves it right, which it does not where a camera hardly moved.
UNTOLD_SHARE = 0.5
# Where a lens moves the answer by less to first order, in what is right, it is not looked at closer.
LITTLE_SHIFT = 0.05
REFINED_POINTS, REFINED_STEPS, REFINED_DECREASE = 256, 8, 1e-3  # of this closer look

EXTREME = 2.5  # deviations
CONFIDENCE_PARTS = ("mean", "scale", "weight", "bias")


def evidence(network: StateNetwork, problem: Problem, found: Estimate, options: Options) -> RunEvidence:
    """What a run says about its own answer, which must exist, and its degeneracy."""
    assert found.model is not None and found.msac_scores is not None and found.degeneracy is not None
    degeneracy = found.degeneracy
    prior, last, answer = found.rounds[0].probabilities, found.rounds[-1], found.msac_scores
    support = float(inner_products(answer[None], last.probabilities)[0])
    others = inner_products(last.msac_scores[1:], last.probabilities)
    inliers, likely = answer > 0, prior > options.tuning.likely_prior
    index = where(inliers)
    fitted = problem.subset(index)
    weights = match_weights(network, last.probabilities[index], options.tuning.min_weight)
    weights = fitted.share(weights)
    # As if the noise were larger by as much as real errors are: next to a prior, the information must not be too large.
    noise = ERRORS_IN_DEVIATION * last.noise
    rates, by_chance = outcome_rates(problem, found.model), chance_matches(problem, found)
    dropped = math.ceil(by_chance + CHANCE_DEVIATIONS * by_chance**0.5) + FREE_MATCHES
    deviations = fitted.outcome_deviations(found.model, weights, noise, rates, dropped)
    deviation, safe_deviation = (each / ERRORS_IN_DEVIATION for each in deviations)
    shift = lens_shift(fitted, found.model, weights, last.noise, rates)
    rotation = (
        0.0 if found.covariance is None else float(np.trace(found.covariance[RELATIVE.rotation, RELATIVE.rotation]))
    )
    rival = 0.0 if found.rivalry is None else found.rivalry.share
    agreeing = cosines(np.stack([r.msac_scores[0] for r in found.rounds[1:]]), answer) > SAME_CONSENSUS
    cameras = check_cameras(problem, found, options.tuning)
    return RunEvidence(
        support=math.log1p(support),
        num_matches=math.log(problem.num_points),
        expected_right=math.log1p(float(last.probabilities.sum())),
        likely_explained=np.count_nonzero(inliers & likely) / (np.count_nonzero(likely) + FEW),
        next_support=float(others.max(initial=0.0)) / max(support, 1e-6),
        noise=math.log(last.noise / problem.extent),
        deviation=math.log(deviation + 1e-5),
        agreeing_rounds=np.count_nonzero(agreeing) / len(agreeing),
        safe_deviation=math.log(safe_deviation + 1e-5),
        plane_margin=degeneracy.margin,
        plane_share=degeneracy.share,
        camera_gain=cameras.gain,
        focal_shift=cameras.shift,
        focal_deviation=cameras.deviation,
        unusual_extent=cameras.unusual,
        width=math.log(min(inlier_width(fitted), WIDE)),
        rotation_deviation=math.log(rotation**0.5 + 1e-5),
        lens_shift=math.log(shift + 1e-5),
        rival=min(rival, STRONGEST) ** 0.5,
    )


def outcome_rates(problem: Problem, model: Array) -> Array:
    """How a model's outcome moves with each of its degrees of freedom: (f, k)."""
    steps = STEP * np.eye(problem.model_kernels.degrees_of_freedom)
    moved = problem.outcomes(np.concatenate([model[None], problem.retract(model, steps)]))
    same_sign = moved[1:] * np.sign(moved[1:] @ moved[0])[:, None]
    return np.asarray((same_sign - moved[0]) / STEP)


def lens_shift(inliers: Problem, model: Array, weights: Array, noise: float, rates: Array) -> float:
    """How far an ordinary lens, which bends the points, moves the outcome; 0 where lenses are not considered."""
    response = inliers.lens_response(model, weights, noise)
    return 0.0 if response is None else USUAL_DISTORTION * float(np.linalg.norm(rates.T @ response))


def chance_matches(problem: Problem, found: Estimate) -> float:
    """How many matches agree with the answer by chance: as many as lie within a threshold somewhat farther away."""
    assert found.model is not None
    near, far = (factor * found.max_error for factor in BACKGROUND)
    distances = problem.distances(found.model)
    return np.count_nonzero((distances > near) & (distances < far)) * found.max_error / (far - near)


def inlier_width(inliers: Problem) -> float:
    """Width of the region of the inliers, in its lengths, in the image where that is less: little for a line."""
    return max(min(widths(inliers.correspondences, WIDTH_POINTS)), 1e-4)


def cosines(rows: Floats, row: Floats) -> Array:
    """Cosines (m,) of the angles of vectors (m, n) to another (n,), 0 where one vanishes."""
    squares = np.einsum("mn,mn->m", rows, rows, dtype=float) * np.einsum("n,n->", row, row, dtype=float)
    return np.asarray(inner_products(rows, row) / np.maximum(np.sqrt(squares), 1e-12))


def assess_confidence(network: StateNetwork, problem: Problem, found: Estimate, options: Options) -> Estimate:
    """The estimate with the probabilities that the answer and, of a pose, its rotation are right.

    They are 0 without an answer, None if the weights cannot tell.
    """
    if found.model is None:
        return replace(found, confidence=0.0, rotation_confidence=0.0 if problem.has_rotation else None)
    names = problem.confidence_name, problem.name
    fits = [_fit_of(network, "confidence", names)]
    fits += [_fit_of(network, "rotation_confidence", names)] if problem.has_rotation else []
    if all(fit is None for fit in fits):
        return found
    said = evidence(network, problem, found, options)
    numbers = said.numbers
    sure, *rotation = (None if fit is None else fit.probability(numbers) for fit in fits)
    if sure is not None and sure > 1 - UNTOLD_SHARE and found.k1 is None:
        sure = min(sure, withstands_lenses(untold_shift(problem, found, said), problem.outcome_limit))
    return replace(found, confidence=sure, rotation_confidence=rotation[0] if rotation else None)


def untold_shift(problem: Problem, found: Estimate, said: RunEvidence) -> float:
    """How far a lens which nobody told of moves the outcome: refined where that is more than a little.

    Args:
        problem: the matches.
        found: their estimate.
        said: its evidence.
    """
    assert found.model is not None and found.msac_scores is not None
    shift = math.exp(said.lens_shift) * UNKNOWN_DISTORTION_DEVIATION / USUAL_DISTORTION
    inliers = where(found.msac_scores > 0)
    if shift < LITTLE_SHIFT * problem.outcome_limit or not problem.usual_focal or len(inliers) == 0:
        return shift
    likely = problem.subset(inliers[:: -(-len(inliers) // REFINED_POINTS)])
    options = RefineOptions(
        loss_scale=found.noise,
        max_steps=REFINED_STEPS,
        min_decrease=REFINED_DECREASE,
        intrinsics=problem.intrinsics_prior(found.noise),
    )
    bent = [likely.bent_by(sign * UNKNOWN_DISTORTION_DEVIATION) for sign in (-1, 1)]
    models = [found.model, *(each.refine(found.model[None], options)[0] for each in bent)]
    direction, *others = problem.outcomes(np.stack(models))
    return max(shift, *(2 * math.asin(min(float(np.linalg.norm(each - direction)) / 2, 1.0)) for each in others))


def withstands_lenses(shift: float, limit: float) -> float:
    """Probability that the outcome moves by no more than a limit, where a lens nobody told of moves it by a shift."""
    return 1 - UNTOLD_SHARE * math.erfc(limit / (2**0.5 * shift))


@dataclass(frozen=True, eq=False)
class ConfidenceFit:
    """Log-odds of being right, quadratic in standardised evidence.

    Attributes:
        mean: (d,) of the evidence.
        scale: (d,) its deviations.
        linear: (d,) weights of its numbers.
        quadratic: (d, d) weights of the products of any two of them, above the diagonal.
        bias: log-odds of the mean.
    """

    mean: Array
    scale: Array
    linear: Array
    quadratic: Array
    bias: float

    @classmethod
    def of(cls, mean: Floats, scale: Floats, weight: Floats, bias: Floats) -> ConfidenceFit:
        """The fit as a weights file has it: one weight for each of the `products`."""
        count = len(mean)
        quadratic = np.zeros((count, count))
        quadratic[np.triu_indices(count)] = weight[count:]
        return cls(mean.astype(float), scale.astype(float), weight[:count].astype(float), quadratic, float(bias))

    def probability(self, evidence: Array) -> float:
        """Probability of being right by evidence (d,)."""
        standard = _standardised(evidence, self.mean, self.scale)
        log_odds = float((self.linear + self.quadratic @ standard) @ standard) + self.bias
        return 1 / (1 + math.exp(-min(max(log_odds, -30.0), 30.0)))


@lru_cache(maxsize=KEPT)
def _fit_of(network: StateNetwork, what: str, names: tuple[str, str]) -> ConfidenceFit | None:
    """The fit of a problem's own name or of its kind's; None where there is none, or of other evidence than this."""
    for name in names:
        mean, scale, weight, bias = (network.weights.get(f"{what}.{name}.{part}") for part in CONFIDENCE_PARTS)
        if mean is not None and scale is not None and weight is not None and bias is not None:
            return ConfidenceFit.of(mean, scale, weight, bias) if len(mean) == len(EVIDENCE) else None
    return None


def products(evidence: Array, mean: Array, scale: Array) -> Array:
    """What the log-odds are linear in: standardised evidence (..., d), and the products of any two of its numbers."""
    standard = _standardised(evidence, mean, scale)
    first, second = np.triu_indices(standard.shape[-1])
    return np.concatenate([standard, standard[..., first] * standard[..., second]], axis=-1)


def _standardised(evidence: Array, mean: Array, scale: Array) -> Array:
    """Evidence (..., d) in deviations; what is beyond all experience counts as what is known to be extreme."""
    return np.minimum(np.maximum((evidence - mean) / scale, -EXTREME), EXTREME)
