"""Sources of training pairs, their augmentation, and their form for the loop."""

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

HELD_OUT = 20  # without validation data, every 20th training pair is used for validation
TRAINING_STREAM, VALIDATION_STREAM, EVIDENCE_STREAM = range(3)  # streams of random numbers
# Share of runs with a fixed threshold, and the range of these thresholds.
FIXED_ERRORS, FIXED_ERRORS_PX = 0.25, (0.5, 3.0)
MIN_INLIERS = 12  # minimum number of right matches of a training pair
DROPPED_SCORES, CONVERTED_SCORES = 0.25, 0.15  # shares of pairs without scores, and with recalibrated confidences
# Share of unknown cameras among uncertain ones; deviations of the others.
UNKNOWN_CAMERAS, FOCAL_DEVIATIONS = 0.4, (0.02, 0.2)
CENTRE_DEVIATION = 0.005  # deviation of principal points, divided by the longer side
NOISY, NOISES_PX = 0.3, (0.1, 2.0)  # share of pairs with added noise, and its scale
# Degrees of freedom of Student's distribution of the noise, because keypoints have heavy-tailed errors.
NOISE_TAILS = 4.0
SECOND_MOTIONS = 0.15  # share of pairs with some coherent wrong matches of one place
SUBSETS, SMALLEST_SUBSET = 0.3, 60  # share of pairs with only some matches, and the minimum number of matches
FEWEST_LEFT, SCORES_LOST = 8, 0.5  # minimum number of matches after a filter; share of these pairs without scores

Augment = Callable[[Pair, np.random.Generator], Pair]
Matched = TypeVar("Matched", Pair, Query)


@dataclass(frozen=True, eq=False)
class Example:
    """One pair in the form for the loop and the loss, with only the matches for which both cameras have rays.

    Attributes:
        problem: estimation problem.
        rays: matches in normalised image coordinates.
        side: (n, d) side information.
        info: other information about the matches.
        labels: (n,) 1 for right matches, 0 for wrong ones.
        max_error_px: threshold of the run, or "auto".
        camera1: camera of image 1.
        camera2: camera of image 2.
        R: (3, 3) true rotation, None for unrelated images.
        t: (3,) true translation of unit length, None for unrelated images.
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
        """Whether models have a pose with known truth."""
        return self.R is not None and not isinstance(self.problem, Homography)

    def pose_error_deg(self, model: Array) -> float:
        """Return the pose error of a model. A fundamental matrix is converted to a pose with the true cameras."""
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
    """Prepare a pair for the loop and the loss. For "focal", prior knowledge of its cameras is drawn.

    Args:
        pair: the pair.
        problem_name: "essential", "fundamental", "focal", "guessed" or "homography".
        rng: source of randomness for "focal".
        max_error_px: threshold of the run, or "auto".
        labels: (n,) which matches are right; by default from the truth of the pair.
        layout: layout of the network's input.
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
    """Draw prior knowledge of the cameras: inexact cameras, and whether they are declared to be the same.

    The principal point is moved. The focal length is unknown, or its error has the stated deviation.
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
        if not known and camera.width:  # e.g. a crop, whose centre is not the principal point
            centre = (np.array([width, height]) - 1) / 2
        focal = camera.mean_focal * factor if known else UNKNOWN_FOCAL * max(width, height)
        stated = deviation if known else UNKNOWN_FOCAL_DEVIATION
        distortion = 0.0 if known else Camera.of_unknown_focal(width, height).distortion_deviation
        cameras.append(Camera("SIMPLE_PINHOLE", (focal, *centre), width, height, stated, distortion))
    return (cameras[0], cameras[1]), shared


def known_camera(camera: Camera, rng: np.random.Generator) -> Camera:
    """Draw prior knowledge of a camera; see `uncertain_cameras`."""
    unknown, deviation = rng.random() < UNKNOWN_CAMERAS, log_uniform(rng, *FOCAL_DEVIATIONS)
    cx, cy = camera.K[:2, 2]
    width, height = (camera.width, camera.height) if camera.width else (round(2 * cx + 1), round(2 * cy + 1))
    centre = np.array([cx, cy]) + rng.normal(0, CENTRE_DEVIATION, 2) * max(width, height)
    focal = camera.mean_focal * float(np.exp(rng.normal(0, deviation)))
    if unknown:
        focal, deviation = UNKNOWN_FOCAL * max(width, height), UNKNOWN_FOCAL_DEVIATION
    return Camera("SIMPLE_PINHOLE", (focal, *centre), width, height, deviation)


def random_threshold(rng: np.random.Generator) -> MaxError:
    """Draw a threshold that a user might pass, or "auto"."""
    return log_uniform(rng, *FIXED_ERRORS_PX) if rng.random() < FIXED_ERRORS else "auto"


def with_noise(pair: Pair, rng: np.random.Generator) -> Pair:
    """Add heavy-tailed noise to the points of some pairs, as from other detectors."""
    if rng.random() >= NOISY:
        return pair
    scale = log_uniform(rng, *NOISES_PX)
    moved1, moved2 = (p + scale * rng.standard_t(NOISE_TAILS, p.shape) for p in (pair.points1, pair.points2))
    return replace(pair, points1=moved1, points2=moved2)


def with_second_motion(pair: Pair, rng: np.random.Generator) -> Pair:
    """Move some wrong matches of one place together, like those of a moving object or a repeated pattern.

    They keep their positions in image 1 and their scores.
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
    """Augment a pair at random: images exchanged, fewer matches, a second motion, or other scores."""
    if rng.random() < SECOND_MOTIONS:
        pair = with_second_motion(pair, rng)
    if pair.R is not None and pair.t is not None and rng.random() < 0.5:
        pair = pair.swapped()
    if rng.random() < SUBSETS and len(pair.points1) > SMALLEST_SUBSET:
        pair = thin_out(pair, int(np.exp(rng.uniform(np.log(SMALLEST_SUBSET), np.log(len(pair.points1))))), rng)
    return with_other_scores(pair, rng)


