"""Peers for absolute poses. Each function takes a query, a number of hypotheses and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from caransac.geometry import Array
from caransac_lab.bench.contract import ADAPTIVE_SUCCESS_PROBABILITY
from caransac_lab.datasets import Query

Pose = tuple[Array, Array] | None
Run = Callable[[Query, int, int], Pose]  # (query, hypotheses, seed)

MAX_ERROR_PX = 2.0  # threshold of the peers: the best of 1, 2, 4 and 8 on training scenes
PEER_MAX_RATIO, FEWEST = 0.9, 20  # maximum ratio of the peers' matches, and their minimum number


def run_poselib(query: Query, iterations: int, seed: int) -> Pose:
    """Run PoseLib with PROSAC."""
    import poselib

    query = _best_first(query)
    settings = {"max_reproj_error": MAX_ERROR_PX, "progressive_sampling": True, "seed": seed}
    settings |= {"max_iterations": iterations, "min_iterations": iterations}
    settings |= {"success_prob": ADAPTIVE_SUCCESS_PROBABILITY}
    pose, info = poselib.estimate_absolute_pose(query.points2d, query.points3d, query.camera.to_dict(), settings, {})
    return (np.asarray(pose.R), np.asarray(pose.t)) if info["num_inliers"] > 3 else None


def run_opencv(query: Query, iterations: int, seed: int) -> Pose:  # noqa: ARG001  # its random numbers are fixed
    """Run OpenCV's P3P and refine the pose on its inliers."""
    import cv2

    query = _best_first(query)
    found, rvec, tvec, inliers = cv2.solvePnPRansac(
        query.points3d,
        query.points2d,
        query.camera.K,
        None,
        flags=cv2.SOLVEPNP_P3P,
        iterationsCount=iterations,
        reprojectionError=MAX_ERROR_PX,
        confidence=ADAPTIVE_SUCCESS_PROBABILITY,
    )
    if not found or inliers is None:
        return None
    kept = inliers.ravel()
    rvec, tvec = cv2.solvePnPRefineLM(query.points3d[kept], query.points2d[kept], query.camera.K, None, rvec, tvec)
    return np.asarray(cv2.Rodrigues(rvec)[0]), np.ravel(tvec)


def run_colmap(query: Query, iterations: int, seed: int) -> Pose:
    """Run COLMAP's LO-RANSAC with refinement."""
    import pycolmap

    query = _best_first(query)
    ransac: Any = {"max_error": MAX_ERROR_PX, "random_seed": seed}
    ransac |= {"max_num_trials": iterations, "min_num_trials": iterations}
    camera = pycolmap.Camera(**query.camera.to_dict())
    found = pycolmap.estimate_and_refine_absolute_pose(query.points2d, query.points3d, camera, {"ransac": ransac}, {})  # type: ignore[arg-type]  # dicts are taken
    if found is None:
        return None
    pose = found["cam_from_world"]
    return np.asarray(pose.rotation.matrix()), np.asarray(pose.translation)


PEERS: dict[str, Run] = {"PoseLib": run_poselib, "COLMAP": run_colmap, "OpenCV P3P and LM": run_opencv}


def _best_first(query: Query) -> Query:
    """Return the input of a peer: the matches that pass a ratio filter, the best first."""
    if query.scores is None:
        return query
    order = np.argsort(query.scores if query.score_kind == "ratio" else -query.scores, kind="stable")
    if query.score_kind == "ratio":
        order = order[: max(int((query.scores < PEER_MAX_RATIO).sum()), min(FEWEST, len(order)))]
    return replace(query, points2d=query.points2d[order], points3d=query.points3d[order], scores=query.scores[order])
