"""Options of an estimation: a frozen record, every field checked."""

from __future__ import annotations

import inspect
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from caransac._support.arrays import check_whole, is_integer, is_real, shorten
from caransac.tuning import DEFAULT_TUNING, PAPER_TUNING, Tuning

MethodName = Literal["ca-ransac", "lm-lo", "lm-lo-u"]
ScoreKind = Literal["ratio", "confidence"]
MaxError = float | Literal["auto"]

SAMPLES_PER_ROUND = 256  # as in training
# What other libraries call our options.
OTHER_NAMES = {
    **dict.fromkeys(("threshold", "max_error", "max_epipolar_error", "ransacReprojThreshold"), "max_error_px"),
    **dict.fromkeys(("confidence", "success_prob", "prob"), "success_probability"),
    **dict.fromkeys(("iterations", "max_iterations", "maxIters", "max_num_trials"), "rounds"),
}
IN_LAB = ("oversampling", "sample_quality")  # options of 0.2
DEFAULT_WEIGHTS = "default"  # those of the package that were trained for the problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What an estimation may be told. Unknown or misspelt names raise, and so do values out of range.

    Every method uses ``method``, ``rounds``, ``samples_per_round``, ``max_error_px``, ``top_models``,
    ``early_stop``, ``success_probability``, ``max_seconds`` and ``seed``; the others say who uses them.

    Attributes:
        method: "ca-ransac" is Consensus-Adaptive RANSAC, which learns from every round; "lm-lo" is classical LO-RANSAC
            with Levenberg-Marquardt refinement inside and at the end, sampling the best scored matches first
            (PROSAC); "lm-lo-u" is the same with uniform sampling.
        weights: "ca-ransac" only. Its trained weights: a name in the package, or the path of an npz file; "default" for
            those that were trained for the problem.
        rounds: batches of samples, at most: 1 to 1,000,000. Four suffice for most pairs; hard ones gain from more.
        samples_per_round: minimal samples in a batch, 1 to 10,000. Ctrl-C is obeyed between batches.
        max_error_px: Sampson distance in pixels, of a homography the symmetric transfer error, beyond which a match
            does not support a model; "auto" finds it with the noise of the matches, and the result reports both.
        top_models: models of each round, by consensus, that "ca-ransac" attends to, and that "lm-lo" and "lm-lo-u"
            refine before the best one is chosen, 1 to 1000.
        local_models: "ca-ransac" only. Models of each round that it refines to find those it attends to, 1 to 1000.
        state_update: "ca-ransac" only, an ablation: False keeps only the probabilities of the side information.
        adaptive_sampling: "ca-ransac" only, an ablation: False draws uniformly from the matches with a ratio below 0.8.
        adaptive_refinement: "ca-ransac" only, an ablation: False refines the best model with equal weights on the
            matches within ``max_error_px``.
        max_ratio: "lm-lo" and "lm-lo-u" only. Matches whose ratio (``score_kind="ratio"``) is not below are left out of
            the estimation, as long as 15 remain. They still count in ``inliers``. A number above all ratios, say 2,
            keeps every match.
        early_stop: stop as soon as ``success_probability`` is reached. The first rounds of "ca-ransac" then draw fewer
            samples if most matches are probably right. False runs exactly ``rounds * samples_per_round`` hypotheses.
        success_probability: wanted probability of having drawn a sample without outliers, were samples uniform;
            progressive sampling only does better.
        max_seconds: time in seconds after which no other round begins, or None. At least one round runs, and the
            assessment of the answer comes on top. With it, the answer depends on the speed of the machine.
        keep_trace: "ca-ransac" only. Keep what every round saw, as ``result.trace``.
        seed: same input and same seed give the same answer, to the last bit on the same kind of CPU, unless
            ``max_seconds`` cuts the rounds.
        tuning: what the methods were tuned with; for ablations, see `Tuning`.
    """

    method: MethodName = "ca-ransac"
    weights: str | Path = DEFAULT_WEIGHTS
    rounds: int = 4
    samples_per_round: int = SAMPLES_PER_ROUND
    max_error_px: MaxError = "auto"
    top_models: int = 4
    local_models: int = 24
    state_update: bool = True
    adaptive_sampling: bool = True
    adaptive_refinement: bool = True
    max_ratio: float = 0.85
    early_stop: bool = True
    success_probability: float = 0.9999
    max_seconds: float | None = None
    keep_trace: bool = False
    seed: int = 0
    tuning: Tuning = DEFAULT_TUNING

    def __new__(cls, **given: object) -> Options:
        """Refuse unknown names with a ValueError that suggests the nearest known one."""
        for name in given:
            if name in IN_LAB:
                raise ValueError(f"the option {name!r} is in caransac-lab now: caransac_lab.networks.oversampling")
        refuse_unknown(given, [field.name for field in fields(cls)], "option")
        return object.__new__(cls)

    @classmethod
    def paper(cls, **given: Any) -> Options:
        """The algorithm of the paper with nothing added, by weights that were trained for it.

        Four rounds of 256 samples, four models by their total consensus, thresholds of one pixel, no early stop
        (`docs/paper.md` has it beside the default). Options given by keyword replace those.
        """
        fixed = {"weights": "paper", "max_error_px": 1.0, "local_models": 4, "early_stop": False}
        return cls(**{**fixed, "tuning": PAPER_TUNING, **given})

    def left_since(self, started: float) -> Options:
        """Return the options with what is left of `max_seconds` since ``time.perf_counter()`` was `started`."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(self.max_seconds - (time.perf_counter() - started), 0.0))

    def __post_init__(self) -> None:
        methods, method = get_args(MethodName), self.method
        _require(isinstance(method, str) and method in methods, "method", f"one of {', '.join(methods)}", method)
        # A round cannot be interrupted: with these limits it takes less than a second.
        most = {"rounds": 10**6, "samples_per_round": 10**4, "top_models": 1000, "local_models": 1000}
        for name, limit in most.items():
            check_whole(getattr(self, name), name, 1, limit)
            object.__setattr__(self, name, int(getattr(self, name)))  # those of numpy would overflow
        for name, others in (("max_error_px", ("auto",)), ("max_ratio", ())):
            value = getattr(self, name)
            expected = " or ".join([f'"{other}"' for other in others] + ["a number from 1e-6 to 1e6"])
            named = isinstance(value, str) and value in others
            _require(named or (is_real(value) and 1e-6 <= value <= 1e6), name, expected, value)
            object.__setattr__(self, name, value if named else float(value))
        value = self.weights
        _require(isinstance(value, str | Path) and str(value) not in ("", "."), "weights", "a name or a path", value)
        for name in ("early_stop", "state_update", "adaptive_sampling", "adaptive_refinement", "keep_trace"):
            value = getattr(self, name)
            _require(isinstance(value, bool | np.bool_), name, "True or False", value)
            object.__setattr__(self, name, bool(value))
        value = self.success_probability
        _require(is_real(value) and 0 < value < 1, "success_probability", "between 0 and 1", value)
        object.__setattr__(self, "success_probability", float(value))
        if (value := self.max_seconds) is not None:
            _require(is_real(value) and 0 <= value <= 1e9, "max_seconds", "a number from 0 to 1e9, or None", value)
            object.__setattr__(self, "max_seconds", float(value))
        _require(isinstance(self.tuning, Tuning), "tuning", "a caransac.tuning.Tuning", self.tuning)
        _require(is_integer(self.seed) and 0 <= self.seed < 2**64, "seed", "an integer from 0 to 2**64 - 1", self.seed)
        object.__setattr__(self, "seed", int(self.seed))


