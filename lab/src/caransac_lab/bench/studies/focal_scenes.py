"""Focal lengths pooled over the pairs of real scenes, and poses estimated with them.

Each DIR has scenes of one camera each, in the layout of the RANSAC Tutorial 2020 (docs/formats.md). The focal length of
every scene is pooled over its pairs from only the image sizes; `sizes.json` in DIR lists the sizes of scenes whose
principal point is not the image centre. Poses are then estimated with the true cameras ("exact"), without cameras
("unknown"), and with the pooled focal length, its deviation and the image centre ("pooled"). If pooling finds no focal
length, the last two are the same. 1024 hypotheses; a failure counts 180 degrees.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from caransac import Camera, CameraEstimate, Options, estimate_camera, estimate_relative_pose
from caransac.geometry import pose_error_deg
from caransac_lab.bench.publication import Content, data_name, table
from caransac_lab.bench.studies.focal import View, views
from caransac_lab.metrics import FAILURE_DEG, auc

NAME = "focal_scenes"
OPTIONS = Options(early_stop=False)
KINDS = ("unknown", "pooled", "exact")
Size = tuple[int, int]


def read_scenes(folder: Path, max_pairs: int) -> dict[str, list[View]]:
    """Read the pairs of every scene with a single camera."""
    scenes = defaultdict(list)
    for view in views(folder, max_pairs, best_first=False):
        scenes[view.pair.scene].append(view)
    return scenes


def pool(pairs: list[View]) -> CameraEstimate:
    """Pool the focal length of a scene."""
    told = [view.pair.match_arguments() | view.sizes for view in pairs]
    return estimate_camera(told, pairs[0].size1, options=OPTIONS)


def assumed(found: CameraEstimate, size: Size) -> Camera:
    """Return the pooled camera for an image that may be in portrait or landscape format."""
    width, height = size
    params = (found.camera.fx, (width - 1) / 2, (height - 1) / 2)
    return Camera("SIMPLE_PINHOLE", params, width, height, found.camera.focal_deviation)


def pose_error(view: View, camera1: Camera | None, camera2: Camera | None) -> float:
    """Return the pose error of a pair in degrees, with cameras or with only the image sizes."""
    told = {"camera1": camera1, "camera2": camera2, "same_camera": True, "options": OPTIONS}
    result = estimate_relative_pose(**view.pair.match_arguments(), **view.sizes, **told)
    return pose_error_deg(result.R, result.t, view.pair.R, view.pair.t) if result.success else FAILURE_DEG


def measure(pairs: list[View]) -> dict[str, Any]:
    """Return the figures of a scene."""
    started = time.perf_counter()
    found = pool(pairs)
    row: dict[str, Any] = {
        "pairs": found.num_pairs,
        "informative": found.num_informative,
        "known": found.known,
        "reason": found.reason,
        "focal_error_percent": found.focal_px and round(100 * (found.focal_px / pairs[0].pair.camera1.fx - 1), 2),
        "deviation_percent": found.deviation and round(100 * found.deviation, 2),
        "seconds": round(time.perf_counter() - started, 1),
    }
    errors = defaultdict(list)
    for view in pairs:
        errors["exact"].append(pose_error(view, view.pair.camera1, view.pair.camera2))
        errors["unknown"].append(pose_error(view, None, None))
        errors["pooled"].append(pose_error(view, assumed(found, view.size1), assumed(found, view.size2)))
    for name, each in errors.items():
        row |= {f"{name}_AUC5": round(auc(each, 5.0), 1), f"{name}_AUC1": round(auc(each, 1.0), 1)}
    return row


def describe(scene: str, row: dict[str, Any]) -> list[str]:
    """Format a line of the table. The mean has neither pairs nor a focal length."""
    areas = [f"{row[f'{kind}_AUC5']:.1f} / {row[f'{kind}_AUC1']:.1f}" for kind in KINDS]
    if "pairs" not in row:
        return [scene, "", "", *areas]
    focal = f"{row['focal_error_percent']:+.1f} ± {row['deviation_percent']:.1f} %" if row["known"] else "unknown"
    return [scene, f"{row['informative']} of {row['pairs']}", focal, *areas]


def as_markdown(content: dict[str, Any]) -> str:
    """Format the table."""
    lines = (
        describe(f"{name}, {scene}", row) for name, rows in content["tables"].items() for scene, row in rows.items()
    )
    text = "# Focal lengths of real scenes, pooled over their pairs\n\n"
    text += "`caransac-lab study focal_scenes --help` describes the runs; the last three columns are AUC@5 / AUC@1.\n\n"
    return text + table(["scene", "pairs that determine it", "focal error", "unknown", "pooled", "exact"], lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")

    parser.add_argument(
        "--max-pairs", type=int, default=120, metavar="N", help="pairs per scene (default: %(default)s)"
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    tables = dict[str, Any]()
    for folder in arguments.folders:
        rows = tables[data_name(folder)] = {}
        for scene, pairs in read_scenes(folder, 2 if arguments.quick else arguments.max_pairs).items():
            rows[scene] = measure(pairs)
            print(*describe(f"{data_name(folder)}, {scene}", rows[scene]), sep="  ", flush=True)
        keys = [f"{kind}_AUC{limit}" for kind in KINDS for limit in (5, 1)]
        rows["mean"] = {key: round(float(np.mean([row[key] for row in rows.values()])), 1) for key in keys}
    return {"tables": tables}
