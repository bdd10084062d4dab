"""What the weights are worth in unusual settings: robustness, calibration, and where the time goes.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/weights.py TABLE ... [--json FILE]

    robustness        CA-RANSAC and LM-LO on synthetic pairs: without scores, few matches, 30 % and 5 % inliers
    calibration DIR UNRELATED [--plot FILE]
    runtime           parts of an estimate at n = 2000, and the ratio to PoseLib

DIR holds scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). 1024 hypotheses, one thread, no early
stopping; a failure counts 180 degrees. Accuracy next to the peers is what `caransac bench` measures.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Options, plot
from caransac._support.files import replacing
from caransac.bench import machine
from caransac.bench.adapters import ESTIMATORS
from caransac.bench.breakdown import parts_ms
from caransac.bench.contract import ProblemName, RunSettings
from caransac.bench.filters import ratio_filter
from caransac.bench.protocol import BenchMethod, Job, pose_of_fundamental, run_job
from caransac.datasets import Pair, read_ransac_tutorial
from caransac.geometry import pose_error_deg
from caransac.metrics import calibration_bins, expected_calibration_error
from caransac.synthetic import random_pair

COLUMN = 17  # characters


def job(name: str, problem: ProblemName, max_ratio: float = 0.85) -> Job:
    """A method of the benchmark by its name, at the benchmark's default settings."""
    estimator = ESTIMATORS[name]
    method = BenchMethod(name, ratio_filter(max_ratio) if estimator.filtered else None, name)
    return Job(method, problem, RunSettings(max_error_px=estimator.max_error_px, iterations=1024))


def robustness(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """CA-RANSAC and LM-LO on synthetic pairs in unusual settings, with the standard error of their difference."""
    settings: dict[str, dict[str, Any]] = {
        "typical": {},
        "no scores": {},
        "confidences": {"score_kind": "confidence"},
        "128 matches": {"num_points": 128, "inlier_ratio": 0.4},
        "30 % inliers": {"num_points": 1000, "inlier_ratio": 0.3},
        "5 % inliers": {"num_points": 2000, "inlier_ratio": 0.05},
    }
    rows = {}
    for number, (name, given) in enumerate(settings.items()):
        gains: dict[str, list[float]] = defaultdict(list)
        for index in range(arguments.max_pairs or 200):
            made = random_pair(np.random.default_rng([number, index]), **{"score_kind": "ratio"} | given)
            pair = Pair.from_synthetic(made)
            if name == "no scores":
                pair = replace(pair, scores=None)
            for method in ("CA-RANSAC", "LM-LO"):
                error = run_job(job(method, arguments.problem), pair).error_deg
                gains[method].append(100 * max(0.0, 1 - error / 5))
        difference = np.subtract(gains["CA-RANSAC"], gains["LM-LO"])
        rows[name] = {
            "CA AUC5": float(np.mean(gains["CA-RANSAC"])),
            "LM-LO AUC5": float(np.mean(gains["LM-LO"])),
            "gain": float(difference.mean()),
            "+-": float(difference.std() / np.sqrt(len(difference))),
        }
    return rows


def calibration(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """How honest the probabilities and the confidence are, on real pairs and on pairs of unrelated images."""
    said: dict[str, list[float]] = defaultdict(list)
    true: dict[str, list[bool]] = defaultdict(list)
    options = Options(early_stop=False)
    for pair in read_ransac_tutorial(arguments.root, max_pairs=arguments.max_pairs):
        given = {"scores": pair.scores, "score_kind": pair.score_kind, "options": options}
        result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **given)
        said["probabilities"] += result.probabilities.tolist()
        true["probabilities"] += pair.right_matches().astype(bool).tolist()
        said["confidence"].append(result.confidence)
        true["confidence"].append(result.success and pose_error_deg(result.R, result.t, pair.R, pair.t) < 5)
        found = caransac.estimate_fundamental(pair.points1, pair.points2, **given)
        said["confidence, F"].append(found.confidence)
        pose = None if found.F is None else pose_of_fundamental(found.F, pair)
        true["confidence, F"].append(pose is not None and pose_error_deg(*pose, pair.R, pair.t) < 5)
    for pair in read_ransac_tutorial(arguments.unrelated, max_pairs=arguments.max_pairs):
        given = {"scores": pair.scores, "score_kind": pair.score_kind, "options": options}
        result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **given)
        said["unrelated"].append(result.confidence)
        said["unrelated, F"].append(caransac.estimate_fundamental(pair.points1, pair.points2, **given).confidence)
    if arguments.plot:
        plot.draw_reliability(arguments.plot, {name: calibration_bins(said[name], true[name]) for name in true})
    rows = {
        name: {
            "count": len(said[name]),
            "mean said": float(np.mean(said[name])),
            "mean true": float(np.mean(true[name])),
            "ECE": expected_calibration_error(said[name], true[name]),
        }
        for name in true
    }
    for name in ("unrelated", "unrelated, F"):
        rows[name] = {"count": len(said[name]), "% above 0.5": float(100 * np.mean(np.array(said[name]) > 0.5))}
    return rows


