"""posebench: its relative_pose.py and homography.py, PoseLib's rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import h5py
import numpy as np

from caransac_lab.bench.studies.other_projects.project_data import AUC, BUILDINGS, FIELDS, Data, Row
from caransac_lab.datasets import Pair

FEW = 12  # pairs of 0 to 11 matches


def write_posebench(path: Path, pairs: list[Pair]) -> None:
    """Write pairs in posebench's layout."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for number, pair in enumerate(pairs):
            group = file.create_group(f"{number:04d}")
            group["x1"], group["x2"], group["R"], group["t"] = pair.points1, pair.points2, pair.R, pair.t
            for name, camera in (("camera1", pair.camera1), ("camera2", pair.camera2)):
                of = group.create_group(name)
                of.create_dataset("model", data=["PINHOLE"], dtype=h5py.string_dtype())
                of["width"], of["height"] = ([int(2 * c)] for c in camera.K[:2, 2])
                of["params"] = np.array(camera.intrinsics)


def run_posebench(folder: Path, data: Data) -> Iterator[Row]:
    """Run PoseLib's rows of its relative_pose.py and homography.py."""
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    sys.modules["tqdm"] = MagicMock(tqdm=lambda each, **_: each)
    sys.modules["absolute_pose"] = MagicMock()
    vars(np)["trapz"] = np.trapezoid  # numpy 2.4 removed this name
    buildings, fields = data.read_pairs(BUILDINGS), data.read_pairs(FIELDS, 2 * data.count)
    few = [pair.take(np.arange(number)) for number, pair in enumerate(buildings[:FEW])]
    relative, plane = "megadepth1500_sift", "barath_Alamo"  # names of two of its data sets, which our files replace
    cases = (
        ("relative_pose", relative, buildings, "E (poselib", "buildings"),
        ("relative_pose", relative, buildings, "F (poselib", "buildings"),
        ("relative_pose", relative, few, "E (poselib", "0 to 11 matches"),
        ("homography", plane, fields, "poselib", "fields from above"),
    )
    for module, name, pairs, method, on in cases:
        write_posebench(folder / "data" / module.split("_")[0] / f"{name}.h5", pairs)
        metrics, _ = import_module(module).main(dataset_filter=[name], method_filter=[method])
        ((label, figures),) = metrics[name].items()
        value = 100 * float(figures["AUC5"])
        row = {"script": f"posebench `{module}.py`, {label[0]}", "library": "PoseLib", "on": on, "pairs": len(pairs)}
        yield row | {"figure": AUC, "value": value}
