"""Measure the time of each part of a run with an interpreter profile of its functions."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any, cast

from caransac.api.arguments import check_matches
from caransac.api.result_fields import report
from caransac.learned.side_information import side_information
from caransac.learned.state_network import StateNetwork
from caransac.robust.assess.confidence import assess_confidence
from caransac.robust.assess.degeneracy import find_degeneracy
from caransac.robust.assess.rivals import find_rivals
from caransac.robust.assess.uncertainty import pose_covariance
from caransac.robust.loop.sampling import PoolSampler, sampling_pool
from caransac.robust.loop.scale import likely_matches
from caransac.robust.loop.steps import Steps, rank_regions
from caransac.robust.problems import Essential, Fundamental, Problem
from caransac.robust.working_set import choose_working_set, widen
from caransac_lab.bench import protocol
from caransac_lab.bench.filters import BenchFilter
from caransac_lab.bench.protocol import Job
from caransac_lab.datasets import Pair
from caransac_lab.networks.oversampling import SelectiveSampler

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "filter": (BenchFilter.apply,),
    "choice of matches": (choose_working_set,),
    "side information": (side_information,),
    "sample": (sampling_pool, SelectiveSampler.draw, PoolSampler.draw),
    "solve": (Essential.solve, Fundamental.solve),
    "compare and refine": (Steps.hypothesise,),  # without the time of the solver that it calls
    "score": (rank_regions, Steps.attend, Problem.msac_scores),
    "refine": (likely_matches, Steps.measure, Steps.refine, Problem.refine),
    "network": (StateNetwork.first, StateNetwork.update),
    "degeneracy": (find_degeneracy,),
    "rivals": (find_rivals,),
    "confidence": (pose_covariance, assess_confidence),
    "all matches": (widen,),
    "input and result": (check_matches, report),
    "final refinement": (protocol.polish_pose, protocol.polish_fundamental),
}
PARTS = (*FUNCTIONS, "other")  # "other" is the whole run of a peer, whose functions are not timed
PART_OF: dict[CodeType, str] = {
    cast(FunctionType, function).__code__: part for part, functions in FUNCTIONS.items() for function in functions
}


def parts_ms(job: Job, pair: Pair) -> dict[str, float]:
    """Return the milliseconds of a run by part. Parts of `PARTS` without any time are omitted."""
    with timing() as spent:
        ms = protocol.run_job(job, pair).ms
    if ms is None:
        return {}
    spent["other"] = 1e-3 * ms - sum(spent.values())
    return {part: 1e3 * spent[part] for part in PARTS if part in spent}


@contextmanager
def timing() -> Iterator[dict[str, float]]:
    """Measure the seconds spent in each part while the block runs.

    The time of a function that another part calls counts for the caller, except for the solvers.
    """
    spent: dict[str, float] = defaultdict(float)
    running: list[FrameType] = []
    since = 0.0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal since
        begins = event == "call" and frame.f_code in PART_OF and (not running or PART_OF[frame.f_code] == "solve")
        ends = event == "return" and bool(running) and frame is running[-1]
        if begins or ends:
            now = time.perf_counter()
            if running:
                spent[PART_OF[running[-1].f_code]] += now - since
            since = now
            running.append(frame) if begins else running.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield spent
    finally:
        sys.setprofile(before)
