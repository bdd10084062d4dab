"""The rules: what every method gets, what is done to its answer, and how its error is measured."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from caransac.api import pose_from_fundamental
from caransac.geometry import (
    Array,
    Floats,
    angle_between_deg,
    fundamental_from_essential,
    join_pose,
    rotation_angle_deg,
    sampson_sq,
    split_pose,
)
from caransac.kernels import RefineOptions
from caransac.robust.problems import Essential, Fundamental, Problem
from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.contract import Answer, Estimator, ProblemName, RunSettings
from caransac_lab.bench.filters import BenchFilter
from caransac_lab.datasets import Pair
from caransac_lab.metrics import FAILURE_DEG, calibration_bins

POLISH_PX = 1.0  # matches this near take part in the final refinement of methods that have none; its loss scale too
NEAR_PX = 2.0  # matches this near tell which of the poses of a matrix is meant


@dataclass(frozen=True)
class BenchMethod:
    """A row of a table: an estimator, perhaps behind a filter of its own.

    Attributes:
        estimator_name: what estimates, by its name, so that a method can travel to other processes.
        filter: what its matches pass first; None hands it all matches with their scores.
        label: its name in tables.
    """

    estimator_name: str
    filter: BenchFilter | None
    label: str

    @property
    def estimator(self) -> Estimator:
        """What estimates."""
        return ESTIMATORS[self.estimator_name]


@dataclass(frozen=True)
class Job:
    """One method on one pair: all that its outcome depends on, but for the pair.

    Attributes:
        method: what runs.
        problem: what it estimates.
        settings: what it is told.
        timed: whether this run is only for its time.
    """

    method: BenchMethod
    problem: ProblemName
    settings: RunSettings
    timed: bool = False

    def key(self, dataset: str, scene: str, pair: str) -> tuple[str, ...]:
        """What identifies its outcome in a resume file."""
        s = self.settings
        filtered = self.method.filter.name if self.method.filter else ""
        threshold = s.max_error_px if s.max_error_px == "auto" else f"{s.max_error_px:g}"
        weights = (s.weights,) if self.method.estimator.wants_weights else ()
        told = (threshold, str(s.iterations), str(s.seed), filtered, "timed" if self.timed else "", *weights)
        return (dataset, scene, pair, self.problem, self.method.label, *told)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a method did on a pair.

    Attributes:
        status: "found", "failed" (no answer), or "crashed" (it raised, or brought its process down).
        rotation_deg: rotation error, 180 without an answer.
        translation_deg: error of the translation's direction, 180 without an answer.
        inlier_ratio: share of right matches of the pair, before any filter.
        num_matches: of the pair, before any filter.
        iterations: hypotheses drawn, if the library tells.
        ms: wall-clock milliseconds of filter, estimation and refinement; meaningful only of a timed run.
        parts_ms: of a timed run, where the milliseconds went; see `bench.breakdown`.
        confidence: probability of a pose right to five degrees, if the method tells.
        reliability: rows (mean probability, frequency, count) over the pair's matches, if the method tells.
    """

    status: str
    rotation_deg: float = FAILURE_DEG
    translation_deg: float = FAILURE_DEG
    inlier_ratio: float = 0.0
    num_matches: int = 0
    iterations: int | None = None
    ms: float | None = None
    parts_ms: dict[str, float] | None = None
    confidence: float | None = None
    reliability: list[list[float]] | None = None

    @property
    def error_deg(self) -> float:
        """The pose error: the larger of the two, the sign of the translation counted."""
        return max(self.rotation_deg, self.translation_deg)

    @property
    def folded_error_deg(self) -> float:
        """The pose error with the sign of the translation ignored; failures still count 180."""
        if self.status != "found":
            return FAILURE_DEG
        return max(self.rotation_deg, min(self.translation_deg, 180 - self.translation_deg))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def run_job(job: Job, pair: Pair) -> Outcome:
    """Run a method on a pair of undistorted points with known truth, and measure the error of its answer."""
    assert pair.R is not None and pair.t is not None
    right = pair.right_matches()
    outcome = Outcome(status="failed", inlier_ratio=float(right.mean()) if len(right) else 0.0, num_matches=len(right))
    started = time.perf_counter()
    try:
        found = estimate(job, pair)
    except Exception as error:  # a peer may raise anything, and that is its failure, not ours
        if isinstance(error, ImportError) or job.method.estimator.module == "caransac":
            raise
        return replace(outcome, status="crashed")
    ms = 1e3 * (time.perf_counter() - started)
    if found is None:
        return replace(outcome, ms=ms)
    R, t = found.pose or pose_of_fundamental(found.matrix, pair)
    rotation, translation = rotation_angle_deg(R @ pair.R.T), angle_between_deg(t, pair.t)
    if not np.isfinite(rotation + translation):
        return replace(outcome, ms=ms)
    return replace(
        outcome,
        status="found",
        rotation_deg=rotation,
        translation_deg=translation,
        iterations=found.iterations,
        ms=ms,
        confidence=found.confidence,
        reliability=reliability(job, found, right),
    )


