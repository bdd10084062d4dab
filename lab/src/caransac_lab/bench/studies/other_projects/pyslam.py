"""pySLAM: its two-view parts in Python."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

from caransac_lab.bench.studies.other_projects.project_data import BUILDINGS, DRIVE, Data, Row, pose_error, pose_row
from caransac_lab.bench.studies.other_projects.stand_ins import open_package, stand_in
from caransac_lab.metrics import FAILURE_DEG


def run_pyslam(folder: Path, data: Data) -> Iterator[Row]:
    """Run its two-view parts in Python."""
    inner = folder / "pyslam"
    open_package("pyslam", inner)
    open_package("pyslam.slam", inner / "slam", CameraUtils=None)
    open_package("pyslam.utilities", inner / "utilities")
    open_package("pyslam.utilities.serialization", inner, SerializableEnum=enum.Enum)
    sys.modules["numba"] = MagicMock(njit=lambda *given, **_: given[0] if given else lambda call: call)
    stand_in("open3d", "sim3solver", "pnpsolver", "scipy.spatial.transform")
    stand_in("pyslam.utilities.logging", "pyslam.utilities.geom_lie")
    module = import_module("pyslam.slam.pose_estimator")
    for scenes, on in ((BUILDINGS, "buildings"), (DRIVE, "a drive forward")):
        errors = []
        for pair in data.read_pairs(scenes):
            estimator = module.EssentialMatrixPoseEstimator2d2d(pair.camera1.K, pair.camera2.K)
            R, t, inliers = estimator.estimate({"kpts1": pair.points1, "kpts2": pair.points2})
            errors.append(pose_error(pair, R, t) if inliers else FAILURE_DEG)
        yield pose_row("pySLAM `EssentialMatrixPoseEstimator2d2d`", "OpenCV", on, errors)
    estimate, errors = import_module("pyslam.utilities.geom_2views").estimate_pose_ess_mat, []
    for pair in data.read_pairs(DRIVE):
        points = (pair.points1, pair.camera1), (pair.points2, pair.camera2)
        normalised = [(each - camera.K[:2, 2]) / camera.K[[0, 1], [0, 1]] for each, camera in points]
        pose = np.linalg.inv(estimate(*normalised)[0])
        errors.append(pose_error(pair, pose[:3, :3], pose[:3, 3]))
    yield pose_row("pySLAM `estimate_pose_ess_mat`", "OpenCV", "a drive forward", errors)
