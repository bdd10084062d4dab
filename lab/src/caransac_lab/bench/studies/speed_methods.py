"""Methods that run on the real pairs of speed.py, ours and the peers, and their stopping rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from caransac.geometry import Array, essential_from_pose, fundamental_from_essential, sampson_sq
from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.contract import (
    ADAPTIVE_ITERATIONS,
    ADAPTIVE_SUCCESS_PROBABILITY,
    Answer,
    ProblemName,
    RunSettings,
)
from caransac_lab.bench.filters import ratio_filter
from caransac_lab.bench.protocol import NEAR_PX, POLISH_PX, BenchMethod, Job
from caransac_lab.datasets import Pair

FULL, DEFAULT, POSELIB, USAC = "CA-RANSAC 4x256", "CA-RANSAC", "PoseLib PROSAC 1024", "OpenCV USAC_DEFAULT"
USAC_1024 = f"{USAC} 1024"
USAC_REFINED = f"{USAC} + PoseLib's LM"


@dataclass(frozen=True, kw_only=True)
class Stopping(RunSettings):
    """A method's own stopping rule, with other limits than in the benchmark.

    Attributes:
        most: maximum number of iterations.
        certainty: success probability at which to stop.
    """

    most: int = ADAPTIVE_ITERATIONS
    certainty: float = ADAPTIVE_SUCCESS_PROBABILITY

    @property
    def limits(self) -> tuple[int | None, int]:
        """Minimum (None for the library's own) and maximum number of iterations."""
        return None, self.most

    @property
    def success_probability(self) -> float:
        """Success probability at which to stop."""
        return self.certainty


def refine_elsewhere(pair: Pair, problem: ProblemName, settings: RunSettings) -> Answer | None:
    """Run USAC_DEFAULT like a program without us: OpenCV extracts the pose from E, PoseLib refines it on inliers."""
    import cv2
    import poselib

    found = ESTIMATORS[USAC].run(pair, problem, settings)
    if found is None or found.matrix is None:
        return None
    told = {"loss_type": "CAUCHY", "loss_scale": POLISH_PX}
    if problem == "F":
        near = near_points(found.matrix, pair, POLISH_PX)
        F = found.matrix / np.linalg.norm(found.matrix)
        return Answer(matrix=np.asarray(poselib.refine_fundamental(pair.points1[near], pair.points2[near], F, told)[0]))
    K1, K2 = pair.camera1.K, pair.camera2.K
    near = near_points(fundamental_from_essential(found.matrix, K1, K2), pair, NEAR_PX)
    rays = pair.camera1.pixels_to_rays(pair.points1[near]), pair.camera2.pixels_to_rays(pair.points2[near])
    pose = poselib.CameraPose()
    _, pose.R, t, _ = cv2.recoverPose(found.matrix, *rays, np.eye(3))
    pose.t = t.ravel()
    near = near_points(fundamental_from_essential(essential_from_pose(pose.R, pose.t), K1, K2), pair, POLISH_PX)
    cameras = pair.camera1.to_dict(), pair.camera2.to_dict()
    pose, _ = poselib.refine_relative_pose(pair.points1[near], pair.points2[near], pose, *cameras, told)
    return Answer(pose=(np.asarray(pose.R), np.asarray(pose.t)))


def near_points(F: Array, pair: Pair, max_error_px: float) -> Array:
    """Return which matches (n,) are near a fundamental matrix; all if too few are near for a refinement."""
    near = sampson_sq(F, pair.points1, pair.points2) < max_error_px**2
    return near if near.sum() > 8 else np.ones_like(near)


# Only for this process: the benchmark itself refines all answers in the same way.
REFINED = replace(ESTIMATORS[USAC], name=USAC_REFINED, run=refine_elsewhere, refines=True)
# Label, estimator, iterations (None: its own stopping rule). Labels that differ only in their last number are one
# curve.
CURVE: tuple[tuple[str, str, int | None], ...] = (
    ("LM-LO 64", "LM-LO", 64),
    ("LM-LO 1024", "LM-LO", 1024),
    ("LM-LO", "LM-LO", None),
    ("CA-RANSAC 1x64", "CA-RANSAC", 64),
    ("CA-RANSAC 2x128", "CA-RANSAC 2x128", 256),
    (DEFAULT, "CA-RANSAC", None),
    (FULL, "CA-RANSAC", 1024),
    ("CA-RANSAC 8x256", "CA-RANSAC 8x256", 2048),
    *((f"PoseLib PROSAC {number}", "PoseLib PROSAC", number) for number in (64, 256, 1024, 10_240)),
    ("PoseLib 1024", "PoseLib", 1024),
    ("PoseLib", "PoseLib", None),
    ("PoseLib PROSAC", "PoseLib PROSAC", None),
    *((f"{USAC} {number}", USAC, number) for number in (64, 256)),
    (USAC_1024, USAC, None),
    (USAC_REFINED, USAC_REFINED, None),
    *((name, name, None) for name in (USAC, "OpenCV USAC_ACCURATE", "OpenCV USAC_MAGSAC", "OpenCV VSAC")),
    *((name, name, None) for name in ("MAGSAC++", "GC-RANSAC", "COLMAP", "SupeRANSAC")),
)
STOPPING = {
    USAC_1024: Stopping(most=1024, certainty=0.99999),
    USAC_REFINED: Stopping(most=1024, certainty=0.99999),
}
RATIOS = ((FULL, POSELIB), (FULL, "PoseLib 1024"), (DEFAULT, USAC_REFINED), (DEFAULT, USAC_1024), (DEFAULT, USAC))
IN_RATIOS = {label for pair in RATIOS for label in pair}


def make_jobs(problem: ProblemName) -> list[Job]:
    """Return the jobs for every real pair: the whole curve for poses, only those of the ratios for F."""
    ESTIMATORS.setdefault(USAC_REFINED, REFINED)  # no table of the benchmark shows it
    jobs = []
    for label, name, iterations in CURVE:
        estimator = ESTIMATORS[name]
        if estimator.missing or (problem == "F" and label not in IN_RATIOS):
            continue
        told = RunSettings(max_error_px=estimator.max_error_px, iterations=iterations)
        method = BenchMethod(name, ratio_filter(0.85) if estimator.filtered else None, label)
        jobs.append(Job(method, problem, STOPPING.get(label, told)))
    return jobs


def is_ours(label: str) -> bool:
    """Return True if a point of the curve is one of our methods."""
    return label.startswith(("CA-RANSAC", "LM-LO"))