def runtime(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Milliseconds of the parts of an estimate of 2000 matches, and PoseLib's on the same matches in the same run."""
    made = random_pair(np.random.default_rng(5), num_points=2000, inlier_ratio=0.3, score_kind="ratio")
    pair = Pair.from_synthetic(made)
    jobs = {
        "estimate": job("CA-RANSAC", arguments.problem),
        "PoseLib, all matches": job("PoseLib PROSAC", arguments.problem, max_ratio=2.0),
        "PoseLib, ratio filter": job("PoseLib PROSAC", arguments.problem),
    }
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(arguments.max_pairs or 30):
        for name, each in jobs.items():
            times[name].append(run_job(each, pair).ms or np.nan)
        for part, ms in parts_ms(jobs["estimate"], pair).items():
            times[f"  {part}"].append(ms)
    total = float(np.median(times["estimate"]))
    return {
        name: {"ms": float(np.median(values)), "of the estimate": float(np.median(values)) / total}
        for name, values in sorted(times.items(), key=lambda item: item[0] not in jobs)
    }


def print_table(rows: dict[str, dict[str, float]]) -> None:
    """A row for each name."""
    width = max(map(len, rows)) + 2
    header: list[str] = []
    for name, row in rows.items():
        if list(row) != header:
            header = list(row)
            print(f"{'':{width}}" + "".join(f"{figure:>{COLUMN}}" for figure in header))
        print(f"{name:{width}}" + "".join(f"{value:{COLUMN}.3f}" for value in row.values()), flush=True)


def main() -> None:
    """Run one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {f.__name__: f for f in (robustness, calibration, runtime)}
    parser.add_argument("table", choices=tables)
    parser.add_argument("root", type=Path, nargs="?", metavar="DIR")
    parser.add_argument("unrelated", type=Path, nargs="?", metavar="UNRELATED")
    parser.add_argument("--problem", choices=("E", "F"), default="E", help="pose or fundamental matrix")
    parser.add_argument("--max-pairs", type=int, help="pairs per scene (or synthetic setting), at most")
    parser.add_argument("--plot", type=Path, help="where to draw the reliability diagram")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    if arguments.table == "calibration" and arguments.unrelated is None:
        parser.error("calibration needs DIR and UNRELATED")
    rows = tables[arguments.table](arguments)
    print_table(rows)
    if arguments.json:
        about = machine.describe() | machine.versions([ESTIMATORS["PoseLib"]])
        about |= {"table": arguments.table, "problem": arguments.problem}
        about |= {"data": "/".join(arguments.root.resolve().parts[-2:]) if arguments.root else "synthetic"}
        with replacing(arguments.json) as path:
            path.write_text(json.dumps({"about": about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
