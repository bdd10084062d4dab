"""Where the time of a run goes: the verbs of the estimators and of the protocol, watched while they work."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from caransac import api
from caransac.bench import protocol
from caransac.bench.filters import Filter
from caransac.bench.protocol import Job
from caransac.datasets import Pair
from caransac.learned.state_network import StateNetwork
from caransac.robust import ca_ransac
from caransac.robust.problems import Essential, Fundamental, Problem
from caransac.robust.sampling import SelectiveSampler

VERBS: tuple[tuple[Any, str, str], ...] = (
    (Filter, "apply", "filter"),
    (api, "side_information", "side information"),
    (ca_ransac, "likely_inliers", "sample"),
    (SelectiveSampler, "draw", "sample"),
    (Essential, "solve", "solve"),
    (Fundamental, "solve", "solve"),
    (Problem, "rank", "score"),
    (Essential, "score", "score"),
    (Problem, "score", "score"),
    (ca_ransac, "spread_consensus", "score"),
    (Essential, "refine_locally", "refine"),
    (Fundamental, "refine_locally", "refine"),
    (Essential, "refine", "refine"),
    (Fundamental, "refine", "refine"),
    (StateNetwork, "init_state", "network"),
    (StateNetwork, "update", "network"),
    (StateNetwork, "decode", "network"),
    (api, "confidence", "confidence"),
    (protocol, "polish_pose", "final refinement"),
    (protocol, "polish_fundamental", "final refinement"),
)
PARTS = (*dict.fromkeys(part for *_, part in VERBS), "other")  # "other" is all of it in a peer, which shows no verbs


def parts_ms(job: Job, pair: Pair) -> dict[str, float]:
    """Milliseconds of a run by the part they went to; the parts of `PARTS` that took none are left out."""
    with watching() as spent:
        ms = protocol.run_job(job, pair).ms
    if ms is None:
        return {}
    spent["other"] = 1e-3 * ms - sum(spent.values())
    return {part: 1e3 * spent[part] for part in PARTS if part in spent}


@contextmanager
def watching() -> Iterator[dict[str, float]]:
    """Seconds spent in the verbs while the block runs; a verb that another one calls counts as the other."""
    spent: dict[str, float] = defaultdict(float)
    inside: list[str] = []

    def watched(call: Callable[..., Any], part: str) -> Callable[..., Any]:
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

    originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in VERBS]
    for (owner, name, original), (*_, part) in zip(originals, VERBS, strict=True):
        setattr(owner, name, watched(original, part))
    try:
        yield spent
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
