"""Accuracy by threshold, image size and noise, and the automatic threshold.

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). Images are scaled by multiplying points and
cameras; then Gaussian noise in pixels of the scaled image is added to all points. Relative poses, one thread; a failure
counts 180 degrees; means over scenes. CA-RANSAC gets all matches with their ratios and stops by itself. The others get
the matches with a ratio below 0.85, best first, 1024 hypotheses, and the refinement of `caransac-lab bench`. They run
only at scale 1: at another scale, a threshold or noise equals its value divided by the scale.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import caransac
from caransac import Camera, Options
from caransac.geometry import pose_error_deg
from caransac.options import MaxError
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.filters import ratio_filter
from caransac_lab.bench.protocol import BenchMethod, Job, run_job
from caransac_lab.bench.publication import Content, data_name, table
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.metrics import FAILURE_DEG, auc

NAME = "thresholds"
THRESHOLDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SCALES, NOISES = (0.25, 1.0, 4.0), (0.0, 1.0, 2.0)
OURS, AUTO = "CA-RANSAC", "CA-RANSAC, auto"
PEERS = ("PoseLib PROSAC", "OpenCV USAC_DEFAULT", "OpenCV USAC_MAGSAC")
FIGURES = {"AUC5": 5.0, "AUC1": 1.0}  # degrees

Run = Callable[[Pair], float]


def changed(pair: Pair, scale: float, noise_px: float) -> Pair:
    """Return the pair in images of another size, with noise. A pair has the same noise in every row."""
    rng = np.random.default_rng(crc32(f"{pair.scene}/{pair.name}".encode()))
    points1, points2 = (scale * p + noise_px * rng.normal(size=p.shape) for p in (pair.points1, pair.points2))
    camera1, camera2 = (Camera.from_matrix(np.diag([scale, scale, 1]) @ c.K) for c in (pair.camera1, pair.camera2))
    return replace(pair, points1=points1, points2=points2, camera1=camera1, camera2=camera2)


def own_error(pair: Pair, max_error_px: MaxError) -> float:
    """Return the pose error of CA-RANSAC in degrees."""
    result = caransac.estimate_relative_pose(**pair.arguments(), options=Options(max_error_px=max_error_px))
    if result.R is None or result.t is None or pair.R is None or pair.t is None:
        return FAILURE_DEG
    return pose_error_deg(result.R, result.t, pair.R, pair.t)


def own_rows(thresholds: tuple[float, ...]) -> dict[str, Run]:
    """Return the rows of CA-RANSAC at all thresholds, the automatic one last."""
    fixed = {f"{OURS}, {t:g} px": lambda pair, t=t: own_error(pair, t) for t in thresholds}
    return fixed | {AUTO: lambda pair: own_error(pair, "auto")}


def peer_rows(thresholds: tuple[float, ...]) -> dict[str, Run]:
    """Return the rows of the peers at all thresholds."""
    rows: dict[str, Run] = {}
    for name, threshold in product(PEERS, thresholds):
        job = Job(BenchMethod(name, ratio_filter(0.85), name), "E", RunSettings(max_error_px=threshold))
        rows[f"{name}, {threshold:g} px"] = lambda pair, job=job: run_job(job, pair).error_deg
    return rows


def measure(pairs: list[Pair], run: Run) -> dict[str, Any]:
    """Return the figures of a row at one size and noise."""
    errors: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        errors[pair.scene].append(run(pair))
    every = [error for each in errors.values() for error in each]
    figures: dict[str, Any] = {
        name: float(np.mean([auc(each, limit) for each in errors.values()])) for name, limit in FIGURES.items()
    }
    return figures | {"failures": sum(error == FAILURE_DEG for error in every)}


def column(scale: float, noise_px: float) -> str:
    """Return the name of a column."""
    return f"x{scale:g}, {noise_px:g} px"


def run_rows(folder: Path, max_pairs: int, rows: dict[str, Run], scales: tuple[float, ...]) -> dict[str, Any]:
    """Return the figures of rows in all columns of some scales."""
    pairs = list(read_ransac_tutorial(folder, max_pairs=max_pairs))
    measured: dict[str, Any] = {label: {} for label in rows}
    for scale, noise_px in product(scales, NOISES):
        given = [changed(pair, scale, noise_px) for pair in pairs]
        for label, run in rows.items():
            measured[label][column(scale, noise_px)] = measure(given, run)
        print(f"{folder}: {len(rows)} rows at {column(scale, noise_px)}", flush=True)
    return measured


def behind_best(rows: dict[str, Any], place: str, figure: str) -> float:
    """Return the figure of the automatic threshold minus that of our best fixed threshold."""
    fixed = [row[place][figure] for label, row in rows.items() if label.startswith(OURS) and label != AUTO]
    return float(rows[AUTO][place][figure] - max(fixed))


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    places = [column(scale, noise) for scale, noise in product(SCALES, NOISES)]
    text = "# Thresholds\n\nAUC@5 / AUC@1; columns: size of the images, noise added to it. "
    text += f"At most {content['max_pairs']} pairs of each scene. "
    text += "`caransac-lab study thresholds --help` explains the rows.\n"
    for name, rows in content["tables"].items():
        lines = [
            [label, *(f"{row[p]['AUC5']:.1f} / {row[p]['AUC1']:.1f}" if p in row else "" for p in places)]
            for label, row in rows.items()
        ]
        differences = [" / ".join(f"{behind_best(rows, p, figure):+.1f}" for figure in FIGURES) for p in places]
        text += (
            f"\n## {name}\n\n{table(['', *places], [*lines, ['auto minus the best fixed one of ours', *differences]])}"
        )
        text += f"\nPairs without an answer: {failures(rows)}.\n"
    return text


def failures(rows: dict[str, Any]) -> str:
    """Format which rows had pairs without an answer, over all their columns."""
    counts = {label: sum(cell["failures"] for cell in row.values()) for label, row in rows.items()}
    return "; ".join(f"{label}: {count}" for label, count in counts.items() if count) or "none"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")

    parser.add_argument("--max-pairs", type=int, default=20, metavar="N", help="pairs per scene (default: 20)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    max_pairs, thresholds = (2, (0.5, 2.0)) if arguments.quick else (arguments.max_pairs, THRESHOLDS)
    content: Content = {"max_pairs": max_pairs, "tables": {}}
    for folder in arguments.folders:
        rows = run_rows(folder, max_pairs, own_rows(thresholds), SCALES)
        content["tables"][data_name(folder)] = rows | run_rows(folder, max_pairs, peer_rows(thresholds), (1.0,))
    return content
