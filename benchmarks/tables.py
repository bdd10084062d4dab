"""The tables of the README: accuracy next to the peers, robustness, calibration, iterations, run time.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/tables.py TABLE ... [--json FILE]

    accuracy DIR      every method on real pairs; --problem F, --max-ratio 2 (no filter for the classical methods)
    robustness        CA-RANSAC and LM-LO on synthetic pairs: without scores, few matches, 30 % and 5 % inliers
    iterations DIR    CA-RANSAC with fewer and more hypotheses
    calibration DIR UNRELATED [--plot FILE]
    runtime           parts of an estimate at n = 2000, and the ratio to PoseLib

DIR holds scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). Same matches and the same number of
hypotheses for every method, one thread, early stopping off. The classical methods get the matches that pass the ratio
filter, best first, and Levenberg-Marquardt on the inliers at the end; CA-RANSAC gets all matches with their ratios. A
failure counts 180 degrees.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import poselib

import caransac
from caransac import Options, api, estimator, kernels, plot
from caransac.datasets import Pair, read_ransac_tutorial
from caransac.geometry import Array, essential_from_pose, fundamental_from_essential, pose_error_deg, sampson_sq
from caransac.metrics import FAILURE_DEG, calibration_bins, expected_calibration_error, mean_over_scenes
from caransac.problems import Essential, Fundamental, Problem
from caransac.sampler import SelectiveSampler
from caransac.state import StateNetwork
from caransac.synthetic import random_pair
from caransac.training.data import right_matches

HYPOTHESES = 1024
Pose = tuple[Array, Array] | None
Method = Callable[[Pair, str], Pose]


def by_caransac(options: Options, pair: Pair, problem: str) -> Pose:
    """One of our methods."""
    given = {"scores": pair.scores, "score_kind": pair.score_kind, "options": options}
    if problem == "E":
        result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **given)
        return None if result.R is None or result.t is None else (result.R, result.t)
    found = caransac.estimate_fundamental(pair.points1, pair.points2, **given)
    return None if found.F is None else pose_of(found.F, pair)


def pose_of(F: Array, pair: Pair) -> Pose:
    """The pose of a fundamental matrix: the true calibration serves to judge it."""
    near = sampson_sq(F, pair.points1, pair.points2) < 4
    points = (pair.points1[near], pair.points2[near]) if near.sum() >= 5 else (pair.points1, pair.points2)
    return caransac.pose_from_fundamental(F, *points, pair.camera1, pair.camera2)


def as_dict(camera: caransac.Camera) -> dict[str, Any]:
    """A camera as PoseLib takes it."""
    return {"model": camera.model, "width": 0, "height": 0, "params": list(camera.params)}


def by_poselib(pair: Pair, problem: str) -> Pose:
    """PoseLib with progressive sampling; it refines by itself."""
    ransac = {"max_epipolar_error": 1.0, "progressive_sampling": True}
    ransac |= {"max_iterations": HYPOTHESES, "min_iterations": HYPOTHESES}
    if problem == "F":
        return pose_of(poselib.estimate_fundamental(pair.points1, pair.points2, ransac, {})[0], pair)
    cameras = as_dict(pair.camera1), as_dict(pair.camera2)
    pose, _ = poselib.estimate_relative_pose(pair.points1, pair.points2, *cameras, ransac, {})
    return pose.R, pose.t


def by_opencv(flag: int, pair: Pair, problem: str) -> Pose:
    """OpenCV, followed by PoseLib's Levenberg-Marquardt on the inliers, as it has none of its own."""
    loss = {"loss_type": "CAUCHY", "loss_scale": 1.0}
    points1, points2, camera1, camera2 = pair.points1, pair.points2, pair.camera1, pair.camera2
    if problem == "F":
        F, _ = cv2.findFundamentalMat(points1, points2, flag, 1.0, 0.99999, HYPOTHESES)
        if F is None or F.shape != (3, 3):
            return None
        inliers = sampson_sq(F, points1, points2) < 1
        if inliers.sum() >= 9:
            F, _ = poselib.refine_fundamental(points1[inliers], points2[inliers], F / np.linalg.norm(F), loss)
        return pose_of(F, pair)
    rays1, rays2 = camera1.pixels_to_rays(points1), camera2.pixels_to_rays(points2)
    threshold = 2 / (camera1.mean_focal + camera2.mean_focal)
    E, _ = cv2.findEssentialMat(
        rays1, rays2, np.eye(3), method=flag, prob=0.99999, threshold=threshold, maxIters=HYPOTHESES
    )
    if E is None or E.shape != (3, 3):
        return None
    R, t = pose_of(fundamental_from_essential(E, camera1.K, camera2.K), pair)
    F = fundamental_from_essential(essential_from_pose(R, t), camera1.K, camera2.K)
    inliers = sampson_sq(F, points1, points2) < 1
    if inliers.sum() < 8:
        return R, t
    pose = poselib.CameraPose()
    pose.R, pose.t = R, t
    cameras = as_dict(camera1), as_dict(camera2)
    pose, _ = poselib.refine_relative_pose(points1[inliers], points2[inliers], pose, *cameras, loss)
    return pose.R, pose.t


