"""Which method runs, and with what prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac.camera import UNKNOWN_FOCAL_DEVIATION, UNKNOWN_ZOOM_DEVIATION, Camera
from caransac.geometry import Array, Floats
from caransac.kernels import Indices, most_likely
from caransac.learned.sample_quality import load_quality
from caransac.learned.side_information import NUM_FEATURES, side_information
from caransac.learned.state_network import StateNetwork, load_network
from caransac.options import MethodName, Options, ScoreKind
from caransac.results import Round
from caransac.robust.ca_ransac import ca_ransac, first_belief
from caransac.robust.confidence import confidence
from caransac.robust.degeneracy import find_degeneracy
from caransac.robust.dense import DENSE, refine_on_all, spread_matches, widen
from caransac.robust.estimate import Estimate
from caransac.robust.lm_lo import lm_lo
from caransac.robust.problems import FocalPose, Problem, SomeProblem
from caransac.robust.refinement import TRUSTED_PRIOR, noise_in
from caransac.robust.sampling import (
    ProsacSampler,
    Sampler,
    SelectiveSampler,
    UniformSampler,
    likely_inliers,
    order_by_score,
)
from caransac.robust.strategies import choose_strategies
from caransac.robust.threshold import SAMPLES, STARTS, scout, suitable_max_error, with_inliers

STATIC_POOL_RATIO = 0.8  # below, where sampling does not adapt
WORKED_ON = 8192  # matches, the likeliest, that the rounds work on; all are judged by what they find
MIN_FILTERED = 20  # matches the ratio filter leaves at least, the best ones
# Two unknown cameras are not one if two focal lengths have so much more consensus and differ by so much.
MORE_CONSENSUS, OTHER_FOCAL = 1.02, 0.1
SAME_FOCAL = 0.01  # relative difference of the focal lengths of cameras that may be one


@dataclass(frozen=True, eq=False)
class MatchInfo:
    """What is known of the matches beside their points.

    Attributes:
        scores: (n,) one number per match, or None.
        score_kind: what the scores are.
        features: (n, d) further numbers about each match, or None.
    """

    scores: Array | None = None
    score_kind: ScoreKind = "ratio"
    features: Array | None = None

    def of(self, problem: Problem) -> MatchInfo:
        """The same of the matches that a problem has."""
        return self if problem.usable is None else self.take(problem.usable)

    def take(self, chosen: Indices | NDArray[np.bool_]) -> MatchInfo:
        """The same of the chosen matches."""
        scores = None if self.scores is None else self.scores[chosen]
        features = None if self.features is None else self.features[chosen]
        return MatchInfo(scores, self.score_kind, features)


def run(problem: SomeProblem, info: MatchInfo, options: Options) -> tuple[SomeProblem, Estimate]:
    """Estimate by the method that the options name.

    Args:
        problem: what to estimate.
        info: of the matches as given.
        options: see `Options`.

    Returns:
        The problem with the threshold that was found, or as it was, and its estimate.
    """
    info, method = info.of(problem), METHODS[options.method]
    if problem.num_points <= DENSE:
        return method(problem, info, options)
    quality = None if info.scores is None else info.scores * (1 if info.score_kind == "confidence" else -1)
    chosen = spread_matches(problem, quality, options.seed)
    part, found = method(problem.subset(chosen), info.take(chosen), options)
    problem = problem.within(part.max_error)
    return problem, widen(problem, chosen, found, options.keep_trace)


def run_focal(
    pixels1: Array,
    pixels2: Array,
    camera1: Camera,
    camera2: Camera,
    same_camera: bool | None,
    info: MatchInfo,
    options: Options,
) -> tuple[FocalPose, Estimate]:
    """Estimate pose and focal lengths of doubtful cameras; decide whether they are one where nobody says so.

    Args:
        pixels1: (N, 2).
        pixels2: (N, 2).
        camera1: camera of image 1, or what to assume of it.
        camera2: camera of image 2.
        same_camera: whether they are one; None to decide.
        info: of the matches.
        options: see `Options`.

    Returns:
        The problem, and its estimate.
    """
    if same_camera is None and not _could_be_one(camera1, camera2):
        same_camera = False
    if same_camera is not None:
        return _run_focal_as(same_camera, pixels1, pixels2, camera1, camera2, info, options)
    problem, found = _run_focal_as(True, pixels1, pixels2, camera1, camera2, info, options)
    if camera1.focal_deviation < UNKNOWN_FOCAL_DEVIATION:  # two cameras that are said to be alike
        return problem, found
    max_error_px = min(max(problem.max_error_px, 1e-6), 1e6)  # consensus compares at one threshold alone
    options = replace(options, max_error_px=max_error_px)
    apart, otherwise = _run_focal_as(False, pixels1, pixels2, camera1, camera2, info, options)
    if _consensus(otherwise) > MORE_CONSENSUS * _consensus(found) and _log_ratio(apart, otherwise) > OTHER_FOCAL:
        return apart, otherwise
    return problem, found


def _run_focal_as(
    shared: bool,
    pixels1: Array,
    pixels2: Array,
    camera1: Camera,
    camera2: Camera,
    info: MatchInfo,
    options: Options,
) -> tuple[FocalPose, Estimate]:
    """Estimate with one camera for both images, or with two, of which one may be zoomed."""
    cameras = [
        replace(camera, focal_deviation=UNKNOWN_ZOOM_DEVIATION)
        if not shared and camera.focal_deviation == UNKNOWN_FOCAL_DEVIATION
        else camera
        for camera in (camera1, camera2)
    ]
    problem = FocalPose.from_pixels(pixels1, pixels2, cameras[0], cameras[1], options.max_error_px, shared)
    return run(problem, info, options)


def _log_ratio(problem: FocalPose, found: Estimate) -> float:
    """How different the focal lengths of an estimate are: the size of the logarithm of their ratio."""
    if found.model is None:
        return 0.0
    given = np.log(problem.cameras[1].mean_focal / problem.cameras[0].mean_focal)
    return abs(float(given + found.model[0, 5] - found.model[0, 4]))


def _could_be_one(camera1: Camera, camera2: Camera) -> bool:
    """Whether two cameras may be one: equally doubtful, of the same model and focal length; an image may be turned."""
    sizes = [sorted((camera.width, camera.height)) for camera in (camera1, camera2)]
    alike = abs(camera1.mean_focal / camera2.mean_focal - 1) < SAME_FOCAL and camera1.model == camera2.model
    return alike and sizes[0] == sizes[1] and camera1.focal_deviation == camera2.focal_deviation


def _consensus(found: Estimate) -> float:
    return 0.0 if found.msac_scores is None else float(found.msac_scores.sum())


def run_ca_ransac(problem: SomeProblem, info: MatchInfo, options: Options) -> tuple[SomeProblem, Estimate]:
    """CA-RANSAC with its trained weights, and the confidence of its answer."""
    network = load_network(options.weights)
    wanted = network.num_features - NUM_FEATURES
    if wanted != (0 if info.features is None else info.features.shape[1]):
        given = "none" if info.features is None else f"shape {info.features.shape}"
        raise ValueError(f"features must have shape (N, {wanted}) for weights {str(options.weights)!r}, got {given}")
    if problem.num_points < problem.sample_size:
        nothing = first_belief(problem, network, np.zeros((problem.num_points, network.num_features), np.float32))
        nothing = replace(nothing, probabilities=np.zeros_like(nothing.probabilities))
        failed = Estimate(model=None, stop_reason="too_few_points", num_hypotheses=0, rounds=(nothing,), confidence=0.0)
        return problem, failed
    side = side_information(problem.correspondences, problem.spreads, info.scores, info.score_kind, info.features)
    belief = first_belief(problem, network, side)
    chosen = most_likely(belief.probabilities, WORKED_ON)
    part, found = work_on(*part_of(problem, belief, info, chosen), network, options)
    degeneracy = find_degeneracy(part, found, options.seed)
    found = replace(found, degeneracy=degeneracy, confidence=confidence(network, part, found, degeneracy))
    if options.max_error_px == "auto":
        part, found = with_inliers(part, found)
    problem = problem.within(part.max_error)
    return problem, judge_all(problem, network, belief, chosen, found, options)


def part_of(
    problem: SomeProblem, belief: Round, info: MatchInfo, chosen: Indices
) -> tuple[SomeProblem, Round, MatchInfo]:
    """The problem of the chosen points only, the belief before any model about them, and what is known of them."""
    if len(chosen) == problem.num_points:
        return problem, belief, info
    part = replace(
        belief,
        msac_scores=belief.msac_scores[:, chosen],
        state=belief.state[chosen],
        probabilities=belief.probabilities[chosen],
    )
    return problem.subset(chosen), part, info.take(chosen)


def work_on(
    problem: SomeProblem, belief: Round, info: MatchInfo, network: StateNetwork, options: Options
) -> tuple[SomeProblem, Estimate]:
    """Look for the noise, and for a threshold where nobody gave one; then adapt."""
    problem, start = look_ahead(problem, belief, options)
    static_pool = None if options.adaptive_sampling else _static_pool(info)
    best_first = _best_first(info) if problem.by_score > 0 else None
    return problem, adapt(problem, network, start, options, static_pool, best_first)


def look_ahead(problem: SomeProblem, belief: Round, options: Options) -> tuple[SomeProblem, Round]:
    """A first model and the noise to start from, and the threshold that suits it where nobody gave one."""
    automatic = options.max_error_px == "auto"
    pool = likely_inliers(belief.probabilities, problem.sample_size, SAMPLES)
    samples = UniformSampler(pool, problem.sample_size, options.seed).draw(0, SAMPLES)
    model, noise = scout(problem, samples, belief.probabilities, STARTS if automatic else STARTS[:1])
    if automatic:
        problem = problem.within(suitable_max_error(problem, noise))
    return problem, replace(belief, best=model, noise=0.0 if model is None else noise_in(noise, problem.max_error))


def judge_all(
    problem: Problem, network: StateNetwork, belief: Round, chosen: Indices, found: Estimate, options: Options
) -> Estimate:
    """The estimate of the chosen points as one of all, at the problem's threshold.

    What the rounds believed was by the tighter threshold that tells models apart. Each is judged anew, from what was
    believed before any model; the last one alone if nobody wants the others.
    """
    judged = []
    for each in found.rounds[1:] if options.keep_trace else found.rounds[1:][-1:]:
        msac_scores = problem.msac_scores(each.models, problem.max_error)
        state, probabilities = belief.state, belief.probabilities
        if options.state_update:
            state, probabilities = network.update(state, msac_scores)
        samples = chosen[each.samples]
        judged.append(replace(each, samples=samples, msac_scores=msac_scores, state=state, probabilities=probabilities))
    found = replace(found, rounds=(belief, *judged))
    if found.model is None:
        return found
    left_out = len(chosen) < problem.num_points
    if left_out and belief.probabilities[chosen].min() > TRUSTED_PRIOR:  # others look right, too
        found = refine_on_all(problem, found)
    assert found.model is not None
    msac_scores = problem.msac_scores(found.model[None], problem.max_error)[0]
    return replace(found, msac_scores=msac_scores)


def adapt(
    problem: Problem,
    network: StateNetwork,
    belief: Round,
    options: Options,
    static_pool: Floats | None = None,
    best_first: Indices | None = None,
) -> Estimate:
    """CA-RANSAC with the given network, from what is believed before any model."""
    quality = load_quality(options.sample_quality)
    strategies = choose_strategies(problem, network, belief.probabilities, options, static_pool, quality, best_first)
    return ca_ransac(problem, belief, strategies, options)


def _best_first(info: MatchInfo) -> Indices | None:
    """The matches by their scores, if they have any."""
    if info.scores is None:
        return None
    return order_by_score(info.scores, higher_is_better=info.score_kind == "confidence")


def _static_pool(info: MatchInfo) -> Floats | None:
    """What to sample by where sampling does not adapt: matches of low ratio, if there are ratios."""
    if info.scores is None or info.score_kind != "ratio":
        return None
    return (info.scores < STATIC_POOL_RATIO).astype(np.float32)


def run_lm_lo(problem: SomeProblem, info: MatchInfo, options: Options) -> tuple[SomeProblem, Estimate]:
    """LM-LO on the matches that pass the ratio filter, the best ones first if they have scores."""
    if problem.num_points < problem.sample_size:
        return problem, Estimate(model=None, stop_reason="too_few_points", num_hypotheses=0)
    order = np.arange(problem.num_points, dtype=np.int32)
    if info.scores is not None:
        order = order_by_score(info.scores, higher_is_better=info.score_kind == "confidence")
        if info.score_kind == "ratio":
            order = order[: max(int((info.scores < options.max_ratio).sum()), MIN_FILTERED)]
    passed = problem.subset(order)  # what is filtered out costs nothing
    progressive = info.scores is not None and options.method == "lm-lo"
    make_sampler = ProsacSampler if progressive else UniformSampler
    sampler: Sampler = make_sampler(np.arange(len(order), dtype=np.int32), problem.sample_size, options.seed)
    if options.max_error_px == "auto":
        max_error = suitable_max_error(
            passed, scout(passed, sampler.draw(0, SAMPLES), np.ones(len(order), np.float32))[1]
        )
        problem, passed = problem.within(max_error), passed.within(max_error)
    quality = load_quality(options.sample_quality)
    found = lm_lo(passed, SelectiveSampler(sampler, passed, quality, options.oversampling), options)
    if found.model is None:
        return problem, found
    # Matches that were filtered out may be inliers all the same.
    found = replace(found, msac_scores=problem.msac_scores(found.model[None], problem.max_error)[0])
    found = replace(found, degeneracy=find_degeneracy(problem, found, options.seed))
    return with_inliers(problem, found) if options.max_error_px == "auto" else (problem, found)


METHODS: dict[MethodName, Callable[[Any, MatchInfo, Options], tuple[Any, Estimate]]] = {
    "ca-ransac": run_ca_ransac,
    "lm-lo": run_lm_lo,
    "lm-lo-u": run_lm_lo,
}
