"""Speed: time, memory and accuracy of the same runs, compared with the peers.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 caransac-lab study speed [--data DIR ...] [--only PART ...]

counts    synthetic matches with ratios, 100 to 8000, half of them right: milliseconds of all methods
scale     synthetic matches of the study `dense`, 10,000 to 1,000,000, and 5 to 90 % right ones among 2000
pairs     real pairs of every DIR, poses (E) and fundamental matrices (F): ratios of times; accuracy over time
parts     breakdown of the time of an estimate, on the pairs of every DIR
kernels   operations and bytes per second of the main kernels, and of numpy on the same processor
threads   pairs per second of every DIR with one and with two threads

Methods run in turn on every pair, in one process with one thread; times are medians of processor time. Memory is
measured in a separate process. Peers get the matches with a ratio below 0.85, best first, and their answers are refined
on the inliers; their times include both. CA-RANSAC gets all matches and finds its threshold. Parts and threads are
measured in wall-clock time, as the fastest of several runs. `--only` runs some parts.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair
from caransac_lab.bench.plots import draw_points, save_svg
from caransac_lab.bench.protocol import Job, estimate, pose_of_fundamental, undistorted
from caransac_lab.bench.publication import Content, columns_table, table
from caransac_lab.bench.studies.dense import OURS, RUNS, make_matches
from caransac_lab.bench.studies.dense import measure as measure_apart
from caransac_lab.bench.studies.speed_methods import DEFAULT, FULL, RATIOS, is_ours, make_jobs
from caransac_lab.bench.studies.speed_parts import (
    kernels_text,
    parts_text,
    run_kernels,
    run_parts,
    run_threads,
    threads_text,
)
from caransac_lab.datasets import Pair, open_dataset
from caransac_lab.metrics import FAILURE_DEG, summarise

NAME = "speed"
COUNTS, COUNT_PAIRS = (100, 300, 1000, 3000, 8000), 5
MANY, SHARES = (10_000, 50_000, 200_000, 1_000_000), (0.05, 0.1, 0.3, 0.5, 0.7, 0.9)
MIDDLE, HALF, NOISE_PX = 2000, 0.5, 1.0  # number of matches, and share of right ones, each while the other one varies
SEEDS = ((10_000, 5), (200_000, 3), (1_000_000, 1))  # maximum number of matches, and number of synthetic pairs
TIMES_MS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
ABOUT = """\
Times are medians of processor milliseconds, with one thread; the methods run in turn in one process.
`caransac-lab study speed --help` describes the runs. Other programs on the machine change times, ratios less, and the
figures of threads most.
The tables of leads compare the best of several settings on the same pairs, so some tenths may be chance.

