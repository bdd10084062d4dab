"""The gain of every tuned number of inexact cameras: each gets other values, one at a time.

DIR has the scenes of one match set, as in `caransac-lab study ablation`. Pass every match set, with training scenes. A
row runs the tasks that use its number, with default options. Figures are means over seeds and tasks, then over scenes
and match sets. A row has the differences to the same tasks without the change, with 95 % intervals over pairs. The
Brier score is the mean squared difference between the confidence and the truth (1 if the pose error is below 5 degrees,
else 0), in hundredths; lower is better. The focal error is the mean relative error, limited to 30 %. "Covered" is the
share of focal lengths within two of their stated deviations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Camera, Options
from caransac.geometry import Array, pose_error_deg
from caransac.tuning import CAMERAS
from caransac_lab.bench.publication import Content, table
from caransac_lab.bench.studies.ablation import interval, pair_weights
from caransac_lab.bench.studies.focal import View, assumed, views, zoomed
from caransac_lab.bench.studies.lenses import DOUBT, bent, without_k1
from caransac_lab.metrics import FAILURE_DEG

NAME = "camera_ablation"
KEYS = {"auc5": "AUC@5", "auc1": "AUC@1", "focal": "focal error, %", "brier": "Brier score", "covered": "covered, %"}
Answer = tuple[Any, Any, float, Camera | None]  # R, t, confidence, camera 1 if it was estimated


def pose(view: View, options: Options, **given: Any) -> Answer | None:
    """Estimate our pose from cameras or sizes."""
    found = caransac.estimate_relative_pose(**view.pair.match_arguments(), **given, options=options)
    return (found.R, found.t, found.confidence, found.camera1) if found.success else None


def with_cameras(percent: float, deviation: float) -> Callable[[View, Options], Answer | None]:
    """Return the task with a focal length that is wrong by a percentage and has a stated deviation."""

    def run(view: View, options: Options) -> Answer | None:
        camera1, camera2 = assumed(view, percent, deviation)
        return pose(view, options, camera1=camera1, camera2=camera2)

    return run


def fundamental(view: View, options: Options, **given: Any) -> Answer | None:
    """Estimate our fundamental matrix, and return the pose that it implies with the true cameras."""
    points = view.pair.points1, view.pair.points2
    found = caransac.estimate_fundamental(**view.pair.match_arguments(), **given, options=options)
    if not found.success:
        return None
    R, t = caransac.pose_from_fundamental(found.F, *points, view.pair.camera1, view.pair.camera2)
    return R, t, found.confidence, None


def narrowed(view: View) -> View | None:
    """Enlarge both images of a pair, as with a long lens. Return None if too few matches remain."""
    first = zoomed(view)
    second = None if first is None else zoomed(swapped(first))
    return None if second is None else replace(swapped(second), same=view.same)


def swapped(view: View) -> View:
    """Return the pair with its images in the other order."""
    return replace(view, pair=view.pair.swapped(), size1=view.size2, size2=view.size1)


def unknown(view: View, options: Options) -> Answer | None:
    """Estimate our pose from only the sizes."""
    return pose(view, options, **view.sizes)


def matrix_of_sizes(view: View, options: Options) -> Answer | None:
    """Estimate our fundamental matrix from the sizes."""
    return fundamental(view, options, **view.sizes)


def with_lens(k1: float) -> Callable[[View, Options], Answer | None]:
    """Return the task of lenses with this k1, which the estimator gets as 0 with a deviation."""

    def run(view: View, options: Options) -> Answer | None:
        camera1, camera2 = without_k1(view, distortion_deviation=DOUBT)
        return pose(bent(view, k1), options, camera1=camera1, camera2=camera2)

    return run


TASKS: dict[str, Callable[[View, Options], Answer | None]] = {
    "unknown": unknown,
    "F": fundamental,
    "F with sizes": matrix_of_sizes,
    "exact": lambda view, options: pose(view, options, camera1=view.pair.camera1, camera2=view.pair.camera2),
    "given 10%": with_cameras(10, 0.0),
    "uncertain 5%": with_cameras(5, 0.05),
    "uncertain 10%": with_cameras(10, 0.1),
    "flat lens": with_lens(0.0),
    "k1 = -0.05": with_lens(-0.05),
    "k1 = -0.1": with_lens(-0.1),
}
# Tasks on pairs with one or both images enlarged. Pairs with too few remaining matches are not counted.
ENLARGED: dict[str, Callable[[View], View | None]] = {"zoomed, ": zoomed, "long lens, ": narrowed}
PRIOR = ("uncertain 5%", "uncertain 10%", "unknown", "zoomed, unknown", "F with sizes")
UNKNOWN = ("unknown", "zoomed, unknown", "long lens, unknown", "zoomed, F with sizes", "long lens, F with sizes")
BOXES, EVIDENCE, LENSES = ("F", "zoomed, F"), ("exact", "given 10%"), ("flat lens", "k1 = -0.05", "k1 = -0.1")
# Every number of `CameraTuning`: other values (neutral if there is a neutral value), and the tasks that use it.
NUMBERS: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    "weak": ((0.0, 4.0), PRIOR),
    "max_temper": ((4.0, 1e9), PRIOR),
    "centre_deviation": ((0.0005, 0.01), PRIOR),
    "focal_difference": ((0.0002, 0.01), PRIOR),
    "centre_difference": ((0.0001, 0.01), PRIOR),
    "tails": ((1e9,), UNKNOWN),
    "free_deviation": ((0.15, 1.0), (*UNKNOWN, *EVIDENCE)),
    "focal_steps": (((0.0,), (-0.8, 0.8)), (PRIOR[1], *UNKNOWN[::2])),
    "focal_steps_apart": (((0.0,), (-1.5, 0.0, 1.5)), UNKNOWN),
    "more_consensus": ((1.0, 1.1), UNKNOWN),
    "same_focal": ((1e-9,), PRIOR[:2]),
    "joint_box": ((0.0, 1e9), BOXES),
    "fit_steps": ((4, 30), (*BOXES, *EVIDENCE)),
    "fit_min_decrease": ((1e-3, 1e-6), (*BOXES, *EVIDENCE)),
    "loss_scales": (((1.0,), (2.0, 0.5)), (*BOXES, *EVIDENCE)),
    "least_error": ((0.0, 0.5), (*BOXES, *EVIDENCE)),
    "usual_extent": ((0.2, 0.6), EVIDENCE),
    "usual_factor": ((1.0, 3.0), EVIDENCE),
    "largest_gain": ((1.5, 1e9), EVIDENCE),
    "largest_shift": ((0.3, 1e9), EVIDENCE),
    "slack": (((1e-4, 1e-4), (0.01, 0.02)), LENSES),
    "k1_difference": ((1e-6, 0.1), LENSES),
    "lens_matches": ((600, 10**9), LENSES),
    "lens_evidence": ((3.0, 20.0), LENSES),
}


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    """Change a number of the record that the problems read. Only a study may do this."""
    usual = getattr(CAMERAS, name)
    object.__setattr__(CAMERAS, name, value)
    try:
        yield
    finally:
        object.__setattr__(CAMERAS, name, usual)


def run_pair(task: str, name: str, value: Any, seeds: int, view: View) -> dict[str, float]:
    """Return the figures of one pair, averaged over seeds, with one number changed."""
    figures = []
    for prefix, enlarge in ENLARGED.items():
        if task.startswith(prefix):
            other = enlarge(view)
            return {} if other is None else run_pair(task.removeprefix(prefix), name, value, seeds, other)
    for seed in range(seeds):
        with changed(name, value):
            answer = TASKS[task](view, Options(seed=seed))
        error = FAILURE_DEG if answer is None else pose_error_deg(*answer[:2], view.pair.R, view.pair.t)
        confidence = 0.0 if answer is None else answer[2]
        row = {"auc5": 100 * max(1 - error / 5, 0.0), "auc1": 100 * max(1 - error, 0.0)}
        row["brier"] = 100 * (confidence - (error < 5)) ** 2
        camera = None if answer is None else answer[3]
        if camera is not None and camera.focal_deviation > 0:
            off = abs(np.log(camera.fx / view.pair.camera1.fx))
            row["focal"] = 100 * min(off, 0.3)
            row["covered"] = 100.0 * bool(off < 2 * camera.focal_deviation)
        figures.append(row)
    keys = set().union(*figures)
    return {key: float(np.mean([row[key] for row in figures if key in row])) for key in keys}


def rows_of(parts: Sequence[str] | None) -> Iterator[tuple[str, str, Any, tuple[str, ...]]]:
    """Yield label, number, value and tasks of every row, or of the rows whose labels contain one of the parts."""
    for name, (values, tasks) in NUMBERS.items():
        for value in values:
            label = f"{name} = {value}"
            if not parts or any(part in label for part in parts):
                yield label, name, value, tasks


def compare(before: list[dict[str, float]], after: list[dict[str, float]], weights: Array) -> dict[str, float]:
    """Return the differences of figures by pair and task, and their 95 % intervals."""
    row = {}
    for key in KEYS:
        known = np.array([key in old and key in new for old, new in zip(before, after, strict=True)])
        if known.any():
            pairs = [(new[key] - old[key]) for old, new, has in zip(before, after, known, strict=True) if has]
            shares = weights[known] / weights[known].sum()
            row[key] = float(shares @ pairs)
            row[f"{key}_interval"] = interval(shares * np.array(pairs))
    return row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("data", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--rows", nargs="+", help="only rows whose names contain one of these")
    parser.add_argument("--max-pairs", type=int, default=4, help="pairs per scene (default: 4)")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds (default: 2)")
    parser.add_argument("--workers", type=int, default=2, help="number of processes (default: 2)")


def read(folders: Sequence[Path], max_pairs: int) -> list[View]:
    """Read the pairs of all match sets."""
    found = []
    for folder in folders:
        for view in views(folder, max_pairs, best_first=False):
            pair = replace(view.pair, scene=f"{folder.parent.name}/{view.pair.scene}")
            found.append(replace(view, pair=pair))
    return found


def study(arguments: argparse.Namespace) -> Content:
    """Measure the table."""
    seeds = 1 if arguments.quick else arguments.seeds
    pairs = read(arguments.data, 1 if arguments.quick else arguments.max_pairs)
    weights = pair_weights([view.pair.scene for view in pairs])
    base: dict[str, list[dict[str, float]]] = {}
    rows: dict[str, dict[str, float]] = {}
    with ProcessPoolExecutor(arguments.workers) as pool:

        def run(task: str, name: str, value: Any) -> list[dict[str, float]]:
            return list(pool.map(partial(run_pair, task, name, value, seeds), pairs, chunksize=8))

        for label, name, value, tasks in rows_of(arguments.rows):
            for task in tasks:
                if task not in base:
                    base[task] = run(task, name, getattr(CAMERAS, name))
            before = [figures for task in tasks for figures in base[task]]
            after = [figures for task in tasks for figures in run(task, name, value)]
            rows[label] = compare(before, after, np.tile(weights, len(tasks)) / len(tasks))
            print(f"{label:40s}", row_cells(rows[label]), flush=True)
    return {"scenes": [view.pair.scene for view in pairs], "seeds": seeds, "rows": rows}


def row_cells(row: dict[str, float]) -> list[str]:
    """Format the differences of a row with their intervals."""
    return [f"{row[key]:+.2f} ± {row[f'{key}_interval']:.2f}" if key in row else "" for key in KEYS]


def as_markdown(content: dict[str, Any]) -> str:
    """Format the table."""
    text = f"# Gain of the tuned numbers of uncertain cameras\n\n{len(content['scenes'])} pairs of training scenes, "
    text += f"{content['seeds']} seeds. `caransac-lab study camera_ablation --help` explains rows and columns.\n\n"
    return text + table(["changed", *KEYS.values()], [[name, *row_cells(row)] for name, row in content["rows"].items()])
