"""Limits of the confidence: reasons for doubt that the fit of the confidence does not know, or weighs too little."""

from __future__ import annotations

import math

import numpy as np

from caransac.camera_priors import IGNORED_DISTORTION_DEVIATION, UNKNOWN_DISTORTION_DEVIATION
from caransac.kernels import RefineOptions
from caransac.options import Options
from caransac.robust.assess.camera_evidence import position_deviation
from caransac.robust.assess.degeneracy import shows_depth, shows_plane_twice
from caransac.robust.assess.evidence import RunEvidence
from caransac.robust.assess.uncertainty import bent_by
from caransac.robust.problems import Absolute, AbsoluteFocal, FocalPose, Problem
from caransac.robust.problems.base import log_scales_of
from caransac.robust.records import Assessment, Estimate


def limit_confidence(
    sure: float, problem: Problem, found: Estimate, seen: Assessment, evidence: RunEvidence, options: Options
) -> float:
    """Return the confidence of an answer, lowered if there is a reason for doubt. It must have a model."""
    limit = problem.outcome_limit
    assess_lenses = problem.traits.usual_focal is not None and found.k1 is None
    if assess_lenses and sure > withstands_lenses(math.inf, limit):  # else no lens lowers it
        sure = min(sure, withstands_lenses(ignored_lens_shift(problem, found, evidence), limit))
    if isinstance(problem, Absolute):
        sure = min(sure, _most_for_one_view(problem, found, seen))
    if isinstance(problem, FocalPose) and _is_unusual(problem, found):
        sure = min(sure, 0.75)  # three in four of such poses with a confidence above 0.9 are right
    return sure / 2 if sure >= 0.5 and _is_doubtful(problem, found, options) else sure


def _is_doubtful(problem: Problem, found: Estimate, options: Options) -> bool:
    """Return True if another answer may be right instead."""
    by_chance = 2  # number of inliers beyond a minimal sample that often agree by chance
    few = len(found.inliers) <= problem.sample_size + by_chance
    if few or shows_depth(problem, found, options.tuning):
        return True
    may_fit_copies = not problem.traits.exact_cameras  # exact cameras fit a plane and its copy only by chance
    return may_fit_copies and shows_plane_twice(problem, found, options)


def _is_unusual(problem: FocalPose, found: Estimate) -> bool:
    """Return True if the prior makes the estimated focal length of a camera improbable."""
    assert found.model is not None
    unusual = 1.5  # deviations
    changes = zip(log_scales_of(found.model), problem.priors, strict=True)
    return any(abs(change) > unusual * prior.focal > 0 for change, prior in changes)


def _most_for_one_view(problem: Absolute, found: Estimate, seen: Assessment) -> float:
    """Return an upper limit of the confidence of an absolute pose, from a rival, mirroring or an uncertain camera."""
    assert found.model is not None and seen.rivalry is not None
    if seen.mirrored is not None:
        return 0.0
    limit, rivals = 1.0, seen.rivalry.models
    apart = [np.linalg.norm(np.subtract(*problem.outcomes(np.stack([each, found.model])))) for each in rivals]
    if any(each > problem.outcome_limit for each in apart):  # else the rival is the same pose, with more of its matches
        limit = 1 / (1 + seen.rivalry.share)  # the rival may be right instead, in proportion to its support
    if isinstance(problem, AbsoluteFocal):
        deviation = max(position_deviation(problem, found), 1e-9)
        limit = min(limit, math.erf(problem.outcome_limit / (2**0.5 * deviation)))
    return limit


def ignored_lens_shift(problem: Problem, found: Estimate, evidence: RunEvidence) -> float:
    """Return the shift of the outcome by lens distortion that the given cameras do not have.

    The evidence contains a linear prediction. If that is not small, the model is refined with distorted points.
    """
    assert found.model is not None and found.msac_scores is not None
    shift = math.exp(evidence.lens_shift) * UNKNOWN_DISTORTION_DEVIATION / IGNORED_DISTORTION_DEVIATION
    inliers = found.inliers
    if shift < 0.05 * problem.outcome_limit or len(inliers) == 0:  # too little to lower the confidence
        return shift
    likely = problem.subset(inliers[:: -(-len(inliers) // 256)])  # a few points and steps suffice to see the shift
    options = RefineOptions(
        loss_scale=found.noise,
        max_steps=8,
        min_decrease=1e-3,
        intrinsics=problem.intrinsics_prior(found.noise),
    )
    bent = [bent_by(likely, sign * UNKNOWN_DISTORTION_DEVIATION) for sign in (-1, 1)]
    models = [found.model, *(each.refine(found.model[None], options)[0] for each in bent)]
    direction, *others = problem.outcomes(np.stack(models))
    return max(shift, *(2 * math.asin(min(float(np.linalg.norm(each - direction)) / 2, 1.0)) for each in others))


def withstands_lenses(shift: float, limit: float) -> float:
    """Return the probability that an unknown lens moves the outcome by less than a limit, given its typical shift."""
    # Half of the cameras that are given as exact are assumed to have an unknown lens instead. This matters most if the
    # camera hardly moved.
    return 1 - 0.5 * math.erfc(limit / (2**0.5 * shift))
