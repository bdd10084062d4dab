"""Quality of the weights in unusual settings: robustness and calibration.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 caransac-lab study TABLE ... [--out FILE]

    robustness        CA-RANSAC and LM-LO on synthetic pairs: without scores, few matches, 30 % and 5 % inliers
    calibration DIR ... [--unrelated DIR ...]    also writes a reliability diagram of the first DIR beside FILE

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). 1024 hypotheses, one thread, no early
stopping; a failure counts 180 degrees. `caransac-lab bench` compares the accuracy with the peers.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Options
from caransac.geometry import pose_error_deg
from caransac.results import FundamentalResult, RelativePoseResult
from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.contract import ProblemName, RunSettings
from caransac_lab.bench.filters import ratio_filter
from caransac_lab.bench.plots import save_svg
from caransac_lab.bench.protocol import BenchMethod, Job, pose_of_fundamental, run_job
from caransac_lab.bench.publication import Content, data_name, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.curves import draw_reliability
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.metrics import calibration_bins, expected_calibration_error
from caransac_lab.synthetic import random_pair

OPTIONS = Options(early_stop=False)

Rows = dict[str, dict[str, float]]


def job(name: str, problem: ProblemName) -> Job:
    """Return a method of the benchmark by name, with the benchmark's default settings."""
    estimator = ESTIMATORS[name]
    method = BenchMethod(name, ratio_filter(0.85) if estimator.filtered else None, name)
    return Job(method, problem, RunSettings(max_error_px=estimator.max_error_px, iterations=1024))


def robustness(problem: ProblemName, count: int) -> Rows:
    """Compare CA-RANSAC and LM-LO on synthetic pairs in unusual settings, with standard errors of the difference."""
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
        for index in range(count):
            made = random_pair(np.random.default_rng([number, index]), **{"score_kind": "ratio"} | given)
            pair = Pair.from_synthetic(made)
            if name == "no scores":
                pair = replace(pair, scores=None)
            for method in ("CA-RANSAC", "LM-LO"):
                error = run_job(job(method, problem), pair).error_deg
                gains[method].append(100 * max(0.0, 1 - error / 5))
        difference = np.subtract(gains["CA-RANSAC"], gains["LM-LO"])
        rows[name] = {
            "CA AUC5": float(np.mean(gains["CA-RANSAC"])),
            "LM-LO AUC5": float(np.mean(gains["LM-LO"])),
            "gain": float(difference.mean()),
            "+-": float(difference.std() / np.sqrt(len(difference))),
        }
    return rows


def calibration(folder: Path, max_pairs: int | None, picture: Path | None = None) -> Rows:
    """Measure the calibration of the probabilities and the confidence on real pairs."""
    said: dict[str, list[float]] = defaultdict(list)
    true: dict[str, list[bool]] = defaultdict(list)
    for pair in read_ransac_tutorial(folder, max_pairs=max_pairs):
        result, found = estimates(pair)
        said["probabilities"] += result.probabilities.tolist()
        true["probabilities"] += pair.right_matches().astype(bool).tolist()
        said["confidence"].append(result.confidence)
        true["confidence"].append(result.success and pose_error_deg(result.R, result.t, pair.R, pair.t) < 5)
        said["confidence, F"].append(found.confidence)
        pose = None if found.F is None else pose_of_fundamental(found.F, pair)
        true["confidence, F"].append(pose is not None and pose_error_deg(*pose, pair.R, pair.t) < 5)
    if picture:
        bins = {name: calibration_bins(said[name], true[name]) for name in true}
        save_svg(draw_reliability(bins), picture)
    return {
        name: {
            "count": len(said[name]),
            "mean said": float(np.mean(said[name])),
            "mean true": float(np.mean(true[name])),
            "ECE": expected_calibration_error(said[name], true[name]),
        }
        for name in true
    }


def unrelated(folder: Path, max_pairs: int | None) -> Rows:
    """Measure how often a pair of unrelated images gets a confidence above 0.5."""
    found = [estimates(pair) for pair in read_ransac_tutorial(folder, max_pairs=max_pairs)]
    rows: Rows = {}
    for number, name in enumerate(("confidence", "confidence, F")):
        sure = sum(each[number].confidence > 0.5 for each in found)
        rows[name] = {"count": len(found), "above 0.5": sure}
    return rows


def estimates(pair: Pair) -> tuple[RelativePoseResult, FundamentalResult]:
    """Return pose and fundamental matrix of a pair, with all hypotheses."""
    given: dict[str, Any] = {"scores": pair.scores, "score_kind": pair.score_kind, "options": OPTIONS}
    posed = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **given)
    return posed, caransac.estimate_fundamental(pair.points1, pair.points2, **given)


TITLES = {"robustness": "Synthetic pairs in unusual settings", "calibration": "Probabilities and confidences"}


def as_markdown(content: dict[str, Any]) -> str:
    """Format a table per data set or problem."""
    text = f"# {TITLES[content['table']]}\n\n`caransac-lab study calibration --help` describes the runs.\n"
    words = partial(in_words, "calibration") if content["table"] == "calibration" else str
    for name, rows in content["tables"].items():
        header = list(next(iter(rows.values())))
        lines = ([words(label), *(_number(row[column]) for column in header)] for label, row in rows.items())
        text += f"\n## {name}\n\n{table(['', *map(words, header)], lines)}"
    return text


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", type=Path, nargs="*", metavar="DIR", help="real pairs")
    parser.add_argument("--unrelated", type=Path, nargs="+", default=[], metavar="DIR", help="unrelated images")
    parser.add_argument("--max-pairs", type=int, help="maximum number of pairs per scene or synthetic setting")


def study(arguments: argparse.Namespace) -> Content:
    """Measure one table."""
    most, out = 2 if arguments.quick else arguments.max_pairs, arguments.out
    tables: dict[str, Rows] = {}
    if arguments.study == "calibration":
        if not arguments.folders:
            raise ValueError("calibration needs DIR")
        for number, folder in enumerate(arguments.folders):
            picture = out.with_name(f"{out.stem}-reliability.svg") if out and number == 0 else None
            tables[data_name(folder)] = calibration(folder, most, picture)
        for folder in arguments.unrelated:
            tables[data_name(folder)] = unrelated(folder, most)
    else:
        tables = {problem: robustness(problem, most or 200) for problem in ("E", "F")}
    return {"table": arguments.study, "tables": tables}
