"""Homographies: every method on real, rendered and synthetic planes.

DIR has scenes of real pairs. A scene has the files matches.h5, match_conf.h5 (ratios), H.h5 (x2 ~ H x1) and sizes.h5
(width and height of both images); their keys are pairs. Rendered and synthetic pairs are generated from their seeds.
The method names "ours" and "peers" stand for several methods.

Our methods get all matches with their ratios. The peers get the matches with a ratio below 0.85, best first, but at
least 20. All methods have 1024 hypotheses and one thread. The column px has the peers' thresholds. On real pairs this
is 2 px, because the ground truth has errors of a pixel or two. Our methods run with default options. The error of a
pair is the mean error of four corners: of the image (real), of the plane (rendered), or of the rectangle around the
right matches (synthetic). A pair without an answer has an infinite error. Figures are means over scenes, patterns or
descriptors. Times are medians of processor time.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from caransac._support.batch import count_cores, map_ordered
from caransac._support.files import open_h5
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac.synthetic import PlanePair
from caransac_lab.bench.adapters import HOMOGRAPHY_ESTIMATORS
from caransac_lab.bench.contract import HomographyEstimator, RunSettings
from caransac_lab.bench.publication import Content, data_name, table
from caransac_lab.bench.rendered_planes import PATTERNS, match_plane, photograph_plane
from caransac_lab.metrics import auc
from caransac_lab.synthetic import random_plane
from caransac_lab.synthetic.distributions import log_uniform
from caransac_lab.synthetic.scores import BINARY, ROOTSIFT

NAME = "homographies"
REAL_MAX_ERROR_PX = 2.0
HYPOTHESES = 1024
MIN_KEPT = 20  # minimum number of matches after a filter
WRONG_PX = 20.0  # answers with a larger error count as wrong
LIMITS_PX = (1.0, 3.0, 5.0)
MAX_FEATURES = {"rootsift": 4000, "orb": 8000}
INLIER_RATIOS = (0.01, 0.1)  # of rendered pairs; others are excluded
MIN_RIGHT = 16  # right matches of rendered pairs; pairs with fewer are excluded
SYNTHETIC = (0.01, 0.02, 0.05, 0.1)
OURS = [name for name, estimator in HOMOGRAPHY_ESTIMATORS.items() if estimator.module == "caransac"]
GROUPS = {"ours": OURS, "peers": [name for name in HOMOGRAPHY_ESTIMATORS if name not in OURS]}

Sets = dict[str, list[PlanePair]]
Record = dict[str, Any]


def read_scenes(folder: Path) -> Iterator[PlanePair]:
    """Read real pairs. Errors are measured at the corners of image 1."""
    for scene in sorted(path.parent for path in folder.glob("*/H.h5")):
        files = [open_h5(scene / f"{name}.h5") for name in ("matches", "match_conf", "H", "sizes")]
        for key in sorted(files[2]):
            points, ratios, H, sizes = (np.asarray(file[key], float) for file in files)
            size1, size2 = (tuple(map(int, size)) for size in sizes)
            corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * (sizes[0] - 1)
            name = f"{scene.name}/{key}"
            yield PlanePair(name, points[:, :2], points[:, 2:], ratios.ravel(), H, corners, size1, size2)


def make_rendered(job: tuple[int, str]) -> dict[str, PlanePair]:
    """Return the matches of one pair of photographs by features, without those of too many or too few right ones."""
    seed, pattern = job
    views, made = photograph_plane(seed, pattern), {}
    for features, most in MAX_FEATURES.items():
        pair = match_plane(views, features, most, f"{pattern}/{seed}")
        right = pair.right_matches()
        if INLIER_RATIOS[0] <= right.mean() <= INLIER_RATIOS[1] and right.sum() >= MIN_RIGHT:
            made[features] = pair
    return made


def make_synthetic(inlier_ratio: float, count: int, first_seed: int) -> Iterator[PlanePair]:
    """Create synthetic pairs with the ratios of RootSIFT and of a binary descriptor, alternately."""
    for seed in range(first_seed, first_seed + count):
        rng = np.random.default_rng([seed, round(1000 * inlier_ratio), 11])
        kind, descriptor = (("rootsift", ROOTSIFT), ("binary", BINARY))[seed % 2]
        num_points = round(log_uniform(rng, 2000, 8000))
        name = f"{kind}/{seed}"
        yield random_plane(rng, num_points=num_points, inlier_ratio=inlier_ratio, descriptor=descriptor, name=name)


def make_sets(folders: list[Path], rendered: int, synthetic: int, first_seed: int, pool: ProcessPool) -> Sets:
    """Return all pairs by the name of their set."""
    sets: Sets = {f"real, {data_name(folder)}": list(read_scenes(folder)) for folder in folders}
    jobs = [(seed, pattern) for seed in range(first_seed, first_seed + rendered) for pattern in PATTERNS]
    made = list(map_ordered(make_rendered, jobs, pool))
    for features in MAX_FEATURES:
        sets[f"rendered, {features}"] = [pairs[features] for pairs in made if features in pairs]
    for ratio in SYNTHETIC:
        sets[f"synthetic, {100 * ratio:g} % right"] = list(make_synthetic(ratio, synthetic, first_seed))
    return {name: pairs for name, pairs in sets.items() if pairs}


def best_first(pair: PlanePair, max_ratio: float) -> PlanePair:
    """Return the matches that the peers get."""
    order = np.argsort(pair.scores, kind="stable")
    order = order[: max(int((pair.scores < max_ratio).sum()), MIN_KEPT)]
    chosen = {name: np.ascontiguousarray(getattr(pair, name)[order]) for name in ("points1", "points2", "scores")}
    return replace(pair, **chosen)


def measure(name: str, max_error_px: float, pair: PlanePair) -> tuple[float, float]:
    """Return the corner error in pixels, and processor milliseconds, which other load hardly affects."""
    estimator = HOMOGRAPHY_ESTIMATORS[name]
    settings = RunSettings(max_error_px=max_error_px, iterations=HYPOTHESES)
    started = time.process_time()
    try:
        given = pair if estimator.max_ratio is None else best_first(pair, estimator.max_ratio)
        H = estimator.run(given, settings)
    except Exception:  # a peer may raise anything, which counts as its failure
        if estimator.module == "caransac":
            raise
        H = None
    ms = 1e3 * (time.process_time() - started)
    return pair.corner_error_px(H), ms


def run_method(estimator: HomographyEstimator, sets: Sets, pool: ProcessPool) -> Record:
    """Return the figures of a method on all sets. A pair that crashes its process is a failure."""
    # Loads the library.
    _outcome(pool, partial(measure, estimator.name, estimator.max_error_px), next(iter(sets.values()))[0])
    rows = {}
    for name, pairs in sets.items():
        max_error_px = REAL_MAX_ERROR_PX if name.startswith("real") else estimator.max_error_px
        run = partial(measure, estimator.name, max_error_px)
        errors, times = zip(*(_outcome(pool, run, pair) for pair in pairs), strict=True)
        px = None if estimator.module == "caransac" else max_error_px
        rows[name] = {"max_error_px": px} | figures(np.array(errors), times, pairs)
    return rows


def figures(errors: np.ndarray, times: Sequence[float], pairs: list[PlanePair]) -> Record:
    """Return the figures of a method on a set from its errors (n,), which are infinite for failures."""
    scenes = np.array([scene_of(pair) for pair in pairs])
    mean = {
        f"AUC{limit:g}": float(np.mean([auc(errors[scenes == scene], limit) for scene in np.unique(scenes)]))
        for limit in LIMITS_PX
    }
    return mean | {
        "above_20_px": int((errors > WRONG_PX).sum()),
        "no_answer": int(np.isinf(errors).sum()),
        "ms": float(np.nanmedian(times)),
        "parts_AUC5": {label: auc(errors[chosen], 5.0) for label, chosen in parts_of(pairs).items()},
    }


def scene_of(pair: PlanePair) -> str:
    """Return the scene, pattern or descriptor of a pair."""
    return pair.name.split("/")[0]


def parts_of(pairs: list[PlanePair]) -> dict[str, np.ndarray]:
    """Return masks (n,) of the pairs by pattern or descriptor, and by range of the share of right matches."""
    scenes = np.array([scene_of(pair) for pair in pairs])
    ratios = np.array([pair.right_matches().mean() for pair in pairs])
    parts = {str(scene): scenes == scene for scene in dict.fromkeys(scenes)}
    if np.ptp(ratios) > 0.05:
        parts |= {"below 3 % right": ratios < 0.03, "3 % and more": ratios >= 0.03}
    return {label: chosen for label, chosen in parts.items() if chosen.any()}


def _outcome(
    pool: ProcessPool, run: Callable[[PlanePair], tuple[float, float]], pair: PlanePair
) -> tuple[float, float]:
    try:
        return pool.submit(run, pair).result()
    except WorkerDiedError:
        return float("inf"), float("nan")


def describe_sets(sets: Sets) -> Record:
    """Describe the pairs, with a digest that identifies them."""
    described = {}
    for name, pairs in sets.items():
        points = b"".join(np.concatenate([p.points1, p.points2], axis=1).tobytes() for p in pairs)
        ratios = [100 * float(pair.right_matches().mean()) for pair in pairs]
        described[name] = {
            "digest": hashlib.sha256(points).hexdigest()[:16],
            "pairs": len(pairs),
            "mean_matches": round(np.mean([len(pair.points1) for pair in pairs])),
            "right_percent_10_50_90": np.percentile(ratios, [10, 50, 90]).tolist(),
            "parts": {label: int(chosen.sum()) for label, chosen in parts_of(pairs).items()},
        }
    return described


def main_table(content: Record, name: str) -> str:
    """Format the table of a set."""
    described = content["sets"][name]
    low, middle, high = described["right_percent_10_50_90"]
    text = f"## {name[0].upper()}{name[1:]}\n\n"
    text += f"{described['pairs']} pairs of {described['mean_matches']} matches on average. Right matches are "
    text += f"within 3 px of the truth: {middle:.1f} % in the median pair, "
    text += f"{low:.1f} to {high:.1f} % in eight pairs of ten.\n\n"
    lines = []
    for label, sets in content["methods"].items():
        row = sets[name]
        cells = [f"{row[f'AUC{limit:g}']:.1f}" for limit in LIMITS_PX]
        cells += [str(row["above_20_px"]), str(row["no_answer"]), f"{row['ms']:.1f}"]
        lines.append([label, "" if row["max_error_px"] is None else f"{row['max_error_px']:g}", *cells])
    return text + table(["", "px", "AUC@1", "AUC@3", "AUC@5", "above 20 px", "no answer", "ms"], lines) + "\n"


def split_table(content: Record, name: str) -> str:
    """Format a table of AUC@5 by pattern or descriptor, and by the share of right matches."""
    parts = content["sets"][name]["parts"]
    text = f"AUC@5 by parts, {', '.join(f'{label}: {count} pairs' for label, count in parts.items())}.\n\n"
    rows = (
        [label, *(f"{sets[name]['parts_AUC5'][part]:.1f}" for part in parts)]
        for label, sets in content["methods"].items()
    )
    return text + table(["", *parts], rows) + "\n"


def as_markdown(content: Record) -> str:
    """Format all tables."""
    text = f"# Homographies\n\n{__doc__.partition(chr(10) * 2)[2].strip(chr(10))}\n\n"
    for name in sorted(content["sets"], key=lambda name: name.split(",")[0]):  # real sets first
        text += main_table(content, name) + split_table(content, name)
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="real pairs")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["ours", "peers"],
        metavar="NAME",
        help="methods, or 'ours' and 'peers' for several of them (default: all)",
    )
    parser.add_argument(
        "--rendered", type=int, default=20, metavar="N", help="rendered pairs per pattern (default: %(default)s)"
    )
    parser.add_argument(
        "--synthetic",
        type=int,
        default=60,
        metavar="N",
        help="synthetic pairs per share of right matches (default: %(default)s)",
    )
    parser.add_argument(
        "--first-seed",
        type=int,
        default=0,
        metavar="N",
        help="first seed of the generated pairs; use another one to choose settings (default: %(default)s)",
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    names = [name for given in arguments.methods for name in GROUPS.get(given, [given])]
    counts = (0, 2) if arguments.quick else (arguments.rendered, arguments.synthetic)
    with ProcessPool(count_cores()) as pool:
        sets = make_sets(arguments.folders, *counts, arguments.first_seed, pool)
    methods: Record = {}
    for name in names:
        estimator = HOMOGRAPHY_ESTIMATORS[name]
        if estimator.missing:
            print(f"{name}: {estimator.missing}")
            continue
        with ProcessPool(1) as pool:  # a separate pool, so that no library disturbs another
            methods[name] = run_method(estimator, sets, pool)
        print(name, flush=True)
    return {"sets": describe_sets(sets), "methods": methods}
