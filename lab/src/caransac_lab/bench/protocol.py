"""The rules: input of every method, treatment of its answer, and measurement of its error."""

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

POLISH_PX = 1.0  # distance of matches in the final refinement of methods without one; also its loss scale
NEAR_PX = 2.0  # distance of the matches that select one of the poses of a matrix


@dataclass(frozen=True)
class BenchMethod:
    """A row of a table: an estimator, optionally behind its own filter.

    Attributes:
        estimator_name: name of the estimator, so that a method can be sent to other processes.
        filter: filter of its matches; None passes all matches with their scores.
        label: name in tables.
    """

    estimator_name: str
    filter: BenchFilter | None
    label: str

    @property
    def estimator(self) -> Estimator:
        """The estimator."""
        return ESTIMATORS[self.estimator_name]


@dataclass(frozen=True)
class Job:
    """A method with everything that its outcome on a pair depends on, except the pair.

    Attributes:
        method: method to run.
        problem: problem to solve.
        settings: settings of the run.
        timed: whether this run is only for measuring time.
    """

    method: BenchMethod
    problem: ProblemName
    settings: RunSettings
    timed: bool = False

    def key(self, dataset: str, scene: str, pair: str) -> tuple[str, ...]:
        """Return the key of its outcome in a resume file."""
        s = self.settings
        filtered = self.method.filter.name if self.method.filter else ""
        threshold = s.max_error_px if s.max_error_px == "auto" else f"{s.max_error_px:g}"
        weights = (s.weights,) if self.method.estimator.wants_weights else ()
        told = (threshold, str(s.iterations), str(s.seed), filtered, "timed" if self.timed else "", *weights)
        return (dataset, scene, pair, self.problem, self.method.label, *told)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a method on a pair.

    Attributes:
        status: "found", "failed" (no answer), or "crashed" (it raised an error or its process died).
        rotation_deg: rotation error, 180 without an answer.
        translation_deg: error of the translation direction, 180 without an answer.
        inlier_ratio: share of right matches of the pair, before any filter.
        num_matches: number of matches of the pair, before any filter.
        iterations: number of hypotheses, if the library reports it.
        ms: wall-clock milliseconds of filter, estimation and refinement; meaningful only for a timed run.
        parts_ms: breakdown of the milliseconds of a timed run; see `bench.breakdown`.
        confidence: probability that the pose is right to five degrees, if the method reports it.
        reliability: rows (mean probability, frequency, count) over the pair's matches, if the method reports them.
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
        """Pose error: the larger of rotation and translation error, including the sign of the translation."""
        return max(self.rotation_deg, self.translation_deg)

    @property
    def folded_error_deg(self) -> float:
        """Pose error that ignores the sign of the translation. Failures still count 180."""
        if self.status != "found":
            return FAILURE_DEG
        return max(self.rotation_deg, min(self.translation_deg, 180 - self.translation_deg))

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome for JSON."""
        return asdict(self)


def run_job(job: Job, pair: Pair) -> Outcome:
    """Run a method on a pair of undistorted points with known truth, and measure the error of its answer."""
    assert pair.R is not None and pair.t is not None
    right = pair.right_matches()
    outcome = Outcome(status="failed", inlier_ratio=float(right.mean()) if len(right) else 0.0, num_matches=len(right))
    started = time.perf_counter()
    try:
        found = estimate(job, pair)
    except Exception as error:  # a peer may raise anything, which counts as its failure
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
    """Return `Outcome.reliability`; None behind a filter, because the other matches have no probability."""
    if found.probabilities is None or job.method.filter:
        return None
    bins: list[list[float]] = calibration_bins(found.probabilities, right).tolist()
    return bins


def estimate(job: Job, pair: Pair) -> Answer | None:
    """Run a method on a pair, and refine its answer if it does not do so itself: a pose for E, a matrix for F."""
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
    """Refine a pose on its inliers by Levenberg-Marquardt (Sampson distance, Cauchy loss), if there are enough."""
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    return split_pose(polish(problem, join_pose(pose[0], pose[1] / np.linalg.norm(pose[1]))))


def polish_fundamental(F: Array, pair: Pair) -> Array:
    """Refine a fundamental matrix of pixels on its inliers, like `polish_pose`."""
    problem = Fundamental.from_pixels(pair.points1, pair.points2)
    return polish(problem, F)


def polish(problem: Problem, answer: Array) -> Array:
    """Refine a public model, (3, 4) or (3, 3), on its inliers. It is returned unchanged if there are too few."""
    model = problem.from_public(answer)
    max_error = POLISH_PX * problem.pixel
    inliers = problem.inliers(model, max_error)
    if inliers.sum() <= problem.sample_size:
        return answer
    refined = problem.refine(model[None], RefineOptions(loss_scale=max_error), inliers.astype(float))[0]
    return np.asarray(problem.public(refined[None])[0])


def pose_of_essential(E: Array | None, pair: Pair) -> tuple[Array, Array]:
    """Return the pose of an essential matrix that puts the nearby matches in front of both cameras."""
    assert E is not None
    return pose_of_fundamental(fundamental_from_essential(E, pair.camera1.K, pair.camera2.K), pair)


def pose_of_fundamental(F: Array | None, pair: Pair) -> tuple[Array, Array]:
    """Return the pose that a fundamental matrix of pixels implies with the true calibration."""
    assert F is not None
    near = sampson_sq(F, pair.points1, pair.points2) < NEAR_PX**2
    near = near if near.sum() >= 5 else np.ones_like(near)
    return pose_from_fundamental(F, pair.points1[near], pair.points2[near], pair.camera1, pair.camera2)


def reordered(pair: Pair, seed: int) -> Pair:
    """Return the pair with its matches in a random order."""
    order = np.random.default_rng(seed).permutation(len(pair.points1))
    return replace(pair.take(order), features=None)


def undistorted(pair: Pair) -> Pair:
    """Return the pair as seen by pinhole cameras of the same calibration, because most methods support no others."""
    points1, points2 = pair.camera1.undistort_pixels(pair.points1), pair.camera2.undistort_pixels(pair.points2)
    usable = np.isfinite(points1).all(axis=1) & np.isfinite(points2).all(axis=1)
    pinholes = replace(pair, camera1=pair.camera1.pinhole, camera2=pair.camera2.pinhole)
    return replace(pinholes, points1=points1, points2=points2).take(np.flatnonzero(usable))
