"""The plan of a benchmark, and the methods that it selects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.contract import ProblemName
from caransac_lab.bench.filters import CONTEXT_FILTER, BenchFilter, own_filters, ratio_filter
from caransac_lab.bench.paper import PRESET
from caransac_lab.bench.protocol import BenchMethod

NEEDS_WEIGHTS = "needs weights trained on data like these (caransac-lab train --paper --start paper)"
GROUPS: dict[str, tuple[str, ...]] = {
    "peers": tuple(name for name, e in ESTIMATORS.items() if e.module != "caransac"),
    "ours": ("CA-RANSAC", "LM-LO", "LM-LO-U"),
    "paper": tuple(name for name in ESTIMATORS if name.startswith(PRESET)),
    "ablations": ("CA-RANSAC", "CA-RANSAC -C", "CA-RANSAC -S", "CA-RANSAC -R", "LM-LO"),
    "budgets": tuple(n for n, e in ESTIMATORS.items() if e.iterations is not None and not n.startswith(PRESET)),
    "filtered": (
        *(f"{CONTEXT_FILTER} + {name}" for name in ("LM-LO", "LM-LO-U", "PoseLib", "OpenCV USAC_DEFAULT", "MAGSAC++")),
        "CA-RANSAC with filter features",
    ),
    "all": tuple(ESTIMATORS),
}
GROUPS["default"] = (*GROUPS["ours"], *GROUPS["peers"])


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that determines the figures of a benchmark.

    Attributes:
        sources: data sets, for `datasets.open_dataset`.
        problems: estimation problems.
        methods: names of methods or of groups in `GROUPS`; ``FILTER + METHOD`` selects a filter by name.
        iterations: number of hypotheses of every method; None for each method's own stopping rule.
        budget_ms: time budget per pair, or None. It replaces `iterations` by the number of hypotheses that fit.
        seeds: number of runs of every method on every pair, with seeds 0, 1, ...
        max_ratio: ratio filter of the methods that use one.
        weights: path of weights trained on similar data, for the row that uses them; empty for none.
        filters: filters that replace the ratio filter in additional rows.
        max_pairs: maximum number of pairs per scene; None for all.
        timing_pairs: number of pairs of the timing pass, spread over the data set; 0 for none.
        tune: data set on which thresholds are tuned; None for each method's default.
        tune_pairs: maximum number of pairs per scene for tuning.
    """

    sources: tuple[str, ...]
    problems: tuple[ProblemName, ...] = ("E",)
    methods: tuple[str, ...] = ("default",)
    iterations: int | None = 1024
    budget_ms: float | None = None
    seeds: int = 1
    max_ratio: float = 0.85
    weights: str = ""
    filters: tuple[BenchFilter, ...] = ()
    max_pairs: int | None = None
    timing_pairs: int = 20
    tune: str | None = None
    tune_pairs: int = 20

    def __post_init__(self) -> None:
        if not self.sources:
            raise ValueError("no data: name a folder, or use --quick")
        if self.tune in self.sources:
            raise ValueError(f"--tune must name other data than the benchmark's own, not {self.tune}")
        for name, least in (
            ("iterations", 1),
            ("budget_ms", 0.1),
            ("seeds", 1),
            ("max_ratio", 0),
            ("max_pairs", 1),
            ("timing_pairs", 0),
            ("tune_pairs", 1),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value < math.inf:
                raise ValueError(f"{name.replace('_', '-')} must be at least {least}, not {value!r}")

    def choose_methods(self) -> tuple[list[BenchMethod], dict[str, str]]:
        """Return the methods to run, and those that cannot run with the reason.

        Raises:
            ValueError: a name is unknown. The message suggests the nearest one.
        """
        found, missing = dict[str, BenchMethod](), dict[str, str]()
        plain = [name for name in self.methods if " + " not in name]
        names = list(self.methods) + [f"{f.name} + {name}" for f in self.filters for name in plain]
        for label in (label for name in names for label in _expand(name)):
            first, plus, name = label.rpartition(" + ")
            estimator = ESTIMATORS[name]
            filters = {f.name: f for f in (*own_filters(), *self.filters)}
            if plus and first not in filters:
                missing[label] = f"needs the weights of {first}: --filter {first}=FILE"
            elif estimator.missing:
                missing[label] = estimator.missing
            elif estimator.wants_weights and not self.weights:
                missing[label] = f"{NEEDS_WEIGHTS}: --weights FILE"
            else:
                own = ratio_filter(self.max_ratio) if estimator.filtered else None
                found[label] = BenchMethod(name, filters[first] if plus else own, label)
        return list(found.values()), missing


def _expand(name: str) -> Sequence[str]:
    """Return a method or the methods of a group, each behind the filter in ``FILTER + NAME`` if there is one."""
    prefix = name[: name.rfind(" + ") + 3] if " + " in name else ""
    wanted = name[len(prefix) :]
    if wanted.lower() in GROUPS:
        return [prefix + each for each in GROUPS[wanted.lower()]]
    known = {each.lower(): each for each in ESTIMATORS}
    if wanted.lower() not in known:
        hint = "".join(f"; did you mean {known[near]!r}?" for near in get_close_matches(wanted.lower(), known, n=1))
        raise ValueError(f"unknown method {wanted!r}{hint} (caransac-lab bench --list shows all)")
    return [prefix + known[wanted.lower()]]