CA-RANSAC and LM-LO without a number stop early; with one, they draw all hypotheses. PoseLib without a number stops
after 100 iterations at the earliest, with one it does not stop early. USAC_DEFAULT without a number stops at a
probability of 0.9999 within 10,000 iterations, "1024" is 0.99999 within 1024, other numbers are limits that it nearly
always reaches. The other peers have the same rule as USAC_DEFAULT without a number. Our own fast code refines the
answers of peers; "+ PoseLib's LM" is USAC_DEFAULT (0.99999 within 1024) with `cv2.recoverPose` and
`poselib.refine_relative_pose` instead, as in a program without caransac. A cell of a table of leads is empty if no
method is that fast.
"""
FIGURES = {"AUC5": "AUC@5", "AUC1": "AUC@1"}


def run_timed(job: Job, pair: Pair) -> tuple[float, float]:
    """Return the pose error in degrees, and processor milliseconds."""
    started = time.process_time()
    try:
        found = estimate(job, pair)
    except Exception:  # a peer may raise anything, which counts as its failure
        if job.method.estimator.module == "caransac":
            raise
        found = None
    ms = 1e3 * (time.process_time() - started)
    if found is None:
        return FAILURE_DEG, ms
    error = pose_error_deg(*(found.pose or pose_of_fundamental(found.matrix, pair)), pair.R, pair.t)
    return error if np.isfinite(error) else FAILURE_DEG, ms


def run_scale(quick: bool) -> list[dict[str, Any]]:
    """Return one row per number of matches and share of right ones, with medians of every method."""
    cells = [(count, HALF) for count in MANY] + [(MIDDLE, share) for share in SHARES]
    if quick:
        cells = [(500, HALF), (MIDDLE, 0.9)]
    rows = []
    for count, share in cells:
        seeds = 1 if quick else next(number for most, number in SEEDS if count <= most)
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for seed in range(seeds):
            made = make_matches(count, NOISE_PX, share, seed)
            for label, run in RUNS.items():
                started = time.process_time()
                pose = run(made["points1"], made["points2"])
                ms = 1e3 * (time.process_time() - started)
                found[label].append((FAILURE_DEG if pose is None else pose_error_deg(*pose, made["R"], made["t"]), ms))
        apart = measure_apart(list(RUNS), count, NOISE_PX, share, (0,))
        for label, runs in found.items():
            error, ms = np.median(runs, axis=0).tolist()
            memory = None if apart[label] is None else apart[label]["memory_mb"]
            rows.append({"matches": count, "right": share, "method": label, "ms": ms, "deg": error, "mb": memory})
        print("scale", count, share, {row["method"]: round(row["ms"], 1) for row in rows[-len(RUNS) :]}, flush=True)
    return rows


def run_pairs(data: Mapping[str, list[Pair]]) -> list[dict[str, Any]]:
    """Return one row per data set, problem and method: median milliseconds, AUC@5 and AUC@1 as means over scenes."""
    rows = []
    for name, pairs in data.items():
        for problem in ("E", "F"):
            jobs = make_jobs(problem)
            for job in jobs:
                run_timed(job, pairs[0])  # loads the library
            runs = [(pair.scene, job.method.label, *run_timed(job, pair)) for pair in pairs for job in jobs]
            for job in jobs:
                label = job.method.label
                mine = [(scene, error, ms) for scene, method, error, ms in runs if method == label]
                scenes = [[e for _, e, _ in group] for _, group in groupby(mine, lambda run: run[0])]
                means = {key: float(np.mean([summarise(errors)[key] for errors in scenes])) for key in FIGURES}
                ms = [ms for *_, ms in mine]
                spent = {"ms": float(np.median(ms)), "mean_ms": float(np.mean(ms)), "pairs": len(mine)}
                rows.append({"data": name, "problem": problem, "method": label} | spent | means)
            print("pairs", name, problem, flush=True)
    return rows


def run_counts(quick: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Return the median milliseconds on synthetic pairs, by problem, method and number of matches."""
    seeds = range(1 if quick else COUNT_PAIRS)
    times: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for count in COUNTS:
        pairs = [Pair.from_synthetic(make_pair(count, 1 - HALF, seed=seed), str(seed)) for seed in seeds]
        for row in run_pairs({str(count): pairs}):
            times[row["problem"]][row["method"]][str(count)] = row["ms"]
    return times


def counts_table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Format the milliseconds of some methods by the number of matches."""
    return columns_table(rows, {str(count): f"{count} matches, ms" for count in COUNTS}, "{:.1f}".format)


def counts_text(problems: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Format the milliseconds of poses and fundamental matrices by the number of matches."""
    return "\n".join(f"{problem}:\n\n{counts_table(rows)}" for problem, rows in problems.items())


def best_within(rows: Sequence[dict[str, Any]], ms: float, figure: str, ours: bool) -> dict[str, Any] | None:
    """Return the most accurate of our methods, or of the others, within a time."""
    fast = [row for row in rows if row["ms"] <= ms and is_ours(row["method"]) == ours]
    return max(fast, key=lambda row: row[figure], default=None)


def lead_table(rows: Sequence[dict[str, Any]]) -> str:
    """Format who leads at every time, and by how much."""
    lines = []
    for ms in TIMES_MS:
        line = [f"{ms}"]
        for figure in FIGURES:
            mine, other = (best_within(rows, ms, figure, ours) for ours in (True, False))
            line += ["" if row is None else f"{row['method']} {row[figure]:.1f}" for row in (mine, other)]
            line.append(f"{mine[figure] - other[figure]:+.1f}" if mine and other else "")
        lines.append(line)
    header = [f"{whose}, {figure}" for figure in FIGURES.values() for whose in ("ours", "best peer", "lead")]
    return table(["within ms", *header], lines)


