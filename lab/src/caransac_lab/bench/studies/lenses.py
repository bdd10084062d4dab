"""Poses of photographs with an unknown lens distortion: accuracy, error of k1, time.

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md), whose points have no distortion. They are
distorted by k1, as in COLMAP's SIMPLE_RADIAL, in both images. "known" gets the true camera with k1; "flat" gets the
true camera without it, as if it were exact; "lens" gets the same with a deviation of k1 of 0.1. "EXIF" gets a focal
length that is wrong by 4 %, with that deviation, and "EXIF and lens" gets both. "unknown" gets the image sizes.
"pooled" gets the camera that `estimate_camera` finds from all pairs of a scene and their sizes, or the same as
"unknown" if a scene has several cameras; its time excludes the pooling. PoseLib gets the same as "flat", and only the
matches with a ratio below 0.85, best first. 1024 hypotheses, one thread; a failure counts 180 degrees. Means over
scenes.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Camera, Options
from caransac.geometry import Array, pose_error_deg
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.filters import ratio_filter
from caransac_lab.bench.protocol import BenchMethod, Job, run_job
from caransac_lab.bench.publication import Content, data_name, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.bench.studies.focal import SAME_FOCAL, View, views
from caransac_lab.metrics import FAILURE_DEG, auc

NAME = "lenses"
K1S, QUICK_K1S = (0.0, -0.02, -0.05, -0.1, -0.2, 0.05), (0.0, -0.1)
DOUBT, FOCAL_DOUBT = 0.1, 0.04  # stated deviations of k1 and of a focal length
OPTIONS = Options(early_stop=False)
POSELIB = Job(BenchMethod("PoseLib PROSAC", ratio_filter(0.85), "PoseLib"), "E", RunSettings(max_error_px=1.0))


@dataclass(frozen=True)
class Answer:
    """Answer of a method."""

    error_deg: float
    k1: float | None = None


Run = Callable[[View, float], Answer]


def bent(view: View, k1: float) -> View:
    """Return the pair as seen through a lens with k1."""
    points = (
        bend(points, camera, k1)
        for points, camera in ((view.pair.points1, view.pair.camera1), (view.pair.points2, view.pair.camera2))
    )
    points1, points2 = points
    return replace(view, pair=replace(view.pair, points1=points1, points2=points2))


def bend(points: Array, camera: Camera, k1: float) -> Array:
    """Move pixels (n, 2) of a pinhole camera to their positions through a lens with k1."""
    rays = camera.pixels_to_rays(points)
    rays = rays * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True))
    return np.asarray(rays * (camera.fx, camera.fy) + camera.K[:2, 2])


def estimate(view: View, cameras: list[Camera | None], same: bool | None, **sizes: Any) -> Answer:
    """Estimate our pose, and k1 of camera 1 if it is estimated."""
    pair, told = view.pair, {"camera1": cameras[0], "camera2": cameras[1], "same_camera": same, "options": OPTIONS}
    found = caransac.estimate_relative_pose(**pair.match_arguments(), **told, **sizes)
    if not found.success:
        return Answer(FAILURE_DEG)
    camera = found.camera1
    k1 = camera.params[3] if camera.model == "SIMPLE_RADIAL" else None
    return Answer(pose_error_deg(found.R, found.t, pair.R, pair.t), k1)


def without_k1(view: View, factor: float = 1.0, **deviations: float) -> list[Camera | None]:
    """Return the cameras without k1, with focal lengths wrong by a factor and with stated deviations."""
    cameras: list[Camera | None] = []
    for camera, (width, height) in ((view.pair.camera1, view.size1), (view.pair.camera2, view.size2)):
        K = camera.K
        K[[0, 1], [0, 1]] *= factor
        cameras.append(Camera.from_matrix(K, width=width, height=height, **deviations))
    return cameras


def known(view: View, k1: float) -> list[Camera | None]:
    """Return the true cameras."""
    return [
        Camera("SIMPLE_RADIAL", (camera.fx, *camera.K[:2, 2], k1), width, height)
        for camera, (width, height) in ((view.pair.camera1, view.size1), (view.pair.camera2, view.size2))
    ]


def pooled(given: list[View]) -> Run:
    """Return a row whose cameras are pooled over the distorted pairs of each scene."""
    scenes = defaultdict(list)
    for view in given:
        scenes[view.pair.scene].append(view)
    cameras = {scene: pooled_camera(members) for scene, members in scenes.items()}

    def run(view: View, _: float) -> Answer:
        camera = cameras[view.pair.scene]
        return estimate(view, [camera, camera], view.same, **(view.sizes if camera is None else {}))

    return run


def pooled_camera(members: list[View]) -> Camera | None:
    """Return the common camera of pairs, pooled over them; None if they have several."""
    sizes = {size for view in members for size in (view.size1, view.size2)}
    focals = [camera.fx for view in members for camera in (view.pair.camera1, view.pair.camera2)]
    if len(sizes) > 1 or max(focals) > (1 + SAME_FOCAL) * min(focals):
        return None
    pairs = [view.pair.match_arguments() for view in members]
    return caransac.estimate_camera(pairs, sizes.pop(), options=OPTIONS, workers=1).camera


def methods() -> dict[str, Run | None]:
    """Return all rows; None for the row that is `pooled`."""
    lens, focal = {"distortion_deviation": DOUBT}, {"focal_deviation": FOCAL_DOUBT}

    def off(view: View) -> float:
        return float(np.exp(FOCAL_DOUBT * view.sign))

    return {
        "known": lambda v, k1: estimate(v, known(v, k1), None),
        "flat": lambda v, _: estimate(v, without_k1(v), None),
        "lens": lambda v, _: estimate(v, without_k1(v, **lens), v.same),
        "EXIF": lambda v, _: estimate(v, without_k1(v, off(v), **focal), v.same),
        "EXIF and lens": lambda v, _: estimate(v, without_k1(v, off(v), **focal, **lens), v.same),
        "unknown": lambda v, _: estimate(v, [None, None], v.same, **v.sizes),
        "pooled": None,
        "PoseLib": lambda v, _: Answer(run_job(POSELIB, v.pair).error_deg),
    }


def measure(pairs: list[View], run: Run | None, k1: float) -> dict[str, Any]:
    """Return the figures of a row at one k1; `run` is None for cameras that are `pooled`."""
    errors, off, times = defaultdict(list), [], []
    given = [bent(view, k1) for view in pairs]
    run = pooled(given) if run is None else run
    for view in given:
        started = time.process_time()
        answer = run(view, k1)
        times.append(time.process_time() - started)
        errors[view.pair.scene].append(answer.error_deg)
        if answer.k1 is not None:
            off.append(abs(answer.k1 - k1))
    return {
        "AUC5": float(np.mean([auc(each, 5.0) for each in errors.values()])),
        "AUC1": float(np.mean([auc(each, 1.0) for each in errors.values()])),
        "k1_error": float(np.median(off)) if off else None,
        "ms": 1e3 * float(np.median(times)),
    }


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    text = "# Lenses with unknown distortion\n\n`caransac-lab study lenses --help` explains the rows. "
    text += (
        "AUC@5 / AUC@1, in brackets the median error of k1 if it is estimated; the last column is the median time.\n"
    )
    for name, found in content["tables"].items():
        k1s = list(next(iter(found["rows"].values())))
        lines = [
            [
                in_words(NAME, label),
                *(cell_text(row[k1]) for k1 in k1s),
                f"{np.median([row[k1]['ms'] for k1 in k1s]):.1f}",
            ]
            for label, row in found["rows"].items()
        ]
        header = ["", *(f"k1 = {k1}" for k1 in k1s), "ms"]
        text += f"\n## {name}, {found['pairs']} pairs\n\n{table(header, lines)}"
    return text


def cell_text(cell: dict[str, Any]) -> str:
    """Format the figures of a cell."""
    error = "" if cell["k1_error"] is None else f" ({cell['k1_error']:.3f})"
    return f"{cell['AUC5']:.1f} / {cell['AUC1']:.1f}{error}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")

    parser.add_argument("--max-pairs", type=int, default=15, metavar="N", help="pairs per scene (default: %(default)s)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    tables = dict[str, Any]()
    for folder in arguments.folders:
        pairs = list(views(folder, 1 if arguments.quick else arguments.max_pairs))
        rows = tables[data_name(folder)] = {"pairs": len(pairs), "rows": {}}
        for label, run in methods().items():
            found = {f"{k1:g}": measure(pairs, run, k1) for k1 in (QUICK_K1S if arguments.quick else K1S)}
            rows["rows"][label] = found
            print(data_name(folder), label, *map(cell_text, found.values()), sep="  ", flush=True)
    return {"tables": tables}
