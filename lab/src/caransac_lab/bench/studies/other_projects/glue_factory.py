"""glue-factory: its robust estimators of relative poses and homographies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from caransac.geometry import Array
from caransac_lab.bench.studies.other_projects.project_data import (
    BUILDINGS,
    Data,
    Row,
    corner_error,
    pose_error,
    pose_row,
)
from caransac_lab.bench.studies.other_projects.stand_ins import open_package


def run_glue_factory(folder: Path, data: Data) -> Iterator[Row]:
    """Run its robust estimators of relative poses and homographies."""
    import torch

    inner = folder / "gluefactory"
    for part in ("", ".geometry", ".robust_estimators", ".utils"):
        package = open_package(f"gluefactory{part}", inner / part[1:])
        if part == ".robust_estimators":
            exec((inner / "robust_estimators" / "__init__.py").read_text(), vars(package))
    load = vars(sys.modules["gluefactory.robust_estimators"])["load_estimator"]
    camera_class = import_module("gluefactory.geometry.wrappers").Camera

    def tensor(points: Array) -> Any:
        return torch.tensor(points, dtype=torch.float32)

    for name, library in (("opencv", "OpenCV"), ("poselib", "PoseLib")):
        estimator, errors = load("relative_pose", name)({"name": name, "ransac_th": 1.0}), []
        for pair in data.read_pairs(BUILDINGS):
            given = {"m_kpts0": tensor(pair.points1), "m_kpts1": tensor(pair.points2)}
            for number, camera in enumerate((pair.camera1, pair.camera2)):
                width, height = (int(2 * c) for c in camera.K[:2, 2])
                described = {"model": "PINHOLE", "width": width, "height": height, "params": list(camera.intrinsics)}
                given[f"camera{number}"] = camera_class.from_colmap(described).float()
            pose = estimator(given)["M_0to1"]
            errors.append(pose_error(pair, pose.R.double().numpy(), pose.t.double().numpy()))
        yield pose_row(f"glue-factory `relative_pose/{name}`", library, "buildings", errors)
    for name, library in (("opencv", "OpenCV"), ("poselib", "PoseLib")):
        estimator, errors = load("homography", name)({"name": name, "ransac_th": 3.0}), []
        for points1, points2, H, size in data.read_planes():
            found = estimator({"m_kpts0": tensor(points1), "m_kpts1": tensor(points2)})["M_0to1"]
            errors.append(corner_error(found.double().numpy(), H, size))
        yield pose_row(f"glue-factory `homography/{name}`", library, "planes, pixels", errors)
