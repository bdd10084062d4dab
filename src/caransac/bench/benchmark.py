"""A benchmark from beginning to end: thresholds, budgets, the accuracy pass, the timing pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np

from caransac.bench import runner
from caransac.bench.contract import ProblemName, Settings
from caransac.bench.journal import Journal, Key
from caransac.bench.plan import Plan
from caransac.bench.protocol import Job, Method, Outcome
from caransac.datasets import Dataset, open_dataset
from caransac.metrics import auc

THRESHOLDS_PX = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
CALIBRATION_PAIRS = 7  # for a time budget
FEWEST, MOST = 32, 2**20  # hypotheses that a time budget may buy


class Watcher(Protocol):
    """Whoever wants to see how far a benchmark is."""

    def begin(self, stage: str, total: int) -> None:
        """A stage begins, of so many outcomes."""

    def saw(self, key: Key, outcome: Outcome) -> None:
        """An outcome is there."""


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a table with all its outcomes.

    Attributes:
        dataset: name of the data set.
        method: what ran.
        problem: what it estimated.
        settings: what it was told, but for the seed.
        within_budget: False if even the fewest hypotheses took longer than the time budget.
        outcomes: for every seed, the outcomes by (scene, pair), sorted.
        timed: the outcomes of the timing pass.
    """

    dataset: str
    method: Method
    problem: ProblemName
    settings: Settings
    within_budget: bool
    outcomes: list[dict[tuple[str, str], Outcome]]
    timed: list[Outcome]


