"""Where training pairs come from, how they are augmented, and what the loop needs of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from caransac._support.arrays import take_usable
from caransac.api.guessed_cameras import guess_cameras
from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import Array, Floats, essential_from_fundamental, pose_error_deg, split_pose
from caransac.kernels import Correspondences
from caransac.learned.network_layout import DEFAULT_LAYOUT, NetworkLayout
from caransac.options import MaxError, ScoreKind
from caransac.robust.pipeline import describe_matches
from caransac.robust.problems import Essential, FocalPose, Fundamental, Homography, Problem
from caransac.robust.problems.relative import choose_pose
from caransac.robust.records import MatchInfo
from caransac.tuning import CAMERAS, DEFAULT_TUNING
from caransac_lab.datasets import Pair, Query, read_ransac_tutorial
from caransac_lab.networks.match_filter import MatchFilter
from caransac_lab.synthetic import random_pair
from caransac_lab.synthetic.distributions import log_uniform
from caransac_lab.training.recipe import Recipe

HELD_OUT = 20  # every so many training pairs are validated on where no other data are given
TRAINING_STREAM, VALIDATION_STREAM, EVIDENCE_STREAM = range(3)  # of random numbers
FIXED_ERRORS, FIXED_ERRORS_PX = 0.25, (0.5, 3.0)  # share of runs with a fixed threshold, and these thresholds
MIN_INLIERS = 12  # right matches that a training pair has at least
DROPPED_SCORES, CONVERTED_SCORES = 0.25, 0.15  # shares of pairs without scores, and with recalibrated confidences
UNKNOWN_CAMERAS, FOCAL_DEVIATIONS = 0.4, (0.02, 0.2)  # share of uncertain cameras that are unknown; those of the others
CENTRE_DEVIATION = 0.005  # of principal points, in the longer side
NOISY, NOISES_PX = 0.3, (0.1, 2.0)  # share of pairs whose points are moved, and the scale of these errors
NOISE_TAILS = 4.0  # degrees of freedom of their Student's distribution: keypoints have heavy-tailed errors
SECOND_MOTIONS = 0.15  # share of pairs where some wrong matches of one place agree with each other
SUBSETS, SMALLEST_SUBSET = 0.3, 60  # share of pairs of which only some matches are kept, and how few at least
FEWEST_LEFT, SCORES_LOST = 8, 0.5  # matches that a filter leaves at least; share of pairs that then have no scores

Augment = Callable[[Pair, np.random.Generator], Pair]
Matched = TypeVar("Matched", Pair, Query)


@dataclass(frozen=True, eq=False)
class Example:
    """One pair as the loop and the loss see it, of the matches that both cameras have rays for.

    Attributes:
        problem: what is estimated.
        rays: the matches in normalised image coordinates.
        side: (n, d) its side information.
        info: what else is known of the matches.
        labels: (n,) 1 for a right match, 0 for a wrong one.
        max_error_px: threshold of the run, or "auto".
        camera1: camera of image 1.
        camera2: camera of image 2.
        R: (3, 3) true rotation, None for unrelated images.
        t: (3,) true translation of length one, None for unrelated images.
    """

    problem: Problem
    rays: Correspondences
    side: Floats
    info: MatchInfo
    labels: Floats
    max_error_px: MaxError
    camera1: Camera
    camera2: Camera
    R: Array | None
    t: Array | None

    @property
    def has_pose(self) -> bool:
        """Whether models have a pose whose truth is known."""
        return self.R is not None and not isinstance(self.problem, Homography)

    def pose_error_deg(self, model: Array) -> float:
        """Pose error of a model; of a fundamental matrix, of the pose it implies with the true cameras."""
        assert self.R is not None and self.t is not None
        pose = self.problem.public(model[None])[0]
        if isinstance(self.problem, FocalPose) and self.problem.guessed:
            pose = self.problem.fundamentals(model[None])[0]
        if pose.shape == (3, 3):
            E = essential_from_fundamental(pose, self.camera1.K, self.camera2.K)
            pose = choose_pose(E, self.rays.subset(np.flatnonzero(self.labels).astype(np.int32)))
        return pose_error_deg(*split_pose(pose), self.R, self.t)


def make_example(
    pair: Pair,
    problem_name: str = "essential",
    rng: np.random.Generator | None = None,
    max_error_px: MaxError = "auto",
    labels: Floats | None = None,
    layout: NetworkLayout = DEFAULT_LAYOUT,
) -> Example:
    """What the loop and the loss need of a pair; "focal" draws what is known of its cameras.

    Args:
        pair: the pair.
        problem_name: "essential", "fundamental", "focal", "guessed" or "homography".
        rng: where "focal" draws from.
        max_error_px: threshold of the run, or "auto".
        labels: (n,) which matches are right; None asks the pair.
        layout: what the network reads of a match.
    """
    calibrated = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    problem: Problem = calibrated
    pixels1, pixels2 = (take_usable(points, calibrated.usable) for points in (pair.points1, pair.points2))
    if problem_name == "fundamental":
        problem = Fundamental.from_pixels(pixels1, pixels2)
    if problem_name == "guessed":
        problem = guess_cameras(pixels1, pixels2, DEFAULT_TUNING) or Fundamental.from_pixels(pixels1, pixels2)
    if problem_name == "homography":
        problem = Homography.from_pixels(pixels1, pixels2)
    if problem_name == "focal":
        cameras, shared = uncertain_cameras(pair, np.random.default_rng(0) if rng is None else rng)
        problem = FocalPose.from_pixels(pixels1, pixels2, *cameras, shared)
    info = MatchInfo(pair.scores, pair.score_kind, pair.features).of_usable(calibrated.usable)
    return Example(
        problem=problem,
        rays=calibrated.correspondences,
        side=describe_matches(problem, info, layout),
        info=info,
        labels=take_usable(pair.right_matches() if labels is None else labels, calibrated.usable),
        max_error_px=max_error_px,
        camera1=pair.camera1,
        camera2=pair.camera2,
        R=pair.R,
        t=pair.t,
    )


def uncertain_cameras(pair: Pair, rng: np.random.Generator) -> tuple[tuple[Camera, Camera], bool]:
    """Cameras as somebody might know them who does not know them exactly, and whether they are said to be one.

    The principal point is moved; the focal length is off by as much as is stated on average, or unknown.
    """
    known, deviation = rng.random() >= UNKNOWN_CAMERAS, float(np.exp(rng.uniform(*np.log(FOCAL_DEVIATIONS))))
    shared = abs(pair.camera1.mean_focal / pair.camera2.mean_focal - 1) < CAMERAS.same_focal
    factors = np.exp(rng.normal(0, deviation, 2))
    offsets = rng.normal(0, CENTRE_DEVIATION, 2)
    cameras = []
    for camera, factor in zip((pair.camera1, pair.camera2), (factors[0], factors[0 if shared else 1]), strict=True):
        cx, cy = camera.K[:2, 2]
        width, height = (camera.width, camera.height) if camera.width else (round(2 * cx + 1), round(2 * cy + 1))
        centre = np.array([cx, cy]) + offsets * max(width, height)
        if not known and camera.width:  # of a crop, say
            centre = (np.array([width, height]) - 1) / 2
        focal = camera.mean_focal * factor if known else UNKNOWN_FOCAL * max(width, height)
        stated = deviation if known else UNKNOWN_FOCAL_DEVIATION
        distortion = 0.0 if known else Camera.of_unknown_focal(width, height).distortion_deviation
        cameras.append(Camera("SIMPLE_PINHOLE", (focal, *centre), width, height, stated, distortion))
    return (cameras[0], cameras[1]), shared


def known_camera(camera: Camera, rng: np.random.Generator) -> Camera:
    """A camera as somebody might know it who does not know it exactly; see `uncertain_cameras`."""
    unknown, deviation = rng.random() < UNKNOWN_CAMERAS, log_uniform(rng, *FOCAL_DEVIATIONS)
    cx, cy = camera.K[:2, 2]
    width, height = (camera.width, camera.height) if camera.width else (round(2 * cx + 1), round(2 * cy + 1))
    centre = np.array([cx, cy]) + rng.normal(0, CENTRE_DEVIATION, 2) * max(width, height)
    focal = camera.mean_focal * float(np.exp(rng.normal(0, deviation)))
    if unknown:
        focal, deviation = UNKNOWN_FOCAL * max(width, height), UNKNOWN_FOCAL_DEVIATION
    return Camera("SIMPLE_PINHOLE", (focal, *centre), width, height, deviation)


def random_threshold(rng: np.random.Generator) -> MaxError:
    """A threshold that somebody might give, or "auto"."""
    return log_uniform(rng, *FIXED_ERRORS_PX) if rng.random() < FIXED_ERRORS else "auto"


def with_noise(pair: Pair, rng: np.random.Generator) -> Pair:
    """Move the points of some pairs by heavy-tailed noise, as other detectors would."""
    if rng.random() >= NOISY:
        return pair
    scale = log_uniform(rng, *NOISES_PX)
    moved1, moved2 = (p + scale * rng.standard_t(NOISE_TAILS, p.shape) for p in (pair.points1, pair.points2))
    return replace(pair, points1=moved1, points2=moved2)


def with_second_motion(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with some wrong matches of one place moved together, as those of a moving object or a repeated pattern.

    They keep their places in image 1 and their scores.
    """
    wrong = np.flatnonzero(pair.right_matches() == 0)
    if len(wrong) < SMALLEST_SUBSET:
        return pair
    centre = pair.points1[rng.choice(wrong)]
    by_distance = wrong[np.argsort(((pair.points1[wrong] - centre) ** 2).sum(axis=1))]
    size = int(log_uniform(rng, SMALLEST_SUBSET / 4, max(0.2 * len(wrong), SMALLEST_SUBSET)))
    place = by_distance[: 3 * size][rng.random(len(by_distance[: 3 * size])) < 1 / 3]
    angle, factor = rng.normal(0, 0.1), np.exp(rng.normal(0, 0.1))
    turn = factor * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points2 = pair.points2.copy()
    target = pair.points2[rng.choice(wrong)]
    points2[place] = (pair.points1[place] - centre) @ turn.T + target + 0.5 * rng.normal(size=(len(place), 2))
    return replace(pair, points2=points2)