# Of the fields: `inspect` and editors would show that of `__new__`.
Options.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [each for each in inspect.signature(Options.__init__).parameters.values() if each.name != "self"]
)


def refuse_unknown(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise a ValueError for the first name that is not known, and suggest the nearest known one."""
    for name in given:
        if name not in known:
            from difflib import get_close_matches

            near = [OTHER_NAMES[name]] if OTHER_NAMES.get(name) in known else get_close_matches(str(name), known, n=1)
            hint = "".join(f"; did you mean {match!r}?" for match in near)
            raise ValueError(f"unknown {what} {name!r}{hint}")


def check_score_kind(scores: object, score_kind: ScoreKind | None) -> ScoreKind:
    """The kind of scores that may be None; a ValueError if it must be told and is not, or if there is no such kind."""
    kinds = '"ratio" (lower is better) or "confidence" (higher is better)'
    if score_kind is None and scores is not None:
        raise ValueError(f"score_kind must be given with scores: {kinds}")
    if score_kind is not None and (not isinstance(score_kind, str) or score_kind not in get_args(ScoreKind)):
        raise ValueError(f"score_kind must be {kinds}, not {shorten(score_kind)}")
    return score_kind or "ratio"


def in_rounds(hypotheses: int) -> dict[str, int]:
    """A number of hypotheses as options: rounds of at most 256, all of the same size; exact for multiples of 256."""
    rounds = max(-(-hypotheses // SAMPLES_PER_ROUND), 1)
    return {"rounds": rounds, "samples_per_round": -(-hypotheses // rounds)}


def _require(condition: bool, name: str, expected: str, value: object) -> None:
    if not condition:
        raise ValueError(f"{name} must be {expected}, not {shorten(value)}")