class Benchmark:
    """Runs a plan; outcomes go through the journal, so that a second run only reads them."""

    def __init__(self, plan: Plan, journal: Journal, watcher: Watcher, workers: int) -> None:
        self.plan, self.journal, self.watcher, self.workers = plan, journal, watcher, workers
        self.methods, self.missing = plan.rows()

    def run(self) -> list[Row]:
        """All rows of all data sets and problems."""
        datasets = [open_dataset(source, self.plan.max_pairs) for source in self.plan.sources]
        names = [dataset.name for dataset in datasets]
        if len(set(names)) < len(names):
            raise ValueError(f"data sets must differ in the last two parts of their paths, not be {', '.join(names)}")
        if empty := [dataset.name for dataset in datasets if dataset.num_pairs == 0]:
            raise ValueError(f"no pairs in {', '.join(empty)}")
        rows: list[Row] = []
        for problem in self.plan.problems:
            methods = [method for method in self.methods if problem in method.record.problems]
            thresholds = self.thresholds(methods, problem)
            for dataset in datasets:
                settings = {m: replace(self.settings(m), max_error_px=thresholds[m]) for m in methods}
                over = self.fit_to_budget(dataset, problem, settings)
                rows += self.measure(dataset, problem, settings, over)
        return rows

    def settings(self, method: Method) -> Settings:
        """What a method is told by default."""
        record = method.record
        return Settings(max_error_px=record.max_error_px, iterations=record.iterations or self.plan.iterations)

    def thresholds(self, methods: list[Method], problem: ProblemName) -> dict[Method, float]:
        """Each method's threshold in pixels: its default, or the best by AUC@5 on the data set to tune on."""
        if self.plan.tune is None:
            return {method: method.record.max_error_px for method in methods}
        dataset = open_dataset(self.plan.tune, self.plan.tune_pairs)
        dataset = replace(dataset, name=f"tuning on {dataset.name}")
        jobs = {
            Job(
                method, problem, Settings(max_error_px=t, iterations=method.record.iterations or self.plan.iterations)
            ): t
            for method in methods
            for t in THRESHOLDS_PX
        }
        outcomes = self._run(f"thresholds {problem}", dataset, list(jobs), self.workers)
        best = dict[Method, tuple[float, float]]()
        for job, threshold in jobs.items():
            score = auc([outcome.error_deg for outcome in outcomes[job].values()], 5.0)
            if job.method not in best or score > best[job.method][0]:
                best[job.method] = (score, threshold)
        return {method: threshold for method, (_, threshold) in best.items()}

    def fit_to_budget(self, dataset: Dataset, problem: ProblemName, settings: dict[Method, Settings]) -> set[Method]:
        """Set the hypotheses of every method to what its time budget buys; returns the methods that exceed it anyway.

        Hypotheses are doubled until the median time of a few pairs exceeds the budget, and interpolated between the
        last two numbers. The number then holds for all pairs: figures can be repeated, as times cannot.
        """
        budget, over = self.plan.budget_ms, set[Method]()
        if budget is None:
            return over
        few = spread(dataset, CALIBRATION_PAIRS)
        free = [method for method in settings if method.record.iterations is None]
        times: dict[Method, dict[int, float]] = defaultdict(dict)
        iterations = FEWEST
        while free and iterations <= MOST:
            jobs = [Job(m, problem, replace(settings[m], iterations=iterations), timed=True) for m in free]
            outcomes = self._run(f"budget {problem}, {iterations} hypotheses", few, jobs, 1)
            for job in jobs:
                times[job.method][iterations] = _median_ms(outcomes[job])
            free = [method for method in free if times[method][iterations] <= budget]
            iterations *= 2
        for method, measured in times.items():
            settings[method] = replace(settings[method], iterations=affordable(measured, budget))
            if measured[FEWEST] > budget:
                over.add(method)
        return over

    def measure(
        self, dataset: Dataset, problem: ProblemName, settings: Mapping[Method, Settings], over: set[Method]
    ) -> list[Row]:
        """The accuracy pass in parallel, then the timing pass, one run at a time."""
        jobs = {
            (method, seed): Job(method, problem, replace(told, seed=seed))
            for method, told in settings.items()
            for seed in range(self.plan.seeds)
        }
        timed = {method: Job(method, problem, told, timed=True) for method, told in settings.items()}
        outcomes = self._run(f"accuracy {problem}, {dataset.name}", dataset, list(jobs.values()), self.workers)
        few = spread(dataset, self.plan.timing_pairs)
        times = self._run(f"time {problem}, {dataset.name}", few, list(timed.values()), 1)
        return [
            Row(
                dataset=dataset.name,
                method=method,
                problem=problem,
                settings=told,
                within_budget=method not in over,
                outcomes=[outcomes[jobs[method, seed]] for seed in range(self.plan.seeds)],
                timed=[outcome for outcome in times[timed[method]].values() if outcome.ms is not None],
            )
            for method, told in settings.items()
        ]

    def _run(
        self, stage: str, dataset: Dataset, jobs: list[Job], workers: int
    ) -> dict[Job, dict[tuple[str, str], Outcome]]:
        """Outcomes of jobs by (scene, pair), sorted, so that figures do not depend on who finished first."""
        if dataset.num_pairs == 0:
            return {job: {} for job in jobs}
        seen: dict[Key, Outcome] = {}
        self.watcher.begin(stage, dataset.num_pairs * len(jobs))

        def report(key: Key, outcome: Outcome) -> None:
            seen[key] = outcome
            self.watcher.saw(key, outcome)

        runner.run(dataset, jobs, self.journal, workers=workers, report=report)
        by_job: dict[Key, dict[tuple[str, str], Outcome]] = defaultdict(dict)
        for key, outcome in sorted(seen.items(), key=lambda item: item[0]):
            by_job[key[:1] + key[3:]][key[1], key[2]] = outcome
        keys = {job: job.key(dataset.name, "", "") for job in jobs}
        return {job: by_job[key[:1] + key[3:]] for job, key in keys.items()}


def spread(dataset: Dataset, count: int) -> Dataset:
    """At most `count` pairs of a data set, evenly spread."""
    if count == 0:
        return replace(dataset, num_pairs=0)
    step = max(1, -(-dataset.num_pairs // count))
    return replace(dataset, num_pairs=-(-dataset.num_pairs // step), read=lambda: islice(dataset.read(), 0, None, step))


def affordable(times_ms: Mapping[int, float], budget_ms: float) -> int:
    """Hypotheses that a budget buys, given times of ever more hypotheses up to the first that exceeds it."""
    numbers = sorted(times_ms)
    if len(numbers) == 1 or times_ms[numbers[-1]] <= budget_ms:
        return numbers[-1]
    low, high = numbers[-2:]
    share = (budget_ms - times_ms[low]) / (times_ms[high] - times_ms[low])
    return int(low + share * (high - low))


def _median_ms(outcomes: Mapping[tuple[str, str], Outcome]) -> float:
    """Median time, endless if no run came to an end."""
    return float(np.median([outcome.ms for outcome in outcomes.values() if outcome.ms is not None] or [np.inf]))