def filtered(method: Method, max_ratio: float, pair: Pair, problem: str) -> Pose:
    """A peer on the matches that pass the ratio filter, best first."""
    order = np.argsort(pair.scores, kind="stable")
    order = order[: max(int((pair.scores < max_ratio).sum()), 20)]
    return method(replace(pair, points1=pair.points1[order], points2=pair.points2[order], scores=None), problem)


def ours(**options: Any) -> Method:
    """One of our methods, all hypotheses."""
    return partial(by_caransac, Options(**{"early_stop": False} | options))


def all_methods(max_ratio: float) -> dict[str, Method]:
    """The rows of the accuracy table."""
    return {
        "CA-RANSAC": ours(),
        "  -C no state update": ours(state_update=False),
        "  -S no adaptive sampling": ours(adaptive_sampling=False),
        "  -R no adaptive refinement": ours(adaptive_refinement=False),
        "LM-LO": ours(method="lm-lo", max_ratio=max_ratio),
        "LM-LO-U": ours(method="lm-lo-u", max_ratio=max_ratio),
        "PoseLib, PROSAC": partial(filtered, by_poselib, max_ratio),
        "OpenCV, USAC_DEFAULT": partial(filtered, partial(by_opencv, cv2.USAC_DEFAULT), max_ratio),
        "OpenCV, USAC_MAGSAC": partial(filtered, partial(by_opencv, cv2.USAC_MAGSAC), max_ratio),
    }


def measure(methods: dict[str, Method], pairs: Iterable[Pair], problem: str) -> dict[str, dict[str, float]]:
    """Every method on every pair, in turns: figures as the mean over scenes, and the median of the milliseconds."""
    errors: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in methods}
    times: dict[str, list[float]] = {name: [] for name in methods}
    for pair in pairs:
        for name, method in methods.items():
            started = time.perf_counter()
            pose = method(pair, problem)
            times[name].append(time.perf_counter() - started)
            errors[name][pair.scene].append(pose_error_deg(*pose, pair.R, pair.t) if pose else FAILURE_DEG)
    return {name: mean_over_scenes(errors[name]) | {"ms": 1e3 * float(np.median(times[name]))} for name in methods}


