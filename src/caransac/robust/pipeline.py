"""The estimator on one page: prepare, prior, rounds, report, assess."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import where
from caransac.learned.network_layout import NetworkLayout
from caransac.learned.side_information import side_information
from caransac.learned.state_network import MatchStates, StateNetwork, load_network
from caransac.options import DEFAULT_WEIGHTS, MethodName, Options
from caransac.results import Round, StopReason
from caransac.robust.assess.camera_evidence import check_cameras, with_unknown_cameras
from caransac.robust.assess.confidence import assess_confidence
from caransac.robust.assess.degeneracy import find_degeneracy
from caransac.robust.assess.rivals import find_mirroring, find_rivals
from caransac.robust.assess.uncertainty import expected_rotation_variance, pose_covariance
from caransac.robust.cameras.lens_evidence import fit_lenses
from caransac.robust.copies import find_distinct, with_copies
from caransac.robust.loop.ca_ransac import ca_ransac, prior_round
from caransac.robust.loop.lm_lo import lm_lo
from caransac.robust.loop.refinement import loss_scale, match_weights
from caransac.robust.loop.sampling import DrawStep, PoolSampler, Sampler
from caransac.robust.loop.scale import Scale
from caransac.robust.loop.steps import Steps
from caransac.robust.problems import Problem
from caransac.robust.records import Assessment, Estimate, MatchInfo
from caransac.robust.working_set import choose_working_set, extend, widen


def estimate_model(problem: Problem, info: MatchInfo, options: Options, draw: DrawStep | None = None) -> Estimate:
    """Estimate the model of a problem by the method that the options name.

    Args:
        problem: the matches, and the kind of model.
        info: scores and features of the given matches.
        options: see `Options`.
        draw: function that takes the problem and the sampler of the method and returns the sampler to use, for example
            to reject samples before they are solved. None keeps the sampler of the method.
    """
    # 1. prepare: drop duplicates if most matches are duplicates, and choose a working set if there are too many matches
    problem, info = problem.starting_from(info.initial), info.of_usable(problem.usable)
    if info.precision is not None:
        return _estimate_from_part(problem.with_changes(precision=info.precision), info, options, draw)
    distinct, place = find_distinct(problem, info, options.tuning)
    if distinct is not None and place is not None:
        found = estimate_model(problem.subset(distinct), info.take(distinct), options, draw)
        return with_copies(problem.through(found.k1), distinct, place, found)
    chosen = choose_working_set(problem, info, options.seed, options.tuning)
    part, known = (problem, info) if chosen is None else (problem.subset(chosen), info.take(chosen))
    # 2. prior and 3. rounds: run the method
    found = METHODS[options.method](part, known, options, draw)
    # 4. report: score all matches; an answer that is not finite, or not from pixels, counts as a failure
    if chosen is not None:
        found = widen(problem.through(found.k1), chosen, found, options.tuning, options.keep_trace)
    least_extent_px = 1e-3  # keypoints of photographs are farther apart, even if pixels are divided by focal lengths
    plausible = found.is_finite and problem.extent > least_extent_px * problem.pixel
    return found if found.model is None or plausible else found.without_model()


def _estimate_from_part(problem: Problem, info: MatchInfo, options: Options, draw: DrawStep | None) -> Estimate:
    """Estimate the model from the matches with a precision, then score and assess it on all matches."""
    assert info.precision is not None
    part = where(info.precision > 0)
    found = estimate_model(problem.subset(part), replace(info.take(part), precision=None), options, draw)
    problem = problem.through(found.k1)
    found = extend(problem, part, found)
    if found.model is None or options.method != "ca-ransac":
        return found
    network = load_network(problem.weights if options.weights == DEFAULT_WEIGHTS else options.weights)
    return replace(found, assess=partial(assess, problem, network, found, options))


def run_ca_ransac(problem: Problem, info: MatchInfo, options: Options, draw: DrawStep | None = None) -> Estimate:
    """Run CA-RANSAC with trained weights. `Estimate.assess` of the result computes its confidence."""
    network = load_network(problem.weights if options.weights == DEFAULT_WEIGHTS else options.weights)
    _check_features(info, network, options)
    if problem.num_points < problem.sample_size:
        return _too_few(problem, network, options)
    side = describe_matches(problem, info, network.layout)
    found = adapt(problem, network, side, info, options, draw)
    if not options.keep_trace:
        found = found.without_trace()
    return replace(found, assess=partial(assess, problem.through(found.k1), network, found, options))


def assess(problem: Problem, network: StateNetwork, found: Estimate, options: Options) -> Assessment:
    """Return the confidence of an estimate of CA-RANSAC, and the evidence behind it."""
    if found.model is None:
        return Assessment(confidence=0.0, rotation_confidence=0.0 if problem.traits.uncertainty else None)
    seen = assess_confidence(network, problem, found, examine(problem, network, found, options), options)
    # The confidence was fitted to deviations that noise alone predicts. The result states larger ones.
    return with_unknown_cameras(problem, found, seen)


def examine(problem: Problem, network: StateNetwork, found: Estimate, options: Options) -> Assessment:
    """Assess an answer, except for its confidence. The answer must have a model."""
    assert found.model is not None
    weights = match_weights(network, found.rounds[-1].probabilities, options.tuning.min_weight)
    scale = loss_scale(problem, found.model, problem.share(weights), found.noise, options.tuning)
    return Assessment(
        degeneracy=find_degeneracy(problem, found, options),
        rivalry=find_rivals(problem, found, options),
        covariance=pose_covariance(problem, found, weights, scale),  # with the weights of the last refinement
        rotation_variance=expected_rotation_variance(problem, found, weights, scale),
        cameras=check_cameras(problem, found, options.tuning),
        mirrored=find_mirroring(problem, found, options),
    )


def describe_matches(problem: Problem, info: MatchInfo, layout: NetworkLayout) -> Floats:
    """Return the side information (n, d) in the layout that a network expects."""
    return side_information(
        problem.correspondences, problem.spreads, info.scores, info.score_kind, info.features, layout
    )


def adapt(
    problem: Problem,
    network: MatchStates,
    side: Floats,
    info: MatchInfo,
    options: Options,
    draw: DrawStep | None = None,
) -> Estimate:
    """Run CA-RANSAC with a network on side information (n, d). Estimation and training both call this."""
    scale = Scale.of(problem, options.max_error_px, options.tuning)
    prior = prior_round(problem, scale, *network.first(side))
    steps_of = partial(
        Steps, scale=scale, network=network, prior=prior.probabilities, info=info, options=options, draw=draw
    )
    if problem.lens_prior is not None:
        return _adapt_with_lenses(problem, prior, steps_of, options)
    steps = steps_of(problem)
    rounds, stop_reason = ca_ransac(problem, scale, [prior], steps, options)
    return conclude(problem, scale, rounds, stop_reason, steps.average(rounds[-1]))


def _adapt_with_lenses(
    problem: Problem, prior: Round, steps_of: Callable[[Problem], Steps], options: Options
) -> Estimate:
    """Run CA-RANSAC with uncertain lenses, which are fitted after the first round and after the last.

    If the first round shows distortion, the other rounds use points that are corrected for it. If it does not, or if
    the last round does not confirm it, all rounds use the given lenses.
    """
    steps = steps_of(problem)
    scale = steps.scale
    fit = partial(fit_lenses, prior=prior.probabilities, scale=scale, network=steps.network)
    started = time.perf_counter()
    rounds, stop_reason = ca_ransac(problem, scale, [prior], steps, replace(options, rounds=1))
    seen, first, _ = fit(problem, rounds[-1], brief=True)
    if seen is not problem:
        seen_rounds, why = ca_ransac(seen, scale, [*rounds[:-1], first], steps_of(seen), options.left_since(started))
        seen, seen_rounds[-1], lenses = fit(seen, seen_rounds[-1])
        if lenses is not None and lenses.is_shown:
            answer = seen_rounds[-1].best
            return replace(conclude(seen, scale, seen_rounds, why, answer), lenses=lenses, k1=lenses.k1)
    if stop_reason == "budget":
        rounds, stop_reason = ca_ransac(problem, scale, rounds, steps, options.left_since(started))
    answer = steps.average(rounds[-1])
    seen, rounds[-1], lenses = fit(problem, rounds[-1])
    if lenses is None or not lenses.is_shown:
        return replace(conclude(seen, scale, rounds, stop_reason, answer), lenses=lenses)
    return replace(conclude(seen, scale, rounds, stop_reason, rounds[-1].best), lenses=lenses, k1=lenses.k1)


def conclude(
    problem: Problem, scale: Scale, rounds: list[Round], stop_reason: StopReason, answer: Array | None
) -> Estimate:
    """Return the estimate: the answer if enough matches support it, else a supported model of the last round."""
    last = rounds[-1]
    max_error = scale.inlier_error(last.noise)
    nothing = Estimate(
        model=None,
        stop_reason="degenerate",
        num_hypotheses=last.num_hypotheses,
        max_error=max_error,
        rounds=tuple(rounds),
    )
    if answer is None or last.best is None:
        return nothing
    # If few matches constrain a model, refinement may lose its consensus.
    for model in (answer, last.best, last.models[0]):
        msac_scores = problem.msac_scores(model[None], max_error)[0]
        if np.count_nonzero(msac_scores) > problem.sample_size:
            final_noise = scale.measure_answer(problem, model, last.noise)
            answered = replace(nothing, model=model, stop_reason=stop_reason, msac_scores=msac_scores)
            return replace(answered, noise=last.noise, final_noise=final_noise)
    return replace(nothing, stop_reason="no_consensus")


def run_lm_lo(problem: Problem, info: MatchInfo, options: Options, draw: DrawStep | None = None) -> Estimate:
    """Run LM-LO on the matches that pass the ratio filter. With scores, it samples the best matches first."""
    if problem.num_points < problem.sample_size:
        scale = Scale.of(problem, options.max_error_px, options.tuning)
        max_error = scale.inlier_error(scale.first)
        return Estimate(model=None, stop_reason="too_few_points", num_hypotheses=0, max_error=max_error)
    order = np.arange(problem.num_points, dtype=np.int32)
    if info.scores is not None:
        order = info.order()
        if info.score_kind == "ratio":
            order = order[: max(int((info.scores < options.max_ratio).sum()), options.tuning.min_pool)]
    passed = problem.subset(order)
    progressive = info.scores is not None and options.method == "lm-lo"
    pool = np.arange(len(order), dtype=np.int32)
    sampler: Sampler = PoolSampler(pool, problem.sample_size, options.seed, ordered=progressive)
    scale = Scale.of(passed, options.max_error_px, options.tuning)
    found = lm_lo(passed, scale, sampler if draw is None else draw(passed, sampler), options)
    if found.model is None:
        return found
    # Matches that the filter removed may still be inliers.
    msac_scores = problem.msac_scores(found.model[None], found.max_error)[0]
    found = replace(found, msac_scores=msac_scores)

    def assess() -> Assessment:
        weights = (msac_scores > 0).astype(float)
        covariance = pose_covariance(problem, found, weights, scale.max_error(found.noise))
        seen = Assessment(degeneracy=find_degeneracy(problem, found, options), covariance=covariance)
        return with_unknown_cameras(problem, found, seen)

    return replace(found, assess=assess)


def _check_features(info: MatchInfo, network: StateNetwork, options: Options) -> None:
    """Raise a ValueError if the weights were trained with another number of features."""
    wanted = network.num_features - network.layout.num_inputs()
    if wanted != (0 if info.features is None else info.features.shape[1]):
        given = "none" if info.features is None else f"shape {info.features.shape}"
        raise ValueError(f"features must have shape (N, {wanted}) for weights {str(options.weights)!r}, got {given}")


def _too_few(problem: Problem, network: StateNetwork, options: Options) -> Estimate:
    """Return the failed estimate for fewer matches than a minimal sample. All probabilities are zero."""
    scale = Scale.of(problem, options.max_error_px, options.tuning)
    state, probabilities = network.first(np.zeros((problem.num_points, network.num_features), np.float32))
    prior = prior_round(problem, scale, state, np.zeros_like(probabilities))
    return Estimate(
        model=None,
        stop_reason="too_few_points",
        num_hypotheses=0,
        max_error=scale.inlier_error(scale.first),
        rounds=(prior,),
        assess=partial(Assessment, confidence=0.0),
    )


METHODS: dict[MethodName, Callable[[Problem, MatchInfo, Options, DrawStep | None], Estimate]] = {
    "ca-ransac": run_ca_ransac,
    "lm-lo": run_lm_lo,
    "lm-lo-u": run_lm_lo,
}
