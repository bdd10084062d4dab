"""A complete benchmark: thresholds, budgets, the accuracy pass, the timing pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np

from caransac.options import MaxError
from caransac_lab.bench import runner
from caransac_lab.bench.contract import ProblemName, RunSettings
from caransac_lab.bench.journal import Journal, Key
from caransac_lab.bench.plan import Plan
from caransac_lab.bench.protocol import BenchMethod, Job, Outcome
from caransac_lab.datasets import Dataset, open_dataset
from caransac_lab.metrics import auc

THRESHOLDS_PX = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
CALIBRATION_PAIRS = 7  # number of pairs for finding a time budget
FEWEST, MOST = 32, 2**20  # range of the number of hypotheses for a time budget


class Observer(Protocol):
    """Interface for observing the progress of a benchmark."""

    def begin_stage(self, stage: str, total: int) -> None:
        """Begin a stage of `total` outcomes."""

    def add_outcome(self, key: Key, outcome: Outcome) -> None:
        """Add the outcome of a run of the stage, or one that the journal already had."""


@dataclass(frozen=True, eq=False)
class TableRow:
    """A row of a table with all its outcomes.

    Attributes:
        dataset: name of the data set.
        method: method that ran.
        problem: problem that it solved.
        settings: settings of the runs, except the seed.
        within_budget: False if even the fewest hypotheses took longer than the time budget.
        outcomes: for every seed, the outcomes by (scene, pair), sorted.
        timed: outcomes of the timing pass.
    """

    dataset: str
    method: BenchMethod
    problem: ProblemName
    settings: RunSettings
    within_budget: bool
    outcomes: list[dict[tuple[str, str], Outcome]]
    timed: list[Outcome]


class Benchmark:
    """Run a plan. Outcomes go through the journal, so that a second run only reads them."""

    def __init__(self, plan: Plan, journal: Journal, observer: Observer, workers: int) -> None:
        self.plan, self.journal, self.observer, self.workers = plan, journal, observer, workers
        self.methods, self.missing = plan.choose_methods()

    def run(self) -> list[TableRow]:
        """Return all rows of all data sets and problems."""
        datasets = [open_dataset(source, self.plan.max_pairs) for source in self.plan.sources]
        names = [dataset.name for dataset in datasets]
        if len(set(names)) < len(names):
            raise ValueError(f"data sets must differ in the last two parts of their paths, not be {', '.join(names)}")
        if empty := [dataset.name for dataset in datasets if dataset.num_pairs == 0]:
            raise ValueError(f"no pairs in {', '.join(empty)}")
        rows: list[TableRow] = []
        for problem in self.plan.problems:
            methods = [method for method in self.methods if problem in method.estimator.problems]
            thresholds = self.thresholds(methods, problem)
            for dataset in datasets:
                settings = {m: replace(self.settings(m), max_error_px=thresholds[m]) for m in methods}
                over = self.fit_to_budget(dataset, problem, settings)
                rows += self.measure(dataset, problem, settings, over)
        return rows

    def settings(self, method: BenchMethod) -> RunSettings:
        """Return the default settings of a method."""
        estimator = method.estimator
        return RunSettings(
            max_error_px=estimator.max_error_px,
            iterations=estimator.iterations or self.plan.iterations,
            weights=self.plan.weights if estimator.wants_weights else "",
        )

    def thresholds(self, methods: list[BenchMethod], problem: ProblemName) -> dict[BenchMethod, MaxError]:
        """Return each method's threshold in pixels: its default, or the best by AUC@5 on the tuning data."""
        if self.plan.tune is None:
            return {method: method.estimator.max_error_px for method in methods}
        dataset = open_dataset(self.plan.tune, self.plan.tune_pairs)
        dataset = replace(dataset, name=f"tuning on {dataset.name}")
        jobs = {
            Job(method, problem, replace(self.settings(method), max_error_px=t)): t
            for method in methods
            for t in THRESHOLDS_PX
        }
        outcomes = self._run(f"thresholds {problem}", dataset, list(jobs), self.workers)
        best = dict[BenchMethod, tuple[float, float]]()
        for job, threshold in jobs.items():
            score = auc([outcome.error_deg for outcome in outcomes[job].values()], 5.0)
            if job.method not in best or score > best[job.method][0]:
                best[job.method] = (score, threshold)
        return {method: threshold for method, (_, threshold) in best.items()}

    def fit_to_budget(
        self, dataset: Dataset, problem: ProblemName, settings: dict[BenchMethod, RunSettings]
    ) -> set[BenchMethod]:
        """Set the hypotheses of every method to fit its time budget. Return the methods that exceed it anyway.

        The number of hypotheses is doubled until the median time of a few pairs exceeds the budget, and interpolated
        between the last two numbers. It is then the same for all pairs, because numbers are reproducible and times are
        not.
        """
        budget, over = self.plan.budget_ms, set[BenchMethod]()
        if budget is None:
            return over
        few = take_evenly(dataset, CALIBRATION_PAIRS)
        free = [method for method in settings if method.estimator.iterations is None]
        times: dict[BenchMethod, dict[int, float]] = defaultdict(dict)
        iterations = FEWEST
        while free and iterations <= MOST:
            jobs = [Job(m, problem, replace(settings[m], iterations=iterations), timed=True) for m in free]
            outcomes = self._run(f"budget {problem}, {iterations} hypotheses", few, jobs, 1)
            for job in jobs:
                times[job.method][iterations] = _median_ms(outcomes[job])
            free = [method for method in free if times[method][iterations] <= budget]
            iterations *= 2
        for method, measured in times.items():
            settings[method] = replace(settings[method], iterations=hypotheses_within(budget, measured))
            if measured[FEWEST] > budget:
                over.add(method)
        return over

    def measure(
        self,
        dataset: Dataset,
        problem: ProblemName,
        settings: Mapping[BenchMethod, RunSettings],
        over: set[BenchMethod],
    ) -> list[TableRow]:
        """Run the accuracy pass in parallel, then the timing pass, one run at a time."""
        jobs = {
            (method, seed): Job(method, problem, replace(told, seed=seed))
            for method, told in settings.items()
            for seed in range(self.plan.seeds)
        }
        timed = {method: Job(method, problem, told, timed=True) for method, told in settings.items()}
        outcomes = self._run(f"accuracy {problem}, {dataset.name}", dataset, list(jobs.values()), self.workers)
        few = take_evenly(dataset, self.plan.timing_pairs)
        times = self._run(f"time {problem}, {dataset.name}", few, list(timed.values()), 1)
        return [
            TableRow(
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
        """Return outcomes of jobs by (scene, pair), sorted so that figures do not depend on the order of runs."""
        if dataset.num_pairs == 0:
            return {job: {} for job in jobs}
        outcomes: dict[Key, Outcome] = {}
        self.observer.begin_stage(stage, dataset.num_pairs * len(jobs))

        def add(key: Key, outcome: Outcome) -> None:
            outcomes[key] = outcome
            self.observer.add_outcome(key, outcome)

        runner.run(dataset, jobs, self.journal, workers=workers, on_outcome=add)
        by_job: dict[Key, dict[tuple[str, str], Outcome]] = defaultdict(dict)
        for key, outcome in sorted(outcomes.items(), key=lambda item: item[0]):
            by_job[key[:1] + key[3:]][key[1], key[2]] = outcome
        keys = {job: job.key(dataset.name, "", "") for job in jobs}
        return {job: by_job[key[:1] + key[3:]] for job, key in keys.items()}


def take_evenly(dataset: Dataset, count: int) -> Dataset:
    """Return up to `count` pairs of a data set, at even intervals."""
    if count == 0:
        return replace(dataset, num_pairs=0)
    step = max(1, -(-dataset.num_pairs // count))
    return replace(dataset, num_pairs=-(-dataset.num_pairs // step), read=lambda: islice(dataset.read(), 0, None, step))


def hypotheses_within(budget_ms: float, times_ms: Mapping[int, float]) -> int:
    """Return the number of hypotheses that fits a time budget, from times of increasing numbers of hypotheses."""
    numbers = sorted(times_ms)
    if len(numbers) == 1 or times_ms[numbers[-1]] <= budget_ms:
        return numbers[-1]
    low, high = numbers[-2:]
    share = (budget_ms - times_ms[low]) / (times_ms[high] - times_ms[low])
    return int(low + share * (high - low))


def _median_ms(outcomes: Mapping[tuple[str, str], Outcome]) -> float:
    """Return the median time, infinite if no run finished."""
    return float(np.median([outcome.ms for outcome in outcomes.values() if outcome.ms is not None] or [np.inf]))
