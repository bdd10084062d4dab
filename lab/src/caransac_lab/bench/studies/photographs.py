"""What photographs add to matches: poses and fundamental matrices from matches alone, and with `images=`.

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md), `--photographs` a folder with the images of
each scene. Scenes without images are left out. PoseLib and OpenCV get the matches alone, those with a ratio below 0.85
if the scores are ratios. 1024 hypotheses, one thread; a failure counts 180 degrees. AUC@5 / AUC@1 and the median time
in ms, means over scenes and seeds. Reading the photographs is not part of the time.

The ablation changes one number of `tuning.PatchTuning` at a time.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Options
from caransac.geometry import pose_error_deg
from caransac.io.images import read_image
from caransac.tuning import DEFAULT_TUNING
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.filters import ratio_filter
from caransac_lab.bench.protocol import BenchMethod, Job, run_job
from caransac_lab.bench.publication import Content, data_name, table
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.datasets.ransac_tutorial import split_score_kind
from caransac_lab.metrics import FAILURE_DEG, auc

PEERS = {
    "PoseLib": Job(BenchMethod("PoseLib PROSAC", ratio_filter(0.85), "PoseLib"), "E", RunSettings(max_error_px=1.0)),
    "OpenCV USAC_MAGSAC": Job(
        BenchMethod("OpenCV USAC_MAGSAC", ratio_filter(0.85), "OpenCV USAC_MAGSAC"), "E", RunSettings(max_error_px=1.0)
    ),
}
VARIANTS: dict[str, dict[str, float]] = {
    "as published": {},
    "patches of 11 pixels": {"radius": 5},
    "patches of 19 pixels": {"radius": 9},
    "shifts only": {"affine_deviation": 0.0},
    "shifts up to 1.5 px": {"max_shift_px": 1.5},
    "shifts up to 5 px": {"max_shift_px": 5.0},
    "equal weights": {"hidden_deviation_px": 1e6},
    "one pass": {"most_passes": 1},
    "any second answer": {"least_consensus": 0.0},
    "correlation above 0.5": {"min_correlation": 0.5},
    "correlation above 0.9": {"min_correlation": 0.9},
}

Run = Callable[[Pair, tuple[Any, Any], int], float]  # pair, photographs, seed -> error in degrees


def error_of(pair: Pair, R: Any, t: Any) -> float:
    """Return the error of a pose in degrees; that of a failure if there is none."""
    return FAILURE_DEG if R is None else pose_error_deg(R, t, pair.R, pair.t)


def pose(pair: Pair, images: Any, seed: int, **patches: float) -> float:
    """Estimate a pose with known cameras, with photographs or without (None)."""
    tuning = replace(DEFAULT_TUNING, patches=replace(DEFAULT_TUNING.patches, **patches))
    options = Options(seed=seed, tuning=tuning)
    found = caransac.estimate_relative_pose(**pair.match_arguments(), **cameras(pair), images=images, options=options)
    return error_of(pair, found.R, found.t)


def fundamental(pair: Pair, images: Any, seed: int) -> float:
    """Estimate a fundamental matrix, and the error of the pose that it implies with the true cameras."""
    found = caransac.estimate_fundamental(**pair.match_arguments(), images=images, options=Options(seed=seed))
    if found.F is None:
        return FAILURE_DEG
    points = found.points1[found.inliers], found.points2[found.inliers]
    return error_of(pair, *caransac.pose_from_fundamental(found.F, *points, pair.camera1, pair.camera2))


def cameras(pair: Pair) -> dict[str, Any]:
    """Return the true cameras of a pair as arguments."""
    return {"camera1": pair.camera1, "camera2": pair.camera2}


def rows() -> dict[str, Run]:
    """Return the rows of the first table."""
    peers: dict[str, Run] = {
        label: lambda pair, _, seed, job=job: (
            run_job(replace(job, settings=replace(job.settings, seed=seed)), pair).error_deg
        )
        for label, job in PEERS.items()
    }
    return {
        "matches alone": lambda pair, _, seed: pose(pair, None, seed),
        "with photographs": pose,
        **peers,
        "F, matches alone": lambda pair, _, seed: fundamental(pair, None, seed),
        "F, with photographs": fundamental,
    }


def read_pairs(folder: Path, photographs: Path, chosen: list[str], most: int) -> list[tuple[Pair, tuple[Any, Any]]]:
    """Return the pairs of the chosen scenes, and their photographs."""

    @cache
    def photograph(scene: str, name: str) -> Any:
        (path,) = (photographs / scene).glob(f"{name}.*")
        return read_image(path)

    there = {path.name for path in split_score_kind(folder)[0].iterdir()}
    scenes = [name for name in chosen if name in there and (photographs / name).is_dir()]
    return [
        (pair, tuple(photograph(pair.scene, name) for name in pair.name.split("-")))
        for pair in read_ransac_tutorial(folder, scenes=scenes, max_pairs=most)
    ]


def measure(pairs: list[tuple[Pair, tuple[Any, Any]]], run: Run, seeds: int) -> dict[str, Any]:
    """Return the figures of a row."""
    errors, times = defaultdict(list), []
    for seed in range(seeds):
        for pair, images in pairs:
            started = time.process_time()
            errors[pair.scene].append(run(pair, images, seed))
            times.append(time.process_time() - started)
    figures = {f"AUC{limit}": float(np.mean([auc(each, limit) for each in errors.values()])) for limit in (5, 1)}
    return figures | {"ms": 1e3 * float(np.median(times))}


def cell_text(row: dict[str, Any], *, timed: bool = True) -> str:
    """Format the figures of a cell."""
    return f"{row['AUC5']:.1f} / {row['AUC1']:.1f}" + (f", {row['ms']:.1f}" if timed else "")


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    tables = content["tables"]
    text = (
        "# Matches and photographs\n\n`caransac-lab study photographs --help` explains the rows. AUC@5 / AUC@1, ms.\n"
    )
    for title, part, timed in (("Accuracy", "rows", True), ("Ablation", "variants", False)):
        names = list(next(iter(tables.values()))[part])
        header = ["", *(f"{name}, {found['pairs']} pairs" for name, found in tables.items())]
        cells = ([row, *(cell_text(found[part][row], timed=timed) for found in tables.values())] for row in names)
        text += f"\n## {title}\n\n{table(header, cells)}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--photographs", type=Path, required=True, metavar="DIR", help="folder with a folder per scene")
    parser.add_argument("--max-pairs", type=int, default=15, metavar="N", help="pairs per scene (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of each pair (default: %(default)s)")
    parser.add_argument(
        "--scenes",
        nargs="+",
        default=["entry_p10", "herz_jesus_p25", "kitti_2"],
        metavar="NAME",
        help="scenes with precise poses and photographs of the same frames as the matches (default: %(default)s)",
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    tables = dict[str, Any]()
    seeds = 1 if arguments.quick else arguments.seeds
    for folder in arguments.folders:
        most = 1 if arguments.quick else arguments.max_pairs
        pairs = read_pairs(folder, arguments.photographs, arguments.scenes, most)
        found = tables[data_name(folder)] = {"pairs": len(pairs), "rows": {}, "variants": {}}
        for label, run in rows().items():
            found["rows"][label] = measure(pairs, run, seeds)
            print(data_name(folder), label, cell_text(found["rows"][label]), sep="  ", flush=True)
        for label, change in VARIANTS.items():
            found["variants"][label] = measure(pairs, partial(pose, **change), seeds)
            print(data_name(folder), label, cell_text(found["variants"][label]), sep="  ", flush=True)
    return {"tables": tables}
