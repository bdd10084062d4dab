"""The gain of every stage and tuned number of the estimator: each is switched off or made neutral, one at a time.

DIR has the scenes of one match set in the layout of the RANSAC Tutorial 2020 (docs/formats.md); DIR=confidence reads
its scores as confidences. Pass every match set, with training scenes. Each row runs all hypotheses of the default
options with one change. A few changes matter only together with another one and are compared with that row. Figures are
means over seeds, scenes and match sets, in this order. Differences are paired, with a 95 % interval over pairs. Answers
"differ" between seeds if two of them are more than a degree apart.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Options
from caransac.geometry import Array, pose_error_deg
from caransac.tuning import ALL, PAPER_TUNING, Tuning
from caransac_lab.bench.adapters.ours import run_oversampled
from caransac_lab.bench.publication import Content, table
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.metrics import FAILURE_DEG

NAME = "ablation"
KEYS = ("auc5", "auc1", "jumps")
# Stages, as options.
STAGES: dict[str, dict[str, Any]] = {
    "default": {},
    "-C: no state update": {"state_update": False},
    "-S: no adaptive sampling": {"adaptive_sampling": False},
    "-R: no adaptive refinement": {"adaptive_refinement": False},
    "early stop": {"early_stop": True},
    "threshold fixed at 1 px": {"max_error_px": 1.0},
    "local_models = 16": {"local_models": 16},
    "local_models = 4": {"local_models": 4},
    "top_models = 1": {"top_models": 1},
    "rounds = 1 of 1024": {"rounds": 1, "samples_per_round": 1024},
    "oversampling = 4": {"oversampled": 4},
    "LM-LO": {"method": "lm-lo"},
}
# The paper's variant of one part, and finally of all parts (docs/paper.md).
FIXED_SCALE = Tuning(first_noise=1.0, usual_matches=math.inf, max_error=1.0)
STAGES |= {
    "paper: its ranking by total consensus": {"tuning": Tuning(spread_ranking=False)},
    "paper: all models compared on all matches": {"tuning": Tuning(compared_on=ALL)},
    "paper: one pixel everywhere": {"max_error_px": 1.0, "tuning": FIXED_SCALE},
    "paper: its network and side information": {"weights": "paper"},
    "paper: everything": {"weights": "paper", "max_error_px": 1.0, "local_models": 4, "tuning": PAPER_TUNING},
}
# Every number of `Tuning` with other values; neutral if there is a neutral value.
NUMBERS: dict[str, tuple[Any, ...]] = {
    "max_copies": (0.0, 1.0),
    "working_set": (512, 2048),
    "usual_reach": (1.0, 4.0),
    "pool_success": (0.5, 0.99),
    "min_pool": (7, 50),
    "sample_margin": (4.0, math.inf),
    "static_ratio": (0.7, 0.9),
    "compared_on": (512, 2048),
    "spread_ranking": (False,),
    "rank_scale": (0.75, 100.0),
    "same_model": (0.8, 1.01),
    "agreeing_deg": (0.0, 3.0),
    "mean_exponent": (10.0, 500.0),
    "usual_deviation": (0.00075, 0.003),
    "usual_matches": (1e-9, 100.0),
    "first_noise": (1.0, 4.0),
    "noise_reach": (5.0, 60.0),
    "likely_prior": (0.2, 0.8),
    "max_error": (2.5, 6.0),
    "local_reach": (1.0, 4.0),
    "local_steps": (3, 30),
    "local_min_decrease": (1e-2, 1e-4),
    "min_weight": (0.0, 0.05),
    "wide_loss_scale": (1.0, 10.0),
    "wide_gain": (0.0, 1.0),
    "wide_reach": (5.0, 50.0),
    "guessed_centre_deviation": (0.0, 0.1),
    "contradicted": (0.0, 1.0),
    "expected_share": (0.0, 1.0),
}
# Numbers that matter only together with another change. They are compared with the row of that change.
BESIDE: dict[str, str] = {
    "sample_margin": "early stop",
    "static_ratio": "-S: no adaptive sampling",
    "wide_loss_scale": "working_set = 512",
    "wide_reach": "working_set = 512",
}
OF_FUNDAMENTALS = ("guessed_centre_deviation", "contradicted", "expected_share")  # numbers that poses do not use


def number_of(row: str) -> str:
    """Return the number that a row changes, or the name of its stage."""
    return row.partition(" = ")[0]


def base_of(row: str) -> str:
    """Return the name of the row that a row is compared with."""
    return BESIDE.get(number_of(row), "default")


def variants(problem: str) -> dict[str, dict[str, Any]]:
    """Return the options of every row by name. Fundamental matrices have the stages and their own numbers."""
    rows = dict(STAGES)
    for name, values in NUMBERS.items():
        if (name in OF_FUNDAMENTALS) == (problem == "F"):
            beside = rows[BESIDE[name]] if name in BESIDE else {}
            tuning = beside.get("tuning", Tuning())
            rows |= {f"{name} = {value}": beside | {"tuning": replace(tuning, **{name: value})} for value in values}
    return rows


def pose_of(pair: Pair, problem: str, options: Options, oversampled: int = 1) -> tuple[Any, Any] | None:
    """Return the estimated pose, or the pose that the estimated fundamental matrix implies."""
    if oversampled > 1:
        answer = run_oversampled(pair, "E" if problem == "E" else "F", options, oversampled, "geometric")
        if answer is None or answer.matrix is None:
            return None if answer is None else answer.pose
        return caransac.pose_from_fundamental(answer.matrix, pair.points1, pair.points2, pair.camera1, pair.camera2)
    matches: dict[str, Any] = {"scores": pair.scores, "score_kind": pair.score_kind, "options": options}
    if problem == "E":
        found = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **matches)
        return (found.R, found.t) if found.success else None
    F = caransac.estimate_fundamental(pair.points1, pair.points2, **matches).F
    if F is None:
        return None
    return caransac.pose_from_fundamental(F, pair.points1, pair.points2, pair.camera1, pair.camera2)


def run_pair(problem: str, changed: dict[str, Any], seeds: int, pair: Pair) -> tuple[str, list[float], bool, float]:
    """Return the scene, errors by seed, whether answers differ between seeds, and processor time per estimate."""
    oversampled = changed.get("oversampled", 1)
    given = {name: value for name, value in changed.items() if name != "oversampled"}
    options = Options(**({"early_stop": False} | given))
    started = time.process_time()
    poses = [pose_of(pair, problem, replace(options, seed=seed), oversampled) for seed in range(seeds)]
    elapsed = (time.process_time() - started) / seeds * 1e3
    errors = [FAILURE_DEG if pose is None else pose_error_deg(*pose, pair.R, pair.t) for pose in poses]
    first, *others = poses
    jumps = first is None or any(other is None or pose_error_deg(*other, *first) > 1 for other in others)
    return pair.scene, errors, jumps, elapsed


def run_row(
    pool: ProcessPoolExecutor, pairs: list[Pair], problem: str, changed: dict[str, Any], seeds: int
) -> tuple[dict[str, float], dict[str, Array]]:
    """Run one row. Return its figures, and the contribution of each pair to AUC@5 and AUC@1."""
    found = list(pool.map(partial(run_pair, problem, changed, seeds), pairs, chunksize=8))
    weights = pair_weights([scene for scene, *_ in found])
    errors = np.array([errors for _, errors, *_ in found])
    each = {f"auc{limit}": 100 * weights * np.maximum(1 - errors / limit, 0).mean(axis=1) for limit in (5, 1)}
    figures = {name: float(values.sum()) for name, values in each.items()}
    figures["jumps"] = 100 * float(weights @ np.array([jumps for _, _, jumps, _ in found]))
    figures["ms"] = float(weights @ np.array([elapsed for *_, elapsed in found]))
    return figures, each


def pair_weights(scenes: Sequence[str]) -> Array:
    """Return weights (n,) of pairs by their scenes "SET/SCENE": sets count equally, and so do the scenes of a set."""
    in_scene, scenes_of = Counter(scenes), Counter(scene.partition("/")[0] for scene in set(scenes))
    return np.array([1 / in_scene[s] / scenes_of[s.partition("/")[0]] / len(scenes_of) for s in scenes])


def interval(differences: Array) -> float:
    """Return half of the 95 % interval of a sum over pairs (n,)."""
    return float(1.96 * np.std(differences) * len(differences) ** 0.5)


def row_cells(name: str, rows: dict[str, dict[str, float]]) -> list[str]:
    """Return a line of the table: the first row's figures, for other rows the difference to the row they belong to."""
    row, base = rows[name], rows[base_of(name)]
    if name == "default":
        return ["nothing", *(f"{row[k]:.2f}" for k in KEYS), "1"]
    label = f"{name}, beside {base_of(name)}" if number_of(name) in BESIDE else name
    differences = [
        f"{row[key] - base[key]:+.2f}" + (f" ± {row[half]:.2f}" if (half := f"{key}_interval") in row else "")
        for key in KEYS[:2]
    ]
    return [label, *differences, f"{row['jumps'] - base['jumps']:+.2f}", f"{row['ms'] / base['ms']:.2f}"]


