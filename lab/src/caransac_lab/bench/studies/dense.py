"""Very many matches, as from dense matchers: accuracy, time and memory.

Synthetic matches cover images of 1600 x 1200 pixels; their points are three to nine baselines deep. Wrong matches are
random pixels. Figures are medians of three seeds. Every run is a separate process with one thread, warmed up with a few
matches. Milliseconds are processor time. Memory is the peak that the call adds to the matches and the libraries. A run
is stopped after 30 seconds, and its row ends there. CA-RANSAC finds its threshold. PoseLib and OpenCV's USAC get 1 px,
which is too small for noise of 2 px, and keep their other defaults. OpenCV's pose comes from `recoverPose`. No method
gets scores.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from caransac.geometry import Array, angle_between_deg, homogeneous, rotation_angle_deg, rotation_from_vector
from caransac_lab.bench.publication import Content, table
from caransac_lab.metrics import FAILURE_DEG

NAME = "dense"
MODULE = "caransac_lab.bench.studies.dense"  # this module, which each run starts as a program
WIDTH, HEIGHT, FOCAL = 1600, 1200, 1000.0
K = np.array([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]])
COUNTS, SCALE_COUNTS = (50_000, 200_000), (500, 2000, 10_000)
NOISES, SCALE_NOISE = (0.5, 1.0, 2.0), 1.0  # pixels
SHARES, SEEDS = (0.9, 0.5), (0, 1, 2)
LIMIT_S, MEGABYTE = 30, 2**20
OURS = "CA-RANSAC, auto"
FIGURES = ("rotation_deg", "translation_deg", "ms", "memory_mb")

Pose = tuple[Array, Array]


def make_matches(count: int, noise_px: float, share: float, seed: int) -> dict[str, Array]:
    """Create matches and the true pose."""
    rng = np.random.default_rng([seed, count])
    R = rotation_from_vector(0.1 * rng.normal(size=3))
    t = rng.normal(size=3) * (1, 0.6, 0.5)
    t /= np.linalg.norm(t)
    points1 = rng.uniform(0, 1, (count, 2)) * (WIDTH, HEIGHT)
    scene = homogeneous(points1) @ np.linalg.inv(K).T * rng.uniform(3, 9, (count, 1))
    projected = (scene @ R.T + t) @ K.T
    points2 = projected[:, :2] / projected[:, 2:]
    wrong = rng.permutation(count)[round(share * count) :]
    points2[wrong] = rng.uniform(0, 1, (len(wrong), 2)) * (WIDTH, HEIGHT)
    points1, points2 = (points + noise_px * rng.normal(size=points.shape) for points in (points1, points2))
    return {"points1": points1, "points2": points2, "R": R, "t": t}


def run_ours(points1: Array, points2: Array) -> Pose | None:
    """Run CA-RANSAC with its automatic threshold."""
    import caransac

    result = caransac.estimate_relative_pose(points1, points2, K, K, options=caransac.Options(max_error_px="auto"))
    return None if result.R is None or result.t is None else (result.R, result.t)


def run_poselib(points1: Array, points2: Array) -> Pose | None:
    """Run PoseLib with its defaults."""
    import poselib

    camera = {"model": "PINHOLE", "width": WIDTH, "height": HEIGHT, "params": [FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2]}
    pose, info = poselib.estimate_relative_pose(points1, points2, camera, camera, {"max_epipolar_error": 1.0}, {})
    return (np.asarray(pose.R), np.asarray(pose.t)) if info["num_inliers"] > 0 else None


def run_usac(points1: Array, points2: Array) -> Pose | None:
    """Run OpenCV's USAC with its defaults."""
    import cv2

    cv2.setNumThreads(1)
    E, mask = cv2.findEssentialMat(points1, points2, K, method=cv2.USAC_DEFAULT, threshold=1.0)
    if E is None or E.shape != (3, 3):
        return None
    _, R, t, _ = cv2.recoverPose(E, points1, points2, K, mask=mask)
    return R, t.ravel()


RUNS: dict[str, Callable[[Array, Array], Pose | None]] = {
    OURS: run_ours,
    "PoseLib": run_poselib,
    "USAC_DEFAULT": run_usac,
}


