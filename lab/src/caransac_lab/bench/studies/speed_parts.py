"""Breakdown of the time of an estimate, speed of the kernels, and gain of a second thread: parts of speed.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import caransac
from caransac import kernels
from caransac.learned.state_network import load_network
from caransac.synthetic import make_pair
from caransac_lab.bench.breakdown import PARTS, parts_ms
from caransac_lab.bench.protocol import Job
from caransac_lab.bench.publication import table
from caransac_lab.datasets import Pair

REPEATS = 5  # repetitions of wall-clock measurements; the fastest counts
BATCH, BATCHES = 16, 30  # pairs per run, and number of runs: short ones, so that some run on a quiet machine
SIDE, MANY = 384, 100  # matrix product that measures the peak: short, so that other processes rarely interfere
MAX_ERROR = 1e-3
# Operations, counted by hand in the sources: the squared Sampson distance of one match and its part of the score; and a
# five-point sample, roughly: 8000 for the equations and their elimination, 5000 for the roots, 7000 to refine them.
SCORE_OPERATIONS, FIVE_POINT_OPERATIONS = 36, 20_000
# The state network with width 16 and four models, without activations: layers of 16 x 16, three in every update, four
# more for a match with scores; the scores themselves; and the decoder.
UNEXPLAINED_OPERATIONS = 3 * 512 + 328
EXPLAINED_OPERATIONS = UNEXPLAINED_OPERATIONS + 4 * 512 + 2 * 128


def microseconds(call: Callable[[], object], per: int, repeats: int = 15) -> float:
    """Return the best time of several calls, in microseconds per item."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return 1e6 * best / per


def run_parts(data: Mapping[str, list[Pair]], jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return one row per data set and setting: milliseconds of every part, the fastest runs, medians over pairs."""
    rows = []
    for name, pairs in data.items():
        for job in jobs:
            runs = [[parts_ms(job, pair) for _ in range(REPEATS)] for pair in pairs]
            fastest = [{part: min(run.get(part, 0.0) for run in repeats) for part in PARTS} for repeats in runs]
            parts = {part: float(np.median([each[part] for each in fastest])) for part in PARTS}
            size = float(np.median([len(pair.points1) for pair in pairs]))
            parts = {part: ms for part, ms in parts.items() if ms > 0}
            rows.append({"data": name, "matches": size, "method": job.method.label, "parts_ms": parts})
    return rows


def run_kernels() -> list[dict[str, Any]]:
    """Return one row per kernel: nanoseconds per item, and operations or bytes per second of it and of numpy."""
    rng = np.random.default_rng(0)
    square, large = rng.normal(size=(SIDE, SIDE)).astype(np.float32), np.ones(2**25)
    product = 2 * SIDE**3 / microseconds(lambda: square @ square, 1, MANY) / 1e3
    target = np.empty_like(large)
    copy = 2 * large.nbytes / microseconds(lambda: np.copyto(target, large), 1) / 1e3
    pair = make_pair(num_points=4096, outlier_ratio=0.5, noise_px=0.5, seed=3)
    x1, x2 = pair.camera1.pixels_to_rays(pair.points1), pair.camera2.pixels_to_rays(pair.points2)
    points = kernels.pack(x1, x2)
    samples = kernels.sample_uniform(np.flatnonzero(pair.inliers).astype(np.int32), 5, 256, seed=0)
    poses = kernels.five_point_poses(points, samples)[0]
    network = load_network("default")
    state, _ = network.first(np.zeros((len(x1), network.num_features), np.float32))
    scores = kernels.POSES.msac_scores(poses[:4], points, MAX_ERROR)
    explained = scores.any(axis=0).mean()
    evaluations = len(poses) * len(x1)
    calls: dict[str, tuple[Callable[[], object], int, float]] = {
        "update of the state network, per match": (
            lambda: network.update(state, scores),
            len(x1),
            explained * EXPLAINED_OPERATIONS + (1 - explained) * UNEXPLAINED_OPERATIONS,
        ),
        "five_point_poses, per sample": (
            lambda: kernels.five_point_poses(points, samples),
            len(samples),
            FIVE_POINT_OPERATIONS,
        ),
        "msac_scores, per model and match": (
            lambda: kernels.POSES.msac_scores(poses, points, MAX_ERROR),
            evaluations,
            SCORE_OPERATIONS,
        ),
        "top, per model and match": (
            lambda: kernels.POSES.top(poses, points, MAX_ERROR, 4),
            evaluations,
            SCORE_OPERATIONS,
        ),
    }
    rows: list[dict[str, Any]] = [
        {"kernel": "product of matrices (numpy)", "speed": product, "unit": "operations"},
        {"kernel": "copy of 256 MB (numpy)", "speed": copy, "unit": "bytes"},
    ]
    for name, (call, items, operations) in calls.items():
        ns = 1e3 * microseconds(call, items, MANY)
        speed = operations / ns
        rows.append({"kernel": name, "ns": ns, "speed": speed, "unit": "operations", "of_peak": speed / product})
    return rows


def run_threads(data: Mapping[str, list[Pair]]) -> list[dict[str, Any]]:
    """Return one row per data set: pairs per second with one and two threads, in wall-clock time, the fastest run."""
    rows = []
    for name, pairs in data.items():
        batch = pairs[:: -(-len(pairs) // BATCH)]
        fastest = dict.fromkeys((1, 2), np.inf)
        for _ in range(BATCHES):
            for workers in fastest:
                started = time.perf_counter()
                caransac.estimate_relative_poses(batch, workers=workers)
                fastest[workers] = min(fastest[workers], time.perf_counter() - started)
        rows.append({"data": name} | {str(workers): len(batch) / seconds for workers, seconds in fastest.items()})
    return rows


def parts_text(rows: Sequence[dict[str, Any]]) -> str:
    """Format the table of `run_parts`."""
    names = [part for part in PARTS if any(part in row["parts_ms"] for row in rows)]
    lines = [[part, *(f"{row['parts_ms'].get(part, 0.0):.2f}" for row in rows)] for part in names]
    lines.append(["sum", *(f"{sum(row['parts_ms'].values()):.2f}" for row in rows)])
    header = [f"{row['data']}, {row['matches']:.0f} matches, {row['method']}" for row in rows]
    return table(["ms", *header], lines)


def kernels_text(rows: Sequence[dict[str, Any]]) -> str:
    """Format the table of `run_kernels`."""
    lines = [
        [
            row["kernel"],
            f"{row['ns']:.2f}" if "ns" in row else "",
            f"{row['speed']:.1f} billion {row['unit']} per second",
            f"{row['of_peak']:.0%}" if "of_peak" in row else "",
        ]
        for row in rows
    ]
    return table(["kernel", "ns", "speed", "of the peak"], lines)


def threads_text(rows: Sequence[dict[str, Any]]) -> str:
    """Format the table of `run_threads`."""
    lines = [[row["data"], f"{row['1']:.0f}", f"{row['2']:.0f}", f"{row['2'] / row['1']:.2f}"] for row in rows]
    return table(["data", "one thread, pairs per second", "two threads", "gain"], lines)
