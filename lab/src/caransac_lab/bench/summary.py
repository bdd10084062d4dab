"""Compute the figures of tables and published results from outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from caransac.geometry import Array
from caransac_lab.bench.benchmark import TableRow
from caransac_lab.bench.breakdown import PARTS
from caransac_lab.bench.protocol import Outcome
from caransac_lab.metrics import auc, summarise

SCHEMA = "caransac-bench/1"
FIGURES = ("AUC5", "AUC1", "MAP20", "Med", "Avg", "AUC10", "AUC20", "AUC5 folded", "AUC10 folded", "AUC20 folded")
RATIO_BINS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)

Outcomes = Mapping[tuple[str, str], Outcome]


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the paper's five figures, AUC@10, AUC@20, and "folded" AUCs, which ignore the sign of the translation."""
    errors = [outcome.error_deg for outcome in outcomes]
    folded = [outcome.folded_error_deg for outcome in outcomes]
    return (
        summarise(errors)
        | {f"AUC{limit}": auc(errors, limit) for limit in (10, 20)}
        | {f"AUC{limit} folded": auc(folded, limit) for limit in (5, 10, 20)}
    )


def by_scene(outcomes: Outcomes) -> dict[str, dict[str, float]]:
    """Return the figures of every scene."""
    scenes: dict[str, list[Outcome]] = defaultdict(list)
    for (scene, _), outcome in outcomes.items():
        scenes[scene].append(outcome)
    return {scene: figures(found) for scene, found in scenes.items()}


def mean_and_deviation(row: TableRow) -> dict[str, dict[str, float]]:
    """Average every figure over scenes. Return its mean and standard deviation over seeds."""
    runs = []
    for outcomes in row.outcomes:
        scenes = by_scene(outcomes)
        runs.append([np.mean([scenes[scene][name] for scene in scenes]) for name in FIGURES])
    means, deviations = np.mean(runs, axis=0), np.std(runs, axis=0)
    return {n: {"mean": float(m), "std": float(d)} for n, m, d in zip(FIGURES, means, deviations, strict=True)}


def by_inlier_ratio(row: TableRow) -> list[dict[str, float]]:
    """Return AUC@5 of the pairs, for all seeds together, in bins of the inlier ratio; empty bins are omitted."""
    outcomes = [outcome for run in row.outcomes for outcome in run.values()]
    bins = []
    for low, high in pairwise(RATIO_BINS):
        inside = [o for o in outcomes if low <= o.inlier_ratio < high or o.inlier_ratio == high == 1.0]
        if inside:
            errors = [outcome.error_deg for outcome in inside]
            bins.append({"from": low, "to": high, "AUC5": auc(errors, 5.0), "count": len(inside)})
    return bins


def reliability(row: TableRow) -> Array | None:
    """Return rows (mean probability, frequency, count) over the matches of all pairs; None without probabilities."""
    tables = [np.array(o.reliability) for run in row.outcomes for o in run.values() if o.reliability]
    if not tables:
        return None
    predicted, observed, counts = np.concatenate(tables).T
    cell = np.minimum((predicted * 10).astype(int), 9)
    totals, said, true = (np.bincount(cell, w, 10) for w in (counts, predicted * counts, observed * counts))
    filled = totals > 0
    return np.stack([said[filled] / totals[filled], true[filled] / totals[filled], totals[filled]], axis=1)


def median_ms(times: Sequence[float | None]) -> float | None:
    """Return the median of times, or None if there are none."""
    return float(np.median([ms for ms in times if ms is not None])) if times else None


def mean_parts_ms(timed: Sequence[Outcome]) -> dict[str, float]:
    """Return the mean milliseconds of every part over the timing pass."""
    breakdowns = [outcome.parts_ms or {} for outcome in timed]
    parts = [part for part in PARTS if any(part in found for found in breakdowns)]
    return {part: float(np.mean([found.get(part, 0.0) for found in breakdowns])) for part in parts}


def summarise_row(row: TableRow) -> dict[str, Any]:
    """Return a row of the published results."""
    first = row.outcomes[0]
    everything = [outcome for run in row.outcomes for outcome in run.values()]
    drawn = [outcome.iterations for outcome in everything if outcome.iterations is not None]
    return {
        "dataset": row.dataset,
        "problem": row.problem,
        "method": row.method.label,
        "about": row.method.estimator.about,
        "filter": row.method.filter.name if row.method.filter else None,
        "max_error_px": row.settings.max_error_px,
        "iterations": row.settings.iterations,
        "mean_iterations": float(np.mean(drawn)) if drawn else None,
        "within_budget": row.within_budget,
        "repeatable": row.method.estimator.seeding != "none",
        "pairs": len(first),
        "failures": sum(outcome.status == "failed" for outcome in everything),
        "crashes": sum(outcome.status == "crashed" for outcome in everything),
        "ms": median_ms([outcome.ms for outcome in row.timed]),
        "parts_ms": mean_parts_ms(row.timed),
        "figures": mean_and_deviation(row),
        "scenes": by_scene(first),
        "by_inlier_ratio": by_inlier_ratio(row),
    }
