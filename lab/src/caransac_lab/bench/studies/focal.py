"""Poses with uncertain or unknown focal lengths: accuracy, focal error, time, calibration of the confidence.

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). Every method except "exact" gets the image
centre as principal point. "given P%" gets a focal length that is P per cent too long or too short (depending on the
pair's name), passed as exact. "uncertain P%" also gets that deviation; "unknown" gets only the image sizes. Fundamental
matrices become poses with the true cameras. "zoomed" rows enlarge the second image by 50 % around its centre and keep
the matches that stay inside. 1024 hypotheses, one thread; a failure counts 180 degrees. Figures are means over scenes.
PoseLib gets the matches with a ratio below 0.85, best first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import poselib

import caransac
from caransac import Camera, Options
from caransac.geometry import pose_error_deg
from caransac_lab.bench.publication import Content, data_name
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.metrics import FAILURE_DEG, auc, expected_calibration_error

NAME = "focal"
PERCENTS = (2, 5, 10, 20)
SAME_FOCAL = 0.01
ZOOM = 1.5
RATIO = 0.85
HYPOTHESES = 1024


@dataclass(frozen=True)
class View:
    """A pair in the form for the methods: sorted by ratio, with sizes, and whether one camera took both images."""

    pair: Pair
    size1: tuple[int, int]
    size2: tuple[int, int]
    same: bool
    sign: int

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the sizes as arguments of the estimators."""
        return {"image_size1": self.size1, "image_size2": self.size2}


@dataclass(frozen=True)
class Answer:
    """Answer of a method, with confidence and focal length if it reports them."""

    pose: tuple[Any, Any] | None
    focal: float | None = None
    confidence: float | None = None


def views(
    folder: Path, max_pairs: int | None, scenes: list[str] | None = None, *, best_first: bool = True
) -> Iterator[View]:
    """Yield the pairs of a data set, or of some of its scenes.

    The data set's `sizes.json` lists the image sizes of scenes whose principal point is not the image centre.
    """
    known = json.loads((folder / "sizes.json").read_text()) if (folder / "sizes.json").exists() else SIZES
    for pair in read_ransac_tutorial(folder, scenes=scenes, max_pairs=max_pairs):
        pair = pair.take(np.argsort(pair.scores, kind="stable")) if best_first else pair
        sizes = [
            known.get(pair.scene) or [round(2 * c + 1) for c in K[:2, 2]] for K in (pair.camera1.K, pair.camera2.K)
        ]
        same = abs(pair.camera1.fx / pair.camera2.fx - 1) < SAME_FOCAL
        yield View(pair, tuple(sizes[0]), tuple(sizes[1]), same, 1 if sum(map(ord, pair.name)) % 2 else -1)


SIZES = {"entry_p10": (1024, 683), "herz_jesus_p25": (1024, 683), "kitti_1": (1024, 309)}


def zoomed(view: View) -> View | None:
    """Return the pair with its second image enlarged, or None if too few matches remain."""
    middle = (np.array(view.size2) - 1) / 2
    points2 = (view.pair.points2 - middle) * ZOOM + middle
    inside = np.all((points2 >= 0) & (points2 <= np.array(view.size2) - 1), axis=1)
    if inside.sum() < 50:
        return None
    K = view.pair.camera2.K
    K[:2, :2] *= ZOOM
    K[:2, 2] = (K[:2, 2] - middle) * ZOOM + middle
    pair = replace(view.pair, points2=points2, camera2=Camera.from_matrix(K)).take(inside)
    return replace(view, pair=pair, same=False)


def assumed(view: View, percent: float, deviation: float) -> list[Camera]:
    """Return the cameras with wrong focal lengths, and the image centre as principal point."""
    factor = float(np.exp(view.sign * percent / 100))
    return [
        Camera("SIMPLE_PINHOLE", (camera.fx * factor, (w - 1) / 2, (h - 1) / 2), w, h, deviation)
        for camera, (w, h) in ((view.pair.camera1, view.size1), (view.pair.camera2, view.size2))
    ]


def common_arguments(view: View) -> dict[str, Any]:
    """Return the common arguments of all our calls."""
    return view.pair.match_arguments() | {"options": Options(early_stop=False)}


def pose_with(view: View, cameras: list[Camera], same: bool | None = None) -> Answer:
    """Estimate our pose with given cameras."""
    return pose(view, camera1=cameras[0], camera2=cameras[1], same_camera=same)


def unknown(view: View, same: bool | None) -> Answer:
    """Estimate our pose with only the sizes."""
    return pose(view, **view.sizes, same_camera=same)


def pose(view: View, **known: Any) -> Answer:
    """Estimate our pose with what is known about the cameras."""
    result = caransac.estimate_relative_pose(**common_arguments(view), **known)
    return Answer((result.R, result.t), result.camera1.fx, result.confidence) if result.success else Answer(None)


def fundamental(view: View, **sizes: Any) -> Answer:
    """Estimate our fundamental matrix, and return the pose that it implies with the true cameras."""
    result = caransac.estimate_fundamental(**common_arguments(view), **sizes)
    if not result.success:
        return Answer(None)
    points = view.pair.points1[result.inliers], view.pair.points2[result.inliers]
    implied = caransac.pose_from_fundamental(result.F, *points, view.pair.camera1, view.pair.camera2)
    return Answer(implied, confidence=result.confidence)


