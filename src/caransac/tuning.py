"""The numbers that were chosen by measuring, each with its meaning, unit and reason.

`Tuning` has the numbers of the loop. `caransac-lab study ablation` changes them one by one and publishes the effect of
each. `CameraTuning` has the numbers for cameras that are not exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchTuning:
    """How matches are refined in the photographs, and when the answer from refined matches is accepted.

    All were chosen on training scenes with all match sets but one, and judged on the set that was left out.

    Attributes:
        radius: a patch has (2 radius + 1)² pixels.
        usual_deviation_px: standard deviation of ordinary keypoints. If it is twice as large, the photographs are
            reduced to half the size.
        least_side: length in pixels of the longer side below which photographs are not reduced.
        max_level: maximum number of times that photographs are reduced to half the size; 3 is the kernel's limit.
        neighbours: number of nearest inliers that determine the local affine map of a match.
        affine_deviation: standard deviation of the entries of this map; 0 aligns patches by shifts only, which loses
            5 AUC@1 on XFeat and 7 on ORB.
        max_steps: maximum number of Gauss-Newton steps.
        max_step_px: maximum length of a step.
        min_step_px: length of a step below which a patch has converged.
        max_shift_px: shift beyond which a match is not refined.
        min_correlation: minimum correlation of two aligned patches. At 0.7, twice as many matches get worse in rendered
            scenes with exact truth.
        min_refined: minimum number of refined matches for a second estimate, as a multiple of the minimal sample.
        least_consensus: minimum consensus of the second estimate divided by that of the first, at the first threshold.
            A smaller one is a jump to another model that explains only some refined matches.
        hidden_deviation_px: error of refined matches that their patches do not show. The weight of a match falls with
            its own deviation, divided by this one. Equal weights lose 0.7 AUC@1 for E and 1.0 for F on average.
        most_passes: maximum number of times that matches are refined. A second pass refines the inliers that only the
            second answer has.
        new_inliers: minimum number of these inliers for a second pass, divided by the number of refined matches.
        log_odds: evidence of patches that agree, added to the log-odds of the confidence. The best fit is 2.7 for
            known cameras and 0.7 for uncertain ones.
    """

    radius: int = 7
    usual_deviation_px: float = 0.8
    least_side: int = 1000
    max_level: int = 3
    neighbours: int = 12
    affine_deviation: float = 0.3
    max_steps: int = 8
    max_step_px: float = 1.0
    min_step_px: float = 0.03
    max_shift_px: float = 3.0
    min_correlation: float = 0.8
    min_refined: int = 3
    least_consensus: float = 0.6
    hidden_deviation_px: float = 0.1
    most_passes: int = 2
    new_inliers: float = 0.25
    log_odds: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """Numbers of CA-RANSAC and LM-LO that are the same for all data. `Options` has the choices of a caller.

    A *distance* is the error of a match under a model: the Sampson distance or, for a homography, the symmetric
    transfer error. *Noise* is the median distance of right matches.

    Attributes:
        max_copies: share of exact duplicates among the matches above which only one of each is used.
        working_set: maximum number of matches that an estimate works on. If there are more, all matches refine the
            answer, and all are scored.
        usual_reach: minimum threshold of the returned inliers, divided by the usual deviation of a keypoint: about a
            pixel. Even if most keypoints are very precise, some of the right matches are not.
        pool_success: probability that a round would draw a sample without outliers if every match of the sampling pool
            were only as likely right as the least likely one. It determines the size of the pool (0.9 in the paper).
        min_pool: minimum size of the sampling pool (15 in the paper), and minimum number of matches after the ratio
            filter of LM-LO.
        sample_margin: samples of the first round divided by the number that the probabilities require. Homographies,
            absolute poses and the second round need a quarter of it. A round never draws more samples than usual; with
            infinity it always draws the usual number. With 4, RootSIFT loses 0.4 AUC@5.
        static_ratio: ratio below which matches are in the pool of the ablation without adaptive sampling (as in the
            paper).
        compared_on: number of most probable matches on which new models are compared; a quarter of all matches if that
            is more. Candidates are refined on at most `compared_on` of these.
        spread_ranking: whether the ranking rewards consensus that is spread over the images. The best model so far is
            then not refined again with the new ones. False is the paper's ranking by the sum of the MSAC scores, which
            refines the best model so far in every round.
        rank_scale: scale of the Cauchy kernel in the ranking of models, as a multiple of the noise. A small scale gives
            more weight to very close matches, so that a precise model wins over a model that is only near more matches.
        same_model: cosine of the scores of two models at which the attention treats them as one.
        usual_deviation: deviation of the position of an ordinary keypoint, divided by the extent of the points: half a
            pixel in an image of a thousand pixels.
        usual_matches: number of right matches that have the same weight as the prior of the noise. With infinity the
            noise is not measured (as in the paper).
        first_noise: noise assumed in the first round, divided by the usual noise; minimal samples scatter more. Above
            this noise, thresholds grow with its square root.
        noise_reach: maximum distance of the matches that the noise is measured on, as a multiple of the noise.
        likely_prior: minimum prior of the matches that the noise is measured on.
        max_error: threshold of ranking and local refinement, as a multiple of the noise. If the caller gave no
            threshold, it also applies to inliers and to the scores that the network attends to.
        local_reach: maximum distance of matches in the local refinement, as a multiple of its threshold (as in the
            paper).
        local_steps: maximum number of Levenberg-Marquardt steps of the local refinement (as in the paper).
        local_min_decrease: relative decrease of the cost below which the local refinement ends.
        agreeing_deg: maximum angle between the translation of the best model and the translations of the models that
            are averaged with it; 0 for no average.
        mean_exponent: exponent of the consensus in the weight of a model when agreeing models are averaged: a model
            with 2 % less consensus counts for a third.
        min_weight: minimum weight of a match in the weighted refinement (as in the paper).
        wide_loss_scale: scale of the wide Cauchy loss, as a multiple of the noise. It is used in the final refinement
            if few wrong matches are near the model, and in the refinement on all matches if there are more than the
            working set.
        wide_gain: maximum ratio of the predicted variances (wide loss / loss at the noise) for which the final
            refinement uses the wide loss; 0 for never.
        wide_reach: maximum distance of matches in the refinement on all matches, as a multiple of the noise.
        guessed_centre_deviation: deviation of the principal points of the cameras that are assumed for a fundamental
            matrix if no image sizes are given, divided by the longer side of the box of the points; 0 for no cameras.
        contradicted: minimum relative gain of consensus without assumed cameras at which they are rejected.
        expected_share: minimum consensus of an answer with assumed cameras, divided by the sum of the priors. Below it,
            the matrix is estimated without cameras, too, and accepted if it explains more matches by `contradicted`.
        patches: how matches are refined in the photographs.
    """

    max_copies: float = 0.5
    working_set: int = 8192
    usual_reach: float = 2.0
    pool_success: float = 0.9
    min_pool: int = 15
    sample_margin: float = 8.0
    static_ratio: float = 0.8
    compared_on: int = 1024
    spread_ranking: bool = True
    rank_scale: float = 1.5
    same_model: float = 0.95
    usual_deviation: float = 0.0015
    usual_matches: float = 5.0
    first_noise: float = 2.0
    noise_reach: float = 20.0
    likely_prior: float = 0.5
    max_error: float = 4.0
    local_reach: float = 5**0.5
    local_steps: int = 10
    local_min_decrease: float = 1e-3
    agreeing_deg: float = 10.0
    mean_exponent: float = 50.0
    min_weight: float = 1e-3
    wide_loss_scale: float = 3.0
    wide_gain: float = 0.75
    wide_reach: float = 15.0
    guessed_centre_deviation: float = 0.2
    contradicted: float = 0.1
    expected_share: float = 0.5
    patches: PatchTuning = PatchTuning()


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraTuning:
    """Priors of cameras that are not exact, and the evidence that overrules given cameras.

    All were chosen on the training scenes, with principal points moved by 5 px at 1000 px. Deviations of focal lengths
    are deviations of their logarithms.

    Attributes:
        weak: threshold on the ratio of the deviations of a focal length (prior / matches only). Below it the matches
            mostly add bias, and the weight of the prior is multiplied by (weak / ratio)². Without that, planes seen by
            guessed cameras lose 3.6 points of AUC@10.
        max_temper: maximum extra weight of the prior if the focal length is weakly determined. Without it, pairs of
            validation scenes with a zoomed image lose 3 AUC@5.
        centre_deviation: deviation of the principal point of a camera with an uncertain focal length, divided by the
            longer side of the image.
        focal_difference: deviation of the difference of focal lengths between two images of one camera; focusing
            changes the focal length a little.
        centre_difference: deviation of the difference of principal points between two images of one camera, divided by
            the focal length.
        tails: degrees of freedom of Student's distribution, the prior of an unknown focal length. Some lenses are far
            longer than usual: with a Gaussian prior, images enlarged by 1.6 and 2.2 lose 4 and 5 AUC@5.
        free_deviation: deviation of a Gaussian as wide as Student's distribution. It is the prior of an unknown focal
            length while models are compared, and the maximum deviation that results state.
        focal_steps: focal lengths at which samples of one camera are solved: differences from the given one, divided by
            its deviation. With (-0.8, 0.8), long lenses of validation scenes lose 2.5 AUC@5.
        focal_steps_apart: focal lengths at which samples of two different cameras are solved, for each of them, in the
            same unit.
        more_consensus: minimum ratio of consensus (two focal lengths / one) at which two unknown cameras are treated as
            different.
        same_focal: maximum relative difference between the given focal lengths of two cameras that may be the same.
        joint_box: maximum ratio of the longer sides (box of the points of both images / box of one image) at which
            images of unknown size are treated as equally large.
        fit_steps: maximum number of steps of a refinement with free cameras. It only has to show a trend.
        fit_min_decrease: relative decrease of the cost below which a refinement with free cameras ends.
        loss_scales: loss scales of successive refinements with free cameras, as multiples of the threshold, from wide
            to narrow.
        least_error: minimum ratio of the thresholds (fundamental matrix without cameras / answer).
        usual_extent: root mean square distance of points from the centre of an ordinary image, divided by the focal
            length.
        usual_factor: maximum ratio of extents (points / usual) at which the extent of the points is ordinary.
        largest_gain: ratio of consensus (free cameras / given ones) above which the evidence does not grow.
        largest_shift: shift of the logarithm of the focal length above which the evidence does not grow.
        slack: deviations of the focal length (relative) and of the principal point (divided by the focal length) of an
            exact camera while lenses are fitted, because lenses breathe and stabilisers move. If this slack explains
            the matches as well as a k1, the k1 is not accepted. Without slack, pairs of one phone seemed to have k1 of
            -0.15 to 0.19.
        k1_difference: deviation of the difference of k1 between two images of one camera.
        lens_matches: maximum number of matches that lenses are fitted to. The most likely ones are used. This saves a
            seventh of the time with 8000 matches and does not change the accuracy.
        lens_evidence: minimum logarithm of the Bayes factor at which a k1 is accepted. On validation scenes with
            undistorted lenses, ALIKED loses 0.6 AUC@5 at 5 and nothing at 10.
    """

    weak: float = 2.0
    max_temper: float = 16.0
    centre_deviation: float = 0.0025
    focal_difference: float = 0.002
    centre_difference: float = 0.001
    tails: float = 3.0
    free_deviation: float = 0.5
    focal_steps: tuple[float, ...] = (-1.5, 0.0, 1.5)
    focal_steps_apart: tuple[float, ...] = (-0.8, 0.8)
    more_consensus: float = 1.02
    same_focal: float = 0.01
    joint_box: float = 2.0
    fit_steps: int = 8
    fit_min_decrease: float = 1e-4
    loss_scales: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5)
    least_error: float = 0.1
    usual_extent: float = 0.35
    usual_factor: float = 1.5
    largest_gain: float = 3.0
    largest_shift: float = 0.7
    slack: tuple[float, float] = (0.003, 0.005)
    k1_difference: float = 1e-4
    lens_matches: int = 1200
    lens_evidence: float = 8.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorFactors:
    """Variances of real errors divided by the variances that independent noise predicts.

    Errors of the matches of a pair are correlated: lenses are distorted, rolling shutters and keypoints are biased, and
    some inliers are wrong. All factors were measured on the training scenes, except the first three.

    Attributes:
        steepest: length of the derivative of a residual above which a match is left out: it would outweigh all others.
        weighted: factor for rotations in the evidence of the confidence, because the weights of the matches depend on
            their residuals. It was measured on synthetic pairs.
        chosen: number of wrong matches that a pose fits because it was chosen among many, multiplied by the dimensions
            of an error. It was measured on synthetic pairs and queries, whose 95 % ellipses contain 90 to 98 % of the
            poses (table `covariance`).
        absolute: factor for focal lengths and lenses of absolute poses. It was measured on the poses of the training
            queries.
        outcome: factor for the direction of the baseline in the evidence of the confidence; the best calibrated of 9,
            16 and 25.
        cameras: factor for focal lengths and lenses in estimates. Errors of k1 are two to three times as large as noise
            predicts.
        stated_cameras: factor for focal lengths and lenses in the deviations that results state. On original, cropped
            and zoomed pairs, the median error is then 0.9 deviations, and four of five errors are within two
            deviations.
        refined_correlation: correlation of the errors of two matches that were refined in the photographs, with errors
            of the cameras that only such precise matches show. It limits what many matches can say about a pose. With
            it, 95 % ellipses contain 95 % of the poses with laser truth.
    """

    steepest: float = 1e6
    weighted: float = 1.1
    chosen: float = 2.0
    absolute: float = 8.0
    outcome: float = 16.0
    cameras: float = 4.0
    stated_cameras: float = 64.0
    refined_correlation: float = 0.005


@dataclass(frozen=True, kw_only=True, slots=True)
class KeypointTuning:
    """How the keypoints of a collection are refined from the offsets of their matches.

    Attributes:
        shift_deviation_px: standard deviation of the shifts. It determines where a track as a whole ends up.
        least_deviation_px: standard deviation of an offset beyond that of the grey levels, because surfaces are curved.
        scales: scales of the Cauchy weights in the rounds of reweighting, as multiples of the deviation of an offset.
        steps: steps of conjugate gradients in each round.
        max_shift_px: a keypoint that would move farther stays, and its matches do not agree.
        max_residual_px: maximum distance of the shifted keypoints of a match whose patches agree.
        unclear_shares: range of the share of agreeing matches of a pair, in which all its matches stay. The views
            differ so much that the patches of many right matches are not similar: without them, buddha (ALIKED) loses 4
            of 10 images. With even fewer agreeing matches, most pairs on entry_p10 (ORB) are wrong.
    """

    shift_deviation_px: float = 1.0
    least_deviation_px: float = 0.1
    scales: tuple[float, ...] = (8.0, 4.0, 2.0, 1.0)
    steps: int = 3
    max_shift_px: float = 3.0
    max_residual_px: float = 0.5
    unclear_shares: tuple[float, float] = (0.35, 0.5)


ALL = 10**9  # no limit on the number of matches

DEFAULT_TUNING = Tuning()
CAMERAS = CameraTuning()
ERRORS = ErrorFactors()
KEYPOINTS = KeypointTuning()

# The paper's algorithm: thresholds come from the caller, not from the noise, and all matches score every model.
PAPER_TUNING = replace(
    DEFAULT_TUNING,
    max_copies=1.0,
    working_set=ALL,
    compared_on=ALL,
    spread_ranking=False,
    sample_margin=math.inf,
    first_noise=1.0,
    usual_matches=math.inf,
    max_error=1.0,
    agreeing_deg=0.0,
    wide_gain=0.0,
    guessed_centre_deviation=0.0,
)
