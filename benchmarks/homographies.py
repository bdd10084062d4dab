"""Homographies: every method on real, rendered and synthetic planes.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/homographies.py [DIR ...] [--methods NAME ...]

DIR holds scenes of real pairs: in each, matches.h5, match_conf.h5 (ratios), H.h5 (x2 ~ H x1) and sizes.h5 (width and
height of both images), by pair. Rendered and synthetic pairs are made anew from their seeds. "ours" and "peers" stand
for several methods. The rows of these methods replace those in the file of results, and all tables are written again.

All get the same matches: the peers those with a ratio below 0.85 (20 at least), best first, ours all with their ratios.
1024 hypotheses, one thread. The column px has the peers' thresholds; ours are at their default. The error of a pair is
the mean error of four corners: of the image (real), of the plane (rendered), or of the rectangle around the right
matches (synthetic). No answer counts as infinite. Figures are taken by scene, pattern or descriptor and averaged. Times
are medians of the processor's time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from caransac._support.batch import count_cores, map_ordered
from caransac._support.files import open_h5, replacing
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac.bench import machine
from caransac.bench.adapters import HOMOGRAPHY_ESTIMATORS
from caransac.bench.contract import HomographyEstimator, RunSettings
from caransac.bench.rendered_planes import PATTERNS, match_plane, photograph_plane
from caransac.metrics import auc
from caransac.synthetic import PlanePair, random_plane
from caransac.synthetic.distributions import log_uniform
from caransac.synthetic.scores import BINARY, ROOTSIFT

RESULTS = Path(__file__).parent / "results" / "homographies.json"
HYPOTHESES = 1024
MIN_KEPT = 20  # matches that pass a filter at least
WRONG_PX = 20.0  # a larger error is no answer to anything
LIMITS_PX = (1.0, 3.0, 5.0)
MAX_FEATURES = {"rootsift": 4000, "orb": 8000}
INLIER_RATIOS = (0.01, 0.1)  # of rendered pairs; others are left out
MIN_RIGHT = 16  # right matches of rendered pairs; those with fewer are left out
SYNTHETIC = (0.01, 0.02, 0.05, 0.1)
OURS = [name for name, estimator in HOMOGRAPHY_ESTIMATORS.items() if estimator.module == "caransac"]
GROUPS = {"ours": OURS, "peers": [name for name in HOMOGRAPHY_ESTIMATORS if name not in OURS]}

Sets = dict[str, list[PlanePair]]
Record = dict[str, Any]


def read_scenes(folder: Path) -> Iterator[PlanePair]:
    """Real pairs; errors are measured at the corners of image 1."""
    for scene in sorted(path.parent for path in folder.glob("*/H.h5")):
        files = [open_h5(scene / f"{name}.h5") for name in ("matches", "match_conf", "H", "sizes")]
        for key in sorted(files[2]):
            points, ratios, H, sizes = (np.asarray(file[key], float) for file in files)
            size1, size2 = (tuple(map(int, size)) for size in sizes)
            corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * (sizes[0] - 1)
            name = f"{scene.name}/{key}"
            yield PlanePair(name, points[:, :2], points[:, 2:], ratios.ravel(), H, corners, size1, size2)


def make_rendered(job: tuple[int, str]) -> dict[str, PlanePair]:
    """The matches of one pair of photographs by features; those with too many or too few right ones left out."""
    seed, pattern = job
    views, made = photograph_plane(seed, pattern), {}
    for features, most in MAX_FEATURES.items():
        pair = match_plane(views, features, most, f"{pattern}/{seed}")
        right = pair.right_matches()
        if INLIER_RATIOS[0] <= right.mean() <= INLIER_RATIOS[1] and right.sum() >= MIN_RIGHT:
            made[features] = pair
    return made


def make_synthetic(inlier_ratio: float, count: int, first_seed: int) -> Iterator[PlanePair]:
    """Synthetic pairs with the ratios of RootSIFT and of a binary descriptor, by turns."""
    for seed in range(first_seed, first_seed + count):
        rng = np.random.default_rng([seed, round(1000 * inlier_ratio), 11])
        kind, descriptor = (("rootsift", ROOTSIFT), ("binary", BINARY))[seed % 2]
        num_points = round(log_uniform(rng, 2000, 8000))
        name = f"{kind}/{seed}"
        yield random_plane(rng, num_points=num_points, inlier_ratio=inlier_ratio, descriptor=descriptor, name=name)


def make_sets(folders: list[Path], rendered: int, synthetic: int, first_seed: int, pool: ProcessPool) -> Sets:
    """All pairs by the name of their set."""
    sets: Sets = {f"real, {'/'.join(folder.resolve().parts[-2:])}": list(read_scenes(folder)) for folder in folders}
    jobs = [(seed, pattern) for seed in range(first_seed, first_seed + rendered) for pattern in PATTERNS]
    made = list(map_ordered(make_rendered, jobs, pool))
    for features in MAX_FEATURES:
        sets[f"rendered, {features}"] = [pairs[features] for pairs in made if features in pairs]
    for ratio in SYNTHETIC:
        sets[f"synthetic, {100 * ratio:g} % right"] = list(make_synthetic(ratio, synthetic, first_seed))
    return {name: pairs for name, pairs in sets.items() if pairs}


def best_first(pair: PlanePair, max_ratio: float) -> PlanePair:
    """The matches that the peers get."""
    order = np.argsort(pair.scores, kind="stable")
    order = order[: max(int((pair.scores < max_ratio).sum()), MIN_KEPT)]
    chosen = {name: np.ascontiguousarray(getattr(pair, name)[order]) for name in ("points1", "points2", "scores")}
    return replace(pair, **chosen)


def measure(name: str, max_error_px: float, pair: PlanePair) -> tuple[float, float]:
    """Corner error in pixels, and processor time in milliseconds, which other users of the machine hardly change."""
    estimator = HOMOGRAPHY_ESTIMATORS[name]
    settings = RunSettings(max_error_px=max_error_px, iterations=HYPOTHESES)
    started = time.process_time()
    try:
        given = pair if estimator.max_ratio is None else best_first(pair, estimator.max_ratio)
        H = estimator.run(given, settings)
    except Exception:  # a peer may raise anything, and that is its failure, not ours
        if estimator.module == "caransac":
            raise
        H = None
    ms = 1e3 * (time.process_time() - started)
    return pair.corner_error_px(H), ms


def run_method(estimator: HomographyEstimator, max_error_px: float, sets: Sets, pool: ProcessPool) -> Record:
    """Errors and times of a method on all pairs; a pair that brings its process down is a failure."""
    run = partial(measure, estimator.name, max_error_px)
    _outcome(pool, run, next(iter(sets.values()))[0])  # imports and loads
    rows = {}
    for name, pairs in sets.items():
        errors, times = zip(*(_outcome(pool, run, pair) for pair in pairs), strict=True)
        rows[name] = {
            "max_error_px": None if estimator.module == "caransac" else max_error_px,
            "errors_px": [_finite(error) for error in errors],
            "ms": [round(ms, 2) for ms in times],
        }
    return {
        "about": estimator.about,
        "versions": machine.versions([estimator]),
        "machine": machine.describe(),
        "sets": rows,
    }


def _outcome(
    pool: ProcessPool, run: Callable[[PlanePair], tuple[float, float]], pair: PlanePair
) -> tuple[float, float]:
    try:
        return pool.submit(run, pair).result()
    except WorkerDiedError:
        return float("inf"), float("nan")


def _finite(error: float) -> float | None:
    return round(error, 3) if np.isfinite(error) else None


def describe_sets(sets: Sets) -> Record:
    """What the pairs are, and a digest by which to know them again."""
    described = {}
    for name, pairs in sets.items():
        points = b"".join(np.concatenate([p.points1, p.points2], axis=1).tobytes() for p in pairs)
        described[name] = {
            "digest": hashlib.sha256(points).hexdigest()[:16],
            "pairs": [pair.name for pair in pairs],
            "num_matches": [len(pair.points1) for pair in pairs],
            "inlier_ratios": [round(float(pair.right_matches().mean()), 4) for pair in pairs],
        }
    return described


def merge(stored: Record, described: Record, methods: Record) -> Record:
    """Stored results with the rows of methods replaced; what was measured on other pairs must not stand beside them."""
    sets = stored.get("sets", {}) | described
    changed = [name for name in described if stored.get("sets", {}).get(name, described[name]) != described[name]]
    if changed and set(stored["methods"]) - set(methods):
        raise SystemExit(f"the pairs of {', '.join(changed)} are not those of the stored results: run all methods")
    rows = dict(stored.get("methods", {}))
    for name, method in methods.items():
        rows[name] = method | {"sets": rows.get(name, {}).get("sets", {}) | method["sets"]}
    return {"sets": sets, "methods": {name: rows[name] for name in HOMOGRAPHY_ESTIMATORS if name in rows}}


def errors_of(method: Record, name: str) -> np.ndarray:
    """Errors (n,) of a method on a set, infinite for failures."""
    return np.array([np.inf if error is None else error for error in method["sets"][name]["errors_px"]])


def mean_over_scenes(figure: Callable[[np.ndarray], float], errors: np.ndarray, pairs: list[str]) -> float:
    """A figure by scene, or pattern, or descriptor, averaged."""
    scenes = np.array([pair.split("/")[0] for pair in pairs])
    return float(np.mean([figure(errors[scenes == scene]) for scene in np.unique(scenes)]))


def main_table(result: Record, name: str) -> Iterator[str]:
    """Lines of the table of a set."""
    described = result["sets"][name]
    ratios, pairs = 100 * np.array(described["inlier_ratios"]), described["pairs"]
    low, middle, high = np.percentile(ratios, [10, 50, 90])
    yield f"## {name[0].upper()}{name[1:]}\n"
    yield f"{len(pairs)} pairs of {round(np.mean(described['num_matches']))} matches in the mean. Right, within 3 px of"
    yield f"the truth, are {middle:.1f} % in the median pair, {low:.1f} to {high:.1f} % in eight pairs of ten.\n"
    yield "| | px | AUC@1 | AUC@3 | AUC@5 | above 20 px | no answer | ms |\n|---|---|---|---|---|---|---|---|"
    for label, method in result["methods"].items():
        if name in method["sets"]:
            errors = errors_of(method, name)
            figures = [f"{mean_over_scenes(partial(auc, limit_deg=limit), errors, pairs):.1f}" for limit in LIMITS_PX]
            failures = [str(int((errors > WRONG_PX).sum())), str(int(np.isinf(errors).sum()))]
            ms = f"{np.nanmedian(method['sets'][name]['ms']):.1f}"
            px = method["sets"][name]["max_error_px"]
            yield f"| {label} | {'' if px is None else f'{px:g}'} | {' | '.join([*figures, *failures, ms])} |"
    yield ""


def split_table(result: Record, name: str) -> Iterator[str]:
    """Lines of a table of AUC@5 by pattern, or descriptor, and by the share of right matches."""
    described = result["sets"][name]
    scenes = np.array([pair.split("/")[0] for pair in described["pairs"]])
    ratios = np.array(described["inlier_ratios"])
    parts = {scene: scenes == scene for scene in dict.fromkeys(scenes)}
    if np.ptp(ratios) > 0.05:
        parts |= {"below 3 % right": ratios < 0.03, "3 % and more": ratios >= 0.03}
    parts = {label: chosen for label, chosen in parts.items() if chosen.any()}
    yield f"AUC@5 by parts, {', '.join(f'{label}: {chosen.sum()} pairs' for label, chosen in parts.items())}.\n"
    yield f"| | {' | '.join(parts)} |\n|{'---|' * (len(parts) + 1)}"
    for label, method in result["methods"].items():
        if name in method["sets"]:
            errors = errors_of(method, name)
            yield f"| {label} | {' | '.join(f'{auc(errors[chosen], 5.0):.1f}' for chosen in parts.values())} |"
    yield ""


def as_markdown(result: Record) -> str:
    """All tables."""
    lines = ["# Homographies\n", f"{__doc__.split(chr(10) * 2, 1)[1].strip(chr(10))}\n"]
    lines += ["Made planes are measured with `python benchmarks/homographies.py`; real ones with `DIR ... --rendered 0"]
    lines += ["--synthetic 0 --max-error 2`; ours again with `DIR ... --methods ours`.\n"]
    for name in sorted(result["sets"], key=lambda name: name.split(",")[0]):  # real ones first
        lines += [*main_table(result, name), *split_table(result, name)]
    return "\n".join(lines)


def main() -> None:
    """Run the methods, merge their rows into the results, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="real pairs")
    parser.add_argument("--methods", nargs="+", default=["ours", "peers"], metavar="NAME", help="(default: all)")
    parser.add_argument("--rendered", type=int, default=20, metavar="N", help="pairs of photographs of each pattern")
    parser.add_argument("--synthetic", type=int, default=60, metavar="N", help="pairs of each share of right matches")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="others for looking at settings")
    parser.add_argument("--max-error", type=float, metavar="PX", help="the threshold of all peers (default: their own)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="JSON", help="(default: %(default)s)")
    arguments = parser.parse_args()
    names = [name for given in arguments.methods for name in GROUPS.get(given, [given])]
    with ProcessPool(count_cores()) as pool:
        counts = arguments.rendered, arguments.synthetic, arguments.first_seed
        sets = make_sets(arguments.folders, *counts, pool)
    methods: Record = {}
    for name in names:
        estimator = HOMOGRAPHY_ESTIMATORS[name]
        if estimator.missing:
            print(f"{name}: {estimator.missing}")
            continue
        with ProcessPool(1) as pool:  # of its own, so that no library disturbs another
            max_error_px = arguments.max_error or estimator.max_error_px
            methods[name] = run_method(estimator, max_error_px, sets, pool)
        print(name, flush=True)
    stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    result = merge(stored, describe_sets(sets), methods)
    for path, text in (
        (arguments.out, json.dumps(result) + "\n"),
        (arguments.out.with_suffix(".md"), as_markdown(result)),
    ):
        with replacing(path) as temporary:
            temporary.write_text(text)


if __name__ == "__main__":
    main()
