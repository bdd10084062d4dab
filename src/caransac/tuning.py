"""The numbers that the estimator was tuned with: what each is, its unit, and why it has its value.

`Tuning` has those of the loop; `caransac-lab study ablation` changes them one by one and publishes what each buys.
`CameraTuning` has those of cameras that are not exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """What CA-RANSAC and LM-LO share with all data; `Options` has what a caller may want to choose.

    Distances are of a match to a model: the Sampson distance, of a homography the symmetric transfer error. *Noise* is
    the median distance of right matches.

    Attributes:
        max_copies: share of exact copies among the matches above which an estimate works on one of each.
        working_set: matches that an estimate works on, at most; all matches refine its answer and are scored by it.
        usual_reach: minimum threshold of the returned inliers, divided by the usual deviation of a keypoint: about a
            pixel. If most keypoints are more precise than usual, some right ones are not.
        pool_success: probability that a round draws a sample without outliers, were every match of the sampling pool
            as likely right as its least likely one; decides who is in the pool (the paper has 0.9).
        min_pool: matches at least, the most probable ones, in the sampling pool (the paper has 15), and behind the
            ratio filter of LM-LO.
        sample_margin: samples of the first rounds divided by the number that the probabilities call for; a round never
            draws more than usual. Infinity for usual rounds. With 4, RootSIFT loses 0.4 AUC@5.
        static_ratio: ratio below which matches are in the pool of the ablation without adaptive sampling (the paper's).
        compared_on: number of most probable matches on which new models are compared and locally refined.
        spread_ranking: whether models are ranked by consensus all over the images, not by a cluster of it, and the best
            model so far goes unrefined among distinct new ones. False, the paper's, ranks by the total of the MSAC
            scores alone, and refines the best model so far with those of its round.
        rank_scale: scale of Cauchy's kernel by which distances count where models are ranked, in noises: close matches
            count for more than near ones, so that a precise model wins over one that more matches are merely near.
        same_model: cosine of the scores of two models at which they are one to the attention.
        usual_deviation: of the position of an ordinary keypoint, in extents of the points: half a pixel of a thousand.
        usual_matches: number of right matches that count as much as the usual noise; with infinitely many the noise is
            not measured (the paper's).
        first_noise: noise that the first round assumes, in usual ones: samples of five points scatter more. Beyond it,
            thresholds grow with the square root of the noise.
        noise_reach: distance up to which matches tell the noise, in noises.
        likely_prior: prior above which a match is likely; the noise is measured on these.
        max_error: thresholds in noises: of ranking and local refinement and, if the caller gave none, of the scores
            that the network attends to and of inliers.
        local_reach: distance up to which matches count in the local refinement, in its thresholds (the paper's).
        local_steps: Levenberg-Marquardt steps of the local refinement at most (the paper's).
        agreeing_deg: models whose outcome is within this angle of the best one's are averaged with it; 0 for none.
        mean_exponent: of the consensus in the weight of a model there: one with 2 % less counts for a third.
        min_weight: lighter matches are left out of the weighted refinement (the paper's).
        wide_loss_scale: scale of a wide Cauchy loss, as a multiple of the noise: of the refinement on all matches,
            beyond the working set, and of the final refinement if few wrong matches are near the model.
        wide_gain: maximum ratio of the predicted variances (wide loss / loss at the noise) for which the final
            refinement uses the wide loss; 0 for never.
        wide_reach: distance up to which matches count there, in noises.
        guessed_centre_deviation: of the principal points of the cameras that a fundamental matrix is estimated with
            where the sizes of the images are not given, in the longer side of the box of the points; 0 for no cameras.
        contradicted: gain of consensus without cameras from which on such cameras are rejected.
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
    agreeing_deg: float = 10.0
    mean_exponent: float = 50.0
    min_weight: float = 1e-3
    wide_loss_scale: float = 3.0
    wide_gain: float = 0.75
    wide_reach: float = 15.0
    guessed_centre_deviation: float = 0.2
    contradicted: float = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraTuning:
    """The priors of cameras that are not exact, and what the matches must show to overrule cameras as given.

    All were chosen on the training scenes, with principal points moved by 5 px at 1000 px. Deviations of focal lengths
    are those of their logarithms.

    Attributes:
        weak: threshold on prior deviation / deviation from the matches only, of a focal length. Below it the matches
            mostly add bias, and the prior counts for more, by the square of the ratio. Without that, planes seen by
            guessed cameras lose 3.6 points of AUC@10.
        max_temper: maximum extra weight of the prior in that case. Without it, pairs of validation scenes with a zoomed
            image lose 3 AUC@5.
        centre_deviation: deviation of the principal point of a camera with an uncertain focal length, divided by the
            longer side of the image.
        focal_difference: deviation of the difference of focal lengths between two images of one camera; focusing
            changes the focal length a little.
        centre_difference: deviation of the difference of principal points between two images of one camera, divided by
            the focal length.
        tails: degrees of freedom of Student's distribution, the prior of an unknown focal length. Some lenses are far
            longer: with a Gaussian prior, images enlarged by 1.6 and 2.2 lose 4 and 5 AUC@5.
        free_deviation: deviation of a Gaussian as wide as these tails. It is the prior of an unknown focal length while
            models are compared, and limits the deviation that results state.
        focal_steps: focal lengths of one camera that samples are solved at, in deviations from the given one. With
            (-0.8, 0.8), long lenses of validation scenes lose 2.5 AUC@5.
        focal_steps_apart: the same for each of two cameras.
        more_consensus: minimum ratio of consensus (two focal lengths / one) at which two unknown cameras are treated as
            different.
        same_focal: maximum relative difference between the given focal lengths of cameras that may be one.
        joint_box: maximum ratio of the longer sides (box of the points of both images / box of one image) at which
            images of unknown size are treated as equally large.
        fit_steps: maximum number of steps of a refinement with free cameras, which only has to show a trend.
        fit_min_decrease: relative decrease of the cost below which that refinement ends.
        loss_scales: scales of the losses of successive refinements with free cameras, in thresholds, wide ones first.
        least_error: minimum ratio of the thresholds (fundamental matrix without cameras / answer).
        usual_extent: root mean square distance of points from the middle of an ordinary image, in focal lengths.
        usual_factor: ratio of an extent to the usual one up to which it is ordinary.
        largest_gain: ratio of consensus (free cameras / given ones) above which the evidence does not grow.
        largest_shift: shift of the logarithm of the focal length above which the evidence does not grow.
        slack: deviations of the focal length (relative) and of the principal point (in focal lengths) of an exact
            camera while lenses are fitted. Lenses breathe and stabilisers move. If that explains the matches as well,
            they do not show a lens: without slack, pairs of one phone seemed to have k1 of -0.15 to 0.19.
        k1_difference: deviation of the difference of k1 between two images of one camera.
        lens_matches: maximum number of matches that lenses are fitted to, the likeliest, as few of many are right.
        lens_evidence: minimum logarithm of the Bayes factor at which a k1 is accepted. On validation scenes flat
            lenses of ALIKED lose 0.6 AUC@5 at 5 and nothing at 10.
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

    Matches of a pair err together: lenses are bent, rolling shutters and keypoints are biased, and some inliers are
    wrong. All factors were measured on the training scenes, except `weighted`.

    Attributes:
        weighted: relative poses with exact cameras, because matches got their weights by their residuals; measured on
            synthetic pairs, where 95 % ellipses then contain 91 to 96 % of the poses (table `covariance`).
        absolute: absolute poses; ellipses then contain two in three of the queries that one deviation should contain.
        outcome: the direction of the baseline in the evidence of the confidence; the best calibrated of 9, 16 and 25.
        cameras: focal lengths and lenses in estimates; errors of k1 are two to three times what noise predicts.
        stated_cameras: focal lengths and lenses in the deviations that results state. On pairs as they are, cropped and
            zoomed, the median error is then 0.9 deviations, and four in five errors are within two.
    """

    weighted: float = 1.1
    absolute: float = 8.0
    outcome: float = 16.0
    cameras: float = 4.0
    stated_cameras: float = 64.0


ALL = 10**9  # matches: as many as there are

DEFAULT_TUNING = Tuning()
CAMERAS = CameraTuning()
ERRORS = ErrorFactors()

# The paper's algorithm: thresholds are the caller's, not the noise's, and everything is scored on all matches.
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
