"""Where the time of a run goes: the functions of the estimators and of the protocol, timed while they run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from caransac.api import estimators
from caransac.bench import protocol
from caransac.bench.filters import BenchFilter
from caransac.bench.protocol import Job
from caransac.datasets import Pair
from caransac.kernels import ModelKernels
from caransac.learned.state_network import StateNetwork
from caransac.robust import pipeline
from caransac.robust.loop import steps
from caransac.robust.loop.sampling import SelectiveSampler
from caransac.robust.problems import Essential, Fundamental, Problem

TIMED: tuple[tuple[Any, str, str], ...] = (
    (BenchFilter, "apply", "filter"),
    (pipeline, "choose_working_set", "choice of matches"),
    (pipeline, "side_information", "side information"),
    (steps, "sampling_pool", "sample"),
    (SelectiveSampler, "draw", "sample"),
    (Essential, "solve", "solve"),
    (Fundamental, "solve", "solve"),
    (ModelKernels, "promising", "compare and refine"),
    (steps, "rank_regions", "score"),
    (steps.Steps, "attend", "score"),
    (Problem, "msac_scores", "score"),
    (steps, "likely_matches", "refine"),
    (steps.Steps, "measure", "refine"),
    (steps.Steps, "refine", "refine"),
    (Problem, "refine", "refine"),
    (StateNetwork, "first", "network"),
    (StateNetwork, "update", "network"),
    (pipeline, "find_degeneracy", "degeneracy"),
    (pipeline, "find_rivals", "rivals"),
    (pipeline, "pose_covariance", "confidence"),
    (pipeline, "assess_confidence", "confidence"),
    (pipeline, "widen", "all matches"),
    (estimators, "check_matches", "input and result"),
    (estimators, "report", "input and result"),
    (protocol, "polish_pose", "final refinement"),
    (protocol, "polish_fundamental", "final refinement"),
)
# "other" is all of a peer's run: none of its functions is timed.
PARTS = (*dict.fromkeys(part for *_, part in TIMED), "other")


def parts_ms(job: Job, pair: Pair) -> dict[str, float]:
    """Milliseconds of a run by the part they went to; the parts of `PARTS` that took none are left out."""
    with timing() as spent:
        ms = protocol.run_job(job, pair).ms
    if ms is None:
        return {}
    spent["other"] = 1e-3 * ms - sum(spent.values())
    return {part: 1e3 * spent[part] for part in PARTS if part in spent}


@contextmanager
def timing() -> Iterator[dict[str, float]]:
    """Seconds spent in each part while the block runs; a function that another one calls counts as the other."""
    spent: dict[str, float] = defaultdict(float)
    inside: list[str] = []

    def time_calls(call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if inside:
                return call(*args, **kwargs)
            inside.append(part)
            started = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - started
                inside.pop()

        return run

    originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in TIMED]
    for (owner, name, original), (*_, part) in zip(originals, TIMED, strict=True):
        setattr(owner, name, time_calls(original, part))
    try:
        yield spent
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