def peak_memory() -> float:
    """Return the peak resident memory of this process since the last reset, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / MEGABYTE


def run_once(label: str, path: Path) -> None:
    """Run once in this process and print the figures. The time limit ends the process."""
    with np.load(path) as made:
        points1, points2, R, t = (made[name] for name in ("points1", "points2", "R", "t"))
    RUNS[label](points1[:200].copy(), points2[:200].copy())
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, started = peak_memory(), time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(started) + LIMIT_S + 1, resource.RLIM_INFINITY))
    pose = RUNS[label](points1, points2)
    seconds = time.process_time() - started
    row = {"rotation_deg": FAILURE_DEG, "translation_deg": FAILURE_DEG}
    if pose is not None:
        row = {"rotation_deg": rotation_angle_deg(pose[0] @ R.T), "translation_deg": angle_between_deg(pose[1], t)}
    print(json.dumps(row | {"ms": 1e3 * seconds, "memory_mb": peak_memory() - before}))


def measure(labels: list[str], count: int, noise_px: float, share: float, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Return the medians over seeds of each method; None for a method that took too long."""
    found: dict[str, list[dict[str, float]] | None] = {label: [] for label in labels}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "matches.npz"
        for seed in seeds:
            np.savez(path, **make_matches(count, noise_px, share, seed))
            for label, rows in found.items():
                if rows is None:
                    continue
                command = [sys.executable, "-m", MODULE, label, str(path)]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode == -signal.SIGXCPU:
                    found[label] = None
                elif ended.returncode:
                    raise RuntimeError(f"{label} at {count} matches: {ended.stderr}")
                else:
                    rows.append(json.loads(ended.stdout))
    return {
        label: rows and {name: float(np.median([row[name] for row in rows])) for name in FIGURES}
        for label, rows in found.items()
    }


def run_all(labels: list[str], counts: Sequence[int], quick: bool) -> dict[str, Any]:
    """Measure all cells, by count, noise and share."""
    grid = [*product(counts, NOISES, SHARES), *product(SCALE_COUNTS, (SCALE_NOISE,), SHARES)]
    if quick:
        grid = [(50_000, 1.0, 0.5), (2000, 1.0, 0.5)]
    cells = {}
    for count, noise_px, share in grid:
        rows = measure(labels, count, noise_px, share, SEEDS[:1] if quick else SEEDS)
        print(count, noise_px, share, {label: row and round(row["ms"]) for label, row in rows.items()}, flush=True)
        cells[f"{count} {noise_px:g} {share:g}"] = rows
    return cells


def cell_text(row: dict[str, float] | None) -> list[str]:
    """Format the figures of a method: rotation and translation error, milliseconds, megabytes."""
    if row is None:
        return [f"> {LIMIT_S} s", "", ""]
    if row["rotation_deg"] == FAILURE_DEG:
        return ["no answer", f"{row['ms']:.0f}", f"{row['memory_mb']:.0f}"]
    errors = f"{row['rotation_deg']:.4f} / {row['translation_deg']:.4f}"
    return [errors, f"{row['ms']:.0f}", f"{row['memory_mb']:.0f}"]


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    cells, labels = content["cells"], list(RUNS)
    text = "# Dense matches\n\nError of rotation / translation in degrees, milliseconds, peak memory in MB; medians of "
    text += "three seeds. PoseLib and USAC have a threshold of 1 px, which is too small for noise of 2 px. "
    text += "`caransac-lab study dense --help` describes the runs.\n"
    header = [f"{label}{figure}" for label in labels for figure in (": errors", ", ms", ", MB")]
    keys = [(int(count), float(noise), float(share)) for count, noise, share in map(str.split, cells)]
    titles = {
        "By noise": [key for key in keys if key[0] >= COUNTS[0]],
        f"By the number of matches, {SCALE_NOISE:g} px": [key for key in keys if key[1] == SCALE_NOISE],
    }
    for title, chosen in titles.items():
        lines = [
            [f"{n:,}", f"{noise:g} px", f"{share:.0%}"]
            + [figure for label in labels for figure in cell_text(cells[f"{n} {noise:g} {share:g}"][label])]
            for n, noise, share in sorted(chosen)
        ]
        text += f"\n## {title}\n\n{table(['matches', 'noise', 'right', *header], lines)}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, metavar="N", help="numbers of matches")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    return {"cells": run_all(list(RUNS), arguments.counts, arguments.quick)}


if __name__ == "__main__":  # one run, in a separate process
    run_once(sys.argv[1], Path(sys.argv[2]))
