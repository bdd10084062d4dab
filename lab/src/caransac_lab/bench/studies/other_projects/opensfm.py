"""OpenSfM: its robust matching; its relative pose is compiled code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

from caransac import pose_from_fundamental
from caransac_lab.bench.studies.other_projects.project_data import BUILDINGS, Data, Row, pose_error, pose_row
from caransac_lab.bench.studies.other_projects.stand_ins import open_package, stand_in
from caransac_lab.metrics import FAILURE_DEG


def run_opensfm(folder: Path, data: Data) -> Iterator[Row]:
    """Run its robust matching. Its relative pose is compiled code and cannot be replaced."""
    stand_in("joblib")
    package = open_package("opensfm", folder / "opensfm")
    for name in ("feature_loader", "log", "multiview", "pairs_selection", "pyfeatures", "pygeometry", "dataset_base"):
        stand_in_for = MagicMock()
        sys.modules[f"opensfm.{name}"] = stand_in_for
        setattr(package, name, stand_in_for)
    match = import_module("opensfm.matching").robust_match_fundamental
    errors = []
    for pair in data.read_pairs(BUILDINGS):
        rows = np.repeat(np.arange(len(pair.points1))[:, None], 2, axis=1)
        F, inliers = match(pair.points1, pair.points2, rows, {"robust_matching_threshold": 1.5})
        if F is None or len(inliers) < 5:
            errors.append(FAILURE_DEG)
            continue
        points = pair.points1[inliers[:, 0]], pair.points2[inliers[:, 1]]
        errors.append(pose_error(pair, *pose_from_fundamental(F, *points, pair.camera1, pair.camera2)))
    yield pose_row("OpenSfM `robust_match_fundamental`", "OpenCV", "buildings", errors)