def scale_text(rows: Sequence[dict[str, Any]]) -> str:
    """Format the tables of `run_scale`."""
    lines = []
    for (count, share), group in groupby(rows, lambda row: (row["matches"], row["right"])):
        cells = {row["method"]: row for row in group}
        line = [f"{count:,}", f"{share:.0%}"]
        for row in cells.values():
            memory = "" if row["mb"] is None else f"{row['mb']:.0f}"
            line += [f"{row['ms']:.1f}", f"{row['deg']:.4f}" if row["deg"] < FAILURE_DEG else "no answer", memory]
        line += [f"{cells[OURS]['ms'] / cells[label]['ms']:.2f}" for label in RUNS if label != OURS]
        lines.append(line)
    header = [f"{label}{unit}" for label in RUNS for unit in (", ms", ", degrees", ", MB")]
    return table(["matches", "right", *header, *(f"time / {label}" for label in RUNS if label != OURS)], lines)


def pairs_text(rows: Sequence[dict[str, Any]]) -> str:
    """Format the tables of `run_pairs`."""
    text = "### Ratios of times\n\n"
    lines = []
    groups = [(key, list(group)) for key, group in groupby(rows, lambda row: (row["data"], row["problem"]))]
    for (data, problem), group in groups:
        by_label = {row["method"]: row for row in group}
        for label, peer in RATIOS:
            if peer in by_label:
                each = [by_label[name] for name in (label, peer)]
                cells = [f"{row['ms']:.1f} ms, {row['AUC5']:.1f} / {row['AUC1']:.1f}" for row in each]
                lines.append([data, problem, label, cells[0], peer, cells[1], f"{each[0]['ms'] / each[1]['ms']:.2f}"])
    accuracy = "ms, AUC@5 / AUC@1"
    text += table(["data", "problem", "ours", accuracy, "peer", accuracy, "ratio of times"], lines)
    for (data, problem), group in groups:
        if problem == "E":
            text += f"\n### Accuracy over time, {data}, {group[0]['pairs']} pairs\n\n"
            group.sort(key=lambda row: row["ms"])
            lines = [[row["method"], *(f"{row[name]:.1f}" for name in ("ms", "mean_ms", *FIGURES))] for row in group]
            text += table(["method", "ms, median", "ms, mean", *FIGURES.values()], lines) + "\n" + lead_table(group)
    return text


def draw(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw accuracy over time for every data set."""
    for data, group in groupby((row for row in rows if row["problem"] == "E"), lambda row: row["data"]):
        records = [row | {"figures": {"AUC5": {"mean": row["AUC5"]}}} for row in group]
        figure = draw_points(records, "ms", "milliseconds of the processor per pair, median", f"E, {data}")
        save_svg(figure, folder / f"{NAME}-{data.replace('/', '-')}.svg")


TEXTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "counts": ("By the number of matches", counts_text),
    "scale": ("Many matches, and many wrong ones", scale_text),
    "pairs": ("Real pairs", pairs_text),
    "parts": ("Where the time of one estimate goes", parts_text),
    "kernels": ("Kernels", kernels_text),
    "threads": ("Threads", threads_text),
}


def as_markdown(content: Mapping[str, Any]) -> str:
    """Format all tables."""
    text = f"# Speed\n\n{ABOUT}"
    for name, (title, write) in TEXTS.items():
        if content["parts"].get(name):
            text += f"\n## {title}\n\n{write(content['parts'][name])}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--data", nargs="+", type=Path, default=[], metavar="DIR", help="real pairs")
    parser.add_argument("--max-pairs", type=int, default=12, metavar="N", help="real pairs per scene (default: 12)")
    parser.add_argument(
        "--only", nargs="+", choices=list(TEXTS), metavar="PART", help=f"run only these parts: {', '.join(TEXTS)}"
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables, and draw the pictures."""
    quick = arguments.quick
    datasets = [open_dataset(source, 1 if quick else arguments.max_pairs) for source in arguments.data]
    data = {dataset.name: [undistorted(pair) for pair in dataset.read()] for dataset in datasets}
    jobs = [job for job in make_jobs("E") if job.method.label in (DEFAULT, FULL)]
    measures: dict[str, Callable[[], Any]] = {
        "counts": lambda: run_counts(quick),
        "scale": lambda: run_scale(quick),
        "pairs": lambda: run_pairs(data),
        "parts": lambda: run_parts(data, jobs),
        "kernels": run_kernels,
        "threads": lambda: run_threads(data),
    }
    parts = {name: measures[name]() for name in arguments.only or TEXTS}
    if arguments.out is not None:
        draw(parts.get("pairs", []), arguments.out.parent)
    return {"parts": parts}