def with_other_scores(matched: Matched, rng: np.random.Generator) -> Matched:
    """Remove the scores of a pair or query, or convert them to confidences, at random."""
    chance = rng.random()
    if chance < DROPPED_SCORES:
        return replace(matched, scores=None)
    if chance < DROPPED_SCORES + CONVERTED_SCORES and matched.scores is not None:
        return replace(matched, scores=as_confidences(matched.scores, matched.score_kind, rng), score_kind="confidence")
    return matched


def as_confidences(scores: Array, kind: ScoreKind, rng: np.random.Generator) -> Array:
    """Convert scores (n,) to confidences of a random calibration. Matchers agree only that more is better."""
    better = 1 - scores if kind == "ratio" else scores
    steepness, middle = rng.uniform(2, 15), rng.uniform(0.05, 0.6)
    return np.asarray(1 / (1 + np.exp(-steepness * (better - middle))))


def thin_out(pair: Pair, size: int, rng: np.random.Generator) -> Pair:
    """Return the pair with up to `size` of its matches, chosen at random."""
    return pair.take(rng.permutation(len(pair.points1))[:size])


def filtered(pair: Pair, rng: np.random.Generator) -> Pair:
    """Keep the matches that a filter may keep, often few: those of the best scores, or random ones without scores."""
    size = int(log_uniform(rng, FEWEST_LEFT, max(len(pair.points1), FEWEST_LEFT + 1)))
    if pair.scores is None:
        return thin_out(pair, size, rng)
    left = pair.take(MatchInfo(pair.scores, pair.score_kind).order()[:size])
    return replace(left, scores=None) if rng.random() < SCORES_LOST else left


class PairSource:
    """A source of pairs: real ones, read once, and synthetic ones, created on demand.

    The weight of a scene is the square root of its number of pairs, so that large scenes dominate without displacing
    small ones.
    """

    def __init__(self, pairs: Sequence[Pair], synthetic_share: float, augment: Augment = augment) -> None:
        self.pairs = list(pairs)
        self.augment = augment
        self.synthetic_share = synthetic_share if self.pairs else 1.0
        self._chances = scene_chances([pair.scene for pair in self.pairs])

    def balanced(self) -> PairSource:
        """Return the same source with equal weight for every folder, because the confidence must suit all matchers."""
        source = copy(self)
        source._chances = scene_chances([pair.scene for pair in self.pairs], balanced=True)
        return source

    def draw(self, rng: np.random.Generator) -> Pair:
        """Draw an augmented pair with enough right matches."""
        while True:
            if rng.random() < self.synthetic_share:
                made = synthetic_pair(rng)
            else:
                made = self.augment(self.pairs[int(np.searchsorted(self._chances, rng.random()))], rng)
            if made.right_matches().sum() >= MIN_INLIERS:
                return made


def scene_chances(scenes: Sequence[str], *, balanced: bool = False) -> Array:
    """Return cumulative probabilities (n,) of items. The weight of a scene is the square root of its size.

    Args:
        scenes: (n,) scene names of the items. They begin with the name of a folder, as in `read_pairs`.
        balanced: whether all folders have equal weight.
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
    """Create a realistic synthetic pair, augmented."""
    pair = Pair.from_synthetic(random_pair(rng))
    return replace(pair, scores=None) if rng.random() < DROPPED_SCORES else pair


def with_filter(pair: Pair, match_filter: MatchFilter, *, as_paper: bool = False) -> Pair:
    """Add the output of a filter to the features of a pair, in the paper's form or in ours."""
    filtered = match_filter.judge(pair.points1, pair.points2, pair.scores, pair.score_kind)
    found = filtered.as_paper_features(pair.points1, pair.points2) if as_paper else filtered.as_features
    own = np.empty((len(found), 0)) if pair.features is None else pair.features
    return replace(pair, features=np.concatenate([own, found], axis=1))


def without_geometry(pair: Pair, rng: np.random.Generator) -> Pair:
    """Match the points of a pair at random, so that no model explains the matches."""
    return replace(pair, points2=rng.permutation(pair.points2), R=None, t=None)


def read_pairs(folders: Sequence[Path]) -> list[Pair]:
    """Read all pairs of folders of scenes. Scene names include the folder."""
    return [
        replace(pair, scene=f"{folder.parent.name}/{folder.name}/{pair.scene}")
        for folder in folders
        for pair in read_ransac_tutorial(folder)
    ]


def read_data(
    recipe: Recipe, vary: Callable[[Pair, np.random.Generator], Pair]
) -> tuple[PairSource, list[Pair], list[Pair]]:
    """Read training, validation and unrelated pairs of a recipe. Without real validation pairs, use synthetic ones."""
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
