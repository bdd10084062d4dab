"""Run jobs on pairs, in parallel or one by one. A killed run can resume, and a crashing peer affects no other."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from caransac._support.batch import submit_all
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac_lab.bench.breakdown import parts_ms
from caransac_lab.bench.journal import Journal, Key
from caransac_lab.bench.machine import THREADS
from caransac_lab.bench.protocol import Job, Outcome, run_job, undistorted
from caransac_lab.datasets import Dataset, Pair

IN_FLIGHT = 3  # tasks per worker that are read ahead
TIME_LIMIT_S = 300.0  # seconds for one method on one pair; a longer run counts as crashed


@dataclass(frozen=True, eq=False)
class Task:
    """Jobs on one pair, and the time limit in seconds of each."""

    pair: Pair
    jobs: tuple[Job, ...]
    time_limit_s: float


OnOutcome = Callable[[Key, Outcome], None]
Finish = Callable[[Pair, Job, Outcome], None]


def run(
    dataset: Dataset,
    jobs: Sequence[Job],
    journal: Journal,
    *,
    workers: int,
    on_outcome: OnOutcome,
    time_limit_s: float = TIME_LIMIT_S,
) -> None:
    """Run all jobs on all pairs of a data set that are not in the journal yet.

    Args:
        dataset: data set with the pairs.
        jobs: jobs to run on each pair.
        journal: journal for the outcomes.
        workers: number of processes, with one thread each. With one process, runs do not disturb each other's times.
        on_outcome: called with every outcome, including those from the journal.
        time_limit_s: maximum seconds of one method on one pair; a longer run counts as crashed.

    Raises:
        ValueError: a pair has no truth.
    """

    def finish(pair: Pair, job: Job, outcome: Outcome) -> None:
        key = job.key(dataset.name, pair.scene, pair.name)
        journal.add(key, outcome)
        on_outcome(key, outcome)

    def tasks() -> Iterator[Task]:
        for pair in dataset.read():
            if pair.R is None or pair.t is None:
                raise ValueError(f"{dataset.name}: pair {pair.name} has no true pose")
            keys = {job: job.key(dataset.name, pair.scene, pair.name) for job in jobs}
            for key in keys.values():
                if key in journal.outcomes:
                    on_outcome(key, journal.outcomes[key])
            if pending := tuple(job for job, key in keys.items() if key not in journal.outcomes):
                yield Task(undistorted(pair), pending, time_limit_s)

    with single_threads():
        crashed = _run_tasks(tasks(), workers, finish)
        for task in crashed:  # one job at a time, to find the one that crashes its process
            for job in task.jobs:
                if _run_tasks([replace(task, jobs=(job,))], 1, finish):
                    finish(task.pair, job, Outcome(status="crashed", num_matches=len(task.pair.points1)))


def _run_tasks(tasks: Iterable[Task], workers: int, finish: Finish) -> list[Task]:
    """Run tasks in worker processes. Return those that crashed their worker."""
    crashed: list[Task] = []
    with ProcessPool(workers, start_worker) as pool:
        for task, done in submit_all(pool, run_task, tasks, look_ahead=IN_FLIGHT * workers):
            try:
                outcomes = done.result()
            except WorkerDiedError:
                crashed.append(task)
                continue
            for job, outcome in zip(task.jobs, outcomes, strict=True):
                finish(task.pair, job, outcome)
    return crashed


def start_worker() -> None:
    """Suppress the output of peers, which would disturb the table."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)


def run_task(task: Task) -> list[Outcome]:
    """Run the jobs of a task in a worker. A hanging method ends its process, because native code cannot be stopped."""
    outcomes = []
    with Path(os.devnull).open("w") as nowhere:
        for job in task.jobs:
            faulthandler.dump_traceback_later(task.time_limit_s, exit=True, file=nowhere)
            outcomes.append(timed(job, task.pair) if job.timed else run_job(job, task.pair))
            faulthandler.cancel_dump_traceback_later()
    return outcomes


def timed(job: Job, pair: Pair) -> Outcome:
    """Return the faster of two runs, because loading and other load only add time. A third run gives the breakdown."""
    outcome = min((run_job(job, pair) for _ in range(2)), key=lambda run: np.inf if run.ms is None else run.ms)
    return outcome if outcome.ms is None else replace(outcome, parts_ms=parts_ms(job, pair))


@contextmanager
def single_threads() -> Iterator[None]:
    """Limit linear algebra to one thread in processes started inside. Then restore the setting of this process."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