def problem_table(rows: dict[str, dict[str, float]], names: Sequence[str] | None = None) -> str:
    """Return the rows of a problem, or those of some names."""
    lines = [row_cells(name, rows) for name in rows if names is None or name in names]
    return table(["changed", "AUC@5", "AUC@1", "answers differ between seeds, %", "time"], lines)


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    sets = sorted({scene.partition("/")[0] for scene in content["scenes"]})
    text = (
        f"# Gain of stages and tuned numbers\n\n{len(content['scenes'])} pairs of training scenes of {len(sets)} match "
        f"sets ({', '.join(sets)}), {content['seeds']} seeds. Rows after the first are differences to it, with 95 % "
        "intervals; `caransac-lab study ablation --help` explains the columns.\n"
    )
    for problem, rows in content["rows"].items():
        text += f"\n## {problem}\n\n{problem_table(rows)}"
    return text


def chosen_rows(problem: str, parts: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Return the rows whose names contain one of the parts, or all rows, and the rows they are compared with."""
    rows = variants(problem)
    chosen = [name for name in rows if not parts or any(part in name for part in parts)]
    return {name: rows[name] for name in rows if name in {"default", *chosen, *map(base_of, chosen)}}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("data", nargs="+", type=Path, metavar="DIR")
    parser.add_argument(
        "--problem",
        nargs="+",
        choices=["E", "F"],
        default=["E"],
        help="poses, fundamental matrices or both (default: E)",
    )
    parser.add_argument("--rows", nargs="+", help="only rows whose names contain one of these, and their bases")
    parser.add_argument("--max-pairs", type=int, default=8, help="pairs per scene (default: 8)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--workers", type=int, default=2, help="number of processes (default: 2)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    seeds = 1 if arguments.quick else arguments.seeds
    pairs = [
        replace(pair, scene=f"{folder.parent.name}/{pair.scene}")
        for folder in arguments.data
        for pair in read_ransac_tutorial(folder, max_pairs=1 if arguments.quick else arguments.max_pairs)
    ]
    rows: dict[str, dict[str, dict[str, float]]] = {problem: {} for problem in arguments.problem}
    with ProcessPoolExecutor(arguments.workers) as pool:
        for problem in arguments.problem:
            each: dict[str, dict[str, Array]] = {}
            for name, changed in chosen_rows(problem, arguments.rows).items():
                row, each[name] = run_row(pool, pairs, problem, changed, seeds)
                base = each[base_of(name)]
                row |= {f"{key}_interval": interval(each[name][key] - base[key]) for key in KEYS[:2]}
                rows[problem][name] = row
                print(f"{problem} {name:28s} " + " ".join(f"{key} {row[key]:.2f}" for key in (*KEYS, "ms")), flush=True)
    return {"scenes": [pair.scene for pair in pairs], "seeds": seeds, "rows": rows}