def poselib_shared(view: View) -> Answer:
    """Run PoseLib's estimator of one unknown focal length."""
    best = max(int((view.pair.scores < RATIO).sum()), min(20, len(view.pair.scores)))
    middles = [(np.array(size) - 1) / 2 for size in (view.size1, view.size2)]
    points = [p[:best] - m for p, m in zip((view.pair.points1, view.pair.points2), middles, strict=True)]
    limits = {"max_iterations": HYPOTHESES, "min_iterations": HYPOTHESES}
    told = {"max_epipolar_error": 1.0, "progressive_sampling": True} | limits
    found, _ = poselib.estimate_shared_focal_relative_pose(*points, np.zeros(2), told, {})
    focal = found.camera1.focal
    return Answer((found.pose.R, found.pose.t), focal() if callable(focal) else focal)


def methods() -> dict[str, Callable[[View], Answer]]:
    """Return all rows."""
    rows: dict[str, Callable[[View], Answer]] = {
        "exact": lambda v: pose_with(v, [v.pair.camera1, v.pair.camera2]),
    }
    for percent in PERCENTS:
        rows[f"given {percent}%"] = lambda v, p=percent: pose_with(v, assumed(v, p, 0.0))
        rows[f"uncertain {percent}%"] = lambda v, p=percent: pose_with(v, assumed(v, p, p / 100), v.same)
    rows |= {
        "unknown": lambda v: unknown(v, v.same),
        "unknown, camera undecided": lambda v: unknown(v, None),
        "PoseLib shared focal": poselib_shared,
        "F": lambda v: fundamental(v),
        "F with sizes": lambda v: fundamental(v, **v.sizes, same_camera=v.same),
        "F with sizes, camera undecided": lambda v: fundamental(v, **v.sizes),
    }
    return rows


def zoomed_rows() -> dict[str, Callable[[View], Answer]]:
    """Return the rows of pairs of different focal lengths."""
    return {
        "zoomed, F": lambda v: fundamental(v),
        "zoomed, F with sizes": lambda v: fundamental(v, **v.sizes, same_camera=False),
        "zoomed, F with sizes, camera undecided": lambda v: fundamental(v, **v.sizes),
        "zoomed, unknown": lambda v: unknown(v, False),
    }


def measure(pairs: list[View], run: Callable[[View], Answer]) -> dict[str, Any]:
    """Return the figures of one row."""
    errors: dict[str, list[float]] = defaultdict(list)
    focal, times, confidences, right = [], [], [], []
    for view in pairs:
        started = time.process_time()
        answer = run(view)
        times.append(time.process_time() - started)
        assert view.pair.R is not None and view.pair.t is not None
        error = FAILURE_DEG if answer.pose is None else pose_error_deg(*answer.pose, view.pair.R, view.pair.t)
        errors[view.pair.scene].append(error)
        if answer.focal is not None:
            focal.append(abs(np.log(max(answer.focal, 1.0) / view.pair.camera1.fx)))
        if answer.confidence is not None:
            confidences.append(answer.confidence)
            right.append(error < 5)
    row: dict[str, Any] = {
        "AUC5": float(np.mean([auc(each, 5.0) for each in errors.values()])),
        "AUC1": float(np.mean([auc(each, 1.0) for each in errors.values()])),
        "focal_error_percent": 100 * float(np.median(focal)) if focal else None,
        "ms": 1e3 * float(np.median(times)),
        "confidence_calibration_error": expected_calibration_error(confidences, right) if confidences else None,
        "scenes": {scene: auc(each, 5.0) for scene, each in errors.items()},
    }
    return row


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    head = "| | AUC@5 | AUC@1 | focal error, % | ms | calibration error, confidence |\n|---|---|---|---|---|---|\n"
    text = "# Uncertain and unknown focal lengths\n\n"
    text += (
        "Fundamental matrices become poses with the true cameras. `caransac-lab study focal --help` explains the rows. "
    )
    text += "Focal errors and processor times are medians; one thread.\n"
    for name, table in content["tables"].items():
        text += f"\n## {name}, {table['pairs']} pairs\n\n{head}"
        for label, row in table["rows"].items():
            focal, ece = row["focal_error_percent"], row["confidence_calibration_error"]
            cells = ["" if value is None else f"{value:.{digits}f}" for value, digits in ((focal, 1), (ece, 3))]
            figures = f"{row['AUC5']:.1f} | {row['AUC1']:.1f} | {cells[0]} | {row['ms']:.1f} | {cells[1]}"
            text += f"| {in_words(NAME, label)} | {figures} |\n"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")

    parser.add_argument("--max-pairs", type=int, default=None, metavar="N", help="pairs per scene (default: all)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    tables = dict[str, Any]()
    for folder in arguments.folders:
        name = data_name(folder)
        pairs = list(views(folder, 2 if arguments.quick else arguments.max_pairs))
        enlarged = [view for view in map(zoomed, pairs) if view is not None]
        rows = {label: measure(pairs, run) for label, run in methods().items()}
        rows |= {label: measure(enlarged, run) for label, run in zoomed_rows().items()}
        tables[name] = {"pairs": len(pairs), "rows": rows}
        print(name, flush=True)
    return {"tables": tables}