def accuracy(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Every method on real pairs."""
    pairs = read_ransac_tutorial(arguments.root, max_pairs=arguments.max_pairs)
    return measure(all_methods(arguments.max_ratio), pairs, arguments.problem)


def iterations(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """CA-RANSAC with fewer and more hypotheses, as in the paper."""
    budgets = ((1, 256), (2, 256), (4, 256), (8, 256), (4, 128), (16, 128))
    methods = {f"{rounds}x{samples}": ours(rounds=rounds, samples_per_round=samples) for rounds, samples in budgets}
    return measure(methods, read_ransac_tutorial(arguments.root, max_pairs=arguments.max_pairs), arguments.problem)


def robustness(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """CA-RANSAC and LM-LO on synthetic pairs off the beaten track, with the standard error of their difference."""
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
            for method in ("ca-ransac", "lm-lo"):
                pose = ours(method=method)(pair, arguments.problem)
                error = pose_error_deg(*pose, pair.R, pair.t) if pose else FAILURE_DEG
                gains[method].append(100 * max(0.0, 1 - error / 5))
        difference = np.subtract(gains["ca-ransac"], gains["lm-lo"])
        rows[name] = {
            "CA AUC5": float(np.mean(gains["ca-ransac"])),
            "LM-LO AUC5": float(np.mean(gains["lm-lo"])),
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
        given = {"scores": pair.scores, "options": options}
        result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **given)
        said["probabilities"] += result.probabilities.tolist()
        true["probabilities"] += right_matches(pair).astype(bool).tolist()
        said["confidence"].append(result.confidence)
        true["confidence"].append(result.success and pose_error_deg(result.R, result.t, pair.R, pair.t) < 5)
        found = caransac.estimate_fundamental(pair.points1, pair.points2, **given)
        said["confidence, F"].append(found.confidence)
        pose = None if found.F is None else pose_of(found.F, pair)
        true["confidence, F"].append(pose is not None and pose_error_deg(*pose, pair.R, pair.t) < 5)
    for pair in read_ransac_tutorial(arguments.unrelated, max_pairs=arguments.max_pairs):
        given = {"scores": pair.scores, "options": options}
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
    parts: dict[str, list[float]] = defaultdict(list)
    whole = {"estimate": ours(), "PoseLib, all matches": partial(filtered, by_poselib, 2.0)}
    whole["PoseLib, ratio filter"] = partial(filtered, by_poselib, 0.85)
    for _ in range(arguments.max_pairs or 30):
        for name, method in whole.items():
            started = time.perf_counter()
            method(pair, arguments.problem)
            parts[name].append(time.perf_counter() - started)
        with timed() as spent:
            whole["estimate"](pair, arguments.problem)
        for name, seconds in spent.items():
            parts[f"  {name}"].append(seconds)
    total = float(np.median(parts["estimate"]))
    return {
        name: {"ms": 1e3 * float(np.median(values)), "of the estimate": float(np.median(values)) / total}
        for name, values in sorted(parts.items(), key=lambda item: item[0].strip() not in whole)
    }


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Seconds spent in the verbs of an estimate while the block runs."""
    spent: dict[str, float] = defaultdict(float)
    verbs = [
        (estimator, "likely_inliers", "sample"),
        (SelectiveSampler, "draw", "sample"),
        (Essential, "solve", "solve"),
        (Fundamental, "solve", "solve"),
        (Problem, "rank", "score"),
        (Essential, "score", "score"),
        (Problem, "score", "score"),
        (estimator, "spread_consensus", "score"),
        (Essential, "refine_locally", "refine"),
        (Fundamental, "refine_locally", "refine"),
        (Essential, "refine", "refine"),
        (Fundamental, "refine", "refine"),
        (StateNetwork, "init_state", "network"),
        (StateNetwork, "update", "network"),
        (StateNetwork, "decode", "network"),
        (api, "side_information", "side information"),
        (api, "confidence", "confidence"),
    ]
    inside: list[str] = []  # so that a verb that calls another is not counted twice

    def wrap(call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if inside:
                return call(*args, **kwargs)
            inside.append(part)
            started = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - started
                inside.pop()

        return wrapped

    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in verbs]
    for owner, name, part in verbs:
        setattr(owner, name, wrap(getattr(owner, name), part))
    try:
        yield spent
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def print_table(rows: dict[str, dict[str, float]]) -> None:
    """A row for each name."""
    width = max(map(len, rows)) + 2
    header: list[str] = []
    for name, row in rows.items():
        if list(row) != header:
            header = list(row)
            print(f"{'':{width}}" + "".join(f"{figure:>12}" for figure in header))
        print(f"{name:{width}}" + "".join(f"{value:12.3f}" for value in row.values()), flush=True)


def main() -> None:
    """Run one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {f.__name__: f for f in (accuracy, iterations, robustness, calibration, runtime)}
    parser.add_argument("table", choices=tables)
    parser.add_argument("root", type=Path, nargs="?", metavar="DIR")
    parser.add_argument("unrelated", type=Path, nargs="?", metavar="UNRELATED")
    parser.add_argument("--problem", choices=("E", "F"), default="E", help="pose or fundamental matrix")
    parser.add_argument("--max-ratio", type=float, default=0.85, help="ratio filter of the classical methods")
    parser.add_argument("--max-pairs", type=int, help="pairs a scene (or a synthetic setting), at most")
    parser.add_argument("--plot", type=Path, help="where to draw the reliability diagram")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    rows = tables[arguments.table](arguments)
    print_table(rows)
    if arguments.json:
        about = {name: version(name) for name in ("caransac", "numpy", "poselib", "opencv-python-headless")}
        about |= {"instruction_set": kernels.instruction_set(), "machine": platform.machine()}
        about |= {"table": arguments.table, "problem": arguments.problem, "max_ratio": arguments.max_ratio}
        about |= {"data": "/".join(arguments.root.resolve().parts[-2:]) if arguments.root else "synthetic"}
        arguments.json.write_text(json.dumps({"about": about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
