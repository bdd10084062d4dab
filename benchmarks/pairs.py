"""Accuracy and time next to PoseLib on real pairs, same matches, one thread.

PoseLib and LM-LO get the ratio filter (0.85) and the order by ratio; CA-RANSAC gets the ratios.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/pairs.py DIR [--json FILE]

DIR holds scenes in the layout of the RANSAC Tutorial 2020 (see docs/formats.md).
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import poselib

import caransac
from caransac import kernels
from caransac.datasets import Pair, read_ransac_tutorial
from caransac.geometry import Array, pose_error_deg
from caransac.metrics import FAILURE_DEG, mean_over_scenes
from caransac.types import Method

Pose = tuple[Array, Array] | None


def by_caransac(method: Method, pair: Pair, hypotheses: int) -> Pose:
    """One of our methods with its defaults, on exactly this many hypotheses."""
    options = caransac.Options(method=method, samples_per_round=hypotheses // 4, early_stop=False)
    result = caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, options=options
    )
    return (result.R, result.t) if result.R is not None and result.t is not None else None


def by_poselib(pair: Pair, hypotheses: int) -> Pose:
    """PoseLib with progressive sampling, on exactly this many hypotheses, after the ratio filter."""
    order = np.argsort(pair.scores, kind="stable")
    order = order[: max(int((pair.scores < 0.85).sum()), 20)]
    ransac = {"max_epipolar_error": 1.0, "progressive_sampling": True}
    ransac |= {"max_iterations": hypotheses, "min_iterations": hypotheses}
    cameras = [
        {"model": camera.model, "width": 0, "height": 0, "params": list(camera.params)}
        for camera in (pair.camera1, pair.camera2)
    ]
    pose, _ = poselib.estimate_relative_pose(pair.points1[order], pair.points2[order], *cameras, ransac, {})
    return pose.R, pose.t


METHODS: dict[str, Callable[[Pair, int], Pose]] = {
    "CA-RANSAC": partial(by_caransac, "ca-ransac"),
    "LM-LO": partial(by_caransac, "lm-lo"),
    "PoseLib, PROSAC": by_poselib,
}


def main() -> None:
    """Run all on every pair, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="DIR")
    parser.add_argument("--hypotheses", type=int, default=1024, help="minimal samples a pair (default: %(default)s)")
    parser.add_argument("--max-pairs", type=int, help="pairs a scene, at most")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()

    errors: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in METHODS}
    times: dict[str, list[float]] = {name: [] for name in METHODS}
    for pair in read_ransac_tutorial(arguments.root, max_pairs=arguments.max_pairs):
        for name, method in METHODS.items():
            started = time.perf_counter()
            pose = method(pair, arguments.hypotheses)
            times[name].append(time.perf_counter() - started)
            errors[name][pair.scene].append(pose_error_deg(*pose, pair.R, pair.t) if pose else FAILURE_DEG)

    rows = {name: mean_over_scenes(errors[name]) | {"ms": 1e3 * float(np.median(times[name]))} for name in METHODS}
    print(f"{sum(map(len, errors['LM-LO'].values()))} pairs, {arguments.hypotheses} hypotheses, mean over scenes\n")
    print(f"{'':18}" + "".join(f"{figure:>9}" for figure in rows["LM-LO"]))
    for name, row in rows.items():
        print(f"{name:18}" + "".join(f"{value:9.2f}" for value in row.values()))
    if arguments.json:
        about = {
            "caransac": caransac.__version__,
            "poselib": version("poselib"),
            "instruction_set": kernels.instruction_set(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "hypotheses": arguments.hypotheses,
        }
        arguments.json.write_text(json.dumps({"about": about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