def reliability(job: Job, found: Answer, right: Floats) -> list[list[float]] | None:
    """See `Outcome.reliability`; a method behind a filter tells nothing of the matches that did not pass."""
    if found.probabilities is None or job.method.filter:
        return None
    bins: list[list[float]] = calibration_bins(found.probabilities, right).tolist()
    return bins


def estimate(job: Job, pair: Pair) -> Answer | None:
    """What a method finds on a pair, refined if it does not refine by itself: a pose for E, a matrix for F."""
    method, settings = job.method, job.settings
    given = method.filter.apply(pair) if method.filter else pair
    if method.estimator.seeding == "shuffle" and settings.seed:
        given = reordered(given, settings.seed)
    found = method.estimator.run(given, job.problem, settings)
    if found is None:
        return None
    if job.problem == "F":
        assert found.matrix is not None
        return found if method.estimator.refines else replace(found, matrix=polish_fundamental(found.matrix, given))
    pose = found.pose or pose_of_essential(found.matrix, given)
    return replace(found, pose=pose if method.estimator.refines else polish_pose(pose, given), matrix=None)


def polish_pose(pose: tuple[Array, Array], pair: Pair) -> tuple[Array, Array]:
    """Levenberg-Marquardt on the inliers of a pose: Sampson distance, Cauchy loss. As it was with too few of them."""
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    return split_pose(polish(problem, join_pose(pose[0], pose[1] / np.linalg.norm(pose[1]))))


def polish_fundamental(F: Array, pair: Pair) -> Array:
    """Levenberg-Marquardt on the inliers of a fundamental matrix of pixels, as `polish_pose`."""
    problem = Fundamental.from_pixels(pair.points1, pair.points2)
    return polish(problem, F)


def polish(problem: Problem, answer: Array) -> Array:
    """A model as users see it, (3, 4) or (3, 3), refined on its inliers; as it was with too few of them."""
    model = problem.from_public(answer)
    max_error = POLISH_PX * problem.pixel
    inliers = problem.inliers(model, max_error)
    if inliers.sum() <= problem.sample_size:
        return answer
    refined = problem.refine(model[None], RefineOptions(loss_scale=max_error), inliers.astype(float))[0]
    return np.asarray(problem.public(refined[None])[0])


def pose_of_essential(E: Array | None, pair: Pair) -> tuple[Array, Array]:
    """The pose of an essential matrix that puts the matches near it in front of both cameras."""
    assert E is not None
    return pose_of_fundamental(fundamental_from_essential(E, pair.camera1.K, pair.camera2.K), pair)


def pose_of_fundamental(F: Array | None, pair: Pair) -> tuple[Array, Array]:
    """The pose that a fundamental matrix of pixels implies, once the true calibration is known."""
    assert F is not None
    near = sampson_sq(F, pair.points1, pair.points2) < NEAR_PX**2
    near = near if near.sum() >= 5 else np.ones_like(near)
    return pose_from_fundamental(F, pair.points1[near], pair.points2[near], pair.camera1, pair.camera2)


def reordered(pair: Pair, seed: int) -> Pair:
    """The same matches in another order."""
    order = np.random.default_rng(seed).permutation(len(pair.points1))
    return replace(pair.take(order), features=None)


def undistorted(pair: Pair) -> Pair:
    """The pair as pinhole cameras of the same calibration would see it: most methods know no other."""
    points1, points2 = pair.camera1.undistort_pixels(pair.points1), pair.camera2.undistort_pixels(pair.points2)
    usable = np.isfinite(points1).all(axis=1) & np.isfinite(points2).all(axis=1)
    pinholes = replace(pair, camera1=pair.camera1.pinhole, camera2=pair.camera2.pinhole)
    return replace(pinholes, points1=points1, points2=points2).take(np.flatnonzero(usable))