def augment(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with its images exchanged, thinned out, with a second motion or with other scores, at random."""
    if rng.random() < SECOND_MOTIONS:
        pair = with_second_motion(pair, rng)
    if pair.R is not None and pair.t is not None and rng.random() < 0.5:
        pair = replace(
            pair,
            points1=pair.points2,
            points2=pair.points1,
            camera1=pair.camera2,
            camera2=pair.camera1,
            R=pair.R.T,
            t=-pair.R.T @ pair.t,
        )
    if rng.random() < SUBSETS and len(pair.points1) > SMALLEST_SUBSET:
        pair = thin_out(pair, int(np.exp(rng.uniform(np.log(SMALLEST_SUBSET), np.log(len(pair.points1))))), rng)
    return with_other_scores(pair, rng)


def with_other_scores(matched: Matched, rng: np.random.Generator) -> Matched:
    """A pair or a query that loses its scores, or has them as confidences, at random."""
    chance = rng.random()
    if chance < DROPPED_SCORES:
        return replace(matched, scores=None)
    if chance < DROPPED_SCORES + CONVERTED_SCORES and matched.scores is not None:
        return replace(matched, scores=as_confidences(matched.scores, matched.score_kind, rng), score_kind="confidence")
    return matched


def as_confidences(scores: Array, kind: ScoreKind, rng: np.random.Generator) -> Array:
    """Turn scores (n,) into confidences of a random calibration: matchers only agree that more is better."""
    better = 1 - scores if kind == "ratio" else scores
    steepness, middle = rng.uniform(2, 15), rng.uniform(0.05, 0.6)
    return np.asarray(1 / (1 + np.exp(-steepness * (better - middle))))


def thin_out(pair: Pair, size: int, rng: np.random.Generator) -> Pair:
    """The pair with so many of its matches, chosen at random, at most."""
    return pair.take(rng.permutation(len(pair.points1))[:size])


def filtered(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with the matches that a filter may leave, often few: those of the best scores, or any without scores."""
    size = int(log_uniform(rng, FEWEST_LEFT, max(len(pair.points1), FEWEST_LEFT + 1)))
    if pair.scores is None:
        return thin_out(pair, size, rng)
    left = pair.take(MatchInfo(pair.scores, pair.score_kind).order()[:size])
    return replace(left, scores=None) if rng.random() < SCORES_LOST else left


class PairSource:
    """Pairs to draw from: real ones, read once, and synthetic ones, made on demand.

    Every scene counts by the square root of its number of pairs, so that large ones lead without crowding out small
    ones.
    """

    def __init__(self, pairs: Sequence[Pair], synthetic_share: float, augment: Augment = augment) -> None:
        self.pairs = list(pairs)
        self.augment = augment
        self.synthetic_share = synthetic_share if self.pairs else 1.0
        self._chances = scene_chances([pair.scene for pair in self.pairs])

    def balanced(self) -> PairSource:
        """The same source, of which every folder counts alike: the confidence must know all matchers."""
        source = copy(self)
        source._chances = scene_chances([pair.scene for pair in self.pairs], balanced=True)
        return source

    def draw(self, rng: np.random.Generator) -> Pair:
        """A pair with enough right matches, augmented."""
        while True:
            if rng.random() < self.synthetic_share:
                made = synthetic_pair(rng)
            else:
                made = self.augment(self.pairs[int(np.searchsorted(self._chances, rng.random()))], rng)
            if made.right_matches().sum() >= MIN_INLIERS:
                return made


def scene_chances(scenes: Sequence[str], *, balanced: bool = False) -> Array:
    """Cumulative chances (n,) of items of scenes: a scene counts by the square root of its number of items.

    Args:
        scenes: (n,) their names, which begin with that of a folder, as `read_pairs` makes them.
        balanced: whether all folders count alike.
    """
    sizes = Counter(scenes)
    weights = np.array([sizes[scene] ** -0.5 for scene in scenes])
    if balanced:
        folders = [scene.rpartition("/")[0] for scene in scenes]
        totals = Counter[str]()
        for folder, weight in zip(folders, weights.tolist(), strict=True):
            totals[folder] += weight
        weights /= [totals[folder] for folder in folders]
    return np.asarray(np.cumsum(weights) / weights.sum()) if len(weights) else weights


def synthetic_pair(rng: np.random.Generator) -> Pair:
    """A realistic made-up pair, augmented."""
    pair = Pair.from_synthetic(random_pair(rng))
    return replace(pair, scores=None) if rng.random() < DROPPED_SCORES else pair


def with_filter(pair: Pair, match_filter: MatchFilter, *, as_paper: bool = False) -> Pair:
    """The pair with what a filter says of its matches added to their features, as the paper has it or as we do."""
    filtered = match_filter.judge(pair.points1, pair.points2, pair.scores, pair.score_kind)
    found = filtered.as_paper_features(pair.points1, pair.points2) if as_paper else filtered.as_features
    own = np.empty((len(found), 0)) if pair.features is None else pair.features
    return replace(pair, features=np.concatenate([own, found], axis=1))


def without_geometry(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with its points matched at random, so that no model explains the matches."""
    return replace(pair, points2=rng.permutation(pair.points2), R=None, t=None)


def read_pairs(folders: Sequence[Path]) -> list[Pair]:
    """All pairs of folders of scenes, the scenes named by their folder too."""
    return [
        replace(pair, scene=f"{folder.parent.name}/{folder.name}/{pair.scene}")
        for folder in folders
        for pair in read_ransac_tutorial(folder)
    ]


def read_data(
    recipe: Recipe, vary: Callable[[Pair, np.random.Generator], Pair]
) -> tuple[PairSource, list[Pair], list[Pair]]:
    """Training, validation and unrelated pairs of a recipe; without real ones to validate on, synthetic ones."""
    pairs = read_pairs([Path(folder) for folder in recipe.data])
    if recipe.val:
        val_pairs = read_pairs([Path(folder) for folder in recipe.val])
    else:
        pairs, val_pairs = [p for i, p in enumerate(pairs) if i % HELD_OUT], pairs[::HELD_OUT]
    if not val_pairs:
        val_pairs = [
            synthetic_pair(np.random.default_rng([recipe.seed, VALIDATION_STREAM, i])) for i in range(recipe.val_pairs)
        ]
    order = np.random.default_rng(recipe.seed).permutation(len(val_pairs))[: recipe.val_pairs]
    unrelated = read_pairs([Path(folder) for folder in recipe.unrelated])
    return PairSource(pairs, recipe.synthetic_share, vary), [val_pairs[i] for i in order], unrelated
